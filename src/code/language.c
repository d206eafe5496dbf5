/* language.c - finding a language by its name, the name of a file, or the first line of a text; see language.h.
 *
 * Endings and names of files are looked up in a hash table that is made from the table of languages on first use.
 */
#include "code/language.h"

#include <ctype.h>
#include <pthread.h>

#define KIND_NAME(id, name) name,
static const char *const kind_names[] = {LODE__KINDS(KIND_NAME)};

const char *lode__kind_name(lode__kind kind) { return (unsigned)kind < LODE__KIND_COUNT ? kind_names[kind] : "unknown"; }

lode__kind lode__kind_find(lode_str name) {
  unsigned k = 0;
  while (k < LODE__KIND_COUNT && !str_eq(name, str_of(kind_names[k]))) k++;
  return (lode__kind)k;
}

/* ---- Lists of words ---- */

static bool next_word(const char **list, lode_str *word) {
  const char *p = *list;
  if (!p) return false;
  while (*p == ' ') p++;
  size_t n = strcspn(p, " ");
  *word = (lode_str){p, n};
  *list = p + n;
  return n > 0;
}

static bool same_word(lode_str a, lode_str b) { return a.len == b.len && strncasecmp(a.data, b.data, a.len) == 0; }

static bool has_word(const char *list, lode_str word) {
  lode_str w;
  while (next_word(&list, &w))
    if (same_word(w, word)) return true;
  return false;
}

/* ---- Endings and names of files ---- */

enum { SLOTS = 1024, WORD_BYTES = 40 };
enum { ENDING = 1, FILE_NAME = 2 };

typedef struct slot {
  lode_str word; /* data == NULL: free */
  int what;
  const lode__language *language;
} slot;

static slot slots[SLOTS];
static pthread_once_t slots_once = PTHREAD_ONCE_INIT;

static uint32_t word_hash(int what, const char *p, size_t n) {
  uint32_t h = 2166136261u ^ (uint32_t)what;
  for (size_t i = 0; i < n; i++) h = (h ^ (uint32_t)tolower((unsigned char)p[i])) * 16777619u;
  return h;
}

static slot *find_slot(int what, lode_str word) {
  uint32_t i = word_hash(what, word.data, word.len);
  while (slots[i % SLOTS].word.data && !(slots[i % SLOTS].what == what && same_word(slots[i % SLOTS].word, word))) i++;
  return &slots[i % SLOTS];
}

static void fill_slots(void) {
  size_t used = 0;
  for (size_t i = 0; i < lode__language_count; i++) {
    const lode__language *l = &lode__languages[i];
    for (int what = ENDING; what <= FILE_NAME; what++) {
      const char *list = what == ENDING ? l->extensions : l->file_names;
      lode_str word;
      while (next_word(&list, &word) && used < SLOTS / 2) {
        slot *s = find_slot(what, word);
        if (s->word.data) continue; /* the first language that claims it has it */
        *s = (slot){word, what, l};
        used++;
      }
    }
  }
}

static const lode__language *look_up(int what, const char *p, size_t n) {
  if (n == 0 || n > WORD_BYTES) return NULL;
  return find_slot(what, (lode_str){p, n})->language;
}

/* ---- By text ---- */

/* "#!/usr/bin/env -S python3 -u": the interpreter's name, without what follows its letters ("python3.11" is "python"). */
static lode_str interpreter(lode_str head) {
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

static bool contains(lode_str text, const char *words) { return memmem(text.data, text.len, words, strlen(words)) != NULL; }

/* Endings that two languages share, told apart by the text. */
static const lode__language *second_look(const lode__language *l, lode_str ending, lode_str head) {
  if (!head.data) return l;
  if (head.len > 32768) head.len = 32768;
  if (same_word(ending, STR_LIT("h")) && (contains(head, "\nclass ") || contains(head, "\nnamespace ") || contains(head, "\ntemplate ") ||
                                            contains(head, "\ntemplate<") || contains(head, "public:") || contains(head, "std::")))
    return lode__language_find(STR_LIT("c++"));
  if (same_word(ending, STR_LIT("h")) && (contains(head, "\n@interface") || contains(head, "\n#import ")))
    return lode__language_find(STR_LIT("objective-c"));
  if (same_word(ending, STR_LIT("ts")) && (contains(head, "<!DOCTYPE TS>") || contains(head, "<?xml ")))
    return lode__language_find(STR_LIT("xml"));
  return l;
}

/* ---- The doors ---- */

const lode__language *lode__language_find(lode_str name) {
  for (size_t i = 0; i < lode__language_count; i++)
    if (same_word(name, str_of(lode__languages[i].name)) || has_word(lode__languages[i].aliases, name)) return &lode__languages[i];
  return NULL;
}

const lode__language *lode__language_of(lode_str path, lode_str head) {
  const char *slash = path.len ? memrchr(path.data, '/', path.len) : NULL;
  const char *name = slash ? slash + 1 : path.data;
  size_t n = path.len - (size_t)(name - path.data);
  pthread_once(&slots_once, fill_slots);
  const lode__language *l = look_up(FILE_NAME, name, n);
  if (l) return l;
  const char *dot = n ? memrchr(name, '.', n) : NULL;
  if (dot && dot > name) {
    lode_str ending = {dot + 1, n - (size_t)(dot + 1 - name)};
    l = look_up(ENDING, ending.data, ending.len);
    if (l) return second_look(l, ending, head);
  }
  if (dot && dot > name && look_up(FILE_NAME, name, (size_t)(dot - name))) { /* Dockerfile.dev, Makefile.am */
    l = look_up(FILE_NAME, name, (size_t)(dot - name));
    return l;
  }
  lode_str word = interpreter(head);
  for (size_t i = 0; word.data && i < lode__language_count; i++)
    if (has_word(lode__languages[i].interpreters, word)) return &lode__languages[i];
  return &lode__languages[0];
}
