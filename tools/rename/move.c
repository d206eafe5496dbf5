/* SPDX-License-Identifier: Apache-2.0 */
/* move.c - rewrites the names of files that have moved, in place. Usage: move MOVES FILE...
 *
 * A line of MOVES is OLD NEW, both paths from the top of the tree. FILE is a file at its new place. In it, every word
 * that looks like the name of a moved file is replaced: src/store/vfs.c    a whole path store/vfs.c        a path below
 * src/, src/lib/ or src/app/ vfs.c              a file in the same folder as FILE was, or the only moved file of that
 * name An #include names a header by its path below src/lib or src/app, or by its bare name when it is in the same
 * folder of test/.
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct pair {
  char *from, *to;
} pair;

static pair *pairs;
static size_t n_pairs;

static void die(const char *what, const char *why) {
  fprintf(stderr, "move: %s: %s\n", what, why);
  exit(1);
}

static char *read_file(const char *path, size_t *len) {
  FILE *f = fopen(path, "rb");
  size_t cap = 1 << 16, n = 0, got;
  char *data = malloc(cap + 1);
  if (!f || !data) die(path, strerror(errno));
  while ((got = fread(data + n, 1, cap - n, f)) > 0) {
    n += got;
    if (n == cap && !(data = realloc(data, (cap *= 2) + 1))) die(path, strerror(errno));
  }
  fclose(f);
  data[n] = 0;
  *len = n;
  return data;
}

static void read_moves(const char *path) {
  size_t len = 0;
  char *text = read_file(path, &len), *save = NULL;
  for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
    char *words = NULL, *from, *to;
    line[strcspn(line, "#")] = 0;
    from = strtok_r(line, " \t", &words);
    if (!from) continue;
    to = strtok_r(NULL, " \t", &words);
    if (!to) die(from, "a line has two paths");
    if (!(pairs = realloc(pairs, (n_pairs + 1) * sizeof *pairs))) die(path, strerror(errno));
    pairs[n_pairs++] = (pair){from, to};
  }
}

static const char *base_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static const pair *by_old_path(const char *folder, size_t folder_len, const char *word) {
  for (size_t i = 0; i < n_pairs; i++)
    if (strncmp(pairs[i].from, folder, folder_len) == 0 && strcmp(pairs[i].from + folder_len, word) == 0)
      return &pairs[i];
  return NULL;
}

static const pair *by_only_name(const char *word) {
  const pair *found = NULL;
  for (size_t i = 0; i < n_pairs; i++) {
    if (strcmp(base_of(pairs[i].from), word) != 0) continue;
    if (found) return NULL;
    found = &pairs[i];
  }
  return found;
}

/* Where FILE was: its folder with the slash. */
static size_t old_folder(const char *file, const char **folder) {
  *folder = file;
  for (size_t i = 0; i < n_pairs; i++)
    if (strcmp(pairs[i].to, file) == 0) *folder = pairs[i].from;
  return (size_t)(base_of(*folder) - *folder);
}

static const char *below_root(const char *path) {
  if (strncmp(path, "src/lib/", 8) == 0 || strncmp(path, "src/app/", 8) == 0) return path + 8;
  if (strncmp(path, "test/", 5) == 0) return path + 5;
  return path;
}

static bool in_include(const char *text, size_t at) {
  while (at > 0 && text[at - 1] != '\n') at--;
  while (text[at] == ' ' || text[at] == '#') at++;
  return strncmp(text + at, "include", 7) == 0;
}

static void replace(const char *file, const char *text, size_t at, const char *word, FILE *out) {
  const char *folder;
  size_t folder_len = old_folder(file, &folder);
  const pair *p = by_old_path("", 0, word);
  if (p) {
    fputs(p->to, out);
  } else if ((p = by_old_path(folder, folder_len, word))) {
    fputs(in_include(text, at) || strchr(word, '/') ? below_root(p->to) : base_of(p->to), out);
  } else if ((p = by_old_path("src/", 4, word))) {
    fputs(below_root(p->to), out);
  } else if (!strchr(word, '/') && (p = by_only_name(word))) {
    fputs(in_include(text, at) ? below_root(p->to) : base_of(p->to), out);
  } else {
    fputs(word, out);
  }
}

static bool in_name(char c) { return isalnum((unsigned char)c) || c == '_' || c == '/' || c == '-'; }

static void apply(const char *file) {
  size_t len = 0, result_len = 0;
  char *text = read_file(file, &len), *result = NULL, word[256];
  FILE *out = open_memstream(&result, &result_len);
  if (!out) die(file, strerror(errno));
  for (size_t i = 0; i < len;) {
    size_t n = 0;
    while (i + n < len && in_name(text[i + n])) n++;
    bool source = n > 0 && !(i > 0 && text[i - 1] == '<') && n + 2 < sizeof word && text[i + n] == '.' &&
                  strchr("ch", text[i + n + 1]) && text[i + n + 1] && !in_name(text[i + n + 2]);
    if (source) {
      memcpy(word, text + i, n + 2);
      word[n + 2] = 0;
      replace(file, text, i, word, out);
      i += n + 2;
    } else if (n) {
      fwrite(text + i, 1, n, out);
      i += n;
    } else {
      fputc(text[i++], out);
    }
  }
  fclose(out);
  if (result_len != len || memcmp(result, text, len) != 0) {
    FILE *f = fopen(file, "wb");
    if (!f || fwrite(result, 1, result_len, f) != result_len || fclose(f) != 0) die(file, strerror(errno));
  }
  free(result);
  free(text);
}

int main(int argc, char **argv) {
  if (argc < 3) die("usage", "move MOVES FILE...");
  read_moves(argv[1]);
  for (int i = 2; i < argc; i++) apply(argv[i]);
  return 0;
}
