/* SPDX-License-Identifier: Apache-2.0 */
/* tar.h - reads the files of a tar stream from standard input, one after the other, each whole in memory.
 *
 * What it knows: ustar and GNU names, GNU long names, pax "path" records. What it does not know it steps over. A stream
 * that is cut short or is not tar simply ends: the miner takes what it can get.
 */
#ifndef TRAIN_TAR_H
#define TRAIN_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct tar_file {
  char path[1024];
  char *data; /* with a NUL after it */
  size_t len;
} tar_file;

/* True while there is a plain file; files of more than max_bytes and those that `wanted` refuses are stepped over. The
 * memory is the reader's: valid until the next call. */
bool tar_next(FILE *in, size_t max_bytes, bool (*wanted)(const char *path), tar_file *file);
void tar_release(tar_file *file);

#endif
