/* SPDX-License-Identifier: Apache-2.0 */
/* search_filter.c - the options of a search as a filter of the store. */
#include "search/search_internal.h"

static void search_clause_begin(search_ctx *s) { strbuf_addstr(&s->where, s->where.len ? "," : "{\"$and\":["); }

static void search_clause_put_in(strbuf *out, const char *key, const lang_kind *kinds, size_t n) {
  strbuf_addf(out, "{\"%s\":{\"$in\":[", key);
  for (size_t i = 0; i < n; i++) strbuf_addf(out, "%s\"%s\"", i ? "," : "", lang_kind_name(kinds[i]));
  strbuf_addstr(out, "]}}");
}

static lode_status search_clause_kind(search_ctx *s, lode_str kind, lode_error *err) {
  static const lang_kind functions[] = {LANG_KIND_FUNCTION, LANG_KIND_METHOD, LANG_KIND_CONSTRUCTOR};
  static const lang_kind classes[] = {LANG_KIND_CLASS,     LANG_KIND_STRUCT, LANG_KIND_UNION, LANG_KIND_ENUM,
                                      LANG_KIND_INTERFACE, LANG_KIND_TRAIT,  LANG_KIND_TYPE,  LANG_KIND_IMPL};
  lang_kind one = lang_kind_find(kind);
  char quoted[256];
  strbuf names = {0};
  if (one == LANG_KIND_COUNT) {
    for (int i = 0; i < LANG_KIND_COUNT; i++) strbuf_addf(&names, "%s%s", i ? ", " : "", lang_kind_name((lang_kind)i));
    lode_status st = err_set(err, LODE_INVALID, "there is no type %s; types are %.*s",
                             str_quote(kind, quoted, sizeof quoted), (int)names.len, names.data ? names.data : "");
    strbuf_release(&names);
    return st;
  }
  search_clause_begin(s);
  if (one == LANG_KIND_FUNCTION)
    search_clause_put_in(&s->where, "kind", functions, 3);
  else if (one == LANG_KIND_CLASS)
    search_clause_put_in(&s->where, "kind", classes, 8);
  else
    search_clause_put_in(&s->where, "kind", &one, 1);
  return LODE_OK;
}

static void search_clause_text(search_ctx *s, const char *key, lode_str value) {
  search_clause_begin(s);
  strbuf_addf(&s->where, "{\"%s\":", key);
  json_put_string(&s->where, value);
  strbuf_addch(&s->where, '}');
}

/* A glob with a slash starts at the root: its prefix without wildcards is a range of paths, which the index can
 * answer. The glob itself is applied to the results. */
static void search_clause_path(search_ctx *s, lode_str glob) {
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
  if (r->name.data) search_clause_text(s, "name", r->name);
  if (r->path.data) search_clause_path(s, r->path);
  if (s->where.len) strbuf_addstr(&s->where, "]}");
  return s->where.failed ? err_nomem(err) : LODE_OK;
}

lode_selection search_selection(const search_ctx *s) {
  return (lode_selection){.where = s->where.len ? (lode_str){s->where.data, s->where.len} : (lode_str){0}};
}
