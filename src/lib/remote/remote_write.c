/* SPDX-License-Identifier: Apache-2.0 */
/* remote_write.c - add, upsert, update, delete.
 *
 * A point is always written completely, so the parts that a record keeps are read first. A large batch is sent in
 * several requests, one after the other: while one is being sent, the next is encoded. If one fails, those before it
 * remain, and the call may simply be repeated. A write is acknowledged according to wait=true and the collection's
 * write consistency.
 */
#include "remote/remote_select.h"

enum {
  REMOTE_SEND_POINTS = 500,    /* points per request */
  REMOTE_SEND_BYTES = 8 << 20, /* a request is sent when it is larger than this */
  REMOTE_PUSH_RECORDS = 16,    /* records between two calls of remote_call_push() */
  REMOTE_DELETE_POINTS = 5000, /* ids per delete request */
};

/* A record before the write. */
typedef struct remote_old_rec {
  bool exists, whole; /* whole: document, metadata and vector were read too */
  uint64_t n;
  lode_str document, metadata;
  const float *vector;
  uint32_t dim;
} remote_old_rec;

typedef struct remote_write_job {
  remote_collection *c;
  lode_import_mode mode;
  lode_on_existing on_existing;
  const lode_record *records;
  size_t n;
  bool *missing;
  lode_write_result result;
  iface_batch batch;
  remote_entry entry;
  mem_arena arena;
  remote_old_rec *olds;
  lode_str *ids;
  uint64_t number; /* sequence number of the first record; 0: not assigned yet */
} remote_write_job;

static lode_status remote_is_writable(const remote_collection *c, const lode_txn *txn, lode_error *err) {
  if (c->store->head.options->read_only)
    return err_set(err, LODE_READONLY, "the store is open for reading only: open it without read_only to write");
  return txn ? err_set(err, LODE_INVALID, "the transaction belongs to another store") : LODE_OK;
}

static lode_status remote_note_old(void *ctx, size_t i, const remote_point *p, lode_error *err) {
  remote_write_job *w = ctx;
  remote_old_rec *o = &w->olds[i];
  /* Written by an earlier attempt of this call: it counts as new. */
  if (w->mode == LODE_IMPORT_ADD && w->number && p->n == w->number + i) return LODE_OK;
  o->exists = true;
  o->n = p->n;
  o->whole = w->mode != LODE_IMPORT_ADD;
  const lode_str from[] = {p->document, p->metadata};
  lode_str *to[] = {&o->document, &o->metadata};
  for (size_t k = 0; k < 2; k++) {
    *to[k] = (lode_str){NULL, 0};
    if (!from[k].data) continue;
    to[k]->data = mem_arena_copy(&w->arena, from[k].data, from[k].len);
    to[k]->len = from[k].len;
    if (!to[k]->data) return err_nomem(err);
  }
  if (p->vector) {
    o->vector = mem_arena_copy(&w->arena, p->vector, (size_t)p->dim * sizeof(float));
    o->dim = p->dim;
    if (!o->vector) return err_nomem(err);
  }
  return LODE_OK;
}

static lode_status remote_read_olds(remote_write_job *w, lode_error *err) {
  bool parts = w->mode != LODE_IMPORT_ADD;
  memset(w->olds, 0, w->n * sizeof *w->olds);
  return remote_find(&(remote_find_request){.c = w->c,
                                            .entry = &w->entry,
                                            .ids = w->ids,
                                            .n = w->n,
                                            .include = parts ? LODE_ALL : 0,
                                            .with_payload = parts,
                                            .fn = remote_note_old,
                                            .ctx = w},
                     err);
}

/* The metadata of the record after the write. */
static lode_status remote_merge_metadata(remote_write_job *w, size_t i, lode_str *out, lode_error *err) {
  const remote_old_rec *o = &w->olds[i];
  lode_str change = w->batch.metadata[i];
  *out = change.data ? change : o->metadata;
  if (!change.data || (!o->metadata.data && !w->batch.has_null[i])) return LODE_OK;
  json_doc old_json = {0}, new_json = {0};
  strbuf buf = {0};
  bool empty = false;
  lode_status st = LODE_OK;
  if (o->metadata.data) TRY_GOTO(meta_parse_stored(&old_json, o->metadata, err));
  TRY_GOTO(meta_check(&new_json, change, true, err));
  TRY_GOTO(meta_merge(o->metadata.data ? &old_json : NULL, &new_json, &buf, &empty, err));
  char *copy = empty ? NULL : mem_arena_copy(&w->arena, buf.data, buf.len);
  if (!empty && !copy) st = err_nomem(err);
  *out = (lode_str){copy, copy ? buf.len : 0};
done:
  json_release(&old_json);
  json_release(&new_json);
  strbuf_release(&buf);
  return st;
}

static bool remote_is_skipped(const remote_write_job *w, size_t i) {
  return w->mode == LODE_IMPORT_ADD ? w->olds[i].exists : w->mode == LODE_IMPORT_UPDATE && !w->olds[i].exists;
}

/* The record after the write; *skip: it is not written. */
static lode_status remote_make_point(remote_write_job *w, size_t i, uint64_t number, remote_point *p, bool *skip,
                                     lode_error *err) {
  const lode_record *r = &w->records[i];
  const remote_old_rec *o = &w->olds[i];
  *skip = remote_is_skipped(w, i);
  if (w->missing) w->missing[i] = w->mode == LODE_IMPORT_UPDATE && !o->exists;
  if (*skip) return LODE_OK;
  *p = (remote_point){.id = r->id, .n = o->exists ? o->n : number, .seq = number};
  p->document = r->document.data ? r->document : o->document;
  p->vector = r->vector ? r->vector : o->vector;
  p->dim = r->vector ? r->dimension : o->dim;
  return remote_merge_metadata(w, i, &p->metadata, err);
}

/* A request that is being encoded or sent. */
typedef struct remote_send_buffer {
  remote_call call;
  size_t n;
  bool sent;
} remote_send_buffer;

static lode_status remote_add_record(remote_write_job *w, size_t i, remote_send_buffer *l, lode_error *err) {
  remote_point p;
  bool skip;
  lode_status st = remote_make_point(w, i, w->number + i, &p, &skip, err);
  if (st != LODE_OK && err) err->record = i;
  TRY(st);
  w->result.skipped += skip;
  if (skip) return LODE_OK;
  if (l->n == 0) remote_generation_path(&l->call, w->c->store, &w->entry, "/points?wait=true");
  strbuf_addstr(&l->call.body, l->n++ ? "," : "{\"points\":[");
  return remote_point_encode(&l->call.body, &p, w->entry.metric, err);
}

/* Waits until the request is acknowledged. */
static lode_status remote_await_send(remote_write_job *w, remote_send_buffer *l, lode_error *err) {
  if (!l->sent) return LODE_OK;
  l->sent = false;
  TRY(remote_call_send(w->c->store, "PUT", &l->call, err));
  w->result.written += l->n;
  l->n = 0;
  return LODE_OK;
}

/* Begins to send `l` once `before` is acknowledged. */
static lode_status remote_send_after(remote_write_job *w, remote_send_buffer *before, remote_send_buffer *l,
                                     lode_error *err) {
  TRY(remote_await_send(w, before, err));
  if (l->n == 0) return LODE_OK;
  strbuf_addstr(&l->call.body, "]}");
  remote_call_start(w->c->store, "PUT", &l->call);
  l->sent = true;
  return LODE_OK;
}

static lode_status remote_write_points(remote_write_job *w, lode_error *err) {
  remote_send_buffer buffers[2] = {{.n = 0}};
  lode_status st = LODE_OK;
  lode_error late;
  size_t now = 0; /* index of the buffer that is being filled */
  if (!w->number) w->number = remote_next_seq(w->c->store, w->n);
  w->result = (lode_write_result){0};
  for (size_t i = 0; i < w->n && st == LODE_OK; i++) {
    remote_send_buffer *l = &buffers[now], *before = &buffers[!now];
    st = remote_add_record(w, i, l, err);
    if (i % REMOTE_PUSH_RECORDS == 0) remote_call_push(&before->call);
    if (st != LODE_OK || (l->n < REMOTE_SEND_POINTS && l->call.body.len <= REMOTE_SEND_BYTES)) continue;
    st = remote_send_after(w, before, l, err);
    now = !now;
  }
  if (st == LODE_OK) st = remote_send_after(w, &buffers[!now], &buffers[now], err);
  err_clear(&late);
  for (int i = 0; i < 2; i++) { /* at most one is still being sent; its error came first, so it is the one reported */
    lode_status sent = remote_await_send(w, &buffers[i], &late);
    if (sent != LODE_OK) st = sent;
    if (sent != LODE_OK && err) *err = late;
    remote_call_release(&buffers[i].call);
  }
  return st;
}

static lode_status remote_refuse_existing(const remote_write_job *w, lode_error *err) {
  char quoted[256];
  for (size_t i = 0; i < w->n; i++)
    if (w->olds[i].exists)
      return err_set_at(err, LODE_EXISTS, i,
                        "the id %s exists already: use upsert to replace it, or keep existing records",
                        str_quote(w->records[i].id, quoted, sizeof quoted));
  return LODE_OK;
}

static bool remote_brings_vectors(const remote_write_job *w) {
  for (size_t i = 0; i < w->n; i++)
    if (w->records[i].vector && !remote_is_skipped(w, i)) return true;
  return false;
}

/* Reads the old records, and checks whether the batch may be written. */
static lode_status remote_check_target(remote_write_job *w, uint32_t *dim, lode_error *err) {
  TRY(iface_batch_check_vectors(&w->batch, &w->c->spec, &w->entry.spec, dim, err));
  TRY(remote_read_olds(w, err));
  return w->mode == LODE_IMPORT_ADD && w->on_existing == LODE_FAIL_EXISTING ? remote_refuse_existing(w, err) : LODE_OK;
}

static lode_status remote_try_write(remote_write_job *w, bool fresh, lode_error *err) {
  uint32_t dim;
  TRY(remote_entry_of(w->c, fresh, &w->arena, &w->entry, err));
  TRY(remote_check_target(w, &dim, err));
  if (!w->entry.spec.dim && remote_brings_vectors(w)) {
    TRY(remote_fix_dimension(w->c, dim, &w->arena, &w->entry, err));
    TRY(remote_check_target(w, &dim, err)); /* others may have written meanwhile */
  }
  return remote_write_points(w, err);
}

/* Repeats the write if the records have moved to a new generation meanwhile: the old one does not exist any more, or
 * was copied before the write. */
static lode_status remote_write_until_stands(remote_write_job *w, lode_error *err) {
  enum { REMOTE_WRITE_ATTEMPTS = 8 };
  for (int attempt = 0; attempt < REMOTE_WRITE_ATTEMPTS; attempt++) {
    bool stands = false;
    lode_status st = remote_try_write(w, attempt > 0, err);
    if (st == LODE_OK) st = remote_write_stands(w->c, &w->entry, &w->arena, &stands, err);
    if (st == LODE_NOT_FOUND && attempt == 0) continue;
    if (st != LODE_OK || stands) return st;
  }
  return err_set(err, LODE_BUSY, "other processes keep changing the collection: try again");
}

static lode_status remote_write_run(remote_write_job *w, lode_write_result *result, lode_error *err) {
  lode_status st;
  if (result) *result = (lode_write_result){0};
  mem_arena_init(&w->arena, 0);
  TRY_GOTO(iface_batch_init(&w->batch, w->c->store->head.options->max_document_bytes, w->records, w->n,
                            w->mode != LODE_IMPORT_ADD, err));
  w->olds = mem_calloc(w->n, sizeof *w->olds);
  w->ids = mem_calloc(w->n, sizeof *w->ids);
  if (!w->olds || !w->ids) {
    st = err_nomem(err);
    goto done;
  }
  for (size_t i = 0; i < w->n; i++) w->ids[i] = w->records[i].id;
  st = remote_write_until_stands(w, err);
  if (st == LODE_OK) {
    err_clear(err);
    if (result) *result = w->result;
  }
done:
  iface_batch_release(&w->batch);
  mem_free(w->olds);
  mem_free(w->ids);
  mem_arena_release(&w->arena);
  return st;
}

lode_status remote_add(lode_collection *head, lode_txn *txn, const lode_record *records, size_t n,
                       lode_on_existing on_existing, lode_write_result *result, lode_error *err) {
  remote_collection *c = remote_collection_of(head);
  remote_write_job w = {.c = c, .mode = LODE_IMPORT_ADD, .on_existing = on_existing, .records = records, .n = n};
  err_clear(err);
  TRY(remote_is_writable(c, txn, err));
  return remote_write_run(&w, result, err);
}

lode_status remote_upsert(lode_collection *head, lode_txn *txn, const lode_record *records, size_t n,
                          lode_write_result *result, lode_error *err) {
  remote_collection *c = remote_collection_of(head);
  remote_write_job w = {.c = c, .mode = LODE_IMPORT_UPSERT, .records = records, .n = n};
  err_clear(err);
  TRY(remote_is_writable(c, txn, err));
  return remote_write_run(&w, result, err);
}

lode_status remote_update(lode_collection *head, lode_txn *txn, const lode_record *records, size_t n, bool *missing,
                          lode_write_result *result, lode_error *err) {
  remote_collection *c = remote_collection_of(head);
  remote_write_job w = {.c = c, .mode = LODE_IMPORT_UPDATE, .records = records, .n = n, .missing = missing};
  err_clear(err);
  TRY(remote_is_writable(c, txn, err));
  return remote_write_run(&w, result, err);
}

/* ---- Delete ---- */

typedef struct remote_delete_job {
  remote_collection *c;
  remote_select select;
  remote_entry entry;
  remote_call call;
  size_t pending; /* ids in the request that is being built */
  size_t now;     /* deleted in this attempt */
  size_t deleted; /* maximum over the attempts, so that a repeated deletion is counted once */
} remote_delete_job;

static lode_status remote_send_deletes(remote_delete_job *d, lode_error *err) {
  if (d->pending == 0) return LODE_OK;
  strbuf_addstr(&d->call.body, "]}");
  TRY(remote_call_send(d->c->store, "POST", &d->call, err));
  d->now += d->pending;
  d->pending = 0;
  return LODE_OK;
}

static lode_status remote_delete_one(remote_delete_job *d, lode_str id, lode_error *err) {
  char uuid[REMOTE_UUID_BYTES];
  remote_point_uuid(id, uuid);
  if (d->pending == 0) {
    remote_generation_path(&d->call, d->c->store, &d->entry, "/points/delete?wait=true");
    strbuf_addstr(&d->call.body, "{\"points\":[");
  }
  strbuf_addf(&d->call.body, d->pending ? ",\"%s\"" : "\"%s\"", uuid);
  return ++d->pending == REMOTE_DELETE_POINTS ? remote_send_deletes(d, err) : LODE_OK;
}

static lode_status remote_delete_found(void *ctx, size_t i, const remote_point *p, lode_error *err) {
  remote_delete_job *d = ctx;
  bool match;
  (void)i;
  TRY(remote_select_match(&d->select, p, &match, err));
  return match ? remote_delete_one(d, p->id, err) : LODE_OK;
}

/* Deletes the ids of the selection that match, each once. */
static lode_status remote_delete_ids(remote_delete_job *d, lode_error *err) {
  const lode_selection *what = d->select.what;
  size_t n = 0;
  lode_str *ids = mem_calloc(what->n_ids, sizeof *ids);
  if (!ids) return err_nomem(err);
  if (what->n_ids) memcpy(ids, what->ids, what->n_ids * sizeof *ids);
  if (what->n_ids) qsort(ids, what->n_ids, sizeof *ids, sort_cmp_str);
  for (size_t i = 0; i < what->n_ids; i++)
    if (n == 0 || !str_eq(ids[n - 1], ids[i])) ids[n++] = ids[i];
  lode_status st =
      remote_find(&(remote_find_request){.c = d->c,
                                         .entry = &d->entry,
                                         .ids = ids,
                                         .n = n,
                                         .include = remote_select_needs_doc(&d->select) ? LODE_DOCUMENT : 0,
                                         .with_payload = d->select.has_filter,
                                         .fn = remote_delete_found,
                                         .ctx = d},
                  err);
  mem_free(ids);
  return st;
}

/* All points are listed before any is deleted, because deletions would shift the pages. */
static lode_status remote_delete_matches(remote_delete_job *d, lode_error *err) {
  remote_scroll scroll;
  strbuf ids = {0};
  lode_status st;
  bool more;
  TRY(remote_select_plan(&d->select, &d->entry, err));
  remote_scroll_init(&scroll, &d->select, &d->entry, 0);
  for (;;) {
    remote_point p;
    TRY_GOTO(remote_scroll_next(&scroll, &p, &more, err));
    if (!more) break;
    uint32_t len = (uint32_t)p.id.len;
    strbuf_add(&ids, &len, sizeof len);
    strbuf_add(&ids, p.id.data, p.id.len);
    if (ids.failed || ids.len > d->c->store->head.options->memory_bytes) {
      st = ids.failed
               ? err_nomem(err)
               : err_set(err, LODE_LIMIT, "more records match than fit in the memory budget: delete them in parts");
      goto done;
    }
  }
  for (size_t at = 0; at < ids.len;) {
    uint32_t len;
    memcpy(&len, ids.data + at, sizeof len);
    TRY_GOTO(remote_delete_one(d, (lode_str){ids.data + at + sizeof len, len}, err));
    at += sizeof len + len;
  }
  st = LODE_OK;
done:
  remote_scroll_release(&scroll);
  strbuf_release(&ids);
  return st;
}

static lode_status remote_try_delete(remote_delete_job *d, bool fresh, mem_arena *arena, lode_error *err) {
  TRY(remote_entry_of(d->c, fresh, arena, &d->entry, err));
  d->pending = d->now = 0;
  TRY(d->select.what->ids ? remote_delete_ids(d, err) : remote_delete_matches(d, err));
  TRY(remote_send_deletes(d, err));
  if (d->now > d->deleted) d->deleted = d->now;
  return LODE_OK;
}

static lode_status remote_delete_until_stands(remote_delete_job *d, mem_arena *arena, lode_error *err) {
  enum { REMOTE_WRITE_ATTEMPTS = 8 };
  for (int attempt = 0; attempt < REMOTE_WRITE_ATTEMPTS; attempt++) {
    bool stands = false;
    lode_status st = remote_try_delete(d, attempt > 0, arena, err);
    if (st == LODE_OK) st = remote_write_stands(d->c, &d->entry, arena, &stands, err);
    if (st == LODE_NOT_FOUND && attempt == 0) continue;
    if (st != LODE_OK || stands) return st;
  }
  return err_set(err, LODE_BUSY, "other processes keep changing the collection: try again");
}

lode_status remote_delete(lode_collection *head, lode_txn *txn, const lode_selection *selection, size_t *deleted,
                          lode_error *err) {
  remote_collection *c = remote_collection_of(head);
  remote_delete_job d = {.c = c};
  mem_arena arena;
  lode_status st;
  err_clear(err);
  if (deleted) *deleted = 0;
  TRY(remote_is_writable(c, txn, err));
  if (!selection->ids && !selection->where.data && !selection->where_document.data)
    return err_set(err, LODE_INVALID, "the selection is empty, which would delete everything: say where = {} for that");
  mem_arena_init(&arena, 0);
  TRY_GOTO(remote_select_init(&d.select, c, selection, err));
  st = remote_delete_until_stands(&d, &arena, err);
  if (st == LODE_OK) {
    err_clear(err);
    if (deleted) *deleted = d.deleted;
  }
done:
  remote_select_release(&d.select);
  remote_call_release(&d.call);
  mem_arena_release(&arena);
  return st;
}
