/* point.c - a record as a point of Qdrant, and back. remote.h has the payload's fields.
 *
 * Numbers are words by value: 5 and 5.0 are the same word, as they are equal to a filter. Words of documents are hashed
 * to 32 bits by CRC-32C, which must stay what it is: it is in the data.
 */
#include "remote.h"

#include "base/crc32c.h"
#include "base/number.h"
#include "base/sha256.h"
#include "base/token.h"

#include <math.h>
#include <stdlib.h>

/* Of BM25; the length is measured against this many words instead of the collection's mean, which changes. */
#define K1 1.2
#define B 0.75
#define USUAL_WORDS 120.0

enum { WORD_BYTES = 200 };

/* ---- Names ---- */

void lode__point_uuid(lode_str id, char text[LODE__UUID_TEXT]) {
  static const uint8_t groups[][2] = {{0, 8}, {8, 4}, {12, 4}, {16, 4}, {20, 12}}; /* first hex digit, how many */
  uint8_t d[LODE__SHA256_BYTES];
  char hex[LODE__SHA256_HEX];
  lode__sha256_of(id.data, id.len, d);
  d[6] = (uint8_t)((d[6] & 0x0F) | 0x80); /* version 8: made by an application's own rule */
  d[8] = (uint8_t)((d[8] & 0x3F) | 0x80);
  lode__sha256_hex(d, hex);
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
    memcpy(text + groups[i][0] + i, hex + groups[i][0], groups[i][1]);
    text[groups[i][0] + groups[i][1] + i] = '-';
  }
  text[LODE__UUID_TEXT - 1] = '\0';
}

void lode__point_field(char kind, lode_str key, char text[LODE__FIELD_TEXT_BYTES]) {
  enum { DIGITS = 16 };
  uint8_t d[LODE__SHA256_BYTES];
  char hex[LODE__SHA256_HEX];
  lode__sha256_of(key.data, key.len, d);
  lode__sha256_hex(d, hex);
  text[0] = kind;
  text[1] = '.';
  memcpy(text + 2, hex, DIGITS);
  text[2 + DIGITS] = '\0';
}

bool lode__point_word(lode__buf *out, const lode__value *v) {
  switch (v->type) {
    case LODE__VALUE_BOOL: lode__buf_adds(out, v->i ? "bt" : "bf"); return true;
    case LODE__VALUE_INT:
      lode__buf_addc(out, 'n');
      lode__json_put_int(out, v->i);
      return true;
    case LODE__VALUE_DOUBLE:
      lode__buf_addc(out, 'n');
      if (v->d == floor(v->d) && v->d >= -9223372036854775808.0 && v->d < 9223372036854775808.0) lode__json_put_int(out, (int64_t)v->d);
      else lode__json_put_double(out, v->d);
      return true;
    default: break;
  }
  if (v->s.len <= WORD_BYTES) {
    lode__buf_addc(out, 's');
    lode__buf_add(out, v->s.data, v->s.len);
    return true;
  }
  uint8_t digest[LODE__SHA256_BYTES];
  char hex[LODE__SHA256_HEX];
  lode__sha256_of(v->s.data, v->s.len, digest);
  lode__sha256_hex(digest, hex);
  lode__buf_addf(out, "h%s", hex);
  return false;
}

bool lode__point_unword(lode_str word, lode__buf *out) {
  if (word.len < 2 && !(word.len == 1 && word.data[0] == 's')) return false;
  lode_str rest = {word.data + 1, word.len - 1};
  switch (word.data[0]) {
    case 's': lode__json_put_string(out, rest); return true;
    case 'n': lode__buf_add(out, rest.data, rest.len); return true;
    case 'b': lode__buf_adds(out, rest.data[0] == 't' ? "true" : "false"); return true;
    default: return false;
  }
}

uint32_t lode__point_crc(const lode__point *p) {
  const lode_str parts[] = {p->id, p->document, p->metadata};
  uint32_t crc = 0;
  for (size_t i = 0; i < 3; i++) {
    crc = lode__crc32c_u64(crc, parts[i].data ? parts[i].len + 1 : 0);
    if (parts[i].data) crc = lode__crc32c(crc, parts[i].data, parts[i].len);
  }
  crc = lode__crc32c_u64(crc, p->vector ? p->dim : 0);
  return p->vector ? lode__crc32c(crc, p->vector, (size_t)p->dim * sizeof(float)) : crc;
}

/* ---- Words of a document ---- */

typedef struct counted {
  uint32_t hash, count;
} counted;

typedef struct words {
  counted *v;
  size_t n, cap;
  size_t places;
} words;

static int add_word(void *ctx, const lode__token *t) {
  words *w = ctx;
  if (!lode__grow(&w->v, &w->cap, w->n + 1, sizeof *w->v)) return 1;
  w->v[w->n++] = (counted){lode__crc32c(0, t->text, t->len), 1};
  w->places += !t->same_place;
  return 0;
}

static int by_hash(const void *a, const void *b) {
  uint32_t x = ((const counted *)a)->hash, y = ((const counted *)b)->hash;
  return (x > y) - (x < y);
}

bool lode__point_words(lode__buf *out, lode_str text, bool query, lode_error *err, lode_status *st) {
  words w = {0};
  *st = LODE_OK;
  if (text.data && (query ? lode__tokenize_query : lode__tokenize)(text.data, text.len, add_word, &w)) *st = lode__fail_nomem(err);
  size_t n = 0;
  if (w.n) qsort(w.v, w.n, sizeof *w.v, by_hash);
  for (size_t i = 0; i < w.n; i++) {
    if (n && w.v[n - 1].hash == w.v[i].hash) w.v[n - 1].count++;
    else w.v[n++] = w.v[i];
  }
  lode__buf_adds(out, "{\"indices\":[");
  for (size_t i = 0; i < n; i++) {
    if (i) lode__buf_addc(out, ',');
    lode__json_put_int(out, w.v[i].hash);
  }
  lode__buf_adds(out, "],\"values\":[");
  char value[LODE__NUMBER_BYTES];
  size_t len = 0;
  for (size_t i = 0; i < n; i++) {
    double tf = w.v[i].count, norm = K1 * (1 - B + B * (double)w.places / USUAL_WORDS);
    if (i) lode__buf_addc(out, ',');
    if (i == 0 || w.v[i].count != w.v[i - 1].count) /* most words are there once */
      len = lode__number_put_float(query ? (float)tf : (float)(tf * (K1 + 1) / (tf + norm)), value);
    lode__buf_add(out, value, len);
  }
  lode__buf_adds(out, "]}");
  lode__free(w.v);
  return n > 0;
}

/* ---- Metadata as fields ---- */

typedef struct fields {
  lode__buf *out, *word;
  char kind;         /* 'f' or 'x' */
  bool any;          /* a key was begun */
  lode_str key;
} fields;

static lode_status put_value(void *ctx, lode_str key, const lode__value *v, lode_error *err) {
  fields *f = ctx;
  bool number = v->type == LODE__VALUE_INT || v->type == LODE__VALUE_DOUBLE;
  (void)err;
  if (f->kind == 'x' && !number) return LODE_OK;
  if (f->any && lode__str_eq(f->key, key)) {
    lode__buf_addc(f->out, ',');
  } else {
    char field[LODE__FIELD_TEXT_BYTES];
    lode__point_field(f->kind, key, field);
    lode__buf_adds(f->out, f->any ? "],\"" : "\"");
    lode__buf_adds(f->out, field + 2);
    lode__buf_adds(f->out, "\":[");
    f->key = key;
    f->any = true;
  }
  if (f->kind == 'x') {
    if (v->type == LODE__VALUE_INT) lode__json_put_double(f->out, (double)v->i);
    else lode__json_put_double(f->out, v->d);
    return LODE_OK;
  }
  f->word->len = 0;
  (void)lode__point_word(f->word, v);
  lode__json_put_string(f->out, (lode_str){f->word->data, f->word->len});
  return LODE_OK;
}

static lode_status put_fields(lode__buf *out, lode_str metadata, lode_error *err) {
  lode__json json = {0};
  lode__buf word = {0};
  lode_status st = lode__meta_parse_stored(&json, metadata, err);
  for (int i = 0; i < 2 && st == LODE_OK; i++) {
    fields f = {.out = out, .word = &word, .kind = "fx"[i]};
    lode__buf_adds(out, i ? ",\"x\":{" : ",\"f\":{");
    st = lode__meta_values(&json, put_value, &f, err);
    lode__buf_adds(out, f.any ? "]}" : "}");
  }
  if (word.failed) out->failed = true;
  lode__buf_release(&word);
  lode__json_release(&json);
  return st;
}

/* ---- base64 ---- */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void put_base64(lode__buf *out, const uint8_t *p, size_t n) {
  char *room = lode__buf_room(out, (n + 2) / 3 * 4);
  if (!room) return;
  size_t len = 0;
  for (size_t i = 0; i < n; i += 3) {
    uint32_t x = (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) | (i + 2 < n ? p[i + 2] : 0);
    room[len++] = digits[x >> 18];
    room[len++] = digits[x >> 12 & 63];
    room[len++] = i + 1 < n ? digits[x >> 6 & 63] : '=';
    room[len++] = i + 2 < n ? digits[x & 63] : '=';
  }
  out->len += len;
}

/* Exactly n bytes. */
static bool take_base64(lode_str text, uint8_t *out, size_t n) {
  enum { NONE = 64 };
  uint8_t value[256];
  uint32_t seen = 0;
  if (text.len != (n + 2) / 3 * 4) return false;
  memset(value, NONE, sizeof value);
  for (size_t i = 0; i < 64; i++) value[(uint8_t)digits[i]] = (uint8_t)i;
  const uint8_t *p = (const uint8_t *)text.data;
  for (size_t i = 0; i < n; i += 3, p += 4) {
    size_t left = n - i;
    uint32_t v[4] = {value[p[0]], value[p[1]], left < 2 && p[2] == '=' ? 0 : value[p[2]], left < 3 && p[3] == '=' ? 0 : value[p[3]]};
    seen |= v[0] | v[1] | v[2] | v[3];
    uint32_t x = v[0] << 18 | v[1] << 12 | v[2] << 6 | v[3];
    out[i] = (uint8_t)(x >> 16);
    if (left > 1) out[i + 1] = (uint8_t)(x >> 8);
    if (left > 2) out[i + 2] = (uint8_t)x;
  }
  return seen < NONE;
}

/* ---- To JSON ---- */

lode_status lode__point_put(lode__buf *out, const lode__point *p, lode_metric metric, lode_error *err) {
  char uuid[LODE__UUID_TEXT];
  lode_status st = LODE_OK;
  lode__point_uuid(p->id, uuid);
  lode__buf_adds(out, "{\"id\":\"");
  lode__buf_adds(out, uuid);
  lode__buf_adds(out, "\",\"vector\":{");
  if (p->vector) {
    lode__buf_adds(out, "\"v\":");
    lode__json_put_vector(out, p->vector, p->dim);
  }
  size_t before = out->len;
  if (p->vector) lode__buf_addc(out, ',');
  lode__buf_adds(out, "\"t\":");
  if (!lode__point_words(out, p->document, false, err, &st)) out->len = before;
  LODE__TRY(st);
  lode__buf_addf(out, "},\"payload\":{\"n\":%llu,\"seq\":%llu,\"crc\":%u,\"p\":%s,\"id\":", (unsigned long long)p->n,
                 (unsigned long long)p->seq, lode__point_crc(p), p->vector ? "false" : "true");
  lode__json_put_string(out, p->id);
  if (p->document.data) {
    lode__buf_adds(out, ",\"doc\":");
    lode__json_put_string(out, p->document);
  }
  if (p->metadata.data) {
    lode__buf_adds(out, ",\"meta\":");
    lode__json_put_string(out, p->metadata);
    LODE__TRY(put_fields(out, p->metadata, err));
  }
  if (p->vector && metric == LODE_COSINE) {
    lode__buf_adds(out, ",\"v\":\"");
    put_base64(out, (const uint8_t *)p->vector, (size_t)p->dim * sizeof(float));
    lode__buf_addc(out, '"');
  }
  lode__buf_adds(out, "}}");
  return out->failed ? lode__fail_nomem(err) : LODE_OK;
}

/* ---- From JSON ---- */

static lode_status foreign(lode_error *err) {
  return lode__fail(err, LODE_CORRUPT, "the cluster has a point that no lode has written: does another program use this collection?");
}

static lode_str text_of(const lode__json *j, uint32_t object, const char *name) {
  uint32_t node = lode__json_get(j, object, lode__str(name));
  return node && j->nodes[node].type == LODE__JSON_STRING ? j->nodes[node].u.s : (lode_str){NULL, 0};
}

static uint64_t count_of(const lode__json *j, uint32_t object, const char *name) {
  uint32_t node = lode__json_get(j, object, lode__str(name));
  return node && j->nodes[node].type == LODE__JSON_INT && j->nodes[node].u.i > 0 ? (uint64_t)j->nodes[node].u.i : 0;
}

static lode_status take_numbers(const lode__json *j, uint32_t array, lode__buf *buf, lode__point *p, lode_error *err) {
  size_t n = j->nodes[array].u.count;
  if (n == 0 || n > LODE_MAX_DIMENSION) return foreign(err);
  buf->len = 0;
  float *v = (float *)(void *)lode__buf_room(buf, n * sizeof *v);
  if (!v) return lode__fail_nomem(err);
  size_t i = 0;
  for (uint32_t at = array + 1; at < j->nodes[array].next; at = j->nodes[at].next, i++) {
    const lode__json_node *x = &j->nodes[at];
    if (x->type != LODE__JSON_INT && x->type != LODE__JSON_DOUBLE) return foreign(err);
    v[i] = x->type == LODE__JSON_INT ? (float)x->u.i : (float)x->u.d;
  }
  p->vector = v;
  p->dim = (uint32_t)n;
  return LODE_OK;
}

static lode_status take_vector(const lode__json *j, uint32_t node, uint32_t payload, lode_metric metric, lode__buf *buf,
                               lode__point *p, lode_error *err) {
  lode_str kept = text_of(j, payload, "v");
  if (metric == LODE_COSINE && kept.data) {
    size_t pad = kept.len >= 2 && kept.data[kept.len - 1] == '=' ? (kept.data[kept.len - 2] == '=' ? 2u : 1u) : 0u;
    size_t bytes = kept.len / 4 * 3 - pad;
    if (kept.len % 4 || bytes % sizeof(float) || bytes == 0 || bytes / sizeof(float) > LODE_MAX_DIMENSION) return foreign(err);
    buf->len = 0;
    uint8_t *room = (uint8_t *)lode__buf_room(buf, bytes);
    if (!room) return lode__fail_nomem(err);
    if (!take_base64(kept, room, bytes)) return foreign(err);
    p->vector = (const float *)(const void *)room;
    p->dim = (uint32_t)(bytes / sizeof(float));
    return LODE_OK;
  }
  uint32_t vectors = lode__json_get(j, node, LODE__LIT("vector"));
  uint32_t v = vectors && j->nodes[vectors].type == LODE__JSON_OBJECT ? lode__json_get(j, vectors, LODE__LIT("v")) : 0;
  return v && j->nodes[v].type == LODE__JSON_ARRAY ? take_numbers(j, v, buf, p, err) : LODE_OK;
}

lode_status lode__point_take(const lode__json *j, uint32_t node, lode_metric metric, lode__buf *vector, lode__point *p,
                             lode_error *err) {
  uint32_t payload = j->nodes[node].type == LODE__JSON_OBJECT ? lode__json_get(j, node, LODE__LIT("payload")) : 0;
  *p = (lode__point){.score = NAN};
  if (!payload || j->nodes[payload].type != LODE__JSON_OBJECT) return foreign(err);
  p->id = text_of(j, payload, "id");
  p->document = text_of(j, payload, "doc");
  p->metadata = text_of(j, payload, "meta");
  p->n = count_of(j, payload, "n");
  p->seq = count_of(j, payload, "seq");
  p->crc = (uint32_t)count_of(j, payload, "crc");
  uint32_t pending = lode__json_get(j, payload, LODE__LIT("p")), score = lode__json_get(j, node, LODE__LIT("score"));
  p->pending = pending && j->nodes[pending].type == LODE__JSON_TRUE;
  if (score && j->nodes[score].type == LODE__JSON_DOUBLE) p->score = j->nodes[score].u.d;
  if (score && j->nodes[score].type == LODE__JSON_INT) p->score = (double)j->nodes[score].u.i;
  if (!p->id.data || !p->n) return foreign(err);
  return vector ? take_vector(j, node, payload, metric, vector, p, err) : LODE_OK;
}

void lode__point_want(lode__buf *out, unsigned include, bool judge_document, lode_metric metric, bool has_vectors) {
  bool vector = (include & LODE_VECTOR) && has_vectors;
  lode__buf_adds(out, "\"with_payload\":[\"id\",\"n\",\"seq\",\"p\",\"crc\",\"meta\"");
  if ((include & LODE_DOCUMENT) || judge_document) lode__buf_adds(out, ",\"doc\"");
  if (vector && metric == LODE_COSINE) lode__buf_adds(out, ",\"v\"");
  lode__buf_addf(out, "],\"with_vector\":%s", vector && metric != LODE_COSINE ? "[\"v\"]" : "false");
}
