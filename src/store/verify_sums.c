/* verify_sums.c - invariants 4 and 5 of write.c: counts, declared counters, metadata index and text index against a recount,
 * all within one transaction.
 *
 * An index is compared as a whole and in bounded memory: each of its entries is hashed (SipHash under a secret key, so that
 * no entry can be made to cancel another), and the sum of the hashes over the index must be the sum over the entries
 * that the records call for. Sums do not depend on order, so each side is one walk. Entries are (key, value, record)
 * for metadata, (key, value) times its count for counters, and (word, record, position) for text. Numbers that are equal
 * hash alike, as a counter does not tell 1 from 1.0.
 */
#include "verify.h"

#include "base/token.h"

typedef struct entries {
  uint64_t n, sum;
} entries;

enum { WANTED, HELD };

typedef struct tally {
  lode__coll said;    /* the counts and cursors of its row; name in the arena */
  bool dropped;
  uint64_t records, pending, documents, document_bytes, tombstones, untexted, unindexed, missized;
  entries terms[2], counters[2], words[2]; /* what the records call for, what is there */
} tally;

typedef struct sums {
  lode__verify *v;
  lode__watch *w;
  lode__tx *tx;
  mem_arena arena;
  tally *tallies;       /* by cid; the first has cid 0 and takes what belongs to no collection */
  size_t n, cap;
  tally *last;
  int64_t *dead;        /* sorted */
  size_t n_dead, cap_dead;
  int64_t *counted;     /* kids of declared counters, sorted */
  size_t n_counted, cap_counted;
  uint64_t *hashes;     /* terms of the record at hand */
  size_t n_hashes, cap_hashes;
  json_doc json;
  /* of the record at hand */
  tally *t;
  int64_t rid;
  bool alive;
  int64_t position;
  lode__sizes sizes;
} sums;

static const lode_str none = {NULL, 0};

static tally *tally_of(sums *s, int64_t cid) {
  if (s->last && s->last->said.cid == cid) return s->last;
  size_t low = 0, high = s->n;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    if (s->tallies[mid].said.cid < cid) low = mid + 1;
    else high = mid;
  }
  s->last = low < s->n && s->tallies[low].said.cid == cid ? &s->tallies[low] : &s->tallies[0];
  return s->last;
}

static void add(entries *e, uint64_t hash, uint64_t times) {
  e->n += times;
  e->sum += hash * times;
}

static bool same(const entries e[2]) { return e[WANTED].n == e[HELD].n && e[WANTED].sum == e[HELD].sum; }

/* ---- Hashes of entries ---- */

static uint64_t mix(uint64_t a, int64_t b, int64_t c) {
  struct {
    uint64_t a;
    int64_t b, c;
  } all = {a, b, c};
  return hash_bytes(&all, sizeof all);
}

static uint64_t hash_value(char type, const void *data, size_t len) {
  return hash_bytes(data, len) + (uint64_t)(unsigned char)type;
}

static uint64_t hash_int(int64_t i) { return hash_value('i', &i, sizeof i); }

static uint64_t hash_double(double d) {
  if (d >= -9223372036854775808.0 && d < 9223372036854775808.0 && d == (double)(int64_t)d) return hash_int((int64_t)d);
  return hash_value('d', &d, sizeof d);
}

static uint64_t hash_meta(const meta_value *v, size_t max_bytes) {
  char truth = v->i != 0;
  switch (v->type) {
    case META_INT: return hash_int(v->i);
    case META_DOUBLE: return hash_double(v->d);
    case META_BOOL: return hash_value('b', &truth, 1);
    case META_STRING: break;
  }
  return hash_value('t', v->s.data, v->s.len < max_bytes ? v->s.len : max_bytes);
}

static uint64_t hash_column(sqlite3_stmt *q, int i) {
  lode_str str = lode__column(q, i);
  switch (sqlite3_column_type(q, i)) {
    case SQLITE_INTEGER: return hash_int(sqlite3_column_int64(q, i));
    case SQLITE_FLOAT: return hash_double(sqlite3_column_double(q, i));
    case SQLITE_BLOB: return hash_value('b', str.data, str.len);
    default: return hash_value('t', str.data, str.len);
  }
}

/* ---- Walking a query ---- */

typedef lode_status row_fn(sums *s, sqlite3_stmt *q, lode_error *err);

static lode_status each(sums *s, const char *sql, row_fn *fn, lode_error *err) {
  sqlite3_stmt *q = NULL;
  lode_status st = LODE_OK;
  bool row = true;
  int rc = sqlite3_prepare_v2(s->tx->conn->sql, sql, -1, &q, NULL);
  if (rc != SQLITE_OK) {
    s->tx->failed = true;
    st = lode__sql_fail(s->tx->conn, rc, err);
  }
  while (st == LODE_OK) {
    st = lode__step(s->tx, q, &row, err);
    if (st != LODE_OK || !row) break;
    st = fn(s, q, err);
  }
  sqlite3_finalize(q);
  return st;
}

/* ---- What the rows say ---- */

static lode_status on_collection(sums *s, sqlite3_stmt *q, lode_error *err) {
  if (!mem_grow(&s->tallies, &s->cap, s->n + 1, sizeof *s->tallies)) return err_nomem(err);
  tally *t = &s->tallies[s->n];
  lode_str name = lode__column(q, 1);
  *t = (tally){
      .said = {.cid = sqlite3_column_int64(q, 0),
               .records = (uint64_t)sqlite3_column_int64(q, 2),
               .pending = (uint64_t)sqlite3_column_int64(q, 3),
               .documents = (uint64_t)sqlite3_column_int64(q, 4),
               .document_bytes = (uint64_t)sqlite3_column_int64(q, 5),
               .tombstones = (uint64_t)sqlite3_column_int64(q, 6),
               .text_cursor = sqlite3_column_int64(q, 7),
               .term_cursor = sqlite3_column_int64(q, 8),
               .untexted = (uint64_t)sqlite3_column_int64(q, 9),
               .unindexed = (uint64_t)sqlite3_column_int64(q, 10)},
      .dropped = !name.data,
  };
  if (name.data) {
    t->said.name = (lode_str){mem_arena_copy(&s->arena, name.data, name.len), name.len};
    if (!t->said.name.data) return err_nomem(err);
  }
  s->n++;
  return LODE_OK;
}

static lode_status push(int64_t **items, size_t *n, size_t *cap, int64_t key, lode_error *err) {
  if (!mem_grow(items, cap, *n + 1, sizeof **items)) return err_nomem(err);
  (*items)[(*n)++] = key;
  return LODE_OK;
}

static lode_status on_grave(sums *s, sqlite3_stmt *q, lode_error *err) {
  lode__grave tombstone;
  int64_t gid = sqlite3_column_int64(q, 0);
  if (!lode__grave_decode(gid, lode__column(q, 1), sqlite3_column_int64(q, 2), &tombstone)) return LODE_OK; /* reported with its row */
  tally_of(s, lode__key_cid(gid))->tombstones += tombstone.vid ? 1 : tombstone.n;
  for (size_t i = 0; i < tombstone.n; i++) TRY(push(&s->dead, &s->n_dead, &s->cap_dead, tombstone.rids[i], err));
  return LODE_OK;
}

static lode_status on_fresh(sums *s, sqlite3_stmt *q, lode_error *err) {
  (void)err;
  if (sqlite3_column_int64(q, 0) != sqlite3_column_int64(q, 1))
    lode__verify_found(s->v, "counter", none, none, "the number of fresh names is %lld, and a recount gives %lld",
                       (long long)sqlite3_column_int64(q, 1), (long long)sqlite3_column_int64(q, 0));
  return LODE_OK;
}

static lode_status on_counted(sums *s, sqlite3_stmt *q, lode_error *err) {
  return push(&s->counted, &s->n_counted, &s->cap_counted, sqlite3_column_int64(q, 0), err);
}

static int compare_hashes(const void *x, const void *y) {
  uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
  return (a > b) - (a < b);
}

/* ---- What the records call for ---- */

static lode_status on_value(void *ctx, lode_str key, const meta_value *value, lode_error *err) {
  sums *s = ctx;
  int64_t kid;
  TRY(lode__key_id(s->tx, s->t->said.cid, key, false, false, &kid, err));
  if (s->rid <= s->t->said.term_cursor) {
    if (!mem_grow(&s->hashes, &s->cap_hashes, s->n_hashes + 1, sizeof *s->hashes)) return err_nomem(err);
    s->hashes[s->n_hashes++] = mix(hash_meta(value, LODE__TERM_BYTES), kid, s->rid);
  }
  if (s->alive && kid && s->n_counted && bsearch(&kid, s->counted, s->n_counted, sizeof kid, sort_cmp_i64))
    add(&s->t->counters[WANTED], mix(hash_meta(value, SIZE_MAX), kid, 0), 1);
  return LODE_OK;
}

static lode_status recount_metadata(sums *s, lode_str metadata, lode_error *err) {
  lode_status st = json_parse(&s->json, metadata, NULL, err);
  if (st == LODE_NOMEM) return st;
  if (st != LODE_OK || s->json.nodes[0].type != JSON_NODE_OBJECT) { /* reported with its row */
    err_clear(err);
    return LODE_OK;
  }
  s->n_hashes = 0;
  TRY(meta_each_value(&s->json, on_value, s, err));
  if (!s->n_hashes) return LODE_OK;
  /* long strings that begin alike are one entry */
  qsort(s->hashes, s->n_hashes, sizeof *s->hashes, compare_hashes);
  for (size_t i = 0; i < s->n_hashes; i++)
    if (i == 0 || s->hashes[i] != s->hashes[i - 1]) add(&s->t->terms[WANTED], s->hashes[i], 1);
  return LODE_OK;
}

static int on_token(void *ctx, const token_item *token) {
  sums *s = ctx;
  if (!token->same_place || s->position < 0) s->position++;
  add(&s->t->words[WANTED], mix(hash_bytes(token->text, token->len), s->rid, s->position), 1);
  return 0;
}

static lode_status on_record(sums *s, sqlite3_stmt *q, lode_error *err) {
  s->rid = sqlite3_column_int64(q, 0);
  tally *t = s->t = tally_of(s, lode__key_cid(s->rid));
  s->alive = !(s->n_dead && bsearch(&s->rid, s->dead, s->n_dead, sizeof s->rid, sort_cmp_i64));
  t->records += s->alive;
  t->pending += s->alive && sqlite3_column_int64(q, 1) == 0;
  t->untexted += s->rid > t->said.text_cursor;
  t->unindexed += s->rid > t->said.term_cursor;
  lode_str metadata = lode__column(q, 2);
  if (metadata.data) TRY(recount_metadata(s, metadata, err));
  if (sqlite3_column_type(q, 3) == SQLITE_NULL) return LODE_OK;
  lode_str text = lode__column(q, 3);
  t->documents += s->alive;
  t->document_bytes += s->alive ? text.len : 0;
  s->position = -1;
  if (s->rid > t->said.text_cursor) return LODE_OK;
  (void)token_split(text.data, text.len, on_token, s);
  uint64_t least;
  TRY(lode__sizes_get(s->tx, &s->sizes, s->rid, &least, err));
  t->missized += least != 0 && least != lode__size_least(lode__size_code(text.len));
  return LODE_OK;
}

/* ---- What is there ---- */

static lode_status on_term(sums *s, sqlite3_stmt *q, lode_error *err) {
  int64_t rid = sqlite3_column_int64(q, 2);
  (void)err;
  add(&tally_of(s, lode__key_cid(rid))->terms[HELD], mix(hash_column(q, 1), sqlite3_column_int64(q, 0), rid), 1);
  return LODE_OK;
}

static lode_status on_counter(sums *s, sqlite3_stmt *q, lode_error *err) {
  (void)err;
  add(&tally_of(s, sqlite3_column_int64(q, 3))->counters[HELD], mix(hash_column(q, 1), sqlite3_column_int64(q, 0), 0),
      (uint64_t)sqlite3_column_int64(q, 2));
  return LODE_OK;
}

static lode_status on_word(sums *s, sqlite3_stmt *q, lode_error *err) {
  lode_str word = lode__column(q, 0);
  int64_t rid = sqlite3_column_int64(q, 1);
  (void)err;
  add(&tally_of(s, lode__key_cid(rid))->words[HELD], mix(hash_bytes(word.data, word.len), rid, sqlite3_column_int64(q, 2)), 1);
  return LODE_OK;
}

/* ---- The steps ---- */

static lode_status read_rows(sums *s, lode_error *err) {
  if (!mem_grow(&s->tallies, &s->cap, 1, sizeof *s->tallies)) return err_nomem(err);
  s->tallies[0] = (tally){.dropped = true};
  s->n = 1;
  TRY(each(s, "SELECT cid,name,records,pending,documents,document_bytes,graves,text_cursor,term_cursor,untexted,unindexed"
                    " FROM collection WHERE cid>0 ORDER BY cid", on_collection, err));
  TRY(each(s, "SELECT gid,rids,vid FROM grave", on_grave, err));
  TRY(each(s, "SELECT count(*),(SELECT v FROM state WHERE k=6) FROM fresh", on_fresh, err));
  TRY(each(s, "SELECT kid FROM metakey WHERE counted=1 ORDER BY kid", on_counted, err));
  if (s->n_dead) qsort(s->dead, s->n_dead, sizeof *s->dead, sort_cmp_i64);
  return each(s, "SELECT r.rid,r.vid,r.meta,d.text FROM record AS r LEFT JOIN document AS d ON d.rid=r.rid AND r.doc IS NOT NULL"
                 " ORDER BY r.rid", on_record, err);
}

static lode_status read_terms(sums *s, lode_error *err) { return each(s, "SELECT kid,value,rid FROM term", on_term, err); }

static lode_status read_counters(sums *s, lode_error *err) {
  return each(s, "SELECT c.kid,c.value,c.n,k.cid FROM counter AS c LEFT JOIN metakey AS k ON k.kid=c.kid", on_counter, err);
}

/* The table lives in the connection alone; it shows the index as it is, words, records and positions. */
static lode_status read_words(sums *s, lode_error *err) {
  lode__conn *conn = s->tx->conn;
  TRY(lode__exec(conn, "CREATE VIRTUAL TABLE IF NOT EXISTS temp.lode_words USING fts5vocab('main','text','instance')", err));
  TRY(each(s, "SELECT term,doc,offset FROM temp.lode_words", on_word, err));
  return lode__exec(conn, "DROP TABLE temp.lode_words", err);
}

/* ---- The verdict ---- */

static void compare_count(sums *s, const tally *t, const char *name, uint64_t said, uint64_t counted) {
  if (said != counted)
    lode__verify_found(s->v, "counter", t->said.name, none, "%s is %llu, and a recount gives %llu", name,
                       (unsigned long long)said, (unsigned long long)counted);
}

static void compare_entries(sums *s, const tally *t, const char *what, const char *name, const entries e[2]) {
  if (same(e)) return;
  lode__verify_found(s->v, what, t->said.name, none, "%s holds %llu entries, and the records call for %llu%s", name,
                     (unsigned long long)e[HELD].n, (unsigned long long)e[WANTED].n,
                     e[HELD].n == e[WANTED].n ? " others" : "");
}

static void compare(sums *s) {
  for (size_t i = 0; i < s->n; i++) {
    const tally *t = &s->tallies[i];
    const lode__coll *c = &t->said;
    if (!t->dropped) { /* the counts of a dropped collection are not kept while it is erased */
      compare_count(s, t, "records", c->records, t->records);
      compare_count(s, t, "pending", c->pending, t->pending);
      compare_count(s, t, "documents", c->documents, t->documents);
      compare_count(s, t, "document_bytes", c->document_bytes, t->document_bytes);
      compare_count(s, t, "graves", c->tombstones, t->tombstones);
      compare_count(s, t, "untexted", c->untexted, t->untexted);
      compare_count(s, t, "unindexed", c->unindexed, t->unindexed);
      compare_entries(s, t, "counter", "declared counters", t->counters);
    }
    if (i == 0 && !t->terms[HELD].n && !t->words[HELD].n) continue; /* rows of no collection are reported elsewhere */
    compare_entries(s, t, "metadata index", "the metadata index", t->terms);
    compare_entries(s, t, "text index", "the text index", t->words);
    if (t->missized)
      lode__verify_found(s->v, "text index", t->said.name, none, "of %llu documents it holds another length than they have",
                         (unsigned long long)t->missized);
  }
}

static void release(sums *s) {
  mem_arena_release(&s->arena);
  mem_free(s->tallies);
  mem_free(s->dead);
  mem_free(s->counted);
  mem_free(s->hashes);
  json_release(&s->json);
}

static lode_status begin(sums *s, lode_error *err) {
  TRY(lode__tx_begin(s->w->db, LODE__READ, &s->tx, err));
  lode__watch_begin(s->w, s->tx->conn->sql);
  return LODE_OK;
}

static void end(sums *s) {
  if (!s->tx) return;
  lode__watch_end(s->tx->conn->sql);
  lode__tx_rollback(s->tx);
  s->tx = NULL;
}

lode_status lode__verify_sums(lode__verify *v, lode__watch *w, lode_error *err) {
  static const struct {
    lode_status (*read)(sums *s, lode_error *err);
    const char *what;
  } steps[] = {{read_rows, "structure"}, {read_terms, "metadata index"}, {read_counters, "counter"}, {read_words, "text index"}};
  enum { STEPS = sizeof steps / sizeof *steps };
  char faults[STEPS][200] = {{0}};
  bool comparable = true;
  lode_status st;
  sums s = {.v = v, .w = w};
  mem_arena_init(&s.arena, 0);
  TRY_GOTO(begin(&s, err));
  for (size_t i = 0; i < STEPS; i++) {
    st = steps[i].read(&s, err);
    if (w->interrupted || w->cancelled) goto done;
    if (st == LODE_OK) continue;
    if (st != LODE_CORRUPT) goto done;
    /* The transaction is over: the others are still read, to see whether they can be, and compared no more. */
    snprintf(faults[i], sizeof faults[i], "%.199s", err->text);
    comparable = false;
    err_clear(err);
    end(&s);
    TRY_GOTO(begin(&s, err));
  }
  st = LODE_OK;
  if (comparable) compare(&s);
  for (size_t i = 0; i < STEPS; i++)
    if (faults[i][0] && !(i == 0 && v->n_found)) /* records that cannot be read were named before */
      lode__verify_found(v, steps[i].what, none, none, "it cannot be read to its end: %s", faults[i]);
done:
  end(&s);
  release(&s);
  return st;
}
