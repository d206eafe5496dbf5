/* SPDX-License-Identifier: Apache-2.0 */
/* trust.c - see trust.h. */
#include "project/trust.h"

#include "scan/files.h"
#include "scan/git_index.h"
#include "project/trust_list.h"
#include "embed/embed.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

enum { TRUST_OPEN_MS = 2000 };

static const char *const trust_state_names[] = {"named", "none", "ours", "adopted", "untrusted", "foreign"};
const char *trust_state_name(trust_state state) { return trust_state_names[state]; }

void trust_release(trust_info *trust) {
  strbuf_release(&trust->settings);
  memset(trust, 0, sizeof *trust);
}

void trust_report(const trust_info *trust, void (*note)(void *ctx, const char *text), void *ctx) {
  if (note && trust->list_note[0]) note(ctx, trust->list_note);
  if (note && trust->note[0]) note(ctx, trust->note);
}

/* ---- The folder ---- */

static bool trust_stat_file(const char *folder, const char *name, struct stat *st) {
  strbuf path = {0};
  bool there = files_join(&path, folder, name, NULL) == LODE_OK && os_api->lstat_at(AT_FDCWD, path.data, st) == 0;
  strbuf_release(&path);
  return there;
}

bool trust_has_store(const char *folder) {
  struct stat st;
  return trust_stat_file(folder, "lode.db", &st);
}

/* The owner's private group, as under umask 002: the primary group, of the same name, without other members. */
static bool trust_is_private_group(const struct stat *st) {
  char user_text[4096], group_text[16384];
  struct passwd user, *u = NULL;
  struct group group, *g = NULL;
  if (getpwuid_r(st->st_uid, &user, user_text, sizeof user_text, &u) != 0 || !u || u->pw_gid != st->st_gid)
    return false;
  if (getgrgid_r(st->st_gid, &group, group_text, sizeof group_text, &g) != 0 || !g ||
      strcmp(g->gr_name, u->pw_name) != 0)
    return false;
  for (char **member = g->gr_mem; *member; member++)
    if (strcmp(*member, u->pw_name) != 0) return false;
  return true;
}

static const char *trust_writable_by(struct stat *st) {
  if ((st->st_mode & S_IWGRP) && trust_is_private_group(st)) st->st_mode &= ~(mode_t)S_IWGRP;
  return trust_owner_problem(st);
}

const char *trust_foreign_reason(const char *folder) {
  static const char *const files[] = {"lode.db", STOREFILE_CONFIG};
  struct stat st;
  if (files_trusts_everybody() || os_api->stat(folder, &st) < 0) return "";
  const char *why = trust_writable_by(&st);
  bool closed = (st.st_mode & (S_IXGRP | S_IXOTH)) == 0;
  for (size_t i = 0; !*why && i < sizeof files / sizeof *files; i++) {
    if (!trust_stat_file(folder, files[i], &st)) continue;
    /* In a folder that nobody else can enter, others reach a file only through another hard link */
    if (closed && st.st_nlink == 1) st.st_mode &= ~(mode_t)(S_IWGRP | S_IWOTH);
    if (S_ISLNK(st.st_mode)) st.st_mode = 0; /* the mode of a link means nothing */
    why = trust_writable_by(&st);
  }
  return why;
}

/* Returns true when no other file can ever have the same identity. */
static bool trust_file_of(const char *folder, char file[TRUST_FILE_CHARS]) {
  strbuf path = {0};
  bool exact = false;
  file[0] = '\0';
  if (files_join(&path, folder, "lode.db", NULL) == LODE_OK)
    os_file_identity(path.data, file, TRUST_FILE_CHARS, &exact);
  strbuf_release(&path);
  return exact;
}

static void trust_put_id(lode_store *store, char id[TRUST_ID_CHARS]) {
  uint64_t number;
  id[0] = '\0';
  if (lode_store_id(store, &number, NULL) == LODE_OK)
    snprintf(id, TRUST_ID_CHARS, "%016llx", (unsigned long long)number);
}

/* "" when it cannot be read: then only its file identifies the store. */
static void trust_store_id(const char *folder, char id[TRUST_ID_CHARS]) {
  lode_open_options options = {.read_only = true, .no_background = true, .busy_ms = TRUST_OPEN_MS};
  lode_store *store = NULL;
  id[0] = '\0';
  if (lode_open(folder, &options, &store, NULL) != LODE_OK) return;
  trust_put_id(store, id);
  lode_close(store);
}

/* ---- The decision ---- */

static bool trust_entry_set_path(trust_entry *e, const char *folder) {
  e->path.len = 0;
  strbuf_add(&e->path, folder, strlen(folder) + 1);
  return !e->path.failed;
}

static void trust_remember(trust_info *trust, trust_entry *e, const char *folder, bool wanted) {
  lode_error err = {.record = LODE_NO_RECORD};
  if (!wanted || !trust_entry_set_path(e, folder) || trust_list_put(e, &err) == LODE_OK || trust->list_note[0]) return;
  snprintf(trust->list_note, sizeof trust->list_note,
           "%.150s cannot be remembered: %.200s (LODE_TRUST=1 trusts every folder)", folder, err.text);
}

/* Does git track files in the folder? `root` gets the folder that contains it. For an unknown store git's index is
 * read to its end and must be valid; with `quick` only as far as needed. */
static git_tracked trust_ask_git(const char *folder, bool quick, strbuf *root) {
  /* Settings are checked by value, and every .lode has the same .gitignore */
  static const char *const except[] = {STOREFILE_CONFIG, ".gitignore", NULL};
  strbuf file = {0};
  struct stat st;
  const char *slash = strrchr(folder, '/');
  git_tracked tracked = GIT_TRACKED_UNKNOWN;
  if (slash) strbuf_add(root, folder, slash == folder ? 1 : (size_t)(slash - folder));
  strbuf_addch(root, '\0');
  if (slash && !root->failed) tracked = git_tracks(root->data, slash + 1, except, quick, &file);
  /* it is a repository itself */
  if (tracked == GIT_TRACKED_NO && trust_stat_file(folder, ".git", &st)) tracked = GIT_TRACKED_YES;
  strbuf_release(&file);
  return tracked;
}

/* Reasons for a refusal, and the commands to run: the folder, what is wrong with it, and a command or place. */
#define TRUST_IN_CONTAINER "(in a container, set LODE_TRUST=1)"
#define TRUST_PARENT "the folder that contains it"
static const char trust_unknown_format[] =
    "%.300s %s; look at it, then run %s to use it " TRUST_IN_CONTAINER ", or remove it with `git rm -r .lode`";
static const char trust_changed_format[] =
    "%.300s %s, and a pull or checkout may have changed them; look at it, then run %s to use it " TRUST_IN_CONTAINER
    ", or `git rm -r --cached .lode` to take it out of git";
static const char trust_empty_format[] = "%.300s %s, but has no store: run `git rm -r .lode` in %s to remove it, or "
                                         "name another place with --store DIR " TRUST_IN_CONTAINER;
static const char trust_writable_format[] =
    "%.300s %s, so it is not used: look at it, then run %s, or name another place with --store";

/* Part of a path would be a wrong line to copy: where `whole` does not fit, `brief` is shown, which has no path. */
typedef struct trust_advice {
  const char *form, *folder, *what;
  strbuf whole;
  const char *brief;
} trust_advice;

static void trust_explain(const trust_advice *a, char *why, size_t size) {
  int n = a->whole.failed ? -1 : snprintf(why, size, a->form, a->folder, a->what, a->whole.data);
  if (n < 0 || (size_t)n >= size) snprintf(why, size, a->form, a->folder, a->what, a->brief);
}

static void trust_refuse(trust_info *trust, const char *form, const char *folder, git_tracked tracked,
                         const strbuf *root) {
  bool empty = form == trust_empty_format;
  trust_advice a = {.form = form,
                    .folder = folder,
                    .what = "has files that git tracks",
                    .brief = empty ? TRUST_PARENT : "`lode trust` in " TRUST_PARENT};
  if (tracked == GIT_TRACKED_UNKNOWN)
    a.what = "may have come with a repository: git's index cannot be read, or is sparse there";
  else if (form == trust_unknown_format)
    a.what = "came with the repository: git tracks its files";
  strbuf_addf(&a.whole, empty ? "%s%c" : "`lode trust %s`%c", root->failed ? "" : root->data, 0);
  if (root->failed) a.whole.failed = true;
  trust_explain(&a, trust->why, sizeof trust->why);
  trust->state = TRUST_TRACKED;
  strbuf_release(&a.whole);
}

static bool trust_is_tracked(const char *folder, trust_info *trust) {
  strbuf root = {0};
  git_tracked tracked = trust_ask_git(folder, false, &root);
  trust->tracked = tracked == GIT_TRACKED_YES;
  if (tracked != GIT_TRACKED_NO) trust_refuse(trust, trust_unknown_format, folder, tracked, &root);
  strbuf_release(&root);
  return tracked != GIT_TRACKED_NO;
}

static void trust_use_entry(trust_info *trust, const trust_entry *e) {
  trust->state = e->level == TRUST_LEVEL_ADOPTED ? TRUST_ADOPTED : TRUST_OURS;
}

/* The list has the file, but that vouches for lode.db alone: other files that git tracks (segments, a journal) change
 * with every pull. A git index that cannot be read is accepted here, as no pull can damage it. The user's word about
 * tracked files ends when git tracks none: what a later commit brings is not what the user looked at. */
static void trust_examine_known(const char *folder, trust_entry *e, bool keep, trust_info *trust) {
  strbuf root = {0};
  git_tracked tracked = trust_ask_git(folder, true, &root);
  trust->tracked = tracked == GIT_TRACKED_YES;
  if (tracked == GIT_TRACKED_NO && e->tracked) {
    e->tracked = false;
    trust_remember(trust, e, folder, keep);
  }
  if (trust->tracked && !e->tracked) {
    trust_refuse(trust, trust_changed_format, folder, GIT_TRACKED_YES, &root);
  } else {
    trust_use_entry(trust, e);
    if (trust->tracked)
      snprintf(trust->note, sizeof trust->note,
               "git tracks files of %.200s: it is used as you trusted it, with whatever a "
               "pull or checkout changes beside lode.db; `git rm -r --cached .lode` takes it out of git",
               folder);
  }
  strbuf_release(&root);
}

/* Refuses a folder without a store in which git tracks files: the store would be made among files of others. */
static void trust_examine_empty(const char *folder, trust_info *trust) {
  strbuf root = {0};
  trust->state = TRUST_NONE;
  trust->tracked = trust_ask_git(folder, true, &root) == GIT_TRACKED_YES;
  if (trust->tracked) trust_refuse(trust, trust_empty_format, folder, GIT_TRACKED_YES, &root);
  strbuf_release(&root);
}

typedef struct trust_search {
  trust_list list;
  trust_entry entry; /* of the path, if it is listed */
  bool listed;
  char file[TRUST_FILE_CHARS]; /* which file it is now */
} trust_search;

/* The list does not have the file: it was moved, copied, restored or replaced, or is new. */
static void trust_examine_unknown(const char *folder, trust_search *s, bool keep, trust_info *trust) {
  trust_entry *e = &s->entry;
  char id[TRUST_ID_CHARS];
  if (trust_is_tracked(folder, trust)) return;
  trust_store_id(folder, id);
  bool expected = s->listed && e->level == TRUST_LEVEL_MADE && !e->id[0] && !e->file[0];
  bool same = s->listed && id[0] && strcmp(id, e->id) == 0;
  bool moved = !expected && !same && id[0] && trust_list_find_file(&s->list, s->file, e) && strcmp(id, e->id) == 0;
  if (!expected && !same && !moved) {
    strbuf_release(&e->settings);
    e->level = TRUST_LEVEL_ADOPTED;
    snprintf(trust->note, sizeof trust->note,
             "%.200s is not known to have been made by you here: it is used from now on, as git does not track it; "
             "`lode trust` lets its settings reach beyond the folder, `lode trust --forget` forgets it",
             folder);
  }
  snprintf(e->id, sizeof e->id, "%s", id);
  snprintf(e->file, sizeof e->file, "%s", s->file);
  e->tracked = false;
  trust_use_entry(trust, e);
  /* A store whose id cannot be read is not listed: it is asked again next time */
  trust_remember(trust, e, folder, keep && id[0]);
}

static bool trust_is_same_store(const char *folder, const trust_entry *e, char file[TRUST_FILE_CHARS]) {
  char id[TRUST_ID_CHARS];
  bool exact = trust_file_of(folder, file);
  if (!file[0] || strcmp(file, e->file) != 0) return false;
  if (exact) return true;
  trust_store_id(folder, id);
  return id[0] && strcmp(id, e->id) == 0;
}

static void trust_examine_store(const char *folder, bool keep, trust_info *trust) {
  trust_search s = {0};
  trust_list_read(&s.list);
  snprintf(trust->list_note, sizeof trust->list_note, "%s", s.list.note);
  s.listed = trust_list_find(&s.list, folder, &s.entry);
  if (!trust_has_store(folder))
    trust_examine_empty(folder, trust);
  else if (trust_is_same_store(folder, &s.entry, s.file) && s.listed)
    trust_examine_known(folder, &s.entry, keep, trust);
  else
    trust_examine_unknown(folder, &s, keep, trust);
  const strbuf *settings = &s.entry.settings;
  if (trust->state != TRUST_TRACKED && settings->len) strbuf_add(&trust->settings, settings->data, settings->len);
  trust_entry_release(&s.entry);
  trust_list_release(&s.list);
}

static void trust_explain_foreign(const char *folder, const char *foreign, char *why, size_t size) {
  trust_advice a = {.form = trust_writable_format,
                    .folder = folder,
                    .what = foreign,
                    .brief = "`chmod -R go-w .lode` in " TRUST_PARENT};
  strbuf_addf(&a.whole, "`chmod -R go-w %s`%c", folder, 0);
  if (strcmp(foreign, TRUST_WRITABLE_TEXT) == 0)
    trust_explain(&a, why, size);
  else
    snprintf(why, size,
             "%.300s %s, so it is not used: if you trust them, name it with --store or set LODE_TRUST=1 (as in a "
             "container); else name another place",
             folder, foreign);
  strbuf_release(&a.whole);
}

void trust_examine(const char *folder, bool keep, trust_info *trust) {
  memset(trust, 0, sizeof *trust);
  if (files_trusts_everybody()) return;
  const char *foreign = trust_foreign_reason(folder);
  if (!*foreign) {
    trust_examine_store(folder, keep, trust);
    return;
  }
  trust->state = TRUST_FOREIGN;
  trust_explain_foreign(folder, foreign, trust->why, sizeof trust->why);
}

lode_status trust_check(const trust_info *trust, lode_error *err) {
  bool refused = trust->state == TRUST_TRACKED || trust->state == TRUST_FOREIGN;
  return refused ? err_set(err, LODE_REFUSED, "%s", trust->why) : LODE_OK;
}

bool trust_allows_model(const trust_info *trust, lode_str model) {
  return trust->state != TRUST_ADOPTED || !embed_model_is_external(model);
}

/* ---- Settings ---- */

static bool trust_is_allowed(const json_doc *allowed, const char *key, const char *value) {
  if (!allowed->count || allowed->nodes[0].type != JSON_NODE_OBJECT) return false;
  uint32_t i = json_get(allowed, 0, str_of(key));
  return i && allowed->nodes[i].type == JSON_NODE_STRING && str_eq(allowed->nodes[i].u.s, str_of(value));
}

void trust_suppress_config(const trust_info *trust, config_values *config, strbuf *held) {
  json_doc allowed = {0};
  held->len = 0;
  if (trust->state == TRUST_NAMED) return;
  if (trust->settings.len)
    (void)!json_parse(&allowed, (lode_str){trust->settings.data, trust->settings.len}, NULL, NULL);
  for (size_t i = 0; i < CONFIG_COUNT; i++) {
    config_key key = (config_key)i;
    const char *name = config_table[i].key, *value = config->values[i];
    if (!value || !config_reaches_out(key, str_of(value)) || trust_is_allowed(&allowed, name, value)) continue;
    strbuf_addf(held, "%s%s = %.80s", held->len ? ", " : "", name, value);
    config_suppress(config, key);
  }
  if (held->len) strbuf_addch(held, '\0');
  if (held->failed) strbuf_release(held);
  json_release(&allowed);
}

/* ---- Changes to the list ---- */

/* The entry of the path, or a new one. */
static bool trust_begin_entry(const char *folder, trust_entry *e) {
  trust_list list;
  trust_list_read(&list);
  bool known = trust_list_find(&list, folder, e);
  trust_list_release(&list);
  if (!known) {
    trust_entry_release(e);
    e->level = TRUST_LEVEL_ADOPTED;
  }
  return trust_entry_set_path(e, folder);
}

lode_status trust_add_created(const char *folder, lode_store *store, lode_error *err) {
  trust_entry e = {0};
  if (files_trusts_everybody()) return LODE_OK;
  lode_status st = trust_begin_entry(folder, &e) ? LODE_OK : err_nomem(err);
  e.level = TRUST_LEVEL_MADE;
  e.id[0] = e.file[0] = '\0';
  e.tracked = false;
  if (store) {
    trust_put_id(store, e.id);
    trust_file_of(folder, e.file);
  }
  if (st == LODE_OK) st = trust_list_put(&e, err);
  trust_entry_release(&e);
  return st;
}

static void trust_put_setting(strbuf *out, const char *key, lode_str value) {
  strbuf_addch(out, out->len ? ',' : '{');
  json_put_string(out, str_of(key));
  strbuf_addch(out, ':');
  json_put_string(out, value);
}

static void trust_end_settings(strbuf *out) {
  if (out->len) strbuf_addch(out, '}');
}

lode_status trust_set_value(const char *folder, config_key key, lode_str value, lode_error *err) {
  trust_entry e = {0};
  json_doc json = {0};
  strbuf settings = {0};
  const char *name = config_table[key].key;
  bool reaches = value.data && config_reaches_out(key, value);
  if (files_trusts_everybody()) return LODE_OK;
  lode_status st = trust_begin_entry(folder, &e) ? LODE_OK : err_nomem(err);
  bool had = e.settings.len && json_parse(&json, (lode_str){e.settings.data, e.settings.len}, NULL, NULL) == LODE_OK &&
             json.nodes[0].type == JSON_NODE_OBJECT && json_get(&json, 0, str_of(name));
  if (st != LODE_OK || (!reaches && !had)) goto done; /* nothing to change */
  for (uint32_t i = 1; json.count && i < json.nodes[0].next; i = json.nodes[i + 1].next) {
    lode_str other = json.nodes[i].u.s;
    if (str_eq(other, str_of(name)) || json.nodes[i + 1].type != JSON_NODE_STRING) continue;
    config_key known = config_find(other);
    if (known != CONFIG_COUNT) trust_put_setting(&settings, config_table[known].key, json.nodes[i + 1].u.s);
  }
  if (reaches) trust_put_setting(&settings, name, value);
  trust_end_settings(&settings);
  strbuf_release(&e.settings);
  e.settings = settings;
  settings = (strbuf){0};
  st = e.settings.failed ? err_nomem(err) : trust_list_put(&e, err);
done:
  json_release(&json);
  strbuf_release(&settings);
  trust_entry_release(&e);
  return st;
}

/* As JSON: the settings that reach beyond the folder. */
static lode_status trust_collect_settings(const char *folder, strbuf *settings, lode_error *err) {
  config_values config = {0};
  settings->len = 0;
  lode_status st = config_load(&config, folder, err);
  for (size_t i = 0; st == LODE_OK && i < CONFIG_COUNT; i++)
    if (config.values[i] && config_reaches_out((config_key)i, str_of(config.values[i])))
      trust_put_setting(settings, config_table[i].key, str_of(config.values[i]));
  trust_end_settings(settings);
  config_release(&config);
  return st == LODE_OK && settings->failed ? err_nomem(err) : st;
}

lode_status trust_grant(const char *folder, strbuf *settings, lode_error *err) {
  trust_entry e = {.level = TRUST_LEVEL_TRUSTED};
  strbuf root = {0};
  bool store = trust_has_store(folder);
  const char *foreign = trust_foreign_reason(folder);
  lode_status st = LODE_OK;
  settings->len = 0;
  if (*foreign) {
    char why[sizeof((trust_info *)0)->why];
    trust_explain_foreign(folder, foreign, why, sizeof why);
    return err_set(err, LODE_REFUSED, "%s", why);
  }
  TRY_GOTO(trust_collect_settings(folder, settings, err));
  if (!store && !settings->len)
    TRY_GOTO(err_set(err, LODE_NOT_FOUND,
                     "there is no store in %.300s, and no setting that reaches beyond the folder, "
                     "so there is nothing to trust: what you make yourself is trusted",
                     folder));
  if (!trust_entry_set_path(&e, folder)) TRY_GOTO(err_nomem(err));
  /* Without a store the entry names none: one that appears here later must be trusted again */
  if (store) {
    e.tracked = trust_ask_git(folder, false, &root) != GIT_TRACKED_NO;
    trust_store_id(folder, e.id);
    trust_file_of(folder, e.file);
  }
  if (settings->len) strbuf_add(&e.settings, settings->data, settings->len);
  if (e.settings.failed) TRY_GOTO(err_nomem(err));
  TRY_GOTO(trust_list_put(&e, err));
done:
  strbuf_release(&root);
  trust_entry_release(&e);
  return st;
}
