/* SPDX-License-Identifier: Apache-2.0 */
/* simdisk.c - see simdisk.h.
 *
 * A node is a file's content: durable bytes, and the operations since. Names lead to nodes: a list of durable names,
 * and the operations on names since. A sync applies operations for good; a cut applies some of them to copies. One
 * mutex guards all of it. Paths are absolute, as given to `open`; those that do not begin with the root are not ours.
 */
#include "support/simdisk.h"

#include "support/oscall.h"
#include "support/sim_heap.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { SECTOR = 512, MAX_FDS = 4096 };

typedef struct content {
  unsigned char *data;
  size_t len, cap;
} content;

typedef struct op {
  bool truncates; /* to `off` */
  uint64_t off;
  size_t len;
  unsigned char *data;
} op;

typedef struct node {
  ino_t ino;       /* of the real file; 0: has no name any more */
  uint64_t number; /* in its place where there is a clock: the same in a replay */
  uint64_t changed_ns;
  content durable;
  op *ops;
  size_t n_ops, ops_cap;
  struct node *next;
} node;

typedef struct name {
  char *path;
  node *node; /* NULL: a folder */
} name;

typedef struct names {
  name *items;
  size_t n, cap;
} names;

typedef enum name_kind { NAME_LINK, NAME_UNLINK, NAME_RENAME } name_kind;
typedef struct name_op {
  name_kind kind;
  char *path, *to;
  node *node;
} name_op;

/* What processes share, on the heap that they share. */
typedef struct disk_state {
  node *nodes;
  names durable_names;
  name_op *name_ops;
  size_t n_name_ops, name_ops_cap;
  bool is_cut;
  uint64_t syncs, cut_at, n_nodes;
} disk_state;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char *root;
static disk_state *disk;
static uint64_t (*clock_ns)(void);
static node *fd_nodes[MAX_FDS];

/* ---- Small tools; out of memory ends the test ---- */

static char *copy_text(const char *text) {
  size_t n = strlen(text) + 1;
  return memcpy(sim_heap_resize(NULL, n), text, n);
}

static void grow(void *items, size_t *cap, size_t need, size_t size) {
  if (need <= *cap) return;
  *cap = need * 2;
  void *p;
  memcpy(&p, items, sizeof p);
  p = sim_heap_resize(p, *cap * size);
  memcpy(items, &p, sizeof p);
}

static void resize(content *c, size_t len) {
  grow(&c->data, &c->cap, len + 1, 1);
  if (len > c->len) memset(c->data + c->len, 0, len - c->len);
  c->len = len;
}

static bool ours(const char *path) {
  size_t n = root ? strlen(root) : 0;
  return n && strncmp(path, root, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static bool in_folder(const char *path, const char *folder) {
  const char *slash = strrchr(path, '/');
  size_t n = slash ? (size_t)(slash - path) : 0;
  return n == strlen(folder) && memcmp(path, folder, n) == 0;
}

static uint64_t next_random(uint64_t *state) {
  uint64_t x = *state += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/* ---- Content ---- */

static void put(content *c, const op *o, size_t from, size_t len) {
  if (o->off + from + len > c->len) resize(c, (size_t)o->off + from + len);
  memcpy(c->data + o->off + from, o->data + from, len);
}

static void apply(content *c, const op *o) {
  if (o->truncates)
    resize(c, (size_t)o->off);
  else
    put(c, o, 0, o->len);
}

static void add_op(node *nd, bool truncates, uint64_t off, const void *data, size_t len) {
  if (clock_ns) nd->changed_ns = clock_ns();
  grow(&nd->ops, &nd->ops_cap, nd->n_ops + 1, sizeof *nd->ops);
  op *o = &nd->ops[nd->n_ops++];
  *o = (op){.truncates = truncates, .off = off, .len = len};
  if (!len) return;
  o->data = sim_heap_resize(NULL, len);
  memcpy(o->data, data, len);
}

static void make_durable(node *nd) {
  for (size_t i = 0; i < nd->n_ops; i++) {
    apply(&nd->durable, &nd->ops[i]);
    sim_heap_free(nd->ops[i].data);
  }
  nd->n_ops = 0;
}

static node *add_node(ino_t ino) {
  node *nd = sim_heap_resize(NULL, sizeof *nd);
  *nd = (node){.ino = ino, .number = ++disk->n_nodes, .next = disk->nodes};
  disk->nodes = nd;
  return nd;
}

static node *node_of_file(const char *path, ino_t ino) {
  node *nd = add_node(ino);
  size_t len;
  char *data = test_read_file(path, &len);
  resize(&nd->durable, len);
  memcpy(nd->durable.data, data, len);
  free(data);
  return nd;
}

/* ---- Names ---- */

static name *find_name(names *list, const char *path) {
  for (size_t i = 0; i < list->n; i++)
    if (strcmp(list->items[i].path, path) == 0) return &list->items[i];
  return NULL;
}

static void remove_name(names *list, const char *path) {
  name *at = find_name(list, path);
  if (!at) return;
  sim_heap_free(at->path);
  *at = list->items[--list->n];
}

static void add_name(names *list, const char *path, node *nd) {
  remove_name(list, path);
  grow(&list->items, &list->cap, list->n + 1, sizeof *list->items);
  list->items[list->n++] = (name){copy_text(path), nd};
}

static void apply_name(names *list, const name_op *o) {
  name *from = find_name(list, o->path);
  if (o->kind == NAME_LINK)
    add_name(list, o->path, o->node);
  else if (o->kind == NAME_UNLINK)
    remove_name(list, o->path);
  else if (from) {
    node *nd = from->node;
    remove_name(list, o->path);
    add_name(list, o->to, nd);
  }
}

static void add_name_op(name_kind kind, const char *path, const char *to, node *nd) {
  grow(&disk->name_ops, &disk->name_ops_cap, disk->n_name_ops + 1, sizeof *disk->name_ops);
  disk->name_ops[disk->n_name_ops++] = (name_op){kind, copy_text(path), to ? copy_text(to) : NULL, nd};
}

static void sync_names(const char *folder) {
  size_t kept = 0;
  for (size_t i = 0; i < disk->n_name_ops; i++) {
    name_op *o = &disk->name_ops[i];
    if (in_folder(o->path, folder) || (o->to && in_folder(o->to, folder))) {
      apply_name(&disk->durable_names, o);
      sim_heap_free(o->path);
      sim_heap_free(o->to);
    } else {
      disk->name_ops[kept++] = *o;
    }
  }
  disk->n_name_ops = kept;
}

/* ---- Calls ---- */

static node *node_of_inode(ino_t ino) {
  node *nd = disk->nodes;
  while (nd && nd->ino != ino) nd = nd->next;
  return nd;
}

static node *fd_node(int fd) { return fd >= 0 && fd < MAX_FDS ? fd_nodes[fd] : NULL; }

static void opened(int fd, const char *path, int flags, bool existed) {
  struct stat st;
  if (fd >= MAX_FDS) test_failed(__FILE__, __LINE__, "simdisk: too many files");
  if (fstat(fd, &st) < 0) test_failed(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
  fd_nodes[fd] = NULL;
  if (!S_ISREG(st.st_mode) || (flags & O_TMPFILE) == O_TMPFILE) return;
  node *nd = node_of_inode(st.st_ino);
  if (!nd && existed) {
    nd = node_of_file(path, st.st_ino);
    add_name(&disk->durable_names, path, nd);
  } else if (!nd) {
    nd = add_node(st.st_ino);
    add_name_op(NAME_LINK, path, NULL, nd);
  }
  if ((flags & O_TRUNC) && existed) add_op(nd, true, 0, NULL, 0);
  fd_nodes[fd] = nd;
}

static int64_t do_open(oscall *c, const char *path) {
  struct stat st;
  bool existed = (c->in_dir ? lstat(path, &st) : stat(path, &st)) == 0;
  int64_t fd = oscall_pass(c);
  if (fd >= 0) opened((int)fd, path, c->flags, existed);
  return fd;
}

static int64_t do_sync(const oscall *c, const char *path) {
  disk->syncs++;
  if (disk->syncs == disk->cut_at) {
    disk->is_cut = true;
    errno = EIO;
    return -1;
  }
  if (fd_node(c->fd))
    make_durable(fd_node(c->fd));
  else
    sync_names(path);
  return 0;
}

/* Real times and inode numbers are not the same in a replay. Folders, and files without a name, are always new. */
static int64_t do_stat(oscall *c) {
  int64_t rc = oscall_pass(c);
  if (rc != 0 || !clock_ns) return rc;
  node *nd = c->kind == OSCALL_FSTAT ? fd_node(c->fd) : node_of_inode(c->st->st_ino);
  uint64_t ns = nd ? nd->changed_ns : clock_ns();
  c->st->st_mtim = c->st->st_ctim = (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
  if (nd) c->st->st_ino = nd->number;
  return rc;
}

/* The inode number of what has no name may come back as another file's. */
static void forget_inode(const struct stat *st) {
  node *nd = node_of_inode(st->st_ino);
  if (nd) nd->ino = 0;
}

static int64_t do_unlink(oscall *c, const char *path) {
  struct stat st;
  bool known = lstat(path, &st) == 0;
  int64_t rc = oscall_pass(c);
  if (rc == 0 && known) {
    forget_inode(&st);
    add_name_op(NAME_UNLINK, path, NULL, NULL);
  }
  return rc;
}

static int64_t do_rename(oscall *c, const char *from) {
  char to[OSCALL_PATH];
  struct stat st;
  oscall_to_path(c, to);
  bool replaces = ours(to) && stat(to, &st) == 0 && S_ISREG(st.st_mode);
  int64_t rc = oscall_pass(c);
  if (rc == 0 && replaces) forget_inode(&st);
  if (rc == 0 && ours(to)) add_name_op(NAME_RENAME, from, to, NULL);
  return rc;
}

static int64_t note_name(int64_t rc, name_kind kind, const char *path) {
  if (rc == 0) add_name_op(kind, path, NULL, NULL);
  return rc;
}

static int64_t do_close(oscall *c) {
  if (c->fd >= 0 && c->fd < MAX_FDS) fd_nodes[c->fd] = NULL;
  int64_t rc = oscall_pass(c);
  if (!disk->is_cut) return rc;
  errno = EIO;
  return -1;
}

/* A call on a file of the disk. */
static int64_t do_call(oscall *c, const char *path) {
  int64_t rc;
  switch (c->kind) {
    case OSCALL_OPEN: return do_open(c, path);
    case OSCALL_PWRITE:
      rc = oscall_pass(c);
      if (rc > 0 && fd_node(c->fd)) add_op(fd_node(c->fd), false, (uint64_t)c->off, c->from, (size_t)rc);
      return rc;
    case OSCALL_FTRUNCATE:
      rc = oscall_pass(c);
      if (rc == 0 && fd_node(c->fd)) add_op(fd_node(c->fd), true, (uint64_t)c->off, NULL, 0);
      return rc;
    case OSCALL_FSYNC:
    case OSCALL_FDATASYNC: return do_sync(c, path);
    case OSCALL_FSTAT:
    case OSCALL_STAT: return do_stat(c);
    case OSCALL_UNLINK: return do_unlink(c, path);
    case OSCALL_RENAME: return do_rename(c, path);
    case OSCALL_MKDIR: return note_name(oscall_pass(c), NAME_LINK, path);
    case OSCALL_RMDIR: return note_name(oscall_pass(c), NAME_UNLINK, path);
    default: return oscall_pass(c);
  }
}

static int64_t simdisk_layer(oscall *c) {
  char path[OSCALL_PATH];
  int64_t rc = -1;
  if (c->kind == OSCALL_WALL || c->kind == OSCALL_NOW || c->kind == OSCALL_SLEEP) return oscall_pass(c);
  oscall_path(c, path);
  pthread_mutex_lock(&mutex);
  if (c->kind == OSCALL_CLOSE)
    rc = do_close(c);
  else if (disk->is_cut)
    errno = EIO;
  else
    rc = ours(path) ? do_call(c, path) : oscall_pass(c);
  int saved = errno;
  pthread_mutex_unlock(&mutex);
  errno = saved;
  return rc;
}

/* ---- The cut ---- */

typedef enum fate { FATE_MIXED, FATE_KEEP, FATE_LOSE } fate;

static void survive_write(content *c, const op *o, uint64_t *rng) {
  uint64_t end = o->off + o->len;
  unsigned r = (unsigned)(next_random(rng) % 4);
  if (r < 2) {
    put(c, o, 0, o->len);
    return;
  }
  for (uint64_t at = o->off; r == 2 && at < end;) {
    uint64_t stop = (at / SECTOR + 1) * SECTOR;
    if (stop > end) stop = end;
    if (next_random(rng) & 1) put(c, o, (size_t)(at - o->off), (size_t)(stop - at));
    at = stop;
  }
  if (end > c->len && (next_random(rng) & 1)) resize(c, (size_t)end);
}

static void write_survivor(const char *path, const node *nd, fate all, uint64_t *rng) {
  content c = {0};
  resize(&c, nd->durable.len);
  if (c.len) memcpy(c.data, nd->durable.data, c.len);
  for (size_t i = 0; i < nd->n_ops && all != FATE_LOSE; i++) {
    const op *o = &nd->ops[i];
    if (all == FATE_KEEP)
      apply(&c, o);
    else if (!o->truncates)
      survive_write(&c, o, rng);
    else if (next_random(rng) & 1)
      apply(&c, o);
  }
  test_write_file(path, c.data, c.len);
  sim_heap_free(c.data);
}

static int by_path(const void *a, const void *b) { return strcmp(((const name *)a)->path, ((const name *)b)->path); }

void simdisk_cut(uint64_t seed, const char *to_folder) {
  names list = {0};
  uint64_t rng = seed;
  unsigned r = (unsigned)(next_random(&rng) % 8);
  fate all = r == 0 ? FATE_KEEP : r == 1 ? FATE_LOSE : FATE_MIXED;
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < disk->durable_names.n; i++)
    add_name(&list, disk->durable_names.items[i].path, disk->durable_names.items[i].node);
  for (size_t i = 0; i < disk->n_name_ops; i++)
    if (all == FATE_KEEP || (all == FATE_MIXED && (next_random(&rng) & 1))) apply_name(&list, &disk->name_ops[i]);
  if (list.n) qsort(list.items, list.n, sizeof *list.items, by_path); /* folders before what is in them */
  if (mkdir(to_folder, 0700) < 0 && errno != EEXIST)
    test_failed(__FILE__, __LINE__, "%s: %s", to_folder, strerror(errno));
  for (size_t i = 0; i < list.n; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s%s", to_folder, list.items[i].path + strlen(root));
    char *slash = strrchr(path, '/');
    *slash = 0;
    bool has_folder = access(path, F_OK) == 0; /* a lost folder takes what was in it along */
    *slash = '/';
    if (!has_folder) continue;
    if (list.items[i].node)
      write_survivor(path, list.items[i].node, all, &rng);
    else if (mkdir(path, 0700) < 0 && errno != EEXIST)
      test_failed(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
  }
  for (size_t i = 0; i < list.n; i++) sim_heap_free(list.items[i].path);
  sim_heap_free(list.items);
  pthread_mutex_unlock(&mutex);
}

/* ---- Life ---- */

static int by_entry(const FTSENT **a, const FTSENT **b) { return strcmp((*a)->fts_name, (*b)->fts_name); }

static void load_tree(void) {
  char *roots[] = {root, NULL};
  FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_entry);
  if (!tree) test_failed(__FILE__, __LINE__, "%s: %s", root, strerror(errno));
  for (FTSENT *e; (e = fts_read(tree));) {
    if (e->fts_info == FTS_D && e->fts_level > 0) add_name(&disk->durable_names, e->fts_path, NULL);
    if (e->fts_info == FTS_F)
      add_name(&disk->durable_names, e->fts_path, node_of_file(e->fts_path, e->fts_statp->st_ino));
  }
  fts_close(tree);
}

void simdisk_start(const char *folder) {
  simdisk_stop();
  sim_heap_start();
  disk = sim_heap_resize(NULL, sizeof *disk);
  *disk = (disk_state){0};
  root = strdup(folder);
  load_tree();
  oscall_push(simdisk_layer, &os_real);
}

void simdisk_stop(void) {
  oscall_pop(simdisk_layer);
  os_api = &os_real;
  memset(fd_nodes, 0, sizeof fd_nodes);
  free(root);
  root = NULL;
  disk = NULL;
  clock_ns = NULL;
  sim_heap_stop();
}

void simdisk_set_clock(uint64_t (*now_ns)(void)) { clock_ns = now_ns; }

void simdisk_cut_at(uint64_t n) {
  pthread_mutex_lock(&mutex);
  disk->cut_at = n;
  disk->syncs = 0;
  pthread_mutex_unlock(&mutex);
}

bool simdisk_is_cut(void) {
  pthread_mutex_lock(&mutex);
  bool result = disk->is_cut;
  pthread_mutex_unlock(&mutex);
  return result;
}

uint64_t simdisk_syncs(void) {
  pthread_mutex_lock(&mutex);
  uint64_t result = disk->syncs;
  pthread_mutex_unlock(&mutex);
  return result;
}
