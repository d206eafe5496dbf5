/* number.h - decimal text to binary numbers and back, correctly rounded and without the locale. */
#ifndef LODE_NUMBER_H
#define LODE_NUMBER_H

#include "base.h"

/* A number as RFC 8259 writes it, taken apart. Its value is digits * 10^exp10, if exact. */
typedef struct lode__number {
  const char *begin, *end; /* the text, sign included */
  uint64_t digits;
  int64_t exp10;
  bool negative;
  bool integer;            /* written without fraction and exponent */
  bool exact;              /* false: more than 19 digits, only the text has them all */
} lode__number;

/* Reads the number at p. Returns the byte behind it, or NULL when there is no number. */
const char *lode__number_scan(const char *p, const char *end, lode__number *number);
/* False when it is no integer or does not fit. */
bool lode__number_to_int(const lode__number *number, int64_t *value);
/* Nearest, ties to even. False when it is out of range; too small becomes 0. */
bool lode__number_to_double(const lode__number *number, double *value);
bool lode__number_to_float(const lode__number *number, float *value);

/* Writes a finite number so that it reads back the same, with as few digits as that takes and with a '.' or an 'e'.
 * Returns the length; no NUL. */
#define LODE__NUMBER_BYTES 32
size_t lode__number_put_double(double value, char out[LODE__NUMBER_BYTES]);
size_t lode__number_put_float(float value, char out[LODE__NUMBER_BYTES]);

#endif
