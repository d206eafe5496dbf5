/* SPDX-License-Identifier: Apache-2.0 */
/* chroma_dir.h - a Chroma directory as it is on disk: collections, rows, log, and where the rest is.
 *
 * chroma.sqlite3 is read with sqlite/sqlite_pages.h. Only ids and places are kept in memory; documents, metadata and
 * vectors stay on disk until they are written to the store, so memory grows with the number of rows and not with
 * their size.
 *
 *   collections, databases, tenants, collection_metadata, segments, segment_metadata    what there is
 *   max_seq_id          how much of the log each segment has applied (big-endian blobs to 0.6, integers from 1.0)
 *   embeddings          rows of the metadata segments: number, id, log position of the last change
 *   embedding_metadata  values by number and key; chroma:document and chroma:uri are keys
 *   embedding_metadata_array   elements of arrays (from 1.5)
 *   embeddings_queue    the log: 0 add, 1 update, 2 upsert, 3 delete; vector; metadata as JSON
 *
 * Where pages are damaged, rows on pages that no b-tree reaches ("strays") are used too, recognised by their shape.
 * Rows that a tree reaches win.
 */
#ifndef LODE_RESCUE_CHROMA_DIR_H
#define LODE_RESCUE_CHROMA_DIR_H

#include "base/base.h"
#include "base/json.h"
#include "sqlite/sqlite_pages.h"

#define RESCUE_NO_NAME UINT32_MAX

typedef struct rescue_coll {
  lode_str id, name;
  lode_str database, tenant; /* absent before 0.4.15 */
  lode_str metadata;         /* JSON object; absent when there is none */
  lode_str config, schema;   /* JSON; absent when there is none */
  lode_str hnsw_params;      /* members of a JSON object, "ef_search":100,... as 1.x names them; absent if none */
  lode_str function;         /* its embedding function: JSON; absent when there is none */
  lode_str embedder;         /* name of its embedding function; absent when unknown */
  lode_metric metric;
  uint32_t dimension;      /* 0: unknown */
  uint32_t m;              /* of the index; 0: unknown */
  uint32_t id_name;        /* the collection's id as a name (rescue_name) */
  uint32_t meta_segment;   /* a name, or RESCUE_NO_NAME */
  uint32_t vector_segment; /* a name, or RESCUE_NO_NAME */
  int64_t meta_seq;        /* log position up to which the rows are current */
  int64_t vector_seq;      /* log position up to which the index is current; -1: see the pickle */
  bool poisoned;           /* max_seq_id is past anything that was ever written: ignored */
  bool inferred;           /* its own row is lost */
  bool metric_unknown;     /* assumed to be l2, Chroma's default */
  size_t row, n_rows;      /* in rows */
  size_t log, n_log;       /* in logs */
} rescue_coll;

/* A database, or, without id and name, a tenant. */
typedef struct rescue_database {
  lode_str id, name, tenant;
  bool stray;
} rescue_database;

typedef struct rescue_emb_row {
  int64_t key, seq;
  lode_str id;
  uint32_t segment; /* name */
  uint32_t coll;
  bool stray;
} rescue_emb_row;

/* Where a value of a record's metadata is. */
typedef enum rescue_meta_kind {
  RESCUE_META_ROW,      /* in the table */
  RESCUE_META_FULLTEXT, /* in the full-text table: a second copy of the document */
  RESCUE_META_STRING,
  RESCUE_META_INT,
  RESCUE_META_REAL, /* in an index of the table, whose own row is lost */
  RESCUE_META_LOST, /* an index says that there was a value, but not which */
} rescue_meta_kind;
typedef struct rescue_meta {
  int64_t key; /* of the row in embeddings */
  int64_t order;
  sqf_place place;
  uint8_t kind;
  bool array, stray;
} rescue_meta;

/* The numbers of the column operation. */
typedef enum rescue_log_op { RESCUE_LOG_ADD, RESCUE_LOG_UPDATE, RESCUE_LOG_UPSERT, RESCUE_LOG_DELETE } rescue_log_op;
typedef struct rescue_log_entry {
  int64_t seq;
  lode_str id;
  sqf_place place;
  uint32_t topic; /* name: the collection's id */
  uint32_t coll;
  uint32_t vector_bytes; /* 0: none */
  uint8_t op;
} rescue_log_entry;

typedef struct rescue_name {
  lode_str text;
  int64_t max_seq; /* of a segment; -1: none */
  bool max_seq_blob;
} rescue_name;

/* Positions of the columns that are read; -1 when the table does not have the column. */
enum { RESCUE_MAX_COLUMNS = 8 };
typedef struct rescue_table {
  uint32_t root;
  int at[RESCUE_MAX_COLUMNS];
} rescue_table;

enum {
  RESCUE_TABLE_TENANTS,
  RESCUE_TABLE_DATABASES,
  RESCUE_TABLE_COLLS,
  RESCUE_TABLE_COLL_META,
  RESCUE_TABLE_SEGMENTS,
  RESCUE_TABLE_SEGMENT_META,
  RESCUE_TABLE_MAX_SEQ,
  RESCUE_TABLE_EMBEDDINGS,
  RESCUE_TABLE_METADATA,
  RESCUE_TABLE_ARRAYS,
  RESCUE_TABLE_QUEUE,
  RESCUE_TABLE_FULLTEXT,
  RESCUE_TABLE_MIGRATIONS,
  RESCUE_TABLE_COUNT
};

/* Indexes of tables: second copies of the columns that they index. */
enum {
  RESCUE_INDEX_ROWS,
  RESCUE_INDEX_META,
  RESCUE_INDEX_META_STRING,
  RESCUE_INDEX_META_INT,
  RESCUE_INDEX_META_REAL,
  RESCUE_INDEX_ARRAY,
  RESCUE_INDEX_ARRAY_STRING,
  RESCUE_INDEX_ARRAY_INT,
  RESCUE_INDEX_ARRAY_REAL,
  RESCUE_INDEX_COLL_ID,
  RESCUE_INDEX_COLL_NAME,
  RESCUE_INDEX_COUNT
};

typedef struct rescue_dir {
  const char *folder;
  sqf_file *file;
  mem_arena arena;
  rescue_table tables[RESCUE_TABLE_COUNT];
  uint32_t indexes[RESCUE_INDEX_COUNT]; /* root pages */
  rescue_name *names;                   /* ids of segments and collections */
  size_t n_names, cap_names;
  uint32_t *name_slots;
  size_t n_slots;
  rescue_coll *colls;
  size_t n_colls, cap_colls;
  rescue_emb_row *rows; /* by collection, then key */
  size_t n_rows, cap_rows;
  rescue_meta *metas; /* by key; those that win come last */
  size_t n_metas, cap_metas;
  rescue_log_entry *logs; /* by collection, then position */
  size_t n_logs, cap_logs;
  rescue_database *databases;
  size_t n_databases;
  int64_t max_seq;    /* greatest log position in rows and log */
  uint64_t blob_seqs; /* sequence ids stored as blobs, in embeddings and max_seq_id */
  bool seq_integer;   /* max_seq_id is declared INTEGER: a database of 1.x, which fails on blobs */
  /* The database was created by 1.x, which assigns labels in the order of the log. The older Python code assigns the
   * labels of a batch in no particular order (it iterates over a set), and directories that it created keep such
   * labels. The two are told apart by the indentation of the SQL of their first table, which no upgrade changes. */
  bool ordered;
  bool damaged; /* some of the database could not be read */
  bool schema_lost;
  uint64_t stray_rows, index_rows; /* found on pages that no table reaches; recovered from indexes */
  int migration;                   /* highest version in metadb, 0 unknown */
  lode_progress progress;
  uint64_t rows_read;
  /* used while reading */
  struct rescue_raw_tables *parts;
  bool stray;
  json_doc json;
} rescue_dir;

/* LODE_NOT_FOUND: no chroma.sqlite3 in the folder. */
LODE_MUST lode_status rescue_dir_open(const char *folder, lode_progress progress, rescue_dir *chroma, lode_error *err);
void rescue_dir_close(rescue_dir *chroma);

/* A value of a metadata row, or the text of a full-text row as chroma:document. */
typedef struct rescue_value {
  lode_str key;
  const sqf_value *value; /* NULL: null */
  bool is_bool;
  bool lost; /* there was a value of this key; nothing else is known */
} rescue_value;
LODE_MUST lode_status rescue_meta_read(rescue_dir *chroma, const rescue_meta *meta, sqf_row *row, rescue_value *value,
                                       lode_error *err);
/* The vector's bytes and the metadata text of a log row (absent when there is none). */
LODE_MUST lode_status rescue_log_read(rescue_dir *chroma, const rescue_log_entry *log, sqf_row *row, lode_str *vector,
                                      lode_str *metadata, lode_error *err);
/* The position of the first meta of a key, and their number. */
size_t rescue_metas_of(const rescue_dir *chroma, int64_t key, size_t *n);

#endif
