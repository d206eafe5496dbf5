/* SPDX-License-Identifier: Apache-2.0 */
/* cli.c - parses argv into an operation and its arguments. See cli.h. */
#include "cli/cli.h"
#include "table/op_table.h"
#include "ops/suggest.h"

static const op_param params_common[] = {
    {OP_PATH(cli_common_args, store), .value = "DIR",
     .about =
         "the store's folder, or a cluster's address, qdrant://HOST:PORT; when not given, the nearest .lode folder "
         "upward (no further than a .git; see lode trust), else $XDG_DATA_HOME/lode, else ~/.local/share/lode"},
    {OP_FLAG(cli_common_args, json), .about = "one JSON object per line; errors too, on standard error"},
    {OP_FLAG(cli_common_args, full), .about = "show whole documents, not only their first lines"},
    {OP_FLAG(cli_common_args, quiet), .letter = 'q', .about = "no progress, no notices, no reports of what was done"},
    {OP_FLAG(cli_common_args, verbose), .letter = 'v', .about = "show every figure, not only those that matter most"},
    {OP_CHOICE(cli_common_args, color), .value = "WHEN", .choices = "auto|always|never", .fallback = "auto",
     .about = "colours; auto: on a terminal, unless NO_COLOR is set"},
    {OP_FLAG(cli_common_args, read_only), .about = "never write to the store; commands that only read never do"},
    {OP_INT(cli_common_args, busy_ms), .value = "N", .min = 1, .max = 86400000,
     .about = "how long to wait for a lock that another process holds (10,000)"},
    {OP_SIZE(cli_common_args, memory), .value = "SIZE",
     .about = "budget for caches and transactions (256M, at least 16M)"},
    {OP_SIZE(cli_common_args, max_document), .value = "SIZE",
     .about = "largest document that is accepted (64M, at most 256M)"},
    {OP_FLAG(cli_common_args, help), .letter = 'h', .about = "show help"},
    {OP_FLAG(cli_common_args, version), .letter = 'V', .about = "show the version"},
    {0}};
const op_def cli_common_def = {.name = "", .params = params_common, .args_size = sizeof(cli_common_args)};

static const op_param params_help[] = {
    {OP_LIST(cli_help_args, topic), .flags = OP_PARAM_POSITIONAL, .value = "TOPIC", .about = "a command or a topic"},
    {OP_CHOICE(cli_help_args, completions), .value = "SHELL", .choices = "bash|zsh|fish",
     .about = "print a completion script for a shell"},
    {OP_FLAG(cli_help_args, schema), .about = "print the JSON Schemas of the operations, one per line"},
    {OP_FLAG(cli_help_args, man),
     .about = "print a manual page as roff: lode(1), that of `lode help db --man`, lode-db(1), or that of a command"},
    {OP_FLAG(cli_help_args, list), .about = "print the names of all commands, one per line"},
    {0}};
const op_def cli_help_def = {
    .name = "help",
    .about = "show help about a command or a topic",
    .params = params_help,
    .args_size = sizeof(cli_help_args),
    .examples = "lode help\nlode help filters\nlode help db query\nlode help cookbook\nlode help docs search\n"
                "lode help --completions bash > /etc/bash_completion.d/lode"};

int cli_exit_code(lode_status status) {
  switch (status) {
    case LODE_OK: return CLI_EXIT_DONE;
    case LODE_NOT_FOUND: return CLI_EXIT_NOTHING;
    case LODE_INVALID: return CLI_EXIT_USAGE;
    case LODE_CORRUPT: return CLI_EXIT_DAMAGED;
    case LODE_BUSY: return CLI_EXIT_BUSY;
    case LODE_CANCELLED: return CLI_EXIT_INTERRUPTED;
    default: return CLI_EXIT_REFUSED;
  }
}

/* ---- Flags ---- */

static bool flag_matches(const op_param *p, lode_str name) {
  if (strlen(p->name) != name.len || (p->flags & OP_PARAM_POSITIONAL)) return false;
  for (size_t i = 0; i < name.len; i++)
    if ((p->name[i] == '_' ? '-' : p->name[i]) != name.data[i]) return false;
  return true;
}

static const op_param *flag_find(const op_param *params, lode_str name, char letter) {
  for (; params && params->name; params++)
    if (letter ? params->letter == letter : flag_matches(params, name)) return params;
  return NULL;
}

static const op_param *flag_of_command(const cli_command *c, lode_str name, char letter, bool *common) {
  const op_param *p = c->op ? flag_find(c->op->params, name, letter) : NULL;
  *common = p == NULL;
  return p ? p : flag_find(params_common, name, letter);
}

static void flag_suggest(op_suggest *best, const op_param *params) {
  for (; params->name; params++) {
    char text[64];
    if (params->flags & OP_PARAM_POSITIONAL) continue;
    size_t n = (size_t)snprintf(text, sizeof text, "%s", params->name);
    for (size_t i = 0; i < n; i++)
      if (text[i] == '_') text[i] = '-';
    op_suggest_try(best, str_of(text));
  }
}

static void command_put_name(char *buf, size_t size, const cli_command *c) {
  if (!c->op)
    snprintf(buf, size, "lode%s%s", c->group ? " " : "", c->group ? c->group : "");
  else
    snprintf(buf, size, "lode %s%s%s", c->op->group ? c->op->group : "", c->op->group ? " " : "", c->op->name);
}

/* `name` is as typed, dashes included. */
static lode_status flag_unknown(const cli_command *c, lode_str name, lode_error *err) {
  char quoted[256], command[80];
  op_suggest best;
  op_suggest_init(&best, (lode_str){name.data + 2, name.len > 2 ? name.len - 2 : 0});
  if (c->op) flag_suggest(&best, c->op->params);
  flag_suggest(&best, params_common);
  command_put_name(command, sizeof command, c);
  str_quote(name, quoted, sizeof quoted);
  if (best.found)
    return err_set(err, LODE_INVALID, "%s has no flag %s; did you mean --%s?", command, quoted, best.text);
  return err_set(err, LODE_INVALID, "%s has no flag %s; see: %s --help", command, quoted, command);
}

/* If the next word is itself a flag of this command, the value was forgotten. */
static bool flag_value_forgotten(const cli_command *c, const char *value) {
  bool common;
  return strncmp(value, "--", 2) == 0 && value[2] && flag_of_command(c, str_of(value + 2), 0, &common) != NULL;
}

typedef struct argv_cursor {
  int argc, at;
  char **argv;
} argv_cursor;

static lode_status argv_take_flag(cli_command *c, argv_cursor *cur, const op_param *p, bool common, lode_str attached,
                                  lode_error *err) {
  op_args *args = common ? &c->common : &c->args;
  char label[80];
  op_param_label(args, p, label, sizeof label);
  if (p->type == OP_ARG_FLAG) {
    if (attached.data) return err_set(err, LODE_INVALID, "%s takes no value", label);
    return op_args_set_text(args, p, STR_LIT(""), err);
  }
  if (!attached.data) {
    if (cur->at >= cur->argc || flag_value_forgotten(c, cur->argv[cur->at]))
      return err_set(err, LODE_INVALID, "%s needs a value: %s", label, p->value);
    attached = str_of(cur->argv[cur->at++]);
  }
  return op_args_set_text(args, p, attached, err);
}

static lode_status argv_take_long(cli_command *c, argv_cursor *cur, const char *word, lode_error *err) {
  const char *equals = strchr(word, '=');
  lode_str name = {word, equals ? (size_t)(equals - word) : strlen(word)};
  bool common;
  const op_param *p = flag_of_command(c, name, 0, &common);
  if (!p) return flag_unknown(c, (lode_str){name.data - 2, name.len + 2}, err);
  return argv_take_flag(c, cur, p, common, equals ? str_of(equals + 1) : (lode_str){0}, err);
}

/* -q, -k 5, -k5, -k=5, -qk5 */
static lode_status argv_take_short(cli_command *c, argv_cursor *cur, const char *word, lode_error *err) {
  for (; *word; word++) {
    bool common;
    const op_param *p = flag_of_command(c, (lode_str){0}, *word, &common);
    if (!p) {
      char typed[2] = {'-', *word};
      return flag_unknown(c, (lode_str){typed, 2}, err);
    }
    lode_str rest = word[1] ? str_of(word + (word[1] == '=' ? 2 : 1)) : (lode_str){0};
    if (p->type != OP_ARG_FLAG) return argv_take_flag(c, cur, p, common, rest, err);
    TRY(argv_take_flag(c, cur, p, common, (lode_str){0}, err));
  }
  return LODE_OK;
}

/* ---- Words ---- */

/* What people type who know other programs. */
static const char *command_by_habit(const char *word) {
  static const char *const habits[][2] = {
      {"find", "search"},
      {"grep", "search"},
      {"ask", "search"},
      {"rg", "search"},
      {"init", "setup"},
      {"install", "setup"},
      {"web", "ui"},
      {"open", "ui"},
      {"browse", "ui"},
      {"update", "index"},
      {"build", "index"},
      {"reindex", "index --force"},
      {"sync", "index"},
      {"info", "status"},
      {"check", "doctor"},
      {"fix", "doctor --repair"},
      {"repair", "doctor --repair"},
      {"clean", "reset"},
      {"remove", "reset"},
      {"ls", "db collections"},
      {"list", "db collections"},
      {"start", "serve"},
      {"server", "serve"},
      {"models", "model list"},
      {"settings", "config list"},
      {"usages", "refs"},
      {"uses", "refs"},
      {"definition", "def"},
      {"symbols", "outline"},
  };
  for (size_t i = 0; i < sizeof habits / sizeof *habits; i++)
    if (strcmp(habits[i][0], word) == 0) return habits[i][1];
  return NULL;
}

static lode_status command_unknown(const cli_command *c, const char *word, lode_error *err) {
  char quoted[256];
  const char *group = c->group;
  op_suggest best;
  op_suggest_init(&best, str_of(word));
  OP_EACH_GROUP(g) {
    if (!group && g->name) op_suggest_try(&best, str_of(g->name));
    if (op_same_group(g->name, group)) OP_EACH(g, op) op_suggest_try(&best, str_of(op->name));
  }
  if (!group) op_suggest_try(&best, STR_LIT("help"));
  str_quote(str_of(word), quoted, sizeof quoted);
  const char *space = group ? " " : "";
  group = group ? group : "";
  const char *habit = *group ? NULL : command_by_habit(word);
  if (habit) return err_set(err, LODE_INVALID, "lode has no command %s; did you mean `lode %s`?", quoted, habit);
  if (!*group && op_find("db", str_of(word)))
    return err_set(err, LODE_INVALID, "lode has no command %s; did you mean `lode db %s`?", quoted, word);
  if (best.found)
    return err_set(err, LODE_INVALID, "lode%s%s has no command %s; did you mean `lode %s%s%s`?", space, group, quoted,
                   group, space, best.text);
  return err_set(err, LODE_INVALID, "lode%s%s has no command %s; see: lode%s%s --help", space, group, quoted, space,
                 group);
}

/* A word may be both a group and a command (`lode mcp`, `lode mcp install`): the next word decides. */
static bool command_names_group(const cli_command *c, const argv_cursor *cur, const char *word) {
  if (c->group || !op_is_group(str_of(word))) return false;
  if (!op_find(NULL, str_of(word))) return true;
  return cur->at < cur->argc && op_find(word, str_of(cur->argv[cur->at])) != NULL;
}

static lode_status argv_take_command(cli_command *c, const argv_cursor *cur, const char *word, lode_error *err) {
  if (!c->group && strcmp(word, "help") == 0)
    c->op = &cli_help_def;
  else if (!c->group && strcmp(word, "version") == 0)
    c->version = true;
  else if (command_names_group(c, cur, word))
    c->group = word;
  else if ((c->op = op_find(c->group, str_of(word))) == NULL)
    return command_unknown(c, word, err);
  if (!c->op) return LODE_OK;
  TRY(op_args_init(&c->args, c->op, err));
  c->args.flags = true;
  return LODE_OK;
}

static lode_status argv_take_positional(cli_command *c, const char *word, lode_error *err) {
  char quoted[256], command[80];
  for (const op_param *p = c->op->params; p->name; p++) {
    if (!(p->flags & (OP_PARAM_POSITIONAL | OP_PARAM_EITHER))) continue;
    bool set = op_args_is_set(&c->args, p);
    if (p->type == OP_ARG_LIST || (set && (p->flags & OP_PARAM_REST)))
      return op_args_add_word(&c->args, p, str_of(word), err);
    if (!set) return op_args_set_text(&c->args, p, str_of(word), err);
  }
  command_put_name(command, sizeof command, c);
  return err_set(err, LODE_INVALID, "%s takes no argument %s; see: %s --help", command,
                 str_quote(str_of(word), quoted, sizeof quoted), command);
}

/* Records are read from standard input if no file is named. */
static lode_status command_default_input(cli_command *c, lode_error *err) {
  for (const op_param *p = c->op->params; p->name; p++)
    if (p->type == OP_ARG_RECORDS && !op_args_is_set(&c->args, p))
      TRY(op_args_set_text(&c->args, p, STR_LIT("-"), err));
  return LODE_OK;
}

static lode_status argv_take_all(cli_command *c, argv_cursor *cur, lode_error *err) {
  bool flags = true;
  while (cur->at < cur->argc) {
    const char *word = cur->argv[cur->at++];
    lode_status st;
    if (flags && strcmp(word, "--") == 0) {
      flags = false;
      continue;
    }
    if (flags && strncmp(word, "--", 2) == 0)
      st = argv_take_long(c, cur, word + 2, err);
    else if (flags && word[0] == '-' && word[1])
      st = argv_take_short(c, cur, word + 1, err);
    else if (!c->op)
      st = argv_take_command(c, cur, word, err);
    else
      st = argv_take_positional(c, word, err);
    if (st != LODE_OK) return st;
  }
  return LODE_OK;
}

/* Help is shown even if the rest of the line is wrong or incomplete. */
static bool argv_asks_help(int argc, char **argv) {
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
  return false;
}

lode_status cli_parse(cli_command *command, int argc, char **argv, lode_error *err) {
  argv_cursor cur = {argc, 1, argv};
  memset(command, 0, sizeof *command);
  TRY(op_args_init(&command->common, &cli_common_def, err));
  command->common.flags = true;
  lode_status st = argv_take_all(command, &cur, err);
  command->help = argv_asks_help(argc, argv);
  if (command->help && (command->op || command->group || st == LODE_OK)) return LODE_OK;
  TRY(st);
  TRY(op_args_finish(&command->common, err));
  command->version = command->version || cli_common(command)->version.on;
  if (!command->op || command->version) return LODE_OK;
  TRY(command_default_input(command, err));
  return op_args_finish(&command->args, err);
}

const cli_common_args *cli_common(const cli_command *command) {
  static const cli_common_args none;
  return command->common.values ? command->common.values : &none;
}

void cli_command_release(cli_command *command) {
  if (command->op) op_args_release(&command->args);
  op_args_release(&command->common);
}
