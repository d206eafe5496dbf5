/* SPDX-License-Identifier: Apache-2.0 */
/* test_remote.c - how a batch goes to a cluster that refuses, is busy or cuts the connection. The cluster is a server
 * of the test that knows one collection; test/shell/cluster.sh has real ones. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/os.h"
#include "remote/remote.h"
#include "support/http_kit.h"
#include "lode.h"
#include "support/test.h"

enum { DIM = 64, MOST = 20, ROWS = 1200 };
typedef enum mood { WELL, REFUSES, BUSY, CUTS } mood;

static lode_error err;
static struct {
  mood mood; /* at the put with the number `at`, the first being 0 */
  int at;
  _Atomic int now, puts;
  const char *busy;      /* headers of who is busy */
  _Atomic bool together; /* two puts at the same time */
  _Atomic int points[MOST];
} cluster;

static int count(const char *text, const char *word) {
  int n = 0;
  for (const char *p = text; (p = strstr(p, word)); p += strlen(word)) n++;
  return n;
}

/* False: cut. */
static bool take_points(int fd, const char *body, size_t len) {
  int put = atomic_fetch_add(&cluster.puts, 1);
  CHECK(put < MOST && body[0] == '{' && strcmp(body + len - 2, "]}") == 0);
  if (put == cluster.at && cluster.mood == CUTS) return false;
  if (put == cluster.at && cluster.mood != WELL) {
    http_kit_answer(fd, cluster.mood == BUSY ? "503 Service Unavailable" : "400 Bad Request",
                    cluster.mood == BUSY && cluster.busy ? cluster.busy : "",
                    "{\"status\":{\"error\":\"not this one\"}}");
    return true;
  }
  atomic_store(&cluster.points[put], count(body, "\"payload\":"));
  usleep(20000); /* time for a second one, if there were one */
  http_kit_answer(fd, "200 OK", "", "{\"result\":{\"status\":\"completed\"}}");
  return true;
}

static bool serve_one(int fd, const char *request, const char *body, size_t len) {
  if (strncmp(request, "PUT /collections/lode-5-1/points?wait=true ", 43) == 0) {
    if (atomic_fetch_add(&cluster.now, 1)) atomic_store(&cluster.together, true);
    bool open = take_points(fd, body, len);
    atomic_fetch_sub(&cluster.now, 1);
    return open;
  }
  if (strncmp(request, "POST /collections/lode-registry/points ", 39) == 0)
    http_kit_answer(fd, "200 OK", "",
                    "{\"result\":[{\"id\":1,\"payload\":{\"uid\":\"5\",\"generation\":1,\"metric\":\"l2\",\"dim\":64,"
                    "\"name\":\"c\"}}]}");
  else
    http_kit_answer(fd, "200 OK", "", "{\"result\":[]}");
  return true;
}

/* Adds ROWS records. */
static lode_status add(mood how, int at, lode_write_result *result) {
  static float vector[DIM];
  static char ids[ROWS][16], address[64];
  static lode_record records[ROWS];
  lode_store *store;
  lode_collection *c;
  cluster.mood = how;
  cluster.at = at;
  snprintf(address, sizeof address, "qdrant://127.0.0.1:%u", http_kit_serve(serve_one));
  for (size_t i = 0; i < DIM; i++) vector[i] = (float)i / 7;
  for (size_t i = 0; i < ROWS; i++) {
    int n = snprintf(ids[i], sizeof ids[i], "r%zu", i);
    records[i] =
        (lode_record){.id = {ids[i], (size_t)n}, .vector = vector, .dimension = DIM, .document = {"some words", 10}};
  }
  lode_status st = lode_open(address, &(lode_open_options){.busy_ms = 3000}, &store, &err);
  if (st == LODE_UNSUPPORTED) test_skip("libcurl is not installed");
  OK(st);
  OK(lode_collection_open(store, (lode_str){"c", 1}, NULL, &c, &err));
  st = lode_add(c, NULL, records, ROWS, LODE_FAIL_EXISTING, result, &err);
  lode_collection_close(c);
  lode_close(store);
  CHECK(!atomic_load(&cluster.together));
  return st;
}

static void check_points(int a, int b, int c, int d) {
  CHECKF(cluster.points[0] == a && cluster.points[1] == b && cluster.points[2] == c && cluster.points[3] == d,
         "%d %d %d %d", cluster.points[0], cluster.points[1], cluster.points[2], cluster.points[3]);
}

TEST(a_large_batch_goes_in_parts_one_after_the_other) {
  lode_write_result result;
  OK(add(WELL, 0, &result));
  CHECK(result.written == ROWS && result.skipped == 0 && cluster.puts == 3);
  check_points(500, 500, 200, 0);
}

TEST(what_follows_a_part_that_is_refused_is_not_sent) {
  lode_write_result result;
  for (int at = 0; at < 3; at++) {
    atomic_store(&cluster.puts, 0);
    FAILS(LODE_REFUSED, add(REFUSES, at, &result));
    CHECK(cluster.puts == at + 1 && strstr(err.text, "not this one") && result.written == 0);
  }
}

TEST(a_part_that_is_not_taken_is_sent_again) {
  static const mood moods[] = {BUSY, CUTS};
  lode_write_result result;
  for (int at = 0; at < 3; at++)
    for (size_t i = 0; i < 2; i++) {
      atomic_store(&cluster.puts, 0);
      memset(cluster.points, 0, sizeof cluster.points);
      OK(add(moods[i], at, &result));
      CHECK(result.written == ROWS && cluster.puts == 4);
      check_points(at == 0 ? 0 : 500, at == 1 ? 0 : 500, at == 2 ? 0 : 500, 200);
    }
}

TEST(a_cluster_that_asks_for_time_is_given_it) {
  lode_write_result result;
  cluster.busy = "Retry-After: 1\r\n";
  for (int at = 0; at < 3; at++) {
    atomic_store(&cluster.puts, 0);
    uint64_t from = os_api->now_ns();
    OK(add(BUSY, at, &result));
    CHECK(result.written == ROWS && cluster.puts == 4 && os_api->now_ns() - from > 1000000000);
  }
}

/* ---- The key ---- */

static int keys_sent;

static lode_status count_keys(http_client *http, const http_request *request, http_response *response, lode_error *e) {
  (void)http, (void)response;
  for (const char *const *h = request->headers; h && *h; h++) keys_sent += strcmp(*h, "api-key: secret") == 0;
  return err_set(e, LODE_IO, "nobody is asked");
}

/* It is sent in plain text to this machine, or where that was asked for. */
TEST(a_key_does_not_leave_the_machine_unencrypted) {
  static const char *const refused[] = {"qdrant://192.0.2.1:6333", "qdrant://localhost,192.0.2.1",
                                        "qdrant://127.0.0.1.example", "qdrant://localhost.example", "qdrant://[::2]"};
  static const char *const sent[] = {"qdrants://192.0.2.1:6333", "qdrant://192.0.2.1:6333?plain_key=1",
                                     "qdrant://localhost,127.0.0.2:9,[::1]"};
  lode_store *store;
  setenv("LODE_QDRANT_API_KEY", "secret", 1);
  remote_transport = count_keys;
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    lode_status st = lode_open(refused[i], &(lode_open_options){.busy_ms = 1}, &store, &err);
    if (st == LODE_UNSUPPORTED) test_skip("libcurl is not installed");
    CHECKF(st == LODE_REFUSED && strstr(err.text, "plain_key=1") && keys_sent == 0, "%s: %s", refused[i], err.text);
  }
  for (size_t i = 0; i < sizeof sent / sizeof *sent; i++) {
    keys_sent = 0;
    lode_status st = lode_open(sent[i], &(lode_open_options){.busy_ms = 1}, &store, &err);
    CHECKF(st == LODE_IO && keys_sent > 0, "%s: %s", sent[i], err.text);
  }
  unsetenv("LODE_QDRANT_API_KEY");
  keys_sent = 0;
  FAILS(LODE_IO, lode_open(refused[0], &(lode_open_options){.busy_ms = 1}, &store, &err));
  CHECK(keys_sent == 0);
}
