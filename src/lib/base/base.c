/* SPDX-License-Identifier: Apache-2.0 */
/* base.c - errors, invariants, memory allocation, growing buffers and arrays, strings.
 *
 * Error texts are truncated at a character boundary, so that UTF-8 stays UTF-8. The only state here is mem_alloc_hook,
 * so every function may be called from any thread.
 */
#include "base/base.h"

#include "base/byteorder.h"
#include "platform/memory.h"
#include "platform/platform.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Statuses and errors ---- */

#define STATUS_NAME(name, text) #name,
static const char *const status_names[] = {LODE_STATUSES(STATUS_NAME)};
#define STATUS_TEXT(name, text) text,
static const char *const status_texts[] = {LODE_STATUSES(STATUS_TEXT)};
#define STATUS_COUNT (sizeof status_names / sizeof status_names[0])

const char *lode_status_name(lode_status status) {
  return (size_t)status < STATUS_COUNT ? status_names[status] : "UNKNOWN";
}

const char *lode_status_text(lode_status status) {
  return (size_t)status < STATUS_COUNT ? status_texts[status] : "a status of another version";
}

const char *lode_version(void) { return LODE_VERSION_TEXT; }
uint32_t lode_version_number(void) { return LODE_VERSION_NUMBER; }

/* Removes a character that was truncated at the end of the text. */
static void cut_at_character(char *text, size_t len) {
  size_t back = 0;
  while (back < 3 && back < len && ((unsigned char)text[len - 1 - back] & 0xC0) == 0x80) back++;
  if (back == len) return;
  unsigned char lead = (unsigned char)text[len - 1 - back];
  size_t need = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
  if (need > back + 1) text[len - 1 - back] = '\0';
}

__attribute__((format(printf, 4, 0))) static void err_vset(lode_error *err, lode_status status, size_t record,
                                                           const char *format, va_list args) {
  char text[sizeof err->text] = ""; /* a separate buffer: the old text may be one of the arguments */
  if (!err) return;
  int n = vsnprintf(text, sizeof text, format, args);
  if (n >= (int)sizeof text) cut_at_character(text, sizeof text - 1);
  err->status = status;
  err->record = record;
  memcpy(err->text, text, sizeof text);
}

lode_status err_set(lode_error *err, lode_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  err_vset(err, status, LODE_NO_RECORD, format, args);
  va_end(args);
  return status;
}

lode_status err_set_at(lode_error *err, lode_status status, size_t record, const char *format, ...) {
  va_list args;
  va_start(args, format);
  err_vset(err, status, record, format, args);
  va_end(args);
  return status;
}

lode_status err_nomem(lode_error *err) {
  return err_set(err, LODE_NOMEM, "out of memory: free some, or ask for less at a time");
}

bool err_is_disk_full(int errnum) { return errnum == ENOSPC || errnum == EDQUOT || errnum == EFBIG; }

lode_status err_progress(lode_progress progress, const char *phase, uint64_t done, uint64_t total, lode_error *err) {
  return err_go_on(progress, phase, done, total) ? LODE_OK : err_set(err, LODE_CANCELLED, "cancelled by the caller");
}

lode_status err_errno(lode_error *err, int errnum, const char *what) {
  lode_status status = LODE_IO;
  if (err_is_disk_full(errnum)) status = LODE_FULL;
  if (errnum == ENOMEM) status = LODE_NOMEM;
  char text[128];
  if (errnum == ELOOP)
    return err_set(err, LODE_REFUSED,
                   "%s is a symbolic link, which is not followed here: put the file or folder itself in its place",
                   what);
  if (errnum == ENXIO)
    return err_set(err, LODE_REFUSED, "%s is a pipe, a socket or a device, not a file: remove it, or name another one",
                   what);
  return err_set(err, status, "%s: %s", what, os_error_text(errnum, text, sizeof text));
}

lode_status err_internal(lode_error *err, const char *format, ...) {
  char what[400];
  va_list list;
  va_start(list, format);
  vsnprintf(what, sizeof what, format, list);
  va_end(list);
  return err_set(err, LODE_INTERNAL,
                 "%s: a bug in lode, please report it (`lode help bugs` says how); open the store again to go on",
                 what);
}

void err_clear(lode_error *err) {
  if (!err) return;
  err->status = LODE_OK;
  err->record = LODE_NO_RECORD;
  err->text[0] = '\0';
}

bool err_invariant_broken(const char *cond, const char *file, int line) {
#ifdef LODE_CHECKED
  fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, cond);
  abort();
#else
  (void)cond, (void)file, (void)line;
  return false;
#endif
}

/* ---- Quoting ---- */

enum { QUOTE_BYTES = 60 };

/* Writes one byte as an escape of at most 4 characters. */
static char *put_escaped(char *out, unsigned char c) {
  static const char hex[] = "0123456789abcdef";
  *out++ = '\\';
  switch (c) {
    case '"': *out++ = '"'; break;
    case '\\': *out++ = '\\'; break;
    case '\n': *out++ = 'n'; break;
    case '\r': *out++ = 'r'; break;
    case '\t': *out++ = 't'; break;
    default:
      *out++ = 'x';
      *out++ = hex[c >> 4];
      *out++ = hex[c & 15];
  }
  return out;
}

const char *str_quote(lode_str s, char *buf, size_t size) {
  if (size < 256) return "(...)";
  if (!s.data) {
    memcpy(buf, "null", 5);
    return buf;
  }
  char *out = buf;
  size_t i = 0;
  *out++ = '"';
  while (i < s.len) {
    unsigned char c = (unsigned char)s.data[i];
    size_t width = utf8_width(s.data + i, s.len - i);
    bool escape = width == 0 || utf8_is_hidden(utf8_decode(s.data + i, width)) || c == '"' || c == '\\';
    if (escape) width = 1;
    if (i + width > QUOTE_BYTES) break;
    if (escape) {
      out = put_escaped(out, c);
    } else {
      memcpy(out, s.data + i, width);
      out += width;
    }
    i += width;
  }
  *out++ = '"';
  memcpy(out, i < s.len ? "..." : "", i < s.len ? 4 : 1);
  return buf;
}

/* ---- Memory ---- */

bool (*_Atomic mem_alloc_hook)(void);

/* We never need more; absurd sizes are refused here, because some allocators abort on them. */
#define MEM_MAX_BYTES (SIZE_MAX >> 25)

static bool may_allocate(size_t size) {
  if (size > MEM_MAX_BYTES) return false;
  bool (*hook)(void) = atomic_load_explicit(&mem_alloc_hook, memory_order_relaxed);
  return __builtin_expect(hook == NULL, 1) || hook();
}

void *mem_alloc(size_t size) {
  if (!may_allocate(size)) return NULL;
  return malloc(size ? size : 1);
}

char *str_dup(const char *text, size_t len) {
  char *copy = mem_alloc(len + 1);
  if (!copy) return NULL;
  if (len) memcpy(copy, text, len);
  copy[len] = '\0';
  return copy;
}

void *mem_calloc(size_t count, size_t size) {
  size_t bytes;
  if (mem_mul_overflow(count, size, &bytes) || !may_allocate(bytes)) return NULL;
  return calloc(1, bytes ? bytes : 1);
}

void *mem_realloc(void *p, size_t size) {
  if (!may_allocate(size)) return NULL;
  return realloc(p, size ? size : 1);
}

void mem_free(void *p) { free(p); }

void *mem_alloc_aligned(size_t align, size_t size) {
  void *p = NULL;
  if (!may_allocate(size)) return NULL;
  if (align < sizeof(void *)) align = sizeof(void *);
  return posix_memalign(&p, align, size ? size : 1) == 0 ? p : NULL;
}

void *mem_alloc_large(size_t size) {
  enum { HUGE_PAGE = 1 << 21 };
  void *p = mem_alloc_aligned(size < HUGE_PAGE ? 64 : HUGE_PAGE, size);
  if (p && size >= HUGE_PAGE) os_memory_advise(p, size, OS_MEMORY_LARGE_PAGES);
  return p;
}

/* ---- Growing buffer ---- */

void strbuf_release(strbuf *buf) {
  mem_free(buf->data);
  *buf = (strbuf){0};
}

char *strbuf_reserve(strbuf *buf, size_t more) {
  if (buf->failed) return NULL;
  if (more <= buf->cap - buf->len && buf->data) return buf->data + buf->len;
  size_t need, cap;
  if (mem_add_overflow(buf->len, more, &need)) goto failed;
  if (mem_add_overflow(buf->cap, buf->cap / 2, &cap) || cap < need) cap = need;
  if (cap < 64) cap = 64;
  char *data = mem_realloc(buf->data, cap);
  if (!data) goto failed;
  buf->data = data;
  buf->cap = cap;
  return data + buf->len;
failed:
  buf->failed = true;
  return NULL;
}

void strbuf_add(strbuf *buf, const void *data, size_t len) {
  if (len == 0) return;
  char *at = strbuf_reserve(buf, len);
  if (!at) return;
  memcpy(at, data, len);
  buf->len += len;
}

void strbuf_addstr(strbuf *buf, const char *text) { strbuf_add(buf, text, strlen(text)); }

void strbuf_addch(strbuf *buf, char c) {
  char *at = strbuf_reserve(buf, 1);
  if (!at) return;
  *at = c;
  buf->len++;
}

void strbuf_add_le32(strbuf *buf, uint32_t v) {
  char *at = strbuf_reserve(buf, 4);
  if (!at) return;
  num_put_le32(at, v);
  buf->len += 4;
}

void strbuf_addf(strbuf *buf, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (n < 0) buf->failed = true;
  char *at = n < 0 ? NULL : strbuf_reserve(buf, (size_t)n + 1); /* vsnprintf also writes a NUL */
  if (!at) return;
  va_start(args, format);
  vsnprintf(at, (size_t)n + 1, format, args);
  va_end(args);
  buf->len += (size_t)n;
}

/* ---- Growing array ---- */

bool mem_grow(void *items, size_t *cap, size_t need, size_t item_size) {
  if (need <= *cap) return true;
  size_t want, bytes;
  if (mem_add_overflow(*cap, *cap / 2, &want) || want < need) want = need;
  if (want < 8) want = 8;
  if (mem_mul_overflow(want, item_size, &bytes)) return false;
  void *p;
  memcpy(&p, items, sizeof p); /* *items is a pointer of unknown type: copied as bytes */
  p = mem_realloc(p, bytes);
  if (!p) return false;
  memcpy(items, &p, sizeof p);
  *cap = want;
  return true;
}

/* ---- Strings ---- */

int str_cmp(lode_str a, lode_str b) {
  size_t n = a.len < b.len ? a.len : b.len;
  int c = n ? memcmp(a.data, b.data, n) : 0;
  if (c) return c;
  return (a.len > b.len) - (a.len < b.len);
}
