/* SPDX-License-Identifier: Apache-2.0 */
/* symbol_table.c - tables of symbols as text; see symbol_table.h.
 *
 * One line for each definition, in the order of the file, then one for each name that is used. Fields are separated by
 * DEL, the one control character that JSON holds without an escape, and hold no control characters:
 *   d KIND LINE END OUTER BRANCHES NAME SCOPE TYPE SIGNATURE BRIEF
 *                                                                KIND: a letter; - after it: declared, ! hidden
 *                                                                OUTER: 1 + number of the definition, or 0
 *   r USE NAME QUALIFIER LOCAL LINES                             LINES: the first, then differences
 *   x                                                            the last line of a table that is not complete
 * Letters of kinds are stored: they must not change.
 */
#include "chunk/symbol_table.h"

#include "chunk/chunk.h"

#include <stdlib.h>

/* By lang_kind. */
static const char symbol_kinds[] = "xoSDfmkcsueitInTpCvbrM";
_Static_assert(sizeof symbol_kinds == LANG_KIND_COUNT + 1, "a letter for each kind");

static const char symbol_uses[] = {
#define CHUNK_USE_LETTER(id, letter, text) letter,
    CHUNK_USES(CHUNK_USE_LETTER)
#undef CHUNK_USE_LETTER
};

const char *chunk_use_name(chunk_use use) {
  static const char *const names[] = {
#define CHUNK_USE_TEXT(id, letter, text) text,
      CHUNK_USES(CHUNK_USE_TEXT)
#undef CHUNK_USE_TEXT
  };
  return names[use];
}

void chunk_symbols_release(chunk_symbols *symbols) {
  mem_free(symbols->defs);
  mem_free(symbols->refs);
  *symbols = (chunk_symbols){0};
}

/* ---- Writing ---- */

#define SYMBOL_SEPARATOR '\x7f'
enum { SYMBOL_LINE_ROOM = CHUNK_MAX_SIGNATURE + 2 * CHUNK_MAX_NAME + CHUNK_MAX_BRIEF + 2 * CHUNK_MAX_QUALIFIER + 128 };

/* How many of the bytes from `i` on are ASCII without spaces and control characters; at most `max`. */
static size_t symbol_plain_run(lode_str s, size_t i, size_t max) {
  size_t n = 0;
  while (n < max && i + n < s.len && (unsigned char)s.data[i + n] > ' ' && (unsigned char)s.data[i + n] < 127) n++;
  return n;
}

/* Valid UTF-8 without control characters, in one line, of at most max bytes. */
static void symbol_put_string(strbuf *out, lode_str s, size_t max) {
  size_t start = out->len;
  bool space = false;
  strbuf_addch(out, SYMBOL_SEPARATOR);
  for (size_t i = 0; i < s.len;) {
    size_t plain = space ? 0 : symbol_plain_run(s, i, max - (out->len - start - 1));
    strbuf_add(out, s.data + i, plain);
    i += plain;
    if (i == s.len) break;
    size_t width = utf8_width(s.data + i, s.len - i);
    unsigned char c = (unsigned char)s.data[i];
    if (width == 1 && (c <= ' ' || c == 127)) {
      space = out->len > start + 1;
      i++;
      continue;
    }
    size_t need = (width ? width : 3) + space;
    if (out->len - start - 1 + need > max) break;
    if (space) strbuf_addch(out, ' ');
    space = false;
    if (width)
      strbuf_add(out, s.data + i, width);
    else
      strbuf_addstr(out, "\xef\xbf\xbd");
    i += width ? width : 1;
  }
}

static void symbol_put_number(strbuf *out, char before, uint32_t n) {
  char digits[12];
  size_t at = sizeof digits;
  do digits[--at] = (char)('0' + n % 10);
  while ((n /= 10) != 0);
  digits[--at] = before;
  strbuf_add(out, digits + at, sizeof digits - at);
}

/* Is there room for another line? If not, the last one says so. */
static bool symbol_has_room(strbuf *out, size_t more) {
  bool cut = out->len >= 2 && out->data[out->len - 2] == 'x' && (out->len == 2 || out->data[out->len - 3] == '\n');
  if (cut) return false;
  if (out->len + more + SYMBOL_LINE_ROOM <= CHUNK_MAX_TABLE) return true;
  strbuf_addstr(out, "x\n");
  return false;
}

void chunk_symbols_put_def(strbuf *out, const chunk_def *d) {
  if (!symbol_has_room(out, 0)) return;
  strbuf_add(out, (char[]){'d', SYMBOL_SEPARATOR, symbol_kinds[d->kind]}, 3);
  if (d->declared) strbuf_addch(out, '-');
  if (d->hidden) strbuf_addch(out, '!');
  symbol_put_number(out, SYMBOL_SEPARATOR, d->line);
  symbol_put_number(out, SYMBOL_SEPARATOR, d->end_line);
  symbol_put_number(out, SYMBOL_SEPARATOR, d->outer == CHUNK_NO_DEF ? 0 : d->outer + 1);
  symbol_put_number(out, SYMBOL_SEPARATOR, d->branches);
  symbol_put_string(out, d->name, CHUNK_MAX_NAME);
  symbol_put_string(out, d->scope, CHUNK_MAX_QUALIFIER);
  symbol_put_string(out, d->type, CHUNK_MAX_QUALIFIER);
  symbol_put_string(out, d->signature, CHUNK_MAX_SIGNATURE);
  symbol_put_string(out, d->brief, CHUNK_MAX_BRIEF);
  strbuf_addch(out, '\n');
}

void chunk_symbols_put_refs(strbuf *out, const chunk_ref_group *g) {
  if (!symbol_has_room(out, 11 * g->n_lines)) return;
  strbuf_add(out, (char[]){'r', SYMBOL_SEPARATOR, symbol_uses[g->use]}, 3);
  symbol_put_string(out, g->name, CHUNK_MAX_NAME);
  symbol_put_string(out, g->qualifier, CHUNK_MAX_QUALIFIER);
  symbol_put_string(out, g->local, CHUNK_MAX_NAME);
  for (size_t i = 0; i < g->n_lines; i++)
    symbol_put_number(out, i ? ' ' : SYMBOL_SEPARATOR, i ? g->lines[i] - g->lines[i - 1] : g->lines[0]);
  strbuf_addch(out, '\n');
}

/* ---- Reading ---- */

/* The next field of a line; false at its end. */
static bool symbol_field(lode_str *line, lode_str *field) {
  if (!line->data) return false;
  const char *tab = memchr(line->data, SYMBOL_SEPARATOR, line->len);
  *field = (lode_str){line->data, tab ? (size_t)(tab - line->data) : line->len};
  if (tab)
    *line = (lode_str){tab + 1, line->len - field->len - 1};
  else
    *line = (lode_str){0};
  return true;
}

/* Digits up to `end`, at most 2^31. */
static bool symbol_number(lode_str *text, char end, uint32_t *n) {
  uint64_t value = 0;
  size_t i = 0;
  for (; i < text->len && text->data[i] >= '0' && text->data[i] <= '9' && value <= INT32_MAX; i++)
    value = value * 10 + (uint64_t)(text->data[i] - '0');
  if (i == 0 || value > INT32_MAX || (i < text->len && text->data[i] != end)) return false;
  i += i < text->len;
  *text = (lode_str){text->data + i, text->len - i};
  *n = (uint32_t)value;
  return true;
}

static bool symbol_whole_number(lode_str *line, uint32_t *n) {
  lode_str field;
  return symbol_field(line, &field) && symbol_number(&field, SYMBOL_SEPARATOR, n) && !field.len;
}

static bool symbol_string(lode_str *line, size_t max, lode_str *out) {
  return symbol_field(line, out) && out->len <= max;
}

static bool symbol_read_kind(lode_str field, chunk_def *d) {
  const char *letter = field.len ? memchr(symbol_kinds, field.data[0], LANG_KIND_COUNT) : NULL;
  if (!letter) return false;
  d->kind = (lang_kind)(letter - symbol_kinds);
  for (size_t i = 1; i < field.len; i++) {
    if (field.data[i] != '-' && field.data[i] != '!') return false;
    *(field.data[i] == '-' ? &d->declared : &d->hidden) = true;
  }
  return true;
}

static bool symbol_read_def(lode_str line, chunk_symbols *s, bool *nomem) {
  chunk_def d = {0};
  lode_str kind;
  uint32_t outer;
  if (!symbol_field(&line, &kind) || !symbol_read_kind(kind, &d) || !symbol_whole_number(&line, &d.line) ||
      !symbol_whole_number(&line, &d.end_line) || !symbol_whole_number(&line, &outer) ||
      !symbol_whole_number(&line, &d.branches) || !symbol_string(&line, CHUNK_MAX_NAME, &d.name) ||
      !symbol_string(&line, CHUNK_MAX_QUALIFIER, &d.scope) || !symbol_string(&line, CHUNK_MAX_QUALIFIER, &d.type) ||
      !symbol_string(&line, CHUNK_MAX_SIGNATURE, &d.signature) || !symbol_string(&line, CHUNK_MAX_BRIEF, &d.brief) ||
      line.data)
    return false;
  if (!d.line || d.end_line < d.line || outer > s->n_defs || !d.name.len || s->n_refs) return false;
  d.outer = outer ? outer - 1 : CHUNK_NO_DEF;
  if (!mem_grow(&s->defs, &s->defs_cap, s->n_defs + 1, sizeof *s->defs)) {
    *nomem = true;
    return false;
  }
  s->defs[s->n_defs++] = d;
  return true;
}

static bool symbol_read_refs(lode_str line, chunk_symbols *s, bool *nomem) {
  chunk_ref r = {.def = CHUNK_NO_DEF};
  lode_str use, lines;
  uint32_t step;
  if (!symbol_field(&line, &use) || use.len != 1 || !memchr(symbol_uses, use.data[0], sizeof symbol_uses) ||
      !symbol_string(&line, CHUNK_MAX_NAME, &r.name) || !symbol_string(&line, CHUNK_MAX_QUALIFIER, &r.qualifier) ||
      !symbol_string(&line, CHUNK_MAX_NAME, &r.local) || !symbol_field(&line, &lines) || line.data || !lines.len)
    return false;
  r.use = (chunk_use)((const char *)memchr(symbol_uses, use.data[0], sizeof symbol_uses) - symbol_uses);
  while (lines.len) {
    if (!symbol_number(&lines, ' ', &step) || step > INT32_MAX - r.line || (!r.line && !step)) return false;
    r.line += step;
    if (!mem_grow(&s->refs, &s->refs_cap, s->n_refs + 1, sizeof *s->refs)) {
      *nomem = true;
      return false;
    }
    s->refs[s->n_refs++] = r;
  }
  return true;
}

static int symbol_compare_lines(const void *a, const void *b) {
  const chunk_ref *x = a, *y = b;
  if (x->line != y->line) return x->line < y->line ? -1 : 1;
  return x->name.data < y->name.data ? -1 : x->name.data > y->name.data;
}

/* In the order of lines, and at one line in that of the table, in which they are now. Lines are counted, unless a table
 * says that there are many more of them than uses. */
static bool symbol_sort_refs(chunk_symbols *s) {
  uint32_t last = 0;
  for (size_t i = 0; i < s->n_refs; i++) last = s->refs[i].line > last ? s->refs[i].line : last;
  if (last / 16 > s->n_refs) {
    qsort(s->refs, s->n_refs, sizeof *s->refs, symbol_compare_lines);
    return true;
  }
  uint32_t *at = mem_calloc((size_t)last + 2, sizeof *at);
  chunk_ref *sorted = mem_calloc(s->n_refs, sizeof *sorted);
  if (!at || !sorted) {
    mem_free(at);
    mem_free(sorted);
    return false;
  }
  for (size_t i = 0; i < s->n_refs; i++) at[s->refs[i].line + 1]++;
  for (uint32_t line = 1; line <= last; line++) at[line] += at[line - 1];
  for (size_t i = 0; i < s->n_refs; i++) sorted[at[s->refs[i].line]++] = s->refs[i];
  mem_free(at);
  mem_free(s->refs);
  s->refs = sorted;
  s->refs_cap = s->n_refs;
  return true;
}

static bool symbol_holds_code(lang_kind k) {
  return k != LANG_KIND_PROPERTY && k != LANG_KIND_VARIABLE && k != LANG_KIND_CONSTANT;
}

/* Sets the innermost definition around each use. Definitions come in the order of their first lines, and a later one
 * that holds the line lies inside an earlier one. */
static void symbol_place_refs(chunk_symbols *s) {
  uint32_t current = CHUNK_NO_DEF;
  size_t next = 0;
  for (size_t i = 0; i < s->n_refs; i++) {
    chunk_ref *r = &s->refs[i];
    for (; next < s->n_defs && s->defs[next].line <= r->line; next++)
      if (s->defs[next].end_line >= r->line && symbol_holds_code(s->defs[next].kind)) current = (uint32_t)next;
    while (current != CHUNK_NO_DEF && s->defs[current].end_line < r->line) current = s->defs[current].outer;
    r->def = current;
  }
}

lode_status chunk_symbols_decode(lode_str text, chunk_symbols *s, lode_error *err) {
  bool ok = text.len <= CHUNK_MAX_TABLE && utf8_valid(text.data, text.len), nomem = false;
  s->n_defs = s->n_refs = 0;
  s->cut = false;
  for (size_t at = 0; ok && at < text.len;) {
    const char *end = memchr(text.data + at, '\n', text.len - at);
    lode_str line = {text.data + at, end ? (size_t)(end - text.data) - at : 0}, what;
    at += line.len + 1;
    ok = end && !s->cut && symbol_field(&line, &what) && what.len == 1;
    if (!ok) break;
    if (what.data[0] == 'd')
      ok = symbol_read_def(line, s, &nomem);
    else if (what.data[0] == 'r')
      ok = symbol_read_refs(line, s, &nomem);
    else
      ok = s->cut = what.data[0] == 'x' && !line.data;
  }
  if (nomem) return err_nomem(err);
  if (!ok) return err_set(err, LODE_CORRUPT, "a table of symbols is damaged");
  if (s->n_refs && !symbol_sort_refs(s)) return err_nomem(err);
  symbol_place_refs(s);
  return LODE_OK;
}
