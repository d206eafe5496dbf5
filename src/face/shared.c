/* shared.c - see shared.h.
 *
 * Locks: `open_lock` guards the opening of stores and the list of others; `lock` guards the queue of writes and `leading`. Neither is
 * held while a write or a commit runs.
 */
#include "shared.h"
#include "cli.h"
#include "crash.h"

#include "code/fs.h"

#include <stdatomic.h>

/* One commit takes up to this many writes: later ones wait for the next, so that nobody waits long. */
enum { MOST_WRITES = 256 };

typedef struct pending pending;
struct pending {
  lode__write_fn *write;
  void *ctx;
  lode_error *err;
  lode_status status;
  bool done;
  pthread_cond_t wake;
  pending *next;
};

/* A store other than the worker's own, of an operation that names one. */
typedef struct other other;
struct other {
  lode_store *store;
  bool write;
  unsigned users;
  uint64_t used;
  other *next;
  char folder[];
};
enum { MOST_OTHERS = 4 }; /* that stay open while nobody uses them */

struct lode__shared {
  char *folder;
  lode__handles *handles;
  lode_open_options options;
  lode__model_policy models;
  bool found, adopted;
  pthread_mutex_t open_lock, lock;
  lode_store *_Atomic store;
  other *others;
  uint64_t clock;
  pending *first, **last;
  bool leading;
};

lode_status lode__shared_make(const char *folder, const lode_open_options *options, lode__shared **out, lode_error *err) {
  lode__shared *e = mem_calloc(1, sizeof *e);
  size_t size = strlen(folder) + 1;
  *out = NULL;
  if (!e) return err_nomem(err);
  e->folder = mem_alloc(size);
  e->handles = lode__handles_make();
  if (!e->folder || !e->handles) {
    mem_free(e->folder);
    lode__handles_free(e->handles);
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

const char *lode__shared_folder(const lode__shared *e) { return e->folder; }
const lode_open_options *lode__shared_settings(const lode__shared *e) { return &e->options; }
void lode__shared_allow_models(lode__shared *e, lode__model_policy policy) { e->models = policy; }
const lode__model_policy *lode__shared_models(const lode__shared *e) { return &e->models; }
void lode__shared_mark(lode__shared *e, bool found, bool adopted) {
  e->found = found;
  e->adopted = adopted;
}
bool lode__shared_found(const lode__shared *e) { return e->found; }
bool lode__shared_adopted(const lode__shared *e) { return e->adopted; }
lode__handles *lode__shared_handles(lode__shared *e) { return e->handles; }

/* ---- The store ---- */

static lode_status open_store(lode__shared *e, const lode__open_how *how, lode_store **store, lode_error *err) {
  lode_open_options options = e->options;
  options.create = !options.read_only && (options.create || how->create);
  options.no_background = options.read_only;
  if (options.create && !lode__is_address(e->folder)) TRY(files_make_parents(e->folder, err));
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

lode_status lode__shared_store(lode__shared *e, const lode__open_how *how, lode_store **store, lode_error *err) {
  lode_status st = LODE_OK;
  *store = atomic_load(&e->store);
  if (*store) return LODE_OK;
  pthread_mutex_lock(&e->open_lock);
  *store = atomic_load(&e->store);
  if (!*store) {
    st = open_store(e, how, store, err);
    atomic_store(&e->store, *store);
    atomic_store(&lode__crash.open, st == LODE_OK);
  }
  pthread_mutex_unlock(&e->open_lock);
  return st;
}

/* With open_lock. */
static lode_status open_other(lode__shared *e, const lode__open_how *how, other **out, lode_error *err) {
  size_t size = strlen(how->folder) + 1;
  lode_open_options options = e->options;
  other *o = mem_calloc(1, sizeof *o + size);
  if (!o) return err_nomem(err);
  memcpy(o->folder, how->folder, size);
  o->write = how->write;
  options.create = how->create && !options.read_only;
  options.page_bytes = how->page_bytes;
  options.read_only = options.no_background = !how->write || options.read_only;
  lode_status st = options.create && !lode__is_address(o->folder) ? files_make_parents(o->folder, err) : LODE_OK;
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

/* With open_lock: closes those that were not used for longest. */
static void close_others(lode__shared *e, size_t keep) {
  for (;;) {
    other **oldest = NULL;
    size_t idle = 0;
    for (other **at = &e->others; *at; at = &(*at)->next) {
      if ((*at)->users) continue;
      idle++;
      if (!oldest || (*at)->used < (*oldest)->used) oldest = at;
    }
    if (idle <= keep) return;
    other *gone = *oldest;
    *oldest = gone->next;
    lode_close(gone->store);
    mem_free(gone);
  }
}

lode_status lode__shared_open(void *shared, const lode__open_how *how, lode_store **store, lode_error *err) {
  lode__shared *e = shared;
  lode_status st = LODE_OK;
  if (!how->folder || strcmp(how->folder, e->folder) == 0) return lode__shared_store(e, how, store, err);
  *store = NULL;
  pthread_mutex_lock(&e->open_lock);
  other *o = e->others;
  while (o && (strcmp(o->folder, how->folder) != 0 || (how->write && !o->write))) o = o->next;
  if (!o) st = open_other(e, how, &o, err);
  if (st == LODE_OK) {
    o->users++;
    o->used = ++e->clock;
    *store = o->store;
  }
  pthread_mutex_unlock(&e->open_lock);
  return st;
}

void lode__shared_release(void *shared, lode_store *store) {
  lode__shared *e = shared;
  pthread_mutex_lock(&e->open_lock);
  for (other *o = e->others; o; o = o->next)
    if (o->store == store) o->users--;
  close_others(e, MOST_OTHERS);
  pthread_mutex_unlock(&e->open_lock);
}

void lode__shared_free(lode__shared *e) {
  if (!e) return;
  lode__handles_free(e->handles);
  close_others(e, 0);
  lode_close(atomic_load(&e->store));
  pthread_mutex_destroy(&e->open_lock);
  pthread_mutex_destroy(&e->lock);
  mem_free(e->folder);
  mem_free(e);
}

/* ---- Group commit ---- */

/* Runs a batch of writes and their commit. */
static void commit_batch(lode_store *store, pending *batch) {
  lode_error err = {.record = LODE_NO_RECORD};
  lode_txn *txn = NULL;
  atomic_fetch_add(&lode__crash.committing, 1);
  lode_status st = lode_begin(store, &txn, &err);
  bool any = false;
  if (st == LODE_OK) {
    for (pending *p = batch; p; p = p->next) {
      p->status = p->write(p->ctx, txn, p->err);
      any = any || p->status == LODE_OK;
    }
    if (any) st = lode_commit(txn, &err);
    else lode_rollback(txn);
  }
  atomic_fetch_sub(&lode__crash.committing, 1);
  if (st == LODE_OK) {
    atomic_fetch_add(&lode__crash.commits, any);
    return;
  }
  for (pending *p = batch; p; p = p->next) {
    if (!txn) p->status = LODE_OK; /* it did not run */
    if (p->status != LODE_OK) continue;
    p->status = st;
    if (p->err) *p->err = err;
  }
}

/* The writes that wait, at most MOST_WRITES of them, taken off the queue. */
static pending *take_batch(lode__shared *e) {
  pending *batch = e->first, *last = batch;
  for (size_t n = 1; last->next && n < MOST_WRITES; n++) last = last->next;
  e->first = last->next;
  if (!e->first) e->last = &e->first;
  last->next = NULL;
  return batch;
}

static void wake_batch(pending *batch, const pending *self) {
  while (batch) {
    pending *next = batch->next; /* its owner may be gone the moment it is done */
    batch->done = true;
    if (batch != self) pthread_cond_signal(&batch->wake);
    batch = next;
  }
}

lode_status lode__shared_write(void *shared, lode__write_fn *write, void *ctx, lode_error *err) {
  static const lode__open_how how = {.write = true};
  lode__shared *e = shared;
  pending self = {.write = write, .ctx = ctx, .err = err};
  lode_store *store;
  TRY(lode__shared_store(e, &how, &store, err));
  if (lode__is_address(e->folder)) return write(ctx, NULL, err); /* a cluster has no transactions to share */
  pthread_cond_init(&self.wake, NULL);
  pthread_mutex_lock(&e->lock);
  *e->last = &self;
  e->last = &self.next;
  while (!self.done && e->leading) pthread_cond_wait(&self.wake, &e->lock);
  if (!self.done) {
    e->leading = true;
    /* The batch that is taken first holds self: nobody else has taken it, and the queue is in order */
    while (!self.done) {
      pending *batch = take_batch(e);
      pthread_mutex_unlock(&e->lock);
      commit_batch(store, batch);
      pthread_mutex_lock(&e->lock);
      wake_batch(batch, &self);
    }
    e->leading = false;
    if (e->first) pthread_cond_signal(&e->first->wake); /* the next leader */
  }
  pthread_mutex_unlock(&e->lock);
  pthread_cond_destroy(&self.wake);
  return self.status;
}
