/* SPDX-License-Identifier: Apache-2.0 */
/* cli_help.h - texts derived from the table of operations: help, completions, manual pages. */
#ifndef LODE_CLI_CLI_HELP_H
#define LODE_CLI_CLI_HELP_H

#include "ops/op_def.h"

typedef struct cli_style {
  bool color;
  size_t width; /* columns */
} cli_style;

void cli_help_top(strbuf *out, const cli_style *style);
/* What fits a screen. */
void cli_help_brief(strbuf *out, const cli_style *style);
void cli_help_group(strbuf *out, const char *group, const cli_style *style);
void cli_help_op(strbuf *out, const op_def *op, const cli_style *style);
/* False if there is no such topic. */
LODE_MUST bool cli_help_topic(strbuf *out, lode_str topic, const cli_style *style);
/* Documents of docs/: their names, and one of them. */
void cli_help_documents(strbuf *out);
/* Has a command or a group this name? Then `lode help` means that, and `lode help docs NAME` a document. */
LODE_MUST bool cli_help_op_named(lode_str name);
const char *cli_topic_name(size_t i); /* NULL at the end */
const char *cli_topic_about(size_t i);
const char *cli_topic_text(size_t i);
/* "lode db get NAME [--ids ID,ID] ..." */
void cli_help_usage(strbuf *out, const op_def *op);
/* "--ids-file" */
void cli_put_flag(strbuf *out, const op_param *p);
/* Wraps text to lines of at most `width`, indented by `indent` spaces; the first line begins at column `at`. */
void cli_put_wrapped(strbuf *out, const char *text, size_t indent, size_t at, size_t width);
void cli_complete_bash(strbuf *out);
void cli_complete_zsh(strbuf *out);
void cli_complete_fish(strbuf *out);
/* group "db": lode-db(1); NULL: lode(1), which has all other operations. */
void cli_man_page(strbuf *out, const char *group);
/* The page of one command: lode-search(1). */
void cli_man_op(strbuf *out, const op_def *op);

#endif
