/* SPDX-License-Identifier: Apache-2.0 */
/* complete.c - completion scripts for bash, zsh and fish, derived from the operation table: `lode help --completions`.
 * `make install` installs its output.
 *
 * A command's path is its group and its name, or its name alone.
 */
#include "cli/cli.h"
#include "cli/cli_help.h"
#include "docs/docs.h"
#include "table/op_args_code.h"

#include "project/project_config.h"
#include "scan/language.h"

static bool complete_is_flag(const op_param *p) { return !(p->flags & OP_PARAM_POSITIONAL); }
static bool takes_file(const op_param *p) {
  return p->type == OP_ARG_LINES || p->type == OP_ARG_VECTORS || p->type == OP_ARG_RECORDS || p->type == OP_ARG_PATH;
}
static bool takes_folder(const op_param *p) {
  return p->type == OP_ARG_PATH && p->value && strcmp(p->value, "DIR") == 0;
}
static bool names_collection(const op_param *p) { return strcmp(p->name, "collection") == 0; }

/* Choices with another separator. */
static void complete_put_choices(strbuf *out, const char *choices, char separator) {
  for (; *choices; choices++) strbuf_addch(out, *choices == '|' ? separator : *choices);
}

/* Text inside single quotes; `extra` characters get a backslash. */
static void complete_put_quoted(strbuf *out, const char *text, const char *extra) {
  for (; *text; text++) {
    if (*text == '\'')
      strbuf_addstr(out, "'\\''");
    else {
      if (strchr(extra, *text)) strbuf_addch(out, '\\');
      strbuf_addch(out, *text);
    }
  }
}

/* ---- Values that the program knows ---- */

static void values_put_languages(strbuf *out) {
  for (size_t i = 0; i < lang_count; i++) strbuf_addf(out, "%s ", lang_table[i].name);
}
static void values_put_kinds(strbuf *out) {
  for (size_t i = 0; i < LANG_KIND_COUNT; i++) strbuf_addf(out, "%s ", lang_kind_name((lang_kind)i));
}
static void values_put_settings(strbuf *out) {
  for (size_t i = 0; i < CONFIG_COUNT; i++) strbuf_addf(out, "%s ", config_table[i].key);
}
static void values_put_models(strbuf *out) {
  lode_embedder_options options = {0};
  lode_model_list *list = NULL;
  if (lode_models(&options, &list, NULL) != LODE_OK) return;
  for (size_t i = 0; i < lode_model_list_count(list); i++) strbuf_addf(out, "%s ", lode_model_list_at(list, i)->name);
  lode_model_list_free(list);
}
static void values_put_topics(strbuf *out) {
  for (size_t i = 0; cli_topic_name(i); i++) strbuf_addf(out, "%s ", cli_topic_name(i));
  strbuf_addstr(out, "docs ");
  for (const docs_page *page = docs_pages; page->name; page++)
    if (!cli_help_op_named(str_of(page->name))) strbuf_addf(out, "%s ", page->name);
}

/* The values of a parameter, each followed by a space; false if they are not known. */
static bool complete_put_values(strbuf *out, const op_param *p) {
  static const struct {
    const char *placeholder;
    void (*put)(strbuf *out);
  } known[] = {{"LANGUAGE", values_put_languages}, {"TYPE", values_put_kinds},   {"SETTING", values_put_settings},
               {"MODEL", values_put_models},       {"TOPIC", values_put_topics}, {0}};
  for (size_t i = 0; known[i].placeholder; i++) {
    if (!p->value || strcmp(p->value, known[i].placeholder) != 0) continue;
    if (out) known[i].put(out);
    return true;
  }
  return false;
}

static void complete_put_flags(strbuf *out, const op_param *params) {
  for (const op_param *p = params; p->name; p++) {
    if (!complete_is_flag(p)) continue;
    cli_put_flag(out, p);
    strbuf_addch(out, ' ');
  }
}

/* Is it the first of the tables with this name? Several may share one. */
static bool complete_is_first(const op_group *group) {
  OP_EACH_GROUP(g) if (op_same_group(g->name, group->name)) return g == group;
  return false;
}

/* Names of the groups, separated. */
static void complete_put_groups(strbuf *out, char separator) {
  bool any = false;
  OP_EACH_GROUP(g) {
    if (!g->name || !complete_is_first(g)) continue;
    if (any) strbuf_addch(out, separator);
    strbuf_addstr(out, g->name);
    any = true;
  }
}

/* Names of the operations of a group, each followed by a space. */
static void complete_put_ops(strbuf *out, const char *group) {
  OP_EACH_GROUP(g)
  if (op_same_group(g->name, group)) OP_EACH(g, op) strbuf_addf(out, "%s ", op->name);
}

static void complete_put_path(strbuf *out, const op_def *op) {
  if (op->group) strbuf_addf(out, "%s ", op->group);
  strbuf_addstr(out, op->name);
}

/* Names of the collections, for bash and zsh: the name is the first field of each line. */
#define COMPLETE_COLLECTIONS                                                                                           \
  "lode db collections --json --quiet 2>/dev/null | sed -n 's/^{\"name\":\"\\([^\"\\\\]*\\)\".*/\\1/p'"

/* ---- bash ---- */

static void bash_values(strbuf *out, const op_def *op) {
  for (const op_param *p = op->params; p->name; p++) {
    bool values = complete_put_values(NULL, p), placed = !complete_is_flag(p);
    if (placed ? !values && !(p->choices && p->type == OP_ARG_CHOICE) : !p->choices && !takes_file(p) && !values)
      continue;
    strbuf_addstr(out, op == &cli_common_def ? "    *\"" : "    \"");
    complete_put_path(out, op);
    strbuf_addch(out, ' ');
    if (placed)
      strbuf_addstr(out, op->name); /* the word before the first argument */
    else
      cli_put_flag(out, p);
    strbuf_addstr(out, placed ? "\") if [[ $cur != -* ]]; then " : "\") ");
    if (values) {
      strbuf_addstr(out, "COMPREPLY=($(compgen -W \"");
      complete_put_values(out, p);
      strbuf_addstr(out, "\" -- \"$cur\"))");
    } else if (p->choices) {
      strbuf_addstr(out, "COMPREPLY=($(compgen -W \"");
      complete_put_choices(out, p->choices, ' ');
      strbuf_addstr(out, "\" -- \"$cur\"))");
    } else {
      strbuf_addf(out, "COMPREPLY=($(compgen -%c -- \"$cur\"))", takes_folder(p) ? 'd' : 'f');
    }
    strbuf_addstr(out, placed ? "; return; fi ;;\n" : "; return ;;\n");
  }
}

/* What may follow an incomplete path. */
static void bash_verbs(strbuf *out, const char *group) {
  const op_def *alone = group ? op_find(NULL, str_of(group)) : NULL;
  strbuf_addf(out, "    '%s') ", group ? group : "");
  /* flags, and their values, are those of the operation */
  if (alone) strbuf_addf(out, "if [[ $cur != -* && $prev == %s ]]; then ", group);
  strbuf_addstr(out, "COMPREPLY=($(compgen -W '");
  complete_put_ops(out, group);
  if (!group) {
    complete_put_groups(out, ' ');
    strbuf_addstr(out, " help version --version ");
  }
  strbuf_addf(out, "--help' -- \"$cur\")); return%s ;;\n", alone ? "; fi" : "");
}

void cli_complete_bash(strbuf *out) {
  strbuf_addstr(out, "# bash completion of lode; made by: lode help --completions bash\n"
                     "_lode() {\n"
                     "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path='' word flags=''\n"
                     "  COMPREPLY=()\n"
                     "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
                     "    case $word in -*) continue ;; esac\n"
                     "    if [[ -n $path ]]; then path=\"$path $word\"; break; fi\n"
                     "    path=$word\n"
                     "    case $word in ");
  complete_put_groups(out, '|');
  strbuf_addstr(out, ") ;; *) break ;; esac\n  done\n  case $path in\n");
  bash_verbs(out, NULL);
  OP_EACH_GROUP(g) if (g->name && complete_is_first(g)) bash_verbs(out, g->name);
  strbuf_addstr(out, "  esac\n  case \"$path $prev\" in\n");
  OP_EACH_GROUP(g) OP_EACH(g, op) bash_values(out, op);
  bash_values(out, &cli_help_def);
  bash_values(out, &cli_common_def);
  strbuf_addstr(out, "  esac\n  case $path in\n");
  OP_EACH_GROUP(g) {
    OP_EACH(g, op) {
      strbuf_addstr(out, "    '");
      complete_put_path(out, op);
      strbuf_addstr(out, "') flags='");
      complete_put_flags(out, op->params);
      strbuf_addstr(out, "' ;;\n");
    }
  }
  strbuf_addstr(out, "    help) flags='");
  complete_put_flags(out, cli_help_def.params);
  values_put_topics(out);
  complete_put_ops(out, NULL);
  complete_put_groups(out, ' ');
  strbuf_addstr(out,
                "' ;;\n  esac\n  if [[ $cur == -* || $path == help ]]; then\n    COMPREPLY=($(compgen -W \"$flags ");
  complete_put_flags(out, cli_common_def.params);
  strbuf_addstr(out, "\" -- \"$cur\"))\n  elif [[ $path == \"db $prev\" ]]; then\n"
                     "    COMPREPLY=($(compgen -W \"$(" COMPLETE_COLLECTIONS ")\" -- \"$cur\"))\n"
                     "    [[ ${#COMPREPLY[@]} -gt 0 ]] || COMPREPLY=($(compgen -f -- \"$cur\"))\n"
                     "  else\n    COMPREPLY=($(compgen -f -- \"$cur\"))\n  fi\n}\ncomplete -F _lode lode\n");
}

/* ---- zsh ---- */

static void zsh_param(strbuf *out, const op_param *p) {
  strbuf_addstr(out, " \\\n        '");
  if (complete_is_flag(p)) {
    cli_put_flag(out, p);
    strbuf_addch(out, '[');
    complete_put_quoted(out, p->about, "[]:\\");
    strbuf_addch(out, ']');
    if (p->type == OP_ARG_FLAG) {
      strbuf_addch(out, '\'');
      return;
    }
  } else if (p->flags & OP_PARAM_REQUIRED && p->type != OP_ARG_RECORDS) {
    strbuf_addch(out, ':');
  } else {
    strbuf_addstr(out, "::");
    strbuf_addf(out, "%s", p->value);
  }
  if (complete_is_flag(p) || (p->flags & OP_PARAM_REQUIRED && p->type != OP_ARG_RECORDS)) {
    if (complete_is_flag(p)) strbuf_addch(out, ':');
    strbuf_addstr(out, p->value);
  }
  strbuf_addch(out, ':');
  if (names_collection(p))
    strbuf_addstr(out, "_lode_collections");
  else if (complete_put_values(NULL, p)) {
    strbuf_addch(out, '(');
    complete_put_values(out, p);
    strbuf_addch(out, ')');
  } else if (p->type == OP_ARG_CHOICE) {
    strbuf_addch(out, '(');
    complete_put_choices(out, p->choices, ' ');
    strbuf_addch(out, ')');
  } else if (takes_folder(p))
    strbuf_addstr(out, "_files -/");
  else if (takes_file(p))
    strbuf_addstr(out, "_files");
  strbuf_addch(out, '\'');
}

/* 'name:about' of each operation of a group. */
static void zsh_verbs(strbuf *out, const char *group) {
  OP_EACH_GROUP(g) {
    if (!op_same_group(g->name, group)) continue;
    OP_EACH(g, op) {
      strbuf_addf(out, " '%s:", op->name);
      complete_put_quoted(out, op->about, ":\\");
      strbuf_addch(out, '\'');
    }
  }
}

static void zsh_common(strbuf *out) {
  strbuf_addstr(out, "  common=(");
  for (const op_param *p = cli_common_def.params; p->name; p++) {
    strbuf item = {0};
    zsh_param(&item, p);
    /* without the line continuation, which an array does not need */
    if (item.failed)
      out->failed = true;
    else
      strbuf_addf(out, "\n    %.*s", (int)(item.len - 11), item.data + 11);
    strbuf_release(&item);
  }
  strbuf_addstr(out, "\n  )\n");
}

void cli_complete_zsh(strbuf *out) {
  strbuf_addstr(out, "#compdef lode\n# zsh completion of lode; made by: lode help --completions zsh\n"
                     "_lode_collections() {\n  local -a names\n  names=(${(f)\"$(" COMPLETE_COLLECTIONS ")\"})\n"
                     "  compadd -a names\n}\n"
                     "_lode() {\n  local -a verbs common\n  local cmd=$words[2]\n");
  zsh_common(out);
  strbuf_addstr(out, "  if (( CURRENT == 2 )); then\n    verbs=(");
  zsh_verbs(out, NULL);
  OP_EACH_GROUP(g) if (g->name && complete_is_first(g)) strbuf_addf(out, " '%s:%s'", g->name, g->about);
  strbuf_addstr(out, " 'help:show help')\n    _describe 'command' verbs\n    return\n  fi\n"
                     "  shift words\n  (( CURRENT-- ))\n  verbs=()\n  case $cmd in\n");
  OP_EACH_GROUP(g) {
    if (!g->name || !complete_is_first(g)) continue;
    strbuf_addf(out, "    %s) verbs=(", g->name);
    zsh_verbs(out, g->name);
    strbuf_addstr(out, ") ;;\n");
  }
  strbuf_addstr(out, "    help) compadd ");
  values_put_topics(out);
  complete_put_ops(out, NULL);
  complete_put_groups(out, ' ');
  strbuf_addstr(out, "; return ;;\n  esac\n"
                     "  if (( $#verbs )); then\n"
                     "    if (( CURRENT == 2 )); then _describe 'command' verbs; return; fi\n"
                     "    cmd=\"$cmd $words[2]\"\n    shift words\n    (( CURRENT-- ))\n  fi\n  case $cmd in\n");
  OP_EACH_GROUP(g) {
    OP_EACH(g, op) {
      strbuf_addstr(out, "    '");
      complete_put_path(out, op);
      strbuf_addstr(out, "')\n      _arguments $common");
      for (const op_param *p = op->params; p->name; p++) zsh_param(out, p);
      strbuf_addstr(out, " ;;\n");
    }
  }
  strbuf_addstr(out, "  esac\n}\ncompdef _lode lode\n");
}

/* ---- fish ---- */

static void fish_about(strbuf *out, const char *about) {
  strbuf_addstr(out, " -d '");
  for (const char *c = about; *c; c++) {
    if (*c == '\'' || *c == '\\') strbuf_addch(out, '\\');
    strbuf_addch(out, *c);
  }
  strbuf_addstr(out, "'\n");
}

/* op NULL: at any position. */
static void fish_flag(strbuf *out, const op_param *p, const op_def *op) {
  if (!complete_is_flag(p)) return;
  strbuf_addstr(out, "complete -c lode");
  if (op) {
    strbuf_addstr(out, " -n '__lode_at ");
    complete_put_path(out, op);
    strbuf_addch(out, '\'');
  }
  if (p->letter) strbuf_addf(out, " -s %c", p->letter);
  if (p->name[1]) {
    strbuf_addstr(out, " -l ");
    for (const char *c = p->name; *c; c++) strbuf_addch(out, *c == '_' ? '-' : *c);
  }
  if (p->choices) {
    strbuf_addstr(out, " -x -a '");
    complete_put_choices(out, p->choices, ' ');
    strbuf_addch(out, '\'');
  } else if (complete_put_values(NULL, p)) {
    strbuf_addstr(out, " -x -a '");
    complete_put_values(out, p);
    strbuf_addch(out, '\'');
  } else if (takes_folder(p)) {
    strbuf_addstr(out, " -x -a '(__fish_complete_directories)'");
  } else if (p->type != OP_ARG_FLAG) {
    strbuf_addstr(out, takes_file(p) ? " -r -F" : " -x");
  }
  fish_about(out, p->about);
}

static void fish_op(strbuf *out, const op_def *op) {
  strbuf_addf(out, "complete -c lode -n '__lode_at%s%s' -a %s", op->group ? " " : "", op->group ? op->group : "",
              op->name);
  fish_about(out, op->about);
  for (const op_param *p = op->params; p->name; p++) {
    fish_flag(out, p, op);
    if (!complete_is_flag(p) && complete_put_values(NULL, p)) {
      strbuf_addstr(out, "complete -c lode -n '__lode_at ");
      complete_put_path(out, op);
      strbuf_addstr(out, "' -a '");
      complete_put_values(out, p);
      strbuf_addstr(out, "'\n");
    }
    if (complete_is_flag(p) || (!names_collection(p) && !takes_file(p))) continue;
    strbuf_addstr(out, "complete -c lode -n '__lode_at ");
    complete_put_path(out, op);
    strbuf_addstr(out, names_collection(p) ? "' -a '(__lode_collections)'\n" : "' -F\n");
  }
}

void cli_complete_fish(strbuf *out) {
  strbuf_addstr(out, "# fish completion of lode; made by: lode help --completions fish\n"
                     "function __lode_collections\n"
                     "    lode db collections --json --quiet 2>/dev/null | string replace -rf "
                     "'^\\{\"name\":\"([^\"\\\\\\\\]*)\".*' '$1'\n"
                     "end\n"
                     "# Is the command so far these words?\n"
                     "function __lode_at\n"
                     "    set -l words (string match -v -- '-*' (commandline -opc)[2..])\n"
                     "    set -l n 1\n"
                     "    contains -- \"$words[1]\" ");
  complete_put_groups(out, ' ');
  strbuf_addstr(out, "; and set n 2\n"
                     "    test \"$words[1..$n]\" = \"$argv\"\n"
                     "end\n"
                     "complete -c lode -f\n"
                     "complete -c lode -n __lode_at -a help -d 'show help'\n");
  OP_EACH_GROUP(g) {
    if (!g->name || !complete_is_first(g)) continue;
    strbuf_addf(out, "complete -c lode -n __lode_at -a %s", g->name);
    fish_about(out, g->about);
  }
  for (size_t i = 0; cli_topic_name(i); i++)
    strbuf_addf(out, "complete -c lode -n '__lode_at help' -a %s -d '%s'\n", cli_topic_name(i), cli_topic_about(i));
  for (const docs_page *page = docs_pages; page->name; page++) {
    if (cli_help_op_named(str_of(page->name))) continue;
    strbuf_addf(out, "complete -c lode -n '__lode_at help' -a %s", page->name);
    fish_about(out, page->title);
  }
  OP_EACH_GROUP(g) OP_EACH(g, op) fish_op(out, op);
  for (const op_param *p = cli_common_def.params; p->name; p++) fish_flag(out, p, NULL);
}

lode_status op_do_completion(op_context *ctx, const op_completion_args *args, lode_error *err) {
  static void (*const scripts[])(strbuf *) = {cli_complete_bash, cli_complete_zsh, cli_complete_fish};
  strbuf out = {0};
  if (!ctx->sink->bytes) return err_set(err, LODE_UNSUPPORTED, "completion scripts are for a shell");
  scripts[args->shell.index](&out);
  lode_status st = out.failed ? err_nomem(err) : ctx->sink->bytes(ctx->sink, out.data, out.len, err);
  strbuf_release(&out);
  return st;
}
