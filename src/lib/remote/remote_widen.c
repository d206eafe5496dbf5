/* SPDX-License-Identifier: Apache-2.0 */
/* remote_widen.c - the first vector of a collection.
 *
 * Qdrant fixes the dimension when a collection is created, Lode with the first vector: the records written before it
 * move to a new generation, which has vectors. Others may write meanwhile. These steps make sure that no write is
 * lost:
 *
 *   1. The entry is locked (remote_registry.c); the new generation is recorded as spare and created.
 *   2. All records of the old generation are copied.
 *   3. The entry is switched to the new generation, with the old one as spare, provided that the lock is still ours.
 *   4. The old generation is dropped, so that nobody reads it any more, and the lock is released.
 *
 * Whoever writes to a generation without vectors reads the entry afterwards (remote_write_stands()), and waits for
 * the lock. If the generation is still the same, a later copy will include the write. If not, the write is repeated
 * in the new generation. Nobody writes to the new generation before step 4 is done.
 */
#include "remote/remote_select.h"

#include "os/os.h"

lode_status remote_drop_spare(remote_store *s, const remote_entry *k, lode_error *err) {
  remote_entry spare = *k;
  spare.generation = k->spare;
  return k->spare && k->spare != k->generation ? remote_generation_drop(s, &spare, err) : LODE_OK;
}

/* ---- Waiting for others ---- */

lode_status remote_wait_unlocked(remote_store *s, lode_str name, mem_arena *arena, remote_entry *k, lode_error *err) {
  remote_lock lock;
  TRY(remote_lock_acquire(s, name, &lock, arena, k, err));
  TRY(remote_drop_spare(s, k, err));
  k->spare = 0;
  return remote_lock_release(s, name, &lock, err);
}

lode_status remote_write_stands(remote_collection *c, const remote_entry *k, mem_arena *arena, bool *stands,
                                lode_error *err) {
  remote_entry now;
  *stands = true;
  if (k->spec.dim) return LODE_OK;
  TRY(remote_entry_of(c, true, arena, &now, err));
  if (now.lock.data) {
    TRY(remote_wait_unlocked(c->store, now.name, arena, &now, err));
    TRY(remote_entry_of(c, true, arena, &now, err));
  }
  *stands = now.generation == k->generation;
  return LODE_OK;
}

/* ---- Moving ---- */

typedef struct widen_job {
  remote_collection *c;
  remote_entry from, to;
  remote_lock lock;
} widen_job;

static lode_status widen_copy_points(widen_job *m, lode_error *err) {
  static const lode_selection everything;
  enum { WIDEN_BATCH = 200 };
  remote_store *store = m->c->store;
  remote_select select = {0};
  remote_scroll scroll = {0};
  remote_call call = {0};
  lode_status st;
  size_t n = 0;
  bool more = true;
  TRY_GOTO(remote_select_init(&select, m->c, &everything, err));
  remote_scroll_init(&scroll, &select, &m->from, LODE_DOCUMENT | LODE_METADATA);
  while (more) {
    remote_point p;
    TRY_GOTO(remote_scroll_next(&scroll, &p, &more, err));
    if (more) {
      if (n == 0) {
        remote_generation_path(&call, store, &m->to, "/points?wait=true");
        strbuf_addstr(&call.body, "{\"points\":[");
      }
      if (n) strbuf_addch(&call.body, ',');
      TRY_GOTO(remote_point_encode(&call.body, &p, m->to.metric, err));
      n++;
    }
    if (n == 0 || (more && n < WIDEN_BATCH)) continue;
    strbuf_addstr(&call.body, "]}");
    TRY_GOTO(remote_call_send(store, "PUT", &call, err));
    TRY_GOTO(remote_lock_heartbeat(store, m->from.name, &m->lock, err));
    n = 0;
  }
done:
  remote_scroll_release(&scroll);
  remote_select_release(&select);
  remote_call_release(&call);
  return st;
}

/* *switched = false: the lock was taken over meanwhile. */
static lode_status widen_switch_over(widen_job *m, mem_arena *arena, bool *switched, lode_error *err) {
  char fields[120];
  remote_store *s = m->c->store;
  lode_str token = str_of(m->lock.token);
  remote_entry now;
  bool found;
  snprintf(fields, sizeof fields, "\"generation\":%u,\"dim\":%u,\"spare\":%u", m->to.generation, m->to.spec.dim,
           m->from.generation);
  TRY(remote_registry_change(s, m->from.name, &token, str_of(fields), err));
  TRY(remote_registry_load(s, m->from.name, arena, &now, &found, err));
  *switched = found && now.uid == m->from.uid && now.generation == m->to.generation;
  return LODE_OK;
}

/* The caller holds the lock. *done: the collection has a dimension. */
static lode_status widen_move(widen_job *m, uint32_t dim, mem_arena *arena, bool *done, lode_error *err) {
  remote_store *s = m->c->store;
  lode_str token = str_of(m->lock.token);
  char fields[40];
  *done = m->from.spec.dim != 0;
  TRY(remote_drop_spare(s, &m->from, err));
  if (*done) return LODE_OK; /* somebody else was first */
  m->to = m->from;
  m->to.spec.dim = dim;
  m->to.generation = (uint32_t)(rand_u64() >> 33) | 1;
  snprintf(fields, sizeof fields, "\"spare\":%u", m->to.generation);
  TRY(remote_registry_change(s, m->from.name, &token, str_of(fields), err));
  lode_status st = remote_generation_create(s, &m->to, err);
  if (st == LODE_OK) st = widen_copy_points(m, err);
  if (st == LODE_OK) st = widen_switch_over(m, arena, done, err);
  lode_error unused;
  if (st != LODE_OK || !*done) /* if it fails, the entry still names it as the spare, and the next holder drops it */
    err_ignore(remote_generation_drop(s, &m->to, &unused));
  else
    st = remote_generation_drop(s, &m->from, err);
  return st;
}

lode_status remote_fix_dimension(remote_collection *c, uint32_t dim, mem_arena *arena, remote_entry *k,
                                 lode_error *err) {
  enum { WIDEN_ATTEMPTS = 8 };
  bool done = false;
  for (int attempt = 0; attempt < WIDEN_ATTEMPTS && !done; attempt++) {
    widen_job m = {.c = c};
    lode_error unused;
    TRY(remote_entry_of(c, true, arena, k, err));
    TRY(remote_lock_acquire(c->store, k->name, &m.lock, arena, &m.from, err));
    lode_status st = m.from.uid == c->uid ? widen_move(&m, dim, arena, &done, err) : LODE_OK;
    lode_status released = remote_lock_release(c->store, k->name, &m.lock, st == LODE_OK ? err : &unused);
    TRY(st);
    TRY(released);
  }
  if (!done) return err_set(err, LODE_BUSY, "other processes keep changing the collection: try again");
  return remote_entry_of(c, true, arena, k, err);
}
