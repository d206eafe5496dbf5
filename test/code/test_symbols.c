/* SPDX-License-Identifier: Apache-2.0 */
/* test_symbols.c - tables of symbols: what they hold, bounds, damaged ones. */
#include "chunk/parser_pool.h"
#include "support/fault.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

static lode_error err;

static parser_pool *open_pool(void) {
  parser_pool *pool;
  /* time decides no test */
  OK(parser_pool_open(&(parser_pool_options){.cpu_ms = 120000}, &pool, &err));
  return pool;
}

static bool symbols_of(parser_pool *pool, const char *language, lode_str text, parser_pool_result *r,
                       chunk_symbols *s) {
  OK(parser_pool_chunk(pool, lang_find(str_of(language)), text, r, &err));
  if (r->outcome == PARSER_POOL_NO_GRAMMAR) {
    printf("skipped: the grammar of %s is not built (make grammars)\n", language);
    return false;
  }
  if (r->outcome == PARSER_POOL_SYNTAX)
    OK(chunk_symbols_decode((lode_str){r->symbols.data ? r->symbols.data : "", r->symbols.len}, s, &err));
  return true;
}

static const chunk_ref *find_ref(const chunk_symbols *s, chunk_use use, const char *name) {
  for (size_t i = 0; i < s->n_refs; i++)
    if (s->refs[i].use == use && str_eq(s->refs[i].name, str_of(name))) return &s->refs[i];
  return NULL;
}

static const chunk_def *find_def(const chunk_symbols *s, const char *name) {
  for (size_t i = 0; i < s->n_defs; i++)
    if (str_eq(s->defs[i].name, str_of(name))) return &s->defs[i];
  return NULL;
}

TEST(a_table_says_what_is_defined_and_what_is_used) {
  static const char text[] = "#include \"pool.h\"\n"
                             "/* Opens it. Twice. */\n"
                             "static pool *pool_open(const char *path) {\n"
                             "  pool *p = pool_new(path);\n"
                             "  if (!p) return NULL;\n"
                             "  return helper(p, LIMIT);\n"
                             "}\n";
  parser_pool *pool = open_pool();
  parser_pool_result r = {0};
  chunk_symbols s = {0};
  if (symbols_of(pool, "c", str_of(text), &r, &s)) {
    const chunk_def *d = find_def(&s, "pool_open");
    CHECK(d && d->line == 3 && d->end_line == 7 && d->hidden && !d->declared && d->branches == 1);
    CHECK(str_eq(d->brief, STR_LIT("Opens it.")) && str_eq(d->type, STR_LIT("pool")));
    CHECK(str_eq(d->signature, STR_LIT("static pool *pool_open(const char *path)")));
    const chunk_ref *c = find_ref(&s, CHUNK_USE_CALL, "helper");
    CHECK(c && c->line == 6 && c->def == (uint32_t)(d - s.defs));
    CHECK(find_ref(&s, CHUNK_USE_VALUE, "LIMIT") && find_ref(&s, CHUNK_USE_CALL, "pool_new"));
    CHECK(!find_ref(&s, CHUNK_USE_VALUE, "p") && !find_ref(&s, CHUNK_USE_VALUE, "path"));
    const chunk_ref *i = find_ref(&s, CHUNK_USE_IMPORT, "");
    CHECK(i && str_eq(i->qualifier, STR_LIT("pool.h")) && i->line == 1);
  }
  chunk_symbols_release(&s);
  parser_pool_result_release(&r);
  parser_pool_close(pool);
}

TEST(a_macro_before_a_function_is_not_its_name) {
  static const char text[] =
      "static void printflike(3, 4)\nadd_value(char **buf, const char *fmt, ...)\n{\n  go(buf);\n}\n"
      "int plain(int a) { return a; }\n";
  parser_pool *pool = open_pool();
  parser_pool_result r = {0};
  chunk_symbols s = {0};
  if (symbols_of(pool, "c", str_of(text), &r, &s)) {
    CHECK(find_def(&s, "add_value") && !find_def(&s, "printflike"));
    CHECK(r.chunks.n && str_eq(r.chunks.items[0].name, STR_LIT("add_value")));
  }
  chunk_symbols_release(&s);
  parser_pool_result_release(&r);
  parser_pool_close(pool);
}

TEST(values_of_an_enum_have_no_lone_brace) {
  static const char text[] = "enum E {\n  A,\n  B {\n    x: u8,\n  },\n}\n";
  parser_pool *pool = open_pool();
  parser_pool_result r = {0};
  chunk_symbols s = {0};
  if (symbols_of(pool, "rust", str_of(text), &r, &s)) {
    const chunk_def *b = find_def(&s, "B");
    CHECK(b && str_eq(b->signature, STR_LIT("B")));
  }
  chunk_symbols_release(&s);
  parser_pool_result_release(&r);
  parser_pool_close(pool);
}

static const char *qualifier_of(const chunk_symbols *s, const char *name, char out[200]) {
  const chunk_ref *c = find_ref(s, CHUNK_USE_CALL, name);
  snprintf(out, 200, "%.*s", c ? (int)c->qualifier.len : 4, c ? c->qualifier.data : "none");
  return out;
}

TEST(receivers_are_known_by_what_the_text_says) {
  static const char text[] = "from a.b import c as d\n"
                             "import e\n"
                             "class A(B):\n"
                             "    def __init__(self, p: Pool):\n"
                             "        self.pool = p\n"
                             "    def run(self, x: Foo, y):\n"
                             "        z = Bar(1)\n"
                             "        w = make(2)\n"
                             "        self.one(); x.two(); y.three(); z.four(); w.five(); e.six(); d.seven()\n"
                             "        self.pool.eight(); make(3).nine(); super().ten()\n";
  static const char *const wanted[][2] = {{"one", ":A"},    {"two", ":Foo"},      {"three", "?"},
                                          {"four", ":Bar"}, {"five", ":=make"},   {"six", "e"},
                                          {"seven", "d"},   {"eight", ":A.pool"}, {"nine", ":=make"}};
  parser_pool *pool = open_pool();
  parser_pool_result r = {0};
  chunk_symbols s = {0};
  char got[200];
  if (symbols_of(pool, "python", str_of(text), &r, &s)) {
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
      CHECKF(strcmp(qualifier_of(&s, wanted[i][0], got), wanted[i][1]) == 0, "%s: %s", wanted[i][0], got);
    const chunk_ref *i = find_ref(&s, CHUNK_USE_IMPORT, "c");
    CHECK(i && str_eq(i->qualifier, STR_LIT("a.b")) && str_eq(i->local, STR_LIT("d")));
    CHECK(find_ref(&s, CHUNK_USE_BASE, "B"));
    const chunk_def *p = find_def(&s, "pool");
    CHECK(p && p->kind == LANG_KIND_PROPERTY && str_eq(p->type, STR_LIT("Pool")));
  }
  chunk_symbols_release(&s);
  parser_pool_result_release(&r);
  parser_pool_close(pool);
}

TEST(what_is_too_much_is_left_out_and_said) {
  parser_pool *pool = open_pool();
  parser_pool_result r = {0};
  chunk_symbols s = {0};
  strbuf text = {0};
  for (int i = 0; i < 100000; i++) strbuf_addstr(&text, "def same(): return other()\n");
  if (symbols_of(pool, "python", (lode_str){text.data, text.len}, &r, &s)) {
    CHECK(r.symbols.len <= CHUNK_MAX_TABLE);
    CHECK(s.cut && s.n_defs > 1000);
  }
  chunk_symbols_release(&s);
  strbuf_release(&text);
  parser_pool_result_release(&r);
  parser_pool_close(pool);
}

static const char *const sample = "d\tf!\t1\t9\t0\t2\tf\t\tT\tint f(void)\tDoes it.\n"
                                  "d\tv\t2\t2\t1\t0\tx\t\t\tint x\t\n"
                                  "r\tc\tg\t:T\t\t3 1 0\n"
                                  "r\ti\t\ta/b.h\t\t1\n";

/* The table with DEL in place of tabs, which are easier to read here. */
static lode_str table_of(const char *with_tabs, char *out, size_t size) {
  size_t n = strlen(with_tabs);
  CHECK(n < size);
  for (size_t i = 0; i <= n; i++) out[i] = (char)(with_tabs[i] == '\t' ? 0x7f : with_tabs[i]);
  return (lode_str){out, n};
}

TEST(damaged_tables_are_refused) {
  static const char *const bad[] = {"d\tf\t1\t9\t0\t2\tf\t\t\tint f(void)",          /* cut short */
                                    "d\tz\t1\t9\t0\t2\tf\t\t\tint f(void)\t\n",      /* no such kind */
                                    "d\tf\t0\t9\t0\t2\tf\t\t\tint f(void)\t\n",      /* line 0 */
                                    "d\tf\t9\t1\t0\t2\tf\t\t\tint f(void)\t\n",      /* ends before it begins */
                                    "d\tf\t1\t9\t2\t2\tf\t\t\tint f(void)\t\n",      /* inside one that comes later */
                                    "d\tf\t1\t9\t0\t2\t\t\t\tint f(void)\t\n",       /* no name */
                                    "d\tf\t99999999999\t9\t0\t2\tf\t\t\t\t\n",       /* a number that is too large */
                                    "r\tc\tg\t\t\t0\n",                              /* line 0 */
                                    "r\tc\tg\t\t\t\n",                               /* no line */
                                    "r\tc\tg\t\t\t2147483647 1\n",                   /* beyond all lines */
                                    "r\tq\tg\t\t\t1\n",                              /* no such use */
                                    "q\n",                                           /* no such line */
                                    "x\nx\n",                                        /* after the end */
                                    "r\tc\tg\t\t\t1\nd\tf\t1\t9\t0\t2\tf\t\t\t\t\n", /* out of order */
                                    "r\tc\t\xff\t\t\t1\n"};                          /* not UTF-8 */
  chunk_symbols s = {0};
  char table[400];
  OK(chunk_symbols_decode(table_of(sample, table, sizeof table), &s, &err));
  CHECK(s.n_defs == 2 && s.n_refs == 4 && s.refs[1].def == 0 && s.refs[0].def == 0 && !s.cut);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    CHECKF(chunk_symbols_decode(table_of(bad[i], table, sizeof table), &s, &err) == LODE_CORRUPT, "%zu: %s", i, bad[i]);
  CHECK(chunk_symbols_decode(str_of(sample), &s, &err) == LODE_CORRUPT); /* with tabs */
  chunk_symbols_release(&s);
}

TEST(no_bytes_do_harm_to_a_reader_of_tables) {
  chunk_symbols s = {0};
  char table[400];
  size_t n = table_of(sample, table, sizeof table).len;
  char *copy = malloc(n);
  CHECK(copy != NULL);
  for (size_t at = 0; at < n; at++)
    for (int c = 0; c < 256; c += at % 7 ? 17 : 1) {
      memcpy(copy, table, n);
      copy[at] = (char)c;
      lode_status st = chunk_symbols_decode((lode_str){copy, n}, &s, &err);
      CHECK(st == LODE_OK || st == LODE_CORRUPT);
      st = chunk_symbols_decode((lode_str){copy, at}, &s, &err);
      CHECK(st == LODE_OK || st == LODE_CORRUPT);
    }
  free(copy);
  chunk_symbols_release(&s);
}

TEST(strings_of_any_bytes_become_a_line) {
  strbuf out = {0};
  chunk_symbols s = {0};
  uint32_t lines[] = {1, 5};
  chunk_def d = {.kind = LANG_KIND_FUNCTION,
                 .line = 1,
                 .end_line = 2,
                 .outer = CHUNK_NO_DEF,
                 .name = STR_LIT("a\tb\n\xff"),
                 .scope = STR_LIT(""),
                 .type = STR_LIT(""),
                 .signature = STR_LIT("  x\n\n  y\x01"),
                 .brief = STR_LIT("")};
  chunk_ref_group g = {.use = CHUNK_USE_CALL,
                       .name = STR_LIT("n\to"),
                       .qualifier = STR_LIT("\n"),
                       .local = STR_LIT(""),
                       .lines = lines,
                       .n_lines = 2};
  chunk_symbols_put_def(&out, &d);
  chunk_symbols_put_refs(&out, &g);
  OK(chunk_symbols_decode((lode_str){out.data, out.len}, &s, &err));
  CHECK(s.n_defs == 1 && s.n_refs == 2 && s.refs[1].line == 5);
  CHECK(str_eq(s.defs[0].name, STR_LIT("a b \xef\xbf\xbd")) && str_eq(s.defs[0].signature, STR_LIT("x y")));
  chunk_symbols_release(&s);
  strbuf_release(&out);
}
