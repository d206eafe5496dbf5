/* SPDX-License-Identifier: Apache-2.0 */
/* clean.h - a comment as it stands in a source file, made into plain sentences. */
#ifndef TRAIN_CLEAN_H
#define TRAIN_CLEAN_H

#include <stdbool.h>
#include <stddef.h>

enum { DOC_MAX = 600 };

/* Strips comment marks, markup, links and everything from the first list of parameters, example or tag on; joins the
 * lines with spaces and keeps at most DOC_MAX bytes. Returns the length; out has DOC_MAX + 1 bytes. */
size_t clean_doc(const char *raw, size_t len, char *out);

/* Whether the cleaned text can pass for a description of code: English-like words, neither a licence, nor code that
 * was commented out, nor a message to a tool. */
bool doc_is_useful(const char *doc, size_t len);

#endif
