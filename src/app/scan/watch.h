/* SPDX-License-Identifier: Apache-2.0 */
/* watch.h - reports which files of a tree change.
 *
 * The system reports names in watched folders (platform/dirwatch.h). A new folder is watched and scanned at once,
 * because files may have been created in it before the watch was. A path is reported when it has been quiet for the
 * debounce time, or after ten times as long if it never is. When the kernel drops events or too many paths are pending,
 * the whole tree is due. When the kernel gives no more watches, watch_dir_count() says so. Folders that a walk does not
 * enter are not watched.
 */
#ifndef LODE_SCAN_WATCH_H
#define LODE_SCAN_WATCH_H

#include "scan/scan.h"

typedef struct watch_monitor watch_monitor;

typedef struct watch_changes {
  lode_str *paths; /* from the root, bytes, each NUL-terminated; valid until the next call */
  size_t n;
  bool everything; /* the whole tree is due: events were lost */
} watch_changes;

LODE_MUST lode_status watch_open(const scan_root *root, uint32_t debounce_ms, watch_monitor **watch, lode_error *err);
void watch_close(watch_monitor *watch);
/* Waits at most wait_ms; there may be no changes then. LODE_GONE when the root was removed. */
LODE_MUST lode_status watch_wait(watch_monitor *watch, uint32_t wait_ms, watch_changes *changes, lode_error *err);
/* Has anything changed that watch_wait() has not returned yet? */
bool watch_has_changes(const watch_monitor *watch);
/* The number of watched folders; *incomplete when the kernel refused to watch more. */
size_t watch_dir_count(const watch_monitor *watch, bool *incomplete);

#endif
