/* SPDX-License-Identifier: Apache-2.0 */
/* cli_help.c - help texts, derived from the operation table. */
#include "cli/cli.h"
#include "cli/cli_help.h"
#include "docs/docs.h"
#include "table/op_table.h"

enum { HELP_FLAG_COLUMN = 26, HELP_OP_COLUMN = 21 };

static void help_heading(strbuf *out, const char *text, const cli_style *style) {
  strbuf_addf(out, "\n%s%s%s\n", style->color ? "\033[1m" : "", text, style->color ? "\033[0m" : "");
}

void cli_put_flag(strbuf *out, const op_param *p) {
  if (p->letter && p->name[1] == '\0') {
    strbuf_addf(out, "-%c", p->letter);
    return;
  }
  strbuf_addstr(out, "--");
  for (const char *c = p->name; *c; c++) strbuf_addch(out, *c == '_' ? '-' : *c);
}

void cli_put_wrapped(strbuf *out, const char *text, size_t indent, size_t at, size_t width) {
  bool first = true;
  if (width < indent + 20) width = indent + 20;
  while (*text) {
    size_t len = strcspn(text, " ");
    if (!first && at + 1 + len > width) {
      strbuf_addf(out, "\n%*s", (int)indent, "");
      at = indent;
    } else if (!first) {
      strbuf_addch(out, ' ');
      at++;
    }
    strbuf_add(out, text, len);
    at += len;
    first = false;
    text += len;
    while (*text == ' ') text++;
  }
  strbuf_addch(out, '\n');
}

/* ---- One operation ---- */

void cli_help_usage(strbuf *out, const op_def *op) {
  bool flags = false;
  strbuf_addstr(out, "lode ");
  if (op->group) strbuf_addf(out, "%s ", op->group);
  strbuf_addstr(out, op->name);
  for (const op_param *p = op->params; p->name; p++) {
    bool needed = (p->flags & OP_PARAM_REQUIRED) && p->type != OP_ARG_RECORDS;
    if (!(p->flags & OP_PARAM_POSITIONAL)) flags = true;
    if (p->flags & (OP_PARAM_POSITIONAL | OP_PARAM_EITHER)) strbuf_addf(out, needed ? " %s" : " [%s]", p->value);
  }
  if (flags) strbuf_addstr(out, " [FLAGS]");
}

static void help_put_param(strbuf *out, const op_param *p, size_t width) {
  size_t start = out->len;
  strbuf_addstr(out, "  ");
  if (p->flags & OP_PARAM_POSITIONAL) {
    strbuf_addstr(out, p->value);
  } else {
    if (p->letter && p->name[1]) strbuf_addf(out, "-%c, ", p->letter);
    cli_put_flag(out, p);
    if (p->type != OP_ARG_FLAG) strbuf_addf(out, " %s", p->value);
  }
  size_t at = out->len - start;
  if (at + 2 > HELP_FLAG_COLUMN) {
    strbuf_addf(out, "\n%*s", HELP_FLAG_COLUMN, "");
  } else {
    strbuf_addf(out, "%*s", (int)(HELP_FLAG_COLUMN - at), "");
  }
  strbuf about = {0};
  strbuf_addstr(&about, p->about);
  if (p->choices) {
    strbuf_addf(&about, p->type == OP_ARG_SET ? "; any of %s, or all, or none" : "; one of %s", p->choices);
  }
  if (p->fallback && !(p->type == OP_ARG_REAL && strcmp(p->fallback, "1") == 0))
    strbuf_addf(&about, " (%s)", p->fallback);
  if (p->type == OP_ARG_JSON || p->type == OP_ARG_VECTOR) strbuf_addstr(&about, "; the text, @FILE, or -");
  strbuf_addch(&about, '\0');
  if (about.failed)
    out->failed = true;
  else
    cli_put_wrapped(out, about.data, HELP_FLAG_COLUMN, HELP_FLAG_COLUMN, width);
  strbuf_release(&about);
}

static void help_put_params(strbuf *out, const op_param *params, bool positional, const char *title,
                            const cli_style *style) {
  bool any = false;
  for (const op_param *p = params; p->name; p++) {
    if (((p->flags & OP_PARAM_POSITIONAL) != 0) != positional) continue;
    if (!any) help_heading(out, title, style);
    any = true;
    help_put_param(out, p, style->width);
  }
}

static void help_put_examples(strbuf *out, const char *examples, const cli_style *style) {
  help_heading(out, "Examples", style);
  while (*examples) {
    size_t len = strcspn(examples, "\n");
    strbuf_addstr(out, "  ");
    strbuf_add(out, examples, len);
    strbuf_addch(out, '\n');
    examples += len + (examples[len] == '\n');
  }
}

static void help_put_fields(strbuf *out, const op_field *fields, const char *title, const cli_style *style) {
  help_heading(out, title, style);
  for (const op_field *f = fields; f->name; f++) {
    strbuf_addf(out, "  %-*s", HELP_FLAG_COLUMN - 2, f->name);
    cli_put_wrapped(out, f->about, HELP_FLAG_COLUMN, HELP_FLAG_COLUMN, style->width);
  }
}

void cli_help_op(strbuf *out, const op_def *op, const cli_style *style) {
  strbuf_addf(out, "lode %s%s%s - %s\n", op->group ? op->group : "", op->group ? " " : "", op->name, op->about);
  help_heading(out, "Usage", style);
  strbuf_addstr(out, "  ");
  cli_help_usage(out, op);
  strbuf_addch(out, '\n');
  if (op->detail) {
    strbuf_addch(out, '\n');
    cli_put_wrapped(out, op->detail, 0, 0, style->width);
  }
  help_put_params(out, op->params, true, "Arguments", style);
  help_put_params(out, op->params, false, "Flags", style);
  help_put_params(out, cli_common_def.params, false, "Flags of every command", style);
  if (op->row) help_put_fields(out, op->row, "Each line of --json", style);
  if (op->summary && !(op->flags & OP_HIDE_SUMMARY))
    help_put_fields(out, op->summary, op->row ? "The last line of --json" : "The line of --json", style);
  if (op->examples) help_put_examples(out, op->examples, style);
  if (!op->run) return;
  help_heading(out, "Exit codes", style);
  strbuf_addstr(out, "  ");
  cli_put_wrapped(out,
                  "0 done, 1 nothing found, or nothing that matches well, 2 wrong usage, 3 damaged, 4 busy, 5 refused, "
                  "6 not indexed "
                  "(lode help exit-codes)",
                  2, 2, style->width);
  const docs_page *page = docs_find(str_of(op->group ? op->group : op->name));
  if (!page) return;
  help_heading(out, "More", style);
  strbuf_addf(out, "  lode help docs %s\n", page->name);
}

/* ---- Lists ---- */

static void help_put_ops(strbuf *out, const op_group *g, const cli_style *style) {
  OP_EACH(g, op) {
    char name[40];
    snprintf(name, sizeof name, "%s%s%s", g->name ? g->name : "", g->name ? " " : "", op->name);
    strbuf_addf(out, "  %-*s", HELP_OP_COLUMN, name);
    cli_put_wrapped(out, op->about, HELP_OP_COLUMN + 2, HELP_OP_COLUMN + 2, style->width);
  }
}

static void help_put_topics(strbuf *out) {
  for (size_t i = 0; cli_topic_name(i); i++)
    strbuf_addf(out, "  %-*s%s\n", HELP_OP_COLUMN, cli_topic_name(i), cli_topic_about(i));
  strbuf_addf(out, "  %-*s%s\n", HELP_OP_COLUMN, "docs", "the documents: first steps, a cookbook, formats");
}

void cli_help_group(strbuf *out, const char *group, const cli_style *style) {
  OP_EACH_GROUP(g) if (op_same_group(g->name, group)) strbuf_addf(out, "lode %s - %s\n", group, g->about);
  help_heading(out, "Usage", style);
  strbuf_addf(out, "  lode %s COMMAND [ARGUMENTS] [FLAGS]\n", group);
  help_heading(out, "Commands", style);
  OP_EACH_GROUP(g) if (op_same_group(g->name, group)) help_put_ops(out, g, style);
  help_put_params(out, cli_common_def.params, false, "Flags of every command", style);
  help_heading(out, "More", style);
  strbuf_addf(out, "  lode %s COMMAND --help  arguments, flags and examples of one command\n", group);
  strbuf_addf(out, "  %-*s  one of: ", (int)strlen(group) + 20, "lode help TOPIC");
  for (size_t i = 0; cli_topic_name(i); i++) strbuf_addf(out, i ? ", %s" : "%s", cli_topic_name(i));
  strbuf_addch(out, '\n');
}

/* One screen of a terminal: 80 columns, 24 lines. */
void cli_help_brief(strbuf *out, const cli_style *style) {
  strbuf_addf(out, "lode %s - code search and a vector database, built not to crash\n", lode_version());
  help_heading(out, "Search code", style);
  strbuf_addstr(out, "  lode search 'where are sessions closed'   in a project; or a name\n"
                     "  lode setup                                index it, tell the AI tools here\n"
                     "  lode ui                                   the same in the browser\n"
                     "  lode outline FILE, def NAME, refs NAME    definitions and their uses\n"
                     "  lode status, lode doctor                  how the index is, what is wrong\n");
  help_heading(out, "Keep text and vectors", style);
  strbuf_addstr(out, "  lode db create notes --metric cosine --embedder minilm\n"
                     "  echo '{\"id\":\"a\",\"document\":\"text\"}' | lode db add notes\n"
                     "  lode db query notes 'what was it about'\n"
                     "  lode serve                                Chroma's clients work unchanged\n");
  help_heading(out, "More", style);
  strbuf_addstr(out, "  lode COMMAND --help    arguments, flags and examples of one command\n"
                     "  lode --help            all commands\n"
                     "  lode help              all commands and topics\n");
}

void cli_help_top(strbuf *out, const cli_style *style) {
  strbuf_addf(out, "lode %s - code search and a vector database, built not to crash\n", lode_version());
  help_heading(out, "Usage", style);
  strbuf_addstr(out, "  lode COMMAND [ARGUMENTS] [FLAGS]\n"
                     "  lode COMMAND --help          arguments, flags and examples of one command\n"
                     "  lode help [TOPIC | COMMAND]\n"
                     "  lode --version\n");
  OP_EACH_GROUP(g) {
    char title[80];
    char first = g->about[0];
    snprintf(title, sizeof title, "%c%s", first >= 'a' && first <= 'z' ? first - 'a' + 'A' : first, g->about + 1);
    help_heading(out, title, style);
    help_put_ops(out, g, style);
  }
  help_heading(out, "Topics of lode help", style);
  help_put_topics(out);
  help_put_examples(out,
                    "lode setup\n"
                    "lode search 'where are sessions closed'\n"
                    "lode db create notes --metric cosine\n"
                    "echo '{\"id\":\"a\",\"document\":\"hello all\",\"embedding\":[1,0]}' | lode db add notes\n"
                    "lode db query notes --vector '[1,0.1]' -k 5\n"
                    "lode db query notes --text hello",
                    style);
}

bool cli_help_op_named(lode_str name) { return op_find(NULL, name) || op_find("db", name) || op_is_group(name); }

void cli_help_documents(strbuf *out) {
  strbuf_addstr(out, "Documents\n");
  for (const docs_page *page = docs_pages; page->name; page++)
    strbuf_addf(out, "  %-*s%s\n", HELP_OP_COLUMN, page->name, page->title);
  strbuf_addstr(out, "\n  lode help docs NAME    shows one; `docs` may be left out where no command has that name\n");
}

bool cli_help_topic(strbuf *out, lode_str topic, const cli_style *style) {
  for (size_t i = 0; cli_topic_name(i); i++) {
    if (!str_eq(str_of(cli_topic_name(i)), topic)) continue;
    strbuf_addf(out, "%s - %s\n\n", cli_topic_name(i), cli_topic_about(i));
    for (const char *text = cli_topic_text(i); *text;) {
      size_t len = strcspn(text, "\n");
      strbuf line = {0};
      strbuf_add(&line, text, len);
      strbuf_addch(&line, '\0');
      if (line.failed)
        out->failed = true;
      else if (text[0] == ' ' || len == 0)
        strbuf_addf(out, "%s\n", line.data);
      else
        cli_put_wrapped(out, line.data, 0, 0, style->width);
      strbuf_release(&line);
      text += len + (text[len] == '\n');
    }
    return true;
  }
  return false;
}
