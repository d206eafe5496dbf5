/* SPDX-License-Identifier: Apache-2.0 */
/* test_maps.c - rule 1: no file is ever mapped. Rule 8: many small writes leave few files, and not much more than the
 * data.
 *
 * A mapped file that somebody truncates is a SIGBUS; one that is only ever read is a short read. So no file of a store
 * may show up in /proc/self/maps, at any moment of any operation, nor may the program ask for it.
 */
#include "base/base.h"
#include "lode.h"
#include "support/fault.h"
#include "support/test.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DIM 384

/* Fewer than make the first segment of the vector index, which is a copy of the vectors. */
#define ADDS (BUILD_ASAN || BUILD_TSAN ? 1000 : 3000)

/* ---- Records of the size that code search has ---- */

static size_t add_record(lode_collection *c, unsigned i) {
  char id[40], document[600], metadata[200];
  float v[DIM];
  size_t len = 0;
  lode_error err = {0};
  snprintf(id, sizeof id, "record-%06u", i);
  while (len < 500)
    len += (size_t)snprintf(document + len, sizeof document - len, "word%llu ", (unsigned long long)test_below(3000));
  snprintf(metadata, sizeof metadata,
           "{\"path\":\"src/dir%u/file%u.c\",\"line\":%u,\"kind\":\"function\",\"score\":%u.5,\"done\":%s}", i % 17,
           i / 8, i, i % 100, i % 2 ? "true" : "false");
  for (unsigned d = 0; d < DIM; d++) v[d] = (float)test_below(1000) / 1000 - 0.5f;
  lode_record r = {
      .id = str_of(id), .document = {document, 500}, .metadata = str_of(metadata), .vector = v, .dimension = DIM};
  OK(lode_add(c, NULL, &r, 1, LODE_FAIL_EXISTING, NULL, &err));
  return strlen(id) + 500 + strlen(metadata) + sizeof v;
}

/* ---- /proc/self/maps ---- */

static char watched[512];
static atomic_uint looks;
static atomic_bool watching;

/* Fails the test if a file below `watched` is mapped. */
static void look(const char *when) {
  char line[4400];
  FILE *maps = fopen("/proc/self/maps", "re");
  CHECK(maps);
  while (fgets(line, sizeof line, maps)) CHECKF(!strstr(line, watched), "%s: %s", when, line);
  fclose(maps);
  atomic_fetch_add(&looks, 1);
}

static void *keep_looking(void *ctx) {
  (void)ctx;
  while (atomic_load(&watching)) look("meanwhile");
  return NULL;
}

static bool look_between(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  (void)ctx;
  (void)done;
  (void)total;
  look(phase);
  return true;
}

static int64_t look_while_writing(void *ctx, const void *data, size_t size) {
  (void)ctx;
  (void)data;
  look("export");
  return (int64_t)size;
}

static void search(lode_collection *c) {
  lode_error err = {0};
  lode_result *rows;
  float v[DIM] = {1};
  lode_str text = str_of("word17 word2999 word4");
  lode_query_request req = {
      .mode = LODE_HYBRID, .vectors = v, .dimension = DIM, .texts = &text, .n = 1, .k = 20, .include = LODE_ALL};
  OK(lode_query(c, &req, &rows, &err));
  CHECK(lode_result_count(rows) == 20);
  look("query");
  lode_result_free(rows);
  req.select.where = str_of("{\"line\":{\"$lt\":100}}");
  OK(lode_query(c, &req, &rows, &err));
  look("filtered query");
  lode_result_free(rows);
}

static void work(lode_store *store, lode_collection *c) {
  lode_error err = {0};
  lode_progress progress = {look_between, NULL};
  char file[600], copy[600];
  size_t deleted;
  for (unsigned i = 0; i < 300; i++) add_record(c, i);
  look("adds");
  search(c);
  OK(lode_optimize(store, progress, &err));
  look("optimize");
  search(c);
  lode_selection some = {.where = str_of("{\"line\":{\"$gte\":200}}")};
  OK(lode_delete(c, NULL, &some, &deleted, &err));
  CHECK(deleted == 100);
  OK(lode_verify(store, NULL, NULL, progress, &err));
  look("verify");
  OK(lode_export(c, NULL, LODE_ALL, look_while_writing, NULL, progress, NULL, &err));
  snprintf(file, sizeof file, "%s/backup", watched);
  snprintf(copy, sizeof copy, "%s/restored", watched);
  OK(lode_backup(store, file, progress, &err));
  look("backup");
  OK(lode_restore(file, copy, progress, &err));
  look("restore");
  snprintf(copy, sizeof copy, "%s/salvaged", watched);
  OK(lode_salvage(file, copy, NULL, NULL, progress, NULL, &err));
  look("salvage");
  OK(lode_compact(store, progress, &err));
  look("compact");
  search(c);
}

TEST_SLOW(no_file_of_a_store_is_mapped, 120) {
  char folder[600];
  lode_error err = {0};
  lode_store *store, *reader;
  lode_collection *c, *d;
  pthread_t watcher;
  lode_collection_options co = {.create = true};
  snprintf(watched, sizeof watched, "%s", test_folder());
  snprintf(folder, sizeof folder, "%s/store", watched);
  OK(lode_open(folder, &(lode_open_options){.create = true}, &store, &err));
  OK(lode_collection_open(store, str_of("c"), &co, &c, &err));
  atomic_store(&watching, true);
  CHECK(pthread_create(&watcher, NULL, keep_looking, NULL) == 0);
  work(store, c);
  OK(lode_open(folder, &(lode_open_options){.read_only = true}, &reader, &err));
  OK(lode_collection_open(reader, str_of("c"), NULL, &d, &err));
  search(d);
  lode_collection_close(d);
  lode_close(reader);
  look("a read-only handle");
  lode_collection_close(c);
  lode_close(store);
  atomic_store(&watching, false);
  CHECK(pthread_join(watcher, NULL) == 0);
  CHECKF(atomic_load(&looks) > 50, "looked only %u times", atomic_load(&looks));
}

/* ---- The program, under strace ---- */

/* The program beside the tests, or that of the plain build; LODE_PROGRAM names another. */
static const char *find_program(void) {
  static char path[4200];
  char here[4096];
  const char *given = getenv("LODE_PROGRAM");
  ssize_t n = readlink("/proc/self/exe", here, sizeof here - 1);
  if (given) return given;
  if (n <= 0) return NULL;
  here[n] = '\0';
  for (int up = 0; up < 2; up++) {
    char *slash = strrchr(here, '/');
    if (!slash) return NULL;
    *slash = '\0';
  }
  snprintf(path, sizeof path, "%s/lode", here);
  if (access(path, X_OK) == 0) return path;
  snprintf(path, sizeof path, "%s/../release/lode", here);
  return access(path, X_OK) == 0 ? path : NULL;
}

static int run(const char *command, char *const *args) {
  int status;
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    if (!freopen("/dev/null", "w", stdout)) _exit(126);
    execvp(command, args);
    _exit(127);
  }
  CHECK(waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static const char script[] = "set -e\n"
                             "l() { \"$PROGRAM\" db \"$@\" --store \"$STORE/store\"; }\n"
                             "l create c --metric l2\n"
                             "i=0; while [ $i -lt 60 ]; do\n"
                             "  echo \"{\\\"id\\\":\\\"r$i\\\",\\\"document\\\":\\\"alpha "
                             "number$i\\\",\\\"metadata\\\":{\\\"n\\\":$i},\\\"embedding\\\":[$i,1,2]}\"; i=$((i+1))\n"
                             "done | l add c\n"
                             "l query c --vector '[3,1,2]' -k 5\n"
                             "l query c --text 'number7' -k 5\n"
                             "l query c --vector '[3,1,2]' --where '{\"n\":{\"$gte\":30}}' -k 5\n"
                             "l optimize\n"
                             "l query c --text 'number7' --mode text -k 5\n"
                             "l get c --ids r1,r2\n"
                             "l delete c --where '{\"n\":{\"$lt\":10}}'\n"
                             "l facets c n\n"
                             "l stats\n"
                             "l verify\n"
                             "l backup \"$STORE/backup\"\n"
                             "l export c >/dev/null\n"
                             "l compact\n"
                             "l count c\n";

TEST_SLOW(the_program_never_asks_for_a_mapping, 120) {
  char trace[600], line[8192];
  const char *program = find_program();
  unsigned maps = 0, opens = 0;
  char *probe[] = {"strace", "-f", "-o", "/dev/null", "true", NULL};
  if (!program) test_skip("the program is not built: make all");
  if (run("strace", probe) != 0) test_skip("strace is not installed, or may not trace here");
  snprintf(watched, sizeof watched, "%s", test_folder());
  snprintf(trace, sizeof trace, "%s/trace", test_folder());
  CHECK(setenv("PROGRAM", program, 1) == 0 && setenv("STORE", watched, 1) == 0);
  CHECK(setenv("ASAN_OPTIONS", "detect_leaks=0", 1) ==
        0); /* LeakSanitizer traces the process too, which strace does already */
  char text[sizeof script];
  memcpy(text, script, sizeof script);
  char *args[] = {"strace", "-f", "-y", "-e", "trace=mmap,?mmap2,?open,openat", "-o", trace, "sh", "-c", text, NULL};
  int code = run("strace", args);
  CHECKF(code == 0, "the script ended with %d; it is in %s", code, __FILE__);
  FILE *f = fopen(trace, "re");
  CHECK(f);
  while (fgets(line, sizeof line, f)) {
    bool ours = strstr(line, watched) != NULL, is_map = strstr(line, "mmap") != NULL && strstr(line, "open") == NULL;
    CHECKF(!(ours && is_map), "mapped: %s", line);
    maps += is_map;
    opens += ours;
  }
  fclose(f);
  CHECKF(maps > 100 && opens > 30,
         "the trace shows too little: %u mappings of other things, %u openings of the store's files", maps, opens);
}

/* ---- Files and bytes ---- */

typedef struct usage {
  unsigned files;
  uint64_t bytes;
} usage;

static usage measure(const char *folder) {
  usage u = {0};
  char path[1024];
  struct stat st;
  DIR *dir = opendir(folder);
  CHECK(dir);
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    if (stat(path, &st) != 0) continue; /* gone meanwhile */
    CHECKF(S_ISREG(st.st_mode), "%s is no file", path);
    u.files++;
    u.bytes += (uint64_t)st.st_size;
  }
  closedir(dir);
  return u;
}

TEST_SLOW(many_single_adds_leave_few_files_and_bytes, 240) {
  char folder[600];
  lode_error err = {0};
  lode_store *store;
  lode_collection *c;
  lode_collection_options co = {.create = true};
  uint64_t data = 0, n;
  fault_no_sync();
  test_srand(test_seed());
  snprintf(folder, sizeof folder, "%s/store", test_folder());
  OK(lode_open(folder, &(lode_open_options){.create = true}, &store, &err));
  OK(lode_collection_open(store, str_of("c"), &co, &c, &err));
  for (unsigned i = 0; i < ADDS; i++) {
    data += add_record(c, i);
    if (i % 50) continue;
    usage now = measure(folder);
    CHECKF(now.files <= 8, "%u files after %u adds", now.files, i + 1);
  }
  usage open = measure(folder);
  CHECKF(open.files <= 8 && open.bytes <= 2 * data, "%u files, %llu bytes for %llu bytes of data", open.files,
         (unsigned long long)open.bytes, (unsigned long long)data);
  OK(lode_optimize(store, (lode_progress){0}, &err));
  usage indexed = measure(folder);
  CHECKF(indexed.files <= 8 && indexed.bytes <= 2 * data, "indexed: %u files, %llu bytes for %llu bytes of data",
         indexed.files, (unsigned long long)indexed.bytes, (unsigned long long)data);
  OK(lode_count(c, &n, &err));
  CHECK(n == ADDS);
  lode_collection_close(c);
  lode_close(store);
  usage closed = measure(folder);
  CHECKF(closed.files <= 8 && closed.bytes <= 2 * data, "closed: %u files, %llu bytes for %llu bytes of data",
         closed.files, (unsigned long long)closed.bytes, (unsigned long long)data);
  printf("%d adds of %llu bytes in all: %u files, %llu bytes\n", ADDS, (unsigned long long)data, closed.files,
         (unsigned long long)closed.bytes);
}
