/* SPDX-License-Identifier: Apache-2.0 */
/* test_embed_server.c - embedding servers that answer, are slow, cut the connection, or talk nonsense. Pauses between
 * attempts take no time here. */
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/json.h"
#include "os/os.h"
#include "support/http_kit.h"
#include "support/test.h"

static lode_error err;

typedef enum mood {
  WELL,
  REVERSED,
  BROKEN_JSON,
  NO_JSON_AT_ALL,
  WRONG_DIMENSION,
  TOO_FEW,
  NOT_NUMBERS,
  CUT,
  BUSY_TWICE,
  ALWAYS_BUSY,
  KEY_REFUSED,
  NO_MODEL,
  SLOW
} mood;

static struct {
  _Atomic(int) mood;
  _Atomic(int) requests, busy, texts, pauses;
  _Atomic(bool) saw_key;
} server;

static void count_pause(uint64_t us) {
  (void)us;
  atomic_fetch_add(&server.pauses, 1);
}

/* A vector of three numbers for each text: its length, its first byte, 1. */
static void vectors(int fd, const char *request, const json_doc *json, int how) {
  bool ollama = strncmp(request, "POST /api/embed ", 16) == 0;
  uint32_t input = json_get(json, 0, STR_LIT("input"));
  size_t n = json->nodes[input].u.count;
  strbuf out = {0};
  strbuf_addstr(&out, ollama ? "{\"embeddings\":[" : "{\"object\":\"list\",\"data\":[");
  for (size_t k = 0; k < n - (how == TOO_FEW && n > 1); k++) {
    size_t i = how == REVERSED ? n - 1 - k : k;
    lode_str t = json->nodes[input + 1 + i].u.s;
    if (k) strbuf_addch(&out, ',');
    if (!ollama) strbuf_addf(&out, "{\"index\":%zu,\"embedding\":", i);
    strbuf_addf(&out,
                how == NOT_NUMBERS && n > 1       ? "[%zu,%d,\"x\"]"
                : how == WRONG_DIMENSION && n > 1 ? "[%zu,%d,1,2]"
                                                  : "[%zu,%d,1.0]",
                t.len, t.len ? (unsigned char)t.data[0] : 0);
    if (!ollama) strbuf_addch(&out, '}');
    atomic_fetch_add(&server.texts, 1);
  }
  strbuf_addstr(&out, "]}");
  strbuf_addch(&out, 0);
  http_kit_answer(fd, "200 OK", "", out.data);
  strbuf_release(&out);
}

static bool serve_one(int fd, const char *request, const char *body, size_t len) {
  atomic_fetch_add(&server.requests, 1);
  if (strcasestr(request, "authorization: bearer secret")) atomic_store(&server.saw_key, true);
  json_doc json = {0};
  if (json_parse(&json, (lode_str){body, len}, NULL, NULL) != LODE_OK) {
    http_kit_answer(fd, "400 Bad Request", "", "{\"error\":\"not JSON\"}");
    return true;
  }
  int how = atomic_load(&server.mood);
  bool open = true;
  if (how == CUT)
    open = false;
  else if (how == BROKEN_JSON)
    http_kit_answer(fd, "200 OK", "", "{\"data\":[{\"embedding\":[1,2,");
  else if (how == NO_JSON_AT_ALL)
    http_kit_answer(fd, "200 OK", "", "<html>hello</html>");
  else if (how == ALWAYS_BUSY || (how == BUSY_TWICE && atomic_fetch_add(&server.busy, 1) < 2))
    http_kit_answer(fd, "429 Too Many Requests", "Retry-After: 1\r\n",
                    "{\"error\":{\"message\":\"slow down, please\"}}");
  else if (how == KEY_REFUSED)
    http_kit_answer(fd, "401 Unauthorized", "", "{\"error\":{\"message\":\"Incorrect API key\"}}");
  else if (how == NO_MODEL)
    http_kit_answer(fd, "404 Not Found", "", "{\"error\":\"model 'm' not found\"}");
  else if (how == SLOW)
    open = usleep(1500000) == 0 && false;
  else
    vectors(fd, request, &json, how);
  json_release(&json);
  return open;
}

static char url[64];

static void start(mood how) {
  static os_calls table;
  table = os_real;
  table.sleep_us = count_pause;
  os_api = &table;
  atomic_store(&server.mood, how);
  snprintf(url, sizeof url, "http://127.0.0.1:%u", http_kit_serve(serve_one));
}

static lode_embedder *open_server(const char *model) {
  lode_embedder *e;
  lode_status st = lode_embedder_open(
      str_of(model), &(lode_embedder_options){.url = url, .key = "secret", .timeout_ms = 700}, &e, &err);
  if (st == LODE_UNSUPPORTED) test_skip("libcurl is not installed");
  OK(st);
  return e;
}

static const lode_str texts[] = {{"a", 1}, {"bcd", 3}, {"\xFF\x00z", 3}, {"", 0}};

static void check_vectors(lode_embedder *e) {
  float v[12];
  OK(lode_embed(e, texts, 4, v, &err));
  CHECK(v[0] == 1 && v[1] == 'a' && v[2] == 1 && v[3] == 3 && v[4] == 'b');
}

TEST(both_kinds_of_servers_answer) {
  start(WELL);
  lode_embedder *e = open_server("openai:m");
  const lode_embedder_info *info = lode_embedder_info_of(e);
  CHECK(info->dimension == 3 && str_eq(info->identity, STR_LIT("openai:m@server/3/float")));
  check_vectors(e);
  CHECK(server.saw_key);
  atomic_store(&server.mood, REVERSED); /* each vector has its index */
  check_vectors(e);
  lode_embedder_close(e);
  atomic_store(&server.mood, WELL);
  e = open_server("ollama:m");
  check_vectors(e);
  lode_embedder_close(e);
  FAILS(LODE_MISMATCH,
        lode_embedder_open(STR_LIT("openai:m@server/4/float"), &(lode_embedder_options){.url = url}, &e, &err));
}

TEST(many_texts_go_in_batches) {
  enum { N = 1000 };
  static lode_str many[N];
  static float v[N * 3];
  start(WELL);
  lode_embedder *e = open_server("openai:m");
  for (int i = 0; i < N; i++) many[i] = (lode_str){"abcdefghij", (size_t)(i % 10) + 1};
  OK(lode_embed(e, many, N, v, &err));
  for (int i = 0; i < N; i++) CHECK(v[3 * i] == (float)(i % 10 + 1));
  CHECK(atomic_load(&server.requests) == 1 + 16 && atomic_load(&server.texts) == N + 1);
  lode_embedder_close(e);
}

TEST(what_may_pass_is_tried_again) {
  start(WELL);
  lode_embedder *e = open_server("openai:m");
  atomic_store(&server.mood, BUSY_TWICE);
  check_vectors(e);
  CHECK(atomic_load(&server.pauses) == 2);
  float v[12];
  atomic_store(&server.mood, ALWAYS_BUSY);
  int before = atomic_load(&server.requests);
  FAILS(LODE_BUSY, lode_embed(e, texts, 4, v, &err));
  CHECK(strstr(err.text, "slow down, please") && strstr(err.text, "429"));
  CHECK(atomic_load(&server.requests) - before == 5);
  atomic_store(&server.mood, CUT);
  FAILS(LODE_IO, lode_embed(e, texts, 4, v, &err));
  atomic_store(&server.mood, WELL);
  check_vectors(e);
  lode_embedder_close(e);
}

TEST(a_slow_server_is_not_waited_for) {
  start(WELL);
  lode_embedder *e = open_server("openai:m");
  float v[12];
  atomic_store(&server.mood, SLOW);
  FAILS(LODE_IO, lode_embed(e, texts, 4, v, &err));
  lode_embedder_close(e);
}

TEST(nonsense_is_refused) {
  static const struct {
    mood how;
    lode_status status;
    const char *says;
  } cases[] = {{BROKEN_JSON, LODE_IO, "not JSON"},
               {NO_JSON_AT_ALL, LODE_IO, "not JSON"},
               {WRONG_DIMENSION, LODE_MISMATCH, "4 dimensions"},
               {TOO_FEW, LODE_IO, "number of vectors"},
               {NOT_NUMBERS, LODE_IO, "no number"},
               {KEY_REFUSED, LODE_REFUSED, "Incorrect API key"},
               {NO_MODEL, LODE_NOT_FOUND, "not found"}};
  start(WELL);
  lode_embedder *e = open_server("openai:m"), *other;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    float v[12];
    atomic_store(&server.mood, cases[i].how);
    FAILS(cases[i].status, lode_embed(e, texts, 4, v, &err));
    CHECKF(strstr(err.text, cases[i].says), "%s", err.text);
    CHECK(v[0] == 0 && v[11] == 0);
  }
  FAILS(LODE_NOT_FOUND,
        lode_embedder_open(STR_LIT("ollama:m"), &(lode_embedder_options){.url = url, .timeout_ms = 700}, &other, &err));
  lode_embedder_close(e);
  FAILS(LODE_IO,
        lode_embedder_open(STR_LIT("openai:m"), &(lode_embedder_options){.url = "http://127.0.0.1:1"}, &other, &err));
}
