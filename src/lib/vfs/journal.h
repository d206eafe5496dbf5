/* SPDX-License-Identifier: Apache-2.0 */
/* journal.h - reads the rollback journal beside a database and decides whether it can be trusted.
 *
 * A journal is trusted if it can be proven and names the commit that the database holds: page 1 has a random commit id,
 * which changes with every transaction (vfs_page.c), and the first header of a journal holds the ids before and after
 * its transaction. docs/FORMAT.md has the layout and the decision table; vfs_journal.c writes journals.
 *
 * Both files are read through their descriptors, and nothing is written. The caller ensures that neither file changes.
 */
#ifndef LODE_VFS_JOURNAL_H
#define LODE_VFS_JOURNAL_H

#include "sqlite/sqlite_format.h"
#include "sqlite/sqlite_journal.h"
#include "vfs/vfs.h"

#define JOURNAL_SECTOR 512u     /* a power cut leaves a sector whole; headers are at multiples of it */
#define JOURNAL_HEADER_BYTES 28 /* SQLite's header; the rest of the sector is ours */
#define JOURNAL_HEADER_COUNT_OFF 32
#define JOURNAL_HEADER_IDS_OFF 40
#define JOURNAL_HEADER_FULL 60
#define JOURNAL_DB_HEADER_BYTES 100 /* SQLite's database header, which includes the commit id */

typedef enum journal_verdict {
  JOURNAL_NONE,    /* empty or never filled in: nothing to roll back */
  JOURNAL_HOT,     /* proven, and this database's: roll it back, or read through it */
  JOURNAL_STRAY,   /* of another commit, not a journal, or damaged and not needed: quarantine it */
  JOURNAL_DAMAGED, /* its transaction has modified the database, or may have, and cannot be rolled back */
} journal_verdict;

typedef struct journal_findings {
  journal_verdict verdict;
  const char *why;                                /* damage: what is wrong */
  uint64_t at;                                    /* damage: the offset in the journal */
  uint64_t size;                                  /* of the journal */
  unsigned char head[JOURNAL_HEADER_FULL];        /* identifies the journal; if hot, with the right magic */
  unsigned char db_head[JOURNAL_DB_HEADER_BYTES]; /* of the database it was checked against */
  bool head_torn;                                 /* hot, but the magic in the file is wrong */
  uint64_t proven;                                /* hot: the end of the records that were checked */
  uint32_t page_bytes, first_pages; /* hot: the database's page size, and its pages before the transaction */
  sqf_images images;                /* hot, with JOURNAL_CHECK_IMAGES: sorted by number, each page once */
} journal_findings;

typedef enum journal_depth {
  JOURNAL_CHECK_HEADER,  /* trusts the records of a hot journal */
  JOURNAL_CHECK_RECORDS, /* checks every record */
  JOURNAL_CHECK_IMAGES,  /* checks every record and returns their offsets */
} journal_depth;

/* Fails only if memory runs out or a file cannot be read (errno is set), never because of a file's content. */
LODE_MUST lode_status journal_check(int journal_fd, int db_fd, journal_depth depth, journal_findings *findings);
void journal_findings_release(journal_findings *findings);

/* Is the header at `sector` (JOURNAL_SECTOR bytes) valid? */
typedef struct journal_header {
  uint32_t records, nonce, first_pages, page_bytes;
} journal_header;
bool journal_header_is_valid(const unsigned char *sector, journal_header *header);

uint64_t journal_commit_id(const unsigned char *page1);
void journal_put_commit_id(unsigned char *page1, uint64_t id);
/* The root of the page map, and the number of the commit (vfs_moment.c). */
void journal_get_root(const unsigned char *page1, uint64_t *root, uint32_t *number);
void journal_put_root(unsigned char *page1, uint64_t root, uint32_t number);
void journal_put_ids(unsigned char *head, uint64_t before, uint64_t after); /* into the first header */

#endif
