/* json_edit.h - changing one value in a JSON text that people wrote, and nothing else.
 *
 * The text may have comments and trailing commas, as editors allow in settings. It is checked as a whole before anything is changed; what
 * is not JSON in this sense is refused. Every byte outside of the changed value stays. */
#ifndef LODE_SETUP_JSON_EDIT_H
#define LODE_SETUP_JSON_EDIT_H

#include "base/base.h"

/* The value at the path of keys (from the outermost object), as a part of text; absent when there is none. LODE_INVALID when the text is
 * not a JSON object. An empty text counts as {}. */
lode_status setup_json_find(lode_str text, const char *const *path, size_t n, lode_str *value, lode_error *err);
/* The text with that value (JSON) in that place; objects on the way are made. */
lode_status setup_json_set(lode_str text, const char *const *path, size_t n, lode_str value, strbuf *out, lode_error *err);
/* The text without that key. */
lode_status setup_json_remove(lode_str text, const char *const *path, size_t n, strbuf *out, lode_error *err);

#endif
