/* SPDX-License-Identifier: Apache-2.0 */
/* search_filter.c - the options of a search as a filter of the store. */
#include "scan/ignore.h"
#include "search/search_internal.h"

static void search_clause_begin(search_ctx *s) { strbuf_addstr(&s->where, s->where.len ? "," : "{\"$and\":["); }

/* Chunks that are of one of these kinds, or hold small definitions that are. */
static void search_clause_put_kinds(strbuf *out, const lang_kind *kinds, size_t n) {
  strbuf_addstr(out, "{\"$or\":[{\"kind\":{\"$in\":[");
  for (size_t i = 0; i < n; i++) strbuf_addf(out, "%s\"%s\"", i ? "," : "", lang_kind_name(kinds[i]));
  strbuf_addstr(out, "]}}");
  for (size_t i = 0; i < n; i++) strbuf_addf(out, ",{\"kinds\":{\"$contains\":\"%s\"}}", lang_kind_name(kinds[i]));
  strbuf_addstr(out, "]}");
}

static const lang_kind search_functions[] = {LANG_KIND_FUNCTION, LANG_KIND_METHOD, LANG_KIND_CONSTRUCTOR};
static const lang_kind search_classes[] = {LANG_KIND_CLASS,     LANG_KIND_STRUCT, LANG_KIND_UNION, LANG_KIND_ENUM,
                                           LANG_KIND_INTERFACE, LANG_KIND_TRAIT,  LANG_KIND_TYPE,  LANG_KIND_IMPL};

/* The kinds that a request for *one means. */
static size_t search_kinds_of(const lang_kind *one, const lang_kind **kinds) {
  *kinds = *one == LANG_KIND_FUNCTION ? search_functions : *one == LANG_KIND_CLASS ? search_classes : one;
  return *kinds == search_functions ? sizeof search_functions / sizeof *search_functions
         : *kinds == search_classes ? sizeof search_classes / sizeof *search_classes
                                    : 1;
}

bool search_kind_fits(lode_str asked, lode_str kind) {
  lang_kind one = lang_kind_find(asked), is = lang_kind_find(kind);
  const lang_kind *kinds;
  size_t n = search_kinds_of(&one, &kinds);
  for (size_t i = 0; i < n; i++)
    if (kinds[i] == is) return true;
  return false;
}

static lode_status search_clause_kind(search_ctx *s, lode_str kind, lode_error *err) {
  lang_kind one = lang_kind_find(kind);
  const lang_kind *kinds;
  char quoted[256];
  strbuf names = {0};
  if (one == LANG_KIND_COUNT) {
    for (int i = 0; i < LANG_KIND_COUNT; i++) strbuf_addf(&names, "%s%s", i ? ", " : "", lang_kind_name((lang_kind)i));
    lode_status st = err_set(err, LODE_INVALID, "there is no type %s; types are %.*s",
                             str_quote(kind, quoted, sizeof quoted), (int)names.len, names.data ? names.data : "");
    strbuf_release(&names);
    return st;
  }
  size_t n = search_kinds_of(&one, &kinds);
  search_clause_begin(s);
  search_clause_put_kinds(&s->where, kinds, n);
  return LODE_OK;
}

static void search_clause_text(search_ctx *s, const char *key, lode_str value) {
  search_clause_begin(s);
  strbuf_addf(&s->where, "{\"%s\":", key);
  json_put_string(&s->where, value);
  strbuf_addch(&s->where, '}');
}

void search_put_name_clause(strbuf *out, lode_str name) {
  strbuf_addstr(out, "{\"name\":");
  json_put_string(out, name);
  strbuf_addstr(out, "},{\"defs\":{\"$contains\":");
  json_put_string(out, name);
  strbuf_addstr(out, "}}");
}

/* A glob with a slash starts at the root: its prefix without wildcards is a range of paths, which the index can
 * answer. The glob itself is applied to the results. */
static void search_clause_path(search_ctx *s, lode_str glob) {
  if (memchr(glob.data, ',', glob.len)) return;
  size_t fixed = 0, start = glob.len && glob.data[0] == '/' ? 1 : 0;
  while (fixed < glob.len && !strchr("*?[\\", glob.data[fixed])) fixed++;
  const char *slash = glob.len > 1 ? memchr(glob.data, '/', glob.len - 1) : NULL;
  if (!slash || fixed <= start) return;
  lode_str prefix = {glob.data + start, fixed - start};
  unsigned char last = (unsigned char)prefix.data[prefix.len - 1];
  if (last >= 0x7f) return;
  search_clause_begin(s);
  strbuf_addstr(&s->where, "{\"path\":{\"$gte\":");
  json_put_string(&s->where, prefix);
  strbuf_addstr(&s->where, ",\"$lt\":");
  strbuf next = {0};
  strbuf_add(&next, prefix.data, prefix.len - 1);
  strbuf_addch(&next, (char)(last + 1));
  json_put_string(&s->where, (lode_str){next.data, next.len});
  s->where.failed = s->where.failed || next.failed;
  strbuf_release(&next);
  strbuf_addstr(&s->where, "}}");
}

bool search_path_matches(lode_str globs, lode_str path) {
  for (;;) {
    const char *comma = memchr(globs.data, ',', globs.len);
    size_t len = comma ? (size_t)(comma - globs.data) : globs.len;
    if (len && ignore_glob_path((lode_str){globs.data, len}, path)) return true;
    if (!comma) return false;
    globs = (lode_str){comma + 1, globs.len - len - 1};
  }
}

lode_status search_make_filter(search_ctx *s, lode_error *err) {
  const search_request *r = s->request;
  if (r->language.data) {
    const lang_info *language = lang_find(r->language);
    char quoted[256];
    if (!language)
      return err_set(err, LODE_INVALID, "there is no language %s; `lode status` shows those of the index",
                     str_quote(r->language, quoted, sizeof quoted));
    search_clause_text(s, "language", str_of(language->name));
  }
  if (r->kind.data) TRY(search_clause_kind(s, r->kind, err));
  if (r->name.data) {
    search_clause_begin(s);
    strbuf_addstr(&s->where, "{\"$or\":[");
    search_put_name_clause(&s->where, r->name);
    strbuf_addstr(&s->where, "]}");
  }
  if (r->path.data) search_clause_path(s, r->path);
  if (s->where.len) strbuf_addstr(&s->where, "]}");
  return s->where.failed ? err_nomem(err) : LODE_OK;
}

lode_selection search_selection(const search_ctx *s) {
  const strbuf *d = &s->where_document;
  return (lode_selection){.where = s->where.len ? (lode_str){s->where.data, s->where.len} : (lode_str){0},
                          .where_document = d->len ? (lode_str){d->data, d->len} : (lode_str){0}};
}
