/* SPDX-License-Identifier: Apache-2.0 */
/* scan_root.h - the layout of a scan_root, for scan.c and scan_root.c. */
#ifndef LODE_SCAN_SCAN_ROOT_H
#define LODE_SCAN_SCAN_ROOT_H

#include "platform/platform.h"
#include "scan/ignore.h"
#include "scan/scan.h"
#include "scan/scan_listing.h"

#define SCAN_MAX_PATH 4096 /* longest path below a root, with its NUL */
#define SCAN_MAX_DEPTH 200 /* folders open at once */

struct scan_root {
  int fd;
  char *path; /* absolute */
  size_t top; /* length of the path of the git repository's top; 0: no repository */
  char *git;  /* the repository's common folder, "" without one */
  scan_options options;
  char *exclude, *extensions; /* the texts of the options */
  uint64_t device;
};

/* The root's path from the top of its repository; "" at the top or without a repository. */
static inline lode_str scan_root_prefix(const scan_root *root) {
  const char *rest = root->path + root->top;
  if (root->top == 0) return STR_LIT("");
  while (*rest == '/') rest++;
  return str_of(rest);
}

/* The rules that apply at the root: global ones, those of folders above it, configured excludes; not the root's own
 * files. */
LODE_MUST lode_status scan_root_rules(const scan_root *root, ignore_rules **rules, lode_error *err);
/* Adds the rules of the ignore files in an open folder. names: what is in it; NULL: not known. */
LODE_MUST lode_status scan_read_rules(ignore_rules *rules, int folder_fd, const scan_listing *names, lode_str folder,
                                      lode_error *err);
void scan_entry_set_stat(scan_entry *entry, const struct stat *s);

#endif
