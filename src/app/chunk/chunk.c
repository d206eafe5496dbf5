/* SPDX-License-Identifier: Apache-2.0 */
/* chunk.c - lists of chunks: memory, invariants, wire format, splitting, line numbers; see chunk.h. */
#include "chunk/chunk_make.h"

#include "base/byteorder.h"
#include "platform/platform.h"

#include <ctype.h>

enum { CHUNK_STRINGS_LIMIT = 256 << 20 };

chunk_options chunk_options_resolve(const chunk_options *options) {
  chunk_options o = options ? *options : (chunk_options){0};
  if (o.max_bytes == 0) o.max_bytes = 2400;
  if (o.max_bytes < 256) o.max_bytes = 256;
  if (o.max_bytes > 65536) o.max_bytes = 65536;
  if (o.min_bytes == 0) o.min_bytes = 160;
  if (o.min_bytes > o.max_bytes) o.min_bytes = o.max_bytes;
  return o;
}

/* ---- The list ---- */

void chunk_list_release(chunk_list *list) {
  mem_free(list->items);
  mem_arena_release(&list->strings);
  *list = (chunk_list){0};
}

void chunk_list_clear(chunk_list *list) {
  list->n = 0;
  list->failed = false;
  mem_arena_reset(&list->strings);
  list->strings.limit = CHUNK_STRINGS_LIMIT;
}

chunk_item *chunk_list_add(chunk_list *list, const chunk_item *chunk) {
  if (!mem_grow(&list->items, &list->cap, list->n + 1, sizeof *list->items)) return NULL;
  chunk_item *c = &list->items[list->n++];
  *c = *chunk;
  lode_str *strings[] = {&c->name, &c->signature, &c->doc, &c->parents, &c->skeleton, &c->symbols};
  for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
    if (!strings[i]->data) *strings[i] = STR_LIT("");
  return c;
}

static bool chunk_is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

lode_str chunk_clean_string(chunk_list *list, lode_str bytes, size_t max, unsigned flags) {
  size_t n = 0;
  while (bytes.len && chunk_is_space(bytes.data[0])) bytes.data++, bytes.len--;
  while (bytes.len && chunk_is_space(bytes.data[bytes.len - 1])) bytes.len--;
  if (bytes.len == 0) return STR_LIT("");
  char *out = mem_arena_alloc(&list->strings, (bytes.len < max ? 3 * bytes.len : max) + 4);
  if (!out) {
    list->failed = true;
    return STR_LIT("");
  }
  for (size_t i = 0; i < bytes.len;) {
    size_t width = utf8_width(bytes.data + i, bytes.len - i);
    bool bad = width == 0 || bytes.data[i] == '\0';
    if (flags & CHUNK_STRING_ONE_LINE && !bad && chunk_is_space(bytes.data[i])) {
      while (i < bytes.len && chunk_is_space(bytes.data[i])) i++;
      if (n + 1 > max) break;
      out[n++] = ' ';
      continue;
    }
    if (n + (bad ? 3 : width) > max) break;
    if (bad) {
      memcpy(out + n, "\xEF\xBF\xBD", 3);
      n += 3;
      i++;
    } else {
      memcpy(out + n, bytes.data + i, width);
      n += width;
      i += width;
    }
  }
  while (n > 0 && chunk_is_space(out[n - 1])) n--;
  return (lode_str){out, n};
}

/* ---- Comments ---- */

/* Comment markers, longer ones first. */
static const char *const comment_openers[] = {"@moduledoc", "@doc", "<!--", "\"\"\"", "'''", "/**", "/*!", "///", "//!",
                                              "--[[",       "---",  "{-|",  "(**",    "#'",  "/*",  "//",  "--",  "{-",
                                              "(*",         ";;;",  ";;",   "##",     "%%",  "#",   "*",   NULL};
static const char *const comment_closers[] = {"-->", "\"\"\"", "'''", "**/", "*/", "]]", "-}", "*)", NULL};

static lode_str chunk_strip_comment(const char *p, const char *end) {
  while (p < end && chunk_is_space(*p)) p++;
  while (end > p && chunk_is_space(end[-1])) end--;
  for (size_t i = 0; comment_closers[i]; i++) {
    size_t n = strlen(comment_closers[i]);
    if ((size_t)(end - p) >= n && memcmp(end - n, comment_closers[i], n) == 0) {
      end -= n;
      break;
    }
  }
  for (size_t i = 0; comment_openers[i]; i++) {
    size_t n = strlen(comment_openers[i]);
    if ((size_t)(end - p) >= n && memcmp(p, comment_openers[i], n) == 0) {
      p += n;
      break;
    }
  }
  while (p < end && chunk_is_space(*p)) p++;
  while (end > p && chunk_is_space(end[-1])) end--;
  return (lode_str){p, (size_t)(end - p)};
}

/* #[derive(Debug)], @Override: found among the comments of a definition, but not comments. */
static bool chunk_is_attribute(const char *p, const char *end) {
  while (p < end && chunk_is_space(*p)) p++;
  if (end - p < 2) return false;
  if (*p == '@')
    return !(end - p > 4 && memcmp(p, "@doc", 4) == 0) && !(end - p > 10 && memcmp(p, "@moduledoc", 10) == 0);
  return p[0] == '#' && p[1] == '[';
}

/* False for a line of punctuation only. */
static bool chunk_has_words(lode_str line) {
  for (size_t i = 0; i < line.len; i++)
    if (!ispunct((unsigned char)line.data[i])) return true;
  return false;
}

lode_str chunk_clean_comment(chunk_list *list, lode_str bytes) {
  char text[2 * CHUNK_MAX_DOC];
  size_t n = 0;
  const char *p = bytes.data, *end = p + bytes.len;
  while (p && p < end && n < sizeof text - 1) {
    const char *eol = memchr(p, '\n', (size_t)(end - p));
    if (!eol) eol = end;
    lode_str line = chunk_strip_comment(p, eol);
    if (chunk_has_words(line) && !chunk_is_attribute(p, eol)) {
      if (n) text[n++] = '\n';
      if (line.len > sizeof text - n) line.len = sizeof text - n;
      memcpy(text + n, line.data, line.len);
      n += line.len;
    }
    p = eol + 1;
  }
  return chunk_clean_string(list, (lode_str){text, n}, CHUNK_MAX_DOC, 0);
}

/* ---- Splitting ---- */

/* The cost of starting a chunk with the line at `at`: lower is better. */
static uint32_t chunk_line_cost(lode_str text, uint32_t at, uint32_t end) {
  uint32_t indent = 0, p = at;
  while (p < end && (text.data[p] == ' ' || text.data[p] == '\t')) indent += text.data[p++] == '\t' ? 8 : 1;
  if (p >= end || text.data[p] == '\n' || text.data[p] == '\r') return UINT32_MAX; /* never start with an empty line */
  bool after_empty =
      at >= 2 && (text.data[at - 2] == '\n' || (at >= 3 && text.data[at - 2] == '\r' && text.data[at - 3] == '\n'));
  if (indent > 1000) indent = 1000;
  char c = text.data[p];
  bool closes = c == '}' || c == ')' || c == ']' || c == '{';
  return (after_empty ? 0 : 4) + 8 * indent + (closes ? 6 : 0);
}

/* Within a very long line: after a space or punctuation in its second half, else at a character boundary. */
static uint32_t chunk_split_line(lode_str text, uint32_t start, uint32_t at) {
  for (uint32_t p = at; p > start + (at - start) / 2; p--) {
    char c = text.data[p - 1];
    if (chunk_is_space(c) || c == ',' || c == ';' || c == '}' || c == ')' || c == '>') return p;
  }
  uint32_t p = at;
  while (p > start + 1 && at - p < 4 && ((unsigned char)text.data[p] & 0xC0) == 0x80) p--;
  return at - p < 4 ? p : at;
}

uint32_t chunk_part_bytes(uint32_t size, uint32_t max) {
  uint32_t parts = size / max + (size % max != 0), even = parts ? size / parts : 0;
  uint32_t most = even + even / 3;
  return most < max ? most : max;
}

uint32_t chunk_split_point(lode_str text, uint32_t start, uint32_t end, uint32_t max) {
  uint32_t from = start + max / 3, last = start + max, best = 0, best_cost = UINT32_MAX;
  if (end - start <= max) return end;
  const char *p = memchr(text.data + from, '\n', last - from);
  while (p) {
    uint32_t at = (uint32_t)(p - text.data) + 1;
    if (at > last || at >= end) break;
    uint32_t cost = chunk_line_cost(text, at, end);
    if (cost != UINT32_MAX && cost <= best_cost) {
      best = at;
      best_cost = cost;
    }
    p = at < last ? memchr(text.data + at, '\n', last - at) : NULL;
  }
  if (best) return best;
  /* no good line: any line end, else within a line */
  p = os_memrchr(text.data + start + 1, '\n', last - start - 1);
  if (p) return (uint32_t)(p - text.data) + 1;
  return chunk_split_line(text, start, last);
}

/* After the white space at `at`: `end`, else the last start of a line in it, else `at`. */
static uint32_t chunk_skip_blank(lode_str text, uint32_t at, uint32_t end) {
  uint32_t p = at, line = at;
  while (p < end && chunk_is_space(text.data[p]))
    if (text.data[p++] == '\n') line = p;
  return p == end ? end : line;
}

bool chunk_list_add_split(chunk_list *list, lode_str text, const chunk_item *shape, uint32_t start, uint32_t end,
                          uint32_t max) {
  size_t first = list->n;
  chunk_item c = *shape;
  uint32_t at = start;
  c.part = 0;
  while (at < end) {
    c.start = at;
    c.end = chunk_split_point(text, at, end, max);
    if (c.end < end) c.end = chunk_skip_blank(text, c.end, end);
    if (!chunk_list_add(list, &c)) return false;
    at = c.end;
    c.line = at;
    c.part++;
    c.doc = c.skeleton = c.symbols = STR_LIT("");
  }
  for (size_t i = first; i < list->n; i++) list->items[i].parts = c.part;
  return true;
}

/* ---- Lines ---- */

static uint32_t chunk_count_newlines(const char *p, const char *end) {
  uint32_t n = 0;
  while (p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL) p++, n++;
  return n;
}

void chunk_number_lines(chunk_list *list, lode_str text) {
  uint32_t line = 1, at = 0;
  for (size_t i = 0; i < list->n; i++) {
    chunk_item *c = &list->items[i];
    uint32_t last = c->end, where = c->line < c->start ? c->start : c->line >= c->end ? c->end - 1 : c->line;
    line += chunk_count_newlines(text.data + at, text.data + c->start);
    at = c->start;
    c->start_line = line;
    while (last > c->start + 1 && chunk_is_space(text.data[last - 1])) last--;
    c->end_line = line + chunk_count_newlines(text.data + at, text.data + last - 1);
    c->line = line + chunk_count_newlines(text.data + at, text.data + where);
    if (c->line > c->end_line) c->line = c->end_line;
  }
}

/* ---- Invariants ---- */

static bool chunk_string_ok(lode_str s, size_t max) {
  return s.data && s.len <= max && !memchr(s.data, '\0', s.len) && utf8_valid(s.data, s.len);
}

static const char *chunk_item_problem(const chunk_list *list, size_t i) {
  const chunk_item *c = &list->items[i];
  if ((unsigned)c->kind >= LANG_KIND_COUNT) return "a kind that does not exist";
  if (c->start >= c->end) return "an empty chunk";
  if (c->start != (i ? list->items[i - 1].end : 0)) return "a gap or an overlap";
  if (c->start_line < 1 || c->start_line > c->end_line || c->line < c->start_line || c->line > c->end_line)
    return "lines out of order";
  if (i && c->start_line < list->items[i - 1].end_line) return "lines out of order";
  if (c->parts < 1 || c->part >= c->parts) return "a part that does not exist";
  if (c->parent != CHUNK_NO_PARENT && c->parent >= i) return "a parent that does not come before";
  if (!chunk_string_ok(c->name, CHUNK_MAX_NAME) || !chunk_string_ok(c->signature, CHUNK_MAX_SIGNATURE) ||
      !chunk_string_ok(c->doc, CHUNK_MAX_DOC) || !chunk_string_ok(c->parents, CHUNK_MAX_PARENTS) ||
      !chunk_string_ok(c->skeleton, CHUNK_MAX_SKELETON) || !chunk_string_ok(c->symbols, CHUNK_MAX_SYMBOLS))
    return "a string that is too long or not UTF-8";
  return NULL;
}

const char *chunk_list_problem(const chunk_list *list, size_t text_bytes) {
  if (list->n == 0) return text_bytes ? "no chunks" : NULL;
  for (size_t i = 0; i < list->n; i++) {
    const char *problem = chunk_item_problem(list, i);
    if (problem) return problem;
  }
  return list->items[list->n - 1].end == text_bytes ? NULL : "the end of the text is missing";
}

/* ---- Wire format: a count, then nine numbers and six strings per chunk; numbers are 32 bits, little-endian ---- */

enum { CHUNK_WIRE_NUMBERS = 9, CHUNK_WIRE_STRINGS = 6 };

void chunk_list_encode(const chunk_list *list, strbuf *out) {
  strbuf_add_le32(out, (uint32_t)list->n);
  for (size_t i = 0; i < list->n; i++) {
    const chunk_item *c = &list->items[i];
    uint32_t numbers[CHUNK_WIRE_NUMBERS] = {(uint32_t)c->kind, c->start,  c->end,  c->start_line, c->end_line,
                                            c->line,           c->parent, c->part, c->parts};
    lode_str strings[CHUNK_WIRE_STRINGS] = {c->name, c->signature, c->doc, c->parents, c->skeleton, c->symbols};
    for (size_t k = 0; k < CHUNK_WIRE_NUMBERS; k++) strbuf_add_le32(out, numbers[k]);
    for (size_t k = 0; k < CHUNK_WIRE_STRINGS; k++) {
      strbuf_add_le32(out, (uint32_t)strings[k].len);
      strbuf_add(out, strings[k].data, strings[k].len);
    }
  }
}

typedef struct chunk_decoder {
  const unsigned char *p;
  size_t left;
  bool bad;
} chunk_decoder;

static uint32_t chunk_get32(chunk_decoder *r) {
  if (r->left < 4) {
    r->bad = true;
    return 0;
  }
  uint32_t v = num_le32(r->p);
  r->p += 4;
  r->left -= 4;
  return v;
}

static lode_str chunk_get_string(chunk_decoder *r) {
  size_t n = chunk_get32(r);
  if (n > r->left) r->bad = true;
  if (r->bad) return STR_LIT("");
  lode_str s = {(const char *)r->p, n};
  r->p += n;
  r->left -= n;
  return s;
}

/* The strings point into the bytes, which the caller has copied. */
static void chunk_get_item(chunk_decoder *r, chunk_item *c) {
  c->kind = (lang_kind)chunk_get32(r);
  c->start = chunk_get32(r);
  c->end = chunk_get32(r);
  c->start_line = chunk_get32(r);
  c->end_line = chunk_get32(r);
  c->line = chunk_get32(r);
  c->parent = chunk_get32(r);
  c->part = chunk_get32(r);
  c->parts = chunk_get32(r);
  c->name = chunk_get_string(r);
  c->signature = chunk_get_string(r);
  c->doc = chunk_get_string(r);
  c->parents = chunk_get_string(r);
  c->skeleton = chunk_get_string(r);
  c->symbols = chunk_get_string(r);
}

lode_status chunk_list_decode(lode_str bytes, size_t text_bytes, chunk_list *list, lode_error *err) {
  const char *problem = "cut short";
  chunk_list_clear(list);
  if (bytes.len > CHUNK_STRINGS_LIMIT / 2) return err_set(err, LODE_CORRUPT, "a list of chunks is too long");
  char *copy = mem_arena_copy(&list->strings, bytes.data, bytes.len);
  if (!copy) return err_nomem(err);
  chunk_decoder r = {(const unsigned char *)copy, bytes.len, false};
  size_t n = chunk_get32(&r);
  if (n > r.left / (4 * (CHUNK_WIRE_NUMBERS + CHUNK_WIRE_STRINGS))) r.bad = true;
  for (size_t i = 0; i < n && !r.bad; i++) {
    chunk_item c = {0};
    chunk_get_item(&r, &c);
    if (!r.bad && !chunk_list_add(list, &c)) return err_nomem(err);
  }
  if (!r.bad) problem = r.left ? "too long" : chunk_list_problem(list, text_bytes);
  if (!r.bad && !problem) return LODE_OK;
  chunk_list_clear(list);
  return err_set(err, LODE_CORRUPT, "a list of chunks is damaged: %s", problem);
}
