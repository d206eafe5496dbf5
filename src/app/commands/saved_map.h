/* SPDX-License-Identifier: Apache-2.0 */
/* saved_map.h - places of points that were computed before, kept in the store's folder: derived, removable at any time.
 *
 * A file holds the places for exactly one input, which it names by a digest, and a checksum of its bytes. Anything that
 * does not fit (another input, another version, damage, a link, another's file) counts as no saved map. There are at
 * most OP_SAVED_MAPS files of at most 80 KB in a store.
 */
#ifndef LODE_COMMANDS_SAVED_MAP_H
#define LODE_COMMANDS_SAVED_MAP_H

#include "base/base.h"
#include "base/sha256.h"

enum { OP_SAVED_MAPS = 8, OP_SAVED_MAP_UNIT = 10000 /* a place is a whole number from -UNIT to UNIT */ };

typedef struct op_saved_map {
  uint8_t digest[SHA256_BYTES]; /* of everything that the places depend on */
  uint32_t slot;                /* which file, modulo OP_SAVED_MAPS */
  size_t n;
  double *xy;     /* n pairs from -1 to 1, rounded to 1 / UNIT by op_saved_map_round() */
  double kept[2]; /* shares, 0 to 1 */
} op_saved_map;

/* Rounds, so that places are the same whether they were saved or not. */
void op_saved_map_round(op_saved_map *map);
/* True if the folder has the map of this digest and number of points; sets xy and kept. */
LODE_MUST bool op_saved_map_read(const char *folder, op_saved_map *map);
/* A failure has no consequence: the map is computed again. */
void op_saved_map_write(const char *folder, const op_saved_map *map);

#endif
