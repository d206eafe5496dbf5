/* SPDX-License-Identifier: Apache-2.0 */
/* symbol_module.c - does a path hold the module that an import names? See symbols.h.
 *
 * Both are taken apart into their components: a.b, ./a/b, a::b and A\B have two. The file of a module is PATH.ext, the
 * folder PATH, or its index file. A prefix that only one of them has (src/, github.com/x/y) is put up with unless the
 * import is relative.
 */
#include "symbols/symbols.h"

enum { MODULE_MAX_PARTS = 32 };

typedef struct module_parts {
  lode_str v[MODULE_MAX_PARTS];
  size_t n;
  bool bad; /* too many */
} module_parts;

static void module_push(module_parts *p, lode_str part) {
  if (!part.len || str_eq(part, STR_LIT("."))) return;
  if (str_eq(part, STR_LIT(".."))) {
    if (p->n)
      p->n--;
    else
      p->bad = true;
    return;
  }
  if (p->n == MODULE_MAX_PARTS) {
    p->bad = true;
    return;
  }
  p->v[p->n++] = part;
}

/* Takes apart at any of the separators. */
static void module_split(module_parts *p, lode_str s, const char *separators) {
  size_t start = 0;
  for (size_t i = 0; i <= s.len; i++) {
    if (i < s.len && !strchr(separators, s.data[i])) continue;
    module_push(p, (lode_str){s.data + start, i - start});
    start = i + 1;
  }
}

static lode_str module_folder(lode_str path) {
  size_t n = path.len;
  while (n && path.data[n - 1] != '/') n--;
  return (lode_str){path.data, n ? n - 1 : 0};
}

static lode_str module_without_extension(lode_str path) {
  size_t n = path.len;
  while (n && path.data[n - 1] != '.' && path.data[n - 1] != '/') n--;
  return n > 1 && path.data[n - 1] == '.' ? (lode_str){path.data, n - 1} : path;
}

/* The components of a path, without its ending and without the name of an index file. */
static void module_of_path(lode_str path, module_parts *p) {
  static const char *const index[] = {"__init__", "index", "mod", "lib"};
  bool rust = path.len > 3 && memcmp(path.data + path.len - 3, ".rs", 3) == 0;
  module_split(p, module_without_extension(path), "/");
  for (size_t i = rust ? 2 : 0; p->n && i < (rust ? 4u : 2u); i++)
    if (str_eq(p->v[p->n - 1], str_of(index[i]))) {
      p->n--;
      return;
    }
}

/* How many of the last components are equal. */
static size_t module_common_tail(const module_parts *a, size_t n_a, const module_parts *b, size_t n_b) {
  size_t n = 0;
  while (n < n_a && n < n_b && str_eq(a->v[n_a - 1 - n], b->v[n_b - 1 - n])) n++;
  return n;
}

/* Relative imports name one place. */
static bool module_is_relative(const symbols_file *from, lode_str module, module_parts *base, lode_str *rest) {
  lang_import how = from->uses ? from->uses->import : LANG_IMPORT_NONE;
  *rest = module;
  if (how == LANG_IMPORT_PYTHON && module.len && module.data[0] == '.') {
    size_t dots = 0;
    while (dots < module.len && module.data[dots] == '.') dots++;
    module_split(base, module_folder(from->path), "/");
    for (size_t i = 1; i < dots; i++) module_push(base, STR_LIT(".."));
    *rest = (lode_str){module.data + dots, module.len - dots};
    return true;
  }
  bool rust = how == LANG_IMPORT_RUST && ((module.len >= 4 && memcmp(module.data, "self", 4) == 0) ||
                                          (module.len >= 5 && memcmp(module.data, "super", 5) == 0));
  if (rust) return false; /* where modules are depends on files: a tail has to do */
  if (!module.len || module.data[0] != '.' || how == LANG_IMPORT_C) return false;
  module_split(base, module_folder(from->path), "/");
  return true;
}

static void module_of_import(const symbols_file *from, lode_str module, module_parts *p) {
  lang_import how = from->uses ? from->uses->import : LANG_IMPORT_NONE;
  const char *separators = how == LANG_IMPORT_PYTHON || how == LANG_IMPORT_DOTS ? ".\\"
                           : how == LANG_IMPORT_RUST                            ? ":"
                                                                                : "/";
  if (how == LANG_IMPORT_JS || how == LANG_IMPORT_NONE || how == LANG_IMPORT_C) {
    static const char *const endings[] = {".js", ".ts", ".jsx", ".tsx", ".mjs", ".cjs", ".rb", ".h", ".hpp", ".hh"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
      size_t n = strlen(endings[i]);
      if (module.len > n && memcmp(module.data + module.len - n, endings[i], n) == 0) module.len -= n;
    }
  }
  module_split(p, module, separators);
  if (how == LANG_IMPORT_JS && p->n && str_eq(p->v[p->n - 1], STR_LIT("index"))) p->n--;
  while (how == LANG_IMPORT_RUST && p->n &&
         (str_eq(p->v[0], STR_LIT("crate")) || str_eq(p->v[0], STR_LIT("self")) || str_eq(p->v[0], STR_LIT("super")))) {
    memmove(p->v, p->v + 1, (p->n - 1) * sizeof *p->v);
    p->n--;
  }
}

int symbols_module_fits(const symbols_file *from, lode_str module, lode_str name, lode_str path) {
  module_parts wanted = {0}, is = {0};
  lode_str rest;
  bool relative = module_is_relative(from, module, &wanted, &rest);
  module_of_import(from, rest, &wanted);
  module_of_path(path, &is);
  if (wanted.bad || is.bad) return 0;
  bool exact = relative && wanted.n == is.n;
  size_t tail = module_common_tail(&wanted, wanted.n, &is, is.n);
  if (tail == wanted.n && (!relative || exact)) return wanted.n ? 100 : 60;
  /* the module is a folder, and the file lies in it: a package whose files are one, or one that passes names on */
  size_t inside = is.n ? module_common_tail(&wanted, wanted.n, &is, is.n - 1) : 0;
  if (is.n && inside == wanted.n && (!relative || wanted.n == is.n - 1)) {
    bool named = name.len && str_eq(is.v[is.n - 1], name);
    return wanted.n ? (named ? 98 : 90) : 50;
  }
  /* deeper below: names that are passed on */
  for (size_t cut = 2; cut <= 4 && cut < is.n && wanted.n; cut++)
    if (module_common_tail(&wanted, wanted.n, &is, is.n - cut) == wanted.n && (!relative || wanted.n == is.n - cut))
      return 70;
  if (relative) return 0;
  /* the import has a prefix that the path has not: the address of a Go module, the name of a package */
  if (tail == is.n && is.n) return 80;
  if (is.n > 1 && inside == is.n - 1) return 78;
  return tail >= 2 || inside >= 2 ? 60 : 0;
}
