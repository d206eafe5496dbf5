/* SPDX-License-Identifier: Apache-2.0 */
/* test_scan.c - walks over trees of every kind: what is given, what is skipped and why, and that nothing leads outside.
 */
#include "os/os.h"
#include "scan/scan.h"
#include "support/fault.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static lode_error err;

static void put(const char *root, const char *path, const char *text) {
  char full[5000];
  snprintf(full, sizeof full, "%s/%s", root, path);
  for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
    *p = '\0';
    mkdir(full, 0777);
    *p = '/';
  }
  test_write_file(full, text, strlen(text));
}

typedef struct found {
  strbuf files, skipped; /* "path\n", "path=reason\n" */
  uint64_t n;
} found;

static lode_status walk_status(const char *folder, const scan_options *o, lode_str below, found *f) {
  scan_root *root = NULL;
  scan_walker *w = NULL;
  scan_entry e;
  bool more = true;
  *f = (found){0};
  lode_status st = scan_root_open(folder, o, &root, &err);
  if (st == LODE_OK) st = scan_walker_open(root, below, &w, &err);
  while (st == LODE_OK && more) {
    st = scan_walker_next(w, &e, &more, &err);
    if (st != LODE_OK || !more) break;
    CHECK(e.path.data[e.path.len] == '\0' && e.language != NULL);
    strbuf *out = e.skip ? &f->skipped : &f->files;
    strbuf_addstr(out, "\n");
    strbuf_add(out, e.path.data, e.path.len);
    if (e.skip) strbuf_addf(out, "=%s", scan_skip_name(e.skip));
    f->n += !e.skip;
  }
  if (st == LODE_OK) CHECK(scan_walker_counts(w)[SCAN_SKIP_NONE] == f->n);
  strbuf_addstr(&f->files, "\n");
  strbuf_addstr(&f->skipped, "\n");
  strbuf_addch(&f->files, '\0');
  strbuf_addch(&f->skipped, '\0');
  scan_walker_close(w);
  scan_root_close(root);
  return st;
}

static found walk(const char *folder, const scan_options *o, const char *below) {
  found f;
  OK(walk_status(folder, o, str_of(below), &f));
  return f;
}

static void release(found *f) {
  strbuf_release(&f->files);
  strbuf_release(&f->skipped);
}

static bool has(const strbuf *list, const char *line) {
  char wanted[5000];
  snprintf(wanted, sizeof wanted, "\n%s\n", line);
  return strstr(list->data, wanted) != NULL;
}

TEST(every_reason_is_given) {
  const char *root = test_folder();
  char path[600];
  put(root, "src/a.c", "int a;\n");
  put(root, "src/.hidden.c", "int a;\n");
  put(root, ".env", "KEY=1\n");
  put(root, "server.key", "x\n");
  put(root, "a.png", "x\n");
  put(root, "x.min.js", "x\n");
  put(root, "package-lock.json", "{}\n");
  put(root, "node_modules/left-pad/index.js", "x\n");
  put(root, "venv/pyvenv.cfg", "x\n");
  put(root, "venv/lib/a.py", "x\n");
  put(root, "cache/CACHEDIR.TAG", "x\n");
  put(root, ".git/config", "x\n");
  put(root, ".lode/lode.db", "x\n");
  put(root, "empty.c", "");
  put(root, "out/x.o.c", "x\n");
  put(root, ".gitignore", "out/\n");
  put(root, "big.txt", "more than ten bytes\n");
  snprintf(path, sizeof path, "%s/link.c", root);
  CHECK(symlink("src/a.c", path) == 0);
  snprintf(path, sizeof path, "%s/loop", root);
  CHECK(symlink(".", path) == 0);
  snprintf(path, sizeof path, "%s/outside", root);
  CHECK(symlink("/etc", path) == 0);
  snprintf(path, sizeof path, "%s/pipe.c", root);
  CHECK(mkfifo(path, 0666) == 0);
  scan_options o = {.max_bytes = 10};
  found f = walk(root, &o, "");
  CHECK(f.n == 1 && has(&f.files, "src/a.c"));
  static const char *const wanted[] = {"src/.hidden.c=hidden",
                                       ".env=secret",
                                       "server.key=secret",
                                       "a.png=binary",
                                       "x.min.js=minified",
                                       "package-lock.json=generated",
                                       "node_modules=dependencies",
                                       "venv=dependencies",
                                       "cache=dependencies",
                                       ".git=hidden",
                                       ".lode=hidden",
                                       "empty.c=empty",
                                       "out=ignored",
                                       "big.txt=too_large",
                                       "link.c=link",
                                       "loop=link",
                                       "outside=link",
                                       "pipe.c=special",
                                       ".gitignore=hidden"};
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
    CHECKF(has(&f.skipped, wanted[i]), "%s is not in %s", wanted[i], f.skipped.data);
  release(&f);
  o = (scan_options){.hidden = true, .generated = true, .no_ignore = true};
  f = walk(root, &o, "");
  CHECK(has(&f.files, "src/.hidden.c") && has(&f.files, "x.min.js") && has(&f.files, "out/x.o.c") &&
        has(&f.files, "node_modules/left-pad/index.js"));
  CHECK(has(&f.skipped, ".env=secret") && has(&f.skipped, ".git=hidden"));
  release(&f);
}

TEST(lodeignore_and_configured_excludes_have_the_last_word) {
  const char *root = test_folder();
  put(root, ".gitignore", "*.gen\n");
  put(root, ".lodeignore", "!keep.gen\n!.github/\n*.txt\n");
  put(root, "keep.gen", "x\n");
  put(root, "other.gen", "x\n");
  put(root, "a.txt", "x\n");
  put(root, ".github/workflow.yml", "x\n");
  put(root, "data/b.c", "x\n");
  scan_options o = {.exclude = STR_LIT("data/\n")};
  found f = walk(root, &o, "");
  CHECK(has(&f.files, "keep.gen") && has(&f.files, ".github/workflow.yml") && f.n == 2);
  CHECK(has(&f.skipped, "other.gen=ignored") && has(&f.skipped, "a.txt=ignored") && has(&f.skipped, "data=ignored"));
  release(&f);
}

TEST(settings_choose_files_by_pattern_and_by_ending) {
  const char *root = test_folder();
  static const char *const files[] = {"a.py", "b.PY", "c.js", "data/d.py", "gen/e.py", "py", ".py", "f.d.ts"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) put(root, files[i], "x\n");
  put(root, ".gitignore", "gen/\n");
  scan_options o = {.exclude = STR_LIT("data/, !gen/,,"), .extensions = STR_LIT(" .py,*.js, d.ts ,")};
  found f = walk(root, &o, "");
  CHECK(has(&f.files, "a.py") && has(&f.files, "c.js") && has(&f.files, "gen/e.py") && has(&f.files, "f.d.ts"));
  CHECK(f.n == 4 && has(&f.skipped, "b.PY=ignored") && has(&f.skipped, "py=ignored") &&
        has(&f.skipped, "data=ignored"));
  release(&f);
  o.extensions = STR_LIT(" , ."); /* names none: all */
  f = walk(root, &o, "");
  CHECK(has(&f.files, "b.PY") && has(&f.files, "py") && f.n == 6);
  release(&f);
}

TEST(names_of_any_bytes) {
  const char *root = test_folder();
  char long_name[256];
  memset(long_name, 'n', 250);
  snprintf(long_name + 250, sizeof long_name - 250, ".c");
  put(root, "with space/a b.c", "x\n");
  put(root, "new\nline.c", "x\n");
  put(root, "bad\xff\xfe.c", "x\n");
  put(root, long_name, "x\n");
  found f = walk(root, NULL, "");
  CHECK(f.n == 4 && has(&f.files, "with space/a b.c") && has(&f.files, "new\nline.c") &&
        has(&f.files, "bad\xff\xfe.c") && has(&f.files, long_name));
  release(&f);
}

TEST(deep_trees_end) {
  const char *root = test_folder();
  int at = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int i = 0; i < 260; i++) {
    CHECK(mkdirat(at, "d", 0777) == 0);
    int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    close(at);
    at = next;
  }
  close(openat(at, "deep.c", O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
  close(at);
  put(root, "a.c", "x\n");
  found f = walk(root, NULL, "");
  CHECK(f.n == 1 && strstr(f.skipped.data, "=too_deep\n") != NULL);
  release(&f);
  char command[700];
  snprintf(command, sizeof command, "rm -rf '%.600s/d'", root);
  CHECK(system(command) == 0);
}

TEST_SLOW(a_folder_of_many_files, 300) {
  const char *root = test_folder();
  int at = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = test_full() ? 100000 : 5000;
  for (int i = 0; i < n; i++) {
    char name[40];
    snprintf(name, sizeof name, "f%d.c", i);
    int fd = openat(at, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
    CHECK(fd >= 0 && write(fd, "x", 1) == 1);
    close(fd);
  }
  close(at);
  scan_root *r;
  scan_walker *w;
  scan_entry e;
  bool more = true;
  OK(scan_root_open(root, NULL, &r, &err));
  OK(scan_walker_open(r, STR_LIT(""), &w, &err));
  while (more) OK(scan_walker_next(w, &e, &more, &err));
  CHECK(scan_walker_counts(w)[SCAN_SKIP_NONE] == (uint64_t)n);
  scan_walker_close(w);
  scan_root_close(r);
}

/* One question for each file, and few others: for files that a folder does not have there is none. */
TEST(a_walk_asks_for_what_is_there) {
  const char *root = test_folder();
  enum { FOLDERS = 40, FILES = 2, MORE = FOLDERS };
  found f;
  for (int d = 0; d < FOLDERS; d++)
    for (int i = 0; i < FILES; i++) {
      char name[60];
      snprintf(name, sizeof name, "d%d/f%d.c", d, i);
      put(root, name, "x\n");
    }
  fault_install(&os_real);
  OK(walk_status(root, NULL, STR_LIT(""), &f));
  uint64_t asked = fault_count(FAULT_STAT);
  fault_uninstall();
  CHECKF(f.n == FOLDERS * FILES && asked <= FOLDERS * FILES + MORE, "%llu files, %llu asked for",
         (unsigned long long)f.n, (unsigned long long)asked);
  release(&f);
}

/* Names are read ahead up to a limit: what is among the later ones counts, too. */
TEST(rules_of_a_folder_of_many_names_hold) {
  const char *root = test_folder();
  found f;
  for (int i = 0; i < 600; i++) { /* 30 KB of names */
    char name[100];
    snprintf(name, sizeof name, "many/%050d.c", i);
    put(root, name, "x\n");
    snprintf(name, sizeof name, "tagged/%050d.c", i);
    put(root, name, "x\n");
  }
  put(root, "many/.gitignore", "*7.c\n");
  put(root, "many/.lodeignore", "*8.c\n");
  put(root, "tagged/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n");
  OK(walk_status(root, NULL, STR_LIT(""), &f));
  CHECKF(f.n == 480, "%llu", (unsigned long long)f.n);
  release(&f);
}

TEST(a_part_of_a_tree_and_a_part_of_a_repository) {
  const char *root = test_folder();
  char path[600];
  put(root, ".git/HEAD", "x\n");
  put(root, ".git/info/exclude", "*.excluded\n");
  put(root, ".gitignore", "*.log\n/sub/gone\n");
  put(root, "sub/.gitignore", "!keep.log\n");
  put(root, "sub/keep.log", "x\n");
  put(root, "sub/x.log", "x\n");
  put(root, "sub/gone/a.c", "x\n");
  put(root, "sub/deep/b.c", "x\n");
  put(root, "sub/c.excluded", "x\n");
  put(root, "other.c", "x\n");
  found f = walk(root, NULL, "sub");
  CHECK(f.n == 2 && has(&f.files, "sub/keep.log") && has(&f.files, "sub/deep/b.c"));
  release(&f);
  f = walk(root, NULL, "sub/deep/b.c");
  CHECK(f.n == 1 && has(&f.files, "sub/deep/b.c"));
  release(&f);
  f = walk(root, NULL, "sub/gone");
  CHECK(f.n == 0 && has(&f.skipped, "sub/gone=ignored"));
  release(&f);
  FAILS(LODE_NOT_FOUND, walk_status(root, NULL, STR_LIT("nothing"), &f));
  release(&f);
  FAILS(LODE_NOT_FOUND, walk_status(root, NULL, STR_LIT("../.."), &f));
  release(&f);
  snprintf(path, sizeof path, "%s/sub", root);
  f = walk(path, NULL, ""); /* the rules above the root hold */
  CHECK(f.n == 2 && has(&f.files, "keep.log") && has(&f.files, "deep/b.c") && has(&f.skipped, "gone=ignored"));
  release(&f);
  snprintf(path, sizeof path, "%s/sub/gone", root);
  f = walk(path, NULL, ""); /* unless they leave out the root itself */
  CHECK(f.n == 1 && has(&f.files, "a.c"));
  release(&f);
}

TEST(one_path_is_classified_as_by_the_walk) {
  const char *root = test_folder();
  scan_root *r;
  scan_entry e;
  put(root, ".gitignore", "*.o\nbuild/\n");
  put(root, "src/a.c", "int a;\n");
  put(root, "build/x/b.c", "x\n");
  put(root, "test/test_a.py", "x\n");
  OK(scan_root_open(root, NULL, &r, &err));
  OK(scan_root_classify(r, STR_LIT("src/a.c"), &e, &err));
  CHECK(e.skip == SCAN_SKIP_NONE && !e.is_folder && e.size == 7 && strcmp(e.language->name, "c") == 0 && e.flags == 0);
  OK(scan_root_classify(r, STR_LIT("test/test_a.py"), &e, &err));
  CHECK(e.flags == SCAN_PATH_TEST);
  OK(scan_root_classify(r, STR_LIT("build/x/b.c"), &e, &err));
  CHECK(e.skip == SCAN_SKIP_IGNORED);
  OK(scan_root_classify(r, STR_LIT("src"), &e, &err));
  CHECK(e.skip == SCAN_SKIP_NONE && e.is_folder);
  FAILS(LODE_NOT_FOUND, scan_root_classify(r, STR_LIT("src/none.c"), &e, &err));
  FAILS(LODE_NOT_FOUND, scan_root_classify(r, STR_LIT("src/a.c/x"), &e, &err));
  scan_root_close(r);
}

TEST(reading_stays_below_the_root) {
  const char *root = test_folder();
  char path[600];
  scan_root *r;
  scan_entry e;
  strbuf text = {0};
  put(root, "in/a.c", "int a;\n");
  snprintf(path, sizeof path, "%s/out", root);
  CHECK(symlink("/etc", path) == 0);
  snprintf(path, sizeof path, "%s/in/link", root);
  CHECK(symlink("a.c", path) == 0);
  OK(scan_root_open(root, NULL, &r, &err));
  OK(scan_root_read(r, STR_LIT("in/a.c"), &text, &e, &err));
  CHECK(e.skip == SCAN_SKIP_NONE && text.len == 7 && e.size == 7 && e.inode != 0);
  static const char *const bad[] = {"out/passwd", "in/link", "../etc/passwd", "/etc/passwd",
                                    "in/../../x", "in",      "none",          ""};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    OK(scan_root_read(r, str_of(bad[i]), &text, &e, &err));
    CHECKF(e.skip != SCAN_SKIP_NONE && text.len == 0, "%s", bad[i]);
  }
  FAILS(LODE_INVALID, scan_root_open("/etc/passwd", NULL, &(scan_root *){0}, &err));
  FAILS(LODE_NOT_FOUND, scan_root_open("/nonexistent/folder", NULL, &(scan_root *){0}, &err));
  scan_root_close(r);
  strbuf_release(&text);
}

static scan_skip classify(scan_root *r, const char *path, const char *text, size_t n) {
  return scan_classify_text(r, str_of(path), lang_detect(str_of(path), (lode_str){0}), (lode_str){text, n});
}

TEST(texts_are_classified) {
  scan_root *r;
  char line[9000];
  memset(line, 'x', sizeof line);
  OK(scan_root_open(test_folder(), NULL, &r, &err));
  CHECK(classify(r, "a.c", "int a;\n", 7) == SCAN_SKIP_NONE);
  CHECK(classify(r, "a.c", "", 0) == SCAN_SKIP_EMPTY);
  CHECK(classify(r, "a.c", "a\0b", 3) == SCAN_SKIP_BINARY);
  CHECK(classify(r, "a.c", "\xff\xfe\xfd text that is not UTF-8\n", 27) == SCAN_SKIP_NONE);
  CHECK(classify(r, "a.js", line, sizeof line) == SCAN_SKIP_MINIFIED);
  CHECK(classify(r, "a.txt", line, sizeof line) == SCAN_SKIP_NONE);
  const char *generated = "// Code generated by protoc. DO NOT EDIT.\n",
             *people = "/* DO NOT EDIT the order of this list */\n";
  CHECK(classify(r, "a.go", generated, strlen(generated)) == SCAN_SKIP_GENERATED);
  CHECK(classify(r, "a.c", people, strlen(people)) == SCAN_SKIP_NONE);
  const char *key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA1234567890abcdefghijklmnopqrstuvwxyz\n-----END "
                    "RSA PRIVATE KEY-----\n";
  CHECK(classify(r, "a.txt", key, strlen(key)) == SCAN_SKIP_SECRET);
  const char *putty = "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nPublic-Lines: 1\nAAAA\nPrivate-Lines: "
                      "1\nAAAA\nPrivate-MAC: 2b\n";
  CHECK(classify(r, "a.txt", putty, strlen(putty)) == SCAN_SKIP_SECRET);
  const char *manual = "PuTTY-User-Key-File-version: algorithm-name\nis the first line of such a file\n";
  CHECK(classify(r, "a.txt", manual, strlen(manual)) == SCAN_SKIP_NONE);
  const char *talk =
      "looks for \"-----BEGIN RSA PRIVATE KEY-----\" in the text of a file, as a scanner of secrets does\n";
  CHECK(classify(r, "a.txt", talk, strlen(talk)) == SCAN_SKIP_NONE);
  scan_root_close(r);
}

/* What `lode skipped --reason secret` lists: by names, by the folder, by the whole text. */
TEST(files_that_are_secrets_are_told_by_name_and_text) {
  static const char *const secret[] = {".env",
                                       ".env.local",
                                       ".env.production",
                                       "prod.env",
                                       "id_rsa",
                                       "id_ed25519",
                                       "deploy.pem",
                                       "server.key",
                                       "terraform.tfvars",
                                       "prod.auto.tfvars",
                                       "x.tfvars.json",
                                       ".netrc",
                                       ".npmrc",
                                       ".pypirc",
                                       ".git-credentials",
                                       "credentials",
                                       "kubeconfig",
                                       "dev.kubeconfig",
                                       "service-account-prod.json",
                                       "client_secret_1.json",
                                       "secrets.yaml",
                                       "Terraform.TFVARS",
                                       ".dockercfg"};
  static const char *const plain[] = {".env.example",  ".env.sample",    ".env.template", "env.c",
                                      "id_rsa.pub",    "config.json",    "variables.tf",  "x.tfvars.example",
                                      "credentials.c", "environment.md", "secrets.c"};
  static const char *const placed[] = {".docker/config.json", ".kube/config", ".aws/credentials", ".ssh/work",
                                       "a/b/.ssh/id_x"};
  const char *root = test_folder();
  for (size_t i = 0; i < sizeof secret / sizeof *secret; i++) put(root, secret[i], "x\n");
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) put(root, plain[i], "x\n");
  for (size_t i = 0; i < sizeof placed / sizeof *placed; i++) put(root, placed[i], "x\n");
  put(root, ".ssh/work.pub", "x\n");
  scan_options o = {.hidden = true};
  found f = walk(root, &o, "");
  for (size_t i = 0; i < sizeof secret / sizeof *secret; i++) {
    char wanted[100];
    snprintf(wanted, sizeof wanted, "%s=secret", secret[i]);
    CHECKF(has(&f.skipped, wanted), "%s is not in %s", wanted, f.skipped.data);
  }
  for (size_t i = 0; i < sizeof placed / sizeof *placed; i++) {
    char wanted[100];
    snprintf(wanted, sizeof wanted, "%s=secret", placed[i]);
    CHECKF(has(&f.skipped, wanted), "%s is not in %s", wanted, f.skipped.data);
  }
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
    CHECKF(has(&f.files, plain[i]), "%s is not in %s", plain[i], f.files.data);
  CHECK(has(&f.files, ".ssh/work.pub"));
  release(&f);
  o.secrets = MASK_POLICY_INDEX;
  f = walk(root, &o, "");
  CHECK(has(&f.files, ".env") && has(&f.files, ".ssh/work") && has(&f.files, "server.key") &&
        !has(&f.skipped, "=secret"));
  release(&f);
  scan_root *r;
  static const char account[] = "{\n \"type\": \"service_account\",\n \"private_key\": \"x\"\n}\n";
  static const char kube[] = "apiVersion: v1\nkind: Config\nclusters: []\ncontexts: []\nusers: []\n";
  static const char speaks_of_it[] =
      "if (has(\"kind: Config\") && has(\"clusters:\") && has(\"users:\") && has(\"contexts:\")) {\n";
  static const char workload[] = "apiVersion: v1\nkind: ConfigMap\ndata: {}\n";
  OK(scan_root_open(root, NULL, &r, &err));
  CHECK(classify(r, "a.json", account, sizeof account - 1) == SCAN_SKIP_SECRET &&
        classify(r, "a.yaml", kube, sizeof kube - 1) == SCAN_SKIP_SECRET);
  CHECK(classify(r, "k.c", speaks_of_it, sizeof speaks_of_it - 1) == SCAN_SKIP_NONE);
  CHECK(classify(r, "b.yaml", workload, sizeof workload - 1) == SCAN_SKIP_NONE);
  scan_root_close(r);
}

TEST(marks_of_paths) {
  CHECK(scan_path_flags(STR_LIT("src/a.c")) == 0);
  CHECK(scan_path_flags(STR_LIT("tests/a.c")) == SCAN_PATH_TEST &&
        scan_path_flags(STR_LIT("src/a_test.go")) == SCAN_PATH_TEST);
  CHECK(scan_path_flags(STR_LIT("src/a.spec.ts")) == SCAN_PATH_TEST &&
        scan_path_flags(STR_LIT("x/LatestNews.java")) == 0);
  CHECK(scan_path_flags(STR_LIT("third_party/a.c")) == SCAN_PATH_VENDORED);
  CHECK(scan_path_flags(STR_LIT("Docs/examples/a.c")) == (SCAN_PATH_DOC | SCAN_PATH_EXAMPLE));
  CHECK(scan_path_flags(STR_LIT("_examples/a.c")) == SCAN_PATH_EXAMPLE &&
        scan_path_flags(STR_LIT("x/__tests__/a.js")) == SCAN_PATH_TEST);
  CHECK(scan_path_flags(STR_LIT("deps/a.c")) == SCAN_PATH_VENDORED && scan_path_flags(STR_LIT("___/a.c")) == 0);
  CHECK(scan_path_flags(STR_LIT("src/win/a.c")) == SCAN_PATH_OTHER_OS &&
        scan_path_flags(STR_LIT("a_windows.go")) == SCAN_PATH_OTHER_OS);
  CHECK(scan_path_flags(STR_LIT("src/window.c")) == 0 &&
        scan_path_flags(STR_LIT("src/linux/a.c")) == SCAN_PATH_THIS_OS);
  CHECK(scan_path_flags(STR_LIT("legacy/a.c")) == SCAN_PATH_LEGACY &&
        scan_path_flags(STR_LIT("a.d.ts")) == SCAN_PATH_STUB);
  CHECK(scan_path_flags(STR_LIT("")) == 0 && scan_path_flags(STR_LIT("/")) == 0 &&
        scan_path_flags(STR_LIT(".d.ts")) == 0);
}

/* ---- Faults ---- */

TEST_SLOW(calls_that_fail_are_reported_or_skipped, 120) {
  const char *root = test_folder();
  put(root, ".gitignore", "*.o\n");
  put(root, "a.c", "x\n");
  put(root, "d/.gitignore", "*.p\n");
  put(root, "d/b.c", "x\n");
  put(root, "d/e/c.c", "x\n");
  for (uint64_t at = 1;; at++) {
    found f;
    fault_install(&os_real);
    fault_set(FAULT_ANY, at, false, FAULT_EIO);
    lode_status st = walk_status(root, NULL, STR_LIT(""), &f);
    uint64_t hits = fault_hits();
    fault_uninstall();
    if (!hits) CHECK(st == LODE_OK && f.n == 3);
    release(&f);
    if (!hits) break;
  }
  for (uint64_t at = 1;; at++) { /* what a signal interrupts leaves no trace */
    found f;
    fault_install(&os_real);
    fault_set(FAULT_ANY, at, false, FAULT_EINTR);
    OK(walk_status(root, NULL, STR_LIT(""), &f));
    uint64_t hits = fault_hits();
    fault_uninstall();
    CHECKF(f.n == 3, "call %llu", (unsigned long long)at);
    release(&f);
    if (!hits) break;
  }
}

TEST(memory_that_runs_out_is_an_error) {
  const char *root = test_folder();
  put(root, ".gitignore", "*.o\n");
  put(root, "a.c", "x\n");
  put(root, "d/b.c", "x\n");
  fault_alloc_install();
  for (uint64_t at = 1;; at++) {
    scan_root *r = NULL;
    scan_walker *w = NULL;
    scan_entry e;
    bool more = true;
    unsigned n = 0;
    fault_alloc_set(at, false);
    lode_status st = scan_root_open(root, NULL, &r, &err);
    if (st == LODE_OK) st = scan_walker_open(r, STR_LIT(""), &w, &err);
    while (st == LODE_OK && more) {
      st = scan_walker_next(w, &e, &more, &err);
      n += st == LODE_OK && more && !e.skip;
    }
    uint64_t hits = fault_alloc_hits();
    fault_alloc_set(0, false);
    CHECK(st == LODE_OK || st == LODE_NOMEM);
    if (st == LODE_OK) CHECKF(n == 2, "allocation %llu", (unsigned long long)at);
    scan_walker_close(w);
    scan_root_close(r);
    if (!hits) break;
  }
}

/* ---- Beside git, on this project's own tree ---- */

static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* The lines of a text, sorted; they point into it. */
static char **sorted_lines(char *text, size_t *n) {
  char **lines = malloc((strlen(text) + 1) * sizeof *lines);
  CHECK(lines != NULL);
  *n = 0;
  for (char *line = strtok_r(text, "\n", &text); line; line = strtok_r(NULL, "\n", &text)) lines[(*n)++] = line;
  qsort(lines, *n, sizeof *lines, by_bytes);
  return lines;
}

TEST(the_same_files_as_git_on_this_tree) {
  const char *tmp = test_folder();
  char command[2000], path[700];
  size_t n, m;
  if (system("git --version >/dev/null 2>&1") != 0) test_skip("git is not installed");
  setenv("HOME", tmp, 1);
  setenv("XDG_CONFIG_HOME", tmp, 1);
  /* only folders that nothing writes to while tests run */
  snprintf(command, sizeof command,
           "cp -r src include docs test fuzz '%.500s' && cp .gitignore '%.500s' && cd '%.500s' && git init -q . && "
           "mkdir -p src/build && echo x >src/build/a.c && "
           "echo x >src/lib/x.o && git ls-files --others --exclude-standard >.git/list",
           tmp, tmp, tmp);
  CHECK(system(command) == 0);
  snprintf(path, sizeof path, "%s/.git/list", tmp);
  char *git = test_read_file(path, &n);
  scan_options o = {.hidden = true, .generated = true, .max_bytes = 64u << 20};
  found f = walk(tmp, &o, "");
  char **wanted = sorted_lines(git, &n), **got = sorted_lines(f.files.data, &m);
  CHECK(n > 300 && has(&f.skipped, "src/build=ignored"));
  size_t k = 0;
  for (size_t i = 0; i < n; i++) { /* what git lists and we skip must be skipped for what it is, not by a rule */
    char line[800];
    while (k < m && strcmp(got[k], wanted[i]) < 0) CHECKF(false, "git does not list %s", got[k]);
    if (k < m && strcmp(got[k], wanted[i]) == 0) {
      k++;
      continue;
    }
    snprintf(line, sizeof line, "\n%.600s=", wanted[i]);
    const char *why = strstr(f.skipped.data, line);
    CHECKF(why && strncmp(why + strlen(line), "ignored", 7) != 0, "%s is not walked", wanted[i]);
  }
  CHECK(k == m);
  free(wanted);
  free(got);
  free(git);
  release(&f);
}
