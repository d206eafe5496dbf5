/* SPDX-License-Identifier: Apache-2.0 */
/* bench_ingest.c - durable ingest: id, 500-byte document, 5 metadata keys and a 384-d vector, in batches of 1,000.
 *
 *   bench_ingest NAME FOLDER ROWS [BUDGET_MIB]
 *
 * Making the rows is not timed; each lode_add() is, until it returns, which is the acknowledgement. The maintenance
 * thread runs as it does for every user, so that the indexes grow at the same time; what it has not done by the last
 * acknowledgement is then done by lode_optimize(): optimize_s is the time until the text and the metadata index hold
 * all rows, which is what the peer's row includes, optimize_all_s until nothing at all is left, the vector index
 * included. Peak memory is that of the whole process. BUDGET_MIB is memory_bytes of the store (256, its default).
 */
#include "common.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct outcome {
  double acked, slowest, peak;         /* until the last acknowledgement */
  double optimized, all, peak_indexed; /* lode_optimize() after it: text and metadata index, everything */
  lode_stats stats;                    /* between the two */
} outcome;

static void add_rows(opened *o, uint32_t rows, outcome *out) {
  lode_error err;
  batch *b = batch_new();
  for (uint32_t at = 0; at < rows; at += BATCH) {
    size_t n = rows - at < BATCH ? rows - at : BATCH;
    batch_fill(b, at, n);
    double start = now_s();
    need(lode_add(o->collection, NULL, b->records, n, LODE_FAIL_EXISTING, NULL, &err), &err, "add");
    double took = now_s() - start;
    out->acked += took;
    if (took > out->slowest) out->slowest = took;
  }
  out->peak = memory_peak_mib();
  need(lode_collection_stats(o->collection, &out->stats, &err), &err, "stats");
  free(b);
}

/* Ends lode_optimize() when words and metadata are indexed. */
static bool go_on(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  lode_error err;
  lode_stats stats;
  (void)phase;
  (void)done;
  (void)total;
  need(lode_collection_stats(ctx, &stats, &err), &err, "stats");
  return stats.untexted > 0 || stats.unindexed > 0;
}

static void catch_up(opened *o, uint32_t rows, outcome *out) {
  lode_error err;
  uint64_t count = 0;
  double start = now_s();
  lode_status st = lode_optimize(o->store, (lode_progress){go_on, o->collection}, &err);
  if (st != LODE_CANCELLED) need(st, &err, "optimize");
  out->optimized = now_s() - start;
  optimize(o);
  out->all = now_s() - start;
  out->peak_indexed = memory_peak_mib();
  need(lode_count(o->collection, &count, &err), &err, "count");
  if (count != rows) fail("%" PRIu64 " records are there, %" PRIu32 " were added", count, rows);
}

int main(int argc, char **argv) {
  if (argc < 4 || argc > 5) fail("usage: bench_ingest NAME FOLDER ROWS [BUDGET_MIB]");
  const char *name = argv[1], *folder = argv[2];
  uint32_t rows = number(argv[3], 1, 100000000, "ROWS"),
           mib = argc > 4 ? number(argv[4], 16, 65536, "BUDGET_MIB") : 256;
  lode_open_options options = {.create = true, .memory_bytes = (uint64_t)mib << 20};
  outcome out = {0};
  double files, bytes;
  printf("%s.data %08" PRIx32 "\n", name, data_sum());
  memory_reset_peak();
  opened o = open_store(folder, &options);
  add_rows(&o, rows, &out);
  catch_up(&o, rows, &out);
  close_store(&o);
  folder_size(folder, &files, &bytes);
  say(name, "rows", rows);
  say(name, "seconds", out.acked);
  say(name, "rows_per_s", rows / out.acked);
  say(name, "slowest_batch_ms", out.slowest * 1e3);
  say(name, "untexted", (double)out.stats.untexted);
  say(name, "unindexed", (double)out.stats.unindexed);
  say(name, "optimize_s", out.optimized);
  say(name, "optimize_all_s", out.all);
  say(name, "rows_per_s_indexed", rows / (out.acked + out.optimized));
  say(name, "budget_mib", mib);
  say(name, "peak_mib", out.peak);
  say(name, "peak_indexed_mib", out.peak_indexed);
  say(name, "disk_mib", bytes / 1048576);
  return 0;
}
