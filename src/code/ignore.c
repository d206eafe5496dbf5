/* ignore.c - layers of patterns, and which one decides; see ignore.h.
 *
 * A layer is one file of patterns. Layers of one source are kept in the order of depth, so that leaving a folder cuts
 * the list. A pattern is parsed once: flags, and the longest beginning that holds no wildcard. Most patterns are
 * decided by comparing bytes (a name, or * and an ending); only the others are matched as globs.
 */
#include "ignore.h"

#include "base/os.h"

enum {
  NEGATED = 1,
  FOLDER_ONLY = 2,
  NAME_ONLY = 4, /* no slash: the last name of the path, at any depth */
  LITERAL = 8,
  ENDING = 16,   /* * and a literal */
};

typedef struct pattern {
  const char *text;
  uint32_t len, plain; /* plain: bytes at the beginning without wildcards */
  uint32_t flags;
} pattern;

typedef struct layer {
  lode__ignore_source source;
  char *folder;
  size_t folder_len;
  char *text;
  pattern *patterns;
  size_t n;
} layer;

struct lode__ignore {
  layer *layers; /* of all sources, in the order they were added */
  size_t n, cap;
};

lode_status lode__ignore_new(lode__ignore **ignore, lode_error *err) {
  *ignore = mem_calloc(1, sizeof **ignore);
  return *ignore ? LODE_OK : err_nomem(err);
}

static void layer_release(layer *l) {
  mem_free(l->folder);
  mem_free(l->text);
  mem_free(l->patterns);
}

void lode__ignore_free(lode__ignore *ignore) {
  if (!ignore) return;
  for (size_t i = 0; i < ignore->n; i++) layer_release(&ignore->layers[i]);
  mem_free(ignore->layers);
  mem_free(ignore);
}

/* ---- Parsing ---- */

static bool is_wild(char c) { return c == '*' || c == '?' || c == '[' || c == '\\'; }

static uint32_t plain_length(const char *s, size_t n) {
  size_t i = 0;
  while (i < n && !is_wild(s[i])) i++;
  return (uint32_t)i;
}

/* Spaces at the end do not count unless a backslash stands before them. */
static size_t without_trailing_spaces(const char *s, size_t n) {
  size_t last = SIZE_MAX;
  for (size_t i = 0; i < n; i++) {
    if (s[i] == ' ') {
      if (last == SIZE_MAX) last = i;
    } else {
      if (s[i] == '\\') {
        i++;
        if (i >= n) return n; /* a lonely backslash: the pattern is as it is */
      }
      last = SIZE_MAX;
    }
  }
  return last == SIZE_MAX ? n : last;
}

static bool parse_line(const char *s, size_t n, pattern *out) {
  if (n > 0 && s[n - 1] == '\r') n--;
  n = without_trailing_spaces(s, n);
  if (n == 0 || s[0] == '#') return false;
  *out = (pattern){0};
  if (s[0] == '!') {
    out->flags |= NEGATED;
    s++;
    n--;
  }
  if (n > 0 && s[n - 1] == '/') {
    out->flags |= FOLDER_ONLY;
    n--;
  }
  if (!memchr(s, '/', n)) out->flags |= NAME_ONLY;
  if (n > 0 && s[0] == '/') {
    s++;
    n--;
  }
  out->text = s;
  out->len = (uint32_t)n;
  out->plain = plain_length(s, n);
  if (out->plain == out->len) out->flags |= LITERAL;
  else if (s[0] == '*' && plain_length(s + 1, n - 1) == n - 1) out->flags |= ENDING;
  return true;
}

static lode_status parse(layer *l, size_t len, lode_error *err) {
  const char *p = l->text, *end = p + len;
  size_t cap = 0;
  if (len >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0) p += 3;
  while (p < end) {
    const char *eol = memchr(p, '\n', (size_t)(end - p));
    if (!eol) eol = end;
    pattern parsed;
    if (parse_line(p, (size_t)(eol - p), &parsed)) {
      if (!mem_grow(&l->patterns, &cap, l->n + 1, sizeof *l->patterns)) return err_nomem(err);
      l->patterns[l->n++] = parsed;
    }
    p = eol + 1;
  }
  return LODE_OK;
}

lode_status lode__ignore_add(lode__ignore *ignore, lode__ignore_source source, lode_str folder, lode_str patterns,
                             lode_error *err) {
  lode_status st = LODE_OK;
  layer l = {.source = source, .folder_len = folder.len};
  if (patterns.len > LODE__IGNORE_FILE_BYTES) patterns.len = LODE__IGNORE_FILE_BYTES;
  l.folder = str_dup(folder.data, folder.len);
  l.text = str_dup(patterns.data, patterns.len);
  if (!l.folder || !l.text) TRY_GOTO(err_nomem(err));
  TRY_GOTO(parse(&l, patterns.len, err));
  if (l.n == 0) goto done; /* nothing to remember */
  if (!mem_grow(&ignore->layers, &ignore->cap, ignore->n + 1, sizeof *ignore->layers)) TRY_GOTO(err_nomem(err));
  ignore->layers[ignore->n++] = l;
  return LODE_OK;
done:
  layer_release(&l);
  return st;
}

/* Does the path lie in the layer's folder? */
static bool inside(const layer *l, lode_str path) {
  if (l->folder_len == 0) return true;
  return path.len > l->folder_len && path.data[l->folder_len] == '/' && memcmp(path.data, l->folder, l->folder_len) == 0;
}

void lode__ignore_leave(lode__ignore *ignore, lode_str folder) {
  while (ignore->n > 0) {
    layer *last = &ignore->layers[ignore->n - 1];
    bool same = last->folder_len == folder.len && (folder.len == 0 || memcmp(last->folder, folder.data, folder.len) == 0);
    if (last->source < LODE__IGNORE_GIT || same || inside(last, folder)) break;
    layer_release(last);
    ignore->n--;
  }
}

/* ---- Matching ---- */

static bool same_bytes(const char *a, const char *b, size_t n) { return n == 0 || memcmp(a, b, n) == 0; }

static bool matches(const pattern *p, lode_str path, lode_str name) {
  lode_str subject = p->flags & NAME_ONLY ? name : path;
  if (p->flags & LITERAL) return subject.len == p->len && same_bytes(subject.data, p->text, p->len);
  if (p->flags & ENDING && p->flags & NAME_ONLY)
    return subject.len >= p->len - 1 && same_bytes(subject.data + subject.len - (p->len - 1), p->text + 1, p->len - 1);
  if (subject.len < p->plain || !same_bytes(subject.data, p->text, p->plain)) return false;
  if (p->flags & NAME_ONLY) return lode__glob_match((lode_str){p->text, p->len}, subject);
  /* git matches what follows the plain beginning as a pattern of its own, so that in "/f**" the stars are deep */
  return lode__glob_match((lode_str){p->text + p->plain, p->len - p->plain}, (lode_str){subject.data + p->plain, subject.len - p->plain});
}

static lode__ignore_verdict layer_match(const layer *l, lode_str path, bool is_folder) {
  lode_str rest = path, name;
  size_t from = path.len;
  if (l->folder_len) {
    rest.data += l->folder_len + 1;
    rest.len -= l->folder_len + 1;
  }
  while (from > 0 && path.data[from - 1] != '/') from--;
  name = (lode_str){path.data + from, path.len - from};
  for (size_t i = l->n; i-- > 0;) {
    const pattern *p = &l->patterns[i];
    if (p->flags & FOLDER_ONLY && !is_folder) continue;
    if (matches(p, rest, name)) return p->flags & NEGATED ? LODE__IGNORE_NO : LODE__IGNORE_YES;
  }
  return LODE__IGNORE_UNDECIDED;
}

lode__ignore_verdict lode__ignore_match(const lode__ignore *ignore, lode_str path, bool is_folder, lode__ignore_source *by) {
  /* layers of one source stand in the order of depth: the deepest is asked first */
  for (int source = LODE__IGNORE_LODE; source >= LODE__IGNORE_GLOBAL; source--) {
    for (size_t i = ignore->n; i-- > 0;) {
      const layer *l = &ignore->layers[i];
      if ((int)l->source != source || !inside(l, path)) continue;
      lode__ignore_verdict v = layer_match(l, path, is_folder);
      if (v == LODE__IGNORE_UNDECIDED) continue;
      if (by) *by = l->source;
      return v;
    }
  }
  return LODE__IGNORE_UNDECIDED;
}

bool lode__ignore_path(const lode__ignore *ignore, lode_str path, bool is_folder) {
  for (size_t end = 0; end < path.len; end++)
    if (path.data[end] == '/' && lode__ignore_match(ignore, (lode_str){path.data, end}, true, NULL) == LODE__IGNORE_YES) return true;
  return lode__ignore_match(ignore, path, is_folder, NULL) == LODE__IGNORE_YES;
}
