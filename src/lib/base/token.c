/* SPDX-License-Identifier: Apache-2.0 */
/* token.c - words of text and code: see token.h.
 *
 * A unit (a whole name, one component, one part) is read into a buffer of folded bytes, and the boundaries of its
 * components and parts are recorded on the way: every token is a slice of that buffer. A name that does not fit is read
 * again component by component, a component that does not fit part by part, so each byte is read at most three times
 * and nothing is allocated. ASCII uses a table; only other characters need utf8proc.
 *
 * Invariant: parts[i] lies within components[parts[i].owner], and both within folded[0 .. used).
 */
#include "base/token.h"

#include <utf8proc.h>

typedef enum char_class {
  TOKEN_OTHER,
  TOKEN_JOINER,
  TOKEN_ALONE, /* a word by itself */
  TOKEN_MARK,  /* belongs to the previous character */
  TOKEN_UNDERSCORE,
  TOKEN_DIGIT,
  TOKEN_LOWER, /* also letters without case */
  TOKEN_UPPER,
} char_class;

#define CO TOKEN_OTHER
#define CJ TOKEN_JOINER
#define CD TOKEN_DIGIT
#define CL TOKEN_LOWER
#define CU TOKEN_UPPER
static const uint8_t ascii_class[128] = {
    CO, CO, CO, CO, CO, CO, CO, CO, CO, CO, CO, CO, CO, CO, CO, CO, CO, CO, CO, CO, CO, CO, CO, CO,
    CO, CO, CO, CO, CO, CO, CO, CO, CO, CO, CO, CO, CO, CO, CO, CO, CO, CO, CO, CO, CO, CJ, CJ, CJ,
    CD, CD, CD, CD, CD, CD, CD, CD, CD, CD, CJ, CO, CO, CO, CO, CO, CO, CU, CU, CU, CU, CU, CU, CU,
    CU, CU, CU, CU, CU, CU, CU, CU, CU, CU, CU, CU, CU, CU, CU, CU, CU, CU, CU, CO, CJ, CO, CO, TOKEN_UNDERSCORE,
    CO, CL, CL, CL, CL, CL, CL, CL, CL, CL, CL, CL, CL, CL, CL, CL, CL, CL, CL, CL, CL, CL, CL, CL,
    CL, CL, CL, CO, CO, CO, CO, CO,
};
#undef CO
#undef CJ
#undef CD
#undef CL
#undef CU

typedef enum unit_level { TOKEN_WHOLE, TOKEN_COMPONENT, TOKEN_PART } unit_level;

enum {
  FOLD_CODEPOINTS = 32, /* the longest decomposition of one character has 18 */
  FOLD_BYTES = FOLD_CODEPOINTS * 4,
  MAX_PIECES = TOKEN_MAX_BYTES + 1, /* each takes a byte of the buffer, or its joiner does */
};

typedef struct token_char {
  char_class class;
  uint32_t width;
  int32_t codepoint; /* only if it is not ASCII */
} token_char;

typedef struct token_piece {
  size_t start, end; /* bytes of the source */
  uint32_t from, to; /* bytes of the buffer */
  uint32_t owner;    /* parts: their component */
} token_piece;

typedef struct tokenizer {
  const unsigned char *text;
  size_t len;
  token_fn *fn;
  void *ctx;
  /* the last unit that was read */
  size_t start, end;
  uint32_t used, n_components, n_parts;
  bool part_open;
  char_class before_last, last; /* letters and digits of the open part; TOKEN_OTHER: none */
  size_t last_pos;              /* where `last` starts */
  uint32_t last_at;
  char folded[TOKEN_MAX_BYTES + FOLD_BYTES];
  token_piece components[MAX_PIECES + 1], parts[MAX_PIECES + 1];
} tokenizer;

/* ---- Characters ---- */

/* Letters of scripts that are written without spaces between words. */
static bool is_unspaced(int32_t c) {
  static const struct {
    int32_t first, last;
  } ranges[] = {
      {0x0E00, 0x0EFF}, {0x1000, 0x109F}, {0x1780, 0x17FF},   {0x2E80, 0x2FDF},   {0x3005, 0x3007},
      {0x3021, 0x312F}, {0x31A0, 0x31BF}, {0x31F0, 0x31FF},   {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},
      {0xF900, 0xFAFF}, {0xFF66, 0xFF9D}, {0x1AFF0, 0x1B16F}, {0x20000, 0x3FFFD},
  };
  for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
    if (c < ranges[i].first) return false;
    if (c <= ranges[i].last) return true;
  }
  return false;
}

static char_class token_class_of(int32_t c) {
  if (c == 0xFF9E || c == 0xFF9F) return TOKEN_MARK; /* half-width kana voicing marks: letters only by category */
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT: return TOKEN_UPPER;
    case UTF8PROC_CATEGORY_LL: return TOKEN_LOWER;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return is_unspaced(c) ? TOKEN_ALONE : TOKEN_LOWER;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NO: return TOKEN_DIGIT;
    case UTF8PROC_CATEGORY_NL: return is_unspaced(c) ? TOKEN_ALONE : TOKEN_DIGIT;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME: return TOKEN_MARK;
    case UTF8PROC_CATEGORY_CF: /* soft hyphen, (non-)joiners: inside a word, without meaning */
      return c == 0xAD || c == 0x200C || c == 0x200D || c == 0x2060 ? TOKEN_MARK : TOKEN_OTHER;
    default: return TOKEN_OTHER;
  }
}

static token_char token_decode(const tokenizer *t, size_t pos) {
  token_char c = {.class = TOKEN_OTHER, .width = 1};
  utf8proc_int32_t codepoint;
  size_t left = t->len - pos;
  utf8proc_ssize_t width = utf8proc_iterate(t->text + pos, left < 4 ? (utf8proc_ssize_t)left : 4, &codepoint);
  if (width <= 0) return c;
  c.width = (uint32_t)width;
  c.codepoint = codepoint;
  c.class = token_class_of(codepoint);
  return c;
}

static inline token_char token_peek(const tokenizer *t, size_t pos) {
  unsigned char byte = t->text[pos];
  if (byte < 0x80) return (token_char){.class = (char_class)ascii_class[byte], .width = 1};
  return token_decode(t, pos);
}

/* Is a character of a decomposition part of the folded word? Accents, points and enclosing marks are not. */
static bool token_keeps(int32_t codepoint) {
  if (codepoint < 0x80) return ascii_class[codepoint] >= TOKEN_UNDERSCORE;
  if (utf8proc_get_property(codepoint)->combining_class >= 10) return false;
  return token_class_of(codepoint) != TOKEN_OTHER && utf8proc_category(codepoint) != UTF8PROC_CATEGORY_ME;
}

/* Writes the folded bytes of a non-ASCII character (at most FOLD_BYTES) and returns their number. */
static uint32_t token_fold(int32_t codepoint, char *out) {
  utf8proc_int32_t points[FOLD_CODEPOINTS];
  int last_boundclass = 0;
  const int options = UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD | UTF8PROC_IGNORE;
  utf8proc_ssize_t n = utf8proc_decompose_char(codepoint, points, FOLD_CODEPOINTS, options, &last_boundclass);
  if (n < 0 || n > FOLD_CODEPOINTS) return 0;
  uint32_t used = 0;
  for (utf8proc_ssize_t i = 0; i < n; i++) {
    if (token_keeps(points[i])) used += (uint32_t)utf8proc_encode_char(points[i], (utf8proc_uint8_t *)out + used);
  }
  return used;
}

/* Adds a character to the buffer. False if it does not fit. */
static inline bool token_add_char(tokenizer *t, size_t pos, token_char c) {
  if (c.width == 1) {
    unsigned char byte = t->text[pos];
    t->folded[t->used] = (char)(c.class == TOKEN_UPPER ? byte | 0x20 : byte);
    t->used++;
    return t->used <= TOKEN_MAX_BYTES;
  }
  t->used += token_fold(c.codepoint, t->folded + t->used);
  return t->used <= TOKEN_MAX_BYTES;
}

/* Adds the ASCII lower case letters that follow, as far as they fit: most text is that, and they make no boundaries. */
static inline size_t token_add_lower(tokenizer *t, size_t pos) {
  size_t space = TOKEN_MAX_BYTES - t->used;
  size_t end = t->len - pos < space ? t->len : pos + space;
  for (; pos < end; pos++) {
    unsigned char byte = t->text[pos];
    if ((unsigned char)(byte - 'a') >= 26) break;
    t->folded[t->used++] = (char)byte;
  }
  return pos;
}

/* ---- Reading a unit ---- */

/* How many bytes at pos join the characters before and after them, or 0. */
static size_t joiner_width(const tokenizer *t, size_t pos) {
  size_t width = 1;
  if (t->text[pos] == ':' && pos + 1 < t->len && t->text[pos + 1] == ':') width = 2;
  return pos + width < t->len && token_peek(t, pos + width).class >= TOKEN_UNDERSCORE ? width : 0;
}

static void open_component(tokenizer *t, size_t pos) {
  t->components[t->n_components] = (token_piece){.start = pos, .from = t->used};
}

static void close_component(tokenizer *t, size_t pos) {
  t->components[t->n_components].end = pos;
  t->components[t->n_components].to = t->used;
  t->n_components++;
}

static void open_part(tokenizer *t, size_t pos, uint32_t at) {
  t->parts[t->n_parts] = (token_piece){.start = pos, .from = at, .owner = t->n_components};
  t->part_open = true;
}

/* Ends the open part, if any; one that folded to nothing is dropped. */
static void close_part(tokenizer *t, size_t pos, uint32_t at) {
  if (!t->part_open) return;
  t->part_open = false;
  token_piece *part = &t->parts[t->n_parts];
  part->end = pos;
  part->to = at;
  if (part->to > part->from) t->n_parts++;
}

/* Skips the joiner at pos and starts the next component. Returns the joiner's width, 0 if it joins nothing. */
static size_t cross_joiner(tokenizer *t, size_t pos) {
  size_t width = joiner_width(t, pos);
  if (!width) return 0;
  close_part(t, pos, t->used);
  close_component(t, pos);
  memcpy(t->folded + t->used, t->text + pos, width);
  t->used += (uint32_t)width;
  open_component(t, pos + width);
  return width;
}

/* The part boundary that the letter or digit at pos reveals; false if none. It is at pos, or one character back
 * ("HTTPServer" reveals it at its first e). */
static inline bool find_border(const tokenizer *t, char_class now, size_t pos, size_t *border, uint32_t *at) {
  if (!t->part_open || t->last == TOKEN_OTHER) return false;
  *border = pos;
  *at = t->used;
  if ((now == TOKEN_DIGIT) != (t->last == TOKEN_DIGIT) || (now == TOKEN_UPPER && t->last == TOKEN_LOWER)) return true;
  *border = t->last_pos;
  *at = t->last_at;
  return now == TOKEN_LOWER && t->last == TOKEN_UPPER && t->before_last == TOKEN_UPPER;
}

/* Records a letter, digit or mark at pos. False if a new part starts but the unit is a single part. */
static inline bool extend_part(tokenizer *t, char_class now, size_t *pos, unit_level level) {
  size_t border;
  uint32_t at;
  if (now != TOKEN_MARK && find_border(t, now, *pos, &border, &at)) {
    if (level == TOKEN_PART) {
      *pos = border;
      t->used = at;
      return false;
    }
    close_part(t, border, at);
    open_part(t, border, at);
    if (border == *pos) t->last = TOKEN_OTHER;
  }
  if (!t->part_open) {
    open_part(t, *pos, t->used);
    t->last = TOKEN_OTHER;
  }
  if (now != TOKEN_MARK) {
    t->before_last = t->last;
    t->last = now;
    t->last_pos = *pos;
    t->last_at = t->used;
  }
  return true;
}

/* Reads the unit of that level at pos, where a character of a name is. False if it does not fit in the buffer. A part
 * always fits: it is truncated. */
static bool read_unit(tokenizer *t, size_t pos, unit_level level) {
  bool cut = false;
  t->start = pos;
  t->used = t->n_components = t->n_parts = 0;
  t->part_open = false;
  open_component(t, pos);
  while (pos < t->len) {
    token_char c = token_peek(t, pos);
    if (c.class < TOKEN_MARK) {
      size_t width = c.class == TOKEN_JOINER && level == TOKEN_WHOLE ? cross_joiner(t, pos) : 0;
      if (!width) break;
      if (t->used > TOKEN_MAX_BYTES) return false;
      pos += width;
      continue;
    }
    if (c.class == TOKEN_UNDERSCORE) {
      if (level == TOKEN_PART) break;
      close_part(t, pos, t->used);
    } else if (!extend_part(t, c.class, &pos, level)) {
      break;
    }
    uint32_t used = t->used;
    if (!cut && !token_add_char(t, pos, c)) {
      if (level != TOKEN_PART) return false;
      t->used = used;
      cut = true;
    }
    pos += c.width;
    if (c.class == TOKEN_LOWER && !cut) pos = token_add_lower(t, pos);
  }
  close_part(t, pos, t->used);
  close_component(t, pos);
  t->end = pos;
  return true;
}

/* ---- Emitting tokens ---- */

static int token_emit(const tokenizer *t, const token_piece *p, bool same_place, bool part) {
  token_item token = {.text = t->folded + p->from,
                      .len = p->to - p->from,
                      .start = p->start,
                      .end = p->end,
                      .same_place = same_place,
                      .part = part};
  return t->fn(t->ctx, &token);
}

static bool token_same_text(const token_piece *a, const token_piece *b) { return a->from == b->from && a->to == b->to; }

/* Emits the tokens of the last unit: at each position the longest first. */
static int token_emit_unit(const tokenizer *t) {
  const token_piece whole = {.start = t->start, .end = t->end, .from = 0, .to = t->used};
  int stop = 0;
  for (uint32_t i = 0; i < t->n_parts && !stop; i++) {
    const token_piece *part = &t->parts[i], *component = &t->components[part->owner];
    bool first = i == 0 || t->parts[i - 1].owner != part->owner, emitted = false;
    if (i == 0 && !token_same_text(&whole, component)) {
      stop = token_emit(t, &whole, false, false);
      emitted = true;
    }
    if (!stop && first && !token_same_text(component, part)) {
      stop = token_emit(t, component, emitted, false);
      emitted = true;
    }
    if (!stop) stop = token_emit(t, part, emitted, true);
  }
  return stop;
}

/* Emits the parts of a component that is too long to be a token; moves *pos past it. */
static int token_emit_parts(tokenizer *t, size_t *pos) {
  int stop = 0;
  while (*pos < t->len && !stop) {
    token_char c = token_peek(t, *pos);
    if (c.class < TOKEN_MARK) break;
    if (c.class == TOKEN_UNDERSCORE) {
      (*pos)++;
      continue;
    }
    (void)read_unit(t, *pos, TOKEN_PART);
    *pos = t->end;
    stop = token_emit_unit(t);
  }
  return stop;
}

/* Emits the name at *pos; moves *pos past it. */
static int token_emit_name(tokenizer *t, size_t *pos) {
  if (read_unit(t, *pos, TOKEN_WHOLE)) {
    *pos = t->end;
    return token_emit_unit(t);
  }
  for (;;) {
    int stop;
    if (read_unit(t, *pos, TOKEN_COMPONENT)) {
      *pos = t->end;
      stop = token_emit_unit(t);
    } else {
      stop = token_emit_parts(t, pos);
    }
    if (stop || *pos >= t->len || token_peek(t, *pos).class != TOKEN_JOINER) return stop;
    size_t width = joiner_width(t, *pos);
    if (!width) return 0;
    *pos += width;
  }
}

/* Emits a character that is a word by itself, with its marks. */
static int token_emit_alone(tokenizer *t, size_t *pos) {
  token_piece word = {.start = *pos};
  t->used = 0;
  do {
    token_char c = token_peek(t, *pos);
    uint32_t used = t->used;
    if (!token_add_char(t, *pos, c)) t->used = used;
    *pos += c.width;
  } while (*pos < t->len && t->text[*pos] >= 0x80 && token_decode(t, *pos).class == TOKEN_MARK);
  word.end = *pos;
  word.to = t->used;
  return word.to ? token_emit(t, &word, false, true) : 0;
}

int token_split(const char *text, size_t len, token_fn *fn, void *ctx) {
  tokenizer t;
  t.text = (const unsigned char *)text;
  t.len = len;
  t.fn = fn;
  t.ctx = ctx;
  for (size_t pos = 0; pos < len;) {
    token_char c = token_peek(&t, pos);
    int stop = 0;
    if (c.class >= TOKEN_MARK) {
      stop = token_emit_name(&t, &pos);
    } else if (c.class == TOKEN_ALONE) {
      stop = token_emit_alone(&t, &pos);
    } else {
      pos += c.width;
    }
    if (stop) return stop;
  }
  return 0;
}

/* ---- Queries ---- */

typedef struct token_query {
  token_fn *fn;
  void *ctx;
  size_t word_end; /* of the last word: a token that ends here or earlier is a part of it */
} token_query;

static int token_query_filter(void *ctx, const token_item *token) {
  token_query *q = ctx;
  bool part = token->end <= q->word_end;
  if (!part) q->word_end = token->end;
  return part && token->len == 1 ? 0 : q->fn(q->ctx, token);
}

int token_split_query(const char *text, size_t len, token_fn *fn, void *ctx) {
  token_query q = {.fn = fn, .ctx = ctx};
  return token_split(text, len, token_query_filter, &q);
}
