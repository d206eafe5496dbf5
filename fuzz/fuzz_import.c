/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_import.c - any bytes as a stream of records: JSON lines, .npy or .fvecs. Whatever is taken must be what a user
 * would see: the report agrees with the store, and what is exported can be imported and exports the same bytes again.
 *
 * Input: a byte that chooses (bits 0-1: the format, 2-3: the mode, 4: keep existing ids, 5: batches of 1 instead of 7,
 * 6: the stream gives a byte at a time), then the stream. Each input has a collection of its own.
 */
#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct stream {
  const uint8_t *data;
  size_t len, at, most;
} stream;

static lode_store *store;
static unsigned made;

static int64_t give(void *ctx, void *buffer, size_t size) {
  stream *s = ctx;
  size_t n = s->len - s->at;
  if (n > size) n = size;
  if (n > s->most) n = s->most;
  if (n) memcpy(buffer, s->data + s->at, n);
  s->at += n;
  return (int64_t)n;
}

static int64_t take(void *ctx, const void *data, size_t size) {
  strbuf_add(ctx, data, size);
  return (int64_t)size;
}

/* A store is used for some inputs, or most of the time would go into making them. */
static void prepare(void) {
  static const lode_open_options options = {
      .create = true, .no_background = true, .page_bytes = 4096, .max_document_bytes = 1 << 20};
  char path[300];
  lode_error err;
  if (!scratch[0]) scratch_begin();
  if (store && made < 256) return;
  lode_close(store);
  scratch_clear();
  scratch_store(path, sizeof path);
  made = 0;
  REQUIRE(lode_open(path, &options, &store, &err) == LODE_OK);
}

static lode_collection *new_collection(void) {
  static const lode_collection_options options = {.create = true, .must_create = true};
  char name[32];
  lode_collection *c;
  lode_error err;
  snprintf(name, sizeof name, "c%u", made++);
  REQUIRE(lode_collection_open(store, str_of(name), &options, &c, &err) == LODE_OK);
  return c;
}

static void export_all(lode_collection *c, strbuf *out) {
  lode_error err;
  REQUIRE(lode_export(c, NULL, LODE_ALL, take, out, (lode_progress){0}, NULL, &err) == LODE_OK);
  REQUIRE(!out->failed);
}

static void check_round_trip(lode_collection *from) {
  strbuf first = {0}, second = {0};
  lode_error err;
  lode_import_report report;
  lode_collection *to = new_collection();
  export_all(from, &first);
  stream s = {(const uint8_t *)first.data, first.len, 0, SIZE_MAX};
  lode_import_request request = {.mode = LODE_IMPORT_ADD, .read = give, .ctx = &s};
  REQUIRE(lode_import(to, &request, (lode_progress){0}, &report, &err) == LODE_OK);
  REQUIRE(report.skipped == 0 && report.written == report.lines);
  export_all(to, &second);
  REQUIRE(first.len == second.len && (first.len == 0 || memcmp(first.data, second.data, first.len) == 0));
  strbuf_release(&first);
  strbuf_release(&second);
  lode_collection_close(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const lode_format formats[] = {LODE_JSONL, LODE_NPY, LODE_FVECS, LODE_JSONL};
  static const lode_import_mode modes[] = {LODE_IMPORT_ADD, LODE_IMPORT_UPSERT, LODE_IMPORT_UPDATE, LODE_IMPORT_UPSERT};
  lode_import_report report;
  lode_error err = {0};
  uint64_t count;
  if (size < 1) return 0;
  prepare();
  lode_collection *c = new_collection();
  stream s = {data + 1, size - 1, 0, data[0] & 64 ? 1 : SIZE_MAX};
  lode_import_request request = {
      .format = formats[data[0] & 3],
      .mode = modes[data[0] >> 2 & 3],
      .on_existing = data[0] & 16 ? LODE_KEEP_EXISTING : LODE_FAIL_EXISTING,
      .batch = data[0] & 32 ? 1 : 7,
      .first_id = UINT64_MAX - 20,
      .read = give,
      .ctx = &s,
  };
  lode_status st = lode_import(c, &request, (lode_progress){0}, &report, &err);
  REQUIRE(lode_count(c, &count, NULL) == LODE_OK);
  if (st == LODE_OK) REQUIRE(report.written + report.skipped == report.lines);
  if (st != LODE_OK) REQUIRE(err.text[0] && err.status == st);
  REQUIRE(count <= report.written);
  if (request.mode == LODE_IMPORT_ADD) REQUIRE(count == report.written);
  if (request.mode == LODE_IMPORT_UPDATE) REQUIRE(count == 0 && report.written == 0);
  if (count) check_round_trip(c);
  lode_collection_close(c);
  return 0;
}
