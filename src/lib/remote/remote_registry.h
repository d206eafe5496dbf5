/* SPDX-License-Identifier: Apache-2.0 */
/* remote_registry.h - collections: their entries in the registry and the locks of those (remote_registry.c), their
 * handles and Qdrant collections (remote_collection.c), the first vector (remote_widen.c). */
#ifndef LODE_REMOTE_REMOTE_REGISTRY_H
#define LODE_REMOTE_REMOTE_REGISTRY_H

#include "iface/iface_check.h"
#include "remote/remote.h"

/* A collection's entry in the registry. */
typedef struct remote_entry {
  uint64_t uid;
  uint32_t generation;
  lode_metric metric;
  iface_vector_spec spec; /* dimension, embedder */
  lode_str name, metadata;
  lode_str counters; /* JSON array of keys, or absent */
  uint32_t shards, replicas, write_consistency;
  lode_str lock;  /* token of the lock's holder; absent: not locked */
  uint64_t beat;  /* heartbeat of the holder */
  uint32_t spare; /* a generation to be removed; 0: none */
} remote_entry;

typedef struct remote_collection {
  lode_collection head;
  remote_store *store;
  iface_vector_spec spec; /* the embedder of this handle */
  uint64_t uid;
  pthread_mutex_t lock; /* guards the members below */
  remote_entry entry;   /* as last read; strings in `arena` */
  mem_arena arena;
  strbuf indexed; /* payload fields known to have an index, each followed by NUL */
} remote_collection;
_Static_assert(offsetof(remote_collection, head) == 0, "remote_collection_of() relies on it");
static inline remote_collection *remote_collection_of(lode_collection *head) {
  return INVARIANT(!head || head->engine == &remote_table) ? (remote_collection *)head : NULL;
}

/* ---- Entries of the registry ---- */

enum { REMOTE_LOCK_TOKEN_BYTES = 17, REMOTE_LOCK_STALE_MS = 5000 };
typedef struct remote_lock {
  char token[REMOTE_LOCK_TOKEN_BYTES];
  uint64_t beat, reported_ns;
} remote_lock;
typedef lode_status remote_entry_fn(void *ctx, const remote_entry *k, lode_error *err);

/* Strings are copied to `arena`. *found: there is an entry with this name. */
LODE_MUST lode_status remote_registry_load(remote_store *s, lode_str name, mem_arena *arena, remote_entry *k,
                                           bool *found, lode_error *err);
LODE_MUST lode_status remote_registry_each(remote_store *s, remote_entry_fn *fn, void *ctx, lode_error *err);
LODE_MUST lode_status remote_registry_add(remote_store *s, const remote_entry *k, lode_error *err);
LODE_MUST lode_status remote_registry_remove(remote_store *s, lode_str name, lode_error *err);
LODE_MUST lode_status remote_registry_rename(remote_store *s, const remote_entry *k, lode_str old_name,
                                             lode_error *err);
/* Sets fields of an entry (`fields` is their JSON) if its lock is this one (absent: if it is not locked; NULL: in any
 * case). This is atomic: of two callers, the second finds another lock and changes nothing. */
LODE_MUST lode_status remote_registry_change(remote_store *s, lode_str name, const lode_str *lock, lode_str fields,
                                             lode_error *err);
/* Waits for other holders, and takes over the lock of one that died. *k: the entry, read under the lock. */
LODE_MUST lode_status remote_lock_acquire(remote_store *s, lode_str name, remote_lock *lock, mem_arena *arena,
                                          remote_entry *k, lode_error *err);
/* Call this at least every second while the lock is held. */
LODE_MUST lode_status remote_lock_heartbeat(remote_store *s, lode_str name, remote_lock *lock, lode_error *err);
LODE_MUST lode_status remote_lock_release(remote_store *s, lode_str name, const remote_lock *lock, lode_error *err);

/* Create and drop the Qdrant collection of a generation. It is no error if it exists, or does not exist, already. */
LODE_MUST lode_status remote_generation_create(remote_store *s, const remote_entry *k, lode_error *err);
LODE_MUST lode_status remote_generation_drop(remote_store *s, const remote_entry *k, lode_error *err);
/* Drops the spare generation. The caller holds the lock. */
LODE_MUST lode_status remote_drop_spare(remote_store *s, const remote_entry *k, lode_error *err);
/* Waits until nobody holds the entry's lock. */
LODE_MUST lode_status remote_wait_unlocked(remote_store *s, lode_str name, mem_arena *arena, remote_entry *k,
                                           lode_error *err);
/* After a write to the generation of *k: is that still the current one, or must the write be repeated in a new one? */
LODE_MUST lode_status remote_write_stands(remote_collection *c, const remote_entry *k, mem_arena *arena, bool *stands,
                                          lode_error *err);
/* A handle of a collection, created if the options say so; NULL: the defaults. */
LODE_MUST lode_status remote_handle_open(remote_store *s, lode_str name, const lode_collection_options *options,
                                         remote_collection **c, lode_error *err);
void remote_handle_close(remote_collection *c); /* NULL is allowed */

/* The entry as the handle last read it; `fresh`: reads the registry first. Strings are copied to `arena`.
 * LODE_NOT_FOUND: the collection was dropped. */
LODE_MUST lode_status remote_entry_of(remote_collection *c, bool fresh, mem_arena *arena, remote_entry *entry,
                                      lode_error *err);
/* Gives the collection this dimension, unless it has one already. */
LODE_MUST lode_status remote_fix_dimension(remote_collection *c, uint32_t dim, mem_arena *arena, remote_entry *entry,
                                           lode_error *err);
/* Sets the call's path to "/collections/PREFIX-UID-G" followed by the formatted text. */
__attribute__((format(printf, 4, 5))) void remote_generation_path(remote_call *call, const remote_store *store,
                                                                  const remote_entry *entry, const char *format, ...);
/* Makes Qdrant index a payload field, once per handle; does nothing for a read-only handle. */
LODE_MUST lode_status remote_index_field(remote_collection *c, const remote_entry *entry, const char *field,
                                         const char *schema, lode_error *err);
/* Counts the points; pending may be NULL. */
LODE_MUST lode_status remote_count_points(remote_store *store, const remote_entry *entry, uint64_t *records,
                                          uint64_t *pending, lode_error *err);

#endif
