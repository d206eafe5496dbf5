/* crc32c.h - CRC-32C (Castagnoli), with the CPU's instruction where there is one. */
#ifndef LODE_BASE_CRC32C_H
#define LODE_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Extends `crc` (0 to begin) by the bytes; the value is the usual one ("123456789" gives 0xE3069283). */
uint32_t crc32c_update(uint32_t crc, const void *data, size_t len);
/* The same by tables alone, on any CPU. LODE_SIMD=portable in the environment makes crc32c_update this one. */
uint32_t crc32c_portable(uint32_t crc, const void *data, size_t len);
/* Which one crc32c_update is: "sse4.2", "armv8" or "portable". */
const char *crc32c_name(void);
/* Helpers that feed integers in little-endian order. */
uint32_t crc32c_update_u32(uint32_t crc, uint32_t v);
uint32_t crc32c_update_u64(uint32_t crc, uint64_t v);

#endif
