/* SPDX-License-Identifier: Apache-2.0 */
/* test_docs.c - the documents in the program: each is there and can be found; Markdown as text for a terminal. */
#include "docs/docs.h"
#include "support/fault.h"
#include "support/test.h"

static char *shown(const char *markdown, bool color, size_t width) {
  static strbuf out;
  out.len = 0;
  docs_put_text(&out, str_of(markdown), color, width);
  strbuf_addch(&out, '\0');
  CHECK(!out.failed);
  return out.data;
}
static void shows(const char *markdown, const char *want) {
  char *got = shown(markdown, false, 60);
  CHECKF(strcmp(got, want) == 0, "%s\nis shown as\n%s\nnot as\n%s", markdown, got, want);
}

TEST(documents) {
  size_t n = 0, titled = 0;
  for (const docs_page *page = docs_pages; page->name; page++, n++) {
    CHECKF(docs_find(str_of(page->name)) == page, "%s", page->name);
    CHECKF(docs_find(str_of(page->file)) == page, "%s", page->file);
    titled += page->title[0] && page->size > 100 && page->bytes[0] == '#';
  }
  CHECKF(n > 15 && titled == n, "%zu documents, %zu with titles", n, titled);
  CHECK(docs_find(STR_LIT("COOKBOOK.md")) == docs_find(STR_LIT("cookbook")));
  CHECK(docs_find(STR_LIT("cook")) == NULL && docs_find(STR_LIT("")) == NULL && docs_find(STR_LIT(".md")) == NULL &&
        docs_find(STR_LIT("docs/")) == NULL);
}

TEST(blocks) {
  shows("# Title\n\nA line\nand **more** of `it`.\n", "Title\n=====\n\nA line and more of `it`.\n");
  shows("- one\n  goes on\n- two\n", "- one goes on\n- two\n");
  shows("text\n\n    indented code  `x`\n\n```sh\nfenced | code\n\n**x**\n```\nafter\n",
        "text\n\n    indented code  `x`\n\n    fenced | code\n\n    **x**\nafter\n");
  shows("a\n\n<!-- test: hidden -->\n\nb\n<!-- over\nlines -->\n![picture](x.svg)\n", "a\n\nb\n");
  shows("[SEARCH.md](SEARCH.md), [ripgrep](https://example.org), [here](#below), [no link\n",
        "SEARCH.md, ripgrep (https://example.org), here, [no link\n");
}

TEST(lines_are_wrapped_by_what_is_seen) {
  const char *text = "`one` **two** three four five six seven eight nine ten eleven twelve \xc3\xa4\xc3\xb6\xc3\xbc\n";
  for (int color = 0; color < 2; color++) {
    char *at = shown(text, color, 40), *end;
    for (; (end = strchr(at, '\n')); at = end + 1) {
      size_t columns = 0;
      for (char *c = at; c < end; c++) {
        if (*c == '\033')
          c = strchr(c, 'm');
        else
          columns += ((unsigned char)*c & 0xc0) != 0x80;
      }
      CHECKF(columns <= 40, "%zu columns: %.*s", columns, (int)(end - at), at);
    }
  }
  CHECK(strstr(shown(text, true, 40), "\033[1mtwo\033[0m"));
}

TEST(tables) {
  shows("| name | what |\n|---|---|\n| a | one `x|y` |\n| long | two |\n",
        "  name  what\n  a     one `x|y`\n  long  two\n");
  char *wide = shown("| name | what | where |\n|---|---|---|\n| the first one of all | something that is said at "
                     "length here | there |\n",
                     false, 50);
  CHECKF(strstr(wide, "  the first one of all\n    what: something that is said at length here\n    where: there\n"),
         "%s", wide);
}

/* Whatever the text is, it ends, within the bounds of its buffers. */
TEST(any_text) {
  static const char letters[] = "|`*[]()#-1. \n\n<!>ab\xc3";
  test_srand(test_seed());
  for (int round = 0; round < 3000; round++) {
    char text[200];
    size_t n = (size_t)test_below(sizeof text);
    for (size_t i = 0; i < n; i++) text[i] = letters[test_below(sizeof letters - 1)];
    strbuf out = {0};
    docs_put_text(&out, (lode_str){text, n}, round & 1, 40 + (size_t)test_below(60));
    CHECK(!out.failed);
    strbuf_release(&out);
  }
}

/* When memory runs out at any point, the buffer says so. */
TEST(memory_runs_out) {
  const char *text = "# T\n\n| a | b |\n|---|---|\n| c | d |\n\n- **x** [y](z)\n\npara `code`\n";
  fault_alloc_install();
  for (uint64_t at = 1;; at++) {
    strbuf out = {0};
    fault_alloc_set(at, true);
    docs_put_text(&out, str_of(text), true, 80);
    bool hit = fault_alloc_hits() > 0;
    fault_alloc_set(0, false);
    CHECKF(hit == out.failed, "allocation %llu", (unsigned long long)at);
    strbuf_release(&out);
    if (!hit) break;
  }
}
