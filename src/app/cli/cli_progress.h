/* SPDX-License-Identifier: Apache-2.0 */
/* cli_progress.h - the progress of a long operation, as one line on a terminal. */
#ifndef LODE_CLI_CLI_PROGRESS_H
#define LODE_CLI_CLI_PROGRESS_H

#include "ops/op_stream.h"

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

#endif
