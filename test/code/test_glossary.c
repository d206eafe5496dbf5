/* SPDX-License-Identifier: Apache-2.0 */
/* test_glossary.c - questions in other languages: which language, which English words, and tables that are damaged. */
#include "support/test.h"

#include "base/byteorder.h"
#include "base/crc32c.h"
#include "search/search_glossary.h"

#include <stdio.h>
#include <string.h>

static lode_error err;
#define S(text) str_of(text)

/* ---- Which language ---- */

static void expect_language(const char *question, search_language want) {
  search_language got = search_language_of(S(question));
  CHECKF(got == want, "%s: %s", question, search_language_name(got));
}

TEST(the_language_is_seen_by_script_and_by_connecting_words) {
  expect_language("wo werden Sitzungen geschlossen", SEARCH_GERMAN);
  expect_language("Fehler in der Datenbankverbindung", SEARCH_GERMAN);
  expect_language("Puffer größer machen", SEARCH_GERMAN);
  expect_language("dónde se cierran las sesiones", SEARCH_SPANISH);
  expect_language("almacenamiento del contexto", SEARCH_SPANISH);
  expect_language("où sont fermées les sessions", SEARCH_FRENCH);
  expect_language("fermeture d'une session", SEARCH_FRENCH);
  expect_language("fermeture d’une session", SEARCH_FRENCH);
  expect_language("セッションはどこで閉じられるか", SEARCH_JAPANESE);
  expect_language("会话在哪里关闭", SEARCH_CHINESE);
}

TEST(english_and_code_stay_as_they_are) {
  static const char *const questions[] = {
      "where are sessions closed",
      "how is the config file parsed",
      "radix tree path matching",
      "die on error",
      "MIT licence file",
      "what was the comment of son",
      "std::vector<int>::push_back",
      "parse_header",
      "class Router",
      "it's not the user's fault, isn't it",
      "naïve implementation of the parser for the café",
      "Größe",
      "",
      " ",
  };
  for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) expect_language(questions[i], SEARCH_ENGLISH);
  expect_language("\xC3", SEARCH_ENGLISH);
  expect_language("a \xE3\x81", SEARCH_ENGLISH);
}

/* ---- A table ---- */

typedef struct glossary_row {
  const char *key, *word;
  unsigned char language;
} glossary_row;

static const glossary_row rows[] = {
    {"abonnent", "subscriber", SEARCH_GERMAN},
    {"datei", "file", SEARCH_GERMAN},
    {"daten", "data", SEARCH_GERMAN},
    {"datenbank", "database", SEARCH_GERMAN},
    {"grosse", "size", SEARCH_GERMAN},
    {"und", "", SEARCH_GERMAN},
    {"verbindung", "connection", SEARCH_GERMAN},
    {"zeitgeber", "timer", SEARCH_GERMAN},
    {"base", "base", SEARCH_SPANISH},
    {"base de datos", "database", SEARCH_SPANISH},
    {"de", "", SEARCH_SPANISH},
    {"estado", "state", SEARCH_SPANISH},
    {"execution", "run", SEARCH_FRENCH},
    {"の", "", SEARCH_JAPANESE},
    {"データ", "data", SEARCH_JAPANESE},
    {"データベース", "database", SEARCH_JAPANESE},
    {"数", "number", SEARCH_CHINESE},
    {"数据", "data", SEARCH_CHINESE},
    {"数据库", "database", SEARCH_CHINESE},
};
enum { ROWS = sizeof rows / sizeof *rows };

static char table[4096];

static void sign(size_t len) {
  num_put_le32(table + 20, crc32c_update(0, table + 64, len - 64));
  num_put_le64(table + 24, len);
  num_put_le32(table + 60, crc32c_update(0, table, 60));
}

static size_t make_table(void) {
  size_t text = 0, at = 64 + 8 * (size_t)ROWS;
  memset(table, 0, sizeof table);
  for (size_t i = 0; i < ROWS; i++) {
    char *entry = table + 64 + 8 * i;
    size_t key = strlen(rows[i].key), word = strlen(rows[i].word);
    num_put_le32(entry, (uint32_t)text);
    entry[4] = (char)key;
    entry[5] = (char)word;
    entry[6] = (char)rows[i].language;
    memcpy(table + at + text, rows[i].key, key);
    memcpy(table + at + text + key, rows[i].word, word);
    text += key + word;
  }
  memcpy(table, "LODEGLO1", 8);
  num_put_le32(table + 8, 1);
  num_put_le32(table + 12, ROWS);
  num_put_le32(table + 16, (uint32_t)text);
  sign(at + text);
  return at + text;
}

static const char *path(void) {
  static char name[4096];
  if (!name[0]) snprintf(name, sizeof name, "%s/words.glossary", test_folder());
  return name;
}

static void write_table(size_t len) {
  FILE *f = fopen(path(), "wb");
  CHECK(f && fwrite(table, 1, len, f) == len);
  fclose(f);
}

static void expect_words(const search_glossary *g, search_language language, const char *question, const char *want) {
  strbuf out = {0};
  search_glossary_translate(g, language, S(question), &out);
  CHECK(!out.failed);
  CHECKF(str_eq((lode_str){out.data, out.len}, S(want)), "%s: \"%.*s\", not \"%s\"", question, (int)out.len, out.data,
         want);
  strbuf_release(&out);
}

static search_glossary *open_table(void) {
  search_glossary *g = NULL;
  write_table(make_table());
  OK(search_glossary_open(path(), &g, &err));
  CHECK(search_glossary_count(g) == ROWS);
  return g;
}

TEST(words_are_led_to_english_ones) {
  search_glossary *g = open_table();
  expect_words(g, SEARCH_GERMAN, "Datei und Größe", "file size");
  expect_words(g, SEARCH_GERMAN, "DATEI, datei?", "DATEI, file?"); /* all capitals: perhaps a constant */
  expect_words(g, SEARCH_GERMAN, "Datenbankverbindung", "database connection");
  expect_words(g, SEARCH_GERMAN, "Verbindungsdaten", "connection data");
  expect_words(g, SEARCH_GERMAN, "Abonnenten, Zeitgebern", "subscriber, timer");
  expect_words(g, SEARCH_GERMAN, "Unbekanntes", "Unbekanntes");
  expect_words(g, SEARCH_SPANISH, "estado de la base de datos", "state la database");
  expect_words(g, SEARCH_SPANISH, "¿estado?", "state?");
  expect_words(g, SEARCH_FRENCH, "l'exécution", "'run");
  expect_words(g, SEARCH_FRENCH, "l’exécution", "run");
  expect_words(g, SEARCH_FRENCH, "exécution d'exécution, exécution", "run ', "); /* a word once */
  expect_words(g, SEARCH_FRENCH, "t-exécution -x", "run -");                     /* hyphens that join words */
  expect_words(g, SEARCH_JAPANESE, "データベースのデータ", "database data ");
  expect_words(g, SEARCH_CHINESE, "数据库、数据，数", "database data number ");
  search_glossary_close(g);
}

TEST(what_looks_like_code_stays) {
  search_glossary *g = open_table();
  expect_words(g, SEARCH_GERMAN, "read_datei readDatei datei2 datei( std::datei datei.txt HTTP",
               "read_datei readDatei datei2 datei( std::datei datei.txt HTTP");
  expect_words(g, SEARCH_SPANISH, "el Estadoo", "el Estadoo"); /* a name, not a form of "estado" */
  expect_words(g, SEARCH_CHINESE, "ClientSession 数据", "ClientSession data ");
  expect_words(g, SEARCH_GERMAN, "", "");
  expect_words(g, SEARCH_JAPANESE, "\xE3\x83", ""); /* no character: a mark each */
  search_glossary_close(g);
}

TEST(long_words_and_long_questions_end) {
  search_glossary *g = open_table();
  char text[5000];
  strbuf out = {0};
  for (size_t i = 0; i + 5 < sizeof text; i += 5) memcpy(text + i, "daten", 5);
  search_glossary_translate(g, SEARCH_GERMAN, (lode_str){text, 4990}, &out);
  search_glossary_translate(g, SEARCH_GERMAN, (lode_str){text, 64}, &out);
  memset(text, 'n', sizeof text);
  search_glossary_translate(g, SEARCH_GERMAN, (lode_str){text, sizeof text}, &out);
  for (size_t i = 0; i + 3 <= sizeof text; i += 3) memcpy(text + i, "数", 3);
  search_glossary_translate(g, SEARCH_CHINESE, (lode_str){text, 4998}, &out);
  CHECK(!out.failed);
  strbuf_release(&out);
  search_glossary_close(g);
}

/* ---- Damage ---- */

static void expect_damaged(size_t len, const char *what, size_t at) {
  search_glossary *g = NULL;
  write_table(len);
  lode_status st = search_glossary_open(path(), &g, &err);
  CHECKF(st == LODE_CORRUPT && !g, "%s at %zu: %s", what, at, lode_status_name(st));
}

TEST(each_damaged_byte_and_each_cut_is_noticed) {
  size_t len = make_table();
  for (size_t i = 0; i < len; i++) {
    table[i] ^= 0x20;
    expect_damaged(len, "a bit", i);
    table[i] ^= 0x20;
  }
  for (size_t i = 0; i < len; i += 7) expect_damaged(i, "a cut", i);
  expect_damaged(len + 1, "a byte more", len);
}

TEST(a_table_with_right_sums_and_wrong_content_is_refused) {
  enum { FIRST = 64, SECOND = 72 };
  size_t len = make_table();
  num_put_le32(table + FIRST, 0x7FFFFFFF); /* outside of the text */
  sign(len);
  expect_damaged(len, "outside", 0);
  len = make_table();
  table[FIRST + 4] = 0; /* no key */
  sign(len);
  expect_damaged(len, "no key", 0);
  len = make_table();
  table[FIRST + 6] = SEARCH_LANGUAGES;
  sign(len);
  expect_damaged(len, "language", 0);
  len = make_table();
  memcpy(table + SECOND, table + FIRST, 8); /* twice the same */
  sign(len);
  expect_damaged(len, "order", 0);
  len = make_table();
  table[64 + 8 * ROWS] = (char)0xFF; /* no UTF-8 */
  sign(len);
  expect_damaged(len, "bytes", 0);
  len = make_table();
  num_put_le32(table + 12, 0x20000000); /* more entries than there is room for */
  sign(len);
  expect_damaged(len, "count", 0);
}

static _Atomic long countdown = -1;
static bool count_down(void) { return countdown < 0 || countdown-- > 0; }

TEST(a_missing_table_is_said_and_failing_allocations_are_survived) {
  search_glossary *g = NULL;
  CHECK(search_glossary_open("/nonexistent/words.glossary", &g, &err) == LODE_NOT_FOUND && !g);
  write_table(make_table());
  mem_alloc_hook = count_down;
  for (int after = 0; after < 20; after++) {
    countdown = after;
    lode_status st = search_glossary_open(path(), &g, &err);
    countdown = -1;
    CHECK(st == LODE_OK || st == LODE_NOMEM);
    search_glossary_close(g);
    g = NULL;
    if (st == LODE_OK) break;
    CHECK(after < 19);
  }
  mem_alloc_hook = NULL;
}

TEST(the_table_that_is_part_of_lode_knows_common_words) {
  search_glossary *g = NULL;
  OK(search_glossary_open(NULL, &g, &err));
  CHECK(search_glossary_count(g) > 30000);
  expect_words(g, SEARCH_GERMAN, "Warteschlange", "queue");
  expect_words(g, SEARCH_SPANISH, "archivo", "file");
  expect_words(g, SEARCH_FRENCH, "fichier", "file");
  expect_words(g, SEARCH_JAPANESE, "ファイル", "file ");
  expect_words(g, SEARCH_CHINESE, "数据库", "database ");
  search_glossary_close(g);
}
