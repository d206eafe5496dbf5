/* SPDX-License-Identifier: Apache-2.0 */
/* sha256.c - SHA-256 (FIPS 180-4), with the CPU's SHA instructions where available. */
#include "base/sha256.h"

#include "base/byteorder.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static const uint32_t SHA256_K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static inline uint32_t sha256_rotr(uint32_t x, unsigned n) { return x >> n | x << (32 - n); }

static void sha256_blocks_portable(uint32_t state[8], const uint8_t *p, size_t n) {
  for (; n; n--, p += 64) {
    uint32_t w[64];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (size_t i = 0; i < 16; i++) w[i] = num_be32(p + 4 * i);
    for (size_t i = 16; i < 64; i++) {
      uint32_t s0 = sha256_rotr(w[i - 15], 7) ^ sha256_rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
      uint32_t s1 = sha256_rotr(w[i - 2], 17) ^ sha256_rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    for (size_t i = 0; i < 64; i++) {
      uint32_t s1 = sha256_rotr(e, 6) ^ sha256_rotr(e, 11) ^ sha256_rotr(e, 25);
      uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + SHA256_K[i] + w[i];
      uint32_t t2 = (sha256_rotr(a, 2) ^ sha256_rotr(a, 13) ^ sha256_rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
  }
}

#if defined(__x86_64__)
/* Four rounds: w holds their words. */
#define SHA256_ROUNDS(w, k)                                                                                            \
  do {                                                                                                                 \
    __m128i m_ = _mm_add_epi32(w, _mm_loadu_si128((const __m128i *)(const void *)&SHA256_K[k]));                       \
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, m_);                                                                      \
    abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(m_, 0x0E));                                             \
  } while (0)

__attribute__((target("sha,sse4.1,ssse3"))) static void sha256_blocks_shani(uint32_t state[8], const uint8_t *p,
                                                                            size_t n) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i lo = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)state), 0xB1);
  __m128i hi = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)(state + 4)), 0x1B);
  __m128i abef = _mm_alignr_epi8(lo, hi, 8), cdgh = _mm_blend_epi16(hi, lo, 0xF0);
  for (; n; n--, p += 64) {
    __m128i w[4], abef0 = abef, cdgh0 = cdgh;
    for (size_t i = 0; i < 4; i++) {
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i)), swap);
      SHA256_ROUNDS(w[i], 4 * i);
    }
    for (size_t i = 4; i < 16; i++) {
      __m128i *w0 = &w[i & 3], w1 = w[(i + 1) & 3], w2 = w[(i + 2) & 3], w3 = w[(i + 3) & 3];
      __m128i t = _mm_add_epi32(_mm_sha256msg1_epu32(*w0, w1), _mm_alignr_epi8(w3, w2, 4));
      *w0 = _mm_sha256msg2_epu32(t, w3);
      SHA256_ROUNDS(*w0, 4 * i);
    }
    abef = _mm_add_epi32(abef, abef0);
    cdgh = _mm_add_epi32(cdgh, cdgh0);
  }
  lo = _mm_shuffle_epi32(abef, 0x1B);
  hi = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128((__m128i *)(void *)state, _mm_blend_epi16(lo, hi, 0xF0));
  _mm_storeu_si128((__m128i *)(void *)(state + 4), _mm_alignr_epi8(hi, lo, 8));
}

static bool has_sha(void) {
  uint32_t a = 7, b = 0, c = 0, d = 0;
  __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  return (b >> 29 & 1) && __builtin_cpu_supports("sse4.1");
}
#endif

static void sha256_blocks(uint32_t state[8], const uint8_t *p, size_t n) {
#if defined(__x86_64__)
  static int support; /* 0: not checked yet, 1: no, 2: yes */
  int answer = __atomic_load_n(&support, __ATOMIC_RELAXED);
  if (!answer) __atomic_store_n(&support, answer = has_sha() ? 2 : 1, __ATOMIC_RELAXED);
  if (answer == 2) {
    sha256_blocks_shani(state, p, n);
    return;
  }
#endif
  sha256_blocks_portable(state, p, n);
}

void sha256_init(sha256_ctx *sha) {
  *sha = (sha256_ctx){
      .state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_update(sha256_ctx *sha, const void *data, size_t len) {
  const uint8_t *p = data;
  size_t have = sha->bytes % 64;
  if (len == 0) return;
  sha->bytes += len;
  if (have) {
    size_t take = len < 64 - have ? len : 64 - have;
    memcpy(sha->block + have, p, take);
    if (have + take < 64) return;
    sha256_blocks(sha->state, sha->block, 1);
    p += take, len -= take;
  }
  sha256_blocks(sha->state, p, len / 64);
  memcpy(sha->block, p + len / 64 * 64, len % 64);
}

void sha256_final(sha256_ctx *sha, uint8_t digest[SHA256_BYTES]) {
  uint64_t bits = sha->bytes * 8;
  uint8_t pad[72] = {0x80};
  size_t n = 64 - (sha->bytes + 8) % 64;
  num_put_be64(pad + n, bits);
  sha256_update(sha, pad, n + 8);
  for (size_t i = 0; i < 8; i++) num_put_be32(digest + 4 * i, sha->state[i]);
}

void sha256_of(const void *data, size_t len, uint8_t digest[SHA256_BYTES]) {
  sha256_ctx sha;
  sha256_init(&sha);
  sha256_update(&sha, data, len);
  sha256_final(&sha, digest);
}

void sha256_hex(const uint8_t digest[SHA256_BYTES], char hex[SHA256_HEX_BYTES]) {
  for (size_t i = 0; i < 32; i++) {
    hex[2 * i] = "0123456789abcdef"[digest[i] >> 4];
    hex[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
  }
  hex[64] = '\0';
}
