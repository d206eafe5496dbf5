/* utf8.c - is this UTF-8? Exactly RFC 3629: no overlong forms, no surrogates, nothing past U+10FFFF.
 *
 * The lead byte gives the number of continuation bytes and the range of the first of them; the others are 80..BF.
 * ASCII, which is most text, goes eight bytes at a time.
 */
#include "base.h"

size_t lode__utf8_width(const char *text, size_t left) {
  const unsigned char *p = (const unsigned char *)text;
  unsigned char lead = p[0], low = 0x80, high = 0xBF;
  size_t width;
  if (lead < 0x80) return 1;
  if (lead < 0xC2) return 0; /* a continuation byte, or an overlong form of ASCII */
  if (lead < 0xE0) {
    width = 2;
  } else if (lead < 0xF0) {
    width = 3;
    if (lead == 0xE0) low = 0xA0;  /* less is overlong */
    if (lead == 0xED) high = 0x9F; /* more is a surrogate */
  } else if (lead < 0xF5) {
    width = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F; /* more is past U+10FFFF */
  } else {
    return 0;
  }
  if (left < width || p[1] < low || p[1] > high) return 0;
  for (size_t i = 2; i < width; i++) {
    if ((p[i] & 0xC0) != 0x80) return 0;
  }
  return width;
}

bool lode__utf8_valid(const char *data, size_t len) {
  size_t i = 0;
  while (i < len) {
    uint64_t word;
    while (len - i >= sizeof word) {
      memcpy(&word, data + i, sizeof word);
      if (word & 0x8080808080808080u) break;
      i += sizeof word;
    }
    if (i == len) break;
    size_t width = lode__utf8_width(data + i, len - i);
    if (width == 0) return false;
    i += width;
  }
  return true;
}
