/* SPDX-License-Identifier: Apache-2.0 */
/* browse_keys.h - keys of a terminal, from the bytes that it sends.
 *
 * A key may come in pieces (over ssh): the rest of one that has begun is waited for, for a moment. What is pasted is
 * text, also its newlines. Unknown sequences are dropped.
 */
#ifndef LODE_CLI_BROWSE_KEYS_H
#define LODE_CLI_BROWSE_KEYS_H

#include "base/base.h"

typedef enum browse_key_kind {
  BROWSE_KEY_NONE, /* nothing was typed, or nothing that is known */
  BROWSE_KEY_TEXT, /* one character */
  BROWSE_KEY_ENTER,
  BROWSE_KEY_ESCAPE,
  BROWSE_KEY_UP,
  BROWSE_KEY_DOWN,
  BROWSE_KEY_PAGE_UP,
  BROWSE_KEY_PAGE_DOWN,
  BROWSE_KEY_BACKSPACE,
  BROWSE_KEY_ERASE_WORD,
  BROWSE_KEY_ERASE_ALL,
  BROWSE_KEY_REDRAW,
  BROWSE_KEY_INTERRUPT, /* Ctrl-C */
  BROWSE_KEY_END,       /* Ctrl-D */
  BROWSE_KEY_HANGUP,    /* the terminal is gone */
} browse_key_kind;

typedef struct browse_key {
  browse_key_kind kind;
  char text[5]; /* of TEXT, NUL-terminated */
} browse_key;

typedef struct browse_keys {
  int fd;
  size_t n; /* bytes that were read and not taken */
  unsigned char bytes[256];
  bool pasting, gone;
} browse_keys;

/* The next key, waiting for `timeout_ms` at most, or until a signal comes; -1: as long as it takes. */
browse_key cli_browse_next_key(browse_keys *keys, int timeout_ms);
/* Is there one, without waiting? */
bool cli_browse_key_waits(browse_keys *keys);

#endif
