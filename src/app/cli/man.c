/* SPDX-License-Identifier: Apache-2.0 */
/* man.c - the manual pages lode(1) and lode-db(1), as roff, derived from the operation table: `lode help [db] --man`.
 * `make install` installs its output. */
#include "cli/cli.h"
#include "cli/cli_help.h"
#include "table/op_table.h"

/* Text for a roff line: backslashes and dashes are escaped; a line must not begin with a dot or a quote. */
static void man_put_text(strbuf *out, const char *text, size_t len) {
  if (len && (text[0] == '.' || text[0] == '\'')) strbuf_addstr(out, "\\&");
  for (size_t i = 0; i < len; i++) {
    if (text[i] == '\\')
      strbuf_addstr(out, "\\e");
    else if (text[i] == '-')
      strbuf_addstr(out, "\\-");
    else
      strbuf_addch(out, text[i]);
  }
}

static void man_put(strbuf *out, const char *text) { man_put_text(out, text, strlen(text)); }

/* Lines that begin with a space, and examples, are shown verbatim. */
static void man_put_paragraphs(strbuf *out, const char *text, bool verbatim) {
  bool filled = true;
  while (*text) {
    size_t len = strcspn(text, "\n");
    bool kept = verbatim || text[0] == ' ';
    if (len == 0) {
      if (!filled) strbuf_addstr(out, ".fi\n");
      strbuf_addstr(out, ".PP\n");
      filled = true;
    } else {
      if (kept && filled) strbuf_addstr(out, ".nf\n");
      if (!kept && !filled) strbuf_addstr(out, ".fi\n");
      filled = !kept;
      man_put_text(out, text, len);
      strbuf_addch(out, '\n');
    }
    text += len + (text[len] == '\n');
  }
  if (!filled) strbuf_addstr(out, ".fi\n");
}

static void man_put_param(strbuf *out, const op_param *p) {
  strbuf_addstr(out, ".TP\n");
  if (p->flags & OP_PARAM_POSITIONAL) {
    strbuf_addf(out, "\\fI%s\\fR", p->value);
  } else {
    strbuf flag = {0};
    cli_put_flag(&flag, p);
    strbuf_addstr(out, "\\fB");
    if (p->letter && p->name[1]) strbuf_addf(out, "\\-%c\\fR, \\fB", p->letter);
    man_put_text(out, flag.data ? flag.data : "", flag.len);
    strbuf_addstr(out, "\\fR");
    out->failed = out->failed || flag.failed;
    strbuf_release(&flag);
    if (p->type != OP_ARG_FLAG) strbuf_addf(out, " \\fI%s\\fR", p->value);
  }
  strbuf_addch(out, '\n');
  man_put(out, p->about);
  if (p->choices) {
    strbuf_addstr(out, p->type == OP_ARG_SET ? "; any of " : "; one of ");
    man_put(out, p->choices);
  }
  if (p->type == OP_ARG_SET) strbuf_addstr(out, ", or all, or none");
  if (p->fallback) {
    strbuf_addstr(out, " (");
    man_put(out, p->fallback);
    strbuf_addch(out, ')');
  }
  strbuf_addstr(out, ".\n");
}

static void man_put_fields(strbuf *out, const op_field *fields, const char *title) {
  strbuf_addf(out, ".PP\n%s:\n", title);
  for (const op_field *f = fields; f->name; f++) {
    strbuf_addf(out, ".RS\n.TP\n\\fB%s\\fR\n", f->name);
    man_put(out, f->about);
    strbuf_addstr(out, "\n.RE\n");
  }
}

static void man_put_op(strbuf *out, const op_def *op) {
  strbuf usage = {0};
  cli_help_usage(&usage, op);
  strbuf_addstr(out, ".SS ");
  man_put_text(out, usage.data ? usage.data : "", usage.len);
  out->failed = out->failed || usage.failed;
  strbuf_release(&usage);
  /* begin with a capital letter */
  strbuf_addf(out, "\n%c", op->about[0] - 'a' + 'A');
  man_put(out, op->about + 1);
  strbuf_addstr(out, ".\n");
  if (op->detail) {
    man_put(out, op->detail);
    strbuf_addch(out, '\n');
  }
  for (const op_param *p = op->params; p->name; p++) man_put_param(out, p);
  if (op->row) man_put_fields(out, op->row, "Fields of each line of \\fB\\-\\-json\\fR");
  if (op->summary && !(op->flags & OP_HIDE_SUMMARY))
    man_put_fields(out, op->summary, op->row ? "Fields of the last line" : "Fields of the line of \\fB\\-\\-json\\fR");
  if (op->examples) {
    strbuf_addstr(out, ".PP\nExamples:\n.RS\n");
    man_put_paragraphs(out, op->examples, true);
    strbuf_addstr(out, ".RE\n");
  }
}

static void man_put_heading(strbuf *out, const char *text) {
  strbuf_addstr(out, ".SH ");
  for (; *text; text++) strbuf_addch(out, *text >= 'a' && *text <= 'z' ? (char)(*text - 'a' + 'A') : *text);
  strbuf_addch(out, '\n');
}

static void man_put_topic(strbuf *out, size_t i) {
  man_put_heading(out, strcmp(cli_topic_name(i), "exit-codes") == 0 ? "exit status" : cli_topic_name(i));
  man_put_paragraphs(out, cli_topic_text(i), false);
}

static const char man_db_head[] =
    ".\\\" made by: lode help db --man\n.TH LODE-DB 1 \"\" \"lode\" \"User Commands\"\n"
    ".SH NAME\nlode\\-db \\- the vector database of lode\n"
    ".SH SYNOPSIS\n.B lode db\n.I COMMAND\n.RI [ ARGUMENTS ]\n.RI [ FLAGS ]\n"
    ".SH DESCRIPTION\n"
    "Keeps records (id, document, metadata, vector) in collections, and finds them by vector, by words, or by both. "
    "Flags may stand before or after other arguments; \\fB\\-\\-\\fR ends them.\n";

static const char man_top_head[] =
    ".\\\" made by: lode help --man\n.TH LODE 1 \"\" \"lode\" \"User Commands\"\n"
    ".SH NAME\nlode \\- code search and a vector database, built not to crash\n"
    ".SH SYNOPSIS\n.B lode\n.I COMMAND\n.RI [ ARGUMENTS ]\n.RI [ FLAGS ]\n.br\n.B lode help\n.RI [ TOPIC \" | \" "
    "COMMAND ]\n"
    ".SH DESCRIPTION\n"
    ".B lode\nkeeps text, metadata and vectors in a folder and finds them by meaning, by words, or by both.\n"
    "The database is one SQLite file; everything else is derived from it, checksummed, and made again when it is "
    "lost.\n"
    "What a command has acknowledged survives a kill and a power cut. Many processes may use one store at a time.\n"
    ".PP\n\\fBlode db\\fR has a page of its own:\n.BR lode\\-db (1).\n";

/* lode-db-query(1): a command alone, with what all commands have. */
void cli_man_op(strbuf *out, const op_def *op) {
  char name[80];
  const char *group = op->group ? op->group : "", *space = op->group ? "-" : "";
  snprintf(name, sizeof name, "lode-%s%s%s", group, space, op->name);
  strbuf_addf(out, ".\\\" made by: lode help %s%s%s --man\n.TH ", group, op->group ? " " : "", op->name);
  for (const char *c = name; *c; c++) strbuf_addch(out, *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c);
  strbuf_addstr(out, " 1 \"\" \"lode\" \"User Commands\"\n.SH NAME\n");
  man_put(out, name);
  strbuf_addstr(out, " \\- ");
  man_put(out, op->about);
  strbuf_addstr(out, "\n.SH SYNOPSIS AND DESCRIPTION\n");
  man_put_op(out, op);
  strbuf_addstr(out, ".SH FLAGS OF EVERY COMMAND\n");
  for (const op_param *p = cli_common_def.params; p->name; p++) man_put_param(out, p);
  for (size_t i = 0; cli_topic_name(i); i++)
    if (strcmp(cli_topic_name(i), "exit-codes") == 0) man_put_topic(out, i);
  strbuf_addstr(out, ".SH SEE ALSO\n.BR lode (1),\n.BR lode\\-db (1)\n");
}

void cli_man_page(strbuf *out, const char *group) {
  strbuf_addstr(out, group ? man_db_head : man_top_head);
  OP_EACH_GROUP(g) {
    if (op_same_group(g->name, "db") != (group != NULL)) continue;
    man_put_heading(out, g->about);
    OP_EACH(g, op) man_put_op(out, op);
  }
  strbuf_addstr(out, ".SH FLAGS OF EVERY COMMAND\n");
  for (const op_param *p = cli_common_def.params; p->name; p++) man_put_param(out, p);
  for (size_t i = 0; cli_topic_name(i); i++) man_put_topic(out, i);
  strbuf_addstr(out, ".SH ENVIRONMENT\n"
                     ".TP\n.B XDG_DATA_HOME\nWhere the default store is: its folder lode.\n"
                     ".TP\n.B LODE_TRUST\n1: every .lode folder that is found is used as it is; see lode trust.\n"
                     ".TP\n.B NO_COLOR\nNo colours, when set to anything.\n"
                     ".SH SEE ALSO\n");
  strbuf_addstr(out, group ? ".BR lode (1)\n" : ".BR lode\\-db (1)\n");
}
