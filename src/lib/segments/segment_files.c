/* SPDX-License-Identifier: Apache-2.0 */
/* segment_files.c - the files of the vector index, opened for reading.
 *
 * A file is opened in the transaction that read its row; from then on its descriptor is used, whatever happens to the
 * name. Nothing in it is trusted: lengths and checksums are checked when bytes are first needed (index/segment.h). A
 * file that turns out to be damaged becomes a suspect: this handle reads its vectors from the database file, and the
 * builder (segment_build.c), if this handle may write, checks it again and quarantines it. A failed read proves no
 * damage: the database file is used meanwhile, and the file is tried again.
 */
#include "segments/segment_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

void segments_file_name(char name[SEGMENTS_NAME_MAX], uint64_t id, const char *ending) {
  snprintf(name, SEGMENTS_NAME_MAX, STOREFILE_SEGMENTS_DIR "/%016" PRIx64 "%s", id, ending);
}

char *segments_file_path(const segments_store *segments, uint64_t id, const char *ending) {
  strbuf path = {0};
  strbuf_addf(&path, "%s/%s/%016" PRIx64 "%s", store_db_folder(segments->db), STOREFILE_SEGMENTS_DIR, id, ending);
  strbuf_addch(&path, 0);
  if (path.failed) strbuf_release(&path);
  return path.data;
}

void segments_init(segments_store *segments, store_db *db, void (*wake)(void *ctx), void *wake_ctx) {
  *segments = (segments_store){.db = db, .options = store_db_options(db), .wake = wake, .wake_ctx = wake_ctx};
  (void)pthread_mutex_init(&segments->lock, NULL);
}

void segments_release(segments_store *segments) { (void)pthread_mutex_destroy(&segments->lock); }

void segments_after_fork(segments_store *segments) {
  bool sane = pthread_mutex_trylock(&segments->lock) == 0;
  (void)pthread_mutex_init(&segments->lock, NULL);
  atomic_store(&segments->progress.total, 0);
  if (!sane) atomic_store(&segments->n_suspects, 0); /* may be half changed; they will be found again */
}

/* ---- Suspects ---- */

#define SUSPECT_RETRY_NS UINT64_C(5000000000)

static size_t suspect_find(const segments_store *segments, uint64_t id) {
  size_t i = 0;
  while (i < segments->n_suspects && segments->suspects[i] != id) i++;
  return i;
}

static void suspect_remove(segments_store *segments, size_t i) {
  if (!INVARIANT(i < segments->n_suspects && os_mutex_is_locked(&segments->lock))) return;
  segments->n_suspects--;
  memmove(segments->suspects + i, segments->suspects + i + 1, (segments->n_suspects - i) * sizeof *segments->suspects);
  memmove(segments->suspect_expires_ns + i, segments->suspect_expires_ns + i + 1,
          (segments->n_suspects - i) * sizeof *segments->suspect_expires_ns);
}

bool segments_is_suspect(segments_store *segments, uint64_t id) {
  if (atomic_load_explicit(&segments->n_suspects, memory_order_relaxed) == 0) return false;
  pthread_mutex_lock(&segments->lock);
  size_t i = suspect_find(segments, id);
  bool found = i < segments->n_suspects;
  if (found && segments->suspect_expires_ns[i] && os_api->now_ns() > segments->suspect_expires_ns[i]) {
    suspect_remove(segments, i);
    found = false;
  }
  pthread_mutex_unlock(&segments->lock);
  return found;
}

typedef enum suspect_reason { SUSPECT_MISSING, SUSPECT_UNREADABLE, SUSPECT_DAMAGED } suspect_reason;

static void suspect_add(segments_store *segments, uint64_t id, suspect_reason what, const char *why) {
  pthread_mutex_lock(&segments->lock);
  size_t i = suspect_find(segments, id);
  bool is_new = i == segments->n_suspects;
  /* the oldest: it will be found again */
  if (is_new && segments->n_suspects == SEGMENTS_MAX_SUSPECTS) suspect_remove(segments, 0);
  if (is_new) i = segments->n_suspects++;
  segments->suspects[i] = id;
  segments->suspect_expires_ns[i] = what == SUSPECT_UNREADABLE ? os_api->now_ns() + SUSPECT_RETRY_NS : 0;
  pthread_mutex_unlock(&segments->lock);
  if (is_new) segments->wake(segments->wake_ctx);
  if (!is_new || what == SUSPECT_MISSING) return; /* removed, or never there, as after a restore: no damage */
  if (what == SUSPECT_DAMAGED) atomic_fetch_add(&segments->damaged, 1);
  store_db_log(segments->db,
               "segment %016" PRIx64 " of the vector index cannot be used (%s): its records are read one by one "
               "until it %s",
               id, why, what == SUSPECT_DAMAGED ? "is rebuilt" : "can be read again");
}

void segments_suspect(segments_store *segments, uint64_t id, lode_status st, const char *why) {
  bool damaged = st == LODE_CORRUPT || st == LODE_REFUSED || st == LODE_TOO_NEW;
  suspect_add(segments, id, damaged ? SUSPECT_DAMAGED : SUSPECT_UNREADABLE, why);
}
void segments_mark_missing(segments_store *segments, uint64_t id) { suspect_add(segments, id, SUSPECT_MISSING, ""); }

void segments_clear_suspect(segments_store *segments, uint64_t id) {
  pthread_mutex_lock(&segments->lock);
  size_t i = suspect_find(segments, id);
  if (i < segments->n_suspects) suspect_remove(segments, i);
  pthread_mutex_unlock(&segments->lock);
}

void segments_note_moved(const segments_file *seg, uint64_t times) {
  uint64_t none = 0;
  if (atomic_load_explicit(&seg->segment->moved, memory_order_relaxed) < times) return;
  if (atomic_compare_exchange_strong(&seg->segments->moved, &none, seg->row.id))
    seg->segments->wake(seg->segments->wake_ctx);
}

/* ---- Files ---- */

/* Retries once: a failure may be transient. */
static lode_status segfile_read_bytes(void *ctx, uint64_t offset, void *buf, size_t n, lode_error *err) {
  const segments_file *seg = ctx;
  size_t got = 0;
  lode_status st = os_read_full(seg->fd, buf, n, offset, &got, err);
  if (st == LODE_IO) st = os_read_full(seg->fd, buf, n, offset, &got, err);
  if (st != LODE_OK) return st;
  return got == n ? LODE_OK : err_set(err, LODE_CORRUPT, "a segment of the vector index is cut short");
}

/* The bytes are whatever the file has there by now: the index checks them. */
static lode_status segfile_read_place(void *ctx, uint64_t offset, void *buf, size_t n, lode_error *err) {
  const segments_file *seg = ctx;
  size_t got = 0;
  if (seg->db_fd < 0) return err_set(err, LODE_IO, "the database file is not open");
  TRY(os_read_full(seg->db_fd, buf, n, offset, &got, err));
  return got == n ? LODE_OK : err_set(err, LODE_CORRUPT, "the database file ends before");
}

static void segfile_free(segments_file *seg) {
  index_segment_close(seg->segment);
  if (seg->fd >= 0) (void)os_api->close(seg->fd);
  if (seg->db_fd >= 0) (void)os_api->close(seg->db_fd);
  mem_free(seg);
}

segments_file *segments_file_ref(segments_file *seg) {
  if (seg) mem_ref(&seg->refs);
  return seg;
}

void segments_file_release(segments_file *seg) {
  if (seg && mem_unref(&seg->refs)) segfile_free(seg);
}

static lode_status segfile_open(segments_file *seg, lode_error *err) {
  struct stat sb;
  char name[SEGMENTS_NAME_MAX];
  segments_file_name(name, seg->row.id, ".seg");
  seg->fd = beneath_open(store_db_folder(seg->segments->db), name, O_RDONLY, 0);
  if (seg->fd < 0 && (errno == EMFILE || errno == ENFILE)) return err_set(err, LODE_LIMIT, "too many files are open");
  if (seg->fd < 0 && errno == EISDIR) return err_set(err, LODE_CORRUPT, "there is a folder in its place");
  if (seg->fd < 0) return err_errno(err, errno, name);
  if (OS_RETRY(os_api->fstat(seg->fd, &sb)) != 0) return err_errno(err, errno, "a segment of the vector index");
  if ((uint64_t)sb.st_size != seg->row.bytes)
    return err_set(err, LODE_CORRUPT, "the file has %lld bytes instead of %llu", (long long)sb.st_size,
                   (unsigned long long)seg->row.bytes);
  index_segment_source source = {.id = seg->row.id,
                                 .bytes = seg->row.bytes,
                                 .table_crc = seg->row.table_crc,
                                 .read = segfile_read_bytes,
                                 .read_place = segfile_read_place,
                                 .ctx = seg};
  TRY(index_segment_open(&source, &seg->segment, err));
  const index_segment_info *info = &seg->segment->info;
  if (info->n != seg->row.rows || (uint32_t)info->kind != seg->row.kind)
    return err_set(err, LODE_CORRUPT, "the file is not what the manifest says");
  if (info->placed) seg->db_fd = beneath_open(store_db_folder(seg->segments->db), STOREFILE_DB, O_RDONLY, 0);
  if (info->placed && seg->db_fd < 0 && (errno == EMFILE || errno == ENFILE))
    return err_set(err, LODE_LIMIT, "too many files are open");
  const lode_open_options *o = seg->segments->options;
  const index_segment *s = seg->segment;
  uint64_t wanted = index_segment_section_bytes(s);
  return o->preload && wanted <= o->memory_bytes / 2 ? index_segment_preload(seg->segment, err) : LODE_OK;
}

bool segments_is_missing(const segments_store *segments, uint64_t id) {
  struct stat sb;
  char name[SEGMENTS_NAME_MAX];
  segments_file_name(name, id, ".seg");
  return beneath_lstat(store_db_folder(segments->db), name, &sb) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

lode_status segments_open_checked(segments_store *segments, const store_manifest_row *row, segments_file **out,
                                  lode_error *err) {
  *out = NULL;
  segments_file *seg = mem_calloc(1, sizeof *seg);
  if (!seg) return err_nomem(err);
  atomic_init(&seg->refs, 1);
  seg->segments = segments;
  seg->row = *row;
  seg->fd = seg->db_fd = -1;
  lode_status st = segfile_open(seg, err);
  if (st == LODE_OK)
    *out = seg;
  else
    segfile_free(seg);
  return st;
}

lode_status segments_open(segments_store *segments, const store_manifest_row *row, segments_file **out,
                          lode_error *err) {
  lode_error why;
  *out = NULL;
  if (!row->proven || segments_is_suspect(segments, row->id)) return LODE_OK;
  err_clear(&why);
  lode_status st = segments_open_checked(segments, row, out, &why);
  if (st == LODE_OK) return LODE_OK;
  if (st == LODE_NOMEM) return err_nomem(err);
  if (segments_is_missing(segments, row->id))
    segments_mark_missing(segments, row->id);
  else
    segments_suspect(segments, row->id, st, why.text);
  return LODE_OK;
}

/* ---- Slots ---- */

segments_slots *segments_slots_new(uint32_t rows, bool set) {
  size_t words = (size_t)rows / 64 + 1;
  segments_slots *s = mem_alloc(sizeof *s + words * sizeof *s->bits);
  if (!s) return NULL;
  atomic_init(&s->refs, 1);
  s->words = words;
  s->n = set ? rows : 0;
  memset(s->bits, set ? 0xFF : 0, words * sizeof *s->bits);
  if (set) s->bits[words - 1] = ((uint64_t)1 << (rows % 64)) - 1;
  return s;
}

segments_slots *segments_slots_ref(segments_slots *s) {
  if (s) mem_ref(&s->refs);
  return s;
}

void segments_slots_release(segments_slots *s) {
  if (s && mem_unref(&s->refs)) mem_free(s);
}
