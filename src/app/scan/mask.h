/* mask.h - secrets inside ordinary text: private keys and tokens of well-known shapes.
 *
 * A secret is replaced by '*' in place: no byte is added or taken away and no line break is touched, so that offsets and lines stay what they
 * are. The public part of a token (AKIA, ghp_) stays, for the reader to know what was there. The time is linear in the length of the text:
 * each rule looks at a byte at most twice.
 *
 * Shapes were chosen for being certain: a prefix that a vendor registered, and a length and alphabet that words and identifiers do not have.
 * A password without a shape is not found.
 */
#ifndef LODE_SCAN_MASK_H
#define LODE_SCAN_MASK_H

#include "base/base.h"

/* Changes whenever the same text would be masked in another way: then the files of an index are looked at again. */
#define MASK_VERSION 2

/* What to do with secrets: the setting index.secrets. */
typedef enum mask_policy {
  MASK_POLICY_MASK,  /* files that are secrets are skipped, secrets inside others masked */
  MASK_POLICY_SKIP,  /* files with a secret anywhere in them are skipped */
  MASK_POLICY_INDEX, /* as any other text */
} mask_policy;

/* By its name in the settings; "mask" for any other text. */
mask_policy mask_policy_parse(const char *name);
const char *mask_policy_name(mask_policy secrets);
/* How many secrets were masked. The text stays UTF-8 if it was. */
size_t mask_secrets(char *text, size_t len);
/* For a piece that may have been cut out of a key: also lines that look like the middle of one. */
size_t mask_fragment(char *text, size_t len);

#endif
