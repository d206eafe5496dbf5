/* SPDX-License-Identifier: Apache-2.0 */
/* op_symbols.h - what the operations on symbols share. */
#ifndef LODE_COMMANDS_OP_SYMBOLS_H
#define LODE_COMMANDS_OP_SYMBOLS_H

#include "commands/op_code.h"
#include "symbols/symbols.h"

typedef struct op_symbols {
  op_context *ctx;
  project_info project;
  lode_store *store;
  symbols_world world;
  op_code_freshness freshness;
  strbuf scratch;
} op_symbols;

/* Finds the project, brings changed files up to date where that is quick, and opens its symbols. To be closed after a
 * failure too. */
LODE_MUST lode_status op_symbols_open(op_context *ctx, const char *start, op_symbols *s, lode_error *err);
void op_symbols_close(op_symbols *s);
/* Reports what an answer may lack: rows left out because of the limit, or that not everything was looked at. */
void op_symbols_note(op_symbols *s, size_t left, bool more);
/* Is it this file, or below this folder? "" is the root. */
bool op_symbols_is_below(lode_str path, lode_str folder);
/* The files at or below a path that were read, by path; to be freed. */
typedef struct op_symbols_file {
  lode_str path;
  uint32_t file;
} op_symbols_file;
LODE_MUST lode_status op_symbols_files(const op_symbols *s, lode_str below, op_symbols_file **files, size_t *n,
                                       lode_error *err);
LODE_MUST lode_status op_symbols_send_def(op_symbols *s, symbols_id id, lode_error *err);
LODE_MUST lode_status op_symbols_send_edges(op_symbols *s, const symbols_edges *edges, size_t limit, lode_error *err);
/* A path as the user wrote it, from the root. */
LODE_MUST lode_status op_symbols_path(op_symbols *s, const op_arg_text *given, strbuf *path, lode_error *err);
/* LODE_NOT_FOUND when nothing has that name. */
LODE_MUST lode_status op_symbols_find(op_symbols *s, lode_str name, symbols_ids *ids, lode_error *err);

/* The text of files as they are now, with secrets masked as in the index; one file at a time is kept. */
typedef struct op_source {
  const project_info *project; /* NULL: nothing is read */
  struct scan_root *root;
  const lang_info *language;
  strbuf path, text; /* path: escaped, of the text */
  size_t at;         /* where the line begins */
  uint32_t line;
} op_source;
LODE_MUST lode_status op_source_read(op_source *source, lode_str path, lode_error *err);
/* A line of a file, without the white space around it; "" if it cannot be read or does not hold the name. */
lode_str op_source_line(op_source *source, lode_str path, uint32_t line, lode_str name);
void op_source_close(op_source *source);

#endif
