/* SPDX-License-Identifier: Apache-2.0 */
/* rename.c - applies a table of names to source files, in place. Usage: rename TABLE FILE...
 *
 * A line of the table is OLD NEW, or PATH:OLD NEW for a name that one file keeps to itself (PATH is the file as it is
 * given, or a folder that ends in /). # begins a comment. Names are whole identifiers.
 *   OLD NEW        everywhere: code, comments, strings, documents, scripts
 *   PATH:OLD NEW   in code, but not after . or -> (members have names of their own); in comments only as OLD()
 * Names that a table line gives are not looked up again, so a table may exchange two names.
 * Prints how often each line was applied; a line that was never applied is an error, unless -k is the first argument.
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
  char *path, *from, *to; /* path NULL: everywhere */
  unsigned long used;
} entry;

static entry *entries;
static size_t n_entries;

static void die(const char *what, const char *why) {
  fprintf(stderr, "rename: %s: %s\n", what, why);
  exit(1);
}

static void *must(void *p) {
  if (!p) die("memory", strerror(errno));
  return p;
}

static char *read_file(const char *path, size_t *len) {
  FILE *f = fopen(path, "rb");
  if (!f) die(path, strerror(errno));
  size_t cap = 1 << 16, n = 0, got;
  char *data = must(malloc(cap + 1));
  while ((got = fread(data + n, 1, cap - n, f)) > 0) {
    n += got;
    if (n == cap) data = must(realloc(data, (cap *= 2) + 1));
  }
  fclose(f);
  data[n] = 0;
  *len = n;
  return data;
}

static int by_from(const void *a, const void *b) {
  const entry *x = a, *y = b;
  int c = strcmp(x->from, y->from);
  if (c) return c;
  if (!x->path || !y->path) return !x->path - !y->path; /* those of one file first */
  return strcmp(x->path, y->path);
}

static void read_table(const char *path) {
  size_t len = 0;
  char *text = read_file(path, &len), *save = NULL;
  for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
    char *words = NULL, *from, *to, *colon;
    line[strcspn(line, "#")] = 0;
    from = strtok_r(line, " \t", &words);
    if (!from) continue;
    to = strtok_r(NULL, " \t", &words);
    if (!to || strtok_r(NULL, " \t", &words)) die(from, "a line of the table has two names");
    entries = must(realloc(entries, (n_entries + 1) * sizeof *entries));
    colon = strchr(from, ':');
    if (colon) *colon = 0;
    entries[n_entries++] = (entry){.path = colon ? from : NULL, .from = colon ? colon + 1 : from, .to = to};
  }
  qsort(entries, n_entries, sizeof *entries, by_from);
  for (size_t i = 1; i < n_entries; i++)
    if (by_from(&entries[i - 1], &entries[i]) == 0) die(entries[i].from, "stands twice in the table");
}

static bool covers(const char *path, const char *file) {
  size_t n = strlen(path);
  return n && path[n - 1] == '/' ? strncmp(path, file, n) == 0 : strcmp(path, file) == 0;
}

static entry *find(const char *file, const char *word, size_t n, bool everywhere_only) {
  size_t low = 0, high = n_entries;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    int c = strncmp(entries[mid].from, word, n);
    if (c == 0 && entries[mid].from[n]) c = 1;
    if (c < 0)
      low = mid + 1;
    else
      high = mid;
  }
  for (; low < n_entries && strncmp(entries[low].from, word, n) == 0 && !entries[low].from[n]; low++) {
    if (!entries[low].path) return &entries[low];
    if (!everywhere_only && covers(entries[low].path, file)) return &entries[low];
  }
  return NULL;
}

typedef enum where { CODE, LINE_COMMENT, COMMENT, STRING, CHARACTER } where;

static where step(where at, const char *p, size_t *skip) {
  *skip = 1;
  switch (at) {
    case CODE:
      if (p[0] == '/' && p[1] == '*') return *skip = 2, COMMENT;
      if (p[0] == '/' && p[1] == '/') return *skip = 2, LINE_COMMENT;
      return p[0] == '"' ? STRING : p[0] == '\'' ? CHARACTER : CODE;
    case COMMENT: return p[0] == '*' && p[1] == '/' ? *skip = 2, CODE : COMMENT;
    case LINE_COMMENT: return p[0] == '\n' ? CODE : LINE_COMMENT;
    default:
      if (p[0] == '\\' && p[1]) return *skip = 2, at;
      return p[0] == (at == STRING ? '"' : '\'') || p[0] == '\n' ? CODE : at;
  }
}

static bool is_member(const char *text, size_t i) {
  while (i > 0 && isspace((unsigned char)text[i - 1])) i--;
  if (i > 0 && text[i - 1] == '.') return i < 2 || text[i - 2] != '.'; /* ... is not a member */
  return i > 1 && text[i - 1] == '>' && text[i - 2] == '-';
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

static void apply(const char *file) {
  size_t len = 0, skip;
  char *text = read_file(file, &len);
  const char *dot = strrchr(file, '.');
  bool c_source = dot && (strcmp(dot, ".c") == 0 || strcmp(dot, ".h") == 0), changed = false;
  FILE *out = NULL;
  char *result = NULL;
  size_t result_len = 0;
  where at = CODE;
  if (!(out = open_memstream(&result, &result_len))) die(file, strerror(errno));
  for (size_t i = 0; i < len;) {
    if (!is_word(text[i])) {
      where next = c_source ? step(at, text + i, &skip) : (skip = 1, CODE);
      fwrite(text + i, 1, skip, out);
      at = next;
      i += skip;
      continue;
    }
    size_t n = 1;
    while (i + n < len && is_word(text[i + n])) n++;
    bool own = c_source && ((at == CODE && !is_member(text, i)) ||
                            ((at == COMMENT || at == LINE_COMMENT) && text[i + n] == '(' && text[i + n + 1] == ')'));
    entry *e = find(file, text + i, n, !own);
    if (e) {
      fputs(e->to, out);
      e->used++;
      changed = true;
    } else {
      fwrite(text + i, 1, n, out);
    }
    i += n;
  }
  fclose(out);
  if (changed) {
    FILE *f = fopen(file, "wb");
    if (!f || fwrite(result, 1, result_len, f) != result_len || fclose(f) != 0) die(file, strerror(errno));
  }
  free(result);
  free(text);
}

int main(int argc, char **argv) {
  int first = 1, unused = 0;
  bool keep = argc > 1 && strcmp(argv[1], "-k") == 0;
  if (keep) first++;
  if (argc < first + 2) die("usage", "rename [-k] TABLE FILE...");
  read_table(argv[first]);
  for (int i = first + 1; i < argc; i++) apply(argv[i]);
  for (size_t i = 0; i < n_entries; i++) {
    if (entries[i].used || keep) continue;
    fprintf(stderr, "rename: never applied: %s%s%s %s\n", entries[i].path ? entries[i].path : "",
            entries[i].path ? ":" : "", entries[i].from, entries[i].to);
    unused++;
  }
  return unused > 0;
}
