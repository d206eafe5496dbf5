/* SPDX-License-Identifier: Apache-2.0 */
/* fault.h - lets the operating system and the allocator fail on purpose.
 *
 * System calls: fault_install() puts a layer (oscall.h) between lode and another table (the real one, or a simdisk). It
 * counts calls, per kind and in total, and lets call number `at` after fault_set() fail: once, or from there on.
 *   FAULT_EIO, FAULT_ENOSPC  -1 and that errno; nothing is done. A write that finds the disk full first writes half,
 *                            as a kernel does, and its next call fails.
 *   FAULT_SHORT              reads and writes move half of what was asked for; for FAULT_PREAD and FAULT_PWRITE
 *   FAULT_EINTR              -1 and EINTR, nothing is done; once only. Must be survived without a trace.
 *   FAULT_EXIT               the process ends at once, before the call: a kill -9 at that place
 * Clocks and sleep_us never fail and are not counted; fault_clock_set() sets the wall clock. close does what it should
 * also when it says that it failed.
 *
 * Memory: fault_alloc_install() wraps SQLite's allocator and sets mem_alloc_hook; both share one counter. It must come
 * before anything of SQLite is used in the process.
 *
 * A typical loop: for (n = 1;; n++) { fault_set(FAULT_ANY, n, false, FAULT_EIO); work(); if (!fault_hits()) break; }
 * One thread at a time.
 */
#ifndef LODE_FAULT_H
#define LODE_FAULT_H

#include "support/oscall.h"

typedef enum fault_call {
  FAULT_OPEN = OSCALL_OPEN,
  FAULT_CLOSE = OSCALL_CLOSE,
  FAULT_PREAD = OSCALL_PREAD,
  FAULT_PWRITE = OSCALL_PWRITE,
  FAULT_FTRUNCATE = OSCALL_FTRUNCATE,
  FAULT_FSYNC = OSCALL_FSYNC,
  FAULT_FDATASYNC = OSCALL_FDATASYNC,
  FAULT_FSTAT = OSCALL_FSTAT,
  FAULT_FCHMOD = OSCALL_FCHMOD,
  FAULT_STAT = OSCALL_STAT,
  FAULT_UNLINK = OSCALL_UNLINK,
  FAULT_RENAME = OSCALL_RENAME,
  FAULT_MKDIR = OSCALL_MKDIR,
  FAULT_RMDIR = OSCALL_RMDIR,
  FAULT_LOCK = OSCALL_LOCK,
  FAULT_LOCK_HELD = OSCALL_LOCK_HELD,
  FAULT_DIR_NEXT = OSCALL_DIR_NEXT,
  FAULT_BIRTH = OSCALL_BIRTH,
  FAULT_SPAWN = OSCALL_SPAWN,
  FAULT_ANY,  /* the total; also how many kinds there are */
  FAULT_SYNC, /* fsync or fdatasync */
} fault_call;

typedef enum fault_effect { FAULT_EIO, FAULT_ENOSPC, FAULT_SHORT, FAULT_EINTR, FAULT_EXIT } fault_effect;
enum { FAULT_EXIT_STATUS = 98 }; /* of the process; a failed CHECK has another */

/* Syncs do nothing from now on: power cuts are other tests' matter, and these get through a hundred times more. */
void fault_no_sync(void);

void fault_install(const os_calls *under);                                        /* counts from zero, no fault set */
void fault_uninstall(void);                                                       /* puts the table under it back */
void fault_set(fault_call call, uint64_t at, bool for_good, fault_effect effect); /* counts from zero again */
void fault_clear(void);                                                           /* no more faults; counts stay */
uint64_t fault_count(fault_call call); /* calls since fault_install or fault_set */
uint64_t fault_hits(void);             /* faults delivered since then */
const char *fault_call_name(fault_call call);
/* The wall clock goes this much wrong from now on, while the layer is in use. */
void fault_clock_set(int64_t ms);

/* Works in a child of which call n and all after it fail (0: none). Returns how many such calls were made; 0 when the
 * work did not get through: it died of FAULT_EXIT, or said LODE_FULL where FAULT_ENOSPC was the effect. Any other
 * failure ends the test. */
typedef lode_status fault_work(void *ctx, lode_error *err);
uint64_t fault_in_child(fault_work *work, void *ctx, fault_call call, uint64_t n, fault_effect effect);

void fault_alloc_install(void);
void fault_alloc_set(uint64_t at, bool for_good); /* at = 0: no fault; counts from zero again */
uint64_t fault_alloc_count(void);
uint64_t fault_alloc_hits(void);

#endif
