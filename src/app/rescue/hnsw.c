/* SPDX-License-Identifier: Apache-2.0 */
/* hnsw.c - see hnsw.h. */
#include "rescue/hnsw.h"

#include "base/byteorder.h"
#include "base/vector.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>

#include "os/os.h"

enum { HNSW_HEADER_BYTES = 100, HNSW_READ_BYTES = 1 << 20, HNSW_SAMPLE = 256, HNSW_MAX_M = 512 };
#define HNSW_MAX_ELEMENTS (UINT32_MAX - 1)
#define HNSW_MAX_LABEL (UINT64_C(1) << 40)

static void hnsw_set_shape(rescue_hnsw_shape *s, uint32_t dimension, uint32_t max_m0) {
  *s = (rescue_hnsw_shape){dimension, max_m0, 4 + 4 * (uint64_t)max_m0 + 4 * (uint64_t)dimension + 8, 0};
}

/* False: not a header, or not consistent with itself or with the dimension (0: any). */
static bool hnsw_parse_header(lode_str bytes, uint32_t dimension, rescue_hnsw_shape *s) {
  const unsigned char *h = (const unsigned char *)bytes.data;
  if (bytes.len < HNSW_HEADER_BYTES) return false;
  uint64_t version = num_le32(h), max_elements = num_le64(h + 12), elements = num_le64(h + 20), size = num_le64(h + 28),
           label_at = num_le64(h + 36), data_at = num_le64(h + 44), max_m0 = num_le64(h + 68), m = num_le64(h + 76);
  if (version != 1 || num_le64(h + 4) != 0 || max_m0 == 0 || max_m0 > 2 * HNSW_MAX_M || m == 0 || m > HNSW_MAX_M)
    return false;
  if (data_at != 4 + 4 * max_m0 || label_at <= data_at || (label_at - data_at) % 4 || size != label_at + 8)
    return false;
  uint64_t dim = (label_at - data_at) / 4;
  if (dim > LODE_MAX_DIMENSION || (dimension && dim != dimension) || elements > max_elements ||
      elements > HNSW_MAX_ELEMENTS)
    return false;
  hnsw_set_shape(s, (uint32_t)dim, (uint32_t)max_m0);
  s->elements = elements;
  return true;
}

/* ---- Deriving the shape ---- */

static bool hnsw_read_at(int fd, void *buf, size_t n, uint64_t off) {
  size_t got = 0;
  return os_read_full(fd, buf, n, off, &got, NULL) == LODE_OK && got == n;
}

/* length.bin has one float per element of data_level0.bin, which gives the size of an element. */
static bool hnsw_shape_from_norms(uint64_t bytes, uint64_t n_lengths, uint32_t dimension, rescue_hnsw_shape *s) {
  if (n_lengths == 0 || bytes % n_lengths) return false;
  uint64_t each = bytes / n_lengths, rest = 4 + 4 * (uint64_t)dimension + 8;
  if (each <= rest || (each - rest) % 8 || (each - rest) / 8 > HNSW_MAX_M) return false;
  hnsw_set_shape(s, dimension, (uint32_t)(each - rest) / 4);
  return true;
}

/* How many of the first elements are plausible: a valid label, and neighbours that are elements of the file. */
static uint32_t hnsw_score_shape(int fd, uint64_t bytes, const rescue_hnsw_shape *s) {
  uint64_t count = bytes / s->element_bytes;
  uint32_t score = 0;
  for (uint64_t i = 0; i < count && i < HNSW_SAMPLE; i++) {
    unsigned char label[8], links[4 + 4 * 2 * HNSW_MAX_M];
    if (!hnsw_read_at(fd, label, 8, (i + 1) * s->element_bytes - 8)) break;
    if (num_le64(label) == 0 || num_le64(label) > HNSW_MAX_LABEL) continue;
    if (!hnsw_read_at(fd, links, 4 + 4 * (size_t)s->max_m0, i * s->element_bytes)) break;
    unsigned n = num_le16(links), valid = 0;
    if (n > s->max_m0) continue;
    while (valid < n && num_le32(links + 4 + 4 * valid) < count) valid++;
    score += valid == n;
  }
  return score;
}

static bool hnsw_derive_shape(int fd, uint64_t bytes, uint32_t dimension, uint32_t m, rescue_hnsw_shape *best) {
  uint32_t best_score = 0;
  for (uint32_t i = 0; i <= HNSW_MAX_M; i++) {
    rescue_hnsw_shape s;
    uint32_t candidate = i == 0 ? (m ? m : 16) : i; /* the collection's M first; others must be clearly better */
    if (candidate > HNSW_MAX_M) continue;
    hnsw_set_shape(&s, dimension, 2 * candidate);
    uint32_t score = hnsw_score_shape(fd, bytes, &s);
    if (score > best_score + best_score / 4) {
      best_score = score;
      *best = s;
    }
  }
  return best_score > 0;
}

/* ---- Elements ---- */

static int hnsw_compare_label(const void *a, const void *b) {
  const rescue_hnsw_slot *x = a, *y = b;
  if (x->label != y->label) return x->label < y->label ? -1 : 1;
  return x->place < y->place ? -1 : x->place > y->place;
}

/* Reads the labels and flags of all elements, in one pass over the file. */
static lode_status hnsw_read_slots(rescue_hnsw *x, uint64_t bytes, lode_error *err) {
  uint64_t each = x->shape.element_bytes, count = bytes / each;
  uint64_t in_chunk = HNSW_READ_BYTES / each ? HNSW_READ_BYTES / each : 1;
  lode_status st = LODE_OK;
  size_t cap = 0;
  unsigned char *chunk = mem_alloc((size_t)(in_chunk * each));
  if (!chunk) return err_nomem(err);
  if (count > HNSW_MAX_ELEMENTS) count = HNSW_MAX_ELEMENTS;
  for (uint64_t i = 0; i < count; i += in_chunk) {
    size_t got = 0;
    uint64_t n = count - i < in_chunk ? count - i : in_chunk;
    (void)!os_read_full(x->fd, chunk, (size_t)(n * each), i * each, &got, NULL); /* what cannot be read is lost */
    for (uint64_t j = 0; j < got / each; j++) {
      const unsigned char *e = chunk + j * each;
      uint64_t label = num_le64(e + each - 8);
      if (label == 0 || label > HNSW_MAX_LABEL) {
        x->blank += i + j < x->claimed;
        continue;
      }
      if (!mem_grow(&x->slots, &cap, x->n + 1, sizeof *x->slots)) {
        st = err_nomem(err);
        goto done;
      }
      x->slots[x->n++] = (rescue_hnsw_slot){label, (uint32_t)(i + j), e[2] & 1, !x->header_bad && i + j >= x->claimed};
    }
  }
done:
  mem_free(chunk);
  return st;
}

static void hnsw_sort_slots(rescue_hnsw *x) {
  size_t n = 0;
  if (x->n > 1) qsort(x->slots, x->n, sizeof *x->slots, hnsw_compare_label);
  for (size_t i = 0; i < x->n; i++) {
    if (n && x->slots[n - 1].label == x->slots[i].label) {
      x->doubles += !x->slots[i].beyond;
      continue;
    }
    x->slots[n++] = x->slots[i];
    x->live += !x->slots[n - 1].deleted && !x->slots[n - 1].beyond;
  }
  x->n = n;
}

/* ---- Opening ---- */

static int hnsw_open_file(const char *folder, const char *name, struct stat *sb) {
  strbuf path = {0};
  strbuf_addf(&path, "%s/%s", folder, name);
  strbuf_addch(&path, 0);
  int fd = path.failed ? -1 : OS_RETRY(os_api->open(path.data, O_RDONLY | O_NONBLOCK, 0));
  strbuf_release(&path);
  if (fd >= 0 && (OS_RETRY(os_api->fstat(fd, sb)) != 0 || !S_ISREG(sb->st_mode))) {
    (void)os_api->close(fd);
    fd = -1;
  }
  return fd;
}

static bool hnsw_read_header(const char *folder, uint32_t dimension, rescue_hnsw_shape *s) {
  char h[HNSW_HEADER_BYTES];
  struct stat sb;
  int fd = hnsw_open_file(folder, "header.bin", &sb);
  if (fd < 0) return false;
  bool whole = hnsw_read_at(fd, h, sizeof h, 0);
  (void)os_api->close(fd);
  return whole && hnsw_parse_header((lode_str){h, sizeof h}, dimension, s);
}

static bool hnsw_find_shape(rescue_hnsw *x, const char *folder, uint64_t bytes, uint32_t dimension, uint32_t m) {
  struct stat sb = {0};
  int fd = hnsw_open_file(folder, "length.bin", &sb);
  if (fd >= 0) (void)os_api->close(fd);
  if (dimension == 0 || dimension > LODE_MAX_DIMENSION) return false;
  return (fd >= 0 && hnsw_shape_from_norms(bytes, (uint64_t)sb.st_size / sizeof(float), dimension, &x->shape)) ||
         hnsw_derive_shape(x->fd, bytes, dimension, m, &x->shape);
}

static lode_status hnsw_read_norms(rescue_hnsw *x, const char *folder, lode_error *err) {
  struct stat sb;
  size_t got = 0, need = 0;
  int fd = hnsw_open_file(folder, "length.bin", &sb);
  for (size_t i = 0; i < x->n; i++)
    if (x->slots[i].place >= need) need = (size_t)x->slots[i].place + 1;
  if (fd >= 0) {
    x->lengths = mem_alloc(need * sizeof(float));
    if (x->lengths) (void)!os_read_full(fd, x->lengths, need * sizeof(float), 0, &got, NULL); /* see `got` */
    (void)os_api->close(fd);
    if (!x->lengths) return err_nomem(err);
  }
  x->n_lengths = got / sizeof(float);
  x->lengths_bad = x->n_lengths < need;
  return LODE_OK;
}

lode_status rescue_hnsw_open(const char *folder, uint32_t dimension, uint32_t m, rescue_hnsw *x, lode_error *err) {
  lode_status st = LODE_OK;
  struct stat sb;
  *x = (rescue_hnsw){.fd = -1};
  if (OS_RETRY(os_api->stat(folder, &sb)) != 0 || !S_ISDIR(sb.st_mode))
    return err_set(err, LODE_NOT_FOUND, "there is no folder %.400s", folder);
  x->fd = hnsw_open_file(folder, "data_level0.bin", &sb);
  x->data_missing = x->fd < 0;
  if (x->data_missing) return err_set(err, LODE_CORRUPT, "%.300s has no data_level0.bin", folder);
  x->mtime_s = (int64_t)sb.st_mtime;
  uint64_t bytes = sb.st_size > 0 ? (uint64_t)sb.st_size : 0;
  if (hnsw_read_header(folder, dimension, &x->shape)) {
    x->claimed = x->shape.elements;
  } else {
    x->header_bad = true;
    if (!hnsw_find_shape(x, folder, bytes, dimension, m)) {
      st = err_set(err, LODE_CORRUPT, "%.300s: header.bin is damaged, and data_level0.bin does not show its shape",
                   folder);
      goto done;
    }
  }
  x->cut = bytes / x->shape.element_bytes < x->claimed;
  x->element = mem_alloc((size_t)x->shape.element_bytes);
  if (!x->element) {
    st = err_nomem(err);
    goto done;
  }
  TRY_GOTO(hnsw_read_slots(x, bytes, err));
  hnsw_sort_slots(x);
  TRY_GOTO(hnsw_read_norms(x, folder, err));
done:
  if (st != LODE_OK) rescue_hnsw_close(x);
  return st;
}

void rescue_hnsw_close(rescue_hnsw *x) {
  if (x->fd >= 0) (void)os_api->close(x->fd);
  mem_free(x->slots);
  mem_free(x->lengths);
  mem_free(x->element);
  x->slots = NULL;
  x->lengths = NULL;
  x->element = NULL;
  x->n = x->n_lengths = 0;
  x->fd = -1;
}

/* ---- Reading ---- */

const rescue_hnsw_slot *rescue_hnsw_find(const rescue_hnsw *x, uint64_t label) {
  size_t at = 0;
  SORT_LOWER_BOUND(at, x->n, x->slots[at].label < label);
  return at < x->n && x->slots[at].label == label ? &x->slots[at] : NULL;
}

rescue_hnsw_got rescue_hnsw_vector(rescue_hnsw *x, const rescue_hnsw_slot *slot, bool cosine, float *vector) {
  const rescue_hnsw_shape *s = &x->shape;
  double square = 0;
  if (!hnsw_read_at(x->fd, x->element, (size_t)s->element_bytes, slot->place * s->element_bytes))
    return RESCUE_HNSW_BAD;
  if (num_le64(x->element + s->element_bytes - 8) != slot->label) return RESCUE_HNSW_BAD;
  for (uint32_t i = 0; i < s->dimension; i++) {
    uint32_t bits = num_le32(x->element + 4 + 4 * (size_t)s->max_m0 + 4 * (size_t)i);
    memcpy(&vector[i], &bits, sizeof bits);
    if (!isfinite(vector[i])) return RESCUE_HNSW_BAD;
    square += (double)vector[i] * vector[i];
  }
  if (!vec_length_fits(sqrt(square))) return RESCUE_HNSW_BAD; /* no store would accept it */
  if (!cosine) return RESCUE_HNSW_EXACT;
  if (square != 0 && fabs(square - 1) > 1e-3) return RESCUE_HNSW_BAD;
  if (slot->place >= x->n_lengths) return RESCUE_HNSW_NO_NORM;
  float length = x->lengths[slot->place];
  if (!isfinite(length) || length < 0 || (length == 0 && square != 0)) return RESCUE_HNSW_NO_NORM;
  if (!vec_length_fits((double)length * sqrt(square))) return RESCUE_HNSW_NO_NORM;
  for (uint32_t i = 0; i < s->dimension; i++) vector[i] *= length;
  return RESCUE_HNSW_EXACT;
}
