/* SPDX-License-Identifier: Apache-2.0 */
/* segment_sweep.c - removes leftovers and quarantines damaged files in the directory of segments.
 *
 * All under the builder's lock, so that nobody else makes or publishes a segment meanwhile:
 *   - rows of unfinished segments, whose builder must have died, and rows with a wrong checksum, are removed
 *   - files that no row names are unlinked: they were never published, or were replaced
 *   - the file and row of a suspect are read again. If it is damaged, the file is renamed to NAME.quarantine-TIME and
 *     then its row removed, in this order: a row without a file is harmless. One that cannot be read (EIO) stays,
 *     unless the user asked for it to be rebuilt.
 */
#include "segments/segment_build.h"

#include <inttypes.h>

/* ---- Rows and files ---- */

static lode_status manifest_add_row(void *ctx, const store_manifest_row *row, lode_error *err) {
  segments_manifest *rows = ctx;
  if (!mem_grow(&rows->v, &rows->cap, rows->n + 1, sizeof *rows->v)) return err_nomem(err);
  rows->v[rows->n++] = *row;
  return LODE_OK;
}

lode_status segments_manifest_load(segments_store *segments, int64_t cid, segments_manifest *rows, lode_error *err) {
  store_tx *tx;
  *rows = (segments_manifest){0};
  TRY(store_tx_begin(segments->db, STORE_TX_READ, &tx, err));
  lode_status st = store_manifest_each(tx, cid, manifest_add_row, rows, err);
  store_tx_rollback(tx);
  if (st != LODE_OK) {
    mem_free(rows->v);
    *rows = (segments_manifest){0};
  }
  return st;
}

lode_status segments_manifest_remove(segments_store *segments, uint64_t id, lode_error *err) {
  store_tx *tx;
  TRY(store_tx_begin(segments->db, STORE_TX_WRITE, &tx, err));
  lode_status st = store_manifest_remove(tx, id, err);
  if (st == LODE_OK) return store_tx_commit(tx, err);
  store_tx_rollback(tx);
  return st;
}

void segments_file_unlink(segments_store *segments, uint64_t id, const char *ending) {
  char name[SEGMENTS_NAME_MAX];
  segments_file_name(name, id, ending);
  (void)beneath_unlink(store_db_folder(segments->db), name);
}

static const store_manifest_row *manifest_find_row(const segments_manifest *rows, uint64_t id) {
  for (size_t i = 0; i < rows->n; i++)
    if (rows->v[i].id == id) return &rows->v[i];
  return NULL;
}

static void sweep_files(segments_store *segments, const segments_manifest *rows) {
  const char *name, *ending;
  uint64_t id;
  os_dir *folder = beneath_list(store_db_folder(segments->db), STOREFILE_SEGMENTS_DIR);
  while (folder && (name = os_dir_next(folder)) != NULL) {
    if (!storefile_parse_segment(name, &id, &ending)) continue;
    const store_manifest_row *row = manifest_find_row(rows, id);
    if (row && row->bytes && strcmp(ending, ".seg") == 0) continue;
    segments_file_unlink(segments, id, ending);
  }
  if (folder) os_dir_close(folder);
}

lode_status segments_sweep(segments_store *segments, lode_error *err) {
  segments_manifest rows;
  lode_status st = LODE_OK;
  TRY(segments_manifest_load(segments, 0, &rows, err));
  for (size_t i = 0; i < rows.n && st == LODE_OK; i++) {
    if (rows.v[i].proven && rows.v[i].bytes) continue;
    st = segments_manifest_remove(segments, rows.v[i].id, err);
    rows.v[i].bytes = 0;
  }
  if (st == LODE_OK) sweep_files(segments, &rows);
  mem_free(rows.v);
  return st;
}

void segments_sweep_missing(segments_store *segments) {
  segments_manifest rows;
  if (segments_manifest_load(segments, 0, &rows, NULL) != LODE_OK) return;
  for (size_t i = 0; i < rows.n; i++)
    if (rows.v[i].proven && rows.v[i].bytes && segments_is_missing(segments, rows.v[i].id))
      segments_mark_missing(segments, rows.v[i].id);
  mem_free(rows.v);
}

/* ---- Suspects ---- */

/* Reads and checks everything in the file. *missing: there is no file. */
static lode_status sweep_check_file(segments_store *segments, const store_manifest_row *row, bool *missing,
                                    lode_error *err) {
  segments_file *seg = NULL;
  index_graph_report report;
  *missing = segments_is_missing(segments, row->id);
  if (*missing) return err_set(err, LODE_CORRUPT, "the file is missing");
  lode_status st = segments_open_checked(segments, row, &seg, err);
  if (st == LODE_OK) st = index_segment_verify(seg->segment, &report, err);
  segments_file_release(seg);
  return st;
}

static lode_status sweep_quarantine(segments_store *segments, const store_manifest_row *row, const char *why,
                                    lode_error *err) {
  lode_status st = LODE_OK;
  char *path = segments_file_path(segments, row->id, ".seg"), name[SEGMENTS_NAME_MAX];
  segments_file_name(name, row->id, ".seg");
  if (!path)
    st = err_nomem(err);
  else if (beneath_set_aside(store_db_folder(segments->db), name) != 0 && errno != ENOENT)
    st = err_errno(err, errno, path);
  else
    st = beneath_sync_dir(store_db_folder(segments->db), name, err);
  if (st == LODE_OK)
    store_db_log(segments->db,
                 "segment %016" PRIx64 " of the vector index cannot be used (%s): set aside, it will be rebuilt",
                 row->id, why);
  mem_free(path);
  return st;
}

static lode_status sweep_examine(segments_store *segments, uint64_t id, bool unreadable, lode_error *err) {
  segments_manifest rows;
  lode_error why;
  bool missing = false;
  TRY(segments_manifest_load(segments, 0, &rows, err));
  const store_manifest_row *row = manifest_find_row(&rows, id);
  lode_status st = LODE_OK;
  err_clear(&why);
  if (row) st = sweep_check_file(segments, row, &missing, &why);
  /* not the file's fault, or a version that we cannot check */
  if (st == LODE_NOMEM || st == LODE_LIMIT || st == LODE_TOO_NEW || (st == LODE_IO && !unreadable)) {
    mem_free(rows.v);
    return st == LODE_NOMEM ? err_nomem(err) : LODE_OK;
  }
  if (row && st != LODE_OK) {
    st = missing ? LODE_OK : sweep_quarantine(segments, row, why.text, err);
    if (st == LODE_OK) st = segments_manifest_remove(segments, id, err);
  }
  if (st == LODE_OK) segments_clear_suspect(segments, id);
  mem_free(rows.v);
  return st;
}

lode_status segments_sweep_suspects(segments_store *segments, bool unreadable, lode_error *err) {
  uint64_t ids[SEGMENTS_MAX_SUSPECTS];
  pthread_mutex_lock(&segments->lock);
  size_t n = segments->n_suspects;
  memcpy(ids, segments->suspects, n * sizeof *ids);
  pthread_mutex_unlock(&segments->lock);
  for (size_t i = 0; i < n; i++) TRY(sweep_examine(segments, ids[i], unreadable, err));
  return LODE_OK;
}

/* ---- All files ---- */

enum { SWEEP_BLOCK_ROWS = 64, SWEEP_MOVED_PART = 4 };

/* Verifies checksums only, which is fast. */
static lode_status sweep_read_all(segments_file *seg, const segments_build_request *request, lode_error *err) {
  uint32_t n = seg->row.rows, dim = seg->segment->info.dim;
  index_segment_record records[SWEEP_BLOCK_ROWS];
  float *rows = mem_calloc((size_t)SWEEP_BLOCK_ROWS * dim, sizeof *rows);
  if (!rows) return err_nomem(err);
  lode_status st = index_segment_preload(seg->segment, err);
  for (uint32_t i = 0; i < n && st == LODE_OK; i += SWEEP_BLOCK_ROWS) {
    if (i % 65536 == 0 && segments_build_is_stopped(request))
      st = err_set(err, LODE_CANCELLED, "cancelled");
    else
      st = index_segment_get_block(seg->segment, i, n - i < SWEEP_BLOCK_ROWS ? n - i : SWEEP_BLOCK_ROWS, rows, records,
                                   NULL, err);
  }
  mem_free(rows);
  if (st == LODE_OK) segments_note_moved(seg, n / SWEEP_MOVED_PART + 1);
  return st;
}

lode_status segments_sweep_check_files(segments_store *segments, const segments_build_request *request,
                                       lode_error *err) {
  segments_manifest rows;
  lode_status st = LODE_OK;
  TRY(segments_manifest_load(segments, 0, &rows, err));
  for (size_t i = 0; i < rows.n && st == LODE_OK; i++) {
    segments_file *seg = NULL;
    lode_error why;
    if (!rows.v[i].proven || rows.v[i].bytes == 0) continue;
    st = segments_open(segments, &rows.v[i], &seg, err);
    lode_status found = !seg ? LODE_CORRUPT : sweep_read_all(seg, request, &why);
    segments_file_release(seg);
    if (st != LODE_OK || found == LODE_OK) continue;
    if (found == LODE_NOMEM)
      st = err_nomem(err);
    else if (found == LODE_CANCELLED)
      st = err_set(err, LODE_CANCELLED, "cancelled");
    else {
      if (seg) segments_suspect(segments, rows.v[i].id, found, why.text);
      /* at once: the list of suspects is bounded, and those that cannot be read leave it after a while */
      st = sweep_examine(segments, rows.v[i].id, request->unreadable, err);
    }
  }
  mem_free(rows.v);
  return st;
}
