/* SPDX-License-Identifier: Apache-2.0 */
/* outside.c - damages stores from outside, and asks the program what is left of them.
 *
 * This program knows nothing of Lode but its command line: it includes none of its headers and knows no file of a
 * store by name. It makes stores, writes down the right answers, then over and over takes a copy, damages it in a
 * way chosen by a seed, asks everything again, and holds each answer to three rules:
 *   1. No command dies by a signal, and none hangs.
 *   2. A command that exits with 0 gives the right answer. One that does not says why on standard error.
 *   3. A store that is not damaged is never refused: nothing was done to it, or foreign files were put beside its own,
 * or a file came back that an earlier moment had left and a later one removed. It also writes to each damaged store:
 * what is acknowledged can be read back. And it salvages each: what that brings back was in the store at some time.
 *
 * Usage: outside LODE ROUNDS [SEED]. A round replays with its own seed and ROUNDS = 1. The last line is
 * "N passed, N failed"; the table above it counts answers by kind of damage.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
  MAX_ARGS = 32,
  MAX_FILES = 64,     /* of a store */
  MAX_RETURNED = 8,   /* files of an earlier moment, kept to be put back */
  HANG_SECONDS = 120, /* on a busy machine too, each command takes a small part of this */
  RECORDS = 400,      /* of the small stores */
  LARGE = 5000,       /* of the one with an index of its vectors */
};

/* ---- Small things ---- */

static uint64_t random_state;

static uint64_t next_random(void) {
  uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static uint64_t below(uint64_t n) { return n ? next_random() % n : 0; }

static void die(const char *what) {
  fprintf(stderr, "outside: %s: %s\n", what, strerror(errno));
  exit(2);
}

static void *grown(void *p, size_t n) {
  p = realloc(p, n ? n : 1);
  if (!p) die("memory");
  return p;
}

static char *text_of(const char *format, ...) {
  va_list args;
  char *out = NULL;
  va_start(args, format);
  if (vasprintf(&out, format, args) < 0) die("memory");
  va_end(args);
  return out;
}

typedef struct bytes {
  char *data; /* ends in a zero byte that does not count */
  size_t n;
} bytes;

static bytes read_all(int fd) {
  bytes b = {grown(NULL, 65537), 0};
  size_t cap = 65536;
  for (;;) {
    ssize_t r = read(fd, b.data + b.n, cap - b.n);
    if (r < 0 && errno == EINTR) continue;
    if (r <= 0) break;
    b.n += (size_t)r;
    if (b.n == cap) b.data = grown(b.data, (cap *= 2) + 1);
  }
  b.data[b.n] = 0;
  return b;
}

static bytes read_file(const char *path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return (bytes){grown(NULL, 1), 0};
  bytes b = read_all(fd);
  close(fd);
  return b;
}

static void write_file(const char *path, const void *data, size_t n) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) die(path);
  for (size_t done = 0; done < n;) {
    ssize_t r = write(fd, (const char *)data + done, n - done);
    if (r < 0) die(path);
    done += (size_t)r;
  }
  close(fd);
}

/* ---- Trees ---- */

typedef struct tree {
  char *path[MAX_FILES]; /* of regular files, relative */
  uint64_t size[MAX_FILES];
  size_t n;
} tree;

static void list_into(tree *t, const char *root, const char *below_root) {
  char *folder = text_of("%s/%s", root, below_root);
  DIR *d = opendir(folder);
  for (struct dirent *e; d && (e = readdir(d));) {
    struct stat st;
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    char *name = text_of("%s%s%s", below_root, *below_root ? "/" : "", e->d_name);
    char *path = text_of("%s/%s", root, name);
    if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
      list_into(t, root, name);
    else if (S_ISREG(st.st_mode) && t->n < MAX_FILES) {
      t->size[t->n] = (uint64_t)st.st_size;
      t->path[t->n++] = strdup(name);
    }
    free(name);
    free(path);
  }
  if (d) closedir(d);
  free(folder);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Sorted, so that a seed means the same on every file system. */
static tree list(const char *root) {
  tree t = {.n = 0};
  list_into(&t, root, "");
  qsort(t.path, t.n, sizeof *t.path, by_name);
  for (size_t i = 0; i < t.n; i++) {
    struct stat st = {0};
    char *path = text_of("%s/%s", root, t.path[i]);
    if (lstat(path, &st) == 0) t.size[i] = (uint64_t)st.st_size;
    free(path);
  }
  return t;
}

static void release_tree(tree *t) {
  for (size_t i = 0; i < t->n; i++) free(t->path[i]);
  t->n = 0;
}

static void remove_tree(const char *path) {
  struct stat st;
  if (lstat(path, &st) != 0) return;
  if (S_ISDIR(st.st_mode)) {
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
      if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
      char *inner = text_of("%s/%s", path, e->d_name);
      remove_tree(inner);
      free(inner);
    }
    if (d) closedir(d);
    rmdir(path);
  } else
    unlink(path);
}

static void make_folders(const char *path) {
  char *p = strdup(path);
  for (char *at = strchr(p + 1, '/'); at; at = strchr(at + 1, '/')) {
    *at = 0;
    mkdir(p, 0700);
    *at = '/';
  }
  free(p);
}

static void copy_tree(const char *from, const char *to) {
  tree t = list(from);
  remove_tree(to);
  if (mkdir(to, 0700) != 0) die(to);
  for (size_t i = 0; i < t.n; i++) {
    char *a = text_of("%s/%s", from, t.path[i]), *b = text_of("%s/%s", to, t.path[i]);
    bytes content = read_file(a);
    make_folders(b);
    write_file(b, content.data, content.n);
    free(content.data);
    free(a);
    free(b);
  }
  release_tree(&t);
}

/* ---- Running the program ---- */

static const char *lode;
static char *base; /* folder of this run */

typedef struct answer {
  int code;      /* exit code */
  int by_signal; /* 0: none */
  bool hung;
  bytes out, err;
} answer;

static void release(answer *a) {
  free(a->out.data);
  free(a->err.data);
}

static void drop_child_output(int fd, const char *path) {
  int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || dup2(file, fd) < 0) _exit(127);
}

static pid_t start(const char *const *args, const char *input, const char *out, const char *err) {
  pid_t pid = fork();
  if (pid < 0) die("fork");
  if (pid > 0) return pid;
  const char *argv[MAX_ARGS + 2] = {lode};
  for (size_t i = 0; i < MAX_ARGS && args[i]; i++) argv[i + 1] = args[i];
  int in = open(input ? input : "/dev/null", O_RDONLY);
  if (in < 0 || dup2(in, 0) < 0) _exit(127);
  drop_child_output(1, out);
  drop_child_output(2, err);
  execv(lode, (char *const *)(uintptr_t)argv);
  _exit(127);
}

/* Waits for a process; kills it after HANG_SECONDS. */
static void wait_for(pid_t pid, answer *a) {
  int status = 0;
  struct timespec pause = {0, 1000000};
  for (long ms = 0;; ms++) {
    pid_t r = waitpid(pid, &status, WNOHANG);
    if (r == pid) break;
    if (r < 0 && errno != EINTR) die("waitpid");
    if (ms == HANG_SECONDS * 1000L) {
      a->hung = true;
      kill(pid, SIGKILL);
    }
    nanosleep(&pause, NULL);
  }
  a->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  a->by_signal = WIFSIGNALED(status) && !a->hung ? WTERMSIG(status) : 0;
}

/* The words of `command` separated by single spaces; %S is the store. */
static answer ask(const char *store, const char *command, const char *input) {
  answer a = {0};
  const char *args[MAX_ARGS] = {"--store", store};
  char *words = strdup(command), *rest = words, *out = text_of("%s/out", base), *err = text_of("%s/err", base);
  size_t n = 2;
  for (char *word; n + 1 < MAX_ARGS && (word = strsep(&rest, " "));) args[n++] = word;
  wait_for(start(args, input, out, err), &a);
  a.out = read_file(out);
  a.err = read_file(err);
  free(words);
  free(out);
  free(err);
  return a;
}

/* ---- Stores and their right answers ---- */

typedef enum check { EQUAL, NEAREST, SIGNALS_ONLY } check;

/* NEAREST: as many lines as before, each with an id and distance of the exact ranking of all, in rising order. */
static const struct question {
  const char *command;
  check check;
} questions[] = {
    {"db count c --json", EQUAL},
    {"db get c --limit 0 --include all --json", EQUAL},
    {"db get c --where {\"n\":{\"$gte\":40}} --limit 0 --json", EQUAL},
    {"db get c --ids r7,r33,r121 --include all --json", EQUAL},
    {"db query c --vector [0.3,-0.2,0.9,0.1,0.5,-0.7,0.2,0.4] -k 12 --exact --include none --json", EQUAL},
    {"db query c --vector [0.3,-0.2,0.9,0.1,0.5,-0.7,0.2,0.4] -k 12 --include none --json", NEAREST},
    {"db query c --text word7 -k 30 --include none --json", EQUAL},
    {"db query c --text shared --where {\"g\":\"g3\"} -k 30 --include none --json", EQUAL},
    {"db facets c g --json", EQUAL},
    {"db export c", EQUAL},
    {"db count d --json", EQUAL},
    {"db collections --json", EQUAL},
    {"db stats --json", SIGNALS_ONLY},
};
enum { QUESTIONS = sizeof questions / sizeof *questions };
static const char all_ranked[] =
    "db query c --vector [0.3,-0.2,0.9,0.1,0.5,-0.7,0.2,0.4] -k 100000 --exact --include none --json";

typedef struct scene {
  char *name, *store;
  answer right[QUESTIONS];
  answer ranked; /* all records by distance */
  bytes ever;    /* lines of `db export` of all moments */
  struct {
    char *path;
    bytes content;
  } returned[MAX_RETURNED]; /* files that were there at an earlier moment, and are now gone or empty */
  size_t n_returned;
} scene;

static void must(answer a, const char *what) {
  if (a.code != 0 || a.by_signal || a.hung) {
    fprintf(stderr, "outside: a sound store: %s: exit %d, signal %d: %s", what, a.code, a.by_signal, a.err.data);
    exit(2);
  }
  release(&a);
}

/* Records first .. last - 1, as JSON lines in a file; `version` changes all but the ids. */
static char *records(int first, int last, int version) {
  char *path = text_of("%s/in.jsonl", base);
  FILE *f = fopen(path, "w");
  if (!f) die(path);
  for (int i = first; i < last; i++) {
    fprintf(f,
            "{\"id\":\"r%d\",\"document\":\"word%d shared text %d version %d\",\"metadata\":{\"n\":%d,\"g\":\"g%d\"},"
            "\"embedding\":[",
            i, i % 50, i, version, i, (i + version) % 7);
    for (int k = 0; k < 8; k++) fprintf(f, "%s%.6f", k ? "," : "", sin((i + 1) * (k + 1.7) + version));
    fputs("]}\n", f);
  }
  fclose(f);
  return path;
}

static void put(const char *store, const char *command, int first, int last, int version) {
  char *path = records(first, last, version);
  must(ask(store, command, path), command);
  free(path);
}

static void remember(scene *s) {
  answer a = ask(s->store, "db export c", NULL);
  s->ever.data = grown(s->ever.data, s->ever.n + a.out.n + 1);
  memcpy(s->ever.data + s->ever.n, a.out.data, a.out.n + 1);
  s->ever.n += a.out.n;
  must(a, "db export");
}

static bool has_content(const tree *t, const char *path) {
  for (size_t i = 0; i < t->n; i++)
    if (strcmp(t->path[i], path) == 0) return t->size[i] > 0;
  return false;
}

static bool ended(pid_t pid) {
  siginfo_t info = {0};
  if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0) die("waitid");
  return info.si_pid != 0;
}

/* Copies what a tool that copies files would see of those that only exist while somebody writes: the last copy of each
 * is kept. The writer is stopped for each look. */
static void watch_writer(scene *s, const tree *before, pid_t pid) {
  size_t first = s->n_returned;
  while (!ended(pid)) {
    struct timespec pause = {0, (long)below(300000)};
    nanosleep(&pause, NULL);
    kill(pid, SIGSTOP);
    tree now = list(s->store);
    for (size_t i = 0; i < now.n; i++) {
      if (now.size[i] == 0 || has_content(before, now.path[i])) continue;
      size_t at = first;
      while (at < s->n_returned && strcmp(s->returned[at].path, now.path[i]) != 0) at++;
      if (at == MAX_RETURNED) continue;
      if (at == s->n_returned) s->returned[s->n_returned++].path = strdup(now.path[i]);
      char *path = text_of("%s/%s", s->store, now.path[i]);
      free(s->returned[at].content.data);
      s->returned[at].content = read_file(path);
      free(path);
    }
    release_tree(&now);
    kill(pid, SIGCONT);
    if (s->n_returned > first && below(40) == 0) kill(pid, SIGKILL);
  }
}

/* Writers that are watched, and some of them killed; each followed by others, so that what was copied is old. */
static void watch_writers(scene *s) {
  char *out = text_of("%s/out", base), *err = text_of("%s/err", base);
  for (int i = 0; i < 12 && s->n_returned < MAX_RETURNED; i++) {
    char *input = records(0, RECORDS, 20 + i);
    const char *args[] = {"--store", s->store, "db", "upsert", "c", NULL};
    answer a = {0};
    tree before = list(s->store);
    pid_t pid = start(args, input, out, err);
    watch_writer(s, &before, pid);
    wait_for(pid, &a);
    release_tree(&before);
    free(input);
    remember(s);
    must(ask(s->store, "db optimize", NULL), "db optimize");
    put(s->store, "db upsert c", i, i + 3, 1);
    remember(s);
  }
  free(out);
  free(err);
}

static void note_answers(scene *s) {
  remember(s);
  for (int i = 0; i < QUESTIONS; i++) {
    s->right[i] = ask(s->store, questions[i].command, NULL);
    if (s->right[i].code != 0) must(s->right[i], questions[i].command);
  }
  s->ranked = ask(s->store, all_ranked, NULL);
}

static scene make_scene(const char *name, const char *create, int n, bool optimize, bool writers) {
  scene s = {.name = strdup(name), .store = text_of("%s/%s", base, name)};
  must(ask(s.store, create, NULL), create);
  must(ask(s.store, "db create d", NULL), "db create d");
  put(s.store, "db add c", 0, n, 1);
  put(s.store, "db add d", 0, 40, 1);
  remember(&s);
  if (optimize) must(ask(s.store, "db optimize", NULL), "db optimize");
  put(s.store, "db upsert c", n / 3, n / 2, 2);
  remember(&s); /* what is deleted next may come back when its tombstone is damaged */
  must(ask(s.store, "db delete c --where {\"g\":\"g5\"}", NULL), "db delete");
  if (optimize) must(ask(s.store, "db optimize", NULL), "db optimize");
  if (writers) watch_writers(&s);
  note_answers(&s);
  return s;
}

/* ---- Damage ---- */

typedef enum kind {
  NOTHING,
  FOREIGN,
  RETURNED, /* not damage: the store must answer */
  BITS,
  WORDS,
  ZEROS,
  CUT,
  GROWN,
  SWAPPED,
  MOVED,
  EXCHANGED,
  GONE,
  SEVERAL,
  KINDS
} kind;
static const char *const kind_names[KINDS] = {"nothing",   "foreign files", "old files", "bits",    "words",
                                              "zeros",     "cut",           "grown",     "swapped", "moved",
                                              "exchanged", "gone",          "several"};

static bool healthy(kind k) { return k <= RETURNED; }

typedef struct file {
  char *path;
  bytes content;
} file;

/* A file of the store that has content. */
static bool pick(const char *store, file *f) {
  tree t = list(store);
  size_t full = 0;
  *f = (file){0};
  for (size_t i = 0; i < t.n; i++) full += t.size[i] > 0;
  size_t chosen = below(full);
  for (size_t i = 0; i < t.n && !f->path; i++) {
    if (t.size[i] == 0 || chosen-- > 0) continue;
    f->path = text_of("%s/%s", store, t.path[i]);
    f->content = read_file(f->path);
  }
  release_tree(&t);
  return f->path && f->content.n > 0;
}

static void put_back(file *f) {
  if (f->path) write_file(f->path, f->content.data, f->content.n);
  free(f->path);
  free(f->content.data);
}

/* A place in a file: early, late, at a power of two, or anywhere. */
static size_t place(size_t n) {
  static const size_t blocks[] = {512, 4096, 16384};
  switch (below(4)) {
    case 0: return below(n < 128 ? n : 128);
    case 1: return n - 1 - below(n < 64 ? n : 64);
    case 2: {
      size_t block = blocks[below(3)];
      return n > block ? below(n / block) * block : 0;
    }
    default: return below(n);
  }
}

static size_t length_from(size_t at, size_t n) {
  static const size_t lengths[] = {1, 4, 16, 512, 4096, 16384};
  size_t len = lengths[below(6)];
  return len > n - at ? n - at : len;
}

static void damage_bytes(file *f, kind k) {
  unsigned char *p = (unsigned char *)f->content.data;
  size_t n = f->content.n, at = place(n), other = place(n);
  size_t len = length_from(at, n);
  if (k == BITS) {
    for (uint64_t i = 1 + below(8); i > 0; i--) p[place(n)] ^= (unsigned char)(1u << below(8));
  } else if (k == WORDS) {
    static const uint32_t words[] = {0, 1, 0xffffffff, 0x7fffffff, 0x80000000, 0x01000000};
    uint32_t word = below(2) ? words[below(6)] : (uint32_t)next_random();
    at = at / 4 * 4;
    memcpy(p + at, &word, n - at < 4 ? n - at : 4);
  } else if (k == ZEROS) {
    memset(p + at, below(4) ? 0 : 0xff, len);
  } else {
    unsigned char saved[16384];
    if (len > n - other) len = n - other;
    memcpy(saved, p + other, len);
    if (k == SWAPPED) memmove(p + other, p + at, len);
    memcpy(p + at, saved, len);
  }
}

static void damage_one(const scene *s, const char *store, kind k) {
  file f, g;
  if (k == RETURNED) {
    if (!s->n_returned) return;
    size_t i = below(s->n_returned);
    char *path = text_of("%s/%s", store, s->returned[i].path);
    write_file(path, s->returned[i].content.data, s->returned[i].content.n);
    free(path);
    return;
  }
  if (!pick(store, &f)) return;
  switch (k) {
    case BITS:
    case WORDS:
    case ZEROS:
    case SWAPPED:
    case MOVED: damage_bytes(&f, k); break;
    case CUT: f.content.n = below(3) ? place(f.content.n) : 0; break;
    case GROWN: {
      size_t more = 1 + below(20000);
      f.content.data = grown(f.content.data, f.content.n + more);
      for (size_t i = 0; i < more; i++) f.content.data[f.content.n + i] = below(2) ? 0 : (char)next_random();
      f.content.n += more;
      break;
    }
    case EXCHANGED:
      if (pick(store, &g) && strcmp(f.path, g.path) != 0) {
        bytes content = f.content;
        f.content = g.content;
        g.content = content;
      }
      put_back(&g);
      break;
    case GONE:
      unlink(f.path);
      free(f.path);
      f.path = NULL;
      break;
    default: break;
  }
  put_back(&f);
}

/* What other programs leave in folders: beside the store's files, and named nearly as they are. */
static void add_foreign(const char *store) {
  static const char *const suffixes[] = {"~", ".bak", ".swp", ".tmp", " (copy)", ".orig", ".sync-conflict"};
  static const char *const names[] = {".DS_Store", "Thumbs.db", "README", "desktop.ini", ".nfs0001", "x"};
  tree t = list(store);
  for (uint64_t i = 1 + below(3); i > 0; i--) {
    char *path = below(2) && t.n ? text_of("%s/%s%s", store, t.path[below(t.n)], suffixes[below(7)])
                                 : text_of("%s/%s", store, names[below(6)]);
    char junk[300];
    for (size_t k = 0; k < sizeof junk; k++) junk[k] = (char)next_random();
    unlink(path);
    rmdir(path); /* an earlier one may have been a folder */
    switch (below(5)) {
      case 0: (void)!mkdir(path, 0700); break;
      case 1: (void)!mkfifo(path, 0600); break;
      case 2: (void)!symlink("/dev/zero", path); break;
      default: write_file(path, junk, below(sizeof junk));
    }
    free(path);
  }
  release_tree(&t);
}

static void damage(const scene *s, const char *store, kind k) {
  if (k == NOTHING) return;
  if (k == FOREIGN) {
    add_foreign(store);
    return;
  }
  if (k != SEVERAL) {
    damage_one(s, store, k);
    return;
  }
  for (uint64_t i = 2 + below(3); i > 0; i--) {
    uint64_t choice = below(8);
    if (choice == 0)
      add_foreign(store);
    else if (choice == 1)
      damage_one(s, store, RETURNED);
    else
      damage_one(s, store, BITS + (kind)below(SEVERAL - BITS));
  }
}

/* ---- Evaluating answers ---- */

static struct counts { unsigned rounds, right, refused, failed; } counts[KINDS];
static uint64_t round_seed;

static void complain(const scene *s, kind k, const char *command, const char *what, const answer *a) {
  printf("FAIL %s, %s, seed %llu: %s: %s (exit %d, signal %d)\n     stderr: %.300s\n", s->name, kind_names[k],
         (unsigned long long)round_seed, command, what, a->code, a->by_signal, a->err.n ? a->err.data : "-");
}

/* Does one line hold all parts of the other? A record may have lost its vector or document, but not changed it. */
static bool line_covers(const char *line, size_t n, const char *parts, size_t parts_n) {
  static const char *const members[] = {",\"document\":", ",\"metadata\":", ",\"embedding\":"};
  size_t at = 0;
  if (parts_n > 0 && parts[parts_n - 1] == '}') parts_n--;
  while (at < parts_n) {
    size_t next = parts_n;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
      char *m = memmem(parts + at + 1, parts_n - at - 1, members[i], strlen(members[i]));
      if (m && (size_t)(m - parts) < next) next = (size_t)(m - parts);
    }
    if (!memmem(line, n, parts + at, next - at)) return false;
    at = next;
  }
  return true;
}

static bool was_ever(bytes ever, const char *line, size_t n) {
  const char *id_end = memmem(line, n, "\",", 2); /* of {"id":"..." */
  size_t id_n = id_end ? (size_t)(id_end - line) + 1 : n;
  for (const char *at = ever.data; (at = memmem(at, (size_t)(ever.data + ever.n - at), line, id_n)); at++)
    if (line_covers(at, (size_t)(strchrnul(at, '\n') - at), line, n)) return true;
  return false;
}

static bool all_were_ever(bytes ever, bytes lines) {
  for (char *at = lines.data, *end; at < lines.data + lines.n; at = end + 1) {
    end = strchrnul(at, '\n');
    if (end > at && !was_ever(ever, at, (size_t)(end - at))) return false;
  }
  return true;
}

/* Each hit of `got`, from its id on, stands in `ranked`, and as many as in `right` are there. */
static bool nearest_fits(bytes got, bytes right, bytes ranked) {
  size_t n = 0, wanted = 0;
  for (size_t i = 0; i < right.n; i++) wanted += right.data[i] == '\n';
  double before = -1;
  for (char *at = got.data, *end; at < got.data + got.n; at = end + 1, n++) {
    end = strchrnul(at, '\n');
    char *id = memmem(at, (size_t)(end - at), "\"id\":", 5);
    char *distance = memmem(at, (size_t)(end - at), "\"distance\":", 11);
    if (!id || !distance || !memmem(ranked.data, ranked.n, id, (size_t)(end - id))) return false;
    double d = strtod(distance + 11, NULL);
    if (d < before) return false;
    before = d;
  }
  return n == wanted;
}

/* Exit code 1 says that nothing was found: an answer, and here a wrong one. */
static bool refused_properly(const answer *a) { return a->code > 1 && a->err.n > 0; }

static const char *evaluate(const scene *s, int q, const answer *a) {
  if (a->hung) return "hung";
  if (a->by_signal || a->code == 127) return "died";
  if (a->code != 0) return refused_properly(a) ? NULL : "no answer and no reason";
  bytes right = s->right[q].out;
  switch (questions[q].check) {
    case EQUAL: return a->out.n == right.n && memcmp(a->out.data, right.data, right.n) == 0 ? NULL : "a wrong answer";
    case NEAREST: return nearest_fits(a->out, right, s->ranked.out) ? NULL : "a wrong answer";
    default: return NULL;
  }
}

/* All questions; returns how many failed. */
static unsigned ask_all(const scene *s, const char *store, kind k, bool wants_answers) {
  unsigned failed = 0;
  for (int q = 0; q < QUESTIONS; q++) {
    answer a = ask(store, questions[q].command, NULL);
    const char *wrong = evaluate(s, q, &a);
    if (!wrong && a.code != 0 && wants_answers) wrong = "a healthy store was refused";
    if (wrong) complain(s, k, questions[q].command, wrong, &a);
    failed += wrong != NULL;
    if (a.code == 0)
      counts[k].right++;
    else
      counts[k].refused++;
    release(&a);
  }
  return failed;
}

/* A command of which only death, silence and, on healthy stores, refusal count. */
static unsigned run_only(const scene *s, const char *store, kind k, const char *command, const char *input, answer *a) {
  *a = ask(store, command, input);
  const char *wrong = a->hung                                  ? "hung"
                      : a->by_signal || a->code == 127         ? "died"
                      : a->code != 0 && !a->err.n && !a->out.n ? "no reason"
                      : a->code != 0 && healthy(k)             ? "a healthy store was refused"
                                                               : NULL;
  if (wrong) complain(s, k, command, wrong, a);
  return wrong != NULL;
}

/* What is written and acknowledged is there, once. */
static unsigned write_and_read(const scene *s, const char *store, kind k) {
  char *input = records(900000, 900001, 7);
  answer wrote, read;
  unsigned failed = run_only(s, store, k, "db add c", input, &wrote);
  if (wrote.code == 0) {
    read = ask(store, "db get c --ids r900000 --include all --json", NULL);
    bool there = read.code == 0 && memmem(read.out.data, read.out.n, "version 7", 9);
    const char *wrong = read.hung                            ? "hung"
                        : read.by_signal                     ? "died"
                        : !there && !refused_properly(&read) ? "an acknowledged record is missing"
                                                             : NULL;
    if (wrong) complain(s, k, "db get after db add", wrong, &read);
    failed += wrong != NULL;
    release(&read);
  }
  release(&wrote);
  free(input);
  return failed;
}

static unsigned salvage(const scene *s, const char *store, kind k) {
  char *to = text_of("%s/salvaged", base), *command = text_of("db salvage %s", to);
  answer a, b;
  remove_tree(to);
  unsigned failed = run_only(s, store, k, command, NULL, &a);
  release(&a);
  if (failed == 0 && access(to, F_OK) == 0) {
    b = ask(to, "db export c", NULL);
    if (b.code == 0 && !all_were_ever(s->ever, b.out)) {
      complain(s, k, "db export of what was salvaged", "a record that never was", &b);
      failed++;
    }
    release(&b);
  }
  remove_tree(to);
  free(command);
  free(to);
  return failed;
}

static bool play_round(const scene *s, kind k) {
  char *store = text_of("%s/damaged", base);
  answer a;
  copy_tree(s->store, store);
  damage(s, store, k);
  unsigned failed = ask_all(s, store, k, healthy(k));
  failed += run_only(s, store, k, "db verify --json", NULL, &a);
  bool sound = a.code == 0;
  release(&a);
  failed += salvage(s, store, k);
  /* What verify finds nothing wrong with answers everything. */
  if (sound && !healthy(k)) failed += ask_all(s, store, k, true);
  failed += write_and_read(s, store, k);
  failed += run_only(s, store, k, "db optimize", NULL, &a);
  release(&a);
  remove_tree(store);
  free(store);
  counts[k].rounds++;
  counts[k].failed += failed;
  return failed == 0;
}

static void print_counts(void) {
  printf("%-14s %8s %10s %10s %8s\n", "damage", "rounds", "right", "refused", "failed");
  for (int k = 0; k < KINDS; k++)
    printf("%-14s %8u %10u %10u %8u\n", kind_names[k], counts[k].rounds, counts[k].right, counts[k].refused,
           counts[k].failed);
}

static void remove_base(void) {
  if (base) remove_tree(base);
}

static void on_signal(int number) {
  (void)number;
  exit(130); /* single-threaded, and between two calls as a rule: good enough to clean up */
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fputs("usage: outside LODE ROUNDS [SEED]\n", stderr);
    return 2;
  }
  lode = realpath(argv[1], NULL);
  if (!lode) die(argv[1]);
  unsigned long rounds = strtoul(argv[2], NULL, 10), passed = 0, failed = 0;
  uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : (uint64_t)time(NULL);
  const char *folder = getenv("TMPDIR");
  base = text_of("%s/lode-outside-XXXXXX", folder && *folder ? folder : "/tmp");
  if (!mkdtemp(base)) die(base);
  atexit(remove_base);
  signal(SIGINT, on_signal);
  signal(SIGTERM, on_signal);
  setenv("HOME", base, 1);
  setenv("XDG_DATA_HOME", base, 1);
  printf("seed %llu\n", (unsigned long long)seed);
  random_state = seed;
  scene scenes[] = {
      make_scene("small", "db create c --page-bytes 512", RECORDS, false, false),
      make_scene("written", "db create c --page-bytes 1024", RECORDS, false, true),
      make_scene("indexed", "db create c", LARGE, true, false),
  };
  for (unsigned long i = 0; i < rounds; i++) {
    round_seed = seed + i;
    random_state = round_seed * UINT64_C(0x2545f4914f6cdd1d);
    kind k = (kind)below(KINDS);
    const scene *s = &scenes[k == RETURNED ? 1 : below(sizeof scenes / sizeof *scenes)];
    if (play_round(s, k))
      passed++;
    else
      failed++;
  }
  print_counts();
  printf("files of earlier moments to put back: %zu\n", scenes[1].n_returned);
  printf("%lu passed, %lu failed\n", passed, failed);
  return failed > 0;
}
