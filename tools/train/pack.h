/* SPDX-License-Identifier: Apache-2.0 */
/* pack.h - pairs as numbers of words: what the trainer reads.
 *
 * A file is the magic word, then records: a pack_record and then its rows (16 bits each), segment by segment. All
 * numbers are those of this machine: the file is an intermediate one.
 */
#ifndef TRAIN_PACK_H
#define TRAIN_PACK_H

#include <stdint.h>

#define PACK_MAGIC "LODEPAIR"

enum { SENTENCE, REST, PATH, NAME, CODE, SEGMENTS };
enum { SENTENCE_ROWS = 64, REST_ROWS = 128, PATH_ROWS = 24, NAME_ROWS = 12, CODE_ROWS = 512 };
enum { KIND_FUNC, KIND_TYPE, KIND_DECL, KIND_INLINE, KIND_MODULE, KIND_SECTION };

typedef struct pack_record {
  uint32_t file; /* hash of package and path */
  uint32_t doc;  /* hash of the description */
  uint8_t kind;
  uint8_t lang; /* hash */
  uint16_t rows[SEGMENTS];
} pack_record;

#endif
