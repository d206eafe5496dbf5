/* main.c - the program: reads the command line, runs the operation, writes its answer, and exits with its code.
 *
 * Signals: SIGPIPE and SIGXFSZ are ignored, so that a reader that goes away and a file that may not grow are errors of write.
 * While long work runs, SIGINT, SIGTERM and SIGHUP ask it to stop at its next step; the second one ends the process at once. Other
 * work ends at the first. A SIGHUP that the caller ignores (nohup) stays ignored.
 */
#include "cli.h"
#include "crash_cli.h"
#include "suggest.h"
#include "worker.h"

#include "code/fs.h"
#include "code/project.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* What the context's functions need. */
typedef struct session {
  const lode__command *command;
  const char *folder;
  bool found;           /* the folder was found, not named */
  lode__op_context *ctx;
  bool quiet;
  lode__progress_bar *bar;
} session;

static const lode__arg *common(const lode__command *c, const char *name) { return lode__arg_of(&c->common, name); }

static void say(session *s, const char *kind, const char *text) {
  strbuf line = {0};
  if (s->bar) lode__progress_clear(s->bar);
  strbuf_addf(&line, "lode: %s", kind);
  lode__put_clean(&line, str_of(text), 0);
  strbuf_addch(&line, '\n');
  /* Nobody is left to be told when standard error fails */
  if (!line.failed) (void)lode__write_fd(STDERR_FILENO, line.data, line.len);
  strbuf_release(&line);
}

static void note(void *ctx, const char *text) {
  session *s = ctx;
  if (!s->quiet) say(s, "note: ", text);
}

/* ---- The store ---- */

static lode_open_options settings_of(session *s) {
  return (lode_open_options){
      .read_only = common(s->command, "read_only")->number,
      .busy_ms = (uint32_t)common(s->command, "busy_ms")->number,
      .memory_bytes = common(s->command, "memory")->number,
      .max_document_bytes = common(s->command, "max_document")->number,
      .log = note,
      .log_ctx = s,
  };
}

/* A million chunks in one segment: a search walks one graph, not three. */
#define BULK_MEMORY (UINT64_C(1280) << 20)

/* Whose is the store that was found? Once for a command. */
static lode_status check_found(void *opener, lode_error *err) {
  session *s = opener;
  trust_info trust;
  if (!s->found) return LODE_OK;
  s->found = false;
  trust_examine(s->folder, !common(s->command, "read_only")->number, &trust);
  trust_report(&trust, note, s);
  s->ctx->adopted = trust.state == TRUST_ADOPTED;
  lode_status st = trust_check(&trust, err);
  trust_release(&trust);
  return st;
}

/* One that is made where projects have theirs is remembered as this user's. */
static void remember_made(session *s, const char *folder, lode_store *store) {
  char *real = realpath(folder, NULL), *slash = real ? strrchr(real, '/') : NULL;
  lode_error err = {.record = LODE_NO_RECORD};
  char text[700];
  if (slash && strcmp(slash + 1, PROJECT_DIR_NAME) == 0 && trust_add_created(real, store, &err) != LODE_OK) {
    snprintf(text, sizeof text, "%.200s cannot be remembered as made by you: %.300s", real, err.text);
    note(s, text);
  }
  free(real);
}

static lode_status open_store(void *opener, const lode__open_how *how, lode_store **store, lode_error *err) {
  session *s = opener;
  lode_open_options options = settings_of(s);
  const char *folder = how->folder ? how->folder : s->folder;
  options.read_only = !how->write || options.read_only;
  options.no_background = options.read_only || how->brief;
  options.bulk_load = how->bulk;
  if (how->bulk && !common(s->command, "memory")->set) options.memory_bytes = BULK_MEMORY;
  options.create = how->create && !options.read_only;
  options.page_bytes = how->page_bytes;
  if (!how->folder) TRY(check_found(s, err));
  if (options.create && !lode__is_address(folder)) TRY(files_make_parents(folder, err));
  bool made = options.create && !lode__is_address(folder) && !trust_has_store(folder);
  lode_status st = lode_open(folder, &options, store, err);
  if (st == LODE_OK && made) remember_made(s, folder, *store);
  if (st != LODE_NOT_FOUND || how->folder) return st;
  return err_set(err, st, "there is no store at %.400s; `lode db create NAME` makes one, --store DIR names another", s->folder);
}

static void release_store(void *opener, lode_store *store) {
  (void)opener;
  lode_close(store);
}

/* ---- Signals ---- */

static void on_signal(int number) { lode__interrupted = number; }

static void catch_signals(bool stops_softly) {
  struct sigaction ignore = {.sa_handler = SIG_IGN}, stop = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
  sigaction(SIGPIPE, &ignore, NULL);
  sigaction(SIGXFSZ, &ignore, NULL);
  if (!stops_softly) return;
  struct sigaction was;
  sigaction(SIGINT, &stop, NULL);
  sigaction(SIGTERM, &stop, NULL);
  if (sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler != SIG_IGN) sigaction(SIGHUP, &stop, NULL);
}

/* ---- Output ---- */

/* A standard stream that the caller closed stays an error to use, and its number goes to no other file. */
static void hold_standard_streams(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return;
  }
}

static size_t width_of(int fd) {
  struct winsize size;
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 100;
  return size.ws_col < 40 ? 40 : size.ws_col;
}

static lode__style style_of(const lode__command *c) {
  const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
  lode_str when = common(c, "color")->text;
  bool plain = (none && *none) || (term && strcmp(term, "dumb") == 0) || !isatty(STDOUT_FILENO);
  return (lode__style){
      .color = str_eq(when, STR_LIT("always")) || (!plain && !str_eq(when, STR_LIT("never"))),
      .width = width_of(STDOUT_FILENO),
  };
}

/* The message for people, or with --json for programs. */
static int fail(session *s, bool json, const lode_error *err) {
  int code = lode__exit_code(err->status);
  if (!json) say(s, "", err->text[0] ? err->text : lode_status_text(err->status));
  if (json) {
    strbuf line = {0};
    strbuf_addf(&line, "{\"error\":{\"status\":\"%s\",\"message\":", lode_status_name(err->status));
    json_put_string(&line, str_of(err->text[0] ? err->text : lode_status_text(err->status)));
    if (err->record != LODE_NO_RECORD) strbuf_addf(&line, ",\"record\":%zu", err->record);
    strbuf_addstr(&line, "}}\n");
    if (!line.failed) (void)lode__write_fd(STDERR_FILENO, line.data, line.len);
    strbuf_release(&line);
  }
  return code;
}

/* Text to a descriptor; 0 also when the reader has gone away. */
static int show(strbuf *text, int fd, int code) {
  int errnum = text->failed ? ENOMEM : lode__write_fd(fd, text->data ? text->data : "", text->len);
  strbuf_release(text);
  return errnum && errnum != EPIPE ? EXIT_REFUSED : code;
}

/* ---- Help ---- */

/* The operation that some words name; those of `lode db` may leave that out. */
static const lode__op *op_of_words(const lode_str *words, size_t n) {
  char group[40];
  if (n == 1 && str_eq(words[0], STR_LIT("help"))) return &lode__cli_help;
  if (n == 1) {
    const lode__op *op = lode__op_find(NULL, words[0]);
    return op || lode__is_group(words[0]) ? op : lode__op_find("db", words[0]);
  }
  if (n != 2 || words[0].len >= sizeof group) return NULL;
  snprintf(group, sizeof group, "%.*s", (int)words[0].len, words[0].data);
  return lode__op_find(group, words[1]);
}

static bool help_about(strbuf *out, const lode__arg *topic, const lode__style *style) {
  if (topic->n == 0) {
    lode__help_top(out, style);
    return true;
  }
  if (topic->n == 1 && lode__help_topic(out, topic->list[0], style)) return true;
  const lode__op *op = op_of_words(topic->list, topic->n);
  if (op) {
    lode__help_op(out, op, style);
    return true;
  }
  LODE__EACH_GROUP(g) {
    if (topic->n != 1 || !g->name || !str_eq(str_of(g->name), topic->list[0])) continue;
    lode__help_group(out, g->name, style);
    return true;
  }
  return false;
}

static int no_topic(session *s, bool json, const lode__arg *topic) {
  lode_error err = {.record = LODE_NO_RECORD};
  lode__suggest best;
  char quoted[256];
  lode_str word = topic->list[topic->n - 1];
  lode__suggest_init(&best, word);
  for (size_t i = 0; lode__topic_name(i); i++) lode__suggest_try(&best, str_of(lode__topic_name(i)));
  LODE__EACH_GROUP(g) LODE__EACH_OP(g, op) lode__suggest_try(&best, str_of(op->name));
  str_quote(word, quoted, sizeof quoted);
  if (best.found) (void)err_set(&err, LODE_INVALID, "there is no help about %s; did you mean `lode help %s`?",
                                   quoted, best.text);
  else (void)err_set(&err, LODE_INVALID, "there is no help about %s; `lode help` lists the topics", quoted);
  return fail(s, json, &err);
}

static int run_help(session *s, const lode__command *c) {
  const lode__arg *shell = lode__arg_of(&c->args, "completions"), *topic = lode__arg_of(&c->args, "topic");
  lode__style style = style_of(c);
  strbuf out = {0};
  if (style.width > 110) style.width = 110;
  if (shell->set) {
    static void (*const scripts[])(strbuf *) = {lode__complete_bash, lode__complete_zsh, lode__complete_fish};
    scripts[shell->number](&out);
  } else if (lode__arg_of(&c->args, "man")->number) {
    lode__manual(&out, topic->n ? "db" : NULL);
  } else if (lode__arg_of(&c->args, "schema")->number) {
    const lode__op *only = topic->n ? op_of_words(topic->list, topic->n) : NULL;
    LODE__EACH_GROUP(g) {
      LODE__EACH_OP(g, op) {
        if (topic->n && op != only) continue;
        lode__op_schema(&out, op);
        strbuf_addch(&out, '\n');
      }
    }
    if (out.len == 0) return no_topic(s, common(c, "json")->number, topic);
  } else if (!help_about(&out, topic, &style)) {
    strbuf_release(&out);
    return no_topic(s, common(c, "json")->number, topic);
  }
  return show(&out, STDOUT_FILENO, EXIT_DONE);
}

/* --help, or a command that is not finished: then it is wrong usage, and goes to standard error. */
static int run_overview(const lode__command *c) {
  lode__style style = style_of(c);
  strbuf out = {0};
  if (style.width > 110) style.width = 110;
  if (!c->help) style.color = false;
  if (c->op) lode__help_op(&out, c->op, &style);
  else if (c->group) lode__help_group(&out, c->group, &style);
  else lode__help_top(&out, &style);
  return show(&out, c->help ? STDOUT_FILENO : STDERR_FILENO, c->help ? EXIT_DONE : EXIT_USAGE);
}

/* ---- Operations ---- */

/* The library knows only that it was asked to stop; here it is known who asked. */
static void name_interruption(lode_error *err) {
  static const char *const asked[] = {"cancelled by the caller", "cancelled"};
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
    size_t len = strlen(asked[i]);
    if (strncmp(err->text, asked[i], len) != 0) continue;
    (void)err_set(err, err->status, "interrupted%s", err->text + len);
    return;
  }
}

static int finish(session *s, lode__writer *w, lode_status st, const lode__op_context *ctx, lode_error *err) {
  lode_error late = {.record = LODE_NO_RECORD};
  if (w->op->flags & LODE__OP_PAGED && !w->json) lode__page(w);
  lode_status written = lode__writer_finish(w, &late);
  lode__progress_clear(s->bar);
  if (w->closed) return EXIT_DONE;
  if (st == LODE_OK && written != LODE_OK) {
    *err = late;
    st = written;
  }
  if (st == LODE_OK && ctx->nothing && w->op->row && w->rows == 0 && !w->json) note(s, "nothing was found");
  if (st == LODE_OK) return ctx->damaged ? EXIT_DAMAGED : ctx->nothing ? EXIT_NOTHING : EXIT_DONE;
  err->status = st;
  bool interrupted = lode__interrupted && st == LODE_CANCELLED;
  if (interrupted) name_interruption(err);
  int code = fail(s, w->json, err);
  return interrupted ? 128 + (int)lode__interrupted : code;
}

/* Servers may be told the project instead of its store. */
static lode_status locate(const lode__command *c, lode_str given, strbuf *folder, lode__located *located, lode_error *err) {
  const lode__arg *place = lode__arg_of(&c->args, "project");
  if (!(c->op->flags & LODE__OP_SERVES) || !place->set) return lode__store_locate(given.data, folder, located, err);
  if (given.data) return err_set(err, LODE_INVALID, "--project and --store both say what is served: give one of them");
  return lode__store_of_project(place->text.data, folder, located, err);
}

static int run_op(session *s, const lode__command *c) {
  bool json = common(c, "json")->number, is_long = c->op->flags & LODE__OP_LONG;
  const lode__stream *input = lode__arg_of(&c->args, "records")->stream;
  bool typed = input && !input->own && isatty(STDIN_FILENO);
  lode__progress_bar bar = {.on = is_long && !s->quiet && !typed && isatty(STDERR_FILENO)};
  lode_error err = {.record = LODE_NO_RECORD};
  strbuf folder = {0};
  lode__writer writer;
  lode_str given = common(c, "store")->text;
  static char command[80];
  snprintf(command, sizeof command, "%s%s%s", c->op->group ? c->op->group : "", c->op->group ? " " : "", c->op->name);
  lode__crash_cli_catch(command);
  s->bar = &bar;
  bool project = c->op->flags & LODE__OP_PROJECT;
  lode__located located = {0};
  if (!project && locate(c, given, &folder, &located, &err) != LODE_OK) {
    strbuf_release(&folder);
    return fail(s, json, &err);
  }
  s->folder = project ? given.data : folder.data;
  s->found = located.found;
  if (located.passed[0]) note(s, located.passed);
  lode__writer_init(&writer, c->op, STDOUT_FILENO);
  writer.json = json;
  writer.quiet = s->quiet;
  writer.full = common(c, "full")->number;
  writer.style = style_of(c);
  writer.narrow = isatty(STDOUT_FILENO) && !writer.full;
  writer.bar = &bar;
  writer.args = &c->args;
  lode_open_options settings = settings_of(s);
  lode__op_context ctx = {.open = open_store, .release = release_store, .may_use = check_found, .opener = s,
                          .folder = s->folder, .settings = &settings, .found = located.found, .busy_ms = common(c, "busy_ms")->number,
                          .sink = &writer.sink, .progress = {lode__progress_step, &bar}, .note = note, .note_ctx = s};
  s->ctx = &ctx;
  bar.input = &ctx.input;
  catch_signals(is_long);
  if (typed) note(s, "reading JSON lines from the terminal; Ctrl-D ends");
  /* Servers give the folder to another process */
  lode_status st = c->op->flags & LODE__OP_SERVES ? check_found(s, &err) : LODE_OK;
  if (st == LODE_OK) st = lode__op_run(&ctx, &c->args, &err);
  int code = finish(s, &writer, st, &ctx, &err);
  lode__writer_release(&writer);
  strbuf_release(&folder);
  return code;
}

/* --json counts for errors of the command line too, wherever it stands. */
static bool wants_json(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], "--json") == 0) return true;
  return false;
}

int main(int argc, char **argv) {
  lode__command command;
  lode__progress_bar bar = {0};
  session s = {.command = &command, .bar = &bar};
  lode_error err = {.record = LODE_NO_RECORD};
  int code;
  if (argc > 1 && strcmp(argv[1], LODE__WORKER_ARG) == 0) return lode__worker_main(argc, argv, NULL);
  hold_standard_streams();
  catch_signals(false);
  lode_status st = lode__cli_parse(&command, argc, argv, &err);
  s.quiet = common(&command, "quiet")->number;
  if (st != LODE_OK) {
    err.status = st;
    code = fail(&s, wants_json(argc, argv), &err);
  } else if (command.version) {
    strbuf out = {0};
    strbuf_addf(&out, "lode %s\n", lode_version());
    code = show(&out, STDOUT_FILENO, EXIT_DONE);
  } else if (command.help || !command.op) {
    code = run_overview(&command);
  } else if (command.op == &lode__cli_help) {
    code = run_help(&s, &command);
  } else {
    code = run_op(&s, &command);
  }
  lode__command_release(&command);
  return code;
}
