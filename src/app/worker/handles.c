/* SPDX-License-Identifier: Apache-2.0 */
/* handles.c - see handles.h. One lock guards the list; it is not held while a collection is opened. */
#include "worker/handles.h"

#include <pthread.h>

struct worker_handles {
  pthread_mutex_t lock;
  worker_handle *list;
  size_t n;
  uint64_t clock;
};

worker_handles *worker_handles_new(void) {
  worker_handles *h = mem_calloc(1, sizeof *h);
  if (h) pthread_mutex_init(&h->lock, NULL);
  return h;
}

static void handles_close(worker_handle *handle) {
  lode_collection_close(handle->collection);
  mem_free(handle);
}

void worker_handles_free(worker_handles *h) {
  if (!h) return;
  while (h->list) {
    worker_handle *next = h->list->next;
    handles_close(h->list);
    h->list = next;
  }
  pthread_mutex_destroy(&h->lock);
  mem_free(h);
}

/* Caller holds the lock. */
static worker_handle *handles_find(worker_handles *h, uint64_t uid) {
  worker_handle *at = h->list;
  while (at && (at->uid != uid || at->stale)) at = at->next;
  if (!at) return NULL;
  at->users++;
  at->used = ++h->clock;
  return at;
}

static void handles_unlink(worker_handles *h, worker_handle *handle) {
  worker_handle **at = &h->list;
  while (*at != handle) at = &(*at)->next;
  *at = handle->next;
  h->n--;
}

static void handles_evict(worker_handles *h) {
  worker_handle *oldest = NULL;
  if (h->n < WORKER_MAX_HANDLES) return;
  for (worker_handle *at = h->list; at; at = at->next)
    if (at->users == 0 && (!oldest || at->used < oldest->used)) oldest = at;
  if (!oldest) return;
  handles_unlink(h, oldest);
  handles_close(oldest);
}

/* Allocates a handle with the name of a uid; LODE_NOT_FOUND if there is none. */
static lode_status handles_read_name(lode_store *store, uint64_t uid, worker_handle **handle, lode_error *err) {
  lode_collection_list *list = NULL;
  *handle = NULL;
  TRY(lode_collections(store, &list, err));
  lode_status st = LODE_NOT_FOUND;
  for (size_t i = 0; i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    if (info->uid != uid) continue;
    worker_handle *made = mem_calloc(1, sizeof *made + info->name.len + info->metadata.len + 1);
    if (!made) {
      st = err_nomem(err);
      break;
    }
    memcpy(made + 1, info->name.data, info->name.len);
    made->name = (lode_str){(const char *)(made + 1), info->name.len};
    if (info->metadata.len) memcpy((char *)(made + 1) + info->name.len, info->metadata.data, info->metadata.len);
    made->metadata = (lode_str){(const char *)(made + 1) + info->name.len, info->metadata.len};
    made->uid = uid;
    *handle = made;
    st = LODE_OK;
    break;
  }
  lode_collection_list_free(list);
  return st == LODE_NOT_FOUND ? err_set(err, st, "there is no such collection") : st;
}

/* Names can be reassigned at any time. If the name has the uid both before and after it is opened, so has the
 * handle. */
static lode_status handles_open(lode_store *store, uint64_t uid, worker_handle **handle, lode_error *err) {
  worker_handle *again = NULL;
  TRY(handles_read_name(store, uid, handle, err));
  lode_status st = lode_collection_open(store, (*handle)->name, NULL, &(*handle)->collection, err);
  if (st == LODE_OK) st = handles_read_name(store, uid, &again, err);
  if (st == LODE_OK && !str_eq(again->name, (*handle)->name))
    st = err_set(err, LODE_BUSY, "the collection is being renamed: try again");
  mem_free(again);
  if (st == LODE_OK) return LODE_OK;
  handles_close(*handle);
  *handle = NULL;
  return st;
}

lode_status worker_handles_acquire(worker_handles *h, lode_store *store, uint64_t uid, worker_handle **handle,
                                   lode_error *err) {
  worker_handle *made;
  pthread_mutex_lock(&h->lock);
  *handle = handles_find(h, uid);
  pthread_mutex_unlock(&h->lock);
  if (*handle) return LODE_OK;
  TRY(handles_open(store, uid, &made, err));
  pthread_mutex_lock(&h->lock);
  *handle = handles_find(h, uid);
  if (!*handle) {
    handles_evict(h);
    made->users = 1;
    made->used = ++h->clock;
    made->next = h->list;
    h->list = made;
    h->n++;
    *handle = made;
    made = NULL;
  }
  pthread_mutex_unlock(&h->lock);
  if (made) handles_close(made);
  return LODE_OK;
}

void worker_handles_release(worker_handles *h, worker_handle *handle, bool stale) {
  pthread_mutex_lock(&h->lock);
  handle->stale = handle->stale || stale;
  bool last = --handle->users == 0 && handle->stale;
  if (last) handles_unlink(h, handle);
  pthread_mutex_unlock(&h->lock);
  if (last) handles_close(handle);
}
