/* journal.h - what a rollback journal that lies beside a database says, and whether it is to be believed.
 *
 * A journal is believed when it proves itself and names the commit that the database holds: page 1 carries a random
 * commit id, new with every transaction (vfs_page.c), and the first header of a journal holds the id before its
 * transaction and the one after it. docs/FORMAT.md has the layout and the table of decisions; vfs_journal.c writes journals.
 *
 * Both files are read by their descriptors, and nothing is written. The caller sees to it that neither changes.
 */
#ifndef LODE_VFS_JOURNAL_H
#define LODE_VFS_JOURNAL_H

#include "sqlite/sqlite_format.h"
#include "vfs/vfs.h"

#define JOURNAL_SECTOR 512u        /* what a power cut leaves whole; also the place of a journal header */
#define JOURNAL_HEADER_BYTES 28    /* of SQLite's header; what follows is ours */
#define JOURNAL_HEADER_COUNT_OFF 32
#define JOURNAL_HEADER_IDS_OFF 40
#define JOURNAL_HEADER_FULL 60
#define JOURNAL_DB_HEADER_BYTES 100        /* SQLite's header of a database; the commit id is in it */

typedef struct journal_image {
  uint32_t number;
  uint64_t offset; /* of the page in the journal */
} journal_image;

typedef enum journal_verdict {
  JOURNAL_NONE,    /* empty or never filled in: nothing is to be undone */
  JOURNAL_HOT,     /* proven, and this database's: to be rolled back, or read through */
  JOURNAL_STRAY,   /* of another moment, or no journal at all: to be set aside */
  JOURNAL_DAMAGED, /* its transaction may have touched the database, and cannot be undone */
} journal_verdict;

typedef struct journal_findings {
  journal_verdict verdict;
  const char *why;      /* for damage: what is wrong, and where */
  uint64_t at;
  uint64_t size;        /* of the journal */
  unsigned char head[JOURNAL_HEADER_FULL]; /* with a right magic if hot; tells one journal from another */
  unsigned char db_head[JOURNAL_DB_HEADER_BYTES];  /* of the database that it was judged by */
  bool head_torn;       /* hot, but the magic in the file is not right */
  uint32_t page_bytes, first_pages; /* of the database before the transaction; hot ones only */
  journal_image *images; /* hot ones, if asked for: sorted by number, each page once */
  size_t n_images, cap_images;
} journal_findings;

typedef enum journal_depth {
  JOURNAL_CHECK_HEADER,  /* believes the records of a hot journal */
  JOURNAL_CHECK_RECORDS, /* proves every one of them */
  JOURNAL_CHECK_IMAGES,  /* and says where they are */
} journal_depth;

/* Fails for want of memory and when a file cannot be read (errno says why), never because of what is in it. */
lode_status journal_check(int journal_fd, int db_fd, journal_depth depth, journal_findings *findings);
void journal_findings_release(journal_findings *findings);

/* NULL: the journal has no image of that page. */
const journal_image *journal_image_find(const journal_image *images, size_t n, uint32_t number);
/* Sorts by number; of several images of a page the first in the journal stays. Returns how many are left. */
size_t journal_images_sort(journal_image *images, size_t n);

/* Does the header at `sector` (JOURNAL_SECTOR bytes) prove itself? */
typedef struct journal_header {
  uint32_t records, nonce, first_pages, page_bytes;
} journal_header;
bool journal_header_is_valid(const unsigned char *sector, journal_header *header);
extern const unsigned char journal_magic[8];

/* Commit ids. */
uint64_t journal_commit_id(const unsigned char *page1);
void journal_put_commit_id(unsigned char *page1, uint64_t id);
void journal_put_ids(unsigned char *head, uint64_t before, uint64_t after); /* into the first header */

#endif
