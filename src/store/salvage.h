/* salvage.h - what salvage_find.c (looking) and salvage.c (writing) share. */
#ifndef LODE_SALVAGE_H
#define LODE_SALVAGE_H

#include "db.h"
#include "pages.h"

/* How sure we are that a row which proves itself is also in use. */
enum {
  LODE__TRUST_LOOSE,  /* found between the rows of a damaged page: counts only if something else speaks of it */
  LODE__TRUST_LISTED, /* one of the rows of a damaged page */
  LODE__TRUST_SOUND,  /* on a sound page */
};

typedef struct lode__found {
  int64_t key;
  uint32_t page;
  uint16_t offset;
  uint8_t trust;
  uint8_t spoken;     /* records: LODE__MENTIONED, LODE__NAMED */
} lode__found;

enum {
  LODE__MENTIONED = 1, /* a name, document or vector on a sound page belongs to it */
  LODE__NAMED = 2,     /* a name */
};

typedef struct lode__found_list {
  lode__found *items; /* sorted by key, then the most trusted first, once looking has ended */
  size_t n, cap;
} lode__found_list;

typedef struct lode__key_list {
  int64_t *items;
  size_t n, cap;
} lode__key_list;

typedef struct lode__found_coll {
  lode__coll coll;    /* strings in the arena */
  uint8_t trust;
  bool dropped;
  uint64_t names;     /* found; as many as coll.records: all of them, so a record without a name was deleted */
} lode__found_coll;

typedef struct lode__found_key { /* a metadata key declared as a counter */
  int64_t cid;
  lode_str name;
} lode__found_key;

typedef struct lode__salvage {
  lode__pages pages;
  unsigned char *page;       /* the one being looked at */
  strbuf payload;
  mem_arena arena;
  lode__found_list records, documents, vectors;
  lode__key_list dead;       /* records in graves */
  lode__key_list lost;       /* records that something speaks of and that are not there */
  lode__key_list named;      /* those of them that were reported by name already */
  lode__found_coll *colls;
  size_t n_colls, cap_colls;
  lode__found_key *keys;
  size_t n_keys, cap_keys;
  json_doc json;
  lode_damage_fn *on_loss;
  void *ctx;
  lode_progress progress;
  lode_salvage_report *report;
} lode__salvage;

/* Looks at every page, twice: for rows, then for what speaks of rows. */
lode_status lode__salvage_look(lode__salvage *s, lode_error *err);

void lode__salvage_loss(lode__salvage *s, const char *what, int64_t cid, lode_str id, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* NULL when its row was not found. */
lode__found_coll *lode__salvage_coll(const lode__salvage *s, int64_t cid);
/* First entry with that key, NULL when there is none. */
lode__found *lode__found_first(const lode__found_list *list, int64_t key);
/* The next one with the same key, NULL when there is none. */
static inline const lode__found *lode__found_next(const lode__found_list *list, const lode__found *f) {
  return (size_t)(f - list->items) + 1 < list->n && f[1].key == f->key ? f + 1 : NULL;
}
/* Reads a found row again. LODE_CORRUPT: it cannot be read as a whole. */
lode_status lode__salvage_row(lode__salvage *s, const lode__found *f, lode__row *row, strbuf *payload, lode_error *err);

#endif
