/* SPDX-License-Identifier: Apache-2.0 */
/* test_output.c - rows of results as JSON and as text: every layout, on terminals of several widths. Rows are those of
 * real operations, filled by hand. */
#include "cli/cli_writer.h"
#include "ops/op_text.h"
#include "table/op_table.h"
#include "support/test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static lode_error err;

typedef struct show {
  cli_writer writer;
  op_context ctx;
  int fd;
} show;

static void begin(show *s, const char *group, const char *name) {
  char path[300];
  snprintf(path, sizeof path, "%s/out", test_folder());
  s->fd = -1;
  FILE *f = fopen(path, "w+");
  CHECK(f);
  s->fd = dup(fileno(f));
  fclose(f);
  const op_def *op = op_find(group, str_of(name));
  CHECKF(op, "%s", name);
  cli_writer_init(&s->writer, op, s->fd);
  s->ctx = (op_context){.op = op, .sink = &s->writer.sink};
  mem_arena_init(&s->ctx.row.arena, 0);
}

static void narrow(show *s, size_t width) {
  s->writer.narrow = true;
  s->writer.style.width = width;
}

static void end(show *s, const char *expected) {
  char text[8192];
  OK(cli_writer_finish(&s->writer, &err));
  ssize_t n = pread(s->fd, text, sizeof text - 1, 0);
  CHECK(n >= 0);
  text[n] = '\0';
  CHECKF(strcmp(text, expected) == 0, "got\n%s\nwanted\n%s", text, expected);
  cli_writer_release(&s->writer);
  mem_arena_release(&s->ctx.row.arena);
  close(s->fd);
}

/* ---- Records ---- */

static void put_record(show *s, const char *id, const char *document) {
  static const float vector[] = {1, 0.1f, -2.5e-7f, 1e20f};
  op_row_begin(&s->ctx);
  op_row_text(&s->ctx, "id", str_of(id));
  op_row_text(&s->ctx, "document", str_of(document));
  op_row_json(&s->ctx, "metadata", STR_LIT("{\"lang\":\"c\",\"n\":1.50,\"old\":null,\"tags\":[\"a\",2]}"));
  op_row_vector(&s->ctx, "embedding", document ? vector : NULL, 4);
  OK(op_row_send(&s->ctx, &err));
}

TEST(records_as_json_lines) {
  show s;
  begin(&s, "db", "get");
  s.writer.json = true;
  put_record(&s, "a\"\n", "x\ty\xff\x01");
  put_record(&s, "b", NULL);
  op_summary_begin(&s.ctx);
  op_row_count(&s.ctx, "count", 2);
  op_row_null(&s.ctx, "next");
  OK(op_row_send(&s.ctx, &err)); /* `get` hides its summary */
  end(&s,
      "{\"id\":\"a\\\"\\n\",\"document\":\"x\\ty\xef\xbf\xbd\\u0001\",\"metadata\":{\"lang\":\"c\",\"n\":1.50,\"old\":"
      "null,\"tags\":[\"a\",2]},\"embedding\":[1.0,0.1,-2.5e-7,1e20]}\n"
      "{\"id\":\"b\",\"document\":null,\"metadata\":{\"lang\":\"c\",\"n\":1.50,\"old\":null,\"tags\":[\"a\",2]},"
      "\"embedding\":null}\n");
}

TEST(records_as_text) {
  show s;
  begin(&s, "db", "get");
  put_record(&s, "a\033[1m", "one\r\ntwo\n3\n4\n5\n6");
  put_record(&s, "b", NULL);
  end(&s, "a\\x1b[1m\n"
          "  one\n  two\n  3\n  4\n  …\n"
          "  lang=c  n=1.5  old=-  tags=[\"a\",2]\n"
          "  4 numbers: [1.0,0.1,-2.5e-7,1e20]\n"
          "b\n"
          "  lang=c  n=1.5  old=-  tags=[\"a\",2]\n");
  begin(&s, "db", "get");
  s.writer.style = (cli_style){.color = true, .width = 40};
  put_record(&s, "a", "a line that is longer than this terminal is wide");
  end(&s, "\033[36ma\033[0m\n"
          "  a line that is longer than this termi…\n"
          "  \033[2mlang=c  n=1.5  old=-  tags=[\"a\",2]\033[0m\n"
          "  4 numbers: [1.0,0.1,-2.5e-7,1e20]\n");
}

TEST(hits_of_a_query_are_ranked) {
  show s;
  begin(&s, "db", "query");
  for (uint64_t i = 0; i < 3; i++) {
    op_row_begin(&s.ctx);
    op_row_count(&s.ctx, "query", i / 2);
    op_row_count(&s.ctx, "rank", i % 2 + 1);
    op_row_text(&s.ctx, "id", STR_LIT("a"));
    op_row_real(&s.ctx, "distance", i == 2 ? 0.0 / 0.0 : 0.123456789);
    if (i) op_row_real(&s.ctx, "score", 2);
    OK(op_row_send(&s.ctx, &err));
  }
  end(&s, "  1  a  distance 0.123457\n  2  a  distance 0.123457  score 2\n\nquery 1\n  1  a  score 2\n");
}

/* ---- Tables ---- */

static void put_collections(show *s) {
  for (uint64_t i = 0; i < 2; i++) {
    op_row_begin(&s->ctx);
    op_row_text(&s->ctx, "name", i ? STR_LIT("notes") : STR_LIT("é"));
    op_row_count(&s->ctx, "records", i * 1234567);
    op_row_count(&s->ctx, "pending", 0);
    op_row_text(&s->ctx, "metric", STR_LIT("l2"));
    if (i)
      op_row_count(&s->ctx, "dimension", 1024);
    else
      op_row_null(&s->ctx, "dimension");
    op_row_text(&s->ctx, "embedder", (lode_str){0});
    op_row_json(&s->ctx, "metadata", i ? STR_LIT("{\"c\":120,\"go\":3000}") : STR_LIT("{}"));
    OK(op_row_send(&s->ctx, &err));
  }
}

TEST(tables_fit_the_terminal) {
  show s;
  begin(&s, "db", "collections");
  put_collections(&s);
  end(&s, "NAME     RECORDS  PENDING  METRIC  DIMENSION  EMBEDDER  METADATA\n"
          "é              0        0  l2              -  -         -\n"
          "notes  1,234,567        0  l2           1024  -         c 120, go 3,000\n");
  begin(&s, "db", "collections");
  narrow(&s, 50); /* too narrow for columns */
  put_collections(&s);
  end(&s, "NAME       é\n"
          "RECORDS    0\n"
          "PENDING    0\n"
          "METRIC     l2\n"
          "DIMENSION  -\n"
          "EMBEDDER   -\n"
          "METADATA   -\n"
          "\n"
          "NAME       notes\n"
          "RECORDS    1,234,567\n"
          "PENDING    0\n"
          "METRIC     l2\n"
          "DIMENSION  1024\n"
          "EMBEDDER   -\n"
          "METADATA   c 120, go 3,000\n");
  begin(&s, "db", "verify");
  narrow(&s, 60);
  op_row_begin(&s.ctx);
  op_row_text(&s.ctx, "what", STR_LIT("page"));
  op_row_null(&s.ctx, "collection");
  op_row_null(&s.ctx, "id");
  op_row_text(&s.ctx, "detail", STR_LIT("page 7 of lode.db does not match its checksum, and is not used"));
  OK(op_row_send(&s.ctx, &err));
  end(&s, "WHAT  COLLECTION  ID  DETAIL\n"
          "page  -           -   page 7 of lode.db does not match its\n"
          "                      checksum, and is not used\n");
}

/* ---- Summaries ---- */

TEST(summaries_are_sentences_or_figures) {
  show s;
  begin(&s, "db", "update");
  op_summary_begin(&s.ctx);
  op_row_text(&s.ctx, "collection", STR_LIT("c"));
  op_row_count(&s.ctx, "read", 3);
  op_row_count(&s.ctx, "written", 1);
  op_row_count(&s.ctx, "skipped", 2);
  op_row_json(&s.ctx, "missing", STR_LIT("[\"x\",\"y z\"]"));
  OK(op_row_send(&s.ctx, &err));
  end(&s, "c: 1 changed, 2 do not exist: x, y z\n");
  begin(&s, "db", "create");
  op_summary_begin(&s.ctx);
  op_row_text(&s.ctx, "collection", STR_LIT("c"));
  op_row_text(&s.ctx, "metric", STR_LIT("ip"));
  op_row_bool(&s.ctx, "created", false);
  OK(op_row_send(&s.ctx, &err));
  end(&s, "c: metric ip\n");
  begin(&s, "model", "info");
  op_summary_begin(&s.ctx);
  op_row_text(&s.ctx, "name", STR_LIT("code"));
  op_row_bool(&s.ctx, "installed", true);
  op_row_text(&s.ctx, "identity", STR_LIT("code@1"));
  op_row_count(&s.ctx, "dimension", 4096);
  op_row_count(&s.ctx, "max_tokens", 0);
  op_row_null(&s.ctx, "file");
  op_row_count(&s.ctx, "bytes", 1536);
  op_row_null(&s.ctx, "source");
  op_row_text(&s.ctx, "about", STR_LIT("a\nb"));
  OK(op_row_send(&s.ctx, &err));
  end(&s, "name           code\n"
          "installed      yes\n"
          "identity       code@1\n"
          "dimension      4096\n"
          "max tokens     0\n"
          "file           -\n"
          "bytes          1.5 KiB\n"
          "source         -\n"
          "about          a⏎b\n");
}

/* ---- Hits and checks ---- */

static void put_hit(show *s, const char *snippet) {
  op_row_begin(&s->ctx);
  op_row_count(&s->ctx, "rank", 1);
  op_row_text(&s->ctx, "path", STR_LIT("src/net.c"));
  op_row_count(&s->ctx, "start_line", 41);
  op_row_count(&s->ctx, "end_line", 67);
  op_row_text(&s->ctx, "kind", STR_LIT("function"));
  op_row_text(&s->ctx, "name", STR_LIT("next"));
  op_row_text(&s->ctx, "parents", STR_LIT("Backoff"));
  op_row_text(&s->ctx, "language", STR_LIT("c"));
  op_row_real(&s->ctx, "score", 2.305);
  op_row_real(&s->ctx, "cosine", 0.0 / 0.0);
  op_row_text(&s->ctx, "snippet", str_of(snippet));
  op_row_count(&s->ctx, "copies", 2);
  op_row_text(&s->ctx, "stale", STR_LIT("changed"));
  op_row_json(&s->ctx, "explain", STR_LIT("{\"bm25\":12.5,\"path\":1}"));
  OK(op_row_send(&s->ctx, &err));
}

TEST(hits_of_a_search) {
  show s;
  begin(&s, NULL, "search");
  s.writer.searched = STR_LIT("retry later");
  put_hit(&s, "a\n\tb retry\nc");
  put_hit(&s, "1\n2\n3\n4\n5\n6\n7\n8\nretry later\n10");
  end(&s, "src/net.c:41-67  Backoff next  function  2.31  (the file changed since it was indexed)  (2 more like it)\n"
          "        bm25               12.50    path                1.00\n"
          "      41 │ a\n"
          "      42 │     b retry\n"
          "      43 │ c\n"
          "\n"
          "src/net.c:41-67  Backoff next  function  2.31  (the file changed since it was indexed)  (2 more like it)\n"
          "        bm25               12.50    path                1.00\n"
          "      43 │ 3\n"
          "      44 │ 4\n"
          "      45 │ 5\n"
          "      46 │ 6\n"
          "      47 │ 7\n"
          "      48 │ 8\n"
          "      49 │ retry later\n");
  begin(&s, NULL, "search");
  s.writer.style.color = true;
  s.writer.searched = STR_LIT("retry later");
  put_hit(&s, "\tretry");
  end(&s, "\033[35msrc/net.c\033[32m:41-67\033[0m  \033[2mBackoff \033[0m\033[1mnext\033[0m  \033[2mfunction  2.31"
          "\033[33m  (the file changed since it was indexed)\033[0m  (2 more like it)\033[0m\n"
          "        \033[2mbm25              \033[0m 12.50    \033[2mpath              \033[0m  1.00\n"
          "\033[2m      41 │ \033[0m    \033[0m\033[1;31mretry\033[0m\n");
  begin(&s, NULL, "search");
  s.writer.files_only = true;
  put_hit(&s, "x");
  end(&s, "src/net.c\n");
}

TEST(checks_wrap) {
  show s;
  begin(&s, NULL, "doctor");
  narrow(&s, 60);
  op_row_begin(&s.ctx);
  op_row_text(&s.ctx, "check", STR_LIT("parser"));
  op_row_text(&s.ctx, "state", STR_LIT("bad"));
  op_row_text(&s.ctx, "detail", STR_LIT("lode-parser was not found: files are cut by lines, not by syntax"));
  op_row_text(&s.ctx, "remedy", STR_LIT("make grammars all"));
  OK(op_row_send(&s.ctx, &err));
  op_summary_begin(&s.ctx);
  op_row_bool(&s.ctx, "ok", false);
  op_row_count(&s.ctx, "checks", 1);
  op_row_count(&s.ctx, "bad", 1);
  op_row_count(&s.ctx, "mended", 0);
  OK(op_row_send(&s.ctx, &err));
  end(&s, "bad    parser          lode-parser was not found: files are\n"
          "                       cut by lines, not by syntax\n"
          "                       make grammars all\n"
          "1 check, 1 bad\n");
}

/* ---- What the table does not declare ---- */

static void undeclared(op_context *ctx) { op_row_count(ctx, "cuont", 1); }
static void wrong_type(op_context *ctx) { op_row_text(ctx, "count", STR_LIT("1")); }
static void twice(op_context *ctx) {
  op_row_count(ctx, "count", 1);
  op_row_count(ctx, "count", 1);
}
static void missing(op_context *ctx) { op_row_text(ctx, "collection", STR_LIT("c")); }
static void null_where_none_may_be(op_context *ctx) {
  op_row_text(ctx, "collection", STR_LIT("c"));
  op_row_null(ctx, "count");
}

TEST(checked_builds_hold_rows_to_the_table) {
  void (*const wrong[])(op_context *) = {undeclared, wrong_type, twice, missing, null_where_none_may_be};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    pid_t child = fork();
    if (child == 0) {
      show s;
      CHECK(freopen("/dev/null", "w", stderr));
      signal(SIGABRT, SIG_DFL);
      begin(&s, "db", "count");
      op_summary_begin(&s.ctx);
      wrong[i](&s.ctx);
      _exit(op_row_send(&s.ctx, &err) == LODE_INTERNAL ? 1 : 0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
#ifdef LODE_CHECKED
    CHECKF(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "%zu: %d", i, status);
#else
    CHECKF(WIFEXITED(status) && WEXITSTATUS(status) == (i < 3), "%zu: %d", i, status);
#endif
  }
}

/* ---- Sentences ---- */

/* The summary of an operation with this count in every field that is one. */
static void put_summary_of(op_context *ctx, uint64_t count) {
  op_summary_begin(ctx);
  for (const op_field *f = ctx->op->summary; f->name; f++) {
    switch (f->type) {
      case OP_FIELD_COUNT:
      case OP_FIELD_NUMBER:
      case OP_FIELD_BYTES:
      case OP_FIELD_TIME: op_row_count(ctx, f->name, count); break;
      case OP_FIELD_REAL: op_row_real(ctx, f->name, 1.5); break;
      case OP_FIELD_BOOL: op_row_bool(ctx, f->name, true); break;
      case OP_FIELD_TEXT: op_row_text(ctx, f->name, STR_LIT("text")); break;
      default: op_row_json(ctx, f->name, STR_LIT("[]")); break;
    }
  }
}

static bool is_one_of(const char *list, lode_str word) {
  for (const char *at = list; *at; at += strcspn(at, " "), at += *at == ' ')
    if (strcspn(at, " ") == word.len && memcmp(at, word.data, word.len) == 0) return true;
  return false;
}

/* "1 files", "1 record ... their", "2 file": wrong. */
static const char *wrong_number(const char *text, uint64_t count) {
  static char number[8];
  snprintf(number, sizeof number, "%llu ", (unsigned long long)count);
  if (count == 1 && (strstr(text, " they ") || strstr(text, " their ") || strstr(text, " were "))) return text;
  if (count != 1 && (strstr(text, " it ") || strstr(text, " its ") || strstr(text, " was as"))) return text;
  for (const char *at = text; (at = strstr(at, number)) != NULL;) {
    if (at > text && at[-1] != ' ' && at[-1] != '[') {
      at++;
      continue;
    }
    at += strlen(number);
    lode_str word = {at, strcspn(at, " ,;:\n")};
    bool plural = word.len > 1 && word.data[word.len - 1] == 's' && !is_one_of("does s", word);
    if (count == 1 && (plural || is_one_of("do", word))) return at;
    if (count != 1 && is_one_of("file record chunk vector check problem table index row call worker place definition "
                                "dimension secret collection does",
                                word))
      return at;
  }
  return NULL;
}

TEST(sentences_say_one_and_many_rightly) {
  size_t said = 0;
  OP_EACH_GROUP(g) OP_EACH(g, op) {
    for (uint64_t count = 1; op->say && op->summary && count <= 2; count++) {
      op_context ctx = {.op = op};
      strbuf out = {0};
      mem_arena_init(&ctx.row.arena, 0);
      put_summary_of(&ctx, count);
      op_put_sentence(&out, op->say, &ctx.row);
      strbuf_addch(&out, '\0');
      CHECK(!out.failed);
      const char *wrong = wrong_number(out.data, count);
      CHECKF(!wrong, "lode %s %s: \"%s\" in %s", op->group ? op->group : "", op->name, wrong, out.data);
      strbuf_release(&out);
      mem_arena_release(&ctx.row.arena);
      said++;
    }
  }
  CHECKF(said > 40, "%zu", said);
}
