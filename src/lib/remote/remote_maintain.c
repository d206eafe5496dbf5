/* SPDX-License-Identifier: Apache-2.0 */
/* remote_maintain.c - statistics, verification, and the operations that a cluster does not support. */
#include "remote/remote_select.h"

#include "os/os.h"

/* ---- Unsupported operations ---- */

static lode_status remote_refuse(lode_error *err, const char *what, const char *instead) {
  err_clear(err);
  return err_set(err, LODE_UNSUPPORTED, "a store on a cluster has no %s: %s", what, instead);
}

static lode_status remote_store_is_writable(const remote_store *s, lode_error *err) {
  err_clear(err);
  return s->head.options->read_only
             ? err_set(err, LODE_READONLY, "the store is open for reading only: open it without read_only to write")
             : LODE_OK;
}

lode_status remote_collections_replace(lode_store *head, const lode_replacement *pairs, size_t n, lode_error *err) {
  (void)head;
  (void)pairs;
  (void)n;
  return remote_refuse(err, "switch of several collections at once", "drop and rename them one by one");
}

lode_status remote_begin(lode_store *head, lode_txn **txn, lode_error *err) {
  remote_store *s = remote_store_of(head);
  *txn = NULL;
  TRY(remote_store_is_writable(s, err));
  return remote_refuse(err, "transactions of several operations",
                       "write record by record, each is whole or absent; writes may be repeated");
}

lode_status remote_commit(lode_txn *head, lode_error *err) {
  (void)head;
  return remote_refuse(err, "transactions of several operations", "see lode_begin");
}

void remote_rollback(lode_txn *head) { (void)head; }

lode_status remote_backup(lode_store *head, const char *file, lode_progress progress, lode_error *err) {
  (void)head, (void)file, (void)progress;
  return remote_refuse(err, "backup to one file at one moment",
                       "use Qdrant's snapshots, or `lode db pull` into a store of this machine");
}

lode_status remote_compact(lode_store *head, lode_progress progress, lode_error *err) {
  (void)head, (void)progress;
  return remote_refuse(err, "compaction on demand",
                       "Qdrant's optimizers rewrite segments that hold much that is deleted");
}

lode_status remote_rebuild_unreadable(lode_store *head, lode_progress progress, lode_error *err) {
  (void)head, (void)progress;
  return remote_refuse(err, "rebuilding what cannot be read",
                       "a node of Qdrant with a bad disk is replaced, and its replicas fill the new one");
}

/* ---- Statistics ---- */

lode_status remote_collection_stats(lode_collection *head, lode_stats *stats, lode_error *err) {
  remote_collection *c = remote_collection_of(head);
  remote_entry k;
  mem_arena arena;
  lode_stats found = {.collections = 1};
  err_clear(err);
  *stats = (lode_stats){0};
  mem_arena_init(&arena, 0);
  lode_status st = remote_entry_of(c, true, &arena, &k, err);
  if (st == LODE_OK) st = remote_count_points(c->store, &k, &found.records, &found.pending, err);
  if (st == LODE_OK) *stats = found;
  mem_arena_release(&arena);
  return st;
}

lode_status remote_store_stats(lode_store *head, lode_stats *stats, lode_error *err) {
  lode_collection_list *list;
  lode_stats found = {0};
  *stats = found;
  TRY(remote_collections(head, &list, err));
  found.collections = lode_collection_list_count(list);
  for (size_t i = 0; i < found.collections; i++) {
    found.records += lode_collection_list_at(list, i)->records;
    found.pending += lode_collection_list_at(list, i)->pending;
  }
  lode_collection_list_free(list);
  *stats = found;
  return LODE_OK;
}

lode_status remote_store_id(lode_store *head, uint64_t *id, lode_error *err) {
  (void)head;
  *id = 0;
  return remote_refuse(err, "id of its own", "its address names it");
}

/* ---- Waiting for Qdrant's optimizers ---- */

/* *green: Qdrant reports that the optimizers have nothing left to do. */
static lode_status qdrant_is_green(remote_store *s, const lode_collection_info *info, bool *green, lode_error *err) {
  remote_collection *c;
  remote_entry k;
  remote_call call = {0};
  mem_arena arena;
  TRY(remote_handle_open(s, info->name, NULL, &c, err));
  mem_arena_init(&arena, 0);
  lode_status st = remote_entry_of(c, false, &arena, &k, err);
  if (st == LODE_OK) {
    remote_generation_path(&call, s, &k, "%s", "");
    st = remote_call_send(s, "GET", &call, err);
  }
  uint32_t status = st == LODE_OK && call.answer.nodes[call.result].type == JSON_NODE_OBJECT
                        ? json_get(&call.answer, call.result, STR_LIT("status"))
                        : 0;
  *green = status && call.answer.nodes[status].type == JSON_NODE_STRING &&
           str_eq(call.answer.nodes[status].u.s, STR_LIT("green"));
  remote_call_release(&call);
  mem_arena_release(&arena);
  remote_handle_close(c);
  return st;
}

lode_status remote_optimize(lode_store *head, lode_progress progress, lode_error *err) {
  remote_store *s = remote_store_of(head);
  lode_collection_list *list;
  lode_status st = LODE_OK;
  TRY(remote_store_is_writable(s, err));
  TRY(remote_collections(head, &list, err));
  size_t n = lode_collection_list_count(list);
  for (size_t i = 0; i < n && st == LODE_OK; i++) {
    bool green = false;
    for (;;) {
      st = qdrant_is_green(s, lode_collection_list_at(list, i), &green, err);
      if (st == LODE_NOT_FOUND) st = LODE_OK, green = true; /* dropped meanwhile */
      if (st != LODE_OK || green) break;
      if (!err_go_on(progress, "optimizing", i, n)) {
        st = err_set(err, LODE_CANCELLED, "cancelled: the cluster goes on by itself");
        break;
      }
      os_api->sleep_us(200000);
    }
  }
  lode_collection_list_free(list);
  return st;
}

/* ---- Verification ---- */

typedef struct remote_verify_job {
  lode_damage_fn *found;
  void *ctx;
  lode_progress progress;
  uint64_t done, damaged;
} remote_verify_job;

static void remote_verify_report(remote_verify_job *v, lode_str collection, lode_str id, const char *detail) {
  v->damaged++;
  if (v->found)
    v->found(v->ctx, &(lode_damage){.what = "record", .collection = collection, .id = id, .detail = detail});
}

static lode_status remote_verify_collection(remote_store *s, const lode_collection_info *info, remote_verify_job *v,
                                            lode_error *err) {
  static const lode_selection everything;
  remote_select select = {0};
  remote_entry k;
  mem_arena arena;
  remote_scroll scroll = {0};
  remote_collection *c = NULL;
  lode_status st;
  uint64_t records = 0, before = 0, after = 0;
  bool more = true;
  mem_arena_init(&arena, 0);
  TRY_GOTO(remote_handle_open(s, info->name, NULL, &c, err));
  TRY_GOTO(remote_entry_of(c, false, &arena, &k, err));
  TRY_GOTO(remote_select_init(&select, c, &everything, err));
  TRY_GOTO(remote_count_points(s, &k, &before, NULL, err));
  remote_scroll_init(&scroll, &select, &k, LODE_ALL);
  while (more) {
    remote_point p;
    TRY_GOTO(remote_scroll_next(&scroll, &p, &more, err));
    if (!more) break;
    records++;
    if (remote_point_crc(&p) != p.crc)
      remote_verify_report(v, info->name, p.id, "its checksum is not that of what it holds");
    else if (p.pending != !p.vector)
      remote_verify_report(v, info->name, p.id, "it is marked as having a vector and has none, or the other way round");
    if (++v->done % 1000 == 0) TRY_GOTO(err_progress(v->progress, "checking records", v->done, 0, err));
  }
  TRY_GOTO(remote_count_points(s, &k, &after, NULL, err));
  if (before == after && records != before)
    remote_verify_report(v, info->name, (lode_str){0}, "the cluster counts other records than it lists");
done:
  remote_scroll_release(&scroll);
  remote_select_release(&select);
  mem_arena_release(&arena);
  remote_handle_close(c);
  return st;
}

lode_status remote_verify(lode_store *head, lode_damage_fn *found, void *ctx, lode_progress progress, lode_error *err) {
  remote_store *s = remote_store_of(head);
  remote_verify_job v = {.found = found, .ctx = ctx, .progress = progress};
  lode_collection_list *list;
  lode_status st = LODE_OK;
  err_clear(err);
  TRY(remote_collections(head, &list, err));
  for (size_t i = 0; i < lode_collection_list_count(list) && st == LODE_OK; i++)
    st = remote_verify_collection(s, lode_collection_list_at(list, i), &v, err);
  lode_collection_list_free(list);
  if (st == LODE_OK && v.damaged)
    st = err_set(err, LODE_CORRUPT, "%llu records are damaged", (unsigned long long)v.damaged);
  return st;
}
