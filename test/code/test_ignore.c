/* SPDX-License-Identifier: Apache-2.0 */
/* test_ignore.c - the rules of .gitignore: by example, and beside git itself on generated patterns and paths. */
#include "scan/git.h"
#include "scan/ignore.h"
#include "support/fault.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static lode_error err;

TEST(globs_match_as_git_does) {
  static const struct {
    const char *glob, *text;
    bool match;
  } cases[] = {
      {"", "", true},
      {"a", "a", true},
      {"a", "b", false},
      {"*", "abc", true},
      {"*", "a/b", false},
      {"*.c", "x.c", true},
      {"*.c", "x.cc", false},
      {"a*c*e", "abcde", true},
      {"a*c*e", "abdde", false},
      {"?", "/", false},
      {"a?c", "abc", true},
      {"**", "a/b/c", true},
      {"**/x", "x", true},
      {"**/x", "a/b/x", true},
      {"**/x", "a/bx", false},
      {"a/**", "a/b/c", true},
      {"a/**", "a", false},
      {"a/**/b", "a/b", true},
      {"a/**/b", "a/x/y/b", true},
      {"a/**/b", "a/xb", false},
      {"a**b", "axxb", true},
      {"a**b", "a/b", false},
      {"**/a/**/b", "x/a/y/a/z/b", true},
      {"**/*.c", "a/b/x.c", true},
      {"*/b", "a/b", true},
      {"*/b", "a/c/b", false},
      {"[a-c]x", "bx", true},
      {"[!a-c]x", "bx", false},
      {"[^a-c]x", "dx", true},
      {"[]]", "]", true},
      {"[]-a]", "^", true},
      {"[a-]", "-", true},
      {"[[:digit:]]x", "7x", true},
      {"[[:digit:]]x", "ax", false},
      {"[[:nope:]]", "a", false},
      {"[a", "a", false},
      {"[!a]", "/", false},
      {"\\*", "*", true},
      {"\\*", "a", false},
      {"a\\", "a", false},
      {"[\\]]", "]", true},
      {"[\\-a]", "-", true},
      {"*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
      {"\xff*", "\xff\xfe", true},
      {"***", "a/b", true},
      {"***/x", "a/b/x", true},
      {"x/***/y", "x/y", true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    CHECKF(ignore_glob_match(str_of(cases[i].glob), str_of(cases[i].text)) == cases[i].match, "%s on %s", cases[i].glob,
           cases[i].text);
}

TEST(hostile_globs_take_no_time) {
  char glob[4000], text[4000];
  for (size_t i = 0; i < sizeof glob; i++) glob[i] = "*a"[i % 2], text[i] = 'a';
  glob[sizeof glob - 1] = 'b';
  for (int i = 0; i < 20; i++) CHECK(!ignore_glob_match((lode_str){glob, sizeof glob}, (lode_str){text, sizeof text}));
  for (size_t i = 0; i < sizeof glob; i++) glob[i] = "**/"[i % 3], text[i] = "a/"[i % 2];
  (void)ignore_glob_match((lode_str){glob, sizeof glob}, (lode_str){text, sizeof text});
}

TEST(globs_of_path_arguments) {
  CHECK(ignore_glob_path(STR_LIT("*.c"), STR_LIT("src/a.c")));
  CHECK(ignore_glob_path(STR_LIT("src"), STR_LIT("src/a.c")));
  CHECK(ignore_glob_path(STR_LIT("src/"), STR_LIT("src/b/a.c")));
  CHECK(ignore_glob_path(STR_LIT("./src/*.c"), STR_LIT("src/a.c")));
  CHECK(ignore_glob_path(STR_LIT("/src"), STR_LIT("src/a.c")));
  CHECK(!ignore_glob_path(STR_LIT("/src"), STR_LIT("x/src/a.c")));
  CHECK(ignore_glob_path(STR_LIT("src"), STR_LIT("x/src/a.c")));
  CHECK(!ignore_glob_path(STR_LIT("src/*.c"), STR_LIT("src/b/a.c")));
  CHECK(ignore_glob_path(STR_LIT("src/**/*.c"), STR_LIT("src/b/a.c")));
  CHECK(ignore_glob_path(STR_LIT("."), STR_LIT("a")) && ignore_glob_path(STR_LIT("/"), STR_LIT("a")));
  CHECK(!ignore_glob_path(STR_LIT("lib"), STR_LIT("src/a.c")));
}

static ignore_rules *rules(const char *root, const char *sub_folder, const char *sub) {
  ignore_rules *ig;
  OK(ignore_new(&ig, &err));
  OK(ignore_add(ig, IGNORE_GIT, STR_LIT(""), str_of(root), &err));
  if (sub) OK(ignore_add(ig, IGNORE_GIT, str_of(sub_folder), str_of(sub), &err));
  return ig;
}

TEST(layers_and_negation) {
  ignore_rules *ig = rules("*.log\n!keep.log\n/build\nsub/*.tmp\nonly/\n# no\n\\#yes\n\\!bang\ntrail   \nspace\\ \n",
                           "sub", "!a.log\n*.c\n");
  CHECK(ignore_match_path(ig, STR_LIT("x.log"), false) && ignore_match_path(ig, STR_LIT("d/x.log"), false));
  CHECK(!ignore_match_path(ig, STR_LIT("keep.log"), false));
  CHECK(ignore_match_path(ig, STR_LIT("build"), true) && !ignore_match_path(ig, STR_LIT("d/build"), true));
  CHECK(ignore_match_path(ig, STR_LIT("build/a/b.c"), false)); /* inside of what is ignored */
  CHECK(!ignore_match_path(ig, STR_LIT("sub/a.log"), false) && ignore_match_path(ig, STR_LIT("sub/b.log"), false));
  CHECK(ignore_match_path(ig, STR_LIT("sub/q/x.c"), false) && !ignore_match_path(ig, STR_LIT("x.c"), false));
  CHECK(ignore_match_path(ig, STR_LIT("only"), true) && !ignore_match_path(ig, STR_LIT("only"), false));
  CHECK(ignore_match_path(ig, STR_LIT("#yes"), false) && ignore_match_path(ig, STR_LIT("!bang"), false));
  CHECK(ignore_match_path(ig, STR_LIT("trail"), false) && ignore_match_path(ig, STR_LIT("space "), false));
  ignore_leave(ig, STR_LIT("other"));
  CHECK(ignore_match_path(ig, STR_LIT("sub/a.log"), false)); /* that layer is gone */
  OK(ignore_add(ig, IGNORE_LODE, STR_LIT(""), STR_LIT("!x.log\n"), &err));
  CHECK(!ignore_match_path(ig, STR_LIT("x.log"), false)); /* .lodeignore has the last word */
  ignore_free(ig);
}

static bool config_says(const char *config, const char *wanted) {
  strbuf value = {0};
  bool said = git_config_excludes_file(str_of(config), &value);
  bool same = wanted ? said && str_eq((lode_str){value.data, value.len}, str_of(wanted)) : !said;
  strbuf_release(&value);
  return same;
}

TEST(configuration_names_the_users_excludes) {
  CHECK(config_says("[core]\n\texcludesFile = ~/.ignore\n", "~/.ignore"));
  CHECK(config_says("[Core]\nEXCLUDESFILE=/a b # c\n[user]\nexcludesfile = no\n", "/a b"));
  CHECK(config_says("[core] excludesfile = \"x # y\"\n", "x # y"));
  CHECK(config_says("[user]\nexcludesfile = no\n", NULL));
  CHECK(config_says("[core]\nexcludesfile\n", NULL) && config_says("", NULL) && config_says("[core", NULL));
}

/* ---- Beside git ---- */

static const char *const names[] = {"a",     "b",  "foo", "bar",     "x.c", "y.h",
                                    "build", ".h", "a b", "foo.bar", "[x]", "lib"};
static const char *const atoms[] = {
    "a",   "b",  "foo",   "bar",     "x.c",   "*.c", "*.h", "*",           "?",           "[a-f]*", "[!a]*", "**",
    "fo*", "*o", "build", "\\[x\\]", "a\\ b", "b*r", "*.*", "[[:alpha:]]", "foo.[a-c]ar", "**foo",  "f**"};
enum { NAMES = sizeof names / sizeof *names, ATOMS = sizeof atoms / sizeof *atoms };

static void random_patterns(strbuf *out) {
  out->len = 0;
  for (uint64_t lines = 1 + test_below(6); lines > 0; lines--) {
    if (test_below(4) == 0) strbuf_addch(out, '!');
    if (test_below(4) == 0) strbuf_addch(out, '/');
    for (uint64_t parts = 1 + test_below(3); parts > 0; parts--) {
      strbuf_addstr(out, atoms[test_below(ATOMS)]);
      if (parts > 1) strbuf_addch(out, '/');
    }
    if (test_below(4) == 0) strbuf_addch(out, '/');
    if (test_below(8) == 0) strbuf_addstr(out, "  ");
    if (test_below(10) == 0) strbuf_addch(out, '\r');
    strbuf_addch(out, '\n');
  }
}

static void run(const char *folder, const char *command) {
  char line[2000];
  snprintf(line, sizeof line, "cd '%s' && %s", folder, command);
  CHECKF(system(line) == 0, "%s", line);
}

/* One repository: some folders with rules, all paths of depth three asked of git and of us. */
static void compare_once(const char *folder, strbuf *text) {
  ignore_rules *ig;
  char path[600], list[600], answers[600];
  size_t n, asked = 0;
  OK(ignore_new(&ig, &err));
  for (int i = 0; i < 3; i++) { /* the root, a, a/b */
    static const char *const where[] = {"", "a", "a/b"};
    if (i && test_below(2)) continue;
    random_patterns(text);
    snprintf(path, sizeof path, "%s/%s%s.gitignore", folder, where[i], i ? "/" : "");
    test_write_file(path, text->data, text->len);
    OK(ignore_add(ig, IGNORE_GIT, str_of(where[i]), (lode_str){text->data, text->len}, &err));
  }
  random_patterns(text);
  snprintf(path, sizeof path, "%s/.git/info/exclude", folder);
  test_write_file(path, text->data, text->len);
  OK(ignore_add(ig, IGNORE_EXCLUDE, STR_LIT(""), (lode_str){text->data, text->len}, &err));
  snprintf(list, sizeof list, "%s/.git/asked", folder);
  snprintf(answers, sizeof answers, "%s/.git/answers", folder);
  char *wanted = test_read_file(list, &n);
  run(folder, "git -c core.excludesFile=/dev/null check-ignore --no-index --stdin -z -v -n <.git/asked >.git/answers; "
              "test $? -le 1");
  size_t m;
  char *got = test_read_file(answers, &m), *p = got;
  for (char *q = wanted; q < wanted + n; q += strlen(q) + 1, asked++) {
    /* source NUL line NUL pattern NUL path NUL; nothing matched: empty; a pattern with ! : not ignored */
    char *source = p, *line_no = source + strlen(source) + 1, *pattern = line_no + strlen(line_no) + 1,
         *name = pattern + strlen(pattern) + 1;
    CHECK(name < got + m && strcmp(name, q) == 0);
    struct stat s;
    snprintf(path, sizeof path, "%s/%s", folder, q);
    bool is_folder = stat(path, &s) == 0 && S_ISDIR(s.st_mode);
    bool git_says = *source && pattern[0] != '!';
    bool we_say = ignore_match_path(ig, str_of(q), is_folder);
    CHECKF(git_says == we_say, "%s: git %s (%s:%s:%s), lode %s, seed %llu", q, git_says ? "ignores" : "keeps", source,
           line_no, pattern, we_say ? "ignores" : "keeps", (unsigned long long)test_seed());
    p = name + strlen(name) + 1;
  }
  CHECK(asked > 200);
  free(wanted);
  free(got);
  ignore_free(ig);
  run(folder, "rm -f .gitignore a/.gitignore a/b/.gitignore");
}

TEST_SLOW(the_same_answers_as_git_on_generated_rules, 300) {
  const char *folder = test_folder();
  strbuf text = {0}, asked = {0};
  char path[600];
  if (system("git --version >/dev/null 2>&1") != 0) test_skip("git is not installed");
  test_srand(test_seed());
  run(folder, "git init -q . && mkdir -p .git/info");
  for (int i = 0; i < NAMES; i++) {
    strbuf_add(&asked, names[i], strlen(names[i]) + 1);
    for (int k = 0; k < NAMES; k++) {
      if (i == 4 || i == 5 || i == 7) continue; /* those are files */
      strbuf_addf(&asked, "%s/%s", names[i], names[k]);
      strbuf_addch(&asked, '\0');
      if (k > 5) continue;
      for (int j = 0; j < NAMES; j++) {
        if (k == 4 || k == 5) continue;
        strbuf_addf(&asked, "%s/%s/%s", names[i], names[k], names[j]);
        strbuf_addch(&asked, '\0');
      }
    }
  }
  snprintf(path, sizeof path, "%s/.git/asked", folder);
  test_write_file(path, asked.data, asked.len);
  run(folder,
      "for i in a b foo bar build 'a b' foo.bar '[x]' lib; do for k in a b foo bar; do mkdir -p \"$i/$k\"; done; "
      "touch \"$i/x.c\" \"$i/y.h\" \"$i/.h\"; for k in build 'a b' foo.bar '[x]' lib; do mkdir -p \"$i/$k\"; done; "
      "done; touch x.c y.h .h");
  for (int round = 0; round < (test_full() ? 2000 : 60); round++) compare_once(folder, &text);
  strbuf_release(&text);
  strbuf_release(&asked);
}

TEST(memory_that_runs_out_is_an_error) {
  fault_alloc_install();
  for (uint64_t at = 1;; at++) {
    ignore_rules *ig = NULL;
    fault_alloc_set(at, false);
    lode_status st = ignore_new(&ig, &err);
    if (st == LODE_OK) st = ignore_add(ig, IGNORE_GIT, STR_LIT("sub"), STR_LIT("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n"), &err);
    uint64_t hits = fault_alloc_hits();
    fault_alloc_set(0, false);
    CHECK(hits ? st == LODE_NOMEM : st == LODE_OK);
    ignore_free(ig);
    if (!hits) break;
  }
}
