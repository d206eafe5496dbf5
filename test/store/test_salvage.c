/* SPDX-License-Identifier: Apache-2.0 */
/* test_salvage.c - what is brought over from a damaged store: all that is whole, nothing that is not, and nothing else.
 *
 * A small store of 512-byte pages is read once while it is whole. Then it is damaged in many ways, salvaged, and the
 * new store is compared record by record: each must be the original, or lack exactly the part that was reported as
 * lost; each missing one must have been on the damaged page, and have been reported. */
#include "support/fault.h"
#include "support/scene.h"
#include "repair/repair_internal.h"
#include "support/test.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/byteorder.h"
#include "base/crc32c.h"

#define S(text) ((lode_str){text, sizeof(text) - 1})
#define DIM 8
#define WIDE 200 /* a vector that does not fit a page */
#define PAGE 512

/* ---- The store ---- */

typedef struct kept {
  char collection[32], id[64];
  char *document, *metadata;
  size_t document_len, metadata_len;
  float vector[WIDE];
  uint32_t dimension;
} kept;

typedef struct ground {
  char base[400], work[400], file[500], to[400], journal[500];
  kept *rows; /* in order, collection by collection */
  size_t n;
  char *bytes;
  size_t len;
  uint32_t pages;
} ground;

static void fill(float *v, int n, int k) {
  for (int d = 0; d < n; d++) v[d] = (float)((k * 37 + d * 11) % 97) / 97.0f - 0.4f;
}

static void put(lode_collection *c, int k, int dim) {
  char id[32], meta[200], *doc = malloc(4000);
  float v[WIDE];
  lode_error err = {0};
  snprintf(id, sizeof id, "item-%03d", k);
  snprintf(meta, sizeof meta, "{\"n\":%d,\"path\":\"src/file%d.c\",\"odd\":%s,\"tags\":[\"t%d\",\"all\"]}", k, k % 7,
           k % 2 ? "true" : "false", k % 3);
  int len = snprintf(doc, 4000, "document %d about getUserName in src/file%d.c", k, k % 7);
  if (k % 10 == 3) /* over several pages */
    while (len < 1500 + k * 10) len += snprintf(doc + len, 4000 - (size_t)len, " word%d", len * k);
  fill(v, dim, k);
  lode_record r = {.id = {id, strlen(id)}};
  if (k % 8 != 7) r.metadata = (lode_str){meta, strlen(meta)};
  if (k % 6 != 5) r.document = (lode_str){doc, (size_t)len};
  if (k % 9 != 8) {
    r.vector = v;
    r.dimension = (uint32_t)dim;
  }
  OK(lode_upsert(c, NULL, &r, 1, NULL, &err));
  free(doc);
}

static void drop_some(lode_collection *c, int from, int step, int n) {
  lode_error err = {0};
  for (int i = 0; i < n; i++) {
    char id[32];
    snprintf(id, sizeof id, "item-%03d", from + i * step);
    lode_str one = {id, strlen(id)};
    lode_selection sel = {.ids = &one, .n_ids = 1};
    size_t gone = 0;
    OK(lode_delete(c, NULL, &sel, &gone, &err));
    CHECK(gone == 1);
  }
}

/* Deleted and erased, deleted and not erased, changed, dropped: the salvage must not bring any of it back. */
static void make_store(const char *folder) {
  lode_store *store;
  lode_collection *a, *b, *c;
  lode_error err = {0};
  lode_open_options o = {.create = true, .page_bytes = PAGE, .no_background = true};
  lode_str counters[2] = {S("path"), S("tags")};
  lode_collection_options ca = {
      .create = true, .metric = LODE_COSINE, .counters = counters, .n_counters = 2, .metadata = S("{\"made\":1}")};
  lode_collection_options cb = {.create = true, .metric = LODE_IP, .embedder = S("model-x"), .embedder_dim = WIDE};
  lode_collection_options cc = {.create = true, .metric = LODE_L2};
  OK(lode_open(folder, &o, &store, &err));
  OK(lode_collection_open(store, S("alpha"), &ca, &a, &err));
  OK(lode_collection_open(store, S("gone"), &cc, &c, &err));
  OK(lode_collection_open(store, S("beta"), &cb, &b, &err));
  for (int k = 0; k < 70; k++) put(a, k, DIM);
  for (int k = 100; k < 120; k++) put(b, k, WIDE);
  for (int k = 200; k < 210; k++) put(c, k, DIM);
  drop_some(a, 1, 9, 6);
  OK(lode_optimize(store, (lode_progress){0}, &err));
  drop_some(a, 2, 9, 6);
  for (int k = 70; k < 80; k++) put(a, k, DIM);
  float v[DIM];
  fill(v, DIM, 500);
  lode_record change = {.id = S("item-005"),
                        .document = S("changed afterwards"),
                        .metadata = S("{\"n\":null,\"new\":1}"),
                        .vector = v,
                        .dimension = DIM};
  OK(lode_update(a, NULL, &change, 1, NULL, NULL, &err));
  put(a, 2, DIM); /* an id that was deleted, and whose first record is not erased */
  lode_collection_close(c);
  OK(lode_collection_drop(store, S("gone"), &err));
  OK(lode_collection_open(store, S("empty"), &cc, &c, &err));
  lode_collection_close(a);
  lode_collection_close(b);
  lode_collection_close(c);
  lode_close(store);
}

static char *copy_of(lode_str s, size_t *len) {
  *len = s.len;
  if (!s.data) return NULL;
  char *p = malloc(s.len + 1);
  memcpy(p, s.data, s.len);
  p[s.len] = 0;
  return p;
}

static size_t read_store(const char *folder, kept **out) {
  lode_store *store;
  lode_collection_list *list;
  lode_error err = {0};
  lode_open_options o = {.no_background = true, .read_only = true};
  size_t n = 0;
  *out = calloc(400, sizeof **out);
  OK(lode_open(folder, &o, &store, &err));
  OK(lode_collections(store, &list, &err));
  for (size_t i = 0; i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    lode_collection *c;
    lode_result *rows;
    lode_get_request req = {.include = LODE_ALL};
    OK(lode_collection_open(store, info->name, NULL, &c, &err));
    OK(lode_get(c, &req, &rows, &err));
    for (size_t r = 0; r < lode_result_count(rows); r++) {
      const lode_row *row = lode_result_at(rows, r);
      kept *k = &(*out)[n++];
      CHECK(n < 400);
      snprintf(k->collection, sizeof k->collection, "%.*s", (int)info->name.len, info->name.data);
      snprintf(k->id, sizeof k->id, "%.*s", (int)row->id.len, row->id.data);
      k->document = copy_of(row->document, &k->document_len);
      k->metadata = copy_of(row->metadata, &k->metadata_len);
      k->dimension = row->vector ? row->dimension : 0;
      CHECK(k->dimension <= WIDE);
      if (row->vector) memcpy(k->vector, row->vector, row->dimension * sizeof(float));
    }
    lode_result_free(rows);
    lode_collection_close(c);
  }
  lode_collection_list_free(list);
  lode_close(store);
  return n;
}

static void free_rows(kept *rows, size_t n) {
  for (size_t i = 0; i < n; i++) {
    free(rows[i].document);
    free(rows[i].metadata);
  }
  free(rows);
}

static void prepare(ground *g) {
  const char *folder = test_folder();
  test_srand(test_seed());
  snprintf(g->base, sizeof g->base, "%s/base", folder);
  snprintf(g->work, sizeof g->work, "%s/work", folder);
  snprintf(g->file, sizeof g->file, "%s/lode.db", g->work);
  snprintf(g->journal, sizeof g->journal, "%s/lode.db-journal", g->work);
  snprintf(g->to, sizeof g->to, "%s/new", folder);
  make_store(g->base);
  g->n = read_store(g->base, &g->rows);
  CHECK(g->n == 70 - 12 + 10 + 1 + 20);
  test_copy_tree(g->base, g->work);
  g->bytes = test_read_file(g->file, &g->len);
  CHECK(g->len % PAGE == 0);
  g->pages = (uint32_t)(g->len / PAGE);
}

static void done(ground *g) {
  free_rows(g->rows, g->n);
  free(g->bytes);
}

/* ---- Losses ---- */

typedef struct losses {
  struct {
    char what[16], collection[32], id[64];
  } all[500];
  size_t n;
} losses;

static void on_loss(void *ctx, const lode_damage *d) {
  losses *l = ctx;
  CHECK(l->n < 500 && d->detail && d->detail[0]);
  snprintf(l->all[l->n].what, 16, "%s", d->what);
  snprintf(l->all[l->n].collection, 32, "%.*s", (int)d->collection.len, d->collection.data ? d->collection.data : "");
  snprintf(l->all[l->n].id, 64, "%.*s", (int)d->id.len, d->id.data ? d->id.data : "");
  l->n++;
}

static bool was_lost(const losses *l, const char *what, const char *id) {
  for (size_t i = 0; i < l->n; i++)
    if (strcmp(l->all[i].what, what) == 0 && strcmp(l->all[i].id, id) == 0) return true;
  return false;
}

static size_t count_losses(const losses *l, const char *what) {
  size_t n = 0;
  for (size_t i = 0; i < l->n; i++) n += strcmp(l->all[i].what, what) == 0;
  return n;
}

typedef struct verdict {
  lode_status status;
  lode_salvage_report report;
  losses lost;
  size_t missing, without_document, without_vector;
  lode_error err;
} verdict;

static bool same_document(const kept *a, const kept *b) {
  return !a->document == !b->document && a->document_len == b->document_len &&
         (!a->document || memcmp(a->document, b->document, a->document_len) == 0);
}

static bool same_vector(const kept *a, const kept *b) {
  return a->dimension == b->dimension && memcmp(a->vector, b->vector, a->dimension * sizeof(float)) == 0;
}

static void compare_row(const kept *was, const kept *is, verdict *v, const char *how, size_t at) {
  bool same_meta = !was->metadata == !is->metadata && was->metadata_len == is->metadata_len &&
                   (!was->metadata || memcmp(was->metadata, is->metadata, was->metadata_len) == 0);
  CHECKF(same_meta, "%s %zu: %s has other metadata", how, at, was->id);
  if (!same_document(was, is)) {
    CHECKF(!is->document && was_lost(&v->lost, "document", was->id), "%s %zu: %s has another document", how, at,
           was->id);
    v->without_document++;
  }
  if (!same_vector(was, is)) {
    CHECKF(!is->dimension && was_lost(&v->lost, "vector", was->id), "%s %zu: %s has another vector", how, at, was->id);
    v->without_vector++;
  }
}

/* Rows of a dropped collection may come back only where the row that says so was lost, and that was reported. Deleted
 * rows that were not erased, only where the notes of their deletion were lost, which is reported unless more is
 * (`silent`). */
static size_t count_undone(const kept *rows, size_t n, const verdict *v, bool silent) {
  size_t undone = 0;
  for (size_t i = 0; i < n; i++) {
    bool dropped = strncmp(rows[i].id, "item-20", 7) == 0 && strncmp(rows[i].collection, "recovered-", 10) == 0;
    bool deleted = false;
    for (int k = 0; k < 6; k++) {
      char id[16];
      snprintf(id, sizeof id, "item-%03d", 2 + 9 * k);
      deleted |= k > 0 && strcmp(rows[i].id, id) == 0;
    }
    CHECK(!dropped || count_losses(&v->lost, "collection") > 0);
    undone += dropped || (deleted && (silent || count_losses(&v->lost, "deletion") > 0));
  }
  return undone;
}

/* Salvages the work folder and compares. Rows of "recovered-N" count as those of their collection. `silent`: so much is
 * damaged that nothing may be left that speaks of a lost record. */
static void salvage_some(ground *g, verdict *v, bool silent, const char *how, size_t at) {
  kept *rows = NULL;
  memset(v, 0, sizeof *v);
  test_remove_tree(g->to);
  v->status = lode_salvage(g->work, g->to, on_loss, &v->lost, (lode_progress){0}, &v->report, &v->err);
  if (v->status != LODE_OK) {
    CHECKF(v->err.text[0] && access(g->to, F_OK) != 0, "%s %zu: %s", how, at, v->err.text);
    return;
  }
  size_t n = read_store(g->to, &rows);
  CHECKF(n == v->report.records, "%s %zu: %zu rows, and the report says %llu", how, at, n,
         (unsigned long long)v->report.records);
  size_t last = 0;
  for (size_t i = 0; i < g->n; i++) {
    size_t k = 0;
    while (k < n && strcmp(rows[k].id, g->rows[i].id) != 0) k++; /* ids differ between the collections, too */
    if (k == n) {
      CHECKF(silent || was_lost(&v->lost, "record", g->rows[i].id) || was_lost(&v->lost, "record", ""),
             "%s %zu: %s is missing without a word", how, at, g->rows[i].id);
      v->missing++;
      continue;
    }
    bool moved = strncmp(rows[k].collection, "recovered-", 10) == 0;
    CHECKF(moved || strcmp(rows[k].collection, g->rows[i].collection) == 0, "%s %zu: %s changed its collection", how,
           at, rows[k].id);
    compare_row(&g->rows[i], &rows[k], v, how, at);
    if (i && strcmp(g->rows[i - 1].collection, g->rows[i].collection) == 0)
      CHECKF(k >= last, "%s %zu: %s is out of order", how, at, rows[k].id);
    last = k;
  }
  size_t undone = count_undone(rows, n, v, silent);
  CHECKF(n + v->missing == g->n + undone, "%s %zu: %zu rows that nobody added", how, at,
         n + v->missing - g->n - undone);
  /* rows that came back count as well */
  CHECK(v->report.without_document >= v->without_document && v->report.without_vector >= v->without_vector);
  CHECK(silent || (v->report.without_document == v->without_document && v->report.without_vector == v->without_vector));
  free_rows(rows, n);
}

static void salvage(ground *g, verdict *v, const char *how, size_t at) { salvage_some(g, v, false, how, at); }

static void damage(ground *g, size_t at, const void *bytes, size_t n) {
  char *copy = malloc(g->len);
  memcpy(copy, g->bytes, g->len);
  memcpy(copy + at, bytes, n);
  test_write_file(g->file, copy, g->len);
  free(copy);
}

/* ---- What is on which page ---- */

typedef struct page_map {
  sqf_page_use use;
  unsigned type; /* first byte of its b-tree header */
  unsigned rows[REPAIR_ROW_ID + 1];
  bool chain; /* an overflow page of a record */
} page_map;

static void mark_chain(ground *g, const sqf_cell *row, page_map *map) {
  uint32_t next = row->overflow;
  while (next >= 2 && next <= g->pages && !map[next].chain) {
    const unsigned char *p = (unsigned char *)g->bytes + (size_t)(next - 1) * PAGE;
    map[next].chain = true;
    next = num_be32(p);
  }
}

static page_map *map_pages(ground *g) {
  page_map *map = calloc(g->pages + 1, sizeof *map);
  vfs_pages pages;
  lode_error err = {0};
  unsigned char page[PAGE];
  test_write_file(g->file, g->bytes, g->len);
  OK(vfs_pages_open(g->file, &pages, &err));
  CHECK(pages.src.page_bytes == PAGE && pages.src.pages == g->pages && pages.declared == g->pages && pages.has_map);
  for (uint32_t n = 1; n <= g->pages; n++) {
    sqf_view view;
    sqf_cell row;
    map[n].use = vfs_pages_use_of(&pages, n);
    CHECKF(vfs_pages_read(&pages, n, page), "page %u of a whole file", n);
    if (map[n].use != SQF_PAGE_TREE && map[n].use != SQF_PAGE_ROOT) continue;
    map[n].type = page[n == 1 ? 100 : 0];
    if (!sqf_view_page(&pages.src, n, page, &view) || !sqf_view_has_rows(&view)) continue;
    for (uint32_t i = 0; i < view.cells; i++) {
      size_t offset = sqf_view_cell(&pages.src, &view, i);
      CHECKF(offset && sqf_cell_parse_row(&pages.src, &view, offset, &row), "cell %u of page %u", i, n);
      repair_row_kind kind = repair_row_kind_of(&row, &view);
      map[n].rows[kind]++;
      if (kind == REPAIR_ROW_RECORD) mark_chain(g, &row, map);
    }
  }
  vfs_pages_close(&pages);
  return map;
}

/* ---- Tests ---- */

TEST(whole_store) {
  ground g;
  verdict v;
  prepare(&g);
  salvage(&g, &v, "whole", 0);
  CHECKF(v.status == LODE_OK, "%s", v.err.text);
  CHECK(v.lost.n == 0 && v.missing == 0 && v.report.lost == 0 && v.report.damaged_pages == 0 &&
        v.report.pages == g.pages);
  CHECK(v.report.records == g.n && v.report.without_vector == 0 && v.report.without_document == 0);

  size_t len;
  char *after = test_read_file(g.file, &len);
  CHECK(len == g.len && memcmp(after, g.bytes, len) == 0);
  free(after);

  /* collections keep what describes them */
  lode_store *store;
  lode_collection_list *list;
  lode_collection *c;
  lode_facet_list *facets;
  lode_error err = {0};
  OK(lode_open(g.to, &(lode_open_options){.no_background = true}, &store, &err));
  OK(lode_collections(store, &list, &err));
  CHECK(lode_collection_list_count(list) == 3);
  const lode_collection_info *a = lode_collection_list_at(list, 0), *b = lode_collection_list_at(list, 1);
  CHECK(a->metric == LODE_COSINE && a->dimension == DIM && str_eq(a->metadata, S("{\"made\":1}")));
  CHECK(b->metric == LODE_IP && b->dimension == WIDE && str_eq(b->embedder, S("model-x")) && b->embedder_dim == WIDE);
  CHECK(str_eq(lode_collection_list_at(list, 2)->name, S("empty")));
  lode_collection_list_free(list);
  OK(lode_collection_open(store, S("alpha"), NULL, &c, &err));
  OK(lode_counters(c, S("path"), &facets, &err));
  uint64_t total = 0;
  for (size_t i = 0; i < lode_facet_list_count(facets); i++) total += lode_facet_list_at(facets, i)->count;
  size_t with_path = 0;
  for (size_t i = 0; i < g.n; i++)
    with_path +=
        strcmp(g.rows[i].collection, "alpha") == 0 && g.rows[i].metadata && strstr(g.rows[i].metadata, "\"path\"");
  CHECK(total == with_path);
  lode_facet_list_free(facets);
  lode_collection_close(c);
  OK(lode_optimize(store, (lode_progress){0}, &err));
  OK(lode_verify(store, NULL, NULL, (lode_progress){0}, &err));
  lode_close(store);
  done(&g);
}

TEST_SLOW(flipped_bytes, 600) {
  ground g;
  verdict v;
  prepare(&g);
  page_map *map = map_pages(&g);
  size_t step = test_full() ? 1 : 1 + test_below(2 * g.len / 100);
  for (size_t at = test_full() ? 0 : test_below(step); at < g.len; at += step) {
    unsigned char b = (unsigned char)((unsigned char)g.bytes[at] ^ (1u << test_below(8)));
    uint32_t page = (uint32_t)(at / PAGE) + 1;
    const page_map *m = &map[page];
    damage(&g, at, &b, 1);
    salvage(&g, &v, "flip", at);
    CHECKF(v.status == LODE_OK, "flip %zu: %s", at, v.err.text);
    CHECKF(v.report.damaged_pages == (m->use != SQF_PAGE_FREE), "flip %zu: %llu damaged pages", at,
           (unsigned long long)v.report.damaged_pages);
    /* one byte is part of one row, or of what leads to rows, which is not needed */
    size_t at_most = m->rows[REPAIR_ROW_RECORD] || m->chain ? 1 : 0;
    CHECKF(v.missing <= at_most, "flip %zu on page %u: %zu records lost", at, page, v.missing);
    CHECKF(v.report.lost == v.missing, "flip %zu: %llu reported as lost, %zu are", at,
           (unsigned long long)v.report.lost, v.missing);
    CHECKF(v.without_document + v.without_vector + v.missing <= 1, "flip %zu: too much is lost", at);
  }
  free(map);
  done(&g);
}

/* Whole pages: what was on them is lost and named, everything else is there. */
TEST_SLOW(zeroed_pages, 600) {
  ground g;
  verdict v;
  unsigned char zeros[PAGE] = {0};
  prepare(&g);
  page_map *map = map_pages(&g);
  uint32_t step = test_full() ? 1 : 1 + (uint32_t)test_below(4);
  bool seen_loss = false, seen_coll = false;
  for (uint32_t page = 1; page <= g.pages; page++) {
    const page_map *m = &map[page];
    bool informative = m->rows[REPAIR_ROW_RECORD] || m->rows[REPAIR_ROW_COLLECTION];
    if (page % step && !(informative && page % 2)) continue;
    damage(&g, (size_t)(page - 1) * PAGE, zeros, PAGE);
    salvage(&g, &v, "zeroed page", page);
    CHECKF(v.status == LODE_OK, "page %u: %s", page, v.err.text);
    CHECKF(v.missing <= m->rows[REPAIR_ROW_RECORD] + m->chain, "page %u: %zu records lost", page, v.missing);
    CHECKF(v.report.lost == v.missing, "page %u: %llu reported as lost, %zu are", page,
           (unsigned long long)v.report.lost, v.missing);
    CHECKF(count_losses(&v.lost, "record") == v.missing && !was_lost(&v.lost, "record", ""),
           "page %u: a loss without its name", page);
    if (v.missing) seen_loss = true;
    if (count_losses(&v.lost, "collection")) {
      CHECKF(m->rows[REPAIR_ROW_COLLECTION], "page %u: a lost collection", page);
      seen_coll = true;
    }
  }
  CHECK(seen_loss && (seen_coll || !test_full()));
  free(map);
  done(&g);
}

TEST(header_page_destroyed) {
  ground g;
  verdict v;
  unsigned char junk[PAGE];
  prepare(&g);
  memset(junk, 0, PAGE);
  for (int round = 0; round < 3; round++) {
    damage(&g, 0, junk, round == 2 ? 20 : PAGE);
    salvage(&g, &v, "header", (size_t)round);
    CHECKF(v.status == LODE_OK, "%s", v.err.text);
    CHECK(v.missing == 0 && v.report.damaged_pages == 1 && v.without_document + v.without_vector == 0);
    for (size_t i = 0; i < PAGE; i++) junk[i] = (unsigned char)test_rand();
  }
  done(&g);
}

/* Nothing that leads to rows is needed to find them. */
TEST(inner_pages_destroyed) {
  ground g;
  verdict v;
  prepare(&g);
  page_map *map = map_pages(&g);
  char *copy = malloc(g.len);
  memcpy(copy, g.bytes, g.len);
  unsigned destroyed = 0;
  for (uint32_t n = 1; n <= g.pages; n++) {
    bool inner = map[n].use == SQF_PAGE_PTRMAP || map[n].type == 0x05 || map[n].type == 0x02 || n == 1;
    if (!inner) continue;
    for (size_t i = 0; i < PAGE; i++) copy[(size_t)(n - 1) * PAGE + i] = (char)test_rand();
    destroyed++;
  }
  CHECK(destroyed > 5);
  test_write_file(g.file, copy, g.len);
  salvage(&g, &v, "inner pages", 0);
  CHECKF(v.status == LODE_OK, "%s", v.err.text);
  CHECK(v.missing == 0 && v.without_document + v.without_vector == 0);
  CHECK(v.report.damaged_pages == destroyed);
  free(copy);
  free(map);
  done(&g);
}

TEST_SLOW(file_cut_short, 300) {
  ground g;
  verdict v;
  prepare(&g);
  for (int i = 0; i < (test_full() ? 400 : 25); i++) {
    size_t len = i == 0 ? g.len - 1 : test_below(g.len);
    test_write_file(g.file, g.bytes, len);
    salvage_some(&g, &v, true, "cut at", len);
    if (len >= PAGE)
      CHECKF(v.status == LODE_OK, "cut at %zu: %s", len, v.err.text);
    else
      CHECK(v.status == LODE_CORRUPT || v.status == LODE_OK);
    if (len >= PAGE && len / PAGE < g.pages) CHECK(count_losses(&v.lost, "file") == (len < g.len - PAGE + 1 ? 1 : 0));
  }
  done(&g);
}

TEST(middle_overwritten) {
  ground g;
  verdict v;
  prepare(&g);
  for (int i = 0; i < 12; i++) {
    size_t from = test_below(g.len), n = test_below(g.len - from) / 2 + 1;
    char *junk = calloc(1, n);
    if (i % 2)
      for (size_t k = 0; k < n; k++) junk[k] = (char)test_rand();
    damage(&g, from, junk, n);
    salvage_some(&g, &v, true, "overwritten from", from);
    CHECKF(v.status == LODE_OK, "%s", v.err.text);
    free(junk);
  }
  done(&g);
}

TEST(not_a_store) {
  ground g;
  verdict v;
  char junk[5000];
  prepare(&g);
  for (size_t i = 0; i < sizeof junk; i++) junk[i] = (char)test_rand();
  const struct {
    const void *bytes;
    size_t len;
  } files[] = {{"corrupted", 9}, {"", 0}, {junk, sizeof junk}, {junk, 511}, {junk, 4096}};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    test_write_file(g.file, files[i].bytes, files[i].len);
    salvage(&g, &v, "not a store", i);
    CHECKF(v.status == LODE_CORRUPT, "%s", lode_status_name(v.status));
  }
  lode_error err = {0};
  FAILS(LODE_NOT_FOUND, lode_salvage("/no/such/place", g.to, NULL, NULL, (lode_progress){0}, NULL, &err));
  test_write_file(g.file, g.bytes, g.len);
  scene_set_format(g.file, 9);
  FAILS(LODE_TOO_NEW, lode_salvage(g.work, g.to, NULL, NULL, (lode_progress){0}, NULL, &err));
  unlink(g.file);
  FAILS(LODE_NOT_FOUND, lode_salvage(g.work, g.to, NULL, NULL, (lode_progress){0}, NULL, &err));
  done(&g);
}

static bool stop_at(void *ctx, const char *phase, uint64_t at, uint64_t total) {
  int *left = ctx;
  (void)phase, (void)at, (void)total;
  return --*left > 0;
}

TEST(target_and_cancel) {
  ground g;
  lode_error err = {0};
  lode_salvage_report report;
  prepare(&g);
  FAILS(LODE_EXISTS, lode_salvage(g.work, g.base, NULL, NULL, (lode_progress){0}, &report, &err));
  for (int left = 1; left < 200; left += 7) {
    int n = left;
    lode_status st = lode_salvage(g.work, g.to, NULL, NULL, (lode_progress){stop_at, &n}, &report, &err);
    if (st == LODE_OK) break;
    CHECK(st == LODE_CANCELLED && report.records == 0 && access(g.to, F_OK) != 0);
  }
  /* nothing is left over beside the target but what was there */
  test_remove_tree(g.to);
  char parent[500];
  snprintf(parent, sizeof parent, "%.*s", (int)(strrchr(g.to, '/') - g.to), g.to);
  os_dir *folder = os_dir_open(parent);
  int names = 0;
  while (os_dir_next(folder)) names++;
  os_dir_close(folder);
  CHECK(names == 2);
  /* an empty folder is taken, a file as the source too */
  CHECK(mkdir(g.to, 0700) == 0);
  OK(lode_salvage(g.file, g.to, NULL, NULL, (lode_progress){0}, &report, &err));
  CHECK(report.records == g.n);
  done(&g);
}

/* Too little memory is no reason to lose, or to find, anything: salvage, verify and restore do their work or say so. */
static lode_status try_salvage(ground *g, losses *lost, lode_error *err) {
  lode_salvage_report report;
  lode_status st = lode_salvage(g->work, g->to, on_loss, lost, (lode_progress){0}, &report, err);
  CHECK(st != LODE_OK || report.records == g->n);
  return st;
}

static lode_status try_verify(ground *g, losses *lost, lode_error *err) {
  lode_store *store;
  lode_status st = lode_open(g->work, &(lode_open_options){.no_background = true}, &store, err);
  if (st != LODE_OK) return st;
  st = lode_verify(store, on_loss, lost, (lode_progress){0}, err);
  lode_close(store);
  return st;
}

static lode_status try_restore(ground *g, losses *lost, lode_error *err) {
  (void)lost;
  return lode_restore(g->file, g->to, (lode_progress){0}, err);
}

TEST_SLOW(no_memory, 300) {
  static lode_status (*const acts[])(ground *, losses *, lode_error *) = {try_salvage, try_verify, try_restore};
  ground g;
  char truth[500];
  fault_alloc_install();
  prepare(&g);
  snprintf(truth, sizeof truth, "%s/lode.db", g.to);
  for (size_t a = 0; a < sizeof acts / sizeof *acts; a++) {
    losses lost = {.n = 0};
    lode_error err = {0};
    fault_alloc_set(0, false);
    CHECK(acts[a](&g, &lost, &err) == LODE_OK);
    uint64_t total = fault_alloc_count(), step = test_full() ? 1 : total / 40 + 1;
    for (uint64_t at = 1 + test_below(step); at <= total; at += step) {
      test_remove_tree(g.to);
      fault_alloc_set(at, at % 2);
      lode_status st = acts[a](&g, &lost, &err);
      fault_alloc_set(0, false);
      /* LODE_IO: SQLite takes a sync that found no memory for one that failed */
      CHECKF(st == LODE_OK || st == LODE_NOMEM || st == LODE_IO, "act %zu, call %llu: %s %s", a, (unsigned long long)at,
             lode_status_name(st), err.text);
      CHECKF(lost.n == 0, "act %zu, call %llu: %s %s", a, (unsigned long long)at, lost.all[0].what, lost.all[0].id);
      if (acts[a] == try_salvage)
        CHECKF((access(truth, F_OK) == 0) == (st == LODE_OK), "call %llu: half a store", (unsigned long long)at);
    }
    test_remove_tree(g.to);
  }
  done(&g);
}

/* ---- An interrupted transaction ---- */

/* The journal of a transaction that made `after` of `before`, as the VFS writes it. */
static void write_journal(const char *path, const char *before, size_t before_len, const char *after,
                          size_t after_len) {
  static const unsigned char magic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
  unsigned char head[512] = {0}, record[PAGE + 8];
  uint32_t records = 0, pages = (uint32_t)(before_len / PAGE);
  strbuf out = {0};
  strbuf_add(&out, head, sizeof head);
  for (uint32_t n = 1; n <= pages; n++) {
    size_t at = (size_t)(n - 1) * PAGE;
    if (at + PAGE <= after_len && memcmp(before + at, after + at, PAGE) == 0) continue;
    uint32_t sum = 7;
    num_put_be32(record, n);
    memcpy(record + 4, before + at, PAGE);
    for (uint32_t i = PAGE - 200; (int32_t)i > 0; i -= 200) sum += record[4 + i];
    num_put_be32(record + 4 + PAGE, sum);
    strbuf_add(&out, record, sizeof record);
    records++;
  }
  CHECK(records > 3);
  memcpy(head, magic, 8);
  num_put_be32(head + 8, records);
  num_put_be32(head + 12, 7);
  num_put_be32(head + 16, pages);
  num_put_be32(head + 20, 512);
  num_put_be32(head + 24, PAGE);
  num_put_le32(head + 28, crc32c_update(0, head, 28));
  num_put_le32(head + 32, 1);
  num_put_le32(head + 36, crc32c_update_u32(crc32c_update(0, head, 28), 1));
  journal_put_ids(head, journal_commit_id((const unsigned char *)before),
                  journal_commit_id((const unsigned char *)after));
  memcpy(out.data, head, sizeof head);
  test_write_file(path, out.data, out.len);
  strbuf_release(&out);
}

TEST(interrupted_transaction) {
  ground g;
  verdict v;
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  size_t len;
  prepare(&g);
  OK(lode_open(g.work, &(lode_open_options){.no_background = true}, &store, &err));
  OK(lode_collection_open(store, S("alpha"), NULL, &c, &err));
  lode_txn *txn;
  OK(lode_begin(store, &txn, &err));
  lode_record r[2] = {{.id = S("item-006"), .document = S("of a transaction that was interrupted")},
                      {.id = S("item-900")}};
  OK(lode_upsert(c, txn, r, 2, NULL, &err));
  OK(lode_commit(txn, &err));
  lode_collection_close(c);
  lode_close(store);
  char *after = test_read_file(g.file, &len);
  write_journal(g.journal, g.bytes, g.len, after, len);

  /* undone in memory: the store as it was before */
  salvage(&g, &v, "interrupted", 0);
  CHECKF(v.status == LODE_OK, "%s", v.err.text);
  CHECK(v.missing == 0 && v.lost.n == 0 && v.report.damaged_pages == 0);

  /* a page that the crash tore is whole in the journal */
  char *torn = malloc(len);
  memcpy(torn, after, len);
  for (size_t at = 0; at + PAGE <= g.len && at + PAGE <= len; at += PAGE)
    if (memcmp(g.bytes + at, after + at, PAGE) != 0) memset(torn + at + PAGE / 2, 0, PAGE / 2);
  test_write_file(g.file, torn, len);
  salvage(&g, &v, "torn", 0);
  CHECK(v.status == LODE_OK && v.missing == 0 && v.lost.n == 0 && v.report.damaged_pages == 0);

  /* the same journal is good enough for the store itself, which shows that it is a real one */
  OK(lode_open(g.work, &(lode_open_options){.no_background = true}, &store, &err));
  lode_close(store);
  kept *rows;
  size_t n = read_store(g.work, &rows);
  CHECK(n == g.n);
  free_rows(rows, n);

  /* a journal that is not whole: the file itself counts */
  test_write_file(g.file, after, len);
  write_journal(g.journal, g.bytes, g.len, after, len);
  size_t journal_len;
  char *journal = test_read_file(g.journal, &journal_len);
  journal[512 + 4 + 100] ^= 1;
  test_write_file(g.journal, journal, journal_len);
  losses lost = {.n = 0};
  lode_salvage_report report;
  test_remove_tree(g.to);
  OK(lode_salvage(g.work, g.to, on_loss, &lost, (lode_progress){0}, &report, &err));
  CHECK(report.records == g.n + 1 && lost.n == 0);
  free(journal);
  free(after);
  free(torn);
  done(&g);
}
