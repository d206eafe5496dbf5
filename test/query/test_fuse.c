/* SPDX-License-Identifier: Apache-2.0 */
/* test_fuse.c - fusion of rankings, against a plain quadratic computation of its definition. */
#include "query/fuse.h"
#include "support/test.h"

TEST(fuse_adds_the_scores_of_both_lists) {
  const uint64_t a[] = {7, 3, 9}, b[] = {3, 5};
  fuse_ranked out[5];
  size_t n;
  n = fuse_rankings((fuse_ranking){a, 3, 1}, (fuse_ranking){b, 2, 1}, out);
  CHECK(n == 4);
  CHECK(out[0].key == 3 && out[0].score == 1 / 62.0 + 1 / 61.0);
  CHECK(out[1].key == 7 && out[1].score == 1 / 61.0);
  CHECK(out[2].key == 5 && out[2].score == 1 / 62.0);
  CHECK(out[3].key == 9 && out[3].score == 1 / 63.0);
}

TEST(fuse_breaks_ties_by_key) {
  const uint64_t a[] = {20}, b[] = {10};
  fuse_ranked out[2];
  size_t n;
  n = fuse_rankings((fuse_ranking){a, 1, 0.5}, (fuse_ranking){b, 1, 0.5}, out);
  CHECK(n == 2 && out[0].key == 10 && out[1].key == 20);
}

TEST(fuse_takes_empty_lists) {
  const uint64_t a[] = {2, 1};
  fuse_ranked out[2];
  size_t n;
  n = fuse_rankings((fuse_ranking){NULL, 0, 1}, (fuse_ranking){NULL, 0, 1}, out);
  CHECK(n == 0);
  n = fuse_rankings((fuse_ranking){NULL, 0, 1}, (fuse_ranking){a, 2, 3}, out);
  CHECK(n == 2 && out[0].key == 2 && out[0].score == 3 / 61.0 && out[1].key == 1);
}

enum { MANY = 300, KEYS = 500 };

/* A random choice of distinct keys in random order. */
static size_t draw(uint64_t *keys) {
  uint64_t all[KEYS];
  for (size_t i = 0; i < KEYS; i++) all[i] = i * 1000003;
  size_t n = test_below(MANY + 1);
  for (size_t i = 0; i < n; i++) {
    size_t j = i + test_below(KEYS - i);
    keys[i] = all[j];
    all[j] = all[i];
  }
  return n;
}

static double score_of(uint64_t key, const uint64_t *keys, size_t n, double weight) {
  for (size_t i = 0; i < n; i++) {
    if (keys[i] == key) return weight / (61.0 + (double)i);
  }
  return 0;
}

TEST(fuse_agrees_with_its_definition) {
  test_srand(test_seed());
  for (int round = 0; round < 200; round++) {
    uint64_t a[MANY], b[MANY];
    fuse_ranked out[2 * MANY];
    size_t na = draw(a), nb = draw(b), n, both = 0;
    double wa = (double)test_below(4), wb = (double)test_below(4);
    for (size_t i = 0; i < na; i++) {
      for (size_t j = 0; j < nb; j++) both += a[i] == b[j];
    }
    n = fuse_rankings((fuse_ranking){a, na, wa}, (fuse_ranking){b, nb, wb}, out);
    CHECK(n == na + nb - both);
    for (size_t i = 0; i < n; i++) {
      CHECK(out[i].score == score_of(out[i].key, a, na, wa) + score_of(out[i].key, b, nb, wb));
      if (i == 0) continue;
      CHECK(out[i - 1].score > out[i].score || (out[i - 1].score == out[i].score && out[i - 1].key < out[i].key));
    }
  }
}
