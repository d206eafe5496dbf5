/* SPDX-License-Identifier: Apache-2.0 */
/* vfs_pages.h - the pages of a database file, each checked by its seal: of a file that nobody writes to, without SQLite
 * (salvage, restore), or as an open connection sees them, through its own file handle (verify, backup, schema check).
 *
 * Nothing that is read is trusted; rows are decoded by sqlite/sqlite_tree.h with `src`, and proven by their own
 * checksums. A page that cannot be read from the medium reads as zeros.
 *
 * Without SQLite, a hot journal (journal.h) belongs to a transaction that did not finish: its images are the pages
 * before it, and are read instead of the file's. Images of a damaged journal are used only where the file's own page is
 * damaged.
 */
#ifndef LODE_VFS_VFS_PAGES_H
#define LODE_VFS_VFS_PAGES_H

#include "sqlite/sqlite_tree.h"
#include "vfs/journal.h"
#include "vfs/vfs_map.h"

#include <sqlite3.h>

#define VFS_PAGES_NONE                                                                                                 \
  { .fd = -1, .journal_fd = -1, .versions = VFS_MAP_NONE } /* nothing is open */

typedef enum vfs_pages_proof {
  VFS_PAGES_UNPROVEN,  /* there is no page map, and the pages are not of one moment */
  VFS_PAGES_OTHER_MAP, /* the map is of another commit: it tells which pages are older than that */
  VFS_PAGES_PROVEN,    /* the map is of the commit that page 1 names */
} vfs_pages_proof;

typedef struct vfs_pages {
  sqf_source src;
  int fd, journal_fd;
  uint32_t declared;      /* number of pages according to page 1; 0: page 1 is damaged */
  uint32_t commit_number; /* of the newest commit; 0: page 1 is damaged, or of format 1 */
  uint32_t format;        /* the store's format according to page 1; 0: page 1 is damaged */
  bool has_map;           /* there are pointer-map pages */
  vfs_map versions;       /* of a file at rest: a page map */
  vfs_pages_proof proof;  /* what that is good for */
  bool journal_whole;     /* the journal is hot and valid: its images are preferred */
  sqf_images images;
  uint32_t map_number; /* pointer-map page held in `map`; 0: none */
  bool map_sound;
  unsigned char *map, *chain; /* page buffers */
  uint64_t damaged_reads;
  int read_errno; /* of the first read of the file that failed; 0: none did */
  /* of a connection */
  sqlite3_file *file;
  uint32_t change;    /* SQLite's change counter: differs after every commit */
  uint64_t commit_id; /* differs after every commit, also one in place of another that was lost; 0: format 1 */
  int rc;             /* first error of a read; SQLITE_IOERR_DATA: only damaged pages */
} vfs_pages;

/* Opens a file as pages. The path is absolute, and neither the file nor its folder may be a link. LODE_CORRUPT:
 * nothing in it looks like a page of a store. */
LODE_MUST lode_status vfs_pages_open(const char *file, vfs_pages *pages, lode_error *err);
/* The pages as this connection sees them, until its transaction ends: a lock must be held. `pages` is zero, or was
 * attached before. Returns SQLite's code; SQLITE_IOERR_SHORT_READ: the file is empty; SQLITE_NOTADB: page 1 declares an
 * impossible page size. */
LODE_MUST int vfs_pages_attach(vfs_pages *pages, sqlite3 *sql);
void vfs_pages_close(vfs_pages *pages);

/* `page` has page_bytes bytes. False: the page is damaged; the bytes are what could be read. */
LODE_MUST bool vfs_pages_read(vfs_pages *pages, uint32_t number, unsigned char *page);
/* The same through a connection, with SQLite's code. Free pages may read as zeros. */
LODE_MUST int vfs_pages_read_rc(vfs_pages *pages, uint32_t number, unsigned char *page);
/* Why the last read through a connection failed. */
vfs_damage vfs_pages_damage(const vfs_pages *pages);
/* Is a sound page, read from a file at rest, another version than the newest commit left? False if that is not known.
 * The other pages may show that page 1 is an older version. */
bool vfs_pages_is_old(vfs_pages *pages, uint32_t number, const unsigned char *page);
/* What a page is used for, according to the pointer map. */
sqf_page_use vfs_pages_use_of(vfs_pages *pages, uint32_t number);
static inline bool vfs_pages_may_hold_rows(sqf_page_use use) {
  return use == SQF_PAGE_UNKNOWN || use == SQF_PAGE_ROOT || use == SQF_PAGE_TREE;
}

#endif
