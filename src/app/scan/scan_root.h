/* scan_root.h - the inside of a scan_root, for scan.c and scan_root.c. */
#ifndef LODE_SCAN_SCAN_ROOT_H
#define LODE_SCAN_SCAN_ROOT_H

#include "scan/ignore.h"
#include "scan/scan.h"

#include <sys/stat.h>

#define SCAN_MAX_PATH 4096 /* longest path below a root, with its NUL */
#define SCAN_MAX_DEPTH 200  /* folders open at once */

struct scan_root {
  int fd;
  char *path;              /* absolute */
  size_t top;              /* how much of path is the top of the git repository; 0: none around it */
  char *git;               /* its common folder, "" without one */
  scan_options options;
  char *exclude;           /* the text of options.exclude */
  uint64_t device;
};

/* What lies above the root as far as rules go: its path from the top of the repository, "" at the top. */
static inline lode_str scan_root_prefix(const scan_root *root) {
  const char *rest = root->path + root->top;
  if (root->top == 0) return STR_LIT("");
  while (*rest == '/') rest++;
  return str_of(rest);
}

/* The rules that hold at the root: global ones, those of folders above, the configured excludes; not the root's own files. */
LODE_MUST lode_status scan_root_rules(const scan_root *root, ignore_rules **rules, lode_error *err);
/* Adds the rules that lie in an open folder. */
LODE_MUST lode_status scan_read_rules(ignore_rules *rules, int folder_fd, lode_str folder, lode_error *err);
void scan_entry_set_stat(scan_entry *entry, const struct stat *s);

#endif
