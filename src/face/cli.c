/* cli.c - argv to an operation and its arguments. See cli.h. */
#include "cli.h"
#include "suggest.h"

static const lode__param common_params[] = {
    {.name = "store", .type = LODE__ARG_PATH, .value = "DIR",
     .about = "the store's folder, or a cluster's address, qdrant://HOST:PORT; when not given, the nearest .lode folder "
              "upward (no further than a .git; see lode trust), else $XDG_DATA_HOME/lode, else ~/.local/share/lode"},
    {.name = "json", .type = LODE__ARG_FLAG, .about = "one JSON object a line; errors too, on standard error"},
    {.name = "full", .type = LODE__ARG_FLAG, .about = "show documents whole, not their first lines"},
    {.name = "quiet", .type = LODE__ARG_FLAG, .letter = 'q',
     .about = "no progress, no notices, no reports of what was done"},
    {.name = "color", .type = LODE__ARG_CHOICE, .value = "WHEN", .choices = "auto|always|never", .fallback = "auto",
     .about = "colours; auto: on a terminal, unless NO_COLOR is set"},
    {.name = "read_only", .type = LODE__ARG_FLAG, .about = "never write to the store; commands that read never do"},
    {.name = "busy_ms", .type = LODE__ARG_INT, .value = "N", .min = 1, .max = 86400000,
     .about = "how long to wait for a lock that another process holds (10,000)"},
    {.name = "memory", .type = LODE__ARG_SIZE, .value = "SIZE",
     .about = "budget for caches and transactions (256M, at least 16M)"},
    {.name = "max_document", .type = LODE__ARG_SIZE, .value = "SIZE",
     .about = "largest document that is taken (64M, at most 256M)"},
    {.name = "help", .type = LODE__ARG_FLAG, .letter = 'h', .about = "show help"},
    {.name = "version", .type = LODE__ARG_FLAG, .about = "show the version"},
    {0}};
const lode__op lode__cli_common = {.name = "", .params = common_params};

static const lode__param help_params[] = {
    {.name = "topic", .type = LODE__ARG_LIST, .flags = LODE__PARAM_POSITIONAL, .value = "TOPIC",
     .about = "a command or a topic"},
    {.name = "completions", .type = LODE__ARG_CHOICE, .value = "SHELL", .choices = "bash|zsh|fish",
     .about = "print the completion script of a shell"},
    {.name = "schema", .type = LODE__ARG_FLAG, .about = "print the JSON Schemas of the operations, one a line"},
    {.name = "man", .type = LODE__ARG_FLAG, .about = "print a manual page as roff: lode(1), or that of `lode help db --man`, lode-db(1)"},
    {0}};
const lode__op lode__cli_help = {.name = "help",
                                 .about = "show help about a command or a topic",
                                 .params = help_params,
                                 .examples = "lode help\nlode help filters\nlode help db query\n"
                                             "lode help --completions bash > /etc/bash_completion.d/lode"};

int lode__exit_code(lode_status status) {
  switch (status) {
    case LODE_OK: return EXIT_DONE;
    case LODE_NOT_FOUND: return EXIT_NOTHING;
    case LODE_INVALID: return EXIT_USAGE;
    case LODE_CORRUPT: return EXIT_DAMAGED;
    case LODE_BUSY: return EXIT_BUSY;
    case LODE_CANCELLED: return EXIT_INTERRUPTED;
    default: return EXIT_REFUSED;
  }
}

/* ---- Flags ---- */

static bool same_flag(const lode__param *p, lode_str name) {
  if (strlen(p->name) != name.len || (p->flags & LODE__PARAM_POSITIONAL)) return false;
  for (size_t i = 0; i < name.len; i++)
    if ((p->name[i] == '_' ? '-' : p->name[i]) != name.data[i]) return false;
  return true;
}

static const lode__param *find_flag(const lode__param *params, lode_str name, char letter) {
  for (; params && params->name; params++)
    if (letter ? params->letter == letter : same_flag(params, name)) return params;
  return NULL;
}

static const lode__param *flag_of(const lode__command *c, lode_str name, char letter, bool *common) {
  const lode__param *p = c->op ? find_flag(c->op->params, name, letter) : NULL;
  *common = p == NULL;
  return p ? p : find_flag(common_params, name, letter);
}

static void suggest_flags(lode__suggest *best, const lode__param *params) {
  for (; params->name; params++) {
    char text[64];
    if (params->flags & LODE__PARAM_POSITIONAL) continue;
    size_t n = (size_t)snprintf(text, sizeof text, "%s", params->name);
    for (size_t i = 0; i < n; i++)
      if (text[i] == '_') text[i] = '-';
    lode__suggest_try(best, str_of(text));
  }
}

static void put_name(char *buf, size_t size, const lode__command *c) {
  if (!c->op) snprintf(buf, size, "lode%s%s", c->group ? " " : "", c->group ? c->group : "");
  else snprintf(buf, size, "lode %s%s%s", c->op->group ? c->op->group : "", c->op->group ? " " : "", c->op->name);
}

/* `name` is as it was typed, dashes included. */
static lode_status unknown_flag(const lode__command *c, lode_str name, lode_error *err) {
  char quoted[256], command[80];
  lode__suggest best;
  lode__suggest_init(&best, (lode_str){name.data + 2, name.len > 2 ? name.len - 2 : 0});
  if (c->op) suggest_flags(&best, c->op->params);
  suggest_flags(&best, common_params);
  put_name(command, sizeof command, c);
  str_quote(name, quoted, sizeof quoted);
  if (best.found) return err_set(err, LODE_INVALID, "%s has no flag %s; did you mean --%s?", command,
                                    quoted, best.text);
  return err_set(err, LODE_INVALID, "%s has no flag %s; see: %s --help", command, quoted, command);
}

/* A value that is itself a flag of this command was forgotten, not given. */
static bool is_forgotten(const lode__command *c, const char *value) {
  bool common;
  return strncmp(value, "--", 2) == 0 && value[2] && flag_of(c, str_of(value + 2), 0, &common) != NULL;
}

typedef struct cursor {
  int argc, at;
  char **argv;
} cursor;

static lode_status take_flag(lode__command *c, cursor *cur, const lode__param *p, bool common, lode_str attached,
                             lode_error *err) {
  lode__args *args = common ? &c->common : &c->args;
  char label[80];
  lode__param_label(args, p, label, sizeof label);
  if (p->type == LODE__ARG_FLAG) {
    if (attached.data) return err_set(err, LODE_INVALID, "%s takes no value", label);
    return lode__args_set_text(args, p, STR_LIT(""), err);
  }
  if (!attached.data) {
    if (cur->at >= cur->argc || is_forgotten(c, cur->argv[cur->at]))
      return err_set(err, LODE_INVALID, "%s needs a value: %s", label, p->value);
    attached = str_of(cur->argv[cur->at++]);
  }
  return lode__args_set_text(args, p, attached, err);
}

static lode_status take_long(lode__command *c, cursor *cur, const char *word, lode_error *err) {
  const char *equals = strchr(word, '=');
  lode_str name = {word, equals ? (size_t)(equals - word) : strlen(word)};
  bool common;
  const lode__param *p = flag_of(c, name, 0, &common);
  if (!p) return unknown_flag(c, (lode_str){name.data - 2, name.len + 2}, err);
  return take_flag(c, cur, p, common, equals ? str_of(equals + 1) : (lode_str){0}, err);
}

/* -q, -k 5, -k5, -k=5, -qk5 */
static lode_status take_short(lode__command *c, cursor *cur, const char *word, lode_error *err) {
  for (; *word; word++) {
    bool common;
    const lode__param *p = flag_of(c, (lode_str){0}, *word, &common);
    if (!p) {
      char typed[2] = {'-', *word};
      return unknown_flag(c, (lode_str){typed, 2}, err);
    }
    lode_str rest = word[1] ? str_of(word + (word[1] == '=' ? 2 : 1)) : (lode_str){0};
    if (p->type != LODE__ARG_FLAG) return take_flag(c, cur, p, common, rest, err);
    TRY(take_flag(c, cur, p, common, (lode_str){0}, err));
  }
  return LODE_OK;
}

/* ---- Words ---- */

static lode_status unknown_verb(const lode__command *c, const char *word, lode_error *err) {
  char quoted[256];
  const char *group = c->group;
  lode__suggest best;
  lode__suggest_init(&best, str_of(word));
  LODE__EACH_GROUP(g) {
    if (!group && g->name) lode__suggest_try(&best, str_of(g->name));
    if (lode__same_group(g->name, group)) LODE__EACH_OP(g, op) lode__suggest_try(&best, str_of(op->name));
  }
  if (!group) lode__suggest_try(&best, STR_LIT("help"));
  str_quote(str_of(word), quoted, sizeof quoted);
  const char *space = group ? " " : "";
  group = group ? group : "";
  if (!*group && lode__op_find("db", str_of(word)))
    return err_set(err, LODE_INVALID, "lode has no command %s; did you mean `lode db %s`?", quoted, word);
  if (best.found)
    return err_set(err, LODE_INVALID, "lode%s%s has no command %s; did you mean `lode %s%s%s`?", space, group,
                      quoted, group, space, best.text);
  return err_set(err, LODE_INVALID, "lode%s%s has no command %s; see: lode%s%s --help", space, group, quoted,
                    space, group);
}

/* A word may be both a group and a command (`lode mcp`, `lode mcp install`): the word behind it decides. */
static bool names_group(const lode__command *c, const cursor *cur, const char *word) {
  if (c->group || !lode__is_group(str_of(word))) return false;
  if (!lode__op_find(NULL, str_of(word))) return true;
  return cur->at < cur->argc && lode__op_find(word, str_of(cur->argv[cur->at])) != NULL;
}

static lode_status take_command(lode__command *c, const cursor *cur, const char *word, lode_error *err) {
  if (!c->group && strcmp(word, "help") == 0) c->op = &lode__cli_help;
  else if (!c->group && strcmp(word, "version") == 0) c->version = true;
  else if (names_group(c, cur, word)) c->group = word;
  else if ((c->op = lode__op_find(c->group, str_of(word))) == NULL) return unknown_verb(c, word, err);
  if (c->op) {
    lode__args_init(&c->args, c->op);
    c->args.flags = true;
  }
  return LODE_OK;
}

static lode_status take_positional(lode__command *c, const char *word, lode_error *err) {
  char quoted[256], command[80];
  for (const lode__param *p = c->op->params; p->name; p++) {
    if (!(p->flags & LODE__PARAM_POSITIONAL)) continue;
    lode__arg *arg = &c->args.values[p - c->op->params];
    if (arg->set && (p->flags & LODE__PARAM_REST)) return lode__args_add_word(&c->args, arg, str_of(word), err);
    if (!arg->set || p->type == LODE__ARG_LIST) return lode__args_set_text(&c->args, p, str_of(word), err);
  }
  put_name(command, sizeof command, c);
  return err_set(err, LODE_INVALID, "%s has no place for %s; see: %s --help", command,
                    str_quote(str_of(word), quoted, sizeof quoted), command);
}

/* Records come from standard input when no file is named. */
static lode_status default_input(lode__command *c, lode_error *err) {
  for (const lode__param *p = c->op->params; p->name; p++)
    if (p->type == LODE__ARG_RECORDS && !c->args.values[p - c->op->params].set)
      TRY(lode__args_set_text(&c->args, p, STR_LIT("-"), err));
  return LODE_OK;
}

static lode_status take_all(lode__command *c, cursor *cur, lode_error *err) {
  bool flags = true;
  while (cur->at < cur->argc) {
    const char *word = cur->argv[cur->at++];
    lode_status st;
    if (flags && strcmp(word, "--") == 0) {
      flags = false;
      continue;
    }
    if (flags && strncmp(word, "--", 2) == 0) st = take_long(c, cur, word + 2, err);
    else if (flags && word[0] == '-' && word[1]) st = take_short(c, cur, word + 1, err);
    else if (!c->op) st = take_command(c, cur, word, err);
    else st = take_positional(c, word, err);
    if (st != LODE_OK) return st;
  }
  return LODE_OK;
}

/* Help is given even where the rest of the line is wrong or not finished. */
static bool asks_help(int argc, char **argv) {
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
  return false;
}

lode_status lode__cli_parse(lode__command *command, int argc, char **argv, lode_error *err) {
  cursor cur = {argc, 1, argv};
  memset(command, 0, sizeof *command);
  lode__args_init(&command->common, &lode__cli_common);
  command->common.flags = true;
  lode_status st = take_all(command, &cur, err);
  command->help = asks_help(argc, argv);
  if (command->help && (command->op || command->group || st == LODE_OK)) return LODE_OK;
  TRY(st);
  TRY(lode__args_finish(&command->common, err));
  command->version = command->version || lode__arg_of(&command->common, "version")->number;
  if (!command->op || command->version) return LODE_OK;
  TRY(default_input(command, err));
  return lode__args_finish(&command->args, err);
}

void lode__command_release(lode__command *command) {
  if (command->op) lode__args_release(&command->args);
  lode__args_release(&command->common);
}
