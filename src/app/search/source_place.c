/* SPDX-License-Identifier: Apache-2.0 */
/* source_place.c - see source_place.h. */
#include "search/source_place.h"

#include <fcntl.h>

const char *search_freshness_name(search_freshness freshness) {
  static const char *const names[] = {NULL, "changed", "gone"};
  return names[freshness];
}

/* Takes the unescaped bytes, because \x2e\x2e is .. too. */
static bool project_reader_is_inside(lode_str path) {
  if (path.len == 0 || memchr(path.data, '\0', path.len)) return false;
  for (size_t at = 0; at <= path.len;) {
    const char *slash = memchr(path.data + at, '/', path.len - at);
    size_t n = slash ? (size_t)(slash - path.data) - at : path.len - at;
    const char *name = path.data + at;
    if (n == 0 || (n == 1 && name[0] == '.') || (n == 2 && name[0] == '.' && name[1] == '.')) return false;
    at += n + 1;
  }
  return true;
}

bool search_path_is_inside(lode_str shown) {
  strbuf raw = {0};
  files_path_unescape(&raw, shown);
  bool inside = !raw.failed && project_reader_is_inside((lode_str){raw.data ? raw.data : "", raw.len});
  strbuf_release(&raw);
  return inside;
}

void search_file_reader_open(search_file_reader *p, const char *root) {
  *p = (search_file_reader){.fd = -1, .nowhere = !root[0]};
  if (!p->nowhere) p->fd = OS_RETRY(os_api->open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
}

void search_file_reader_close(search_file_reader *p) {
  if (p->fd >= 0) os_api->close(p->fd);
  strbuf_release(&p->raw);
  strbuf_release(&p->text);
  p->fd = -1;
}

/* Returns -1 with errno set on failure. */
static int project_reader_open_file(search_file_reader *p, lode_str shown, int flags) {
  p->raw.len = 0;
  files_path_unescape(&p->raw, shown);
  strbuf_addch(&p->raw, '\0');
  errno = p->raw.failed ? ENOMEM : ENOENT;
  if (p->raw.failed || p->fd < 0 || !project_reader_is_inside((lode_str){p->raw.data, p->raw.len - 1})) return -1;
  return OS_RETRY(os_api->open_below(p->fd, p->raw.data, flags | O_CLOEXEC, 0));
}

static lode_status project_reader_read_file(search_file_reader *p, lode_str shown, size_t max, bool *found,
                                            lode_error *err) {
  struct stat s;
  size_t got = 0;
  *found = false;
  p->text.len = 0;
  int fd = project_reader_open_file(p, shown, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return errno == ENOMEM ? err_nomem(err) : LODE_OK;
  bool whole =
      OS_RETRY(os_api->fstat(fd, &s)) == 0 && S_ISREG(s.st_mode) && s.st_size >= 0 && (uint64_t)s.st_size <= max;
  char *buf = whole ? strbuf_reserve(&p->text, (size_t)s.st_size + 1) : NULL;
  if (buf && os_read_full(fd, buf, (size_t)s.st_size, 0, &got, NULL) == LODE_OK) {
    p->text.len = got;
    *found = true;
  }
  os_api->close(fd);
  return whole && !buf ? err_nomem(err) : LODE_OK;
}

/* ---- Freshness ---- */

/* mtime can be set by anyone (touch -r), ctime cannot: it must be earlier than the time when the file was read. */
static bool project_reader_stat_matches(const struct stat *s, const indexer_file_state *state) {
  return os_mtime_ns(s) == state->mtime_ns && (uint64_t)s->st_size == state->size &&
         os_ctime_ns(s) / 1000000 < (int64_t)state->at_ms;
}

/* Reads the file into p->text; *same when it has the digest of the state. */
static lode_status project_reader_read_same(search_file_reader *p, lode_str shown, const indexer_file_state *state,
                                            bool *same, lode_error *err) {
  uint8_t digest[INDEXER_DIGEST_BYTES];
  TRY(project_reader_read_file(p, shown, (size_t)state->size, same, err));
  if (!*same) return LODE_OK;
  indexer_digest_of(p->text.data ? p->text.data : "", p->text.len, digest);
  *same = p->text.len == state->size && memcmp(digest, state->hash, sizeof digest) == 0;
  return LODE_OK;
}

static lode_status project_reader_check_file(search_file_reader *p, lode_str shown, const indexer_file_state *state,
                                             search_freshness *out, lode_error *err) {
  struct stat s;
  *out = SEARCH_FILE_CHANGED;
  int fd = project_reader_open_file(p, shown, OS_OPEN_STAT);
  if (fd < 0) {
    if (errno == ENOMEM) return err_nomem(err);
    if (errno == ENOENT || errno == ENOTDIR) *out = SEARCH_FILE_GONE;
    return LODE_OK;
  }
  bool known = OS_RETRY(os_api->fstat(fd, &s)) == 0 && S_ISREG(s.st_mode) && state;
  os_api->close(fd);
  if (!known || (uint64_t)s.st_size != state->size) return LODE_OK;
  if (project_reader_stat_matches(&s, state)) {
    *out = SEARCH_FILE_FRESH;
    return LODE_OK;
  }
  bool same;
  TRY(project_reader_read_same(p, shown, state, &same, err));
  if (same) *out = SEARCH_FILE_FRESH;
  return LODE_OK;
}

static const lode_row *project_reader_row_of(const lode_result *rows, lode_str id) {
  for (size_t i = 0; i < lode_result_count(rows); i++)
    if (str_eq(lode_result_at(rows, i)->id, id)) return lode_result_at(rows, i);
  return NULL;
}

lode_status search_file_reader_check(search_file_reader *p, lode_collection *files, const lode_str *paths, size_t n,
                                     search_freshness *out, lode_error *err) {
  lode_get_request get = {.select = {.ids = paths, .n_ids = n}, .include = LODE_METADATA};
  lode_result *rows = NULL;
  json_doc json = {0};
  lode_status st = LODE_OK;
  if (p->nowhere) memset(out, 0, n * sizeof *out); /* SEARCH_FILE_FRESH: nothing says otherwise */
  if (n == 0 || p->nowhere) return LODE_OK;
  if (files) st = lode_get(files, &get, &rows, err);
  for (size_t i = 0; i < n && st == LODE_OK; i++) {
    indexer_file_state state;
    const lode_row *row = project_reader_row_of(rows, paths[i]);
    bool known = row && indexer_file_state_parse(row->metadata, &json, &state);
    st = project_reader_check_file(p, paths[i], known ? &state : NULL, &out[i], err);
  }
  json_release(&json);
  lode_result_free(rows);
  return st;
}

lode_status search_file_reader_read(search_file_reader *p, lode_collection *files, lode_str shown, bool *found,
                                    lode_error *err) {
  lode_get_request get = {.select = {.ids = &shown, .n_ids = 1}, .include = LODE_METADATA};
  lode_result *rows = NULL;
  json_doc json = {0};
  indexer_file_state state;
  *found = false;
  if (p->fd < 0 || !files) return LODE_OK;
  TRY(lode_get(files, &get, &rows, err));
  const lode_row *row = project_reader_row_of(rows, shown);
  bool indexed = row && indexer_file_state_parse(row->metadata, &json, &state) && state.skip == SCAN_SKIP_NONE &&
                 state.size <= LANG_MAX_TEXT;
  lode_status st = indexed ? project_reader_read_same(p, shown, &state, found, err) : LODE_OK;
  json_release(&json);
  lode_result_free(rows);
  return st;
}
