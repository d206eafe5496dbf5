/* SPDX-License-Identifier: Apache-2.0 */
/* sql.h - every SQL text of the store: its schema, its statements, its settings. docs/FORMAT.md describes the tables.
 */
#ifndef LODE_STORE_SQL_H
#define LODE_STORE_SQL_H

/* ---- Statements: X(name, SQL) ----
 *
 * They are prepared when first used and kept with the connection (statements.h). The keys of a collection are a range,
 * mostly (?1, ?2]. */

#define STORE_STATEMENTS(X)                                                                                            \
  /* transactions */                                                                                                   \
  X(BEGIN_READ, "BEGIN")                                                                                               \
  X(BEGIN_WRITE, "BEGIN IMMEDIATE")                                                                                    \
  X(COMMIT, "COMMIT")                                                                                                  \
  X(ROLLBACK, "ROLLBACK")                                                                                              \
  X(SAVEPOINT, "SAVEPOINT s")                                                                                          \
  X(SAVEPOINT_UNDO, "ROLLBACK TO s")                                                                                   \
  X(SAVEPOINT_END, "RELEASE s")                                                                                        \
  /* the file */                                                                                                       \
  X(SCHEMA_COOKIE, "PRAGMA schema_version")                                                                            \
  X(PAGE_BYTES, "PRAGMA page_size")                                                                                    \
  X(PAGE_COUNT, "PRAGMA page_count")                                                                                   \
  X(FREE_PAGES, "PRAGMA freelist_count")                                                                               \
  /* state: single numbers */                                                                                          \
  X(STATE_GET, "SELECT v FROM state WHERE k=?1")                                                                       \
  X(STATE_PUT, "INSERT INTO state(k,v) VALUES(?1,?2) ON CONFLICT(k) DO UPDATE SET v=excluded.v")                       \
  /* collection */                                                                                                     \
  X(COLL_BY_NAME, "SELECT * FROM collection WHERE name=?1")                                                            \
  X(COLL_BY_CID, "SELECT * FROM collection WHERE cid=?1 AND name IS NOT NULL")                                         \
  X(COLL_BY_UID, "SELECT * FROM collection WHERE uid=?1 AND name IS NOT NULL")                                         \
  X(COLL_EACH, "SELECT * FROM collection WHERE name IS NOT NULL ORDER BY name")                                        \
  X(COLL_INSERT, "INSERT INTO collection(cid,uid,name,metric,dim,metadata,embedder,embedder_dim,counted,created,"      \
                 "records,pending,documents,document_bytes,graves,text_cursor,term_cursor,untexted,unindexed,"         \
                 "horizon,crc) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,0,0,0,0,0,?11,?11,0,0,0,?12)")                    \
  X(COLL_IDENTITY, "UPDATE collection SET name=?2,metric=?3,dim=?4,metadata=?5,embedder=?6,embedder_dim=?7,crc=?8,"    \
                   "uid=?9 WHERE cid=?1")                                                                              \
  X(COLL_COUNTS, "UPDATE collection SET records=?2,pending=?3,documents=?4,document_bytes=?5,graves=?6,"               \
                 "text_cursor=?7,term_cursor=?8,untexted=?9,unindexed=?10,horizon=?11 WHERE cid=?1")                   \
  X(COLL_ERASE, "DELETE FROM collection WHERE cid=?1")                                                                 \
  X(COLL_NEXT_WORK, "SELECT cid FROM collection WHERE cid>?1 AND (name IS NULL OR graves>0 OR untexted>0 OR "          \
                    "unindexed>0) ORDER BY cid LIMIT 1")                                                               \
  X(COLL_NEXT_DEAD, "SELECT cid FROM collection WHERE cid>?1 AND (name IS NULL OR graves>0) ORDER BY cid LIMIT 1")     \
  X(COLL_DROPPED, "SELECT text_cursor,term_cursor FROM collection WHERE cid=?1 AND name IS NULL")                      \
  X(COLL_SUMS, "SELECT count(*),sum(records),sum(pending),sum(graves),sum(untexted),sum(unindexed) FROM collection "   \
               "WHERE name IS NOT NULL")                                                                               \
  X(COLL_FORGET, "UPDATE collection SET text_cursor=?2,untexted=records+?3 WHERE cid=?1")                              \
  X(COLL_CIDS, "SELECT cid,name FROM collection WHERE cid>?1 AND cid<=?2 ORDER BY cid")                                \
  /* name and fresh: from an id to its record (record_ids.c) */                                                        \
  X(NAME_GET, "SELECT rid,len FROM fresh WHERE cid=?1 AND id=?2 UNION ALL "                                            \
              "SELECT rid,len FROM name WHERE cid=?1 AND id=?2")                                                       \
  X(NAMES_FIND, "SELECT f.rowid,n.rid,n.len FROM lode_feed AS f CROSS JOIN name AS n ON n.cid=?1 AND n.id=f.id")       \
  X(NAMES_WALK, "SELECT id,rid,len FROM name WHERE cid=?1 AND id>=?2 ORDER BY id")                                     \
  X(NAME_SET, "UPDATE name SET len=?3 WHERE cid=?1 AND id=?2")                                                         \
  X(NAME_DELETE, "DELETE FROM name WHERE cid=?1 AND id=?2 AND rid=?3")                                                 \
  X(NAME_ERASE, "DELETE FROM name WHERE cid=?1 AND id IN (SELECT id FROM name WHERE cid=?1 LIMIT 100)")                \
  X(FRESH_FIND, "SELECT f.rowid,n.rid,n.len FROM lode_feed AS f CROSS JOIN fresh AS n ON n.cid=?1 AND n.id=f.id")      \
  X(FRESH_WALK, "SELECT id,rid,len FROM fresh WHERE cid=?1 AND id>=?2 ORDER BY id")                                    \
  X(FRESH_PUT, "INSERT OR FAIL INTO fresh(cid,id,rid,len) SELECT ?1,id,rid,len FROM lode_feed")                        \
  X(FRESH_SET, "UPDATE fresh SET len=?3 WHERE cid=?1 AND id=?2")                                                       \
  X(FRESH_DELETE, "DELETE FROM fresh WHERE cid=?1 AND id=?2 AND rid=?3")                                               \
  X(FRESH_ERASE, "DELETE FROM fresh WHERE cid=?1 AND id IN (SELECT id FROM fresh WHERE cid=?1 LIMIT 100)")             \
  X(FRESH_MOVE, "INSERT OR FAIL INTO name(cid,id,rid,len) SELECT cid,id,rid,len FROM fresh ORDER BY cid,id")           \
  X(FRESH_CLEAR, "DELETE FROM fresh")                                                                                  \
  X(NAME_SCAN, "SELECT cid,id,rid FROM name WHERE (cid,id)>(?1,?2) ORDER BY cid,id")                                   \
  X(FRESH_SCAN, "SELECT cid,id,rid FROM fresh WHERE (cid,id)>(?1,?2) ORDER BY cid,id")                                 \
  /* record */                                                                                                         \
  X(RECORD_GET, "SELECT rid,id,seq,vid,doc,meta,crc FROM record WHERE rid=?1")                                         \
  X(RECORDS_PUT, "INSERT OR FAIL INTO record(rid,id,seq,vid,doc,meta,crc) SELECT rid,id,seq,vid,doc,meta,crc "         \
                 "FROM lode_feed")                                                                                     \
  X(RECORD_SET, "UPDATE record SET seq=?3,vid=?4,doc=?5,meta=?6,crc=?7 WHERE rid=?1 AND id=?2")                        \
  X(RECORD_DELETE, "DELETE FROM record WHERE rid=?1")                                                                  \
  X(RECORD_SCAN, "SELECT rid,id,seq,vid,doc,meta,crc FROM record WHERE rid>?1 AND rid<=?2 ORDER BY rid")               \
  X(RECORD_KEYS, "SELECT rid FROM record WHERE rid>?1 AND rid<=?2 ORDER BY rid")                                       \
  X(RECORD_PENDING, "SELECT r.rid,r.id,r.seq,r.vid,r.doc,r.meta,r.crc FROM record AS r INDEXED BY pending WHERE "      \
                    "vid=0 AND rid>?1 AND rid<=?2 ORDER BY rid")                                                       \
  X(RECORD_IS_PENDING, "SELECT 1 FROM record INDEXED BY pending WHERE vid=0 AND rid=?1")                               \
  /* document */                                                                                                       \
  X(DOCUMENT_GET, "SELECT text,crc FROM document WHERE rid=?1")                                                        \
  X(DOCUMENT_PUT, "INSERT INTO document(rid,text,crc) VALUES(?1,?2,?3)")                                               \
  X(DOCUMENTS_PUT, "INSERT OR FAIL INTO document(rid,text,crc) SELECT rid,text,text_crc FROM lode_feed")               \
  X(DOCUMENT_SET, "UPDATE document SET text=?2,crc=?3 WHERE rid=?1")                                                   \
  X(DOCUMENT_DELETE, "DELETE FROM document WHERE rid=?1")                                                              \
  X(DOCUMENT_KEYS, "SELECT rid FROM document WHERE rid>?1 AND rid<=?2 ORDER BY rid")                                   \
  /* vector */                                                                                                         \
  X(VECTOR_GET, "SELECT vid,rid,data,crc FROM vector WHERE vid=?1")                                                    \
  X(VECTOR_PUT, "INSERT INTO vector(vid,rid,data,crc) VALUES(?1,?2,?3,?4)")                                            \
  X(VECTORS_PUT, "INSERT OR FAIL INTO vector(vid,rid,data,crc) SELECT vid,rid,data,data_crc FROM lode_feed")           \
  X(VECTOR_DELETE, "DELETE FROM vector WHERE vid=?1")                                                                  \
  X(VECTOR_SCAN, "SELECT vid,rid,data,crc FROM vector WHERE vid>?1 AND vid<=?2 ORDER BY vid")                          \
  X(VECTOR_ROOT, "SELECT rootpage FROM sqlite_schema WHERE name='vector'")                                             \
  X(VECTOR_OWNER, "SELECT rid FROM vector WHERE vid=?1")                                                               \
  X(VECTOR_KEYS, "SELECT vid,rid FROM vector WHERE vid>?1 AND vid<=?2 ORDER BY vid")                                   \
  X(VECTOR_EXISTS, "SELECT 1 FROM vector WHERE vid=?1")                                                                \
  /* grave: tombstones (tombstones.c) */                                                                               \
  X(TOMBSTONE_PUT, "INSERT INTO grave(gid,rids,vid,crc) VALUES(?1,?2,?3,?4)")                                          \
  X(TOMBSTONE_SET, "UPDATE grave SET rids=?2,vid=?3,crc=?4 WHERE gid=?1")                                              \
  X(TOMBSTONE_SCAN, "SELECT gid,rids,vid,crc FROM grave WHERE gid>?1 AND gid<=?2 ORDER BY gid")                        \
  X(TOMBSTONE_DELETE, "DELETE FROM grave WHERE gid=?1")                                                                \
  /* segment and dead: the manifest of the vector index (manifest.c) */                                                \
  X(SEGMENT_OF, "SELECT id,cid,after,last,rows,kind,bytes,sum,crc FROM segment WHERE cid=?1 ORDER BY after,last")      \
  X(SEGMENT_ALL, "SELECT id,cid,after,last,rows,kind,bytes,sum,crc FROM segment ORDER BY cid,after,last")              \
  X(SEGMENT_PUT, "INSERT OR REPLACE INTO segment(id,cid,after,last,rows,kind,bytes,sum,crc) "                          \
                 "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)")                                                                 \
  X(SEGMENT_DELETE, "DELETE FROM segment WHERE id=?1")                                                                 \
  X(SEGMENT_DROP, "DELETE FROM segment WHERE cid=?1")                                                                  \
  X(SEGMENT_LAST, "SELECT max(last) FROM segment WHERE cid=?1")                                                        \
  X(DEAD_PUT, "INSERT OR IGNORE INTO dead(vid,rid) VALUES(?1,?2)")                                                     \
  X(DEAD_EACH, "SELECT vid,rid FROM dead WHERE vid>?1 AND vid<=?2 ORDER BY vid")                                       \
  X(DEAD_COUNT, "SELECT count(*) FROM dead WHERE vid>?1 AND vid<=?2")                                                  \
  X(DEAD_DELETE, "DELETE FROM dead WHERE vid=?1")                                                                      \
  X(DEAD_DROP, "DELETE FROM dead WHERE vid>?1 AND vid<=?2")                                                            \
  /* metakey, term and counter (metadata_index.c) */                                                                   \
  X(KEY_GET, "SELECT kid,counted FROM metakey WHERE cid=?1 AND name=?2")                                               \
  X(KEY_PUT, "INSERT INTO metakey(kid,cid,name,counted) VALUES(?1,?2,?3,?4)")                                          \
  X(KEY_COUNTED, "SELECT name,(SELECT count(*) FROM counter WHERE counter.kid=metakey.kid) FROM metakey WHERE "        \
                 "cid=?1 AND counted=1 ORDER BY name")                                                                 \
  X(KEY_ERASE, "DELETE FROM metakey WHERE cid=?1")                                                                     \
  X(TERM_PUT, "INSERT OR IGNORE INTO term(kid,value,rid) VALUES(?1,?2,?3)")                                            \
  X(TERM_DELETE, "DELETE FROM term WHERE kid=?1 AND value=?2 AND rid=?3")                                              \
  X(TERM_EQ, "SELECT value,rid FROM term WHERE kid=?1 AND value=?2")                                                   \
  X(TERM_RANGE, "SELECT value,rid FROM term WHERE kid=?1 AND value>=?2 AND value<=?3 ORDER BY value,rid")              \
  X(COUNTER_ADD, "INSERT INTO counter(kid,value,n) VALUES(?1,?2,?3) ON CONFLICT(kid,value) DO UPDATE SET "             \
                 "n=n+excluded.n")                                                                                     \
  X(COUNTER_TRIM, "DELETE FROM counter WHERE kid=?1 AND value=?2 AND n<=0")                                            \
  X(COUNTER_EACH, "SELECT value,n FROM counter WHERE kid=?1 ORDER BY n DESC,value")                                    \
  X(COUNTER_ERASE, "DELETE FROM counter WHERE kid IN (SELECT kid FROM metakey WHERE cid=?1)")                          \
  /* text and size (text_index.c) */                                                                                   \
  X(TEXT_PUT, "INSERT INTO text(rowid,body) VALUES(?1,?2)")                                                            \
  X(TEXT_DELETE, "INSERT INTO text(text,rowid,body) VALUES('delete',?1,?2)")                                           \
  X(TEXT_FIND, "SELECT 1 FROM text WHERE text MATCH ?1 AND rowid>?2 AND rowid<=?3 AND lode_visit(text,?4) "            \
               "ORDER BY rowid")                                                                                       \
  X(TEXT_FORGET, "INSERT INTO text(text) VALUES('delete-all')")                                                        \
  X(SIZES_GET, "SELECT codes FROM size WHERE block=?1")                                                                \
  X(SIZES_PUT, "INSERT OR REPLACE INTO size(block,codes) VALUES(?1,?2)")                                               \
  X(SIZES_ERASE, "DELETE FROM size WHERE block BETWEEN ?1 AND ?2")                                                     \
  X(TEXT_MERGE, "INSERT INTO text(text,rank) VALUES('merge',?1)")                                                      \
  /* whole tables, for a recount (verify_sums.c) */                                                                    \
  X(SUMS_COLLECTIONS,                                                                                                  \
    "SELECT cid,name,records,pending,documents,document_bytes,graves,text_cursor,term_cursor,untexted,"                \
    "unindexed FROM collection WHERE cid>0 ORDER BY cid")                                                              \
  X(SUMS_TOMBSTONES, "SELECT gid,rids,vid FROM grave")                                                                 \
  X(SUMS_FRESH, "SELECT count(*),(SELECT v FROM state WHERE k=6) FROM fresh")                                          \
  X(SUMS_COUNTED_KEYS, "SELECT kid FROM metakey WHERE counted=1 ORDER BY kid")                                         \
  X(SUMS_RECORDS, "SELECT r.rid,r.vid,r.meta,d.text FROM record AS r LEFT JOIN document AS d ON d.rid=r.rid AND "      \
                  "r.doc IS NOT NULL ORDER BY r.rid")                                                                  \
  X(SUMS_TERMS, "SELECT kid,value,rid FROM term")                                                                      \
  X(SUMS_COUNTERS, "SELECT c.kid,c.value,c.n,k.cid FROM counter AS c LEFT JOIN metakey AS k ON k.kid=c.kid")           \
  X(SUMS_WORDS, "SELECT term,doc,offset FROM temp.lode_words")

/* ---- The schema: one object each, in the order in which they are created ----
 *
 * TABLE(name, columns), OBJECT(type, name, table, SQL); made by SQLite along with others: AUTOINDEX(table), the index
 * of a UNIQUE column, and SHADOW(name, columns), the tables of FTS5 (the same in every SQLite from 3.40 to 3.53). The
 * SQL is exactly as SQLite stores it. The schema is the same in formats 1 and 2: an object added later needs a new
 * format. */

#define STORE_SCHEMA(TABLE, OBJECT, AUTOINDEX, SHADOW)                                                                 \
  TABLE("state", "(k INTEGER PRIMARY KEY, v)")                                                                         \
  TABLE(                                                                                                               \
      "collection",                                                                                                    \
      "(cid INTEGER PRIMARY KEY, uid INTEGER NOT NULL, name TEXT UNIQUE, metric INTEGER NOT NULL,"                     \
      " dim INTEGER NOT NULL, metadata TEXT, embedder TEXT, embedder_dim INTEGER NOT NULL, counted INTEGER NOT NULL,"  \
      " created INTEGER NOT NULL, records INTEGER NOT NULL, pending INTEGER NOT NULL, documents INTEGER NOT NULL,"     \
      " document_bytes INTEGER NOT NULL, graves INTEGER NOT NULL, text_cursor INTEGER NOT NULL,"                       \
      " term_cursor INTEGER NOT NULL, untexted INTEGER NOT NULL, unindexed INTEGER NOT NULL, "                         \
      "horizon INTEGER NOT NULL, crc INTEGER NOT NULL)")                                                               \
  AUTOINDEX("collection")                                                                                              \
  TABLE("name", "(cid INTEGER NOT NULL, id BLOB NOT NULL, rid INTEGER NOT NULL, len INTEGER NOT NULL,"                 \
                " PRIMARY KEY(cid, id)) WITHOUT ROWID")                                                                \
  TABLE("fresh", "(cid INTEGER NOT NULL, id BLOB NOT NULL, rid INTEGER NOT NULL, len INTEGER NOT NULL,"                \
                 " PRIMARY KEY(cid, id)) WITHOUT ROWID")                                                               \
  TABLE("record", "(rid INTEGER PRIMARY KEY, id BLOB NOT NULL, seq INTEGER NOT NULL, vid INTEGER NOT NULL,"            \
                  " doc INTEGER, meta TEXT, crc INTEGER NOT NULL)")                                                    \
  OBJECT("index", "pending", "record", "CREATE INDEX pending ON record(vid) WHERE vid=0")                              \
  TABLE("document", "(rid INTEGER PRIMARY KEY, text TEXT NOT NULL, crc INTEGER NOT NULL)")                             \
  TABLE("vector", "(vid INTEGER PRIMARY KEY, rid INTEGER NOT NULL, data BLOB NOT NULL, crc INTEGER NOT NULL)")         \
  TABLE("grave", "(gid INTEGER PRIMARY KEY, rids BLOB NOT NULL, vid INTEGER NOT NULL, crc INTEGER NOT NULL)")          \
  TABLE("metakey", "(kid INTEGER PRIMARY KEY, cid INTEGER NOT NULL, name TEXT NOT NULL, counted INTEGER NOT NULL,"     \
                   " UNIQUE(cid, name))")                                                                              \
  AUTOINDEX("metakey")                                                                                                 \
  TABLE("term", "(kid INTEGER NOT NULL, value NOT NULL, rid INTEGER NOT NULL, PRIMARY KEY(kid, value, rid))"           \
                " WITHOUT ROWID")                                                                                      \
  TABLE("counter",                                                                                                     \
        "(kid INTEGER NOT NULL, value NOT NULL, n INTEGER NOT NULL, PRIMARY KEY(kid, value)) WITHOUT ROWID")           \
  TABLE("segment", "(id INTEGER PRIMARY KEY, cid INTEGER NOT NULL, after INTEGER NOT NULL, last INTEGER NOT NULL,"     \
                   " rows INTEGER NOT NULL, kind INTEGER NOT NULL, bytes INTEGER NOT NULL, sum INTEGER NOT NULL, crc " \
                   "INTEGER NOT NULL)")                                                                                \
  TABLE("dead", "(vid INTEGER PRIMARY KEY, rid INTEGER NOT NULL)")                                                     \
  TABLE("size", "(block INTEGER PRIMARY KEY, codes BLOB NOT NULL)")                                                    \
  OBJECT("table", "text", "text",                                                                                      \
         "CREATE VIRTUAL TABLE text USING fts5(body, content='', columnsize=0, tokenize='lode')")                      \
  SHADOW("text_data", "(id INTEGER PRIMARY KEY, block BLOB)")                                                          \
  SHADOW("text_idx", "(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID")                                    \
  SHADOW("text_config", "(k PRIMARY KEY, v) WITHOUT ROWID")
#define STORE_SCHEMA_OBJECTS 21

/* ---- Run once: settings of a connection, and what a new store holds ---- */

/* Maintenance adds words in large batches: fewer, larger segments are merged less often. */
#define STORE_SQL_FTS_SETTINGS                                                                                         \
  "INSERT INTO text(text,rank) VALUES('hashsize',8388608);"                                                            \
  "INSERT INTO text(text,rank) VALUES('automerge',8);"
/* page size, application id, format */
#define STORE_SQL_NEW_FILE                                                                                             \
  "PRAGMA page_size=%u; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA encoding='UTF-8'; BEGIN; PRAGMA application_id=%d;"     \
  "PRAGMA user_version=%u;"
/* rows and values of table state */
#define STORE_SQL_NEW_STATE "INSERT INTO state(k,v) VALUES(%d,%lld),(%d,%lld),(%d,0),(%d,1),(%d,1),(%d,0); COMMIT;"
/* format, the new and the old row of the cursor */
#define STORE_SQL_RAISE_FORMAT "PRAGMA user_version=%u; UPDATE state SET k=%d WHERE k=%d"
/* cache in KiB, dirty pages before they are spilled */
#define STORE_SQL_SETTINGS                                                                                             \
  "PRAGMA synchronous=FULL; PRAGMA temp_store=MEMORY; PRAGMA trusted_schema=OFF; PRAGMA secure_delete=ON;"             \
  "PRAGMA cell_size_check=ON; PRAGMA cache_size=-%llu; PRAGMA cache_spill=%llu;"
#define STORE_SQL_JOURNAL_MODE "PRAGMA journal_mode=TRUNCATE"
#define STORE_SQL_VACUUM "PRAGMA incremental_vacuum(%u)"
#define STORE_SQL_INTEGRITY_CHECK "PRAGMA integrity_check(100)"
#define STORE_SQL_FTS5_API "SELECT fts5(?1)"
/* A table of this connection that shows the words, records and positions of the text index. */
#define STORE_SQL_SHOW_WORDS                                                                                           \
  "CREATE VIRTUAL TABLE IF NOT EXISTS temp.lode_words USING fts5vocab('main','text','instance')"
#define STORE_SQL_HIDE_WORDS "DROP TABLE temp.lode_words"
/* The table of a batch (batch_table.c). */
#define STORE_SQL_BATCH_TABLE "CREATE TABLE x(rid,id,len,text,text_crc,vid,data,data_crc,seq,doc,meta,crc)"

/* Repacking a table (compact.c): columns, table, key, placeholders of the key. */
#define STORE_SQL_PACK_FIRST "SELECT %s FROM %s ORDER BY %s"
#define STORE_SQL_PACK_NEXT "SELECT %s FROM %s WHERE (%s)>%s ORDER BY %s"
#define STORE_SQL_PACK_DELETE "DELETE FROM %s WHERE (%s)=%s"
#define STORE_SQL_PACK_INSERT "INSERT INTO %s(%s) VALUES(%.*s)"

#endif
