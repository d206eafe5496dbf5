/* SPDX-License-Identifier: Apache-2.0 */
/* mask.h - masks secrets inside ordinary text: private keys and tokens of well-known shapes.
 *
 * A secret is overwritten with '*' in place: no byte is added or removed and no line break is touched, so offsets and
 * line numbers stay valid. The public part of a token (AKIA, ghp_) stays, so that readers can see what it was. Time
 * is linear in the length of the text: each rule looks at a byte at most twice.
 *
 * The shapes leave little doubt: a prefix that a vendor registered, with a length and an alphabet that words and
 * identifiers do not have. A password without such a shape is not found.
 */
#ifndef LODE_SCAN_MASK_H
#define LODE_SCAN_MASK_H

#include "base/base.h"

/* Incremented whenever the same text would be masked differently: the files of an index are then processed again. */
#define MASK_VERSION 2

/* What to do with secrets: the setting index.secrets. */
typedef enum mask_policy {
  MASK_POLICY_MASK,  /* skip files that are secrets, mask secrets inside other files */
  MASK_POLICY_SKIP,  /* skip files that contain a secret */
  MASK_POLICY_INDEX, /* index secrets like any other text */
} mask_policy;

/* By its name in the settings; "mask" for any other text. */
mask_policy mask_policy_parse(const char *name);
const char *mask_policy_name(mask_policy secrets);
/* Returns the number of secrets masked. Text that is UTF-8 stays UTF-8. */
size_t mask_secrets(char *text, size_t len);
/* For a piece that may come from inside a key: also masks lines that look like the middle of one. */
size_t mask_fragment(char *text, size_t len);

#endif
