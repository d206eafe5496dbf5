/* SPDX-License-Identifier: Apache-2.0 */
/* tree_refs.h - collects the names that a file uses: groups of equal uses, names that are local, and what the text of
 * types, values and imports says. All strings are slices of the text or of `strings`. */
#ifndef LODE_PARSER_TREE_REFS_H
#define LODE_PARSER_TREE_REFS_H

#include "chunk/symbol_table.h"
#include "scan/language_uses.h"

#define PARSER_MAX_REFS (1u << 20)   /* uses in one file; what is beyond is left out */
#define PARSER_MAX_LOCALS (1u << 16) /* names that are visible at one place */

typedef struct parser_local {
  lode_str name, type; /* type: "" when it is not known */
  uint32_t before;     /* the local that it hides in its bucket, 1 + number, or 0 */
  uint32_t bucket;
} parser_local;

typedef struct parser_ref_group {
  chunk_ref_group g;
  uint32_t first, last, next; /* its occurrences, 1 + number; next: in its bucket */
} parser_ref_group;

typedef struct parser_occurrence {
  uint32_t line, next;
} parser_occurrence;

typedef struct parser_refs {
  parser_ref_group *groups;
  size_t n_groups, groups_cap;
  parser_occurrence *occurrences;
  size_t n, cap;
  uint32_t *table; /* buckets of groups: 1 + number */
  size_t table_size;
  parser_local *locals;
  size_t n_locals, locals_cap;
  uint32_t buckets[1024]; /* of locals: 1 + number */
  mem_arena strings;
  bool failed;
} parser_refs; /* all zero: empty; may be reused */

void parser_refs_clear(parser_refs *refs);
void parser_refs_release(parser_refs *refs);
/* `use` says all but the lines. */
void parser_refs_add(parser_refs *refs, const chunk_ref_group *use, uint32_t line);
void parser_refs_encode(parser_refs *refs, strbuf *out);

void parser_bind_local(parser_refs *refs, lode_str name, lode_str type);
/* NULL when no local name is visible here that reads like this. */
const parser_local *parser_find_local(const parser_refs *refs, lode_str name);
/* Forgets all but the first n. */
void parser_forget_locals(parser_refs *refs, size_t n);

/* ---- What texts say (tree_texts.c) ---- */

bool parser_is_word_char(char c);
/* The name of the type: "const struct Foo *" is Foo, "Arc<a::Bar>" is Bar, "[]Foo" is nothing. */
lode_str parser_type_name(lode_str text);
/* The type of the value, where its text says so: "new Foo(1)", "Foo::new()", "&Foo{}". */
lode_str parser_value_type(lode_str text);
/* "f" of "a.f(1, 2)"; "" when the text is not a call. */
lode_str parser_called_name(lode_str text);
/* "a.b->c": the name c, and a.b before it. False when the text does not end with a name. */
bool parser_split_callee(lode_str text, lode_str *owner, lode_str *name);
/* Adds the imports that a statement makes. */
void parser_add_imports(parser_refs *refs, lang_import how, lode_str text, uint32_t line);

#endif
