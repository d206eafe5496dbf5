/* help.c - help texts, made from the table of operations. */
#include "cli.h"

enum { FLAG_COLUMN = 26, OP_COLUMN = 21 };

static void heading(lode__buf *out, const char *text, const lode__style *style) {
  lode__buf_addf(out, "\n%s%s%s\n", style->color ? "\033[1m" : "", text, style->color ? "\033[0m" : "");
}

void lode__put_flag(lode__buf *out, const lode__param *p) {
  if (p->letter && p->name[1] == '\0') {
    lode__buf_addf(out, "-%c", p->letter);
    return;
  }
  lode__buf_adds(out, "--");
  for (const char *c = p->name; *c; c++) lode__buf_addc(out, *c == '_' ? '-' : *c);
}

void lode__put_wrapped(lode__buf *out, const char *text, size_t indent, size_t at, size_t width) {
  bool first = true;
  if (width < indent + 20) width = indent + 20;
  while (*text) {
    size_t len = strcspn(text, " ");
    if (!first && at + 1 + len > width) {
      lode__buf_addf(out, "\n%*s", (int)indent, "");
      at = indent;
    } else if (!first) {
      lode__buf_addc(out, ' ');
      at++;
    }
    lode__buf_add(out, text, len);
    at += len;
    first = false;
    text += len;
    while (*text == ' ') text++;
  }
  lode__buf_addc(out, '\n');
}

/* ---- One operation ---- */

void lode__help_usage(lode__buf *out, const lode__op *op) {
  bool flags = false;
  lode__buf_adds(out, "lode ");
  if (op->group) lode__buf_addf(out, "%s ", op->group);
  lode__buf_adds(out, op->name);
  for (const lode__param *p = op->params; p->name; p++) {
    bool needed = (p->flags & LODE__PARAM_REQUIRED) && p->type != LODE__ARG_RECORDS;
    if (!(p->flags & LODE__PARAM_POSITIONAL)) flags = true;
    else lode__buf_addf(out, needed ? " %s" : " [%s]", p->value);
  }
  if (flags) lode__buf_adds(out, " [FLAGS]");
}

static void put_param(lode__buf *out, const lode__param *p, size_t width) {
  size_t start = out->len;
  lode__buf_adds(out, "  ");
  if (p->flags & LODE__PARAM_POSITIONAL) {
    lode__buf_adds(out, p->value);
  } else {
    if (p->letter && p->name[1]) lode__buf_addf(out, "-%c, ", p->letter);
    lode__put_flag(out, p);
    if (p->type != LODE__ARG_FLAG) lode__buf_addf(out, " %s", p->value);
  }
  size_t at = out->len - start;
  if (at + 2 > FLAG_COLUMN) {
    lode__buf_addf(out, "\n%*s", FLAG_COLUMN, "");
  } else {
    lode__buf_addf(out, "%*s", (int)(FLAG_COLUMN - at), "");
  }
  lode__buf about = {0};
  lode__buf_adds(&about, p->about);
  if (p->choices) {
    lode__buf_addf(&about, p->type == LODE__ARG_SET ? "; any of %s, or all, or none" : "; one of %s", p->choices);
  }
  if (p->fallback && !(p->type == LODE__ARG_REAL && strcmp(p->fallback, "1") == 0))
    lode__buf_addf(&about, " (%s)", p->fallback);
  if (p->type == LODE__ARG_JSON || p->type == LODE__ARG_VECTOR) lode__buf_adds(&about, "; the text, @FILE, or -");
  lode__buf_addc(&about, '\0');
  if (about.failed) out->failed = true;
  else lode__put_wrapped(out, about.data, FLAG_COLUMN, FLAG_COLUMN, width);
  lode__buf_release(&about);
}

static void put_params(lode__buf *out, const lode__param *params, bool positional, const char *title,
                       const lode__style *style) {
  bool any = false;
  for (const lode__param *p = params; p->name; p++) {
    if (((p->flags & LODE__PARAM_POSITIONAL) != 0) != positional) continue;
    if (!any) heading(out, title, style);
    any = true;
    put_param(out, p, style->width);
  }
}

static void put_examples(lode__buf *out, const char *examples, const lode__style *style) {
  heading(out, "Examples", style);
  while (*examples) {
    size_t len = strcspn(examples, "\n");
    lode__buf_adds(out, "  ");
    lode__buf_add(out, examples, len);
    lode__buf_addc(out, '\n');
    examples += len + (examples[len] == '\n');
  }
}

static void put_fields(lode__buf *out, const lode__field *fields, const char *title, const lode__style *style) {
  heading(out, title, style);
  for (const lode__field *f = fields; f->name; f++) {
    lode__buf_addf(out, "  %-*s", FLAG_COLUMN - 2, f->name);
    lode__put_wrapped(out, f->about, FLAG_COLUMN, FLAG_COLUMN, style->width);
  }
}

void lode__help_op(lode__buf *out, const lode__op *op, const lode__style *style) {
  lode__buf_addf(out, "lode %s%s%s - %s\n", op->group ? op->group : "", op->group ? " " : "", op->name, op->about);
  heading(out, "Usage", style);
  lode__buf_adds(out, "  ");
  lode__help_usage(out, op);
  lode__buf_addc(out, '\n');
  if (op->detail) {
    lode__buf_addc(out, '\n');
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
  lode__buf_adds(out, "  ");
  lode__put_wrapped(out, "0 done, 1 nothing found, 2 wrong usage, 3 damaged, 4 busy, 5 refused (lode help exit-codes)", 2, 2, style->width);
}

/* ---- Lists ---- */

static void put_ops(lode__buf *out, const lode__op_group *g, const lode__style *style) {
  LODE__EACH_OP(g, op) {
    char name[40];
    snprintf(name, sizeof name, "%s%s%s", g->name ? g->name : "", g->name ? " " : "", op->name);
    lode__buf_addf(out, "  %-*s", OP_COLUMN, name);
    lode__put_wrapped(out, op->about, OP_COLUMN + 2, OP_COLUMN + 2, style->width);
  }
}

static void put_topics(lode__buf *out) {
  for (size_t i = 0; lode__topic_name(i); i++)
    lode__buf_addf(out, "  %-*s%s\n", OP_COLUMN, lode__topic_name(i), lode__topic_about(i));
}

void lode__help_group(lode__buf *out, const char *group, const lode__style *style) {
  LODE__EACH_GROUP(g) if (lode__same_group(g->name, group)) lode__buf_addf(out, "lode %s - %s\n", group, g->about);
  heading(out, "Usage", style);
  lode__buf_addf(out, "  lode %s COMMAND [ARGUMENTS] [FLAGS]\n", group);
  heading(out, "Commands", style);
  LODE__EACH_GROUP(g) if (lode__same_group(g->name, group)) put_ops(out, g, style);
  put_params(out, lode__cli_common.params, false, "Flags of every command", style);
  heading(out, "More", style);
  lode__buf_addf(out, "  lode %s COMMAND --help  arguments, flags and examples of one command\n", group);
  lode__buf_addf(out, "  %-*s  one of: ", (int)strlen(group) + 20, "lode help TOPIC");
  for (size_t i = 0; lode__topic_name(i); i++) lode__buf_addf(out, i ? ", %s" : "%s", lode__topic_name(i));
  lode__buf_addc(out, '\n');
}

void lode__help_top(lode__buf *out, const lode__style *style) {
  lode__buf_addf(out, "lode %s - code search and a vector database that do not crash\n", lode_version());
  heading(out, "Usage", style);
  lode__buf_adds(out, "  lode COMMAND [ARGUMENTS] [FLAGS]\n"
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

bool lode__help_topic(lode__buf *out, lode_str topic, const lode__style *style) {
  for (size_t i = 0; lode__topic_name(i); i++) {
    if (!lode__str_eq(lode__str(lode__topic_name(i)), topic)) continue;
    lode__buf_addf(out, "%s - %s\n\n", lode__topic_name(i), lode__topic_about(i));
    for (const char *text = lode__topic_text(i); *text;) {
      size_t len = strcspn(text, "\n");
      lode__buf line = {0};
      lode__buf_add(&line, text, len);
      lode__buf_addc(&line, '\0');
      if (line.failed) out->failed = true;
      else if (text[0] == ' ' || len == 0) lode__buf_addf(out, "%s\n", line.data);
      else lode__put_wrapped(out, line.data, 0, 0, style->width);
      lode__buf_release(&line);
      text += len + (text[len] == '\n');
    }
    return true;
  }
  return false;
}
