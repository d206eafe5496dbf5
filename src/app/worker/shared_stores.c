/* SPDX-License-Identifier: Apache-2.0 */
/* shared_stores.c - see shared_stores.h.
 *
 * Locks: `open_lock` guards the opening of stores and the list `others`; `lock` guards the queue of writes and
 * `leading`. Neither is held while a write or a commit runs.
 */
#include "worker/shared_stores.h"
#include "ops/op_context.h"
#include "worker/crash.h"

#include "scan/files.h"

#include <stdatomic.h>

/* Maximum number of writes in one commit, so that no write waits long; the others wait for the next commit. */
enum { STORES_MAX_GROUP = 256 };

typedef struct stores_pending stores_pending;
struct stores_pending {
  op_write_fn *write;
  void *ctx;
  lode_error *err;
  lode_status status;
  bool done;
  pthread_cond_t wake;
  stores_pending *next;
};

/* A store other than the worker's own, named by an operation. */
typedef struct stores_other stores_other;
struct stores_other {
  lode_store *store;
  bool write;
  unsigned users;
  uint64_t used;
  stores_other *next;
  char folder[];
};
enum { STORES_MAX_IDLE = 4 }; /* unused stores that stay open */

struct worker_stores {
  char *folder;
  worker_handles *handles;
  lode_open_options options;
  op_model_policy models;
  bool found, adopted;
  pthread_mutex_t open_lock, lock;
  lode_store *_Atomic store;
  stores_other *others;
  uint64_t clock;
  stores_pending *first, **last;
  bool leading;
};

lode_status worker_stores_new(const char *folder, const lode_open_options *options, worker_stores **out,
                              lode_error *err) {
  worker_stores *e = mem_calloc(1, sizeof *e);
  size_t size = strlen(folder) + 1;
  *out = NULL;
  if (!e) return err_nomem(err);
  e->folder = mem_alloc(size);
  e->handles = worker_handles_new();
  if (!e->folder || !e->handles) {
    mem_free(e->folder);
    worker_handles_free(e->handles);
    mem_free(e);
    return err_nomem(err);
  }
  memcpy(e->folder, folder, size);
  e->options = *options;
  e->last = &e->first;
  pthread_mutex_init(&e->open_lock, NULL);
  pthread_mutex_init(&e->lock, NULL);
  *out = e;
  return LODE_OK;
}

const char *worker_stores_folder(const worker_stores *e) { return e->folder; }
const lode_open_options *worker_stores_settings(const worker_stores *e) { return &e->options; }
void worker_stores_allow_models(worker_stores *e, op_model_policy policy) { e->models = policy; }
const op_model_policy *worker_stores_models(const worker_stores *e) { return &e->models; }
void worker_stores_set_origin(worker_stores *e, bool found, bool adopted) {
  e->found = found;
  e->adopted = adopted;
}
bool worker_stores_found(const worker_stores *e) { return e->found; }
bool worker_stores_adopted(const worker_stores *e) { return e->adopted; }
worker_handles *worker_stores_handles(worker_stores *e) { return e->handles; }

/* ---- The store ---- */

static lode_status stores_open_main(worker_stores *e, const op_open_options *how, lode_store **store, lode_error *err) {
  lode_open_options options = e->options;
  options.create = !options.read_only && (options.create || how->create);
  options.no_background = options.read_only;
  if (options.create && !op_is_address(e->folder)) TRY(files_make_parents(e->folder, err));
  lode_status st = lode_open(e->folder, &options, store, err);
  if (st == LODE_READONLY && !how->write) {
    options.create = false;
    options.read_only = options.no_background = true;
    st = lode_open(e->folder, &options, store, err);
  }
  if (st == LODE_NOT_FOUND)
    return err_set(err, st, "there is no store at %.400s; `lode db create NAME` makes one", e->folder);
  return st;
}

lode_status worker_stores_main(worker_stores *e, const op_open_options *how, lode_store **store, lode_error *err) {
  lode_status st = LODE_OK;
  *store = atomic_load(&e->store);
  if (*store) return LODE_OK;
  pthread_mutex_lock(&e->open_lock);
  *store = atomic_load(&e->store);
  if (!*store) {
    st = stores_open_main(e, how, store, err);
    atomic_store(&e->store, *store);
    atomic_store(&crash_live_stats.open, st == LODE_OK);
  }
  pthread_mutex_unlock(&e->open_lock);
  return st;
}

/* Caller holds open_lock. */
static lode_status stores_open_other(worker_stores *e, const op_open_options *how, stores_other **out,
                                     lode_error *err) {
  size_t size = strlen(how->folder) + 1;
  lode_open_options options = e->options;
  stores_other *o = mem_calloc(1, sizeof *o + size);
  if (!o) return err_nomem(err);
  memcpy(o->folder, how->folder, size);
  o->write = how->write;
  options.create = how->create && !options.read_only;
  options.page_bytes = how->page_bytes;
  options.read_only = options.no_background = !how->write || options.read_only;
  lode_status st = options.create && !op_is_address(o->folder) ? files_make_parents(o->folder, err) : LODE_OK;
  if (st == LODE_OK) st = lode_open(o->folder, &options, &o->store, err);
  if (st != LODE_OK) {
    mem_free(o);
    return st;
  }
  o->next = e->others;
  e->others = o;
  *out = o;
  return LODE_OK;
}

/* Caller holds open_lock. Closes unused stores, the least recently used first, until `keep` are left. */
static void stores_close_others(worker_stores *e, size_t keep) {
  for (;;) {
    stores_other **oldest = NULL;
    size_t idle = 0;
    for (stores_other **at = &e->others; *at; at = &(*at)->next) {
      if ((*at)->users) continue;
      idle++;
      if (!oldest || (*at)->used < (*oldest)->used) oldest = at;
    }
    if (idle <= keep) return;
    stores_other *gone = *oldest;
    *oldest = gone->next;
    lode_close(gone->store);
    mem_free(gone);
  }
}

lode_status worker_stores_open(void *shared, const op_open_options *how, lode_store **store, lode_error *err) {
  worker_stores *e = shared;
  lode_status st = LODE_OK;
  if (!how->folder || strcmp(how->folder, e->folder) == 0) return worker_stores_main(e, how, store, err);
  *store = NULL;
  pthread_mutex_lock(&e->open_lock);
  stores_other *o = e->others;
  while (o && (strcmp(o->folder, how->folder) != 0 || (how->write && !o->write))) o = o->next;
  if (!o) st = stores_open_other(e, how, &o, err);
  if (st == LODE_OK) {
    o->users++;
    o->used = ++e->clock;
    *store = o->store;
  }
  pthread_mutex_unlock(&e->open_lock);
  return st;
}

void worker_stores_release(void *shared, lode_store *store) {
  worker_stores *e = shared;
  pthread_mutex_lock(&e->open_lock);
  for (stores_other *o = e->others; o; o = o->next)
    if (o->store == store) o->users--;
  stores_close_others(e, STORES_MAX_IDLE);
  pthread_mutex_unlock(&e->open_lock);
}

void worker_stores_free(worker_stores *e) {
  if (!e) return;
  worker_handles_free(e->handles);
  stores_close_others(e, 0);
  lode_close(atomic_load(&e->store));
  pthread_mutex_destroy(&e->open_lock);
  pthread_mutex_destroy(&e->lock);
  mem_free(e->folder);
  mem_free(e);
}

/* ---- Group commit ---- */

/* Runs a group of writes and commits them. */
static void stores_commit_group(lode_store *store, stores_pending *batch) {
  lode_error err = {.record = LODE_NO_RECORD};
  lode_txn *txn = NULL;
  atomic_fetch_add(&crash_live_stats.committing, 1);
  lode_status st = lode_begin(store, &txn, &err);
  bool any = false;
  if (st == LODE_OK) {
    for (stores_pending *p = batch; p; p = p->next) {
      p->status = p->write(p->ctx, txn, p->err);
      any = any || p->status == LODE_OK;
    }
    if (any)
      st = lode_commit(txn, &err);
    else
      lode_rollback(txn);
  }
  atomic_fetch_sub(&crash_live_stats.committing, 1);
  if (st == LODE_OK) {
    atomic_fetch_add(&crash_live_stats.commits, any);
    return;
  }
  for (stores_pending *p = batch; p; p = p->next) {
    if (!txn) p->status = LODE_OK; /* it did not run */
    if (p->status != LODE_OK) continue;
    p->status = st;
    if (p->err) *p->err = err;
  }
}

/* Removes up to STORES_MAX_GROUP writes from the queue. */
static stores_pending *stores_take_group(worker_stores *e) {
  stores_pending *batch = e->first, *last = batch;
  for (size_t n = 1; last->next && n < STORES_MAX_GROUP; n++) last = last->next;
  e->first = last->next;
  if (!e->first) e->last = &e->first;
  last->next = NULL;
  return batch;
}

static void stores_wake_group(stores_pending *batch, const stores_pending *self) {
  while (batch) {
    stores_pending *next = batch->next; /* the owner may free it once it is done */
    batch->done = true;
    if (batch != self) pthread_cond_signal(&batch->wake);
    batch = next;
  }
}

lode_status worker_stores_write(void *shared, op_write_fn *write, void *ctx, lode_error *err) {
  static const op_open_options how = {.write = true};
  worker_stores *e = shared;
  stores_pending self = {.write = write, .ctx = ctx, .err = err};
  lode_store *store;
  TRY(worker_stores_main(e, &how, &store, err));
  if (op_is_address(e->folder)) return write(ctx, NULL, err); /* a cluster has no transactions to share */
  pthread_cond_init(&self.wake, NULL);
  pthread_mutex_lock(&e->lock);
  *e->last = &self;
  e->last = &self.next;
  while (!self.done && e->leading) pthread_cond_wait(&self.wake, &e->lock);
  if (!self.done) {
    e->leading = true;
    /* self is in the queue, in order: nobody else has taken it, so this loop reaches it */
    while (!self.done) {
      stores_pending *batch = stores_take_group(e);
      pthread_mutex_unlock(&e->lock);
      stores_commit_group(store, batch);
      pthread_mutex_lock(&e->lock);
      stores_wake_group(batch, &self);
    }
    e->leading = false;
    if (e->first) pthread_cond_signal(&e->first->wake); /* the next leader */
  }
  pthread_mutex_unlock(&e->lock);
  pthread_cond_destroy(&self.wake);
  return self.status;
}
