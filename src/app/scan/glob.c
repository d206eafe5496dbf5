/* SPDX-License-Identifier: Apache-2.0 */
/* glob.c - matches one pattern against one path, as git's wildmatch does with WM_PATHNAME.
 *
 * Iterative: of several stars only the last one is ever retried. A single star is retried within its name; when that
 * name is exhausted, the last double star advances, by a whole name if a slash follows it and by a byte otherwise.
 * Time is at most the product of the lengths.
 */
#include "scan/ignore.h"

#include <ctype.h>

typedef struct glob_cursor {
  const unsigned char *p, *end; /* pattern */
} glob_cursor;

static bool glob_class_has(lode_str name, unsigned char c) {
  static const struct {
    const char *name;
    int (*has)(int);
  } classes[] = {{"alnum", isalnum}, {"alpha", isalpha}, {"blank", isblank}, {"cntrl", iscntrl},
                 {"digit", isdigit}, {"graph", isgraph}, {"lower", islower}, {"print", isprint},
                 {"punct", ispunct}, {"space", isspace}, {"upper", isupper}, {"xdigit", isxdigit}};
  for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
    if (str_eq(name, str_of(classes[i].name))) return c < 0x80 && classes[i].has(c) != 0;
  return false;
}

static bool glob_class_known(lode_str name) {
  static const char *const names[] = {"alnum", "alpha", "blank", "cntrl", "digit", "graph",
                                      "lower", "print", "punct", "space", "upper", "xdigit"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (str_eq(name, str_of(names[i]))) return true;
  return false;
}

/* [...]; c->p is after the opening bracket and is moved after the closing one. False when it is not closed or names an
 * unknown class: then the whole pattern matches nothing. */
static bool glob_bracket(glob_cursor *c, unsigned char t, bool *match) {
  const unsigned char *p = c->p, *end = c->end;
  bool negated = false, matched = false, first = true;
  int before = -1; /* the character that may begin a range */
  if (p < end && (*p == '!' || *p == '^')) {
    negated = true;
    p++;
  }
  for (;; first = false) {
    if (p >= end) return false;
    unsigned char ch = *p++;
    if (ch == ']' && !first) break;
    if (ch == '-' && before >= 0 && p < end && *p != ']') {
      unsigned char high = *p++;
      if (high == '\\') {
        if (p >= end) return false;
        high = *p++;
      }
      if (t >= before && t <= high) matched = true;
      before = -1;
      continue;
    }
    if (ch == '[' && p < end && *p == ':') {
      const unsigned char *s = p + 1, *q = s;
      while (q < end && *q != ']') q++;
      if (q >= end) return false;
      if (q > s && q[-1] == ':') {
        lode_str name = {(const char *)s, (size_t)(q - s) - 1};
        if (!glob_class_known(name)) return false;
        if (glob_class_has(name, t)) matched = true;
        p = q + 1;
        before = -1;
        continue;
      }
      /* not a class: an ordinary [ */
    }
    if (ch == '\\') {
      if (p >= end) return false;
      ch = *p++;
    }
    if (t == ch) matched = true;
    before = ch;
  }
  c->p = p;
  *match = matched != negated;
  return true;
}

/* One element of the pattern against one byte of text: 1 match, 0 no match, -1 the pattern can never match. */
static int glob_match_one(glob_cursor *c, unsigned char t) {
  unsigned char ch = *c->p++;
  bool match;
  switch (ch) {
    case '?': return t != '/';
    case '[':
      if (!glob_bracket(c, t, &match)) return -1;
      return match && t != '/';
    case '\\':
      if (c->p >= c->end) return -1;
      return *c->p++ == t;
    default: return ch == t;
  }
}

bool ignore_glob_match(lode_str glob, lode_str text) {
  const unsigned char *begin = (const unsigned char *)(glob.data ? glob.data : "");
  const unsigned char *t = (const unsigned char *)(text.data ? text.data : ""), *t_end = t + text.len;
  glob_cursor c = {begin, begin + glob.len};
  /* where to resume on a mismatch after a star: the pattern after it, and the text it has not consumed yet */
  const unsigned char *star_p = NULL, *star_t = NULL, *deep_p = NULL, *deep_t = NULL;
  bool deep_at_name = false; /* a / follows the double star, which may match no name at all */
  for (;;) {
    if (c.p < c.end && *c.p == '*') {
      const unsigned char *first = c.p;
      while (c.p < c.end && *c.p == '*') c.p++;
      bool deep = c.p - first > 1 && (first == begin || first[-1] == '/') &&
                  (c.p == c.end || *c.p == '/' || (*c.p == '\\' && c.p + 1 < c.end && c.p[1] == '/'));
      if (!deep) {
        star_p = c.p;
        star_t = t;
        continue;
      }
      if (c.p == c.end) return true;
      /* whole names, or none */
      deep_at_name = *c.p == '/';
      if (deep_at_name) c.p++;
      deep_p = c.p;
      deep_t = t;
      star_p = NULL;
      continue;
    }
    if (c.p == c.end && t == t_end) return true;
    if (c.p < c.end && t < t_end) {
      const unsigned char *p = c.p;
      int m = glob_match_one(&c, *t);
      if (m < 0) return false;
      if (m > 0) {
        t++;
        continue;
      }
      c.p = p;
    }
    if (star_p && star_t < t_end && *star_t != '/') {
      t = ++star_t;
      c.p = star_p;
      continue;
    }
    star_p = NULL;
    if (!deep_p) return false;
    if (deep_at_name) { /* to the next name */
      while (deep_t < t_end && *deep_t != '/') deep_t++;
      if (deep_t >= t_end) return false;
      deep_t++;
    } else {
      if (deep_t >= t_end) return false;
      deep_t++;
    }
    t = deep_t;
    c.p = deep_p;
  }
}

bool ignore_glob_path(lode_str glob, lode_str path) {
  bool anchored = false;
  if (glob.len > 1 && glob.data[0] == '.' && glob.data[1] == '/') glob.data++, glob.len--;
  while (glob.len && glob.data[0] == '/') {
    anchored = true;
    glob.data++;
    glob.len--;
  }
  while (glob.len && glob.data[glob.len - 1] == '/') glob.len--;
  if (glob.len == 0) return true; /* "/" and "." are everything */
  if (glob.len == 1 && glob.data[0] == '.') return true;
  if (memchr(glob.data, '/', glob.len)) anchored = true;
  /* the path itself, or any folder above it */
  for (size_t end = path.len;;) {
    size_t from = end;
    if (!anchored)
      while (from > 0 && path.data[from - 1] != '/') from--;
    else
      from = 0;
    if (ignore_glob_match(glob, (lode_str){path.data + from, end - from})) return true;
    while (end > 0 && path.data[end - 1] != '/') end--;
    if (end == 0) return false;
    end--;
  }
}
