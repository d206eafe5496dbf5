/* SPDX-License-Identifier: Apache-2.0 */
/* rescue_plan.c - records of a collection, and the folders of its index; see rescue_plan.h. Labels are matched in
 * rescue_pairs.c. */
#include "rescue/rescue_plan.h"

#include "base/vector.h"

#include <math.h>
#include <stdio.h>

#include "os/os.h"

/* ---- Records by id ---- */

static size_t rescue_plan_slot(const rescue_plan *p, lode_str id) {
  size_t mask = p->n_map - 1, i = (size_t)hash_bytes(id.data, id.len) & mask;
  while (p->map[i] && !str_eq(p->recs[p->map[i] - 1].id, id)) i = (i + 1) & mask;
  return i;
}

rescue_rec *rescue_plan_find(const rescue_plan *p, lode_str id) {
  if (!p->n_map) return NULL;
  uint32_t i = p->map[rescue_plan_slot(p, id)];
  return i && p->recs[i - 1].alive ? &p->recs[i - 1] : NULL;
}

bool rescue_plan_mentions(const rescue_plan *p, lode_str id) { return p->n_map && p->map[rescue_plan_slot(p, id)]; }

/* Returns the record of the id, dead or alive; creates it if needed. */
static lode_status rescue_plan_add_rec(rescue_plan *p, lode_str id, rescue_rec **out, lode_error *err) {
  size_t slot = rescue_plan_slot(p, id);
  if (!p->map[slot]) {
    if (!mem_grow(&p->recs, &p->cap, p->n + 1, sizeof *p->recs)) return err_nomem(err);
    p->recs[p->n] = (rescue_rec){.id = id};
    p->map[slot] = (uint32_t)++p->n;
  }
  *out = &p->recs[p->map[slot] - 1];
  return LODE_OK;
}

static lode_status rescue_plan_make_map(rescue_plan *p, lode_error *err) {
  size_t need = (p->coll->n_rows + p->coll->n_log + 8) * 2;
  if (need > UINT32_MAX / 2) return err_set(err, LODE_LIMIT, "the collection has too many rows");
  for (p->n_map = 64; p->n_map < need;) p->n_map *= 2;
  p->map = mem_calloc(p->n_map, sizeof *p->map);
  p->next = mem_calloc(p->coll->n_log + 1, sizeof *p->next);
  return p->map && p->next ? LODE_OK : err_nomem(err);
}

/* ---- Rows, then the log on top ---- */

static lode_status rescue_plan_add_rows(rescue_plan *p, lode_error *err) {
  const rescue_dir *c = p->chroma;
  for (size_t i = 0; i < p->coll->n_rows; i++) {
    const rescue_emb_row *row = &c->rows[p->coll->row + i];
    rescue_rec *r;
    TRY(rescue_plan_add_rec(p, row->id, &r, err));
    if (r->alive && (r->seq > row->seq || !row->stray)) { /* found twice, because of damage: use the newer one */
      r->doubt = "its row was found twice";
      if (r->seq > row->seq) continue;
    }
    *r = (rescue_rec){.id = row->id,
                      .key = row->key,
                      .seq = row->seq,
                      .alive = true,
                      .doubt = r->alive ? "its row was found twice" : NULL};
    if (row->stray) r->doubt = "its row was found on a page that no table reaches";
  }
  return LODE_OK;
}

static void rescue_plan_chain_entry(rescue_plan *p, uint32_t *first, uint32_t *last, uint32_t entry) {
  if (*last)
    p->next[*last - 1] = entry + 1;
  else
    *first = entry + 1;
  *last = entry + 1;
}

/* An entry that was applied to the rows: its vector is used, and its values if the rows have lost them. */
static void rescue_plan_apply_old_entry(rescue_plan *p, const rescue_log_entry *l, uint32_t entry) {
  rescue_rec *r = rescue_plan_find(p, l->id);
  if (!r || (r->seq >= 0 && l->seq > r->seq)) return; /* for example an add of an existing id: ignored by Chroma */
  if (l->op == RESCUE_LOG_DELETE) {
    r->log_vector = 0;
    r->weak = r->late = false;
    r->old = r->old_last = 0;
    return;
  }
  bool begins = l->op == RESCUE_LOG_ADD && l->seq == r->seq; /* it took effect: the id had been deleted before */
  if (begins) r->old = r->old_last = r->log_vector = 0;
  if (l->op != RESCUE_LOG_ADD || !r->old) rescue_plan_chain_entry(p, &r->old, &r->old_last, entry);
  if (l->op == RESCUE_LOG_ADD && p->coll->vector_seq >= 0 && l->seq > p->coll->vector_seq && l->seq == r->seq)
    r->late = true;
  if (!l->vector_bytes) return;
  if (l->op == RESCUE_LOG_ADD && r->log_vector && !r->weak) return; /* the id existed */
  r->weak = l->op == RESCUE_LOG_ADD && l->seq != r->seq && !r->log_vector;
  r->log_vector = entry + 1;
}

static lode_status rescue_plan_apply_new_entry(rescue_plan *p, const rescue_log_entry *l, uint32_t entry,
                                               lode_error *err) {
  rescue_rec *r = rescue_plan_find(p, l->id);
  if (l->op == RESCUE_LOG_DELETE) {
    if (r) *r = (rescue_rec){.id = r->id};
    return LODE_OK;
  }
  if (l->op == RESCUE_LOG_ADD && r) return LODE_OK;
  if (l->op == RESCUE_LOG_UPDATE && !r) return LODE_OK;
  if (!r) {
    TRY(rescue_plan_add_rec(p, l->id, &r, err));
    *r = (rescue_rec){.id = l->id, .alive = true, .late = true};
  }
  r->seq = l->seq;
  rescue_plan_chain_entry(p, &r->tail, &r->tail_last, entry);
  if (l->vector_bytes) {
    r->log_vector = entry + 1;
    r->weak = false;
  }
  return LODE_OK;
}

static lode_status rescue_plan_apply_log(rescue_plan *p, lode_error *err) {
  for (size_t i = 0; i < p->coll->n_log; i++) {
    const rescue_log_entry *l = &p->chroma->logs[p->coll->log + i];
    rescue_rec *unused;
    if (l->op == RESCUE_LOG_DELETE) TRY(rescue_plan_add_rec(p, l->id, &unused, err));
    if (l->seq <= p->coll->meta_seq)
      rescue_plan_apply_old_entry(p, l, (uint32_t)i);
    else
      TRY(rescue_plan_apply_new_entry(p, l, (uint32_t)i, err));
  }
  return LODE_OK;
}

bool rescue_plan_log_vector(rescue_plan *p, const rescue_rec *r, float *vector) {
  sqf_row row;
  lode_str bytes, metadata;
  if (!r->log_vector) return false;
  const rescue_log_entry *l = &p->chroma->logs[p->coll->log + r->log_vector - 1];
  if (rescue_log_read(p->chroma, l, &row, &bytes, &metadata, NULL) != LODE_OK) return false;
  if (!bytes.data || bytes.len != 4 * (size_t)p->dimension) return false;
  memcpy(vector, bytes.data, bytes.len); /* little-endian floats, as on every machine that lode runs on */
  return vec_length_fits(vec_length(vector, p->dimension)); /* also rejects values that are not finite */
}

/* ---- Folders of the index ---- */

static lode_status rescue_plan_add_index_dir(rescue_plan *p, const char *name, bool set_aside, lode_error *err) {
  strbuf path = {0};
  if (p->n_folders == RESCUE_MAX_INDEX_DIRS) return LODE_OK;
  strbuf_addf(&path, "%s/%s", p->chroma->folder, name);
  strbuf_addch(&path, 0);
  if (path.failed) {
    strbuf_release(&path);
    return err_nomem(err);
  }
  p->folders[p->n_folders++] =
      (rescue_index_dir){.path = path.data, .set_aside = set_aside, .pickle_seq = -1, .index = {.fd = -1}};
  return LODE_OK;
}

static lode_status rescue_plan_find_index_dirs(rescue_plan *p, lode_error *err) {
  if (p->coll->vector_segment == RESCUE_NO_NAME) return LODE_OK;
  lode_str name = p->chroma->names[p->coll->vector_segment].text;
  lode_status st = LODE_OK;
  if (memchr(name.data, '/', name.len) || name.data[0] == '.') return LODE_OK; /* not an id that Chroma creates */
  TRY(rescue_plan_add_index_dir(p, name.data, false, err));
  os_kind kind;
  int errnum = 0;
  os_dir *all = os_dir_open(p->chroma->folder);
  for (const char *it; all && st == LODE_OK && (it = os_dir_next_kind(all, &kind, &errnum));)
    if (strncmp(it, name.data, name.len) == 0 && it[name.len] == '.') st = rescue_plan_add_index_dir(p, it, true, err);
  if (all) os_dir_close(all);
  return errnum ? err_errno(err, errnum, p->chroma->folder) : st; /* an index may be behind it */
}

static lode_status rescue_plan_open_index_dirs(rescue_plan *p, lode_error *err) {
  for (size_t i = 0; i < p->n_folders; i++) {
    rescue_index_dir *f = &p->folders[i];
    lode_error why = {0};
    f->status = rescue_hnsw_open(f->path, p->dimension, p->coll->m, &f->index, &why);
    if (f->status == LODE_NOMEM) return err_nomem(err);
    snprintf(f->why, sizeof f->why, "%.199s", why.text);
    if (f->status == LODE_OK && !p->dimension) p->dimension = f->index.shape.dimension;
  }
  return LODE_OK;
}

/* ---- Entry points ---- */

static void rescue_plan_choose_vectors(rescue_plan *p) {
  size_t n = 0;
  for (size_t i = 0; i < p->n; i++) {
    rescue_rec *r = &p->recs[i];
    if (!r->alive) continue;
    r->from = r->log_vector && !(r->weak && r->slot) ? RESCUE_VEC_LOG : r->slot ? RESCUE_VEC_INDEX : RESCUE_VEC_NONE;
    p->alive++;
    p->from_log += r->from == RESCUE_VEC_LOG;
    p->from_index += r->from == RESCUE_VEC_INDEX;
    p->by_order += r->from == RESCUE_VEC_INDEX && r->by_order;
    p->missing += r->from == RESCUE_VEC_NONE;
    if (r->from == RESCUE_VEC_INDEX && p->folders[r->folder].set_aside && !r->doubt)
      r->doubt = "its vector is from an index that was set aside";
    p->recs[n++] = *r;
  }
  p->n = n;
  mem_free(p->map); /* its positions are out of date now */
  p->map = NULL;
  p->n_map = 0;
}

lode_status rescue_plan_make(rescue_dir *c, rescue_coll *coll, rescue_plan *p, lode_error *err) {
  lode_status st;
  *p = (rescue_plan){.chroma = c, .coll = coll, .dimension = coll->dimension};
  TRY_GOTO(rescue_plan_make_map(p, err));
  TRY_GOTO(rescue_plan_add_rows(p, err));
  TRY_GOTO(rescue_plan_apply_log(p, err));
  TRY_GOTO(rescue_plan_find_index_dirs(p, err));
  TRY_GOTO(rescue_plan_open_index_dirs(p, err));
  for (size_t i = 0; i < p->n_folders; i++)
    if (p->folders[i].status == LODE_OK) TRY_GOTO(rescue_plan_match_labels(p, i, err));
  rescue_plan_choose_vectors(p);
done:
  if (st != LODE_OK) rescue_plan_release(p);
  return st;
}

void rescue_plan_release(rescue_plan *p) {
  for (size_t i = 0; i < p->n_folders; i++) {
    rescue_hnsw_close(&p->folders[i].index);
    mem_free(p->folders[i].path);
  }
  mem_free(p->recs);
  mem_free(p->map);
  mem_free(p->next);
  mem_free(p->lost);
  *p = (rescue_plan){0};
}
