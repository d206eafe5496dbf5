/* SPDX-License-Identifier: Apache-2.0 */
/* clusters.c - see clusters.h.
 *
 * Points are counted in the cells of a grid, which is smoothed until it has few enough hills; each cell belongs to the
 * hill that steepest ascent leads to. Words and folders of all points are sorted, so that how many points of each
 * cluster have one is counted in one pass; the best of each cluster is that with the largest share there times the
 * logarithm of how much larger it is than elsewhere.
 */
#include "commands/clusters.h"

#include <math.h>
#include <stdlib.h>

enum {
  CLUSTER_GRID = 64,
  CLUSTER_CELLS = CLUSTER_GRID * CLUSTER_GRID,
  CLUSTER_MAX_SMOOTHINGS = 60,
  CLUSTER_MIN_POINTS = 6,
  CLUSTER_MAX_WORDS = 32, /* of one point */
  CLUSTER_MIN_LETTERS = 4,
  CLUSTER_MAX_LETTERS = 40,
  CLUSTER_FOLDER_LEVELS = 3,
  CLUSTER_CANDIDATES = 6, /* for the name of a cluster */
  CLUSTER_MAX_PLAIN = 48, /* bytes of a name to which a number can be added */
};
#define CLUSTER_MIN_SHARE 0.08       /* of its points that have the word */
#define CLUSTER_MIN_FOLDER_SHARE 0.5 /* ... or lie in the folder */
#define CLUSTER_MIN_LIFT 1.6         /* times as frequent as in all points */
#define CLUSTER_DEEPER 0.5           /* a folder counts for more the deeper it is: it says more */

typedef struct cluster_term {
  uint64_t hash;
  uint32_t point;
  uint8_t cluster, len;
  bool folder;
  char text[CLUSTER_MAX_LETTERS];
} cluster_term;

typedef struct cluster_candidate {
  double score;
  const cluster_term *term; /* NULL: none */
} cluster_candidate;

typedef struct cluster_state {
  size_t n;
  op_clusters *out;
  size_t sizes[OP_MAX_CLUSTERS];
  cluster_term *terms;
  size_t n_terms, cap;
  cluster_candidate best[OP_MAX_CLUSTERS][CLUSTER_CANDIDATES];
} cluster_state;

/* ---- Hills ---- */

static size_t cluster_cell_of(const double *xy) {
  long x = (long)round((xy[0] + 1) / 2 * (CLUSTER_GRID - 1)), y = (long)round((xy[1] + 1) / 2 * (CLUSTER_GRID - 1));
  return (size_t)y * CLUSTER_GRID + (size_t)x;
}

static void cluster_smooth(double *cells, double *other) {
  for (int pass = 0; pass < 2; pass++) { /* along the rows, then along the columns */
    size_t step = pass ? CLUSTER_GRID : 1;
    for (size_t i = 0; i < CLUSTER_CELLS; i++) {
      size_t along = pass ? i / CLUSTER_GRID : i % CLUSTER_GRID;
      double before = along > 0 ? cells[i - step] : 0, after = along + 1 < CLUSTER_GRID ? cells[i + step] : 0;
      other[i] = (before + 2 * cells[i] + after) / 4;
    }
    memcpy(cells, other, CLUSTER_CELLS * sizeof *cells);
  }
}

/* The cell around this one, or itself, that is highest; of equal ones the first. */
static size_t cluster_uphill(const double *cells, size_t at) {
  size_t x = at % CLUSTER_GRID, y = at / CLUSTER_GRID, best = at;
  for (size_t v = y > 0 ? y - 1 : 0; v <= y + 1 && v < CLUSTER_GRID; v++)
    for (size_t u = x > 0 ? x - 1 : 0; u <= x + 1 && u < CLUSTER_GRID; u++) {
      size_t cell = v * CLUSTER_GRID + u;
      if (cells[cell] > cells[best] || (cells[cell] >= cells[best] && cell < best)) best = cell;
    }
  return best;
}

/* The top of the hill of each cell, and how many points each hill has. */
static void cluster_climb(const double *cells, const uint32_t *counts, uint16_t *top, uint32_t *points) {
  memset(points, 0, CLUSTER_CELLS * sizeof *points);
  for (size_t i = 0; i < CLUSTER_CELLS; i++) {
    size_t at = i, next;
    if (counts[i] == 0) continue;
    while ((next = cluster_uphill(cells, at)) != at) at = next; /* ends: higher, or as high and earlier */
    top[i] = (uint16_t)at;
    points[at] += counts[i];
  }
}

typedef struct cluster_grid {
  double cells[CLUSTER_CELLS], other[CLUSTER_CELLS];
  uint32_t counts[CLUSTER_CELLS], points[CLUSTER_CELLS];
  uint16_t top[CLUSTER_CELLS];
  uint8_t name[CLUSTER_CELLS]; /* the cluster of a top */
} cluster_grid;

static size_t cluster_count_hills(const cluster_grid *g, size_t least) {
  size_t n = 0;
  for (size_t i = 0; i < CLUSTER_CELLS; i++) n += g->points[i] >= least;
  return n;
}

static void cluster_part(cluster_state *s, cluster_grid *g, const double *xy) {
  size_t least = s->n / 100 > CLUSTER_MIN_POINTS ? s->n / 100 : CLUSTER_MIN_POINTS;
  for (size_t i = 0; i < s->n; i++) g->counts[cluster_cell_of(xy + 2 * i)]++;
  for (size_t i = 0; i < CLUSTER_CELLS; i++) g->cells[i] = g->counts[i];
  for (int round = 0; round < CLUSTER_MAX_SMOOTHINGS; round++) {
    cluster_smooth(g->cells, g->other);
    cluster_climb(g->cells, g->counts, g->top, g->points);
    if (round > 0 && cluster_count_hills(g, least) <= OP_MAX_CLUSTERS) break;
  }
  for (size_t i = 0; i < CLUSTER_CELLS && s->out->n < OP_MAX_CLUSTERS; i++) {
    if (g->points[i] < least) continue;
    s->sizes[s->out->n] = g->points[i];
    g->name[i] = (uint8_t)++s->out->n; /* 0: none */
  }
  for (size_t i = 0; i < s->n; i++) {
    uint8_t name = g->name[g->top[cluster_cell_of(xy + 2 * i)]];
    s->out->of[i] = name ? (uint8_t)(name - 1) : (uint8_t)s->out->n;
  }
}

/* ---- Words and folders ---- */

static lode_status cluster_add_term(cluster_state *s, uint32_t point, lode_str text, bool folder, lode_error *err) {
  uint64_t hash = folder ? UINT64_C(0x84222325cbf29ce4) : UINT64_C(0xcbf29ce484222325);
  if (!mem_grow(&s->terms, &s->cap, s->n_terms + 1, sizeof *s->terms)) return err_nomem(err);
  cluster_term *t = &s->terms[s->n_terms++];
  *t = (cluster_term){.point = point, .cluster = s->out->of[point], .len = (uint8_t)text.len, .folder = folder};
  for (size_t i = 0; i < text.len; i++) {
    char c = text.data[i];
    t->text[i] = !folder && c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    hash = (hash ^ (unsigned char)t->text[i]) * UINT64_C(0x100000001b3);
  }
  t->hash = hash;
  return LODE_OK;
}

static bool cluster_is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80;
}

static lode_status cluster_add_words(cluster_state *s, uint32_t point, lode_str text, lode_error *err) {
  size_t words = 0;
  for (size_t i = 0; i < text.len && words < CLUSTER_MAX_WORDS;) {
    size_t from = i;
    while (i < text.len && cluster_is_letter(text.data[i])) i++;
    size_t len = i - from;
    if (len >= CLUSTER_MIN_LETTERS && len <= CLUSTER_MAX_LETTERS && utf8_valid(text.data + from, len)) {
      words++;
      TRY(cluster_add_term(s, point, (lode_str){text.data + from, len}, false, err));
    }
    if (i < text.len) i++;
  }
  return LODE_OK;
}

static lode_status cluster_add_folders(cluster_state *s, uint32_t point, lode_str path, lode_error *err) {
  int level = 0;
  for (size_t i = 1; i < path.len && i <= CLUSTER_MAX_LETTERS && level < CLUSTER_FOLDER_LEVELS; i++) {
    if (path.data[i] != '/') continue;
    level++;
    TRY(cluster_add_term(s, point, (lode_str){path.data, i}, true, err));
  }
  return LODE_OK;
}

static int cluster_term_order(const void *a, const void *b) {
  const cluster_term *x = a, *y = b;
  if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
  if (x->cluster != y->cluster) return x->cluster < y->cluster ? -1 : 1;
  return x->point < y->point ? -1 : x->point > y->point;
}

/* ---- Names ---- */

static void cluster_propose(cluster_state *s, const cluster_term *term, size_t in, size_t all) {
  double share = (double)in / (double)s->sizes[term->cluster], elsewhere = (double)all / (double)s->n;
  cluster_candidate *best = s->best[term->cluster], now = {share * log(share / elsewhere), term};
  for (uint8_t i = 0; term->folder && i < term->len; i++)
    if (term->text[i] == '/') now.score *= 1 + CLUSTER_DEEPER;
  if (share < (term->folder ? CLUSTER_MIN_FOLDER_SHARE : CLUSTER_MIN_SHARE) || share < CLUSTER_MIN_LIFT * elsewhere)
    return;
  for (size_t i = 0; i < CLUSTER_CANDIDATES; i++) {
    if (best[i].term && best[i].score >= now.score) continue;
    cluster_candidate was = best[i];
    best[i] = now;
    now = was;
  }
}

/* Terms from `first` to `end` are the same: how many points have it, in all and in each cluster. */
static void cluster_weigh(cluster_state *s, size_t first, size_t end) {
  size_t in[OP_MAX_CLUSTERS + 1] = {0}, all = 0;
  const cluster_term *of[OP_MAX_CLUSTERS + 1] = {0};
  for (size_t i = first; i < end; i++) {
    const cluster_term *t = &s->terms[i];
    if (i > first && t->point == t[-1].point) continue;
    all++;
    in[t->cluster]++;
    of[t->cluster] = t;
  }
  for (size_t c = 0; c < s->out->n; c++)
    if (of[c]) cluster_propose(s, of[c], in[c], all);
}

static bool cluster_name_taken(const op_clusters *out, size_t c) {
  for (size_t i = 0; i < c; i++)
    if (strcmp(out->names[i], out->names[c]) == 0) return true;
  return false;
}

static bool cluster_says(const char *name, const cluster_term *t) {
  char word[CLUSTER_MAX_LETTERS + 1];
  snprintf(word, sizeof word, "%.*s", t->len, t->text);
  return strstr(name, word) != NULL;
}

/* The folder if there is a good one, else two words; more words, then a number, while another cluster is called the
 * same. */
static void cluster_name(cluster_state *s, size_t c) {
  char *name = s->out->names[c], plain[CLUSTER_MAX_PLAIN + 1];
  const size_t size = sizeof s->out->names[c];
  size_t len = 0, words = 0;
  for (size_t i = 0; i < CLUSTER_CANDIDATES && !len; i++) {
    const cluster_term *t = s->best[c][i].term;
    if (t && t->folder) len = (size_t)snprintf(name, size, "%.*s", t->len, t->text);
  }
  bool folder = len > 0;
  for (size_t i = 0; i < CLUSTER_CANDIDATES; i++) {
    const cluster_term *t = s->best[c][i].term;
    bool enough = folder ? !cluster_name_taken(s->out, c) : words >= 2 && !cluster_name_taken(s->out, c);
    if (enough) break;
    if (!t || t->folder || len + t->len + 3 > size || cluster_says(name, t)) continue;
    len += (size_t)snprintf(name + len, size - len, "%s%.*s", !len ? "" : words ? ", " : ": ", t->len, t->text);
    words++;
  }
  if (!len || (len > CLUSTER_MAX_PLAIN && cluster_name_taken(s->out, c))) snprintf(name, size, "group %zu", c + 1);
  snprintf(plain, sizeof plain, "%.*s", CLUSTER_MAX_PLAIN, name); /* whole, if it is needed */
  for (unsigned n = 2; cluster_name_taken(s->out, c); n++) snprintf(name, size, "%s %u", plain, n % 1000);
}

lode_status op_clusters_find(const double *xy, const op_cluster_point *points, size_t n_points, op_clusters *out,
                             lode_error *err) {
  cluster_state s = {.n = n_points, .out = out};
  lode_status st;
  out->n = 0;
  memset(out->names, 0, sizeof out->names);
  cluster_grid *grid = mem_calloc(1, sizeof *grid);
  if (!grid) return err_nomem(err);
  cluster_part(&s, grid, xy);
  for (uint32_t i = 0; i < n_points; i++) {
    TRY_GOTO(cluster_add_words(&s, i, points[i].text, err));
    if (points[i].path.data) TRY_GOTO(cluster_add_folders(&s, i, points[i].path, err));
  }
  if (s.n_terms) qsort(s.terms, s.n_terms, sizeof *s.terms, cluster_term_order);
  for (size_t first = 0, end; first < s.n_terms; first = end) {
    for (end = first; end < s.n_terms && s.terms[end].hash == s.terms[first].hash;) end++;
    cluster_weigh(&s, first, end);
  }
  for (size_t c = 0; c < out->n; c++) cluster_name(&s, c);
done:
  mem_free(s.terms);
  mem_free(grid);
  return st;
}
