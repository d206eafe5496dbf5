/* SPDX-License-Identifier: Apache-2.0 */
/* rank.c - the order of search results; see rank.h. */
#include "search/rank_internal.h"

#include "scan/scan.h"

#include <math.h>
#include <stdlib.h>

const rank_weights rank_default_weights = {
#define FEATURE_WORDS_WEIGHT(id, of, name, words, names, shown, about) words,
#define FEATURE_NAMES_WEIGHT(id, of, name, words, names, shown, about) names,
#define FEATURE_SHOWN_WEIGHT(id, of, name, words, names, shown, about) shown,
    .feature = {{RANK_FEATURES(FEATURE_WORDS_WEIGHT)},
                {RANK_FEATURES(FEATURE_NAMES_WEIGHT)},
                {RANK_FEATURES(FEATURE_SHOWN_WEIGHT)}},
#undef FEATURE_WORDS_WEIGHT
#undef FEATURE_NAMES_WEIGHT
#undef FEATURE_SHOWN_WEIGHT
#define FACTOR_WEIGHT(id, name, factor, about) factor,
    .factor = {RANK_FACTORS(FACTOR_WEIGHT)},
#undef FACTOR_WEIGHT
    .more = {RANK_MORE_WORDS, RANK_MORE_NAMES},
    .decay = RANK_DECAY,
    .again = {RANK_AGAIN_WORDS, RANK_AGAIN_NAMES},
    .again_file = {RANK_AGAIN_FILE_WORDS, RANK_AGAIN_FILE_NAMES},
};

/* A file feature is counted once, however many candidates the file has. */
static const bool rank_is_file_feature[] = {
#define CHUNK_LEVEL false
#define FILE_LEVEL true
#define FEATURE_LEVEL(id, of, name, words, names, shown, about) of##_LEVEL,
    RANK_FEATURES(FEATURE_LEVEL)
#undef FEATURE_LEVEL
#undef CHUNK_LEVEL
#undef FILE_LEVEL
};

const char *rank_feature_name(rank_feature feature) {
  static const char *const names[] = {
#define FEATURE_TITLE(id, of, name, words, names, shown, about) name,
      RANK_FEATURES(FEATURE_TITLE)
#undef FEATURE_TITLE
  };
  return (unsigned)feature < RANK_FEATURE_COUNT ? names[feature] : "";
}

/* ---- Files ---- */

static int rank_compare_path(const void *a, const void *b, void *ctx) {
  const rank_candidate *v = ctx;
  return str_cmp(v[*(const size_t *)a].path, v[*(const size_t *)b].path);
}

static size_t rank_last_slash(lode_str path) {
  while (path.len && path.data[path.len - 1] != '/') path.len--;
  return path.len;
}

/* index.js, mod.rs, __init__.py, main.go stand for their folder: its name is used. */
static lode_str rank_base_name(lode_str path) {
  static const char *const plain[] = {"index", "mod", "__init__", "main", "lib"};
  size_t slash = rank_last_slash(path);
  lode_str name = {path.data + slash, path.len - slash};
  for (size_t i = name.len; i-- > 1;)
    if (name.data[i] == '.') {
      name.len = i;
      break;
    }
  bool is_plain = false;
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) is_plain = is_plain || str_eq(name, str_of(plain[i]));
  if (!is_plain || slash < 2) return name;
  size_t start = rank_last_slash((lode_str){path.data, slash - 1});
  return (lode_str){path.data + start, slash - 1 - start};
}

static lode_status rank_group_files(rank_state *r, lode_error *err) {
  r->files = mem_calloc(r->n, sizeof *r->files);
  r->order = mem_calloc(r->n, sizeof *r->order);
  if (!r->files || !r->order) return err_nomem(err);
  for (size_t i = 0; i < r->n; i++) r->order[i] = i;
  os_sort(r->order, r->n, sizeof *r->order, rank_compare_path, r->v);
  for (size_t i = 0; i < r->n; i++) {
    rank_candidate *c = &r->v[r->order[i]];
    if (i == 0 || !str_eq(c->path, r->files[r->n_files - 1].path)) r->files[r->n_files++].path = c->path;
    c->file = r->n_files - 1;
  }
  return LODE_OK;
}

/* ---- Words of the question and names ---- */

/* A word that is in most of the candidates' paths says little about any of them. */
static void rank_weigh_words(rank_state *r) {
  const search_words *words = &r->question->words;
  double have[SEARCH_MAX_WORDS] = {0};
  for (size_t i = 0; i < r->n_files; i++) {
    const rank_file *f = &r->files[i];
    search_words folders;
    search_words_split((lode_str){f->path.data, rank_last_slash(f->path)}, &folders);
    for (size_t w = 0; w < words->n; w++) {
      double a = search_word_best(&words->v[w], &f->stem), b = search_word_best(&words->v[w], &folders);
      have[w] += a > b ? a : b;
    }
  }
  for (size_t w = 0; w < words->n; w++)
    r->word_weight[w] = log(1 + (double)r->n_files / (1 + have[w])) / log(2 + (double)r->n_files);
}

/* How well each word of the question matches a part of a name, and each part a word: 0 to 1. */
typedef struct rank_match {
  double word[SEARCH_MAX_WORDS], part[SEARCH_MAX_WORDS];
} rank_match;

static void rank_keep_larger(double *to, double value) {
  if (value > *to) *to = value;
}

/* Matches single words; then two adjacent words that are one word in the name ("thread pool": threadpool), and vice
 * versa. */
static void rank_match_words(const search_words *words, const search_words *name, rank_match *m) {
  memset(m, 0, sizeof *m);
  for (size_t w = 0; w < words->n; w++)
    for (size_t i = 0; i < name->n; i++) {
      double similarity = search_word_similarity(&words->v[w], &name->v[i]);
      rank_keep_larger(&m->word[w], similarity);
      rank_keep_larger(&m->part[i], similarity);
    }
  for (size_t w = 0; w + 1 < words->n; w++)
    for (size_t i = 0; i < name->n; i++)
      if (search_word_is_compound(&words->v[w], &words->v[w + 1], &name->v[i]))
        m->word[w] = m->word[w + 1] = m->part[i] = 1;
  for (size_t i = 0; i + 1 < name->n; i++)
    for (size_t w = 0; w < words->n; w++)
      if (search_word_is_compound(&name->v[i], &name->v[i + 1], &words->v[w]))
        m->part[i] = m->part[i + 1] = m->word[w] = 1;
}

/* F-measure of how well the words cover the name (precision) and the name the words (recall). */
static double rank_overlap(const rank_state *r, const search_words *name) {
  const search_words *words = &r->question->words;
  double asked = 0, found = 0, covered = 0;
  rank_match m;
  if (name->n == 0 || words->n == 0) return 0;
  rank_match_words(words, name, &m);
  for (size_t w = 0; w < words->n; w++) {
    asked += r->word_weight[w];
    found += r->word_weight[w] * m.word[w];
  }
  for (size_t i = 0; i < name->n; i++) covered += m.part[i];
  double recall = asked > 0 ? found / asked : 0, precision = covered / (double)name->n;
  if (!(recall + precision > 0)) return 0;
  return (1 + RANK_NAME_BETA2) * recall * precision / (recall + RANK_NAME_BETA2 * precision);
}

static char rank_fold_char(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static bool rank_same_folded(lode_str a, lode_str b) {
  if (a.len != b.len) return false;
  for (size_t i = 0; i < a.len; i++)
    if (rank_fold_char(a.data[i]) != rank_fold_char(b.data[i])) return false;
  return true;
}

/* ---- Definitions of names ---- */

/* Does a folder, the file's name or a name around the chunk say this? */
static bool rank_is_around(const rank_candidate *c, lode_str name) {
  lode_str places[] = {c->parents, c->path};
  for (size_t k = 0; k < 2; k++)
    for (size_t i = 0; i < places[k].len;) {
      size_t start = i;
      while (i < places[k].len && search_is_name_byte((unsigned char)places[k].data[i])) i++;
      if (rank_same_folded((lode_str){places[k].data + start, i - start}, name)) return true;
      while (i < places[k].len && !search_is_name_byte((unsigned char)places[k].data[i])) i++;
    }
  return false;
}

/* What is meant by a name first: not the constructor, implementation or declaration of a thing, but the thing. */
static bool rank_is_main(const indexer_def *def) {
  switch (lang_kind_find(def->kind)) {
    case LANG_KIND_CONSTRUCTOR:
    case LANG_KIND_IMPL:
    case LANG_KIND_PROPERTY:
    case LANG_KIND_VARIABLE:
    case LANG_KIND_SECTION:
    case LANG_KIND_DATA:
    case LANG_KIND_TEXT: return false;
    default: return !def->declared;
  }
}

/* How well a definition is what a query that is a name means: 0, not at all, to RANK_LEVELS. Of joined names
 * ("Router.add") the last is meant, and the others are around it; a definition of one of the others comes after every
 * one of the last. */
static unsigned rank_level(const search_question *q, const rank_candidate *c, const indexer_def *def) {
  bool around = true, one_of = false;
  for (size_t i = 0; i < q->n_names; i++) one_of = one_of || rank_same_folded(q->names[i], def->name);
  if (!one_of) return 0;
  lode_str last = q->names[q->n_names - 1];
  if (!rank_same_folded(last, def->name)) return !q->is_joined;
  for (size_t i = 0; i + 1 < q->n_names; i++) around = around && rank_is_around(c, q->names[i]);
  if (q->is_joined && !around) return 0;
  return 1 + rank_is_main(def) + 2 * around + 4 * str_eq(last, def->name);
}

/* The level of the chunk's best definition, and which one it is. */
static double rank_defines_name(const search_question *q, rank_candidate *c) {
  indexer_def own = {.name = c->name, .kind = c->kind, .declared = c->declared};
  unsigned best = c->head && c->name.len ? rank_level(q, c, &own) : 0;
  for (size_t i = 0; i < c->n_defs; i++) {
    unsigned level = rank_level(q, c, &c->defs[i]);
    if (level <= best) continue;
    best = level;
    c->shown = i + 1;
  }
  return (double)best / RANK_LEVELS;
}

/* For a question in words: 1 when the chunk's name is one of those in it, as written; a little less if only the case
 * differs. */
static double rank_defines_word(const search_question *q, const rank_candidate *c) {
  double best = 0;
  for (size_t i = 0; i < q->n_names && c->name.len; i++)
    rank_keep_larger(&best, str_eq(q->names[i], c->name)             ? 1
                            : rank_same_folded(q->names[i], c->name) ? RANK_OTHER_CASE
                                                                     : 0);
  return best;
}

static double rank_kind_value(lode_str kind) {
  switch (lang_kind_find(kind)) {
    case LANG_KIND_CLASS:
    case LANG_KIND_STRUCT:
    case LANG_KIND_INTERFACE:
    case LANG_KIND_TRAIT:
    case LANG_KIND_ENUM:
    case LANG_KIND_UNION:
    case LANG_KIND_TYPE: return 1;
    case LANG_KIND_FUNCTION:
    case LANG_KIND_METHOD:
    case LANG_KIND_CONSTRUCTOR:
    case LANG_KIND_MACRO: return RANK_KIND_FUNCTION;
    case LANG_KIND_IMPL:
    case LANG_KIND_CONSTANT:
    case LANG_KIND_NAMESPACE:
    case LANG_KIND_TABLE: return RANK_KIND_OTHER;
    default: return 0;
  }
}

/* ---- Central files ---- */

/* A file that others build on is named by them: in an import, an include, a type of the same name. Of two files that
 * match equally well, such a file is meant more often. Names are compared ignoring case. */
typedef struct rank_base_table {
  size_t *first, mask;   /* files by the hash of their base: 1 + index; 0: none */
  uint64_t lengths[256]; /* by first byte: bit n is set if a base has n bytes (63: or more); a filter */
  bool in_name[256];     /* bytes of names, and the hyphen, as in a file "fs-poll" */
} rank_base_table;

static uint64_t rank_length_bit(lode_str name) { return (uint64_t)1 << (name.len < 63 ? name.len : 63); }

static size_t *rank_base_slot(const rank_base_table *table, lode_str name) {
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < name.len; i++) h = (h ^ (unsigned char)rank_fold_char(name.data[i])) * 0x100000001b3u;
  return &table->first[(h ^ h >> 32) & table->mask];
}

static void rank_count_name(rank_state *r, const rank_base_table *table, lode_str name, size_t by) {
  if (!(table->lengths[(unsigned char)rank_fold_char(name.data[0])] & rank_length_bit(name))) return;
  for (size_t i = *rank_base_slot(table, name); i; i = r->files[i - 1].next) {
    rank_file *f = &r->files[i - 1];
    if (i - 1 == by || f->named_by == by + 1 || !rank_same_folded(f->base, name)) continue;
    f->named_by = by + 1;
    f->named++;
  }
}

static void rank_count_names(rank_state *r, const rank_base_table *table, lode_str text, size_t by) {
  for (size_t i = 0; i < text.len; i++) {
    size_t start = i;
    while (i < text.len && table->in_name[(unsigned char)text.data[i]]) i++;
    lode_str name = {text.data + start, i - start};
    while (name.len && name.data[name.len - 1] == '-') name.len--; /* the hyphen of "loop->time" */
    if (name.len > 1) rank_count_name(r, table, name, by);
  }
}

static lode_status rank_find_central(rank_state *r, lode_error *err) {
  rank_base_table table = {.mask = 1};
  size_t max = 0;
  while (table.mask < 2 * r->n_files) table.mask = 2 * table.mask + 1;
  for (int c = 0; c < 256; c++) table.in_name[c] = c == '-' || search_is_name_byte((unsigned char)c);
  table.first = mem_calloc(table.mask + 1, sizeof *table.first);
  if (!table.first) return err_nomem(err);
  for (size_t f = 0; f < r->n_files; f++) {
    lode_str base = r->files[f].base;
    size_t *slot = rank_base_slot(&table, base);
    r->files[f].next = *slot;
    *slot = f + 1;
    if (base.len) table.lengths[(unsigned char)rank_fold_char(base.data[0])] |= rank_length_bit(base);
  }
  for (size_t i = 0; i < r->n; i++) { /* in the order of files, so that each file counts once */
    const rank_candidate *c = &r->v[r->order[i]];
    rank_count_names(r, &table, c->text, c->file);
  }
  for (size_t f = 0; f < r->n_files; f++) max = r->files[f].named > max ? r->files[f].named : max;
  for (size_t f = 0; f < r->n_files && max; f++)
    r->files[f].central = log(1 + (double)r->files[f].named) / log(1 + (double)max);
  mem_free(table.first);
  return LODE_OK;
}

/* ---- Features ---- */

static int rank_compare_desc(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

/* Cosines of unrelated texts are not 0, and depend on the model: the RANK_VECTOR_FLOOR-th best becomes 0, the best
 * 1. */
static lode_status rank_scale_cosines(rank_state *r, size_t at, rank_feature feature, lode_error *err) {
  double *all = mem_calloc(r->n, sizeof *all);
  size_t n = 0;
  if (!all) return err_nomem(err);
  for (size_t i = 0; i < r->n; i++) {
    double c = at ? r->v[i].cosine2 : r->v[i].cosine;
    if (!isnan(c)) all[n++] = c;
  }
  if (n) {
    qsort(all, n, sizeof *all, rank_compare_desc);
    double top = all[0], floor_ = all[n > RANK_VECTOR_FLOOR ? RANK_VECTOR_FLOOR - 1 : n - 1];
    double range = top - floor_ > RANK_COSINE_RANGE ? top - floor_ : 1;
    for (size_t i = 0; i < r->n; i++) {
      double c = at ? r->v[i].cosine2 : r->v[i].cosine;
      double x = n == 1 ? 1 : (c - floor_) / range;
      r->v[i].features[feature] = isnan(c) || x < 0 ? 0 : x;
    }
  }
  mem_free(all);
  return LODE_OK;
}

static void rank_scale_bm25(rank_state *r) {
  double text = 0, outline = 0;
  for (size_t i = 0; i < r->n; i++) {
    if (r->v[i].bm25 > text) text = r->v[i].bm25;
    if (r->v[i].outline > outline) outline = r->v[i].outline;
  }
  for (size_t i = 0; i < r->n; i++) {
    r->v[i].features[RANK_FEATURE_TEXT] = text > 0 ? r->v[i].bm25 / text : 0;
    r->v[i].features[RANK_FEATURE_OUTLINE] = outline > 0 ? r->v[i].outline / outline : 0;
  }
}

/* The number of a folder "v12" that begins at `at`; 0 when there is none. */
static unsigned rank_version_at(lode_str path, size_t at) {
  unsigned n = 0;
  size_t i = at + 1;
  if (at >= path.len || (path.data[at] != 'v' && path.data[at] != 'V')) return 0;
  while (i < path.len && path.data[i] >= '0' && path.data[i] <= '9' && n < 1000)
    n = n * 10 + (unsigned)(path.data[i++] - '0');
  return i < path.len && path.data[i] == '/' ? n : 0;
}

/* Does the question contain "v3" as a separate word? */
static bool rank_says_version(lode_str text, unsigned version) {
  for (size_t i = 0; i + 1 < text.len; i++) {
    unsigned n = 0;
    size_t k = i + 1;
    if ((text.data[i] != 'v' && text.data[i] != 'V') || (i && (unsigned char)text.data[i - 1] > ' ')) continue;
    while (k < text.len && text.data[k] >= '0' && text.data[k] <= '9' && n < 1000)
      n = n * 10 + (unsigned)(text.data[k++] - '0');
    if (n == version) return true;
  }
  return false;
}

/* src/v1/x.go where there is a src/v2/: the newer one is meant, unless the question names v1. */
static void rank_mark_old_versions(rank_state *r) {
  for (size_t i = 0; i < r->n_files; i++) {
    lode_str path = r->files[i].path;
    for (size_t at = 0; at < path.len; at++) {
      unsigned version = at == 0 || path.data[at - 1] == '/' ? rank_version_at(path, at) : 0;
      if (!version || rank_says_version(r->question->text, version)) continue;
      for (size_t k = 0; k < r->n_files; k++) {
        lode_str other = r->files[k].path;
        if (other.len > at && memcmp(other.data, path.data, at) == 0 && rank_version_at(other, at) > version) {
          r->files[i].flags |= SCAN_PATH_LEGACY;
          break;
        }
      }
    }
  }
}

/* Which factors apply: bit i for factor i. */
static unsigned rank_factors_of(const rank_state *r, const rank_file *f, const rank_candidate *c) {
  const search_question *q = r->question;
  lang_kind kind = lang_kind_find(c->kind);
  unsigned bits = 0;
  if ((f->flags & SCAN_PATH_TEST) && !q->wants_tests) bits |= 1u << RANK_FACTOR_TEST;
  if (f->flags & SCAN_PATH_VENDORED) bits |= 1u << RANK_FACTOR_VENDORED;
  if ((f->flags & SCAN_PATH_EXAMPLE) && !q->wants_examples) bits |= 1u << RANK_FACTOR_EXAMPLE;
  if (((f->flags & SCAN_PATH_DOC) || kind == LANG_KIND_SECTION) && !q->wants_docs) bits |= 1u << RANK_FACTOR_DOC;
  if ((f->flags & SCAN_PATH_LEGACY) && !q->wants_legacy) bits |= 1u << RANK_FACTOR_OLD;
  if ((f->flags & SCAN_PATH_OTHER_OS) && r->has_native && !q->wants_other_os) bits |= 1u << RANK_FACTOR_FOREIGN;
  if (f->flags & SCAN_PATH_STUB) bits |= 1u << RANK_FACTOR_STUB;
  const lang_info *language = lang_find(c->language);
  if (kind == LANG_KIND_DATA || (language && language->data)) bits |= 1u << RANK_FACTOR_DATA;
  return bits;
}

static lode_status rank_measure(rank_state *r, lode_error *err) {
  rank_scale_bm25(r);
  TRY(rank_scale_cosines(r, 0, RANK_FEATURE_VECTOR, err));
  TRY(rank_scale_cosines(r, 1, RANK_FEATURE_QUALITY, err));
  for (size_t i = 0; i < r->n_files; i++) {
    r->files[i].flags = scan_path_flags(r->files[i].path);
    r->has_native = r->has_native || (r->files[i].flags & SCAN_PATH_THIS_OS);
    r->files[i].base = rank_base_name(r->files[i].path);
    search_words_split(r->files[i].base, &r->files[i].stem);
  }
  rank_mark_old_versions(r);
  TRY(rank_find_central(r, err));
  rank_weigh_words(r);
  for (size_t i = 0; i < r->n_files; i++) r->files[i].name = rank_overlap(r, &r->files[i].stem);
  for (size_t i = 0; i < r->n; i++) {
    rank_candidate *c = &r->v[i];
    search_words name;
    search_words_split(c->name, &name);
    c->shown = 0;
    c->features[RANK_FEATURE_DEFINES] =
        r->question->is_name ? rank_defines_name(r->question, c) : rank_defines_word(r->question, c);
    c->features[RANK_FEATURE_PHRASE] = search_phrase_match(&r->question->phrase, c->text);
    c->features[RANK_FEATURE_NAME] = rank_overlap(r, &name);
    c->features[RANK_FEATURE_FILE] = r->files[c->file].name;
    c->features[RANK_FEATURE_CENTRAL] = r->files[c->file].central;
    c->features[RANK_FEATURE_KIND] = rank_kind_value(c->kind);
    c->factors = rank_factors_of(r, &r->files[c->file], c);
    c->measured = true;
  }
  return LODE_OK;
}

/* The contribution of a feature to a sum with the weights of a row. For a question in words, text and vector features
 * count double when the other kind is missing. No factor reduces the definition of a name, or a text as it stands: it
 * is meant even in a test. */
static double rank_feature_value(const rank_state *r, size_t row, const rank_candidate *c, size_t feature,
                                 double factor) {
  bool is_name = r->question->is_name;
  double value = r->weights->feature[row][feature] * c->features[feature];
  if ((feature == RANK_FEATURE_TEXT || feature == RANK_FEATURE_VECTOR) && !is_name && r->is_half) value *= RANK_ALONE;
  bool whole = feature == RANK_FEATURE_PHRASE || (feature == RANK_FEATURE_DEFINES && is_name);
  return whole ? value : factor * value;
}

static void rank_score_chunks(rank_state *r) {
  bool words = false, vectors = false;
  size_t row = r->question->is_name ? RANK_NAMES : RANK_WORDS;
  for (size_t i = 0; i < r->n; i++) {
    words = words || r->v[i].bm25 > 0;
    vectors = vectors || !isnan(r->v[i].cosine) || !isnan(r->v[i].cosine2);
  }
  r->is_half = !words || !vectors;
  for (size_t i = 0; i < r->n; i++) {
    rank_candidate *c = &r->v[i];
    double factor = 1;
    c->score = c->shared = c->fit = 0;
    for (size_t f = 0; f < RANK_FACTOR_COUNT; f++)
      if (c->factors >> f & 1) factor *= r->weights->factor[f];
    for (size_t f = 0; f < RANK_FEATURE_COUNT; f++) {
      *(rank_is_file_feature[f] ? &c->shared : &c->score) += rank_feature_value(r, row, c, f, factor);
      c->fit += rank_feature_value(r, RANK_SHOWN, c, f, factor);
    }
    c->single = rank_feature_value(r, row, c, RANK_FEATURE_PHRASE, factor);
    if (row == RANK_NAMES) c->single += rank_feature_value(r, row, c, RANK_FEATURE_DEFINES, factor);
    if (row == RANK_NAMES) c->fit = c->score;
  }
}

/* ---- Order ---- */

static int rank_compare_in_file(const void *a, const void *b, void *ctx) {
  const rank_candidate *v = ctx, *x = &v[*(const size_t *)a], *y = &v[*(const size_t *)b];
  if (x->file != y->file) return x->file < y->file ? -1 : 1;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  return str_cmp(x->id, y->id);
}

static int rank_compare_fit(const void *a, const void *b, void *ctx) {
  const rank_candidate *v = ctx, *x = &v[*(const size_t *)a], *y = &v[*(const size_t *)b];
  if (x->file != y->file) return x->file < y->file ? -1 : 1;
  if (x->fit != y->fit) return x->fit > y->fit ? -1 : 1;
  return str_cmp(x->id, y->id);
}

/* Leaves the chunks of each file together, those that are shown first in front. */
static void rank_score_files(rank_state *r) {
  double more = r->weights->more[r->question->is_name];
  os_sort(r->order, r->n, sizeof *r->order, rank_compare_in_file, r->v);
  for (size_t i = 0; i < r->n;) {
    rank_file *f = &r->files[r->v[r->order[i]].file];
    double share = 1;
    f->top = i;
    f->best = r->v[r->order[i]].score;
    double shared = r->v[r->order[i]].shared;
    for (f->chunks = 1, i++; i < r->n && &r->files[r->v[r->order[i]].file] == f; i++, f->chunks++) {
      f->sum += share * (r->v[r->order[i]].score - r->v[r->order[i]].single);
      share *= r->weights->decay;
    }
    f->best += more * f->sum + shared;
  }
  os_sort(r->order, r->n, sizeof *r->order, rank_compare_fit, r->v);
}

/* The hit with the same text as this chunk, if there is one. */
static rank_hit *rank_find_copy(rank_hit *hits, size_t n, const rank_candidate *c) {
  for (size_t i = 0; i < n; i++) {
    const char *other = hits[i].chunk->hash;
    if (c->hash && other && strcmp(c->hash, other) == 0) return &hits[i];
  }
  return NULL;
}

static void rank_emit_hit(rank_state *r, rank_file *f, size_t place, size_t limit, double score, rank_hit *hits,
                          size_t *n) {
  const rank_candidate *c = &r->v[r->order[f->top + place]];
  rank_hit *same = rank_find_copy(hits, *n, c);
  if (same) {
    same->copies++;
    return;
  }
  if (*n < limit) hits[(*n)++] = (rank_hit){.chunk = c, .score = score, .more = f->chunks - 1};
}

typedef struct rank_turn { /* a chunk, with the score that ranks it: the file's for its best chunk */
  size_t file, place;
  double score;
} rank_turn;

static int rank_compare_turn(const void *a, const void *b, void *ctx) {
  const rank_turn *x = a, *y = b;
  const rank_file *files = ctx;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  if (x->file != y->file) return str_cmp(files[x->file].path, files[y->file].path);
  return x->place < y->place ? -1 : x->place > y->place;
}

/* The score that ranks a further chunk of a file among files: not before the one that is shown before it. */
static double rank_turn_score(const rank_state *r, const rank_turn *before) {
  const rank_file *f = &r->files[before->file];
  size_t place = before->place + 1;
  bool is_name = r->question->is_name;
  double own = r->weights->again[is_name] * r->v[r->order[f->top + place]].score;
  double score = (own + r->weights->again_file[is_name] * f->best) / sqrt((double)place);
  return score < before->score ? score : before->score;
}

static lode_status rank_put_hits(rank_state *r, size_t limit, rank_hit *hits, size_t *n, lode_error *err) {
  rank_turn *turns = mem_calloc(r->n, sizeof *turns);
  size_t count = 0;
  if (!turns) return err_nomem(err);
  for (size_t i = 0; i < r->n_files; i++) {
    turns[count++] = (rank_turn){i, 0, r->files[i].best};
    for (size_t place = 1; place < r->files[i].chunks; place++, count++)
      turns[count] = (rank_turn){i, place, rank_turn_score(r, &turns[count - 1])};
  }
  os_sort(turns, count, sizeof *turns, rank_compare_turn, r->files);
  for (size_t i = 0; i < count; i++) /* past the limit, too: copies are counted */
    rank_emit_hit(r, &r->files[turns[i].file], turns[i].place, limit, turns[i].score, hits, n);
  mem_free(turns);
  return LODE_OK;
}

lode_status rank_apply_formula(rank_state *r, lode_error *err) {
  TRY(rank_group_files(r, err));
  if (!r->v[0].measured) TRY(rank_measure(r, err));
  rank_score_chunks(r);
  rank_score_files(r);
  return LODE_OK;
}

void rank_state_release(rank_state *r) {
  mem_free(r->files);
  mem_free(r->order);
}

lode_status rank_run(const search_question *question, rank_candidate *candidates, size_t count,
                     const rank_weights *weights, size_t limit, rank_hit *hits, size_t *n, lode_error *err) {
  rank_state r = {
      .question = question, .weights = weights ? weights : &rank_default_weights, .v = candidates, .n = count};
  *n = 0;
  if (count == 0 || limit == 0) return LODE_OK;
  lode_status st = rank_apply_formula(&r, err);
  if (st == LODE_OK) st = rank_put_hits(&r, limit, hits, n, err);
  rank_state_release(&r);
  return st;
}
