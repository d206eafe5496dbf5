/* SPDX-License-Identifier: Apache-2.0 */
/* indexed_file.c - see indexed_file.h.
 *
 * The id of a chunk is PATH#N, so the chunk of a line is found by bisection, and those after it are read in order. An
 * indexer may replace the file between two reads: its state is compared at the end, and if it differs all is read
 * again.
 */
#include "search/indexed_file.h"

#include "indexer/code_record.h"
#include "indexer/index_stamp.h"
#include "search/source_place.h"

enum { INDEXED_PAGE = 64, INDEXED_TRIES = 4 };

typedef struct indexed_reader {
  search_indexed_file *out;
  lode_collection *code, *files;
  indexer_display showing;
  lode_str path;
  indexer_version version; /* which chunks are the file's: file_version.h */
  uint32_t first, last;    /* asked for */
  uint32_t at;             /* line where the text begins */
  bool torn;               /* a chunk was not there */
  json_doc json;
} indexed_reader;

/* ---- Opening ---- */

static lode_status indexed_open_one(const project_info *project, lode_store *store, const char *name,
                                    lode_collection **out, lode_error *err) {
  lode_collection_options plain = {0};
  lode_status st = lode_collection_open(store, str_of(name), &plain, out, err);
  if (st != LODE_NOT_FOUND) return st;
  return err_set(err, LODE_NOT_FOUND, "%.300s is not indexed yet: run `lode index`", project_display_name(project));
}

static lode_status indexed_open(indexed_reader *r, const project_info *project, lode_store *store, lode_error *err) {
  lode_collection_info info;
  lode_collection_list *list = NULL;
  indexer_stamp stamp = {0};
  TRY(indexed_open_one(project, store, INDEXER_COLL_CODE, &r->code, err));
  TRY(indexed_open_one(project, store, INDEXER_COLL_FILES, &r->files, err));
  TRY(lode_collections(store, &list, err));
  for (size_t i = 0; i < lode_collection_list_count(list); i++) {
    info = *lode_collection_list_at(list, i);
    if (str_eq(info.name, STR_LIT(INDEXER_COLL_FILES))) indexer_stamp_parse(info.metadata, &stamp);
  }
  lode_collection_list_free(list);
  r->showing = indexer_stamp_display(&stamp, &project->config);
  return LODE_OK;
}

/* ---- Records ---- */

static lode_status indexed_state(indexed_reader *r, indexer_file_state *state, lode_error *err) {
  lode_get_request get = {.select = {.ids = &r->path, .n_ids = 1}, .include = LODE_METADATA};
  lode_result *rows = NULL;
  char quoted[256];
  TRY(lode_get(r->files, &get, &rows, err));
  bool found = lode_result_count(rows) && search_path_is_inside(r->path) &&
               indexer_file_state_parse(lode_result_at(rows, 0)->metadata, &r->json, state);
  lode_result_free(rows);
  if (found) r->version = state->version;
  if (found && state->chunks) return LODE_OK;
  return err_set(err, LODE_NOT_FOUND, "%s is not in the index; `lode index` brings it up to date",
                 str_quote(r->path, quoted, sizeof quoted));
}

/* Chunks from..from+n-1; fewer, if the index changed meanwhile. */
static lode_status indexed_rows(indexed_reader *r, size_t from, size_t n, unsigned include, lode_result **rows,
                                lode_error *err) {
  strbuf names[INDEXED_PAGE] = {{0}};
  lode_str ids[INDEXED_PAGE];
  lode_status st = LODE_OK;
  for (size_t i = 0; i < n; i++) {
    TRY_GOTO(indexer_chunk_id(&names[i], r->path, &r->version, from + i, err));
    ids[i] = str_of(names[i].data);
  }
  lode_get_request get = {.select = {.ids = ids, .n_ids = n}, .include = include};
  st = lode_get(r->code, &get, rows, err);
done:
  for (size_t i = 0; i < n; i++) strbuf_release(&names[i]);
  return st;
}

/* The lines of a chunk; {0, 0} if it is not there. */
static lode_status indexed_lines_of(indexed_reader *r, size_t chunk, uint32_t *first, uint32_t *last, lode_error *err) {
  indexer_chunk_view view = {0};
  lode_result *rows = NULL;
  *first = *last = 0;
  TRY(indexed_rows(r, chunk, 1, LODE_METADATA, &rows, err));
  lode_status st = LODE_OK;
  if (lode_result_count(rows)) {
    st = indexer_chunk_view_parse(lode_result_at(rows, 0)->metadata, &r->json, &view, err);
    *first = view.first;
    *last = view.last;
    r->out->name.len = 0;
    strbuf_add(&r->out->name, view.language.data, view.language.len);
  }
  lode_result_free(rows);
  return st;
}

/* The last chunk that begins before the line asked for: what follows it on that line are its pieces. */
static lode_status indexed_find(indexed_reader *r, size_t chunks, size_t *found, lode_error *err) {
  size_t low = 0, high = chunks; /* chunk `low` begins before the line, or is the first */
  uint32_t first, last;
  while (high - low > 1) {
    size_t middle = low + (high - low) / 2;
    TRY(indexed_lines_of(r, middle, &first, &last, err));
    if (first && first < r->first)
      low = middle;
    else
      high = middle;
  }
  *found = low;
  return LODE_OK;
}

/* ---- Text ---- */

/* Appends a chunk's own text; false: there is enough. */
static bool indexed_add(indexed_reader *r, const indexer_chunk_view *view, lode_str document) {
  search_indexed_file *f = r->out;
  lode_str text = {document.data + view->offset, document.len - view->offset};
  if (view->first > r->last || f->bytes.len >= SEARCH_INDEXED_MAX_BYTES) return false;
  if (!r->at) r->at = view->first;
  size_t from = f->bytes.len;
  strbuf_add(&f->bytes, text.data, text.len);
  if (!f->bytes.failed) indexer_mask_for_display(r->showing, f->bytes.data + from, text.len);
  return true;
}

static lode_status indexed_collect(indexed_reader *r, size_t from, size_t chunks, lode_error *err) {
  bool more = true;
  for (size_t i = from; i < chunks && more; i += INDEXED_PAGE) {
    size_t n = chunks - i < INDEXED_PAGE ? chunks - i : INDEXED_PAGE;
    lode_result *rows = NULL;
    lode_status st = LODE_OK;
    TRY(indexed_rows(r, i, n, LODE_DOCUMENT | LODE_METADATA, &rows, err));
    r->torn = r->torn || lode_result_count(rows) != n;
    for (size_t k = 0; k < lode_result_count(rows) && more; k++) {
      const lode_row *row = lode_result_at(rows, k);
      indexer_chunk_view view;
      TRY_GOTO(indexer_chunk_view_parse(row->metadata, &r->json, &view, err));
      if (view.offset > row->document.len)
        TRY_GOTO(err_set(err, LODE_CORRUPT, "a chunk of the index has another form: `lode index --force` rebuilds it"));
      more = indexed_add(r, &view, row->document);
    }
    if (r->out->bytes.failed) st = err_nomem(err);
  done:
    lode_result_free(rows);
    if (st != LODE_OK) return st;
  }
  return LODE_OK;
}

/* From the collected text, the lines that were asked for. */
static void indexed_trim(indexed_reader *r) {
  search_indexed_file *f = r->out;
  const char *data = f->bytes.data ? f->bytes.data : "";
  size_t at = 0, end;
  uint32_t line = r->at;
  while (line < r->first && at < f->bytes.len) line += data[at++] == '\n';
  f->before = (lode_str){data, at};
  f->first = line;
  for (end = at; line <= r->last && end < f->bytes.len; end++) line += data[end] == '\n';
  f->last = end > at && data[end - 1] == '\n' ? line - 1 : line;
  f->text = (lode_str){data + at, end - at};
}

static lode_status indexed_read_once(indexed_reader *r, bool *same, lode_error *err) {
  indexer_file_state before, after;
  uint32_t first;
  size_t from;
  char quoted[256];
  r->out->bytes.len = 0;
  r->at = 0;
  r->torn = false;
  TRY(indexed_state(r, &before, err));
  TRY(indexed_lines_of(r, before.chunks - 1, &first, &r->out->lines, err));
  TRY(indexed_find(r, before.chunks, &from, err));
  TRY(indexed_collect(r, from, before.chunks, err));
  TRY(indexed_state(r, &after, err));
  *same = !r->torn && memcmp(before.hash, after.hash, sizeof before.hash) == 0 && before.chunks == after.chunks;
  if (!*same) return LODE_OK;
  indexed_trim(r);
  if (r->out->text.len || r->first == 1) return LODE_OK;
  return err_set(err, LODE_NOT_FOUND, "%s has no line %u", str_quote(r->path, quoted, sizeof quoted), r->first);
}

lode_status search_indexed_file_read(const project_info *project, lode_store *store, lode_str path, uint32_t first,
                                     uint32_t last, search_indexed_file *file, lode_error *err) {
  indexed_reader r = {.out = file, .path = path, .first = first, .last = last};
  bool same = false;
  lode_status st;
  memset(file, 0, sizeof *file);
  TRY_GOTO(indexed_open(&r, project, store, err));
  for (int i = 0; i < INDEXED_TRIES && !same; i++) TRY_GOTO(indexed_read_once(&r, &same, err));
  if (!same)
    TRY_GOTO(err_set(err, LODE_BUSY,
                     "the chunks of the file are not all there: it is being indexed, or `lode doctor` "
                     "finds what is wrong"));
  if (file->name.failed) TRY_GOTO(err_nomem(err));
  file->language = (lode_str){file->name.data ? file->name.data : "", file->name.len};
done:
  if (st != LODE_OK) search_indexed_file_release(file);
  if (r.files) lode_collection_close(r.files);
  if (r.code) lode_collection_close(r.code);
  json_release(&r.json);
  return st;
}

void search_indexed_file_release(search_indexed_file *file) {
  strbuf_release(&file->bytes);
  strbuf_release(&file->name);
  memset(file, 0, sizeof *file);
}
