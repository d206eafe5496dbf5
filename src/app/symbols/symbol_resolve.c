/* SPDX-License-Identifier: Apache-2.0 */
/* symbol_resolve.c - which definition a name means; see symbols.h.
 *
 * All definitions of the name are candidates. Each gets a score from the evidence: where it lies, what it belongs to,
 * what the file imports, what is known of the receiver. The best one is the answer if nothing else is as good.
 */
#include "symbols/symbols.h"

#include "scan/scan.h"
#include "symbols/symbol_map.h"
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
  bool bare;  /* nothing before the name */
  bool weak;  /* something before it of which nothing is known */
  bool guess; /* any member of that name may be meant */
  struct resolve_scope *scope;
} resolve_state;

/* What the answer depended on, besides the folder of the use. */
typedef struct resolve_scope {
  bool file, line;
} resolve_scope;

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

/* "Foo" of NewFoo and newFoo, which return one, as a rule; else "". */
static lode_str resolve_made_by(lode_str f) {
  bool is = f.len > 3 && (f.data[0] == 'n' || f.data[0] == 'N') && f.data[1] == 'e' && f.data[2] == 'w' &&
            f.data[3] >= 'A' && f.data[3] <= 'Z';
  return is ? (lode_str){f.data + 3, f.len - 3} : STR_LIT("");
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
      if (!spec.len) spec = resolve_made_by(f);
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

/* The import that brings a name into the file, or NULL. */
static const chunk_ref *resolve_imported(const resolve_state *s, lode_str local) {
  for (size_t i = 0; i < resolve_file(s)->n_imports; i++)
    if (str_eq(resolve_import(s, i)->local, local)) return resolve_import(s, i);
  return NULL;
}

/* May what stands before the name be a value, whose type is not known? A path of Rust is none, nor a package of Go, a
 * module of Python, what comes from a package of JavaScript, or a name that nothing in the project defines. */
static lode_status resolve_may_guess(resolve_state *s, bool *may, lode_error *err) {
  lang_import how = resolve_file(s)->uses ? resolve_file(s)->uses->import : LANG_IMPORT_NONE;
  const chunk_ref *m = resolve_imported(s, s->first);
  bool js = how == LANG_IMPORT_JS, python = how == LANG_IMPORT_PYTHON;
  *may = s->weak || s->bare || how != LANG_IMPORT_RUST;
  if (!*may || s->weak || s->bare || !(js || python || how == LANG_IMPORT_GO)) return LODE_OK;
  if (m) {
    *may = js ? m->qualifier.len && memchr("./@~#", m->qualifier.data[0], 5) : python ? m->name.len > 0 : false;
    return LODE_OK;
  }
  symbols_id id;
  uint32_t at = 0;
  TRY(symbols_load_defs(s->w, s->first, err));
  *may = str_eq(s->first, STR_LIT("this")) || symbols_next_def(s->w, s->first, &at, &id);
  return LODE_OK;
}

/* ---- Scores ---- */

/* What a member belongs to; exports.f = of JavaScript is the module's own. */
static lode_str resolve_parent(const resolve_state *s, symbols_id id) {
  lode_str parent = symbols_parent(s->w, id);
  return str_eq(parent, STR_LIT("exports")) ? STR_LIT("") : parent;
}

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
    s->scope->line = s->scope->line || id.file == s->file;
    s->scope->file = true;
    return id.file != s->file || s->r->line < outer->line || s->r->line > outer->end_line;
  }
  if (!d->hidden) return false;
  s->scope->file = s->scope->file || !resolve_has(s, "go");
  if (id.file == s->file) return false;
  header = f->path.len > 2 && memchr(".h", f->path.data[f->path.len - 1], 2) && f->path.data[f->path.len - 2] == '.';
  if (c) return !header && d->outer == CHUNK_NO_DEF;
  if (resolve_has(s, "go")) return !resolve_same_folder(f->path, resolve_file(s)->path);
  return strcmp(f->family, "java") == 0 || strcmp(f->family, "c_sharp") == 0;
}

/* Is it what holds an imported thing in this file: const f = require('./m').f? Then that is meant. */
static bool resolve_holds_import(const resolve_state *s, symbols_id id) {
  const chunk_def *d = symbols_def(s->w, id);
  if (d->kind != LANG_KIND_VARIABLE && d->kind != LANG_KIND_CONSTANT) return false;
  for (size_t i = 0; i < resolve_file(s)->n_imports; i++) {
    const chunk_ref *m = resolve_import(s, i);
    if (str_eq(m->local, d->name) && m->line >= d->line && m->line <= d->end_line) return true;
  }
  return false;
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
  lode_str parent = resolve_parent(s, id);
  bool same = id.file == s->file, member = parent.len && !str_eq(parent, d->name);
  bool value = d->kind == LANG_KIND_CONSTANT; /* of an enum: visible without it in C */
  size_t at;
  if (member && !(value && strcmp(f->family, "c") == 0)) {
    if (u && u->implicit_this && resolve_in(s->around, s->n_around, parent, &at)) return 95 - (int)at;
    bool may_import = s->r->use == CHUNK_USE_CALL && u && u->import == LANG_IMPORT_DOTS;
    return may_import && resolve_import_fit(s, id) >= 60 ? 70 : 0;
  }
  if (same && resolve_holds_import(s, id)) return 0;
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
  lode_str parent = resolve_parent(s, id);
  int near = id.file == s->file ? 5 : resolve_same_folder(f->path, resolve_file(s)->path) ? 3 : 0;
  /* this.f() in an object that a file consists of: another of its functions */
  bool of_object = str_eq(s->owner, STR_LIT("this")) && id.file == s->file && symbols_is_function(d->kind);
  if (of_object && !parent.len) return 75;
  bool of_owner = parent.len && str_eq(parent, s->owner);
  int fit = of_owner || !parent.len ? resolve_import_fit(s, id) : 0;
  /* app.f = function: a variable of that name in another file is another one */
  bool of_variable = d->scope.len && strcmp(f->family, "javascript") == 0 && id.file != s->file && fit < 60;
  if (of_owner && !of_variable) return (fit >= 60 ? 90 : 80) + near;
  if (outer && outer->kind == LANG_KIND_NAMESPACE && str_eq(resolve_last_part(outer->name), s->owner)) return 80 + near;
  if (fit >= 60 && !parent.len) return 75 + fit / 10;
  bool rust = resolve_file(s)->uses && resolve_file(s)->uses->import == LANG_IMPORT_RUST;
  if (rust && !parent.len && symbols_module_fits(resolve_file(s), s->r->qualifier, STR_LIT(""), f->path) >= 90)
    return 72;
  return 0;
}

bool symbols_is_test(const symbols_world *w, uint32_t file) {
  symbols_file *f = &w->files[file];
  if (!f->is_judged) f->is_test = (scan_path_flags(f->path) & (SCAN_PATH_TEST | SCAN_PATH_EXAMPLE)) != 0;
  f->is_judged = true;
  return f->is_test;
}

/* Code does not use what its tests and examples define. */
static bool resolve_is_of_a_test(const resolve_state *s, symbols_id id) {
  return symbols_is_test(s->w, id.file) && !symbols_is_test(s->w, s->file);
}

static int resolve_score(const resolve_state *s, symbols_id id) {
  const symbols_file *f = &s->w->files[id.file];
  const chunk_def *d = symbols_def(s->w, id);
  lode_str parent = resolve_parent(s, id);
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
    lode_str type = symbols_parent(s->w, id); /* also of a class that is module.exports */
    if (type.len && resolve_in(s->types, s->n_types, type, &at)) score = 94 - 2 * (int)at + near;
  } else if (s->bare) {
    score = resolve_score_bare(s, id);
  } else if (!s->weak) {
    score = resolve_score_owned(s, id);
  }
  bool known = s->n_types || s->bare;
  if (!score && !known && s->guess && parent.len && d->kind != LANG_KIND_CONSTRUCTOR && !resolve_is_of_a_test(s, id))
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

/* Do the language's own types have a method of that name? Then it may be theirs. */
static bool resolve_is_common(const resolve_state *s) {
  const char *list = resolve_file(s)->uses ? resolve_file(s)->uses->common : NULL;
  while (list && *list) {
    size_t n = strcspn(list, " ");
    if (n == s->name.len && memcmp(list, s->name.data, n) == 0) return true;
    list += n;
    while (*list == ' ') list++;
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

/* Does the type that the definition belongs to name this as its base? */
static bool resolve_implements(const symbols_world *w, symbols_id id, lode_str base) {
  const chunk_symbols *t = &w->files[id.file].table;
  const chunk_def *outer = symbols_def(w, (symbols_id){id.file, t->defs[id.def].outer});
  if (!outer) return false;
  for (size_t i = symbols_first_ref(t, outer->line); i < t->n_refs && t->refs[i].line <= outer->line + 2; i++)
    if (t->refs[i].use == CHUNK_USE_BASE && str_eq(t->refs[i].name, base)) return true;
  return false;
}

/* Of a value of which nothing is known: when all methods of that name belong to one trait or interface and what
 * implements it, the trait's is meant. */
static void resolve_take_trait(const resolve_state *s, symbols_target *t) {
  symbols_world *w = s->w;
  symbols_id id, trait = {0};
  size_t n_traits = 0;
  for (uint32_t e = 0; symbols_next_def(w, s->name, &e, &id) && symbols_spend(w, 1);) {
    const chunk_def *outer = symbols_def(w, (symbols_id){id.file, symbols_def(w, id)->outer});
    if (!outer || (outer->kind != LANG_KIND_TRAIT && outer->kind != LANG_KIND_INTERFACE) || !resolve_score(s, id))
      continue;
    trait = id;
    n_traits++;
  }
  if (n_traits != 1) return;
  lode_str base = symbols_parent(w, trait);
  for (uint32_t e = 0; symbols_next_def(w, s->name, &e, &id);) {
    if (!symbols_spend(w, 1)) return;
    if (!symbols_same(id, trait) && resolve_score(s, id) && !resolve_implements(w, id, base)) return;
  }
  *t = (symbols_target){.ids = {trait}, .n = 1, .total = 1, .score = t->score, .resolved = true};
}

static void resolve_choose(const resolve_state *s, symbols_target *t) {
  symbols_world *w = s->w;
  symbols_id id;
  size_t looked = 0;
  symbols_target definitions = {0}; /* what is more than a declaration */
  bool defined = false;
  for (uint32_t e = 0; symbols_next_def(w, s->name, &e, &id) && looked < SYMBOLS_MAX_CANDIDATES; looked++) {
    if (!symbols_spend(w, 1 + w->files[s->file].n_imports / 16)) break;
    int score = resolve_score(s, id);
    if (!score) continue;
    /* a prototype counts only where there is nothing better */
    if (symbols_def(w, id)->declared && strcmp(w->files[id.file].family, "c") == 0) score -= score > 2 ? 2 : 0;
    if (!symbols_def(w, id)->declared) resolve_take(s, &definitions, id, score);
    if (score < t->score) continue;
    defined = true;
    resolve_take(s, t, id, score);
  }
  /* the header that declares it is included, the file that defines it is not: the definition is meant */
  if (t->total == 1 && symbols_def(w, t->ids[0])->declared && definitions.total == 1) *t = definitions;
  bool guessed = t->score <= SYMBOLS_SCORE_WEAK;
  t->resolved = defined && t->total == 1 && !(guessed && (resolve_is_override(w, t->ids[0]) || resolve_is_common(s)));
  if (guessed && t->total > 1 && !resolve_is_common(s)) resolve_take_trait(s, t);
}

/* The key of a use of a member of which nothing but its name is known. Most answers are the same in a whole folder. */
static lode_str resolve_weak_key(const resolve_state *s, bool by_file, char *key, size_t size) {
  lode_str path = resolve_file(s)->path;
  bool test = symbols_is_test(s->w, s->file);
  size_t folder = path.len;
  while (!by_file && folder && path.data[folder - 1] != '/') folder--;
  int n = snprintf(key, size, "%c%d%d%s\n%.*s\n%.*s", by_file ? 'f' : 'd', (int)s->r->use, test,
                   resolve_file(s)->language->grammar ? resolve_file(s)->language->grammar : "", (int)s->name.len,
                   s->name.data, (int)folder, path.data);
  return n > 0 && (size_t)n < size ? (lode_str){key, (size_t)n} : STR_LIT("");
}

static lode_status resolve_keep_weak(resolve_state *s, const symbols_target *t, lode_error *err) {
  char key[1024];
  symbols_world *w = s->w;
  lode_str wanted = resolve_weak_key(s, s->scope->file, key, sizeof key);
  if (s->scope->line || !wanted.len) return LODE_OK;
  char *copy = mem_arena_copy(&w->arena, wanted.data, wanted.len);
  if (!copy || !mem_grow(&w->weak_targets, &w->weak_cap, w->n_weak + 1, sizeof *w->weak_targets)) return err_nomem(err);
  w->weak_targets[w->n_weak++] = *t;
  return symbols_map_put(w->weak, (lode_str){copy, wanted.len}, (uint32_t)w->n_weak) ? LODE_OK : err_nomem(err);
}

/* Answers from what was kept; false: nothing was, or other tables were read since. */
static bool resolve_find_weak(resolve_state *s, symbols_target *t) {
  char key[1024];
  symbols_world *w = s->w;
  if (w->weak_files != w->n_files) {
    symbols_map_clear(w->weak);
    w->n_weak = 0;
    w->weak_files = w->n_files;
  }
  for (int by_file = 0; by_file < 2; by_file++) {
    lode_str wanted = resolve_weak_key(s, by_file, key, sizeof key);
    const uint32_t *at = wanted.len ? symbols_map_find(w->weak, wanted) : NULL;
    if (!at) continue;
    *t = w->weak_targets[*at - 1];
    return true;
  }
  return false;
}

/* Does anything speak for one of these? */
static bool resolve_is_possible(const resolve_state *s, const symbols_ids *among) {
  for (size_t i = 0; i < among->n; i++)
    if (str_eq(symbols_def(s->w, among->v[i])->name, s->name) && resolve_score(s, among->v[i])) return true;
  return false;
}

lode_status symbols_resolve_among(symbols_world *w, uint32_t file, const chunk_ref *ref, const symbols_ids *among,
                                  symbols_target *t, lode_error *err) {
  resolve_scope scope = {0};
  memset(t, 0, sizeof *t);
  TRY(symbols_load_defs(w, ref->name, err));
  resolve_state s = {.w = w, .file = file, .r = ref, .scope = &scope};
  TRY(resolve_prepare(&s, err));
  if (!str_eq(s.name, ref->name)) TRY(symbols_load_defs(w, s.name, err));
  TRY(resolve_may_guess(&s, &s.guess, err));
  if (among && (!symbols_spend(w, among->n) || !resolve_is_possible(&s, among))) return LODE_OK;
  bool weak = s.weak && !s.n_types && ref->use != CHUNK_USE_IMPORT;
  if (weak && resolve_find_weak(&s, t)) return LODE_OK;
  scope = (resolve_scope){0};
  resolve_choose(&s, t);
  return weak ? resolve_keep_weak(&s, t, err) : LODE_OK;
}

lode_status symbols_resolve(symbols_world *w, uint32_t file, const chunk_ref *ref, symbols_target *t, lode_error *err) {
  return symbols_resolve_among(w, file, ref, NULL, t, err);
}
