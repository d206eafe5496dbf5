/* bench_ingest.c - durable ingest: id, 500-byte document, 5 metadata keys and a 384-d vector, in batches of 1,000.
 *
 *   bench_ingest NAME FOLDER ROWS [BUDGET_MIB]
 *
 * Making the rows is not timed; each lode_add() is, until it returns, which is the acknowledgement. The maintenance
 * thread runs as it does for every user, so that the indexes grow at the same time; what it has not done by the last
 * acknowledgement is then done by lode_optimize() and reported beside it. Peak memory is that of the whole
 * process. BUDGET_MIB is memory_bytes of the store (256, its default).
 */
#include "common.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  if (argc < 4 || argc > 5) fail("usage: bench_ingest NAME FOLDER ROWS [BUDGET_MIB]");
  const char *name = argv[1], *folder = argv[2];
  uint32_t rows = number(argv[3], 1, 100000000, "ROWS"), mib = argc > 4 ? number(argv[4], 16, 65536, "BUDGET_MIB") : 256;
  uint32_t sum = data_sum();
  lode_open_options options = {.create = true, .memory_bytes = (uint64_t)mib << 20};
  lode_error err;
  lode_stats stats;
  uint64_t count = 0;
  double acked = 0, slowest = 0, files, bytes;
  batch *b = batch_new();
  memory_reset_peak();
  double before = memory_now_mib();
  opened o = open_store(folder, &options);
  for (uint32_t at = 0; at < rows; at += BATCH) {
    size_t n = rows - at < BATCH ? rows - at : BATCH;
    batch_fill(b, at, n);
    double start = now_s();
    need(lode_add(o.collection, NULL, b->records, n, LODE_FAIL_EXISTING, NULL, &err), &err, "add");
    double took = now_s() - start;
    acked += took;
    if (took > slowest) slowest = took;
  }
  double peak = memory_peak_mib();
  need(lode_collection_stats(o.collection, &stats, &err), &err, "stats");
  double start = now_s();
  optimize(&o);
  double optimized = now_s() - start;
  need(lode_count(o.collection, &count, &err), &err, "count");
  if (count != rows) fail("%" PRIu64 " records are there, %" PRIu32 " were added", count, rows);
  double peak_all = memory_peak_mib();
  close_store(&o);
  folder_size(folder, &files, &bytes);
  say(name, "rows", rows);
  say(name, "seconds", acked);
  say(name, "rows_per_s", rows / acked);
  say(name, "slowest_batch_ms", slowest * 1e3);
  say(name, "untexted", (double)stats.untexted);
  say(name, "unindexed", (double)stats.unindexed);
  say(name, "optimize_s", optimized);
  say(name, "rows_per_s_indexed", rows / (acked + optimized));
  say(name, "budget_mib", mib);
  say(name, "start_mib", before);
  say(name, "peak_mib", peak);
  say(name, "peak_indexed_mib", peak_all);
  say(name, "disk_mib", bytes / 1048576);
  printf("%s.data %08" PRIx32 "\n", name, sum);
  free(b);
  return 0;
}
