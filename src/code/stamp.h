/* stamp.h - what an index says about itself: the metadata of the collection "files". */
#ifndef LODE_CODE_STAMP_H
#define LODE_CODE_STAMP_H

#include "base/json.h"
#include "code/config.h"
#include "code/walk.h"

typedef struct lode__stamp {
  uint64_t revision;     /* LODE__CODE_REVISION when it was made */
  uint64_t indexed_ms;   /* end of the last run */
  uint64_t scanned_ms;   /* end of the last run that walked the whole tree */
  uint64_t took_ms;      /* that run */
  uint64_t skipped[LODE__SKIP_COUNT]; /* by that run */
  uint64_t masked;       /* secrets that were masked, in all files, by that run */
  char secrets[32];      /* how secrets were treated by the last run that looked at all files: "mask@2" */
  char lode[32];         /* version of the program */
  char root[1024];       /* where the tree was */
} lode__stamp;

/* How text of an index is shown. */
typedef enum lode__showing {
  LODE__SHOW_AS_IS,   /* index.secrets is index */
  LODE__SHOW_MASKED,
  LODE__SHOW_DOUBTED, /* it was made under other rules for secrets than these: what may be part of one is masked too */
} lode__showing;

/* How secrets are treated under these settings by this program: "mask@2". */
void lode__stamp_secrets(const lode__config *config, char out[32]);
lode__showing lode__stamp_showing(const lode__stamp *stamp, const lode__config *config);
/* Masked in place, as the index is to be shown. */
void lode__show(lode__showing how, char *text, size_t len);

/* Absent or unreadable metadata give zeros. */
void lode__stamp_parse(lode_str metadata, lode__stamp *stamp);
void lode__stamp_put(strbuf *out, const lode__stamp *stamp);

#endif
