/* salvage.h - what salvage_find.c (looking) and salvage.c (writing) share. */
#ifndef LODE_STORE_SALVAGE_H
#define LODE_STORE_SALVAGE_H

#include "store/db.h"
#include "store/truth_pages.h"

/* How sure we are that a row which proves itself is also in use. */
enum {
  SALVAGE_TRUST_LOOSE,  /* found between the rows of a damaged page: counts only if something else speaks of it */
  SALVAGE_TRUST_LISTED, /* one of the rows of a damaged page */
  SALVAGE_TRUST_SOUND,  /* on a sound page */
};

typedef struct salvage_found {
  int64_t key;
  uint32_t page;
  uint16_t offset;
  uint8_t trust;
  uint8_t spoken;     /* records: SALVAGE_MENTIONED, SALVAGE_NAMED */
} salvage_found;

enum {
  SALVAGE_MENTIONED = 1, /* a name, document or vector on a sound page belongs to it */
  SALVAGE_NAMED = 2,     /* a name */
};

typedef struct salvage_found_list {
  salvage_found *items; /* sorted by key, then the most trusted first, once looking has ended */
  size_t n, cap;
} salvage_found_list;

typedef struct salvage_key_list {
  int64_t *items;
  size_t n, cap;
} salvage_key_list;

typedef struct salvage_coll {
  store_coll coll;    /* strings in the arena */
  uint8_t trust;
  bool dropped;
  uint64_t names;     /* found; as many as coll.records: all of them, so a record without a name was deleted */
} salvage_coll;

typedef struct salvage_counter_key { /* a metadata key declared as a counter */
  int64_t cid;
  lode_str name;
} salvage_counter_key;

typedef struct salvage_job {
  store_pages pages;
  unsigned char *page;       /* the one being looked at */
  strbuf payload;
  mem_arena arena;
  salvage_found_list records, documents, vectors;
  salvage_key_list dead;       /* records in graves */
  salvage_key_list lost;       /* records that something speaks of and that are not there */
  salvage_key_list named;      /* those of them that were reported by name already */
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

/* Looks at every page, twice: for rows, then for what speaks of rows. */
lode_status salvage_scan(salvage_job *s, lode_error *err);

void salvage_report_loss(salvage_job *s, const char *what, int64_t cid, lode_str id, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* NULL when its row was not found. */
salvage_coll *salvage_find_coll(const salvage_job *s, int64_t cid);
/* First entry with that key, NULL when there is none. */
salvage_found *salvage_found_first(const salvage_found_list *list, int64_t key);
/* The next one with the same key, NULL when there is none. */
static inline const salvage_found *salvage_found_next(const salvage_found_list *list, const salvage_found *f) {
  return (size_t)(f - list->items) + 1 < list->n && f[1].key == f->key ? f + 1 : NULL;
}
/* Reads a found row again. LODE_CORRUPT: it cannot be read as a whole. */
lode_status salvage_read_row(salvage_job *s, const salvage_found *f, store_row *row, strbuf *payload, lode_error *err);

#endif
