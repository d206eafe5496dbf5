/* cli.h - the command line: from argv to an operation and its arguments, and from its answer to text.
 *
 * Flags may stand before or behind positional arguments; -- ends them. The flags that every command takes and those
 * of `lode help` are tables like those of the operations, read by the same code.
 */
#ifndef LODE_FACE_CLI_H
#define LODE_FACE_CLI_H

#include "op.h"

/* Exit codes; `lode help exit-codes` has them in words. */
enum {
  EXIT_DONE = 0, EXIT_NOTHING = 1, EXIT_USAGE = 2, EXIT_DAMAGED = 3, EXIT_BUSY = 4, EXIT_REFUSED = 5,
  EXIT_INTERRUPTED = 130,
};
int lode__exit_code(lode_status status);

extern const lode__op lode__cli_common; /* flags that every command takes: a table entry without handler */
extern const lode__op lode__cli_help;   /* `lode help` */

typedef struct lode__command {
  const lode__op *op;  /* NULL: none was named */
  const char *group;   /* "db" when only that was named */
  bool help, version;
  lode__args args;     /* of op */
  lode__args common;
} lode__command;

/* Reads argv. LODE_INVALID for wrong usage; whatever was understood is in *command, which is released either way. */
lode_status lode__cli_parse(lode__command *command, int argc, char **argv, lode_error *err);
void lode__command_release(lode__command *command);

/* ---- Texts made from the table ---- */

typedef struct lode__style {
  bool color;
  size_t width; /* columns */
} lode__style;

void lode__help_top(strbuf *out, const lode__style *style);
void lode__help_group(strbuf *out, const char *group, const lode__style *style);
void lode__help_op(strbuf *out, const lode__op *op, const lode__style *style);
/* False when there is no such topic. */
bool lode__help_topic(strbuf *out, lode_str topic, const lode__style *style);
const char *lode__topic_name(size_t i); /* NULL at the end */
const char *lode__topic_about(size_t i);
const char *lode__topic_text(size_t i);
/* "lode db get NAME [--ids ID,ID] ..." */
void lode__help_usage(strbuf *out, const lode__op *op);
/* "--ids-file" */
void lode__put_flag(strbuf *out, const lode__param *p);
/* Text in lines of at most `width`, each behind `indent` spaces; begins at column `at`. */
void lode__put_wrapped(strbuf *out, const char *text, size_t indent, size_t at, size_t width);
void lode__complete_bash(strbuf *out);
void lode__complete_zsh(strbuf *out);
void lode__complete_fish(strbuf *out);
/* group "db": lode-db(1); NULL: lode(1), which has all others. */
void lode__manual(strbuf *out, const char *group);

/* ---- Output ---- */

typedef struct lode__progress_bar {
  bool on;
  bool drawn;
  uint64_t start_ns, phase_ns, drawn_ns;
  uint64_t rate_ns, rate_done;
  double rate;            /* of `done` in a second, smoothed */
  char phase[40];
  const lode__stream *const *input; /* its position stands in where the total is not known; may be or point to NULL */
} lode__progress_bar;

/* A lode_progress step; ctx is the bar. Also answers false when a signal asked to stop. */
bool lode__progress_step(void *bar, const char *phase, uint64_t done, uint64_t total);
void lode__progress_clear(lode__progress_bar *bar);
/* The line that is drawn, for a terminal of `width` columns. */
void lode__progress_line(strbuf *out, lode__progress_bar *bar, uint64_t now_ns, uint64_t done, uint64_t total,
                         size_t width);

/* Renders an operation's answer as JSON lines or as text, and writes it to a descriptor. */
typedef struct lode__writer {
  lode__sink sink;
  const lode__op *op;
  const lode__args *args; /* of the operation; may be NULL */
  int fd;
  bool json, quiet, full;
  bool narrow;            /* lines shall fit style.width: they go to a terminal */
  lode__style style;
  lode__progress_bar *bar;
  bool closed;       /* whoever read our output has gone away */
  strbuf out;
  json_doc parsed;
  strbuf cells;   /* rows of a table until it is laid out: cells, each ended by NUL */
  size_t n_cells;
  size_t widths[16]; /* of the columns, once they are laid out */
  bool laid_out;
  size_t room;       /* for the last column on a terminal; 0: as it comes */
  bool stacked;      /* the terminal is too narrow for the table: one field a line */
  uint64_t query;    /* of the last row */
  uint64_t rows;
} lode__writer;

void lode__writer_init(lode__writer *writer, const lode__op *op, int fd);
/* Writes what waits. */
lode_status lode__writer_finish(lode__writer *writer, lode_error *err);
lode_status lode__writer_flush(lode__writer *writer, lode_error *err);
void lode__writer_release(lode__writer *writer);
/* Text rendering, in text.c */
lode_status lode__text_row(lode__writer *writer, lode_error *err);
lode_status lode__text_summary(lode__writer *writer, lode_error *err);
void lode__text_layout(lode__writer *writer);
/* Rows of LODE__LAYOUT_HITS and LODE__LAYOUT_CHECKS, in text_hit.c; `parsed` is the row. */
void lode__text_hit(lode__writer *writer);
void lode__text_check(lode__writer *writer);
/* Shows what is gathered through $PAGER if it is longer than the terminal; does nothing where that is not so. */
void lode__page(lode__writer *writer);
/* 1234567 as 1,234,567; 1536 as 1.5 KiB */
void lode__put_grouped(strbuf *out, uint64_t n);
void lode__put_bytes(strbuf *out, uint64_t n);
/* User text for a terminal: control characters become visible; at most max characters (0 = all), then an ellipsis. */
void lode__put_clean(strbuf *out, lode_str text, size_t max);

/* ---- The store ---- */

typedef struct lode__located {
  bool found;       /* a .lode folder that nobody named: code/trust.h has rules for it */
  char passed[400]; /* one that was passed over, and why; "": none */
} lode__located;
/* Where the store is: `given`, else the nearest .lode folder upward (code/project.h), else $XDG_DATA_HOME/lode, else ~/.local/share/lode.
 * NUL-terminated into path. */
lode_status lode__store_locate(const char *given, strbuf *path, lode__located *located, lode_error *err);
/* The store of the project that a file or folder belongs to; LODE_NOT_FOUND when it has none. */
lode_status lode__store_of_project(const char *place, strbuf *path, lode__located *located, lode_error *err);
/* A cluster's address, not a folder. */
bool lode__is_address(const char *store);

#endif
