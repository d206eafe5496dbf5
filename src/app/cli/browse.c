/* SPDX-License-Identifier: Apache-2.0 */
/* browse.c - see browse.h.
 *
 * One thread: keys are read, and when none comes for a moment, the question is searched for; a key that comes meanwhile
 * cancels the search. The screen is drawn as a whole, in one write: the question, a line for each result, the code of
 * the chosen one. Texts of files are made printable before (cli_text_hit.c, op_put_printable); only our own escape
 * sequences reach the terminal. Columns are those of wide characters too.
 */
#include "cli/browse.h"
#include "cli/browse_keys.h"
#include "cli/cli_writer.h"
#include "ops/op_text.h"
#include "table/op_args_code.h"

#include "platform/process.h"
#include "project/project.h"

#include <signal.h>
#include <unistd.h>
#include <utf8proc.h>

enum {
  BROWSE_MAX_HITS = 50,
  BROWSE_MAX_QUERY = 400,
  BROWSE_PAUSE_MS = 120, /* without a key, before a search begins */
  BROWSE_MIN_ROWS = 8,
};

/* Lines do not wrap: in a narrow terminal they would push the screen up. */
#define BROWSE_ENTER "\033[?1049h\033[?7l\033[?2004h"
#define BROWSE_LEAVE "\033[?2004l\033[?25h\033[?7h\033[?1049l"

typedef struct browse_hit {
  strbuf label, preview, path;
  unsigned long long line;
} browse_hit;

typedef struct browse {
  op_sink sink; /* must be first: rows come here */
  op_context *ctx;
  op_args *args;
  cli_writer view; /* formats a row as `lode search` does */
  browse_keys keys;
  char query[BROWSE_MAX_QUERY];
  char note[700];
  char root[4096];
  browse_hit hits[BROWSE_MAX_HITS];
  size_t n, chosen, scrolled;
  bool stale; /* the results are not those of the query */
  strbuf screen;
} browse;

static volatile sig_atomic_t browse_is_on, browse_resized;

bool cli_browse_wanted(const op_args *args) {
  const op_arg_flag *wanted = op_args_find(args, "interactive", OP_ARG_FLAG);
  return wanted && wanted->on && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* ---- The terminal ---- */

void cli_browse_restore(void) {
  static const char leave[] = BROWSE_LEAVE;
  if (!browse_is_on) return;
  browse_is_on = 0;
  (void)!write(STDOUT_FILENO, leave, sizeof leave - 1);
  os_keys_end(STDIN_FILENO);
}

static bool browse_take_terminal(void) {
  static const char enter[] = BROWSE_ENTER;
  if (!os_keys_begin(STDIN_FILENO)) return false;
  browse_is_on = 1;
  (void)!write(STDOUT_FILENO, enter, sizeof enter - 1);
  return true;
}

static void browse_on_stop(int number) { op_interrupted = number; }
static void browse_on_resize(int number) {
  (void)number;
  browse_resized = 1;
}

/* Signals end waits, so that they are noticed at once. */
static void browse_catch_signals(void) {
  struct sigaction stop = {.sa_handler = browse_on_stop}, resize = {.sa_handler = browse_on_resize};
  static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) sigaction(ends[i], &stop, NULL);
  sigaction(SIGWINCH, &resize, NULL);
  sigaction(SIGCONT, &resize, NULL);
}

/* ---- Searching ---- */

static lode_status browse_take_row(op_sink *sink, op_row *row, lode_error *err) {
  browse *b = (browse *)sink;
  if (b->n == BROWSE_MAX_HITS) return LODE_OK;
  browse_hit *hit = &b->hits[b->n];
  lode_str path = op_row_get_text(row, "path"), name = op_row_get_text(row, "name");
  hit->line = op_row_get_count(row, op_row_get(row, "line") ? "line" : "start_line");
  hit->label.len = hit->preview.len = hit->path.len = 0;
  op_put_printable(&hit->label, path, 0);
  strbuf_addf(&hit->label, ":%llu  ", hit->line);
  op_put_printable(&hit->label, name.len ? name : op_row_get_text(row, "kind"), 60);
  strbuf_add(&hit->path, path.data, path.len);
  b->view.out.len = 0;
  cli_text_hit(&b->view, row);
  strbuf_add(&hit->preview, b->view.out.data, b->view.out.len);
  if (hit->label.failed || hit->preview.failed || hit->path.failed || b->view.out.failed) return err_nomem(err);
  b->n++;
  return LODE_OK;
}

static lode_status browse_take_summary(op_sink *sink, op_row *summary, lode_error *err) {
  (void)sink;
  (void)summary;
  (void)err;
  return LODE_OK;
}

static void browse_take_note(void *ctx, const char *text) {
  browse *b = ctx;
  snprintf(b->note, sizeof b->note, "%s", text);
}

static bool browse_goes_on(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  browse *b = ctx;
  (void)phase;
  (void)done;
  (void)total;
  return !op_interrupted && !cli_browse_key_waits(&b->keys);
}

/* Asks for what is typed. A failure is shown, and ends nothing: the next question may be a better one. */
static void browse_search(browse *b) {
  op_search_args *args = b->args->values;
  op_context ctx = *b->ctx;
  lode_error err = {.record = LODE_NO_RECORD};
  b->stale = false;
  b->n = b->chosen = b->scrolled = 0;
  b->note[0] = '\0';
  if (!b->query[0]) return;
  args->query = (op_arg_text){.set = true, .text = str_of(b->query)};
  b->view.searched = args->query.text;
  ctx.sink = &b->sink;
  ctx.note = browse_take_note;
  ctx.note_ctx = b;
  ctx.progress = (lode_progress){browse_goes_on, b};
  lode_status st = op_run(&ctx, b->args, &err);
  b->stale = st == LODE_CANCELLED && !op_interrupted;
  if (st != LODE_OK && st != LODE_CANCELLED) snprintf(b->note, sizeof b->note, "%s", err.text);
  if (st == LODE_OK && b->n == 0 && !b->note[0]) snprintf(b->note, sizeof b->note, "nothing was found");
}

/* ---- Drawing ---- */

static size_t browse_char_columns(const char *p, size_t bytes) {
  int n = utf8proc_charwidth((utf8proc_int32_t)utf8_decode(p, bytes));
  return n > 0 ? (size_t)n : 0;
}

/* As much of the line as fits `width` columns; escape sequences take none. Returns the columns. */
static size_t browse_put(strbuf *out, lode_str line, size_t width) {
  size_t used = 0;
  for (size_t i = 0; i < line.len;) {
    size_t bytes = 1, columns = 0;
    if (line.data[i] == '\033') {
      while (i + bytes < line.len && line.data[i + bytes - 1] != 'm') bytes++;
    } else {
      bytes = utf8_width(line.data + i, line.len - i);
      if (bytes == 0) bytes = 1; /* not UTF-8: op_put_printable leaves none of that */
      columns = browse_char_columns(line.data + i, bytes);
    }
    if (used + columns > width) break;
    strbuf_add(out, line.data + i, bytes);
    used += columns;
    i += bytes;
  }
  return used;
}

static void browse_end_line(browse *b) {
  strbuf_addstr(&b->screen, b->view.style.color ? CLI_PLAIN "\033[K\r\n" : "\033[K\r\n");
}

static void browse_paint(browse *b, const char *code) {
  if (b->view.style.color) strbuf_addstr(&b->screen, code);
}

static void browse_put_hits(browse *b, size_t rows, size_t width) {
  size_t first = b->chosen >= rows ? b->chosen - rows + 1 : 0;
  for (size_t i = first; i < first + rows; i++) {
    if (i < b->n) {
      const strbuf *label = &b->hits[i].label;
      if (i == b->chosen) browse_paint(b, "\033[7m");
      strbuf_addstr(&b->screen, i == b->chosen ? "> " : "  ");
      (void)browse_put(&b->screen, (lode_str){label->data, label->len}, width - 2);
    }
    browse_end_line(b);
  }
}

static void browse_put_preview(browse *b, size_t rows, size_t width) {
  const strbuf *preview = b->chosen < b->n ? &b->hits[b->chosen].preview : NULL;
  lode_str rest = preview ? (lode_str){preview->data, preview->len} : (lode_str){"", 0};
  size_t skip = b->scrolled;
  for (size_t row = 0; row < rows;) {
    const char *end = rest.len ? memchr(rest.data, '\n', rest.len) : NULL;
    lode_str line = {rest.data, end ? (size_t)(end - rest.data) : rest.len};
    rest = (lode_str){rest.data + line.len + (end ? 1 : 0), rest.len - line.len - (end ? 1 : 0)};
    if (skip && rest.len) {
      skip--;
      continue;
    }
    (void)browse_put(&b->screen, line, width);
    browse_end_line(b);
    row++;
  }
}

static void browse_draw(browse *b) {
  unsigned rows = 24, columns = 80;
  strbuf shown = {0};
  char counts[80];
  if (!os_terminal_size(STDOUT_FILENO, &rows, &columns) || !columns || !rows) rows = 24, columns = 80;
  size_t height = rows < BROWSE_MIN_ROWS ? BROWSE_MIN_ROWS : rows, width = columns < 20 ? 20 : columns;
  size_t list = (height - 3) / 3;
  browse_resized = 0;
  b->screen.len = 0;
  strbuf_addstr(&b->screen, "\033[?25l\033[H");
  browse_paint(b, CLI_BOLD);
  strbuf_addstr(&b->screen, "search: ");
  browse_paint(b, CLI_PLAIN);
  op_put_printable(&shown, str_of(b->query), 0);
  /* the end of a long question is what is typed at */
  lode_str query = {shown.data ? shown.data : "", shown.len};
  while (query.len + 9 > width) {
    size_t bytes = utf8_width(query.data, query.len);
    query = (lode_str){query.data + (bytes ? bytes : 1), query.len - (bytes ? bytes : 1)};
  }
  size_t cursor = 8 + browse_put(&b->screen, query, width - 9);
  browse_end_line(b);
  browse_paint(b, CLI_DIM);
  snprintf(counts, sizeof counts, "%zu result%s%s", b->n, b->n == 1 ? "" : "s", b->note[0] ? ": " : "");
  size_t used = browse_put(&b->screen, str_of(b->stale ? "searching" : counts), width);
  strbuf note = {0};
  op_put_printable(&note, str_of(b->note), 0);
  (void)browse_put(&b->screen, (lode_str){note.data ? note.data : "", note.len}, width - used);
  browse_end_line(b);
  browse_put_hits(b, list, width);
  browse_put_preview(b, height - list - 3, width);
  browse_paint(b, CLI_DIM);
  (void)browse_put(
      &b->screen,
      STR_LIT("Enter: open in $EDITOR   up, down: choose   PgUp, PgDn: scroll   Ctrl-U: clear   Esc: leave"), width);
  strbuf_addf(&b->screen, "%s\033[K\033[J\033[1;%zuH\033[?25h", b->view.style.color ? CLI_PLAIN : "", cursor + 1);
  if (!b->screen.failed && !shown.failed && !note.failed)
    (void)!op_write_fd(STDOUT_FILENO, b->screen.data, b->screen.len);
  strbuf_release(&shown);
  strbuf_release(&note);
}

/* ---- Keys ---- */

/* Opens the chosen result at its line, in the user's editor. */
static void browse_edit(browse *b) {
  static char script[] =
      "e=${VISUAL:-${EDITOR:-vi}}; case \"${e##*/}\" in code*|codium*|cursor*) exec $e --goto \"$2:$1\";; "
      "*) exec $e \"+$1\" \"$2\";; esac";
  const browse_hit *hit = &b->hits[b->chosen];
  char line[32];
  strbuf path = {0};
  os_exit end = {0};
  if (b->chosen >= b->n) return;
  snprintf(line, sizeof line, "%llu", hit->line);
  strbuf_addf(&path, "%s/", b->root);
  files_path_unescape(&path, (lode_str){hit->path.data, hit->path.len});
  strbuf_addch(&path, '\0');
  if (!path.failed) {
    char *argv[] = {"/bin/sh", "-c", script, "lode", line, path.data, NULL};
    cli_browse_restore();
    pid_t pid = os_start(argv, -1, -1);
    while (pid > 0 && os_wait(pid, true, &end) == 0) continue;
    browse_catch_signals();
    if (!browse_take_terminal()) op_interrupted = SIGHUP;
    if (pid <= 0 || end.code || end.signal)
      snprintf(b->note, sizeof b->note, "the editor failed: set EDITOR to one that takes +LINE FILE");
  }
  strbuf_release(&path);
}

static void browse_erase(browse *b, browse_key_kind how) {
  size_t n = strlen(b->query);
  if (how == BROWSE_KEY_ERASE_ALL) n = 0;
  if (how == BROWSE_KEY_ERASE_WORD) {
    while (n && b->query[n - 1] == ' ') n--;
    while (n && b->query[n - 1] != ' ') n--;
  }
  if (how == BROWSE_KEY_BACKSPACE && n) {
    n--;
    while (n && ((unsigned char)b->query[n] & 0xc0) == 0x80) n--;
  }
  b->query[n] = '\0';
}

/* Returns false when the user leaves. */
static bool browse_take_key(browse *b, const browse_key *key) {
  size_t n = strlen(b->query), more = strlen(key->text);
  switch (key->kind) {
    case BROWSE_KEY_TEXT:
      if (n + more + 1 < sizeof b->query) memcpy(b->query + n, key->text, more + 1);
      b->stale = true;
      return true;
    case BROWSE_KEY_BACKSPACE:
    case BROWSE_KEY_ERASE_WORD:
    case BROWSE_KEY_ERASE_ALL:
      browse_erase(b, key->kind);
      b->stale = true;
      return true;
    case BROWSE_KEY_UP:
    case BROWSE_KEY_DOWN:
      b->scrolled = 0;
      if (key->kind == BROWSE_KEY_UP && b->chosen) b->chosen--;
      if (key->kind == BROWSE_KEY_DOWN && b->chosen + 1 < b->n) b->chosen++;
      return true;
    case BROWSE_KEY_PAGE_UP: b->scrolled = b->scrolled > 10 ? b->scrolled - 10 : 0; return true;
    case BROWSE_KEY_PAGE_DOWN: b->scrolled += 10; return true;
    case BROWSE_KEY_ENTER: browse_edit(b); return true;
    case BROWSE_KEY_INTERRUPT: op_interrupted = SIGINT; return false;
    case BROWSE_KEY_ESCAPE:
    case BROWSE_KEY_END:
    case BROWSE_KEY_HANGUP: return false;
    default: return true;
  }
}

static void browse_loop(browse *b) {
  for (bool more = true; more && !op_interrupted;) {
    browse_draw(b);
    browse_key key = cli_browse_next_key(&b->keys, b->stale ? BROWSE_PAUSE_MS : -1);
    if (key.kind != BROWSE_KEY_NONE)
      more = browse_take_key(b, &key);
    else if (b->stale && !cli_browse_key_waits(&b->keys))
      browse_search(b);
    if (browse_resized && browse_is_on) (void)os_keys_begin(STDIN_FILENO); /* also after a stop and SIGCONT */
  }
}

/* ---- From start to end ---- */

static lode_status browse_drop_row(op_sink *sink, op_row *row, lode_error *err) {
  return browse_take_summary(sink, row, err);
}

/* A search as any other, before the screen is taken: it indexes or asks, and says what is wrong. */
static lode_status browse_prepare(browse *b, lode_error *err) {
  op_search_args *args = b->args->values;
  op_sink drop = {.row = browse_drop_row, .summary = browse_take_summary}, *sink = b->ctx->sink;
  project_info project = {0};
  args->interactive.on = false;
  if (!args->query.text.len) args->query = (op_arg_text){.set = true, .text = STR_LIT("main")};
  TRY(project_locate(&project, args->project.path, NULL, err));
  snprintf(b->root, sizeof b->root, "%s", project.root);
  project_release(&project);
  b->ctx->sink = &drop;
  lode_status st = op_run(b->ctx, b->args, err);
  b->ctx->sink = sink;
  args->refresh.on = false;
  args->no_refresh.on = true;
  b->ctx->nothing = false;
  return st;
}

lode_status cli_browse(op_context *ctx, op_args *args, const cli_style *style, lode_error *err) {
  const op_search_args *given = args->values;
  browse *b = mem_calloc(1, sizeof *b);
  if (!b) return err_nomem(err);
  *b = (browse){.sink = {browse_take_row, browse_take_summary, NULL, NULL}, .ctx = ctx, .args = args};
  b->keys.fd = STDIN_FILENO;
  b->stale = true;
  snprintf(b->query, sizeof b->query, "%.*s", (int)given->query.text.len,
           given->query.text.len ? given->query.text.data : "");
  cli_writer_init(&b->view, args->op, -1);
  cli_writer_set_args(&b->view, args);
  b->view.style = *style;
  b->view.whole_snippets = true;
  b->view.files_only = b->view.oneline = false;
  lode_status st = browse_prepare(b, err);
  if (st == LODE_OK && !browse_take_terminal()) st = err_errno(err, 0, "the terminal cannot be used");
  if (st == LODE_OK) {
    browse_catch_signals();
    browse_loop(b);
    cli_browse_restore();
    if (op_interrupted) st = err_set(err, LODE_CANCELLED, "cancelled");
  }
  for (size_t i = 0; i < BROWSE_MAX_HITS; i++) {
    strbuf_release(&b->hits[i].label);
    strbuf_release(&b->hits[i].preview);
    strbuf_release(&b->hits[i].path);
  }
  strbuf_release(&b->screen);
  cli_writer_release(&b->view);
  mem_free(b);
  return st;
}
