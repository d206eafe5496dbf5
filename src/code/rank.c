/* rank.c - the order of search results. See rank.h. */
#include "rank.h"

#include "code/walk.h"

#include <math.h>
#include <stdlib.h>

enum { VECTOR_FLOOR_RANK = 200 };

const lode__weights lode__rank_weights = {
#define WORDS(id, of, name, words, names, about) words,
#define NAMES(id, of, name, words, names, about) names,
    .feature = {{LODE__FEATURES(WORDS)}, {LODE__FEATURES(NAMES)}},
#undef WORDS
#undef NAMES
#define FACTOR(id, name, factor, about) factor,
    .factor = {LODE__FACTORS(FACTOR)},
#undef FACTOR
    .more = {0.30, 0.08},
    .decay = 0.7,
    .again = 0.30,
};

/* A feature of the file is counted once, however many chunks the file has among the candidates */
static const bool is_of_file[] = {
#define CHUNK_LEVEL false
#define FILE_LEVEL true
#define LEVEL(id, of, name, words, names, about) of##_LEVEL,
    LODE__FEATURES(LEVEL)
#undef LEVEL
#undef CHUNK_LEVEL
#undef FILE_LEVEL
};

const char *lode__feature_name(lode__feature feature) {
  static const char *const names[] = {
#define NAME(id, of, name, words, names, about) name,
      LODE__FEATURES(NAME)
#undef NAME
  };
  return (unsigned)feature < LODE__FEATURE_COUNT ? names[feature] : "";
}

/* ---- Files ---- */

typedef struct file { /* what all chunks of a file share */
  lode_str path, base;       /* base: the file's name without its ending, or the folder's that it speaks for */
  unsigned marks;
  lode__words stem;          /* of `base` */
  size_t named, named_by;    /* how many other files name it; the last of them + 1 */
  size_t next;               /* + 1, in the table of names */
  double name, central;      /* features */
  double best, sum;
  size_t chunks;
  size_t top;                /* its best chunk */
} file;

typedef struct ranking {
  const lode__question *question;
  const lode__weights *weights;
  lode__candidate *v;
  size_t n;
  file *files;
  size_t n_files;
  size_t *order;             /* of candidates, by file; when they are weighed, then by score */
  double word_weight[LODE__WORDS_MOST];
  bool is_half;              /* there are no words, or no vectors */
  bool has_native;           /* some files are for this system: then those for others come later */
} ranking;

static int by_path(const void *a, const void *b, void *ctx) {
  const lode__candidate *v = ctx;
  return str_cmp(v[*(const size_t *)a].path, v[*(const size_t *)b].path);
}

static size_t last_slash(lode_str path) {
  while (path.len && path.data[path.len - 1] != '/') path.len--;
  return path.len;
}

/* index.js, mod.rs, __init__.py, main.go speak for their folder: its name is theirs. */
static lode_str base_of(lode_str path) {
  static const char *const plain[] = {"index", "mod", "__init__", "main", "lib"};
  size_t slash = last_slash(path);
  lode_str name = {path.data + slash, path.len - slash};
  for (size_t i = name.len; i-- > 1;)
    if (name.data[i] == '.') {
      name.len = i;
      break;
    }
  bool is_plain = false;
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) is_plain = is_plain || str_eq(name, str_of(plain[i]));
  if (!is_plain || slash < 2) return name;
  size_t start = last_slash((lode_str){path.data, slash - 1});
  return (lode_str){path.data + start, slash - 1 - start};
}

static lode_status group(ranking *r, lode_error *err) {
  r->files = mem_calloc(r->n, sizeof *r->files);
  r->order = mem_calloc(r->n, sizeof *r->order);
  if (!r->files || !r->order) return err_nomem(err);
  for (size_t i = 0; i < r->n; i++) r->order[i] = i;
  qsort_r(r->order, r->n, sizeof *r->order, by_path, r->v);
  for (size_t i = 0; i < r->n; i++) {
    lode__candidate *c = &r->v[r->order[i]];
    if (i == 0 || !str_eq(c->path, r->files[r->n_files - 1].path)) r->files[r->n_files++].path = c->path;
    c->file = r->n_files - 1;
  }
  return LODE_OK;
}

/* ---- Words of the question against names ---- */

/* A word that most of the candidates' paths have says little about any of them. */
static void weigh_words(ranking *r) {
  const lode__words *words = &r->question->words;
  double have[LODE__WORDS_MOST] = {0};
  for (size_t i = 0; i < r->n_files; i++) {
    const file *f = &r->files[i];
    lode__words folders;
    lode__words_of((lode_str){f->path.data, last_slash(f->path)}, &folders);
    for (size_t w = 0; w < words->n; w++) {
      double a = lode__word_among(&words->v[w], &f->stem), b = lode__word_among(&words->v[w], &folders);
      have[w] += a > b ? a : b;
    }
  }
  for (size_t w = 0; w < words->n; w++) r->word_weight[w] = log(1 + (double)r->n_files / (1 + have[w])) / log(2 + (double)r->n_files);
}

/* How much of a name each word of the question is, and the other way round: 0 to 1 for each. */
typedef struct match {
  double word[LODE__WORDS_MOST], part[LODE__WORDS_MOST];
} match;

static void keep_larger(double *to, double value) {
  if (value > *to) *to = value;
}

/* Words one by one; then two neighbours that are one word in the name ("thread pool": threadpool), and the other way round. */
static void match_words(const lode__words *words, const lode__words *name, match *m) {
  memset(m, 0, sizeof *m);
  for (size_t w = 0; w < words->n; w++)
    for (size_t i = 0; i < name->n; i++) {
      double alike = lode__word_alike(&words->v[w], &name->v[i]);
      keep_larger(&m->word[w], alike);
      keep_larger(&m->part[i], alike);
    }
  for (size_t w = 0; w + 1 < words->n; w++)
    for (size_t i = 0; i < name->n; i++)
      if (lode__word_joins(&words->v[w], &words->v[w + 1], &name->v[i])) m->word[w] = m->word[w + 1] = m->part[i] = 1;
  for (size_t i = 0; i + 1 < name->n; i++)
    for (size_t w = 0; w < words->n; w++)
      if (lode__word_joins(&name->v[i], &name->v[i + 1], &words->v[w])) m->part[i] = m->part[i + 1] = m->word[w] = 1;
}

/* How well the words cover a name, and the name the words: a mean of both in which the name counts twice. A short name that the query
 * says whole is worth more than a long one of which it says as many words. */
static double overlap(const ranking *r, const lode__words *name) {
  const lode__words *words = &r->question->words;
  double asked = 0, found = 0, covered = 0;
  match m;
  if (name->n == 0 || words->n == 0) return 0;
  match_words(words, name, &m);
  for (size_t w = 0; w < words->n; w++) {
    asked += r->word_weight[w];
    found += r->word_weight[w] * m.word[w];
  }
  for (size_t i = 0; i < name->n; i++) covered += m.part[i];
  double recall = asked > 0 ? found / asked : 0, precision = covered / (double)name->n;
  return recall + precision > 0 ? 1.25 * recall * precision / (recall + 0.25 * precision) : 0;
}

static char fold(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static bool same_folded(lode_str a, lode_str b) {
  if (a.len != b.len) return false;
  for (size_t i = 0; i < a.len; i++)
    if (fold(a.data[i]) != fold(b.data[i])) return false;
  return true;
}

/* 1 when the chunk's name is one that the query holds, as written; a little less but for the case of letters. The last of joined
 * names ("Router.add") counts most. */
static double defines(const lode__question *q, lode_str name) {
  double best = 0;
  for (size_t i = 0; i < q->n_names && name.len; i++) {
    double place = q->is_name && i + 1 < q->n_names ? 0.5 : 1;
    double hit = str_eq(q->names[i], name) ? 1 : same_folded(q->names[i], name) ? 0.8 : 0;
    if (hit * place > best) best = hit * place;
  }
  return best;
}

static double kind_value(lode_str kind) {
  switch (lode__kind_find(kind)) {
    case LODE__KIND_CLASS: case LODE__KIND_STRUCT: case LODE__KIND_INTERFACE: case LODE__KIND_TRAIT: case LODE__KIND_ENUM:
    case LODE__KIND_UNION: case LODE__KIND_TYPE: return 1;
    case LODE__KIND_FUNCTION: case LODE__KIND_METHOD: case LODE__KIND_CONSTRUCTOR: case LODE__KIND_MACRO: return 0.8;
    case LODE__KIND_IMPL: case LODE__KIND_CONSTANT: case LODE__KIND_NAMESPACE: case LODE__KIND_TABLE: return 0.5;
    default: return 0;
  }
}

/* ---- Files that others name ---- */

/* What the others build on is named by them: an import, an include, a type in its own file. Of two files that match alike, such a one is
 * meant more often. Names are compared without case. */
typedef struct by_base {
  size_t *first, mask;       /* files by the hash of their base: index + 1; 0: none */
  uint64_t lengths[256];     /* by the first byte: bit n, some base has n bytes (63: or more). Few names of a text pass */
  bool in_name[256];         /* bytes of names, and the hyphen: files are called "fs-poll" */
} by_base;

static uint64_t length_bit(lode_str name) { return (uint64_t)1 << (name.len < 63 ? name.len : 63); }

static size_t *slot_of(const by_base *table, lode_str name) {
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < name.len; i++) h = (h ^ (unsigned char)fold(name.data[i])) * 0x100000001b3u;
  return &table->first[(h ^ h >> 32) & table->mask];
}

static void count_name(ranking *r, const by_base *table, lode_str name, size_t by) {
  if (!(table->lengths[(unsigned char)fold(name.data[0])] & length_bit(name))) return;
  for (size_t i = *slot_of(table, name); i; i = r->files[i - 1].next) {
    file *f = &r->files[i - 1];
    if (i - 1 == by || f->named_by == by + 1 || !same_folded(f->base, name)) continue;
    f->named_by = by + 1;
    f->named++;
  }
}

static void count_names(ranking *r, const by_base *table, lode_str text, size_t by) {
  for (size_t i = 0; i < text.len; i++) {
    size_t start = i;
    while (i < text.len && table->in_name[(unsigned char)text.data[i]]) i++;
    lode_str name = {text.data + start, i - start};
    while (name.len && name.data[name.len - 1] == '-') name.len--; /* of "loop->time" */
    if (name.len > 1) count_name(r, table, name, by);
  }
}

static lode_status find_central(ranking *r, lode_error *err) {
  by_base table = {.mask = 1};
  size_t most = 0;
  while (table.mask < 2 * r->n_files) table.mask = 2 * table.mask + 1;
  for (int c = 0; c < 256; c++) table.in_name[c] = c == '-' || lode__is_name_byte((unsigned char)c);
  table.first = mem_calloc(table.mask + 1, sizeof *table.first);
  if (!table.first) return err_nomem(err);
  for (size_t f = 0; f < r->n_files; f++) {
    lode_str base = r->files[f].base;
    size_t *slot = slot_of(&table, base);
    r->files[f].next = *slot;
    *slot = f + 1;
    if (base.len) table.lengths[(unsigned char)fold(base.data[0])] |= length_bit(base);
  }
  for (size_t i = 0; i < r->n; i++) { /* by file: each is counted once */
    const lode__candidate *c = &r->v[r->order[i]];
    count_names(r, &table, c->text, c->file);
  }
  for (size_t f = 0; f < r->n_files; f++) most = r->files[f].named > most ? r->files[f].named : most;
  for (size_t f = 0; f < r->n_files && most; f++) r->files[f].central = log(1 + (double)r->files[f].named) / log(1 + (double)most);
  mem_free(table.first);
  return LODE_OK;
}

/* ---- Features ---- */

static int larger_first(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

/* Cosines of unrelated texts are not 0, and differ by model: 0 is what the VECTOR_FLOOR_RANK-th best has, 1 the best. */
static lode_status spread(ranking *r, size_t at, lode__feature feature, lode_error *err) {
  double *all = mem_calloc(r->n, sizeof *all);
  size_t n = 0;
  if (!all) return err_nomem(err);
  for (size_t i = 0; i < r->n; i++) {
    double c = at ? r->v[i].cosine2 : r->v[i].cosine;
    if (!isnan(c)) all[n++] = c;
  }
  if (n) {
    qsort(all, n, sizeof *all, larger_first);
    double top = all[0], floor_ = all[n > VECTOR_FLOOR_RANK ? VECTOR_FLOOR_RANK - 1 : n - 1];
    double range = top - floor_ > 1e-6 ? top - floor_ : 1;
    for (size_t i = 0; i < r->n; i++) {
      double c = at ? r->v[i].cosine2 : r->v[i].cosine;
      double x = n == 1 ? 1 : (c - floor_) / range;
      r->v[i].features[feature] = isnan(c) || x < 0 ? 0 : x;
    }
  }
  mem_free(all);
  return LODE_OK;
}

static void scale(ranking *r) {
  double text = 0, outline = 0;
  for (size_t i = 0; i < r->n; i++) {
    if (r->v[i].bm25 > text) text = r->v[i].bm25;
    if (r->v[i].outline > outline) outline = r->v[i].outline;
  }
  for (size_t i = 0; i < r->n; i++) {
    r->v[i].features[LODE__FEATURE_TEXT] = text > 0 ? r->v[i].bm25 / text : 0;
    r->v[i].features[LODE__FEATURE_OUTLINE] = outline > 0 ? r->v[i].outline / outline : 0;
  }
}

/* The number of a folder "v12" that begins here, 0 when it is none. */
static unsigned version_at(lode_str path, size_t at) {
  unsigned n = 0;
  size_t i = at + 1;
  if (at >= path.len || (path.data[at] != 'v' && path.data[at] != 'V')) return 0;
  while (i < path.len && path.data[i] >= '0' && path.data[i] <= '9' && n < 1000) n = n * 10 + (unsigned)(path.data[i++] - '0');
  return i < path.len && path.data[i] == '/' ? n : 0;
}

/* "v3" as a word of its own in the question. */
static bool says_version(lode_str text, unsigned version) {
  for (size_t i = 0; i + 1 < text.len; i++) {
    unsigned n = 0;
    size_t k = i + 1;
    if ((text.data[i] != 'v' && text.data[i] != 'V') || (i && (unsigned char)text.data[i - 1] > ' ')) continue;
    while (k < text.len && text.data[k] >= '0' && text.data[k] <= '9' && n < 1000) n = n * 10 + (unsigned)(text.data[k++] - '0');
    if (n == version) return true;
  }
  return false;
}

/* src/v1/x.go where there is a src/v2/: unless the question names v1, the newer one is meant. */
static void mark_old_versions(ranking *r) {
  for (size_t i = 0; i < r->n_files; i++) {
    lode_str path = r->files[i].path;
    for (size_t at = 0; at < path.len; at++) {
      unsigned version = at == 0 || path.data[at - 1] == '/' ? version_at(path, at) : 0;
      if (!version || says_version(r->question->text, version)) continue;
      for (size_t k = 0; k < r->n_files; k++) {
        lode_str other = r->files[k].path;
        if (other.len > at && memcmp(other.data, path.data, at) == 0 && version_at(other, at) > version) {
          r->files[i].marks |= LODE__MARK_OLD;
          break;
        }
      }
    }
  }
}

/* Which factors apply: bit i for factor i. */
static unsigned factors_of(const ranking *r, const file *f, const lode__candidate *c) {
  const lode__question *q = r->question;
  lode__kind kind = lode__kind_find(c->kind);
  unsigned bits = 0;
  if ((f->marks & LODE__MARK_TEST) && !q->wants_tests) bits |= 1u << LODE__FACTOR_TEST;
  if (f->marks & LODE__MARK_VENDORED) bits |= 1u << LODE__FACTOR_VENDORED;
  if ((f->marks & LODE__MARK_EXAMPLE) && !q->wants_examples) bits |= 1u << LODE__FACTOR_EXAMPLE;
  if (((f->marks & LODE__MARK_DOC) || kind == LODE__KIND_SECTION) && !q->wants_docs) bits |= 1u << LODE__FACTOR_DOC;
  if ((f->marks & LODE__MARK_OLD) && !q->wants_old) bits |= 1u << LODE__FACTOR_OLD;
  if ((f->marks & LODE__MARK_FOREIGN) && r->has_native && !q->wants_foreign) bits |= 1u << LODE__FACTOR_FOREIGN;
  if (f->marks & LODE__MARK_STUB) bits |= 1u << LODE__FACTOR_STUB;
  const lode__language *language = lode__language_find(c->language);
  if (kind == LODE__KIND_DATA || (language && language->data)) bits |= 1u << LODE__FACTOR_DATA;
  return bits;
}

static lode_status measure(ranking *r, lode_error *err) {
  scale(r);
  TRY(spread(r, 0, LODE__FEATURE_VECTOR, err));
  TRY(spread(r, 1, LODE__FEATURE_QUALITY, err));
  for (size_t i = 0; i < r->n_files; i++) {
    r->files[i].marks = lode__path_marks(r->files[i].path);
    r->has_native = r->has_native || (r->files[i].marks & LODE__MARK_NATIVE);
    r->files[i].base = base_of(r->files[i].path);
    lode__words_of(r->files[i].base, &r->files[i].stem);
  }
  mark_old_versions(r);
  TRY(find_central(r, err));
  weigh_words(r);
  for (size_t i = 0; i < r->n_files; i++) r->files[i].name = overlap(r, &r->files[i].stem);
  for (size_t i = 0; i < r->n; i++) {
    lode__candidate *c = &r->v[i];
    lode__words name;
    lode__words_of(c->name, &name);
    c->features[LODE__FEATURE_DEFINES] = defines(r->question, c->name);
    c->features[LODE__FEATURE_NAME] = overlap(r, &name);
    c->features[LODE__FEATURE_FILE] = r->files[c->file].name;
    c->features[LODE__FEATURE_CENTRAL] = r->files[c->file].central;
    c->features[LODE__FEATURE_KIND] = kind_value(c->kind);
    c->factors = factors_of(r, &r->files[c->file], c);
    c->measured = true;
  }
  return LODE_OK;
}

/* What a feature of this chunk is worth. Of a question, words and vectors count double where the others are missing. What is asked for by its
 * name is meant, also in a test: no factor makes its definition less. */
static double worth(const ranking *r, const lode__candidate *c, size_t feature, double factor) {
  bool is_name = r->question->is_name;
  double value = r->weights->feature[is_name][feature] * c->features[feature];
  if ((feature == LODE__FEATURE_TEXT || feature == LODE__FEATURE_VECTOR) && !is_name && r->is_half) value *= 2;
  return feature == LODE__FEATURE_DEFINES && is_name ? value : factor * value;
}

static void weigh(ranking *r) {
  bool words = false, vectors = false;
  for (size_t i = 0; i < r->n; i++) {
    words = words || r->v[i].bm25 > 0;
    vectors = vectors || !isnan(r->v[i].cosine) || !isnan(r->v[i].cosine2);
  }
  r->is_half = !words || !vectors;
  for (size_t i = 0; i < r->n; i++) {
    lode__candidate *c = &r->v[i];
    double factor = 1;
    c->score = c->shared = 0;
    for (size_t f = 0; f < LODE__FACTOR_COUNT; f++)
      if (c->factors >> f & 1) factor *= r->weights->factor[f];
    for (size_t f = 0; f < LODE__FEATURE_COUNT; f++) *(is_of_file[f] ? &c->shared : &c->score) += worth(r, c, f, factor);
  }
}

/* ---- Order ---- */

static int by_file_then_score(const void *a, const void *b, void *ctx) {
  const lode__candidate *v = ctx, *x = &v[*(const size_t *)a], *y = &v[*(const size_t *)b];
  if (x->file != y->file) return x->file < y->file ? -1 : 1;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  return str_cmp(x->id, y->id);
}

static void gather_files(ranking *r) {
  double more = r->weights->more[r->question->is_name];
  qsort_r(r->order, r->n, sizeof *r->order, by_file_then_score, r->v);
  for (size_t i = 0; i < r->n;) {
    file *f = &r->files[r->v[r->order[i]].file];
    double share = 1;
    f->top = i;
    f->best = r->v[r->order[i]].score;
    double shared = r->v[r->order[i]].shared;
    for (f->chunks = 1, i++; i < r->n && &r->files[r->v[r->order[i]].file] == f; i++, f->chunks++) {
      f->sum += share * r->v[r->order[i]].score;
      share *= r->weights->decay;
    }
    f->best += more * f->sum + shared;
  }
}

/* Says the same as one that is shown already. */
static lode__ranked_hit *copy_of(lode__ranked_hit *hits, size_t n, const lode__candidate *c) {
  for (size_t i = 0; i < n; i++) {
    const char *other = hits[i].chunk->hash;
    if (c->hash && other && strcmp(c->hash, other) == 0) return &hits[i];
  }
  return NULL;
}

static void show(ranking *r, file *f, size_t place, size_t limit, double score, lode__ranked_hit *hits, size_t *n) {
  const lode__candidate *c = &r->v[r->order[f->top + place]];
  lode__ranked_hit *same = copy_of(hits, *n, c);
  if (same) {
    same->copies++;
    return;
  }
  if (*n < limit) hits[(*n)++] = (lode__ranked_hit){.chunk = c, .score = score, .more = f->chunks - 1};
}

typedef struct turn { /* of a chunk: the best of a file has the file's score, the others a share of their own, which is less each time */
  size_t file, place;
  double score;
} turn;

static int by_turn(const void *a, const void *b, void *ctx) {
  const turn *x = a, *y = b;
  const file *files = ctx;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  if (x->file != y->file) return str_cmp(files[x->file].path, files[y->file].path);
  return x->place < y->place ? -1 : x->place > y->place;
}

static lode_status put_hits(ranking *r, size_t limit, lode__ranked_hit *hits, size_t *n, lode_error *err) {
  turn *turns = mem_calloc(r->n, sizeof *turns);
  size_t count = 0;
  if (!turns) return err_nomem(err);
  for (size_t i = 0; i < r->n_files; i++) {
    turns[count++] = (turn){i, 0, r->files[i].best};
    for (size_t place = 1; place < r->files[i].chunks; place++)
      turns[count++] = (turn){i, place, r->weights->again / (double)place * r->v[r->order[r->files[i].top + place]].score};
  }
  qsort_r(turns, count, sizeof *turns, by_turn, r->files);
  for (size_t i = 0; i < count && *n < limit; i++) show(r, &r->files[turns[i].file], turns[i].place, limit, turns[i].score, hits, n);
  mem_free(turns);
  return LODE_OK;
}

lode_status lode__rank(const lode__question *question, lode__candidate *candidates, size_t count, const lode__weights *weights,
                       size_t limit, lode__ranked_hit *hits, size_t *n, lode_error *err) {
  ranking r = {.question = question, .weights = weights ? weights : &lode__rank_weights, .v = candidates, .n = count};
  lode_status st = LODE_OK;
  *n = 0;
  if (count == 0 || limit == 0) return LODE_OK;
  TRY_GOTO(group(&r, err));
  if (!r.v[0].measured) TRY_GOTO(measure(&r, err));
  weigh(&r);
  gather_files(&r);
  TRY_GOTO(put_hits(&r, limit, hits, n, err));
done:
  mem_free(r.files);
  mem_free(r.order);
  return st;
}
