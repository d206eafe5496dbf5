/* SPDX-License-Identifier: Apache-2.0 */
/* chroma_tables.c - reads the tables of chroma.sqlite3 row by row, from b-trees or as strays; see chroma_dir.h.
 * rescue_catalog.c makes collections of them. */
#include "rescue/chroma_tables.h"

#include "base/byteorder.h"

/* ---- Columns ---- */

static const struct {
  const char *name;
  const char *columns[RESCUE_MAX_COLUMNS]; /* names of the columns that are read */
  int usual[RESCUE_MAX_COLUMNS];           /* their positions when the schema is lost */
} rescue_known_tables[RESCUE_TABLE_COUNT] = {
    [RESCUE_TABLE_TENANTS] = {"tenants", {"id"}, {0}},
    [RESCUE_TABLE_DATABASES] = {"databases", {"id", "name", "tenant_id"}, {0, 1, 2}},
    [RESCUE_TABLE_COLLS] = {"collections",
                            {"id", "name", "dimension", "database_id", "config_json_str", "schema_str"},
                            {0, 1, 2, 3, 4, 5}},
    [RESCUE_TABLE_COLL_META] = {"collection_metadata",
                                {"collection_id", "key", "str_value", "int_value", "float_value", "bool_value"},
                                {0, 1, 2, 3, 4, 5}},
    [RESCUE_TABLE_SEGMENTS] = {"segments", {"id", "type", "scope", "collection"}, {0, 1, 2, 3}},
    [RESCUE_TABLE_SEGMENT_META] = {"segment_metadata",
                                   {"segment_id", "key", "str_value", "int_value", "float_value", "bool_value"},
                                   {0, 1, 2, 3, 4, 5}},
    [RESCUE_TABLE_MAX_SEQ] = {"max_seq_id", {"segment_id", "seq_id"}, {0, 1}},
    [RESCUE_TABLE_EMBEDDINGS] = {"embeddings", {"id", "segment_id", "embedding_id", "seq_id"}, {0, 1, 2, 3}},
    [RESCUE_TABLE_METADATA] = {"embedding_metadata",
                               {"id", "key", "string_value", "int_value", "float_value", "bool_value"},
                               {0, 1, 2, 3, 4, 5}},
    [RESCUE_TABLE_ARRAYS] = {"embedding_metadata_array",
                             {"id", "key", "string_value", "int_value", "float_value", "bool_value"},
                             {0, 1, 2, 3, 4, 5}},
    [RESCUE_TABLE_QUEUE] = {"embeddings_queue",
                            {"seq_id", "operation", "topic", "id", "vector", "metadata"},
                            {0, 2, 3, 4, 5, 7}},
    [RESCUE_TABLE_FULLTEXT] = {"embedding_fulltext_search_content", {"id", "c0"}, {0, 1}},
    [RESCUE_TABLE_MIGRATIONS] = {"migrations", {"dir", "version"}, {0, 1}},
};

static bool rescue_table_is_word_char(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The first word of the next definition in CREATE TABLE x (a INTEGER, b TEXT -- comment \n, PRIMARY KEY (a, b)). */
static lode_str rescue_table_next_column(lode_str sql, size_t *at) {
  lode_str word = {0};
  int depth = 0;
  size_t i = *at;
  for (; i < sql.len; i++) {
    char c = sql.data[i];
    if (c == '-' && i + 1 < sql.len && sql.data[i + 1] == '-') {
      while (i < sql.len && sql.data[i] != '\n') i++;
    } else if (c == '(') {
      depth++;
    } else if (c == ')') {
      if (depth-- == 0) break;
    } else if (c == ',' && depth == 0) {
      break;
    } else if (!word.data && rescue_table_is_word_char(c)) {
      word.data = sql.data + i;
      while (i < sql.len && rescue_table_is_word_char(sql.data[i])) i++;
      word.len = (size_t)(sql.data + i - word.data);
      i--;
    }
  }
  *at = i;
  return word;
}

static int rescue_table_column_of(lode_str sql, const char *name) {
  const char *open = sql.data ? memchr(sql.data, '(', sql.len) : NULL;
  size_t at = open ? (size_t)(open - sql.data) + 1 : sql.len;
  for (int i = 0; at < sql.len && i < SQF_MAX_COLUMNS; i++) {
    lode_str word = rescue_table_next_column(sql, &at);
    if (str_eq(word, str_of(name))) return i;
    if (at >= sql.len || sql.data[at] == ')') break;
    at++;
  }
  return -1;
}

static void stray_usual_columns(rescue_table *t, int which) {
  for (int i = 0; i < RESCUE_MAX_COLUMNS; i++)
    t->at[i] = rescue_known_tables[which].columns[i] ? rescue_known_tables[which].usual[i] : -1;
}

static bool rescue_table_sql_has(lode_str text, const char *word) {
  return text.data && memmem(text.data, text.len, word, strlen(word));
}

static lode_status rescue_table_schema_row(void *ctx, const sqf_row *row, lode_error *err) {
  rescue_dir *c = ctx;
  (void)err;
  if (row->n < 5 || row->values[3].type != SQF_INT) return LODE_OK;
  if (str_eq(row->values[0].s, STR_LIT("index"))) rescue_set_index_root(c, row->values[1].s, row->values[3].i);
  if (!str_eq(row->values[0].s, STR_LIT("table"))) return LODE_OK;
  for (int t = 0; t < RESCUE_TABLE_COUNT; t++) {
    if (!str_eq(row->values[1].s, str_of(rescue_known_tables[t].name))) continue;
    int64_t root = row->values[3].i;
    lode_str sql = row->values[4].type == SQF_TEXT ? row->values[4].s : (lode_str){0};
    c->tables[t].root = root > 0 && root <= UINT32_MAX ? (uint32_t)root : 0;
    for (int i = 0; i < RESCUE_MAX_COLUMNS; i++)
      c->tables[t].at[i] =
          rescue_known_tables[t].columns[i] ? rescue_table_column_of(sql, rescue_known_tables[t].columns[i]) : -1;
    if (t == RESCUE_TABLE_MAX_SEQ) c->seq_integer = rescue_table_sql_has(sql, "INTEGER");
    if (t == RESCUE_TABLE_MIGRATIONS) c->ordered = rescue_table_sql_has(sql, "(\n                dir TEXT");
  }
  return LODE_OK;
}

/* ---- Values ---- */

static const sqf_value rescue_table_null_value;

static const sqf_value *rescue_table_value_at(const rescue_dir *c, int table, int column, const sqf_row *row) {
  int at = c->tables[table].at[column];
  return at >= 0 && (size_t)at < row->n ? &row->values[at] : &rescue_table_null_value;
}

static lode_str rescue_table_text_at(const rescue_dir *c, int table, int column, const sqf_row *row) {
  const sqf_value *v = rescue_table_value_at(c, table, column, row);
  return v->type == SQF_TEXT ? v->s : (lode_str){0};
}

static lode_status rescue_table_keep_text(rescue_dir *c, lode_str text, lode_str *out, lode_error *err) {
  *out = (lode_str){0};
  if (!text.data) return LODE_OK;
  out->data = mem_arena_copy(&c->arena, text.data, text.len);
  out->len = text.len;
  return out->data ? LODE_OK : err_nomem(err);
}

/* An integer, or eight big-endian bytes; -1 for anything else. */
static int64_t rescue_table_seq_of(rescue_dir *c, const sqf_value *v, bool *blob) {
  *blob = false;
  if (v->type == SQF_INT) return v->i;
  if (v->type != SQF_BLOB || v->s.len != 8) return -1;
  uint64_t u = num_be64(v->s.data);
  *blob = true;
  c->blob_seqs++;
  return u > INT64_MAX ? -1 : (int64_t)u;
}

/* ---- Names: ids of segments and collections, interned as small numbers ---- */

static size_t name_slot(const rescue_dir *c, lode_str text) {
  size_t mask = c->n_slots - 1, i = (size_t)hash_bytes(text.data, text.len) & mask;
  while (c->name_slots[i] && !str_eq(c->names[c->name_slots[i] - 1].text, text)) i = (i + 1) & mask;
  return i;
}

static lode_status name_grow_slots(rescue_dir *c, lode_error *err) {
  size_t n = c->n_slots ? c->n_slots * 2 : 64;
  uint32_t *slots = mem_calloc(n, sizeof *slots);
  if (!slots) return err_nomem(err);
  mem_free(c->name_slots);
  c->name_slots = slots;
  c->n_slots = n;
  for (size_t i = 0; i < c->n_names; i++) c->name_slots[name_slot(c, c->names[i].text)] = (uint32_t)i + 1;
  return LODE_OK;
}

lode_status rescue_intern(rescue_dir *c, lode_str text, uint32_t *name, lode_error *err) {
  *name = RESCUE_NO_NAME;
  if (!text.data || text.len > 200) return LODE_OK;
  if ((c->n_names + 1) * 2 > c->n_slots) TRY(name_grow_slots(c, err));
  size_t slot = name_slot(c, text);
  if (!c->name_slots[slot]) {
    if (!mem_grow(&c->names, &c->cap_names, c->n_names + 1, sizeof *c->names)) return err_nomem(err);
    rescue_name *n = &c->names[c->n_names];
    *n = (rescue_name){.max_seq = -1};
    TRY(rescue_table_keep_text(c, text, &n->text, err));
    c->name_slots[slot] = (uint32_t)++c->n_names;
  }
  *name = c->name_slots[slot] - 1;
  return LODE_OK;
}

/* ---- One function per table ---- */

static lode_status rescue_table_progress(rescue_dir *c, lode_error *err) {
  return ++c->rows_read % 8192 ? LODE_OK : err_progress(c->progress, "reading", c->rows_read, 0, err);
}

#define ADD_RAW_ROW(list, type)                                                                                        \
  rescue_dir *c = ctx;                                                                                                 \
  rescue_raw_tables *p = c->parts;                                                                                     \
  if (!mem_grow(&p->list, &p->cap_##list, p->n_##list + 1, sizeof *p->list)) return err_nomem(err);                    \
  type *it = &p->list[p->n_##list];                                                                                    \
  *it = (type) { .stray = c->stray }

static lode_status rescue_table_database_row(void *ctx, const sqf_row *row, lode_error *err) {
  ADD_RAW_ROW(databases, rescue_database);
  TRY(rescue_table_keep_text(c, rescue_table_text_at(c, RESCUE_TABLE_DATABASES, 0, row), &it->id, err));
  TRY(rescue_table_keep_text(c, rescue_table_text_at(c, RESCUE_TABLE_DATABASES, 1, row), &it->name, err));
  TRY(rescue_table_keep_text(c, rescue_table_text_at(c, RESCUE_TABLE_DATABASES, 2, row), &it->tenant, err));
  p->n_databases += it->id.data != NULL;
  return LODE_OK;
}

static lode_status rescue_table_tenant_row(void *ctx, const sqf_row *row, lode_error *err) {
  ADD_RAW_ROW(databases, rescue_database);
  TRY(rescue_table_keep_text(c, rescue_table_text_at(c, RESCUE_TABLE_TENANTS, 0, row), &it->tenant, err));
  p->n_databases += it->tenant.data != NULL;
  return LODE_OK;
}

static lode_status rescue_table_coll_row(void *ctx, const sqf_row *row, lode_error *err) {
  ADD_RAW_ROW(collections, rescue_coll_row);
  const int t = RESCUE_TABLE_COLLS;
  it->key = row->key;
  TRY(rescue_intern(c, rescue_table_text_at(c, t, 0, row), &it->id, err));
  TRY(rescue_table_keep_text(c, rescue_table_text_at(c, t, 1, row), &it->name, err));
  const sqf_value *dim = rescue_table_value_at(c, t, 2, row);
  if (dim->type == SQF_INT && dim->i > 0 && dim->i <= LODE_MAX_DIMENSION) it->dimension = (uint32_t)dim->i;
  TRY(rescue_table_keep_text(c, rescue_table_text_at(c, t, 3, row), &it->database, err));
  TRY(rescue_table_keep_text(c, rescue_table_text_at(c, t, 4, row), &it->config, err));
  TRY(rescue_table_keep_text(c, rescue_table_text_at(c, t, 5, row), &it->schema, err));
  p->n_collections += it->id != RESCUE_NO_NAME && it->name.data;
  return LODE_OK;
}

static lode_status rescue_table_pair_row(void *ctx, int t, const sqf_row *row, lode_error *err) {
  ADD_RAW_ROW(pairs, rescue_pair);
  TRY(rescue_intern(c, rescue_table_text_at(c, t, 0, row), &it->owner, err));
  TRY(rescue_table_keep_text(c, rescue_table_text_at(c, t, 1, row), &it->key, err));
  for (int i = 2; i <= 5 && it->value.type == SQF_NULL; i++) {
    it->value = *rescue_table_value_at(c, t, i, row);
    it->is_bool = i == 5;
    it->is_real = i == 4;
  }
  if (it->value.type == SQF_TEXT) TRY(rescue_table_keep_text(c, it->value.s, &it->value.s, err));
  p->n_pairs += it->owner != RESCUE_NO_NAME && it->key.data && it->value.type != SQF_BLOB;
  return LODE_OK;
}
static lode_status rescue_coll_pair_row(void *ctx, const sqf_row *row, lode_error *err) {
  return rescue_table_pair_row(ctx, RESCUE_TABLE_COLL_META, row, err);
}
static lode_status rescue_segment_pair_row(void *ctx, const sqf_row *row, lode_error *err) {
  return rescue_table_pair_row(ctx, RESCUE_TABLE_SEGMENT_META, row, err);
}

static lode_status rescue_table_segment_row(void *ctx, const sqf_row *row, lode_error *err) {
  ADD_RAW_ROW(segments, rescue_segment_row);
  lode_str scope = rescue_table_text_at(c, RESCUE_TABLE_SEGMENTS, 2, row);
  TRY(rescue_intern(c, rescue_table_text_at(c, RESCUE_TABLE_SEGMENTS, 0, row), &it->id, err));
  TRY(rescue_intern(c, rescue_table_text_at(c, RESCUE_TABLE_SEGMENTS, 3, row), &it->collection, err));
  it->is_vector = str_eq(scope, STR_LIT("VECTOR"));
  it->is_metadata = str_eq(scope, STR_LIT("METADATA"));
  p->n_segments += it->id != RESCUE_NO_NAME;
  return LODE_OK;
}

static lode_status rescue_table_max_seq_row(void *ctx, const sqf_row *row, lode_error *err) {
  rescue_dir *c = ctx;
  uint32_t name;
  bool blob;
  TRY(rescue_intern(c, rescue_table_text_at(c, RESCUE_TABLE_MAX_SEQ, 0, row), &name, err));
  int64_t seq = rescue_table_seq_of(c, rescue_table_value_at(c, RESCUE_TABLE_MAX_SEQ, 1, row), &blob);
  if (name == RESCUE_NO_NAME || seq < 0 || (c->stray && c->names[name].max_seq >= 0)) return LODE_OK;
  c->names[name].max_seq = seq;
  c->names[name].max_seq_blob = blob;
  return LODE_OK;
}

static lode_status rescue_table_embedding_row(void *ctx, const sqf_row *row, lode_error *err) {
  rescue_dir *c = ctx;
  bool blob;
  TRY(rescue_table_progress(c, err));
  if (!mem_grow(&c->rows, &c->cap_rows, c->n_rows + 1, sizeof *c->rows)) return err_nomem(err);
  rescue_emb_row *r = &c->rows[c->n_rows];
  *r = (rescue_emb_row){.key = row->key, .stray = c->stray};
  TRY(rescue_intern(c, rescue_table_text_at(c, RESCUE_TABLE_EMBEDDINGS, 1, row), &r->segment, err));
  TRY(rescue_table_keep_text(c, rescue_table_text_at(c, RESCUE_TABLE_EMBEDDINGS, 2, row), &r->id, err));
  r->seq = rescue_table_seq_of(c, rescue_table_value_at(c, RESCUE_TABLE_EMBEDDINGS, 3, row), &blob);
  if (r->segment == RESCUE_NO_NAME || !r->id.data || r->id.len == 0) {
    c->damaged = true;
    return LODE_OK;
  }
  c->n_rows++;
  return LODE_OK;
}

lode_status rescue_add_meta(rescue_dir *c, rescue_meta meta, lode_error *err) {
  TRY(rescue_table_progress(c, err));
  if (!mem_grow(&c->metas, &c->cap_metas, c->n_metas + 1, sizeof *c->metas)) return err_nomem(err);
  meta.stray = c->stray;
  c->metas[c->n_metas++] = meta;
  return LODE_OK;
}

/* Records which rows of the two metadata tables were read. */
static lode_status rescue_table_note_key(rescue_dir *c, bool array, int64_t key, lode_error *err) {
  rescue_keys *k = &c->parts->seen[array];
  if (!mem_grow(&k->items, &k->cap, k->n + 1, sizeof *k->items)) return err_nomem(err);
  k->items[k->n++] = key;
  return LODE_OK;
}

static lode_status rescue_table_metadata_row(void *ctx, const sqf_row *row, lode_error *err) {
  rescue_dir *c = ctx;
  const sqf_value *id = rescue_table_value_at(c, RESCUE_TABLE_METADATA, 0, row);
  bool array = false;
  if (id->type != SQF_INT || (c->stray && !rescue_is_lost_row(c, row->key, id->i, &array))) return LODE_OK;
  if (!c->stray) TRY(rescue_table_note_key(c, false, row->key, err));
  return rescue_add_meta(c, (rescue_meta){.key = id->i, .order = row->key, .place = row->place, .array = array}, err);
}
static lode_status rescue_table_array_row(void *ctx, const sqf_row *row, lode_error *err) {
  rescue_dir *c = ctx;
  const sqf_value *id = rescue_table_value_at(c, RESCUE_TABLE_ARRAYS, 0, row);
  if (id->type != SQF_INT) return LODE_OK;
  TRY(rescue_table_note_key(c, true, row->key, err));
  return rescue_add_meta(c, (rescue_meta){.key = id->i, .order = row->key, .place = row->place, .array = true}, err);
}
static lode_status rescue_table_fulltext_row(void *ctx, const sqf_row *row, lode_error *err) {
  return rescue_add_meta(ctx, (rescue_meta){.key = row->key, .place = row->place, .kind = RESCUE_META_FULLTEXT}, err);
}

static lode_status rescue_table_queue_row(void *ctx, const sqf_row *row, lode_error *err) {
  rescue_dir *c = ctx;
  const int t = RESCUE_TABLE_QUEUE;
  const sqf_value *op = rescue_table_value_at(c, t, 1, row), *vector = rescue_table_value_at(c, t, 4, row);
  lode_str topic = rescue_table_text_at(c, t, 2, row), id = rescue_table_text_at(c, t, 3, row);
  TRY(rescue_table_progress(c, err));
  if (op->type != SQF_INT || op->i < 0 || op->i > 3 || !id.data || id.len == 0 || !topic.data) {
    c->damaged = true;
    return LODE_OK;
  }
  if (!mem_grow(&c->logs, &c->cap_logs, c->n_logs + 1, sizeof *c->logs)) return err_nomem(err);
  rescue_log_entry *l = &c->logs[c->n_logs];
  *l = (rescue_log_entry){.seq = row->key, .place = row->place, .op = (uint8_t)op->i};
  if (vector->type == SQF_BLOB && vector->s.len % 4 == 0 && vector->s.len <= 4 * LODE_MAX_DIMENSION)
    l->vector_bytes = (uint32_t)vector->s.len;
  for (size_t i = topic.len; i > 0; i--) /* persistent://default/default/COLLECTION */
    if (topic.data[i - 1] == '/') {
      topic = (lode_str){topic.data + i, topic.len - i};
      break;
    }
  TRY(rescue_intern(c, topic, &l->topic, err));
  TRY(rescue_table_keep_text(c, id, &l->id, err));
  c->n_logs += l->topic != RESCUE_NO_NAME;
  return LODE_OK;
}

static lode_status rescue_table_migration_row(void *ctx, const sqf_row *row, lode_error *err) {
  rescue_dir *c = ctx;
  const sqf_value *version = rescue_table_value_at(c, RESCUE_TABLE_MIGRATIONS, 1, row);
  (void)err;
  if (version->type == SQF_INT && version->i > c->migration && version->i < 1000 &&
      str_eq(rescue_table_text_at(c, RESCUE_TABLE_MIGRATIONS, 0, row), STR_LIT("metadb")))
    c->migration = (int)version->i;
  return LODE_OK;
}

static sqf_row_fn *const rescue_table_row_readers[RESCUE_TABLE_COUNT] = {
    [RESCUE_TABLE_TENANTS] = rescue_table_tenant_row,       [RESCUE_TABLE_DATABASES] = rescue_table_database_row,
    [RESCUE_TABLE_COLLS] = rescue_table_coll_row,           [RESCUE_TABLE_COLL_META] = rescue_coll_pair_row,
    [RESCUE_TABLE_SEGMENTS] = rescue_table_segment_row,     [RESCUE_TABLE_SEGMENT_META] = rescue_segment_pair_row,
    [RESCUE_TABLE_MAX_SEQ] = rescue_table_max_seq_row,      [RESCUE_TABLE_EMBEDDINGS] = rescue_table_embedding_row,
    [RESCUE_TABLE_METADATA] = rescue_table_metadata_row,    [RESCUE_TABLE_ARRAYS] = rescue_table_array_row,
    [RESCUE_TABLE_QUEUE] = rescue_table_queue_row,          [RESCUE_TABLE_FULLTEXT] = rescue_table_fulltext_row,
    [RESCUE_TABLE_MIGRATIONS] = rescue_table_migration_row,
};

/* ---- Strays: of which table is a row? ---- */

static bool stray_is_uuid(const sqf_value *v) {
  if (v->type != SQF_TEXT || v->s.len != 36) return false;
  for (size_t i = 0; i < 36; i++) {
    char ch = v->s.data[i];
    bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? ch != '-' : !((ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'f'))) return false;
  }
  return true;
}

static bool stray_has_type(const sqf_row *row, size_t i, sqf_type type) {
  return i < row->n && row->values[i].type == type;
}
static bool stray_has_type_or_null(const sqf_row *row, size_t i, sqf_type type) {
  return i >= row->n || row->values[i].type == SQF_NULL || row->values[i].type == type;
}
static bool stray_is_seq(const sqf_row *row, size_t i) {
  return stray_has_type(row, i, SQF_INT) || (stray_has_type(row, i, SQF_BLOB) && row->values[i].s.len == 8);
}
static bool rescue_table_four_values(const sqf_row *row) {
  return stray_has_type_or_null(row, 2, SQF_TEXT) && stray_has_type_or_null(row, 3, SQF_INT) &&
         (stray_has_type_or_null(row, 4, SQF_REAL) || stray_has_type(row, 4, SQF_INT)) &&
         stray_has_type_or_null(row, 5, SQF_INT);
}

static int stray_table_of(const sqf_row *row) {
  const sqf_value *v = row->values;
  if (!row->table || row->n < 2) return -1;
  if (row->n >= 7 && stray_has_type(row, 2, SQF_INT) && stray_has_type(row, 3, SQF_TEXT) &&
      stray_has_type(row, 4, SQF_TEXT) && v[0].type == SQF_NULL && v[3].s.len > 13 &&
      memcmp(v[3].s.data, "persistent://", 13) == 0)
    return RESCUE_TABLE_QUEUE;
  if (row->n == 5 && v[0].type == SQF_NULL && stray_is_uuid(&v[1]) && stray_has_type(row, 2, SQF_TEXT) &&
      stray_is_seq(row, 3))
    return RESCUE_TABLE_EMBEDDINGS;
  if ((row->n == 5 || row->n == 6) && v[0].type == SQF_INT && v[1].type == SQF_TEXT && rescue_table_four_values(row))
    return RESCUE_TABLE_METADATA;
  if (stray_is_uuid(&v[0])) {
    if (row->n == 2 && stray_is_seq(row, 1)) return RESCUE_TABLE_MAX_SEQ;
    if ((row->n == 4 || row->n == 5) && stray_has_type(row, 2, SQF_TEXT) && v[1].type == SQF_TEXT &&
        stray_is_uuid(&v[row->n - 1]) && (str_eq(v[2].s, STR_LIT("VECTOR")) || str_eq(v[2].s, STR_LIT("METADATA"))))
      return RESCUE_TABLE_SEGMENTS;
    if ((row->n == 5 || row->n == 6) && v[1].type == SQF_TEXT && rescue_table_four_values(row) && !stray_is_uuid(&v[3]))
      return RESCUE_TABLE_COLL_META;
    if (row->n == 3 && v[1].type == SQF_TEXT && v[2].type == SQF_TEXT) return RESCUE_TABLE_DATABASES;
    if (row->n >= 4 && v[1].type == SQF_TEXT &&
        (stray_has_type_or_null(row, 2, SQF_INT) || stray_has_type(row, 2, SQF_TEXT)))
      return RESCUE_TABLE_COLLS;
  }
  if (row->n == 2 && v[0].type == SQF_NULL && v[1].type == SQF_TEXT) return RESCUE_TABLE_FULLTEXT;
  return -1;
}

static lode_status rescue_table_stray_row(void *ctx, const sqf_row *row, lode_error *err) {
  rescue_dir *c = ctx;
  int t = stray_table_of(row);
  if (t < 0) return LODE_OK;
  rescue_table usual = {0}, before = c->tables[t];
  if (before.root == 0) { /* its schema is lost: use the usual columns; older tables have a topic in the middle */
    stray_usual_columns(&usual, t);
    if (t == RESCUE_TABLE_COLLS && stray_has_type(row, 2, SQF_TEXT))
      usual.at[2] = 3, usual.at[3] = 4, usual.at[4] = usual.at[5] = -1;
    if (t == RESCUE_TABLE_SEGMENTS) usual.at[3] = (int)row->n - 1;
    c->tables[t] = usual;
  }
  c->stray_rows++;
  lode_status st = rescue_table_row_readers[t](c, row, err);
  /* rows of these three are read again later, with these columns */
  if (t != RESCUE_TABLE_METADATA && t != RESCUE_TABLE_QUEUE && t != RESCUE_TABLE_FULLTEXT)
    c->tables[t] = before;
  else if (before.root == 0)
    c->tables[t].root = 0;
  return st;
}

/* ---- Entry points ---- */

lode_status rescue_read_tables(rescue_dir *c, lode_error *err) {
  sqf_info info;
  TRY(sqf_walk_table(c->file, 1, rescue_table_schema_row, c, err));
  for (int t = 0; t < RESCUE_TABLE_COUNT; t++) {
    if (!c->tables[t].root)
      stray_usual_columns(&c->tables[t], t);
    else if (t != RESCUE_TABLE_FULLTEXT)
      TRY(sqf_walk_table(c->file, c->tables[t].root, rescue_table_row_readers[t], c, err));
  }
  c->schema_lost = c->tables[RESCUE_TABLE_COLLS].root == 0 || c->tables[RESCUE_TABLE_EMBEDDINGS].root == 0;
  sqf_get_info(c->file, &info);
  if (info.damaged_pages || info.damaged_rows || info.header_lost || c->schema_lost) c->damaged = true;
  if (!c->damaged) return LODE_OK;
  if (c->tables[RESCUE_TABLE_FULLTEXT].root)
    TRY(sqf_walk_table(c->file, c->tables[RESCUE_TABLE_FULLTEXT].root, rescue_table_fulltext_row, c, err));
  c->stray = true;
  TRY(rescue_read_indexes(c, err));
  TRY(sqf_walk_orphans(c->file, rescue_table_stray_row, c, err));
  return rescue_read_index_values(c, err);
}

lode_status rescue_meta_read(rescue_dir *c, const rescue_meta *m, sqf_row *row, rescue_value *out, lode_error *err) {
  int t = m->array ? RESCUE_TABLE_ARRAYS : RESCUE_TABLE_METADATA;
  *out = (rescue_value){0};
  TRY(sqf_read_row(c->file, m->place, row, err));
  if (m->kind == RESCUE_META_FULLTEXT) {
    const sqf_value *v = rescue_table_value_at(c, RESCUE_TABLE_FULLTEXT, 1, row);
    if (v->type == SQF_TEXT) *out = (rescue_value){.key = STR_LIT("chroma:document"), .value = v};
    return LODE_OK;
  }
  if (m->kind != RESCUE_META_ROW) {
    rescue_index_value(m, row, out);
    return LODE_OK;
  }
  out->key = rescue_table_text_at(c, t, 1, row);
  for (int i = 2; i <= 5 && !out->value; i++) {
    const sqf_value *v = rescue_table_value_at(c, t, i, row);
    if (v->type == SQF_NULL) continue;
    out->value = v;
    out->is_bool = i == 5;
    if (i == 4 && v->type == SQF_INT) { /* SQLite stores whole numbers of a REAL column as integers */
      sqf_value *w = &row->values[v - row->values];
      w->type = SQF_REAL;
      w->d = (double)w->i;
    }
  }
  return LODE_OK;
}

lode_status rescue_log_read(rescue_dir *c, const rescue_log_entry *l, sqf_row *row, lode_str *vector,
                            lode_str *metadata, lode_error *err) {
  *vector = *metadata = (lode_str){0};
  TRY(sqf_read_row(c->file, l->place, row, err));
  const sqf_value *v = rescue_table_value_at(c, RESCUE_TABLE_QUEUE, 4, row);
  if (v->type == SQF_BLOB) *vector = v->s;
  *metadata = rescue_table_text_at(c, RESCUE_TABLE_QUEUE, 5, row);
  return LODE_OK;
}

/* ---- Sequence ids that are blobs ---- */

typedef struct rescue_table_blobs {
  rescue_dir *c;
  int table, column;
  lode_status (*fn)(void *ctx, uint64_t offset, lode_error *err);
  void *ctx;
} rescue_table_blobs;

static lode_status rescue_table_blob_row(void *ctx, const sqf_row *row, lode_error *err) {
  rescue_table_blobs *b = ctx;
  const sqf_value *v = rescue_table_value_at(b->c, b->table, b->column, row);
  uint64_t offset;
  if (v->type != SQF_BLOB || v->s.len != 8) return LODE_OK;
  if (!sqf_type_offset(b->c->file, row->place, (size_t)b->c->tables[b->table].at[b->column], &offset))
    return err_set(err, LODE_CORRUPT, "a row with a sequence id cannot be repaired: page %u", row->place.page);
  return b->fn(b->ctx, offset, err);
}

lode_status rescue_each_blob_seq(rescue_dir *c, lode_status (*fn)(void *ctx, uint64_t offset, lode_error *err),
                                 void *ctx, lode_error *err) {
  rescue_table_blobs b = {c, RESCUE_TABLE_EMBEDDINGS, 3, fn, ctx};
  sqf_reset_seen(c->file);
  if (c->tables[RESCUE_TABLE_EMBEDDINGS].root)
    TRY(sqf_walk_table(c->file, c->tables[RESCUE_TABLE_EMBEDDINGS].root, rescue_table_blob_row, &b, err));
  b.table = RESCUE_TABLE_MAX_SEQ;
  b.column = 1;
  return c->tables[RESCUE_TABLE_MAX_SEQ].root
             ? sqf_walk_table(c->file, c->tables[RESCUE_TABLE_MAX_SEQ].root, rescue_table_blob_row, &b, err)
             : LODE_OK;
}
