/* tree.h - chunks of a syntax tree, in two passes.
 *
 * The first (collect.c) goes through the tree with a cursor, without recursion, no deeper than it must, and notes the
 * definitions in the order of the text, and marks: lines that begin a node, with the depth of the node. The second
 * (build.c) decides which definitions become chunks, lays them and what is between them end to end, and cuts what is too
 * long at the shallowest mark.
 */
#ifndef LODE_PARSER_TREE_H
#define LODE_PARSER_TREE_H

#include "code/chunk.h"
#include "parser/grammar.h"

#define LODE__TREE_DEPTH 400 /* nodes deeper than this are not looked at */
#define LODE__TREE_NONE UINT32_MAX

typedef struct lode__def {
  TSNode node;
  const lode__rule *rule;
  uint32_t start, end;         /* with wrappers, decorators and the comments before it */
  uint32_t own;                /* where the definition itself begins, behind comments */
  uint32_t doc_start, doc_end; /* comments before it; equal: none */
  uint32_t body;               /* where its body begins, if that is a node beside it; else 0 */
  uint32_t outer;              /* the definition around it, or LODE__TREE_NONE */
  uint32_t lines;
  lode_str name, scope;        /* in the text, or ""; scope: what the definition itself says that it lies in */
} lode__def;

typedef struct lode__mark {
  uint32_t at, depth;
} lode__mark;

typedef struct lode__outline {
  lode__def *defs;
  size_t n_defs, defs_cap;
  lode__mark *marks;
  size_t n_marks, marks_cap;
} lode__outline; /* zeroed is empty; may be used again */

LODE_MUST lode_status lode__tree_collect(const lode__grammar *grammar, TSTree *tree, lode_str text, const lode__chunk_options *options,
                                         lode__outline *outline, lode_error *err);
LODE_MUST lode_status lode__tree_build(const lode__grammar *grammar, const lode__outline *outline, lode_str text,
                                       const lode__chunk_options *options, lode__chunk_list *list, lode_error *err);
void lode__outline_release(lode__outline *outline);

#endif
