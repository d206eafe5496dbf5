/* SPDX-License-Identifier: Apache-2.0 */
/* test_browse_keys.c - keys from what a terminal sends: whole, in pieces, pasted, unknown, and any bytes. */
#include "cli/browse_keys.h"
#include "support/test.h"

#include <unistd.h>

static int ends[2];
static browse_keys keys;

static void type(const char *bytes, size_t n) { CHECK(write(ends[1], bytes, n) == (ssize_t)n); }
static void begin(void) {
  CHECK(pipe(ends) == 0);
  keys = (browse_keys){.fd = ends[0]};
}
static browse_key next(void) { return cli_browse_next_key(&keys, 0); }
static void is(browse_key_kind kind, const char *text) {
  browse_key key = next();
  CHECKF(key.kind == kind && strcmp(key.text, text) == 0, "%d %s", (int)key.kind, key.text);
}

TEST(keys_in_order) {
  begin();
  type("a\xc3\xa4\xe4\xb8\xad\r\x7f\x15\x17\033[A\033OB\033[5~\033[6~\033[1;5C\003\004", 32);
  is(BROWSE_KEY_TEXT, "a");
  is(BROWSE_KEY_TEXT, "\xc3\xa4");
  is(BROWSE_KEY_TEXT, "\xe4\xb8\xad");
  is(BROWSE_KEY_ENTER, "");
  is(BROWSE_KEY_BACKSPACE, "");
  is(BROWSE_KEY_ERASE_ALL, "");
  is(BROWSE_KEY_ERASE_WORD, "");
  is(BROWSE_KEY_UP, "");
  is(BROWSE_KEY_DOWN, "");
  is(BROWSE_KEY_PAGE_UP, "");
  is(BROWSE_KEY_PAGE_DOWN, "");
  is(BROWSE_KEY_NONE, ""); /* Ctrl-Right */
  is(BROWSE_KEY_INTERRUPT, "");
  is(BROWSE_KEY_END, "");
  is(BROWSE_KEY_NONE, "");
  CHECK(!cli_browse_key_waits(&keys));
}

TEST(pieces) {
  begin();
  type("\033", 1);
  is(BROWSE_KEY_ESCAPE, ""); /* nothing came after it */
  type("\033[", 2);
  is(BROWSE_KEY_NONE, ""); /* the rest never came */
  type("\xe4\xb8", 2);
  is(BROWSE_KEY_NONE, "");
  type("\xff", 1);
  is(BROWSE_KEY_NONE, "");
  type("b", 1);
  is(BROWSE_KEY_TEXT, "b");
  type("\033xb", 3);
  is(BROWSE_KEY_NONE, ""); /* Alt-x */
  is(BROWSE_KEY_TEXT, "b");
}

TEST(pasted) {
  begin();
  type("\033[200~a\nb\003\033[201~\r", 17);
  is(BROWSE_KEY_NONE, "");
  is(BROWSE_KEY_TEXT, "a");
  is(BROWSE_KEY_TEXT, " ");
  is(BROWSE_KEY_TEXT, "b");
  is(BROWSE_KEY_NONE, ""); /* a Ctrl-C that was pasted interrupts nothing */
  is(BROWSE_KEY_NONE, "");
  is(BROWSE_KEY_ENTER, "");
}

TEST(the_terminal_goes_away) {
  begin();
  type("a", 1);
  close(ends[1]);
  is(BROWSE_KEY_TEXT, "a");
  is(BROWSE_KEY_HANGUP, "");
  is(BROWSE_KEY_HANGUP, "");
}

TEST(any_bytes) {
  begin();
  test_srand(test_seed());
  for (int round = 0; round < 20; round++) {
    char bytes[300];
    for (size_t i = 0; i < sizeof bytes; i++)
      bytes[i] = (char)(test_below(4) ? "\033[O~;1a"[test_below(7)] : (char)test_below(256));
    type(bytes, sizeof bytes);
    for (size_t i = 0; cli_browse_key_waits(&keys); i++) {
      browse_key key = next();
      CHECK(i < 2 * sizeof bytes && strlen(key.text) < sizeof key.text);
      CHECK(key.kind != BROWSE_KEY_TEXT || utf8_valid(key.text, strlen(key.text)));
    }
  }
}
