/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h - the command line: from argv to an operation and its arguments, and from its result to text.
 *
 * Flags may stand before or after positional arguments; -- ends them. The flags that every command takes and those of
 * `lode help` are tables like those of the operations, and are parsed by the same code.
 */
#ifndef LODE_CLI_CLI_H
#define LODE_CLI_CLI_H

#include "ops/op_text.h"

/* Exit codes; `lode help exit-codes` explains them. */
enum {
  CLI_EXIT_DONE = 0,
  CLI_EXIT_NOTHING = 1,
  CLI_EXIT_USAGE = 2,
  CLI_EXIT_DAMAGED = 3,
  CLI_EXIT_BUSY = 4,
  CLI_EXIT_REFUSED = 5,
  CLI_EXIT_INTERRUPTED = 130,
};
int cli_exit_code(lode_status status);

extern const op_def cli_common_def; /* flags that every command takes: a table entry without handler */
extern const op_def cli_help_def;   /* `lode help` */

typedef struct cli_command {
  const op_def *op;  /* NULL: none was named */
  const char *group; /* "db" when only that was named */
  bool help, version;
  op_args args; /* of op */
  op_args common;
} cli_command;

/* Parses argv. LODE_INVALID for wrong usage; what was understood is in *command, which must be released in both
 * cases. */
lode_status cli_parse(cli_command *command, int argc, char **argv, lode_error *err);
void cli_command_release(cli_command *command);

/* ---- Texts derived from the table ---- */

typedef struct cli_style {
  bool color;
  size_t width; /* columns */
} cli_style;

void cli_help_top(strbuf *out, const cli_style *style);
void cli_help_group(strbuf *out, const char *group, const cli_style *style);
void cli_help_op(strbuf *out, const op_def *op, const cli_style *style);
/* False if there is no such topic. */
bool cli_help_topic(strbuf *out, lode_str topic, const cli_style *style);
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

/* ---- Output ---- */

typedef struct cli_progress {
  bool on;
  bool drawn;
  uint64_t start_ns, phase_ns, drawn_ns;
  uint64_t rate_ns, rate_done;
  double rate; /* of `done` per second, smoothed */
  char phase[40];
  const op_stream *const *input; /* its position is used if the total is unknown; may be or point to NULL */
} cli_progress;

/* A lode_progress step; ctx is the bar. Returns false if a signal has asked to stop. */
bool cli_progress_step(void *bar, const char *phase, uint64_t done, uint64_t total);
void cli_progress_clear(cli_progress *bar);
/* The line to be drawn, for a terminal of `width` columns. */
void cli_progress_line(strbuf *out, cli_progress *bar, uint64_t now_ns, uint64_t done, uint64_t total, size_t width);

/* Formats an operation's result as JSON lines or as text, and writes it to a descriptor. */
typedef struct cli_writer {
  op_sink sink;
  const op_def *op;
  const op_args *args; /* of the operation; may be NULL */
  int fd;
  bool json, quiet, full;
  bool narrow; /* lines must fit style.width: output to a terminal */
  cli_style style;
  cli_progress *bar;
  bool closed; /* nobody reads our output any more */
  strbuf out;
  json_doc parsed;
  strbuf cells; /* rows of a table before its layout: cells, each NUL-terminated */
  size_t n_cells;
  size_t widths[16]; /* column widths, after layout */
  bool laid_out;
  size_t last_width; /* width of the last column on a terminal; 0: not limited */
  bool stacked;      /* the terminal is too narrow for the table: one field per line */
  uint64_t query;    /* of the last row */
  uint64_t rows;
} cli_writer;

void cli_writer_init(cli_writer *writer, const op_def *op, int fd);
/* Writes all pending output. */
lode_status cli_writer_finish(cli_writer *writer, lode_error *err);
lode_status cli_writer_flush(cli_writer *writer, lode_error *err);
void cli_writer_release(cli_writer *writer);
/* Formats as text (cli_text.c). */
lode_status cli_text_row(cli_writer *writer, lode_error *err);
lode_status cli_text_summary(cli_writer *writer, lode_error *err);
void cli_text_layout(cli_writer *writer);
/* Rows of OP_LAYOUT_HITS and OP_LAYOUT_CHECKS (cli_text_hit.c); `parsed` is the row. */
void cli_text_hit(cli_writer *writer);
void cli_text_check(cli_writer *writer);
/* Shows the pending output in a pager if it is longer than the terminal; else does nothing. */
void cli_page_output(cli_writer *writer);

/* ---- The store ---- */

typedef struct cli_store_location {
  bool found;       /* a .lode folder that nobody named: the rules of project/trust.h apply */
  char passed[400]; /* a folder that was skipped, and why; "": none */
} cli_store_location;
/* Finds the store: `given`, else the nearest .lode folder upward (project/project.h), else $XDG_DATA_HOME/lode, else
 * ~/.local/share/lode. The path is NUL-terminated. */
lode_status cli_locate_store(const char *given, strbuf *path, cli_store_location *located, lode_error *err);
/* The store of the project that a file or folder belongs to; LODE_NOT_FOUND if it has none. */
lode_status cli_store_of_project(const char *place, strbuf *path, cli_store_location *located, lode_error *err);

#endif
