/* search_filter.c - what the flags of a search ask for, as a filter of the store. */
#include "searching.h"

static void begin_clause(searching *s) { strbuf_addstr(&s->where, s->where.len ? "," : "{\"$and\":["); }

static void put_in(strbuf *out, const char *key, const lode__kind *kinds, size_t n) {
  strbuf_addf(out, "{\"%s\":{\"$in\":[", key);
  for (size_t i = 0; i < n; i++) strbuf_addf(out, "%s\"%s\"", i ? "," : "", lode__kind_name(kinds[i]));
  strbuf_addstr(out, "]}}");
}

static lode_status kind_clause(searching *s, lode_str kind, lode_error *err) {
  static const lode__kind functions[] = {LODE__KIND_FUNCTION, LODE__KIND_METHOD, LODE__KIND_CONSTRUCTOR};
  static const lode__kind classes[] = {LODE__KIND_CLASS, LODE__KIND_STRUCT, LODE__KIND_UNION, LODE__KIND_ENUM, LODE__KIND_INTERFACE,
                                       LODE__KIND_TRAIT, LODE__KIND_TYPE, LODE__KIND_IMPL};
  lode__kind one = lode__kind_find(kind);
  char quoted[256];
  strbuf names = {0};
  if (one == LODE__KIND_COUNT) {
    for (int i = 0; i < LODE__KIND_COUNT; i++) strbuf_addf(&names, "%s%s", i ? ", " : "", lode__kind_name((lode__kind)i));
    lode_status st = err_set(err, LODE_INVALID, "there is no type %s; types are %.*s", str_quote(kind, quoted, sizeof quoted),
                                (int)names.len, names.data ? names.data : "");
    strbuf_release(&names);
    return st;
  }
  begin_clause(s);
  if (one == LODE__KIND_FUNCTION) put_in(&s->where, "kind", functions, 3);
  else if (one == LODE__KIND_CLASS) put_in(&s->where, "kind", classes, 8);
  else put_in(&s->where, "kind", &one, 1);
  return LODE_OK;
}

static void text_clause(searching *s, const char *key, lode_str value) {
  begin_clause(s);
  strbuf_addf(&s->where, "{\"%s\":", key);
  json_put_string(&s->where, value);
  strbuf_addch(&s->where, '}');
}

/* A glob with a slash in it begins at the root: what stands before its first wildcard is a range of paths, which the index answers. The
 * glob itself is applied to what comes back. */
static void path_clause(searching *s, lode_str glob) {
  size_t fixed = 0, start = glob.len && glob.data[0] == '/' ? 1 : 0;
  while (fixed < glob.len && !strchr("*?[\\", glob.data[fixed])) fixed++;
  const char *slash = glob.len > 1 ? memchr(glob.data, '/', glob.len - 1) : NULL;
  if (!slash || fixed <= start) return;
  lode_str prefix = {glob.data + start, fixed - start};
  unsigned char last = (unsigned char)prefix.data[prefix.len - 1];
  if (last >= 0x7f) return;
  begin_clause(s);
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

lode_status lode__searching_filter(searching *s, lode_error *err) {
  const lode__search_request *r = s->request;
  if (r->language.data) {
    const lode__language *language = lode__language_find(r->language);
    char quoted[256];
    if (!language) return err_set(err, LODE_INVALID, "there is no language %s; `lode status` shows those of the index",
                                     str_quote(r->language, quoted, sizeof quoted));
    text_clause(s, "language", str_of(language->name));
  }
  if (r->kind.data) TRY(kind_clause(s, r->kind, err));
  if (r->name.data) text_clause(s, "name", r->name);
  if (r->path.data) path_clause(s, r->path);
  if (s->where.len) strbuf_addstr(&s->where, "]}");
  return s->where.failed ? err_nomem(err) : LODE_OK;
}

lode_selection lode__searching_selection(const searching *s) {
  return (lode_selection){.where = s->where.len ? (lode_str){s->where.data, s->where.len} : (lode_str){0}};
}
