/* SPDX-License-Identifier: Apache-2.0 */
/* vfs_map.h - the page map: which version each page of a truth file has after the newest commit (vfs_seal_version()).
 *
 * Page 1 holds the root of the map, a sum of hashes of all versions, so a map proves itself: nothing that was read from
 * its file is used unless it adds up to the root of the commit that page 1 names. The map is derived: its file,
 * lode.pages, is never synced and may be removed at any time; it is then made again from the seals of all pages
 * (vfs_moment.c). docs/FORMAT.md has the bytes.
 *
 * In memory the map is a table of blocks of VFS_MAP_BLOCK versions, which are read from the file on demand. The file is
 * written once, and then only grows: each commit appends a record with its changes. Every block that a record changes
 * is in memory, so a block that is not is still as the file has it.
 *
 * Functions that read or write the file return false for whatever goes wrong with it, and the caller does without.
 */
#ifndef LODE_VFS_VFS_MAP_H
#define LODE_VFS_VFS_MAP_H

#include "os/beneath.h"

enum { VFS_MAP_BLOCK = 512 };

/* What page 1 says about the newest commit. */
typedef struct vfs_commit {
  uint64_t id;     /* random; 0: format 1 */
  uint64_t root;   /* sum of the hashes of all pages */
  uint32_t number; /* counts commits, without 0 and VFS_SEAL_EMPTY; 0: a database without a root */
  uint32_t pages;  /* of the database */
} vfs_commit;

typedef struct vfs_map {
  vfs_commit commit;  /* the state that the blocks have */
  uint64_t **blocks;  /* NULL: not read yet, or past base_blocks: zeros */
  size_t cap;         /* of blocks */
  int fd;             /* the file; -1: none */
  bool writable;      /* fd may be written to */
  uint64_t *sums;     /* of the file's blocks */
  size_t base_blocks; /* blocks in the file */
  uint64_t log_at;    /* where the next record goes */
  uint32_t log_crc;   /* of the record before that, which the next one continues */
} vfs_map;

#define VFS_MAP_NONE                                                                                                   \
  { .fd = -1 }

/* Forgets everything. */
void vfs_map_release(vfs_map *map);

/* LODE_NOMEM; LODE_CORRUPT: the file's block is damaged. */
LODE_MUST lode_status vfs_map_get(vfs_map *map, uint32_t page, uint64_t *version);
/* Changes the version of a page, and with it commit.root. */
LODE_MUST lode_status vfs_map_set(vfs_map *map, uint32_t page, uint64_t version);
/* Sets commit.pages: pages past the new end have no version. */
LODE_MUST lode_status vfs_map_resize(vfs_map *map, uint32_t pages);
/* Reads all blocks, so that nothing can fail later. */
LODE_MUST lode_status vfs_map_read_all(vfs_map *map);

/* Opens the file in this folder and brings the map to the state after `commit`. False: the file does not know it. */
bool vfs_map_open(vfs_map *map, const char *folder, const vfs_commit *commit);
/* The same for a map that is open: reads what was appended to the file. */
bool vfs_map_follow(vfs_map *map, const vfs_commit *commit);
/* Writes a new file. All blocks must have been read. */
bool vfs_map_save(vfs_map *map, const char *folder, unsigned mode);
/* Is there a file that still has its name, may be written to, and is short enough to append to? */
bool vfs_map_can_append(const vfs_map *map);
/* Appends a record that brings the file to the present state. `pages`: those whose versions may have changed since the
 * last record; they are sorted. */
bool vfs_map_append(vfs_map *map, uint32_t *pages, size_t n);

#endif
