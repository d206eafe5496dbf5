/* SPDX-License-Identifier: Apache-2.0 */
/* cli_main.c - main(): parses the command line, runs the operation, writes its result, and exits with its code.
 *
 * Signals: SIGPIPE and SIGXFSZ are ignored, so that a closed pipe and a file size limit are errors of write. During
 * long operations SIGINT, SIGTERM and SIGHUP ask to stop at the next step; a second one ends the process at once.
 * Other operations end at the first. A SIGHUP that the caller ignores (nohup) stays ignored.
 */
#include "cli/browse.h"
#include "cli/cli.h"
#include "cli/cli_locate.h"
#include "cli/cli_writer.h"
#include "docs/docs.h"
#include "ops/op_schema.h"
#include "table/op_table.h"
#include "ops/op_text.h"
#include "cli/crash_cli.h"
#include "ops/suggest.h"
#include "worker/worker.h"

#include "scan/files.h"
#include "project/project.h"
#include "platform/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* State for the callbacks of the context. */
typedef struct cli_session {
  const cli_command *command;
  const char *folder;
  bool found; /* the folder was found, not named, and not checked yet */
  op_context *ctx;
  bool quiet;
  cli_progress *bar;
} cli_session;

static void print_message(cli_session *s, const char *kind, const char *text) {
  strbuf line = {0};
  if (s->bar) cli_progress_clear(s->bar);
  strbuf_addf(&line, "lode: %s", kind);
  op_put_printable(&line, str_of(text), 0);
  strbuf_addch(&line, '\n');
  /* a failure cannot be reported to anybody */
  if (!line.failed) (void)!op_write_fd(STDERR_FILENO, line.data, line.len);
  strbuf_release(&line);
}

static void print_note(void *ctx, const char *text) {
  cli_session *s = ctx;
  if (!s->quiet) print_message(s, "note: ", text);
}

/* ---- The store ---- */

static lode_open_options session_settings(cli_session *s) {
  return (lode_open_options){
      .read_only = cli_common(s->command)->read_only.on,
      .busy_ms = (uint32_t)cli_common(s->command)->busy_ms.n,
      .memory_bytes = cli_common(s->command)->memory.bytes,
      .max_document_bytes = cli_common(s->command)->max_document.bytes,
      .log = print_note,
      .log_ctx = s,
  };
}

/* Enough for a million chunks in one segment: a search walks one graph, not three. */
#define CLI_BULK_MEMORY (UINT64_C(1280) << 20)

/* Checks the trust in a store that was found; only once per command. */
static lode_status cli_check_found(void *opener, lode_error *err) {
  cli_session *s = opener;
  trust_info trust;
  if (!s->found) return LODE_OK;
  s->found = false;
  trust_examine(s->folder, !cli_common(s->command)->read_only.on, &trust);
  trust_report(&trust, print_note, s);
  s->ctx->adopted = trust.state == TRUST_ADOPTED;
  lode_status st = trust_check(&trust, err);
  trust_release(&trust);
  return st;
}

/* A store created in a project's .lode folder is added to the user's trust list. */
static void cli_remember_created(cli_session *s, const char *folder, lode_store *store) {
  char *real = realpath(folder, NULL), *slash = real ? strrchr(real, '/') : NULL;
  lode_error err = {.record = LODE_NO_RECORD};
  char text[700];
  if (slash && strcmp(slash + 1, PROJECT_DIR_NAME) == 0 && trust_add_created(real, store, &err) != LODE_OK) {
    snprintf(text, sizeof text, "%.200s cannot be remembered as made by you: %.300s", real, err.text);
    print_note(s, text);
  }
  free(real);
}

/* Where records go that nobody said a folder for: told to a person, and to everybody when a store is made. */
static void cli_tell_store(cli_session *s, const char *folder, bool made) {
  char text[600];
  bool named = cli_common(s->command)->store.set || s->command->op->flags & OP_PROJECT;
  if (named || !(made || isatty(STDERR_FILENO))) return;
  snprintf(text, sizeof text, made ? "made a store: %.500s" : "the store is %.500s", folder);
  print_note(s, text);
}

static lode_status cli_open_store(void *opener, const op_open_options *how, lode_store **store, lode_error *err) {
  cli_session *s = opener;
  lode_open_options options = session_settings(s);
  const char *folder = how->folder ? how->folder : s->folder;
  options.read_only = !how->write || options.read_only;
  options.no_background = options.read_only || how->brief;
  options.bulk_load = how->bulk;
  if (how->bulk && !cli_common(s->command)->memory.set) options.memory_bytes = CLI_BULK_MEMORY;
  options.create = how->create && !options.read_only;
  options.page_bytes = how->page_bytes;
  if (!how->folder) TRY(cli_check_found(s, err));
  if (options.create && !op_is_address(folder)) TRY(files_make_parents(folder, err));
  bool made = options.create && !op_is_address(folder) && !trust_has_store(folder);
  lode_status st = lode_open(folder, &options, store, err);
  if (st == LODE_OK && made) cli_remember_created(s, folder, *store);
  if (st == LODE_OK && how->write && !how->folder) cli_tell_store(s, folder, made);
  if (st != LODE_NOT_FOUND || how->folder) return st;
  return err_set(err, st, "there is no store at %.400s; `lode db create NAME` makes one, --store DIR names another",
                 s->folder);
}

static void cli_release_store(void *opener, lode_store *store) {
  (void)opener;
  lode_close(store);
}

/* ---- Signals ---- */

static void cli_on_signal(int number) { op_interrupted = number; }

static void cli_catch_signals(bool stops_softly) {
  struct sigaction ignore = {.sa_handler = SIG_IGN},
                   stop = {.sa_handler = cli_on_signal, .sa_flags = (int)SA_RESETHAND};
  sigaction(SIGPIPE, &ignore, NULL);
  sigaction(SIGXFSZ, &ignore, NULL);
  if (!stops_softly) return;
  struct sigaction was;
  sigaction(SIGINT, &stop, NULL);
  sigaction(SIGTERM, &stop, NULL);
  if (sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler != SIG_IGN) sigaction(SIGHUP, &stop, NULL);
}

/* ---- Output ---- */

static size_t cli_width_of(int fd) {
  unsigned rows, columns;
  if (!os_terminal_size(fd, &rows, &columns) || columns == 0) return 100;
  return columns < 40 ? 40 : columns;
}

static cli_style cli_style_of(const cli_command *c) {
  const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
  lode_str when = cli_common(c)->color.text;
  bool plain = (none && *none) || (term && strcmp(term, "dumb") == 0) || !isatty(STDOUT_FILENO);
  return (cli_style){
      .color = str_eq(when, STR_LIT("always")) || (!plain && !str_eq(when, STR_LIT("never"))),
      .width = cli_width_of(STDOUT_FILENO),
  };
}

/* An error message for people, or for programs with --json. */
static int print_failure(cli_session *s, bool json, const lode_error *err) {
  int code = cli_exit_code(err->status);
  if (!json) print_message(s, "", err->text[0] ? err->text : lode_status_text(err->status));
  if (json) {
    strbuf line = {0};
    op_error_put_json(&line, err);
    strbuf_addch(&line, '\n');
    if (!line.failed) (void)!op_write_fd(STDERR_FILENO, line.data, line.len);
    strbuf_release(&line);
  }
  return code;
}

/* Writes text to a descriptor; returns `code` even if nobody reads it. */
static int print_text(strbuf *text, int fd, int code) {
  int errnum = text->failed ? ENOMEM : op_write_fd(fd, text->data ? text->data : "", text->len);
  strbuf_release(text);
  return errnum && errnum != EPIPE ? CLI_EXIT_REFUSED : code;
}

/* ---- Help ---- */

/* The operation named by some words; "db" may be left out. */
static const op_def *cli_op_of_words(const lode_str *words, size_t n) {
  char group[40];
  if (n == 1 && str_eq(words[0], STR_LIT("help"))) return &cli_help_def;
  if (n == 1) {
    const op_def *op = op_find(NULL, words[0]);
    return op || op_is_group(words[0]) ? op : op_find("db", words[0]);
  }
  if (n != 2 || words[0].len >= sizeof group) return NULL;
  snprintf(group, sizeof group, "%.*s", (int)words[0].len, words[0].data);
  return op_find(group, words[1]);
}

/* `lode help docs`, `lode help docs search`, `lode help cookbook`; a document is long, so a terminal's pager gets it.
 */
static bool cli_help_document(strbuf *out, const op_arg_list *topic, const cli_style *style) {
  bool docs = str_eq(topic->items[0], STR_LIT("docs"));
  if (docs && topic->n == 1) {
    cli_help_documents(out);
    return true;
  }
  if (topic->n != (docs ? 2u : 1u)) return false;
  const docs_page *page = docs_find(topic->items[topic->n - 1]);
  if (!page) return false;
  docs_put_text(out, (lode_str){(const char *)page->bytes, page->size}, style->color, style->width);
  cli_page_text(out, STDOUT_FILENO);
  return true;
}

static bool cli_help_about(strbuf *out, const op_arg_list *topic, const cli_style *style) {
  if (topic->n == 0) {
    cli_help_top(out, style);
    return true;
  }
  if (topic->n == 1 && cli_help_topic(out, topic->items[0], style)) return true;
  const op_def *op = cli_op_of_words(topic->items, topic->n);
  if (op) {
    cli_help_op(out, op, style);
    return true;
  }
  OP_EACH_GROUP(g) {
    if (topic->n != 1 || !g->name || !str_eq(str_of(g->name), topic->items[0])) continue;
    cli_help_group(out, g->name, style);
    return true;
  }
  return cli_help_document(out, topic, style);
}

static lode_status cli_no_document(lode_str name, lode_error *err) {
  char quoted[256];
  op_suggest best;
  op_suggest_init(&best, name);
  for (const docs_page *page = docs_pages; page->name; page++) op_suggest_try(&best, str_of(page->name));
  str_quote(name, quoted, sizeof quoted);
  if (best.found)
    return err_set(err, LODE_INVALID, "there is no document %s; did you mean `lode help docs %s`?", quoted, best.text);
  return err_set(err, LODE_INVALID, "there is no document %s; `lode help docs` lists them", quoted);
}

static int cli_no_topic(cli_session *s, bool json, const op_arg_list *topic) {
  lode_error err = {.record = LODE_NO_RECORD};
  op_suggest best;
  char quoted[256];
  lode_str word = topic->items[topic->n - 1];
  if (topic->n == 2 && str_eq(topic->items[0], STR_LIT("docs"))) {
    (void)cli_no_document(word, &err);
    return print_failure(s, json, &err);
  }
  op_suggest_init(&best, word);
  for (size_t i = 0; cli_topic_name(i); i++) op_suggest_try(&best, str_of(cli_topic_name(i)));
  OP_EACH_GROUP(g) OP_EACH(g, op) op_suggest_try(&best, str_of(op->name));
  for (const docs_page *page = docs_pages; page->name; page++) op_suggest_try(&best, str_of(page->name));
  str_quote(word, quoted, sizeof quoted);
  if (best.found)
    (void)err_set(&err, LODE_INVALID, "there is no help on %s; did you mean `lode help %s`?", quoted, best.text);
  else
    (void)err_set(&err, LODE_INVALID, "there is no help on %s; `lode help` lists the topics", quoted);
  return print_failure(s, json, &err);
}

static int cli_no_man_page(cli_session *s, bool json, const op_arg_list *topic) {
  lode_error err = {.record = LODE_NO_RECORD};
  char quoted[256];
  (void)err_set(&err, LODE_INVALID,
                "the manual has no page about %s; `lode help --list` names the commands, each of which has one",
                str_quote(topic->items[0], quoted, sizeof quoted));
  return print_failure(s, json, &err);
}

static int cli_run_help(cli_session *s, const cli_command *c) {
  const cli_help_args *args = c->args.values;
  const op_arg_list *topic = &args->topic;
  cli_style style = cli_style_of(c);
  strbuf out = {0};
  if (style.width > 110) style.width = 110;
  if (args->completions.set) {
    static void (*const scripts[])(strbuf *) = {cli_complete_bash, cli_complete_zsh, cli_complete_fish};
    scripts[args->completions.index](&out);
  } else if (args->man.on) {
    bool db = topic->n == 1 && str_eq(topic->items[0], STR_LIT("db"));
    const op_def *op = topic->n && !db ? cli_op_of_words(topic->items, topic->n) : NULL;
    if (topic->n && !db && !op) return cli_no_man_page(s, cli_common(c)->json.on, topic);
    if (op)
      cli_man_op(&out, op);
    else
      cli_man_page(&out, db ? "db" : NULL);
  } else if (args->list.on) {
    OP_EACH_GROUP(g) OP_EACH(g, op) strbuf_addf(&out, "%s%s%s\n", g->name ? g->name : "", g->name ? " " : "", op->name);
  } else if (args->schema.on) {
    const op_def *only = topic->n ? cli_op_of_words(topic->items, topic->n) : NULL;
    OP_EACH_GROUP(g) {
      OP_EACH(g, op) {
        if (topic->n && op != only) continue;
        op_schema(&out, op);
        strbuf_addch(&out, '\n');
      }
    }
    if (out.len == 0) return cli_no_topic(s, cli_common(c)->json.on, topic);
  } else if (!cli_help_about(&out, topic, &style)) {
    strbuf_release(&out);
    return cli_no_topic(s, cli_common(c)->json.on, topic);
  }
  return print_text(&out, STDOUT_FILENO, CLI_EXIT_DONE);
}

/* Help for --help, or for an incomplete command: that is wrong usage, and goes to standard error. */
static int cli_run_overview(const cli_command *c) {
  cli_style style = cli_style_of(c);
  strbuf out = {0};
  if (style.width > 110) style.width = 110;
  if (!c->help) style.color = false;
  if (c->op)
    cli_help_op(&out, c->op, &style);
  else if (c->group)
    cli_help_group(&out, c->group, &style);
  else if (c->help)
    cli_help_top(&out, &style);
  else
    cli_help_brief(&out, &style);
  return print_text(&out, c->help ? STDOUT_FILENO : STDERR_FILENO, c->help ? CLI_EXIT_DONE : CLI_EXIT_USAGE);
}

/* ---- Operations ---- */

/* The library only knows that it was asked to stop; here we know that it was a signal. */
static void cli_name_interruption(lode_error *err) {
  static const char *const asked[] = {"cancelled by the caller", "cancelled"};
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
    size_t len = strlen(asked[i]);
    if (strncmp(err->text, asked[i], len) != 0) continue;
    (void)err_set(err, err->status, "interrupted%s", err->text + len);
    return;
  }
}

static int cli_finish(cli_session *s, cli_writer *w, lode_status st, const op_context *ctx, lode_error *err) {
  lode_error late = {.record = LODE_NO_RECORD};
  if (w->op->flags & OP_PAGED && !w->json) cli_page_output(w);
  lode_status written = cli_writer_finish(w, &late);
  cli_progress_clear(s->bar);
  if (w->closed) return CLI_EXIT_DONE;
  if (st == LODE_OK && written != LODE_OK) {
    *err = late;
    st = written;
  }
  if (st == LODE_OK && ctx->nothing && !ctx->unindexed && w->op->row && w->rows == 0 && !w->json)
    print_note(s, "nothing was found");
  if (st == LODE_OK && ctx->damaged) return CLI_EXIT_DAMAGED;
  if (st == LODE_OK && ctx->nothing) return ctx->unindexed ? CLI_EXIT_UNINDEXED : CLI_EXIT_NOTHING;
  if (st == LODE_OK) return CLI_EXIT_DONE;
  err->status = st;
  bool interrupted = op_interrupted && st == LODE_CANCELLED;
  if (interrupted) cli_name_interruption(err);
  int code = print_failure(s, w->json, err);
  if (st == LODE_NOT_FOUND && ctx->unindexed) code = CLI_EXIT_UNINDEXED;
  return interrupted ? 128 + (int)op_interrupted : code;
}

/* Servers may be given the project instead of its store. */
static lode_status locate(const cli_command *c, const char *given, strbuf *folder, cli_store_location *located,
                          lode_error *err) {
  const op_arg_path *project = c->op->flags & OP_SERVER ? op_args_find(&c->args, "project", OP_ARG_PATH) : NULL;
  bool absent = strcmp(c->op->name, "ui") == 0; /* its page offers to index the project */
  if (!project || !project->set) return cli_locate_store(given, absent, folder, located, err);
  if (given) return err_set(err, LODE_INVALID, "--project and --store both say what is served: give one of them");
  return cli_store_of_project(project->path, absent, folder, located, err);
}

static int cli_run_op(cli_session *s, cli_command *c) {
  bool json = cli_common(c)->json.on, is_long = c->op->flags & OP_LONG;
  const op_arg_records *records = op_args_find(&c->args, "records", OP_ARG_RECORDS);
  const op_stream *input = records ? records->stream : NULL;
  bool typed = input && !input->own && isatty(STDIN_FILENO);
  cli_progress bar = {.on = is_long && !s->quiet && !typed && isatty(STDERR_FILENO)};
  lode_error err = {.record = LODE_NO_RECORD};
  strbuf folder = {0};
  cli_writer writer;
  const char *given = cli_common(c)->store.path;
  static char command[80];
  snprintf(command, sizeof command, "%s%s%s", c->op->group ? c->op->group : "", c->op->group ? " " : "", c->op->name);
  cli_crash_install(command);
  s->bar = &bar;
  bool project = c->op->flags & OP_PROJECT;
  cli_store_location located = {0};
  if (!project && locate(c, given, &folder, &located, &err) != LODE_OK) {
    strbuf_release(&folder);
    return print_failure(s, json, &err);
  }
  s->folder = project ? given : folder.data;
  s->found = located.found;
  if (located.passed[0]) print_note(s, located.passed);
  cli_writer_init(&writer, c->op, STDOUT_FILENO);
  writer.json = json;
  writer.quiet = s->quiet;
  writer.full = cli_common(c)->full.on;
  writer.verbose = cli_common(c)->verbose.on;
  writer.style = cli_style_of(c);
  writer.narrow = isatty(STDOUT_FILENO) && !writer.full;
  writer.bar = &bar;
  cli_writer_set_args(&writer, &c->args);
  lode_open_options settings = session_settings(s);
  op_context ctx = {.open = cli_open_store,
                    .release = cli_release_store,
                    .may_use = cli_check_found,
                    .opener = s,
                    .folder = s->folder,
                    .settings = &settings,
                    .found = located.found,
                    .busy_ms = cli_common(c)->busy_ms.n,
                    .sink = &writer.sink,
                    .progress = {cli_progress_step, &bar},
                    .note = print_note,
                    .note_ctx = s};
  s->ctx = &ctx;
  bar.input = &ctx.input;
  cli_catch_signals(is_long);
  if (typed) print_note(s, "reading JSON lines from the terminal; Ctrl-D ends");
  /* servers pass the folder to another process */
  lode_status st = c->op->flags & OP_SERVER ? cli_check_found(s, &err) : LODE_OK;
  bool browse = !json && cli_browse_wanted(&c->args);
  if (st == LODE_OK) st = browse ? cli_browse(&ctx, &c->args, &writer.style, &err) : op_run(&ctx, &c->args, &err);
  int code = cli_finish(s, &writer, st, &ctx, &err);
  cli_writer_release(&writer);
  strbuf_release(&folder);
  return code;
}

/* --json applies to errors of the command line too, wherever it stands. */
static bool argv_wants_json(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], "--json") == 0) return true;
  return false;
}

int main(int argc, char **argv) {
  cli_command command;
  cli_progress bar = {0};
  cli_session s = {.command = &command, .bar = &bar};
  lode_error err = {.record = LODE_NO_RECORD};
  int code;
  os_program_started_as(argv[0]);
  if (argc > 1 && strcmp(argv[1], WORKER_ARG) == 0) return worker_main(argc, argv, NULL);
  os_reserve_stdio();
  cli_catch_signals(false);
  lode_status st = cli_parse(&command, argc, argv, &err);
  s.quiet = cli_common(&command)->quiet.on;
  if (st != LODE_OK) {
    err.status = st;
    code = print_failure(&s, argv_wants_json(argc, argv), &err);
  } else if (command.version) {
    strbuf out = {0};
    strbuf_addf(&out, "lode %s\n", lode_version());
    code = print_text(&out, STDOUT_FILENO, CLI_EXIT_DONE);
  } else if (command.help || !command.op) {
    code = cli_run_overview(&command);
  } else if (command.op == &cli_help_def) {
    code = cli_run_help(&s, &command);
  } else {
    code = cli_run_op(&s, &command);
  }
  cli_command_release(&command);
  return code;
}
