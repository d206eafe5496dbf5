/* SPDX-License-Identifier: Apache-2.0 */
/* parser_main.c - lode-parser: reads requests from descriptor 3 and answers with chunks, until the end of its input.
 *
 *   lode-parser GRAMMARS MEMORY_BYTES     a worker, started by parser_pool.c
 *   lode-parser --check GRAMMARS          compares the table of languages with the grammars
 *
 * The text may be hostile, and grammars are large programs of others. A worker is bounded: its memory by a budget in
 * the allocator and by RLIMIT_AS, its CPU time by a callback of the parser and, where the callback is not called, by
 * a timer whose signal ends the process. In test builds it misbehaves on command.
 */
#include "os/frame.h"
#include "os/proc.h"
#include "base/byteorder.h"
#include "platform/sanitized.h"
#include "chunk/chunk_make.h"
#include "chunk/parser_wire.h"
#include "parser/tree.h"
#include "platform/process.h"
#include "platform/thread.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

/* ---- Memory ---- */

static size_t parser_memory_used, parser_memory_limit = SIZE_MAX;

static void parser_exit_nomem(void) { _exit(PARSER_WIRE_EXIT_NOMEM); }

/* Each allocation has its size before it: no system tells it in the same way. */
enum { PARSER_HEAD_BYTES = _Alignof(max_align_t) };

static size_t parser_size_of(const void *p) {
  size_t n;
  memcpy(&n, (const char *)p - PARSER_HEAD_BYTES, sizeof n);
  return n;
}

static void *parser_realloc(void *p, size_t n) {
  size_t was = p ? parser_size_of(p) : 0, bytes = n + PARSER_HEAD_BYTES;
  parser_memory_used -= was;
  if (bytes < n || bytes > parser_memory_limit - parser_memory_used) parser_exit_nomem();
  char *head = realloc(p ? (char *)p - PARSER_HEAD_BYTES : NULL, bytes);
  if (!head) parser_exit_nomem();
  memcpy(head, &bytes, sizeof bytes);
  parser_memory_used += bytes;
  return head + PARSER_HEAD_BYTES;
}

static void *parser_malloc(size_t n) { return parser_realloc(NULL, n); }

static void *parser_calloc(size_t n, size_t size) {
  if (size && n > SIZE_MAX / size) parser_exit_nomem();
  return memset(parser_malloc(n * size), 0, n * size);
}

static void parser_free(void *p) {
  if (!p) return;
  parser_memory_used -= parser_size_of(p);
  free((char *)p - PARSER_HEAD_BYTES);
}

static void parser_limit_memory(uint64_t bytes) {
  parser_memory_limit = bytes;
#if !BUILD_ASAN && !BUILD_TSAN
  /* extra space for the program, its libraries and grammars, and for scanners that allocate with malloc */
  os_limit_memory(bytes * 2 + (256u << 20));
#endif
}

/* ---- CPU time ---- */

static bool parser_out_of_time(TSParseState *state) { return os_cpu_time_ns() > *(const uint64_t *)state->payload; }

/* ---- Parsing ---- */

typedef struct parser_request {
  chunk_options options;
  uint32_t cpu_ms;
  const lang_info *language;
  lode_str text;
} parser_request;

static const char *parser_read_text(void *payload, uint32_t at, TSPoint point, uint32_t *n) {
  const lode_str *text = payload;
  (void)point;
  *n = at < text->len ? (uint32_t)text->len - at : 0;
  return at < text->len ? text->data + at : "";
}

static lode_status parser_parse_text(TSParser *parser, const parser_grammar *g, const parser_request *r, TSTree **tree,
                                     lode_error *err) {
  uint64_t deadline = os_cpu_time_ns() + (uint64_t)r->cpu_ms * 1000000u;
  lode_str text = r->text;
  TSInput input = {.payload = &text, .read = parser_read_text, .encoding = TSInputEncodingUTF8};
  TSParseOptions options = {.payload = &deadline, .progress_callback = parser_out_of_time};
  if (!ts_parser_set_language(parser, g->ts)) return err_set(err, LODE_TOO_NEW, "the grammar does not fit the parser");
  *tree = ts_parser_parse_with_options(parser, NULL, input, options);
  if (*tree) return LODE_OK;
  ts_parser_reset(parser);
  return err_set(err, LODE_BUSY, "more than %u.%u s of CPU time", r->cpu_ms / 1000, r->cpu_ms % 1000 / 100);
}

typedef struct parser_result { /* reused for each request */
  parser_outline outline;
  chunk_list list;
  parser_refs refs;
  strbuf symbols;
  bool broken;
} parser_result;

static lode_status parser_chunk_text(TSParser *parser, const char *folder, const parser_request *r, parser_result *to,
                                     lode_error *err) {
  const parser_grammar *g = NULL;
  TSTree *tree = NULL;
  to->symbols.len = 0;
  TRY(parser_grammar_load(folder, r->language, &g, err));
  TRY(parser_parse_text(parser, g, r, &tree, err));
  to->broken = ts_node_has_error(ts_tree_root_node(tree));
  lode_status st = parser_collect(g, tree, r->text, &r->options, &to->outline, err);
  if (st == LODE_OK) st = parser_make_chunks(g, &to->outline, r->text, &r->options, &to->list, err);
  if (st == LODE_OK) st = parser_make_symbols(g, tree, r->text, &to->refs, &to->symbols, err);
  ts_tree_delete(tree);
  return st;
}

/* ---- Requests and answers ---- */

static bool parser_read_request(lode_str body, parser_request *r) {
  uint32_t n[PARSER_WIRE_NUMBERS];
  size_t head = 4 * PARSER_WIRE_NUMBERS;
  if (body.len < head) return false;
  for (int i = 0; i < PARSER_WIRE_NUMBERS; i++) n[i] = num_le32(body.data + 4 * i);
  if (n[0] != PARSER_WIRE_VERSION || n[5] > body.len - head || n[6] != body.len - head - n[5]) return false;
  chunk_options asked = {n[1], n[2]};
  r->options = chunk_options_resolve(&asked);
  r->cpu_ms = n[3];
  r->language = lang_find((lode_str){body.data + head, n[5]});
  r->text = (lode_str){body.data + head + n[5], n[6]};
  return r->language != NULL;
}

static lode_status parser_answer_failure(lode_status why, const lode_error *said, lode_error *err) {
  unsigned char reason[4];
  num_put_le32(reason, why == LODE_NOT_FOUND || why == LODE_TOO_NEW ? PARSER_WIRE_NO_GRAMMAR
                       : why == LODE_BUSY                           ? PARSER_WIRE_OUT_OF_TIME
                       : why == LODE_NOMEM                          ? PARSER_WIRE_NO_MEMORY
                                                                    : PARSER_WIRE_OTHER);
  lode_str parts[] = {{(const char *)reason, 4}, str_of(said->text)};
  return proc_frame_send(PROC_CHILD_FD, (proc_frame){.type = PARSER_WIRE_FAILED}, parts, 2, 0, err);
}

static lode_status parser_answer_chunks(const parser_result *r, strbuf *out, lode_error *err) {
  unsigned char head[8];
  out->len = 0;
  num_put_le32(head, r->broken);
  num_put_le32(head + 4, (uint32_t)r->symbols.len);
  chunk_list_encode(&r->list, out);
  if (out->failed) parser_exit_nomem();
  lode_str parts[] = {
      {(const char *)head, 8}, {r->symbols.data ? r->symbols.data : "", r->symbols.len}, {out->data, out->len}};
  return proc_frame_send(PROC_CHILD_FD, (proc_frame){.type = PARSER_WIRE_CHUNKS}, parts, 3, 0, err);
}

#ifdef LODE_CHECKED
/* Does what a bad grammar may do, to test the parent. */
static void parser_misbehave(lode_str text) {
  static const char sign[] = "lode-parser-test: ";
  if (text.len < sizeof sign || memcmp(text.data, sign, sizeof sign - 1) != 0) return;
  char how = text.data[sizeof sign - 1];
  if (how == 'c') raise(SIGSEGV);
  if (how == 'a') abort();
  if (how == 'e') _exit(3);
  if (how == 'g') (void)!write(PROC_CHILD_FD, "nonsense that is longer than the head of a frame", 48);
  if (how == 'h')
    for (volatile unsigned i = 0;; i++) continue;
  if (how == 's')
    for (;;) pause();
  while (how == 'm') memset(parser_malloc(1 << 20), 1, 1 << 20);
}
#endif

static int parser_serve(const char *folder) {
  TSParser *parser = ts_parser_new();
  parser_result result = {0};
  strbuf body = {0}, out = {0};
  lode_error err, said;
  proc_frame frame;
  lode_status st = LODE_OK;
  while (st == LODE_OK) {
    parser_request r = {0};
    st = proc_frame_receive(PROC_CHILD_FD, LANG_MAX_TEXT + 4096, 0, &frame, &body, &err);
    if (st != LODE_OK) break;
    if (frame.type != PARSER_WIRE_PARSE || !parser_read_request((lode_str){body.data, body.len}, &r)) return 2;
    os_cpu_alarm(r.cpu_ms + r.cpu_ms / 4 + 100);
#ifdef LODE_CHECKED
    parser_misbehave(r.text);
#endif
    lode_status made = parser_chunk_text(parser, folder, &r, &result, &said);
    os_cpu_alarm(0);
    st = made == LODE_OK ? parser_answer_chunks(&result, &out, &err) : parser_answer_failure(made, &said, &err);
  }
  ts_parser_delete(parser);
  parser_outline_release(&result.outline);
  chunk_list_release(&result.list);
  parser_refs_release(&result.refs);
  strbuf_release(&result.symbols);
  strbuf_release(&body);
  strbuf_release(&out);
  return st == LODE_GONE ? 0 : 2;
}

static int parser_check_grammars(const char *folder) {
  size_t wrong = 0, found = 0;
  strbuf out = {0};
  for (size_t i = 0; i < lang_count; i++) {
    const parser_grammar *g;
    lode_error err;
    if (!lang_table[i].grammar) continue;
    lode_status st = parser_grammar_load(folder, &lang_table[i], &g, &err);
    if (st == LODE_OK) {
      wrong += parser_grammar_check(g, &out);
      found++;
    } else {
      strbuf_addf(&out, "%s: %s\n", lang_table[i].name, err.text);
      wrong++;
    }
  }
  if (out.data) fwrite(out.data, 1, out.len, stdout);
  printf("%zu grammars, %zu wrong\n", found, wrong);
  strbuf_release(&out);
  return wrong != 0;
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "--check") == 0) return parser_check_grammars(argv[2]);
  if (argc != 3) {
    fprintf(stderr, "lode-parser is a part of lode, which starts it; lode-parser --check FOLDER looks at the grammars "
                    "in a folder\n");
    return 2;
  }
  char *end;
  errno = 0;
  uint64_t memory = strtoull(argv[2], &end, 10);
  if (errno || *end || memory < (16u << 20)) return 2;
  /* Ctrl-C is for lode, which stops its workers; it must not make a file fall back to chunks by lines */
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  ts_set_allocator(parser_malloc, parser_calloc, parser_realloc, parser_free);
  parser_limit_memory(memory);
  return parser_serve(argv[1]);
}
