/* record.c - see record.h.
 *
 * Values come from the rows of the metadata table, then from log entries that the table has not taken in: later ones replace
 * earlier ones of the same key, null removes. Array elements of one key come one a row, in order. Chroma keeps the document and the
 * uri among the metadata (chroma:document, chroma:uri); the uri stays there.
 */
#include "record.h"

#include <math.h>
#include <stdlib.h>

#include "base/meta.h"
#include "tables.h"

typedef struct lode__record_entry {
  lode_str key;       /* in the arena */
  size_t at, len;     /* its JSON in maker.text; len 0: removed */
  uint32_t order;
  bool gone;          /* there was a value, and it is lost: not a value */
  bool element;       /* of an array */
  bool stray;         /* of which table is not known */
  bool old;           /* from an entry that the rows hold: counts only where they are known to have lost the value */
  bool is_text;
  lode_str text;      /* of strings, in the arena: documents are not decoded again */
} entry;

static lode_str kept(mem_arena *arena, lode_str s) {
  return (lode_str){mem_arena_copy(arena, s.data ? s.data : "", s.len), s.len};
}

static lode_status add_entry(lode__record_maker *m, mem_arena *arena, lode_str key, entry **out, lode_error *err) {
  if (!mem_grow(&m->entries, &m->cap, m->n + 1, sizeof *m->entries)) return err_nomem(err);
  entry *e = &m->entries[m->n];
  *e = (entry){.key = kept(arena, key), .at = m->text.len, .order = (uint32_t)m->n};
  m->n++;
  *out = e;
  return e->key.data ? LODE_OK : err_nomem(err);
}

/* A document is kept as it is; what is not UTF-8 in it can only be damage. */
static lode_status keep_document(mem_arena *arena, lode_str s, entry *e, lode__record_made *made, lode_error *err) {
  e->is_text = true;
  if (utf8_valid(s.data, s.len)) {
    e->text = kept(arena, s);
    if (memchr(s.data, 0, s.len)) made->doubt = "its document holds zero bytes";
    return e->text.data ? LODE_OK : err_nomem(err);
  }
  strbuf buf = {0};
  made->doubt = "its document is damaged: bytes that are no text were replaced";
  for (size_t i = 0; i < s.len;) {
    size_t n = utf8_width(s.data + i, s.len - i);
    if (n) strbuf_add(&buf, s.data + i, n);
    else if (buf.len < 3 || memcmp(buf.data + buf.len - 3, "\xef\xbf\xbd", 3) != 0) strbuf_addstr(&buf, "\xef\xbf\xbd"); /* one for a run */
    i += n ? n : 1;
  }
  e->text = kept(arena, (lode_str){buf.data, buf.len});
  bool failed = buf.failed || !e->text.data;
  strbuf_release(&buf);
  return failed ? err_nomem(err) : LODE_OK;
}

static bool is_document(lode_str key) { return str_eq(key, STR_LIT("chroma:document")); }

/* ---- From the table ---- */

static lode_status from_rows(lode__record_maker *m, const lode__rec *r, mem_arena *arena, lode__record_made *made, lode_error *err) {
  lode__chroma *c = m->plan->chroma;
  size_t n = 0, first = r->key ? lode__chroma_metas_of(c, r->key, &n) : 0;
  for (size_t i = first; i < first + n; i++) {
    sqf_row row;
    lode__chroma_value v;
    entry *e;
    lode_status st = lode__chroma_meta_read(c, &c->metas[i], &row, &v, err);
    if (st == LODE_CORRUPT || (st == LODE_OK && !v.gone && (!v.key.data || !v.value))) {
      if (st == LODE_CORRUPT || row.cut) made->doubt = "a part of it could not be read";
      continue;
    }
    if (st != LODE_OK) return st;
    TRY(add_entry(m, arena, v.key, &e, err));
    e->gone = v.gone;
    if (v.gone) continue;
    e->element = c->metas[i].array;
    e->stray = c->metas[i].stray && c->metas[i].kind == LODE__META_ROW && !e->element;
    if (v.value->type == SQF_TEXT && is_document(v.key)) {
      TRY(keep_document(arena, v.value->s, e, made, err));
    } else if (v.value->type == SQF_REAL && !isfinite(v.value->d)) {
      made->doubt = "a number of its metadata is infinite: left out";
    } else if (v.value->type != SQF_BLOB) {
      lode__chroma_put_value(&m->text, v.value, v.is_bool);
    }
    e->len = m->text.len - e->at;
  }
  return LODE_OK;
}

/* ---- From the log ---- */

/* Whether a store takes the value as metadata. */
static bool value_fits(const json_doc *json, uint32_t node) {
  const json_node *n = &json->nodes[node];
  if (n->type == JSON_NODE_OBJECT || n->type == JSON_NODE_NULL) return false;
  if (n->type != JSON_NODE_ARRAY) return true;
  json_node_type kind = JSON_NODE_NULL;
  uint32_t child = node + 1;
  for (size_t i = 0; i < n->u.count; i++, child = json->nodes[child].next) {
    json_node_type t = json->nodes[child].type;
    if (t == JSON_NODE_FALSE) t = JSON_NODE_TRUE;
    if (t == JSON_NODE_INT) t = JSON_NODE_DOUBLE;
    if (t == JSON_NODE_NULL || t == JSON_NODE_ARRAY || t == JSON_NODE_OBJECT || (i && t != kind)) return false;
    kind = t;
  }
  return true;
}

static lode_status from_json(lode__record_maker *m, lode_str text, mem_arena *arena, lode__record_made *made, lode_error *err) {
  lode_status st = json_parse(&m->json, text, NULL, NULL);
  if (st == LODE_NOMEM) return err_nomem(err);
  if (st != LODE_OK || m->json.nodes[0].type != JSON_NODE_OBJECT) {
    made->doubt = "its newest metadata could not be read";
    return LODE_OK;
  }
  uint32_t at = 1;
  for (size_t i = 0; i < m->json.nodes[0].u.count; i++) {
    uint32_t key = at, value = m->json.nodes[key].next;
    entry *e;
    at = m->json.nodes[value].next;
    TRY(add_entry(m, arena, m->json.nodes[key].u.s, &e, err));
    if (m->json.nodes[value].type == JSON_NODE_STRING && is_document(e->key)) {
      TRY(keep_document(arena, m->json.nodes[value].u.s, e, made, err));
    } else if (m->json.nodes[value].type == JSON_NODE_NULL) {
      continue;
    } else if (value_fits(&m->json, value)) {
      json_put_node(&m->text, &m->json, value);
    } else { /* e.g. a sparse vector: kept as its JSON text */
      strbuf inner = {0};
      json_put_node(&inner, &m->json, value);
      json_put_string(&m->text, (lode_str){inner.data, inner.len});
      m->text.failed |= inner.failed;
      strbuf_release(&inner);
      made->doubt = "a value of its metadata is of a kind that Lode does not have: kept as JSON text";
    }
    e->len = m->text.len - e->at;
  }
  return LODE_OK;
}

static lode_status from_log(lode__record_maker *m, uint32_t first, mem_arena *arena, lode__record_made *made, lode_error *err) {
  lode__plan *p = m->plan;
  for (uint32_t at = first; at; at = p->next[at - 1]) {
    sqf_row row;
    lode_str vector, metadata;
    lode_status st = lode__chroma_log_read(p->chroma, &p->chroma->logs[p->coll->log + at - 1], &row, &vector, &metadata, err);
    if (st == LODE_CORRUPT) {
      made->doubt = "a part of it could not be read";
      continue;
    }
    TRY(st);
    if (metadata.data) TRY(from_json(m, metadata, arena, made, err));
  }
  return LODE_OK;
}

/* ---- Putting it together ---- */

static int compare_entries(const void *a, const void *b) {
  const entry *x = a, *y = b;
  int d = str_cmp(x->key, y->key);
  return d ? d : x->order < y->order ? -1 : x->order > y->order;
}

/* Entries first .. end are of one key. */
static void put_key(lode__record_maker *m, size_t first, size_t end, strbuf *out, lode__record_made *made) {
  size_t whole = end, kept_end = first, strays = 0;
  bool gone = false;
  for (size_t i = first; i < end; i++) gone |= m->entries[i].gone;
  for (size_t i = first; i < end; i++) {
    if (m->entries[i].gone || (m->entries[i].old && !gone)) continue;
    strays += m->entries[i].stray;
    m->entries[kept_end++] = m->entries[i];
  }
  if (gone && (kept_end == first || m->entries[kept_end - 1].element)) made->doubt = "a value of its metadata is lost";
  if (kept_end == first) return;
  end = kept_end;
  for (size_t i = first; i < end && strays > 1; i++) m->entries[i].element |= m->entries[i].stray; /* a key has one value, or an array */
  for (size_t i = first; i < end; i++)
    if (!m->entries[i].element) whole = i;
  const entry *last = &m->entries[end - 1];
  if (is_document(last->key)) {
    if (whole < end && m->entries[whole].is_text) made->document = m->entries[whole].text;
    return;
  }
  bool array = last->element;
  if (!array && last->len == 0) return;
  strbuf_addch(out, out->len ? ',' : '{');
  json_put_string(out, last->key);
  strbuf_addch(out, ':');
  if (!array) {
    strbuf_add(out, m->text.data + last->at, last->len);
    return;
  }
  size_t from = whole < end ? whole + 1 : first;
  strbuf_addch(out, '[');
  for (size_t i = from; i < end; i++) {
    if (m->entries[i].len == 0) continue;
    if (out->data && out->data[out->len - 1] != '[') strbuf_addch(out, ',');
    strbuf_add(out, m->text.data + m->entries[i].at, m->entries[i].len);
  }
  strbuf_addch(out, ']');
}

static lode_status put_together(lode__record_maker *m, mem_arena *arena, lode__record_made *made, lode_error *err) {
  strbuf out = {0};
  if (m->n > 1) qsort(m->entries, m->n, sizeof *m->entries, compare_entries);
  for (size_t i = 0, end; i < m->n; i = end) {
    for (end = i + 1; end < m->n && str_eq(m->entries[i].key, m->entries[end].key);) end++;
    put_key(m, i, end, &out, made);
  }
  if (out.len) {
    strbuf_addch(&out, '}');
    if (!out.failed) made->metadata = kept(arena, (lode_str){out.data, out.len});
  }
  bool failed = out.failed || m->text.failed || (out.len && !made->metadata.data);
  strbuf_release(&out);
  return failed ? err_nomem(err) : LODE_OK;
}

/* ---- The vector ---- */

static void take_vector(lode__record_maker *m, const lode__rec *r, float *vector, lode__record_made *made) {
  lode__plan *p = m->plan;
  if (r->from == LODE__VEC_LOG && lode__plan_log_vector(p, r, vector)) {
    made->has_vector = true;
    made->from = LODE__VEC_LOG;
    return;
  }
  if (!r->slot) return;
  lode__hnsw *x = &p->folders[r->folder].index;
  if (x->shape.dimension != p->dimension) return;
  switch (lode__hnsw_vector(x, &x->slots[r->slot - 1], p->coll->metric == LODE_COSINE, vector)) {
    case LODE__HNSW_EXACT: break;
    case LODE__HNSW_NO_LENGTH: made->doubt = "its vector has length 1: the true length is lost"; break;
    case LODE__HNSW_BAD: made->doubt = "its vector in the index is damaged"; return;
  }
  made->has_vector = true;
  made->from = LODE__VEC_INDEX;
}

lode_status lode__record_make(lode__record_maker *m, const lode__rec *r, mem_arena *arena, float *vector, lode__record_made *made,
                              lode_error *err) {
  *made = (lode__record_made){.doubt = r->doubt};
  m->n = 0;
  m->text.len = 0;
  if (m->plan->chroma->damaged) TRY(from_log(m, r->old, arena, made, err));
  for (size_t i = 0; i < m->n; i++) m->entries[i].old = true;
  TRY(from_rows(m, r, arena, made, err));
  TRY(from_log(m, r->tail, arena, made, err));
  TRY(put_together(m, arena, made, err));
  if (vector) take_vector(m, r, vector, made);
  return LODE_OK;
}

void lode__record_maker_release(lode__record_maker *m) {
  json_release(&m->json);
  strbuf_release(&m->text);
  mem_free(m->entries);
  *m = (lode__record_maker){0};
}
