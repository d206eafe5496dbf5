/* schema_check.c - is the schema of a store one that Lode makes?
 *
 * A schema is SQL: triggers, views, CHECK constraints, generated columns and expression indexes in it are run by statements that
 * know nothing of them. So before SQLite parses the schema of a file, each row of it is compared with the known ones (schema.c),
 * by a reader of our own, which runs nothing and is bounded: it stops at the first row that is not known, or known and there
 * already, at the first row that is longer than any of ours, and after SCHEMA_MAX_PAGES pages.
 *
 * When. SQLite parses the schema on first use and whenever its number (the "cookie" of the header) has changed. Every transaction
 * asks for that number first, which takes the lock and does not parse; where it is not the one that was compared, the schema is
 * compared again, under the same lock that SQLite then parses it under. A new connection does both in one transaction (conn.c).
 *
 * Pages are read through SQLite's own file handle, so they are proven by their checksums, and an interrupted transaction has been
 * rolled back by then, or is read through.
 */
#include "db.h"

#define MAX_PAGES 256u       /* the known schemas have some 30 of the smallest size */
#define MAX_ROW_BYTES 2048u  /* of the known ones: below 800 */
#define ADVICE "nothing of it was run; `lode db salvage` brings the records over into a clean store"

enum { COL_TYPE, COL_NAME, COL_TABLE, COL_ROOT, COL_SQL, COLUMNS };

typedef struct comparison {
  lode__pages *p;
  const char *path, *advice;
  unsigned char *page;
  uint32_t found;                        /* objects, as bits */
  int64_t roots[LODE__SCHEMA_OBJECTS];   /* their root pages */
  uint32_t todo[MAX_PAGES], n_todo;      /* pages of the tree that are still to be read */
  strbuf payload;
} comparison;

/* ---- What is said ---- */

/* Names are somebody else's text: printable ASCII, and not much of it. */
static void show(char *out, size_t size, lode_str s) {
  size_t n = s.len < size - 1 ? s.len : size - 1;
  for (size_t i = 0; i < n; i++) out[i] = s.data[i] >= 32 && s.data[i] < 127 && s.data[i] != '"' ? s.data[i] : '?';
  out[n] = 0;
}

static lode_status foreign(comparison *c, const lode__row *row, lode_error *err) {
  char type[16], name[64];
  show(type, sizeof type, row->n > COL_TYPE ? lode__row_str(row, COL_TYPE, &c->payload) : (lode_str){NULL, 0});
  show(name, sizeof name, row->n > COL_NAME ? lode__row_str(row, COL_NAME, &c->payload) : (lode_str){NULL, 0});
  return err_set(err, LODE_CORRUPT, "%s holds the %s \"%s\", which Lode did not make: %s", c->path,
                    type[0] ? type : "object", name, c->advice);
}

static lode_status altered(const comparison *c, const lode__object *o, const char *how, lode_error *err) {
  return err_set(err, LODE_CORRUPT, "the %s \"%s\" %s in %s: %s", o->type, o->name, how, c->path, c->advice);
}

static lode_status no_tree(const comparison *c, const char *why, lode_error *err) {
  return err_set(err, LODE_CORRUPT, "the schema of %s %s: %s", c->path, why, c->advice);
}

static lode_status no_store(const char *path, lode_error *err) {
  return err_set(err, LODE_CORRUPT, "%s is not a Lode store, or its first page is damaged; `lode db salvage` brings over what "
                    "is whole", path);
}

/* ---- Rows ---- */

static bool is_text(const lode__row *row, size_t column, const strbuf *payload, const char *wanted) {
  if (!wanted) return row->cols[column].type == LODE__COL_NULL;
  return row->cols[column].type == LODE__COL_TEXT && str_eq(lode__row_str(row, column, payload), str_of(wanted));
}

static lode_status check_root(comparison *c, size_t i, int64_t root, lode_error *err) {
  const lode__object *o = &lode__schema_objects[i];
  bool is_virtual = o->own && strncmp(o->sql, "CREATE VIRTUAL", 14) == 0;
  bool possible = is_virtual ? root == 0 : root > 1 && root <= (int64_t)c->p->count;
  for (size_t k = 0; k < LODE__SCHEMA_OBJECTS && possible && !is_virtual; k++)
    possible = !(c->found & 1u << k) || c->roots[k] != root;
  if (!possible) return altered(c, o, "has a root page that cannot be its own", err);
  c->roots[i] = root;
  return LODE_OK;
}

static lode_status take_row(comparison *c, const lode__row *row, lode_error *err) {
  c->payload.len = 0;
  if (row->bytes > MAX_ROW_BYTES || row->n != COLUMNS) { /* as much as its name needs */
    strbuf_add(&c->payload, row->local, row->local_bytes);
    return c->payload.failed ? err_nomem(err) : foreign(c, row, err);
  }
  TRY(lode__row_load(c->p, row, &c->payload, err));
  for (size_t i = 0; i < LODE__SCHEMA_OBJECTS; i++) {
    const lode__object *o = &lode__schema_objects[i];
    if (!is_text(row, COL_NAME, &c->payload, o->name)) continue;
    if (!is_text(row, COL_TYPE, &c->payload, o->type)) return foreign(c, row, err);
    if (!is_text(row, COL_TABLE, &c->payload, o->table) || !is_text(row, COL_SQL, &c->payload, o->sql))
      return altered(c, o, "is not as Lode makes it", err);
    if (c->found & 1u << i) return altered(c, o, "is there twice", err);
    if (row->cols[COL_ROOT].type != LODE__COL_INT) return altered(c, o, "has no root page", err);
    TRY(check_root(c, i, lode__row_int(row, COL_ROOT, &c->payload), err));
    c->found |= 1u << i;
    return LODE_OK;
  }
  return foreign(c, row, err);
}

/* ---- The tree ---- */

static lode_status push(comparison *c, uint32_t number, lode_error *err) {
  if (number < 2 || number > c->p->count) return no_tree(c, "leads out of the file", err);
  if (c->n_todo == MAX_PAGES) return no_tree(c, "is larger than any that Lode makes", err);
  c->todo[c->n_todo++] = number;
  return LODE_OK;
}

static lode_status take_inner(comparison *c, size_t header, lode_error *err) {
  uint32_t cells = (uint32_t)c->page[header + 3] << 8 | c->page[header + 4];
  size_t pointers = header + 12;
  if (cells > (c->p->usable - pointers) / 2) return no_tree(c, "is not a tree", err);
  for (uint32_t i = 0; i < cells; i++) {
    size_t at = (size_t)c->page[pointers + 2 * i] << 8 | c->page[pointers + 2 * i + 1];
    if (at < pointers || at + 4 > c->p->usable) return no_tree(c, "is not a tree", err);
    TRY(push(c, sqf_be32(c->page + at), err));
  }
  return push(c, sqf_be32(c->page + header + 8), err);
}

/* What the header says of how the rest is to be read: as SQLite makes it, or it would be read in another way. Before any row: a newer
 * format may have others. */
static lode_status check_header(comparison *c, lode_error *err) {
  const unsigned char *head = c->page;
  if (!sqf_has_magic(head) || sqf_be32(head + 68) != LODE__APPLICATION_ID) return no_store(c->path, err);
  TRY(lode__schema_format(sqf_be32(head + 60), c->path, err));
  if (head[20] != LODE__PAGE_RESERVED || sqf_be32(head + 44) != 4 || sqf_be32(head + 56) != 1)
    return no_tree(c, "is encoded in another way than Lode's", err);
  return LODE_OK;
}

static lode_status take_page(comparison *c, uint32_t number, lode_error *err) {
  lode__page_view view;
  lode__row row;
  size_t header = number == 1 ? 100 : 0;
  if (!lode__pages_read(c->p, number, c->page))
    return err_set(err, LODE_CORRUPT, "page %u of %s is damaged; `lode db salvage` brings over what is whole", number, c->path);
  if (number == 1) TRY(check_header(c, err));
  if (c->page[header] == 0x05) return take_inner(c, header, err);
  if (c->page[header] != 0x0d || !lode__page_look(c->p, number, c->page, &view)) return no_tree(c, "is not a tree", err);
  for (uint32_t i = 0; i < view.cells; i++) {
    size_t offset = lode__page_cell(c->p, &view, i);
    if (!offset || !lode__row_at(c->p, &view, offset, &row)) return no_tree(c, "has a row that cannot be read", err);
    TRY(take_row(c, &row, err));
  }
  return LODE_OK;
}

/* ---- The whole ---- */

static lode_status find_missing(const comparison *c, lode_error *err) {
  for (size_t i = 0; i < LODE__SCHEMA_OBJECTS; i++)
    if (!(c->found & 1u << i)) return altered(c, &lode__schema_objects[i], "is missing", err);
  return LODE_OK;
}

static lode_status compare(comparison *c, lode_error *err) {
  lode_status st;
  c->page = mem_alloc(c->p->page_bytes);
  if (!c->page) return err_nomem(err);
  c->todo[c->n_todo++] = 1;
  /* the number of pages bounds the walk, should the tree be a ring */
  for (uint32_t n = 0; c->n_todo; n++) {
    if (n == MAX_PAGES) {
      st = no_tree(c, "is larger than any that Lode makes", err);
      goto done;
    }
    uint32_t number = c->todo[--c->n_todo];
    TRY_GOTO(take_page(c, number, err));
  }
  st = find_missing(c, err);
done:
  strbuf_release(&c->payload);
  mem_free(c->page);
  return st;
}

lode_status lode__schema_check_pages(lode__pages *pages, const char *path, lode_error *err) {
  comparison c = {.p = pages, .path = path, .advice = ADVICE};
  return compare(&c, err);
}

bool lode__schema_is_foreign(lode__pages *pages, const char *path, lode_error *why) {
  comparison c = {.p = pages, .path = path, .advice = "it is left behind"};
  uint64_t damaged = pages->damaged_reads;
  return compare(&c, why) == LODE_CORRUPT && pages->damaged_reads == damaged;
}

/* ---- Under SQLite's lock ---- */

static lode_status compare_open(lode__conn *conn, lode_error *err) {
  lode__truth t;
  lode__pages p = {0};
  int rc = lode__truth_open(conn, &t);
  if (rc == SQLITE_IOERR_SHORT_READ) return no_store(conn->db->path, err); /* it is empty */
  if (rc != SQLITE_OK) return lode__sql_fail(conn, rc, err);
  if (!t.page_bytes) return no_store(conn->db->path, err);
  lode__truth_pages(&t, &p);
  p.chain = mem_alloc(p.page_bytes);
  if (!p.chain) return err_nomem(err);
  comparison c = {.p = &p, .path = conn->db->path, .advice = ADVICE};
  lode_status st = compare(&c, err);
  mem_free(p.chain);
  return t.rc == SQLITE_OK ? st : lode__sql_fail(conn, t.rc, err);
}

lode_status lode__schema_check(lode__conn *conn, lode_error *err) {
  sqlite3_stmt **s = &conn->stmt[LODE__STMT_SCHEMA_COOKIE];
  int rc = *s ? SQLITE_OK : sqlite3_prepare_v3(conn->sql, "PRAGMA schema_version", -1, SQLITE_PREPARE_PERSISTENT, s, NULL);
  if (rc == SQLITE_OK) rc = sqlite3_step(*s);
  int64_t cookie = rc == SQLITE_ROW ? sqlite3_column_int64(*s, 0) : 0;
  if (rc == SQLITE_ROW) rc = sqlite3_reset(*s);
  else if (*s) sqlite3_reset(*s);
  if (rc != SQLITE_OK) return lode__sql_fail(conn, rc, err);
  if (conn->schema_known && conn->schema_cookie == cookie) return LODE_OK;
  conn->schema_known = false;
  TRY(compare_open(conn, err));
  conn->schema_known = true;
  conn->schema_cookie = cookie;
  return LODE_OK;
}
