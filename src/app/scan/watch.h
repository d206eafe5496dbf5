/* watch.h - which files of a tree change, as they change.
 *
 * inotify tells of names in folders that are watched; a folder that appears is watched and read at once, because files may have come
 * into it before it was. A path is given out when it was quiet for the debounce time, or after ten times as long when it never is. When the
 * kernel drops events, or watches run out, the whole tree is due. Folders that the walk does not enter are not watched.
 */
#ifndef LODE_SCAN_WATCH_H
#define LODE_SCAN_WATCH_H

#include "scan/scan.h"

typedef struct watch_monitor watch_monitor;

typedef struct watch_changes {
  lode_str *paths;   /* from the root, bytes; NUL behind each; valid until the next call */
  size_t n;
  bool everything;   /* the whole tree is due: events were lost */
} watch_changes;

LODE_MUST lode_status watch_open(const scan_root *root, uint32_t debounce_ms, watch_monitor **watch, lode_error *err);
void watch_close(watch_monitor *watch);
/* Waits at most wait_ms; nothing may have changed then. LODE_GONE when the root was removed. */
LODE_MUST lode_status watch_wait(watch_monitor *watch, uint32_t wait_ms, watch_changes *changes, lode_error *err);
/* Has something changed since? */
bool watch_has_changes(const watch_monitor *watch);
/* How many folders are watched, and whether there are more than the kernel lets us watch. */
size_t watch_dir_count(const watch_monitor *watch, bool *incomplete);

#endif
