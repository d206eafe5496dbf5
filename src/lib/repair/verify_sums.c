/* SPDX-License-Identifier: Apache-2.0 */
/* verify_sums.c - checks invariants 4 and 5 of store_write.c: counts, declared counters, metadata index and text
 * index are compared with a recount, all within one transaction.
 *
 * An index is compared as a whole and in bounded memory: each of its entries is hashed (SipHash with a secret key, so
 * that nobody can craft entries that cancel each other), and the sum of the hashes must equal the sum over the
 * entries that the records require. Sums do not depend on order, so each side is one scan. Entries are (key, value,
 * record) for metadata, (key, value) times its count for counters, and (word, record, position) for text. Equal
 * numbers have equal hashes, because a counter does not distinguish 1 from 1.0.
 */
#include "repair/verify.h"

#include "base/token.h"
#include "store/metadata_index.h"

typedef struct sums_entries {
  uint64_t n, sum;
} sums_entries;

enum { SUMS_EXPECTED, SUMS_FOUND };

typedef struct sums_tally {
  store_coll stored; /* counts and cursors of the collection's row; name in the arena */
  bool dropped;
  uint64_t records, pending, documents, document_bytes, tombstones, untexted, unindexed, missized;
  sums_entries terms[2], counters[2], words[2]; /* required by the records (SUMS_EXPECTED), in the index (SUMS_FOUND) */
} sums_tally;

typedef struct sums_job {
  verify_job *v;
  verify_watch *w;
  store_tx *tx;
  mem_arena arena;
  sums_tally *tallies; /* sorted by cid; the first has cid 0 and counts what belongs to no collection */
  size_t n, cap;
  sums_tally *last; /* result of the last sums_tally_of() */
  int64_t *dead;    /* rids in tombstones, sorted */
  size_t n_dead, cap_dead;
  int64_t *counted; /* kids of declared counters, sorted */
  size_t n_counted, cap_counted;
  uint64_t *hashes; /* terms of the current record */
  size_t n_hashes, cap_hashes;
  json_doc json;
  /* The current record. */
  sums_tally *t;
  int64_t rid;
  bool alive;
  int64_t position;
  store_doc_sizes sizes;
} sums_job;

static const lode_str sums_no_str = {NULL, 0};

static sums_tally *sums_tally_of(sums_job *s, int64_t cid) {
  if (s->last && s->last->stored.cid == cid) return s->last;
  size_t at = 0;
  SORT_LOWER_BOUND(at, s->n, s->tallies[at].stored.cid < cid);
  s->last = at < s->n && s->tallies[at].stored.cid == cid ? &s->tallies[at] : &s->tallies[0];
  return s->last;
}

static void sums_add(sums_entries *e, uint64_t hash, uint64_t times) {
  e->n += times;
  e->sum += hash * times;
}

static bool sums_are_equal(const sums_entries e[2]) {
  return e[SUMS_EXPECTED].n == e[SUMS_FOUND].n && e[SUMS_EXPECTED].sum == e[SUMS_FOUND].sum;
}

/* ---- Hashes of entries ---- */

static uint64_t sums_mix(uint64_t a, int64_t b, int64_t c) {
  struct {
    uint64_t a;
    int64_t b, c;
  } all = {a, b, c};
  return hash_bytes(&all, sizeof all);
}

static uint64_t sums_hash_bytes(char type, const void *data, size_t len) {
  return hash_bytes(data, len) + (uint64_t)(unsigned char)type;
}

static uint64_t sums_hash_int(int64_t i) { return sums_hash_bytes('i', &i, sizeof i); }

static uint64_t sums_hash_double(double d) {
  if (d >= -9223372036854775808.0 && d < 9223372036854775808.0 && d == (double)(int64_t)d)
    return sums_hash_int((int64_t)d);
  return sums_hash_bytes('d', &d, sizeof d);
}

static uint64_t sums_hash_meta(const meta_value *v, size_t max_bytes) {
  char b = v->i != 0;
  switch (v->type) {
    case META_INT: return sums_hash_int(v->i);
    case META_DOUBLE: return sums_hash_double(v->d);
    case META_BOOL: return sums_hash_bytes('b', &b, 1);
    case META_STRING: break;
  }
  return sums_hash_bytes('t', v->s.data, v->s.len < max_bytes ? v->s.len : max_bytes);
}

static uint64_t sums_hash_column(sqlite3_stmt *q, int i) {
  lode_str str = store_column_str(q, i);
  switch (sqlite3_column_type(q, i)) {
    case SQLITE_INTEGER: return sums_hash_int(store_column_int(q, i));
    case SQLITE_FLOAT: return sums_hash_double(sqlite3_column_double(q, i));
    case SQLITE_BLOB: return sums_hash_bytes('b', str.data, str.len);
    default: return sums_hash_bytes('t', str.data, str.len);
  }
}

/* ---- Running a query ---- */

typedef lode_status sums_row_fn(sums_job *s, sqlite3_stmt *q, lode_error *err);

static lode_status sums_each_row(sums_job *s, int which, sums_row_fn *fn, lode_error *err) {
  sqlite3_stmt *q;
  bool row;
  lode_status st = store_stmt(s->tx, which, &q, err);
  if (st != LODE_OK) s->tx->failed = true;
  while (st == LODE_OK) {
    st = store_stmt_step(s->tx, q, &row, err);
    if (st != LODE_OK || !row) break;
    st = fn(s, q, err);
  }
  store_stmt_reset(q);
  return st;
}

/* ---- Rows of the small tables ---- */

static lode_status sums_on_collection(sums_job *s, sqlite3_stmt *q, lode_error *err) {
  if (!mem_grow(&s->tallies, &s->cap, s->n + 1, sizeof *s->tallies)) return err_nomem(err);
  sums_tally *t = &s->tallies[s->n];
  lode_str name = store_column_str(q, 1);
  *t = (sums_tally){
      .stored = {.cid = store_column_int(q, 0),
                 .records = (uint64_t)store_column_int(q, 2),
                 .pending = (uint64_t)store_column_int(q, 3),
                 .documents = (uint64_t)store_column_int(q, 4),
                 .document_bytes = (uint64_t)store_column_int(q, 5),
                 .tombstones = (uint64_t)store_column_int(q, 6),
                 .text_cursor = store_column_int(q, 7),
                 .term_cursor = store_column_int(q, 8),
                 .untexted = (uint64_t)store_column_int(q, 9),
                 .unindexed = (uint64_t)store_column_int(q, 10)},
      .dropped = !name.data,
  };
  if (name.data) {
    t->stored.name = (lode_str){mem_arena_copy(&s->arena, name.data, name.len), name.len};
    if (!t->stored.name.data) return err_nomem(err);
  }
  s->n++;
  return LODE_OK;
}

static lode_status sums_push_key(int64_t **items, size_t *n, size_t *cap, int64_t key, lode_error *err) {
  if (!mem_grow(items, cap, *n + 1, sizeof **items)) return err_nomem(err);
  (*items)[(*n)++] = key;
  return LODE_OK;
}

static lode_status sums_on_tombstone(sums_job *s, sqlite3_stmt *q, lode_error *err) {
  store_tombstone tombstone;
  int64_t gid = store_column_int(q, 0);
  if (!store_tombstone_decode(gid, store_column_str(q, 1), store_column_int(q, 2), &tombstone))
    return LODE_OK; /* reported by verify_rows() */
  sums_tally_of(s, store_key_cid(gid))->tombstones += tombstone.vid ? 1 : tombstone.n;
  for (size_t i = 0; i < tombstone.n; i++)
    TRY(sums_push_key(&s->dead, &s->n_dead, &s->cap_dead, tombstone.rids[i], err));
  return LODE_OK;
}

static lode_status sums_on_fresh(sums_job *s, sqlite3_stmt *q, lode_error *err) {
  (void)err;
  if (store_column_int(q, 0) != store_column_int(q, 1))
    verify_report(s->v, "counter", sums_no_str, sums_no_str,
                  "the number of fresh names is %lld, and a recount gives %lld", (long long)store_column_int(q, 1),
                  (long long)store_column_int(q, 0));
  return LODE_OK;
}

static lode_status sums_on_counted_key(sums_job *s, sqlite3_stmt *q, lode_error *err) {
  return sums_push_key(&s->counted, &s->n_counted, &s->cap_counted, store_column_int(q, 0), err);
}

static int sums_compare_hashes(const void *x, const void *y) {
  uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
  return (a > b) - (a < b);
}

/* ---- What the records require ---- */

static lode_status sums_on_value(void *ctx, lode_str key, const meta_value *value, lode_error *err) {
  sums_job *s = ctx;
  int64_t kid;
  TRY(store_metakey_id(s->tx, s->t->stored.cid, key, false, false, &kid, err));
  if (s->rid <= s->t->stored.term_cursor) {
    if (!mem_grow(&s->hashes, &s->cap_hashes, s->n_hashes + 1, sizeof *s->hashes)) return err_nomem(err);
    s->hashes[s->n_hashes++] = sums_mix(sums_hash_meta(value, STORE_TERM_MAX_BYTES), kid, s->rid);
  }
  if (s->alive && kid && s->n_counted && bsearch(&kid, s->counted, s->n_counted, sizeof kid, sort_cmp_i64))
    sums_add(&s->t->counters[SUMS_EXPECTED], sums_mix(sums_hash_meta(value, SIZE_MAX), kid, 0), 1);
  return LODE_OK;
}

static lode_status sums_recount_metadata(sums_job *s, lode_str metadata, lode_error *err) {
  lode_status st = json_parse(&s->json, metadata, NULL, err);
  if (st == LODE_NOMEM) return st;
  if (st != LODE_OK || s->json.nodes[0].type != JSON_NODE_OBJECT) { /* reported by verify_rows() */
    err_clear(err);
    return LODE_OK;
  }
  s->n_hashes = 0;
  TRY(meta_each_value(&s->json, sums_on_value, s, err));
  if (!s->n_hashes) return LODE_OK;
  /* Long strings with the same truncated prefix are one entry. */
  qsort(s->hashes, s->n_hashes, sizeof *s->hashes, sums_compare_hashes);
  for (size_t i = 0; i < s->n_hashes; i++)
    if (i == 0 || s->hashes[i] != s->hashes[i - 1]) sums_add(&s->t->terms[SUMS_EXPECTED], s->hashes[i], 1);
  return LODE_OK;
}

static int sums_on_token(void *ctx, const token_item *token) {
  sums_job *s = ctx;
  if (!token->same_place || s->position < 0) s->position++;
  sums_add(&s->t->words[SUMS_EXPECTED], sums_mix(hash_bytes(token->text, token->len), s->rid, s->position), 1);
  return 0;
}

static lode_status sums_on_record(sums_job *s, sqlite3_stmt *q, lode_error *err) {
  s->rid = store_column_int(q, 0);
  sums_tally *t = s->t = sums_tally_of(s, store_key_cid(s->rid));
  s->alive = !(s->n_dead && bsearch(&s->rid, s->dead, s->n_dead, sizeof s->rid, sort_cmp_i64));
  t->records += s->alive;
  t->pending += s->alive && store_column_int(q, 1) == 0;
  t->untexted += s->rid > t->stored.text_cursor;
  t->unindexed += s->rid > t->stored.term_cursor;
  lode_str metadata = store_column_str(q, 2);
  if (metadata.data) TRY(sums_recount_metadata(s, metadata, err));
  if (store_column_is_null(q, 3)) return LODE_OK;
  lode_str text = store_column_str(q, 3);
  t->documents += s->alive;
  t->document_bytes += s->alive ? text.len : 0;
  s->position = -1;
  if (s->rid > t->stored.text_cursor) return LODE_OK;
  (void)token_split(text.data, text.len, sums_on_token, s);
  uint64_t min_bytes;
  TRY(store_doc_sizes_get(s->tx, &s->sizes, s->rid, &min_bytes, err));
  t->missized += min_bytes != 0 && min_bytes != store_doc_size_min(store_doc_size_code(text.len));
  return LODE_OK;
}

/* ---- What the indexes hold ---- */

static lode_status sums_on_term(sums_job *s, sqlite3_stmt *q, lode_error *err) {
  int64_t rid = store_column_int(q, 2);
  (void)err;
  sums_add(&sums_tally_of(s, store_key_cid(rid))->terms[SUMS_FOUND],
           sums_mix(sums_hash_column(q, 1), store_column_int(q, 0), rid), 1);
  return LODE_OK;
}

static lode_status sums_on_counter(sums_job *s, sqlite3_stmt *q, lode_error *err) {
  (void)err;
  sums_add(&sums_tally_of(s, store_column_int(q, 3))->counters[SUMS_FOUND],
           sums_mix(sums_hash_column(q, 1), store_column_int(q, 0), 0), (uint64_t)store_column_int(q, 2));
  return LODE_OK;
}

static lode_status sums_on_word(sums_job *s, sqlite3_stmt *q, lode_error *err) {
  lode_str word = store_column_str(q, 0);
  int64_t rid = store_column_int(q, 1);
  (void)err;
  sums_add(&sums_tally_of(s, store_key_cid(rid))->words[SUMS_FOUND],
           sums_mix(hash_bytes(word.data, word.len), rid, store_column_int(q, 2)), 1);
  return LODE_OK;
}

/* ---- The steps ---- */

static lode_status sums_read_rows(sums_job *s, lode_error *err) {
  if (!mem_grow(&s->tallies, &s->cap, 1, sizeof *s->tallies)) return err_nomem(err);
  s->tallies[0] = (sums_tally){.dropped = true};
  s->n = 1;
  TRY(sums_each_row(s, STORE_STMT_SUMS_COLLECTIONS, sums_on_collection, err));
  TRY(sums_each_row(s, STORE_STMT_SUMS_TOMBSTONES, sums_on_tombstone, err));
  TRY(sums_each_row(s, STORE_STMT_SUMS_FRESH, sums_on_fresh, err));
  TRY(sums_each_row(s, STORE_STMT_SUMS_COUNTED_KEYS, sums_on_counted_key, err));
  if (s->n_dead) qsort(s->dead, s->n_dead, sizeof *s->dead, sort_cmp_i64);
  return sums_each_row(s, STORE_STMT_SUMS_RECORDS, sums_on_record, err);
}

static lode_status sums_read_terms(sums_job *s, lode_error *err) {
  return sums_each_row(s, STORE_STMT_SUMS_TERMS, sums_on_term, err);
}

static lode_status sums_read_counters(sums_job *s, lode_error *err) {
  return sums_each_row(s, STORE_STMT_SUMS_COUNTERS, sums_on_counter, err);
}

static lode_status sums_read_words(sums_job *s, lode_error *err) {
  store_conn *conn = s->tx->conn;
  TRY(store_exec(conn, STORE_SQL_SHOW_WORDS, err));
  TRY(sums_each_row(s, STORE_STMT_SUMS_WORDS, sums_on_word, err));
  return store_exec(conn, STORE_SQL_HIDE_WORDS, err);
}

/* ---- Comparison ---- */

static void sums_compare_count(sums_job *s, const sums_tally *t, const char *name, uint64_t stored, uint64_t counted) {
  if (stored != counted)
    verify_report(s->v, "counter", t->stored.name, sums_no_str, "%s is %llu, and a recount gives %llu", name,
                  (unsigned long long)stored, (unsigned long long)counted);
}

static void sums_compare_entries(sums_job *s, const sums_tally *t, const char *what, const char *name,
                                 const sums_entries e[2]) {
  if (sums_are_equal(e)) return;
  verify_report(s->v, what, t->stored.name, sums_no_str, "%s holds %llu entries, and the records call for %llu%s", name,
                (unsigned long long)e[SUMS_FOUND].n, (unsigned long long)e[SUMS_EXPECTED].n,
                e[SUMS_FOUND].n == e[SUMS_EXPECTED].n ? " others" : "");
}

static void sums_compare(sums_job *s) {
  for (size_t i = 0; i < s->n; i++) {
    const sums_tally *t = &s->tallies[i];
    const store_coll *c = &t->stored;
    if (!t->dropped) { /* the counts of a dropped collection are not maintained while it is erased */
      sums_compare_count(s, t, "records", c->records, t->records);
      sums_compare_count(s, t, "pending", c->pending, t->pending);
      sums_compare_count(s, t, "documents", c->documents, t->documents);
      sums_compare_count(s, t, "document_bytes", c->document_bytes, t->document_bytes);
      sums_compare_count(s, t, "graves", c->tombstones, t->tombstones);
      sums_compare_count(s, t, "untexted", c->untexted, t->untexted);
      sums_compare_count(s, t, "unindexed", c->unindexed, t->unindexed);
      sums_compare_entries(s, t, "counter", "declared counters", t->counters);
    }
    /* Records of no collection are reported by verify_rows(). */
    if (i == 0 && !t->terms[SUMS_FOUND].n && !t->words[SUMS_FOUND].n) continue;
    sums_compare_entries(s, t, "metadata index", "the metadata index", t->terms);
    sums_compare_entries(s, t, "text index", "the text index", t->words);
    if (t->missized)
      verify_report(s->v, "text index", t->stored.name, sums_no_str,
                    "of %llu documents it holds another length than they have", (unsigned long long)t->missized);
  }
}

static void sums_release(sums_job *s) {
  mem_arena_release(&s->arena);
  mem_free(s->tallies);
  mem_free(s->dead);
  mem_free(s->counted);
  mem_free(s->hashes);
  json_release(&s->json);
}

static lode_status sums_begin(sums_job *s, lode_error *err) {
  TRY(store_tx_begin(s->w->db, STORE_TX_READ, &s->tx, err));
  verify_watch_begin(s->w, s->tx->conn->sql);
  return LODE_OK;
}

static void sums_end(sums_job *s) {
  if (!s->tx) return;
  verify_watch_end(s->tx->conn->sql);
  store_tx_rollback(s->tx);
  s->tx = NULL;
}

lode_status verify_sums(verify_job *v, verify_watch *w, lode_error *err) {
  static const struct {
    lode_status (*read)(sums_job *s, lode_error *err);
    const char *what;
  } steps[] = {{sums_read_rows, "structure"},
               {sums_read_terms, "metadata index"},
               {sums_read_counters, "counter"},
               {sums_read_words, "text index"}};
  enum { SUMS_STEPS = sizeof steps / sizeof *steps };
  char faults[SUMS_STEPS][200] = {{0}};
  bool comparable = true;
  lode_status st;
  sums_job s = {.v = v, .w = w};
  mem_arena_init(&s.arena, 0);
  TRY_GOTO(sums_begin(&s, err));
  for (size_t i = 0; i < SUMS_STEPS; i++) {
    st = steps[i].read(&s, err);
    if (w->interrupted || w->cancelled) goto done;
    if (st == LODE_OK) continue;
    if (st != LODE_CORRUPT) goto done;
    /* The transaction is over: the other steps only check whether they can be read, and nothing is compared. */
    snprintf(faults[i], sizeof faults[i], "%.199s", err->text);
    comparable = false;
    err_clear(err);
    sums_end(&s);
    TRY_GOTO(sums_begin(&s, err));
  }
  st = LODE_OK;
  if (comparable) sums_compare(&s);
  for (size_t i = 0; i < SUMS_STEPS; i++)
    if (faults[i][0] && !(i == 0 && v->n_found)) /* unreadable records were reported before */
      verify_report(v, steps[i].what, sums_no_str, sums_no_str, "it cannot be read to its end: %s", faults[i]);
done:
  sums_end(&s);
  sums_release(&s);
  return st;
}
