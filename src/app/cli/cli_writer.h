/* SPDX-License-Identifier: Apache-2.0 */
/* cli_writer.h - writes the result of an operation: JSON lines, or text for people. */
#ifndef LODE_CLI_CLI_WRITER_H
#define LODE_CLI_CLI_WRITER_H

#include "cli/cli_help.h"
#include "cli/cli_progress.h"
#include "ops/op_context.h"

/* Formats an operation's result as JSON lines or as text, and writes it to a descriptor. */
typedef struct cli_writer {
  op_sink sink;
  const op_def *op;
  /* Arguments that change how hits are shown. */
  const char *project; /* NULL: the working directory's */
  lode_str searched;   /* its words are highlighted */
  bool files_only, oneline, whole_snippets;
  int fd;
  bool json, quiet, full, verbose;
  bool muted;  /* colours are dimmed: a weak match */
  bool narrow; /* lines must fit style.width: output to a terminal */
  cli_style style;
  cli_progress *bar;
  bool closed; /* nobody reads our output any more */
  strbuf out;
  strbuf cells; /* rows of a table before its layout: cells, each NUL-terminated */
  size_t n_cells;
  size_t widths[16]; /* column widths, after layout */
  size_t shown;      /* columns of the table, after layout */
  bool laid_out;
  size_t last_width; /* width of the last column on a terminal; 0: not limited */
  bool stacked;      /* the terminal is too narrow for the table: one field per line */
  uint64_t query;    /* of the last row */
  strbuf heading;    /* under which the last row stands */
  uint64_t rows;
} cli_writer;

void cli_writer_init(cli_writer *writer, const op_def *op, int fd);
/* Takes from the arguments of the operation what changes how its rows are shown. */
void cli_writer_set_args(cli_writer *writer, const op_args *args);
/* Writes all pending output. */
LODE_MUST lode_status cli_writer_finish(cli_writer *writer, lode_error *err);
void cli_writer_release(cli_writer *writer);
/* Formats as text (cli_text.c). */
LODE_MUST lode_status cli_text_row(cli_writer *writer, const op_row *row, lode_error *err);
LODE_MUST lode_status cli_text_summary(cli_writer *writer, const op_row *summary, lode_error *err);
void cli_text_layout(cli_writer *writer);
/* Rows of OP_LAYOUT_HITS and OP_LAYOUT_CHECKS (cli_text_hit.c). */
void cli_text_hit(cli_writer *writer, const op_row *row);
void cli_text_check(cli_writer *writer, const op_row *row);
/* Rows of OP_LAYOUT_OUTLINE and those after it (cli_text_symbols.c). */
void cli_text_symbol(cli_writer *writer, const op_row *row);
/* Changes the colour of what follows, if the output has colours. */
void cli_text_paint(cli_writer *writer, const char *code);
#define CLI_BOLD "\033[1m"
#define CLI_DIM "\033[2m"
#define CLI_PLAIN "\033[0m"
/* Shows the pending output in a pager if it is longer than the terminal; else does nothing. */
void cli_page_output(cli_writer *writer);
/* The same of a text for a descriptor; *text is empty afterwards if it was shown. */
void cli_page_text(strbuf *text, int fd);

#endif
