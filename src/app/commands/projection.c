/* SPDX-License-Identifier: Apache-2.0 */
/* projection.c - principal components by subspace iteration. See projection.h.
 *
 * A pass multiplies both axes by the covariance: for each vector v with coordinates (a, b) on the axes, next_a += a v
 * and next_b += b v. Between passes the axes are orthonormalised, which keeps the second from converging to the first.
 * The sums of a*a, b*b and a*b of a pass are the covariance within the plane; the iteration ends when its trace no
 * longer grows. Finally a rotation within the plane makes the axes principal (Rayleigh-Ritz), which also separates
 * axes of nearly equal variance.
 */
#include "commands/projection.h"

#include <math.h>

enum { PCA_MAX_PASSES = 60 };
#define PCA_TOLERANCE 1e-6 /* relative growth of the shown variance per pass */

typedef struct pca_fit {
  float *vectors;
  size_t n;
  uint32_t dimension;
  double *axis[2], *next[2]; /* `dimension` each */
  double aa, bb, ab;         /* averages of the last pass */
  double total;              /* total variance */
} pca_fit;

/* ---- Vectors ---- */

static void pca_make_unit(float *v, uint32_t dimension) {
  double sum = 0;
  for (uint32_t i = 0; i < dimension; i++) sum += (double)v[i] * v[i];
  double scale = sum > 0 ? 1 / sqrt(sum) : 0;
  for (uint32_t i = 0; i < dimension; i++) v[i] = (float)(v[i] * scale);
}

/* Divides by the largest magnitude, so that no square of a float overflows or underflows. */
static void pca_rescale(pca_fit *f) {
  double largest = 0;
  size_t count = f->n * f->dimension;
  for (size_t i = 0; i < count; i++)
    largest = fabs((double)f->vectors[i]) > largest ? fabs((double)f->vectors[i]) : largest;
  if (largest <= 0) return;
  for (size_t i = 0; i < count; i++) f->vectors[i] = (float)(f->vectors[i] / largest);
}

static void pca_centre(pca_fit *f) {
  double *mean = f->next[0];
  memset(mean, 0, f->dimension * sizeof *mean);
  for (size_t r = 0; r < f->n; r++)
    for (uint32_t i = 0; i < f->dimension; i++) mean[i] += f->vectors[r * f->dimension + i];
  for (uint32_t i = 0; i < f->dimension; i++) mean[i] /= (double)f->n;
  for (size_t r = 0; r < f->n; r++) {
    float *v = f->vectors + r * f->dimension;
    for (uint32_t i = 0; i < f->dimension; i++) {
      v[i] = (float)(v[i] - mean[i]);
      f->total += (double)v[i] * v[i];
    }
  }
  f->total /= (double)f->n;
}

/* ---- Axes ---- */

static double pca_dot(const double *a, const double *b, uint32_t n) {
  double sum = 0;
  for (uint32_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

/* To length 1; a vector too short to have a direction becomes zero. */
static void pca_normalise(double *a, uint32_t n, double shortest) {
  double length = sqrt(pca_dot(a, a, n)), scale = length > shortest ? 1 / length : 0;
  for (uint32_t i = 0; i < n; i++) a[i] *= scale;
}

static void pca_orthonormalise(double *a, double *b, uint32_t n, double shortest) {
  pca_normalise(a, n, shortest);
  for (int twice = 0; twice < 2; twice++) { /* the second round removes rounding errors */
    double along = pca_dot(a, b, n);
    for (uint32_t i = 0; i < n; i++) b[i] -= along * a[i];
  }
  pca_normalise(b, n, shortest);
}

static uint64_t pca_splitmix64(uint64_t x) {
  x += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

static void pca_start(pca_fit *f) {
  for (int k = 0; k < 2; k++)
    for (uint32_t i = 0; i < f->dimension; i++)
      f->axis[k][i] = (double)(pca_splitmix64(2 * (uint64_t)i + (unsigned)k) >> 11) * 0x1p-53 - 0.5;
  pca_orthonormalise(f->axis[0], f->axis[1], f->dimension, 1e-9);
}

static void pca_coordinates(const pca_fit *f, const float *v, double *a, double *b) {
  double x = 0, y = 0;
  for (uint32_t i = 0; i < f->dimension; i++) {
    x += v[i] * f->axis[0][i];
    y += v[i] * f->axis[1][i];
  }
  *a = x;
  *b = y;
}

/* Computes next = covariance * axis, and the covariance within the plane. */
static void pca_pass(pca_fit *f) {
  f->aa = f->bb = f->ab = 0;
  for (int k = 0; k < 2; k++) memset(f->next[k], 0, f->dimension * sizeof(double));
  for (size_t r = 0; r < f->n; r++) {
    const float *v = f->vectors + r * f->dimension;
    double a, b;
    pca_coordinates(f, v, &a, &b);
    for (uint32_t i = 0; i < f->dimension; i++) {
      f->next[0][i] += a * v[i];
      f->next[1][i] += b * v[i];
    }
    f->aa += a * a;
    f->bb += b * b;
    f->ab += a * b;
  }
  f->aa /= (double)f->n;
  f->bb /= (double)f->n;
  f->ab /= (double)f->n;
}

static void pca_step(pca_fit *f) {
  for (int k = 0; k < 2; k++) {
    double *was = f->axis[k];
    f->axis[k] = f->next[k];
    f->next[k] = was;
  }
  /* anything shorter is rounding error, not a direction */
  pca_orthonormalise(f->axis[0], f->axis[1], f->dimension, f->total * (double)f->n * 1e-13);
}

static lode_status pca_iterate(pca_fit *f, lode_progress progress, op_projection *projection, lode_error *err) {
  double shown = -1;
  for (projection->passes = 0; projection->passes < PCA_MAX_PASSES; projection->passes++) {
    if (!err_go_on(progress, "projecting", projection->passes, PCA_MAX_PASSES))
      return err_set(err, LODE_CANCELLED, "the map was not finished");
    pca_pass(f);
    if (f->aa + f->bb - shown <= PCA_TOLERANCE * f->total) break;
    shown = f->aa + f->bb;
    pca_step(f);
  }
  return LODE_OK;
}

/* ---- Coordinates ---- */

/* Rotates the axes within the plane so that they are principal, larger variance first. */
static void pca_rotate(pca_fit *f) {
  double angle = 0.5 * atan2(2 * f->ab, f->aa - f->bb), c = cos(angle), s = sin(angle);
  for (uint32_t i = 0; i < f->dimension; i++) {
    double a = f->axis[0][i], b = f->axis[1][i];
    f->axis[0][i] = c * a + s * b;
    f->axis[1][i] = c * b - s * a;
  }
}

static void pca_place(const pca_fit *f, double *xy) {
  double extreme[2] = {0, 0}, scale;
  for (size_t r = 0; r < f->n; r++) {
    pca_coordinates(f, f->vectors + r * f->dimension, &xy[2 * r], &xy[2 * r + 1]);
    for (int k = 0; k < 2; k++)
      if (fabs(xy[2 * r + (unsigned)k]) > fabs(extreme[k])) extreme[k] = xy[2 * r + (unsigned)k];
  }
  scale = fabs(extreme[0]) > fabs(extreme[1]) ? fabs(extreme[0]) : fabs(extreme[1]);
  for (size_t r = 0; r < f->n; r++)
    for (unsigned k = 0; k < 2; k++) {
      double at = xy[2 * r + k];
      xy[2 * r + k] = at == 0 || scale <= 0 ? 0 : extreme[k] < 0 ? -at / scale : at / scale;
    }
}

lode_status op_projection_compute(op_projection *p, lode_progress progress, lode_error *err) {
  pca_fit f = {.vectors = p->vectors, .n = p->n, .dimension = p->dimension};
  p->kept = 1;
  p->passes = 0;
  for (size_t i = 0; i < 2 * p->n; i++) p->xy[i] = 0;
  if (p->n < 2 || p->dimension == 0) return LODE_OK;
  double *space = mem_calloc((size_t)p->dimension * 4, sizeof *space);
  if (!space) return err_nomem(err);
  for (size_t k = 0; k < 2; k++) {
    f.axis[k] = space + k * p->dimension;
    f.next[k] = space + (2 + k) * p->dimension;
  }
  lode_status st = LODE_OK;
  if (!p->unit) pca_rescale(&f);
  for (size_t r = 0; p->unit && r < p->n; r++) pca_make_unit(p->vectors + r * p->dimension, p->dimension);
  pca_centre(&f);
  if (f.total > 1e-20) { /* less is rounding error of equal vectors */
    pca_start(&f);
    TRY_GOTO(pca_iterate(&f, progress, p, err));
    p->kept = (f.aa + f.bb) / f.total;
    if (p->kept > 1) p->kept = 1;
    pca_rotate(&f);
    pca_place(&f, p->xy);
  }
done:
  mem_free(space);
  return st;
}
