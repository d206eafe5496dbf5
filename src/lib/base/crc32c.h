/* SPDX-License-Identifier: Apache-2.0 */
/* crc32c.h - CRC-32C (Castagnoli), using the CPU's instruction where available. */
#ifndef LODE_BASE_CRC32C_H
#define LODE_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Extends `crc` (0 to start) by the bytes; the value is the standard one ("123456789" gives 0xE3069283). */
uint32_t crc32c_update(uint32_t crc, const void *data, size_t len);
/* The same by tables alone, on any CPU. LODE_SIMD=portable in the environment makes crc32c_update() use it. */
uint32_t crc32c_portable(uint32_t crc, const void *data, size_t len);
/* Which implementation crc32c_update() uses: "sse4.2", "armv8" or "portable". */
const char *crc32c_name(void);
/* Extend by an integer in little-endian order. */
uint32_t crc32c_update_u32(uint32_t crc, uint32_t v);
uint32_t crc32c_update_u64(uint32_t crc, uint64_t v);

#endif
