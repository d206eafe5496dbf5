/* SPDX-License-Identifier: Apache-2.0 */
/* json_edit.h - changes one value in a JSON text written by people, and nothing else.
 *
 * The text may have comments and trailing commas, as editors allow in settings. It is checked completely before
 * anything is changed; a text that is not JSON in this sense is refused. Every byte outside the changed value stays.
 */
#ifndef LODE_SETUP_JSON_EDIT_H
#define LODE_SETUP_JSON_EDIT_H

#include "base/base.h"

/* The value at the path of keys (from the outermost object), as a part of text; no data if there is none.
 * LODE_INVALID if the text is not a JSON object. An empty text counts as {}. */
LODE_MUST lode_status setup_json_find(lode_str text, const char *const *path, size_t n, lode_str *value,
                                      lode_error *err);
/* The text with that value (JSON) at that path; missing objects are created. */
LODE_MUST lode_status setup_json_set(lode_str text, const char *const *path, size_t n, lode_str value, strbuf *out,
                                     lode_error *err);
/* The text without that key. */
LODE_MUST lode_status setup_json_remove(lode_str text, const char *const *path, size_t n, strbuf *out, lode_error *err);

#endif
