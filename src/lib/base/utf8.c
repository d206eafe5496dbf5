/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.c - UTF-8 validation, strictly by RFC 3629: no overlong forms, no surrogates, nothing past U+10FFFF.
 *
 * The lead byte determines the number of continuation bytes and the range of the first one; the others are 80..BF.
 * ASCII, which most text is, is checked eight bytes at a time.
 */
#include "base/base.h"

size_t utf8_width(const char *text, size_t left) {
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

bool utf8_valid(const char *data, size_t len) {
  size_t i = 0;
  while (i < len) {
    uint64_t word;
    while (len - i >= sizeof word) {
      memcpy(&word, data + i, sizeof word);
      if (word & 0x8080808080808080u) break;
      i += sizeof word;
    }
    if (i == len) break;
    size_t width = utf8_width(data + i, len - i);
    if (width == 0) return false;
    i += width;
  }
  return true;
}

/* Characters that a terminal interprets or does not show: controls, bidirectional and zero-width characters, and tags.
 * U+FE0E and U+FE0F are not included: they select between text and emoji. */
static const struct {
  uint32_t first, last;
} utf8_hidden_ranges[] = {
    {0x00, 0x1F},     {0x7F, 0x9F},       {0xAD, 0xAD},       {0x34F, 0x34F},     {0x61C, 0x61C},
    {0x115F, 0x1160}, {0x17B4, 0x17B5},   {0x180B, 0x180F},   {0x200B, 0x200F},   {0x2028, 0x202E},
    {0x2060, 0x206F}, {0x3164, 0x3164},   {0xFE00, 0xFE0D},   {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0},
    {0xFFF0, 0xFFFB}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
};

uint32_t utf8_decode(const char *text, size_t width) {
  const unsigned char *p = (const unsigned char *)text;
  switch (width) {
    case 1: return p[0];
    case 2: return (p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu);
    case 3: return (p[0] & 0x0Fu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
    default: return (p[0] & 0x07u) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
  }
}

bool utf8_is_hidden(uint32_t code) {
  const size_t n = sizeof utf8_hidden_ranges / sizeof *utf8_hidden_ranges;
  for (size_t i = 0; i < n && code >= utf8_hidden_ranges[i].first; i++)
    if (code <= utf8_hidden_ranges[i].last) return true;
  return false;
}
