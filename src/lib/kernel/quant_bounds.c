/* SPDX-License-Identifier: Apache-2.0 */
/* quant_bounds.c - see quant_bounds.h. In double precision, whose own roundings are far below the allowances made here
 * for those of float. */
#include "kernel/quant_bounds.h"

#include <math.h>

/* What a vector is multiplied by to be in the model's units. */
static double bounds_unit_of(const quant_model *model, const float *vector) {
  double norm2 = 0;
  if (model->metric != LODE_COSINE) return model->unit;
  for (size_t j = 0; j < model->dim; j++) norm2 += (double)vector[j] * vector[j];
  return norm2 > 0 ? model->unit / sqrt(norm2) : 0;
}

/* The next float above, with some room for the rounding of the sum that it comes from. */
static float bounds_float_above(double x) { return nextafterf((float)(x * (1 + 1e-9)), INFINITY); }

void quant_spread_add(quant_spread *spread, const quant_model *model, const float *vector, const unsigned char *row) {
  double unit = bounds_unit_of(model, vector), scale = quant_row_scale(row), error2 = 0, length2 = 0;
  for (size_t j = 0; j < model->dim; j++) {
    double decoded = scale * ((row[j] & 127) - QUANT_ZERO), off = vector[j] * unit - model->mean[j] - decoded;
    error2 += off * off;
    length2 += decoded * decoded;
  }
  float error = bounds_float_above(sqrt(error2)), length = bounds_float_above(sqrt(length2));
  if (error > spread->error) spread->error = error;
  if (length > spread->length) spread->length = length;
}

typedef struct bounds_sums {
  double error2;   /* of the decoded query */
  double decoded2; /* its squared length */
  double query2;   /* that of the query itself, in units */
  double mean2, with_mean;
} bounds_sums;

static bounds_sums bounds_sum(const quant_model *model, const float *vector, const quant_query *query) {
  bounds_sums s = {0};
  double unit = bounds_unit_of(model, vector), scale = query->scale / 2;
  for (size_t j = 0; j < model->dim; j++) {
    double v = vector[j] * unit, m = model->mean[j], decoded = scale * query->code[j];
    double off = (model->metric == LODE_IP ? v : v - m) - decoded;
    s.error2 += off * off;
    s.decoded2 += decoded * decoded;
    s.query2 += v * v;
    s.mean2 += m * m;
    s.with_mean += v * m;
  }
  return s;
}

bool quant_bounds_of(const quant_model *model, const quant_spread *spread, const float *vector,
                     const quant_query *query, quant_bounds *bounds) {
  bounds_sums s = bounds_sum(model, vector, query);
  double unit2 = (double)model->unit * model->unit, e = spread->error, decoded = sqrt(s.decoded2);
  double longest = spread->length + e + sqrt(s.mean2); /* of any vector, in units */
  double sum_rounding = (model->dim / 16.0 + 16) * 0x1p-22;
  *bounds = (quant_bounds){.metric = model->metric};
  /* a key is the rounded difference of two rounded numbers below this; its dot product is rounded too */
  bounds->rounding = 0x1p-20 * (decoded + spread->length) * (decoded + spread->length);
  if (model->metric == LODE_IP) {
    bounds->offset = s.with_mean;
    bounds->reach = sqrt(s.query2) * e + sqrt(s.error2) * spread->length;
    bounds->slope = 1 / unit2;
    bounds->absolute = sum_rounding * (1 + sqrt(s.query2) * longest / unit2);
  } else {
    bounds->offset = s.decoded2;
    bounds->reach = e + sqrt(s.error2);
    bounds->slope = (model->metric == LODE_L2 ? 1 : 0.5) / unit2;
    bounds->relative = sum_rounding;
    bounds->absolute = model->metric == LODE_COSINE ? sum_rounding : 0;
  }
  if (model->metric == LODE_COSINE && !(s.query2 > 0)) return false;
  return e > 0 && isfinite(e) && isfinite(longest) && isfinite(bounds->reach * bounds->reach * bounds->slope) &&
         isfinite(bounds->rounding) && isfinite(bounds->offset) && isfinite(bounds->absolute);
}

/* A distance between decoded ones. */
static double bounds_root(const quant_bounds *b, double key) { return sqrt(fmax(0, key + b->offset)); }

double quant_bounds_least(const quant_bounds *b, float key) {
  if (b->metric == LODE_IP) return 1 - (b->offset - (key - b->rounding) / 2 + b->reach) * b->slope - b->absolute;
  double d = fmax(0, bounds_root(b, key - b->rounding) - b->reach);
  return d * d * b->slope * (1 - b->relative) - b->absolute;
}

float quant_bounds_last_key(const quant_bounds *b, float key) {
  double last = 0;
  if (b->metric == LODE_IP) {
    last = key + 4 * b->reach + 2 * b->rounding + 4 * b->absolute / b->slope;
  } else {
    double d = bounds_root(b, key + b->rounding) + b->reach; /* the most that the row's true distance can be */
    d = sqrt((d * d + 2 * b->absolute / b->slope) * (1 + 4 * b->relative)) + b->reach;
    last = d * d - b->offset + b->rounding;
  }
  return nextafterf((float)last, INFINITY);
}
