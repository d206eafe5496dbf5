/* SPDX-License-Identifier: Apache-2.0 */
/* simdisk.h - a disk that loses what was not synced.
 *
 * simdisk_start(root) puts a os_calls in use that passes calls on to the real files below `root` and remembers,
 * for each of them, what is durable and every write and truncation since:
 *   - fsync or fdatasync of a file makes its content and length durable;
 *   - making, renaming and removing names is durable after an fsync of the folder;
 *   - what was there at the start is durable.
 * Files elsewhere pass through unseen, and so do locks. Programs see the real files all the time.
 *
 * simdisk_cut(seed, folder) writes to `folder` (made if there is none) one of the states that a power cut at this
 * moment may leave: of the writes that are not durable each one is kept, lost, or torn (each 512-byte sector kept or
 * lost; a write that would have made the file longer may leave zeros); truncations and names are kept or lost. The same
 * seed gives the same state. It may be called many times. simdisk_cut_at(n) lets the power go at sync number n from
 * now, before it does anything: that call and all later ones fail with EIO.
 *
 * Paths are absolute. Subfolders are allowed, but not renaming them; nor are hard links. Any number of threads; and
 * forked processes that take turns, since what they share is kept in shared memory (sim_heap.h).
 */
#ifndef LODE_SIMDISK_H
#define LODE_SIMDISK_H

#include "os/os.h"

void simdisk_start(const char *root);
void simdisk_stop(void);         /* the real table again */
void simdisk_cut_at(uint64_t n); /* 0: never; counts syncs from zero again */
bool simdisk_is_cut(void);
uint64_t simdisk_syncs(void); /* since simdisk_start or simdisk_cut_at */
void simdisk_cut(uint64_t seed, const char *to_folder);
void simdisk_set_clock(uint64_t (*now_ns)(void)); /* for the times of files; NULL: the real ones */

#endif
