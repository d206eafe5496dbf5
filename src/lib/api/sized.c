/* SPDX-License-Identifier: Apache-2.0 */
/* sized.c - structs of callers that were compiled with another lode.h. See sized.h. */
#include "api/sized.h"

enum { SIZED_MAX_BYTES = 4096 };

/* New fields must not lie where an old caller has padding, which may hold anything: structs end with a field. */
#define SIZED_ENDS_WITH(type, field)                                                                                   \
  _Static_assert(offsetof(type, field) + sizeof(((type *)0)->field) == sizeof(type), #type " ends with padding")
SIZED_ENDS_WITH(lode_open_options, log_ctx);
SIZED_ENDS_WITH(lode_collection_options, write_consistency);
SIZED_ENDS_WITH(lode_replacement, new_name);
SIZED_ENDS_WITH(lode_record, reserved);
SIZED_ENDS_WITH(lode_write_result, skipped);
SIZED_ENDS_WITH(lode_get_request, progress);
SIZED_ENDS_WITH(lode_query_request, explain);
SIZED_ENDS_WITH(lode_stats, committed_ms);
SIZED_ENDS_WITH(lode_salvage_report, lost);
SIZED_ENDS_WITH(lode_import_request, missing_ctx);
SIZED_ENDS_WITH(lode_import_report, skipped);
SIZED_ENDS_WITH(lode_embedder_options, key);
SIZED_ENDS_WITH(lode_reembed_request, progress);
SIZED_ENDS_WITH(lode_reembed_report, without_vector);
#if SIZE_MAX > UINT32_MAX
/* Passed by value, part of other structs, or allocated by callers everywhere: these never change. */
_Static_assert(sizeof(lode_str) == 16 && sizeof(lode_progress) == 16 && sizeof(lode_selection) == 80 &&
                   sizeof(lode_error) == 616,
               "a struct of a fixed size has changed");
#endif

lode_status api_check_size(size_t size, const char *type, lode_error *err) {
  if (size == 0 || size > SIZED_MAX_BYTES)
    return err_set(err, LODE_INVALID, "%zu bytes are no size of a %s: pass sizeof(%s)", size, type, type);
  return LODE_OK;
}

static bool sized_rest_is_zero(const void *theirs, size_t size, size_t own_size) {
  const unsigned char *bytes = theirs;
  for (size_t i = own_size; i < size; i++)
    if (bytes[i]) return false;
  return true;
}

lode_status api_take(void *own, size_t own_size, const void *theirs, size_t size, const char *type, lode_error *err) {
  memset(own, 0, own_size);
  if (!theirs) return LODE_OK;
  TRY(api_check_size(size, type, err));
  if (!sized_rest_is_zero(theirs, size, own_size))
    return err_set(err, LODE_INVALID,
                   "a field of %s is set that liblode " LODE_VERSION_TEXT " does not have: leave it zero, or use the "
                   "library that belongs to the lode.h that the program was compiled with",
                   type);
  memcpy(own, theirs, size < own_size ? size : own_size);
  return LODE_OK;
}

void api_give(void *theirs, size_t size, const void *own, size_t own_size) {
  if (!theirs) return;
  memcpy(theirs, own, size < own_size ? size : own_size);
  if (size > own_size) memset((char *)theirs + own_size, 0, size - own_size);
}

lode_status api_take_array(void **copy, size_t own_size, const void *theirs, size_t size, size_t n, const char *type,
                           lode_error *err) {
  size_t total;
  *copy = NULL;
  if (n == 0) return LODE_OK;
  TRY(api_check_size(size, type, err));
  if (!theirs) return err_set(err, LODE_INVALID, "n is %zu, but there is no array of %s", n, type);
  if (mem_mul_overflow(n, size, &total) || total > PTRDIFF_MAX)
    return err_set(err, LODE_INVALID, "n is %zu: no memory holds that many of %s", n, type);
  if (size == own_size) return LODE_OK;
  char *own = mem_calloc(n, own_size);
  if (!own) return err_nomem(err);
  for (size_t i = 0; i < n; i++) {
    lode_status st = api_take(own + i * own_size, own_size, (const char *)theirs + i * size, size, type, err);
    if (st == LODE_OK) continue;
    mem_free(own);
    if (err) err->record = i;
    return st;
  }
  *copy = own;
  return LODE_OK;
}
