/* SPDX-License-Identifier: Apache-2.0 */
/* index_stamp.h - what an index says about itself: the metadata of the collection "files". */
#ifndef LODE_INDEXER_INDEX_STAMP_H
#define LODE_INDEXER_INDEX_STAMP_H

#include "base/json.h"
#include "project/project_config.h"
#include "scan/scan.h"

typedef struct indexer_stamp {
  uint64_t revision;                 /* INDEXER_REVISION when it was made */
  uint64_t indexed_ms;               /* end of the last run */
  uint64_t scanned_ms;               /* end of the last run that walked the whole tree */
  uint64_t took_ms;                  /* duration of that run */
  uint64_t skipped[SCAN_SKIP_COUNT]; /* by that run */
  uint64_t masked;                   /* secrets in all files that were masked, as of that run */
  bool versions;                     /* files have versions: file_version.h */
  char secrets[32];                  /* mask policy and version of the last run over all files: "mask@2" */
  char lode[32];                     /* version of the program */
  char root[1024];                   /* where the tree was */
} indexer_stamp;

/* How text of an index is displayed. */
typedef enum indexer_display {
  INDEXER_DISPLAY_RAW, /* index.secrets is index */
  INDEXER_DISPLAY_MASKED,
  INDEXER_DISPLAY_UNSURE, /* it was made with another mask policy or version: also mask what may be part of a secret */
} indexer_display;

/* Mask policy and version of these settings and this program: "mask@2". */
void indexer_stamp_secrets(const config_values *config, char out[32]);
indexer_display indexer_stamp_display(const indexer_stamp *stamp, const config_values *config);
/* Masks text in place for display. */
void indexer_mask_for_display(indexer_display how, char *text, size_t len);

/* Absent or unreadable metadata give zeros. */
void indexer_stamp_parse(lode_str metadata, indexer_stamp *stamp);
void indexer_stamp_put(strbuf *out, const indexer_stamp *stamp);

#endif
