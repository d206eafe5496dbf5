/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_ignore.c - any patterns on any path: no crash, an end, and a path in an ignored folder is ignored.
 * The input is patterns, a NUL, a path. */
#include "scan/git.h"
#include "scan/ignore.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth) {
  if (!truth) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
  size_t n = nul ? (size_t)(nul - data) : size;
  lode_str patterns = {(const char *)data, n}, path = {nul ? (const char *)nul + 1 : "", nul ? size - n - 1 : 0};
  ignore_rules *ig = NULL;
  strbuf value = {0};
  lode_error err;
  require(ignore_new(&ig, &err) == LODE_OK);
  require(ignore_add(ig, IGNORE_GIT, STR_LIT(""), patterns, &err) == LODE_OK);
  require(ignore_add(ig, IGNORE_LODE, STR_LIT("a"), patterns, &err) == LODE_OK);
  for (size_t i = 0; i < path.len; i++)
    if (path.data[i] == '/' && ignore_match(ig, (lode_str){path.data, i}, true, NULL) == IGNORE_YES)
      require(ignore_match_path(ig, path, false));
  (void)ignore_match_path(ig, path, true);
  ignore_leave(ig, path);
  (void)ignore_glob_match(patterns, path);
  (void)ignore_glob_path(patterns, path);
  (void)git_config_excludes_file(patterns, &value);
  strbuf_release(&value);
  ignore_free(ig);
  return 0;
}
