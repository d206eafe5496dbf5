/* handles.c - see handles.h. One lock guards the list; it is not held while a collection is opened. */
#include "handles.h"

#include <pthread.h>

struct lode__handles {
  pthread_mutex_t lock;
  lode__handle *list;
  size_t n;
  uint64_t clock;
};

lode__handles *lode__handles_make(void) {
  lode__handles *h = mem_calloc(1, sizeof *h);
  if (h) pthread_mutex_init(&h->lock, NULL);
  return h;
}

static void close_handle(lode__handle *handle) {
  lode_collection_close(handle->collection);
  mem_free(handle);
}

void lode__handles_free(lode__handles *h) {
  if (!h) return;
  while (h->list) {
    lode__handle *next = h->list->next;
    close_handle(h->list);
    h->list = next;
  }
  pthread_mutex_destroy(&h->lock);
  mem_free(h);
}

/* With the lock. */
static lode__handle *find(lode__handles *h, uint64_t uid) {
  lode__handle *at = h->list;
  while (at && (at->uid != uid || at->stale)) at = at->next;
  if (!at) return NULL;
  at->users++;
  at->used = ++h->clock;
  return at;
}

static void take_out(lode__handles *h, lode__handle *handle) {
  lode__handle **at = &h->list;
  while (*at != handle) at = &(*at)->next;
  *at = handle->next;
  h->n--;
}

static void make_room(lode__handles *h) {
  lode__handle *oldest = NULL;
  if (h->n < LODE__HANDLES_KEPT) return;
  for (lode__handle *at = h->list; at; at = at->next)
    if (at->users == 0 && (!oldest || at->used < oldest->used)) oldest = at;
  if (!oldest) return;
  take_out(h, oldest);
  close_handle(oldest);
}

/* The name of a uid, into the handle; LODE_NOT_FOUND. */
static lode_status name_of(lode_store *store, uint64_t uid, lode__handle **handle, lode_error *err) {
  lode_collection_list *list = NULL;
  *handle = NULL;
  TRY(lode_collections(store, &list, err));
  lode_status st = LODE_NOT_FOUND;
  for (size_t i = 0; i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    if (info->uid != uid) continue;
    lode__handle *made = mem_calloc(1, sizeof *made + info->name.len + 1);
    if (!made) {
      st = err_nomem(err);
      break;
    }
    memcpy(made + 1, info->name.data, info->name.len);
    made->name = (lode_str){(const char *)(made + 1), info->name.len};
    made->uid = uid;
    *handle = made;
    st = LODE_OK;
    break;
  }
  lode_collection_list_free(list);
  return st == LODE_NOT_FOUND ? err_set(err, st, "there is no such collection") : st;
}

/* A name may change hands at any moment: it had the uid before and after it was opened, so the handle has that uid. */
static lode_status open_handle(lode_store *store, uint64_t uid, lode__handle **handle, lode_error *err) {
  lode__handle *again = NULL;
  TRY(name_of(store, uid, handle, err));
  lode_status st = lode_collection_open(store, (*handle)->name, NULL, &(*handle)->collection, err);
  if (st == LODE_OK) st = name_of(store, uid, &again, err);
  if (st == LODE_OK && !str_eq(again->name, (*handle)->name)) st = err_set(err, LODE_BUSY, "the collection is being renamed: try again");
  mem_free(again);
  if (st == LODE_OK) return LODE_OK;
  close_handle(*handle);
  *handle = NULL;
  return st;
}

lode_status lode__handles_hold(lode__handles *h, lode_store *store, uint64_t uid, lode__handle **handle, lode_error *err) {
  lode__handle *made;
  pthread_mutex_lock(&h->lock);
  *handle = find(h, uid);
  pthread_mutex_unlock(&h->lock);
  if (*handle) return LODE_OK;
  TRY(open_handle(store, uid, &made, err));
  pthread_mutex_lock(&h->lock);
  *handle = find(h, uid);
  if (!*handle) {
    make_room(h);
    made->users = 1;
    made->used = ++h->clock;
    made->next = h->list;
    h->list = made;
    h->n++;
    *handle = made;
    made = NULL;
  }
  pthread_mutex_unlock(&h->lock);
  if (made) close_handle(made);
  return LODE_OK;
}

void lode__handles_let_go(lode__handles *h, lode__handle *handle, bool stale) {
  pthread_mutex_lock(&h->lock);
  handle->stale = handle->stale || stale;
  bool last = --handle->users == 0 && handle->stale;
  if (last) take_out(h, handle);
  pthread_mutex_unlock(&h->lock);
  if (last) close_handle(handle);
}
