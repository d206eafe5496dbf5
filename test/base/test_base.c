/* SPDX-License-Identifier: Apache-2.0 */
/* test_base.c - memory, arenas, buffers, text, checksums and the wrappers of system calls. */
#include "base/base.h"
#include "base/byteorder.h"
#include "base/crc32c.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test.h"

/* ---- Errors ---- */

TEST(statuses_have_names_and_texts) {
  CHECK(strcmp(lode_status_name(LODE_OK), "OK") == 0);
  CHECK(strcmp(lode_status_name(LODE_INTERNAL), "INTERNAL") == 0);
  CHECK(strstr(lode_status_text(LODE_FULL), "space"));
  CHECK(strcmp(lode_status_name((lode_status)999), "UNKNOWN") == 0);
  CHECK(lode_status_text((lode_status)-1) != NULL);
  CHECK(strcmp(lode_version(), LODE_VERSION_TEXT) == 0);
}

TEST(errors_say_what_record_and_why) {
  lode_error err;
  CHECK(err_set_at(&err, LODE_REFUSED, 7, "id %d", 42) == LODE_REFUSED);
  CHECK(err.status == LODE_REFUSED && err.record == 7 && strcmp(err.text, "id 42") == 0);
  CHECK(err_set(&err, LODE_INVALID, "no") == LODE_INVALID);
  CHECK(err.record == LODE_NO_RECORD);
  CHECK(err_set(&err, LODE_IO, "outer: %s", err.text) == LODE_IO && strcmp(err.text, "outer: no") == 0);
  err_clear(&err);
  CHECK(err.status == LODE_OK && err.record == LODE_NO_RECORD && err.text[0] == '\0');
  err_clear(NULL);
  CHECK(err_set(NULL, LODE_BUSY, "%s", "nobody listens") == LODE_BUSY);
  CHECK(err_nomem(&err) == LODE_NOMEM && err.text[0]);
  CHECK(err_errno(&err, ENOSPC, "x") == LODE_FULL);
  CHECK(err_errno(&err, EDQUOT, "x") == LODE_FULL);
  CHECK(err_errno(&err, EFBIG, "x") == LODE_FULL);
  CHECK(err_errno(&err, ENOMEM, "x") == LODE_NOMEM);
  CHECK(err_errno(&err, EIO, "a/b") == LODE_IO);
  CHECKF(strncmp(err.text, "a/b: ", 5) == 0 && strlen(err.text) > 5, "%s", err.text);
}

TEST(long_error_texts_are_cut_at_a_character) {
  lode_error err;
  char text[1000];
  for (size_t shift = 0; shift < 4; shift++) { /* a four-byte character on every side of the cut */
    size_t n = shift;
    memset(text, 'a', shift);
    for (; n + 4 < sizeof text; n += 4) memcpy(text + n, "\xF0\x9F\x90\x98", 4);
    text[n] = '\0';
    (void)err_set(&err, LODE_INVALID, "%s", text);
    size_t len = strlen(err.text);
    CHECK(len < sizeof err.text && len >= sizeof err.text - 4);
    CHECK(utf8_valid(err.text, len));
  }
}

static lode_status ensure_small(int x, lode_error *err) {
  ENSURE(x < 10, err);
  return LODE_OK;
}

TEST(broken_invariants_abort_checked_builds_only) {
  lode_error err;
  int evaluated = 0;
#ifdef LODE_CHECKED
  const bool checked = true;
#else
  const bool checked = false;
#endif
  CHECK(INVARIANT(++evaluated == 1) && evaluated == 1);
  OK(ensure_small(9, &err));
  INVARIANT_CHECKED(++evaluated == 2);
  CHECK(evaluated == (checked ? 2 : 1));
#ifdef LODE_CHECKED
  pid_t child = fork();
  if (child == 0) {
    close(STDERR_FILENO);
    _exit(ensure_small(10, &err) == LODE_OK ? 0 : 1);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
#else
  CHECK(!INVARIANT(++evaluated == 0) && evaluated == 2);
  FAILS(LODE_INTERNAL, ensure_small(10, &err));
  CHECK(strstr(err.text, "x < 10"));
#endif
}

static void check_quote(lode_str s, const char *want) {
  char buf[256];
  CHECK(str_quote(s, buf, sizeof buf) == buf);
  CHECKF(strcmp(buf, want) == 0, "%s, wanted %s", buf, want);
}

TEST(quotes_show_any_bytes_safely) {
  check_quote((lode_str){NULL, 0}, "null");
  check_quote(STR_LIT(""), "\"\"");
  check_quote(STR_LIT("plain"), "\"plain\"");
  check_quote(STR_LIT("a\"b\\c\n\t\r\x01\x7F"), "\"a\\\"b\\\\c\\n\\t\\r\\x01\\x7f\"");
  check_quote(STR_LIT("caf\xC3\xA9"), "\"caf\xC3\xA9\"");
  check_quote(STR_LIT("bad\xC3"), "\"bad\\xc3\"");
  check_quote(STR_LIT("\xED\xA0\x80"), "\"\\xed\\xa0\\x80\"");
  check_quote(STR_LIT("\xC2\x9B"
                      "2J"),
              "\"\\xc2\\x9b2J\""); /* a control character that terminals obey */
  char zeros[100] = {0}, buf[256];
  str_quote((lode_str){zeros, sizeof zeros}, buf, sizeof buf); /* the longest there is */
  CHECK(strlen(buf) == 2 + 60 * 4 + 3);
  char wide[80];
  memset(wide, 'x', 59);
  memcpy(wide + 59, "\xE2\x82\xAC tail", 8);
  str_quote((lode_str){wide, 67}, buf, sizeof buf); /* the euro would end past byte 60: left out whole */
  CHECK(strlen(buf) == 2 + 59 + 3 && utf8_valid(buf, strlen(buf)));
}

/* ---- Memory ---- */

static int allocations_left;
static bool count_down(void) { return allocations_left-- > 0; }

TEST(allocations_of_nothing_and_of_too_much) {
  void *p = mem_alloc(0), *q = mem_calloc(0, 8), *r = mem_realloc(NULL, 0);
  CHECK(p && q && r);
  r = mem_realloc(r, 0);
  CHECK(r);
  mem_free(p), mem_free(q), mem_free(r), mem_free(NULL);
  CHECK(mem_calloc(SIZE_MAX / 2, 3) == NULL);
  unsigned char *z = mem_calloc(100, 3);
  for (int i = 0; i < 300; i++) CHECK(z[i] == 0);
  mem_free(z);
  for (size_t align = 1; align <= 4096; align *= 2) {
    char *a = mem_alloc_aligned(align, 100);
    CHECK(a && (uintptr_t)a % align == 0);
    memset(a, 1, 100);
    mem_free(a);
  }
}

TEST(the_hook_fails_every_kind_of_allocation) {
  allocations_left = 0;
  mem_alloc_hook = count_down;
  CHECK(!mem_alloc(8) && !mem_calloc(1, 8) && !mem_realloc(NULL, 8) && !mem_alloc_aligned(16, 8));
  mem_alloc_hook = NULL;
  void *p = mem_alloc(8);
  CHECK(p);
  mem_free(p);
}

/* Some work with all kinds of containers; true when all of it could be done. */
static bool some_work(void) {
  strbuf buf = {0};
  mem_arena arena;
  int *items = NULL;
  size_t cap = 0;
  bool ok = true;
  mem_arena_init(&arena, 0);
  for (int i = 0; i < 500; i++) strbuf_addf(&buf, "%d,", i);
  for (int i = 0; ok && i < 500; i++) ok = mem_arena_alloc(&arena, 100) != NULL;
  for (size_t i = 0; ok && i < 500; i++) {
    ok = mem_grow(&items, &cap, i + 1, sizeof *items);
    if (ok) items[i] = (int)i;
  }
  ok = ok && !buf.failed;
  strbuf_release(&buf);
  mem_arena_release(&arena);
  mem_free(items);
  return ok;
}

TEST(each_allocation_may_fail) {
  int failures = 0;
  for (int n = 0;; n++) { /* leaks and bad accesses are the sanitizers' to find */
    allocations_left = n;
    mem_alloc_hook = count_down;
    bool ok = some_work();
    mem_alloc_hook = NULL;
    CHECK(ok == (allocations_left >= 0));
    if (ok) break;
    failures++;
  }
  CHECK(failures > 10);
}

/* ---- Arena ---- */

TEST(arena_objects_are_aligned_and_apart) {
  mem_arena arena;
  mem_arena_init(&arena, 0);
  unsigned char *objects[2000];
  for (size_t i = 0; i < 2000; i++) {
    objects[i] = mem_arena_alloc(&arena, i % 97);
    CHECK(objects[i] && (uintptr_t)objects[i] % 16 == 0);
    memset(objects[i], (int)(i & 255), i % 97);
  }
  for (size_t i = 0; i < 2000; i++) {
    for (size_t j = 0; j < i % 97; j++) CHECK(objects[i][j] == (i & 255));
  }
  CHECK(mem_arena_alloc(&arena, 0) != mem_arena_alloc(&arena, 0));
  char *big = mem_arena_alloc(&arena, 5 << 20);
  CHECK(big);
  memset(big, 1, 5 << 20);
  CHECK(!mem_arena_alloc(&arena, SIZE_MAX) && !mem_arena_alloc(&arena, SIZE_MAX - 20));
  char *copy = mem_arena_copy(&arena, "abc", 2);
  CHECK(strcmp(copy, "ab") == 0);
  copy = mem_arena_copy(&arena, NULL, 0);
  CHECK(copy && *copy == '\0');
  CHECK(!mem_arena_copy(&arena, "x", SIZE_MAX));
  mem_arena_release(&arena);
}

TEST(arena_limit_holds_and_is_usable) {
  for (size_t limit = 64; limit < 20000; limit += 997) {
    mem_arena arena;
    mem_arena_init(&arena, limit);
    size_t got = 0;
    while (mem_arena_alloc(&arena, 16)) got += 16;
    CHECK(arena.used <= limit);
    CHECKF(got + 200 > limit, "%zu of %zu", got, limit); /* a few headers and rests of blocks, no more */
    CHECK(!mem_arena_alloc(&arena, 1));
    mem_arena_reset(&arena);
    CHECK(mem_arena_alloc(&arena, 1));
    mem_arena_release(&arena);
    CHECK(arena.used == 0);
  }
  mem_arena arena;
  mem_arena_init(&arena, 1 << 20);
  CHECK(!mem_arena_alloc(&arena, 1 << 20)); /* the header does not fit */
  CHECK(mem_arena_alloc(&arena, (1 << 20) - 100));
  CHECK(!mem_arena_alloc(&arena, 200));
  mem_arena_release(&arena);
}

TEST(arena_reset_keeps_one_block_of_modest_size) {
  mem_arena arena;
  mem_arena_init(&arena, 0);
  for (int i = 0; i < 1000; i++) CHECK(mem_arena_alloc(&arena, 1000));
  CHECK(mem_arena_alloc(&arena, 64 << 20));
  CHECK(arena.used > 64 << 20);
  mem_arena_reset(&arena);
  CHECK(arena.used > 0 && arena.used <= 1 << 20);
  size_t kept = arena.used;
  allocations_left = 0;
  mem_alloc_hook = count_down; /* the kept block serves without the allocator */
  for (size_t i = 0; i + 4 < kept / 1024; i++) CHECK(mem_arena_alloc(&arena, 1000));
  mem_alloc_hook = NULL;
  CHECK(arena.used == kept);
  mem_arena_release(&arena);
  mem_arena_reset(&arena);
  CHECK(arena.used == 0 && arena.head == NULL);
}

/* ---- Buffers and arrays ---- */

TEST(buf_grows_and_keeps) {
  strbuf buf = {0};
  strbuf_add(&buf, NULL, 0);
  CHECK(buf.len == 0 && !buf.failed);
  for (int i = 0; i < 1000; i++) strbuf_addf(&buf, "%03d", i);
  strbuf_addstr(&buf, "end");
  strbuf_addch(&buf, '!');
  CHECK(buf.len == 3004 && memcmp(buf.data, "000001002", 9) == 0 && memcmp(buf.data + 3000, "end!", 4) == 0);
  char *at = strbuf_reserve(&buf, 5000);
  CHECK(at == buf.data + 3004 && buf.cap >= 8004 && buf.len == 3004);
  strbuf_release(&buf);
  CHECK(buf.data == NULL && buf.cap == 0);
}

TEST(buf_failure_sticks) {
  strbuf buf = {0};
  strbuf_addstr(&buf, "kept");
  allocations_left = 0;
  mem_alloc_hook = count_down;
  char big[200] = {0};
  strbuf_add(&buf, big, sizeof big);
  mem_alloc_hook = NULL;
  CHECK(buf.failed && buf.len == 4);
  strbuf_addch(&buf, 'x'); /* there would be room: still nothing */
  strbuf_addf(&buf, "%d", 1);
  CHECK(!strbuf_reserve(&buf, 0));
  CHECK(buf.failed && buf.len == 4 && memcmp(buf.data, "kept", 4) == 0);
  strbuf_release(&buf);
  CHECK(!buf.failed);
  CHECK(!strbuf_reserve(&buf, SIZE_MAX - 8) && buf.failed);
  strbuf_release(&buf);
  strbuf_addch(&buf, 'a');
  CHECK(!strbuf_reserve(&buf, SIZE_MAX) && buf.failed);
  strbuf_release(&buf);
}

TEST(grow_checks_its_product) {
  uint64_t *items = NULL;
  size_t cap = 0;
  CHECK(mem_grow(&items, &cap, 3, sizeof *items) && cap >= 3);
  items[0] = 11, items[2] = 33;
  CHECK(mem_grow(&items, &cap, 1000, sizeof *items) && cap >= 1000 && items[0] == 11 && items[2] == 33);
  uint64_t *before = items;
  size_t cap_before = cap;
  CHECK(!mem_grow(&items, &cap, SIZE_MAX / 4, sizeof *items) && items == before && cap == cap_before);
  CHECK(!mem_grow(&items, &cap, SIZE_MAX, 1) && items == before && cap == cap_before);
  mem_free(items);
}

TEST(integers_in_both_byte_orders) {
  const unsigned char bytes[9] = {0xff, 0x81, 0x02, 0x03, 0x84, 0x05, 0x06, 0x07, 0xf8};
  const unsigned char *p = bytes + 1; /* at any alignment */
  CHECK(num_le16(p) == 0x0281 && num_be16(p) == 0x8102);
  CHECK(num_le32(p) == 0x84030281 && num_be32(p) == 0x81020384);
  CHECK(num_le64(p) == UINT64_C(0xf807060584030281) && num_be64(p) == UINT64_C(0x81020384050607f8));
  unsigned char out[8];
  num_put_le32(out, num_le32(p));
  CHECK(memcmp(out, p, 4) == 0);
  num_put_be32(out, num_be32(p));
  CHECK(memcmp(out, p, 4) == 0);
  num_put_le64(out, num_le64(p));
  CHECK(memcmp(out, p, 8) == 0);
  num_put_be64(out, num_be64(p));
  CHECK(memcmp(out, p, 8) == 0);
  strbuf buf = {0};
  strbuf_add_le32(&buf, 0x84030281);
  CHECK(buf.len == 4 && memcmp(buf.data, p, 4) == 0);
  strbuf_release(&buf);
}

TEST(lower_bound_is_the_first_that_is_not_before) {
  for (uint32_t n = 0; n < 40; n++) {
    for (uint32_t key = 0; key < 40; key++) {
      size_t at = 0;
      SORT_LOWER_BOUND(at, n, at / 3 < key); /* of the values 0 0 0 1 1 1 ... */
      CHECK(at == (3 * key < n ? 3 * key : n));
      uint32_t from = n / 2; /* any type of index, and a part of the range */
      SORT_LOWER_BOUND(from, n, from / 3 < key);
      CHECK(from == (at > n / 2 ? at : n / 2));
    }
  }
}

/* ---- Text ---- */

TEST(strings_compare_by_bytes_then_length) {
  CHECK(str_cmp(STR_LIT("a"), STR_LIT("b")) < 0);
  CHECK(str_cmp(STR_LIT("b"), STR_LIT("aa")) > 0);
  CHECK(str_cmp(STR_LIT("a"), STR_LIT("aa")) < 0);
  CHECK(str_cmp(STR_LIT("a\0b"), STR_LIT("a\0a")) > 0);
  CHECK(str_cmp(STR_LIT("\x7F"), STR_LIT("\x80")) < 0); /* bytes are unsigned */
  CHECK(str_cmp(STR_LIT(""), (lode_str){NULL, 0}) == 0);
  CHECK(str_cmp(STR_LIT(""), STR_LIT("a")) < 0);
  CHECK(str_eq(STR_LIT("x\0y"), STR_LIT("x\0y")) && !str_eq(STR_LIT("x"), STR_LIT("xy")));
  CHECK(str_of(NULL).data == NULL && str_of("ab").len == 2);
}

/* By decoding and encoding again, which is another way than the library's. */
static size_t reference_width(const unsigned char *p, size_t n) {
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  size_t width = p[0] < 0x80 ? 1 : p[0] >> 5 == 6 ? 2 : p[0] >> 4 == 14 ? 3 : p[0] >> 3 == 30 ? 4 : 0;
  if (width == 0 || width > n) return 0;
  uint32_t c = width == 1 ? p[0] : p[0] & (0x7Fu >> width);
  for (size_t i = 1; i < width; i++) {
    if (p[i] >> 6 != 2) return 0;
    c = c << 6 | (p[i] & 0x3F);
  }
  return c < least[width] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF) ? 0 : width;
}

static bool reference_valid(const unsigned char *p, size_t n) {
  for (size_t i = 0, w; i < n; i += w) {
    w = reference_width(p + i, n - i);
    if (w == 0) return false;
  }
  return true;
}

TEST(utf8_every_short_sequence) {
  unsigned char text[3];
  for (unsigned n = 0; n < 1u << 24; n += test_full() ? 1 : 5) { /* 5 and 2^24 have no common factor to hide behind */
    text[0] = (unsigned char)(n >> 16), text[1] = (unsigned char)(n >> 8), text[2] = (unsigned char)n;
    for (size_t len = 1; len <= 3; len++) {
      bool want = reference_valid(text, len), got = utf8_valid((char *)text, len);
      CHECKF(want == got, "%02x %02x %02x, %zu bytes: %d", text[0], text[1], text[2], len, got);
    }
    CHECK(utf8_width((char *)text, 3) == reference_width(text, 3));
  }
}

TEST(utf8_named_cases) {
  static const char *const good[] = {"",
                                     "ascii",
                                     "\xC2\x80",
                                     "\xDF\xBF",
                                     "\xE0\xA0\x80",
                                     "\xED\x9F\xBF",
                                     "\xEE\x80\x80",
                                     "\xEF\xBF\xBF",
                                     "\xF0\x90\x80\x80",
                                     "\xF4\x8F\xBF\xBF"};
  static const char *const wrong[] = {
      "\x80",
      "\xBF",
      "\xC0\x80",
      "\xC1\xBF",
      "\xE0\x80\x80",
      "\xE0\x9F\xBF",
      "\xF0\x80\x80\x80",
      "\xF0\x8F\xBF\xBF", /* overlong */
      "\xED\xA0\x80",
      "\xED\xBF\xBF",
      "\xED\xA0\x80\xED\xB0\x80", /* surrogates */
      "\xF4\x90\x80\x80",
      "\xF5\x80\x80\x80",
      "\xF8\x88\x80\x80\x80",
      "\xFE",
      "\xFF", /* past the end */
      "\xC2",
      "\xE2\x82",
      "\xF0\x9F\x90",
      "\xC2"
      "a",
      "\xE2\x82"
      "a",
      "\xF0\x9F\x90"
      "a", /* truncated */
  };
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) CHECKF(utf8_valid(good[i], strlen(good[i])), "good %zu", i);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    for (size_t before = 0; before < 20; before++) { /* on every side of a step of eight */
      char text[64];
      size_t n = strlen(wrong[i]);
      memset(text, 'x', sizeof text);
      memcpy(text + before, wrong[i], n);
      CHECKF(!utf8_valid(text, before + n), "wrong %zu after %zu bytes", i, before);
      CHECKF(!utf8_valid(text, sizeof text), "wrong %zu after %zu bytes, more after it", i, before);
    }
  }
}

TEST(utf8_random_against_the_reference) {
  test_srand(test_seed());
  static const unsigned char bytes[] = {0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2,
                                        0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5};
  unsigned valid = 0;
  for (int round = 0; round < 300000; round++) {
    unsigned char text[24];
    size_t n = test_below(test_below(2) ? 5 : sizeof text);
    for (size_t i = 0; i < n; i++) text[i] = test_below(3) ? bytes[test_below(sizeof bytes)] : 'a';
    bool want = reference_valid(text, n);
    valid += want;
    CHECK(utf8_valid((char *)text, n) == want);
  }
  CHECK(valid > 10000 && valid < 290000);
}

/* ---- Hash and random numbers ---- */

TEST(hash_depends_on_every_byte_and_the_length) {
  char text[40] = {0};
  uint64_t seen[41];
  for (size_t n = 0; n <= 40; n++) { /* zeros of every length differ */
    seen[n] = hash_bytes(text, n);
    CHECK(seen[n] == hash_bytes(text, n));
    for (size_t i = 0; i < n; i++) CHECK(seen[i] != seen[n]);
  }
  for (size_t n = 1; n <= 40; n++) {
    for (size_t i = 0; i < n; i++) {
      text[i] ^= 1;
      CHECK(hash_bytes(text, n) != seen[n]);
      text[i] ^= 1;
    }
  }
  unsigned buckets[64] = {0};
  for (uint32_t i = 0; i < 64000; i++) buckets[hash_bytes(&i, sizeof i) & 63]++;
  for (int i = 0; i < 64; i++) CHECKF(buckets[i] > 800 && buckets[i] < 1200, "%u of 1000", buckets[i]);
}

TEST(hash_keys_and_random_numbers_differ_between_processes) {
  uint64_t values[2][2];
  for (int i = 0; i < 2; i++) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
      uint64_t mine[2] = {hash_bytes("key", 3), rand_u64()};
      _exit(write(ends[1], mine, sizeof mine) == (ssize_t)sizeof mine ? 0 : 1);
    }
    CHECK(read(ends[0], values[i], sizeof values[i]) == (ssize_t)sizeof values[i]);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    close(ends[0]), close(ends[1]);
  }
  CHECK(values[0][0] != values[1][0] && values[0][1] != values[1][1]);
  CHECK(rand_u64() != rand_u64());
}

/* ---- CRC-32C ---- */

static uint32_t bitwise_crc(uint32_t crc, const unsigned char *p, size_t n) {
  crc = ~crc;
  for (size_t i = 0; i < n; i++) {
    crc ^= p[i];
    for (int b = 0; b < 8; b++) crc = crc & 1 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
  }
  return ~crc;
}

static void check_crc(uint32_t (*crc)(uint32_t, const void *, size_t)) {
  unsigned char zeros[32] = {0}, ones[32], up[32];
  memset(ones, 0xFF, sizeof ones);
  for (int i = 0; i < 32; i++) up[i] = (unsigned char)i;
  CHECK(crc(0, NULL, 0) == 0);
  CHECK(crc(0, "123456789", 9) == 0xE3069283u);
  CHECK(crc(0, zeros, 32) == 0x8A9136AAu && crc(0, ones, 32) == 0x62A8AB43u &&
        crc(0, up, 32) == 0x46DD794Eu); /* RFC 3720 */
  enum { SIZE = 40000 };
  unsigned char *data = malloc(SIZE);
  test_srand(test_seed());
  for (size_t i = 0; i < SIZE; i++) data[i] = (unsigned char)test_rand();
  for (size_t align = 0; align < 16; align++) {
    uint32_t want = 0;
    for (size_t n = 0; n <= 1200; n++) {
      uint32_t got = crc(0, data + align, n);
      CHECKF(got == want, "%zu bytes at %zu: %08x, wanted %08x", n, align, got, want);
      want = bitwise_crc(want, data + align + n, 1);
    }
  }
  for (size_t n = 3 * 4096 - 20; n < SIZE; n += 1 + test_below(1500)) { /* long streams */
    uint32_t begin = (uint32_t)test_rand(), want = bitwise_crc(begin, data, n);
    size_t cut = test_below(n);
    CHECK(crc(begin, data, n) == want);
    CHECK(crc(crc(begin, data, cut), data + cut, n - cut) == want);
  }
  free(data);
}

TEST(crc_by_tables) { check_crc(crc32c_portable); }
TEST(crc_as_chosen) { check_crc(crc32c_update); }

TEST(crc_obeys_the_environment) {
  CHECK(setenv("LODE_SIMD", "portable", 1) == 0);
  CHECK(strcmp(crc32c_name(), "portable") == 0);
  check_crc(crc32c_update);
}

TEST(crc_uses_the_instruction_where_there_is_one) {
  unsetenv("LODE_SIMD");
#if defined(__x86_64__)
  CHECK((strcmp(crc32c_name(), "sse4.2") == 0) == !!__builtin_cpu_supports("sse4.2"));
#elif !defined(__aarch64__)
  CHECK(strcmp(crc32c_name(), "portable") == 0);
#else
  CHECK(crc32c_name()[0]);
#endif
}

TEST(crc_of_integers_is_little_endian) {
  CHECK(crc32c_update_u32(5, 0x04030201u) == crc32c_update(5, "\1\2\3\4", 4));
  CHECK(crc32c_update_u64(5, 0x0807060504030201u) == crc32c_update(5, "\1\2\3\4\5\6\7\10", 8));
}

/* ---- The operating system ---- */

static char *path_in(const char *folder, const char *name) {
  static char path[4][4200];
  static unsigned at;
  char *p = path[at++ % 4];
  snprintf(p, sizeof path[0], "%s/%s", folder, name);
  return p;
}

/* A table whose transfers are short and often interrupted. */
static ssize_t stingy_pread(int fd, void *buf, size_t n, off_t off) {
  if (test_below(3) == 0) return errno = EINTR, -1;
  return os_real.pread(fd, buf, n > 7 ? 1 + test_below(7) : n, off);
}
static ssize_t stingy_pwrite(int fd, const void *buf, size_t n, off_t off) {
  if (test_below(3) == 0) return errno = EINTR, -1;
  return os_real.pwrite(fd, buf, n > 7 ? 1 + test_below(7) : n, off);
}

/* A host without standard output that prints all the same would write over the head of the file. */
TEST(no_file_takes_the_place_of_a_standard_stream) {
  const char *home = test_folder(), *path = path_in(home, "f");
  int kept = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 10);
  close(STDIN_FILENO);
  int fd = os_real.open(path, O_RDWR | O_CREAT, 0600);
  int folder = os_real.open(home, O_RDONLY | O_DIRECTORY, 0);
  int below = os_real.open_below(folder, "f", O_RDONLY, 0);
  bool left_closed = fcntl(STDIN_FILENO, F_GETFD) < 0;
  if (kept >= 0) dup2(kept, STDIN_FILENO);
  if (kept >= 0) close(kept);
  CHECK(fd > 2 && folder > 2 && below > 2 && left_closed);
  CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC && fcntl(below, F_GETFD) == FD_CLOEXEC);
  os_real.close(fd);
  os_real.close(folder);
  os_real.close(below);
}

TEST(transfers_go_on_over_interruptions_and_short_counts) {
  lode_error err;
  os_calls stingy = os_real;
  stingy.pread = stingy_pread;
  stingy.pwrite = stingy_pwrite;
  os_api = &stingy;
  test_srand(test_seed());
  char data[5000], back[5100];
  for (size_t i = 0; i < sizeof data; i++) data[i] = (char)test_rand();
  int fd = os_api->open(path_in(test_folder(), "f"), O_RDWR | O_CREAT, 0600);
  CHECK(fd >= 0);
  OK(os_write_full(fd, data, sizeof data, 100, &err));
  size_t got;
  OK(os_read_full(fd, back, sizeof data, 100, &got, &err));
  CHECK(got == sizeof data && memcmp(data, back, sizeof data) == 0);
  OK(os_read_full(fd, back, sizeof back, 3000, &got, &err)); /* past the end: short, no error */
  CHECK(got == 2100 && memcmp(data + 2900, back, 2100) == 0);
  OK(os_read_full(fd, back, 10, 1 << 20, &got, &err));
  CHECK(got == 0);
  OK(os_write_full(fd, data, 0, 0, &err));
  CHECK(os_api->close(fd) == 0);
}

static ssize_t full_pwrite(int fd, const void *buf, size_t n, off_t off) {
  (void)fd, (void)buf, (void)n, (void)off;
  return errno = ENOSPC, -1;
}
static ssize_t stuck_pwrite(int fd, const void *buf, size_t n, off_t off) {
  (void)fd, (void)buf, (void)n, (void)off;
  return 0;
}
static ssize_t broken_pread(int fd, void *buf, size_t n, off_t off) {
  if (off >= 4) return errno = EIO, -1;
  return os_real.pread(fd, buf, n < 4 ? n : 4, off);
}

TEST(transfers_report_what_went_wrong) {
  lode_error err;
  os_calls table = os_real;
  os_api = &table;
  char data[16] = "0123456789abcde";
  size_t got = 99;
  int fd = os_api->open(path_in(test_folder(), "f"), O_RDWR | O_CREAT, 0600);
  OK(os_write_full(fd, data, sizeof data, 0, &err));
  table.pwrite = full_pwrite;
  FAILS(LODE_FULL, os_write_full(fd, data, sizeof data, 0, &err));
  table.pwrite = stuck_pwrite;
  FAILS(LODE_IO, os_write_full(fd, data, sizeof data, 0, &err)); /* and does not spin */
  table.pread = broken_pread;
  FAILS(LODE_IO, os_read_full(fd, data, sizeof data, 0, &got, &err));
  CHECK(got == 0);
  FAILS(LODE_IO, os_read_full(fd, data, sizeof data, UINT64_MAX - 3, &got, &err));
  FAILS(LODE_IO, os_write_full(fd, data, sizeof data, INT64_MAX - 3, &err));
  os_api->close(fd);
}

TEST(descriptors_do_not_survive_exec) {
  int fd = os_api->open(path_in(test_folder(), "f"), O_RDWR | O_CREAT, 0600);
  CHECK(fd >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC));
  os_api->close(fd);
}

static char synced[4200];
static int spy_open(const char *path, int flags, unsigned mode) {
  snprintf(synced, sizeof synced, "%s", path);
  return os_real.open(path, flags, mode);
}
static int failing_fsync(int fd) { return (void)fd, errno = EIO, -1; }
static int unable_fsync(int fd) { return (void)fd, errno = EINVAL, -1; }
static int interrupted_fsync(int fd) { return test_below(4) ? (errno = EINTR, -1) : os_real.fsync(fd); }

TEST(folder_of_a_path_is_synced) {
  lode_error err;
  os_calls table = os_real;
  table.open = spy_open;
  table.fsync = interrupted_fsync;
  os_api = &table;
  const char *folder = test_folder();
  CHECK(chdir(folder) == 0);
  OK(os_sync_parent_dir(path_in(folder, "name"), &err));
  CHECK(strcmp(synced, folder) == 0);
  OK(os_sync_parent_dir(path_in(folder, "sub//"), &err));
  CHECK(strcmp(synced, folder) == 0);
  OK(os_sync_parent_dir(path_in(folder, "/name"), &err));
  CHECK(strcmp(synced, folder) == 0);
  OK(os_sync_parent_dir("name", &err));
  CHECK(strcmp(synced, ".") == 0);
  OK(os_sync_parent_dir("/name", &err));
  CHECK(strcmp(synced, "/") == 0);
  FAILS(LODE_IO, os_sync_parent_dir(path_in(folder, "no/such"), &err));
  table.fsync = failing_fsync;
  FAILS(LODE_IO, os_sync_parent_dir("name", &err));
  table.fsync = unable_fsync;
  OK(os_sync_parent_dir("name", &err));
  allocations_left = 0;
  mem_alloc_hook = count_down;
  FAILS(LODE_NOMEM, os_sync_parent_dir("name", &err));
  mem_alloc_hook = NULL;
}

TEST(locks_conflict_between_descriptors_of_one_process) {
  const char *path = path_in(test_folder(), "lock");
  int a = os_api->open(path, O_RDWR | O_CREAT, 0600), b = os_api->open(path, O_RDWR, 0);
  CHECK(a >= 0 && b >= 0);
  CHECK(os_api->lock(a, F_WRLCK, 0, 10) == 0);
  errno = 0;
  CHECK(os_api->lock(b, F_RDLCK, 5, 1) == -1 && errno == EAGAIN);
  CHECK(os_api->lock(b, F_WRLCK, 10, 1) == 0); /* another range */
  CHECK(os_api->lock_held(b, F_RDLCK, 0, 1) == 1);
  CHECK(os_api->lock_held(a, F_WRLCK, 0, 10) == 0); /* one's own is none */
  CHECK(os_api->lock(a, F_RDLCK, 0, 10) == 0);
  CHECK(os_api->lock_held(b, F_RDLCK, 0, 1) == 0 && os_api->lock_held(b, F_WRLCK, 0, 1) == 1);
  CHECK(os_api->lock(b, F_RDLCK, 0, 10) == 0);
  CHECK(os_api->lock(a, F_WRLCK, 0, 10) == -1 && errno == EAGAIN);
  CHECK(os_api->lock(b, F_UNLCK, 0, 10) == 0 && os_api->lock(a, F_WRLCK, 0, 10) == 0);
  int c = os_api->open(path, O_RDWR, 0); /* closing another descriptor of the file takes nothing away */
  CHECK(os_api->close(c) == 0);
  CHECK(os_api->lock(b, F_WRLCK, 0, 1) == -1 && errno == EAGAIN);
  CHECK(os_api->close(a) == 0);
  CHECK(os_api->lock(b, F_WRLCK, 0, 1) == 0);
  os_api->close(b);
  CHECK(os_api->lock(b, F_WRLCK, 0, 1) == -1 && errno == EBADF);
  CHECK(os_api->lock_held(b, F_WRLCK, 0, 1) == -1);
}

TEST(locks_conflict_between_processes_and_die_with_them) {
  const char *path = path_in(test_folder(), "lock");
  int fd = os_api->open(path, O_RDWR | O_CREAT, 0600), ready[2];
  CHECK(fd >= 0 && pipe(ready) == 0);
  pid_t child = fork();
  if (child == 0) {
    int own = os_api->open(path, O_RDWR, 0);
    char verdict = os_api->lock(own, F_WRLCK, 0, 1) == 0 ? 'y' : 'n';
    if (write(ready[1], &verdict, 1) != 1) _exit(1);
    for (;;) pause();
  }
  char verdict = 0;
  CHECK(read(ready[0], &verdict, 1) == 1 && verdict == 'y');
  CHECK(os_api->lock_held(fd, F_RDLCK, 0, 1) == 1);
  CHECK(os_api->lock(fd, F_RDLCK, 0, 1) == -1 && errno == EAGAIN);
  CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
  CHECK(os_api->lock(fd, F_WRLCK, 0, 1) == 0);
  os_api->close(fd);
  close(ready[0]), close(ready[1]);
}

TEST(files_folders_and_clocks) {
  const char *folder = test_folder();
  char *a = path_in(folder, "a"), *b = path_in(folder, "b");
  struct stat st;
  CHECK(os_api->mkdir(a, 0700) == 0 && os_api->stat(a, &st) == 0 && S_ISDIR(st.st_mode) && (st.st_mode & 0777) == 0700);
  CHECK(os_api->rmdir(a) == 0 && os_api->stat(a, &st) == -1 && errno == ENOENT);
  int fd = os_api->open(a, O_RDWR | O_CREAT | O_EXCL, 0600);
  CHECK(fd >= 0 && os_api->pwrite(fd, "hello", 5, 0) == 5 && os_api->ftruncate(fd, 3) == 0);
  CHECK(os_api->fsync(fd) == 0 && os_api->fdatasync(fd) == 0 && os_api->fstat(fd, &st) == 0 && st.st_size == 3);
  CHECK(os_api->rename(a, b) == 0 && os_api->stat(b, &st) == 0 && os_api->unlink(b) == 0);
  CHECK(os_api->close(fd) == 0);
  uint64_t before = os_api->now_ns();
  os_api->sleep_us(20000);
  uint64_t slept = os_api->now_ns() - before;
  CHECKF(slept >= 20000000, "%llu ns", (unsigned long long)slept);
  CHECK(os_wall_ms() > UINT64_C(1600000000000));
}

TEST(timed_waits_go_by_the_monotonic_clock) {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t cond;
  CHECK(os_cond_init(&cond) == 0);
  uint64_t before = os_api->now_ns();
  struct timespec until = os_deadline(1020); /* past the end of a second, too */
  CHECK(until.tv_nsec >= 0 && until.tv_nsec < 1000000000 && os_timespec_ns(until) >= (int64_t)before + 1020000000);
  until = os_deadline(20);
  int rc = 0;
  pthread_mutex_lock(&lock);
  while (rc == 0) rc = pthread_cond_timedwait(&cond, &lock, &until); /* the wall clock is far past it */
  pthread_mutex_unlock(&lock);
  CHECK(rc == ETIMEDOUT && os_api->now_ns() - before >= 20000000);
  pthread_cond_destroy(&cond);
}

TEST(network_file_systems_are_told_from_others) {
  char name[16] = "?";
  CHECK(os_fs_kind_of("/proc", name, sizeof name) == OS_FS_LOCAL && name[0] == '\0');
  CHECK(os_fs_kind_of(path_in(test_folder(), "absent"), NULL, 0) == OS_FS_LOCAL);
}

/* ---- The harness itself ---- */

TEST(trees_are_copied_and_removed) {
  const char *from = test_folder(), *to = test_folder();
  CHECK(strcmp(from, to) != 0);
  CHECK(mkdir(path_in(from, "sub"), 0700) == 0);
  test_write_file(path_in(from, "sub/file"), "text", 4);
  CHECK(symlink("file", path_in(from, "sub/link")) == 0);
  test_copy_tree(from, path_in(to, "copy"));
  size_t n;
  char *data = test_read_file(path_in(to, "copy/sub/link"), &n);
  CHECK(n == 4 && strcmp(data, "text") == 0);
  free(data);
  CHECK(chmod(path_in(to, "copy/sub"), 0500) == 0);
  test_remove_tree(path_in(to, "copy"));
  CHECK(access(path_in(to, "copy"), F_OK) != 0 && access(from, F_OK) == 0);
}

TEST(random_numbers_replay) {
  uint64_t first[8];
  test_srand(12345);
  for (int i = 0; i < 8; i++) first[i] = test_rand();
  test_srand(12345);
  for (int i = 0; i < 8; i++) CHECK(test_rand() == first[i]);
  for (int i = 0; i < 1000; i++) CHECK(test_below(7) < 7);
}
