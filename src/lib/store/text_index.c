/* SPDX-License-Identifier: Apache-2.0 */
/* text_index.c - full-text search: FTS5 with our tokenizer, and a function that counts words instead of ranking.
 *
 * The index is contentless: it stores words and positions, but no text and no lengths. The SQL function
 * lode_visit(text, ?) calls the callback of store_text_each() with the counts of the query's words in the current
 * row, and returns true if the callback failed, which ends the statement. A common word has hundreds of thousands of
 * rows; this way none of them has to be returned by sqlite3_step(). Ranking is done by the caller, with statistics of
 * the collection alone.
 *
 * A ranked search needs the length of each candidate's document, and reading the documents themselves would cost a page
 * each. So table size has a row for each block of STORE_DOC_SIZES_BLOCK keys, with a byte for each key: the exponent of
 * (bytes + 1) and the three bits after its leading one, rounded down. The decoded length is never more than the real
 * one, and at most an eighth less. 0: not known. Keys are never reused, so a byte always belongs to the same record.
 */
#include "store/text_index.h"

#include "base/token.h"

/* ---- Tokenizer ---- */

typedef struct fts_token_sink {
  void *ctx;
  int (*put)(void *ctx, int flags, const char *token, int len, int start, int end);
} fts_token_sink;

static int fts_pass_token(void *ctx, const token_item *t) {
  fts_token_sink *sink = ctx;
  return sink->put(sink->ctx, t->same_place ? FTS5_TOKEN_COLOCATED : 0, t->text, (int)t->len, (int)t->start,
                   (int)t->end);
}

static int fts_tokenizer_create(void *ctx, const char **args, int n_args, Fts5Tokenizer **out) {
  static char instance; /* the tokenizer has no state: any address will do */
  (void)ctx;
  (void)args;
  (void)n_args;
  *out = (Fts5Tokenizer *)&instance;
  return SQLITE_OK;
}

static void fts_tokenizer_delete(Fts5Tokenizer *t) { (void)t; }

/* The words of a query come from token_split() already: each is one token. */
static int fts_tokenize(Fts5Tokenizer *t, void *ctx, int flags, const char *text, int len,
                        int (*put)(void *, int, const char *, int, int, int)) {
  (void)t;
  if (len <= 0 || !text) return SQLITE_OK;
  if (flags & FTS5_TOKENIZE_QUERY) return put(ctx, 0, text, len, 0, len);
  fts_token_sink sink = {ctx, put};
  return token_split(text, (size_t)len, fts_pass_token, &sink);
}

/* ---- lode_visit ---- */

static const char fts_visit_type[] = "lode_visit";

typedef struct fts_visit {
  store_text_fn *fn;
  void *ctx;
  lode_error *err;
  lode_status st;
} fts_visit;

static int fts_count_word(const Fts5ExtensionApi *api, Fts5Context *fts, int word, uint16_t *count) {
  Fts5PhraseIter it;
  int column, offset, rc = api->xPhraseFirst(fts, word, &it, &column, &offset);
  uint16_t n = 0;
  for (; rc == SQLITE_OK && column >= 0 && n < UINT16_MAX; api->xPhraseNext(fts, &it, &column, &offset)) n++;
  *count = n;
  return rc;
}

static void fts_visit_row(const Fts5ExtensionApi *api, Fts5Context *fts, sqlite3_context *ctx, int n,
                          sqlite3_value **values) {
  uint16_t counts[STORE_TEXT_MAX_WORDS];
  fts_visit *v = n == 1 ? sqlite3_value_pointer(values[0], fts_visit_type) : NULL;
  int words = api->xPhraseCount(fts), rc = v && words <= STORE_TEXT_MAX_WORDS ? SQLITE_OK : SQLITE_MISUSE;
  for (int w = 0; w < words && rc == SQLITE_OK; w++) rc = fts_count_word(api, fts, w, &counts[w]);
  if (rc != SQLITE_OK) {
    sqlite3_result_error_code(ctx, rc);
    return;
  }
  v->st = v->fn(v->ctx, api->xRowid(fts), counts, v->err);
  sqlite3_result_int(ctx, v->st != LODE_OK);
}

/* ---- Registration ---- */

/* SQLite may read the schema to prepare even this statement (3.48 and later do), so it can fail in all the ways in
 * which reading the database can fail. */
int store_text_register(sqlite3 *sql) {
  fts5_api *api = NULL;
  sqlite3_stmt *s = NULL;
  static const fts5_tokenizer tokenizer = {fts_tokenizer_create, fts_tokenizer_delete, fts_tokenize};
  int rc = sqlite3_prepare_v2(sql, STORE_SQL_FTS5_API, -1, &s, NULL);
  if (rc == SQLITE_ERROR && strncmp(sqlite3_errmsg(sql), "no such function", 16) == 0) rc = SQLITE_NOTFOUND;
  if (rc != SQLITE_OK) return rc;
  rc = sqlite3_bind_pointer(s, 1, &api, "fts5_api_ptr", NULL);
  if (rc == SQLITE_OK) rc = sqlite3_step(s);
  int end = sqlite3_finalize(s); /* the error of the step, if it failed */
  if (rc == SQLITE_ROW || rc == SQLITE_DONE) rc = end;
  if (!api) return rc == SQLITE_OK ? SQLITE_NOTFOUND : rc;
  fts5_tokenizer copy = tokenizer;
  rc = api->xCreateTokenizer(api, "lode", NULL, &copy, NULL);
  if (rc == SQLITE_OK) rc = api->xCreateFunction(api, "lode_visit", NULL, fts_visit_row, NULL);
  return rc;
}

lode_status store_err_no_fts5(lode_error *err) {
  return err_set(err, LODE_UNSUPPORTED, "this SQLite has no FTS5: use the one of your distribution");
}

/* ---- Queries ---- */

/* "word" OR "word" ...; FTS5 accepts any bytes between quotes, with quotes doubled. */
static void fts_build_match(strbuf *b, const lode_str *words, size_t n) {
  for (size_t w = 0; w < n; w++) {
    strbuf_addstr(b, w ? " OR \"" : "\"");
    for (size_t i = 0; i < words[w].len; i++) {
      if (words[w].data[i] == '"') strbuf_addch(b, '"');
      strbuf_addch(b, words[w].data[i]);
    }
    strbuf_addch(b, '"');
  }
}

lode_status store_text_each(store_tx *tx, int64_t cid, int64_t after_rid, const lode_str *words, size_t n_words,
                            store_text_fn *fn, void *ctx, lode_error *err) {
  sqlite3_stmt *s = NULL;
  bool row;
  lode_status st = LODE_OK;
  strbuf match = {0};
  fts_visit v = {.fn = fn, .ctx = ctx, .err = err};
  if (n_words == 0) return LODE_OK;
  if (n_words > STORE_TEXT_MAX_WORDS) return err_set(err, LODE_LIMIT, "more than %d words", STORE_TEXT_MAX_WORDS);
  fts_build_match(&match, words, n_words);
  if (match.failed) {
    st = err_nomem(err);
    goto done;
  }
  TRY_GOTO(store_stmt(tx, STORE_STMT_TEXT_FIND, &s, err));
  store_bind_text(tx, s, 1, (lode_str){match.data, match.len});
  int64_t first = store_key_before_first(cid);
  store_bind_int(tx, s, 2, after_rid > first ? after_rid : first);
  store_bind_int(tx, s, 3, store_key_last(cid));
  store_bind_pointer(tx, s, 4, &v, fts_visit_type);
  TRY_GOTO(store_stmt_step(tx, s, &row, err));
  st = v.st;
done:
  store_stmt_reset(s);
  if (s) (void)sqlite3_clear_bindings(s); /* they point to this stack frame */
  strbuf_release(&match);
  return st;
}

/* ---- Writing ---- */

static lode_status fts_write_row(store_tx *tx, int which, int64_t rid, lode_str text, lode_error *err) {
  sqlite3_stmt *s;
  TRY(store_stmt_key(tx, which, rid, &s, err));
  store_bind_text(tx, s, 2, text);
  return store_stmt_run(tx, s, err);
}

lode_status store_text_add(store_tx *tx, store_doc_sizes *sizes, int64_t rid, lode_str text, lode_error *err) {
  TRY(store_doc_sizes_put(tx, sizes, rid, text.len, err));
  return fts_write_row(tx, STORE_STMT_TEXT_PUT, rid, text, err);
}

lode_status store_text_remove(store_tx *tx, int64_t rid, lode_str text, lode_error *err) {
  return fts_write_row(tx, STORE_STMT_TEXT_DELETE, rid, text, err);
}

/* ---- Lengths of documents ---- */

enum { DOC_SIZE_MANTISSA_BITS = 3 };

unsigned store_doc_size_code(uint64_t bytes) {
  uint64_t v = bytes + 1;
  unsigned e = 63u - (unsigned)__builtin_clzll(v);
  unsigned m = (unsigned)(v << DOC_SIZE_MANTISSA_BITS >> e) & ((1u << DOC_SIZE_MANTISSA_BITS) - 1);
  unsigned code = 1 + (e << DOC_SIZE_MANTISSA_BITS) + m;
  return code < 255 ? code : 255;
}

uint64_t store_doc_size_min(unsigned code) {
  if (code == 0) return 0;
  unsigned e = (code - 1) >> DOC_SIZE_MANTISSA_BITS, m = (code - 1) & ((1u << DOC_SIZE_MANTISSA_BITS) - 1);
  return ((((uint64_t)1 << DOC_SIZE_MANTISSA_BITS) + m) << e >> DOC_SIZE_MANTISSA_BITS) - 1;
}

static lode_status doc_sizes_load_block(store_tx *tx, store_doc_sizes *z, int64_t block, lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  z->loaded = false;
  memset(z->codes, 0, sizeof z->codes);
  TRY(store_stmt_key(tx, STORE_STMT_SIZES_GET, block, &s, err));
  TRY(store_stmt_step(tx, s, &row, err));
  if (row) {
    lode_str codes = store_column_str(s, 0);
    if (codes.data) memcpy(z->codes, codes.data, codes.len < sizeof z->codes ? codes.len : sizeof z->codes);
  }
  store_stmt_reset(s);
  z->block = block;
  z->loaded = true;
  return LODE_OK;
}

static lode_status doc_sizes_need_block(store_tx *tx, store_doc_sizes *z, int64_t rid, lode_error *err) {
  int64_t block = rid / STORE_DOC_SIZES_BLOCK;
  if (z->loaded && z->block == block) return LODE_OK;
  TRY(store_doc_sizes_flush(tx, z, err));
  return doc_sizes_load_block(tx, z, block, err);
}

lode_status store_doc_sizes_flush(store_tx *tx, store_doc_sizes *z, lode_error *err) {
  sqlite3_stmt *s;
  if (!z->changed) return LODE_OK;
  TRY(store_stmt_key(tx, STORE_STMT_SIZES_PUT, z->block, &s, err));
  store_bind_blob(tx, s, 2, (lode_str){(const char *)z->codes, sizeof z->codes});
  z->changed = false;
  return store_stmt_run(tx, s, err);
}

lode_status store_doc_sizes_put(store_tx *tx, store_doc_sizes *z, int64_t rid, uint64_t bytes, lode_error *err) {
  TRY(doc_sizes_need_block(tx, z, rid, err));
  z->codes[rid % STORE_DOC_SIZES_BLOCK] = (unsigned char)store_doc_size_code(bytes);
  z->changed = true;
  return LODE_OK;
}

lode_status store_doc_sizes_get(store_tx *tx, store_doc_sizes *z, int64_t rid, uint64_t *min_bytes, lode_error *err) {
  TRY(doc_sizes_need_block(tx, z, rid, err));
  *min_bytes = store_doc_size_min(z->codes[rid % STORE_DOC_SIZES_BLOCK]);
  return LODE_OK;
}

lode_status store_doc_sizes_erase(store_tx *tx, int64_t cid, lode_error *err) {
  sqlite3_stmt *s;
  TRY(store_stmt_range(tx, STORE_STMT_SIZES_ERASE, store_key_before_first(cid) / STORE_DOC_SIZES_BLOCK,
                       store_key_last(cid) / STORE_DOC_SIZES_BLOCK, &s, err));
  return store_stmt_run(tx, s, err);
}
