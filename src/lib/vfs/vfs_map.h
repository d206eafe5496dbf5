/* SPDX-License-Identifier: Apache-2.0 */
/* vfs_map.h - the page map: which version each page of a database file has after the newest commit
 * (vfs_seal_version()).
 *
 * Page 1 holds the root of the map, a sum of hashes of all versions, so a map proves itself: nothing that was read from
 * its file is used unless it belongs to the commit that page 1 names. The map is derived: its file, lode.pages, is
 * never synced and may be removed at any time; it is then made again from the seals of all pages (vfs_moment.c).
 * docs/FORMAT.md has the bytes.
 *
 * A map is a base and the changes since. The base is the map's file: blocks of VFS_MAP_BLOCK versions, which are read
 * on demand, proven by their sums, and cached. The changes are those that the file's records list, and those of the
 * transaction that is being written. The file is written once, and then only grows: each commit appends a record.
 * Without a file the base is the database itself: a block is read from the seals of its pages. Then a write changes the
 * base and its sum, and the only changes kept are pages without content whose seal says otherwise.
 *
 * Memory: VFS_MAP_CACHED blocks (256 KiB), 8 bytes for each block of pages, and 32 to 64 bytes for each change, of
 * which the length of the records allows at most one for every 24 pages (but 5,461), plus those of the transaction.
 *
 * Functions that open or write the file return false for whatever goes wrong with it, and the caller does without.
 */
#ifndef LODE_VFS_VFS_MAP_H
#define LODE_VFS_VFS_MAP_H

#include "os/beneath.h"

enum { VFS_MAP_BLOCK = 512, VFS_MAP_CACHED = 64 };

/* What page 1 says about the newest commit. */
typedef struct vfs_commit {
  uint64_t id;     /* random; 0: format 1 */
  uint64_t root;   /* sum of the hashes of all pages */
  uint32_t number; /* counts commits, without 0 and VFS_SEAL_EMPTY; 0: a database without a root */
  uint32_t pages;  /* of the database */
} vfs_commit;

typedef struct vfs_map_change {
  uint64_t version;
  uint32_t page;        /* 0: a free slot */
  uint32_t transaction; /* the last one of this map that changed it */
} vfs_map_change;

typedef struct vfs_map_block {
  size_t number;
  uint64_t *versions; /* of the base; NULL: none */
} vfs_map_block;

/* Reads the seal of a page of the database. LODE_IO: it cannot be read. */
typedef lode_status vfs_map_seal_fn(void *ctx, uint32_t page, uint64_t *version);

typedef struct vfs_map {
  vfs_commit commit; /* the state that base and changes have */
  bool proven;       /* all of the base was read since the map was opened, and led to the root with the changes */
  uint64_t *sums;    /* of the blocks of the base */
  size_t base_blocks, cap_sums;
  vfs_map_block cached[VFS_MAP_CACHED];
  vfs_map_change *changes; /* hash table */
  size_t n_changes, cap_changes;
  uint32_t transaction; /* counts those of this map */
  uint32_t *touched;    /* pages that the transaction changed, if there is a file */
  size_t n_touched, cap_touched;
  vfs_map_seal_fn *seal; /* the base, if there is no file */
  void *seal_ctx;
  uint32_t lock_page; /* has no seal */
  int fd;             /* the file; -1: none */
  bool writable;      /* fd may be written to */
  dev_t dev;          /* of the file */
  ino_t ino;          /* of the file */
  uint64_t log_at;    /* where the next record goes */
  uint32_t log_crc;   /* of the record before that, which the next one continues */
} vfs_map;

#define VFS_MAP_NONE                                                                                                   \
  { .fd = -1 }

/* Forgets everything. */
void vfs_map_release(vfs_map *map);

/* ---- vfs_map.c ---- */

/* Makes the map from the seals of all pages but the first and `lock_page`, which have none. */
LODE_MUST lode_status vfs_map_scan(vfs_map *map, uint32_t pages, uint32_t lock_page, vfs_map_seal_fn *seal, void *ctx);
/* LODE_NOMEM; LODE_IO; LODE_CORRUPT: the base is not what it was. */
LODE_MUST lode_status vfs_map_get(vfs_map *map, uint32_t page, uint64_t *version);
/* Changes the version of a page, and with it commit.root. Without a file: the page was written. */
LODE_MUST lode_status vfs_map_set(vfs_map *map, uint32_t page, uint64_t version);
/* The page has no content, whatever its seal says. */
LODE_MUST lode_status vfs_map_clear(vfs_map *map, uint32_t page);
/* Sets commit.pages: pages past the new end have no version. */
LODE_MUST lode_status vfs_map_resize(vfs_map *map, uint32_t pages);
/* From now on vfs_map_set() belongs to another transaction. */
void vfs_map_begin(vfs_map *map);
/* Reads everything and sets `proven`. LODE_CORRUPT: it does not lead to commit.root. */
LODE_MUST lode_status vfs_map_prove(vfs_map *map);

/* What a page adds to the root. */
uint64_t vfs_map_hash(uint64_t page, uint64_t version);

/* For vfs_map_file.c. */
/* Takes a change that a record lists. */
LODE_MUST lode_status vfs_map_take(vfs_map *map, uint32_t page, uint64_t version);
/* The versions of all pages of a block, and the sum of their hashes. */
LODE_MUST lode_status vfs_map_read_block(vfs_map *map, size_t block, uint64_t *versions, uint64_t *sum);
/* Forgets cached blocks and changes: the base is another one. */
void vfs_map_rebase(vfs_map *map);

/* ---- vfs_map_file.c ---- */

/* Opens the file in this folder and brings the map to the state after `commit`. False: the file does not know it. */
bool vfs_map_open(vfs_map *map, const char *folder, const vfs_commit *commit);
/* The same for a map that is open: reads what was appended to the file. */
bool vfs_map_follow(vfs_map *map, const vfs_commit *commit);
/* Opens the file and brings the map to the newest state that it has, whatever the database says. */
bool vfs_map_open_newest(vfs_map *map, const char *folder);
/* Writes a new file. */
bool vfs_map_save(vfs_map *map, const char *folder);
/* Is there a file that still has its name, and no other, may be written to, and is short enough to append to? */
bool vfs_map_can_append(const vfs_map *map, const char *folder);
/* Appends a record of the transaction. */
bool vfs_map_append(vfs_map *map);
/* Reads a block of the file, unproven. */
LODE_MUST lode_status vfs_map_file_block(const vfs_map *map, size_t block, uint64_t *versions);

#endif
