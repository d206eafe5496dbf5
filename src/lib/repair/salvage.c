/* SPDX-License-Identifier: Apache-2.0 */
/* salvage.c - copies what is intact in a damaged store to a new one.
 *
 * The damaged store is only read, page by page (salvage_find.c) and without SQLite, so it may be in any state. The
 * new store is written beside `to` under a temporary name and renamed when it is complete: a killed salvage leaves
 * nothing that could be mistaken for a store. Records keep their order, and everything that is written has a verified
 * checksum and is validated like user input. A record whose document or vector is lost is written without it. Two
 * live records cannot have the same id: if a tombstone was lost, the newer record wins, because it could only be
 * added after the older one was deleted. Records of a collection whose description is lost go to
 * "recovered-<number>", with metric l2. The text and metadata indexes are left to the new store's maintenance.
 */
#include "repair/salvage.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

#define SALVAGE_BATCH_RECORDS 1000
#define SALVAGE_BATCH_BYTES (16u << 20)

typedef struct salvage_output {
  salvage_job *s;
  store_db *db;
  store_tx *tx;
  int64_t cid;     /* current collection in the damaged store; 0: none */
  store_coll coll; /* the same collection in the new store */
  mem_arena arena; /* strings of coll */
  size_t batch, batch_bytes;
  strbuf document, vector;
  float *floats;
  size_t cap_floats;
} salvage_output;

/* ---- Collections ---- */

static lode_status salvage_write_collection(salvage_output *o, int64_t cid, const store_coll *wanted, lode_error *err) {
  salvage_job *s = o->s;
  lode_str *names = NULL;
  size_t cap = 0, n = 0;
  lode_status st = LODE_OK;
  for (size_t i = 0; i < s->n_keys; i++) {
    if (s->keys[i].cid != cid) continue;
    if (!mem_grow(&names, &cap, n + 1, sizeof *names)) {
      st = err_nomem(err);
      goto done;
    }
    names[n++] = s->keys[i].name;
  }
  if (wanted->counted > n)
    salvage_report_loss(s, "counter", cid, (lode_str){NULL, 0}, "%u of %u declared counters are lost",
                        wanted->counted - (uint32_t)n, wanted->counted);
  st = store_coll_create(o->tx, wanted, names, n, &o->arena, &o->coll, err);
done:
  mem_free(names);
  return st;
}

static lode_status salvage_name_is_free(salvage_output *o, lode_str name, bool *is_free, lode_error *err) {
  store_coll other;
  lode_error ignored;
  lode_status st = store_coll_find(o->tx, name, NULL, &other, &ignored);
  *is_free = st == LODE_NOT_FOUND;
  if (st == LODE_OK || st == LODE_NOT_FOUND) return LODE_OK;
  return err_set(err, st, "%s", ignored.text);
}

/* A name that no collection of the new store has, and none of the damaged one. */
static lode_status salvage_recovered_name(salvage_output *o, int64_t cid, lode_str *name, lode_error *err) {
  char text[64];
  for (unsigned i = 1;; i++) {
    bool taken = false, is_free;
    if (i == 1)
      snprintf(text, sizeof text, "recovered-%lld", (long long)cid);
    else
      snprintf(text, sizeof text, "recovered-%lld-%u", (long long)cid, i);
    lode_str wanted = str_of(text);
    for (size_t c = 0; c < o->s->n_colls && !taken; c++) taken = str_eq(o->s->colls[c].coll.name, wanted);
    TRY(salvage_name_is_free(o, wanted, &is_free, err));
    if (taken || !is_free) continue;
    *name = (lode_str){mem_arena_copy(&o->arena, text, wanted.len), wanted.len};
    return name->data ? LODE_OK : err_nomem(err);
  }
}

/* Drops metadata that is not a JSON object. */
static lode_status salvage_check_object(salvage_job *s, lode_str *text, lode_error *err) {
  if (!text->data) return LODE_OK;
  lode_status st = json_parse(&s->json, *text, NULL, err);
  if (st == LODE_NOMEM) return st;
  if (st != LODE_OK || s->json.nodes[0].type != JSON_NODE_OBJECT) *text = (lode_str){NULL, 0};
  return LODE_OK;
}

/* Creates collection `cid` of the damaged store in the new one, and makes it the current one. */
static lode_status salvage_open_collection(salvage_output *o, int64_t cid, lode_error *err) {
  salvage_job *s = o->s;
  const salvage_coll *found = salvage_find_coll(s, cid);
  store_coll wanted = {.metric = LODE_L2};
  bool usable = false;
  mem_arena_reset(&o->arena);
  if (found) {
    wanted = found->coll;
    usable = wanted.name.data && wanted.name.len > 0 && wanted.name.len <= LODE_MAX_NAME_BYTES &&
             utf8_valid(wanted.name.data, wanted.name.len);
    if (usable) TRY(salvage_name_is_free(o, wanted.name, &usable, err));
    TRY(salvage_check_object(s, &wanted.metadata, err));
    if (wanted.embedder.data && !utf8_valid(wanted.embedder.data, wanted.embedder.len))
      wanted.embedder = (lode_str){NULL, 0};
  }
  if (!usable) {
    TRY(salvage_recovered_name(o, cid, &wanted.name, err));
    salvage_report_loss(s, "collection", cid, (lode_str){NULL, 0},
                        "the description of collection %lld is lost: its records are in \"%.*s\", with metric %s",
                        (long long)cid, (int)wanted.name.len, wanted.name.data, lode_metric_name(wanted.metric));
  }
  o->cid = cid;
  return salvage_write_collection(o, cid, &wanted, err);
}

/* ---- Parts of a record ---- */

/* text->data stays NULL if the document is lost. */
static lode_status salvage_fetch_document(salvage_output *o, const store_rec *rec, lode_str *text, lode_error *err) {
  salvage_job *s = o->s;
  for (const salvage_found *f = salvage_found_first(&s->documents, rec->rid); f;
       f = salvage_found_next(&s->documents, f)) {
    sqf_cell row;
    lode_status st = salvage_read_row(s, f, &row, &o->document, err);
    if (st == LODE_CORRUPT) continue;
    TRY(st);
    lode_str found = sqf_cell_str(&row, 1, &o->document);
    uint32_t crc = (uint32_t)sqf_cell_int(&row, 2, &o->document);
    bool proven = found.data && crc == rec->doc_crc && crc == store_crc_document(rec->rid, found);
    if (!proven || !utf8_valid(found.data, found.len)) continue;
    *text = found;
    break;
  }
  return LODE_OK;
}

static bool salvage_are_finite(const float *v, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!isfinite(v[i])) return false;
  return true;
}

static bool salvage_vector_is_valid(const salvage_output *o, const store_rec *rec, const sqf_cell *row, lode_str data) {
  int64_t rid = sqf_cell_int(row, 1, &o->vector);
  size_t n = data.len / sizeof(float);
  if (rid != rec->rid || data.len == 0 || data.len % sizeof(float) || n > LODE_MAX_DIMENSION) return false;
  if ((uint32_t)sqf_cell_int(row, 3, &o->vector) != store_crc_vector(rec->vid, rid, data.data, data.len)) return false;
  return o->coll.dim == 0 || o->coll.dim == n;
}

/* *dim stays 0 if the vector is lost; otherwise it is in o->floats. */
static lode_status salvage_fetch_vector(salvage_output *o, const store_rec *rec, uint32_t *dim, lode_error *err) {
  salvage_job *s = o->s;
  for (const salvage_found *f = salvage_found_first(&s->vectors, rec->vid); f; f = salvage_found_next(&s->vectors, f)) {
    sqf_cell row;
    lode_status st = salvage_read_row(s, f, &row, &o->vector, err);
    if (st == LODE_CORRUPT) continue;
    TRY(st);
    lode_str data = sqf_cell_str(&row, 2, &o->vector);
    if (!data.data || !salvage_vector_is_valid(o, rec, &row, data)) continue;
    size_t n = data.len / sizeof(float);
    if (!mem_grow(&o->floats, &o->cap_floats, n, sizeof *o->floats)) return err_nomem(err);
    memcpy(o->floats, data.data, data.len);
    if (!salvage_are_finite(o->floats, n)) continue;
    *dim = (uint32_t)n;
    break;
  }
  return LODE_OK;
}

/* ---- Records ---- */

/* Deletes an older record with this id; *rid: that record, 0 if there was none. */
static lode_status salvage_drop_older(salvage_output *o, lode_str id, int64_t *rid, lode_error *err) {
  size_t dropped;
  TRY(store_rec_find(o->tx, o->coll.cid, id, rid, err));
  if (!*rid) return LODE_OK;
  TRY(store_rec_delete(o->tx, &o->coll, &id, 1, &dropped, err));
  o->s->report->records -= dropped;
  return LODE_OK;
}

/* Reads the record again and validates it like user input. */
static lode_status salvage_read_record(salvage_output *o, const salvage_found *f, store_rec *rec, bool *usable,
                                       lode_error *err) {
  salvage_job *s = o->s;
  sqf_cell row;
  *rec = (store_rec){0};
  *usable = false;
  lode_status st = salvage_read_row(s, f, &row, &s->payload, err);
  if (st == LODE_CORRUPT) return LODE_OK;
  TRY(st);
  if (!repair_row_to_rec(&row, &s->payload, rec)) {
    *rec = (store_rec){0};
    return LODE_OK;
  }
  if (!utf8_valid(rec->id.data, rec->id.len)) return LODE_OK;
  st = rec->metadata.data ? meta_check(&s->json, rec->metadata, false, err) : LODE_OK;
  if (st == LODE_NOMEM) return st;
  *usable = st == LODE_OK;
  return LODE_OK;
}

/* Fetches document and vector, and reports which of them are lost. */
static lode_status salvage_fetch_parts(salvage_output *o, const store_rec *rec, store_change *change, lode_error *err) {
  salvage_job *s = o->s;
  int64_t cid = store_key_cid(rec->rid);
  if (rec->has_document) TRY(salvage_fetch_document(o, rec, &change->document, err));
  if (rec->has_document && !change->document.data) {
    salvage_report_loss(s, "document", cid, rec->id, "the document was on a damaged page; the record comes without it");
    s->report->without_document++;
  }
  if (rec->vid) TRY(salvage_fetch_vector(o, rec, &change->dim, err));
  if (change->dim) change->vector = o->floats;
  if (rec->vid && !change->dim) {
    salvage_report_loss(s, "vector", cid, rec->id,
                        "the vector was on a damaged page; the record is pending until it gets one");
    s->report->without_vector++;
  }
  return LODE_OK;
}

static lode_status salvage_write_record(salvage_output *o, const salvage_found *f, lode_error *err) {
  salvage_job *s = o->s;
  store_rec rec;
  bool usable;
  int64_t cid = store_key_cid(f->key);
  TRY(salvage_read_record(o, f, &rec, &usable, err));
  if (!usable) {
    salvage_report_loss(s, "record", cid, rec.id, "the record cannot be read, or no store would take it");
    s->report->lost++;
    return LODE_OK;
  }
  if (cid != o->cid) {
    if (o->cid) TRY(store_coll_save(o->tx, &o->coll, err));
    TRY(salvage_open_collection(o, cid, err));
  }
  store_change change = {.id = rec.id, .metadata = rec.metadata, .set_document = true, .set_metadata = true};
  TRY(salvage_fetch_parts(o, &rec, &change, err));
  TRY(salvage_drop_older(o, rec.id, &change.dead_rid, err));
  TRY(store_rec_insert(o->tx, &o->coll, &change, 1, err));
  s->report->records++;
  o->batch++;
  o->batch_bytes += rec.id.len + rec.metadata.len + change.document.len + change.dim * sizeof(float);
  return LODE_OK;
}

static lode_status salvage_begin_batch(salvage_output *o, lode_error *err) {
  o->batch = o->batch_bytes = 0;
  return o->tx ? LODE_OK : store_tx_begin(o->db, STORE_TX_WRITE, &o->tx, err);
}

static lode_status salvage_end_batch(salvage_output *o, lode_error *err) {
  store_tx *tx = o->tx;
  if (!tx) return LODE_OK;
  if (o->cid) TRY(store_coll_save(tx, &o->coll, err));
  o->tx = NULL;
  return store_tx_commit(tx, err);
}

/* Records of dropped collections are not written, and are no loss. */
static bool salvage_is_dropped(const salvage_job *s, int64_t cid) {
  const salvage_coll *c = salvage_find_coll(s, cid);
  return c && c->dropped;
}

static lode_status salvage_write_records(salvage_output *o, lode_error *err) {
  salvage_job *s = o->s;
  for (size_t i = 0; i < s->records.n; i++) {
    if (i % 64 == 0) TRY(err_progress(s->progress, "writing records", i, s->records.n, err));
    if (salvage_is_dropped(s, store_key_cid(s->records.items[i].key))) continue;
    if (!o->tx) TRY(salvage_begin_batch(o, err));
    TRY(salvage_write_record(o, &s->records.items[i], err));
    if (o->batch >= SALVAGE_BATCH_RECORDS || o->batch_bytes >= SALVAGE_BATCH_BYTES) TRY(salvage_end_batch(o, err));
  }
  return salvage_end_batch(o, err);
}

static lode_status salvage_write_empty_colls(salvage_output *o, lode_error *err) {
  salvage_job *s = o->s;
  for (size_t c = 0, r = 0; c < s->n_colls; c++) {
    int64_t cid = s->colls[c].coll.cid;
    while (r < s->records.n && store_key_cid(s->records.items[r].key) < cid) r++;
    if (s->colls[c].dropped || (r < s->records.n && store_key_cid(s->records.items[r].key) == cid)) continue;
    TRY(salvage_begin_batch(o, err));
    if (o->cid) TRY(store_coll_save(o->tx, &o->coll, err));
    TRY(salvage_open_collection(o, cid, err));
  }
  return salvage_end_batch(o, err);
}

static lode_status salvage_write_store(salvage_job *s, const char *folder, lode_error *err) {
  lode_status st;
  salvage_output o = {.s = s};
  lode_open_options options = {.create = true, .page_bytes = s->pages.src.page_bytes};
  mem_arena_init(&o.arena, 0);
  TRY_GOTO(store_db_open(folder, &options, &o.db, err));
  TRY_GOTO(salvage_write_records(&o, err));
  TRY_GOTO(salvage_write_empty_colls(&o, err));
done:
  store_tx_rollback(o.tx);
  store_db_close(o.db);
  mem_arena_release(&o.arena);
  strbuf_release(&o.document);
  strbuf_release(&o.vector);
  mem_free(o.floats);
  return st;
}

/* ---- Paths ---- */

/* `from` is a store's folder or the database file itself. It is given by the user, and may be a link. */
static lode_status salvage_source_file(const char *from, char **file, lode_error *err) {
  struct stat sb;
  char *resolved = NULL;
  *file = NULL;
  if (OS_RETRY(os_api->stat(from, &sb)) != 0)
    return errno == ENOENT || errno == ENOTDIR ? err_set(err, LODE_NOT_FOUND, "there is nothing at %s", from)
                                               : err_errno(err, errno, from);
  TRY(beneath_resolve(from, &resolved, err));
  *file = S_ISDIR(sb.st_mode) ? store_path_join(resolved, STOREFILE_DB) : resolved;
  if (*file != resolved) mem_free(resolved);
  return *file ? LODE_OK : err_nomem(err);
}

static lode_status salvage_check_target(const char *to, lode_error *err) {
  struct stat sb;
  if (OS_RETRY(os_api->stat(to, &sb)) != 0) return errno == ENOENT ? LODE_OK : err_errno(err, errno, to);
  os_kind kind;
  int errnum = 0;
  os_dir *folder = S_ISDIR(sb.st_mode) ? os_dir_open(to) : NULL;
  bool empty = folder && !os_dir_next_kind(folder, &kind, &errnum) && !errnum;
  os_dir_close(folder);
  if (errnum) return err_errno(err, errnum, to);
  return empty ? LODE_OK : err_set(err, LODE_EXISTS, "%s exists already: name a new folder for what is salvaged", to);
}

static void salvage_remove_partial(const char *folder) {
  (void)!storefile_clear(folder, STOREFILE_DATA, NULL, NULL, NULL);
  (void)os_api->rmdir(folder);
}

/* Renames the new store to `to` durably; on failure nothing remains there. */
static lode_status salvage_publish(const char *partial, const char *to, lode_error *err) {
  if (OS_RETRY(os_api->rename(partial, to)) != 0)
    return errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR
               ? err_set(err, LODE_EXISTS, "%s exists already: name a new folder for what is salvaged", to)
               : err_errno(err, errno, to);
  lode_status st = os_sync_parent_dir(to, err);
  if (st != LODE_OK) (void)os_api->rename(to, partial);
  return st;
}

static lode_status salvage_to(salvage_job *s, const char *to, lode_error *err) {
  strbuf partial = {0};
  lode_status st;
  size_t len = strlen(to);
  while (len > 1 && to[len - 1] == '/') len--;
  strbuf_add(&partial, to, len);
  strbuf_addf(&partial, ".salvage-%016llx", (unsigned long long)rand_u64());
  strbuf_addch(&partial, 0);
  st = partial.failed ? err_nomem(err) : salvage_write_store(s, partial.data, err);
  if (st == LODE_OK) st = salvage_publish(partial.data, to, err);
  if (st != LODE_OK && !partial.failed) salvage_remove_partial(partial.data);
  strbuf_release(&partial);
  return st;
}

static void salvage_release(salvage_job *s) {
  vfs_pages_close(&s->pages);
  mem_free(s->page);
  strbuf_release(&s->payload);
  mem_arena_release(&s->arena);
  mem_free(s->records.items);
  mem_free(s->documents.items);
  mem_free(s->vectors.items);
  mem_free(s->dead.items);
  mem_free(s->lost.items);
  mem_free(s->named.items);
  mem_free(s->colls);
  mem_free(s->keys);
  json_release(&s->json);
}

lode_status salvage_store(const char *from, const char *to, lode_damage_fn *lost, void *ctx, lode_progress progress,
                          lode_salvage_report *report, lode_error *err) {
  lode_status st;
  lode_salvage_report own;
  lode_error foreign;
  char *file = NULL;
  if (!report) report = &own;
  *report = (lode_salvage_report){0};
  salvage_job s = {.pages = VFS_PAGES_NONE, .on_loss = lost, .ctx = ctx, .progress = progress, .report = report};
  mem_arena_init(&s.arena, 0);
  TRY_GOTO(salvage_source_file(from, &file, err));
  TRY_GOTO(salvage_check_target(to, err));
  TRY_GOTO(vfs_pages_open(file, &s.pages, err));
  if (s.pages.format > STORE_FORMAT) { /* its rows may have another meaning */
    st = err_set(err, LODE_TOO_NEW, "%s has format %u, and this Lode knows formats up to %u; use a newer Lode", file,
                 s.pages.format, STORE_FORMAT);
    goto done;
  }
  s.page = mem_alloc(s.pages.src.page_bytes);
  if (!s.page) {
    st = err_nomem(err);
    goto done;
  }
  if (s.pages.declared > s.pages.src.pages)
    salvage_report_loss(&s, "file", 0, (lode_str){NULL, 0}, "the file is cut short: %u of %u pages are there",
                        s.pages.src.pages, s.pages.declared);
  if (store_schema_is_foreign(&s.pages, file, &foreign))
    salvage_report_loss(&s, "schema", 0, (lode_str){NULL, 0}, "%s", foreign.text);
  TRY_GOTO(salvage_scan(&s, err));
  TRY_GOTO(salvage_to(&s, to, err));
done:
  mem_free(file);
  salvage_release(&s);
  if (st != LODE_OK) *report = (lode_salvage_report){0};
  return st;
}
