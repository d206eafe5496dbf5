/* SPDX-License-Identifier: Apache-2.0 */
/* bench_delete.c - deletes the records of many file paths by one $in filter on metadata.
 *
 *   bench_delete NAME FOLDER ROWS PATHS      eight records share a path
 *
 * The store is filled and its indexes are caught up before, in a process of its own that has ended, so that no cache is
 * warm but the system's. Timed is lode_delete() until it returns, i.e. is durable. Memory growth is the peak of
 * this process during it above what was resident just before; the filter's text (the caller's) is already there.
 */
#include "common.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static lode_str filter_text(uint32_t paths) {
  size_t size = (size_t)paths * 96 + 64, n = 0;
  char *text = room(size);
  n += (size_t)snprintf(text, size, "{\"path\":{\"$in\":[");
  for (uint32_t f = 0; f < paths; f++) {
    text[n++] = f ? ',' : ' ';
    text[n++] = '"';
    n += row_path(text + n, size - n, f);
    text[n++] = '"';
  }
  n += (size_t)snprintf(text + n, size - n, "]}}");
  return (lode_str){text, n};
}

int main(int argc, char **argv) {
  if (argc != 5) fail("usage: bench_delete NAME FOLDER ROWS PATHS");
  const char *name = argv[1], *folder = argv[2];
  uint32_t rows = number(argv[3], 1, 100000000, "ROWS"), paths = number(argv[4], 1, 1000000, "PATHS");
  uint64_t wanted = (uint64_t)paths * ROWS_PER_FILE, count = 0;
  if (wanted > rows) wanted = rows;
  make_store(folder, rows);
  lode_open_options options = {0};
  lode_error err;
  lode_str where = filter_text(paths);
  opened o = open_store(folder, &options);
  need(lode_count(o.collection, &count, &err), &err, "count");
  if (count != rows) fail("%" PRIu64 " records are there, not %" PRIu32, count, rows);
  sync();
  memory_reset_peak();
  double before = memory_now_mib(), start = now_s();
  size_t deleted = 0;
  need(lode_delete(o.collection, NULL, &(lode_selection){.where = where}, &deleted, &err), &err, "delete");
  double took = now_s() - start, peak = memory_peak_mib();
  if (deleted != wanted) fail("%zu records were deleted, %" PRIu64 " should have been", deleted, wanted);
  need(lode_count(o.collection, &count, &err), &err, "count");
  if (count != rows - wanted) fail("%" PRIu64 " records are left", count);
  say(name, "rows", rows);
  say(name, "paths", paths);
  say(name, "deleted", (double)deleted);
  say(name, "seconds", took);
  say(name, "growth_mib", peak > before ? peak - before : 0);
  start = now_s();
  optimize(&o);
  say(name, "optimize_s", now_s() - start);
  close_store(&o);
  free((char *)where.data);
  return 0;
}
