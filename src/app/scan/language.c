/* SPDX-License-Identifier: Apache-2.0 */
/* language.c - finds a language by its name, a file name, or the first line of a text; see language.h.
 *
 * File names and extensions are looked up in a hash table that is built from lang_table on first use.
 */
#include "scan/language.h"
#include "platform/platform.h"

#include <ctype.h>
#include <pthread.h>

#define KIND_NAME(id, name) name,
static const char *const lang_kind_names[] = {LANG_KINDS(KIND_NAME)};

const char *lang_kind_name(lang_kind kind) {
  return (unsigned)kind < LANG_KIND_COUNT ? lang_kind_names[kind] : "unknown";
}

lang_kind lang_kind_find(lode_str name) {
  unsigned k = 0;
  while (k < LANG_KIND_COUNT && !str_eq(name, str_of(lang_kind_names[k]))) k++;
  return (lang_kind)k;
}

/* ---- Lists of words ---- */

static bool lang_next_word(const char **list, lode_str *word) {
  const char *p = *list;
  if (!p) return false;
  while (*p == ' ') p++;
  size_t n = strcspn(p, " ");
  *word = (lode_str){p, n};
  *list = p + n;
  return n > 0;
}

static bool lang_same_word(lode_str a, lode_str b) { return a.len == b.len && strncasecmp(a.data, b.data, a.len) == 0; }

static bool lang_list_has(const char *list, lode_str word) {
  lode_str w;
  while (lang_next_word(&list, &w))
    if (lang_same_word(w, word)) return true;
  return false;
}

/* ---- File names and extensions ---- */

enum { LANG_SLOTS = 1024, LANG_WORD_BYTES = 40 };
enum { LANG_BY_EXTENSION = 1, LANG_BY_FILE_NAME = 2 };

typedef struct lang_slot {
  lode_str word; /* data == NULL: free */
  int what;
  const lang_info *language;
} lang_slot;

static lang_slot lang_slots[LANG_SLOTS];
static pthread_once_t lang_slots_once = PTHREAD_ONCE_INIT;

static uint32_t lang_word_hash(int what, const char *p, size_t n) {
  uint32_t h = 2166136261u ^ (uint32_t)what;
  for (size_t i = 0; i < n; i++) h = (h ^ (uint32_t)tolower((unsigned char)p[i])) * 16777619u;
  return h;
}

static lang_slot *lang_find_slot(int what, lode_str word) {
  uint32_t i = lang_word_hash(what, word.data, word.len);
  while (lang_slots[i % LANG_SLOTS].word.data &&
         !(lang_slots[i % LANG_SLOTS].what == what && lang_same_word(lang_slots[i % LANG_SLOTS].word, word)))
    i++;
  return &lang_slots[i % LANG_SLOTS];
}

static void lang_fill_slots(void) {
  size_t used = 0;
  for (size_t i = 0; i < lang_count; i++) {
    const lang_info *l = &lang_table[i];
    for (int what = LANG_BY_EXTENSION; what <= LANG_BY_FILE_NAME; what++) {
      const char *list = what == LANG_BY_EXTENSION ? l->extensions : l->file_names;
      lode_str word;
      while (lang_next_word(&list, &word) && used < LANG_SLOTS / 2) {
        lang_slot *s = lang_find_slot(what, word);
        if (s->word.data) continue; /* the first language that lists it gets it */
        *s = (lang_slot){word, what, l};
        used++;
      }
    }
  }
}

static const lang_info *lang_look_up(int what, const char *p, size_t n) {
  if (n == 0 || n > LANG_WORD_BYTES) return NULL;
  return lang_find_slot(what, (lode_str){p, n})->language;
}

/* ---- By text ---- */

/* The interpreter of "#!/usr/bin/env -S python3 -u", without version digits: "python3.11" is "python". */
static lode_str lang_by_shebang(lode_str head) {
  const char *p = head.data, *end = p + (head.len < 256 ? head.len : 256);
  if (head.len < 3 || p[0] != '#' || p[1] != '!') return (lode_str){0};
  const char *eol = memchr(p, '\n', (size_t)(end - p));
  if (eol) end = eol;
  p += 2;
  for (;;) {
    while (p < end && isspace((unsigned char)*p)) p++;
    const char *word = p, *name = p;
    while (p < end && !isspace((unsigned char)*p)) {
      if (*p == '/') name = p + 1;
      p++;
    }
    if (p == word) return (lode_str){0};
    size_t n = (size_t)(p - name);
    bool is_env = n == 3 && memcmp(name, "env", 3) == 0;
    if (is_env || word[0] == '-' || memchr(word, '=', (size_t)(p - word))) continue;
    while (n > 1 && (isdigit((unsigned char)name[n - 1]) || name[n - 1] == '.')) n--;
    return (lode_str){name, n};
  }
}

static bool lang_text_has(lode_str text, const char *words) {
  return memmem(text.data, text.len, words, strlen(words)) != NULL;
}

/* Extensions that two languages share, told apart by the text. */
static const lang_info *lang_disambiguate(const lang_info *l, lode_str ending, lode_str head) {
  if (!head.data) return l;
  if (head.len > 32768) head.len = 32768;
  if (lang_same_word(ending, STR_LIT("h")) &&
      (lang_text_has(head, "\nclass ") || lang_text_has(head, "\nnamespace ") || lang_text_has(head, "\ntemplate ") ||
       lang_text_has(head, "\ntemplate<") || lang_text_has(head, "public:") || lang_text_has(head, "std::")))
    return lang_find(STR_LIT("c++"));
  if (lang_same_word(ending, STR_LIT("h")) &&
      (lang_text_has(head, "\n@interface") || lang_text_has(head, "\n#import ")))
    return lang_find(STR_LIT("objective-c"));
  if (lang_same_word(ending, STR_LIT("ts")) && (lang_text_has(head, "<!DOCTYPE TS>") || lang_text_has(head, "<?xml ")))
    return lang_find(STR_LIT("xml"));
  return l;
}

/* ---- Entry points ---- */

const lang_info *lang_find(lode_str name) {
  for (size_t i = 0; i < lang_count; i++)
    if (lang_same_word(name, str_of(lang_table[i].name)) || lang_list_has(lang_table[i].aliases, name))
      return &lang_table[i];
  return NULL;
}

const lang_info *lang_detect(lode_str path, lode_str head) {
  const char *slash = path.len ? os_memrchr(path.data, '/', path.len) : NULL;
  const char *name = slash ? slash + 1 : path.data;
  size_t n = path.len - (size_t)(name - path.data);
  pthread_once(&lang_slots_once, lang_fill_slots);
  const lang_info *l = lang_look_up(LANG_BY_FILE_NAME, name, n);
  if (l) return l;
  const char *dot = n ? os_memrchr(name, '.', n) : NULL;
  if (dot && dot > name) {
    lode_str ending = {dot + 1, n - (size_t)(dot + 1 - name)};
    l = lang_look_up(LANG_BY_EXTENSION, ending.data, ending.len);
    if (l) return lang_disambiguate(l, ending, head);
  }
  /* Dockerfile.dev, Makefile.am */
  if (dot && dot > name && lang_look_up(LANG_BY_FILE_NAME, name, (size_t)(dot - name))) {
    l = lang_look_up(LANG_BY_FILE_NAME, name, (size_t)(dot - name));
    return l;
  }
  lode_str word = lang_by_shebang(head);
  for (size_t i = 0; word.data && i < lang_count; i++)
    if (lang_list_has(lang_table[i].interpreters, word)) return &lang_table[i];
  return &lang_table[0];
}
