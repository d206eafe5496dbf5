/* sqlite_file.c - pages of an SQLite file, with what its journal or write-ahead log say of them. Contract in sqlite_file.h;
 * trees and rows are in sqlite_row.c. */
#include "sqlite_int.h"

#include <errno.h>
#include <fcntl.h>

enum { SAMPLE = 64, LOCK_TRIES = 40, LOCK_WAIT_US = 50000 };

/* What the medium does not give back is zeros; how many bytes it gave. */
static size_t read_some(int fd, void *buf, size_t n, uint64_t off) {
  size_t got = 0;
  if (lode__os_read_full(fd, buf, n, off, &got, NULL) != LODE_OK) got = 0;
  memset((char *)buf + got, 0, n - got);
  return got;
}

static uint64_t size_of(int fd) {
  struct stat sb;
  return fd >= 0 && LODE__RETRY(lode__os->fstat(fd, &sb)) == 0 && sb.st_size > 0 ? (uint64_t)sb.st_size : 0;
}

/* ---- Pages ---- */

static const lode__sq_image *find_image(const lode__sq_file *f, uint32_t number) {
  size_t low = 0, high = f->n_images;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    if (f->images[mid].number < number) low = mid + 1;
    else high = mid;
  }
  return low < f->n_images && f->images[low].number == number ? &f->images[low] : NULL;
}

void lode__sq_load(lode__sq_file *f, uint32_t number, unsigned char *page) {
  const lode__sq_image *image = find_image(f, number);
  if (image) (void)read_some(f->side_fd, page, f->page_bytes, image->offset);
  else (void)read_some(f->fd, page, f->page_bytes, (uint64_t)(number - 1) * f->page_bytes);
}

const unsigned char *lode__sq_page(lode__sq_file *f, uint32_t number) {
  size_t slot = number % LODE__SQ_SLOTS;
  unsigned char *page = f->cache + slot * f->page_bytes;
  if (f->cached[slot] != number) {
    lode__sq_load(f, number, page);
    f->cached[slot] = number;
  }
  return page;
}

void lode__sq_damaged(lode__sq_file *f, uint32_t number) {
  f->info.damaged_pages++;
  if (number && (!f->info.first_damaged || number < f->info.first_damaged)) f->info.first_damaged = number;
}

static lode_status add_image(lode__sq_file *f, uint32_t number, uint64_t offset, lode_error *err) {
  if (!lode__grow(&f->images, &f->cap_images, f->n_images + 1, sizeof *f->images)) return lode__fail_nomem(err);
  f->images[f->n_images] = (lode__sq_image){number, (uint32_t)f->n_images, offset};
  f->n_images++;
  return LODE_OK;
}

static int compare_images(const void *a, const void *b) {
  const lode__sq_image *x = a, *y = b;
  if (x->number != y->number) return x->number < y->number ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

/* One image a page: the first of a journal (the page from before), the last of a log (the newest). */
static void settle_images(lode__sq_file *f, bool keep_last) {
  size_t n = 0;
  if (f->n_images > 1) qsort(f->images, f->n_images, sizeof *f->images, compare_images);
  for (size_t i = 0; i < f->n_images; i++) {
    if (n && f->images[n - 1].number == f->images[i].number) {
      if (keep_last) f->images[n - 1] = f->images[i];
    } else {
      f->images[n++] = f->images[i];
    }
  }
  f->n_images = n;
}

/* ---- The rollback journal ---- */

static uint32_t journal_sum(const lode__sq_file *f, uint32_t nonce, const unsigned char *page) {
  uint32_t sum = nonce;
  for (size_t i = f->page_bytes; i > 200; i -= 200) sum += page[i - 200];
  return sum;
}

static lode_status read_journal(lode__sq_file *f, lode_error *err) {
  static const unsigned char magic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
  unsigned char h[28], *page = f->cache;
  uint64_t size = size_of(f->side_fd), at = 0, each = (uint64_t)f->page_bytes + 8;
  uint32_t first_pages = 0;
  bool good = true;
  while (good && at + sizeof h <= size) {
    if (read_some(f->side_fd, h, sizeof h, at) < sizeof h || memcmp(h, magic, sizeof magic) != 0) break;
    uint32_t records = lode__be32(h + 8), nonce = lode__be32(h + 12), sector = lode__be32(h + 20);
    if (lode__be32(h + 24) != f->page_bytes || sector < 32 || sector > 65536 || (sector & (sector - 1))) break;
    if (at == 0) first_pages = lode__be32(h + 16);
    at += sector;
    uint64_t room = size > at ? (size - at) / each : 0;
    if (records == UINT32_MAX || records > room) records = (uint32_t)(room > UINT32_MAX ? UINT32_MAX : room);
    for (uint32_t i = 0; i < records && good; i++, at += each) {
      unsigned char word[4], sum[4];
      (void)read_some(f->side_fd, word, 4, at);
      (void)read_some(f->side_fd, page, f->page_bytes, at + 4);
      (void)read_some(f->side_fd, sum, 4, at + 4 + f->page_bytes);
      uint32_t number = lode__be32(word);
      good = number != 0 && lode__be32(sum) == journal_sum(f, nonce, page);
      if (good && number <= first_pages) LODE__TRY(add_image(f, number, at + 4, err));
    }
    at = (at + sector - 1) / sector * sector;
  }
  if (f->n_images && first_pages) f->info.pages = first_pages; /* what was appended since does not count */
  settle_images(f, false);
  f->info.journal_pages = (uint32_t)f->n_images;
  return LODE_OK;
}

/* ---- The write-ahead log ---- */

static void wal_sum(const unsigned char *p, size_t n, bool big, uint32_t s[2]) {
  for (size_t i = 0; i + 8 <= n; i += 8) {
    s[0] += (big ? lode__be32(p + i) : lode__le32(p + i)) + s[1];
    s[1] += (big ? lode__be32(p + i + 4) : lode__le32(p + i + 4)) + s[0];
  }
}

static lode_status read_wal(lode__sq_file *f, lode_error *err) {
  unsigned char h[32], frame[24], *page = f->cache;
  uint64_t size = size_of(f->side_fd), at = sizeof h, each = (uint64_t)f->page_bytes + sizeof frame;
  uint32_t sum[2] = {0, 0}, committed_pages = 0;
  size_t committed = 0;
  if (read_some(f->side_fd, h, sizeof h, 0) < sizeof h) return LODE_OK;
  uint32_t magic = lode__be32(h);
  if ((magic != 0x377f0682 && magic != 0x377f0683) || lode__be32(h + 8) != f->page_bytes) return LODE_OK;
  bool big = magic & 1;
  wal_sum(h, 24, big, sum);
  if (sum[0] != lode__be32(h + 24) || sum[1] != lode__be32(h + 28)) return LODE_OK;
  for (; at + each <= size; at += each) {
    (void)read_some(f->side_fd, frame, sizeof frame, at);
    (void)read_some(f->side_fd, page, f->page_bytes, at + sizeof frame);
    uint32_t number = lode__be32(frame), after = lode__be32(frame + 4);
    wal_sum(frame, 8, big, sum);
    wal_sum(page, f->page_bytes, big, sum);
    if (number == 0 || memcmp(frame + 8, h + 16, 8) != 0 || sum[0] != lode__be32(frame + 16) || sum[1] != lode__be32(frame + 20)) break;
    LODE__TRY(add_image(f, number, at + sizeof frame, err));
    if (after) {
      committed = f->n_images;
      committed_pages = after;
    }
  }
  f->n_images = committed;
  if (committed) f->info.pages = committed_pages;
  settle_images(f, true);
  f->info.wal_pages = (uint32_t)f->n_images;
  return LODE_OK;
}

/* ---- The page size ---- */

static uint32_t header_size(const unsigned char *page1) {
  return lode__sq_has_magic(page1) ? lode__sq_page_size(page1) : 0;
}

/* How many of a sample of pages of that size look like pages of a tree, in 1/1000. */
static uint32_t score_size(const lode__sq_file *f, uint64_t bytes, uint32_t size) {
  uint64_t pages = bytes / size, step = pages / SAMPLE + 1;
  uint32_t good = 0, tried = 0;
  for (uint64_t i = 1; i < pages; i += step, tried++) {
    unsigned char h[12];
    (void)read_some(f->fd, h, sizeof h, i * size);
    uint32_t cells = lode__be16(h + 3), content = lode__be16(h + 5);
    bool type = h[0] == 0x0d || h[0] == 0x05 || h[0] == 0x0a || h[0] == 0x02;
    good += type && cells <= size / 4 && content <= size && content >= 8 + 2 * cells;
  }
  return tried ? good * 1000 / tried : 0;
}

/* Multiples of the true size look nearly as good, parts of it do not: the smallest that is nearly the best. */
static uint32_t guess_size(const lode__sq_file *f, uint64_t bytes) {
  uint32_t score[8] = {0}, best = 0;
  for (int i = 0; i < 8; i++) {
    score[i] = score_size(f, bytes, (uint32_t)LODE__SQ_PAGE_MIN << i);
    if (score[i] > best) best = score[i];
  }
  for (int i = 0; i < 8 && best; i++)
    if (score[i] * 10 >= best * 7) return (uint32_t)LODE__SQ_PAGE_MIN << i;
  return 4096;
}

/* ---- Opening ---- */

/* As SQLite does it: not while a writer waits for the readers to leave. */
static bool lock_shared(lode__sq_file *f) {
  for (int i = 0; i < LOCK_TRIES; i++) {
    int pending = lode__os->lock_held(f->fd, F_RDLCK, LODE__SQ_PENDING_BYTE, 1);
    if (pending < 0) return false;
    if (!pending) {
      if (LODE__RETRY(lode__os->lock(f->fd, F_RDLCK, LODE__SQ_SHARED_FIRST, LODE__SQ_SHARED_SIZE)) == 0) return true;
      if (errno != EAGAIN && errno != EACCES) return false;
    }
    lode__os->sleep_us(LOCK_WAIT_US);
  }
  return false;
}

static int open_side(const char *path, const char *suffix) {
  lode__buf name = {0};
  lode__buf_addf(&name, "%s%s", path, suffix);
  lode__buf_addc(&name, 0);
  int fd = name.failed ? -1 : LODE__RETRY(lode__os->open(name.data, O_RDONLY | O_NONBLOCK, 0));
  lode__buf_release(&name);
  if (fd >= 0 && size_of(fd) < 28) {
    (void)lode__os->close(fd);
    fd = -1;
  }
  return fd;
}

static void mark_of(const lode__sq_file *f, lode__sq_mark *mark) {
  struct stat sb;
  memset(mark, 0, sizeof *mark);
  (void)read_some(f->fd, mark->counters, sizeof mark->counters, 24);
  mark->bytes = size_of(f->fd);
  if (LODE__RETRY(lode__os->fstat(f->fd, &sb)) == 0) mark->mtime_ns = (int64_t)sb.st_mtim.tv_sec * 1000000000 + sb.st_mtim.tv_nsec;
  if (f->side_fd >= 0) (void)read_some(f->side_fd, mark->side, sizeof mark->side, 0);
}

static lode_status prepare(lode__sq_file *f, const char *path, lode_error *err) {
  unsigned char h[100];
  uint64_t bytes = size_of(f->fd);
  size_t got = read_some(f->fd, h, sizeof h, 0);
  if (bytes < LODE__SQ_PAGE_MIN) return lode__fail(err, LODE_CORRUPT, "%.300s is empty or cut short (%llu bytes)", path, (unsigned long long)bytes);
  f->page_bytes = got == sizeof h ? header_size(h) : 0;
  f->info.header_lost = f->page_bytes == 0;
  if (!f->page_bytes) f->page_bytes = guess_size(f, bytes);
  uint64_t pages = (bytes + f->page_bytes - 1) / f->page_bytes;
  f->info.pages = pages > UINT32_MAX - 1 ? UINT32_MAX - 1 : (uint32_t)pages;
  f->bytes = bytes;
  f->usable = f->page_bytes - (f->info.header_lost || h[20] > f->page_bytes - 480 ? 0 : h[20]);
  f->info.page_bytes = f->page_bytes;
  f->cache = lode__alloc((size_t)LODE__SQ_SLOTS * f->page_bytes);
  if (!f->cache) return lode__fail_nomem(err);
  f->info.locked = lock_shared(f);
  f->side_fd = open_side(path, "-wal");
  if (f->side_fd >= 0) LODE__TRY(read_wal(f, err));
  if (f->n_images == 0) {
    if (f->side_fd >= 0) (void)lode__os->close(f->side_fd);
    f->side_fd = open_side(path, "-journal");
    if (f->side_fd >= 0) LODE__TRY(read_journal(f, err));
  }
  memset(f->cached, 0, sizeof f->cached);
  for (size_t i = 0; i < f->n_images; i++)
    if (f->images[i].number == 1) { /* the header that counts is that of the page */
      lode__sq_load(f, 1, f->cache);
      f->info.header_lost = memcmp(f->cache, "SQLite format 3", 16) != 0;
    }
  f->seen = lode__alloc_zero((size_t)f->info.pages / 8 + 1, 1);
  if (!f->seen) return lode__fail_nomem(err);
  mark_of(f, &f->mark);
  return LODE_OK;
}

lode_status lode__sq_open(const char *path, lode__sq_file **out, lode_error *err) {
  lode_status st = LODE_OK;
  struct stat sb;
  *out = NULL;
  lode__sq_file *f = lode__alloc_zero(1, sizeof *f);
  if (!f) return lode__fail_nomem(err);
  f->side_fd = -1;
  f->fd = LODE__RETRY(lode__os->open(path, O_RDONLY | O_NONBLOCK, 0)); /* to open a pipe would wait for its other end */
  if (f->fd < 0 || LODE__RETRY(lode__os->fstat(f->fd, &sb)) != 0) {
    st = errno == ENOENT || errno == ENOTDIR ? lode__fail(err, LODE_NOT_FOUND, "there is no file %.400s", path)
                                             : lode__fail_errno(err, errno, path);
    goto done;
  }
  if (!S_ISREG(sb.st_mode)) {
    st = lode__fail(err, LODE_INVALID, "%.400s is not a file", path);
    goto done;
  }
  st = prepare(f, path, err);
done:
  if (st == LODE_OK) *out = f;
  else lode__sq_close(f);
  return st;
}

void lode__sq_close(lode__sq_file *f) {
  if (!f) return;
  if (f->fd >= 0) (void)lode__os->close(f->fd); /* and the lock is gone */
  if (f->side_fd >= 0) (void)lode__os->close(f->side_fd);
  for (size_t i = 0; i < LODE__SQ_DEPTH; i++) lode__free(f->level[i]);
  lode__buf_release(&f->payload);
  lode__free(f->images);
  lode__free(f->cache);
  lode__free(f->seen);
  lode__free(f);
}

void lode__sq_forget(lode__sq_file *f) { memset(f->seen, 0, (size_t)f->info.pages / 8 + 1); }

void lode__sq_info_of(const lode__sq_file *f, lode__sq_info *info) { *info = f->info; }

lode_status lode__sq_unchanged(lode__sq_file *f, lode_error *err) {
  lode__sq_mark now;
  mark_of(f, &now);
  if (memcmp(&now, &f->mark, sizeof now) == 0) return LODE_OK;
  return lode__fail(err, LODE_BUSY, "the database was written to while it was read; run again, best when the program that uses it is not running");
}
