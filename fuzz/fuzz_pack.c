/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_pack.c - any bytes as a model pack: what verifies can be read, and nothing is read outside of it. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "embed/pack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char path[64];
  embed_pack pack;
  int fd = memfd_create("pack", 0);
  if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  lode_status opened = embed_pack_open(&pack, path, NULL);
  close(fd);
  if (opened != LODE_OK) return 0;
  lode_status st = embed_pack_verify(&pack, NULL);
  for (size_t i = 0; i < pack.n_sections; i++) {
    const embed_pack_section *s = &pack.sections[i];
    if (s->bytes > size) abort();
    char *out = malloc((size_t)s->bytes + 1);
    if (out && embed_pack_read(&pack, s, out, NULL) != LODE_OK && st == LODE_OK) abort();
    free(out);
  }
  embed_pack_close(&pack);
  return 0;
}
