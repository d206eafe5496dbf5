/* SPDX-License-Identifier: Apache-2.0 */
/* search_confidence.c - is there an answer at all? See search_internal.h.
 *
 * There is always a nearest chunk, for nonsense too. An answer is weak if few of the question's words are in any
 * candidate, or few of them in one, and no vector is near. A rare word that the project has brings its chunks among the
 * candidates, so a word that none of them has is a word that the project does not have. A name that no candidate has is
 * not there, however near its parts are.
 */
#include "search/search_internal.h"

#include <math.h>
#include <strings.h>

/* Which words of the question a text has: bit i for word i. Words are compared by their stems. */
static uint64_t confidence_words_in(const search_words *asked, lode_str text) {
  uint64_t found = 0, all = ((uint64_t)1 << asked->n) - 1;
  _Static_assert(SEARCH_MAX_WORDS < 64, "a bit for each word");
  /* a long text has more words than are kept of it: it is taken piece by piece */
  for (size_t at = 0; at < text.len && found != all;) {
    size_t end = text.len - at > SEARCH_CONFIDENCE_PIECE ? at + SEARCH_CONFIDENCE_PIECE : text.len;
    while (end < text.len && end > at + 1 && search_is_name_byte((unsigned char)text.data[end - 1])) end--;
    search_words here;
    search_words_split((lode_str){text.data + at, end - at}, &here);
    for (size_t i = 0; i < asked->n; i++)
      if (search_word_best(&asked->v[i], &here) >= 1) found |= (uint64_t)1 << i;
    at = end;
  }
  return found;
}

/* The best cosine; NaN if there is none, or it is of another model than the one for code: its cosines mean something
 * else. */
static double confidence_cosine(const search_ctx *s) {
  static const char own[] = LODE_MODEL_CODE "@";
  double best = NAN;
  if (strncmp(s->embedder, own, sizeof own - 1) != 0) return NAN;
  for (size_t i = 0; i < s->n; i++)
    if (!isnan(s->v[i].cosine) && !(s->v[i].cosine <= best)) best = s->v[i].cosine;
  return best;
}

static bool confidence_holds_folded(lode_str text, lode_str name) {
  for (size_t i = 0; i + name.len <= text.len; i++)
    if (((text.data[i] ^ name.data[0]) & ~0x20) == 0 && strncasecmp(text.data + i, name.data, name.len) == 0)
      return true;
  return false;
}

/* Is the question a name as only code has them (snake_case, camelCase), and no candidate defines or mentions it? If
 * there were one, the text index would have it. */
static bool confidence_is_no_name(const search_ctx *s) {
  const search_question *q = &s->result->question;
  if (!q->is_name || !q->is_coded || !q->n_names) return false;
  lode_str last = q->names[q->n_names - 1];
  for (size_t i = 0; i < s->n; i++) {
    const rank_candidate *c = &s->v[i];
    if (c->features[RANK_FEATURE_DEFINES] > 0 || confidence_holds_folded(c->text, last) ||
        confidence_holds_folded(c->path, last))
      return false;
  }
  return true;
}

bool search_is_weak(const search_ctx *s) {
  const search_words *asked = &s->result->question.words;
  double cosine = confidence_cosine(s);
  uint64_t any = 0;
  size_t known = 0;
  if (s->verbatim || s->request->similar.data || asked->n == 0) return false;
  if (confidence_is_no_name(s)) return true;
  if (cosine >= SEARCH_COSINE_NEAR) return false;
  for (size_t i = 0; i < s->n; i++) {
    const rank_candidate *c = &s->v[i];
    if (c->features[RANK_FEATURE_DEFINES] > 0) return false;
    uint64_t here = confidence_words_in(asked, c->text) | confidence_words_in(asked, c->path);
    if (2 * (size_t)__builtin_popcountll(here) > asked->n) return false; /* most of the words in one place */
    any |= here;
    known = (size_t)__builtin_popcountll(any);
  }
  if (isnan(cosine)) return 2 * known < asked->n; /* words alone must say it */
  return 2 * known <= asked->n || cosine < SEARCH_COSINE_FAR;
}
