/* SPDX-License-Identifier: Apache-2.0 */
/* browse_keys.c - see browse_keys.h. */
#include "cli/browse_keys.h"

#include "platform/process.h"

#include <errno.h>
#include <unistd.h>

enum { BROWSE_REST_MS = 50 }; /* how long the rest of a sequence is waited for */

static bool keys_fill(browse_keys *k, int timeout_ms) {
  if (k->n == sizeof k->bytes || k->gone) return false;
  if (os_wait_input(k->fd, timeout_ms) <= 0) return false;
  ssize_t n = read(k->fd, k->bytes + k->n, sizeof k->bytes - k->n);
  if (n > 0) k->n += (size_t)n;
  if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) k->gone = true;
  return n > 0;
}

static void keys_drop(browse_keys *k, size_t n) {
  k->n -= n;
  memmove(k->bytes, k->bytes + n, k->n);
}

static browse_key keys_take(browse_keys *k, size_t n, browse_key_kind kind) {
  keys_drop(k, n);
  return (browse_key){.kind = kind};
}

/* ESC [ parameters letter, ESC O letter. */
static browse_key keys_take_sequence(browse_keys *k) {
  static const struct {
    const char *text;
    browse_key_kind kind;
  } known[] = {{"[A", BROWSE_KEY_UP},        {"[B", BROWSE_KEY_DOWN},     {"OA", BROWSE_KEY_UP},
               {"OB", BROWSE_KEY_DOWN},      {"[5~", BROWSE_KEY_PAGE_UP}, {"[6~", BROWSE_KEY_PAGE_DOWN},
               {"[3~", BROWSE_KEY_BACKSPACE}};
  if (k->n == 1 && !keys_fill(k, BROWSE_REST_MS)) return keys_take(k, 1, BROWSE_KEY_ESCAPE);
  if (k->bytes[1] != '[' && k->bytes[1] != 'O') return keys_take(k, 2, BROWSE_KEY_NONE);
  size_t end = 2;
  for (;; end++) {
    if (end == k->n && !keys_fill(k, BROWSE_REST_MS)) return keys_take(k, k->n, BROWSE_KEY_NONE);
    if (k->bytes[end] >= 0x40 && k->bytes[end] <= 0x7e) break;
  }
  const char *text = (const char *)k->bytes + 1;
  browse_key_kind kind = BROWSE_KEY_NONE;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strlen(known[i].text) == end && memcmp(known[i].text, text, end) == 0) kind = known[i].kind;
  if (end == 5 && memcmp(text, "[200~", 5) == 0) k->pasting = true;
  if (end == 5 && memcmp(text, "[201~", 5) == 0) k->pasting = false;
  return keys_take(k, end + 1, kind);
}

static browse_key_kind keys_of_control(unsigned char c) {
  switch (c) {
    case 3: return BROWSE_KEY_INTERRUPT;
    case 4: return BROWSE_KEY_END;
    case 8:
    case 127: return BROWSE_KEY_BACKSPACE;
    case 10:
    case 13: return BROWSE_KEY_ENTER;
    case 12: return BROWSE_KEY_REDRAW;
    case 14: return BROWSE_KEY_DOWN;
    case 16: return BROWSE_KEY_UP;
    case 21: return BROWSE_KEY_ERASE_ALL;
    case 23: return BROWSE_KEY_ERASE_WORD;
    default: return BROWSE_KEY_NONE;
  }
}

static browse_key keys_take_text(browse_keys *k) {
  browse_key key = {.kind = BROWSE_KEY_TEXT};
  size_t wanted = k->bytes[0] < 0x80 ? 1 : k->bytes[0] >= 0xf0 ? 4 : k->bytes[0] >= 0xe0 ? 3 : 2;
  while (k->n < wanted)
    if (!keys_fill(k, BROWSE_REST_MS)) return keys_take(k, k->n, BROWSE_KEY_NONE);
  size_t width = utf8_width((const char *)k->bytes, k->n);
  if (width == 0 || width > 4) return keys_take(k, 1, BROWSE_KEY_NONE);
  memcpy(key.text, k->bytes, width);
  keys_drop(k, width);
  return key;
}

browse_key cli_browse_next_key(browse_keys *k, int timeout_ms) {
  if (k->n == 0 && !keys_fill(k, timeout_ms))
    return (browse_key){.kind = k->gone ? BROWSE_KEY_HANGUP : BROWSE_KEY_NONE};
  unsigned char c = k->bytes[0];
  if (c == 27) return keys_take_sequence(k);
  if (k->pasting && (c == '\r' || c == '\n' || c == '\t')) {
    keys_drop(k, 1);
    return (browse_key){.kind = BROWSE_KEY_TEXT, .text = " "};
  }
  if (c < 32 || c == 127) return keys_take(k, 1, k->pasting ? BROWSE_KEY_NONE : keys_of_control(c));
  return keys_take_text(k);
}

bool cli_browse_key_waits(browse_keys *k) { return k->n > 0 || k->gone || os_wait_input(k->fd, 0) > 0; }
