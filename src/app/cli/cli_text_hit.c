/* SPDX-License-Identifier: Apache-2.0 */
/* cli_text_hit.c - search results and checks for people, in the style of ripgrep and bat.
 *
 *   1  src/net/retry.go:41-67  Backoff.Next  method  2.31
 *      41 | func (b *Backoff) Next() time.Duration {
 *
 * A result shows the window of its chunk that holds most of the query's words. On a terminal with colours, paths are
 * links to the files (OSC 8), code has the colours of its syntax, and the words stand out.
 */
#include "cli/cli_writer.h"
#include "ops/op_text.h"

#include "project/project.h"
#include "indexer/code_record.h"
#include "scan/language_lex.h"
#include "search/search_words.h"

#include <unistd.h>

enum { HIT_WINDOW_LINES = 7, HIT_MIN_WIDTH = 20, HIT_TAB_WIDTH = 4, HIT_EXPLAIN_WIDTH = 28 };

#define HIT_PATH_COLOR "\033[35m"
#define HIT_LINE_COLOR "\033[32m"
/* Colours of the terminal's own palette that can be read on dark and on light ground, red and bold as grep has it */
#define HIT_MATCH "\033[1;31m"
#define HIT_GOOD "\033[32m"
#define HIT_WARN "\033[33m"
#define HIT_BAD "\033[31m"

/* ---- Links ---- */

static void hit_put_uri(strbuf *out, const char *path) {
  static const char safe[] = "/-._~";
  for (; *path; path++) {
    unsigned char c = (unsigned char)*path;
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr(safe, c);
    if (plain)
      strbuf_addch(out, (char)c);
    else
      strbuf_addf(out, "%%%02X", c);
  }
}

/* Opens a link to a file of the project; false if there is none. */
static bool hit_begin_link(cli_writer *w, lode_str path) {
  project_info project;
  strbuf raw = {0};
  char host[256] = "";
  if (!w->style.color || !isatty(w->fd)) return false;
  if (project_locate(&project, w->project, NULL, NULL) != LODE_OK) return false;
  strbuf_addf(&raw, "%s/", project.root);
  files_path_unescape(&raw, path);
  strbuf_addch(&raw, '\0');
  (void)gethostname(host, sizeof host - 1);
  if (!raw.failed) {
    strbuf_addf(&w->out, "\033]8;;file://%s", host);
    hit_put_uri(&w->out, raw.data);
    strbuf_addstr(&w->out, "\033\\");
  }
  bool linked = !raw.failed;
  strbuf_release(&raw);
  project_release(&project);
  return linked;
}

/* ---- Lines ---- */

static lode_str hit_next_line(lode_str *text) {
  const char *end = memchr(text->data, '\n', text->len);
  lode_str line = {text->data, end ? (size_t)(end - text->data) : text->len};
  size_t used = end ? line.len + 1 : line.len;
  text->data += used;
  text->len -= used;
  if (line.len && line.data[line.len - 1] == '\r') line.len--;
  return line;
}

static void hit_query_words(const cli_writer *w, search_words *words) {
  search_words all;
  words->n = 0;
  search_words_split(w->searched.data ? w->searched : STR_LIT(""), &all);
  for (size_t i = 0; i < all.n; i++)
    if (!search_word_is_stop(&all.v[i])) words->v[words->n++] = all.v[i];
}

static double hit_line_score(lode_str line, const search_words *words) {
  search_words here;
  double sum = 0;
  search_words_split(line, &here);
  for (size_t i = 0; i < words->n; i++) sum += search_word_best(&words->v[i], &here);
  return sum;
}

/* The first line to show: that of the window with most of the words; the beginning if it is as good. */
static size_t hit_best_window(lode_str text, const search_words *words, size_t total) {
  double window[HIT_WINDOW_LINES] = {0}, sum = 0, best = -1;
  size_t best_at = 0;
  if (total <= HIT_WINDOW_LINES) return 0;
  for (size_t i = 0; text.len; i++) {
    double value = hit_line_score(hit_next_line(&text), words);
    sum += value - window[i % HIT_WINDOW_LINES];
    window[i % HIT_WINDOW_LINES] = value;
    size_t at = i + 1 >= HIT_WINDOW_LINES ? i + 1 - HIT_WINDOW_LINES : 0;
    /* the head says what it is: another window must be clearly better */
    if (i + 1 >= HIT_WINDOW_LINES && sum > best + (best_at == 0 && best >= 0 ? 1.0 : 1e-9)) {
      best = sum;
      best_at = at;
    }
  }
  return best_at;
}

static bool hit_is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (unsigned char)c >= 0x80;
}

static bool hit_matches(lode_str word, const search_words *words) {
  search_words here;
  search_words_split(word, &here);
  for (size_t i = 0; i < here.n; i++)
    if (search_word_best(&here.v[i], words) >= 0.9) return true;
  return false;
}

static const char *hit_color_of(lang_token token) {
  switch (token) {
    case LANG_TOKEN_COMMENT: return CLI_DIM;
    case LANG_TOKEN_STRING: return "\033[32m";
    case LANG_TOKEN_NUMBER: return "\033[36m";
    case LANG_TOKEN_WORD: return "\033[35m";
    default: return NULL;
  }
}

/* A token in its colour, with those of its words that were asked for highlighted. */
static void hit_put_token(cli_writer *w, lode_str token, const char *color, const search_words *words) {
  if (color) cli_text_paint(w, color);
  for (size_t i = 0; i < token.len;) {
    size_t start = i;
    bool word = hit_is_word_char(token.data[i]);
    while (i < token.len && hit_is_word_char(token.data[i]) == word) i++;
    lode_str part = {token.data + start, i - start};
    bool hit = word && hit_matches(part, words);
    if (hit) cli_text_paint(w, CLI_PLAIN HIT_MATCH);
    op_put_printable(&w->out, part, 0);
    if (hit) cli_text_paint(w, CLI_PLAIN);
    if (hit && color && i < token.len) cli_text_paint(w, color);
  }
  if (color) cli_text_paint(w, CLI_PLAIN);
}

/* A line of code, with tabs as spaces and, where there are colours, those of its syntax and of the query's words;
 * truncated to `width`; 0: not truncated. */
static void hit_put_code(cli_writer *w, lang_lexer *lexer, lode_str line, const search_words *words, size_t width) {
  strbuf flat = {0};
  for (size_t i = 0; i < line.len; i++) {
    if (line.data[i] == '\t')
      strbuf_addf(&flat, "%*s", HIT_TAB_WIDTH, "");
    else
      strbuf_addch(&flat, line.data[i]);
  }
  lode_str text = {flat.data ? flat.data : "", flat.len};
  if (!w->style.color) {
    op_put_printable(&w->out, text, width);
    strbuf_release(&flat);
    return;
  }
  size_t shown = width && text.len > width ? width - 1 : text.len;
  while (shown < text.len && shown && ((unsigned char)text.data[shown] & 0xc0) == 0x80) shown--;
  for (size_t at = 0; at < text.len;) {
    size_t start = at;
    const char *color = hit_color_of(lang_lexer_next(lexer, text, &at));
    size_t end = at < shown ? at : shown;
    if (start < end) hit_put_token(w, (lode_str){text.data + start, end - start}, color, words);
  }
  lang_lexer_end_line(lexer);
  if (shown < text.len) strbuf_addstr(&w->out, "…");
  strbuf_release(&flat);
}

/* A line that is not shown: what begins in it may go on in the next one. */
static void hit_pass_code(lang_lexer *lexer, lode_str line) {
  for (size_t at = 0; at < line.len;) (void)lang_lexer_next(lexer, line, &at);
  lang_lexer_end_line(lexer);
}

static void hit_begin_code(lang_lexer *lexer, const op_row *row, lode_str text) {
  lang_lexer_begin(lexer, op_row_get_text(row, "language"), hit_next_line(&text));
}

/* Was the hit's definition asked for by its name, or by the last of joined names? */
static bool hit_is_named(const cli_writer *w, const op_row *row) {
  lode_str name = op_row_get_text(row, "name"), asked = w->searched;
  if (!name.len || asked.len < name.len || memcmp(asked.data + asked.len - name.len, name.data, name.len) != 0)
    return false;
  for (size_t i = 0; i < asked.len; i++)
    if ((unsigned char)asked.data[i] <= ' ') return false;
  return asked.len == name.len || !search_is_name_byte((unsigned char)asked.data[asked.len - name.len - 1]);
}

/* The first line to show of a definition: its own first line, or a short comment before it. */
static size_t hit_head_of(const op_row *row, uint64_t first) {
  uint64_t line = op_row_get_count(row, "line");
  return line > first + HIT_WINDOW_LINES / 2 ? (size_t)(line - first) : 0;
}

static void hit_put_snippet(cli_writer *w, const op_row *row) {
  lode_str text = op_row_get_text(row, "snippet"), rest = text;
  uint64_t first = op_row_get_count(row, op_row_get(row, "snippet_line") ? "snippet_line" : "start_line");
  search_words words;
  lang_lexer lexer;
  size_t total = 0;
  hit_query_words(w, &words);
  hit_begin_code(&lexer, row, text);
  while (rest.len) {
    (void)hit_next_line(&rest);
    total++;
  }
  /* pipes get full lines */
  size_t width = w->full || !isatty(w->fd)             ? 0
                 : w->style.width > HIT_MIN_WIDTH + 11 ? w->style.width - 11
                                                       : HIT_MIN_WIDTH;
  bool all = w->full || w->whole_snippets;
  size_t from = all ? 0 : hit_is_named(w, row) ? hit_head_of(row, first) : hit_best_window(text, &words, total);
  size_t to = all ? total : from + HIT_WINDOW_LINES;
  for (size_t i = 0; text.len; i++) {
    lode_str line = hit_next_line(&text);
    if (i >= to) break;
    if (i < from) {
      hit_pass_code(&lexer, line);
      continue;
    }
    cli_text_paint(w, CLI_DIM);
    strbuf_addf(&w->out, "%8llu │ ", (unsigned long long)(first + i));
    cli_text_paint(w, CLI_PLAIN);
    hit_put_code(w, &lexer, line, &words, width);
    strbuf_addch(&w->out, '\n');
  }
}

/* ---- Results ---- */

static void hit_put_explanation(cli_writer *w, lode_str object) {
  json_doc json = {0};
  size_t n = 0;
  if (json_parse(&json, object, NULL, NULL) != LODE_OK) {
    w->out.failed = true; /* only for lack of memory: it is JSON */
    return;
  }
  size_t per_line = w->style.width > 2 * HIT_EXPLAIN_WIDTH ? (w->style.width - 8) / HIT_EXPLAIN_WIDTH : 1;
  for (uint32_t i = 1; i < json.nodes[0].next; i = json.nodes[i + 1].next) {
    const json_node *x = &json.nodes[i + 1];
    double value = x->type == JSON_NODE_DOUBLE ? x->u.d : (double)x->u.i;
    lode_str name = json.nodes[i].u.s;
    if (value == 0) continue; /* it did not count */
    strbuf_addstr(&w->out, n == 0 ? "        " : n % per_line == 0 ? "\n        " : "    ");
    cli_text_paint(w, CLI_DIM);
    strbuf_addf(&w->out, "%-*.*s", HIT_EXPLAIN_WIDTH - 10, (int)name.len, name.data);
    cli_text_paint(w, CLI_PLAIN);
    strbuf_addf(&w->out, "%6.2f", value);
    n++;
  }
  if (n) strbuf_addch(&w->out, '\n');
  json_release(&json);
}

static void hit_put_extent(cli_writer *w, const op_row *row) {
  unsigned long long first = op_row_get_count(row, "start_line"), last = op_row_get_count(row, "end_line");
  cli_text_paint(w, HIT_LINE_COLOR);
  strbuf_addf(&w->out, ":%llu", first);
  if (last > first) strbuf_addf(&w->out, "-%llu", last);
}

static void hit_put_names(cli_writer *w, const op_row *row) {
  lode_str name = op_row_get_text(row, "name"), parents = op_row_get_text(row, "parents"),
           kind = op_row_get_text(row, "kind");
  strbuf_addstr(&w->out, "  ");
  if (name.len) {
    if (parents.len) {
      cli_text_paint(w, CLI_DIM);
      op_put_printable(&w->out, parents, 60);
      strbuf_addch(&w->out, ' ');
      cli_text_paint(w, CLI_PLAIN);
    }
    cli_text_paint(w, CLI_BOLD);
    op_put_printable(&w->out, name, 80);
    cli_text_paint(w, CLI_PLAIN);
    strbuf_addstr(&w->out, "  ");
  }
  cli_text_paint(w, CLI_DIM);
  op_put_printable(&w->out, kind, 0);
}

static void hit_put_path(cli_writer *w, lode_str path, const op_row *extent) {
  bool linked = hit_begin_link(w, path);
  cli_text_paint(w, HIT_PATH_COLOR);
  op_put_printable(&w->out, path, 0);
  if (extent) hit_put_extent(w, extent);
  cli_text_paint(w, CLI_PLAIN);
  if (linked) strbuf_addstr(&w->out, "\033]8;;\033\\");
}

/* The line of a chunk that says most: that of the definition if its name was asked for, else that with most of the
 * words. */
static lode_str hit_best_line(const cli_writer *w, const op_row *row, uint64_t *number) {
  lode_str text = op_row_get_text(row, "snippet"), best = {0};
  uint64_t first = op_row_get_count(row, op_row_get(row, "snippet_line") ? "snippet_line" : "start_line");
  uint64_t wanted = op_row_get(row, "line") ? op_row_get_count(row, "line") : first;
  bool named = hit_is_named(w, row);
  search_words words;
  double most = -1;
  hit_query_words(w, &words);
  *number = first;
  for (uint64_t i = first; text.len; i++) {
    lode_str line = hit_next_line(&text);
    double score = named ? i == wanted : hit_line_score(line, &words);
    if (score <= most) continue;
    most = score;
    best = line;
    *number = i;
  }
  return best;
}

/* src/net/retry.go:41: func (b *Backoff) Next() time.Duration { */
static void hit_put_oneline(cli_writer *w, const op_row *row) {
  uint64_t number;
  search_words words;
  lang_lexer lexer;
  lode_str line = hit_best_line(w, row, &number), path = op_row_get_text(row, "path");
  while (line.len && (*line.data == ' ' || *line.data == '\t')) line = (lode_str){line.data + 1, line.len - 1};
  hit_query_words(w, &words);
  hit_put_path(w, path, NULL);
  cli_text_paint(w, HIT_LINE_COLOR);
  size_t start = w->out.len;
  strbuf_addf(&w->out, ":%llu", (unsigned long long)number);
  size_t used = path.len + (w->out.len - start) + 2;
  cli_text_paint(w, CLI_PLAIN);
  strbuf_addstr(&w->out, ": ");
  hit_begin_code(&lexer, row, line);
  hit_put_code(w, &lexer, line, &words,
               !w->narrow                              ? 0
               : w->style.width > used + HIT_MIN_WIDTH ? w->style.width - used
                                                       : HIT_MIN_WIDTH);
  strbuf_addch(&w->out, '\n');
}

static void hit_put_whole(cli_writer *w, const op_row *row) {
  const op_value *score = op_row_get(row, "score"), *explain = op_row_get(row, "explain");
  if (w->rows) strbuf_addch(&w->out, '\n');
  hit_put_path(w, op_row_get_text(row, "path"), row);
  hit_put_names(w, row);
  if (score) strbuf_addf(&w->out, "  %.2f", score->u.real);
  lode_str relation = op_row_get_text(row, "relation");
  if (relation.len) strbuf_addf(&w->out, "  (%.*s)", (int)relation.len, relation.data);
  lode_str stale = op_row_get_text(row, "stale");
  if (stale.len) {
    cli_text_paint(w, HIT_WARN);
    strbuf_addstr(&w->out, str_eq(stale, STR_LIT("gone")) ? "  (the file is gone)"
                                                          : "  (the file changed since it was indexed)");
    cli_text_paint(w, CLI_PLAIN);
  }
  unsigned long long copies = op_row_get_count(row, "copies");
  if (copies) strbuf_addf(&w->out, "  (%llu more like it)", copies);
  cli_text_paint(w, CLI_PLAIN);
  strbuf_addch(&w->out, '\n');
  if (explain) hit_put_explanation(w, explain->u.text);
  hit_put_snippet(w, row);
}

/* Weak matches are dimmed as a whole. */
void cli_text_hit(cli_writer *w, const op_row *row) {
  const op_value *weak = op_row_get(row, "weak");
  w->muted = weak && weak->u.flag;
  if (w->files_only) {
    hit_put_path(w, op_row_get_text(row, "path"), NULL);
    strbuf_addch(&w->out, '\n');
  } else if (w->oneline) {
    hit_put_oneline(w, row);
  } else {
    hit_put_whole(w, row);
  }
  if (w->muted && w->style.color) strbuf_addstr(&w->out, CLI_PLAIN);
  w->muted = false;
}

/* ---- Checks ---- */

enum { HIT_CHECK_COLUMN = 23 };

static void hit_put_sentence(cli_writer *w, lode_str text, size_t column) {
  strbuf clean = {0};
  op_put_printable(&clean, text, 0);
  strbuf_addch(&clean, '\0');
  if (clean.failed)
    w->out.failed = true;
  else
    cli_put_wrapped(&w->out, clean.data, column, column, w->narrow ? w->style.width : SIZE_MAX);
  strbuf_release(&clean);
}

void cli_text_check(cli_writer *w, const op_row *row) {
  lode_str state = op_row_get_text(row, "state"), remedy = op_row_get_text(row, "remedy");
  const char *color = str_eq(state, STR_LIT("bad")) ? HIT_BAD : str_eq(state, STR_LIT("note")) ? HIT_WARN : HIT_GOOD;
  cli_text_paint(w, color);
  strbuf_addf(&w->out, "%-7.*s", (int)state.len, state.data);
  cli_text_paint(w, CLI_PLAIN);
  strbuf_addf(&w->out, "%-15.*s ", (int)op_row_get_text(row, "check").len, op_row_get_text(row, "check").data);
  hit_put_sentence(w, op_row_get_text(row, "detail"), HIT_CHECK_COLUMN);
  if (!remedy.len) return;
  strbuf_addstr(&w->out, "                       ");
  cli_text_paint(w, CLI_BOLD);
  hit_put_sentence(w, remedy, HIT_CHECK_COLUMN);
  cli_text_paint(w, CLI_PLAIN);
}
