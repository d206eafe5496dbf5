/* SPDX-License-Identifier: Apache-2.0 */
/* tree_docs.h - the documentation of definitions: comments before them, docstrings in them. */
#ifndef LODE_PARSER_TREE_DOCS_H
#define LODE_PARSER_TREE_DOCS_H

#include "chunk/chunk.h"
#include "parser/grammar.h"

typedef struct parser_docs {
  lode_str text;                                            /* the file's */
  uint32_t comment_start, comment_end;                      /* the last run of comments */
  uint32_t wrapper_end, wrapper_doc_start, wrapper_doc_end; /* the last wrapper, and the comments before it */
  chunk_list clean;                                         /* owns documentation without its comment signs */
} parser_docs;

/* Comments and wrappers (export, decorators), in the order of the text. */
void parser_docs_comment(parser_docs *docs, TSNode node);
void parser_docs_wrapper(parser_docs *docs, TSNode node);
/* The first sentence, or line, of a definition's documentation. */
lode_str parser_docs_brief(parser_docs *docs, const parser_grammar *grammar, TSNode node);

#endif
