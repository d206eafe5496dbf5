/* SPDX-License-Identifier: Apache-2.0 */
/* test_token.c - words of text and code. Expectations are written as the tokens in order, "=" before one that shares
 * the place of the token before it: "getUser" gives "getuser =get user". */
#include "base/token.h"
#include "support/test.h"

typedef struct seen {
  strbuf text;
  const char *source;
  size_t len, tokens, places;
  int stop_after;
} seen;

static int note(void *ctx, const token_item *t) {
  seen *s = ctx;
  CHECK(t->len > 0 && t->len <= TOKEN_MAX_BYTES);
  CHECK(utf8_valid(t->text, t->len));
  CHECK(t->start < t->end && t->end <= s->len);
  CHECK(!t->same_place || s->tokens > 0);
  if (s->tokens) strbuf_addch(&s->text, ' ');
  if (t->same_place) strbuf_addch(&s->text, '=');
  strbuf_add(&s->text, t->text, t->len);
  s->tokens++;
  s->places += !t->same_place;
  return s->stop_after && (int)s->tokens == s->stop_after ? 42 : 0;
}

static seen run(lode_str text) {
  seen s = {.source = text.data, .len = text.len};
  CHECK(token_split(text.data, text.len, note, &s) == 0);
  strbuf_addch(&s.text, '\0');
  return s;
}

static void check(int line, const char *text, const char *want) {
  seen s = run(str_of(text));
  if (strcmp(s.text.data, want) != 0)
    test_failed(__FILE__, line, "%s gives \"%s\", not \"%s\"", text, s.text.data, want);
  strbuf_release(&s.text);
}
#define GIVES(text, want) check(__LINE__, text, want)

TEST(token_splits_plain_text) {
  GIVES("", "");
  GIVES("The quick, brown fox. Jumps!", "the quick brown fox jumps");
  GIVES("... -- / :: _ ", "");
  GIVES("don't C++ C# 100%", "don t c c 100");
}

TEST(token_splits_names_of_code) {
  GIVES("getUserById", "getuserbyid =get user by id");
  GIVES("HTTPServer2", "httpserver2 =http server 2");
  GIVES("parseHTTP", "parsehttp =parse http");
  GIVES("snake_case_name", "snake_case_name =snake case name");
  GIVES("MAX_VALUE", "max_value =max value");
  GIVES("__init__", "__init__ =init");
  GIVES("_x", "_x =x");
  GIVES("utf8proc", "utf8proc =utf 8 proc");
  GIVES("0xFF", "0xff =0 x ff");
  GIVES("ID", "id");
  GIVES("aB", "ab =a b");
  GIVES("ABc", "abc =a bc");
}

TEST(token_joins_names) {
  GIVES("std::vector", "std::vector =std vector");
  GIVES("std::vector.push_back", "std::vector.push_back =std vector push_back =push back");
  GIVES("src/store/vfs.c", "src/store/vfs.c =src store vfs c");
  GIVES("App\\Models\\User", "app\\models\\user =app models user");
  GIVES("a.b.c", "a.b.c =a b c");
  GIVES("v1.2.3", "v1.2.3 =v1 =v 1 2 3");
  GIVES("e-mail", "e-mail =e mail");
  GIVES("getUser.byId", "getuser.byid =getuser =get user byid =by id");
  GIVES("__x__.y", "__x__.y =__x__ =x y");
  GIVES("_.a", "_.a =a");
  GIVES("key:value", "key:value =key value");
}

TEST(token_joins_only_between_name_characters) {
  GIVES("foo->bar", "foo bar");
  GIVES("the end. Next", "the end next");
  GIVES("end.", "end");
  GIVES("../up", "up");
  GIVES("a..b a--b a//b a:::b", "a b a b a b a b");
  GIVES("http://x.y/z", "http x.y/z =x y z");
  GIVES("i-- -x x-", "i x x");
  GIVES("a- b", "a b");
}

TEST(token_folds_unicode) {
  GIVES("\xC3\x85ngstr\xC3\xB6m", "angstrom");   /* composed */
  GIVES("A\xCC\x8Angstro\xCC\x88m", "angstrom"); /* decomposed */
  GIVES("\xEF\xBC\xA1\xEF\xBC\xA2", "ab");       /* full width */
  GIVES("stra\xC3\x9F"
        "e STRASSE",
        "strasse strasse");
  GIVES("\xEF\xAC\x81n", "fin"); /* ligature */
  GIVES("\xCE\xA3\xCE\x91\xCE\xA3", "\xCF\x83\xCE\xB1\xCF\x83");
  GIVES("\xCF\x83\xCE\xB1\xCF\x82", "\xCF\x83\xCE\xB1\xCF\x83"); /* final sigma */
  GIVES("co\xC2\xADop", "coop");                                 /* soft hyphen */
  GIVES("\xC3\x89t\xC3\xA9"
        "Fin",
        "etefin =ete fin"); /* borders beside accents */
  GIVES("\xD0\x9F\xD1\x80\xD0\xB8\xD0\xB2\xD0\xB5\xD1\x82", "\xD0\xBF\xD1\x80\xD0\xB8\xD0\xB2\xD0\xB5\xD1\x82");
}

TEST(token_gives_characters_of_scripts_without_spaces) {
  GIVES("\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E", "\xE6\x97\xA5 \xE6\x9C\xAC \xE8\xAA\x9E");
  GIVES("foo\xE6\x97\xA5.bar", "foo \xE6\x97\xA5 bar");
  /* the kana ga: composed, decomposed, and half width give one word, that is not ka */
  seen composed = run(STR_LIT("\xE3\x82\xAC")), decomposed = run(STR_LIT("\xE3\x82\xAB\xE3\x82\x99"));
  seen half = run(STR_LIT("\xEF\xBD\xB6\xEF\xBE\x9E")), ka = run(STR_LIT("\xE3\x82\xAB"));
  CHECK(composed.tokens == 1 && strcmp(composed.text.data, decomposed.text.data) == 0);
  CHECK(strcmp(composed.text.data, half.text.data) == 0 && strcmp(composed.text.data, ka.text.data) != 0);
  strbuf_release(&composed.text), strbuf_release(&decomposed.text);
  strbuf_release(&half.text), strbuf_release(&ka.text);
  /* Korean has spaces; both of its spellings are one */
  seen syllables = run(STR_LIT("\xEA\xB0\x80\xEB\x82\x98"));
  seen jamo = run(STR_LIT("\xE1\x84\x80\xE1\x85\xA1\xE1\x84\x82\xE1\x85\xA1"));
  CHECK(syllables.tokens == 1 && strcmp(syllables.text.data, jamo.text.data) == 0);
  strbuf_release(&syllables.text), strbuf_release(&jamo.text);
}

TEST(token_takes_any_bytes) {
  GIVES("a\xFF"
        "b",
        "a b");
  GIVES("a\xC3", "a");
  GIVES("\xED\xA0\x80x", "x");
  seen s = run(STR_LIT("a\0b"));
  CHECK(s.tokens == 2);
  strbuf_release(&s.text);
}

static int note_place(void *ctx, const token_item *t) {
  token_item **next = ctx;
  *(*next)++ = *t;
  return 0;
}

TEST(token_tells_where_it_is) {
  token_item tokens[8], *next = tokens;
  CHECK(token_split(" std::getIt", 11, note_place, &next) == 0);
  const struct { size_t start, end; } want[] = {{1, 11}, {1, 4}, {6, 11}, {6, 9}, {9, 11}};
  CHECK(next == tokens + 5);
  for (int i = 0; i < 5; i++) CHECK(tokens[i].start == want[i].start && tokens[i].end == want[i].end);
}

TEST(token_stops_when_told) {
  for (int n = 1; n <= 5; n++) {
    seen s = {.len = 11, .stop_after = n};
    CHECK(token_split(" std::getIt", 11, note, &s) == 42);
    CHECK((int)s.tokens == n);
    strbuf_release(&s.text);
  }
}

/* ---- Long names ---- */

static seen run_repeated(const char *unit, size_t times, const char *end) {
  strbuf text = {0};
  for (size_t i = 0; i < times; i++) strbuf_addstr(&text, unit);
  strbuf_addstr(&text, end);
  CHECK(!text.failed);
  seen s = run((lode_str){text.data, text.len});
  strbuf_release(&text);
  return s;
}

TEST(token_leaves_out_long_wholes) {
  seen s = run_repeated("a.", 63, "bc"); /* 128 bytes */
  CHECK(s.tokens == 65 && s.places == 64);
  strbuf_release(&s.text);
  s = run_repeated("a.", 63, "bcd"); /* 129 */
  CHECK(s.tokens == 64 && s.places == 64);
  strbuf_release(&s.text);
  s = run_repeated("snake_case::", 20, "end"); /* components still are given */
  CHECK(s.tokens == 20 * 3 + 1 && s.places == 20 * 2 + 1);
  CHECK(strncmp(s.text.data, "snake_case =snake case snake_case ", 34) == 0);
  strbuf_release(&s.text);
  s = run_repeated("part_", 40, "end.of_it"); /* a long component, then a short one */
  CHECK(s.tokens == 41 + 3 && s.places == 41 + 2);
  const char *tail = " part end of_it =of it";
  CHECK(strcmp(s.text.data + s.text.len - 1 - strlen(tail), tail) == 0);
  strbuf_release(&s.text);
}

TEST(token_cuts_long_parts_at_a_character) {
  seen s = run_repeated("x", 1000, "");
  CHECK(s.tokens == 1 && s.text.len == 128 + 1);
  strbuf_release(&s.text);
  s = run_repeated("\xD0\xBF\xE0\xA4\x95", 1000, ""); /* 2 and 3 bytes: 128 is inside one */
  CHECK(s.tokens == 1 && s.text.len == 127 + 1);
  strbuf_release(&s.text);
  s = run_repeated("x", 200, "YZ9_w");
  CHECK(s.tokens == 4 && strcmp(s.text.data + 128, " yz 9 w") == 0);
  strbuf_release(&s.text);
  s = run_repeated("X", 200, "Yes"); /* the border is found one character late */
  CHECK(s.tokens == 2 && strcmp(s.text.data + 128, " yes") == 0);
  strbuf_release(&s.text);
}

TEST(token_is_linear_in_hostile_text) {
  const char *units[] = {
      "a.", "a_", "aB", "_", "a::", "\xCC\x81", "a\xCC\x81", "\xC2\xAD", "9a", "X", "\xE6\x97\xA5\xCC\x81", "\xFF"};
  for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
    seen s = run_repeated(units[u], 1000000, ""); /* a quadratic scan would end in the timeout */
    strbuf_release(&s.text);
  }
}

/* ---- Parts, by an independent reading of the rules for ASCII ---- */

static char kind(char c) {
  if (c >= 'a' && c <= 'z') return 'l';
  if (c >= 'A' && c <= 'Z') return 'u';
  if (c >= '0' && c <= '9') return 'd';
  return 0;
}

/* The parts of a text are its maximal runs of letters and digits, cut at the borders. */
static void expect_parts(const char *s, size_t n, strbuf *out) {
  for (size_t i = 0; i < n; i++) {
    char k = kind(s[i]), before = i ? kind(s[i - 1]) : 0, after = i + 1 < n ? kind(s[i + 1]) : 0;
    if (!k) continue;
    bool begins = !before || (k == 'd') != (before == 'd') || (before == 'l' && k == 'u') ||
                  (before == 'u' && k == 'u' && after == 'l');
    if (begins && out->len) strbuf_addch(out, ' ');
    strbuf_addch(out, (char)(k == 'u' ? s[i] + 32 : s[i]));
  }
}

typedef struct part_list {
  strbuf text, pending; /* the last token at a place is its part */
} part_list;

static int note_part(void *ctx, const token_item *t) {
  part_list *p = ctx;
  if (!t->same_place && p->pending.len) {
    if (p->text.len) strbuf_addch(&p->text, ' ');
    strbuf_add(&p->text, p->pending.data, p->pending.len);
  }
  p->pending.len = 0;
  strbuf_add(&p->pending, t->text, t->len);
  return 0;
}

TEST(token_parts_follow_the_rules) {
  static const char letters[] = "aabcABCZz019__..::/-\\ ->";
  test_srand(test_seed());
  for (int round = 0; round < 20000; round++) {
    char text[400];
    size_t n = test_below(test_below(10) ? 30 : sizeof text);
    for (size_t i = 0; i < n; i++) text[i] = letters[test_below(sizeof letters - 1)];
    part_list got = {0};
    strbuf want = {0};
    CHECK(token_split(text, n, note_part, &got) == 0);
    token_item end = {.text = "", .len = 0};
    note_part(&got, &end);
    expect_parts(text, n, &want);
    CHECKF(str_eq((lode_str){got.text.data, got.text.len}, (lode_str){want.data, want.len}),
           "%.*s: \"%.*s\", wanted \"%.*s\"", (int)n, text, (int)got.text.len, got.text.data, (int)want.len, want.data);
    strbuf_release(&got.text), strbuf_release(&got.pending), strbuf_release(&want);
  }
}

TEST(token_survives_random_bytes) {
  test_srand(test_seed());
  for (int round = 0; round < 20000; round++) {
    char text[200];
    size_t n = test_below(sizeof text);
    for (size_t i = 0; i < n; i++) text[i] = (char)(test_below(3) ? 0x80 + test_below(0x80) : test_below(0x80));
    seen s = run((lode_str){text, n});
    strbuf_release(&s.text);
  }
}

/* Every character, alone and inside a name: no fold is longer than the buffer's spare room. */
TEST(token_takes_every_character) {
  for (uint32_t c = 0x80; c < 0x110000; c++) {
    char text[16] = "a";
    size_t n = 1;
    if (c < 0x800)
      text[n++] = (char)(0xC0 | c >> 6);
    else if (c < 0x10000)
      text[n++] = (char)(0xE0 | c >> 12);
    else
      text[n++] = (char)(0xF0 | c >> 18), text[n++] = (char)(0x80 | (c >> 12 & 63));
    if (c >= 0x800) text[n++] = (char)(0x80 | (c >> 6 & 63));
    text[n++] = (char)(0x80 | (c & 63));
    seen s = run((lode_str){text, n});
    CHECK(s.tokens >= 1);
    strbuf_release(&s.text);
  }
}
