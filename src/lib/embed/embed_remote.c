/* SPDX-License-Identifier: Apache-2.0 */
/* embed_remote.c - models behind HTTP: OpenAI-compatible servers (POST BASE/embeddings) and Ollama (POST
 * BASE/api/embed).
 *
 * Texts are sent in batches. Transient failures (no response, 408, 429, 5xx) are retried with growing pauses, or when
 * the server says; permanent ones are an error with the server's own message. Every vector is checked: count, order,
 * dimension, numbers. The dimension is determined by embedding one word when the model is opened.
 *
 * Threads: a connection belongs to one thread at a time; idle ones wait in a small stack under a lock.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "os/http.h"
#include "base/json.h"
#include "os/os.h"
#include "embed/embed.h"

enum {
  EMBED_REMOTE_BATCH_TEXTS = 64,       /* texts of a request, at most */
  EMBED_REMOTE_BATCH_BYTES = 1 << 20,  /* bytes of a request's texts, about */
  EMBED_REMOTE_ATTEMPTS = 5,           /* of a request */
  EMBED_REMOTE_IDLE = 8,               /* idle connections that are kept */
  EMBED_REMOTE_MAX_ANSWER = 256 << 20, /* bytes of a response */
  EMBED_REMOTE_PAUSE_MS = 250,         /* first pause between attempts */
  EMBED_REMOTE_MAX_PAUSE_MS = 20000,   /* longest pause between attempts */
};

typedef struct embed_remote {
  bool ollama;
  char *url;           /* of the request */
  char *name;          /* of the model */
  char *authorization; /* "Authorization: Bearer ...", or NULL */
  uint32_t timeout_ms;
  uint32_t dimension;   /* 0: not known yet */
  pthread_mutex_t lock; /* guards idle */
  http_client *idle[EMBED_REMOTE_IDLE];
  size_t n_idle;
} embed_remote;

/* ---- Connections ---- */

static lode_status embed_remote_acquire(embed_remote *s, http_client **http, lode_error *err) {
  pthread_mutex_lock(&s->lock);
  *http = s->n_idle ? s->idle[--s->n_idle] : NULL;
  pthread_mutex_unlock(&s->lock);
  return *http ? LODE_OK : http_new(http, err);
}

static void embed_remote_put_back(embed_remote *s, http_client *http) {
  pthread_mutex_lock(&s->lock);
  bool kept = http && s->n_idle < EMBED_REMOTE_IDLE;
  if (kept) s->idle[s->n_idle++] = http;
  pthread_mutex_unlock(&s->lock);
  if (!kept) http_free(http);
}

/* ---- Responses ---- */

static const json_node *embed_remote_member(const json_doc *json, uint32_t object, const char *key,
                                            json_node_type type) {
  if (json->nodes[object].type != JSON_NODE_OBJECT) return NULL;
  uint32_t i = json_get(json, object, str_of(key));
  return i && json->nodes[i].type == type ? &json->nodes[i] : NULL;
}

static bool embed_remote_may_retry(long status) { return status == 408 || status == 429 || status >= 500; }

/* The message of a refusal: {"error": {"message": "..."}}, {"error": "..."}, or the body as it is. */
static lode_status embed_remote_refused(const embed_remote *s, const http_response *r, lode_error *err) {
  json_doc json = {0};
  char words[256];
  lode_str said = {r->body.data, r->body.len};
  if (r->body.data && json_parse(&json, said, NULL, NULL) == LODE_OK) {
    const json_node *e = embed_remote_member(&json, 0, "error", JSON_NODE_STRING);
    const json_node *o = embed_remote_member(&json, 0, "error", JSON_NODE_OBJECT);
    if (o) e = embed_remote_member(&json, (uint32_t)(o - json.nodes), "message", JSON_NODE_STRING);
    if (e) said = e->u.s;
  }
  str_quote(said.data ? said : STR_LIT(""), words, sizeof words);
  json_release(&json);
  const char *hint = r->status == 401 || r->status == 403 ? (s->ollama ? "" : "; is OPENAI_API_KEY set and right?")
                     : r->status == 404                   ? "; does the server have that model?"
                                                          : "";
  return err_set(err,
                 r->status == 404                    ? LODE_NOT_FOUND
                 : embed_remote_may_retry(r->status) ? LODE_BUSY
                                                     : LODE_REFUSED,
                 "the embedding server %.150s answers %ld: %s%s", s->url, r->status, words, hint);
}

static lode_status embed_remote_bad_answer(const embed_remote *s, const char *what, lode_error *err) {
  return err_set(err, LODE_IO, "the embedding server %.150s gives an answer that is not one: %s", s->url, what);
}

static lode_status embed_remote_read_vector(embed_remote *s, const json_doc *json, uint32_t node, uint32_t dimension,
                                            float *out, lode_error *err) {
  const json_node *a = &json->nodes[node];
  if (a->type != JSON_NODE_ARRAY || a->u.count == 0 || a->u.count > LODE_MAX_DIMENSION)
    return embed_remote_bad_answer(s, "no vector where one should be", err);
  if (a->u.count != dimension)
    return err_set(err, LODE_MISMATCH,
                   "the embedding server %.150s gives a vector of %zu dimensions, and others had %u", s->url,
                   a->u.count, dimension);
  for (uint32_t i = 0; i < dimension; i++) {
    const json_node *x = &json->nodes[node + 1 + i];
    double d = x->type == JSON_NODE_INT ? (double)x->u.i : x->type == JSON_NODE_DOUBLE ? x->u.d : NAN;
    out[i] = (float)d;
    if (!isfinite(out[i])) return embed_remote_bad_answer(s, "a vector holds what is no number", err);
  }
  return LODE_OK;
}

/* Ollama's vectors are in "embeddings", OpenAI's in the items of "data", each with its index. */
static lode_status embed_remote_read_vectors(embed_remote *s, const json_doc *json, size_t n, float *vectors,
                                             lode_error *err) {
  const json_node *list = embed_remote_member(json, 0, s->ollama ? "embeddings" : "data", JSON_NODE_ARRAY);
  if (!list || list->u.count != n) return embed_remote_bad_answer(s, "another number of vectors than texts", err);
  uint32_t i = (uint32_t)(list - json->nodes) + 1;
  if (s->dimension == 0) { /* the first response: n is 1 */
    const json_node *v = s->ollama ? &json->nodes[i] : embed_remote_member(json, i, "embedding", JSON_NODE_ARRAY);
    if (!v || v->type != JSON_NODE_ARRAY || v->u.count == 0 || v->u.count > LODE_MAX_DIMENSION)
      return embed_remote_bad_answer(s, "no vector where one should be", err);
    s->dimension = (uint32_t)v->u.count;
    return LODE_OK;
  }
  bool *seen = mem_calloc(n, sizeof *seen);
  if (!seen) return err_nomem(err);
  lode_status st = LODE_OK;
  for (size_t k = 0; k < n && st == LODE_OK; k++, i = json->nodes[i].next) {
    size_t place = k;
    uint32_t vector = i;
    if (!s->ollama) {
      const json_node *index = embed_remote_member(json, i, "index", JSON_NODE_INT);
      const json_node *v = embed_remote_member(json, i, "embedding", JSON_NODE_ARRAY);
      if (index) place = index->u.i < 0 ? n : (size_t)index->u.i;
      vector = v ? (uint32_t)(v - json->nodes) : 0;
    }
    if (place >= n || seen[place] || !vector) {
      st = embed_remote_bad_answer(s, "its vectors have no order", err);
    } else {
      seen[place] = true;
      st = embed_remote_read_vector(s, json, vector, s->dimension, vectors + place * s->dimension, err);
    }
  }
  mem_free(seen);
  return st;
}

static lode_status embed_remote_read_answer(embed_remote *s, const http_response *r, size_t n, float *vectors,
                                            lode_error *err) {
  json_doc json = {0};
  lode_status st = json_parse(&json, (lode_str){r->body.data ? r->body.data : "", r->body.len}, NULL, NULL);
  if (st == LODE_NOMEM)
    st = err_nomem(err);
  else if (st != LODE_OK)
    st = embed_remote_bad_answer(s, "it is not JSON", err);
  else
    st = embed_remote_read_vectors(s, &json, n, vectors, err);
  json_release(&json);
  return st;
}

/* ---- Requests ---- */

static void embed_remote_backoff(int attempt, uint32_t retry_after_s) {
  uint64_t ms = (uint64_t)EMBED_REMOTE_PAUSE_MS << attempt;
  ms += rand_u64() % (ms / 2 + 1);
  if (retry_after_s) ms = (uint64_t)retry_after_s * 1000;
  os_api->sleep_us((ms < EMBED_REMOTE_MAX_PAUSE_MS ? ms : EMBED_REMOTE_MAX_PAUSE_MS) * 1000);
}

static lode_status embed_remote_post(embed_remote *s, lode_str body, size_t n, float *vectors, lode_error *err) {
  const char *headers[] = {s->authorization, NULL};
  http_request request = {.method = "POST",
                          .url = s->url,
                          .headers = s->authorization ? headers : NULL,
                          .body = body,
                          .timeout_ms = s->timeout_ms,
                          .max_bytes = EMBED_REMOTE_MAX_ANSWER};
  http_response r = {0};
  http_client *http = NULL;
  lode_status st = embed_remote_acquire(s, &http, err);
  if (st != LODE_OK) return st;
  for (int attempt = 0; attempt < EMBED_REMOTE_ATTEMPTS; attempt++) {
    if (attempt) embed_remote_backoff(attempt - 1, r.retry_after_s);
    r.body.len = 0;
    st = http_send(http, &request, &r, err);
    if (st == LODE_IO) continue;
    if (st != LODE_OK) break;
    if (r.status == 200) {
      st = embed_remote_read_answer(s, &r, n, vectors, err);
      break;
    }
    st = embed_remote_refused(s, &r, err);
    if (!embed_remote_may_retry(r.status)) break;
  }
  strbuf_release(&r.body);
  embed_remote_put_back(s, http);
  if (st == LODE_OK) err_clear(err);
  return st;
}

static lode_status embed_remote_post_batch(embed_remote *s, const lode_str *texts, size_t n, float *vectors,
                                           lode_error *err) {
  strbuf body = {0};
  strbuf_addstr(&body, "{\"model\":");
  json_put_string(&body, str_of(s->name));
  strbuf_addstr(&body, s->ollama ? ",\"input\":[" : ",\"encoding_format\":\"float\",\"input\":[");
  for (size_t i = 0; i < n; i++) {
    if (i) strbuf_addch(&body, ',');
    /* servers refuse an empty text */
    json_put_string(&body, texts[i].len ? texts[i] : STR_LIT(" "));
  }
  strbuf_addstr(&body, "]}");
  lode_status st =
      body.failed ? err_nomem(err) : embed_remote_post(s, (lode_str){body.data, body.len}, n, vectors, err);
  strbuf_release(&body);
  return st;
}

static lode_status embed_remote_embed(void *self, const lode_str *texts, size_t n, float *vectors, lode_error *err) {
  embed_remote *s = self;
  for (size_t from = 0; from < n;) {
    size_t some = 0, bytes = 0;
    while (from + some < n && some < EMBED_REMOTE_BATCH_TEXTS &&
           (some == 0 || bytes + texts[from + some].len <= EMBED_REMOTE_BATCH_BYTES))
      bytes += texts[from + some++].len;
    TRY(embed_remote_post_batch(s, texts + from, some, vectors + from * s->dimension, err));
    from += some;
  }
  return LODE_OK;
}

/* ---- Opening ---- */

static void embed_remote_close(void *self) {
  embed_remote *s = self;
  if (!s) return;
  for (size_t i = 0; i < s->n_idle; i++) http_free(s->idle[i]);
  pthread_mutex_destroy(&s->lock);
  mem_free(s->url);
  mem_free(s->name);
  mem_free(s->authorization);
  mem_free(s);
}

static const char *embed_remote_env(const char *name) {
  const char *value = getenv(name);
  return value && *value ? value : NULL;
}

static char *embed_remote_text_of(strbuf *b) {
  strbuf_addch(b, 0);
  if (!b->failed) return b->data;
  strbuf_release(b);
  return NULL;
}

static lode_status embed_remote_describe(embed_remote *s, const embed_setup *setup, lode_error *err) {
  strbuf url = {0}, name = {0}, auth = {0};
  lode_str model = setup->model;
  s->ollama = memcmp(model.data, "ollama:", 7) == 0;
  const char *base = setup->url ? setup->url : embed_remote_env(s->ollama ? "OLLAMA_HOST" : "OPENAI_BASE_URL");
  if (!base) base = s->ollama ? "http://127.0.0.1:11434" : "https://api.openai.com/v1";
  size_t len = strlen(base);
  while (len > 0 && base[len - 1] == '/') len--;
  strbuf_addf(&url, "%s%.*s%s", strstr(base, "://") ? "" : "http://", (int)(len < 4096 ? len : 4096), base,
              s->ollama ? "/api/embed" : "/embeddings");
  strbuf_add(&name, model.data + 7, model.len - 7);
  const char *key = setup->key ? setup->key : s->ollama ? NULL : embed_remote_env("OPENAI_API_KEY");
  if (key) strbuf_addf(&auth, "Authorization: Bearer %s", key);
  s->url = embed_remote_text_of(&url);
  s->name = embed_remote_text_of(&name);
  if (key) s->authorization = embed_remote_text_of(&auth);
  s->timeout_ms = setup->timeout_ms;
  return s->url && s->name && (!key || s->authorization) ? LODE_OK : err_nomem(err);
}

lode_status embed_remote_open(const embed_setup *setup, embed_model *model, lode_error *err) {
  lode_str probe = STR_LIT("lode");
  if (setup->model.len > 200) return err_set(err, LODE_INVALID, "the name of a server's model has at most 193 bytes");
  embed_remote *s = mem_calloc(1, sizeof *s);
  if (!s) return err_nomem(err);
  pthread_mutex_init(&s->lock, NULL);
  lode_status st = embed_remote_describe(s, setup, err);
  if (st == LODE_OK) st = embed_remote_post_batch(s, &probe, 1, NULL, err);
  if (st != LODE_OK) {
    embed_remote_close(s);
    return st;
  }
  *model =
      (embed_model){.embed = embed_remote_embed, .close = embed_remote_close, .self = s, .dimension = s->dimension};
  snprintf(model->identity, sizeof model->identity, "%.*s@server/%u/float", (int)setup->model.len, setup->model.data,
           s->dimension);
  return LODE_OK;
}
