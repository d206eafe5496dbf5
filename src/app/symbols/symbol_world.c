/* SPDX-License-Identifier: Apache-2.0 */
/* symbol_world.c - reading tables of symbols from the store; see symbols.h. */
#include "symbols/symbols.h"

#include "indexer/code_record.h"
#include "indexer/index_stamp.h"
#include "scan/scan.h"
#include "symbols/symbol_map.h"
#include "symbols/symbol_tuning.h"

/* ---- Opening ---- */

static lode_status world_check_stamp(lode_store *store, const project_info *project, lode_error *err) {
  lode_collection_list *list = NULL;
  indexer_stamp stamp = {0};
  bool indexed = false, tables = false;
  TRY(lode_collections(store, &list, err));
  for (size_t i = 0; i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    if (str_eq(info->name, STR_LIT(INDEXER_COLL_FILES))) indexer_stamp_parse(info->metadata, &stamp);
    indexed = indexed || str_eq(info->name, STR_LIT(INDEXER_COLL_CODE));
    tables = tables || str_eq(info->name, STR_LIT(INDEXER_COLL_SYMBOLS));
  }
  lode_collection_list_free(list);
  if (!indexed)
    return err_set(err, LODE_NOT_FOUND, "%.300s is not indexed yet: run `lode index`", project_display_name(project));
  if (!tables || stamp.revision < INDEXER_REVISION_SYMBOLS)
    return err_set(err, LODE_NOT_FOUND,
                   "the index was made by an older lode and has no symbols: `lode index` brings it up to date");
  return LODE_OK;
}

lode_status symbols_open(const project_info *project, lode_store *store, symbols_world *w, lode_error *err) {
  lode_collection_options plain = {0};
  lode_status st;
  memset(w, 0, sizeof *w);
  mem_arena_init(&w->arena, 0);
  TRY_GOTO(world_check_stamp(store, project, err));
  TRY_GOTO(lode_collection_open(store, STR_LIT(INDEXER_COLL_SYMBOLS), &plain, &w->tables, err));
  TRY_GOTO(lode_collection_open(store, STR_LIT(INDEXER_COLL_CODE), &plain, &w->code, err));
  w->by_path = symbols_map_new();
  w->defs.last = symbols_map_new();
  w->uses.last = symbols_map_new();
  w->asked = symbols_map_new();
  w->weak = symbols_map_new();
  if (!w->by_path || !w->defs.last || !w->uses.last || !w->asked || !w->weak) st = err_nomem(err);
done:
  if (st != LODE_OK) symbols_close(w);
  return st;
}

static void places_release(symbols_places *p) {
  symbols_map_free(p->last);
  mem_free(p->v);
  mem_free(p->next);
}

void symbols_close(symbols_world *w) {
  if (w->tables) lode_collection_close(w->tables);
  if (w->code) lode_collection_close(w->code);
  for (size_t i = 0; i < w->n_files; i++) chunk_symbols_release(&w->files[i].table);
  symbols_map_free(w->by_path);
  symbols_map_free(w->asked);
  symbols_map_free(w->weak);
  mem_free(w->weak_targets);
  mem_free(w->files);
  places_release(&w->defs);
  places_release(&w->uses);
  mem_arena_release(&w->arena);
  memset(w, 0, sizeof *w);
}

/* ---- One table ---- */

static lode_status places_add(symbols_places *p, lode_str name, symbols_id id, lode_error *err) {
  uint32_t *last = symbols_map_find(p->last, name);
  if (!mem_grow(&p->v, &p->cap, p->n + 1, sizeof *p->v) || !mem_grow(&p->next, &p->next_cap, p->n + 1, sizeof *p->next))
    return err_nomem(err);
  uint32_t added = (uint32_t)p->n + 1;
  p->v[p->n] = id;
  p->next[p->n++] = last ? p->next[*last - 1] : added;
  if (last) {
    p->next[*last - 1] = added;
    *last = added;
    return LODE_OK;
  }
  return symbols_map_put(p->last, name, added) ? LODE_OK : err_nomem(err);
}

/* Entries of a name are added in the order of their numbers: a lower one is the first again. */
static bool places_next(const symbols_places *p, lode_str name, uint32_t *at, symbols_id *id) {
  const uint32_t *last = *at ? NULL : symbols_map_find(p->last, name);
  if (!*at && !last) return false;
  uint32_t next = p->next[(*at ? *at : *last) - 1];
  if (next <= *at) return false;
  *at = next;
  *id = p->v[next - 1];
  return true;
}

static lode_status world_add_names(symbols_world *w, uint32_t file, lode_error *err) {
  const chunk_symbols *t = &w->files[file].table;
  for (size_t i = 0; i < t->n_defs; i++)
    TRY(places_add(&w->defs, t->defs[i].name, (symbols_id){file, (uint32_t)i}, err));
  return LODE_OK;
}

lode_status symbols_index_uses(symbols_world *w, lode_error *err) {
  for (; w->n_used < w->n_files; w->n_used++) {
    const chunk_symbols *t = &w->files[w->n_used].table;
    for (size_t i = 0; i < t->n_refs; i++)
      TRY(places_add(&w->uses, t->refs[i].name, (symbols_id){(uint32_t)w->n_used, (uint32_t)i}, err));
  }
  return LODE_OK;
}

static lode_status world_list_imports(symbols_world *w, symbols_file *f, lode_error *err) {
  size_t n = 0;
  for (size_t i = 0; i < f->table.n_refs; i++) n += f->table.refs[i].use == CHUNK_USE_IMPORT;
  f->imports = mem_arena_alloc(&w->arena, (n + 1) * sizeof *f->imports);
  if (!f->imports) return err_nomem(err);
  for (size_t i = 0; i < f->table.n_refs; i++)
    if (f->table.refs[i].use == CHUNK_USE_IMPORT) f->imports[f->n_imports++] = (uint32_t)i;
  return LODE_OK;
}

static lode_status world_add_row(symbols_world *w, const lode_row *row, json_doc *json, lode_error *err) {
  lode_str table;
  symbols_file f = {0};
  if (symbols_map_find(w->by_path, row->id)) return LODE_OK;
  lode_status st = indexer_symbols_parse(row->metadata, json, &table, &f.language);
  if (st == LODE_NOMEM) return err_nomem(err);
  if (st != LODE_OK) {
    w->damaged++;
    return LODE_OK;
  }
  w->bytes += table.len;
  if (w->bytes > SYMBOLS_MAX_BYTES)
    return err_set(err, LODE_LIMIT, "the project has more symbols than this looks at: name a folder");
  char *path = mem_arena_copy(&w->arena, row->id.data, row->id.len),
       *text = mem_arena_copy(&w->arena, table.data, table.len);
  if (!path || !text || !mem_grow(&w->files, &w->files_cap, w->n_files + 1, sizeof *w->files)) return err_nomem(err);
  st = chunk_symbols_decode((lode_str){text, table.len}, &f.table, err);
  if (st == LODE_CORRUPT) {
    chunk_symbols_release(&f.table);
    err_clear(err);
    w->damaged++;
    return LODE_OK;
  }
  f.path = (lode_str){path, row->id.len};
  f.uses = lang_uses_of(f.language);
  f.family = lang_family(f.language);
  if (st == LODE_OK) st = world_list_imports(w, &f, err);
  w->files[w->n_files++] = f; /* closing the world releases its table */
  TRY(st);
  if (!symbols_map_put(w->by_path, f.path, (uint32_t)w->n_files - 1)) return err_nomem(err);
  return world_add_names(w, (uint32_t)w->n_files - 1, err);
}

static lode_status world_add_rows(symbols_world *w, const lode_get_request *get, uint64_t *next, lode_error *err) {
  lode_result *rows = NULL;
  json_doc json = {0};
  lode_status st = lode_get(w->tables, get, &rows, err);
  for (size_t i = 0; i < lode_result_count(rows) && st == LODE_OK; i++)
    st = world_add_row(w, lode_result_at(rows, i), &json, err);
  *next = st == LODE_OK ? lode_result_next(rows) : 0;
  lode_result_free(rows);
  json_release(&json);
  return st;
}

bool symbols_spend(symbols_world *w, uint64_t steps) {
  w->steps += steps;
  if (w->steps > SYMBOLS_MAX_STEPS) w->more = true;
  return w->steps <= SYMBOLS_MAX_STEPS;
}

size_t symbols_first_ref(const chunk_symbols *table, uint32_t line) {
  size_t low = 0, high = table->n_refs;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (table->refs[middle].line < line)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* ---- Several ---- */

lode_status symbols_load_all(symbols_world *w, lode_progress progress, lode_error *err) {
  lode_get_request get = {.limit = SYMBOLS_LOAD_BATCH, .include = LODE_METADATA};
  if (w->whole) return LODE_OK;
  do {
    TRY(world_add_rows(w, &get, &get.after, err));
    if (progress.step && !progress.step(progress.ctx, "reading symbols", w->n_files, 0))
      return err_set(err, LODE_CANCELLED, "interrupted");
  } while (get.after);
  w->whole = true;
  return LODE_OK;
}

static lode_status world_load_ids(symbols_world *w, const lode_str *ids, size_t n, lode_error *err) {
  for (size_t at = 0; at < n; at += SYMBOLS_LOAD_BATCH) {
    size_t some = n - at < SYMBOLS_LOAD_BATCH ? n - at : SYMBOLS_LOAD_BATCH;
    lode_get_request get = {.select = {.ids = ids + at, .n_ids = some}, .include = LODE_METADATA};
    uint64_t next;
    TRY(world_add_rows(w, &get, &next, err));
  }
  return LODE_OK;
}

lode_status symbols_load_file(symbols_world *w, lode_str path, uint32_t *file, lode_error *err) {
  uint32_t *known = symbols_map_find(w->by_path, path);
  if (!known) {
    TRY(world_load_ids(w, &path, 1, err));
    known = symbols_map_find(w->by_path, path);
  }
  *file = known ? *known : UINT32_MAX;
  return LODE_OK;
}

/* The files of chunks, whose ids are ordered or not. */
static lode_status world_load_chunks(symbols_world *w, const lode_result *chunks, lode_error *err) {
  lode_str *paths = mem_calloc(lode_result_count(chunks) + 1, sizeof *paths);
  symbols_map *seen = symbols_map_new();
  size_t n = 0;
  lode_status st = paths && seen ? LODE_OK : err_nomem(err);
  for (size_t i = 0; i < lode_result_count(chunks) && st == LODE_OK; i++) {
    lode_str path;
    if (!indexer_chunk_id_parse(lode_result_at(chunks, i)->id, &path, NULL) || !path.len ||
        symbols_map_find(w->by_path, path) || symbols_map_find(seen, path))
      continue;
    paths[n++] = path;
    if (!symbols_map_put(seen, path, 1)) st = err_nomem(err);
  }
  if (st == LODE_OK) st = world_load_ids(w, paths, n, err);
  symbols_map_free(seen);
  mem_free(paths);
  return st;
}

lode_status symbols_load_below(symbols_world *w, lode_str path, lode_error *err) {
  uint32_t file;
  if (path.len) {
    TRY(symbols_load_file(w, path, &file, err));
    if (file != UINT32_MAX) return LODE_OK;
  }
  return symbols_load_all(w, (lode_progress){0}, err);
}

/* Remembers that a name was asked about; true: it was before. Names are asked about in two ways. */
static lode_status world_was_asked(symbols_world *w, lode_str name, char how, bool *was, lode_error *err) {
  char *key = mem_arena_alloc(&w->arena, name.len + 2);
  if (!key) return err_nomem(err);
  key[0] = how;
  memcpy(key + 1, name.data, name.len);
  *was = symbols_map_find(w->asked, (lode_str){key, name.len + 1}) != NULL;
  return *was || symbols_map_put(w->asked, (lode_str){key, name.len + 1}, 1) ? LODE_OK : err_nomem(err);
}

/* The files of the chunks with this name under a key: {"KEY":NAME}, or {"KEY":{"OPERATOR":NAME}}. */
static lode_status world_load_named(symbols_world *w, const char *before, lode_str name, const char *after,
                                    lode_error *err) {
  strbuf where = {0};
  lode_result *rows = NULL;
  strbuf_addstr(&where, before);
  json_put_string(&where, name);
  strbuf_addstr(&where, after);
  lode_get_request get = {.select = {.where = {where.data, where.len}}, .limit = SYMBOLS_DEF_CHUNKS};
  lode_status st = where.failed ? err_nomem(err) : lode_get(w->code, &get, &rows, err);
  if (st == LODE_OK) st = world_load_chunks(w, rows, err);
  if (lode_result_count(rows) == SYMBOLS_DEF_CHUNKS) w->more = true;
  lode_result_free(rows);
  strbuf_release(&where);
  return st;
}

lode_status symbols_load_defs(symbols_world *w, lode_str name, lode_error *err) {
  bool was;
  if (w->whole || !name.len) return LODE_OK;
  TRY(world_was_asked(w, name, 'd', &was, err));
  if (was) return LODE_OK;
  /* two questions, not one with $or: the metadata index answers each */
  TRY(world_load_named(w, "{\"name\":", name, "}", err));
  return world_load_named(w, "{\"defs\":{\"$contains\":", name, "}}", err);
}

/* Reads all tables when questions have cost as much as that. */
static lode_status world_load_rest(symbols_world *w, bool one_word, lode_error *err) {
  if (!w->n_tables) TRY(lode_count(w->tables, &w->n_tables, err));
  w->asked_cost += one_word ? SYMBOLS_COST_WORD : SYMBOLS_COST_PARTS;
  if (w->n_tables > SYMBOLS_FEW_FILES || w->asked_cost <= 100) return LODE_OK;
  return symbols_load_all(w, (lode_progress){0}, err);
}

/* What the text index is asked for. A name without _ and digits is one word of the index, if its humps are not told
 * apart: then no chunks are looked at that hold its parts alone. */
static lode_str world_words_of(lode_str name, char *lower, size_t size, bool *one_word) {
  *one_word = name.len < size;
  for (size_t i = 0; i < name.len && *one_word; i++) {
    char c = name.data[i];
    *one_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    lower[i] = (char)(c | 0x20);
  }
  return *one_word ? (lode_str){lower, name.len} : name;
}

lode_status symbols_load_users(symbols_world *w, lode_str name, lode_error *err) {
  strbuf contains = {0};
  lode_result *rows = NULL;
  char lower[100];
  bool was, one_word;
  if (w->whole || !name.len) return LODE_OK;
  TRY(world_was_asked(w, name, 'u', &was, err));
  if (was) return LODE_OK;
  lode_str words = world_words_of(name, lower, sizeof lower, &one_word);
  TRY(world_load_rest(w, one_word, err));
  w->n_asked++;
  if (w->whole) return LODE_OK;
  strbuf_addstr(&contains, "{\"$contains\":");
  json_put_string(&contains, name);
  strbuf_addch(&contains, '}');
  lode_query_request q = {.mode = LODE_BY_TEXT,
                          .texts = &words,
                          .n = 1,
                          .k = SYMBOLS_USE_CHUNKS,
                          .select = {.where_document = {contains.data, contains.len}}};
  lode_status st = contains.failed ? err_nomem(err) : lode_query(w->code, &q, &rows, err);
  if (st == LODE_OK) st = world_load_chunks(w, rows, err);
  if (lode_result_count(rows) == SYMBOLS_USE_CHUNKS) w->more = true;
  lode_result_free(rows);
  strbuf_release(&contains);
  return st;
}

/* ---- Definitions ---- */

bool symbols_is_function(lang_kind k) {
  return k == LANG_KIND_FUNCTION || k == LANG_KIND_METHOD || k == LANG_KIND_CONSTRUCTOR || k == LANG_KIND_MACRO;
}

bool symbols_is_type(lang_kind k) {
  return k == LANG_KIND_CLASS || k == LANG_KIND_STRUCT || k == LANG_KIND_UNION || k == LANG_KIND_ENUM ||
         k == LANG_KIND_INTERFACE || k == LANG_KIND_TRAIT || k == LANG_KIND_TYPE;
}

const chunk_def *symbols_def(const symbols_world *w, symbols_id id) {
  return id.def == CHUNK_NO_DEF ? NULL : &w->files[id.file].table.defs[id.def];
}

bool symbols_next_def(const symbols_world *w, lode_str name, uint32_t *at, symbols_id *id) {
  return places_next(&w->defs, name, at, id);
}

bool symbols_next_use(const symbols_world *w, lode_str name, uint32_t *at, symbols_id *id) {
  return places_next(&w->uses, name, at, id);
}

static lode_str world_last_part(lode_str s) {
  size_t n = s.len;
  while (n && s.data[n - 1] != '.' && s.data[n - 1] != ':' && s.data[n - 1] != '\\') n--;
  return (lode_str){s.data + n, s.len - n};
}

lode_str symbols_parent(const symbols_world *w, symbols_id id) {
  const chunk_def *d = symbols_def(w, id);
  if (!d) return STR_LIT("");
  if (d->scope.len && d->kind != LANG_KIND_NAMESPACE) return world_last_part(d->scope);
  const chunk_def *outer = symbols_def(w, (symbols_id){id.file, d->outer});
  return outer && (symbols_is_type(outer->kind) || outer->kind == LANG_KIND_IMPL) ? outer->name : STR_LIT("");
}

void symbols_put_name(const symbols_world *w, symbols_id id, strbuf *out) {
  const chunk_def *chain[16], *d = symbols_def(w, id);
  size_t n = 0;
  while (d && n < sizeof chain / sizeof *chain) {
    chain[n++] = d;
    d = symbols_def(w, (symbols_id){id.file, d->outer});
  }
  for (size_t i = n; i-- > 0;) {
    if (chain[i]->scope.len) {
      strbuf_add(out, chain[i]->scope.data, chain[i]->scope.len);
      strbuf_addch(out, '.');
    }
    strbuf_add(out, chain[i]->name.data, chain[i]->name.len);
    if (i) strbuf_addch(out, '.');
  }
}

symbols_id symbols_at_line(const symbols_world *w, uint32_t file, uint32_t line) {
  const chunk_symbols *t = &w->files[file].table;
  symbols_id best = {file, CHUNK_NO_DEF};
  for (size_t i = 0; i < t->n_defs && t->defs[i].line <= line; i++)
    if (t->defs[i].end_line >= line) best.def = (uint32_t)i;
  return best;
}

bool symbols_add_id(symbols_ids *ids, symbols_id id) {
  if (symbols_has_id(ids, id)) return true;
  if (!mem_grow(&ids->v, &ids->cap, ids->n + 1, sizeof *ids->v)) return false;
  ids->v[ids->n++] = id;
  return true;
}

bool symbols_has_id(const symbols_ids *ids, symbols_id id) {
  for (size_t i = 0; i < ids->n; i++)
    if (symbols_same(ids->v[i], id)) return true;
  return false;
}

static bool world_path_ends(lode_str path, lode_str end) {
  return path.len >= end.len && memcmp(path.data + path.len - end.len, end.data, end.len) == 0 &&
         (path.len == end.len || path.data[path.len - end.len - 1] == '/');
}

typedef struct world_asked { /* a definition by its name, as it was given in parts */
  lode_str path, outer, name;
} world_asked;

static world_asked world_split_name(lode_str given) {
  const char *colon = given.len ? memchr(given.data, ':', given.len) : NULL;
  bool by_path = colon && colon + 1 < given.data + given.len && colon[1] != ':' && colon > given.data;
  lode_str path = by_path ? (lode_str){given.data, (size_t)(colon - given.data)} : STR_LIT("");
  lode_str rest = by_path ? (lode_str){colon + 1, given.len - path.len - 1} : given;
  lode_str name = world_last_part(rest), outer = {rest.data, rest.len - name.len};
  while (outer.len && strchr(".:\\", outer.data[outer.len - 1])) outer.len--;
  return (world_asked){.path = path, .outer = world_last_part(outer), .name = name};
}

static lode_status world_match(symbols_world *w, const world_asked *a, symbols_ids *ids, lode_error *err) {
  symbols_id id;
  for (uint32_t at = 0; symbols_next_def(w, a->name, &at, &id) && ids->n < SYMBOLS_MAX_CANDIDATES;) {
    if (a->path.len && !world_path_ends(w->files[id.file].path, a->path)) continue;
    const chunk_def *around = symbols_def(w, (symbols_id){id.file, symbols_def(w, id)->outer});
    bool inside = str_eq(symbols_parent(w, id), a->outer) || (around && str_eq(around->name, a->outer));
    if (a->outer.len && !inside) continue;
    if (!symbols_add_id(ids, id)) return err_nomem(err);
  }
  return LODE_OK;
}

/* The nearest base that has it. */
static lode_status world_match_bases(symbols_world *w, const world_asked *a, symbols_ids *ids, lode_error *err) {
  lode_str chain[SYMBOLS_MAX_BASES] = {a->outer};
  size_t n = 1;
  if (!a->outer.len) return LODE_OK;
  TRY(symbols_add_bases(w, NULL, chain, &n, err));
  for (size_t i = 1; i < n && !ids->n; i++) {
    world_asked of_base = {.outer = chain[i], .name = a->name};
    TRY(world_match(w, &of_base, ids, err));
  }
  return LODE_OK;
}

typedef struct world_place {
  symbols_id id;
  lode_str path;
  uint32_t line;
  int rank;
} world_place;

static int world_compare_places(const void *a, const void *b) {
  const world_place *x = a, *y = b;
  if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
  int order = str_cmp(x->path, y->path);
  return order ? order : x->line < y->line ? -1 : x->line > y->line;
}

static lode_status world_sort(const symbols_world *w, symbols_ids *ids, lode_error *err) {
  const unsigned aside = SCAN_PATH_TEST | SCAN_PATH_VENDORED | SCAN_PATH_EXAMPLE | SCAN_PATH_LEGACY;
  world_place *places = mem_calloc(ids->n + 1, sizeof *places);
  if (!places) return err_nomem(err);
  for (size_t i = 0; i < ids->n; i++) {
    const chunk_def *d = symbols_def(w, ids->v[i]);
    lode_str path = w->files[ids->v[i].file].path;
    places[i] = (world_place){.id = ids->v[i], .path = path, .line = d->line};
    places[i].rank = 2 * d->declared + ((scan_path_flags(path) & aside) != 0);
  }
  if (ids->n) qsort(places, ids->n, sizeof *places, world_compare_places);
  for (size_t i = 0; i < ids->n; i++) ids->v[i] = places[i].id;
  mem_free(places);
  return LODE_OK;
}

lode_status symbols_find(symbols_world *w, lode_str given, symbols_ids *ids, lode_error *err) {
  world_asked asked = world_split_name(given);
  TRY(symbols_load_defs(w, asked.name, err));
  TRY(world_match(w, &asked, ids, err));
  if (!ids->n) {
    /* fields, enumerators and what is defined inside functions are no definitions of chunks */
    TRY(symbols_load_users(w, asked.name, err));
    TRY(world_match(w, &asked, ids, err));
  }
  if (!ids->n) TRY(world_match_bases(w, &asked, ids, err));
  return world_sort(w, ids, err);
}
