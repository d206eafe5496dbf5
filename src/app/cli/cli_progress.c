/* SPDX-License-Identifier: Apache-2.0 */
/* cli_progress.c - one line on a terminal that shows the progress of a long operation, its rate, and the time left.
 *
 * The time left is computed from the recent rate (smoothed), not from the average since the start, so that it stays
 * right when the rate changes. If the total is unknown but the input's size is known, the bytes read are used instead.
 */
#include "cli/cli_progress.h"
#include "ops/op_text.h"

#include "os/os.h"
#include "platform/process.h"

#include <unistd.h>

enum { PROGRESS_DRAW_NS = 100 * 1000 * 1000, PROGRESS_QUIET_NS = 400 * 1000 * 1000 };

static void progress_put_time(strbuf *out, uint64_t seconds) {
  unsigned long long s = seconds;
  if (s >= 3600)
    strbuf_addf(out, "%llu:%02llu:%02llu", s / 3600, s / 60 % 60, s % 60);
  else
    strbuf_addf(out, "%llu:%02llu", s / 60, s % 60);
}

static void progress_put_bar(strbuf *out, double part, size_t width) {
  size_t full = (size_t)(part * (double)width + 0.5);
  for (size_t i = 0; i < width; i++) strbuf_addstr(out, i < full ? "━" : "╌");
}

/* Smoothed over about three seconds. */
static void progress_update_rate(cli_progress *bar, uint64_t now_ns, uint64_t done) {
  double seconds = (double)(now_ns - bar->rate_ns) / 1e9;
  if (seconds < 0.05 || done < bar->rate_done) return;
  double rate = (double)(done - bar->rate_done) / seconds, weight = seconds / (seconds + 3.0);
  bar->rate = bar->rate > 0 ? bar->rate + (rate - bar->rate) * weight : rate;
  bar->rate_ns = now_ns;
  bar->rate_done = done;
}

void cli_progress_line(strbuf *out, cli_progress *bar, uint64_t now_ns, uint64_t done, uint64_t total, size_t width) {
  const op_stream *input = bar->input ? *bar->input : NULL;
  double part = -1, left = -1, elapsed = (double)(now_ns - bar->phase_ns) / 1e9;
  progress_update_rate(bar, now_ns, done);
  if (total) {
    part = done >= total ? 1 : (double)done / (double)total;
    if (bar->rate > 0) left = (double)(total - (done < total ? done : total)) / bar->rate;
  } else if (input && input->size && input->pos) {
    part = input->pos < input->size ? (double)input->pos / (double)input->size : 1;
    /* assumes as many rows per byte as so far */
    if (bar->rate > 0 && done) left = (double)done * (1 - part) / part / bar->rate;
  }
  strbuf_addf(out, "%s ", bar->phase);
  if (part >= 0) {
    progress_put_bar(out, part, width >= 100 ? 30 : width >= 70 ? 16 : 8);
    strbuf_addf(out, " %3d%%  ", (int)(part * 100));
  }
  if (done || total) op_put_grouped(out, done);
  if (total) {
    strbuf_addch(out, '/');
    op_put_grouped(out, total);
  }
  if (bar->rate > 0) {
    strbuf_addstr(out, "  ");
    op_put_grouped(out, (uint64_t)(bar->rate + 0.5));
    strbuf_addstr(out, "/s");
  }
  strbuf_addstr(out, left >= 0 ? "  left " : "  ");
  progress_put_time(out, (uint64_t)((left >= 0 ? left : elapsed) + 0.5));
}

static size_t progress_width(int fd) {
  unsigned rows, columns;
  return os_terminal_size(fd, &rows, &columns) && columns ? columns : 80;
}

static void progress_new_phase(cli_progress *bar, const char *phase, uint64_t now, uint64_t done) {
  snprintf(bar->phase, sizeof bar->phase, "%s", phase);
  bar->phase_ns = bar->rate_ns = now;
  bar->rate_done = done;
  bar->rate = 0;
  if (!bar->start_ns) bar->start_ns = now;
}

bool cli_progress_step(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  cli_progress *bar = ctx;
  if (op_interrupted) return false;
  if (!bar->on) return true;
  uint64_t now = os_api->now_ns();
  if (!phase) phase = "working";
  if (strncmp(bar->phase, phase, sizeof bar->phase - 1) != 0) progress_new_phase(bar, phase, now, done);
  /* short operations show nothing */
  if (now - bar->start_ns < PROGRESS_QUIET_NS || now - bar->drawn_ns < PROGRESS_DRAW_NS) return true;
  strbuf line = {0};
  strbuf_addstr(&line, "\r\033[K");
  cli_progress_line(&line, bar, now, done, total, progress_width(STDERR_FILENO));
  /* a failure to write to the terminal does not stop the operation */
  if (!line.failed && op_write_fd(STDERR_FILENO, line.data, line.len) == 0) bar->drawn = true;
  strbuf_release(&line);
  bar->drawn_ns = now;
  return true;
}

void cli_progress_clear(cli_progress *bar) {
  static const char clear[] = "\r\033[K";
  if (!bar->drawn) return;
  bar->drawn = op_write_fd(STDERR_FILENO, clear, sizeof clear - 1) != 0;
}
