/* SPDX-License-Identifier: Apache-2.0 */
/* symbol_resolve.c - which definition a name means; see symbols.h.
 *
 * All definitions of the name are candidates. Each gets a score from the evidence: where it lies, what it belongs to,
 * what the file imports, what is known of the receiver. The best one is the answer if nothing else is as good.
 */
#include "symbols/symbols.h"

#include "scan/scan.h"
#include "symbols/symbol_tuning.h"

typedef struct resolve_state {
  symbols_world *w;
  uint32_t file;
  const chunk_ref *r;
  lode_str name;                     /* of the definition that is looked for: what was imported under another name */
  lode_str owner;                    /* the last part of the qualifier, if it is a name */
  lode_str first;                    /* its first part */
  lode_str types[SYMBOLS_MAX_BASES]; /* the receiver's type, then its bases */
  size_t n_types;
  lode_str around[SYMBOLS_MAX_BASES]; /* the class around the use, then its bases */
  size_t n_around;
  bool bare; /* nothing before the name */
  bool weak; /* something before it of which nothing is known */
} resolve_state;

/* Reading tables moves the files: never kept. */
static const symbols_file *resolve_file(const resolve_state *s) { return &s->w->files[s->file]; }

static lode_str resolve_last_part(lode_str s) {
  size_t n = s.len;
  while (n && s.data[n - 1] != '.' && s.data[n - 1] != ':' && s.data[n - 1] != '\\' && s.data[n - 1] != '>') n--;
  return (lode_str){s.data + n, s.len - n};
}

static lode_str resolve_first_part(lode_str s) {
  size_t n = 0;
  while (n < s.len && s.data[n] != '.' && s.data[n] != ':' && s.data[n] != '\\' && s.data[n] != '-') n++;
  return (lode_str){s.data, n};
}

static const chunk_ref *resolve_import(const resolve_state *s, size_t i) {
  return &resolve_file(s)->table.refs[resolve_file(s)->imports[i]];
}

static bool resolve_in(const lode_str *list, size_t n, lode_str name, size_t *at) {
  for (size_t i = 0; i < n; i++)
    if (str_eq(list[i], name)) {
      *at = i;
      return true;
    }
  return false;
}

static bool resolve_has(const resolve_state *s, const char *grammar) {
  return resolve_file(s)->language->grammar && strcmp(resolve_file(s)->language->grammar, grammar) == 0;
}

static bool resolve_same_folder(lode_str a, lode_str b) {
  size_t n = a.len, m = b.len;
  while (n && a.data[n - 1] != '/') n--;
  while (m && b.data[m - 1] != '/') m--;
  return n == m && memcmp(a.data, b.data, n) == 0;
}

/* ---- Types ---- */

lode_status symbols_add_bases(symbols_world *w, const char *family, lode_str *list, size_t *n, lode_error *err) {
  for (size_t at = 0; at < *n && *n < SYMBOLS_MAX_BASES; at++) {
    lode_str name = list[at];
    symbols_id id;
    size_t where;
    TRY(symbols_load_defs(w, name, err));
    for (uint32_t e = 0; symbols_next_def(w, name, &e, &id);) {
      const symbols_file *f = &w->files[id.file];
      const chunk_def *d = symbols_def(w, id);
      if ((family && strcmp(f->family, family) != 0) || !(symbols_is_type(d->kind) || d->kind == LANG_KIND_IMPL))
        continue;
      for (size_t i = symbols_first_ref(&f->table, d->line); i < f->table.n_refs && *n < SYMBOLS_MAX_BASES; i++) {
        const chunk_ref *b = &f->table.refs[i];
        if (b->line > d->end_line || !symbols_spend(w, 1)) break;
        if (b->use != CHUNK_USE_BASE || b->def != id.def || resolve_in(list, *n, b->name, &where)) continue;
        list[(*n)++] = b->name;
      }
    }
  }
  return LODE_OK;
}

/* The type of a field or variable of this name; of a class's if `of` is given. "" when it is not known. */
static lode_str resolve_type_of(resolve_state *s, lode_str name, lode_str of, bool function) {
  lode_str type = STR_LIT("");
  symbols_id id;
  int best = 0;
  for (uint32_t e = 0; symbols_next_def(s->w, name, &e, &id);) {
    const chunk_def *d = symbols_def(s->w, id);
    const symbols_file *f = &s->w->files[id.file];
    if (!symbols_spend(s->w, 1)) break;
    if (strcmp(f->family, resolve_file(s)->family) != 0 || !d->type.len || symbols_is_function(d->kind) != function)
      continue;
    lode_str parent = symbols_parent(s->w, id);
    if (of.len && !str_eq(parent, of)) continue;
    int score = id.file == s->file ? 3 : resolve_same_folder(f->path, resolve_file(s)->path) ? 2 : 1;
    if (score == best && !str_eq(d->type, type)) type = STR_LIT(""); /* they disagree */
    if (score > best) {
      type = d->type;
      best = score;
    }
  }
  return type;
}

/* A name of a type, from "T", "=f" or "^T". Follows what f returns, a few times. */
static lode_status resolve_type_name(resolve_state *s, lode_str spec, lode_str *type, bool *base, lode_error *err) {
  *base = false;
  for (int i = 0; i < 4 && spec.len; i++) {
    if (spec.data[0] == '^') {
      *base = true;
      spec = (lode_str){spec.data + 1, spec.len - 1};
    } else if (spec.data[0] == '=') {
      lode_str f = {spec.data + 1, spec.len - 1};
      TRY(symbols_load_defs(s->w, f, err));
      spec = resolve_type_of(s, f, STR_LIT(""), true);
    } else {
      break;
    }
  }
  *type = spec;
  return LODE_OK;
}

static lode_status resolve_set_type(resolve_state *s, lode_str type, bool base, lode_error *err) {
  if (!type.len) {
    s->weak = true;
    return LODE_OK;
  }
  s->types[0] = type;
  s->n_types = 1;
  TRY(symbols_add_bases(s->w, resolve_file(s)->family, s->types, &s->n_types, err));
  if (base && s->n_types > 1) { /* a base's, not its own */
    memmove(s->types, s->types + 1, (s->n_types - 1) * sizeof *s->types);
    s->n_types--;
  }
  return LODE_OK;
}

/* ":T", ":T.f": the receiver's type, and its bases. */
static lode_status resolve_receiver(resolve_state *s, lode_str spec, lode_error *err) {
  lode_str head = {spec.data, 0}, field = STR_LIT(""), type;
  bool base;
  while (head.len < spec.len && spec.data[head.len] != '.') head.len++;
  if (head.len < spec.len) field = (lode_str){spec.data + head.len + 1, spec.len - head.len - 1};
  TRY(resolve_type_name(s, head, &type, &base, err));
  if (field.len && type.len) {
    lode_str chain[SYMBOLS_MAX_BASES] = {type};
    size_t n = 1;
    lode_str found = STR_LIT("");
    TRY(symbols_add_bases(s->w, resolve_file(s)->family, chain, &n, err));
    for (size_t i = 0; i < n && !found.len; i++) found = resolve_type_of(s, field, chain[i], false);
    TRY(resolve_type_name(s, found, &type, &base, err));
  }
  return resolve_set_type(s, type, base, err);
}

/* ---- What the use says ---- */

static lode_str resolve_class_around(const resolve_state *s) {
  for (uint32_t d = s->r->def; d != CHUNK_NO_DEF; d = resolve_file(s)->table.defs[d].outer) {
    const chunk_def *def = &resolve_file(s)->table.defs[d];
    if (symbols_is_type(def->kind) || def->kind == LANG_KIND_IMPL) return def->name;
    if (def->scope.len) return resolve_last_part(def->scope);
  }
  return STR_LIT("");
}

/* A name that is imported under another one is looked for by its own. */
static void resolve_alias(resolve_state *s) {
  lode_str local = s->bare ? s->r->name : s->first;
  for (size_t i = 0; i < resolve_file(s)->n_imports; i++) {
    const chunk_ref *m = resolve_import(s, i);
    if (!str_eq(m->local, local) || !m->name.len) continue;
    if (str_eq(m->name, STR_LIT("*")) || str_eq(m->name, STR_LIT("default"))) continue;
    if (s->bare)
      s->name = m->name;
    else if (str_eq(s->first, s->owner))
      s->owner = m->name;
  }
}

static lode_status resolve_prepare(resolve_state *s, lode_error *err) {
  lode_str q = s->r->qualifier;
  s->name = s->r->name;
  s->bare = !q.len;
  s->weak = str_eq(q, STR_LIT("?"));
  s->around[0] = resolve_class_around(s);
  s->n_around = s->around[0].len != 0;
  if (q.len > 1 && q.data[0] == ':') {
    TRY(resolve_receiver(s, (lode_str){q.data + 1, q.len - 1}, err));
  } else if (!s->bare && !s->weak) {
    s->owner = resolve_last_part(q);
    s->first = resolve_first_part(q);
    resolve_alias(s);
    /* a field of the class around it, or a global variable, whose type is known */
    bool imported = false;
    for (size_t i = 0; i < resolve_file(s)->n_imports && !imported; i++)
      imported = str_eq(resolve_import(s, i)->local, s->first);
    if (!imported && str_eq(s->first, s->owner)) {
      bool base;
      lode_str type = STR_LIT("");
      if (s->n_around) type = resolve_type_of(s, s->owner, s->around[0], false);
      if (!type.len) type = resolve_type_of(s, s->owner, STR_LIT(""), false);
      if (type.len) TRY(resolve_type_name(s, type, &type, &base, err));
      if (type.len) TRY(resolve_set_type(s, type, base, err));
    }
  } else if (s->bare) {
    resolve_alias(s);
    if (resolve_file(s)->uses && resolve_file(s)->uses->implicit_this && s->n_around)
      TRY(symbols_add_bases(s->w, resolve_file(s)->family, s->around, &s->n_around, err));
  }
  return LODE_OK;
}

/* ---- Scores ---- */

static bool resolve_kind_fits(chunk_use use, lang_kind k) {
  switch (use) {
    case CHUNK_USE_CALL:
      return symbols_is_function(k) || symbols_is_type(k) || k == LANG_KIND_VARIABLE || k == LANG_KIND_CONSTANT ||
             k == LANG_KIND_PROPERTY;
    case CHUNK_USE_TYPE:
    case CHUNK_USE_BASE: return symbols_is_type(k);
    default: return k != LANG_KIND_IMPL;
  }
}

/* Is it inside a function, out of sight of the use? */
static bool resolve_is_out_of_sight(const resolve_state *s, symbols_id id) {
  const symbols_file *f = &s->w->files[id.file];
  const chunk_def *d = symbols_def(s->w, id);
  bool c = strcmp(f->family, "c") == 0, header = false;
  for (uint32_t o = d->outer; o != CHUNK_NO_DEF; o = f->table.defs[o].outer) {
    const chunk_def *outer = &f->table.defs[o];
    if (!symbols_is_function(outer->kind)) continue;
    return id.file != s->file || s->r->line < outer->line || s->r->line > outer->end_line;
  }
  if (!d->hidden || id.file == s->file) return false;
  header = f->path.len > 2 && memchr(".h", f->path.data[f->path.len - 1], 2) && f->path.data[f->path.len - 2] == '.';
  if (c) return !header && d->outer == CHUNK_NO_DEF;
  if (resolve_has(s, "go")) return !resolve_same_folder(f->path, resolve_file(s)->path);
  return strcmp(f->family, "java") == 0 || strcmp(f->family, "c_sharp") == 0;
}

/* The best fit of an import of the file that brings the name, or what is before it, into sight. */
static int resolve_import_fit(const resolve_state *s, symbols_id id) {
  lode_str path = s->w->files[id.file].path, local = s->bare ? s->r->name : s->first;
  int best = 0;
  for (size_t i = 0; i < resolve_file(s)->n_imports; i++) {
    const chunk_ref *m = resolve_import(s, i);
    bool all = str_eq(m->name, STR_LIT("*")) && !m->local.len, dot = str_eq(m->local, STR_LIT("."));
    if (!all && !dot && !str_eq(m->local, local)) continue;
    if ((all || dot) && !s->bare) continue;
    int fit = symbols_module_fits(resolve_file(s), m->qualifier, m->name, path);
    /* the module may be the imported name itself: from a import b; b.f() */
    if (!s->bare && m->name.len && !all) {
      char joined[400];
      const char *dots = resolve_file(s)->uses && resolve_file(s)->uses->import == LANG_IMPORT_RUST ? "::" : ".";
      int n = snprintf(joined, sizeof joined, "%.*s%s%.*s", (int)m->qualifier.len, m->qualifier.data,
                       m->qualifier.len && m->qualifier.data[m->qualifier.len - 1] != '.' ? dots : "", (int)m->name.len,
                       m->name.data);
      int whole = n > 0 && n < (int)sizeof joined
                      ? symbols_module_fits(resolve_file(s), (lode_str){joined, (size_t)n}, STR_LIT(""), path)
                      : 0;
      if (whole > fit) fit = whole;
    }
    if (fit > best) best = fit;
  }
  return best;
}

static lode_str resolve_stem(lode_str path) {
  size_t start = path.len, end = path.len;
  while (start && path.data[start - 1] != '/') start--;
  for (size_t i = path.len; i-- > start;)
    if (path.data[i] == '.') end = i;
  return (lode_str){path.data + start, end - start};
}

/* C: the file includes the header of the candidate's source. */
static bool resolve_includes(const resolve_state *s, symbols_id id) {
  lode_str stem = resolve_stem(s->w->files[id.file].path);
  for (size_t i = 0; i < resolve_file(s)->n_imports; i++)
    if (str_eq(resolve_stem(resolve_import(s, i)->qualifier), stem)) return true;
  return false;
}

static int resolve_nearness(lode_str a, lode_str b) {
  int n = 0;
  for (size_t i = 0; i < a.len && i < b.len && a.data[i] == b.data[i]; i++) n += a.data[i] == '/';
  return n > 4 ? 4 : n;
}

/* A name with nothing before it. */
static int resolve_score_bare(const resolve_state *s, symbols_id id) {
  const symbols_file *f = &s->w->files[id.file];
  const chunk_def *d = symbols_def(s->w, id);
  const lang_uses *u = resolve_file(s)->uses;
  lode_str parent = symbols_parent(s->w, id);
  bool same = id.file == s->file, member = parent.len && !str_eq(parent, d->name);
  bool value = d->kind == LANG_KIND_CONSTANT; /* of an enum: visible without it in C */
  size_t at;
  if (member && !(value && strcmp(f->family, "c") == 0)) {
    if (u && u->implicit_this && resolve_in(s->around, s->n_around, parent, &at)) return 95 - (int)at;
    int fit = resolve_import_fit(s, id);
    return fit >= 60 && s->r->use == CHUNK_USE_CALL && u && u->import == LANG_IMPORT_DOTS ? 70 : 0;
  }
  if (same) return d->outer != CHUNK_NO_DEF && !member ? 92 : 90;
  if (u && u->package_by_path && resolve_same_folder(f->path, resolve_file(s)->path)) return 85;
  int fit = resolve_import_fit(s, id);
  if (fit >= 60) return 70 + fit / 10;
  if (strcmp(f->family, "c") == 0)
    return 55 + (resolve_includes(s, id) ? 15 : 0) + resolve_nearness(f->path, resolve_file(s)->path);
  bool needs_import =
      u && (u->import == LANG_IMPORT_PYTHON || u->import == LANG_IMPORT_JS || u->import == LANG_IMPORT_GO ||
            (u->import == LANG_IMPORT_RUST && d->kind != LANG_KIND_MACRO));
  if (needs_import) return 0;
  return (symbols_is_type(d->kind) || d->kind == LANG_KIND_CONSTRUCTOR ? 62 : 55) +
         resolve_nearness(f->path, resolve_file(s)->path);
}

/* A name after a module, a class or a variable. */
static int resolve_score_owned(const resolve_state *s, symbols_id id) {
  const symbols_file *f = &s->w->files[id.file];
  const chunk_def *d = symbols_def(s->w, id), *outer = symbols_def(s->w, (symbols_id){id.file, d->outer});
  lode_str parent = symbols_parent(s->w, id);
  int near = id.file == s->file ? 5 : resolve_same_folder(f->path, resolve_file(s)->path) ? 3 : 0;
  int fit = resolve_import_fit(s, id);
  if (parent.len && str_eq(parent, s->owner)) return (fit >= 60 ? 90 : 80) + near;
  if (outer && outer->kind == LANG_KIND_NAMESPACE && str_eq(resolve_last_part(outer->name), s->owner)) return 80 + near;
  if (fit >= 60 && !parent.len) return 75 + fit / 10;
  bool rust = resolve_file(s)->uses && resolve_file(s)->uses->import == LANG_IMPORT_RUST;
  if (rust && !parent.len && symbols_module_fits(resolve_file(s), s->r->qualifier, STR_LIT(""), f->path) >= 90)
    return 72;
  return 0;
}

/* Code does not use what its tests and examples define. */
static bool resolve_is_of_a_test(const resolve_state *s, symbols_id id) {
  const unsigned aside = SCAN_PATH_TEST | SCAN_PATH_EXAMPLE;
  return (scan_path_flags(s->w->files[id.file].path) & aside) && !(scan_path_flags(resolve_file(s)->path) & aside);
}

static int resolve_score(const resolve_state *s, symbols_id id) {
  const symbols_file *f = &s->w->files[id.file];
  const chunk_def *d = symbols_def(s->w, id);
  lode_str parent = symbols_parent(s->w, id);
  size_t at;
  int score = 0, near = id.file == s->file ? 4 : resolve_same_folder(f->path, resolve_file(s)->path) ? 2 : 0;
  if (strcmp(f->family, resolve_file(s)->family) != 0 || !resolve_kind_fits(s->r->use, d->kind) ||
      resolve_is_out_of_sight(s, id) || (s->r->use == CHUNK_USE_IMPORT && parent.len))
    return 0;
  if (s->r->use == CHUNK_USE_IMPORT) {
    int fit = symbols_module_fits(resolve_file(s), s->r->qualifier, s->r->name, f->path);
    return fit >= 60 ? 70 + fit / 10 : 0;
  }
  if (s->n_types) {
    if (parent.len && resolve_in(s->types, s->n_types, parent, &at)) score = 94 - 2 * (int)at + near;
  } else if (s->bare) {
    score = resolve_score_bare(s, id);
  } else if (!s->weak) {
    score = resolve_score_owned(s, id);
  }
  bool known = s->n_types || s->bare;
  if (!score && !known && parent.len && d->kind != LANG_KIND_CONSTRUCTOR && !resolve_is_of_a_test(s, id))
    score = SYMBOLS_SCORE_WEAK;
  /* a variable that holds a function is called, too, but a function comes first */
  if (s->r->use == CHUNK_USE_CALL && score >= 30 && !symbols_is_function(d->kind) && !symbols_is_type(d->kind))
    score -= 10;
  return score;
}

/* ---- The best ---- */

/* Two that are one: overloads, variants under #if, a class and its constructor, a declaration and its definition. */
static bool resolve_is_same_thing(const symbols_world *w, symbols_id a, symbols_id b) {
  const chunk_def *x = symbols_def(w, a), *y = symbols_def(w, b);
  if (a.file == b.file && str_eq(symbols_parent(w, a), symbols_parent(w, b))) return true;
  bool ctor = x->kind == LANG_KIND_CONSTRUCTOR || y->kind == LANG_KIND_CONSTRUCTOR;
  if (ctor && a.file == b.file) return true;
  return (x->declared || y->declared) && str_eq(symbols_parent(w, a), symbols_parent(w, b));
}

/* Is `a` to be shown rather than `b`, of two that are one? */
static bool resolve_is_better(const symbols_world *w, symbols_id a, symbols_id b) {
  const chunk_def *x = symbols_def(w, a), *y = symbols_def(w, b);
  if (x->declared != y->declared) return y->declared;
  if (symbols_is_type(x->kind) != symbols_is_type(y->kind)) return symbols_is_type(x->kind);
  return a.file == b.file ? a.def < b.def : a.file < b.file;
}

/* Does it override something outside of the project? That may be what a value of which nothing is known has. What it
 * overrides in the project would be a candidate, too. */
static bool resolve_is_override(const symbols_world *w, symbols_id id) {
  static const char *const words[] = {"@Override ", "override "};
  lode_str s = symbols_def(w, id)->signature;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    size_t n = strlen(words[i]);
    for (size_t at = 0; at + n <= s.len; at++)
      if ((at == 0 || s.data[at - 1] == ' ') && memcmp(s.data + at, words[i], n) == 0) return true;
  }
  return false;
}

static void resolve_take(const resolve_state *s, symbols_target *t, symbols_id id, int score) {
  if (score > t->score) {
    t->score = score;
    t->n = t->total = 0;
  }
  if (score < t->score) return;
  for (size_t i = 0; i < t->n; i++)
    if (resolve_is_same_thing(s->w, t->ids[i], id)) {
      if (resolve_is_better(s->w, id, t->ids[i])) t->ids[i] = id;
      return;
    }
  t->total++;
  if (t->n < SYMBOLS_SHOWN_CANDIDATES) t->ids[t->n++] = id;
}

lode_status symbols_resolve(symbols_world *w, uint32_t file, const chunk_ref *ref, symbols_target *t, lode_error *err) {
  symbols_id id;
  size_t looked = 0;
  memset(t, 0, sizeof *t);
  TRY(symbols_load_defs(w, ref->name, err));
  resolve_state s = {.w = w, .file = file, .r = ref};
  TRY(resolve_prepare(&s, err));
  if (!str_eq(s.name, ref->name)) TRY(symbols_load_defs(w, s.name, err));
  bool defined = false;
  symbols_target definitions = {0}; /* what is more than a declaration */
  for (uint32_t e = 0; symbols_next_def(w, s.name, &e, &id) && looked < SYMBOLS_MAX_CANDIDATES; looked++) {
    if (!symbols_spend(w, 1 + w->files[file].n_imports / 16)) break;
    int score = resolve_score(&s, id);
    if (!score) continue;
    /* a prototype counts only where there is nothing better */
    if (symbols_def(w, id)->declared && strcmp(w->files[id.file].family, "c") == 0) score -= score > 2 ? 2 : 0;
    if (!symbols_def(w, id)->declared) resolve_take(&s, &definitions, id, score);
    if (score < t->score) continue;
    defined = true;
    resolve_take(&s, t, id, score);
  }
  /* the header that declares it is included, the file that defines it is not: the definition is meant */
  if (t->total == 1 && symbols_def(w, t->ids[0])->declared && definitions.total == 1) *t = definitions;
  t->resolved = defined && t->total == 1 && !(t->score <= SYMBOLS_SCORE_WEAK && resolve_is_override(w, t->ids[0]));
  return LODE_OK;
}
