/* tree.h - chunks of a syntax tree, in two passes.
 *
 * The first (tree_collect.c) goes through the tree with a cursor, without recursion, no deeper than it must, and notes the
 * definitions in the order of the text, and marks: lines that begin a node, with the depth of the node. The second
 * (tree_chunks.c) decides which definitions become chunks, lays them and what is between them end to end, and cuts what is too
 * long at the shallowest mark.
 */
#ifndef LODE_PARSER_TREE_H
#define LODE_PARSER_TREE_H

#include "chunk/chunk.h"
#include "parser/grammar.h"

#define PARSER_MAX_DEPTH 400 /* nodes deeper than this are not looked at */
#define PARSER_NO_DEF UINT32_MAX

typedef struct parser_def {
  TSNode node;
  const lang_rule *rule;
  uint32_t start, end;         /* with wrappers, decorators and the comments before it */
  uint32_t own;                /* where the definition itself begins, behind comments */
  uint32_t doc_start, doc_end; /* comments before it; equal: none */
  uint32_t body;               /* where its body begins, if that is a node beside it; else 0 */
  uint32_t outer;              /* the definition around it, or PARSER_NO_DEF */
  uint32_t lines;
  lode_str name, scope;        /* in the text, or ""; scope: what the definition itself says that it lies in */
} parser_def;

typedef struct parser_break {
  uint32_t at, depth;
} parser_break;

typedef struct parser_outline {
  parser_def *defs;
  size_t n_defs, defs_cap;
  parser_break *marks;
  size_t n_marks, marks_cap;
} parser_outline; /* zeroed is empty; may be used again */

LODE_MUST lode_status parser_collect(const parser_grammar *grammar, TSTree *tree, lode_str text, const chunk_options *options,
                                         parser_outline *outline, lode_error *err);
LODE_MUST lode_status parser_make_chunks(const parser_grammar *grammar, const parser_outline *outline, lode_str text,
                                       const chunk_options *options, chunk_list *list, lode_error *err);
void parser_outline_release(parser_outline *outline);

#endif
