/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_pages.c - pages of an SQLite file, taking its journal or write-ahead log into account. The contract is in
 * sqlite_pages.h; trees and rows are in sqlite_rows.c. */
#include "sqlite/sqlite_internal.h"

#include <errno.h>
#include <fcntl.h>

enum { SQF_SAMPLE_PAGES = 64, SQF_LOCK_TRIES = 40, SQF_LOCK_WAIT_US = 50000 };

/* Returns the number of bytes read; what cannot be read is zeros. */
static size_t sqf_read_at(int fd, void *buf, size_t n, uint64_t off) {
  size_t got = 0;
  if (os_read_full(fd, buf, n, off, &got, NULL) != LODE_OK) got = 0;
  memset((char *)buf + got, 0, n - got);
  return got;
}

static uint64_t sqf_file_size(int fd) {
  struct stat sb;
  return fd >= 0 && OS_RETRY(os_api->fstat(fd, &sb)) == 0 && sb.st_size > 0 ? (uint64_t)sb.st_size : 0;
}

/* ---- Pages ---- */

void sqf_load_page(sqf_file *f, uint32_t number, unsigned char *page) {
  const sqf_image *image = sqf_images_find(&f->images, number);
  if (image)
    (void)sqf_read_at(f->side_fd, page, f->src.page_bytes, image->offset);
  else
    (void)sqf_read_at(f->fd, page, f->src.page_bytes, (uint64_t)(number - 1) * f->src.page_bytes);
}

const unsigned char *sqf_get_page(sqf_file *f, uint32_t number) {
  if (!INVARIANT(number >= 1 && number <= f->src.pages)) number = 1;
  size_t slot = number % SQF_CACHE_PAGES;
  unsigned char *page = f->cache + slot * f->src.page_bytes;
  if (f->cached[slot] != number) {
    sqf_load_page(f, number, page);
    f->cached[slot] = number;
  }
  return page;
}

/* What a row continues on belongs to a tree that was reached. */
static const unsigned char *sqf_overflow_page(void *ctx, uint32_t number) {
  sqf_file *f = ctx;
  f->seen[number / 8] |= (unsigned char)(1u << number % 8);
  return sqf_get_page(f, number);
}

void sqf_note_damage(sqf_file *f, uint32_t number) {
  f->info.damaged_pages++;
  if (number && (!f->info.first_damaged || number < f->info.first_damaged)) f->info.first_damaged = number;
}

/* ---- The rollback journal ---- */

static lode_status sqf_read_journal(sqf_file *f, lode_error *err) {
  unsigned char h[28], *page = f->cache;
  uint64_t size = sqf_file_size(f->side_fd), at = 0, each = (uint64_t)f->src.page_bytes + SQF_JOURNAL_RECORD_EXTRA;
  uint32_t first_pages = 0;
  bool good = true;
  while (good && at + sizeof h <= size) {
    if (sqf_read_at(f->side_fd, h, sizeof h, at) < sizeof h ||
        memcmp(h, sqf_journal_magic, sizeof sqf_journal_magic) != 0)
      break;
    uint32_t records = num_be32(h + 8), nonce = num_be32(h + 12), sector = num_be32(h + 20);
    if (num_be32(h + 24) != f->src.page_bytes || sector < 32 || sector > 65536 || (sector & (sector - 1))) break;
    if (at == 0) first_pages = num_be32(h + 16);
    at += sector;
    uint64_t fit = size > at ? (size - at) / each : 0;
    if (records == UINT32_MAX || records > fit) records = (uint32_t)(fit > UINT32_MAX ? UINT32_MAX : fit);
    for (uint32_t i = 0; i < records && good; i++, at += each) {
      unsigned char word[4], sum[4];
      (void)sqf_read_at(f->side_fd, word, 4, at);
      (void)sqf_read_at(f->side_fd, page, f->src.page_bytes, at + 4);
      (void)sqf_read_at(f->side_fd, sum, 4, at + 4 + f->src.page_bytes);
      uint32_t number = num_be32(word);
      good = number != 0 && num_be32(sum) == sqf_journal_sum(nonce, page, f->src.page_bytes);
      if (good && number <= first_pages && !sqf_images_add(&f->images, number, at + 4)) return err_nomem(err);
    }
    at = (at + sector - 1) / sector * sector;
  }
  if (f->images.n && first_pages) f->src.pages = first_pages; /* ignore pages appended since */
  sqf_images_sort(&f->images, false);
  f->info.journal_pages = (uint32_t)f->images.n;
  return LODE_OK;
}

/* ---- The write-ahead log ---- */

static void sqf_wal_sum(const unsigned char *p, size_t n, bool big, uint32_t s[2]) {
  for (size_t i = 0; i + 8 <= n; i += 8) {
    s[0] += (big ? num_be32(p + i) : num_le32(p + i)) + s[1];
    s[1] += (big ? num_be32(p + i + 4) : num_le32(p + i + 4)) + s[0];
  }
}

static lode_status sqf_read_wal(sqf_file *f, lode_error *err) {
  unsigned char h[32], frame[24], *page = f->cache;
  uint64_t size = sqf_file_size(f->side_fd), at = sizeof h, each = (uint64_t)f->src.page_bytes + sizeof frame;
  uint32_t sum[2] = {0, 0}, committed_pages = 0;
  size_t committed = 0;
  if (sqf_read_at(f->side_fd, h, sizeof h, 0) < sizeof h) return LODE_OK;
  uint32_t magic = num_be32(h);
  if ((magic != 0x377f0682 && magic != 0x377f0683) || num_be32(h + 8) != f->src.page_bytes) return LODE_OK;
  bool big = magic & 1;
  sqf_wal_sum(h, 24, big, sum);
  if (sum[0] != num_be32(h + 24) || sum[1] != num_be32(h + 28)) return LODE_OK;
  for (; at + each <= size; at += each) {
    (void)sqf_read_at(f->side_fd, frame, sizeof frame, at);
    (void)sqf_read_at(f->side_fd, page, f->src.page_bytes, at + sizeof frame);
    uint32_t number = num_be32(frame), after = num_be32(frame + 4);
    sqf_wal_sum(frame, 8, big, sum);
    sqf_wal_sum(page, f->src.page_bytes, big, sum);
    if (number == 0 || memcmp(frame + 8, h + 16, 8) != 0) break;
    if (sum[0] != num_be32(frame + 16) || sum[1] != num_be32(frame + 20)) break;
    if (!sqf_images_add(&f->images, number, at + sizeof frame)) return err_nomem(err);
    if (after) {
      committed = f->images.n;
      committed_pages = after;
    }
  }
  f->images.n = committed;
  if (committed) f->src.pages = committed_pages;
  sqf_images_sort(&f->images, true);
  f->info.wal_pages = (uint32_t)f->images.n;
  return LODE_OK;
}

/* ---- The page size ---- */

/* How many of a sample of pages of that size look like pages of a tree, in 1/1000. */
static uint32_t sqf_score_page_size(const sqf_file *f, uint64_t bytes, uint32_t size) {
  uint64_t pages = bytes / size, step = pages / SQF_SAMPLE_PAGES + 1;
  uint32_t good = 0, tried = 0;
  for (uint64_t i = 1; i < pages; i += step, tried++) {
    unsigned char h[12];
    (void)sqf_read_at(f->fd, h, sizeof h, i * size);
    uint32_t cells = num_be16(h + 3), content = num_be16(h + 5);
    bool type = h[0] == SQF_LEAF_TABLE || h[0] == SQF_INNER_TABLE || h[0] == SQF_LEAF_INDEX || h[0] == SQF_INNER_INDEX;
    good += type && cells <= size / 4 && content <= size && content >= 8 + 2 * cells;
  }
  return tried ? good * 1000 / tried : 0;
}

/* Multiples of the true size score nearly as well, fractions of it do not: takes the smallest size that is nearly the
 * best. */
static uint32_t sqf_guess_page_size(const sqf_file *f, uint64_t bytes) {
  uint32_t score[8] = {0}, best = 0;
  for (int i = 0; i < 8; i++) {
    score[i] = sqf_score_page_size(f, bytes, (uint32_t)SQF_PAGE_MIN << i);
    if (score[i] > best) best = score[i];
  }
  for (int i = 0; i < 8 && best; i++)
    if (score[i] * 10 >= best * 7) return (uint32_t)SQF_PAGE_MIN << i;
  return 4096;
}

/* ---- Opening ---- */

/* As SQLite does it: not while a writer waits for the readers to finish. */
static bool sqf_lock_shared(sqf_file *f) {
  for (int i = 0; i < SQF_LOCK_TRIES; i++) {
    int pending = os_api->lock_held(f->fd, F_RDLCK, SQF_PENDING_BYTE, 1);
    if (pending < 0) return false;
    if (!pending) {
      if (OS_RETRY(os_api->lock(f->fd, F_RDLCK, SQF_SHARED_FIRST, SQF_SHARED_SIZE)) == 0) return true;
      if (errno != EAGAIN && errno != EACCES) return false;
    }
    os_api->sleep_us(SQF_LOCK_WAIT_US);
  }
  return false;
}

static int sqf_open_side(const char *path, const char *suffix) {
  strbuf name = {0};
  strbuf_addf(&name, "%s%s", path, suffix);
  strbuf_addch(&name, 0);
  int fd = name.failed ? -1 : OS_RETRY(os_api->open(name.data, O_RDONLY | O_NONBLOCK, 0));
  strbuf_release(&name);
  if (fd >= 0 && sqf_file_size(fd) < 28) {
    (void)os_api->close(fd);
    fd = -1;
  }
  return fd;
}

static void sqf_take_fingerprint(const sqf_file *f, sqf_fingerprint *fingerprint) {
  struct stat sb;
  memset(fingerprint, 0, sizeof *fingerprint);
  (void)sqf_read_at(f->fd, fingerprint->counters, sizeof fingerprint->counters, 24);
  fingerprint->bytes = sqf_file_size(f->fd);
  if (OS_RETRY(os_api->fstat(f->fd, &sb)) == 0) fingerprint->mtime_ns = os_mtime_ns(&sb);
  if (f->side_fd >= 0) (void)sqf_read_at(f->side_fd, fingerprint->side, sizeof fingerprint->side, 0);
}

static lode_status sqf_prepare(sqf_file *f, const char *path, lode_error *err) {
  unsigned char h[100];
  uint64_t bytes = sqf_file_size(f->fd);
  size_t got = sqf_read_at(f->fd, h, sizeof h, 0);
  if (bytes < SQF_PAGE_MIN)
    return err_set(err, LODE_CORRUPT, "%.300s is empty or cut short (%llu bytes)", path, (unsigned long long)bytes);
  f->src.page_bytes = got == sizeof h && sqf_has_magic(h) ? sqf_page_size(h) : 0;
  f->info.header_lost = f->src.page_bytes == 0;
  if (!f->src.page_bytes) f->src.page_bytes = sqf_guess_page_size(f, bytes);
  uint64_t pages = (bytes + f->src.page_bytes - 1) / f->src.page_bytes;
  f->src.pages = pages > UINT32_MAX - 1 ? UINT32_MAX - 1 : (uint32_t)pages;
  f->src.bytes = bytes;
  f->src.overflow_page = sqf_overflow_page;
  f->src.ctx = f;
  f->src.usable = f->src.page_bytes - (f->info.header_lost || h[20] > f->src.page_bytes - 480 ? 0 : h[20]);
  f->cache = mem_alloc((size_t)SQF_CACHE_PAGES * f->src.page_bytes);
  if (!f->cache) return err_nomem(err);
  f->info.locked = sqf_lock_shared(f);
  f->side_fd = sqf_open_side(path, "-wal");
  if (f->side_fd >= 0) TRY(sqf_read_wal(f, err));
  if (f->images.n == 0) {
    if (f->side_fd >= 0) (void)os_api->close(f->side_fd);
    f->side_fd = sqf_open_side(path, "-journal");
    if (f->side_fd >= 0) TRY(sqf_read_journal(f, err));
  }
  memset(f->cached, 0, sizeof f->cached);
  if (sqf_images_find(&f->images, 1)) { /* the image's header counts, not the file's */
    sqf_load_page(f, 1, f->cache);
    f->info.header_lost = !sqf_has_magic(f->cache);
  }
  f->seen = mem_calloc((size_t)f->src.pages / 8 + 1, 1);
  if (!f->seen) return err_nomem(err);
  sqf_take_fingerprint(f, &f->fingerprint);
  return LODE_OK;
}

lode_status sqf_open(const char *path, sqf_file **out, lode_error *err) {
  lode_status st = LODE_OK;
  struct stat sb;
  *out = NULL;
  sqf_file *f = mem_calloc(1, sizeof *f);
  if (!f) return err_nomem(err);
  f->side_fd = -1;
  f->fd = OS_RETRY(os_api->open(path, O_RDONLY | O_NONBLOCK, 0)); /* opening a pipe would wait for its other end */
  if (f->fd < 0 || OS_RETRY(os_api->fstat(f->fd, &sb)) != 0) {
    st = errno == ENOENT || errno == ENOTDIR ? err_set(err, LODE_NOT_FOUND, "there is no file %.400s", path)
                                             : err_errno(err, errno, path);
    goto done;
  }
  if (!S_ISREG(sb.st_mode)) {
    st = err_set(err, LODE_INVALID, "%.400s is not a file", path);
    goto done;
  }
  st = sqf_prepare(f, path, err);
done:
  if (st == LODE_OK)
    *out = f;
  else
    sqf_close(f);
  return st;
}

void sqf_close(sqf_file *f) {
  if (!f) return;
  if (f->fd >= 0) (void)os_api->close(f->fd); /* also releases the lock */
  if (f->side_fd >= 0) (void)os_api->close(f->side_fd);
  for (size_t i = 0; i < SQF_MAX_DEPTH; i++) mem_free(f->level[i]);
  strbuf_release(&f->payload);
  sqf_images_release(&f->images);
  mem_free(f->cache);
  mem_free(f->seen);
  mem_free(f);
}

void sqf_reset_seen(sqf_file *f) { memset(f->seen, 0, (size_t)f->src.pages / 8 + 1); }

void sqf_get_info(const sqf_file *f, sqf_info *info) {
  *info = f->info;
  info->page_bytes = f->src.page_bytes;
  info->pages = f->src.pages;
}

lode_status sqf_check_unchanged(sqf_file *f, lode_error *err) {
  sqf_fingerprint now;
  sqf_take_fingerprint(f, &now);
  if (memcmp(&now, &f->fingerprint, sizeof now) == 0) return LODE_OK;
  return err_set(err, LODE_BUSY,
                 "the database was written to while it was read; run again, best when the program that uses it is not "
                 "running");
}
