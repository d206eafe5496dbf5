/* SPDX-License-Identifier: Apache-2.0 */
/* sim_bugs.c - bugs planted on purpose; see sim.h.
 *
 * Bugs of the system's side are a layer above the disk: as if the library left a call out. Bugs of the library's inside
 * replace one of its functions, which the linker redirects to here (-Wl,--wrap in mk/test.mk, for test_simulator
 * alone); other test programs never call them. No bug draws random numbers, so an episode with a bug is the episode
 * without it up to where the bug matters.
 */
#include "os/store_files.h"
#include "support/sim.h"
#include "vfs/vfs_internal.h"

#include <string.h>

static const struct {
  const char *name;
  sim_stress stress;
} bugs[SIM_BUGS] = {
    [SIM_NO_BUG] = {"none", SIM_MIXED},
    [SIM_NO_JOURNAL_SYNC] = {"the journal is not synced", SIM_CUTS},
    [SIM_NO_DATABASE_SYNC] = {"the database is not synced before the commit", SIM_CUTS},
    [SIM_NO_COMMIT_SYNC] = {"the end of the journal is not synced", SIM_CUTS},
    [SIM_NO_NAME_SYNC] = {"names of new files are not synced", SIM_CUTS},
    [SIM_NO_SHARED_LOCK] = {"readers take no lock", SIM_RACES},
    [SIM_NO_RESERVED_LOCK] = {"two may write at once", SIM_RACES},
    [SIM_NO_EXCLUSIVE_LOCK] = {"a writer does not wait for readers", SIM_RACES},
    [SIM_STALE_MAP] = {"a page map of an older commit is accepted", SIM_CUTS},
    [SIM_OLD_PAGES] = {"pages are not compared with the map", SIM_DAMAGE},
    [SIM_UNBOUND_JOURNAL] = {"a journal does not name its commit", SIM_CUTS},
};

const char *sim_bug_name(sim_bug bug) { return bugs[bug].name; }
sim_stress sim_bug_stress(sim_bug bug) { return bugs[bug].stress; }

/* ---- Calls left out ---- */

static bool ends_with(const char *name, const char *end) {
  size_t n = strlen(name), m = strlen(end);
  return n >= m && strcmp(name + n - m, end) == 0;
}

static bool is_skipped_sync(const oscall *c, const char *path) {
  struct stat st;
  bool journal = ends_with(path, "-journal");
  switch (sim->bug) {
    case SIM_NO_JOURNAL_SYNC: return journal && fstat(c->fd, &st) == 0 && st.st_size > 0;
    case SIM_NO_COMMIT_SYNC: return journal && fstat(c->fd, &st) == 0 && st.st_size == 0;
    case SIM_NO_DATABASE_SYNC: return ends_with(path, STOREFILE_DB);
    case SIM_NO_NAME_SYNC: return fstat(c->fd, &st) == 0 && S_ISDIR(st.st_mode);
    default: return false;
  }
}

static bool is_skipped_lock(const oscall *c, const char *path) {
  if (!ends_with(path, STOREFILE_DB)) return false;
  if (sim->bug == SIM_NO_SHARED_LOCK) return c->lock == F_RDLCK && c->len > 1;
  if (sim->bug == SIM_NO_EXCLUSIVE_LOCK) return c->lock == F_WRLCK && c->len > 1;
  return sim->bug == SIM_NO_RESERVED_LOCK && c->lock == F_WRLCK && c->off == (off_t)SQF_RESERVED_BYTE;
}

int64_t sim_bugs_layer(oscall *c) {
  char path[OSCALL_PATH];
  if (sim->bug == SIM_NO_BUG) return oscall_pass(c);
  oscall_path(c, path);
  if ((c->kind == OSCALL_FSYNC || c->kind == OSCALL_FDATASYNC) && is_skipped_sync(c, path)) return 0;
  if (c->kind == OSCALL_LOCK && is_skipped_lock(c, path)) return 0;
  return oscall_pass(c);
}

/* ---- Functions replaced ---- */

/* Absent from programs that are linked without --wrap. */
extern bool __real_vfs_map_open(vfs_map *map, const char *folder, const vfs_commit *commit) __attribute__((weak));
extern lode_status __real_vfs_map_prove(vfs_map *map) __attribute__((weak));
extern int __real_vfs_moment_ready(vfs_file *f) __attribute__((weak));
extern void __real_journal_put_ids(unsigned char *head, uint64_t before, uint64_t after) __attribute__((weak));
bool __wrap_vfs_map_open(vfs_map *map, const char *folder, const vfs_commit *commit);
lode_status __wrap_vfs_map_prove(vfs_map *map);
int __wrap_vfs_moment_ready(vfs_file *f);
void __wrap_journal_put_ids(unsigned char *head, uint64_t before, uint64_t after);

static bool has_bug(sim_bug bug) { return sim && sim->bug == bug; }

/* The commit that the file begins with; docs/FORMAT.md has the bytes. */
static bool oldest_of_map(const char *folder, vfs_commit *commit) {
  unsigned char h[64] = {0};
  int fd = beneath_open(folder, STOREFILE_PAGES, O_RDONLY, 0);
  if (fd < 0) return false;
  bool whole = os_real.pread(fd, h, sizeof h, 0) == sizeof h;
  (void)os_api->close(fd);
  *commit = (vfs_commit){num_le64(h + 16), num_le64(h + 24), num_le32(h + 32), num_le32(h + 36)};
  return whole;
}

bool __wrap_vfs_map_open(vfs_map *map, const char *folder, const vfs_commit *commit) {
  vfs_commit oldest;
  if (__real_vfs_map_open(map, folder, commit)) return true;
  if (!has_bug(SIM_STALE_MAP) || !oldest_of_map(folder, &oldest)) return false;
  if (!__real_vfs_map_open(map, folder, &oldest)) return false;
  map->commit = *commit;
  return true;
}

/* A map that leads to another root than that of page 1 would be made again. */
lode_status __wrap_vfs_map_prove(vfs_map *map) { return has_bug(SIM_STALE_MAP) ? LODE_OK : __real_vfs_map_prove(map); }

int __wrap_vfs_moment_ready(vfs_file *f) {
  int rc = __real_vfs_moment_ready(f);
  if (has_bug(SIM_OLD_PAGES)) f->moment.checked = false;
  return rc;
}

void __wrap_journal_put_ids(unsigned char *head, uint64_t before, uint64_t after) {
  uint64_t wrong = has_bug(SIM_UNBOUND_JOURNAL) ? 1 : 0;
  __real_journal_put_ids(head, before + wrong, after + wrong);
}
