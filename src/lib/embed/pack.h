/* SPDX-License-Identifier: Apache-2.0 */
/* pack.h - a model in one file of our own format: sections of bytes, with a checksum for every chunk.
 *
 * Little-endian. Header, 64 bytes: "LODEMODL", u32 version (1), u32 sections, u64 length of the file, u64 offset and
 * u64 bytes of the table, u32 CRC-32C of the table, zeros, u32 CRC-32C of the first 60 bytes. Then the sections, each
 * at a multiple of 64. The table: u32 length of the identity and the identity; for each section a name of 16 bytes
 * (padded with NUL), u64 offset, u64 bytes, u32 bytes of a chunk, u32 number of its first chunk; then a CRC-32C for
 * each chunk, seeded with the chunk's offset in the file, so that a chunk at another offset is detected as damage too.
 *
 * A pack is read with pread() and never changed: a new one replaces it by rename. Many threads may read it.
 */
#ifndef LODE_EMBED_PACK_H
#define LODE_EMBED_PACK_H

#include "base/base.h"

enum {
  EMBED_PACK_VERSION = 1,
  EMBED_PACK_MAX_SECTIONS = 32,
  EMBED_PACK_CHUNK_BYTES = 1u << 18, /* default bytes of a chunk */
  EMBED_PACK_MAX_TABLE = 16u << 20,
};

typedef struct embed_pack_section {
  char name[17];
  uint64_t offset, bytes;
  uint32_t chunk, first; /* bytes of a chunk; index of the first one in crcs */
} embed_pack_section;

typedef struct embed_pack {
  int fd;
  char *path;
  char *identity;
  uint64_t length;
  embed_pack_section sections[EMBED_PACK_MAX_SECTIONS];
  size_t n_sections;
  uint32_t *crcs;
  size_t n_crcs;
} embed_pack;

/* Reads header and table only. LODE_CORRUPT: damaged, or not a pack. */
LODE_MUST lode_status embed_pack_open(embed_pack *pack, const char *path, lode_error *err);
void embed_pack_close(embed_pack *pack);
/* NULL when there is none. */
const embed_pack_section *embed_pack_find(const embed_pack *pack, const char *name);
/* Reads a whole section into `out` (section->bytes), checked. */
LODE_MUST lode_status embed_pack_read(const embed_pack *pack, const embed_pack_section *section, void *out,
                                      lode_error *err);
/* Reads one chunk into `out` (section->chunk bytes), checked; *bytes is its length, shorter at the end of the
 * section. */
LODE_MUST lode_status embed_pack_read_chunk(const embed_pack *pack, const embed_pack_section *section, uint64_t chunk,
                                            void *out, size_t *bytes, lode_error *err);
/* Checks every chunk of every section. */
LODE_MUST lode_status embed_pack_verify(const embed_pack *pack, lode_error *err);

/* Writing: to a temporary file, which embed_pack_finish() renames to `path` when everything is on disk. */
typedef struct embed_pack_writer {
  embed_pack pack;
  char *temporary;
  size_t crcs_cap;
} embed_pack_writer;

LODE_MUST lode_status embed_pack_create(embed_pack_writer *writer, const char *path, lode_error *err);
LODE_MUST lode_status embed_pack_add(embed_pack_writer *writer, const char *name, uint32_t chunk, const void *data,
                                     size_t bytes, lode_error *err);
LODE_MUST lode_status embed_pack_finish(embed_pack_writer *writer, const char *identity, lode_error *err);
/* Frees the writer and removes an unfinished file. */
void embed_pack_discard(embed_pack_writer *writer);

#endif
