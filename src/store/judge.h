/* judge.h - what a rollback journal that lies beside a database says, and whether it is to be believed.
 *
 * A journal is believed when it proves itself and names the commit that the database holds: page 1 carries a random
 * commit id, new with every transaction (vfs_page.c), and the first header of a journal holds the id before its
 * transaction and the one after it. docs/FORMAT.md has the layout and the table of decisions; vfs_journal.c writes journals.
 *
 * Both files are read by their descriptors, and nothing is written. The caller sees to it that neither changes.
 */
#ifndef LODE_JUDGE_H
#define LODE_JUDGE_H

#include "base/sqlite_format.h"
#include "vfs.h"

#define LODE__SECTOR 512u        /* what a power cut leaves whole; also the place of a journal header */
#define LODE__HEADER_BYTES 28    /* of SQLite's header; what follows is ours */
#define LODE__HEADER_COUNT_OFF 32
#define LODE__HEADER_IDS_OFF 40
#define LODE__HEADER_FULL 60
#define LODE__DB_HEAD 100        /* SQLite's header of a database; the commit id is in it */

typedef struct lode__page_image {
  uint32_t number;
  uint64_t offset; /* of the page in the journal */
} lode__page_image;

typedef enum lode__verdict {
  LODE__JOURNAL_NONE,    /* empty or never filled in: nothing is to be undone */
  LODE__JOURNAL_HOT,     /* proven, and this database's: to be rolled back, or read through */
  LODE__JOURNAL_STRAY,   /* of another moment, or no journal at all: to be set aside */
  LODE__JOURNAL_DAMAGED, /* its transaction may have touched the database, and cannot be undone */
} lode__verdict;

typedef struct lode__judged {
  lode__verdict verdict;
  const char *why;      /* for damage: what is wrong, and where */
  uint64_t at;
  uint64_t size;        /* of the journal */
  unsigned char head[LODE__HEADER_FULL]; /* with a right magic if hot; tells one journal from another */
  unsigned char db_head[LODE__DB_HEAD];  /* of the database that it was judged by */
  bool head_torn;       /* hot, but the magic in the file is not right */
  uint32_t page_bytes, first_pages; /* of the database before the transaction; hot ones only */
  lode__page_image *images; /* hot ones, if asked for: sorted by number, each page once */
  size_t n_images, cap_images;
} lode__judged;

typedef enum lode__judge_depth {
  LODE__JUDGE_HEADER,  /* believes the records of a hot journal */
  LODE__JUDGE_RECORDS, /* proves every one of them */
  LODE__JUDGE_IMAGES,  /* and says where they are */
} lode__judge_depth;

/* Fails for want of memory and when a file cannot be read (errno says why), never because of what is in it. */
lode_status lode__journal_judge(int journal_fd, int db_fd, lode__judge_depth depth, lode__judged *findings);
void lode__judged_release(lode__judged *findings);

/* NULL: the journal has no image of that page. */
const lode__page_image *lode__image_find(const lode__page_image *images, size_t n, uint32_t number);
/* Sorts by number; of several images of a page the first in the journal stays. Returns how many are left. */
size_t lode__images_sort(lode__page_image *images, size_t n);

/* Does the header at `sector` (LODE__SECTOR bytes) prove itself? */
typedef struct lode__journal_header {
  uint32_t records, nonce, first_pages, page_bytes;
} lode__journal_header;
bool lode__journal_header_sound(const unsigned char *sector, lode__journal_header *header);
extern const unsigned char lode__journal_magic[8];

/* Commit ids. */
uint64_t lode__commit_id(const unsigned char *page1);
void lode__commit_id_put(unsigned char *page1, uint64_t id);
void lode__journal_ids_put(unsigned char *head, uint64_t before, uint64_t after); /* into the first header */

#endif
