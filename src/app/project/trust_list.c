/* SPDX-License-Identifier: Apache-2.0 */
/* trust_list.c - see trust_list.h. */
#include "project/trust_list.h"

#include "base/crc32c.h"
#include "scan/files.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
  TRUST_LIST_MAX_BYTES = 4 << 20,
  TRUST_LIST_HEAD_BYTES = 24,
  TRUST_LOCK_WAIT_MS = 3000,
  TRUST_LOCK_POLL_US = 5000
};
static const char trust_list_head_format[] = "lode-trusted 1 %08x\n";

static const char *const trust_level_names[] = {"adopted", "made", "trusted"};
const char *trust_level_name(trust_level level) { return trust_level_names[level]; }

void trust_entry_release(trust_entry *entry) {
  strbuf_release(&entry->path);
  strbuf_release(&entry->settings);
  memset(entry, 0, sizeof *entry);
}

const char *trust_owner_problem(const struct stat *st) {
  if (!files_is_own_uid(st->st_uid)) return "belongs to another user";
  if (st->st_mode & (S_IWGRP | S_IWOTH)) return TRUST_WRITABLE_TEXT;
  return "";
}

/* ---- Path of the list ---- */

static lode_status trust_list_path(strbuf *path, const char *name, lode_error *err) {
  const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
  path->len = 0;
  if (data && data[0] == '/')
    strbuf_addf(path, "%s/lode/%s", data, name);
  else if (home && home[0] == '/')
    strbuf_addf(path, "%s/.local/share/lode/%s", home, name);
  else
    return err_set(err, LODE_NOT_FOUND, "neither HOME nor XDG_DATA_HOME is set");
  strbuf_addch(path, '\0');
  return path->failed ? err_nomem(err) : LODE_OK;
}

/* ---- Reading ---- */

static void trust_list_reject(trust_list *list, const char *path, bool damaged, const char *why) {
  list->text.len = 0;
  list->damaged = damaged;
  snprintf(list->note, sizeof list->note, "%.250s %.100s: no folder is known as trusted", path, why);
}

static void trust_list_check_text(trust_list *list, const char *path) {
  unsigned stated = 0;
  char head[TRUST_LIST_HEAD_BYTES + 1] = "";
  strbuf *t = &list->text;
  if (t->len >= TRUST_LIST_HEAD_BYTES) memcpy(head, t->data, TRUST_LIST_HEAD_BYTES);
  if (sscanf(head, "lode-trusted 1 %8x", &stated) != 1 || head[TRUST_LIST_HEAD_BYTES - 1] != '\n' ||
      t->data[t->len - 1] != '\n' ||
      crc32c_update(0, t->data + TRUST_LIST_HEAD_BYTES, t->len - TRUST_LIST_HEAD_BYTES) != stated) {
    trust_list_reject(list, path, true, "is damaged");
    return;
  }
  memmove(t->data, t->data + TRUST_LIST_HEAD_BYTES, t->len - TRUST_LIST_HEAD_BYTES);
  t->len -= TRUST_LIST_HEAD_BYTES;
}

static void trust_list_read_path(trust_list *list, const char *path) {
  struct stat st;
  size_t got = 0;
  lode_status links = files_check_link_owners(path, NULL);
  if (links != LODE_OK) {
    bool foreign = links == LODE_REFUSED;
    trust_list_reject(list, path, foreign,
                      foreign ? "leads through a link that belongs to another user" : "cannot be read: out of memory");
    return;
  }
  int fd = os_open_regular(path);
  if (fd < 0 && (errno == ENXIO || errno == EISDIR))
    trust_list_reject(list, path, true, "is not a file");
  else if (fd < 0 && errno != ENOENT && errno != ENOTDIR)
    trust_list_reject(list, path, errno == ELOOP, strerror(errno));
  if (fd < 0) return;
  if (OS_RETRY(os_api->fstat(fd, &st)) < 0)
    trust_list_reject(list, path, false, strerror(errno));
  else if (*trust_owner_problem(&st))
    trust_list_reject(list, path, true, trust_owner_problem(&st));
  else if (st.st_size > TRUST_LIST_MAX_BYTES)
    trust_list_reject(list, path, true, "is too long");
  else {
    char *buf = strbuf_reserve(&list->text, (size_t)st.st_size + 1);
    if (!buf || os_read_full(fd, buf, (size_t)st.st_size, 0, &got, NULL) != LODE_OK) {
      trust_list_reject(list, path, false, "cannot be read");
    } else {
      list->text.len = got;
      trust_list_check_text(list, path);
    }
  }
  os_api->close(fd);
}

void trust_list_read(trust_list *list) {
  strbuf path = {0};
  memset(list, 0, sizeof *list);
  lode_status st = trust_list_path(&path, "trusted", NULL);
  if (st == LODE_OK)
    trust_list_read_path(list, path.data);
  else if (st == LODE_NOMEM)
    trust_list_reject(list, "the list of trusted folders", false, "cannot be read: out of memory");
  strbuf_release(&path);
}

void trust_list_release(trust_list *list) { strbuf_release(&list->text); }

/* ---- Entries ---- */

/* The start of a path's line. */
static void trust_list_put_path(strbuf *out, const char *path) {
  strbuf shown = {0};
  files_path_escape(&shown, str_of(path));
  strbuf_addstr(out, "{\"path\":");
  if (shown.failed)
    out->failed = true;
  else
    json_put_string(out, (lode_str){shown.data ? shown.data : "", shown.len});
  strbuf_addch(out, ',');
  strbuf_release(&shown);
}

static void trust_list_put_entry(strbuf *out, const trust_entry *e) {
  trust_list_put_path(out, e->path.data);
  strbuf_addf(out, "\"level\":\"%s\",\"id\":\"%s\",\"file\":\"%s\",\"settings\":", trust_level_names[e->level], e->id,
              e->file);
  strbuf_add(out, e->settings.len ? e->settings.data : "{}", e->settings.len ? e->settings.len : 2);
  strbuf_addstr(out, e->tracked ? ",\"tracked\":true}\n" : "}\n");
}

static lode_str trust_list_json_text(const json_doc *json, const char *key) {
  uint32_t i = json_get(json, 0, str_of(key));
  return i && json->nodes[i].type == JSON_NODE_STRING ? json->nodes[i].u.s : (lode_str){"", 0};
}

/* Older lists have the device first, whose number may change at the next boot: "8.1-INODE-SECONDS.NANOSECONDS". */
static lode_str trust_without_device(lode_str file) {
  const char *dash = file.len ? memchr(file.data, '-', file.len) : NULL;
  size_t rest = dash ? file.len - (size_t)(dash + 1 - file.data) : 0;
  return rest && memchr(dash + 1, '-', rest) ? (lode_str){dash + 1, rest} : file;
}

static bool trust_list_parse_entry(lode_str line, trust_entry *e) {
  json_doc json = {0};
  bool ok = json_parse(&json, line, NULL, NULL) == LODE_OK && json.nodes[0].type == JSON_NODE_OBJECT;
  e->path.len = e->settings.len = 0;
  if (ok) {
    lode_str path = trust_list_json_text(&json, "path"), level = trust_list_json_text(&json, "level");
    lode_str id = trust_list_json_text(&json, "id");
    lode_str file = trust_without_device(trust_list_json_text(&json, "file"));
    uint32_t settings = json_get(&json, 0, STR_LIT("settings"));
    uint32_t tracked = json_get(&json, 0, STR_LIT("tracked"));
    files_path_unescape(&e->path, path);
    strbuf_addch(&e->path, '\0');
    e->level = TRUST_LEVEL_ADOPTED;
    for (size_t i = 0; i < sizeof trust_level_names / sizeof *trust_level_names; i++)
      if (str_eq(level, str_of(trust_level_names[i]))) e->level = (trust_level)i;
    snprintf(e->id, sizeof e->id, "%.*s", (int)id.len, id.data);
    snprintf(e->file, sizeof e->file, "%.*s", (int)file.len, file.data);
    e->tracked = tracked && json.nodes[tracked].type == JSON_NODE_TRUE;
    if (settings && json.nodes[settings].type == JSON_NODE_OBJECT && json.nodes[settings].u.count)
      json_put_node(&e->settings, &json, settings);
    ok = !e->path.failed && !e->settings.failed;
  }
  json_release(&json);
  return ok;
}

/* The line that starts with `begin`; len 0: none. */
static lode_str trust_list_find_line(const strbuf *all, lode_str begin) {
  const char *p = all->data, *end = p + all->len;
  while (p && (p = memmem(p, (size_t)(end - p), begin.data, begin.len)) != NULL) {
    if (p == all->data || p[-1] == '\n')
      return (lode_str){p, (size_t)((const char *)memchr(p, '\n', (size_t)(end - p)) - p)};
    p++;
  }
  return (lode_str){NULL, 0};
}

bool trust_list_find(const trust_list *list, const char *path, trust_entry *entry) {
  strbuf begin = {0};
  lode_str line = {0};
  if (!list->text.len) return false;
  trust_list_put_path(&begin, path);
  if (!begin.failed) line = trust_list_find_line(&list->text, (lode_str){begin.data, begin.len});
  strbuf_release(&begin);
  return line.len && trust_list_parse_entry(line, entry);
}

bool trust_list_next(const trust_list *list, size_t *at, trust_entry *entry) {
  while (*at < list->text.len) {
    const char *p = list->text.data + *at, *end = memchr(p, '\n', list->text.len - *at);
    if (!end) return false;
    *at += (size_t)(end - p) + 1;
    if (trust_list_parse_entry((lode_str){p, (size_t)(end - p)}, entry)) return true;
  }
  return false;
}

bool trust_list_find_file(const trust_list *list, const char *file, trust_entry *entry) {
  char part[TRUST_FILE_CHARS + 16];
  size_t at = 0;
  if (!*file || !list->text.len) return false;
  snprintf(part, sizeof part, "%s\"", file); /* a device may precede it */
  if (!memmem(list->text.data, list->text.len, part, strlen(part))) return false;
  while (trust_list_next(list, &at, entry))
    if (strcmp(entry->file, file) == 0) return true;
  return false;
}

/* ---- Changing ---- */

static lode_status trust_list_make_dir(const char *path, lode_error *err) {
  struct stat st;
  strbuf folder = {0};
  lode_status status = files_make_parents(path, err);
  strbuf_add(&folder, path, (size_t)(strrchr(path, '/') - path));
  strbuf_addch(&folder, '\0');
  if (status == LODE_OK && folder.failed) status = err_nomem(err);
  if (status == LODE_OK && OS_RETRY(os_api->stat(folder.data, &st)) < 0) status = err_errno(err, errno, folder.data);
  /* Files that root creates there would not be readable by the owner */
  if (status == LODE_OK && st.st_uid != geteuid())
    status = err_set(err, LODE_REFUSED, "%.300s belongs to another user", folder.data);
  strbuf_release(&folder);
  return status;
}

static lode_status trust_list_lock(int *fd, lode_error *err) {
  strbuf path = {0};
  uint64_t until = os_api->now_ns() + (uint64_t)TRUST_LOCK_WAIT_MS * 1000000;
  lode_status st;
  *fd = -1;
  TRY_GOTO(trust_list_path(&path, "trusted.lock", err));
  TRY_GOTO(trust_list_make_dir(path.data, err));
  *fd = OS_RETRY(os_api->open(path.data, O_RDWR | O_CREAT | O_NONBLOCK | O_NOFOLLOW, 0600));
  if (*fd < 0) TRY_GOTO(err_errno(err, errno, path.data));
  while (OS_RETRY(os_api->lock(*fd, F_WRLCK, 0, 1)) < 0) {
    if (errno != EAGAIN && errno != EACCES) TRY_GOTO(err_errno(err, errno, path.data));
    if (os_api->now_ns() >= until) TRY_GOTO(err_set(err, LODE_BUSY, "another process holds %.300s", path.data));
    os_api->sleep_us(TRUST_LOCK_POLL_US);
  }
done:
  if (st != LODE_OK && *fd >= 0) {
    os_api->close(*fd);
    *fd = -1;
  }
  strbuf_release(&path);
  return st;
}

static bool trust_list_dir_is_gone(lode_str line) {
  trust_entry e = {0};
  struct stat st;
  bool gone = trust_list_parse_entry(line, &e) && OS_RETRY(os_api->stat(e.path.data, &st)) < 0 && errno == ENOENT;
  trust_entry_release(&e);
  return gone;
}

/* Copies all lines except that of `path`. If there are too many, drops those whose folders are gone, then the
 * oldest. */
static lode_status trust_list_copy_lines(const trust_list *list, const char *path, size_t max, strbuf *out,
                                         bool *was_there, lode_error *err) {
  strbuf begin = {0};
  size_t n = 0;
  const char *p = list->text.data, *end = p + list->text.len;
  trust_list_put_path(&begin, path);
  for (size_t i = 0; i < list->text.len; i++) n += p[i] == '\n';
  while (p < end && !begin.failed) {
    size_t len = (size_t)((const char *)memchr(p, '\n', (size_t)(end - p)) - p) + 1;
    bool same = len > begin.len && memcmp(p, begin.data, begin.len) == 0;
    if (same || (n > max && trust_list_dir_is_gone((lode_str){p, len - 1})))
      n--;
    else
      strbuf_add(out, p, len);
    *was_there = *was_there || same;
    p += len;
  }
  for (; n > max && !out->failed; n--) {
    size_t first = (size_t)((char *)memchr(out->data, '\n', out->len) - out->data) + 1;
    memmove(out->data, out->data + first, out->len - first);
    out->len -= first;
  }
  bool failed = out->failed || begin.failed;
  strbuf_release(&begin);
  return failed ? err_nomem(err) : LODE_OK;
}

static lode_status trust_list_write(const char *path, const strbuf *lines, lode_error *err) {
  strbuf all = {0};
  strbuf_addf(&all, trust_list_head_format, crc32c_update(0, lines->data ? lines->data : "", lines->len));
  strbuf_add(&all, lines->data ? lines->data : "", lines->len);
  lode_status st = all.failed ? err_nomem(err) : files_write(path, (lode_str){all.data, all.len}, err);
  strbuf_release(&all);
  return st;
}

static bool trust_list_is_own_file(const char *path) {
  struct stat st;
  return OS_RETRY(os_api->lstat_at(AT_FDCWD, path, &st)) == 0 && S_ISREG(st.st_mode) && files_is_own_uid(st.st_uid);
}

/* The file to write: the target of a link, which may not exist yet. If links form a loop, belong to another user, or
 * lead to something that is not a file of this user's, the link itself is replaced. */
static lode_status trust_list_find_target(const char *path, bool damaged, strbuf *target, lode_error *err) {
  lode_status st = files_check_link_owners(path, err);
  if (st == LODE_NOMEM) return st;
  if (st == LODE_REFUSED || files_resolve_links(path, target, NULL) != LODE_OK ||
      (damaged && !trust_list_is_own_file(target->data))) {
    target->len = 0;
    strbuf_add(target, path, strlen(path) + 1);
  }
  return target->failed ? err_nomem(err) : LODE_OK;
}

/* Renames a list that cannot be used; an earlier one is overwritten. */
static lode_status trust_list_set_aside(const char *path, lode_error *err) {
  strbuf aside = {0};
  strbuf_addf(&aside, "%s.damaged", path);
  strbuf_addch(&aside, '\0');
  lode_status st = aside.failed ? err_nomem(err) : LODE_OK;
  if (st == LODE_OK && OS_RETRY(os_api->rename(path, aside.data)) < 0 && errno != ENOENT)
    st = err_errno(err, errno, path);
  strbuf_release(&aside);
  return st;
}

/* Was the store listed as the user's own after the one who adopts it had read the list? */
static bool trust_list_knows_better(const trust_list *list, const char *path, const trust_entry *entry) {
  trust_entry now = {0};
  bool better = entry && entry->level == TRUST_LEVEL_ADOPTED && entry->id[0] && trust_list_find(list, path, &now) &&
                now.level != TRUST_LEVEL_ADOPTED && strcmp(now.id, entry->id) == 0;
  trust_entry_release(&now);
  return better;
}

/* entry NULL: removes the path's entry. */
static lode_status trust_list_update(const char *path, const trust_entry *entry, bool *was_there, lode_error *err) {
  trust_list list = {0};
  strbuf file = {0}, target = {0}, lines = {0};
  int lock = -1;
  lode_status st;
  *was_there = false;
  TRY_GOTO(trust_list_lock(&lock, err));
  TRY_GOTO(trust_list_path(&file, "trusted", err));
  trust_list_read(&list);
  st = LODE_OK;
  if (trust_list_knows_better(&list, path, entry)) goto done;
  TRY_GOTO(trust_list_find_target(file.data, list.damaged, &target, err));
  if (list.damaged)
    TRY_GOTO(trust_list_set_aside(target.data, err));
  else if (list.note[0])
    TRY_GOTO(err_set(err, LODE_IO, "%s", list.note));
  TRY_GOTO(
      trust_list_copy_lines(&list, path, entry ? TRUST_MAX_ENTRIES - 1 : TRUST_MAX_ENTRIES, &lines, was_there, err));
  if (entry) trust_list_put_entry(&lines, entry);
  if (lines.failed) TRY_GOTO(err_nomem(err));
  if (entry || *was_there) TRY_GOTO(trust_list_write(target.data, &lines, err));
done:
  if (lock >= 0) os_api->close(lock);
  trust_list_release(&list);
  strbuf_release(&file);
  strbuf_release(&target);
  strbuf_release(&lines);
  return st;
}

lode_status trust_list_put(const trust_entry *entry, lode_error *err) {
  bool unused;
  return trust_list_update(entry->path.data, entry, &unused, err);
}

lode_status trust_list_remove(const char *path, bool *was_there, lode_error *err) {
  return trust_list_update(path, NULL, was_there, err);
}
