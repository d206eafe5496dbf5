/* SPDX-License-Identifier: Apache-2.0 */
/* json_edit.c - see json_edit.h. One pass over the tokens with an explicit stack, which records where the keys of the
 * path are. */
#include "setup/json_edit.h"

enum { EDIT_MAX_DEPTH = 256, EDIT_MAX_PATH = 4 };

typedef struct edit_place { /* offsets for the object that holds key path[i], and for that key */
  size_t open;              /* after the object's { */
  size_t last;              /* after its last value, or `open` */
  size_t close;             /* its } */
  size_t key, value, end;   /* of the key, of its value, and after the value; end 0: no such key */
  size_t before;            /* after what precedes the key: the previous value, or the { */
  size_t separator;         /* the comma between that and the key, or 0 */
  size_t after;             /* the comma after the key's value, or 0 */
  size_t comma;             /* the comma after the last value, or 0 */
  bool empty, found;        /* has no members; the object exists */
} edit_place;

typedef struct edit_scan {
  const char *p, *end, *start;
  const char *const *path;
  size_t n;
  edit_place places[EDIT_MAX_PATH];
  char stack[EDIT_MAX_DEPTH]; /* { or [ */
  bool on_path[EDIT_MAX_DEPTH];
  size_t depth;
} edit_scan;

static lode_status edit_bad(const edit_scan *s, const char *what, lode_error *err) {
  return err_set(err, LODE_INVALID, "byte %zu: %s", (size_t)(s->p - s->start), what);
}

/* White space and comments. */
static lode_status edit_skip_space(edit_scan *s, lode_error *err) {
  while (s->p < s->end) {
    if (strchr(" \t\r\n", *s->p) && *s->p) {
      s->p++;
    } else if (s->end - s->p >= 2 && s->p[0] == '/' && s->p[1] == '/') {
      while (s->p < s->end && *s->p != '\n') s->p++;
    } else if (s->end - s->p >= 2 && s->p[0] == '/' && s->p[1] == '*') {
      for (s->p += 2; s->end - s->p >= 2 && !(s->p[0] == '*' && s->p[1] == '/'); s->p++) {}
      if (s->end - s->p < 2) return edit_bad(s, "a comment without end", err);
      s->p += 2;
    } else {
      break;
    }
  }
  return LODE_OK;
}

static lode_status edit_take_string(edit_scan *s, lode_str *raw, lode_error *err) {
  const char *start = ++s->p;
  for (; s->p < s->end && *s->p != '"'; s->p++) {
    if ((unsigned char)*s->p < 0x20) return edit_bad(s, "a control character in a string", err);
    if (*s->p == '\\' && ++s->p >= s->end) break;
  }
  if (s->p >= s->end) return edit_bad(s, "a string without end", err);
  *raw = (lode_str){start, (size_t)(s->p - start)};
  s->p++;
  return LODE_OK;
}

static lode_status edit_take_literal(edit_scan *s, lode_error *err) {
  const char *start = s->p;
  while (s->p < s->end && ((*s->p >= '0' && *s->p <= '9') || (*s->p >= 'a' && *s->p <= 'z') ||
                           (*s->p >= 'A' && *s->p <= 'Z') || (*s->p && strchr("+-.", *s->p))))
    s->p++;
  return s->p > start ? LODE_OK : edit_bad(s, "a value is expected", err);
}

static edit_place *edit_place_here(edit_scan *s) {
  return s->depth && s->on_path[s->depth - 1] && s->depth - 1 < s->n ? &s->places[s->depth - 1] : NULL;
}

static size_t edit_offset(const edit_scan *s) { return (size_t)(s->p - s->start); }

/* Called after a value: records its end. */
static void edit_value_ended(edit_scan *s) {
  edit_place *p = edit_place_here(s);
  if (!p || s->stack[s->depth - 1] != '{') return;
  p->last = edit_offset(s);
  p->comma = 0;
  if (p->value && !p->end) p->end = edit_offset(s);
}

static lode_status edit_open(edit_scan *s, lode_error *err) {
  edit_place *outer = edit_place_here(s);
  bool leads =
      s->depth == 0 || (outer && s->stack[s->depth - 1] == '{' && outer->value == edit_offset(s) && !outer->end);
  if (s->depth == EDIT_MAX_DEPTH) return edit_bad(s, "nested too deep", err);
  s->stack[s->depth] = *s->p++;
  s->on_path[s->depth] = leads && s->stack[s->depth] == '{';
  s->depth++;
  edit_place *p = edit_place_here(s);
  if (p)
    *p = (edit_place){
        .open = edit_offset(s), .last = edit_offset(s), .before = edit_offset(s), .empty = true, .found = true};
  return LODE_OK;
}

static lode_status edit_close(edit_scan *s, lode_error *err) {
  edit_place *p = edit_place_here(s);
  if (!s->depth || (*s->p == '}') != (s->stack[s->depth - 1] == '{'))
    return edit_bad(s, "a bracket that nothing opened", err);
  if (p) p->close = edit_offset(s);
  s->p++;
  s->depth--;
  edit_value_ended(s);
  return LODE_OK;
}

static lode_status edit_take_key(edit_scan *s, lode_error *err) {
  edit_place *p = edit_place_here(s);
  size_t key = edit_offset(s);
  lode_str raw;
  TRY(edit_take_string(s, &raw, err));
  TRY(edit_skip_space(s, err));
  if (s->p >= s->end || *s->p != ':') return edit_bad(s, "a : is expected", err);
  s->p++;
  TRY(edit_skip_space(s, err));
  if (!p) return LODE_OK;
  if (str_eq(raw, str_of(s->path[s->depth - 1]))) {
    if (p->end) return edit_bad(s, "a key that stands twice", err);
    p->key = key;
    p->value = edit_offset(s);
    p->before = p->last;
    p->separator = p->comma;
  }
  p->empty = false;
  return LODE_OK;
}

/* One token where a value is expected. */
static lode_status edit_take_value(edit_scan *s, lode_error *err) {
  lode_str raw;
  if (s->p >= s->end) return edit_bad(s, "the text ends too early", err);
  if (*s->p == '{' || *s->p == '[') return edit_open(s, err);
  if (*s->p == '"')
    TRY(edit_take_string(s, &raw, err));
  else
    TRY(edit_take_literal(s, err));
  edit_value_ended(s);
  return LODE_OK;
}

static lode_status edit_run(edit_scan *s, lode_error *err) {
  bool due = true; /* a value is expected; else a comma or an end */
  TRY(edit_skip_space(s, err));
  if (s->p >= s->end || *s->p != '{') return edit_bad(s, "it is not an object", err);
  TRY(edit_open(s, err));
  while (s->depth) {
    TRY(edit_skip_space(s, err));
    if (s->p >= s->end) return edit_bad(s, "the text ends too early", err);
    char c = *s->p;
    if ((c == '}' || c == ']')) {
      TRY(edit_close(s, err));
      due = false;
      continue;
    }
    if (c == ',') {
      edit_place *p = edit_place_here(s);
      if (due) return edit_bad(s, "a comma that nothing stands before", err);
      if (p) p->comma = edit_offset(s);
      if (p && p->end == p->last) p->after = p->comma;
      s->p++;
      due = true;
      continue;
    }
    if (!due) return edit_bad(s, "a comma is expected", err);
    if (s->stack[s->depth - 1] == '{') {
      if (c != '"') return edit_bad(s, "a key is expected", err);
      TRY(edit_take_key(s, err));
    }
    size_t depth = s->depth;
    TRY(edit_take_value(s, err));
    due = s->depth > depth;
  }
  TRY(edit_skip_space(s, err));
  return s->p == s->end ? LODE_OK : edit_bad(s, "something stands after the object", err);
}

static bool edit_is_blank(lode_str text) {
  for (size_t i = 0; i < text.len; i++)
    if (!strchr(" \t\r\n", text.data[i]) || !text.data[i]) return false;
  return true;
}

static lode_status edit_scan_text(edit_scan *s, lode_str text, const char *const *path, size_t n, lode_error *err) {
  memset(s, 0, sizeof *s);
  s->p = s->start = text.data;
  s->end = text.data + text.len;
  s->path = path;
  s->n = n;
  if (n > EDIT_MAX_PATH) return err_set(err, LODE_INVALID, "the path is too long");
  /* skip a byte order mark */
  if (text.len >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0) s->p += 3;
  return edit_run(s, err);
}

lode_status setup_json_find(lode_str text, const char *const *path, size_t n, lode_str *value, lode_error *err) {
  edit_scan s;
  *value = (lode_str){0};
  if (edit_is_blank(text)) return LODE_OK;
  TRY(edit_scan_text(&s, text, path, n, err));
  const edit_place *p = &s.places[n - 1];
  if (p->found && p->end) *value = (lode_str){text.data + p->value, p->end - p->value};
  return LODE_OK;
}

static void edit_indent(strbuf *out, size_t depth) {
  strbuf_addch(out, '\n');
  for (size_t i = 0; i < depth; i++) strbuf_addstr(out, "  ");
}

lode_status setup_json_set(lode_str text, const char *const *path, size_t n, lode_str value, strbuf *out,
                           lode_error *err) {
  edit_scan s;
  size_t deep = 0;
  if (edit_is_blank(text)) text = STR_LIT("{}\n");
  TRY(edit_scan_text(&s, text, path, n, err));
  while (deep < n && s.places[deep].found && s.places[deep].end && deep + 1 < n && s.places[deep + 1].found) deep++;
  const edit_place *p = &s.places[deep];
  out->len = 0;
  if (deep == n - 1 && p->end) {
    strbuf_add(out, text.data, p->value);
    strbuf_add(out, value.data, value.len);
    strbuf_add(out, text.data + p->end, text.len - p->end);
    return out->failed ? err_nomem(err) : LODE_OK;
  }
  if (p->end) return err_set(err, LODE_INVALID, "the value of \"%s\" is not an object", path[deep]);
  strbuf_add(out, text.data, p->last);
  if (!p->empty) strbuf_addch(out, ',');
  for (size_t i = deep; i < n; i++) {
    edit_indent(out, i + 1);
    strbuf_addf(out, "\"%s\": ", path[i]);
    if (i + 1 < n) strbuf_addch(out, '{');
  }
  strbuf_add(out, value.data, value.len);
  for (size_t i = n - 1; i > deep; i--) {
    edit_indent(out, i);
    strbuf_addch(out, '}');
  }
  /* what followed the last member stays, except its comma, which is now ours */
  size_t rest = p->last;
  if (!memchr(text.data + rest, '\n', p->close - rest)) edit_indent(out, deep);
  if (p->comma) {
    strbuf_add(out, text.data + rest, p->comma - rest);
    rest = p->comma + 1;
  }
  strbuf_add(out, text.data + rest, text.len - rest);
  return out->failed ? err_nomem(err) : LODE_OK;
}

static lode_str edit_between(lode_str text, size_t from, size_t to) { return (lode_str){text.data + from, to - from}; }

lode_status setup_json_remove(lode_str text, const char *const *path, size_t n, strbuf *out, lode_error *err) {
  edit_scan s = {0};
  out->len = 0;
  if (!edit_is_blank(text)) TRY(edit_scan_text(&s, text, path, n, err));
  const edit_place *p = &s.places[n - 1];
  if (!p->found || !p->end) {
    strbuf_add(out, text.data, text.len);
    return out->failed ? err_nomem(err) : LODE_OK;
  }
  /* with the comma before it; for the first member, with all up to the comma after it */
  size_t comma = p->separator ? p->separator : p->key;
  size_t rest = !p->separator && p->after ? p->after + 1 : p->end;
  lode_str before[] = {edit_between(text, p->before, comma), edit_between(text, comma + (comma < p->key), p->key)};
  strbuf_add(out, text.data, p->before);
  for (size_t i = 0; i < 2; i++)
    if (!edit_is_blank(before[i])) strbuf_add(out, before[i].data, before[i].len); /* a comment */
  /* the line that the key stood on is gone; a comment that ends with a line needs its end */
  if (rest < text.len && (text.data[rest] == '\n' || text.data[rest] == '\r'))
    while (out->len > p->before && strchr(" \t\r\n", out->data[out->len - 1])) out->len--;
  strbuf_add(out, text.data + rest, text.len - rest);
  return out->failed ? err_nomem(err) : LODE_OK;
}
