/* SPDX-License-Identifier: Apache-2.0 */
/* test_parser_pool.c - child processes and frames (os/proc.h), and workers that crash, hang, lie or eat memory
 * (chunk/parser_pool.h). */
#include "os/frame.h"
#include "os/os.h"
#include "os/proc.h"
#include "chunk/parser_pool.h"
#include "support/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static lode_error err;

/* ---- Processes ---- */

static proc_exit run_shell(const char *script, proc_options o) {
  const char *argv[] = {"sh", "-c", script, NULL};
  proc_child proc;
  o.path = "/bin/sh";
  o.argv = argv;
  OK(proc_spawn(&o, &proc, &err));
  proc_exit end;
  while (!(end = proc_poll(&proc)).ended) os_api->sleep_us(1000);
  proc_close(&proc, 1000);
  CHECK(proc.pid == 0 && proc.fd == -1);
  return end;
}

TEST(a_child_has_its_socket_and_nothing_else) {
  int leak = open("/dev/null", O_RDONLY); /* without CLOEXEC */
  CHECK(leak >= 0);
  /* 0, 1, 2, the socket, and the folder that ls reads */
  proc_exit end = run_shell("n=$(ls /proc/self/fd | wc -l); exit $n", (proc_options){0});
  CHECKF(end.signal == 0 && end.code == 5, "%d descriptors", end.code);
  end = run_shell("[ -S /proc/self/fd/3 ] || exit 1; exit 7", (proc_options){.no_new_privs = true, .no_core = true});
  CHECK(end.signal == 0 && end.code == 7);
  close(leak);
}

TEST(a_signal_and_a_limit_are_told_apart) {
  proc_exit end = run_shell("kill -ABRT $$", (proc_options){.no_core = true, .quiet = true});
  char buf[32];
  CHECK(end.signal == SIGABRT && strcmp(proc_signal_name(end.signal, buf, sizeof buf), "SIGABRT") == 0);
  end = run_shell("while :; do :; done", (proc_options){.cpu_seconds = 1, .no_core = true, .quiet = true});
  CHECK(end.signal == SIGXCPU || end.signal == SIGKILL);
  CHECK(strcmp(proc_signal_name(63, buf, sizeof buf), "signal 63") == 0);
}

TEST(a_program_that_is_not_there_is_an_error) {
  const char *argv[] = {"x", NULL};
  proc_child proc;
  proc_options o = {.path = "/nonexistent/program", .argv = argv};
  FAILS(LODE_NOT_FOUND, proc_spawn(&o, &proc, &err));
  CHECK(proc.pid == 0 && proc.fd == -1);
  o.path = "/etc/passwd";
  FAILS(LODE_NOT_FOUND, proc_spawn(&o, &proc, &err));
  CHECK(waitpid(-1, NULL, WNOHANG) < 0); /* nobody is left to be reaped */
}

TEST(one_that_does_not_go_is_killed) {
  const char *argv[] = {"sh", "-c", "trap '' TERM; while :; do sleep 1; done", NULL};
  proc_child proc;
  proc_options o = {.path = "/bin/sh", .argv = argv};
  OK(proc_spawn(&o, &proc, &err));
  proc_exit end = proc_close(&proc, 50);
  CHECK(end.ended && end.signal == SIGKILL);
  OK(proc_spawn(&o, &proc, &err));
  end = proc_kill(&proc);
  CHECK(end.ended && end.signal == SIGKILL && proc.pid == 0);
}

/* ---- Frames ---- */

static void pair(int fd[2]) { CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == 0); }

TEST(frames_come_whole_and_in_order) {
  int fd[2];
  proc_frame frame;
  strbuf body = {0};
  pair(fd);
  lode_str parts[] = {STR_LIT("one "), STR_LIT(""), STR_LIT("two")};
  OK(proc_frame_send(fd[0], (proc_frame){7, 3, 4, 5, UINT64_MAX, 0}, parts, 3, 0, &err));
  OK(proc_frame_send(fd[0], (proc_frame){.type = 8}, NULL, 0, 0, &err));
  OK(proc_frame_receive(fd[1], 100, 0, &frame, &body, &err));
  CHECK(frame.type == 7 && frame.words == 3 && frame.code == 4 && frame.id == 5 && frame.client == UINT64_MAX);
  CHECK(frame.bytes == 7 && body.len == 7 && strcmp(body.data, "one two") == 0);
  OK(proc_frame_receive(fd[1], 100, 0, &frame, &body, &err));
  CHECK(frame.type == 8 && body.len == 0 && body.data[0] == '\0');
  FAILS(LODE_BUSY, proc_frame_receive(fd[1], 100, os_api->now_ns() + 1000000, &frame, &body, &err));
  close(fd[0]);
  FAILS(LODE_GONE, proc_frame_receive(fd[1], 100, 0, &frame, &body, &err));
  FAILS(LODE_GONE, proc_frame_send(fd[1], (proc_frame){.type = 1}, parts, 3, 0, &err)); /* and no SIGPIPE */
  close(fd[1]);
  strbuf_release(&body);
}

static lode_status receive_bytes(const char *bytes, size_t n, size_t max, strbuf *body) {
  int fd[2];
  proc_frame frame;
  pair(fd);
  CHECK(write(fd[0], bytes, n) == (ssize_t)n);
  close(fd[0]);
  lode_status st = proc_frame_receive(fd[1], max, 0, &frame, body, &err);
  close(fd[1]);
  return st;
}

TEST(damaged_frames_are_refused) {
  int fd[2];
  char bytes[100];
  strbuf body = {0};
  lode_str part = STR_LIT("twenty bytes of body");
  pair(fd);
  OK(proc_frame_send(fd[0], (proc_frame){.type = 1}, &part, 1, 0, &err));
  ssize_t n = read(fd[1], bytes, sizeof bytes);
  CHECK(n == PROC_FRAME_HEAD_BYTES + 20);
  CHECK(receive_bytes(bytes, (size_t)n, 20, &body) == LODE_OK && body.len == 20);
  CHECK(receive_bytes(bytes, (size_t)n, 19, &body) == LODE_CORRUPT);
  for (size_t cut = 1; cut < (size_t)n; cut++) CHECK(receive_bytes(bytes, cut, 20, &body) == LODE_CORRUPT);
  for (int bit = 0; bit < PROC_FRAME_HEAD_BYTES * 8; bit++) {
    bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
    CHECK(receive_bytes(bytes, (size_t)n, 1 << 20, &body) == LODE_CORRUPT);
    bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
  }
  close(fd[0]);
  close(fd[1]);
  strbuf_release(&body);
}

TEST(frames_may_come_in_pieces) {
  int fd[2];
  char bytes[200];
  proc_inbox in = {0};
  lode_str part = STR_LIT("twenty bytes of body");
  pair(fd);
  OK(proc_frame_send(fd[0], (proc_frame){.type = 1, .id = 11}, &part, 1, 0, &err));
  OK(proc_frame_send(fd[0], (proc_frame){.type = 2, .id = 12}, NULL, 0, 0, &err));
  ssize_t n = read(fd[1], bytes, sizeof bytes);
  CHECK(n == 2 * PROC_FRAME_HEAD_BYTES + 20);
  for (ssize_t i = 0; i < n; i++) {
    bool complete;
    CHECK(write(fd[0], bytes + i, 1) == 1);
    OK(proc_inbox_receive(&in, fd[1], 20, &complete, &err));
    CHECK(complete == (i == PROC_FRAME_HEAD_BYTES + 19 || i == n - 1));
    if (!complete) continue;
    CHECK(in.frame.type == (i == n - 1 ? 2 : 1) && in.frame.id == 10u + in.frame.type && in.body.len == in.frame.bytes);
    CHECK(strcmp(in.body.data, i == n - 1 ? "" : "twenty bytes of body") == 0);
    proc_inbox_clear(&in);
  }
  close(fd[0]);
  bool complete;
  FAILS(LODE_GONE, proc_inbox_receive(&in, fd[1], 20, &complete, &err));
  close(fd[1]);
}

/* ---- Workers ---- */

static const lang_info *c_language(void) { return lang_find(STR_LIT("c")); }

static parser_pool *open_pool(const parser_pool_options *o) {
  parser_pool *pool;
  OK(parser_pool_open(o, &pool, &err));
  if (parser_pool_has(pool, c_language())) return pool;
  parser_pool_close(pool);
  test_skip("lode-parser or the grammar of C is not built (make grammars)");
  return NULL;
}

static parser_pool_outcome chunk(parser_pool *pool, const char *text, parser_pool_result *r) {
  OK(parser_pool_chunk(pool, c_language(), str_of(text), r, &err));
  CHECK(chunk_list_problem(&r->chunks, strlen(text)) == NULL);
  return r->outcome;
}

static const char good[] = "int f(void)\n{\n  return 1;\n}\n";

static void check_good(parser_pool *pool, parser_pool_result *r) {
  CHECK(chunk(pool, good, r) == PARSER_POOL_SYNTAX && r->chunks.n == 1);
  CHECK(str_eq(r->chunks.items[0].name, STR_LIT("f")) && !r->broken && r->detail[0] == '\0');
}

TEST_SLOW(a_bad_worker_costs_one_file, 120) {
  static const struct {
    const char *how;
    parser_pool_outcome outcome;
  } bad[] = {{"crash", PARSER_POOL_CRASHED},   {"abort", PARSER_POOL_CRASHED}, {"exit", PARSER_POOL_CRASHED},
             {"garbage", PARSER_POOL_REFUSED}, {"hang", PARSER_POOL_HUNG},     {"memory", PARSER_POOL_MEMORY}};
  parser_pool_options o = {.workers = 1, .cpu_ms = 200, .memory_bytes = 64u << 20};
  parser_pool *pool = open_pool(&o);
  parser_pool_result r = {0};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char text[100];
    snprintf(text, sizeof text, "lode-parser-test: %s\nint x;\n", bad[i].how);
    parser_pool_outcome outcome = chunk(pool, text, &r);
    CHECKF(outcome == bad[i].outcome, "%s: %s %s", bad[i].how, parser_pool_outcome_text(outcome), r.detail);
    CHECK(r.chunks.n == 1 && r.chunks.items[0].kind == LANG_KIND_TEXT); /* its text is there all the same */
    check_good(pool, &r);
  }
  parser_pool_result_release(&r);
  parser_pool_close(pool);
  CHECK(waitpid(-1, NULL, WNOHANG) < 0);
}

TEST(long_lists_of_defines_are_not_parsed) {
  strbuf text = {0};
  parser_pool_result r = {0};
  parser_pool *pool = open_pool(NULL);
  for (int i = 0; i < 3000; i++) strbuf_addf(&text, "#define REGISTER_%d 0x%08x\n", i, i);
  OK(parser_pool_chunk(pool, c_language(), (lode_str){text.data, text.len}, &r, &err));
  CHECK(r.outcome == PARSER_POOL_PLAIN && chunk_list_problem(&r.chunks, text.len) == NULL && r.chunks.n > 10);
  OK(parser_pool_chunk(pool, c_language(), (lode_str){text.data, 2600}, &r, &err));
  CHECK(r.outcome == PARSER_POOL_SYNTAX);
  strbuf_release(&text);
  parser_pool_result_release(&r);
  parser_pool_close(pool);
}

TEST(no_parser_means_lines) {
  parser_pool_options o = {.parser = "/nonexistent/lode-parser"};
  parser_pool *pool;
  parser_pool_result r = {0};
  OK(parser_pool_open(&o, &pool, &err));
  CHECK(chunk(pool, good, &r) == PARSER_POOL_NO_GRAMMAR && r.chunks.n == 1 && r.chunks.items[0].kind == LANG_KIND_TEXT);
  parser_pool_close(pool);
  setenv("LODE_GRAMMARS", "/nonexistent", 1);
  OK(parser_pool_open(NULL, &pool, &err));
  CHECK(!parser_pool_has(pool, c_language()));
  CHECK(chunk(pool, good, &r) == PARSER_POOL_NO_GRAMMAR);
  parser_pool_result_release(&r);
  parser_pool_close(pool);
}

/* A worker killed while it has nothing to do is replaced, and no file is blamed. */
TEST(an_idle_worker_that_dies_is_replaced) {
  parser_pool_options o = {.workers = 1};
  parser_pool *pool = open_pool(&o);
  parser_pool_result r = {0};
  char line[64];
  int pid = 0;
  check_good(pool, &r);
  snprintf(line, sizeof line, "/proc/self/task/%d/children", (int)getpid());
  FILE *f = fopen(line, "r");
  if (!f || fscanf(f, "%d", &pid) != 1) test_skip("the kernel does not list children");
  fclose(f);
  CHECK(kill(pid, SIGKILL) == 0);
  siginfo_t info;
  CHECK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
  check_good(pool, &r);
  parser_pool_result_release(&r);
  parser_pool_close(pool);
}

static void *many(void *arg) {
  parser_pool_result r = {0};
  for (int i = 0; i < 30; i++) {
    check_good(arg, &r);
    if (i % 10 == 3) CHECK(chunk(arg, "lode-parser-test: exit\n", &r) == PARSER_POOL_CRASHED);
  }
  parser_pool_result_release(&r);
  return NULL;
}

TEST_SLOW(many_threads_share_few_workers, 120) {
  pthread_t threads[6];
  parser_pool_options o = {.workers = 2};
  parser_pool *pool = open_pool(&o);
  for (int i = 0; i < 6; i++) CHECK(pthread_create(&threads[i], NULL, many, pool) == 0);
  for (int i = 0; i < 6; i++) pthread_join(threads[i], NULL);
  parser_pool_close(pool);
  CHECK(waitpid(-1, NULL, WNOHANG) < 0);
}

TEST(the_table_fits_the_grammars) {
  char command[400];
  parser_pool *pool = open_pool(NULL);
  const char *parser = parser_pool_program(pool);
  snprintf(command, sizeof command, "%.300s --check build/grammars", parser);
  int status = system(command);
  parser_pool_close(pool);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
