/* SPDX-License-Identifier: Apache-2.0 */
/* wordpiece.c - see wordpiece.h.
 *
 * The vocabulary is a hash table of texts; those with and without the ## of a continuation have different seeds. A word
 * is looked up from its longest possible piece down; the hashes of all its prefixes are computed in one pass.
 *
 * Decomposition orders marks by combining class. Non-spacing marks are dropped, so only the few spacing ones with a
 * class wait in a small buffer. It cannot overflow: a word longer than max_word_chars is unknown, whatever the order.
 */
#include "embed/wordpiece.h"

#include <utf8proc.h>

enum { CONTINUATION = 1, WAITING_MAX = 64, WORDPIECE_WORD_BYTES = 4 * EMBED_MAX_WORD_CHARS };

/* ---- Vocabulary ---- */

static inline uint64_t wordpiece_hash_seed(unsigned kind) { return 0x9E3779B97F4A7C15u * (kind + 1); }
static inline uint64_t wordpiece_hash_step(uint64_t h, unsigned char c) { return (h ^ c) * 0x100000001B3u; }
static inline uint32_t wordpiece_hash_end(uint64_t h) { return (uint32_t)(h >> 32 ^ h); }

static inline bool wordpiece_same(const embed_wordpiece *wp, uint32_t id, unsigned kind, const char *text, size_t len) {
  return wp->kinds[id] == kind && wp->starts[id + 1] - wp->starts[id] == len &&
         memcmp(wp->bytes + wp->starts[id], text, len) == 0;
}

/* id + 1, or 0 */
static uint32_t wordpiece_look_up(const embed_wordpiece *wp, uint64_t hash, unsigned kind, const char *text,
                                  size_t len) {
  for (uint32_t i = wordpiece_hash_end(hash) & wp->mask;; i = (i + 1) & wp->mask) {
    uint32_t slot = wp->slots[i];
    if (slot == 0 || wordpiece_same(wp, slot - 1, kind, text, len)) return slot;
  }
}

static void wordpiece_insert(embed_wordpiece *wp, uint32_t id) {
  const char *text = wp->bytes + wp->starts[id];
  size_t len = wp->starts[id + 1] - wp->starts[id];
  uint64_t h = wordpiece_hash_seed(wp->kinds[id]);
  for (size_t i = 0; i < len; i++) h = wordpiece_hash_step(h, (unsigned char)text[i]);
  uint32_t i = wordpiece_hash_end(h) & wp->mask;
  while (wp->slots[i] && !wordpiece_same(wp, wp->slots[i] - 1, wp->kinds[id], text, len)) i = (i + 1) & wp->mask;
  wp->slots[i] = id + 1;
}

static lode_status wordpiece_check(const embed_wordpiece_settings *s, const lode_str *tokens, size_t count,
                                   const uint32_t *specials, size_t n_specials, size_t *bytes, lode_error *err) {
  if (count == 0 || count > EMBED_VOCAB_MAX)
    return err_set(err, LODE_CORRUPT, "a vocabulary of %zu tokens; 1 to %u are possible", count, EMBED_VOCAB_MAX);
  if (s->unknown >= count || s->first >= count || s->last >= count)
    return err_set(err, LODE_CORRUPT, "a special token's id is past the vocabulary's end");
  if (s->max_word_chars == 0 || s->max_word_chars > EMBED_MAX_WORD_CHARS)
    return err_set(err, LODE_CORRUPT, "max_input_chars_per_word is %u; 1 to %d are possible", s->max_word_chars,
                   EMBED_MAX_WORD_CHARS);
  if (n_specials > EMBED_VOCAB_MAX_SPECIALS)
    return err_set(err, LODE_CORRUPT, "%zu special tokens; the most is %d", n_specials, EMBED_VOCAB_MAX_SPECIALS);
  for (size_t i = 0; i < n_specials; i++)
    if (specials[i] >= count || tokens[specials[i]].len == 0)
      return err_set(err, LODE_CORRUPT, "special token %zu is not in the vocabulary", i);
  *bytes = 0;
  for (size_t i = 0; i < count; i++) {
    if (tokens[i].len > EMBED_VOCAB_TOKEN_BYTES)
      return err_set(err, LODE_CORRUPT, "token %zu of the vocabulary has %zu bytes; the most is %d", i, tokens[i].len,
                     EMBED_VOCAB_TOKEN_BYTES);
    *bytes += tokens[i].len; /* at most 2^22 * 2^8 */
  }
  return LODE_OK;
}

lode_status embed_wordpiece_init(embed_wordpiece *wp, const embed_wordpiece_settings *settings, const lode_str *tokens,
                                 size_t count, const uint32_t *specials, size_t n_specials, lode_error *err) {
  *wp = (embed_wordpiece){.settings = *settings};
  size_t bytes = 0;
  TRY(wordpiece_check(settings, tokens, count, specials, n_specials, &bytes, err));
  uint32_t slots = 64;
  while (slots < 2 * count) slots *= 2;
  wp->bytes = mem_alloc(bytes + 1);
  wp->starts = mem_calloc(count + 1, sizeof *wp->starts);
  wp->kinds = mem_calloc(count, 1);
  wp->slots = mem_calloc(slots, sizeof *wp->slots);
  if (!wp->bytes || !wp->starts || !wp->kinds || !wp->slots) {
    embed_wordpiece_release(wp);
    return err_nomem(err);
  }
  wp->mask = slots - 1;
  wp->count = (uint32_t)count;
  wp->n_specials = n_specials;
  if (n_specials) memcpy(wp->specials, specials, n_specials * sizeof *specials);
  uint32_t at = 0;
  for (uint32_t i = 0; i < count; i++) {
    lode_str t = tokens[i];
    bool continues = t.len > 2 && t.data[0] == '#' && t.data[1] == '#';
    if (continues) t = (lode_str){t.data + 2, t.len - 2};
    wp->kinds[i] = continues ? CONTINUATION : 0;
    if (t.len) memcpy(wp->bytes + at, t.data, t.len);
    at += (uint32_t)t.len;
    wp->starts[i + 1] = at;
    if (t.len > wp->longest) wp->longest = (uint32_t)t.len;
    if (t.len) wordpiece_insert(wp, i);
  }
  return LODE_OK;
}

void embed_wordpiece_release(embed_wordpiece *wp) {
  mem_free(wp->bytes);
  mem_free(wp->starts);
  mem_free(wp->kinds);
  mem_free(wp->slots);
  *wp = (embed_wordpiece){0};
}

/* ---- From words to ids ---- */

typedef struct wordpiece_writer {
  const embed_wordpiece *wp;
  uint32_t *ids;
  size_t n, max;     /* max: leaves room for [SEP] */
  size_t len, chars; /* of the word so far */
  bool too_long;
  size_t n_waiting;
  int32_t waiting[WAITING_MAX];
  unsigned char classes[WAITING_MAX];
  char word[WORDPIECE_WORD_BYTES];
  uint32_t pieces[EMBED_MAX_WORD_CHARS]; /* of the word that has just ended */
} wordpiece_writer;

static inline bool wordpiece_full(const wordpiece_writer *w) { return w->n >= w->max; }
static inline void wordpiece_add_id(wordpiece_writer *w, uint32_t id) {
  if (!wordpiece_full(w)) w->ids[w->n++] = id;
}

/* The longest piece at `from`; 0 when there is none. */
static uint32_t wordpiece_longest_piece(const wordpiece_writer *w, size_t from, size_t *len) {
  const embed_wordpiece *wp = w->wp;
  uint64_t hashes[EMBED_VOCAB_TOKEN_BYTES + 1];
  unsigned kind = from ? CONTINUATION : 0;
  size_t max = w->len - from < wp->longest ? w->len - from : wp->longest;
  const char *text = w->word + from;
  uint64_t h = wordpiece_hash_seed(kind);
  for (size_t i = 0; i < max; i++) hashes[i] = h = wordpiece_hash_step(h, (unsigned char)text[i]);
  for (size_t n = max; n > 0; n--) {
    if (from + n < w->len && ((unsigned char)text[n] & 0xC0) == 0x80) continue; /* inside a character */
    uint32_t slot = wordpiece_look_up(wp, hashes[n - 1], kind, text, n);
    if (slot) {
      *len = n;
      return slot;
    }
  }
  return 0;
}

/* A word is unknown if any part of it is, even a part that no longer fits. */
static void wordpiece_end_word(wordpiece_writer *w) {
  if (w->len > 0) {
    size_t n = 0;
    bool unknown = w->too_long;
    for (size_t at = 0, len = 0; !unknown && at < w->len; at += len) {
      uint32_t slot = wordpiece_longest_piece(w, at, &len);
      if (slot)
        w->pieces[n++] = slot - 1;
      else
        unknown = true;
    }
    if (unknown) wordpiece_add_id(w, w->wp->settings.unknown);
    for (size_t i = 0; i < n && !unknown; i++) wordpiece_add_id(w, w->pieces[i]);
  }
  w->len = w->chars = 0;
  w->too_long = false;
}

static void wordpiece_add_char(wordpiece_writer *w, int32_t c) {
  if (w->chars >= w->wp->settings.max_word_chars) {
    w->too_long = true;
    return;
  }
  w->len += (size_t)utf8proc_encode_char(c, (utf8proc_uint8_t *)w->word + w->len);
  w->chars++;
}

/* ---- Characters ---- */

/* The reference's tables are those of Unicode 8. These marks, punctuation and format characters are newer, and it
 * treats them as letters. Found by giving it every character. */
static const struct {
  int32_t first, last;
} newer_than_unicode8[] = {
    {0x61D, 0x61D},     {0x7FD, 0x7FD},     {0x890, 0x891},     {0x898, 0x89F},     {0x8CA, 0x8E2},
    {0x9FD, 0x9FE},     {0xA76, 0xA76},     {0xAFA, 0xAFF},     {0xB55, 0xB55},     {0xC04, 0xC04},
    {0xC3C, 0xC3C},     {0xC77, 0xC77},     {0xC84, 0xC84},     {0xD00, 0xD00},     {0xD3B, 0xD3C},
    {0xD81, 0xD81},     {0xEBA, 0xEBA},     {0xECE, 0xECE},     {0x180F, 0x180F},   {0x1885, 0x1886},
    {0x1ABF, 0x1ACE},   {0x1B7D, 0x1B7E},   {0x1DF6, 0x1DFB},   {0x2E43, 0x2E4F},   {0x2E52, 0x2E5D},
    {0xA82C, 0xA82C},   {0xA8C5, 0xA8C5},   {0xA8FF, 0xA8FF},   {0xA9BD, 0xA9BD},   {0x10D24, 0x10D27},
    {0x10EAB, 0x10EAD}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F55, 0x10F59}, {0x10F82, 0x10F89},
    {0x11070, 0x11070}, {0x11073, 0x11074}, {0x110C2, 0x110C2}, {0x110CD, 0x110CD}, {0x111C9, 0x111C9},
    {0x111CF, 0x111CF}, {0x1123E, 0x1123E}, {0x11241, 0x11241}, {0x1133B, 0x1133B}, {0x11438, 0x1143F},
    {0x11442, 0x11444}, {0x11446, 0x11446}, {0x1144B, 0x1144F}, {0x1145A, 0x1145B}, {0x1145D, 0x1145E},
    {0x11660, 0x1166C}, {0x116B9, 0x116B9}, {0x1182F, 0x11837}, {0x11839, 0x1183B}, {0x1193B, 0x1193C},
    {0x1193E, 0x1193E}, {0x11943, 0x11946}, {0x119D4, 0x119D7}, {0x119DA, 0x119DB}, {0x119E0, 0x119E0},
    {0x119E2, 0x119E2}, {0x11A01, 0x11A0A}, {0x11A33, 0x11A38}, {0x11A3B, 0x11A47}, {0x11A51, 0x11A56},
    {0x11A59, 0x11A5B}, {0x11A8A, 0x11A96}, {0x11A98, 0x11A9C}, {0x11A9E, 0x11AA2}, {0x11B00, 0x11B09},
    {0x11C30, 0x11C36}, {0x11C38, 0x11C3D}, {0x11C3F, 0x11C3F}, {0x11C41, 0x11C45}, {0x11C70, 0x11C71},
    {0x11C92, 0x11CA7}, {0x11CAA, 0x11CB0}, {0x11CB2, 0x11CB3}, {0x11CB5, 0x11CB6}, {0x11D31, 0x11D36},
    {0x11D3A, 0x11D3A}, {0x11D3C, 0x11D3D}, {0x11D3F, 0x11D45}, {0x11D47, 0x11D47}, {0x11D90, 0x11D91},
    {0x11D95, 0x11D95}, {0x11D97, 0x11D97}, {0x11EF3, 0x11EF4}, {0x11EF7, 0x11EF8}, {0x11F00, 0x11F01},
    {0x11F36, 0x11F3A}, {0x11F40, 0x11F40}, {0x11F42, 0x11F4F}, {0x11FFF, 0x11FFF}, {0x12FF1, 0x12FF2},
    {0x13430, 0x13440}, {0x13447, 0x13455}, {0x16E97, 0x16E9A}, {0x16F4F, 0x16F4F}, {0x16FE2, 0x16FE2},
    {0x16FE4, 0x16FE4}, {0x1CF00, 0x1CF2D}, {0x1CF30, 0x1CF46}, {0x1E000, 0x1E006}, {0x1E008, 0x1E018},
    {0x1E01B, 0x1E021}, {0x1E023, 0x1E024}, {0x1E026, 0x1E02A}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136},
    {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}, {0x1E944, 0x1E94A}, {0x1E95E, 0x1E95F},
};

static bool is_newer_than_unicode8(int32_t c) {
  const size_t n = sizeof newer_than_unicode8 / sizeof *newer_than_unicode8;
  size_t at = 0;
  SORT_LOWER_BOUND(at, n, newer_than_unicode8[at].last < c);
  return at < n && c >= newer_than_unicode8[at].first;
}

/* The category in Unicode 8. */
static utf8proc_category_t unicode8_category(int32_t c) {
  if (c == 0x166D || c == 0x111C9) return UTF8PROC_CATEGORY_PO;
  if (c == 0x1734) return UTF8PROC_CATEGORY_MN;
  utf8proc_category_t k = utf8proc_category(c);
  bool matters = k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_CF ||
                 (k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO);
  return matters && is_newer_than_unicode8(c) ? UTF8PROC_CATEGORY_LO : k;
}

static inline bool ascii_punctuation(int32_t c) {
  return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
}

static bool wordpiece_is_punctuation(int32_t c) {
  if (c < 128) return ascii_punctuation(c);
  utf8proc_category_t k = unicode8_category(c);
  return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

static bool wordpiece_is_white(int32_t c) {
  return c == ' ' || (c >= 9 && c <= 13) || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

static bool wordpiece_is_control(int32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  if (c < 128) return c < 32 || c == 127;
  utf8proc_category_t k = unicode8_category(c);
  return k == UTF8PROC_CATEGORY_CC || k == UTF8PROC_CATEGORY_CF || k == UTF8PROC_CATEGORY_CO;
}

static bool wordpiece_is_chinese(int32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

/* Handles a character after normalisation. */
static void wordpiece_normal(wordpiece_writer *w, int32_t c) {
  if (wordpiece_is_white(c)) {
    wordpiece_end_word(w);
  } else if (wordpiece_is_punctuation(c)) {
    wordpiece_end_word(w);
    wordpiece_add_char(w, c);
    wordpiece_end_word(w);
  } else {
    wordpiece_add_char(w, c);
  }
}

static void wordpiece_lowered(wordpiece_writer *w, int32_t c) {
  if (w->wp->settings.lowercase) {
    if (c == 0x130) { /* the only character whose lower case is two characters */
      wordpiece_normal(w, 'i');
      c = 0x307;
    } else {
      c = utf8proc_tolower(c);
    }
  }
  wordpiece_normal(w, c);
}

static void wordpiece_release_waiting(wordpiece_writer *w) {
  for (size_t i = 0; i < w->n_waiting; i++) wordpiece_lowered(w, w->waiting[i]);
  w->n_waiting = 0;
}

/* Handles one character of a decomposition: marks are dropped or wait for their order, others are passed on. */
static void wordpiece_decomposed(wordpiece_writer *w, int32_t c) {
  const utf8proc_property_t *p = utf8proc_get_property(c);
  if (unicode8_category(c) == UTF8PROC_CATEGORY_MN) return;
  if (p->combining_class == 0 || w->n_waiting == WAITING_MAX) {
    wordpiece_release_waiting(w);
    wordpiece_lowered(w, c);
    return;
  }
  size_t i = w->n_waiting++;
  for (; i > 0 && w->classes[i - 1] > p->combining_class; i--) {
    w->waiting[i] = w->waiting[i - 1];
    w->classes[i] = w->classes[i - 1];
  }
  w->waiting[i] = c;
  w->classes[i] = (unsigned char)p->combining_class;
}

static void wordpiece_decompose(wordpiece_writer *w, int32_t c) {
  if (!w->wp->settings.strip_accents) {
    wordpiece_lowered(w, c);
    return;
  }
  utf8proc_int32_t parts[32];
  int boundary = 0;
  utf8proc_ssize_t n = utf8proc_decompose_char(c, parts, 32, UTF8PROC_DECOMPOSE, &boundary);
  if (n <= 0 || n > 32) {
    parts[0] = c;
    n = 1;
  }
  for (utf8proc_ssize_t i = 0; i < n; i++) wordpiece_decomposed(w, parts[i]);
}

static void wordpiece_end_run(wordpiece_writer *w) {
  wordpiece_release_waiting(w);
  wordpiece_end_word(w);
}

static void wordpiece_raw_char(wordpiece_writer *w, int32_t c) {
  const embed_wordpiece_settings *s = &w->wp->settings;
  if (s->clean_text) {
    if (c == 0 || c == 0xFFFD || wordpiece_is_control(c)) return;
    if (wordpiece_is_white(c)) c = ' ';
  }
  if (s->chinese_chars && wordpiece_is_chinese(c)) {
    wordpiece_end_run(w);
    wordpiece_decompose(w, c);
    wordpiece_end_run(w);
  } else {
    wordpiece_decompose(w, c);
  }
}

static inline void wordpiece_raw_ascii(wordpiece_writer *w, unsigned char c) {
  if (w->n_waiting) wordpiece_release_waiting(w);
  if (c >= 'A' && c <= 'Z') {
    wordpiece_add_char(w, w->wp->settings.lowercase ? c + 32 : c);
  } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
    wordpiece_add_char(w, c);
  } else if (c == ' ') {
    wordpiece_end_word(w);
  } else {
    wordpiece_raw_char(w, c);
  }
}

/* ---- Text ---- */

/* The longest special token at p: its bytes, or 0. */
static size_t wordpiece_special_at(const embed_wordpiece *wp, const char *p, size_t left, uint32_t *id) {
  size_t best = 0;
  for (size_t i = 0; i < wp->n_specials; i++) {
    uint32_t s = wp->specials[i];
    size_t len = wp->starts[s + 1] - wp->starts[s];
    if (len > best && len <= left && memcmp(p, wp->bytes + wp->starts[s], len) == 0) {
      best = len;
      *id = s;
    }
  }
  return best;
}

size_t embed_wordpiece_encode(const embed_wordpiece *wp, lode_str text, uint32_t *ids, size_t max_ids) {
  bool begins[256] = {false}; /* bytes that a special token starts with */
  for (size_t i = 0; i < wp->n_specials; i++) begins[(unsigned char)wp->bytes[wp->starts[wp->specials[i]]]] = true;
  wordpiece_writer w;
  w.wp = wp;
  w.ids = ids;
  w.n = 0;
  w.max = max_ids - 1;
  w.len = w.chars = w.n_waiting = 0;
  w.too_long = false;
  wordpiece_add_id(&w, wp->settings.first);
  for (size_t i = 0; i < text.len && !wordpiece_full(&w);) {
    unsigned char c = (unsigned char)text.data[i];
    uint32_t id = 0;
    size_t special = begins[c] ? wordpiece_special_at(wp, text.data + i, text.len - i, &id) : 0;
    if (special) {
      wordpiece_end_run(&w);
      wordpiece_add_id(&w, id);
      i += special;
    } else if (c < 128) {
      wordpiece_raw_ascii(&w, c);
      i++;
    } else {
      utf8proc_int32_t wide;
      size_t width = utf8_width(text.data + i, text.len - i);
      if (width && utf8proc_iterate((const utf8proc_uint8_t *)text.data + i, (utf8proc_ssize_t)width, &wide) > 0)
        wordpiece_raw_char(&w, wide);
      i += width ? width : 1;
    }
  }
  wordpiece_end_run(&w);
  ids[w.n++] = wp->settings.last;
  return w.n;
}
