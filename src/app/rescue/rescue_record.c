/* SPDX-License-Identifier: Apache-2.0 */
/* rescue_record.c - see rescue_record.h.
 *
 * Values come from the rows of the metadata table, then from log entries that the table has not applied: later ones
 * replace earlier ones of the same key, null removes. Array elements of a key come one per row, in order. Chroma
 * keeps the document and the uri among the metadata (chroma:document, chroma:uri); the uri stays there.
 */
#include "rescue/rescue_record.h"

#include <math.h>
#include <stdlib.h>

#include "base/meta.h"
#include "rescue/chroma_tables.h"

typedef struct rescue_record_entry {
  lode_str key;   /* in the arena */
  size_t at, len; /* its JSON in builder.text; len 0: removed */
  uint32_t order;
  bool lost;    /* there was a value, and it is lost */
  bool element; /* of an array */
  bool stray;   /* its table is unknown */
  bool old;     /* from a log entry that was applied to the rows: used only if the rows have lost the value */
  bool is_text;
  lode_str text; /* of a document, in the arena: not encoded as JSON */
} rescue_record_entry;

static lode_str rescue_record_arena_copy(mem_arena *arena, lode_str s) {
  return (lode_str){mem_arena_copy(arena, s.data ? s.data : "", s.len), s.len};
}

static lode_status rescue_record_add_entry(rescue_record_builder *m, mem_arena *arena, lode_str key,
                                           rescue_record_entry **out, lode_error *err) {
  if (!mem_grow(&m->entries, &m->cap, m->n + 1, sizeof *m->entries)) return err_nomem(err);
  rescue_record_entry *e = &m->entries[m->n];
  *e = (rescue_record_entry){.key = rescue_record_arena_copy(arena, key), .at = m->text.len, .order = (uint32_t)m->n};
  m->n++;
  *out = e;
  return e->key.data ? LODE_OK : err_nomem(err);
}

/* A document is kept as it is; bytes in it that are not UTF-8 can only be damage. */
static lode_status rescue_record_keep_document(mem_arena *arena, lode_str s, rescue_record_entry *e,
                                               rescue_record *made, lode_error *err) {
  e->is_text = true;
  if (utf8_valid(s.data, s.len)) {
    e->text = rescue_record_arena_copy(arena, s);
    if (memchr(s.data, 0, s.len)) made->doubt = "its document holds zero bytes";
    return e->text.data ? LODE_OK : err_nomem(err);
  }
  strbuf buf = {0};
  made->doubt = "its document is damaged: bytes that are no text were replaced";
  for (size_t i = 0; i < s.len;) {
    size_t n = utf8_width(s.data + i, s.len - i);
    if (n)
      strbuf_add(&buf, s.data + i, n);
    else if (buf.len < 3 || memcmp(buf.data + buf.len - 3, "\xef\xbf\xbd", 3) != 0)
      strbuf_addstr(&buf, "\xef\xbf\xbd"); /* one per run */
    i += n ? n : 1;
  }
  e->text = rescue_record_arena_copy(arena, (lode_str){buf.data, buf.len});
  bool failed = buf.failed || !e->text.data;
  strbuf_release(&buf);
  return failed ? err_nomem(err) : LODE_OK;
}

static bool rescue_record_is_document(lode_str key) { return str_eq(key, STR_LIT("chroma:document")); }

/* ---- From the table ---- */

static lode_status rescue_record_from_rows(rescue_record_builder *m, const rescue_rec *r, mem_arena *arena,
                                           rescue_record *made, lode_error *err) {
  rescue_dir *c = m->plan->chroma;
  size_t n = 0, first = r->key ? rescue_metas_of(c, r->key, &n) : 0;
  for (size_t i = first; i < first + n; i++) {
    sqf_row row;
    rescue_value v;
    rescue_record_entry *e;
    lode_status st = rescue_meta_read(c, &c->metas[i], &row, &v, err);
    if (st == LODE_CORRUPT || (st == LODE_OK && !v.lost && (!v.key.data || !v.value))) {
      if (st == LODE_CORRUPT || row.cut) made->doubt = "a part of it could not be read";
      continue;
    }
    if (st != LODE_OK) return st;
    TRY(rescue_record_add_entry(m, arena, v.key, &e, err));
    e->lost = v.lost;
    if (v.lost) continue;
    e->element = c->metas[i].array;
    e->stray = c->metas[i].stray && c->metas[i].kind == RESCUE_META_ROW && !e->element;
    if (v.value->type == SQF_TEXT && rescue_record_is_document(v.key)) {
      TRY(rescue_record_keep_document(arena, v.value->s, e, made, err));
    } else if (v.value->type == SQF_REAL && !isfinite(v.value->d)) {
      made->doubt = "a number of its metadata is infinite: left out";
    } else if (v.value->type != SQF_BLOB) {
      rescue_put_value(&m->text, v.value, v.is_bool);
    }
    e->len = m->text.len - e->at;
  }
  return LODE_OK;
}

/* ---- From the log ---- */

/* Does a store accept the value as metadata? */
static bool rescue_record_value_fits(const json_doc *json, uint32_t node) {
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

static lode_status rescue_record_from_json(rescue_record_builder *m, lode_str text, mem_arena *arena,
                                           rescue_record *made, lode_error *err) {
  lode_status st = json_parse(&m->json, text, NULL, NULL);
  if (st == LODE_NOMEM) return err_nomem(err);
  if (st != LODE_OK || m->json.nodes[0].type != JSON_NODE_OBJECT) {
    made->doubt = "its newest metadata could not be read";
    return LODE_OK;
  }
  uint32_t at = 1;
  for (size_t i = 0; i < m->json.nodes[0].u.count; i++) {
    uint32_t key = at, value = m->json.nodes[key].next;
    rescue_record_entry *e;
    at = m->json.nodes[value].next;
    TRY(rescue_record_add_entry(m, arena, m->json.nodes[key].u.s, &e, err));
    if (m->json.nodes[value].type == JSON_NODE_STRING && rescue_record_is_document(e->key)) {
      TRY(rescue_record_keep_document(arena, m->json.nodes[value].u.s, e, made, err));
    } else if (m->json.nodes[value].type == JSON_NODE_NULL) {
      continue;
    } else if (rescue_record_value_fits(&m->json, value)) {
      json_put_node(&m->text, &m->json, value);
    } else { /* for example a sparse vector: kept as its JSON text */
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

static lode_status rescue_record_from_log(rescue_record_builder *m, uint32_t first, mem_arena *arena,
                                          rescue_record *made, lode_error *err) {
  rescue_plan *p = m->plan;
  for (uint32_t at = first; at; at = p->next[at - 1]) {
    sqf_row row;
    lode_str vector, metadata;
    const rescue_log_entry *entry = &p->chroma->logs[p->coll->log + at - 1];
    lode_status st = rescue_log_read(p->chroma, entry, &row, &vector, &metadata, err);
    if (st == LODE_CORRUPT) {
      made->doubt = "a part of it could not be read";
      continue;
    }
    TRY(st);
    if (metadata.data) TRY(rescue_record_from_json(m, metadata, arena, made, err));
  }
  return LODE_OK;
}

/* ---- Assembling the record ---- */

static int rescue_record_compare(const void *a, const void *b) {
  const rescue_record_entry *x = a, *y = b;
  int d = str_cmp(x->key, y->key);
  return d ? d : x->order < y->order ? -1 : x->order > y->order;
}

/* Appends the value of one key, which the entries from first to end have. */
static void rescue_record_put_key(rescue_record_builder *m, size_t first, size_t end, strbuf *out,
                                  rescue_record *made) {
  size_t whole = end, kept_end = first, strays = 0;
  bool lost = false;
  for (size_t i = first; i < end; i++) lost |= m->entries[i].lost;
  for (size_t i = first; i < end; i++) {
    if (m->entries[i].lost || (m->entries[i].old && !lost)) continue;
    strays += m->entries[i].stray;
    m->entries[kept_end++] = m->entries[i];
  }
  if (lost && (kept_end == first || m->entries[kept_end - 1].element)) made->doubt = "a value of its metadata is lost";
  if (kept_end == first) return;
  end = kept_end;
  /* a key has one value or an array: several strays of a key are an array */
  for (size_t i = first; i < end && strays > 1; i++) m->entries[i].element |= m->entries[i].stray;
  for (size_t i = first; i < end; i++)
    if (!m->entries[i].element) whole = i;
  const rescue_record_entry *last = &m->entries[end - 1];
  if (rescue_record_is_document(last->key)) {
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

static lode_status rescue_record_assemble(rescue_record_builder *m, mem_arena *arena, rescue_record *made,
                                          lode_error *err) {
  strbuf out = {0};
  if (m->n > 1) qsort(m->entries, m->n, sizeof *m->entries, rescue_record_compare);
  for (size_t i = 0, end; i < m->n; i = end) {
    for (end = i + 1; end < m->n && str_eq(m->entries[i].key, m->entries[end].key);) end++;
    rescue_record_put_key(m, i, end, &out, made);
  }
  if (out.len) {
    strbuf_addch(&out, '}');
    if (!out.failed) made->metadata = rescue_record_arena_copy(arena, (lode_str){out.data, out.len});
  }
  bool failed = out.failed || m->text.failed || (out.len && !made->metadata.data);
  strbuf_release(&out);
  return failed ? err_nomem(err) : LODE_OK;
}

/* ---- The vector ---- */

static void rescue_record_take_vector(rescue_record_builder *m, const rescue_rec *r, float *vector,
                                      rescue_record *made) {
  rescue_plan *p = m->plan;
  if (r->from == RESCUE_VEC_LOG && rescue_plan_log_vector(p, r, vector)) {
    made->has_vector = true;
    made->from = RESCUE_VEC_LOG;
    return;
  }
  if (!r->slot) return;
  rescue_hnsw *x = &p->folders[r->folder].index;
  if (x->shape.dimension != p->dimension) return;
  switch (rescue_hnsw_vector(x, &x->slots[r->slot - 1], p->coll->metric == LODE_COSINE, vector)) {
    case RESCUE_HNSW_EXACT: break;
    case RESCUE_HNSW_NO_NORM: made->doubt = "its vector has length 1: the true length is lost"; break;
    case RESCUE_HNSW_BAD: made->doubt = "its vector in the index is damaged"; return;
  }
  made->has_vector = true;
  made->from = RESCUE_VEC_INDEX;
}

lode_status rescue_record_build(rescue_record_builder *m, const rescue_rec *r, mem_arena *arena, float *vector,
                                rescue_record *made, lode_error *err) {
  *made = (rescue_record){.doubt = r->doubt};
  m->n = 0;
  m->text.len = 0;
  if (m->plan->chroma->damaged) TRY(rescue_record_from_log(m, r->old, arena, made, err));
  for (size_t i = 0; i < m->n; i++) m->entries[i].old = true;
  TRY(rescue_record_from_rows(m, r, arena, made, err));
  TRY(rescue_record_from_log(m, r->tail, arena, made, err));
  TRY(rescue_record_assemble(m, arena, made, err));
  if (vector) rescue_record_take_vector(m, r, vector, made);
  return LODE_OK;
}

void rescue_record_builder_release(rescue_record_builder *m) {
  json_release(&m->json);
  strbuf_release(&m->text);
  mem_free(m->entries);
  *m = (rescue_record_builder){0};
}
