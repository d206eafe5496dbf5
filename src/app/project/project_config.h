/* SPDX-License-Identifier: Apache-2.0 */
/* project_config.h - a project's settings: ROOT/.lode/config.json, one JSON object with the keys below, all optional.
 *
 * CONFIG_KEYS lists every key with its kind, fallback and meaning; `lode config list` shows it. A file that cannot be
 * parsed, or a value of the wrong kind, is an error that names the file or the key; the file is never overwritten
 * then. */
#ifndef LODE_PROJECT_PROJECT_CONFIG_H
#define LODE_PROJECT_PROJECT_CONFIG_H

#include "base/json.h"
#include "os/store_files.h"

/* X(id, "key", kind, "choices", "fallback", "meaning"); for a number, "choices" is its range. */
#define CONFIG_KEYS(X)                                                                                                 \
  X(MODEL, "model", TEXT, NULL, "code",                                                                                \
    "what makes the vectors: code (static, instant), minilm, another model of `lode model list`, or none")             \
  X(QUALITY, "quality", BOOL, NULL, "false", "a second vector for each chunk, by MiniLM, made when there is time")     \
  X(SEARCH_MODE, "search.mode", CHOICE, "hybrid|vector|text", "hybrid", "how `lode search` searches")                  \
  X(SEARCH_LIMIT, "search.limit", INT, "1 to 1000", "10", "how many results `lode search` shows")                      \
  X(SEARCH_REFRESH, "search.refresh", CHOICE, "off|quick|auto", "quick",                                               \
    "search brings changed files up to date first: if that is quick, always (auto), never")                            \
  X(INDEX_MAX_FILE, "index.max_file", INT, NULL, "1048576", "larger files are skipped, in bytes")                      \
  X(INDEX_HIDDEN, "index.hidden", BOOL, NULL, "false", "index files and folders whose names begin with a dot")         \
  X(INDEX_GENERATED, "index.generated", BOOL, NULL, "false", "index minified and generated files")                     \
  X(INDEX_EXCLUDE, "index.exclude", TEXT, NULL, "",                                                                    \
    "left out besides what .gitignore says: patterns as in .lodeignore, with commas between them")                     \
  X(INDEX_EXTENSIONS, "index.extensions", TEXT, NULL, "", "index only files that end so: py, js; empty: all")          \
  X(INDEX_SECRETS, "index.secrets", CHOICE, "mask|skip|index", "mask",                                                 \
    "mask: key files are skipped, secrets inside others masked; skip: files with secrets are skipped; index: all as "  \
    "it is")                                                                                                           \
  X(INDEX_WORKERS, "index.workers", INT, "0 to 64", "0", "processes that parse; 0 = as many as there are processors")  \
  X(WATCH_DEBOUNCE, "watch.debounce_ms", INT, NULL, "200", "how long a file must be quiet before it is indexed")       \
  X(WATCH_RESCAN, "watch.rescan_s", INT, NULL, "600",                                                                  \
    "how often the whole tree is looked at beside the events; 0 = never")

typedef enum config_key {
#define CONFIG_ENUM(id, key, kind, choices, fallback, about) CONFIG_##id,
  CONFIG_KEYS(CONFIG_ENUM)
#undef CONFIG_ENUM
      CONFIG_COUNT,
} config_key;

typedef enum config_kind {
  CONFIG_KIND_TEXT,
  CONFIG_KIND_CHOICE,
  CONFIG_KIND_INT,
  CONFIG_KIND_BOOL,
} config_kind;

typedef struct config_entry {
  const char *key;
  config_kind kind;
  const char *choices, *fallback, *about;
} config_entry;
extern const config_entry config_table[CONFIG_COUNT];

typedef struct config_values {
  char *values[CONFIG_COUNT]; /* NULL: not set */
  char *held[CONFIG_COUNT];   /* set, but suppressed (trust.h) */
} config_values;

/* Does the value have effects beyond the project's folder: does it send or read something elsewhere, write when
 * nothing should be written, or put secrets into answers? All other settings only say which files are indexed and how
 * much is shown. */
bool config_reaches_out(config_key key, lode_str value);
/* Suppresses a value: the fallback applies, but config_save() keeps the value. */
void config_suppress(config_values *config, config_key key);

/* Reads FOLDER/config.json; without the file nothing is set. */
LODE_MUST lode_status config_load(config_values *config, const char *folder, lode_error *err);
void config_release(config_values *config);
/* CONFIG_COUNT when there is no such key. */
config_key config_find(lode_str key);
const char *config_text(const config_values *config, config_key key);
uint64_t config_int(const config_values *config, config_key key);
bool config_bool(const config_values *config, config_key key);
/* Checks the value. value.data NULL: back to the fallback. */
LODE_MUST lode_status config_set(config_values *config, config_key key, lode_str value, lode_error *err);
/* Writes FOLDER/config.json; keys in the file that this version does not know are kept. */
LODE_MUST lode_status config_save(const config_values *config, const char *folder, lode_error *err);

#endif
