/* SPDX-License-Identifier: Apache-2.0 */
/* rank_facts.c - see rank_facts.h. */
#include "rank_facts.h"

#include "base/token.h"

#include <math.h>

enum {
  FACTS_WORDS = 16, /* of the question; further ones count only in the features of rank.h */
};

/* ---- The words of all candidates ---- */

typedef struct facts_word {
  search_word word;
  uint32_t seen;           /* 1 + the last candidate that has it */
  float same[FACTS_WORDS]; /* similarity to the question's words */
} facts_word;

typedef struct facts_lexicon {
  facts_word *words;
  size_t n, cap, mask;
  uint32_t *slots; /* 1 + word; 0: free */
  uint32_t *list;  /* the distinct words of each candidate, one after the other */
  size_t n_list, cap_list;
  uint32_t candidate;
  bool failed;
} facts_lexicon;

static uint64_t facts_hash(const char *text, size_t len) {
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < len; i++) h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
  return h ^ h >> 29;
}

static bool facts_grow(facts_lexicon *x) {
  size_t mask = x->mask ? 2 * x->mask + 1 : 4095;
  uint32_t *slots = mem_calloc(mask + 1, sizeof *slots);
  facts_word *words = mem_realloc(x->words, (mask / 2 + 1) * sizeof *words);
  if (words) x->words = words;
  if (!slots || !words) {
    mem_free(slots);
    return false;
  }
  for (size_t i = 0; i < x->n; i++) {
    size_t at = facts_hash(words[i].word.text, words[i].word.len) & mask;
    while (slots[at]) at = (at + 1) & mask;
    slots[at] = (uint32_t)(i + 1);
  }
  mem_free(x->slots);
  x->slots = slots;
  x->mask = mask;
  x->cap = mask / 2 + 1;
  return true;
}

static int facts_on_token(void *ctx, const token_item *t) {
  facts_lexicon *x = ctx;
  size_t len = t->len < SEARCH_WORD_BYTES ? t->len : SEARCH_WORD_BYTES - 1;
  if (!t->part || t->len < 2) return 0;
  if (x->n == x->cap && !facts_grow(x)) return x->failed = true;
  size_t at = facts_hash(t->text, len) & x->mask;
  while (x->slots[at]) {
    const search_word *w = &x->words[x->slots[at] - 1].word;
    if (w->len == len && memcmp(w->text, t->text, len) == 0) break;
    at = (at + 1) & x->mask;
  }
  if (!x->slots[at]) {
    facts_word *w = &x->words[x->n];
    memset(w, 0, sizeof *w);
    search_words one; /* a part has no parts: it is one word, with its stem */
    search_words_split((lode_str){t->text, t->len}, &one);
    if (one.n) w->word = one.v[0];
    x->slots[at] = (uint32_t)++x->n;
  }
  facts_word *w = &x->words[x->slots[at] - 1];
  if (w->seen == x->candidate) return 0;
  w->seen = x->candidate;
  if (x->n_list == x->cap_list) {
    size_t cap = x->cap_list ? 2 * x->cap_list : 16384;
    uint32_t *list = mem_realloc(x->list, cap * sizeof *list);
    if (!list) return x->failed = true;
    x->list = list;
    x->cap_list = cap;
  }
  x->list[x->n_list++] = (uint32_t)(w - x->words);
  return 0;
}

typedef struct facts_run {
  rank_state *r;
  facts_lexicon lexicon;
  size_t *ends; /* of each candidate's words in the lexicon's list */
  size_t asked; /* words of the question that are compared */
  double weight[FACTS_WORDS], weights;
  double (*file_same)[FACTS_WORDS];
  double *one_same; /* of each file: its best candidate */
} facts_run;

/* ---- Words ---- */

static lode_status facts_read_words(facts_run *f, lode_error *err) {
  rank_state *r = f->r;
  facts_lexicon *x = &f->lexicon;
  const search_words *asked = &r->question->words;
  f->asked = asked->n < FACTS_WORDS ? asked->n : FACTS_WORDS;
  for (size_t i = 0; i < r->n; i++) {
    const rank_candidate *c = &r->v[i];
    x->candidate = (uint32_t)(i + 1);
    (void)token_split(c->path.data, c->path.len, facts_on_token, x);
    if (c->text.len) (void)token_split(c->text.data, c->text.len, facts_on_token, x);
    if (x->failed) return err_nomem(err);
    f->ends[i] = x->n_list;
  }
  for (size_t i = 0; i < x->n; i++)
    for (size_t w = 0; w < f->asked; w++)
      x->words[i].same[w] = (float)search_word_similarity(&asked->v[w], &x->words[i].word);
  return LODE_OK;
}

static void facts_keep(double *to, double value) {
  if (value > *to) *to = value;
}

static void facts_weigh_words(facts_run *f) {
  size_t have[FACTS_WORDS] = {0}, at = 0;
  for (size_t i = 0; i < f->r->n; i++) {
    bool has[FACTS_WORDS] = {false};
    for (; at < f->ends[i]; at++)
      for (size_t w = 0; w < f->asked; w++) has[w] = has[w] || f->lexicon.words[f->lexicon.list[at]].same[w] >= 1;
    for (size_t w = 0; w < f->asked; w++) have[w] += has[w];
  }
  f->weights = 0;
  for (size_t w = 0; w < f->asked; w++) {
    f->weight[w] = log(((double)f->r->n + 1) / ((double)have[w] + 0.5));
    f->weights += f->weight[w];
  }
}

static void facts_match_words(facts_run *f) {
  size_t at = 0;
  for (size_t i = 0; i < f->r->n; i++) {
    double same[FACTS_WORDS] = {0}, all = 0;
    size_t file = f->r->v[i].file;
    for (; at < f->ends[i]; at++) {
      const facts_word *word = &f->lexicon.words[f->lexicon.list[at]];
      for (size_t w = 0; w < f->asked; w++) facts_keep(&same[w], word->same[w]);
    }
    for (size_t w = 0; w < f->asked; w++) {
      facts_keep(&f->file_same[file][w], same[w]);
      all += f->weight[w] * same[w];
    }
    facts_keep(&f->one_same[file], all);
  }
}

/* ---- Facts ---- */

static size_t facts_folder_len(lode_str path) {
  while (path.len && path.data[path.len - 1] != '/') path.len--;
  return path.len;
}

static double facts_recall(const facts_run *f, const search_words *name) {
  double found = 0;
  for (size_t w = 0; w < f->asked; w++) found += f->weight[w] * search_word_best(&f->r->question->words.v[w], name);
  return f->weights > 0 ? found / f->weights : 0;
}

static double facts_precision(const facts_run *f, const search_words *name) {
  double found = 0;
  for (size_t i = 0; i < name->n; i++) found += search_word_best(&name->v[i], &f->r->question->words);
  return name->n ? found / (double)name->n : 0;
}

static void facts_of_chunks(facts_run *f, size_t file, double *x) {
  static const struct {
    rank_feature feature;
    rank_fact fact;
  } same[] = {{RANK_FEATURE_OUTLINE, RANK_FACT_OUTLINE}, {RANK_FEATURE_DEFINES, RANK_FACT_DEFINES},
              {RANK_FEATURE_NAME, RANK_FACT_NAME},       {RANK_FEATURE_FILE, RANK_FACT_FILE},
              {RANK_FEATURE_CENTRAL, RANK_FACT_CENTRAL}, {RANK_FEATURE_KIND, RANK_FACT_KIND},
              {RANK_FEATURE_PHRASE, RANK_FACT_PHRASE}};
  const rank_state *r = f->r;
  const rank_file *it = &r->files[file];
  double share = 1;
  x[RANK_FACT_COSINE] = -1;
  search_words all = {.n = 0};
  for (size_t k = 0; k < it->chunks; k++, share /= 2) {
    const rank_candidate *c = &r->v[r->order[it->top + k]];
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) facts_keep(&x[same[i].fact], c->features[same[i].feature]);
    for (size_t i = 0; i < 2; i++) {
      double value = c->features[i ? RANK_FEATURE_VECTOR : RANK_FEATURE_TEXT];
      rank_fact first = i ? RANK_FACT_VECTOR : RANK_FACT_TEXT, second = i ? RANK_FACT_VECTOR2 : RANK_FACT_TEXT2;
      x[i ? RANK_FACT_VECTORS : RANK_FACT_TEXTS] += share * value;
      facts_keep(&x[second], value < x[first] ? value : x[first]);
      facts_keep(&x[first], value);
    }
    if (!isnan(c->cosine)) facts_keep(&x[RANK_FACT_COSINE], c->cosine);
    search_words name;
    search_words_split(c->name, &name);
    for (size_t i = 0; i < name.n && all.n < SEARCH_MAX_WORDS; i++) all.v[all.n++] = name.v[i];
  }
  x[RANK_FACT_NAMES_RECALL] = facts_recall(f, &all);
  const rank_candidate *best = &r->v[r->order[it->top]];
  x[RANK_FACT_LINES] = log(1.0 + best->last - best->first);
  x[RANK_FACT_CHUNKS] = log((double)it->chunks);
  for (size_t i = 0; i < RANK_FACTOR_COUNT; i++) x[RANK_FACT_TEST + i] = best->factors >> i & 1;
  _Static_assert(RANK_FACT_COUNT - RANK_FACT_TEST == RANK_FACTOR_COUNT, "a fact for each factor, in their order");
}

static void facts_of_file(facts_run *f, size_t file, double *x) {
  const rank_state *r = f->r;
  const rank_file *it = &r->files[file];
  search_words folders;
  double same = 0;
  search_words_split((lode_str){it->path.data, facts_folder_len(it->path)}, &folders);
  x[RANK_FACT_ASKED] = (double)r->question->words.n;
  x[RANK_FACT_FILES] = log((double)r->n_files);
  x[RANK_FACT_FILE_RECALL] = facts_recall(f, &it->stem);
  x[RANK_FACT_FILE_PRECISION] = facts_precision(f, &it->stem);
  x[RANK_FACT_FOLDER_RECALL] = facts_recall(f, &folders);
  for (size_t w = 0; w < f->asked; w++) {
    same += f->weight[w] * f->file_same[file][w];
    x[RANK_FACT_COVER_COUNT] += f->file_same[file][w] >= 1;
  }
  double all = f->weights > 0 ? f->weights : 1;
  x[RANK_FACT_COVER_COUNT] /= f->asked ? (double)f->asked : 1;
  x[RANK_FACT_COVER] = same / all;
  x[RANK_FACT_COVER_ONE] = f->one_same[file] / all;
  x[RANK_FACT_NAMED] = log(1 + (double)it->named);
  for (size_t i = 0; i < it->path.len; i++) x[RANK_FACT_DEPTH] += it->path.data[i] == '/';
}

/* Facts that compare a file with the others. */
static void facts_between(facts_run *f, double (*x)[RANK_FACT_COUNT]) {
  const rank_state *r = f->r;
  double best = 0, chunk = 0, total = 0;
  for (size_t i = 0; i < r->n_files; i++) {
    facts_keep(&best, r->files[i].best);
    facts_keep(&chunk, r->v[r->order[r->files[i].top]].score);
    total += r->files[i].best > 0 ? r->files[i].best : 0;
  }
  for (size_t i = 0; i < r->n_files; i++) {
    const rank_file *a = &r->files[i];
    const rank_candidate *own = &r->v[r->order[a->top]];
    size_t folder = facts_folder_len(a->path), higher = 0, texts = 0, vectors = 0, language = 0;
    double siblings = 0;
    for (size_t k = 0; k < r->n_files; k++) {
      const rank_file *b = &r->files[k];
      higher += b->best > a->best;
      texts += x[k][RANK_FACT_TEXT] > x[i][RANK_FACT_TEXT];
      vectors += x[k][RANK_FACT_VECTOR] > x[i][RANK_FACT_VECTOR];
      language += str_eq(r->v[r->order[b->top]].language, own->language);
      if (k != i && facts_folder_len(b->path) == folder && memcmp(a->path.data, b->path.data, folder) == 0)
        siblings += b->best > 0 ? b->best : 0;
    }
    x[i][RANK_FACT_HAND] = best > 0 ? a->best / best : 0;
    x[i][RANK_FACT_BEST] = chunk > 0 ? own->score / chunk : 0;
    x[i][RANK_FACT_PLACE] = 1 / (1 + (double)higher);
    x[i][RANK_FACT_TEXT_PLACE] = 1 / (1 + (double)texts);
    x[i][RANK_FACT_VECTOR_PLACE] = 1 / (1 + (double)vectors);
    x[i][RANK_FACT_SIBLINGS] = total > 0 ? siblings / total : 0;
    x[i][RANK_FACT_LANGUAGE] = (double)language / (double)r->n_files;
  }
}

lode_status rank_find_facts(rank_state *r, double (*x)[RANK_FACT_COUNT], lode_error *err) {
  facts_run f = {.r = r};
  lode_status st = LODE_OK;
  f.ends = mem_calloc(r->n, sizeof *f.ends);
  f.file_same = mem_calloc(r->n_files, sizeof *f.file_same);
  f.one_same = mem_calloc(r->n_files, sizeof *f.one_same);
  if (!f.ends || !f.file_same || !f.one_same) TRY_GOTO(err_nomem(err));
  TRY_GOTO(facts_read_words(&f, err));
  facts_weigh_words(&f);
  facts_match_words(&f);
  for (size_t i = 0; i < r->n_files; i++) {
    facts_of_file(&f, i, x[i]);
    facts_of_chunks(&f, i, x[i]);
  }
  facts_between(&f, x);
done:
  mem_free(f.lexicon.words);
  mem_free(f.lexicon.slots);
  mem_free(f.lexicon.list);
  mem_free(f.ends);
  mem_free(f.file_same);
  mem_free(f.one_same);
  return st;
}
