/* SPDX-License-Identifier: Apache-2.0 */
/* hash.c - a keyed hash for tables whose keys come from users, and random numbers.
 *
 * SipHash-1-3 with a key chosen once per process: without the key nobody can construct colliding ids. The value differs
 * between runs and must never be stored. Random numbers come straight from the kernel, so that processes forked from
 * the same parent do not draw the same backoff or salt.
 */
#include "base/base.h"
#include "platform/platform.h"

#include <pthread.h>
#include <unistd.h>

static uint64_t hash_mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

uint64_t rand_u64(void) {
  uint64_t value;
  if (os_random(&value, sizeof value, true) == 0) return value;
  /* Early at boot, or system call filtered: use what differs between calls, threads and processes. */
  uint64_t now = os_real.now_ns();
  return hash_mix(now + hash_mix((uint64_t)getpid()) + hash_mix((uint64_t)(uintptr_t)&now));
}

static pthread_once_t hash_key_once = PTHREAD_ONCE_INIT;
static uint64_t hash_key0, hash_key1;

static void hash_draw_key(void) {
  hash_key0 = rand_u64();
  hash_key1 = rand_u64();
}

static inline uint64_t hash_rotl(uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }

static inline void sip_round(uint64_t v[4]) {
  v[0] += v[1], v[1] = hash_rotl(v[1], 13) ^ v[0], v[0] = hash_rotl(v[0], 32);
  v[2] += v[3], v[3] = hash_rotl(v[3], 16) ^ v[2];
  v[0] += v[3], v[3] = hash_rotl(v[3], 21) ^ v[0];
  v[2] += v[1], v[1] = hash_rotl(v[1], 17) ^ v[2], v[2] = hash_rotl(v[2], 32);
}

uint64_t hash_bytes(const void *data, size_t len) {
  pthread_once(&hash_key_once, hash_draw_key);
  uint64_t v[4] = {hash_key0 ^ 0x736F6D6570736575u, hash_key1 ^ 0x646F72616E646F6Du, hash_key0 ^ 0x6C7967656E657261u,
                   hash_key1 ^ 0x7465646279746573u};
  const unsigned char *p = data;
  size_t left = len;
  for (; left >= 8; p += 8, left -= 8) {
    uint64_t word;
    memcpy(&word, p, 8);
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
  }
  uint64_t last = (uint64_t)len << 56;
  if (left) memcpy(&last, p, left); /* at most 7 bytes: the length stays in the top byte */
  v[3] ^= last;
  sip_round(v);
  v[0] ^= last;
  v[2] ^= 0xFF;
  for (int i = 0; i < 3; i++) sip_round(v);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}
