/* SPDX-License-Identifier: Apache-2.0 */
/* pack_write.c - writing packs; see pack.h. */
#include "embed/pack.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/byteorder.h"
#include "os/os.h"
#include "embed/pack_bytes.h"

lode_status embed_pack_create(embed_pack_writer *w, const char *path, lode_error *err) {
  *w = (embed_pack_writer){.pack = {.fd = -1, .length = EMBED_PACK_HEADER_BYTES}};
  size_t len = strlen(path);
  w->pack.path = str_dup(path, len);
  w->temporary = mem_alloc(len + 48);
  if (!w->pack.path || !w->temporary) {
    embed_pack_discard(w);
    return err_nomem(err);
  }
  snprintf(w->temporary, len + 48, "%s.tmp-%016llx", path, (unsigned long long)rand_u64());
  w->pack.fd = OS_RETRY(os_api->open(w->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (w->pack.fd < 0) {
    lode_status st = err_errno(err, errno, w->temporary);
    mem_free(w->temporary); /* not ours to remove */
    w->temporary = NULL;
    embed_pack_discard(w);
    return st;
  }
  return LODE_OK;
}

lode_status embed_pack_add(embed_pack_writer *w, const char *name, uint32_t chunk, const void *data, size_t bytes,
                           lode_error *err) {
  embed_pack *p = &w->pack;
  ENSURE(p->n_sections < EMBED_PACK_MAX_SECTIONS && strlen(name) <= 16 && chunk > 0 && chunk <= EMBED_PACK_MAX_CHUNK,
         err);
  size_t chunks = bytes / chunk + (bytes % chunk != 0);
  if (!mem_grow(&p->crcs, &w->crcs_cap, p->n_crcs + chunks, sizeof *p->crcs)) return err_nomem(err);
  embed_pack_section *s = &p->sections[p->n_sections++];
  *s = (embed_pack_section){
      .offset = (p->length + 63) / 64 * 64, .bytes = bytes, .chunk = chunk, .first = (uint32_t)p->n_crcs};
  memcpy(s->name, name, strlen(name));
  TRY(os_write_full(p->fd, data, bytes, s->offset, err));
  for (size_t at = 0; at < bytes; at += chunk)
    p->crcs[p->n_crcs++] =
        embed_pack_crc(s->offset + at, (const char *)data + at, bytes - at < chunk ? bytes - at : chunk);
  p->length = s->offset + bytes;
  return LODE_OK;
}

static void pack_put_table(const embed_pack *p, const char *identity, strbuf *out) {
  unsigned char b[EMBED_PACK_SECTION_BYTES];
  num_put_le32(b, (uint32_t)strlen(identity));
  strbuf_add(out, b, 4);
  strbuf_addstr(out, identity);
  for (size_t i = 0; i < p->n_sections; i++) {
    const embed_pack_section *s = &p->sections[i];
    memcpy(b, s->name, 16);
    num_put_le64(b + 16, s->offset);
    num_put_le64(b + 24, s->bytes);
    num_put_le32(b + 32, s->chunk);
    num_put_le32(b + 36, s->first);
    strbuf_add(out, b, sizeof b);
  }
  for (size_t i = 0; i < p->n_crcs; i++) {
    num_put_le32(b, p->crcs[i]);
    strbuf_add(out, b, 4);
  }
}

lode_status embed_pack_finish(embed_pack_writer *w, const char *identity, lode_error *err) {
  embed_pack *p = &w->pack;
  strbuf table = {0};
  lode_status st = LODE_OK;
  pack_put_table(p, identity, &table);
  if (table.failed) {
    st = err_nomem(err);
    goto done;
  }
  unsigned char h[EMBED_PACK_HEADER_BYTES] = {0};
  memcpy(h, EMBED_PACK_MAGIC, 8);
  num_put_le32(h + 8, EMBED_PACK_VERSION);
  num_put_le32(h + 12, (uint32_t)p->n_sections);
  num_put_le64(h + 16, p->length + table.len);
  num_put_le64(h + 24, p->length);
  num_put_le64(h + 32, table.len);
  num_put_le32(h + 40, crc32c_update(0, table.data, table.len));
  num_put_le32(h + 60, crc32c_update(0, h, 60));
  TRY_GOTO(os_write_full(p->fd, table.data, table.len, p->length, err));
  TRY_GOTO(os_write_full(p->fd, h, sizeof h, 0, err));
  if (OS_RETRY(os_api->fsync(p->fd)) != 0) {
    st = err_errno(err, errno, w->temporary);
    goto done;
  }
  if (os_api->rename(w->temporary, p->path) != 0) {
    st = err_errno(err, errno, p->path);
    goto done;
  }
  mem_free(w->temporary);
  w->temporary = NULL;
  st = os_sync_parent_dir(p->path, err);
done:
  strbuf_release(&table);
  return st;
}

void embed_pack_discard(embed_pack_writer *w) {
  if (w->temporary) os_api->unlink(w->temporary);
  mem_free(w->temporary);
  w->temporary = NULL;
  embed_pack_close(&w->pack);
}
