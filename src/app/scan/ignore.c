/* SPDX-License-Identifier: Apache-2.0 */
/* ignore.c - layers of patterns, and which one decides; see ignore.h.
 *
 * A layer is one file of patterns. Layers of one source are ordered by depth, so that leaving a folder truncates the
 * list. A pattern is parsed once, into flags and the length of its prefix without wildcards. Most patterns are
 * decided by comparing bytes (a name, or * and a suffix); only the others are matched as globs.
 */
#include "scan/ignore.h"

#include "os/os.h"

enum {
  IGNORE_NEGATED = 1,
  IGNORE_DIR_ONLY = 2,
  IGNORE_NAME_ONLY = 4, /* no slash: matches the last name of the path, at any depth */
  IGNORE_LITERAL = 8,
  IGNORE_SUFFIX = 16, /* * followed by a literal */
};

typedef struct ignore_pattern {
  const char *text;
  uint32_t len, plain; /* plain: length of the prefix without wildcards */
  uint32_t flags;
} ignore_pattern;

typedef struct ignore_layer {
  ignore_source source;
  char *folder;
  size_t folder_len;
  char *text;
  ignore_pattern *patterns;
  size_t n;
} ignore_layer;

struct ignore_rules {
  ignore_layer *layers; /* of all sources, in the order in which they were added */
  size_t n, cap;
};

lode_status ignore_new(ignore_rules **ignore, lode_error *err) {
  *ignore = mem_calloc(1, sizeof **ignore);
  return *ignore ? LODE_OK : err_nomem(err);
}

static void ignore_layer_release(ignore_layer *l) {
  mem_free(l->folder);
  mem_free(l->text);
  mem_free(l->patterns);
}

void ignore_free(ignore_rules *ignore) {
  if (!ignore) return;
  for (size_t i = 0; i < ignore->n; i++) ignore_layer_release(&ignore->layers[i]);
  mem_free(ignore->layers);
  mem_free(ignore);
}

/* ---- Parsing ---- */

static bool ignore_pattern_is_wild(char c) { return c == '*' || c == '?' || c == '[' || c == '\\'; }

static uint32_t ignore_pattern_plain_length(const char *s, size_t n) {
  size_t i = 0;
  while (i < n && !ignore_pattern_is_wild(s[i])) i++;
  return (uint32_t)i;
}

/* Length without trailing spaces, except those after a backslash. */
static size_t ignore_pattern_trim_end(const char *s, size_t n) {
  size_t last = SIZE_MAX;
  for (size_t i = 0; i < n; i++) {
    if (s[i] == ' ') {
      if (last == SIZE_MAX) last = i;
    } else {
      if (s[i] == '\\') {
        i++;
        if (i >= n) return n; /* a backslash at the end: keep the pattern as it is */
      }
      last = SIZE_MAX;
    }
  }
  return last == SIZE_MAX ? n : last;
}

static bool ignore_pattern_parse(const char *s, size_t n, ignore_pattern *out) {
  if (n > 0 && s[n - 1] == '\r') n--;
  n = ignore_pattern_trim_end(s, n);
  if (n == 0 || s[0] == '#') return false;
  *out = (ignore_pattern){0};
  if (s[0] == '!') {
    out->flags |= IGNORE_NEGATED;
    s++;
    n--;
  }
  if (n > 0 && s[n - 1] == '/') {
    out->flags |= IGNORE_DIR_ONLY;
    n--;
  }
  if (!memchr(s, '/', n)) out->flags |= IGNORE_NAME_ONLY;
  if (n > 0 && s[0] == '/') {
    s++;
    n--;
  }
  out->text = s;
  out->len = (uint32_t)n;
  out->plain = ignore_pattern_plain_length(s, n);
  if (out->plain == out->len)
    out->flags |= IGNORE_LITERAL;
  else if (s[0] == '*' && ignore_pattern_plain_length(s + 1, n - 1) == n - 1)
    out->flags |= IGNORE_SUFFIX;
  return true;
}

static lode_status ignore_layer_parse(ignore_layer *l, size_t len, lode_error *err) {
  const char *p = l->text, *end = p + len;
  size_t cap = 0;
  if (len >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0) p += 3;
  while (p < end) {
    const char *eol = memchr(p, '\n', (size_t)(end - p));
    if (!eol) eol = end;
    ignore_pattern parsed;
    if (ignore_pattern_parse(p, (size_t)(eol - p), &parsed)) {
      if (!mem_grow(&l->patterns, &cap, l->n + 1, sizeof *l->patterns)) return err_nomem(err);
      l->patterns[l->n++] = parsed;
    }
    p = eol + 1;
  }
  return LODE_OK;
}

lode_status ignore_add(ignore_rules *ignore, ignore_source source, lode_str folder, lode_str patterns,
                       lode_error *err) {
  lode_status st = LODE_OK;
  ignore_layer l = {.source = source, .folder_len = folder.len};
  if (patterns.len > IGNORE_MAX_FILE_BYTES) patterns.len = IGNORE_MAX_FILE_BYTES;
  l.folder = str_dup(folder.data, folder.len);
  l.text = str_dup(patterns.data, patterns.len);
  if (!l.folder || !l.text) TRY_GOTO(err_nomem(err));
  TRY_GOTO(ignore_layer_parse(&l, patterns.len, err));
  if (l.n == 0) goto done; /* no patterns */
  if (!mem_grow(&ignore->layers, &ignore->cap, ignore->n + 1, sizeof *ignore->layers)) TRY_GOTO(err_nomem(err));
  ignore->layers[ignore->n++] = l;
  return LODE_OK;
done:
  ignore_layer_release(&l);
  return st;
}

/* Is the path below the layer's folder? */
static bool ignore_layer_covers(const ignore_layer *l, lode_str path) {
  if (l->folder_len == 0) return true;
  return path.len > l->folder_len && path.data[l->folder_len] == '/' &&
         memcmp(path.data, l->folder, l->folder_len) == 0;
}

void ignore_leave(ignore_rules *ignore, lode_str folder) {
  while (ignore->n > 0) {
    ignore_layer *last = &ignore->layers[ignore->n - 1];
    bool same =
        last->folder_len == folder.len && (folder.len == 0 || memcmp(last->folder, folder.data, folder.len) == 0);
    if (last->source < IGNORE_GIT || same || ignore_layer_covers(last, folder)) break;
    ignore_layer_release(last);
    ignore->n--;
  }
}

/* ---- Matching ---- */

static bool same_bytes(const char *a, const char *b, size_t n) { return n == 0 || memcmp(a, b, n) == 0; }

static bool ignore_pattern_matches(const ignore_pattern *p, lode_str path, lode_str name) {
  lode_str subject = p->flags & IGNORE_NAME_ONLY ? name : path;
  if (p->flags & IGNORE_LITERAL) return subject.len == p->len && same_bytes(subject.data, p->text, p->len);
  if (p->flags & IGNORE_SUFFIX && p->flags & IGNORE_NAME_ONLY)
    return subject.len >= p->len - 1 && same_bytes(subject.data + subject.len - (p->len - 1), p->text + 1, p->len - 1);
  if (subject.len < p->plain || !same_bytes(subject.data, p->text, p->plain)) return false;
  if (p->flags & IGNORE_NAME_ONLY) return ignore_glob_match((lode_str){p->text, p->len}, subject);
  /* git matches what follows the plain prefix as a separate pattern: in "/f**" the stars match slashes */
  return ignore_glob_match((lode_str){p->text + p->plain, p->len - p->plain},
                           (lode_str){subject.data + p->plain, subject.len - p->plain});
}

static ignore_verdict ignore_layer_match(const ignore_layer *l, lode_str path, bool is_folder) {
  lode_str rest = path, name;
  size_t from = path.len;
  if (l->folder_len) {
    rest.data += l->folder_len + 1;
    rest.len -= l->folder_len + 1;
  }
  while (from > 0 && path.data[from - 1] != '/') from--;
  name = (lode_str){path.data + from, path.len - from};
  for (size_t i = l->n; i-- > 0;) {
    const ignore_pattern *p = &l->patterns[i];
    if (p->flags & IGNORE_DIR_ONLY && !is_folder) continue;
    if (ignore_pattern_matches(p, rest, name)) return p->flags & IGNORE_NEGATED ? IGNORE_NO : IGNORE_YES;
  }
  return IGNORE_UNDECIDED;
}

ignore_verdict ignore_match(const ignore_rules *ignore, lode_str path, bool is_folder, ignore_source *by) {
  /* layers of one source are ordered by depth: test the deepest first */
  for (int source = IGNORE_LODE; source >= IGNORE_GLOBAL; source--) {
    for (size_t i = ignore->n; i-- > 0;) {
      const ignore_layer *l = &ignore->layers[i];
      if ((int)l->source != source || !ignore_layer_covers(l, path)) continue;
      ignore_verdict v = ignore_layer_match(l, path, is_folder);
      if (v == IGNORE_UNDECIDED) continue;
      if (by) *by = l->source;
      return v;
    }
  }
  return IGNORE_UNDECIDED;
}

bool ignore_match_path(const ignore_rules *ignore, lode_str path, bool is_folder) {
  for (size_t end = 0; end < path.len; end++)
    if (path.data[end] == '/' && ignore_match(ignore, (lode_str){path.data, end}, true, NULL) == IGNORE_YES)
      return true;
  return ignore_match(ignore, path, is_folder, NULL) == IGNORE_YES;
}
