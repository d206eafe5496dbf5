/* handles.h - open collections by uid, shared by the threads of a worker: opening one for each call would cost a transaction.
 *
 * At most LODE__HANDLES_KEPT stay open; the one that was not used for longest goes. A handle answers LODE_NOT_FOUND after its
 * collection was dropped, by whomever: let go as stale, it is not handed out again.
 */
#ifndef LODE_FACE_HANDLES_H
#define LODE_FACE_HANDLES_H

#include "base/base.h"

#define LODE__HANDLES_KEPT 256

typedef struct lode__handles lode__handles;
typedef struct lode__handle {
  lode_collection *collection;
  uint64_t uid;
  lode_str name;          /* as it was when it was opened */
  /* of handles.c */
  unsigned users;
  bool stale;
  uint64_t used;
  struct lode__handle *next;
} lode__handle;

lode__handles *lode__handles_make(void);
void lode__handles_free(lode__handles *handles);
lode_status lode__handles_hold(lode__handles *handles, lode_store *store, uint64_t uid, lode__handle **handle, lode_error *err);
void lode__handles_let_go(lode__handles *handles, lode__handle *handle, bool stale);

#endif
