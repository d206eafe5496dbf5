/* SPDX-License-Identifier: Apache-2.0 */
/* test.h - the whole test framework. A test file has TEST(name) { ... } blocks, CHECKs in them, and nothing else; each
 * file links into its own program. Each test runs in a child process of its own, so that a signal is a failed test
 * and not the end of the run. The program prints one line per failure and ends with "N passed, N failed".
 *
 *   prog              runs all        prog WORD   runs tests whose name contains WORD
 *   LODE_TEST_PATIENCE=n  time-outs are n times as long: for busy machines
 *   LODE_TEST_SEED=n  replays a random test; LODE_TEST_FULL=1 does every byte and every call; LODE_TEST_NOFORK=1 for
 * gdb
 */
#ifndef LODE_TEST_H
#define LODE_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/sanitized.h" /* BUILD_ASAN, BUILD_TSAN */

typedef struct test_case {
  const char *name, *file;
  void (*run)(void);
  unsigned timeout_s;
  struct test_case *next;
} test_case;
void test_register(test_case *t);
void test_failed(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
void test_skip(const char *why); /* ends the test as skipped, saying why */

#define TEST_(name, seconds)                                                                                           \
  static void test_##name(void);                                                                                       \
  static test_case case_##name = {#name, __FILE__, test_##name, seconds, NULL};                                        \
  __attribute__((constructor)) static void reg_##name(void) { test_register(&case_##name); }                           \
  static void test_##name(void)
#define TEST(name) TEST_(name, 60) /* killed and failed after a minute */
#define TEST_SLOW(name, seconds) TEST_(name, seconds)

/* A failed check ends the test (its process exits). */
#define CHECK(cond)                                                                                                    \
  do {                                                                                                                 \
    if (!(cond)) test_failed(__FILE__, __LINE__, "%s", #cond);                                                         \
  } while (0)
#define CHECKF(cond, ...)                                                                                              \
  do {                                                                                                                 \
    if (!(cond)) test_failed(__FILE__, __LINE__, __VA_ARGS__);                                                         \
  } while (0)
/* Status checks: OK(call(..., &err)) shows err.text when it fails. `err` must be in scope. */
#define OK(call)                                                                                                       \
  do {                                                                                                                 \
    lode_status st_ = (call);                                                                                          \
    if (st_ != LODE_OK) test_failed(__FILE__, __LINE__, "%s: %s %s", #call, lode_status_name(st_), err.text);          \
  } while (0)
#define FAILS(status, call)                                                                                            \
  do {                                                                                                                 \
    lode_status st_ = (call);                                                                                          \
    if (st_ != (status))                                                                                               \
      test_failed(__FILE__, __LINE__, "%s: got %s, wanted %s (%s)", #call, lode_status_name(st_), #status, err.text);  \
  } while (0)

/* Seeded random numbers (xoshiro-like); the seed is printed when a test fails. */
uint64_t test_seed(void); /* LODE_TEST_SEED or from the clock */
void test_srand(uint64_t seed);
uint64_t test_rand(void);
uint64_t test_below(uint64_t n); /* 0 <= x < n */
bool test_full(void);            /* LODE_TEST_FULL=1 */
unsigned test_patience(void);    /* LODE_TEST_PATIENCE, 1 unless set: times as long as on a quiet machine */

/* A fresh empty folder under $TMPDIR, another one at each call, removed when the test has ended. */
const char *test_folder(void);
/* Removes a folder and what is in it. */
void test_remove_tree(const char *path);
void test_copy_tree(const char *from, const char *to);
char *test_read_file(const char *path, size_t *len); /* malloc'd, with a NUL after it */
void test_write_file(const char *path, const void *data, size_t len);

#endif
