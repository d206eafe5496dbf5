/* watch.h - which files of a tree change, as they change.
 *
 * inotify tells of names in folders that are watched; a folder that appears is watched and read at once, because files may have come
 * into it before it was. A path is given out when it was quiet for the debounce time, or after ten times as long when it never is. When the
 * kernel drops events, or watches run out, the whole tree is due. Folders that the walk does not enter are not watched.
 */
#ifndef LODE_CODE_WATCH_H
#define LODE_CODE_WATCH_H

#include "code/walk.h"

typedef struct lode__watch lode__watch;

typedef struct lode__watch_changes {
  lode_str *paths;   /* from the root, bytes; NUL behind each; valid until the next call */
  size_t n;
  bool everything;   /* the whole tree is due: events were lost */
} lode__watch_changes;

LODE_MUST lode_status lode__watch_open(const lode__root *root, uint32_t debounce_ms, lode__watch **watch, lode_error *err);
void lode__watch_close(lode__watch *watch);
/* Waits at most wait_ms; nothing may have changed then. LODE_GONE when the root was removed. */
LODE_MUST lode_status lode__watch_wait(lode__watch *watch, uint32_t wait_ms, lode__watch_changes *changes, lode_error *err);
/* Has something changed since? */
bool lode__watch_has_news(const lode__watch *watch);
/* How many folders are watched, and whether there are more than the kernel lets us watch. */
size_t lode__watch_folders(const lode__watch *watch, bool *incomplete);

#endif
