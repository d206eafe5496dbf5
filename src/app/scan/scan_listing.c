/* SPDX-License-Identifier: Apache-2.0 */
/* scan_listing.c - see scan_listing.h. */
#include "scan/scan_listing.h"

#include <strings.h>

lode_status scan_listing_open(scan_listing *l, int fd, lode_error *err) {
  *l = (scan_listing){.folder = os_dir_from_fd(fd)};
  if (!l->folder) return errno == ENOMEM ? err_nomem(err) : LODE_OK;
  while (l->ahead.len < SCAN_LISTING_AHEAD && !l->whole && !l->errnum) {
    os_kind kind;
    const char *name = os_dir_next_kind(l->folder, &kind, &l->errnum);
    l->whole = !name && l->errnum == 0;
    if (!name) break;
    strbuf_addch(&l->ahead, (char)kind);
    strbuf_add(&l->ahead, name, strlen(name) + 1);
  }
  if (!l->ahead.failed) return LODE_OK;
  scan_listing_close(l);
  return err_nomem(err);
}

void scan_listing_close(scan_listing *l) {
  if (l->folder) os_dir_close(l->folder);
  strbuf_release(&l->ahead);
  *l = (scan_listing){0};
}

int scan_listing_fd(const scan_listing *l) { return os_dir_fd(l->folder); }

bool scan_listing_may_have(const scan_listing *l, const char *name) {
  if (!l || !l->whole) return true;
  for (size_t at = 0; at < l->ahead.len; at += strlen(l->ahead.data + at + 1) + 2)
    if (strcasecmp(l->ahead.data + at + 1, name) == 0) return true;
  return false;
}

const char *scan_listing_next(scan_listing *l, os_kind *kind, int *errnum) {
  *errnum = l->errnum;
  if (l->at < l->ahead.len) {
    const char *name = l->ahead.data + l->at + 1;
    *kind = (os_kind)l->ahead.data[l->at];
    *errnum = 0;
    l->at += strlen(name) + 2;
    return name;
  }
  return l->whole || l->errnum ? NULL : os_dir_next_kind(l->folder, kind, errnum);
}
