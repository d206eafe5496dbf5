/* help.c - help texts, made from the table of operations. */
#include "cli.h"

enum { FLAG_COLUMN = 26, OP_COLUMN = 21 };

static void heading(strbuf *out, const char *text, const lode__style *style) {
  strbuf_addf(out, "\n%s%s%s\n", style->color ? "\033[1m" : "", text, style->color ? "\033[0m" : "");
}

void lode__put_flag(strbuf *out, const lode__param *p) {
  if (p->letter && p->name[1] == '\0') {
    strbuf_addf(out, "-%c", p->letter);
    return;
  }
  strbuf_addstr(out, "--");
  for (const char *c = p->name; *c; c++) strbuf_addch(out, *c == '_' ? '-' : *c);
}

void lode__put_wrapped(strbuf *out, const char *text, size_t indent, size_t at, size_t width) {
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

void lode__help_usage(strbuf *out, const lode__op *op) {
  bool flags = false;
  strbuf_addstr(out, "lode ");
  if (op->group) strbuf_addf(out, "%s ", op->group);
  strbuf_addstr(out, op->name);
  for (const lode__param *p = op->params; p->name; p++) {
    bool needed = (p->flags & LODE__PARAM_REQUIRED) && p->type != LODE__ARG_RECORDS;
    if (!(p->flags & LODE__PARAM_POSITIONAL)) flags = true;
    else strbuf_addf(out, needed ? " %s" : " [%s]", p->value);
  }
  if (flags) strbuf_addstr(out, " [FLAGS]");
}

static void put_param(strbuf *out, const lode__param *p, size_t width) {
  size_t start = out->len;
  strbuf_addstr(out, "  ");
  if (p->flags & LODE__PARAM_POSITIONAL) {
    strbuf_addstr(out, p->value);
  } else {
    if (p->letter && p->name[1]) strbuf_addf(out, "-%c, ", p->letter);
    lode__put_flag(out, p);
    if (p->type != LODE__ARG_FLAG) strbuf_addf(out, " %s", p->value);
  }
  size_t at = out->len - start;
  if (at + 2 > FLAG_COLUMN) {
    strbuf_addf(out, "\n%*s", FLAG_COLUMN, "");
  } else {
    strbuf_addf(out, "%*s", (int)(FLAG_COLUMN - at), "");
  }
  strbuf about = {0};
  strbuf_addstr(&about, p->about);
  if (p->choices) {
    strbuf_addf(&about, p->type == LODE__ARG_SET ? "; any of %s, or all, or none" : "; one of %s", p->choices);
  }
  if (p->fallback && !(p->type == LODE__ARG_REAL && strcmp(p->fallback, "1") == 0))
    strbuf_addf(&about, " (%s)", p->fallback);
  if (p->type == LODE__ARG_JSON || p->type == LODE__ARG_VECTOR) strbuf_addstr(&about, "; the text, @FILE, or -");
  strbuf_addch(&about, '\0');
  if (about.failed) out->failed = true;
  else lode__put_wrapped(out, about.data, FLAG_COLUMN, FLAG_COLUMN, width);
  strbuf_release(&about);
}

static void put_params(strbuf *out, const lode__param *params, bool positional, const char *title,
                       const lode__style *style) {
  bool any = false;
  for (const lode__param *p = params; p->name; p++) {
    if (((p->flags & LODE__PARAM_POSITIONAL) != 0) != positional) continue;
    if (!any) heading(out, title, style);
    any = true;
    put_param(out, p, style->width);
  }
}

static void put_examples(strbuf *out, const char *examples, const lode__style *style) {
  heading(out, "Examples", style);
  while (*examples) {
    size_t len = strcspn(examples, "\n");
    strbuf_addstr(out, "  ");
    strbuf_add(out, examples, len);
    strbuf_addch(out, '\n');
    examples += len + (examples[len] == '\n');
  }
}

static void put_fields(strbuf *out, const lode__field *fields, const char *title, const lode__style *style) {
  heading(out, title, style);
  for (const lode__field *f = fields; f->name; f++) {
    strbuf_addf(out, "  %-*s", FLAG_COLUMN - 2, f->name);
    lode__put_wrapped(out, f->about, FLAG_COLUMN, FLAG_COLUMN, style->width);
  }
}

void lode__help_op(strbuf *out, const lode__op *op, const lode__style *style) {
  strbuf_addf(out, "lode %s%s%s - %s\n", op->group ? op->group : "", op->group ? " " : "", op->name, op->about);
  heading(out, "Usage", style);
  strbuf_addstr(out, "  ");
  lode__help_usage(out, op);
  strbuf_addch(out, '\n');
  if (op->detail) {
    strbuf_addch(out, '\n');
    lode__put_wrapped(out, op->detail, 0, 0, style->width);
  }
  put_params(out, op->params, true, "Arguments", style);
  put_params(out, op->params, false, "Flags", style);
  put_params(out, lode__cli_common.params, false, "Flags of every command", style);
  if (op->row) put_fields(out, op->row, "Each line of --json", style);
  if (op->summary && !(op->flags & LODE__OP_HIDE_SUMMARY))
    put_fields(out, op->summary, op->row ? "The last line of --json" : "The line of --json", style);
  if (op->examples) put_examples(out, op->examples, style);
  if (!op->run) return;
  heading(out, "Exit codes", style);
  strbuf_addstr(out, "  ");
  lode__put_wrapped(out, "0 done, 1 nothing found, 2 wrong usage, 3 damaged, 4 busy, 5 refused (lode help exit-codes)", 2, 2, style->width);
}

/* ---- Lists ---- */

static void put_ops(strbuf *out, const lode__op_group *g, const lode__style *style) {
  LODE__EACH_OP(g, op) {
    char name[40];
    snprintf(name, sizeof name, "%s%s%s", g->name ? g->name : "", g->name ? " " : "", op->name);
    strbuf_addf(out, "  %-*s", OP_COLUMN, name);
    lode__put_wrapped(out, op->about, OP_COLUMN + 2, OP_COLUMN + 2, style->width);
  }
}

static void put_topics(strbuf *out) {
  for (size_t i = 0; lode__topic_name(i); i++)
    strbuf_addf(out, "  %-*s%s\n", OP_COLUMN, lode__topic_name(i), lode__topic_about(i));
}

void lode__help_group(strbuf *out, const char *group, const lode__style *style) {
  LODE__EACH_GROUP(g) if (lode__same_group(g->name, group)) strbuf_addf(out, "lode %s - %s\n", group, g->about);
  heading(out, "Usage", style);
  strbuf_addf(out, "  lode %s COMMAND [ARGUMENTS] [FLAGS]\n", group);
  heading(out, "Commands", style);
  LODE__EACH_GROUP(g) if (lode__same_group(g->name, group)) put_ops(out, g, style);
  put_params(out, lode__cli_common.params, false, "Flags of every command", style);
  heading(out, "More", style);
  strbuf_addf(out, "  lode %s COMMAND --help  arguments, flags and examples of one command\n", group);
  strbuf_addf(out, "  %-*s  one of: ", (int)strlen(group) + 20, "lode help TOPIC");
  for (size_t i = 0; lode__topic_name(i); i++) strbuf_addf(out, i ? ", %s" : "%s", lode__topic_name(i));
  strbuf_addch(out, '\n');
}

void lode__help_top(strbuf *out, const lode__style *style) {
  strbuf_addf(out, "lode %s - code search and a vector database that do not crash\n", lode_version());
  heading(out, "Usage", style);
  strbuf_addstr(out, "  lode COMMAND [ARGUMENTS] [FLAGS]\n"
                      "  lode COMMAND --help          arguments, flags and examples of one command\n"
                      "  lode help [TOPIC | COMMAND]\n"
                      "  lode --version\n");
  LODE__EACH_GROUP(g) {
    char title[80];
    char first = g->about[0];
    snprintf(title, sizeof title, "%c%s", first >= 'a' && first <= 'z' ? first - 'a' + 'A' : first, g->about + 1);
    heading(out, title, style);
    put_ops(out, g, style);
  }
  heading(out, "Topics of lode help", style);
  put_topics(out);
  put_examples(out,
               "lode setup\n"
               "lode search 'where are sessions closed'\n"
               "lode db create notes --metric cosine\n"
               "echo '{\"id\":\"a\",\"document\":\"hello all\",\"embedding\":[1,0]}' | lode db add notes\n"
               "lode db query notes --vector '[1,0.1]' -k 5\n"
               "lode db query notes --text hello",
               style);
}

bool lode__help_topic(strbuf *out, lode_str topic, const lode__style *style) {
  for (size_t i = 0; lode__topic_name(i); i++) {
    if (!str_eq(str_of(lode__topic_name(i)), topic)) continue;
    strbuf_addf(out, "%s - %s\n\n", lode__topic_name(i), lode__topic_about(i));
    for (const char *text = lode__topic_text(i); *text;) {
      size_t len = strcspn(text, "\n");
      strbuf line = {0};
      strbuf_add(&line, text, len);
      strbuf_addch(&line, '\0');
      if (line.failed) out->failed = true;
      else if (text[0] == ' ' || len == 0) strbuf_addf(out, "%s\n", line.data);
      else lode__put_wrapped(out, line.data, 0, 0, style->width);
      strbuf_release(&line);
      text += len + (text[len] == '\n');
    }
    return true;
  }
  return false;
}
