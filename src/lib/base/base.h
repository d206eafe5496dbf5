/* SPDX-License-Identifier: Apache-2.0 */
/* base.h - what every file needs: errors, memory, arenas, checked sizes, growing buffers.
 *
 * Every allocation of the library goes through mem_alloc() and its relatives, so that a test can make call N fail
 * (mem_alloc_hook). An arena belongs to one request: it has a limit, and everything in it is freed at once.
 */
#ifndef LODE_BASE_BASE_H
#define LODE_BASE_BASE_H

#include "lode.h"

#include <stdarg.h>
#include <string.h>

#include "base/banned.h"

/* ---- Errors: `return err_set(err, LODE_INVALID, "the id is empty")` ---- */

__attribute__((format(printf, 3, 4))) lode_status err_set(lode_error *err, lode_status status, const char *format, ...);
/* The same, naming a record of the batch. */
__attribute__((format(printf, 4, 5))) lode_status err_set_at(lode_error *err, lode_status status, size_t record,
                                                             const char *format, ...);
lode_status err_nomem(lode_error *err);
/* ENOSPC, EDQUOT, EFBIG: the disk, the quota or the file size limit is exhausted. */
bool err_is_disk_full(int errnum);
/* Sets "what: strerror". Disk full is LODE_FULL, ENOMEM is LODE_NOMEM, ELOOP and ENXIO (a link, or not a regular file)
 * are LODE_REFUSED with texts of their own, everything else is LODE_IO. */
lode_status err_errno(lode_error *err, int errnum, const char *what);
/* Sets err to LODE_OK, no record, empty text. NULL is allowed. */
void err_clear(lode_error *err);
/* Reports progress; false if the caller wants the operation to stop. */
static inline bool err_go_on(lode_progress progress, const char *phase, uint64_t done, uint64_t total) {
  return !progress.step || progress.step(progress.ctx, phase, done, total);
}
/* The same as a status: LODE_CANCELLED, "cancelled by the caller". */
LODE_MUST lode_status err_progress(lode_progress progress, const char *phase, uint64_t done, uint64_t total,
                                   lode_error *err);
/* User bytes for "%s" in messages: in double quotes (null if absent), at most 60 bytes, then "..."; control bytes,
 * quotes and bytes that are not UTF-8 are escaped. Writes to buf (at least 256 bytes) and returns it. */
const char *str_quote(lode_str s, char *buf, size_t size);

#define TRY(expr)                                                                                                      \
  do {                                                                                                                 \
    lode_status try_status_ = (expr);                                                                                  \
    if (try_status_ != LODE_OK) return try_status_;                                                                    \
  } while (0)
/* For a result that is ignored on purpose; a comment says why. */
static inline void err_ignore(lode_status st) { (void)st; }
/* For functions with a single exit: sets `st` and goes to done. */
#define TRY_GOTO(expr)                                                                                                 \
  do {                                                                                                                 \
    st = (expr);                                                                                                       \
    if (st != LODE_OK) goto done;                                                                                      \
  } while (0)

/* ---- Invariants of our own code; never for anything that a file, a user or the system can cause ----
 *
 * INVARIANT(cond) is a bool that must be checked. A broken invariant aborts a LODE_CHECKED build (all test builds) and
 * prints its location; in a release build it is false, and the caller abandons its work and poisons its handle:
 *   if (!INVARIANT(i < n)) return err_internal(err, "segment: row past the end");
 * cond is evaluated once in every build. ENSURE is the short form for callers that only have to return.
 */

bool err_invariant_broken(const char *cond, const char *file, int line);
LODE_MUST static inline bool err_invariant(bool holds, const char *cond, const char *file, int line) {
  return __builtin_expect(holds, 1) || err_invariant_broken(cond, file, line);
}
#define INVARIANT(cond) err_invariant((cond), #cond, __FILE__, __LINE__)
/* LODE_INTERNAL, which has no other source than this: "...: a bug in lode", and where to report it. */
__attribute__((format(printf, 2, 3))) lode_status err_internal(lode_error *err, const char *format, ...);
#define ENSURE(cond, err)                                                                                              \
  do {                                                                                                                 \
    if (!INVARIANT(cond)) return err_internal((err), "%s", #cond);                                                     \
  } while (0)

/* For conditions that take time, and for functions that cannot fail: aborts a LODE_CHECKED build like INVARIANT, and is
 * not evaluated in others. */
#ifdef LODE_CHECKED
#define INVARIANT_CHECKED(cond) ((void)!INVARIANT(cond))
#else
#define INVARIANT_CHECKED(cond) ((void)(false && (cond))) /* what it calls counts as used */
#endif

/* ---- Memory ---- */

void *mem_alloc(size_t size);                /* NULL if out of memory; size 0 returns a valid pointer */
char *str_dup(const char *text, size_t len); /* adds a NUL; NULL if out of memory. text may be NULL if len is 0 */
void *mem_calloc(size_t count, size_t size); /* checked product */
void *mem_realloc(void *p, size_t size);
void mem_free(void *p);
void *mem_alloc_aligned(size_t align, size_t size); /* freed with mem_free() */
/* For a megabyte or more that is read repeatedly: uses huge pages if the system has them. 64-byte aligned, freed with
 * mem_free(). */
void *mem_alloc_large(size_t size);
/* Tests: if not NULL, called before each allocation; false makes it fail. Running threads see a new hook soon, not
 * immediately. */
extern bool (*_Atomic mem_alloc_hook)(void);

/* ---- Arena ---- */

typedef struct mem_arena_block mem_arena_block;
typedef struct mem_arena {
  mem_arena_block *head;
  size_t used;  /* bytes obtained from the allocator */
  size_t limit; /* 0: none */
} mem_arena;

void mem_arena_init(mem_arena *arena, size_t limit_bytes);
/* 16-byte aligned; NULL when out of memory or past the limit. */
void *mem_arena_alloc(mem_arena *arena, size_t size);
void *mem_arena_copy(mem_arena *arena, const void *data, size_t size); /* adds a NUL after the copy */
void mem_arena_reset(mem_arena *arena);                                /* keeps one block for reuse */
void mem_arena_release(mem_arena *arena);

/* ---- Checked sizes: true on overflow ---- */

static inline bool mem_mul_overflow(size_t a, size_t b, size_t *out) { return __builtin_mul_overflow(a, b, out); }
static inline bool mem_add_overflow(size_t a, size_t b, size_t *out) { return __builtin_add_overflow(a, b, out); }

/* ---- Growing byte buffer; after a failed allocation `failed` stays true and appends do nothing ----
 *
 * All zeros is an empty buffer. Setting len = 0 keeps the memory. strbuf_release() frees it and clears `failed`. */

typedef struct strbuf {
  char *data;
  size_t len, cap;
  bool failed;
} strbuf;

void strbuf_release(strbuf *buf);
void strbuf_add(strbuf *buf, const void *data, size_t len);
void strbuf_addstr(strbuf *buf, const char *text);
void strbuf_addch(strbuf *buf, char c);
void strbuf_add_le32(strbuf *buf, uint32_t v); /* four bytes, little-endian */
__attribute__((format(printf, 2, 3))) void strbuf_addf(strbuf *buf, const char *format, ...);
/* Reserves space for `more` bytes and returns its address, or NULL; len is not changed. */
char *strbuf_reserve(strbuf *buf, size_t more);

/* ---- Growing array: mem_grow(&items, &cap, need, sizeof *items); false if out of memory ---- */

LODE_MUST bool mem_grow(void *items, size_t *cap, size_t need, size_t item_size);

/* ---- Strings ---- */

static inline lode_str str_of(const char *s) { return (lode_str){s, s ? strlen(s) : 0}; }
#define STR_LIT(s) ((lode_str){"" s, sizeof(s) - 1})
static inline bool str_eq(lode_str a, lode_str b) {
  return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}
/* Order by bytes, then by length. */
int str_cmp(lode_str a, lode_str b);
/* Comparison functions for qsort and bsearch. */
int sort_cmp_u32(const void *a, const void *b);
int sort_cmp_u64(const void *a, const void *b);
int sort_cmp_i64(const void *a, const void *b);
int sort_cmp_str(const void *a, const void *b);
/* Binary search: `at`, a variable that begins as the first index to look at, becomes the first one below `end` for
 * which `is_before` does not hold, or `end`. is_before is an expression of `at` that holds for none after one for which
 * it does not: size_t at = 0; SORT_LOWER_BOUND(at, n, items[at].key < key); */
#define SORT_LOWER_BOUND(at, end, is_before)                                                                           \
  do {                                                                                                                 \
    __typeof__(at) sort_low_ = (at), sort_high_ = (end);                                                               \
    while (sort_low_ < sort_high_) {                                                                                   \
      (at) = sort_low_ + (sort_high_ - sort_low_) / 2;                                                                 \
      if (is_before)                                                                                                   \
        sort_low_ = (at) + 1;                                                                                          \
      else                                                                                                             \
        sort_high_ = (at);                                                                                             \
    }                                                                                                                  \
    (at) = sort_low_;                                                                                                  \
  } while (0)
/* Sort permutation of n strings, each `stride` bytes after the previous one: by bytes, equal ones by position. */
LODE_MUST lode_status sort_strings(const lode_str *first, size_t stride, size_t n, size_t *order, lode_error *err);
bool utf8_valid(const char *data, size_t len);
/* Length (1 to 4) of the UTF-8 character at p, where `left` >= 1 bytes are available; 0 if it is not valid. */
size_t utf8_width(const char *p, size_t left);
/* The character at p, whose width utf8_width() returned. */
uint32_t utf8_decode(const char *p, size_t width);
/* Is it invisible, or interpreted by terminals: controls, bidirectional and zero-width characters, tags? Text shown to
 * people has them escaped. */
bool utf8_is_hidden(uint32_t code);

/* ---- Hash (not stable between versions, seeded per process against hostile keys) ---- */

uint64_t hash_bytes(const void *data, size_t len);

/* ---- Random numbers for backoff and salts (not secret); tests use their own seeded generators ---- */

uint64_t rand_u64(void);

#endif
