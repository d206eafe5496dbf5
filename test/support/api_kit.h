/* SPDX-License-Identifier: Apache-2.0 */
/* api_kit.h - what the test_api programs share: short forms for opening, filling and asking a store.
 *
 * LODE_TEST_STORE names where the stores of these tests are, instead of new folders: an address such as
 * qdrant://HOST:PORT, with its options in LODE_TEST_STORE_OPTIONS. The tests do not know what is there: an operation
 * that is refused as lode.h says it may be, LODE_UNSUPPORTED, ends its test as skipped. In a folder nothing may be
 * refused so.
 */
#ifndef LODE_API_KIT_H
#define LODE_API_KIT_H

#include "lode.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S(text) ((lode_str){text, sizeof(text) - 1})
#define NONE ((lode_str){NULL, 0})

static inline lode_str str(const char *s) { return (lode_str){s, strlen(s)}; }
static inline bool eq(lode_str a, const char *b) {
  return a.data && a.len == strlen(b) && memcmp(a.data, b, a.len) == 0;
}

static const lode_progress quiet __attribute__((unused));

static inline bool in_a_folder(void) { return !getenv("LODE_TEST_STORE"); }

/* Where a new store may be made. */
static inline const char *store_place(void) {
  static char places[8][512];
  static unsigned n;
  const char *address = getenv("LODE_TEST_STORE"), *options = getenv("LODE_TEST_STORE_OPTIONS"),
             *folder = test_folder();
  if (!address) return folder;
  char *place = places[n++ % 8];
  snprintf(place, sizeof places[0], "%s/%s%s", address, strrchr(folder, '/') + 1, options ? options : "");
  return place;
}

/* Ends the test where the store does not have the operation. */
static inline lode_status unless_refused(lode_status st, const lode_error *err) {
  if (st == LODE_UNSUPPORTED && !in_a_folder()) test_skip(err->text);
  return st;
}
#undef OK
#undef FAILS
#define OK(call)                                                                                                       \
  do {                                                                                                                 \
    lode_status st_ = unless_refused(call, &err);                                                                      \
    if (st_ != LODE_OK) test_failed(__FILE__, __LINE__, "%s: %s %s", #call, lode_status_name(st_), err.text);          \
  } while (0)
#define FAILS(status, call)                                                                                            \
  do {                                                                                                                 \
    lode_status st_ = unless_refused(call, &err);                                                                      \
    if (st_ != (status))                                                                                               \
      test_failed(__FILE__, __LINE__, "%s: got %s, wanted %s (%s)", #call, lode_status_name(st_), #status, err.text);  \
  } while (0)

static inline lode_store *open_at(const char *folder, lode_open_options o) {
  lode_error err;
  lode_store *store;
  o.create = !o.read_only;
  OK(lode_open(folder, &o, &store, &err));
  return store;
}

static inline lode_store *open_new(void) { return open_at(store_place(), (lode_open_options){.no_background = true}); }

static inline lode_collection *collection(lode_store *store, const char *name, lode_metric metric) {
  lode_error err;
  lode_collection *c;
  OK(lode_collection_open(store, str(name), &(lode_collection_options){.create = true, .metric = metric}, &c, &err));
  return c;
}

/* The ids of a result, joined by spaces. */
static const char *ids_of(const lode_result *r) {
  static char text[4096];
  size_t at = 0;
  text[0] = 0;
  for (size_t i = 0; i < lode_result_count(r); i++) {
    lode_str id = lode_result_at(r, i)->id;
    at += (size_t)snprintf(text + at, sizeof text - at, "%s%.*s", i ? " " : "", (int)id.len, id.data);
  }
  return text;
}

static inline void expect_ids(lode_collection *c, lode_get_request request, const char *ids) {
  lode_error err;
  lode_result *r;
  OK(lode_get(c, &request, &r, &err));
  CHECKF(strcmp(ids_of(r), ids) == 0, "got \"%s\", wanted \"%s\"", ids_of(r), ids);
  lode_result_free(r);
}

static inline uint64_t count(lode_collection *c) {
  lode_error err;
  uint64_t n;
  OK(lode_count(c, &n, &err));
  return n;
}

static const float a3[] __attribute__((unused)) = {1, 0, 0}, b3[] __attribute__((unused)) = {0, 1, 0},
                        c3[] __attribute__((unused)) = {0, 0, 1};

static inline void add_three(lode_collection *c) {
  lode_error err;
  lode_record r[] = {
      {.id = S("a"),
       .document = S("red apple"),
       .metadata = S("{\"n\": 1, \"tags\": [\"x\", \"y\"]}"),
       .vector = a3,
       .dimension = 3},
      {.id = S("b"), .document = S("blue boat"), .metadata = S("{\"n\": 2}"), .vector = b3, .dimension = 3},
      {.id = S("c"), .vector = c3, .dimension = 3},
  };
  OK(lode_add(c, NULL, r, 3, LODE_FAIL_EXISTING, NULL, &err));
}

/* For an id: its metadata as stored; NULL: none. */
static inline void expect_metadata(lode_collection *c, lode_str id, const char *metadata) {
  lode_error err;
  lode_result *r;
  OK(lode_get(c, &(lode_get_request){.select = {.ids = &id, .n_ids = 1}, .include = LODE_ALL}, &r, &err));
  CHECK(lode_result_count(r) == 1);
  lode_str got = lode_result_at(r, 0)->metadata;
  CHECKF(metadata ? eq(got, metadata) : !got.data, "%.*s", (int)got.len, got.data ? got.data : "");
  lode_result_free(r);
}

/* Progress that counts its calls and cancels. */
static inline bool stop_at_once(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  (void)phase;
  CHECK(done <= total || total == 0);
  ++*(int *)ctx;
  return false;
}

#endif
