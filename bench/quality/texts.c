/* SPDX-License-Identifier: Apache-2.0 */
/* texts.c - see texts.h. */
#include "texts.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { CHUNK_GOOD = 1000, CHUNK_MOST = 1500, FILE_MOST = 1 << 20 };

static void grow(texts *t) {
  if (!mem_grow(&t->all, &t->cap, t->n + 1, sizeof *t->all) ||
      !mem_grow(&t->places, &t->places_cap, t->n + 1, sizeof *t->places)) {
    fprintf(stderr, "out of memory\n");
    exit(2);
  }
}

void texts_add(texts *t, lode_str text) {
  grow(t);
  char *copy = mem_arena_copy(&t->memory, text.data, text.len);
  if (!copy) exit(2);
  t->places[t->n] = (place){.first = 0};
  t->all[t->n++] = (lode_str){copy, text.len};
}

void texts_release(texts *t) {
  mem_free(t->all);
  mem_free(t->places);
  mem_arena_release(&t->memory);
  *t = (texts){.n = 0};
}

static bool is_source(const char *name) {
  static const char *const ends[] = {
      ".c",   ".h",   ".cc",  ".cpp", ".hpp", ".cxx", ".hh",  ".java", ".js",    ".mjs",   ".cjs", ".jsx", ".ts",
      ".tsx", ".mts", ".cts", ".go",  ".rs",  ".cs",  ".kt",  ".kts",  ".scala", ".swift", ".php", ".py",  ".pyx",
      ".rb",  ".lua", ".ex",  ".exs", ".hs",  ".ml",  ".zig", ".dart", ".sh",    ".pl",    ".pm",  ".m",
  };
  size_t n = strlen(name);
  for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
    size_t e = strlen(ends[i]);
    if (n > e && memcmp(name + n - e, ends[i], e) == 0) return true;
  }
  return false;
}

static void add_chunk(texts *t, lode_str path, const char *data, size_t len, int64_t first, int64_t last,
                      bool with_path) {
  size_t head = with_path ? path.len + 1 : 0;
  grow(t);
  char *copy = mem_arena_alloc(&t->memory, head + len + 1);
  if (!copy) exit(2);
  if (with_path) memcpy(copy, path.data, path.len), copy[path.len] = '\n';
  memcpy(copy + head, data, len);
  t->places[t->n] = (place){path, first, last};
  t->all[t->n++] = (lode_str){copy, head + len};
}

static void add_file(texts *t, const char *file, lode_str path, bool with_path) {
  size_t len;
  char *data = read_file(file, &len);
  if (!memchr(data, 0, len)) {
    int64_t line = 1, first = 1;
    size_t start = 0;
    for (size_t at = 0; at < len;) {
      const char *eol = memchr(data + at, '\n', len - at);
      size_t end = eol ? (size_t)(eol - data) + 1 : len;
      bool blank = end - at <= 1;
      if (end - start > CHUNK_MOST && at > start) {
        add_chunk(t, path, data + start, at - start, first, line - 1, with_path);
        start = at;
        first = line;
      }
      at = end;
      if (blank && at - start > CHUNK_GOOD) {
        add_chunk(t, path, data + start, at - start, first, line, with_path);
        start = at;
        first = line + 1;
      }
      line++;
    }
    if (start < len) add_chunk(t, path, data + start, len - start, first, line - 1, with_path);
  }
  mem_free(data);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Depth first, names in order; folders wait on a list of our own. */
void texts_of_tree(texts *t, const char *folder, lode_str root, bool with_path) {
  char **todo = NULL;
  size_t n = 0, cap = 0;
  char path[4096], file[8192];
  snprintf(path, sizeof path, "%.*s", (int)root.len, root.data ? root.data : "");
  for (;;) {
    snprintf(file, sizeof file, "%s/%s", folder, path);
    struct stat st;
    if (lstat(file, &st) == 0 && S_ISDIR(st.st_mode)) {
      DIR *d = opendir(file);
      size_t from = n;
      for (struct dirent *e; d && (e = readdir(d));) {
        char *name;
        if (e->d_name[0] == '.') continue;
        if (!mem_grow(&todo, &cap, n + 1, sizeof *todo) ||
            asprintf(&name, "%s%s%s", path, path[0] ? "/" : "", e->d_name) < 0)
          exit(2);
        todo[n++] = name;
      }
      if (d) closedir(d);
      if (n > from) qsort(todo + from, n - from, sizeof *todo, by_name);
    } else if (S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size < FILE_MOST && is_source(path)) {
      char *kept = mem_arena_copy(&t->memory, path, strlen(path));
      if (!kept) exit(2);
      add_file(t, file, str_of(kept), with_path);
    }
    if (n == 0) break;
    n--;
    snprintf(path, sizeof path, "%s", todo[n]);
    free(todo[n]);
  }
  mem_free(todo);
}
