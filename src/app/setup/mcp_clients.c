/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_clients.c - see mcp_clients.h. */
#include "setup/mcp_clients.h"

#include "base/json.h"
#include "os/os.h"
#include "scan/files.h"
#include "setup/json_edit.h"

#include <stdlib.h>
#include <unistd.h>

enum { CLIENT_MAX_BYTES = 4 << 20 };

typedef enum client_form { CLIENT_FORM_SERVERS, CLIENT_FORM_STDIO, CLIENT_FORM_LOCAL, CLIENT_FORM_TOML } client_form;

typedef struct client_def {
  const char *name, *title;
  const char *file;     /* relative to the project's root; ~ is the user's home */
  const char *signs[3]; /* the client is used here if one of these exists */
  const char *key;      /* the object that lists servers */
  client_form form;
  bool global; /* its settings are not per project: the entry must name the project */
} client_def;

static const client_def client_table[] = {
    {"claude-code",
     "Claude Code",
     ".mcp.json",
     {".mcp.json", ".claude", "~/.claude"},
     "mcpServers",
     CLIENT_FORM_SERVERS,
     false},
    {"cursor", "Cursor", ".cursor/mcp.json", {".cursor", "~/.cursor", NULL}, "mcpServers", CLIENT_FORM_SERVERS, false},
    {"vscode",
     "VS Code",
     ".vscode/mcp.json",
     {".vscode", "~/.vscode", "~/.config/Code"},
     "servers",
     CLIENT_FORM_STDIO,
     false},
    {"codex", "Codex", "~/.codex/config.toml", {"~/.codex", ".codex", NULL}, "mcp_servers", CLIENT_FORM_TOML, false},
    {"gemini",
     "Gemini CLI",
     ".gemini/settings.json",
     {".gemini", "~/.gemini", NULL},
     "mcpServers",
     CLIENT_FORM_SERVERS,
     false},
    {"windsurf",
     "Windsurf",
     "~/.codeium/windsurf/mcp_config.json",
     {"~/.codeium/windsurf", NULL, NULL},
     "mcpServers",
     CLIENT_FORM_SERVERS,
     true},
    {"opencode",
     "opencode",
     "opencode.json",
     {"opencode.json", "~/.config/opencode", NULL},
     "mcp",
     CLIENT_FORM_LOCAL,
     false},
    {"zed",
     "Zed",
     "~/.config/zed/settings.json",
     {"~/.config/zed", ".zed", NULL},
     "context_servers",
     CLIENT_FORM_SERVERS,
     true},
    {"kiro", "Kiro", ".kiro/settings/mcp.json", {".kiro", "~/.kiro", NULL}, "mcpServers", CLIENT_FORM_SERVERS, false},
    {"roo", "Roo Code", ".roo/mcp.json", {".roo", NULL, NULL}, "mcpServers", CLIENT_FORM_SERVERS, false},
    {"kilo",
     "Kilo Code",
     ".kilo/kilo.jsonc",
     {".kilo", ".kilocode", "~/.config/kilo"},
     "mcp",
     CLIENT_FORM_LOCAL,
     false},
    {"qwen", "Qwen Code", ".qwen/settings.json", {".qwen", "~/.qwen", NULL}, "mcpServers", CLIENT_FORM_SERVERS, false},
};

size_t setup_client_count(void) { return sizeof client_table / sizeof *client_table; }
const char *setup_client_name(size_t i) { return client_table[i].name; }
const char *setup_client_title(size_t i) { return client_table[i].title; }

/* ---- Paths ---- */

static lode_status client_path(const char *file, const char *root, strbuf *out, lode_error *err) {
  const char *home = getenv("HOME");
  if (file[0] != '~') return files_join(out, root, file, err);
  if (!home || !*home) return err_set(err, LODE_NOT_FOUND, "HOME is not set");
  return files_join(out, home, file + 2, err);
}

/* A file as a folder and a name below it, for os/beneath.h: from the folder on no link is followed. */
typedef struct client_file {
  char *folder; /* malloc'ed */
  strbuf name;
} client_file;

static void client_file_release(client_file *s) {
  free(s->folder);
  strbuf_release(&s->name);
}

/* Appends the parts of a path that do not exist yet. They must not contain "..", which cannot be resolved before
 * they exist. */
static bool client_add_parts(strbuf *name, const char *parts) {
  for (const char *p = parts; *p; p += strspn(p, "/")) {
    size_t len = strcspn(p, "/");
    if (len == 2 && memcmp(p, "..", 2) == 0) return false;
    if (len && !(len == 1 && *p == '.')) {
      if (name->len) strbuf_addch(name, '/');
      strbuf_add(name, p, len);
    }
    p += len;
  }
  return true;
}

/* Makes an absolute path a name below the project's root, with links in its folders resolved. False if it may not be
 * there. */
static bool client_file_in_project(const char *root, const char *path, client_file *s) {
  char *folder = strdup(path), *real = NULL, *slash = NULL;
  size_t n;
  s->folder = realpath(root, NULL);
  n = s->folder ? strlen(s->folder) : 0;
  if (n == 1) n = 0; /* "/" */
  while (folder && !real && (slash = strrchr(folder, '/')) != NULL) {
    slash[slash == folder] = '\0';
    real = realpath(folder, NULL);
    if (slash == folder) break;
  }
  bool inside = s->folder && real && slash && strncmp(real, s->folder, n) == 0 && (real[n] == '\0' || real[n] == '/') &&
                client_add_parts(&s->name, real + n);
  const char *rest = inside ? path + (slash - folder) : "", *last = strrchr(path, '/');
  inside = inside && client_add_parts(&s->name, rest) && last && last[1] && strcmp(last, "/.") != 0;
  if (inside) strbuf_addch(&s->name, '\0');
  free(folder);
  free(real);
  return inside;
}

static lode_status client_file_in_home(const char *path, client_file *s, lode_error *err) {
  const char *slash = strrchr(path, '/');
  char *folder = strndup(path, slash && slash != path ? (size_t)(slash - path) : 1);
  if (!folder) return err_nomem(err);
  lode_status st = beneath_resolve(folder, &s->folder, err);
  free(folder);
  strbuf_addstr(&s->name, slash ? slash + 1 : path);
  strbuf_addch(&s->name, '\0');
  return st;
}

/* The entry of a client's settings file, as it is and as it is to be. */
typedef struct client_edit {
  const client_def *client;
  const char *root, *program;
  const char *entry;  /* its name */
  strbuf path;        /* of the settings file */
  client_file target; /* where that leads, if it is a link */
  strbuf text, out;   /* before and after */
  bool same;          /* the entry is there as it is to be */
} client_edit;

static void client_edit_release(client_edit *e) {
  client_file_release(&e->target);
  strbuf_release(&e->path);
  strbuf_release(&e->text);
  strbuf_release(&e->out);
}

static lode_str client_edit_old(const client_edit *e) {
  return (lode_str){e->text.data ? e->text.data : "", e->text.len};
}

/* Links in the user's home are trusted; a link in the project may have come with it, and must not leave it. */
static lode_status client_file_of(const client_edit *e, const char *path, client_file *s, lode_error *err) {
  const client_def *c = e->client;
  if (c->file[0] == '~') {
    TRY(client_file_in_home(path, s, err));
  } else if (!client_file_in_project(e->root, path, s)) {
    return err_set(err, LODE_REFUSED,
                   "%s: %.200s is a link that leads out of the project, or through a folder that does not exist; it "
                   "was left as it is: "
                   "edit what it leads to yourself (lode mcp install --client %s --print shows the entry)",
                   c->title, e->path.data, c->name);
  }
  return s->name.failed ? err_nomem(err) : LODE_OK;
}

/* If the settings file is a link, its target is written. */
static lode_status client_link_target(client_edit *e, lode_error *err) {
  strbuf end = {0};
  lode_status st = files_resolve_links(e->path.data, &end, err);
  if (st == LODE_OK) st = client_file_of(e, end.data, &e->target, err);
  strbuf_release(&end);
  return st;
}

/* Called before anything is read, so that the file that is read is the one that will be replaced. */
static lode_status client_make_folders(const client_def *c, const client_file *target, lode_error *err) {
  strbuf path = {0};
  lode_status st = LODE_OK;
  if (c->file[0] == '~') {
    st = files_join(&path, target->folder, target->name.data, err);
    if (st == LODE_OK) st = files_make_parents(path.data, err);
    strbuf_release(&path);
  } else if (beneath_mkdir_parents(target->folder, target->name.data, 0700) < 0) {
    st = err_errno(err, errno, target->name.data);
  }
  return st;
}

static bool client_is_used(const client_def *c, const char *root) {
  strbuf path = {0};
  bool used = false;
  for (size_t i = 0; i < 3 && c->signs[i] && !used; i++)
    used = client_path(c->signs[i], root, &path, NULL) == LODE_OK && files_exists(path.data);
  strbuf_release(&path);
  return used;
}

lode_status setup_program_path(strbuf *out, lode_error *err) {
  char path[4096];
  if (!os_program_path(path, sizeof path)) return err_set(err, LODE_IO, "the path of this program is unknown");
  out->len = 0;
  strbuf_addstr(out, path);
  strbuf_addch(out, '\0');
  return out->failed ? err_nomem(err) : LODE_OK;
}

/* "lode" if a shell would start this program by that name, so that settings can be shared between machines. */
static const char *client_command(const char *program, strbuf *scratch) {
  const char *path = getenv("PATH");
  char *mine = realpath(program, NULL), *found = NULL;
  while (path && *path && !found) {
    size_t len = strcspn(path, ":");
    scratch->len = 0;
    strbuf_add(scratch, path, len);
    strbuf_addstr(scratch, "/lode");
    strbuf_addch(scratch, '\0');
    if (!scratch->failed && len && access(scratch->data, X_OK) == 0) found = realpath(scratch->data, NULL);
    path += len + (path[len] == ':');
  }
  bool same = mine && found && strcmp(mine, found) == 0;
  free(mine);
  free(found);
  return same ? "lode" : program;
}

/* ---- Entries ---- */

static void client_put_quoted(strbuf *out, const char *text) { json_put_string(out, str_of(text)); }

/* Programs that fetch lode when it is started keep it in a cache, which may be emptied: the entry starts lode in the
 * same way, not by its path there. */
typedef struct client_launcher {
  const char *sign;     /* in the path of this program */
  const char *words[5]; /* what starts lode; NULL: no more */
} client_launcher;

static const client_launcher client_launchers[] = {
    {"/_npx/", {"npx", "-y", "lodekit"}},
    {"/uv/archive-v", {"uvx", "--from", "lodekit", "lode"}},
    {"/uv/environments-v", {"uvx", "--from", "lodekit", "lode"}},
    {"/pipx/.cache/", {"pipx", "run", "--spec", "lodekit", "lode"}},
    {"/.cache/pipx/", {"pipx", "run", "--spec", "lodekit", "lode"}},
};

static client_launcher client_launcher_of(const char *program, strbuf *scratch) {
  for (size_t i = 0; i < sizeof client_launchers / sizeof *client_launchers; i++)
    if (strstr(program, client_launchers[i].sign)) return client_launchers[i];
  return (client_launcher){.words = {client_command(program, scratch)}};
}

static void client_put_args(strbuf *out, const client_def *c, const char *root, const client_launcher *start) {
  for (size_t i = 1; i < sizeof start->words / sizeof *start->words && start->words[i]; i++) {
    client_put_quoted(out, start->words[i]);
    strbuf_addstr(out, ", ");
  }
  strbuf_addstr(out, "\"mcp\"");
  if (!c->global) return;
  strbuf_addstr(out, ", ");
  client_put_quoted(out, root);
}

static void client_put_entry(strbuf *out, const client_def *c, const char *root, const client_launcher *start) {
  static const struct {
    const char *before_command, *before_args, *after;
  } forms[] = {
      [CLIENT_FORM_SERVERS] = {"{\"command\": ", ", \"args\": [", "]}"},
      [CLIENT_FORM_STDIO] = {"{\"type\": \"stdio\", \"command\": ", ", \"args\": [", "]}"},
      [CLIENT_FORM_LOCAL] = {"{\"type\": \"local\", \"command\": [", ", ", "], \"enabled\": true}"},
      [CLIENT_FORM_TOML] = {"[mcp_servers.lode]\ncommand = ", "\nargs = [", "]\n"},
  };
  strbuf_addstr(out, forms[c->form].before_command);
  client_put_quoted(out, start->words[0]);
  strbuf_addstr(out, forms[c->form].before_args);
  client_put_args(out, c, root, start);
  strbuf_addstr(out, forms[c->form].after);
}

/* ---- TOML: the table [mcp_servers.ENTRY] and those below it, by lines; lines inside long strings are no headers ----
 */

static void toml_toggle_strings(lode_str line, char *inside) {
  for (size_t i = 0; i + 2 < line.len; i++) {
    char c = line.data[i];
    if ((c != '"' && c != '\'') || line.data[i + 1] != c || line.data[i + 2] != c) continue;
    if (*inside == 0)
      *inside = c;
    else if (*inside == c)
      *inside = 0;
    i += 2;
  }
}

static bool toml_take(lode_str *line, const char *word) {
  size_t n = strlen(word);
  bool is = line->len >= n && memcmp(line->data, word, n) == 0;
  if (is) *line = (lode_str){line->data + n, line->len - n};
  while (line->len && (line->data[0] == ' ' || line->data[0] == '\t'))
    *line = (lode_str){line->data + 1, line->len - 1};
  return is;
}

/* The entry's name, bare or quoted. */
static bool toml_take_name(lode_str *line, const char *entry) {
  const char *quote = line->len && (line->data[0] == '"' || line->data[0] == '\'') ? line->data : NULL;
  char mark[2] = {quote ? *quote : '\0', '\0'};
  return (!quote || toml_take(line, mark)) && toml_take(line, entry) && (!quote || toml_take(line, mark));
}

/* below: the tables below ours are ours, too. */
static bool toml_is_header(lode_str line, const char *entry, bool below, bool *ours) {
  (void)toml_take(&line, "");
  if (!toml_take(&line, "[")) return false;
  *ours = toml_take(&line, "mcp_servers") && toml_take(&line, ".") && toml_take_name(&line, entry) &&
          (toml_take(&line, "]") || (below && toml_take(&line, ".")));
  return true;
}

typedef struct toml_lines {
  size_t from, to;
} toml_lines;

/* The lines of the entry's table, or of the last such table if `below`; from == to if there is none. LODE_INVALID if a
 * long string does not end. */
static lode_status toml_find(lode_str text, const char *entry, bool below, toml_lines *lines, lode_error *err) {
  size_t *from = &lines->from, *to = &lines->to;
  char inside = 0;
  bool in = false;
  *from = *to = text.len;
  for (size_t at = 0; at < text.len;) {
    const char *end = memchr(text.data + at, '\n', text.len - at);
    lode_str line = {text.data + at, end ? (size_t)(end - text.data) - at : text.len - at};
    bool ours = false;
    if (!inside && toml_is_header(line, entry, below, &ours)) {
      if (in && !ours) {
        *to = at;
        in = false;
      }
      if (ours && !in) {
        *from = at;
        *to = text.len;
        in = true;
      }
    }
    toml_toggle_strings(line, &inside);
    at += line.len + (end != NULL);
  }
  if (inside) return err_set(err, LODE_INVALID, "a string without end");
  if (*from < *to) /* blank lines before the next table are not ours */
    while (*to > *from + 1 && text.data[*to - 1] == '\n' && text.data[*to - 2] == '\n') (*to)--;
  return LODE_OK;
}

static lode_status toml_remove(lode_str text, const char *entry, strbuf *out, lode_error *err) {
  toml_lines at;
  strbuf_add(out, text.data, text.len);
  for (;;) {
    if (out->failed) return err_nomem(err);
    TRY(toml_find((lode_str){out->data, out->len}, entry, true, &at, err));
    if (at.from == at.to) return LODE_OK;
    memmove(out->data + at.from, out->data + at.to, out->len - at.to);
    out->len -= at.to - at.from;
  }
}

/* ---- Reading ---- */

static lode_status client_check_text(lode_status st, strbuf *text, lode_error *err) {
  if (st == LODE_NOT_FOUND) {
    err_clear(err);
    text->len = 0;
    return LODE_OK;
  }
  if (st == LODE_OK && !utf8_valid(text->data, text->len)) return err_set(err, LODE_INVALID, "it is not UTF-8");
  return st;
}

static lode_status client_read_settings(client_edit *e, lode_error *err) {
  lode_status st = files_read_beneath(e->target.folder, e->target.name.data, CLIENT_MAX_BYTES, &e->text, err);
  return client_check_text(st, &e->text, err);
}

static lode_status client_find_entry(const client_edit *e, lode_str *entry, lode_error *err) {
  const char *path[] = {e->client->key, e->entry};
  lode_str text = client_edit_old(e);
  toml_lines at;
  *entry = (lode_str){0};
  if (e->client->form != CLIENT_FORM_TOML) return setup_json_find(text, path, 2, entry, err);
  TRY(toml_find(text, e->entry, false, &at, err));
  if (at.from < at.to) *entry = (lode_str){text.data + at.from, at.to - at.from};
  return LODE_OK;
}

static lode_status client_new_text(client_edit *e, lode_error *err) {
  const client_def *c = e->client;
  const char *path[] = {c->key, e->entry};
  strbuf entry = {0}, scratch = {0}, *out = &e->out;
  lode_str old, text = client_edit_old(e);
  toml_lines at;
  lode_status st;
  client_launcher start = client_launcher_of(e->program, &scratch);
  client_put_entry(&entry, c, e->root, &start);
  if (entry.failed) TRY_GOTO(err_nomem(err));
  TRY_GOTO(client_find_entry(e, &old, err));
  e->same = old.data && str_eq(old, (lode_str){entry.data, entry.len});
  if (c->form != CLIENT_FORM_TOML) {
    TRY_GOTO(setup_json_set(text, path, 2, (lode_str){entry.data, entry.len}, out, err));
  } else {
    TRY_GOTO(toml_find(text, e->entry, false, &at, err));
    out->len = 0;
    strbuf_add(out, text.data, at.from);
    if (at.from == text.len && at.from && text.data[at.from - 1] != '\n') strbuf_addch(out, '\n');
    if (at.from == text.len && at.from) strbuf_addch(out, '\n');
    strbuf_add(out, entry.data, entry.len);
    strbuf_add(out, text.data + at.to, text.len - at.to);
    if (out->failed) TRY_GOTO(err_nomem(err));
  }
done:
  strbuf_release(&entry);
  strbuf_release(&scratch);
  return st;
}

/* The error of a file that cannot be read or parsed. */
static lode_status client_explain(const client_edit *e, lode_status st, const lode_error *why, lode_error *err) {
  if (st == LODE_INVALID)
    return err_set(err, LODE_REFUSED,
                   "%s: %.200s cannot be parsed (%.120s); it was left as it is: correct it, or add the server by hand",
                   e->client->title, e->path.data, why->text);
  if (st != LODE_OK && err) *err = *why;
  return st;
}

/* ---- Writing ---- */

/* Keeps the file as it was before Lode first changed it, beside the link if it is one. */
static lode_status client_back_up(const client_edit *e, lode_error *err) {
  strbuf name = {0};
  client_file s = {0};
  struct stat info;
  lode_status st = LODE_OK;
  if (!files_exists(e->path.data)) return LODE_OK;
  strbuf_addf(&name, "%s.lode-backup", e->path.data);
  strbuf_addch(&name, '\0');
  if (name.failed) TRY_GOTO(err_nomem(err));
  TRY_GOTO(client_file_of(e, name.data, &s, err));
  if (beneath_lstat(s.folder, s.name.data, &info) < 0)
    TRY_GOTO(files_write_beneath(s.folder, s.name.data, client_edit_old(e), err));
done:
  strbuf_release(&name);
  client_file_release(&s);
  return st;
}

static lode_status client_replace(const client_edit *e, lode_error *err) {
  lode_str made = {e->out.data ? e->out.data : "", e->out.len};
  TRY(client_back_up(e, err));
  return files_write_beneath(e->target.folder, e->target.name.data, made, err);
}

lode_status setup_client_install(size_t i, const char *root, const char *program, bool *changed, lode_error *err) {
  client_edit e = {.client = &client_table[i], .root = root, .program = program, .entry = SETUP_CLIENT_ENTRY};
  lode_error why = {.record = LODE_NO_RECORD};
  lode_status st;
  TRY_GOTO(client_path(e.client->file, root, &e.path, err));
  TRY_GOTO(client_link_target(&e, err));
  TRY_GOTO(client_make_folders(e.client, &e.target, err));
  st = client_read_settings(&e, &why);
  if (st == LODE_OK) st = client_new_text(&e, &why);
  TRY_GOTO(client_explain(&e, st, &why, err));
  *changed = !e.same;
  if (!e.same) st = client_replace(&e, err);
done:
  client_edit_release(&e);
  return st;
}

/* For display only: any link is followed. */
lode_status setup_client_preview(size_t i, const char *root, const char *program, strbuf *out, lode_error *err) {
  client_edit e = {.client = &client_table[i], .root = root, .program = program, .entry = SETUP_CLIENT_ENTRY};
  lode_error why = {.record = LODE_NO_RECORD};
  lode_status st;
  TRY_GOTO(client_path(e.client->file, root, &e.path, err));
  st = client_check_text(files_read(e.path.data, CLIENT_MAX_BYTES, &e.text, &why), &e.text, &why);
  if (st == LODE_OK) st = client_new_text(&e, &why);
  TRY_GOTO(client_explain(&e, st, &why, err));
  strbuf_addf(out, "# %s\n", e.path.data);
  strbuf_add(out, e.out.data, e.out.len);
done:
  client_edit_release(&e);
  return st;
}

lode_status setup_client_remove(size_t i, const char *root, const char *entry, bool *changed, lode_error *err) {
  client_edit e = {.client = &client_table[i], .root = root, .entry = entry};
  const char *keys[] = {e.client->key, entry};
  lode_error why = {.record = LODE_NO_RECORD};
  lode_status st;
  *changed = false;
  TRY_GOTO(client_path(e.client->file, root, &e.path, err));
  TRY_GOTO(client_link_target(&e, err));
  st = client_read_settings(&e, &why);
  lode_str old = client_edit_old(&e);
  if (st == LODE_OK)
    st = e.client->form == CLIENT_FORM_TOML ? toml_remove(old, entry, &e.out, &why)
                                            : setup_json_remove(old, keys, 2, &e.out, &why);
  TRY_GOTO(client_explain(&e, st, &why, err));
  if (e.out.len == old.len) goto done;
  TRY_GOTO(client_replace(&e, err));
  *changed = true;
done:
  client_edit_release(&e);
  return st;
}

/* ---- Inspection ---- */

bool setup_client_has(size_t i, const char *root, const char *entry) {
  client_edit e = {.client = &client_table[i], .root = root, .entry = entry};
  lode_str found = {0};
  bool known = client_path(e.client->file, root, &e.path, NULL) == LODE_OK && client_link_target(&e, NULL) == LODE_OK &&
               client_read_settings(&e, NULL) == LODE_OK && client_find_entry(&e, &found, NULL) == LODE_OK;
  bool has = known && found.data;
  client_edit_release(&e);
  return has;
}

lode_status setup_client_inspect(size_t i, const char *root, setup_client_state *state, strbuf *path, lode_error *err) {
  client_edit e = {.client = &client_table[i], .root = root, .entry = SETUP_CLIENT_ENTRY};
  lode_error why = {.record = LODE_NO_RECORD};
  strbuf program = {0};
  lode_str entry = {0};
  *state = SETUP_CLIENT_ABSENT;
  path->len = 0;
  bool has_path = client_path(e.client->file, root, &e.path, NULL) == LODE_OK;
  strbuf_addstr(path, has_path ? e.path.data : "");
  strbuf_addch(path, '\0');
  lode_status st = path->failed ? err_nomem(&why) : LODE_OK;
  if (st != LODE_OK || !has_path) goto done;
  st = client_link_target(&e, &why);
  if (st == LODE_OK) st = client_read_settings(&e, &why);
  if (st == LODE_OK) st = client_find_entry(&e, &entry, &why);
  if (st == LODE_OK && entry.data) {
    st = setup_program_path(&program, &why);
    e.program = program.data;
    if (st == LODE_OK) st = client_new_text(&e, &why);
  }
  if (st == LODE_OK)
    *state = entry.data                       ? (e.same ? SETUP_CLIENT_CURRENT : SETUP_CLIENT_DIFFERENT)
             : client_is_used(e.client, root) ? SETUP_CLIENT_UNSET
                                              : SETUP_CLIENT_ABSENT;
  else if (st != LODE_NOMEM)
    *state = SETUP_CLIENT_BROKEN;
done:
  client_edit_release(&e);
  strbuf_release(&program);
  return st == LODE_NOMEM ? err_nomem(err) : LODE_OK;
}

void setup_client_list(const char *root, strbuf *out) {
  bool first = true;
  strbuf_addch(out, '[');
  for (size_t i = 0; i < setup_client_count(); i++) {
    strbuf path = {0};
    setup_client_state state;
    if (setup_client_inspect(i, root, &state, &path, NULL) == LODE_OK &&
        (state == SETUP_CLIENT_CURRENT || state == SETUP_CLIENT_DIFFERENT)) {
      strbuf_addf(out, "%s\"%s\"", first ? "" : ",", client_table[i].name);
      first = false;
    }
    strbuf_release(&path);
  }
  strbuf_addch(out, ']');
}
