/* SPDX-License-Identifier: Apache-2.0 */
/* scan_listing.h - the names in an open folder. The first of them are read ahead, so that of most folders it is known
 * which files are not there (.gitignore, CACHEDIR.TAG) without a question to the system for each. */
#ifndef LODE_SCAN_LISTING_H
#define LODE_SCAN_LISTING_H

#include "base/base.h"
#include "os/os.h"

enum { SCAN_LISTING_AHEAD = 16384 }; /* bytes of names that are read ahead */

typedef struct scan_listing {
  os_dir *folder;
  strbuf ahead; /* for each name its kind, one byte, and the name with its NUL */
  size_t at;    /* of the next one */
  bool whole;   /* all names were read ahead */
  int errnum;   /* of the read that failed while reading ahead */
} scan_listing;

/* Owns fd, also if it fails. The folder is NULL if it cannot be read. */
LODE_MUST lode_status scan_listing_open(scan_listing *listing, int fd, lode_error *err);
void scan_listing_close(scan_listing *listing);
int scan_listing_fd(const scan_listing *listing);
/* False: there was no such name, in any case of letters, when the folder was opened. NULL: nothing is known. */
bool scan_listing_may_have(const scan_listing *listing, const char *name);
/* NULL at the end (*errnum 0), or if the rest cannot be read. The name is valid until the next call. */
const char *scan_listing_next(scan_listing *listing, os_kind *kind, int *errnum);

#endif
