/* trust.c - see trust.h. */
#include "code/trust.h"

#include "code/fs.h"
#include "code/git_index.h"
#include "code/trust_list.h"
#include "embed/embed.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { OPEN_MS = 2000 };

static const char *const state_names[] = {"named", "none", "ours", "adopted", "untrusted", "foreign"};
const char *lode__trust_state_name(lode__trust_state state) { return state_names[state]; }

void lode__trust_release(lode__trust *trust) {
  strbuf_release(&trust->settings);
  memset(trust, 0, sizeof *trust);
}

void lode__trust_say(const lode__trust *trust, void (*note)(void *ctx, const char *text), void *ctx) {
  if (note && trust->list_note[0]) note(ctx, trust->list_note);
  if (note && trust->note[0]) note(ctx, trust->note);
}

/* ---- The folder ---- */

static bool look_at(const char *folder, const char *name, struct stat *st) {
  strbuf path = {0};
  bool there = lode__fs_join(&path, folder, name, NULL) == LODE_OK && os_api->lstat_at(AT_FDCWD, path.data, st) == 0;
  strbuf_release(&path);
  return there;
}

bool lode__trust_has_store(const char *folder) {
  struct stat st;
  return look_at(folder, "lode.db", &st);
}

/* The owner's own group, as under umask 002: the primary one, of the same name, without other members. */
static bool is_private_group(const struct stat *st) {
  char user_text[4096], group_text[16384];
  struct passwd user, *u = NULL;
  struct group group, *g = NULL;
  if (getpwuid_r(st->st_uid, &user, user_text, sizeof user_text, &u) != 0 || !u || u->pw_gid != st->st_gid) return false;
  if (getgrgid_r(st->st_gid, &group, group_text, sizeof group_text, &g) != 0 || !g || strcmp(g->gr_name, u->pw_name) != 0) return false;
  for (char **member = g->gr_mem; *member; member++)
    if (strcmp(*member, u->pw_name) != 0) return false;
  return true;
}

static const char *who_else(struct stat *st) {
  if ((st->st_mode & S_IWGRP) && is_private_group(st)) st->st_mode &= ~(mode_t)S_IWGRP;
  return lode__trust_owner(st);
}

const char *lode__trust_foreign(const char *folder) {
  static const char *const files[] = {"lode.db", STOREFILE_CONFIG};
  struct stat st;
  if (lode__trust_all() || os_api->stat(folder, &st) < 0) return "";
  const char *why = who_else(&st);
  bool closed = (st.st_mode & (S_IXGRP | S_IXOTH)) == 0;
  for (size_t i = 0; !*why && i < sizeof files / sizeof *files; i++) {
    if (!look_at(folder, files[i], &st)) continue;
    /* Where nobody else gets in, the mode of a file opens it to others only by a second name elsewhere */
    if (closed && st.st_nlink == 1) st.st_mode &= ~(mode_t)(S_IWGRP | S_IWOTH);
    if (S_ISLNK(st.st_mode)) st.st_mode = 0; /* its mode means nothing */
    why = who_else(&st);
  }
  return why;
}

/* True when no other file can ever be the same. */
static bool file_of(const char *folder, char file[LODE__TRUST_FILE_CHARS]) {
  strbuf path = {0};
  bool exact = false;
  file[0] = '\0';
  if (lode__fs_join(&path, folder, "lode.db", NULL) == LODE_OK) os_file_identity(path.data, file, LODE__TRUST_FILE_CHARS, &exact);
  strbuf_release(&path);
  return exact;
}

static void put_id(lode_store *store, char id[LODE__TRUST_ID_CHARS]) {
  uint64_t number;
  id[0] = '\0';
  if (lode_store_id(store, &number, NULL) == LODE_OK) snprintf(id, LODE__TRUST_ID_CHARS, "%016llx", (unsigned long long)number);
}

/* "" when it cannot be read: then the store is known by nothing but its file. */
static void id_of(const char *folder, char id[LODE__TRUST_ID_CHARS]) {
  lode_open_options options = {.read_only = true, .no_background = true, .busy_ms = OPEN_MS};
  lode_store *store = NULL;
  id[0] = '\0';
  if (lode_open(folder, &options, &store, NULL) != LODE_OK) return;
  put_id(store, id);
  lode_close(store);
}

/* ---- The decision ---- */

static bool set_path(lode__trust_entry *e, const char *folder) {
  e->path.len = 0;
  strbuf_add(&e->path, folder, strlen(folder) + 1);
  return !e->path.failed;
}

static void remember(lode__trust *trust, lode__trust_entry *e, const char *folder, bool wanted) {
  lode_error err = {.record = LODE_NO_RECORD};
  if (!wanted || !set_path(e, folder) || lode__trust_list_put(e, &err) == LODE_OK || trust->list_note[0]) return;
  snprintf(trust->list_note, sizeof trust->list_note, "%.150s cannot be remembered: %.200s (LODE_TRUST=1 trusts every folder)", folder, err.text);
}

/* Does git track files in the folder? `root` gets the folder around it. Asked for a store that is unknown, git's index is read
 * to its end, and has to be sound; otherwise (quick) as far as it matters. */
static lode__tracked ask_git(const char *folder, bool quick, strbuf *root) {
  /* Settings are looked at by their values, and every .lode has the same .gitignore */
  static const char *const except[] = {STOREFILE_CONFIG, ".gitignore", NULL};
  strbuf file = {0};
  struct stat st;
  const char *slash = strrchr(folder, '/');
  lode__tracked tracked = LODE__TRACKED_UNKNOWN;
  if (slash) strbuf_add(root, folder, slash == folder ? 1 : (size_t)(slash - folder));
  strbuf_addch(root, '\0');
  if (slash && !root->failed) tracked = lode__git_tracks(root->data, slash + 1, except, quick, &file);
  if (tracked == LODE__TRACKED_NO && look_at(folder, ".git", &st)) tracked = LODE__TRACKED_YES; /* it is a repository itself */
  strbuf_release(&file);
  return tracked;
}

/* Why a folder is refused, and the lines to run. */
#define IN_A_CONTAINER "(in a container, set LODE_TRUST=1)"
static const char unknown_form[] = "%.220s %s; look at it, then run `lode trust %.220s` to use it " IN_A_CONTAINER
                                   ", or remove it with `git rm -r .lode`";
static const char changed_form[] = "%.220s %s, and a pull or checkout may have changed them; look at it, then run "
                                   "`lode trust %.220s` to use it " IN_A_CONTAINER
                                   ", or `git rm -r --cached .lode` to take it out of git";
static const char empty_form[] = "%.220s %s, but has no store: run `git rm -r .lode` in %.220s to remove it, or name "
                                 "another place with --store DIR " IN_A_CONTAINER;

static void refuse(lode__trust *trust, const char *form, const char *folder, lode__tracked tracked,
                   const strbuf *root) {
  const char *place = root->failed ? "" : root->data;
  const char *what = tracked == LODE__TRACKED_UNKNOWN ? "may have come with a repository: git's index cannot be read"
                     : form == unknown_form           ? "came with the repository: git tracks its files"
                                                      : "has files that git tracks";
  snprintf(trust->why, sizeof trust->why, form, folder, what, place);
  trust->state = LODE__TRUST_TRACKED;
}

static bool came_with_a_clone(const char *folder, lode__trust *trust) {
  strbuf root = {0};
  lode__tracked tracked = ask_git(folder, false, &root);
  trust->tracked = tracked == LODE__TRACKED_YES;
  if (tracked != LODE__TRACKED_NO) refuse(trust, unknown_form, folder, tracked, &root);
  strbuf_release(&root);
  return tracked != LODE__TRACKED_NO;
}

static void use_entry(lode__trust *trust, const lode__trust_entry *e) {
  trust->state = e->level == LODE__TRUST_LEVEL_ADOPTED ? LODE__TRUST_ADOPTED : LODE__TRUST_OURS;
}

/* The list knows the file, and that proves lode.db alone: what git tracks beside it (segments, a journal) comes with every
 * pull. An index of git's that cannot be read takes nothing away, as no pull can damage it. */
static void look_at_known(const char *folder, const lode__trust_entry *e, lode__trust *trust) {
  strbuf root = {0};
  trust->tracked = ask_git(folder, true, &root) == LODE__TRACKED_YES;
  if (trust->tracked && !e->tracked) {
    refuse(trust, changed_form, folder, LODE__TRACKED_YES, &root);
  } else {
    use_entry(trust, e);
    if (trust->tracked)
      snprintf(trust->note, sizeof trust->note, "git tracks files of %.200s: it is used as you trusted it, with whatever a "
               "pull or checkout changes beside lode.db; `git rm -r --cached .lode` takes it out of git", folder);
  }
  strbuf_release(&root);
}

/* A folder that git fills, and no store: it would be made among files of others. */
static void look_at_none(const char *folder, lode__trust *trust) {
  strbuf root = {0};
  trust->state = LODE__TRUST_NONE;
  trust->tracked = ask_git(folder, true, &root) == LODE__TRACKED_YES;
  if (trust->tracked) refuse(trust, empty_form, folder, LODE__TRACKED_YES, &root);
  strbuf_release(&root);
}

/* The list does not know the file: it was moved, copied, restored, replaced, or is new to it. `e` is the path's entry, if there is one. */
static void look_closer(const char *folder, const lode__trust_list *list, bool known_path, lode__trust_entry *e, const char *file, bool keep,
                        lode__trust *trust) {
  char id[LODE__TRUST_ID_CHARS];
  if (came_with_a_clone(folder, trust)) return;
  id_of(folder, id);
  bool expected = known_path && e->level == LODE__TRUST_LEVEL_MADE && !e->id[0] && !e->file[0];
  bool same = known_path && id[0] && strcmp(id, e->id) == 0;
  bool moved = !expected && !same && id[0] && lode__trust_list_find_file(list, file, e) && strcmp(id, e->id) == 0;
  if (!expected && !same && !moved) {
    strbuf_release(&e->settings);
    e->level = LODE__TRUST_LEVEL_ADOPTED;
    snprintf(trust->note, sizeof trust->note, "%.200s is not known to have been made by you here: it is used from now on, as git does not track it; "
             "`lode trust` lets its settings reach beyond the folder, `lode trust --forget` forgets it", folder);
  }
  snprintf(e->id, sizeof e->id, "%s", id);
  snprintf(e->file, sizeof e->file, "%s", file);
  e->tracked = false;
  use_entry(trust, e);
  /* A store that cannot be read is asked for its id again next time */
  remember(trust, e, folder, keep && id[0]);
}

static bool is_same_store(const char *folder, const lode__trust_entry *e, char file[LODE__TRUST_FILE_CHARS]) {
  char id[LODE__TRUST_ID_CHARS];
  bool exact = file_of(folder, file);
  if (!file[0] || strcmp(file, e->file) != 0) return false;
  if (exact) return true;
  id_of(folder, id);
  return id[0] && strcmp(id, e->id) == 0;
}

static void look_at_store(const char *folder, bool keep, lode__trust *trust) {
  lode__trust_list list;
  lode__trust_entry e = {0};
  char file[LODE__TRUST_FILE_CHARS];
  lode__trust_list_read(&list);
  snprintf(trust->list_note, sizeof trust->list_note, "%s", list.note);
  bool known = lode__trust_list_find(&list, folder, &e);
  if (!lode__trust_has_store(folder)) look_at_none(folder, trust);
  else if (is_same_store(folder, &e, file) && known) look_at_known(folder, &e, trust);
  else look_closer(folder, &list, known, &e, file, keep, trust);
  if (trust->state != LODE__TRUST_TRACKED && e.settings.len) strbuf_add(&trust->settings, e.settings.data, e.settings.len);
  lode__trust_entry_release(&e);
  lode__trust_list_release(&list);
}

static void explain_foreign(const char *folder, const char *foreign, char *why, size_t size) {
  if (strcmp(foreign, LODE__TRUST_WRITABLE) == 0)
    snprintf(why, size, "%.250s %s, so it is not used: look at it, then run `chmod -R go-w %.250s`, or name another place with --store", folder, foreign, folder);
  else
    snprintf(why, size, "%.300s %s, so it is not used: if you trust them, name it with --store or set LODE_TRUST=1 (as in a container); else name another place",
             folder, foreign);
}

void lode__trust_look(const char *folder, bool keep, lode__trust *trust) {
  memset(trust, 0, sizeof *trust);
  if (lode__trust_all()) return;
  const char *foreign = lode__trust_foreign(folder);
  if (!*foreign) {
    look_at_store(folder, keep, trust);
    return;
  }
  trust->state = LODE__TRUST_FOREIGN;
  explain_foreign(folder, foreign, trust->why, sizeof trust->why);
}

lode_status lode__trust_check(const lode__trust *trust, lode_error *err) {
  return trust->state == LODE__TRUST_TRACKED || trust->state == LODE__TRUST_FOREIGN ? err_set(err, LODE_REFUSED, "%s", trust->why) : LODE_OK;
}

bool lode__trust_model(const lode__trust *trust, lode_str model) {
  return trust->state != LODE__TRUST_ADOPTED || !embed_model_is_external(model);
}

/* ---- Settings ---- */

static bool is_allowed(const json_doc *allowed, const char *key, const char *value) {
  if (!allowed->count || allowed->nodes[0].type != JSON_NODE_OBJECT) return false;
  uint32_t i = json_get(allowed, 0, str_of(key));
  return i && allowed->nodes[i].type == JSON_NODE_STRING && str_eq(allowed->nodes[i].u.s, str_of(value));
}

void lode__trust_hold(const lode__trust *trust, lode__config *config, strbuf *held) {
  json_doc allowed = {0};
  held->len = 0;
  if (trust->state == LODE__TRUST_NAMED) return;
  if (trust->settings.len) (void)!json_parse(&allowed, (lode_str){trust->settings.data, trust->settings.len}, NULL, NULL);
  for (size_t i = 0; i < LODE__CONFIG_COUNT; i++) {
    lode__config_key key = (lode__config_key)i;
    const char *name = lode__config_entries[i].key, *value = config->values[i];
    if (!value || !lode__config_reaches(key, str_of(value)) || is_allowed(&allowed, name, value)) continue;
    strbuf_addf(held, "%s%s = %.80s", held->len ? ", " : "", name, value);
    lode__config_hold(config, key);
  }
  if (held->len) strbuf_addch(held, '\0');
  if (held->failed) strbuf_release(held);
  json_release(&allowed);
}

/* ---- What the list learns ---- */

/* The path's entry, or a new one. */
static bool begin_entry(const char *folder, lode__trust_entry *e) {
  lode__trust_list list;
  lode__trust_list_read(&list);
  bool known = lode__trust_list_find(&list, folder, e);
  lode__trust_list_release(&list);
  if (!known) {
    lode__trust_entry_release(e);
    e->level = LODE__TRUST_LEVEL_ADOPTED;
  }
  return set_path(e, folder);
}

lode_status lode__trust_made(const char *folder, lode_store *store, lode_error *err) {
  lode__trust_entry e = {0};
  if (lode__trust_all()) return LODE_OK;
  lode_status st = begin_entry(folder, &e) ? LODE_OK : err_nomem(err);
  e.level = LODE__TRUST_LEVEL_MADE;
  e.id[0] = e.file[0] = '\0';
  e.tracked = false;
  if (store) {
    put_id(store, e.id);
    file_of(folder, e.file);
  }
  if (st == LODE_OK) st = lode__trust_list_put(&e, err);
  lode__trust_entry_release(&e);
  return st;
}

static void put_setting(strbuf *out, const char *key, lode_str value) {
  strbuf_addch(out, out->len ? ',' : '{');
  json_put_string(out, str_of(key));
  strbuf_addch(out, ':');
  json_put_string(out, value);
}

static void end_settings(strbuf *out) {
  if (out->len) strbuf_addch(out, '}');
}

lode_status lode__trust_set(const char *folder, lode__config_key key, lode_str value, lode_error *err) {
  lode__trust_entry e = {0};
  json_doc json = {0};
  strbuf settings = {0};
  const char *name = lode__config_entries[key].key;
  bool reaches = value.data && lode__config_reaches(key, value);
  if (lode__trust_all()) return LODE_OK;
  lode_status st = begin_entry(folder, &e) ? LODE_OK : err_nomem(err);
  bool had = e.settings.len && json_parse(&json, (lode_str){e.settings.data, e.settings.len}, NULL, NULL) == LODE_OK &&
             json.nodes[0].type == JSON_NODE_OBJECT && json_get(&json, 0, str_of(name));
  if (st != LODE_OK || (!reaches && !had)) goto done; /* nothing to learn */
  for (uint32_t i = 1; json.count && i < json.nodes[0].next; i = json.nodes[i + 1].next) {
    lode_str other = json.nodes[i].u.s;
    if (str_eq(other, str_of(name)) || json.nodes[i + 1].type != JSON_NODE_STRING) continue;
    lode__config_key known = lode__config_find(other);
    if (known != LODE__CONFIG_COUNT) put_setting(&settings, lode__config_entries[known].key, json.nodes[i + 1].u.s);
  }
  if (reaches) put_setting(&settings, name, value);
  end_settings(&settings);
  strbuf_release(&e.settings);
  e.settings = settings;
  settings = (strbuf){0};
  st = e.settings.failed ? err_nomem(err) : lode__trust_list_put(&e, err);
done:
  json_release(&json);
  strbuf_release(&settings);
  lode__trust_entry_release(&e);
  return st;
}

lode_status lode__trust_grant(const char *folder, strbuf *settings, lode_error *err) {
  lode__trust_entry e = {0};
  lode__config config = {0};
  strbuf root = {0};
  const char *foreign = lode__trust_foreign(folder);
  lode_status st = LODE_OK;
  settings->len = 0;
  if (*foreign) {
    char why[sizeof((lode__trust *)0)->why];
    explain_foreign(folder, foreign, why, sizeof why);
    return err_set(err, LODE_REFUSED, "%s", why);
  }
  /* Trust is of a store: one that appears here later is another question */
  if (!lode__trust_has_store(folder))
    return err_set(err, LODE_NOT_FOUND, "there is no store in %.300s, so there is nothing to trust: what you make "
                      "yourself is trusted; for its settings run `lode index` first, then `lode trust`", folder);
  TRY_GOTO(lode__config_load(&config, folder, err));
  for (size_t i = 0; i < LODE__CONFIG_COUNT; i++)
    if (config.values[i] && lode__config_reaches((lode__config_key)i, str_of(config.values[i])))
      put_setting(settings, lode__config_entries[i].key, str_of(config.values[i]));
  end_settings(settings);
  if (!set_path(&e, folder)) TRY_GOTO(err_nomem(err));
  e.level = LODE__TRUST_LEVEL_TRUSTED;
  e.tracked = ask_git(folder, false, &root) != LODE__TRACKED_NO;
  id_of(folder, e.id);
  file_of(folder, e.file);
  if (settings->len) strbuf_add(&e.settings, settings->data, settings->len);
  if (settings->failed || e.settings.failed) TRY_GOTO(err_nomem(err));
  TRY_GOTO(lode__trust_list_put(&e, err));
done:
  strbuf_release(&root);
  lode__config_release(&config);
  lode__trust_entry_release(&e);
  return st;
}
