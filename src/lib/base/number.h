/* SPDX-License-Identifier: Apache-2.0 */
/* number.h - decimal text to binary numbers and back, correctly rounded and independent of the locale. */
#ifndef LODE_BASE_NUMBER_H
#define LODE_BASE_NUMBER_H

#include "base/base.h"

/* A number in RFC 8259 notation. Its value is digits * 10^exp10, if exact. */
typedef struct num_parsed {
  const char *begin, *end; /* the text, sign included */
  uint64_t digits;
  int64_t exp10;
  bool negative;
  bool integer; /* written without fraction and exponent */
  bool exact;   /* false: more than 19 digits; use the text */
} num_parsed;

/* Reads the number at p. Returns the byte after it, or NULL if there is no number. */
const char *num_scan(const char *p, const char *end, num_parsed *number);
/* False if it is not an integer or does not fit. */
LODE_MUST bool num_to_int(const num_parsed *number, int64_t *value);
/* Nearest, ties to even. False if it is too large; too small becomes 0. */
LODE_MUST bool num_to_double(const num_parsed *number, double *value);
LODE_MUST bool num_to_float(const num_parsed *number, float *value);

/* Writes a finite number so that it reads back the same, with as few digits as possible and with a '.' or an 'e'.
 * Returns the length; no NUL. */
#define NUM_MAX_BYTES 32
size_t num_put_double(double value, char out[NUM_MAX_BYTES]);
size_t num_put_float(float value, char out[NUM_MAX_BYTES]);

#endif
