/* widen.c - the first vector of a collection.
 *
 * Qdrant fixes the dimension when a collection is made, Lode when the first vector comes: records that were written before move
 * to a new generation, which has room for vectors. Others write meanwhile. What keeps their writes:
 *
 *   1. The entry is locked (registry.c), the new generation made and noted as spare.
 *   2. All records of the old one are copied.
 *   3. The entry is switched to the new one, the old one becoming the spare; only if the lock is still ours.
 *   4. The old one is removed, so that nobody reads there any more, and the lock given back.
 *
 * Whoever writes to a generation without vectors looks at the entry afterwards (lode__remote_stands), and waits for the lock. If the
 * generation is still the same, the write was there before any copying began, or will be when it begins. If not, it is
 * done again in the new one. Nobody writes to the new one before step 4 is done.
 */
#include "remote.h"

#include "base/os.h"

lode_status lode__remote_tidy(lode_store *s, const lode__remote_kind *k, lode_error *err) {
  lode__remote_kind spare = *k;
  spare.generation = k->spare;
  return k->spare && k->spare != k->generation ? lode__remote_unmake(s, &spare, err) : LODE_OK;
}

/* ---- Waiting for others ---- */

lode_status lode__remote_settle(lode_store *s, lode_str name, mem_arena *arena, lode__remote_kind *k, lode_error *err) {
  lode__registry_lock lock;
  TRY(lode__registry_lock_take(s, name, &lock, arena, k, err));
  TRY(lode__remote_tidy(s, k, err));
  k->spare = 0;
  return lode__registry_lock_give(s, name, &lock, err);
}

lode_status lode__remote_stands(lode_collection *c, const lode__remote_kind *k, mem_arena *arena, bool *stands, lode_error *err) {
  lode__remote_kind now;
  *stands = true;
  if (k->fit.dim) return LODE_OK;
  TRY(lode__remote_kind_of(c, true, arena, &now, err));
  if (now.lock.data) {
    TRY(lode__remote_settle(c->store, now.name, arena, &now, err));
    TRY(lode__remote_kind_of(c, true, arena, &now, err));
  }
  *stands = now.generation == k->generation;
  return LODE_OK;
}

/* ---- Moving ---- */

typedef struct moving {
  lode_collection *c;
  lode__remote_kind from, to;
  lode__registry_lock lock;
} moving;

static lode_status copy_points(moving *m, lode_error *err) {
  static const lode_selection everything;
  enum { BATCH = 200 };
  lode_store *store = m->c->store;
  lode__remote_select select = {0};
  lode__scroll scroll = {0};
  lode__call call = {0};
  lode_status st;
  size_t n = 0;
  bool more = true;
  TRY_GOTO(lode__remote_select_init(&select, m->c, &everything, err));
  lode__scroll_init(&scroll, &select, &m->from, LODE_DOCUMENT | LODE_METADATA);
  while (more) {
    lode__point p;
    TRY_GOTO(lode__scroll_next(&scroll, &p, &more, err));
    if (more) {
      if (n == 0) {
        lode__remote_path(&call, store, &m->to, "/points?wait=true");
        strbuf_addstr(&call.body, "{\"points\":[");
      }
      if (n) strbuf_addch(&call.body, ',');
      TRY_GOTO(lode__point_put(&call.body, &p, m->to.metric, err));
      n++;
    }
    if (n == 0 || (more && n < BATCH)) continue;
    strbuf_addstr(&call.body, "]}");
    TRY_GOTO(lode__call_send(store, "PUT", &call, err));
    TRY_GOTO(lode__registry_lock_beat(store, m->from.name, &m->lock, err));
    n = 0;
  }
done:
  lode__scroll_release(&scroll);
  lode__remote_select_release(&select);
  lode__call_release(&call);
  return st;
}

/* *switched: false when the lock was taken over meanwhile. */
static lode_status switch_over(moving *m, mem_arena *arena, bool *switched, lode_error *err) {
  char fields[120];
  lode_store *s = m->c->store;
  lode_str token = str_of(m->lock.token);
  lode__remote_kind now;
  bool found;
  snprintf(fields, sizeof fields, "\"generation\":%u,\"dim\":%u,\"spare\":%u", m->to.generation, m->to.fit.dim, m->from.generation);
  TRY(lode__registry_change(s, m->from.name, &token, str_of(fields), err));
  TRY(lode__registry_load(s, m->from.name, arena, &now, &found, err));
  *switched = found && now.uid == m->from.uid && now.generation == m->to.generation;
  return LODE_OK;
}

/* Under the lock. *done: the collection has a dimension. */
static lode_status move(moving *m, uint32_t dim, mem_arena *arena, bool *done, lode_error *err) {
  lode_store *s = m->c->store;
  lode_str token = str_of(m->lock.token);
  char fields[40];
  *done = m->from.fit.dim != 0;
  TRY(lode__remote_tidy(s, &m->from, err));
  if (*done) return LODE_OK; /* somebody else was first */
  m->to = m->from;
  m->to.fit.dim = dim;
  m->to.generation = (uint32_t)(rand_u64() >> 33) | 1;
  snprintf(fields, sizeof fields, "\"spare\":%u", m->to.generation);
  TRY(lode__registry_change(s, m->from.name, &token, str_of(fields), err));
  lode_status st = lode__remote_make(s, &m->to, err);
  if (st == LODE_OK) st = copy_points(m, err);
  if (st == LODE_OK) st = switch_over(m, arena, done, err);
  lode_error unused;
  if (st != LODE_OK || !*done) (void)lode__remote_unmake(s, &m->to, &unused);
  else st = lode__remote_unmake(s, &m->from, err);
  return st;
}

lode_status lode__remote_fix_dimension(lode_collection *c, uint32_t dim, mem_arena *arena, lode__remote_kind *k, lode_error *err) {
  enum { ATTEMPTS = 8 };
  bool done = false;
  for (int attempt = 0; attempt < ATTEMPTS && !done; attempt++) {
    moving m = {.c = c};
    lode_error unused;
    TRY(lode__remote_kind_of(c, true, arena, k, err));
    TRY(lode__registry_lock_take(c->store, k->name, &m.lock, arena, &m.from, err));
    lode_status st = m.from.uid == c->uid ? move(&m, dim, arena, &done, err) : LODE_OK;
    lode_status given = lode__registry_lock_give(c->store, k->name, &m.lock, st == LODE_OK ? err : &unused);
    TRY(st);
    TRY(given);
  }
  if (!done) return err_set(err, LODE_BUSY, "other processes keep changing the collection: try again");
  return lode__remote_kind_of(c, true, arena, k, err);
}
