/* SPDX-License-Identifier: Apache-2.0 */
/* symbol_map.h - strings to numbers; strings are not copied. */
#ifndef LODE_SYMBOLS_SYMBOL_MAP_H
#define LODE_SYMBOLS_SYMBOL_MAP_H

#include "base/base.h"

typedef struct symbols_map symbols_map;
symbols_map *symbols_map_new(void); /* NULL: out of memory */
void symbols_map_free(symbols_map *map);
void symbols_map_clear(symbols_map *map);
/* The place of the value, which may be changed; NULL when there is none. */
uint32_t *symbols_map_find(const symbols_map *map, lode_str key);
LODE_MUST bool symbols_map_put(symbols_map *map, lode_str key, uint32_t value);

#endif
