/* SPDX-License-Identifier: Apache-2.0 */
/* search_glossary.c - see search_glossary.h. */
#include "search/search_glossary.h"

#include "base/byteorder.h"
#include "base/crc32c.h"
#include "base/token.h"
#include "embed/embed.h"
#include "search/search_words.h"

enum {
  GLOSSARY_VERSION = 1,
  GLOSSARY_HEADER = 64,
  GLOSSARY_ENTRY = 8,
  GLOSSARY_MAX_BYTES = 6 << 20,
  GLOSSARY_MAX_KEY = 64, /* of a word that is looked up */
  GLOSSARY_PARTS = 3,    /* a German word is cut into at most so many */
};

struct search_glossary {
  char *bytes; /* the file */
  const char *text;
  uint32_t n, text_len;
};

/* ---- The table ---- */

typedef struct glossary_entry {
  lode_str key, word;
  unsigned language;
} glossary_entry;

static glossary_entry glossary_at(const search_glossary *g, size_t i) {
  const unsigned char *at = (const unsigned char *)g->bytes + GLOSSARY_HEADER + i * GLOSSARY_ENTRY;
  const char *key = g->text + num_le32(at);
  return (glossary_entry){{key, at[4]}, {key + at[4], at[5]}, at[6]};
}

/* Every entry lies within the text, and they are in order: the sums show damage, this shows a table that was made
 * wrongly. */
static bool glossary_is_sound(const search_glossary *g) {
  glossary_entry last = {.language = 0};
  for (size_t i = 0; i < g->n; i++) {
    const unsigned char *at = (const unsigned char *)g->bytes + GLOSSARY_HEADER + i * GLOSSARY_ENTRY;
    if ((uint64_t)num_le32(at) + at[4] + at[5] > g->text_len || !at[4] || at[6] >= SEARCH_LANGUAGES) return false;
    glossary_entry e = glossary_at(g, i);
    if (!utf8_valid(e.key.data, e.key.len) || !utf8_valid(e.word.data, e.word.len)) return false;
    if (i && (e.language < last.language || (e.language == last.language && str_cmp(last.key, e.key) >= 0)))
      return false;
    last = e;
  }
  return true;
}

static bool glossary_check(search_glossary *g, size_t len) {
  const char *b = g->bytes;
  if (len < GLOSSARY_HEADER || memcmp(b, "LODEGLO1", 8) != 0 || num_le32(b + 60) != crc32c_update(0, b, 60) ||
      num_le32(b + 8) != GLOSSARY_VERSION || num_le64(b + 24) != len)
    return false;
  g->n = num_le32(b + 12);
  g->text_len = num_le32(b + 16);
  uint64_t body = (uint64_t)g->n * GLOSSARY_ENTRY + g->text_len;
  if (GLOSSARY_HEADER + body != len || num_le32(b + 20) != crc32c_update(0, b + GLOSSARY_HEADER, (size_t)body))
    return false;
  g->text = b + GLOSSARY_HEADER + (size_t)g->n * GLOSSARY_ENTRY;
  return glossary_is_sound(g);
}

lode_status search_glossary_open(const char *path, search_glossary **glossary, lode_error *err) {
  char *found = NULL;
  size_t len = 0;
  lode_status st = LODE_OK;
  search_glossary *g = mem_calloc(1, sizeof *g);
  *glossary = NULL;
  if (!g) return err_nomem(err);
  if (!path) TRY_GOTO(embed_locate_part(SEARCH_GLOSSARY_FILE, &found, err));
  path = path ? path : found;
  TRY_GOTO(embed_read_file(path, GLOSSARY_MAX_BYTES, &g->bytes, &len, err));
  if (!glossary_check(g, len))
    TRY_GOTO(err_set(err, LODE_CORRUPT, "%.300s is damaged, or of another version: install lode again", path));
  *glossary = g;
  g = NULL;
done:
  mem_free(found);
  search_glossary_close(g);
  return st;
}

void search_glossary_close(search_glossary *g) {
  if (!g) return;
  mem_free(g->bytes);
  mem_free(g);
}

size_t search_glossary_count(const search_glossary *g) { return g->n; }

/* The first entry that is not before the key. */
static size_t glossary_lower(const search_glossary *g, unsigned language, lode_str key) {
  size_t low = 0, high = g->n;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    glossary_entry e = glossary_at(g, mid);
    if (e.language < language || (e.language == language && str_cmp(e.key, key) < 0))
      low = mid + 1;
    else
      high = mid;
  }
  return low;
}

static bool glossary_find(const search_glossary *g, unsigned language, lode_str key, lode_str *word) {
  size_t i = glossary_lower(g, language, key);
  if (i == g->n) return false;
  glossary_entry e = glossary_at(g, i);
  if (e.language != language || !str_eq(e.key, key)) return false;
  *word = e.word;
  return true;
}

/* ---- Words in Latin letters ---- */

/* The shortest entry that begins as the word does, but for an ending: "Abonnenten", "Abonnent". */
static bool glossary_find_near(const search_glossary *g, unsigned language, lode_str key, lode_str *word) {
  enum { MOST_CUT = 3, LEAST_LEFT = 5, MOST_LONGER = 2, MOST_LOOKED_AT = 64 };
  for (size_t cut = 1; cut <= MOST_CUT && key.len >= cut + LEAST_LEFT; cut++) {
    lode_str start = {key.data, key.len - cut};
    size_t i = glossary_lower(g, language, start), best = 0;
    for (size_t k = 0; k < MOST_LOOKED_AT && i + k < g->n; k++) {
      glossary_entry e = glossary_at(g, i + k);
      if (e.language != language || e.key.len < start.len || memcmp(e.key.data, start.data, start.len) != 0) break;
      bool fits = e.key.len <= key.len + MOST_LONGER && e.word.len;
      if (fits && (!best || e.key.len < best)) {
        best = e.key.len;
        *word = e.word;
      }
    }
    if (best) return true;
  }
  return false;
}

/* Ways to cut the first bytes of a word into words of the table. */
typedef struct glossary_cut {
  unsigned cost; /* 0: there is none */
  uint8_t from, parts;
  lode_str word;
} glossary_cut;

/* Long parts are rather meant than short ones; a joining s counts a little. */
static void glossary_try_part(const search_glossary *g, unsigned language, lode_str key, glossary_cut *cuts, size_t i,
                              size_t j) {
  static const char *const joints[] = {"", "s", "n", "en", "es", "e"};
  lode_str word;
  if (!glossary_find(g, language, (lode_str){key.data + i, j - i}, &word) || !word.len) return;
  unsigned cost = cuts[i].cost + (j - i < 5 ? 15 : 10);
  for (size_t k = 0; k < sizeof joints / sizeof *joints; k++) {
    size_t end = j + strlen(joints[k]);
    unsigned all = cost + (k ? 2 : 0);
    if (end > key.len || (k && end == key.len) || memcmp(key.data + j, joints[k], end - j) != 0) continue;
    if (!cuts[end].cost || all < cuts[end].cost)
      cuts[end] = (glossary_cut){all, (uint8_t)i, (uint8_t)(cuts[i].parts + 1), word};
  }
}

/* "Datenbankverbindung": database connection. */
static bool glossary_put_compound(const search_glossary *g, unsigned language, lode_str key, strbuf *out) {
  enum { LEAST_WORD = 8, LEAST_PART = 3 };
  glossary_cut cuts[GLOSSARY_MAX_KEY + 1] = {{.cost = 1}};
  lode_str words[GLOSSARY_PARTS];
  if (language != SEARCH_GERMAN || key.len < LEAST_WORD) return false;
  for (size_t i = 0; i + LEAST_PART <= key.len; i++)
    for (size_t j = i + LEAST_PART; cuts[i].cost && cuts[i].parts < GLOSSARY_PARTS && j <= key.len; j++)
      glossary_try_part(g, language, key, cuts, i, j);
  const glossary_cut *at = &cuts[key.len];
  size_t n = at->parts;
  if (!at->cost || n > GLOSSARY_PARTS) return false;
  for (size_t k = n; k > 0; k--, at = &cuts[at->from]) words[k - 1] = at->word;
  for (size_t k = 0; k < n; k++) {
    if (k) strbuf_addch(out, ' ');
    strbuf_add(out, words[k].data, words[k].len);
  }
  return true;
}

typedef struct glossary_folded {
  char text[GLOSSARY_MAX_KEY];
  size_t len;
} glossary_folded;

static int glossary_on_token(void *ctx, const token_item *t) {
  glossary_folded *to = ctx;
  if (t->len <= sizeof to->text) memcpy(to->text, t->text, to->len = t->len);
  return 1;
}

static lode_str glossary_fold(lode_str word, glossary_folded *to) {
  to->len = 0;
  (void)token_split(word.data, word.len, glossary_on_token, to);
  return (lode_str){to->text, to->len};
}

typedef struct glossary_text {
  const search_glossary *g;
  search_language language;
  lode_str text;
  strbuf *out;
} glossary_text;

static bool glossary_is_letter(unsigned char c) { return search_is_name_byte(c) && c != '_' && (c < '0' || c > '9'); }

/* ’, ¿, … */
static bool glossary_is_mark(unsigned char c) { return c == 0xC2 || c == 0xE2; }

/* The end of the run of letters, digits and _ at i. */
static size_t glossary_word_end(lode_str text, size_t i) {
  while (i < text.len && search_is_name_byte((unsigned char)text.data[i]) &&
         !glossary_is_mark((unsigned char)text.data[i]))
    i++;
  return i;
}

/* read_file, readFile, HTTP, v2, std::..., close(: written as code has it. */
static bool glossary_is_code(lode_str text, size_t from, size_t to) {
  size_t upper = 0;
  for (size_t i = from; i < to; i++) {
    char c = text.data[i];
    if (c == '_' || (c >= '0' && c <= '9')) return true;
    if (c >= 'A' && c <= 'Z') {
      upper++;
      if (i > from && text.data[i - 1] >= 'a' && text.data[i - 1] <= 'z') return true;
    }
  }
  if (upper > 1 && upper == to - from) return true;
  if (to < text.len && text.data[to] == '(') return true;
  bool after =
      to + 1 < text.len && strchr(".:", text.data[to]) && search_is_name_byte((unsigned char)text.data[to + 1]);
  after = after || (to + 2 < text.len && memcmp(text.data + to, "::", 2) == 0);
  return after || (from > 1 && strchr(".:", text.data[from - 1]) && text.data[from - 2] != ' ');
}

/* One space between two words, also where some that say nothing were left out. */
static void glossary_put_space(strbuf *out) {
  if (out->len && out->data[out->len - 1] != ' ') strbuf_addch(out, ' ');
}

/* Appends an English word, unless it is there already: two words of another language may mean the same. */
static void glossary_put_english(const glossary_text *t, lode_str word) {
  const char *data = t->out->data ? t->out->data : "";
  for (size_t i = 0, end; i < t->out->len; i = end + 1) {
    for (end = i; end < t->out->len && search_is_name_byte((unsigned char)data[end]);) end++;
    if (end - i == word.len && word.len && memcmp(data + i, word.data, word.len) == 0) return;
  }
  strbuf_add(t->out, word.data, word.len);
}

/* Three words that are one: "base de datos". *end gets where they end. */
static bool glossary_put_phrase(const glossary_text *t, size_t from, size_t *end) {
  char key[GLOSSARY_MAX_KEY];
  size_t len = 0, at = from, stop = from;
  lode_str word;
  for (int n = 0; n < 3; n++) {
    glossary_folded folded;
    while (at < t->text.len && n && (t->text.data[at] == ' ' || t->text.data[at] == '\'')) at++;
    stop = glossary_word_end(t->text, at);
    lode_str part = glossary_fold((lode_str){t->text.data + at, stop - at}, &folded);
    if (stop == at || !part.len || len + part.len + 1 > sizeof key) return false;
    if (n) key[len++] = ' ';
    memcpy(key + len, part.data, part.len);
    len += part.len;
    at = stop;
  }
  if (!glossary_find(t->g, t->language, (lode_str){key, len}, &word)) return false;
  glossary_put_english(t, word);
  *end = stop;
  return true;
}

/* Writes what stands for the word at `from`, and returns where it ends. */
static size_t glossary_put_word(const glossary_text *t, size_t from) {
  glossary_folded folded;
  size_t end = glossary_word_end(t->text, from);
  lode_str written = {t->text.data + from, end - from}, word = written;
  if (!glossary_is_letter((unsigned char)t->text.data[from]) || glossary_is_code(t->text, from, end)) {
    strbuf_add(t->out, written.data, written.len);
    return end;
  }
  if (glossary_put_phrase(t, from, &end)) return end;
  lode_str key = glossary_fold(written, &folded);
  bool known = key.len == 1 || glossary_find(t->g, t->language, key, &word);
  if (key.len == 1) word.len = 0; /* l', d', y */
  if (!known && key.len && glossary_put_compound(t->g, t->language, key, t->out)) return end;
  /* a capital letter within a sentence is a name, but in German */
  bool name = t->language != SEARCH_GERMAN && from && written.data[0] >= 'A' && written.data[0] <= 'Z';
  if (!known && key.len && !name) known = glossary_find_near(t->g, t->language, key, &word);
  if (known)
    glossary_put_english(t, word);
  else
    strbuf_add(t->out, word.data, word.len);
  return end;
}

/* ---- Words in other scripts ---- */

static bool glossary_is_east(lode_str text, size_t i, size_t *size) {
  *size = utf8_width(text.data + i, text.len - i);
  uint32_t c = *size ? utf8_decode(text.data + i, *size) : 0;
  return (c >= 0x3041 && c <= 0x30FF) || (c >= 0x3400 && c <= 0x9FFF);
}

/* The longest entry at i; a character that is in none says nothing. */
static size_t glossary_put_east(const glossary_text *t, size_t i) {
  size_t best = 0, end = i, size;
  lode_str word = {0}, found;
  while (end < t->text.len && end - i < GLOSSARY_MAX_KEY / 2 && glossary_is_east(t->text, end, &size)) {
    end += size;
    if (!glossary_find(t->g, t->language, (lode_str){t->text.data + i, end - i}, &found)) continue;
    best = end;
    word = found;
  }
  if (word.len) {
    glossary_put_space(t->out);
    strbuf_add(t->out, word.data, word.len);
    glossary_put_space(t->out);
  }
  (void)glossary_is_east(t->text, i, &size);
  return best ? best : i + size;
}

/* A hyphen between two letters: vérifie-t-on. */
static bool glossary_joins(lode_str text, size_t i) {
  return i > 0 && i + 1 < text.len && glossary_is_letter((unsigned char)text.data[i - 1]) &&
         glossary_is_letter((unsigned char)text.data[i + 1]);
}

void search_glossary_translate(const search_glossary *glossary, search_language language, lode_str question,
                               strbuf *out) {
  glossary_text t = {glossary, language, question, out};
  bool east = language == SEARCH_JAPANESE || language == SEARCH_CHINESE;
  for (size_t i = 0; i < question.len;) {
    unsigned char c = (unsigned char)question.data[i];
    size_t size = 1;
    if (c >= 0x80 && (east || glossary_is_mark(c))) {
      bool is_east = glossary_is_east(question, i, &size);
      if (!is_east) glossary_put_space(out); /* marks of punctuation */
      i = is_east ? glossary_put_east(&t, i) : i + (size ? size : 1);
    } else if (c <= ' ' || (c == '-' && !east && glossary_joins(question, i))) {
      glossary_put_space(out);
      i++;
    } else if (east || !search_is_name_byte(c)) {
      strbuf_addch(out, (char)c);
      i++;
    } else {
      i = glossary_put_word(&t, i);
    }
  }
}
