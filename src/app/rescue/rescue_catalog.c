/* SPDX-License-Identifier: Apache-2.0 */
/* rescue_catalog.c - makes collections from the rows of the tables: names, segments, and the owners of rows and log
 * entries; see chroma_dir.h. */
#include "rescue/chroma_tables.h"

#include <stdio.h>
#include <stdlib.h>

void rescue_put_value(strbuf *buf, const sqf_value *v, bool is_bool) {
  switch (v->type) {
    case SQF_INT:
      if (is_bool)
        strbuf_addstr(buf, v->i ? "true" : "false");
      else
        json_put_int(buf, v->i);
      break;
    case SQF_REAL: json_put_double(buf, v->d); break;
    case SQF_TEXT: json_put_string(buf, v->s); break;
    default: strbuf_addstr(buf, "null"); break;
  }
}

static lode_status catalog_find_metadata(rescue_dir *c, rescue_coll *coll, lode_error *err) {
  const rescue_raw_tables *p = c->parts;
  strbuf buf = {0};
  for (size_t i = 0; i < p->n_pairs; i++) {
    const rescue_pair *it = &p->pairs[i];
    if (it->owner != coll->id_name || it->value.type == SQF_NULL || rescue_pair_find(p, it->owner, it->key.data) != it)
      continue;
    strbuf_addch(&buf, buf.len ? ',' : '{');
    json_put_string(&buf, it->key);
    strbuf_addch(&buf, ':');
    sqf_value v = it->value;
    if (v.type == SQF_INT && it->is_real) v = (sqf_value){.type = SQF_REAL, .d = (double)v.i};
    rescue_put_value(&buf, &v, it->is_bool);
  }
  if (buf.len) strbuf_addch(&buf, '}');
  if (buf.len && !buf.failed) {
    coll->metadata.data = mem_arena_copy(&c->arena, buf.data, buf.len);
    coll->metadata.len = buf.len;
  }
  bool failed = buf.failed || (buf.len && !coll->metadata.data);
  strbuf_release(&buf);
  return failed ? err_nomem(err) : LODE_OK;
}

/* ---- Collections ---- */

static lode_status catalog_add_coll(rescue_dir *c, rescue_coll **out, lode_error *err) {
  if (!mem_grow(&c->colls, &c->cap_colls, c->n_colls + 1, sizeof *c->colls)) return err_nomem(err);
  *out = &c->colls[c->n_colls++];
  **out = (rescue_coll){.meta_segment = RESCUE_NO_NAME,
                        .vector_segment = RESCUE_NO_NAME,
                        .id_name = RESCUE_NO_NAME,
                        .meta_seq = -1,
                        .vector_seq = -1};
  return LODE_OK;
}

static void catalog_find_segments(rescue_dir *c, rescue_coll *coll) {
  const rescue_raw_tables *p = c->parts;
  for (size_t i = 0; i < p->n_segments; i++) {
    const rescue_segment_row *s = &p->segments[i];
    if (s->collection != coll->id_name || coll->id_name == RESCUE_NO_NAME) continue;
    if (s->is_metadata && coll->meta_segment == RESCUE_NO_NAME) coll->meta_segment = s->id;
    if (s->is_vector && coll->vector_segment == RESCUE_NO_NAME) coll->vector_segment = s->id;
  }
}

static lode_status catalog_finish_coll(rescue_dir *c, rescue_coll *coll, lode_error *err) {
  TRY(catalog_find_metadata(c, coll, err));
  TRY(rescue_read_config(c, coll, err));
  coll->meta_seq = coll->meta_segment == RESCUE_NO_NAME ? -1 : c->names[coll->meta_segment].max_seq;
  coll->vector_seq = coll->vector_segment == RESCUE_NO_NAME ? -1 : c->names[coll->vector_segment].max_seq;
  return LODE_OK;
}

/* A segment whose row is lost is inferred from the log: the entry at the position it has applied belongs to its
 * collection. */
static lode_status catalog_infer_segments(rescue_dir *c, lode_error *err) {
  rescue_raw_tables *p = c->parts;
  for (uint32_t name = 0; name < c->n_names; name++) {
    rescue_segment_row it = {.id = name, .collection = RESCUE_NO_NAME, .stray = true};
    bool known = c->names[name].max_seq < 0;
    for (size_t i = 0; i < p->n_segments && !known; i++) known = p->segments[i].id == name;
    for (size_t i = 0; i < c->n_rows && !known && !it.is_metadata; i++) it.is_metadata = c->rows[i].segment == name;
    for (size_t i = 0; i < c->n_logs && !known && it.collection == RESCUE_NO_NAME; i++)
      if (c->logs[i].seq == c->names[name].max_seq) it.collection = c->logs[i].topic;
    if (known || it.collection == RESCUE_NO_NAME) continue;
    it.is_vector = !it.is_metadata;
    if (!mem_grow(&p->segments, &p->cap_segments, p->n_segments + 1, sizeof *p->segments)) return err_nomem(err);
    p->segments[p->n_segments++] = it;
  }
  return LODE_OK;
}

static lode_status catalog_known_colls(rescue_dir *c, lode_error *err) {
  const rescue_raw_tables *p = c->parts;
  for (size_t i = 0; i < p->n_collections; i++) {
    const rescue_coll_row *it = &p->collections[i];
    rescue_coll *coll;
    bool again = false;
    for (size_t j = 0; j < c->n_colls; j++) again |= c->colls[j].id_name == it->id;
    if (again || it->id == RESCUE_NO_NAME || !it->name.data) continue;
    TRY(catalog_add_coll(c, &coll, err));
    coll->id_name = it->id;
    coll->id = c->names[it->id].text;
    coll->name = it->name;
    coll->dimension = it->dimension;
    coll->config = it->config;
    coll->schema = it->schema;
    for (size_t j = 0; j < p->n_databases; j++)
      if (str_eq(p->databases[j].id, it->database)) {
        coll->database = p->databases[j].name;
        coll->tenant = p->databases[j].tenant;
      }
    catalog_find_segments(c, coll);
    TRY(catalog_finish_coll(c, coll, err));
  }
  return LODE_OK;
}

/* Infers a collection whose own row is lost from a segment or from its id in the log. */
static lode_status catalog_infer_coll(rescue_dir *c, uint32_t id, uint32_t segment, rescue_coll **out,
                                      lode_error *err) {
  const char *known_by = c->names[id != RESCUE_NO_NAME ? id : segment].text.data;
  char name[64];
  int n = snprintf(name, sizeof name, "lost-%.36s", known_by);
  rescue_coll *coll;
  TRY(catalog_add_coll(c, &coll, err));
  coll->inferred = true;
  coll->id_name = id;
  if (id != RESCUE_NO_NAME) coll->id = c->names[id].text;
  coll->name = (lode_str){mem_arena_copy(&c->arena, name, (size_t)n), (size_t)n};
  if (!coll->name.data) return err_nomem(err);
  catalog_find_segments(c, coll);
  if (coll->meta_segment == RESCUE_NO_NAME) coll->meta_segment = segment;
  *out = coll;
  return catalog_finish_coll(c, coll, err);
}

/* ---- Owners of rows and log entries ---- */

static lode_status catalog_segment_owner(rescue_dir *c, uint32_t segment, uint32_t *owner, lode_error *err) {
  uint32_t id = RESCUE_NO_NAME;
  rescue_coll *coll;
  for (size_t i = 0; i < c->parts->n_segments; i++)
    if (c->parts->segments[i].id == segment) id = c->parts->segments[i].collection;
  for (size_t i = 0; i < c->n_colls; i++)
    if (c->colls[i].meta_segment == segment || (id != RESCUE_NO_NAME && c->colls[i].id_name == id)) {
      *owner = (uint32_t)i;
      return LODE_OK;
    }
  TRY(catalog_infer_coll(c, id, segment, &coll, err));
  *owner = (uint32_t)(coll - c->colls);
  return LODE_OK;
}

static lode_status catalog_topic_owner(rescue_dir *c, uint32_t topic, uint32_t *owner, lode_error *err) {
  rescue_coll *coll;
  for (size_t i = 0; i < c->n_colls; i++)
    if (c->colls[i].id_name == topic) {
      *owner = (uint32_t)i;
      return LODE_OK;
    }
  TRY(catalog_infer_coll(c, topic, RESCUE_NO_NAME, &coll, err));
  *owner = (uint32_t)(coll - c->colls);
  return LODE_OK;
}

/* The log keeps entries of deleted collections: without a collection row or a segment they are ignored, unless the
 * database is damaged. */
static bool catalog_topic_is_alive(const rescue_dir *c, uint32_t topic) {
  for (size_t i = 0; i < c->n_colls; i++)
    if (c->colls[i].id_name == topic) return true;
  for (size_t i = 0; i < c->parts->n_segments; i++)
    if (c->parts->segments[i].collection == topic) return true;
  return c->damaged;
}

static lode_status catalog_assign_owners(rescue_dir *c, lode_error *err) {
  lode_status st = LODE_OK;
  uint32_t *owner = mem_alloc((c->n_names + 1) * 2 * sizeof *owner);
  uint32_t *of_topic = owner ? owner + c->n_names + 1 : NULL;
  size_t n = 0;
  if (!owner) return err_nomem(err);
  memset(owner, 0xff, (c->n_names + 1) * 2 * sizeof *owner);
  for (size_t i = 0; i < c->n_rows; i++) {
    rescue_emb_row *r = &c->rows[i];
    if (owner[r->segment] == RESCUE_NO_NAME) TRY_GOTO(catalog_segment_owner(c, r->segment, &owner[r->segment], err));
    r->coll = owner[r->segment];
    if (r->seq > c->max_seq) c->max_seq = r->seq;
  }
  for (size_t i = 0; i < c->n_logs; i++) {
    rescue_log_entry *l = &c->logs[i];
    if (of_topic[l->topic] == RESCUE_NO_NAME) {
      if (!catalog_topic_is_alive(c, l->topic)) continue;
      TRY_GOTO(catalog_topic_owner(c, l->topic, &of_topic[l->topic], err));
    }
    l->coll = of_topic[l->topic];
    if (l->seq > c->max_seq) c->max_seq = l->seq;
    c->logs[n++] = *l;
  }
  c->n_logs = n;
done:
  mem_free(owner);
  return st;
}

/* ---- Sorting ---- */

#define COMPARE_FIELD(a, b)                                                                                            \
  do {                                                                                                                 \
    if ((a) != (b)) return (a) < (b) ? -1 : 1;                                                                         \
  } while (0)

static int catalog_compare_rows(const void *a, const void *b) {
  const rescue_emb_row *x = a, *y = b;
  COMPARE_FIELD(x->coll, y->coll);
  COMPARE_FIELD(x->key, y->key);
  COMPARE_FIELD(x->stray, y->stray); /* rows from a tree first */
  return 0;
}
static int catalog_compare_metas(const void *a, const void *b) {
  const rescue_meta *x = a, *y = b;
  COMPARE_FIELD(x->key, y->key);
  COMPARE_FIELD(y->kind, x->kind); /* the last wins: indexes, second copies of documents, strays, the table */
  COMPARE_FIELD(y->stray, x->stray);
  COMPARE_FIELD(x->order, y->order);
  return 0;
}
static int catalog_compare_logs(const void *a, const void *b) {
  const rescue_log_entry *x = a, *y = b;
  COMPARE_FIELD(x->coll, y->coll);
  COMPARE_FIELD(x->seq, y->seq);
  return 0;
}

static void catalog_sort(rescue_dir *c) {
  size_t n = 0;
  if (c->n_rows > 1) qsort(c->rows, c->n_rows, sizeof *c->rows, catalog_compare_rows);
  if (c->n_metas > 1) qsort(c->metas, c->n_metas, sizeof *c->metas, catalog_compare_metas);
  if (c->n_logs > 1) qsort(c->logs, c->n_logs, sizeof *c->logs, catalog_compare_logs);
  for (size_t i = 0; i < c->n_rows; i++)
    if (n == 0 || c->rows[n - 1].coll != c->rows[i].coll || c->rows[n - 1].key != c->rows[i].key)
      c->rows[n++] = c->rows[i];
  c->n_rows = n;
  for (size_t i = 0; i < c->n_rows; i++) {
    rescue_coll *coll = &c->colls[c->rows[i].coll];
    if (coll->n_rows++ == 0) coll->row = i;
  }
  n = 0;
  for (size_t i = 0; i < c->n_logs; i++)
    if (n == 0 || c->logs[n - 1].coll != c->logs[i].coll || c->logs[n - 1].seq != c->logs[i].seq)
      c->logs[n++] = c->logs[i];
  c->n_logs = n;
  for (size_t i = 0; i < c->n_logs; i++) {
    rescue_coll *coll = &c->colls[c->logs[i].coll];
    if (coll->n_log++ == 0) coll->log = i;
    if (!coll->dimension && c->logs[i].vector_bytes) coll->dimension = c->logs[i].vector_bytes / 4;
  }
}

/* Positions past anything ever written are ignored; the rows show how far they are. */
static void catalog_check_positions(rescue_dir *c) {
  for (size_t i = 0; i < c->n_colls; i++) {
    rescue_coll *coll = &c->colls[i];
    int64_t newest = -1;
    for (size_t j = coll->row; j < coll->row + coll->n_rows; j++)
      if (c->rows[j].seq > newest) newest = c->rows[j].seq;
    if (coll->meta_seq > c->max_seq && c->n_logs + c->n_rows > 0) {
      coll->poisoned = true;
      coll->meta_seq = newest;
    }
    if (coll->vector_seq > c->max_seq && c->n_logs + c->n_rows > 0) {
      coll->poisoned = true;
      coll->vector_seq = -1;
    }
    if (newest > coll->meta_seq) coll->meta_seq = newest; /* its row of max_seq_id is lost */
  }
}

size_t rescue_metas_of(const rescue_dir *c, int64_t key, size_t *n) {
  size_t at = 0, end;
  SORT_LOWER_BOUND(at, c->n_metas, c->metas[at].key < key);
  for (end = at; end < c->n_metas && c->metas[end].key == key; end++) continue;
  *n = end - at;
  return at;
}

/* ---- Opening ---- */

static void catalog_free_raw_tables(rescue_dir *c) {
  rescue_raw_tables *p = c->parts;
  c->databases = p->databases;
  c->n_databases = p->n_databases;
  mem_free(p->collections);
  mem_free(p->pairs);
  mem_free(p->segments);
  mem_free(p->lost[0].items);
  mem_free(p->lost[1].items);
  mem_free(p->seen[0].items);
  mem_free(p->seen[1].items);
  c->parts = NULL;
}

lode_status rescue_dir_open(const char *folder, lode_progress progress, rescue_dir *c, lode_error *err) {
  rescue_raw_tables parts = {0};
  lode_status st = LODE_OK;
  strbuf path = {0};
  *c = (rescue_dir){.folder = folder, .progress = progress, .parts = &parts};
  mem_arena_init(&c->arena, 0);
  strbuf_addf(&path, "%s/chroma.sqlite3", folder);
  strbuf_addch(&path, 0);
  if (path.failed) {
    st = err_nomem(err);
    goto done;
  }
  st = sqf_open(path.data, &c->file, err);
  if (st == LODE_NOT_FOUND)
    st = err_set(err, st,
                 "%.300s is no Chroma directory: it has no chroma.sqlite3; give the path that "
                 "chromadb.PersistentClient was given",
                 folder);
  if (st != LODE_OK) goto done;
  TRY_GOTO(rescue_read_tables(c, err));
  if (c->damaged) TRY_GOTO(catalog_infer_segments(c, err));
  TRY_GOTO(catalog_known_colls(c, err));
  TRY_GOTO(catalog_assign_owners(c, err));
  catalog_sort(c);
  catalog_check_positions(c);
done:
  strbuf_release(&path);
  catalog_free_raw_tables(c);
  if (st != LODE_OK) rescue_dir_close(c);
  return st;
}

void rescue_dir_close(rescue_dir *c) {
  sqf_close(c->file);
  mem_arena_release(&c->arena);
  json_release(&c->json);
  mem_free(c->names);
  mem_free(c->name_slots);
  mem_free(c->colls);
  mem_free(c->rows);
  mem_free(c->metas);
  mem_free(c->logs);
  mem_free(c->databases);
  *c = (rescue_dir){0};
}
