/* complete.c - completion scripts of bash, zsh and fish, made from the table of operations: `lode help --completions`.
 * The files in completions/ are its output; test/cli.sh compares them. */
#include "cli.h"

static bool is_flag(const lode__param *p) { return !(p->flags & LODE__PARAM_POSITIONAL); }
static bool takes_file(const lode__param *p) {
  return p->type == LODE__ARG_LINES || p->type == LODE__ARG_VECTORS || p->type == LODE__ARG_RECORDS ||
      p->type == LODE__ARG_PATH;
}
static bool takes_folder(const lode__param *p) {
  return p->type == LODE__ARG_PATH && p->value && strcmp(p->value, "DIR") == 0;
}
static bool names_collection(const lode__param *p) { return strcmp(p->name, "collection") == 0; }

/* Choices with another separator. */
static void put_choices(lode__buf *out, const char *choices, char separator) {
  for (; *choices; choices++) lode__buf_addc(out, *choices == '|' ? separator : *choices);
}

/* Text for the inside of single quotes; `extra` characters get a backslash. */
static void put_quoted(lode__buf *out, const char *text, const char *extra) {
  for (; *text; text++) {
    if (*text == '\'') lode__buf_adds(out, "'\\''");
    else {
      if (strchr(extra, *text)) lode__buf_addc(out, '\\');
      lode__buf_addc(out, *text);
    }
  }
}

static void put_flags(lode__buf *out, const lode__param *params) {
  for (const lode__param *p = params; p->name; p++) {
    if (!is_flag(p)) continue;
    lode__put_flag(out, p);
    lode__buf_addc(out, ' ');
  }
}

static void put_verbs(lode__buf *out) {
  for (const lode__op *op = lode__ops; op->name; op++) lode__buf_addf(out, op == lode__ops ? "%s" : " %s", op->name);
}

/* Names of the collections, for bash and zsh: the name is the first field of each line. */
#define COLLECTIONS \
  "lode db collections --json --quiet 2>/dev/null | sed -n 's/^{\"name\":\"\\([^\"\\\\]*\\)\".*/\\1/p'"

/* ---- bash ---- */

static void bash_values(lode__buf *out, const lode__op *op) {
  for (const lode__param *p = op->params; p->name; p++) {
    if (!is_flag(p) || (!p->choices && !takes_file(p))) continue;
    if (op->group) lode__buf_addf(out, "    \"%s ", op->name);
    else lode__buf_adds(out, "    *\" ");
    lode__put_flag(out, p);
    lode__buf_adds(out, "\") ");
    if (p->choices) {
      lode__buf_adds(out, "COMPREPLY=($(compgen -W \"");
      put_choices(out, p->choices, ' ');
      lode__buf_adds(out, "\" -- \"$cur\"))");
    } else {
      lode__buf_addf(out, "COMPREPLY=($(compgen -%c -- \"$cur\"))", takes_folder(p) ? 'd' : 'f');
    }
    lode__buf_adds(out, "; return ;;\n");
  }
}

void lode__complete_bash(lode__buf *out) {
  lode__buf_adds(out, "# bash completion of lode; made by: lode help --completions bash\n"
                      "_lode() {\n"
                      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb='' word flags=''\n"
                      "  COMPREPLY=()\n"
                      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
                      "    case $word in -*|db) ;; *) verb=$word; break ;; esac\n"
                      "  done\n"
                      "  if [[ $COMP_CWORD -eq 1 ]]; then\n"
                      "    COMPREPLY=($(compgen -W 'db help version --help --version' -- \"$cur\")); return\n"
                      "  fi\n"
                      "  if [[ $COMP_CWORD -eq 2 && $prev == db ]]; then\n"
                      "    COMPREPLY=($(compgen -W '");
  put_verbs(out);
  lode__buf_adds(out, "' -- \"$cur\")); return\n  fi\n  case \"$verb $prev\" in\n");
  for (const lode__op *op = lode__ops; op->name; op++) bash_values(out, op);
  bash_values(out, &lode__cli_common);
  lode__buf_adds(out, "    \"help --completions\") COMPREPLY=($(compgen -W 'bash zsh fish' -- \"$cur\")); return ;;\n  esac\n"
                      "  case $verb in\n");
  for (const lode__op *op = lode__ops; op->name; op++) {
    lode__buf_addf(out, "    %s) flags='", op->name);
    put_flags(out, op->params);
    lode__buf_adds(out, "' ;;\n");
  }
  lode__buf_adds(out, "    help) flags='");
  put_flags(out, lode__cli_help.params);
  for (size_t i = 0; lode__topic_name(i); i++) lode__buf_addf(out, "%s ", lode__topic_name(i));
  lode__buf_adds(out, "db' ;;\n  esac\n  if [[ $cur == -* || $verb == help ]]; then\n    COMPREPLY=($(compgen -W \"$flags ");
  put_flags(out, lode__cli_common.params);
  lode__buf_adds(out, "\" -- \"$cur\"))\n  elif [[ $prev == \"$verb\" ]]; then\n"
                      "    COMPREPLY=($(compgen -W \"$(" COLLECTIONS ")\" -- \"$cur\"))\n"
                      "    [[ ${#COMPREPLY[@]} -gt 0 ]] || COMPREPLY=($(compgen -f -- \"$cur\"))\n"
                      "  else\n    COMPREPLY=($(compgen -f -- \"$cur\"))\n  fi\n}\ncomplete -F _lode lode\n");
}

/* ---- zsh ---- */

static void zsh_param(lode__buf *out, const lode__param *p) {
  lode__buf_adds(out, " \\\n        '");
  if (is_flag(p)) {
    lode__put_flag(out, p);
    lode__buf_addc(out, '[');
    put_quoted(out, p->about, "[]:\\");
    lode__buf_addc(out, ']');
    if (p->type == LODE__ARG_FLAG) {
      lode__buf_addc(out, '\'');
      return;
    }
  } else if (p->flags & LODE__PARAM_REQUIRED && p->type != LODE__ARG_RECORDS) {
    lode__buf_addc(out, ':');
  } else {
    lode__buf_adds(out, "::");
    lode__buf_addf(out, "%s", p->value);
  }
  if (is_flag(p) || (p->flags & LODE__PARAM_REQUIRED && p->type != LODE__ARG_RECORDS)) {
    if (is_flag(p)) lode__buf_addc(out, ':');
    lode__buf_adds(out, p->value);
  }
  lode__buf_addc(out, ':');
  if (names_collection(p)) lode__buf_adds(out, "_lode_collections");
  else if (p->type == LODE__ARG_CHOICE) {
    lode__buf_addc(out, '(');
    put_choices(out, p->choices, ' ');
    lode__buf_addc(out, ')');
  } else if (takes_folder(p)) lode__buf_adds(out, "_files -/");
  else if (takes_file(p)) lode__buf_adds(out, "_files");
  lode__buf_addc(out, '\'');
}

void lode__complete_zsh(lode__buf *out) {
  lode__buf_adds(out, "#compdef lode\n# zsh completion of lode; made by: lode help --completions zsh\n"
                      "_lode_collections() {\n  local -a names\n  names=(${(f)\"$(" COLLECTIONS ")\"})\n"
                      "  compadd -a names\n}\n"
                      "_lode_db() {\n  local -a verbs common\n  verbs=(\n");
  for (const lode__op *op = lode__ops; op->name; op++) {
    lode__buf_addf(out, "    '%s:", op->name);
    put_quoted(out, op->about, ":\\");
    lode__buf_adds(out, "'\n");
  }
  lode__buf_adds(out, "  )\n  common=(");
  for (const lode__param *p = lode__cli_common.params; p->name; p++) {
    lode__buf item = {0};
    zsh_param(&item, p);
    /* Without the line continuation, which an array does not need */
    if (item.failed) out->failed = true;
    else lode__buf_addf(out, "\n    %.*s", (int)(item.len - 11), item.data + 11);
    lode__buf_release(&item);
  }
  lode__buf_adds(out, "\n  )\n  if (( CURRENT == 2 )); then\n    _describe 'command' verbs\n    return\n  fi\n"
                      "  local verb=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $verb in\n");
  for (const lode__op *op = lode__ops; op->name; op++) {
    lode__buf_addf(out, "    %s)\n      _arguments $common", op->name);
    for (const lode__param *p = op->params; p->name; p++) zsh_param(out, p);
    lode__buf_adds(out, " ;;\n");
  }
  lode__buf_adds(out, "  esac\n}\n_lode() {\n  if (( CURRENT == 2 )); then\n    compadd db help version -- --help --version\n    return\n  fi\n"
                      "  case $words[2] in\n    db) shift words; (( CURRENT-- )); _lode_db ;;\n    help) compadd db");
  for (size_t i = 0; lode__topic_name(i); i++) lode__buf_addf(out, " %s", lode__topic_name(i));
  lode__buf_adds(out, " ;;\n  esac\n}\ncompdef _lode lode\n");
}

/* ---- fish ---- */

static void fish_flag(lode__buf *out, const lode__param *p, const char *condition) {
  if (!is_flag(p)) return;
  lode__buf_addf(out, "complete -c lode -n '%s'", condition);
  if (p->letter) lode__buf_addf(out, " -s %c", p->letter);
  if (p->name[1]) {
    lode__buf_adds(out, " -l ");
    for (const char *c = p->name; *c; c++) lode__buf_addc(out, *c == '_' ? '-' : *c);
  }
  if (p->choices) {
    lode__buf_adds(out, " -x -a '");
    put_choices(out, p->choices, ' ');
    lode__buf_addc(out, '\'');
  } else if (takes_folder(p)) {
    lode__buf_adds(out, " -x -a '(__fish_complete_directories)'");
  } else if (p->type != LODE__ARG_FLAG) {
    lode__buf_adds(out, takes_file(p) ? " -r -F" : " -x");
  }
  lode__buf_adds(out, " -d '");
  for (const char *c = p->about; *c; c++) {
    if (*c == '\'' || *c == '\\') lode__buf_addc(out, '\\');
    lode__buf_addc(out, *c);
  }
  lode__buf_adds(out, "'\n");
}

void lode__complete_fish(lode__buf *out) {
  lode__buf_adds(out, "# fish completion of lode; made by: lode help --completions fish\n"
                      "function __lode_collections\n"
                      "    lode db collections --json --quiet 2>/dev/null | string replace -rf '^\\{\"name\":\"([^\"\\\\\\\\]*)\".*' '$1'\n"
                      "end\n"
                      "complete -c lode -f\n"
                      "complete -c lode -n __fish_use_subcommand -a db -d 'the vector database'\n"
                      "complete -c lode -n __fish_use_subcommand -a help -d 'show help'\n"
                      "complete -c lode -n __fish_use_subcommand -l version -d 'show the version'\n");
  for (size_t i = 0; lode__topic_name(i); i++)
    lode__buf_addf(out, "complete -c lode -n '__fish_seen_subcommand_from help' -a %s -d '%s'\n",
                   lode__topic_name(i), lode__topic_about(i));
  lode__buf_adds(out, "set -l verbs ");
  put_verbs(out);
  lode__buf_addc(out, '\n');
  for (const lode__op *op = lode__ops; op->name; op++) {
    char condition[80];
    snprintf(condition, sizeof condition, "__fish_seen_subcommand_from %s", op->name);
    lode__buf_addf(out, "complete -c lode -n \"__fish_seen_subcommand_from db; and not __fish_seen_subcommand_from $verbs\" -a %s -d '%s'\n",
                   op->name, op->about);
    for (const lode__param *p = op->params; p->name; p++) {
      fish_flag(out, p, condition);
      if (names_collection(p)) lode__buf_addf(out, "complete -c lode -n '%s' -a '(__lode_collections)'\n", condition);
      else if (!is_flag(p) && takes_file(p)) lode__buf_addf(out, "complete -c lode -n '%s' -F\n", condition);
    }
  }
  for (const lode__param *p = lode__cli_common.params; p->name; p++)
    fish_flag(out, p, "__fish_seen_subcommand_from db");
}
