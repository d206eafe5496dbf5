/* SPDX-License-Identifier: Apache-2.0 */
/* base64.c - see base64.h. Four characters become three bytes, twelve bytes three floats. */
#include "chroma/base64.h"

/* The value of each character; 255: not base64. */
static const unsigned char base64_values[256] = {
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 62,
    255, 255, 255, 63,  52,  53,  54,  55,  56,  57,  58,  59,  60,  61,  255, 255, 255, 255, 255, 255, 255, 0,
    1,   2,   3,   4,   5,   6,   7,   8,   9,   10,  11,  12,  13,  14,  15,  16,  17,  18,  19,  20,  21,  22,
    23,  24,  25,  255, 255, 255, 255, 255, 255, 26,  27,  28,  29,  30,  31,  32,  33,  34,  35,  36,  37,  38,
    39,  40,  41,  42,  43,  44,  45,  46,  47,  48,  49,  50,  51,  255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};

static size_t base64_padding(lode_str t) {
  return t.len >= 2 && t.data[t.len - 1] == '=' ? 1u + (t.data[t.len - 2] == '=') : 0;
}

size_t chroma_base64_floats(lode_str t) {
  if (t.len == 0 || t.len % 4) return SIZE_MAX;
  size_t bytes = t.len / 4 * 3 - base64_padding(t);
  return bytes % 4 ? SIZE_MAX : bytes / 4;
}

bool chroma_base64_decode(lode_str t, float *out) {
  const unsigned char *p = (const unsigned char *)t.data;
  unsigned char *to = (unsigned char *)out;
  size_t pad = base64_padding(t), whole = t.len / 4 - (pad != 0);
  unsigned bad = 0;
  for (size_t i = 0; i < whole; i++, p += 4, to += 3) {
    unsigned a = base64_values[p[0]], b = base64_values[p[1]], c = base64_values[p[2]], d = base64_values[p[3]];
    bad |= (a | b | c | d) & 0x80;
    to[0] = (unsigned char)(a << 2 | b >> 4);
    to[1] = (unsigned char)(b << 4 | c >> 2);
    to[2] = (unsigned char)(c << 6 | d);
  }
  if (pad) {
    unsigned a = base64_values[p[0]], b = base64_values[p[1]], c = pad == 1 ? base64_values[p[2]] : 0;
    bad |= (a | b | c) & 0x80;
    to[0] = (unsigned char)(a << 2 | b >> 4);
    if (pad == 1) to[1] = (unsigned char)(b << 4 | c >> 2);
  }
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "floats come in little-endian order: swap them here"
#endif
  return !bad;
}
