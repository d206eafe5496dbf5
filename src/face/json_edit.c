/* json_edit.c - see json_edit.h. One pass over the tokens with a stack of its own; it notes where the keys of the path lie. */
#include "json_edit.h"

enum { MOST_DEPTH = 256, MOST_PATH = 4 };

typedef struct place { /* of the object that holds key path[i], and of that key */
  size_t open;         /* behind the object's { */
  size_t last;         /* behind its last value, or `open` */
  size_t close;        /* its } */
  size_t key, value, end; /* of the key, its value and behind it; end 0: there is no such key */
  size_t before;       /* behind what stands before the key: a comma, or the { */
  bool empty, comma;   /* has no members; ends with a comma */
  bool found;          /* the object is there */
} place;

typedef struct scan {
  const char *p, *end, *start;
  const char *const *path;
  size_t n;
  place places[MOST_PATH];
  char stack[MOST_DEPTH]; /* { or [ */
  bool on_path[MOST_DEPTH];
  size_t depth;
  size_t matched;         /* how many keys of the path lead to where we are */
} scan;

static lode_status bad(const scan *s, const char *what, lode_error *err) {
  return err_set(err, LODE_INVALID, "byte %zu: %s", (size_t)(s->p - s->start), what);
}

/* White space and comments. */
static lode_status skip(scan *s, lode_error *err) {
  while (s->p < s->end) {
    if (strchr(" \t\r\n", *s->p) && *s->p) {
      s->p++;
    } else if (s->end - s->p >= 2 && s->p[0] == '/' && s->p[1] == '/') {
      while (s->p < s->end && *s->p != '\n') s->p++;
    } else if (s->end - s->p >= 2 && s->p[0] == '/' && s->p[1] == '*') {
      for (s->p += 2; s->end - s->p >= 2 && !(s->p[0] == '*' && s->p[1] == '/'); s->p++) {}
      if (s->end - s->p < 2) return bad(s, "a comment without end", err);
      s->p += 2;
    } else {
      break;
    }
  }
  return LODE_OK;
}

static lode_status take_string(scan *s, lode_str *raw, lode_error *err) {
  const char *start = ++s->p;
  for (; s->p < s->end && *s->p != '"'; s->p++) {
    if ((unsigned char)*s->p < 0x20) return bad(s, "a control character in a string", err);
    if (*s->p == '\\' && ++s->p >= s->end) break;
  }
  if (s->p >= s->end) return bad(s, "a string without end", err);
  *raw = (lode_str){start, (size_t)(s->p - start)};
  s->p++;
  return LODE_OK;
}

static lode_status take_literal(scan *s, lode_error *err) {
  const char *start = s->p;
  while (s->p < s->end && ((*s->p >= '0' && *s->p <= '9') || (*s->p >= 'a' && *s->p <= 'z') || (*s->p >= 'A' && *s->p <= 'Z') ||
                           (*s->p && strchr("+-.", *s->p))))
    s->p++;
  return s->p > start ? LODE_OK : bad(s, "a value is expected", err);
}

static place *place_here(scan *s) {
  return s->depth && s->on_path[s->depth - 1] && s->depth - 1 < s->n ? &s->places[s->depth - 1] : NULL;
}

static size_t at(const scan *s) { return (size_t)(s->p - s->start); }

/* Behind a value: notes where it ended. */
static void value_ended(scan *s) {
  place *p = place_here(s);
  if (!p || s->stack[s->depth - 1] != '{') return;
  p->last = at(s);
  p->comma = false;
  if (p->value && !p->end) p->end = at(s);
}

static lode_status open_one(scan *s, lode_error *err) {
  place *outer = place_here(s);
  bool leads = s->depth == 0 || (outer && s->stack[s->depth - 1] == '{' && outer->value == at(s) && !outer->end);
  if (s->depth == MOST_DEPTH) return bad(s, "nested too deep", err);
  s->stack[s->depth] = *s->p++;
  s->on_path[s->depth] = leads && s->stack[s->depth] == '{';
  s->depth++;
  place *p = place_here(s);
  if (p) *p = (place){.open = at(s), .last = at(s), .before = at(s), .empty = true, .found = true};
  return LODE_OK;
}

static lode_status close_one(scan *s, lode_error *err) {
  place *p = place_here(s);
  if (!s->depth || (*s->p == '}') != (s->stack[s->depth - 1] == '{')) return bad(s, "a bracket that nothing opened", err);
  if (p) p->close = at(s);
  s->p++;
  s->depth--;
  value_ended(s);
  return LODE_OK;
}

static lode_status take_key(scan *s, lode_error *err) {
  place *p = place_here(s);
  size_t key = at(s);
  lode_str raw;
  TRY(take_string(s, &raw, err));
  TRY(skip(s, err));
  if (s->p >= s->end || *s->p != ':') return bad(s, "a : is expected", err);
  s->p++;
  TRY(skip(s, err));
  if (!p) return LODE_OK;
  if (str_eq(raw, str_of(s->path[s->depth - 1]))) {
    if (p->end) return bad(s, "a key that stands twice", err);
    p->key = key;
    p->value = at(s);
    p->before = p->last;
  }
  p->empty = false;
  return LODE_OK;
}

/* One token where a value is due, or a bracket closes. */
static lode_status take_value(scan *s, lode_error *err) {
  lode_str raw;
  if (s->p >= s->end) return bad(s, "the text ends too early", err);
  if (*s->p == '{' || *s->p == '[') return open_one(s, err);
  if (*s->p == '"') TRY(take_string(s, &raw, err));
  else TRY(take_literal(s, err));
  value_ended(s);
  return LODE_OK;
}

static lode_status run(scan *s, lode_error *err) {
  bool due = true, after_comma = false; /* a value is due; else a comma or an end */
  TRY(skip(s, err));
  if (s->p >= s->end || *s->p != '{') return bad(s, "it is not an object", err);
  TRY(open_one(s, err));
  while (s->depth) {
    TRY(skip(s, err));
    if (s->p >= s->end) return bad(s, "the text ends too early", err);
    char c = *s->p;
    if ((c == '}' || c == ']')) {
      TRY(close_one(s, err));
      due = after_comma = false;
      continue;
    }
    if (c == ',') {
      place *p = place_here(s);
      if (due) return bad(s, "a comma that nothing stands before", err);
      s->p++;
      due = after_comma = true;
      if (p) p->comma = true;
      continue;
    }
    if (!due) return bad(s, "a comma is expected", err);
    if (s->stack[s->depth - 1] == '{') {
      if (c != '"') return bad(s, "a key is expected", err);
      TRY(take_key(s, err));
    }
    size_t depth = s->depth;
    TRY(take_value(s, err));
    due = s->depth > depth;
  }
  (void)after_comma;
  TRY(skip(s, err));
  return s->p == s->end ? LODE_OK : bad(s, "something stands behind the object", err);
}

static bool is_blank(lode_str text) {
  for (size_t i = 0; i < text.len; i++)
    if (!strchr(" \t\r\n", text.data[i]) || !text.data[i]) return false;
  return true;
}

static lode_status scan_text(scan *s, lode_str text, const char *const *path, size_t n, lode_error *err) {
  memset(s, 0, sizeof *s);
  s->p = s->start = text.data;
  s->end = text.data + text.len;
  s->path = path;
  s->n = n;
  if (n > MOST_PATH) return err_set(err, LODE_INVALID, "the path is too long");
  /* A byte order mark is no part of the text */
  if (text.len >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0) s->p += 3;
  return run(s, err);
}

lode_status lode__json_edit_find(lode_str text, const char *const *path, size_t n, lode_str *value, lode_error *err) {
  scan s;
  *value = (lode_str){0};
  if (is_blank(text)) return LODE_OK;
  TRY(scan_text(&s, text, path, n, err));
  const place *p = &s.places[n - 1];
  if (p->found && p->end) *value = (lode_str){text.data + p->value, p->end - p->value};
  return LODE_OK;
}

static void indent(strbuf *out, size_t depth) {
  strbuf_addch(out, '\n');
  for (size_t i = 0; i < depth; i++) strbuf_addstr(out, "  ");
}

lode_status lode__json_edit_set(lode_str text, const char *const *path, size_t n, lode_str value, strbuf *out, lode_error *err) {
  scan s;
  size_t deep = 0;
  if (is_blank(text)) text = STR_LIT("{}\n");
  TRY(scan_text(&s, text, path, n, err));
  while (deep < n && s.places[deep].found && s.places[deep].end && deep + 1 < n && s.places[deep + 1].found) deep++;
  const place *p = &s.places[deep];
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
    indent(out, i + 1);
    strbuf_addf(out, "\"%s\": ", path[i]);
    if (i + 1 < n) strbuf_addch(out, '{');
  }
  strbuf_add(out, value.data, value.len);
  for (size_t i = n - 1; i > deep; i--) {
    indent(out, i);
    strbuf_addch(out, '}');
  }
  /* What stood behind the last member stays, but for its comma, which is ours now */
  lode_str rest = {text.data + p->last, text.len - p->last};
  bool dropped = !p->comma;
  bool line = false;
  for (size_t i = 0; i < p->close - p->last; i++) line = line || rest.data[i] == '\n';
  if (!line) indent(out, deep);
  for (size_t i = 0; i < rest.len; i++) {
    if (!dropped && rest.data[i] == ',') {
      dropped = true;
      continue;
    }
    strbuf_addch(out, rest.data[i]);
  }
  return out->failed ? err_nomem(err) : LODE_OK;
}

lode_status lode__json_edit_remove(lode_str text, const char *const *path, size_t n, strbuf *out, lode_error *err) {
  scan s;
  out->len = 0;
  TRY(scan_text(&s, text, path, n, err));
  const place *p = &s.places[n - 1];
  if (!p->found || !p->end) {
    strbuf_add(out, text.data, text.len);
    return out->failed ? err_nomem(err) : LODE_OK;
  }
  /* With the comma before it; of the first member, with the one behind it */
  size_t from = p->before, to = p->end;
  if (p->before == p->open) {
    for (size_t i = p->end; i < p->close; i++)
      if (text.data[i] == ',') {
        to = i + 1;
        break;
      }
    from = p->open;
  }
  strbuf_add(out, text.data, from);
  strbuf_add(out, text.data + to, text.len - to);
  return out->failed ? err_nomem(err) : LODE_OK;
}
