/* SPDX-License-Identifier: Apache-2.0 */
/* tree.h - chunks of a syntax tree, in two passes, and its symbols, in a third.
 *
 * The first pass (tree_collect.c) walks the tree with a cursor, without recursion and no deeper than necessary. It
 * records the definitions in the order of the text, and the breaks: lines that begin a node, with the depth of the
 * node. The second pass (tree_chunks.c) decides which definitions become chunks, emits them and the text between them
 * in order, and splits what is too long at the shallowest break. The third pass (tree_symbols.c) lists all definitions
 * and all uses of names.
 */
#ifndef LODE_PARSER_TREE_H
#define LODE_PARSER_TREE_H

#include "chunk/chunk.h"
#include "parser/grammar.h"
#include "parser/tree_refs.h"

#define PARSER_MAX_DEPTH 400 /* deeper nodes are not visited */
#define PARSER_NO_DEF UINT32_MAX

typedef struct parser_def {
  TSNode node;
  const lang_rule *rule;
  uint32_t start, end;         /* with wrappers, decorators and the comments before it */
  uint32_t own;                /* where the definition itself begins, after its comments */
  uint32_t doc_start, doc_end; /* comments before it; equal: none */
  uint32_t body;               /* start of its body if that is a sibling node; else 0 */
  uint32_t outer;              /* the enclosing definition, or PARSER_NO_DEF */
  uint32_t lines;
  lode_str name, scope; /* slices of the text, or ""; scope: what the definition itself says it belongs to */
} parser_def;

typedef struct parser_break {
  uint32_t at, depth;
} parser_break;

typedef struct parser_outline {
  parser_def *defs;
  size_t n_defs, defs_cap;
  parser_break *breaks;
  size_t n_breaks, breaks_cap;
} parser_outline; /* all zero: empty; may be reused */

LODE_MUST lode_status parser_collect(const parser_grammar *grammar, TSTree *tree, lode_str text,
                                     const chunk_options *options, parser_outline *outline, lode_error *err);
LODE_MUST lode_status parser_make_chunks(const parser_grammar *grammar, const parser_outline *outline, lode_str text,
                                         const chunk_options *options, chunk_list *list, lode_error *err);
void parser_outline_release(parser_outline *outline);
/* Appends the table of symbols (chunk/symbol_table.h). */
LODE_MUST lode_status parser_make_symbols(const parser_grammar *grammar, TSTree *tree, lode_str text, parser_refs *refs,
                                          strbuf *out, lode_error *err);

/* ---- Names of definitions (tree_names.c): slices of the text ---- */

/* A class, struct, interface, ...: what is defined in it is a member. */
bool parser_is_class(lang_kind kind);
/* "Store::open" and "M.open": `open`, in scope Store or M. */
void parser_split_name(lode_str name, lode_str *scope, lode_str *last);
/* Without quotes, pointer signs and type arguments: "Point<T>" is Point. */
lode_str parser_bare_name(lode_str name);
/* The name of a C function before which a macro with arguments stands, if that was taken for its name. */
lode_str parser_behind_macro(lode_str text, lode_str name);
/* The last part of a definition's name, and the scope it names. */
void parser_names_of(const parser_def *def, lode_str *scope, lode_str *last);
/* The definition without its body; it may be several lines long. */
lode_str parser_signature(const parser_grammar *grammar, lode_str text, const parser_def *def);

#endif
