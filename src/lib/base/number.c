/* SPDX-License-Identifier: Apache-2.0 */
/* number.c - decimal text to binary numbers and back.
 *
 * Reading: up to 19 digits w and a power 10^e with |e| <= 27 are exact in integers: w * 5^e has at most 127 bits, and
 * w / 5^-e is a 64-bit quotient with a remainder that shows whether it is exact. One rounding to 53 or 24 bits follows,
 * so the result is the nearest number (a float is never rounded twice). Other numbers go to strtod as plain digits with
 * an exponent, which reads the same in every locale.
 *
 * Writing: the value times a power of ten, rounded to an integer of N digits with the same arithmetic, for the smallest
 * N whose integer is closer to the value than half the distance to its neighbours, and so reads back; 17 digits are
 * always enough for a double, 9 for a float. Floats that need no more than 64 bits for this are scaled only once.
 * Values too large or too small use printf's digits.
 */
#include "base/number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef unsigned __int128 u128;

enum {
  POW5_MAX = 27,     /* 5^27 < 2^63 */
  EXACT_DIGITS = 19, /* 10^19 < 2^64 */
  SIGNIFICANT = 800, /* more digits than any midpoint between two doubles has (768) */
};
#define EXPONENT_CAP INT64_C(1000000000000000) /* larger than any text's length, far from overflow */

static const uint64_t pow5[POW5_MAX + 1] = {
    1u,
    5u,
    25u,
    125u,
    625u,
    3125u,
    15625u,
    78125u,
    390625u,
    1953125u,
    9765625u,
    48828125u,
    244140625u,
    1220703125u,
    6103515625u,
    30517578125u,
    152587890625u,
    762939453125u,
    3814697265625u,
    19073486328125u,
    95367431640625u,
    476837158203125u,
    2384185791015625u,
    11920928955078125u,
    59604644775390625u,
    298023223876953125u,
    1490116119384765625u,
    7450580596923828125u,
};

static const uint64_t pow10_table[20] = {
    1u,
    10u,
    100u,
    1000u,
    10000u,
    100000u,
    1000000u,
    10000000u,
    100000000u,
    1000000000u,
    10000000000u,
    100000000000u,
    1000000000000u,
    10000000000000u,
    100000000000000u,
    1000000000000000u,
    10000000000000000u,
    100000000000000000u,
    1000000000000000000u,
    10000000000000000000u,
};

/* ---- Text to digits ---- */

static inline bool is_digit(char c) { return (unsigned char)(c - '0') < 10; }

/* Appends the digits at p to *w, modulo 2^64. */
static inline const char *take_digits(const char *p, const char *end, uint64_t *w) {
  uint64_t v = *w;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  while (end - p >= 8) {
    uint64_t x;
    memcpy(&x, p, 8);
    uint64_t high = (x & 0xF0F0F0F0F0F0F0F0u) | (((x + 0x0606060606060606u) & 0xF0F0F0F0F0F0F0F0u) >> 4);
    if (high != 0x3333333333333333u) break;
    x -= 0x3030303030303030u; /* then combine to pairs, fours, eight */
    x = x * 10 + (x >> 8);
    const uint64_t mask = 0x000000FF000000FFu;
    x = ((x & mask) * 0x000F424000000064u + ((x >> 16) & mask) * 0x0000271000000001u) >> 32;
    v = v * 100000000u + (uint32_t)x;
    p += 8;
  }
#endif
  for (; p < end && is_digit(*p); p++) v = v * 10 + (uint64_t)(*p - '0');
  *w = v;
  return p;
}

/* The exponent after the 'e'; NULL if it has no digit. */
static const char *take_exponent(const char *p, const char *end, int64_t *exponent) {
  bool negative = false;
  int64_t e = 0;
  if (p < end && (*p == '+' || *p == '-')) negative = *p++ == '-';
  if (p == end || !is_digit(*p)) return NULL;
  for (; p < end && is_digit(*p); p++) {
    if (e < EXPONENT_CAP) e = e * 10 + (*p - '0');
  }
  *exponent = negative ? -e : e;
  return p;
}

/* Number of digits from the first nonzero one. */
static size_t significant(const char *p, const char *end) {
  while (p < end && (*p == '0' || *p == '.')) p++;
  size_t n = (size_t)(end - p);
  return memchr(p, '.', n) ? n - 1 : n;
}

const char *num_scan(const char *p, const char *end, num_parsed *number) {
  const char *begin = p;
  bool negative = p < end && *p == '-';
  if (negative) p++;
  const char *whole = p;
  uint64_t w = 0;
  p = take_digits(p, end, &w);
  if (p == whole || (*whole == '0' && p - whole > 1)) return NULL;
  int64_t exponent = 0, places = 0;
  bool integer = true;
  size_t digits = (size_t)(p - whole);
  if (p < end && *p == '.') {
    const char *fraction = ++p;
    p = take_digits(p, end, &w);
    if (p == fraction) return NULL;
    places = p - fraction;
    digits += (size_t)places;
    integer = false;
  }
  bool exact = digits <= EXACT_DIGITS || significant(whole, p) <= EXACT_DIGITS;
  if (p < end && (*p == 'e' || *p == 'E')) {
    p = take_exponent(p + 1, end, &exponent);
    if (!p) return NULL;
    integer = false;
  }
  *number = (num_parsed){begin, p, w, exponent - places, negative, integer, exact};
  return p;
}

bool num_to_int(const num_parsed *number, int64_t *value) {
  uint64_t max = (uint64_t)INT64_MAX + number->negative;
  if (!number->integer || !number->exact || number->digits > max) return false;
  *value = number->negative ? (int64_t)(0 - number->digits) : (int64_t)number->digits;
  return true;
}

/* ---- Digits to binary ---- */

static inline unsigned leading_zeros(u128 x) {
  uint64_t high = (uint64_t)(x >> 64);
  return (unsigned)(high ? __builtin_clzll(high) : 64 + __builtin_clzll((uint64_t)x));
}

/* w * 10^e10, w > 0, |e10| <= POW5_MAX, as the nearest m * 2^*e2 where m has exactly `bits` bits. */
static inline uint64_t scale_to_binary(uint64_t w, int e10, unsigned bits, int *e2) {
  unsigned zeros = (unsigned)__builtin_clzll(w);
  uint64_t top; /* the leading 64 bits of the value */
  bool rest;    /* whether nonzero bits follow them */
  int e;
  w <<= zeros;
  if (e10 >= 0) {
    u128 product = (u128)w * pow5[e10];
    unsigned shift = leading_zeros(product);
    product <<= shift;
    top = (uint64_t)(product >> 64);
    rest = (uint64_t)product != 0;
    e = e10 - (int)zeros - (int)shift + 64;
  } else {
    unsigned divisor_zeros = (unsigned)__builtin_clzll(pow5[-e10]);
    uint64_t divisor = pow5[-e10] << divisor_zeros;
    u128 dividend = (u128)w << 63;
    top = (uint64_t)(dividend / divisor); /* in (2^62, 2^64) */
    rest = (u128)top * divisor != dividend;
    e = e10 - (int)zeros + (int)divisor_zeros - 63;
    if (!(top >> 63)) top <<= 1, e--; /* the bit shifted in is below all that matter: `rest` covers it */
  }
  unsigned drop = 64 - bits;
  uint64_t half = (uint64_t)1 << (drop - 1), low = top & (2 * half - 1), m = top >> drop;
  if (low > half || (low == half && (rest || (m & 1)))) m++;
  e += (int)drop;
  if (m >> bits) m >>= 1, e++;
  *e2 = e;
  return m;
}

static inline bool scalable(uint64_t w, int64_t e10) { return w != 0 && e10 >= -POW5_MAX && e10 <= POW5_MAX; }

/* 10^-27 to 10^46 are normal doubles, so the exponent always fits. */
static inline double make_double(uint64_t w, int e10, bool negative) {
  int e2;
  uint64_t m = scale_to_binary(w, e10, 53, &e2);
  uint64_t image = (uint64_t)negative << 63 | (uint64_t)(e2 + 52 + 1023) << 52 | (m & ((UINT64_C(1) << 52) - 1));
  double d;
  memcpy(&d, &image, sizeof d);
  return d;
}

static inline float make_float(uint64_t w, int e10, bool negative) {
  int e2;
  uint64_t m = scale_to_binary(w, e10, 24, &e2);
  uint32_t exponent = (uint32_t)(e2 + 23 + 127);
  uint32_t image = exponent < 255 ? exponent << 23 | ((uint32_t)m & 0x7FFFFF) : 0x7F800000;
  image |= (uint32_t)negative << 31;
  float f;
  memcpy(&f, &image, sizeof f);
  return f;
}

/* All digits that can matter, as "-DIGITSe-EXP" for strtod; false if the value is 0. */
static bool plain_text(const num_parsed *number, char out[SIGNIFICANT + 32]) {
  size_t n = 0;
  int64_t dropped = 0, exponent = number->exp10;
  bool tail = false;
  const char *p = number->begin + number->negative;
  if (number->negative) *out++ = '-';
  for (; p < number->end && *p != 'e' && *p != 'E'; p++) {
    if (*p == '.' || (n == 0 && *p == '0')) continue;
    if (n < SIGNIFICANT) {
      out[n++] = *p;
    } else {
      dropped++;
      tail = tail || *p != '0';
    }
  }
  if (n == 0) return false;
  exponent += dropped;
  if (tail) out[n++] = '1', exponent--; /* slightly more than the digits kept: rounds like all of them */
  if (exponent > 10000) exponent = 10000;
  if (exponent < -10000) exponent = -10000;
  snprintf(out + n, 16, "e%d", (int)exponent);
  return true;
}

bool num_to_double(const num_parsed *number, double *value) {
  if (number->exact && scalable(number->digits, number->exp10)) {
    *value = make_double(number->digits, (int)number->exp10, number->negative);
    return true;
  }
  char text[SIGNIFICANT + 32];
  *value = number->negative ? -0.0 : 0.0;
  if (plain_text(number, text)) *value = strtod(text, NULL);
  return isfinite(*value);
}

bool num_to_float(const num_parsed *number, float *value) {
  if (number->exact && scalable(number->digits, number->exp10)) {
    *value = make_float(number->digits, (int)number->exp10, number->negative);
    return isfinite(*value);
  }
  char text[SIGNIFICANT + 32];
  *value = number->negative ? -0.0f : 0.0f;
  if (plain_text(number, text)) *value = strtof(text, NULL);
  return isfinite(*value);
}

/* ---- Binary to digits ---- */

typedef struct num_decimal {
  uint64_t digits; /* value = digits * 10^exp10 */
  int exp10;
} num_decimal;

/* A decomposed value: m * 2^e2 where m has 53 bits; neighbours of its type are `ulp` units of m away. */
typedef struct num_binary {
  uint64_t m;
  int e2;
  uint64_t ulp;
} num_binary;

/* A candidate was rounded from the value and differs from it by `distance`, in units of which the value's ulp has
 * `ulp`. Does it round back? Yes if it is less than halfway to the neighbour, or halfway and the value is even. Below a
 * power of two the neighbour is nearer. */
static inline bool rounds_back(u128 distance, u128 ulp, bool below, const num_binary *value) {
  bool near = below && value->m == UINT64_C(1) << 52, even = (value->m & value->ulp) == 0;
  distance <<= near ? 2 : 1;
  return distance < ulp || (distance == ulp && even);
}

/* Rounds the value to an integer times 10^-k. False if that is out of range; *back: whether it reads back. */
static inline bool scale_to_integer(const num_binary *value, int k, uint64_t *integer, bool *back) {
  int shift = value->e2 + k;
  u128 quotient;
  if (k > POW5_MAX || k < -POW5_MAX) return false;
  if (k >= 0) {
    u128 product = (u128)value->m * pow5[k]; /* at most 53 + 63 bits, so the shifts below stay within 128 */
    if (shift > 0 || shift < -124) return false;
    u128 unit = (u128)1 << -shift, rest = product & (unit - 1);
    bool up = rest > unit / 2;
    quotient = (product >> -shift) + up;
    *back = rounds_back(up ? unit - rest : rest, (u128)pow5[k] * value->ulp, !up, value);
  } else {
    if (shift < -60 || shift > 74) return false;
    u128 dividend = value->m, divisor = pow5[-k], ulp = value->ulp;
    if (shift >= 0)
      dividend <<= shift, ulp <<= shift;
    else
      divisor <<= -shift;
    quotient = dividend / divisor;
    u128 rest = dividend - quotient * divisor;
    bool up = rest > divisor / 2;
    quotient += up;
    *back = rounds_back(up ? divisor - rest : rest, ulp, !up, value);
  }
  *integer = (uint64_t)quotient;
  return quotient >> 64 == 0;
}

/* floor(log10(2^power)), with 78913 / 2^18 for log10(2): the exponent of the first digit, or one less. */
static inline int first_place(int power) { return (power * 78913 - (power < 0 ? (1 << 18) - 1 : 0)) / (1 << 18); }

/* The fewest digits that read back. False if the value is out of range for this method. */
static bool shortest_by_integers(double size, bool single, num_decimal *best) {
  if (size < 1e-19 || size > 1e40) return false; /* all floats and doubles in between are normal */
  int n = single ? 9 : 17, min_digits = single ? 6 : 15;
  const uint64_t hidden = UINT64_C(1) << 52;
  uint64_t image;
  memcpy(&image, &size, sizeof image);
  num_binary value = {(image & (hidden - 1)) | hidden, (int)(image >> 52) - 1075, single ? 1u << 29 : 1};
  int place = first_place(value.e2 + 52);
  num_decimal d;
  bool back;
  if (!scale_to_integer(&value, n - 1 - place, &d.digits, &back)) return false;
  if (d.digits >= pow10_table[n]) {
    place++;
    if (!scale_to_integer(&value, n - 1 - place, &d.digits, &back)) return false;
  }
  if (!back) return false;
  for (;;) {
    best->digits = d.digits;
    best->exp10 = place - n + 1;
    if (--n < min_digits) return true;
    if (!scale_to_integer(&value, n - 1 - place, &d.digits, &back)) return false;
    if (!back) return true;
  }
}

/* A float scaled to nine digits: digits + rest / unit. Whatever is within limit / 4 units of the rest reads back. */
typedef struct nine_digits {
  uint64_t digits, rest, unit, limit;
} nine_digits;

/* Rounds the last digits away (step is 10, 100, ...). Does the result read back? */
static inline bool round_to(const nine_digits *v, uint64_t step, uint64_t *integer) {
  uint64_t unit = v->unit * step, rest = v->digits % step * v->unit + v->rest, other = unit - rest;
  *integer = v->digits / step + (rest > other);
  return 4 * (rest > other ? other : rest) < v->limit;
}

/* The same for floats from 10^-9 to 10^8, as in vectors: in 64 bits, scaled once, and with few branches, because they
 * would be unpredictable. */
static bool shortest_float(float size, num_decimal *best) {
  enum { FLOAT_MAX_POW5 = 17 }; /* 24 bits times 5^17 are 64 */
  const uint32_t hidden = 1u << 23;
  uint32_t image;
  memcpy(&image, &size, sizeof image);
  uint32_t m = (image & (hidden - 1)) | hidden;
  int e2 = (int)(image >> 23) - 150, k = 8 - first_place(e2 + 23), shift = -(e2 + k);
  /* not for powers of two: their neighbours are at different distances */
  if (k < 0 || k > FLOAT_MAX_POW5 || shift <= 0 || m == hidden) return false;
  uint64_t value = m * pow5[k], unit = UINT64_C(1) << shift, integer, shorter;
  nine_digits v = {value >> shift, value & (unit - 1), unit, 2 * pow5[k] + !(m & 1)};
  if (v.digits >= pow10_table[9]) { /* ten digits */
    v = (nine_digits){v.digits / 10, v.digits % 10 * unit + v.rest, unit * 10, v.limit};
    k--;
  }
  (void)round_to(&v, 1, &integer);
  bool eight = round_to(&v, 10, &shorter);
  *best = (num_decimal){eight ? shorter : integer, eight - k};
  for (int n = 2; n <= 3 && round_to(&v, pow10_table[n], &shorter); n++) *best = (num_decimal){shorter, n - k};
  return true;
}

/* The same by printf: slow, for every value. The smaller a subnormal value, the fewer digits it needs. */
static void shortest_by_printf(double value, bool single, num_decimal *best) {
  int max_digits = single ? 9 : 17, min_digits = single ? 6 : 15;
  if (value < (single ? (double)FLT_MIN : DBL_MIN)) min_digits = 1;
  for (int n = min_digits; n <= max_digits; n++) {
    char text[64];
    num_parsed number = {.exact = true};
    double back_double = 0;
    float back_float = 0;
    snprintf(text, sizeof text, "%.*e", n - 1, value);
    best->digits = 0;
    const char *p = text;
    for (; *p != 'e'; p++) { /* skips the locale's decimal point, whatever it is */
      if (is_digit(*p)) best->digits = best->digits * 10 + (uint64_t)(*p - '0');
    }
    best->exp10 = (int)strtol(p + 1, NULL, 10) - (n - 1);
    int len = snprintf(text, sizeof text, "%llue%d", (unsigned long long)best->digits, best->exp10);
    if (!num_scan(text, text + len, &number)) continue;
    if (single ? num_to_float(&number, &back_float) && back_float == (float)value
               : num_to_double(&number, &back_double) && back_double == value) {
      return;
    }
  }
}

/* Eight digits, with leading zeros. */
static inline void put_eight(uint32_t w, char *out) {
  static const char pairs[] =
      "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
      "5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";
  uint32_t high = w / 10000, low = w % 10000;
  memcpy(out, pairs + high / 100 * 2, 2);
  memcpy(out + 2, pairs + high % 100 * 2, 2);
  memcpy(out + 4, pairs + low / 100 * 2, 2);
  memcpy(out + 6, pairs + low % 100 * 2, 2);
}

/* Plain notation from 0.00001 to 10^16, otherwise d.ddde-7. */
static size_t num_format(num_decimal d, bool negative, char *out) {
  enum { EIGHTS = 3, NUM_MAX_DIGITS = 17 };
  char digits[8 * EIGHTS + NUM_MAX_DIGITS] = {0}, *begin = out;
  const char *from = digits + 8 * EIGHTS, *end = from;
  do {
    from -= 8;
    put_eight((uint32_t)(d.digits % 100000000), digits + (from - digits));
    d.digits /= 100000000;
  } while (d.digits);
  while (*from == '0') from++;
  int place = d.exp10 + (int)(end - from) - 1; /* power of ten of the first digit */
  while (end[-1] == '0') end--;
  int n = (int)(end - from);
  *out = '-';
  out += negative;
  if (place < -5 || place >= 16) {
    *out++ = *from++;
    if (n > 1) {
      *out++ = '.';
      for (int i = 1; i < n; i++) *out++ = *from++;
    }
    *out++ = 'e';
    if (place < 0) *out++ = '-';
    int size = abs(place);
    if (size >= 100) *out++ = (char)('0' + size / 100);
    if (size >= 10) *out++ = (char)('0' + size / 10 % 10);
    *out++ = (char)('0' + size % 10);
    return (size_t)(out - begin);
  }
  if (place < 0) {
    memcpy(out, "0.0000", 6);
    out += 1 - place;
    memcpy(out, from, NUM_MAX_DIGITS); /* a fixed length is faster; bytes after the digits are ignored */
    return (size_t)(out - begin) + (size_t)n;
  }
  for (int i = 0; i <= place; i++) *out++ = i < n ? *from++ : '0';
  *out++ = '.';
  if (n <= place + 1) *out++ = '0';
  for (int i = place + 1; i < n; i++) *out++ = *from++;
  return (size_t)(out - begin);
}

static inline size_t num_put(double value, bool single, char *out) {
  bool negative = signbit(value);
  double size = fabs(value);
  num_decimal d = {0};
  if (size == 0) {
    memcpy(out, "-0.0", 4);
    if (!negative) memcpy(out, "0.0", 3);
    return negative ? 4 : 3;
  }
  bool found = single && shortest_float((float)size, &d);
  if (!found && !shortest_by_integers(size, single, &d)) shortest_by_printf(size, single, &d);
  return num_format(d, negative, out);
}

size_t num_put_double(double value, char out[NUM_MAX_BYTES]) { return num_put(value, false, out); }
size_t num_put_float(float value, char out[NUM_MAX_BYTES]) { return num_put((double)value, true, out); }
