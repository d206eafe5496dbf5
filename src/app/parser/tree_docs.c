/* SPDX-License-Identifier: Apache-2.0 */
/* tree_docs.c - see tree_docs.h. */
#include "parser/tree_docs.h"

#include "chunk/chunk_make.h"

#include <ctype.h>

/* Is there only white space between two offsets, with at most one line end? */
static bool docs_adjoins(lode_str text, uint32_t from, uint32_t to) {
  unsigned newlines = 0;
  if (to < from || to - from > 256) return false;
  for (uint32_t p = from; p < to; p++) {
    newlines += text.data[p] == '\n';
    if (!isspace((unsigned char)text.data[p])) return false;
  }
  return newlines < 2;
}

/* Does it stand behind code, on the same line? Then it is about that. */
static bool docs_is_trailing(lode_str text, uint32_t at) {
  while (at && (text.data[at - 1] == ' ' || text.data[at - 1] == '\t')) at--;
  return at && text.data[at - 1] != '\n' && text.data[at - 1] != '\r' && text.data[at - 1] != '/';
}

static bool docs_precedes(const parser_docs *d, uint32_t start) {
  return d->comment_end > d->comment_start && docs_adjoins(d->text, d->comment_end, start);
}

void parser_docs_comment(parser_docs *d, TSNode node) {
  uint32_t start = ts_node_start_byte(node), end = ts_node_end_byte(node);
  while (end > start && isspace((unsigned char)d->text.data[end - 1])) end--;
  if (docs_is_trailing(d->text, start)) return;
  if (!docs_precedes(d, start)) d->comment_start = start;
  d->comment_end = end;
}

void parser_docs_wrapper(parser_docs *d, TSNode node) {
  uint32_t start = ts_node_start_byte(node);
  if (start < d->wrapper_end) return; /* in another one */
  bool documented = docs_precedes(d, start);
  d->wrapper_end = ts_node_end_byte(node);
  d->wrapper_doc_start = documented ? d->comment_start : 0;
  d->wrapper_doc_end = documented ? d->comment_end : 0;
}

lode_str parser_docs_brief(parser_docs *d, const parser_grammar *g, TSNode node) {
  TSNode string = parser_docstring_node(g, node);
  uint32_t start = ts_node_start_byte(node), from = 0, to = 0;
  if (!ts_node_is_null(string)) {
    from = ts_node_start_byte(string);
    to = ts_node_end_byte(string);
  } else if (docs_precedes(d, start)) {
    from = d->comment_start;
    to = d->comment_end;
  } else if (start < d->wrapper_end) {
    from = d->wrapper_doc_start;
    to = d->wrapper_doc_end;
    d->wrapper_doc_end = d->wrapper_doc_start;
  }
  if (to <= from || to > d->text.len) return STR_LIT("");
  if (to - from > 1024) to = from + 1024;
  lode_str doc = chunk_clean_comment(&d->clean, (lode_str){d->text.data + from, to - from});
  for (size_t i = 0; i < doc.len; i++)
    if ((doc.data[i] == '.' && i + 1 < doc.len && isspace((unsigned char)doc.data[i + 1])) ||
        (doc.data[i] == '\n' && i + 1 < doc.len && doc.data[i + 1] == '\n'))
      doc.len = i + (doc.data[i] == '.');
  return doc;
}
