/* SPDX-License-Identifier: Apache-2.0 */
/* sim_lies.c - a disk that lies; see sim.h.
 *
 * A layer above simdisk. One lie is prepared at a time: its kind, the part of the store that it concerns, and one in
 * how many calls of that kind it hits. An episode says which parts, and how many lies the database may suffer. The rest
 * of the simulator asks sim_lied() which faults were injected, so that it can tell damage from a bug.
 *
 * What a read could return if the disk were late is kept in a ring: the bytes that each write replaced, or how few
 * there were. It is in shared memory, written by whoever has the turn.
 */
#include "support/sim.h"
#include "support/sim_heap.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { OLD_BYTES = 4096, OLDS = 200, TOLD = 12, PATIENCE = 3000 };

typedef struct old_bytes {
  unsigned part;
  off_t off;
  size_t len, had; /* what was written; what was there before */
  unsigned char data[OLD_BYTES];
} old_bytes;

typedef struct lie {
  sim_lie kind;
  unsigned part;
  uint64_t step;
  off_t off;
} lie;

typedef struct lies {
  sim_lie kind; /* the next one */
  unsigned part;
  uint32_t one_in;
  uint64_t give_up_at;
  lie told[TOLD];
  old_bytes old[OLDS];
  unsigned n_told, n_old;
} lies;

static lies *l;

static const struct {
  const char *name;
  oscall_kind call;
  uint32_t one_in[3];
} kinds[SIM_LIES] = {
    [SIM_LOST_WRITE] = {"lost write", OSCALL_PWRITE, {3, 30, 200}},
    [SIM_SHORN_WRITE] = {"shorn write", OSCALL_PWRITE, {3, 30, 200}},
    [SIM_MISDIRECTED_WRITE] = {"misdirected write", OSCALL_PWRITE, {3, 30, 200}},
    [SIM_FLIPPED_WRITE] = {"flipped write", OSCALL_PWRITE, {3, 30, 200}},
    [SIM_FLIPPED_READ] = {"flipped read", OSCALL_PREAD, {10, 100, 800}},
    [SIM_STALE_READ] = {"stale read", OSCALL_PREAD, {10, 100, 800}},
    [SIM_LOST_TRUNCATION] = {"lost truncation", OSCALL_FTRUNCATE, {1, 5, 30}},
    [SIM_LOST_SYNC] = {"lost sync", OSCALL_FDATASYNC, {1, 5, 30}},
    [SIM_LOST_RENAME] = {"lost rename", OSCALL_RENAME, {1, 3, 10}},
};
static const struct {
  const char *name;
  unsigned part;
} parts[] = {{"lode.db", SIM_TRUTH},
             {"lode.db-journal", SIM_JOURNAL},
             {"lode.pages", SIM_MAP},
             {"segment", SIM_SEGMENT},
             {"lode.lock", SIM_LOCKS}};

void sim_lies_start(void) {
  static lies *shared;
  if (!shared) shared = sim_heap_map(sizeof *shared);
  l = shared;
  l->n_told = l->n_old = 0;
  l->one_in = 0;
}

void sim_lies_cut(void) { l->n_old = 0; }

static const char *part_name(unsigned part) {
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (parts[i].part == part) return parts[i].name;
  return "";
}

void sim_lies_print(void) {
  unsigned from = l->n_told > TOLD ? l->n_told - TOLD : 0;
  for (unsigned i = from; i < l->n_told; i++) {
    const lie *t = &l->told[i % TOLD];
    fprintf(stderr, "  the disk lied at step %llu: %s of %s at %lld\n", (unsigned long long)t->step,
            kinds[t->kind].name, part_name(t->part), (long long)t->off);
  }
}

/* ---- Which file is it ---- */

static bool begins_with(const char *text, const char *start) { return strncmp(text, start, strlen(start)) == 0; }

static unsigned part_of(const char *path) {
  size_t n = strlen(sim->store);
  if (strcmp(path, sim->store) == 0) return SIM_JOURNAL; /* a sync of the folder is for the journal's name */
  if (strncmp(path, sim->store, n) != 0 || path[n] != '/') return 0;
  const char *name = path + n + 1;
  if (strcmp(name, "lode.db") == 0) return SIM_TRUTH;
  if (strcmp(name, "lode.db-journal") == 0) return SIM_JOURNAL;
  if (begins_with(name, "lode.pages")) return SIM_MAP;
  if (strcmp(name, "lode.lock") == 0) return SIM_LOCKS;
  return begins_with(name, "segments") ? SIM_SEGMENT : 0;
}

/* ---- What was there before ---- */

static void keep_old(const oscall *c, unsigned part) {
  if (c->n > OLD_BYTES || part == SIM_SEGMENT) return;
  old_bytes *o = &l->old[l->n_old++ % OLDS];
  ssize_t got = os_real.pread(c->fd, o->data, c->n, c->off);
  o->part = part;
  o->off = c->off;
  o->len = c->n;
  o->had = got > 0 ? (size_t)got : 0;
}

static bool read_old(const oscall *c, unsigned part, int64_t *rc) {
  unsigned n = l->n_old < OLDS ? l->n_old : OLDS, from = n ? (unsigned)sim_below(n) : 0;
  for (unsigned i = 0; i < n; i++) {
    const old_bytes *o = &l->old[(from + i) % n];
    if (o->part != part || o->off != c->off || o->len < c->n) continue;
    size_t len = o->had < c->n ? o->had : c->n;
    memcpy(c->into, o->data, len);
    *rc = (int64_t)len;
    return true;
  }
  return false;
}

/* ---- Lying ---- */

static void draw(void) {
  unsigned left = sim->lie_parts;
  if (sim->truth_lies == 0) left &= ~(unsigned)(SIM_TRUTH | SIM_JOURNAL);
  l->one_in = 0;
  l->give_up_at = sim->n.steps + PATIENCE;
  if (!left) return;
  do l->part = parts[sim_below(sizeof parts / sizeof *parts)].part;
  while (!(left & l->part));
  l->kind = (sim_lie)sim_below(SIM_LIES);
  l->one_in = kinds[l->kind].one_in[sim_below(3)];
}

static void note(const oscall *c) {
  l->told[l->n_told++ % TOLD] = (lie){l->kind, l->part, sim->n.steps, c->off};
  sim->lied |= l->part;
  sim->n.lies++;
  if (!(l->part & (SIM_TRUTH | SIM_JOURNAL))) return;
  if (sim->truth_lies > 0) sim->truth_lies--;
  if (sim->truth_lied++ || l->kind == SIM_STALE_READ || l->kind == SIM_LOST_TRUNCATION || l->kind == SIM_LOST_SYNC)
    sim->may_be_older = true;
}

static int64_t flip(oscall *c) {
  size_t at = (size_t)sim_below(c->n), bit = (size_t)sim_below(8);
  if (c->kind == OSCALL_PREAD) {
    int64_t rc = oscall_pass(c);
    if (rc > 0) ((unsigned char *)c->into)[at % (size_t)rc] ^= (unsigned char)(1u << bit);
    return rc;
  }
  const void *from = c->from;
  unsigned char *copy = sim_heap_resize(NULL, c->n);
  memcpy(copy, from, c->n);
  copy[at] ^= (unsigned char)(1u << bit);
  c->from = copy;
  int64_t rc = oscall_pass(c);
  c->from = from;
  sim_heap_free(copy);
  return rc;
}

static int64_t misdirect(oscall *c) {
  struct stat st;
  size_t n = c->n, unit = n >= 512 ? n : 512;
  if (fstat(c->fd, &st) < 0) return -1;
  off_t right = c->off, places = st.st_size / (off_t)unit + 1;
  c->off = (off_t)sim_below((uint64_t)places) * (off_t)unit;
  if (c->off == right) c->off += (off_t)unit;
  int64_t rc = oscall_pass(c);
  c->off = right;
  return rc < 0 ? rc : (int64_t)n;
}

/* The prepared lie. False: there is nothing here to lie about. */
static bool tell(oscall *c, int64_t *rc) {
  size_t n = c->n;
  switch (l->kind) {
    case SIM_LOST_WRITE: *rc = (int64_t)n; return true;
    case SIM_SHORN_WRITE:
      if (n < 2) return false;
      c->n = n / 2;
      *rc = oscall_pass(c) < 0 ? -1 : (int64_t)n;
      c->n = n;
      return true;
    case SIM_MISDIRECTED_WRITE: *rc = misdirect(c); return true;
    case SIM_STALE_READ: return read_old(c, l->part, rc);
    case SIM_FLIPPED_WRITE:
    case SIM_FLIPPED_READ:
      if (n == 0) return false;
      *rc = flip(c);
      return true;
    default: *rc = 0; return true;
  }
}

static bool is_prepared(const oscall *c, unsigned part) {
  if (sim->quiet_from || !(sim->lie_parts & part)) return false;
  if (!l->one_in || sim->n.steps > l->give_up_at) draw();
  bool sync = kinds[l->kind].call == OSCALL_FDATASYNC && c->kind == OSCALL_FSYNC;
  return l->one_in && part == l->part && (sync || c->kind == kinds[l->kind].call) && sim_one_in(l->one_in);
}

int64_t sim_lies_layer(oscall *c) {
  char path[OSCALL_PATH];
  int64_t rc = 0;
  if (!sim->lie_parts) return oscall_pass(c);
  oscall_path(c, path);
  unsigned part = part_of(path);
  if (!part) return oscall_pass(c);
  bool now = is_prepared(c, part);
  if (c->kind == OSCALL_PWRITE) keep_old(c, part);
  if (!now || !tell(c, &rc)) return oscall_pass(c);
  note(c);
  draw();
  return rc;
}
