/* chroma.h - a Chroma directory as it is on disk: collections, rows, log, and where the rest lies.
 *
 * chroma.sqlite3 is read with base/sqlite_file.h. In memory are ids and places; documents, metadata and vectors stay where they are
 * until they are written to the store, so that memory grows with the number of rows and not with their size.
 *
 *   collections, databases, tenants, collection_metadata, segments, segment_metadata    what there is
 *   max_seq_id          how much of the log the segments have taken in (8-byte big-endian blobs to 0.6, integers from 1.0 on)
 *   embeddings          rows of the metadata segments: number, id, position in the log of the last change
 *   embedding_metadata  values by number and key; chroma:document and chroma:uri are keys
 *   embedding_metadata_array   elements of arrays (from 1.5 on)
 *   embeddings_queue    the log: 0 add, 1 update, 2 upsert, 3 delete; vector; metadata as JSON
 *
 * Where pages are damaged, rows on pages that no tree reaches are taken too, known by their shape ("strays"). Walked rows win.
 */
#ifndef LODE_RESCUE_CHROMA_H
#define LODE_RESCUE_CHROMA_H

#include "base/base.h"
#include "base/json.h"
#include "base/sqlite_file.h"

#define LODE__NO_NAME UINT32_MAX

typedef struct lode__chroma_coll {
  lode_str id, name;
  lode_str database, tenant;  /* absent before 0.4.15 */
  lode_str metadata;          /* JSON object, absent when there is none */
  lode_str config, schema;    /* JSON, absent when there is none */
  lode_str figures;           /* of its index: members of a JSON object, "ef_search":100,... as 1.x names them; absent when nothing says any */
  lode_str function;          /* its embedding function: JSON, absent when there is none */
  lode_str embedder;          /* name of its embedding function, absent when it is not known */
  lode_metric metric;
  uint32_t dimension;         /* 0: unknown */
  uint32_t m;                 /* of the index, 0: unknown */
  uint32_t id_name;           /* the collection's id as a name */
  uint32_t meta_segment;      /* names, or LODE__NO_NAME */
  uint32_t vector_segment;
  int64_t meta_seq;           /* what of the log the rows hold */
  int64_t vector_seq;         /* what of the log the index holds; -1: the pickle says it */
  bool poisoned;              /* max_seq_id is past anything that was ever written: not believed */
  bool made_up;               /* its own row is lost */
  bool metric_unknown;        /* nothing says it: l2, as Chroma's default */
  size_t row, n_rows;         /* in rows */
  size_t log, n_log;          /* in logs */
} lode__chroma_coll;

/* A database, or, without id and name, a tenant. */
typedef struct lode__chroma_database {
  lode_str id, name, tenant;
  bool stray;
} lode__chroma_database;

typedef struct lode__chroma_row {
  int64_t key, seq;
  lode_str id;
  uint32_t segment;           /* name */
  uint32_t coll;
  bool stray;
} lode__chroma_row;

/* Where a value of a record's metadata lies. */
typedef enum lode__meta_kind {
  LODE__META_ROW,    /* in the table */
  LODE__META_TEXT,   /* in the full-text table, a second copy of the document */
  LODE__META_STRING, LODE__META_INT, LODE__META_REAL, /* in an index of the table, whose own row is lost */
  LODE__META_GONE,   /* an index says that there was a value, and nothing says which */
} lode__meta_kind;
typedef struct lode__chroma_meta {
  int64_t key;                /* of the row in embeddings */
  int64_t order;
  sqf_place place;
  uint8_t kind;
  bool array, stray;
} lode__chroma_meta;

typedef enum lode__chroma_op { LODE__CHROMA_ADD, LODE__CHROMA_UPDATE, LODE__CHROMA_UPSERT, LODE__CHROMA_DELETE } lode__chroma_op;
typedef struct lode__chroma_log {
  int64_t seq;
  lode_str id;
  sqf_place place;
  uint32_t topic;             /* name: the collection's id */
  uint32_t coll;
  uint32_t vector_bytes;      /* 0: none */
  uint8_t op;
} lode__chroma_log;

typedef struct lode__chroma_name {
  lode_str text;
  int64_t max_seq;            /* of segments; -1: none */
  bool max_seq_blob;
} lode__chroma_name;

/* Columns of a table that are looked at; -1 when it has none. */
enum { LODE__CHROMA_COLUMNS = 8 };
typedef struct lode__chroma_table {
  uint32_t root;
  int at[LODE__CHROMA_COLUMNS];
} lode__chroma_table;

enum {
  LODE__T_TENANTS, LODE__T_DATABASES, LODE__T_COLLECTIONS, LODE__T_COLLECTION_METADATA, LODE__T_SEGMENTS, LODE__T_SEGMENT_METADATA,
  LODE__T_MAX_SEQ, LODE__T_EMBEDDINGS, LODE__T_METADATA, LODE__T_ARRAYS, LODE__T_QUEUE, LODE__T_TEXT, LODE__T_MIGRATIONS, LODE__T_COUNT
};

/* Indexes of tables: second copies of what they index. */
enum { LODE__I_ROWS, LODE__I_META, LODE__I_META_STRING, LODE__I_META_INT, LODE__I_META_REAL, LODE__I_ARRAY, LODE__I_ARRAY_STRING,
       LODE__I_ARRAY_INT, LODE__I_ARRAY_REAL, LODE__I_COLL_ID, LODE__I_COLL_NAME, LODE__I_COUNT };

typedef struct lode__chroma {
  const char *folder;
  sqf_file *file;
  mem_arena arena;
  lode__chroma_table tables[LODE__T_COUNT];
  uint32_t indexes[LODE__I_COUNT]; /* their roots */
  lode__chroma_name *names;   /* ids of segments and collections */
  size_t n_names, cap_names;
  uint32_t *name_slots;
  size_t n_slots;
  lode__chroma_coll *colls;
  size_t n_colls, cap_colls;
  lode__chroma_row *rows;     /* by collection, then key */
  size_t n_rows, cap_rows;
  lode__chroma_meta *metas;   /* by key; strays first, then in the order of the table */
  size_t n_metas, cap_metas;
  lode__chroma_log *logs;     /* by collection, then position */
  size_t n_logs, cap_logs;
  lode__chroma_database *databases;
  size_t n_databases;
  int64_t max_seq;            /* greatest position seen anywhere in rows and log */
  uint64_t blob_seqs;         /* positions kept as blobs, in embeddings and max_seq_id */
  bool seq_integer;           /* max_seq_id is declared INTEGER: 1.x, which fails on blobs */
  /* The database was made by 1.x, which gives labels in the order of the log. The Python code of before gives those of a batch in no
   * order at all (it walks a set), and directories that began with it keep such labels. Known by how the two indent the SQL of their
   * first table, which no upgrade changes. */
  bool ordered;
  bool damaged;               /* something of the database could not be read */
  bool schema_lost;
  uint64_t stray_rows, index_rows; /* found on pages that no table reaches; made up for by indexes */
  int migration;              /* highest version in metadb, 0 unknown */
  lode_progress progress;
  uint64_t rows_read;
  /* while reading */
  struct lode__chroma_parts *parts;
  bool stray;
  json_doc json;
} lode__chroma;

/* LODE_NOT_FOUND: no chroma.sqlite3 in the folder. */
lode_status lode__chroma_open(const char *folder, lode_progress progress, lode__chroma *chroma, lode_error *err);
void lode__chroma_close(lode__chroma *chroma);

/* The values of a metadata row, or the text of a full-text row as chroma:document. False: it is none. */
typedef struct lode__chroma_value {
  lode_str key;
  const sqf_value *value; /* NULL: null */
  bool is_bool;
  bool gone;                   /* it is known that there was one of this key, and nothing else */
} lode__chroma_value;
lode_status lode__chroma_meta_read(lode__chroma *chroma, const lode__chroma_meta *meta, sqf_row *row, lode__chroma_value *value,
                                   lode_error *err);
/* The vector's bytes and the metadata text of a log row (absent when there is none). */
lode_status lode__chroma_log_read(lode__chroma *chroma, const lode__chroma_log *log, sqf_row *row, lode_str *vector,
                                  lode_str *metadata, lode_error *err);
/* First of the metas of a key, and how many. */
size_t lode__chroma_metas_of(const lode__chroma *chroma, int64_t key, size_t *n);
uint32_t lode__chroma_name_of(const lode__chroma *chroma, lode_str text);

#endif
