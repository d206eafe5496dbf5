/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - reading packs; see pack.h. */
#include "embed/pack.h"

#include "base/byteorder.h"
#include "base/crc32c.h"
#include "os/os.h"
#include "embed/pack_bytes.h"

static lode_status pack_damaged(const embed_pack *pack, const char *what, lode_error *err) {
  return err_set(err, LODE_CORRUPT, "the model file %s is damaged (%s); `lode model install` makes it again",
                 pack->path, what);
}

/* ---- Table ---- */

static lode_status pack_read_sections(embed_pack *p, const unsigned char *table, size_t bytes, uint64_t data_end,
                                      lode_error *err) {
  size_t at = 4 + (size_t)num_le32(table);
  uint64_t chunks = 0;
  for (size_t i = 0; i < p->n_sections; i++, at += EMBED_PACK_SECTION_BYTES) {
    embed_pack_section *s = &p->sections[i];
    memcpy(s->name, table + at, 16);
    s->offset = num_le64(table + at + 16);
    s->bytes = num_le64(table + at + 24);
    s->chunk = num_le32(table + at + 32);
    s->first = num_le32(table + at + 36);
    if (s->chunk == 0 || s->chunk > EMBED_PACK_MAX_CHUNK || s->offset < EMBED_PACK_HEADER_BYTES ||
        s->offset > data_end || s->bytes > data_end - s->offset || s->first != chunks)
      return pack_damaged(p, "a section is outside of the file", err);
    chunks += s->bytes / s->chunk + (s->bytes % s->chunk != 0);
    if (chunks > EMBED_PACK_MAX_TABLE / 4) return pack_damaged(p, "it has too many chunks", err);
  }
  if (bytes - at != 4 * chunks) return pack_damaged(p, "its table of checksums has another size", err);
  p->n_crcs = (size_t)chunks;
  p->crcs = mem_calloc(p->n_crcs + 1, sizeof *p->crcs);
  if (!p->crcs) return err_nomem(err);
  for (size_t i = 0; i < p->n_crcs; i++) p->crcs[i] = num_le32(table + at + 4 * i);
  return LODE_OK;
}

static lode_status pack_read_table(embed_pack *p, const unsigned char *table, size_t bytes, uint64_t data_end,
                                   lode_error *err) {
  size_t name = num_le32(table);
  if (name > 1024 || bytes < 4 + name + p->n_sections * EMBED_PACK_SECTION_BYTES || memchr(table + 4, 0, name))
    return pack_damaged(p, "its table is cut short", err);
  p->identity = mem_calloc(name + 1, 1);
  if (!p->identity) return err_nomem(err);
  memcpy(p->identity, table + 4, name);
  return pack_read_sections(p, table, bytes, data_end, err);
}

static lode_status pack_read_head(embed_pack *p, lode_error *err) {
  unsigned char h[EMBED_PACK_HEADER_BYTES];
  size_t got;
  struct stat info;
  TRY(os_read_full(p->fd, h, sizeof h, 0, &got, err));
  if (got < sizeof h || memcmp(h, EMBED_PACK_MAGIC, 8) != 0) return pack_damaged(p, "it does not begin as one", err);
  if (num_le32(h + 60) != crc32c_update(0, h, 60)) return pack_damaged(p, "the checksum of its header", err);
  if (num_le32(h + 8) != EMBED_PACK_VERSION)
    return err_set(err, LODE_TOO_NEW,
                   "the model file %s is of version %u, and this lode reads version %d; `lode model install` "
                   "makes it again",
                   p->path, num_le32(h + 8), EMBED_PACK_VERSION);
  p->n_sections = num_le32(h + 12);
  p->length = num_le64(h + 16);
  uint64_t at = num_le64(h + 24), bytes = num_le64(h + 32);
  if (os_api->fstat(p->fd, &info) != 0) return err_errno(err, errno, p->path);
  if ((uint64_t)info.st_size != p->length)
    return pack_damaged(p, "it has another length than when it was written", err);
  if (p->n_sections > EMBED_PACK_MAX_SECTIONS || at > p->length || bytes > p->length - at || bytes < 4 ||
      bytes > EMBED_PACK_MAX_TABLE)
    return pack_damaged(p, "its table is outside of the file", err);
  unsigned char *table = mem_alloc((size_t)bytes);
  if (!table) return err_nomem(err);
  lode_status st = os_read_full(p->fd, table, (size_t)bytes, at, &got, err);
  if (st == LODE_OK && (got < bytes || crc32c_update(0, table, got) != num_le32(h + 40)))
    st = pack_damaged(p, "the checksum of its table", err);
  if (st == LODE_OK) st = pack_read_table(p, table, (size_t)bytes, at, err);
  mem_free(table);
  return st;
}

lode_status embed_pack_open(embed_pack *pack, const char *path, lode_error *err) {
  *pack = (embed_pack){.fd = -1};
  pack->path = str_dup(path, strlen(path));
  if (!pack->path) return err_nomem(err);
  pack->fd = os_open_regular(path);
  lode_status st = pack->fd < 0 ? err_errno(err, errno, path) : pack_read_head(pack, err);
  if (st != LODE_OK) embed_pack_close(pack);
  return st;
}

void embed_pack_close(embed_pack *pack) {
  if (pack->fd >= 0) os_api->close(pack->fd);
  mem_free(pack->path);
  mem_free(pack->identity);
  mem_free(pack->crcs);
  *pack = (embed_pack){.fd = -1};
}

const embed_pack_section *embed_pack_find(const embed_pack *pack, const char *name) {
  for (size_t i = 0; i < pack->n_sections; i++)
    if (strcmp(pack->sections[i].name, name) == 0) return &pack->sections[i];
  return NULL;
}

/* ---- Sections ---- */

static lode_status pack_check_chunk(const embed_pack *pack, const embed_pack_section *s, uint64_t chunk,
                                    const void *data, size_t bytes, lode_error *err) {
  if (embed_pack_crc(s->offset + chunk * s->chunk, data, bytes) == pack->crcs[s->first + chunk]) return LODE_OK;
  return pack_damaged(pack, s->name, err);
}

lode_status embed_pack_read_chunk(const embed_pack *pack, const embed_pack_section *s, uint64_t chunk, void *out,
                                  size_t *bytes, lode_error *err) {
  uint64_t at = chunk * s->chunk; /* `chunk` must be a chunk of the section */
  ENSURE(at < s->bytes, err);
  size_t want = s->bytes - at < s->chunk ? (size_t)(s->bytes - at) : s->chunk, got;
  TRY(os_read_full(pack->fd, out, want, s->offset + at, &got, err));
  if (got < want) return pack_damaged(pack, "it was cut short", err);
  *bytes = want;
  return pack_check_chunk(pack, s, chunk, out, want, err);
}

lode_status embed_pack_read(const embed_pack *pack, const embed_pack_section *s, void *out, lode_error *err) {
  size_t bytes;
  for (uint64_t chunk = 0; chunk * s->chunk < s->bytes; chunk++)
    TRY(embed_pack_read_chunk(pack, s, chunk, (char *)out + chunk * s->chunk, &bytes, err));
  return LODE_OK;
}

lode_status embed_pack_verify(const embed_pack *pack, lode_error *err) {
  lode_status st = LODE_OK;
  for (size_t i = 0; i < pack->n_sections && st == LODE_OK; i++) {
    const embed_pack_section *s = &pack->sections[i];
    void *buf = mem_alloc(s->chunk);
    if (!buf) return err_nomem(err);
    size_t bytes;
    for (uint64_t chunk = 0; chunk * s->chunk < s->bytes && st == LODE_OK; chunk++)
      st = embed_pack_read_chunk(pack, s, chunk, buf, &bytes, err);
    mem_free(buf);
  }
  return st;
}
