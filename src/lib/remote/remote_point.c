/* SPDX-License-Identifier: Apache-2.0 */
/* remote_point.c - a record as a Qdrant point, and back. remote.h describes the payload.
 *
 * Numbers become words by value: 5 and 5.0 are the same word, because a filter treats them as equal. Words of
 * documents are hashed to 32 bits by CRC-32C; this hash must never change, because it is stored.
 */
#include "remote/remote_point.h"

#include "base/crc32c.h"
#include "base/number.h"
#include "base/sha256.h"
#include "base/token.h"

#include <math.h>
#include <stdlib.h>

/* BM25 */
#define POINT_BM25_K1 1.2
#define POINT_BM25_B 0.75
#define POINT_BM25_AVG_WORDS 120.0 /* fixed, instead of the collection's mean length, which changes */

enum { POINT_WORD_BYTES = 200 }; /* longer strings become words by their hash */

/* ---- Names ---- */

void remote_point_uuid(lode_str id, char text[REMOTE_UUID_BYTES]) {
  static const uint8_t groups[][2] = {{0, 8}, {8, 4}, {12, 4}, {16, 4}, {20, 12}}; /* first hex digit, count */
  uint8_t d[SHA256_BYTES];
  char hex[SHA256_HEX_BYTES];
  sha256_of(id.data, id.len, d);
  d[6] = (uint8_t)((d[6] & 0x0F) | 0x80); /* version 8: defined by the application */
  d[8] = (uint8_t)((d[8] & 0x3F) | 0x80);
  sha256_hex(d, hex);
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
    memcpy(text + groups[i][0] + i, hex + groups[i][0], groups[i][1]);
    text[groups[i][0] + groups[i][1] + i] = '-';
  }
  text[REMOTE_UUID_BYTES - 1] = '\0';
}

void remote_point_field(char kind, lode_str key, char text[REMOTE_FIELD_BYTES]) {
  enum { BASE64_DIGITS = 16 };
  uint8_t d[SHA256_BYTES];
  char hex[SHA256_HEX_BYTES];
  sha256_of(key.data, key.len, d);
  sha256_hex(d, hex);
  text[0] = kind;
  text[1] = '.';
  memcpy(text + 2, hex, BASE64_DIGITS);
  text[2 + BASE64_DIGITS] = '\0';
}

bool remote_value_to_word(strbuf *out, const meta_value *v) {
  switch (v->type) {
    case META_BOOL: strbuf_addstr(out, v->i ? "bt" : "bf"); return true;
    case META_INT:
      strbuf_addch(out, 'n');
      json_put_int(out, v->i);
      return true;
    case META_DOUBLE:
      strbuf_addch(out, 'n');
      if (v->d == floor(v->d) && v->d >= -9223372036854775808.0 && v->d < 9223372036854775808.0)
        json_put_int(out, (int64_t)v->d);
      else
        json_put_double(out, v->d);
      return true;
    default: break;
  }
  if (v->s.len <= POINT_WORD_BYTES) {
    strbuf_addch(out, 's');
    strbuf_add(out, v->s.data, v->s.len);
    return true;
  }
  uint8_t digest[SHA256_BYTES];
  char hex[SHA256_HEX_BYTES];
  sha256_of(v->s.data, v->s.len, digest);
  sha256_hex(digest, hex);
  strbuf_addf(out, "h%s", hex);
  return false;
}

bool remote_value_from_word(lode_str word, strbuf *out) {
  if (word.len < 2 && !(word.len == 1 && word.data[0] == 's')) return false;
  lode_str rest = {word.data + 1, word.len - 1};
  switch (word.data[0]) {
    case 's': json_put_string(out, rest); return true;
    case 'n': strbuf_add(out, rest.data, rest.len); return true;
    case 'b': strbuf_addstr(out, rest.data[0] == 't' ? "true" : "false"); return true;
    default: return false;
  }
}

uint32_t remote_point_crc(const remote_point *p) {
  const lode_str parts[] = {p->id, p->document, p->metadata};
  uint32_t crc = 0;
  for (size_t i = 0; i < 3; i++) {
    crc = crc32c_update_u64(crc, parts[i].data ? parts[i].len + 1 : 0);
    if (parts[i].data) crc = crc32c_update(crc, parts[i].data, parts[i].len);
  }
  crc = crc32c_update_u64(crc, p->vector ? p->dim : 0);
  return p->vector ? crc32c_update(crc, p->vector, (size_t)p->dim * sizeof(float)) : crc;
}

/* ---- Words of a document ---- */

typedef struct point_word_count {
  uint32_t hash, count;
} point_word_count;

typedef struct point_word_counts {
  point_word_count *v;
  size_t n, cap;
  size_t places;
} point_word_counts;

static int point_add_word(void *ctx, const token_item *t) {
  point_word_counts *w = ctx;
  if (!mem_grow(&w->v, &w->cap, w->n + 1, sizeof *w->v)) return 1;
  w->v[w->n++] = (point_word_count){crc32c_update(0, t->text, t->len), 1};
  w->places += !t->same_place;
  return 0;
}

static int point_compare_hashes(const void *a, const void *b) {
  uint32_t x = ((const point_word_count *)a)->hash, y = ((const point_word_count *)b)->hash;
  return (x > y) - (x < y);
}

lode_status remote_sparse_vector(strbuf *out, lode_str text, bool query, bool *any, lode_error *err) {
  point_word_counts w = {0};
  *any = false;
  if (text.data && (query ? token_split_query : token_split)(text.data, text.len, point_add_word, &w)) {
    mem_free(w.v);
    return err_nomem(err);
  }
  size_t n = 0;
  if (w.n) qsort(w.v, w.n, sizeof *w.v, point_compare_hashes);
  for (size_t i = 0; i < w.n; i++) {
    if (n && w.v[n - 1].hash == w.v[i].hash)
      w.v[n - 1].count++;
    else
      w.v[n++] = w.v[i];
  }
  strbuf_addstr(out, "{\"indices\":[");
  for (size_t i = 0; i < n; i++) {
    if (i) strbuf_addch(out, ',');
    json_put_int(out, w.v[i].hash);
  }
  strbuf_addstr(out, "],\"values\":[");
  char value[NUM_MAX_BYTES];
  size_t len = 0;
  for (size_t i = 0; i < n; i++) {
    double tf = w.v[i].count,
           norm = POINT_BM25_K1 * (1 - POINT_BM25_B + POINT_BM25_B * (double)w.places / POINT_BM25_AVG_WORDS);
    if (i) strbuf_addch(out, ',');
    if (i == 0 || w.v[i].count != w.v[i - 1].count) /* most words occur once: format the weight only if it changes */
      len = num_put_float(query ? (float)tf : (float)(tf * (POINT_BM25_K1 + 1) / (tf + norm)), value);
    strbuf_add(out, value, len);
  }
  strbuf_addstr(out, "]}");
  mem_free(w.v);
  *any = n > 0;
  return LODE_OK;
}

/* ---- Metadata as fields ---- */

typedef struct point_fields {
  strbuf *out, *word;
  char kind;    /* 'f' or 'x' */
  bool any;     /* a key was written */
  lode_str key; /* the current key */
} point_fields;

static lode_status point_put_value(void *ctx, lode_str key, const meta_value *v, lode_error *err) {
  point_fields *f = ctx;
  bool number = v->type == META_INT || v->type == META_DOUBLE;
  (void)err;
  if (f->kind == 'x' && !number) return LODE_OK;
  if (f->any && str_eq(f->key, key)) {
    strbuf_addch(f->out, ',');
  } else {
    char field[REMOTE_FIELD_BYTES];
    remote_point_field(f->kind, key, field);
    strbuf_addstr(f->out, f->any ? "],\"" : "\"");
    strbuf_addstr(f->out, field + 2);
    strbuf_addstr(f->out, "\":[");
    f->key = key;
    f->any = true;
  }
  if (f->kind == 'x') {
    if (v->type == META_INT)
      json_put_double(f->out, (double)v->i);
    else
      json_put_double(f->out, v->d);
    return LODE_OK;
  }
  f->word->len = 0;
  (void)remote_value_to_word(f->word, v);
  json_put_string(f->out, (lode_str){f->word->data, f->word->len});
  return LODE_OK;
}

static lode_status point_put_fields(strbuf *out, lode_str metadata, lode_error *err) {
  json_doc json = {0};
  strbuf word = {0};
  lode_status st = meta_parse_stored(&json, metadata, err);
  for (int i = 0; i < 2 && st == LODE_OK; i++) {
    point_fields f = {.out = out, .word = &word, .kind = "fx"[i]};
    strbuf_addstr(out, i ? ",\"x\":{" : ",\"f\":{");
    st = meta_each_value(&json, point_put_value, &f, err);
    strbuf_addstr(out, f.any ? "]}" : "}");
  }
  if (word.failed) out->failed = true;
  strbuf_release(&word);
  json_release(&json);
  return st;
}

/* ---- base64 ---- */

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void base64_put(strbuf *out, const uint8_t *p, size_t n) {
  char *dst = strbuf_reserve(out, (n + 2) / 3 * 4);
  if (!dst) return;
  size_t len = 0;
  for (size_t i = 0; i < n; i += 3) {
    uint32_t x = (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) | (i + 2 < n ? p[i + 2] : 0);
    dst[len++] = base64_digits[x >> 18];
    dst[len++] = base64_digits[x >> 12 & 63];
    dst[len++] = i + 1 < n ? base64_digits[x >> 6 & 63] : '=';
    dst[len++] = i + 2 < n ? base64_digits[x & 63] : '=';
  }
  out->len += len;
}

/* Decodes exactly n bytes. */
static bool base64_take(lode_str text, uint8_t *out, size_t n) {
  enum { BASE64_NONE = 64 };
  uint8_t value[256];
  uint32_t seen = 0;
  if (text.len != (n + 2) / 3 * 4) return false;
  memset(value, BASE64_NONE, sizeof value);
  for (size_t i = 0; i < 64; i++) value[(uint8_t)base64_digits[i]] = (uint8_t)i;
  const uint8_t *p = (const uint8_t *)text.data;
  for (size_t i = 0; i < n; i += 3, p += 4) {
    size_t left = n - i;
    uint32_t v[4] = {value[p[0]], value[p[1]], left < 2 && p[2] == '=' ? 0 : value[p[2]],
                     left < 3 && p[3] == '=' ? 0 : value[p[3]]};
    seen |= v[0] | v[1] | v[2] | v[3];
    uint32_t x = v[0] << 18 | v[1] << 12 | v[2] << 6 | v[3];
    out[i] = (uint8_t)(x >> 16);
    if (left > 1) out[i + 1] = (uint8_t)(x >> 8);
    if (left > 2) out[i + 2] = (uint8_t)x;
  }
  return seen < BASE64_NONE;
}

/* ---- To JSON ---- */

lode_status remote_point_encode(strbuf *out, const remote_point *p, lode_metric metric, lode_error *err) {
  char uuid[REMOTE_UUID_BYTES];
  bool has_words;
  remote_point_uuid(p->id, uuid);
  strbuf_addstr(out, "{\"id\":\"");
  strbuf_addstr(out, uuid);
  strbuf_addstr(out, "\",\"vector\":{");
  if (p->vector) {
    strbuf_addstr(out, "\"v\":");
    json_put_vector(out, p->vector, p->dim);
  }
  size_t before = out->len;
  if (p->vector) strbuf_addch(out, ',');
  strbuf_addstr(out, "\"t\":");
  TRY(remote_sparse_vector(out, p->document, false, &has_words, err));
  if (!has_words) out->len = before;
  strbuf_addf(out, "},\"payload\":{\"n\":%llu,\"seq\":%llu,\"crc\":%u,\"p\":%s,\"id\":", (unsigned long long)p->n,
              (unsigned long long)p->seq, remote_point_crc(p), p->vector ? "false" : "true");
  json_put_string(out, p->id);
  if (p->document.data) {
    strbuf_addstr(out, ",\"doc\":");
    json_put_string(out, p->document);
  }
  if (p->metadata.data) {
    strbuf_addstr(out, ",\"meta\":");
    json_put_string(out, p->metadata);
    TRY(point_put_fields(out, p->metadata, err));
  }
  if (p->vector && metric == LODE_COSINE) {
    strbuf_addstr(out, ",\"v\":\"");
    base64_put(out, (const uint8_t *)p->vector, (size_t)p->dim * sizeof(float));
    strbuf_addch(out, '"');
  }
  strbuf_addstr(out, "}}");
  return out->failed ? err_nomem(err) : LODE_OK;
}

/* ---- From JSON ---- */

static lode_status point_foreign(lode_error *err) {
  return err_set(err, LODE_CORRUPT,
                 "the cluster has a point that no lode has written: does another program use this collection?");
}

static lode_str point_text_of(const json_doc *j, uint32_t object, const char *name) {
  uint32_t node = json_get(j, object, str_of(name));
  return node && j->nodes[node].type == JSON_NODE_STRING ? j->nodes[node].u.s : (lode_str){NULL, 0};
}

static uint64_t point_count_of(const json_doc *j, uint32_t object, const char *name) {
  uint32_t node = json_get(j, object, str_of(name));
  return node && j->nodes[node].type == JSON_NODE_INT && j->nodes[node].u.i > 0 ? (uint64_t)j->nodes[node].u.i : 0;
}

static lode_status point_take_numbers(const json_doc *j, uint32_t array, strbuf *buf, remote_point *p,
                                      lode_error *err) {
  size_t n = j->nodes[array].u.count;
  if (n == 0 || n > LODE_MAX_DIMENSION) return point_foreign(err);
  buf->len = 0;
  float *v = (float *)(void *)strbuf_reserve(buf, n * sizeof *v);
  if (!v) return err_nomem(err);
  size_t i = 0;
  for (uint32_t at = array + 1; at < j->nodes[array].next; at = j->nodes[at].next, i++) {
    const json_node *x = &j->nodes[at];
    if (x->type != JSON_NODE_INT && x->type != JSON_NODE_DOUBLE) return point_foreign(err);
    v[i] = x->type == JSON_NODE_INT ? (float)x->u.i : (float)x->u.d;
  }
  p->vector = v;
  p->dim = (uint32_t)n;
  return LODE_OK;
}

static lode_status point_take_vector(const json_doc *j, uint32_t node, uint32_t payload, lode_metric metric,
                                     strbuf *buf, remote_point *p, lode_error *err) {
  lode_str text = point_text_of(j, payload, "v");
  if (metric == LODE_COSINE && text.data) {
    size_t pad = text.len >= 2 && text.data[text.len - 1] == '=' ? (text.data[text.len - 2] == '=' ? 2u : 1u) : 0u;
    size_t bytes = text.len / 4 * 3 - pad;
    if (text.len % 4 || bytes % sizeof(float) || bytes == 0 || bytes / sizeof(float) > LODE_MAX_DIMENSION)
      return point_foreign(err);
    buf->len = 0;
    uint8_t *dst = (uint8_t *)strbuf_reserve(buf, bytes);
    if (!dst) return err_nomem(err);
    if (!base64_take(text, dst, bytes)) return point_foreign(err);
    p->vector = (const float *)(const void *)dst;
    p->dim = (uint32_t)(bytes / sizeof(float));
    return LODE_OK;
  }
  uint32_t vectors = json_get(j, node, STR_LIT("vector"));
  uint32_t v = vectors && j->nodes[vectors].type == JSON_NODE_OBJECT ? json_get(j, vectors, STR_LIT("v")) : 0;
  return v && j->nodes[v].type == JSON_NODE_ARRAY ? point_take_numbers(j, v, buf, p, err) : LODE_OK;
}

lode_status remote_point_decode(const json_doc *j, uint32_t node, lode_metric metric, strbuf *vector, remote_point *p,
                                lode_error *err) {
  uint32_t payload = j->nodes[node].type == JSON_NODE_OBJECT ? json_get(j, node, STR_LIT("payload")) : 0;
  *p = (remote_point){.score = NAN};
  if (!payload || j->nodes[payload].type != JSON_NODE_OBJECT) return point_foreign(err);
  p->id = point_text_of(j, payload, "id");
  p->document = point_text_of(j, payload, "doc");
  p->metadata = point_text_of(j, payload, "meta");
  p->n = point_count_of(j, payload, "n");
  p->seq = point_count_of(j, payload, "seq");
  p->crc = (uint32_t)point_count_of(j, payload, "crc");
  uint32_t pending = json_get(j, payload, STR_LIT("p")), score = json_get(j, node, STR_LIT("score"));
  p->pending = pending && j->nodes[pending].type == JSON_NODE_TRUE;
  if (score && j->nodes[score].type == JSON_NODE_DOUBLE) p->score = j->nodes[score].u.d;
  if (score && j->nodes[score].type == JSON_NODE_INT) p->score = (double)j->nodes[score].u.i;
  if (!p->id.data || !p->n) return point_foreign(err);
  return vector ? point_take_vector(j, node, payload, metric, vector, p, err) : LODE_OK;
}

void remote_point_put_wanted(strbuf *out, unsigned include, bool eval_document, lode_metric metric, bool has_vectors) {
  bool vector = (include & LODE_VECTOR) && has_vectors;
  strbuf_addstr(out, "\"with_payload\":[\"id\",\"n\",\"seq\",\"p\",\"crc\",\"meta\"");
  if ((include & LODE_DOCUMENT) || eval_document) strbuf_addstr(out, ",\"doc\"");
  if (vector && metric == LODE_COSINE) strbuf_addstr(out, ",\"v\"");
  strbuf_addf(out, "],\"with_vector\":%s", vector && metric != LODE_COSINE ? "[\"v\"]" : "false");
}
