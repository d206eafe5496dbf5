/* SPDX-License-Identifier: Apache-2.0 */
/* schema_check.c - is the schema of a file the one that Lode creates?
 *
 * A schema is SQL: triggers, views, CHECK constraints, generated columns and expression indexes in it are executed by
 * statements that do not mention them. So before SQLite parses the schema of a file, each row of it is compared with
 * the known ones (schema.c) by a reader of our own, which executes nothing and is bounded: it stops at the first row
 * that is unknown, duplicate or longer than any of ours, and after SCHEMA_MAX_PAGES pages.
 *
 * When: SQLite parses the schema on first use and whenever its number (the schema cookie in the header) has changed.
 * Every transaction first queries that number, which takes the lock but does not parse. If it is not the one that was
 * checked, the schema is checked again, under the same lock under which SQLite then parses it. A new connection does
 * both in one transaction (conn.c).
 *
 * Pages are read through SQLite's own file handle, so their checksums are verified, and an interrupted transaction
 * has been rolled back by then, or is hidden by the rollback view of the VFS.
 */
#include "store/schema.h"

#define SCHEMA_MAX_PAGES 256u      /* our schema takes about 30 pages of the smallest size */
#define SCHEMA_MAX_ROW_BYTES 2048u /* our rows are below 800 bytes */
#define SCHEMA_ADVICE "nothing of it was run; `lode db salvage` brings the records over into a clean store"

enum { SCHEMA_COL_TYPE, SCHEMA_COL_NAME, SCHEMA_COL_TABLE, SCHEMA_COL_ROOT, SCHEMA_COL_SQL, SCHEMA_COLUMNS };

typedef struct schema_comparison {
  vfs_pages *p;
  const char *path, *advice;
  unsigned char *page;
  uint32_t found;                          /* bit i: object i was found */
  int64_t roots[STORE_SCHEMA_OBJECTS];     /* root pages of the objects found */
  uint32_t todo[SCHEMA_MAX_PAGES], n_todo; /* pages of the tree still to be read */
  strbuf payload;
} schema_comparison;

/* ---- Errors ---- */

/* Names in a foreign schema are untrusted: only printable ASCII is shown, and at most `size` bytes. */
static void schema_show_name(char *out, size_t size, lode_str s) {
  size_t n = s.len < size - 1 ? s.len : size - 1;
  for (size_t i = 0; i < n; i++) out[i] = s.data[i] >= 32 && s.data[i] < 127 && s.data[i] != '"' ? s.data[i] : '?';
  out[n] = 0;
}

static lode_status schema_foreign_object(schema_comparison *c, const sqf_cell *row, lode_error *err) {
  char type[16], name[64];
  schema_show_name(type, sizeof type,
                   row->n > SCHEMA_COL_TYPE ? sqf_cell_str(row, SCHEMA_COL_TYPE, &c->payload) : (lode_str){NULL, 0});
  schema_show_name(name, sizeof name,
                   row->n > SCHEMA_COL_NAME ? sqf_cell_str(row, SCHEMA_COL_NAME, &c->payload) : (lode_str){NULL, 0});
  return err_set(err, LODE_CORRUPT, "%s holds the %s \"%s\", which Lode did not make: %s", c->path,
                 type[0] ? type : "object", name, c->advice);
}

static lode_status schema_altered(const schema_comparison *c, const store_schema_object *o, const char *how,
                                  lode_error *err) {
  return err_set(err, LODE_CORRUPT, "the %s \"%s\" %s in %s: %s", o->type, o->name, how, c->path, c->advice);
}

static lode_status schema_no_tree(const schema_comparison *c, const char *why, lode_error *err) {
  return err_set(err, LODE_CORRUPT, "the schema of %s %s: %s", c->path, why, c->advice);
}

static lode_status schema_not_a_store(const char *path, lode_error *err) {
  return err_set(err, LODE_CORRUPT,
                 "%s is not a Lode store, or its first page is damaged; `lode db salvage` brings over what "
                 "is whole",
                 path);
}

/* ---- Rows ---- */

static bool schema_column_is(const sqf_cell *row, size_t column, const strbuf *payload, const char *wanted) {
  if (!wanted) return row->cols[column].type == SQF_NULL;
  return row->cols[column].type == SQF_TEXT && str_eq(sqf_cell_str(row, column, payload), str_of(wanted));
}

static lode_status schema_check_root(schema_comparison *c, size_t i, int64_t root, lode_error *err) {
  const store_schema_object *o = &store_schema_objects[i];
  bool is_virtual = o->own && strncmp(o->sql, "CREATE VIRTUAL", 14) == 0;
  bool possible = is_virtual ? root == 0 : root > 1 && root <= (int64_t)c->p->src.pages;
  for (size_t k = 0; k < STORE_SCHEMA_OBJECTS && possible && !is_virtual; k++)
    possible = !(c->found & 1u << k) || c->roots[k] != root;
  if (!possible) return schema_altered(c, o, "has a root page that cannot be its own", err);
  c->roots[i] = root;
  return LODE_OK;
}

static lode_status schema_compare_row(schema_comparison *c, const sqf_cell *row, lode_error *err) {
  c->payload.len = 0;
  if (row->bytes > SCHEMA_MAX_ROW_BYTES || row->n != SCHEMA_COLUMNS) { /* the local part is enough for its name */
    strbuf_add(&c->payload, row->local, row->local_bytes);
    return c->payload.failed ? err_nomem(err) : schema_foreign_object(c, row, err);
  }
  bool cut;
  TRY(sqf_cell_load(&c->p->src, row, &c->payload, &cut, err));
  if (cut) return schema_no_tree(c, "has a row that cannot be read", err);
  for (size_t i = 0; i < STORE_SCHEMA_OBJECTS; i++) {
    const store_schema_object *o = &store_schema_objects[i];
    if (!schema_column_is(row, SCHEMA_COL_NAME, &c->payload, o->name)) continue;
    if (!schema_column_is(row, SCHEMA_COL_TYPE, &c->payload, o->type)) return schema_foreign_object(c, row, err);
    if (!schema_column_is(row, SCHEMA_COL_TABLE, &c->payload, o->table) ||
        !schema_column_is(row, SCHEMA_COL_SQL, &c->payload, o->sql))
      return schema_altered(c, o, "is not as Lode makes it", err);
    if (c->found & 1u << i) return schema_altered(c, o, "is there twice", err);
    if (row->cols[SCHEMA_COL_ROOT].type != SQF_INT) return schema_altered(c, o, "has no root page", err);
    TRY(schema_check_root(c, i, sqf_cell_int(row, SCHEMA_COL_ROOT, &c->payload), err));
    c->found |= 1u << i;
    return LODE_OK;
  }
  return schema_foreign_object(c, row, err);
}

/* ---- The tree ---- */

static lode_status schema_push_page(schema_comparison *c, uint32_t number, lode_error *err) {
  if (number < 2 || number > c->p->src.pages) return schema_no_tree(c, "leads out of the file", err);
  if (c->n_todo == SCHEMA_MAX_PAGES) return schema_no_tree(c, "is larger than any that Lode makes", err);
  c->todo[c->n_todo++] = number;
  return LODE_OK;
}

static lode_status schema_push_children(schema_comparison *c, const sqf_view *view, lode_error *err) {
  for (uint32_t i = 0; i <= view->cells; i++) TRY(schema_push_page(c, sqf_view_child(&c->p->src, view, i), err));
  return LODE_OK;
}

/* The header fields that define how the rest is read must be as we write them. Checked before any row, because a
 * newer format may have other rows. */
static lode_status schema_check_header(schema_comparison *c, lode_error *err) {
  const unsigned char *head = c->page;
  if (!sqf_has_magic(head) || num_be32(head + 68) != STORE_APPLICATION_ID) return schema_not_a_store(c->path, err);
  TRY(store_schema_check_format(num_be32(head + 60), c->path, err));
  if (head[20] != VFS_SEAL_BYTES || num_be32(head + 44) != 4 || num_be32(head + 56) != 1)
    return schema_no_tree(c, "is encoded in another way than Lode's", err);
  return LODE_OK;
}

static lode_status schema_read_page(schema_comparison *c, uint32_t number, lode_error *err) {
  sqf_view view;
  sqf_cell row;
  if (!vfs_pages_read(c->p, number, c->page))
    return err_set(err, LODE_CORRUPT, "page %u of %s is damaged; `lode db salvage` brings over what is whole", number,
                   c->path);
  if (number == 1) TRY(schema_check_header(c, err));
  if (!sqf_view_page(&c->p->src, number, c->page, &view) || !sqf_view_is_table(&view))
    return schema_no_tree(c, "is not a tree", err);
  if (sqf_view_is_inner(&view)) return schema_push_children(c, &view, err);
  for (uint32_t i = 0; i < view.cells; i++) {
    size_t offset = sqf_view_cell(&c->p->src, &view, i);
    if (!offset || !sqf_cell_parse_row(&c->p->src, &view, offset, &row))
      return schema_no_tree(c, "has a row that cannot be read", err);
    TRY(schema_compare_row(c, &row, err));
  }
  return LODE_OK;
}

/* ---- The whole schema ---- */

static lode_status schema_find_missing(const schema_comparison *c, lode_error *err) {
  for (size_t i = 0; i < STORE_SCHEMA_OBJECTS; i++)
    if (!(c->found & 1u << i)) return schema_altered(c, &store_schema_objects[i], "is missing", err);
  return LODE_OK;
}

static lode_status schema_compare(schema_comparison *c, lode_error *err) {
  lode_status st;
  c->page = mem_alloc(c->p->src.page_bytes);
  if (!c->page) return err_nomem(err);
  c->todo[c->n_todo++] = 1;
  /* The number of pages bounds the loop even if the tree has a cycle. */
  for (uint32_t n = 0; c->n_todo; n++) {
    if (n == SCHEMA_MAX_PAGES) {
      st = schema_no_tree(c, "is larger than any that Lode makes", err);
      goto done;
    }
    uint32_t number = c->todo[--c->n_todo];
    TRY_GOTO(schema_read_page(c, number, err));
  }
  st = schema_find_missing(c, err);
done:
  strbuf_release(&c->payload);
  mem_free(c->page);
  return st;
}

lode_status store_schema_check_pages(vfs_pages *pages, const char *path, lode_error *err) {
  schema_comparison c = {.p = pages, .path = path, .advice = SCHEMA_ADVICE};
  return schema_compare(&c, err);
}

bool store_schema_is_foreign(vfs_pages *pages, const char *path, lode_error *why) {
  schema_comparison c = {.p = pages, .path = path, .advice = "it is left behind"};
  uint64_t damaged = pages->damaged_reads;
  return schema_compare(&c, why) == LODE_CORRUPT && pages->damaged_reads == damaged;
}

/* ---- Under SQLite's lock ---- */

static lode_status schema_compare_open(store_conn *conn, lode_error *err) {
  vfs_pages p = VFS_PAGES_NONE;
  lode_status st;
  int rc = vfs_pages_attach(&p, conn->sql);
  if (rc == SQLITE_IOERR_SHORT_READ) { /* the file is empty */
    st = schema_not_a_store(conn->db->path, err);
  } else if (rc != SQLITE_OK) {
    st = store_err_sql(conn, rc, err);
  } else {
    schema_comparison c = {.p = &p, .path = conn->db->path, .advice = SCHEMA_ADVICE};
    st = schema_compare(&c, err);
    if (p.rc != SQLITE_OK) st = store_err_sql(conn, p.rc, err);
  }
  vfs_pages_close(&p);
  return st;
}

lode_status store_schema_check(store_conn *conn, lode_error *err) {
  int64_t cookie;
  TRY(store_schema_cookie(conn, &cookie, err));
  if (conn->schema_known && conn->schema_cookie == cookie) return LODE_OK;
  conn->schema_known = false;
  TRY(schema_compare_open(conn, err));
  conn->schema_known = true;
  conn->schema_cookie = cookie;
  return LODE_OK;
}
