/* SPDX-License-Identifier: Apache-2.0 */
/* bench_adds.c - single-record adds, each durable: files and bytes left behind, and whether the time of one grows.
 *
 *   bench_adds NAME FOLDER ADDS
 *
 * Sizes are looked at right after the last add, with no optimize and no close before. "data" is what the caller
 * handed over: ids, documents, metadata as JSON, vectors.
 */
#include "common.h"

#include <stdlib.h>

static double total(const double *took, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += took[i];
  return sum;
}

int main(int argc, char **argv) {
  if (argc != 4) fail("usage: bench_adds NAME FOLDER ADDS");
  const char *name = argv[1], *folder = argv[2];
  uint32_t adds = number(argv[3], 10, 10000000, "ADDS"), part = adds / 10;
  lode_open_options options = {.create = true};
  lode_error err;
  double *took = room(adds * sizeof *took), data = 0, files, bytes, most_files = 0;
  batch *b = batch_new();
  opened o = open_store(folder, &options);
  for (uint32_t i = 0; i < adds; i++) {
    batch_fill(b, i, 1);
    const lode_record *r = &b->records[0];
    data += (double)(r->id.len + r->document.len + r->metadata.len + DIM * sizeof(float));
    double start = now_s();
    need(lode_add(o.collection, NULL, r, 1, LODE_FAIL_EXISTING, NULL, &err), &err, "add");
    took[i] = now_s() - start;
    if (i % 100 == 99) {
      folder_size(folder, &files, &bytes);
      if (files > most_files) most_files = files;
    }
  }
  folder_size(folder, &files, &bytes);
  say(name, "adds", adds);
  say(name, "files", files > most_files ? files : most_files);
  say(name, "data_mib", data / 1048576);
  say(name, "disk_mib", bytes / 1048576);
  say(name, "bytes_ratio", bytes / data);
  say(name, "seconds", total(took, adds));
  say(name, "first_ms", total(took, part) / part * 1e3);
  say(name, "last_ms", total(took + adds - part, part) / part * 1e3);
  say(name, "part", part);
  say(name, "median_ms", percentile(took, adds, 0.5) * 1e3);
  close_store(&o);
  folder_size(folder, &files, &bytes);
  say(name, "closed_bytes_ratio", bytes / data);
  free(took);
  free(b);
  return 0;
}
