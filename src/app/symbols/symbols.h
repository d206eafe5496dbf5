/* SPDX-License-Identifier: Apache-2.0 */
/* symbols.h - the definitions of a project and the graph between them, from the tables in its index.
 *
 * A world holds the tables that were read so far. Questions read what they need: the files that define a name are
 * found by the index of names, those that use it by the text index.
 */
#ifndef LODE_SYMBOLS_SYMBOLS_H
#define LODE_SYMBOLS_SYMBOLS_H

#include "chunk/symbol_table.h"
#include "project/project.h"
#include "scan/language_uses.h"

typedef struct symbols_file {
  lode_str path; /* escaped */
  const lang_info *language;
  const lang_uses *uses; /* or NULL */
  const char *family;
  chunk_symbols table;
  uint32_t *imports; /* numbers of the uses that are imports */
  size_t n_imports;
  bool is_judged; /* what kind of path it is; symbols_is_test asks once */
  bool is_test;
} symbols_file;

/* A definition; def CHUNK_NO_DEF: the file itself. */
typedef struct symbols_id {
  uint32_t file, def;
} symbols_id;

typedef struct symbols_ids {
  symbols_id *v;
  size_t n, cap;
} symbols_ids;

/* Where names stand: the places of each name in the order in which they were added. A place's second number is that of
 * a definition, or of a use. */
typedef struct symbols_places {
  struct symbols_map *last; /* 1 + number of the last entry of a name */
  symbols_id *v;
  uint32_t *next; /* of an entry; after the last comes the first */
  size_t n, cap, next_cap;
} symbols_places;

typedef struct symbols_world {
  lode_collection *tables, *code;
  symbols_file *files;
  size_t n_files, files_cap;
  struct symbols_map *by_path, *asked; /* asked: names whose definitions were looked up */
  symbols_places defs, uses;           /* uses: of the first n_used files */
  struct symbols_map *weak; /* what is meant where nothing is known of a value (symbol_resolve.c): 1 + number */
  struct symbols_target *weak_targets;
  size_t n_weak, weak_cap, weak_files; /* weak_files: how many files there were then */
  size_t n_used;
  size_t n_asked;                /* names whose uses were asked for */
  uint64_t n_tables, asked_cost; /* tables in the store; what asking cost so far, in percent of reading them all */
  uint64_t bytes;
  uint64_t steps;   /* comparisons that were made to resolve names */
  uint64_t damaged; /* tables that could not be read */
  bool more;        /* a name has more definitions or uses than were looked at */
  bool whole;       /* all tables were read */
  mem_arena arena;
} symbols_world;

/* LODE_NOT_FOUND when there is no index, or it has no symbols yet; the text says what to do. */
LODE_MUST lode_status symbols_open(const project_info *project, lode_store *store, symbols_world *world,
                                   lode_error *err);
void symbols_close(symbols_world *world);

/* ---- Reading tables (symbol_world.c) ---- */

LODE_MUST lode_status symbols_load_all(symbols_world *world, lode_progress progress, lode_error *err);
/* *file is UINT32_MAX when the index has no symbols of it. */
LODE_MUST lode_status symbols_load_file(symbols_world *world, lode_str path, uint32_t *file, lode_error *err);
/* Files at or below a path; "" is all. */
LODE_MUST lode_status symbols_load_below(symbols_world *world, lode_str path, lode_error *err);
/* The files that define a name. */
LODE_MUST lode_status symbols_load_defs(symbols_world *world, lode_str name, lode_error *err);
/* The files whose text holds a name: those that may use it. */
LODE_MUST lode_status symbols_load_users(symbols_world *world, lode_str name, lode_error *err);

const chunk_def *symbols_def(const symbols_world *world, symbols_id id);
/* The definitions of a name in the files that were read; call with *at 0 first. */
bool symbols_next_def(const symbols_world *world, lode_str name, uint32_t *at, symbols_id *id);
/* The same for uses, after symbols_index_uses: id.def is the number of the use. */
LODE_MUST lode_status symbols_index_uses(symbols_world *world, lode_error *err);
bool symbols_next_use(const symbols_world *world, lode_str name, uint32_t *at, symbols_id *id);
/* The name of the class, struct, ... that a definition belongs to; "" when there is none. */
lode_str symbols_parent(const symbols_world *world, symbols_id id);
/* Appends Outer.Inner.name. */
void symbols_put_name(const symbols_world *world, symbols_id id, strbuf *out);
/* The innermost function, class, ... around a line; def CHUNK_NO_DEF when there is none. */
symbols_id symbols_at_line(const symbols_world *world, uint32_t file, uint32_t line);
/* Definitions of "name", "Outer.name" or "path/part:name", the most likely first: what is only declared, tests and
 * copies of others' code come last. What Outer does not have is looked for in its bases. */
LODE_MUST lode_status symbols_find(symbols_world *world, lode_str name, symbols_ids *ids, lode_error *err);
LODE_MUST bool symbols_add_id(symbols_ids *ids, symbols_id id);
bool symbols_has_id(const symbols_ids *ids, symbols_id id);
static inline bool symbols_same(symbols_id a, symbols_id b) { return a.file == b.file && a.def == b.def; }
bool symbols_is_function(lang_kind kind);
bool symbols_is_type(lang_kind kind);

/* ---- Which definition a name means (symbol_resolve.c, symbol_module.c) ---- */

#define SYMBOLS_SHOWN_CANDIDATES 8
typedef struct symbols_target {
  symbols_id ids[SYMBOLS_SHOWN_CANDIDATES]; /* the best ones; resolved: the first is it */
  size_t n, total;
  int score;
  bool resolved;
} symbols_target; /* n == 0: nothing in the project: a library's, or a local thing */

/* May so many more comparisons be made? If not, the answer is incomplete, and the world says so. */
bool symbols_spend(symbols_world *world, uint64_t steps);
/* The first use at a line or after it. */
size_t symbols_first_ref(const chunk_symbols *table, uint32_t line);
LODE_MUST lode_status symbols_resolve(symbols_world *world, uint32_t file, const chunk_ref *ref, symbols_target *target,
                                      lode_error *err);
/* The same, for one who asks about these definitions only: t->n is 0 when the use can mean none of them. */
LODE_MUST lode_status symbols_resolve_among(symbols_world *world, uint32_t file, const chunk_ref *ref,
                                            const symbols_ids *among, symbols_target *target, lode_error *err);
/* Appends the names of the bases of the types in the list, and theirs; the list has space for SYMBOLS_MAX_BASES.
 * family NULL: of all languages. */
LODE_MUST lode_status symbols_add_bases(symbols_world *world, const char *family, lode_str *list, size_t *n,
                                        lode_error *err);
/* A test or an example: code elsewhere does not use what it defines. */
bool symbols_is_test(const symbols_world *world, uint32_t file);
/* How well a module that a file imports fits a path: 0 not at all, 100 exactly. */
int symbols_module_fits(const symbols_file *from, lode_str module, lode_str name, lode_str path);

/* ---- Walks (symbol_graph.c) ---- */

typedef struct symbols_edge {
  symbols_id from, to; /* from: who calls; may be a file */
  uint32_t line, depth;
  chunk_use use;
  bool resolved;
  size_t candidates; /* not resolved: how many definitions may be meant; `to` is one of them */
  lode_str name;     /* what is called, as it is written */
  size_t times;      /* how often */
  size_t before;     /* the edge that led here, 1 + number, or 0 */
} symbols_edge;

typedef struct symbols_edges {
  symbols_edge *v;
  size_t n, cap;
  bool more; /* the walk was cut short */
} symbols_edges;

typedef struct symbols_walk_options {
  uint32_t depth;
  bool all_uses; /* not only calls: also types, values, bases */
  bool open;     /* callees: also calls that lead to nothing in the project */
} symbols_walk_options;

LODE_MUST lode_status symbols_callers(symbols_world *world, const symbols_ids *of, const symbols_walk_options *options,
                                      symbols_edges *edges, lode_error *err);
LODE_MUST lode_status symbols_callees(symbols_world *world, const symbols_ids *of, const symbols_walk_options *options,
                                      symbols_edges *edges, lode_error *err);
/* The shortest path of calls from one to another, its edges in order; none: n is 0. */
LODE_MUST lode_status symbols_trace(symbols_world *world, const symbols_ids *from, const symbols_ids *to,
                                    symbols_edges *path, lode_error *err);

/* ---- Surveys of all files (symbol_survey.c); symbols_load_all first ---- */

/* Functions and types whose name nothing uses. */
LODE_MUST lode_status symbols_unused(symbols_world *world, symbols_ids *unused, lode_error *err);

typedef struct symbols_cycle {
  uint32_t *files; /* each imports the next, the last the first */
  size_t n;
} symbols_cycle;
/* Groups of files that import each other, as one cycle each. */
LODE_MUST lode_status symbols_cycles(symbols_world *world, symbols_cycle **cycles, size_t *n, lode_error *err);
void symbols_cycles_free(symbols_cycle *cycles, size_t n);

#endif
