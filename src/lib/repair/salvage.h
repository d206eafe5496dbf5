/* SPDX-License-Identifier: Apache-2.0 */
/* salvage.h - shared by salvage_find.c, which scans the damaged store, and salvage.c, which writes the new one. */
#ifndef LODE_REPAIR_SALVAGE_H
#define LODE_REPAIR_SALVAGE_H

#include "repair/repair_internal.h"

/* How certain it is that a row with a valid checksum is also in use. */
enum {
  SALVAGE_TRUST_LOOSE,  /* found between the cells of a damaged page: counts only if something else refers to it */
  SALVAGE_TRUST_OLD,    /* on a valid page that is an older version than the newest commit left */
  SALVAGE_TRUST_LISTED, /* in a cell of a damaged page */
  SALVAGE_TRUST_SOUND,  /* on a valid page */
};

typedef struct salvage_found {
  int64_t key;
  uint32_t page;
  uint16_t offset;
  uint8_t trust;
  uint8_t mentions; /* records: SALVAGE_MENTIONED, SALVAGE_NAMED */
} salvage_found;

enum {
  SALVAGE_MENTIONED = 1, /* an id row, document or vector on a valid page belongs to it */
  SALVAGE_NAMED = 2,     /* an id row on a valid page belongs to it */
};

typedef struct salvage_found_list {
  salvage_found *items; /* after the first pass: sorted by key, then the most trusted first */
  size_t n, cap;
} salvage_found_list;

typedef struct salvage_key_list {
  int64_t *items;
  size_t n, cap;
} salvage_key_list;

typedef struct salvage_coll {
  store_coll coll; /* strings in the arena */
  uint8_t trust;
  bool dropped;
  uint64_t names; /* ids found; if equal to coll.records, all were found and a record without one was deleted */
} salvage_coll;

typedef struct salvage_counter_key { /* a metadata key declared as a counter */
  int64_t cid;
  lode_str name;
} salvage_counter_key;

typedef struct salvage_job {
  vfs_pages pages;
  unsigned char *page; /* the current page */
  strbuf payload;
  mem_arena arena;
  salvage_found_list records, documents, vectors;
  salvage_key_list dead;  /* records in tombstones */
  salvage_key_list lost;  /* records that something refers to but that were not found */
  salvage_key_list named; /* lost records that were already reported with their id */
  salvage_coll *colls;
  size_t n_colls, cap_colls;
  salvage_counter_key *keys;
  size_t n_keys, cap_keys;
  json_doc json;
  lode_damage_fn *on_loss;
  void *ctx;
  lode_progress progress;
  lode_salvage_report *report;
} salvage_job;

/* Reads every page twice: first for rows, then for what refers to records. */
LODE_MUST lode_status salvage_scan(salvage_job *s, lode_error *err);

void salvage_report_loss(salvage_job *s, const char *what, int64_t cid, lode_str id, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* NULL: the row of the collection was not found. */
salvage_coll *salvage_find_coll(const salvage_job *s, int64_t cid);
/* The first entry with this key, or NULL. */
salvage_found *salvage_found_first(const salvage_found_list *list, int64_t key);
/* The next entry with the same key, or NULL. */
static inline const salvage_found *salvage_found_next(const salvage_found_list *list, const salvage_found *f) {
  return (size_t)(f - list->items) + 1 < list->n && f[1].key == f->key ? f + 1 : NULL;
}
/* Reads a found row again. LODE_CORRUPT: it cannot be read completely. */
LODE_MUST lode_status salvage_read_row(salvage_job *s, const salvage_found *f, sqf_cell *row, strbuf *payload,
                                       lode_error *err);

#endif
