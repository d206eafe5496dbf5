/* fuzz_ignore.c - any patterns on any path: no crash, an end, and a path in an ignored folder is ignored.
 * The input is patterns, a NUL, a path. */
#include "code/git.h"
#include "code/ignore.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth) {
  if (!truth) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
  size_t n = nul ? (size_t)(nul - data) : size;
  lode_str patterns = {(const char *)data, n}, path = {nul ? (const char *)nul + 1 : "", nul ? size - n - 1 : 0};
  lode__ignore *ig = NULL;
  strbuf value = {0};
  lode_error err;
  require(lode__ignore_new(&ig, &err) == LODE_OK);
  require(lode__ignore_add(ig, LODE__IGNORE_GIT, STR_LIT(""), patterns, &err) == LODE_OK);
  require(lode__ignore_add(ig, LODE__IGNORE_LODE, STR_LIT("a"), patterns, &err) == LODE_OK);
  for (size_t i = 0; i < path.len; i++)
    if (path.data[i] == '/' && lode__ignore_match(ig, (lode_str){path.data, i}, true, NULL) == LODE__IGNORE_YES)
      require(lode__ignore_path(ig, path, false));
  (void)lode__ignore_path(ig, path, true);
  lode__ignore_leave(ig, path);
  (void)lode__glob_match(patterns, path);
  (void)lode__glob_path(patterns, path);
  (void)lode__git_excludes_file(patterns, &value);
  strbuf_release(&value);
  lode__ignore_free(ig);
  return 0;
}
