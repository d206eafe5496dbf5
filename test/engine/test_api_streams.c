/* SPDX-License-Identifier: Apache-2.0 */
/* test_api_streams.c - lode.h as its users meet it: export and import. */
#include "support/api_kit.h"

#include <stdlib.h>

/* ---- Streams ---- */

typedef struct stream {
  char *data;
  size_t len, at, piece; /* piece: how much a call gives at most */
} stream;

static int64_t write_stream(void *ctx, const void *data, size_t size) {
  stream *s = ctx;
  if (s->piece && size > s->piece) size = s->piece;
  s->data = realloc(s->data, s->len + size + 1);
  memcpy(s->data + s->len, data, size);
  s->len += size;
  s->data[s->len] = 0;
  return (int64_t)size;
}

static int64_t fail_write(void *ctx, const void *data, size_t size) {
  (void)ctx, (void)data, (void)size;
  return -1;
}

static int64_t read_stream(void *ctx, void *buffer, size_t size) {
  stream *s = ctx;
  size_t n = s->len - s->at < size ? s->len - s->at : size;
  if (s->piece && n > s->piece) n = s->piece;
  memcpy(buffer, s->data + s->at, n);
  s->at += n;
  return (int64_t)n;
}

static int64_t fail_read(void *ctx, void *buffer, size_t size) {
  (void)ctx, (void)buffer, (void)size;
  return -1;
}

TEST(export_and_import_are_inverse) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *c = collection(s, "c", LODE_L2), *d = collection(s, "d", LODE_L2);
  const float odd[] = {0.1f, -4.6116855e18f, 1.17549435e-38f};
  lode_record r[] = {
      {.id = S("q\"\n\xE2\x82\xAC"),
       .document = S("line 1\nline 2\t\x01\\"),
       .metadata = S("{\"embedding\": [1, 2], \"d\": 0.1}"),
       .vector = odd,
       .dimension = 3},
      {.id = S("bare")},
      {.id = S("empty"), .document = S(""), .vector = c3, .dimension = 3},
  };
  uint64_t written;
  OK(lode_add(c, NULL, r, 3, LODE_FAIL_EXISTING, NULL, &err));
  stream out = {.piece = 7};
  OK(lode_export(c, NULL, LODE_ALL, write_stream, &out, quiet, &written, &err));
  CHECK(written == 3);
  lode_import_report report;
  stream in = {out.data, out.len, 0, 3};
  lode_import_request req = {.read = read_stream, .ctx = &in};
  OK(lode_import(d, &req, quiet, &report, &err));
  CHECK(report.lines == 3 && report.written == 3 && report.skipped == 0);
  stream again = {0};
  OK(lode_export(d, NULL, LODE_ALL, write_stream, &again, quiet, &written, &err));
  CHECKF(again.len == out.len && memcmp(again.data, out.data, out.len) == 0, "%s\n%s", out.data, again.data);
  lode_result *got;
  OK(lode_get(d, &(lode_get_request){.include = LODE_VECTOR, .limit = 1}, &got, &err));
  CHECK(memcmp(lode_result_at(got, 0)->vector, odd, sizeof odd) == 0);
  lode_result_free(got);

  stream some = {0};
  lode_str ids[] = {S("empty"), S("bare")};
  OK(lode_export(d, &(lode_selection){.ids = ids, .n_ids = 2}, 0, write_stream, &some, quiet, &written, &err));
  CHECKF(written == 2 && strcmp(some.data, "{\"id\":\"bare\"}\n{\"id\":\"empty\"}\n") == 0, "%s", some.data);
  int calls = 0;
  FAILS(LODE_CANCELLED,
        lode_export(d, NULL, 0, write_stream, &some, (lode_progress){stop_at_once, &calls}, &written, &err));
  CHECK(calls == 1 && written == 0);
  FAILS(LODE_IO, lode_export(d, NULL, 0, fail_write, NULL, quiet, NULL, &err));
  FAILS(LODE_INVALID, lode_export(d, NULL, 16, write_stream, &some, quiet, NULL, &err));
  free(out.data);
  free(again.data);
  free(some.data);
  lode_collection_close(c);
  lode_collection_close(d);
  lode_close(s);
}

static lode_status import_text(lode_collection *c, const char *text, lode_import_request req,
                               lode_import_report *report, lode_error *err) {
  stream in = {.len = strlen(text)};
  in.data = malloc(in.len + 1);
  memcpy(in.data, text, in.len + 1);
  req.read = read_stream;
  req.ctx = &in;
  lode_status st = lode_import(c, &req, quiet, report, err);
  free(in.data);
  return st;
}

TEST(import_of_lines_takes_modes_and_names_bad_lines) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *c = collection(s, "c", LODE_L2);
  lode_import_report report;
  OK(import_text(c,
                 "\xEF\xBB\xBF{\"id\": \"a\", \"document\": \"x\", \"embedding\": [1, 2e0]}\r\n\n  \n "
                 "{\"id\":\"b\",\"document\":null,\"metadata\":{\"k\":1}}",
                 (lode_import_request){.batch = 1}, &report, &err));
  CHECK(report.lines == 2 && report.written == 2);
  OK(import_text(c, "{\"id\":\"a\"}\n{\"id\":\"c\"}\n{\"id\":\"c\",\"document\":\"ignored\"}\n",
                 (lode_import_request){.on_existing = LODE_KEEP_EXISTING}, &report, &err));
  CHECK(report.lines == 3 && report.written == 1 && report.skipped == 2);
  OK(import_text(c, "{\"id\":\"b\",\"metadata\":{\"m\":2}}\n{\"id\":\"b\",\"metadata\":{\"k\":null}}\n",
                 (lode_import_request){.mode = LODE_IMPORT_UPSERT}, &report, &err));
  CHECK(report.written == 2);
  expect_metadata(c, S("b"), "{\"m\":2}");
  OK(import_text(c, "{\"id\":\"b\",\"document\":\"d\"}\n{\"id\":\"nobody\"}\n",
                 (lode_import_request){.mode = LODE_IMPORT_UPDATE}, &report, &err));
  CHECK(report.written == 1 && report.skipped == 1 && count(c) == 3);
  OK(import_text(c, "{\"id\":\"u\", \"embedd\\u0069ng\": [3, 4]}", (lode_import_request){0}, &report, &err));

  const struct {
    const char *text;
    lode_status status;
    size_t line;
  } bad[] = {
      {"{\"id\":\"x\"}\n\n[]\n", LODE_REFUSED, 2},
      {"{\"id\":\"x\"}\n{\"id\":", LODE_REFUSED, 1},
      {"{\"document\":\"x\"}", LODE_REFUSED, 0},
      {"{\"id\":7}", LODE_REFUSED, 0},
      {"{\"id\":\"x\",\"id\":\"y\"}", LODE_REFUSED, 0},
      {"{\"id\":\"x\",\"uri\":\"y\"}", LODE_REFUSED, 0},
      {"{\"id\":\"x\",\"metadata\":[]}", LODE_REFUSED, 0},
      {"{\"id\":\"x\",\"metadata\":{\"a\":{}}}", LODE_REFUSED, 0},
      {"{\"id\":\"x\",\"embedding\":\"[1]\"}", LODE_REFUSED, 0},
      {"{\"id\":\"x\",\"embedding\":[1,[2]]}", LODE_REFUSED, 0},
      {"{\"id\":\"x\",\"embedding\":[]}", LODE_REFUSED, 0},
      {"{\"id\":\"x\",\"embedding\":[1e999,1]}", LODE_REFUSED, 0},
      {"{\"id\":\"x\",\"embedding\":[1,2,3]}", LODE_MISMATCH, 0},
      {"{\"id\":\"y\"}\n{\"id\":\"a\"}", LODE_EXISTS, 1},
      {"{\"id\":\"\"}", LODE_REFUSED, 0},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    lode_status st = import_text(c, bad[i].text, (lode_import_request){0}, &report, &err);
    CHECKF(st == bad[i].status && err.record == bad[i].line, "case %zu: %s line %zu: %s", i, lode_status_name(st),
           err.record, err.text);
    CHECK(report.written == 0 && count(c) == 4);
  }
  /* Batches before the bad one stay. */
  FAILS(LODE_REFUSED, import_text(c, "{\"id\":\"k1\"}\n{\"id\":\"k2\"}\n{\"id\":\"k3\"}\nx\n",
                                  (lode_import_request){.batch = 2}, &report, &err));
  CHECK(report.written == 2 && count(c) == 6);
  FAILS(LODE_INVALID, import_text(c, "", (lode_import_request){.format = (lode_format)5}, &report, &err));
  FAILS(LODE_INVALID, import_text(c, "", (lode_import_request){.mode = (lode_import_mode)5}, &report, &err));
  FAILS(LODE_INVALID, import_text(c, "", (lode_import_request){.batch = SIZE_MAX}, &report, &err));
  FAILS(LODE_IO, lode_import(c, &(lode_import_request){.read = fail_read}, quiet, &report, &err));
  FAILS(LODE_INVALID, lode_import(c, &(lode_import_request){0}, quiet, &report, &err));
  lode_collection_close(c);
  lode_close(s);
}

/* A .npy of version v with this header, then the data. */
static stream npy(int v, const char *header, const void *data, size_t len) {
  size_t h = strlen(header);
  stream s = {0};
  unsigned char head[12] = {
      0x93, 'N', 'U', 'M', 'P', 'Y', (unsigned char)v, 0, (unsigned char)h, (unsigned char)(h >> 8), 0, 0};
  (void)write_stream(&s, head, v == 1 ? 10 : 12);
  (void)write_stream(&s, header, h);
  (void)write_stream(&s, data, len);
  return s;
}

TEST(import_of_npy) {
  lode_error err;
  lode_store *s = open_new();
  const float f[] = {1, 2, 3, 4, 5, 6};
  const double g[] = {1, 2, 3, 4, 5, 6};
  for (int v = 1; v <= 3; v++) {
    char name[24];
    snprintf(name, sizeof name, "v%d", v);
    lode_collection *c = collection(s, name, LODE_L2);
    stream in = v == 2 ? npy(v, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }  \n", g, sizeof g)
                       : npy(v, "{'shape': (2,3), 'fortran_order':False, \"descr\": '<f4'}", f, sizeof f);
    in.piece = 5;
    lode_import_report report;
    OK(lode_import(c, &(lode_import_request){.format = LODE_NPY, .first_id = 41, .read = read_stream, .ctx = &in},
                   quiet, &report, &err));
    CHECK(report.lines == 2 && report.written == 2);
    expect_ids(c, (lode_get_request){0}, "41 42");
    lode_result *r;
    OK(lode_get(c, &(lode_get_request){.include = LODE_VECTOR, .select = {.ids = &S("42"), .n_ids = 1}}, &r, &err));
    CHECK(memcmp(lode_result_at(r, 0)->vector, f + 3, 3 * sizeof *f) == 0);
    lode_result_free(r);
    lode_collection_close(c);
    free(in.data);
  }
  lode_collection *c = collection(s, "bad", LODE_L2);
  const char *headers[] = {"{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3)}",
                           "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (6,)}",
                           "{'descr': '<f4', 'fortran_order': False}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 65536)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 3)}",
                           "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} x",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 3)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3)}",
                           "{",
                           "",
                           "{'descr': '<f4"};
  for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
    stream in = npy(1, headers[i], f, sizeof f);
    lode_status st =
        lode_import(c, &(lode_import_request){.format = LODE_NPY, .read = read_stream, .ctx = &in}, quiet, NULL, &err);
    CHECKF(st == LODE_INVALID, "%s: %s", headers[i], lode_status_name(st));
    free(in.data);
  }
  stream in = npy(9, "{}", f, 4);
  FAILS(LODE_INVALID,
        lode_import(c, &(lode_import_request){.format = LODE_NPY, .read = read_stream, .ctx = &in}, quiet, NULL, &err));
  in.at = 1;
  FAILS(LODE_INVALID,
        lode_import(c, &(lode_import_request){.format = LODE_NPY, .read = read_stream, .ctx = &in}, quiet, NULL, &err));
  free(in.data);
  const double large[] = {1e300};
  in = npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1)}", large, sizeof large);
  FAILS(LODE_REFUSED,
        lode_import(c, &(lode_import_request){.format = LODE_NPY, .read = read_stream, .ctx = &in}, quiet, NULL, &err));
  free(in.data);
  CHECK(count(c) == 0);
  lode_collection_close(c);
  lode_close(s);
}

TEST(import_of_fvecs) {
  lode_error err;
  lode_store *s = open_new();
  lode_collection *c = collection(s, "c", LODE_L2);
  struct {
    int32_t dim;
    float v[2];
  } f[] = {{2, {1, 2}}, {2, {3, 4}}, {2, {5, 6}}};
  stream in = {.data = (char *)f, .len = sizeof f};
  lode_import_request req = {.format = LODE_FVECS, .read = read_stream, .ctx = &in, .batch = 2};
  lode_import_report report;
  OK(lode_import(c, &req, quiet, &report, &err));
  CHECK(report.lines == 3 && report.written == 3);
  expect_ids(c, (lode_get_request){0}, "0 1 2");
  req.first_id = 100;
  in.at = 0;
  in.len -= 1; /* cut off: the whole batches before stay */
  FAILS(LODE_INVALID, lode_import(c, &req, quiet, &report, &err));
  CHECK(err.record == 2 && report.written == 2);
  req.first_id = 200;
  in.at = 0;
  f[1].dim = -1;
  FAILS(LODE_INVALID, lode_import(c, &req, quiet, &report, &err));
  CHECK(err.record == 1);
  req.first_id = UINT64_MAX;
  f[1].dim = 2;
  in.at = 0;
  in.len++;
  FAILS(LODE_LIMIT, lode_import(c, &req, quiet, &report, &err));
  lode_collection_close(c);
  lode_close(s);
}

TEST(an_id_twice_in_one_import_refuses_its_batch) {
  lode_error err;
  lode_import_report report;
  lode_store *store = open_new();
  lode_collection *c = collection(store, "c", LODE_L2);
  FAILS(LODE_REFUSED, import_text(c, "{\"id\":\"x\"}\n{\"id\":\"x\"}\n", (lode_import_request){0}, &report, &err));
  CHECK(err.record == 1 && count(c) == 0);
  lode_collection_close(c);
  lode_close(store);
}
