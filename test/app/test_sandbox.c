/* SPDX-License-Identifier: Apache-2.0 */
/* test_sandbox.c - what a sandboxed process may still do: write to the store and where crash reports go, but to nothing
 * that a link there leads to; connect, but open no port. */
#include "platform/sandbox.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *path_of(const char *folder, const char *name) {
  static char paths[8][700];
  static unsigned next;
  char *path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static const char *make_folder(const char *parent, const char *name) {
  const char *path = path_of(parent, name);
  CHECK(mkdir(path, 0700) == 0);
  return path;
}

static bool can_write(const char *folder, const char *name) {
  int fd = open(path_of(folder, name), O_WRONLY | O_CREAT, 0600);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

/* Applies to the rest of this process, which is the test's own. */
static void enter(const char *store, const char *crashes, const char *tmp) {
  char said[400];
  CHECK(setenv("TMPDIR", tmp, 1) == 0 && setenv("XDG_CACHE_HOME", tmp, 1) == 0);
  os_sandbox(store, crashes, said, sizeof said);
  if (!strstr(said, "Landlock on")) test_skip("the kernel has no Landlock");
}

TEST(a_linked_folder_of_crash_reports_gives_no_rights_to_its_target) {
  const char *top = test_folder(), *store = make_folder(top, "store"), *outside = make_folder(top, "outside"),
             *tmp = make_folder(top, "tmp");
  const char *crashes = path_of(store, "crashes");
  CHECK(symlink(outside, crashes) == 0 && can_write(outside, "before"));
  enter(store, crashes, tmp);
  CHECK(can_write(store, "inside"));
  CHECKF(!can_write(outside, "after") && !can_write(crashes, "after"),
         "the target of a link in the store can be written to");
  CHECKF(unlink(path_of(outside, "before")) != 0, "a file in the target of a link in the store can be removed");
}

TEST(a_folder_of_crash_reports_elsewhere_can_be_written_to) {
  const char *top = test_folder(), *store = make_folder(top, "store"), *state = make_folder(top, "state"),
             *tmp = make_folder(top, "tmp");
  enter(store, state, tmp);
  CHECK(can_write(store, "a") && can_write(state, "a") && can_write(tmp, "a") && !can_write(top, "a"));
}

TEST(a_store_without_a_folder_gives_no_rights) {
  const char *top = test_folder(), *tmp = make_folder(top, "tmp"), *store = path_of(top, "store");
  enter(store, NULL, tmp);
  CHECK(mkdir(store, 0700) != 0 && !can_write(top, "a") && can_write(tmp, "a"));
}

static int listen_on_loopback(void) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(fd >= 0);
  if (bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 1) == 0) return fd;
  close(fd);
  return -1;
}

TEST(no_port_is_opened_and_open_ones_can_be_used) {
  const char *top = test_folder(), *store = make_folder(top, "store"), *tmp = make_folder(top, "tmp");
  struct sockaddr_in at;
  socklen_t size = sizeof at;
  int before = listen_on_loopback(), client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(before >= 0 && client >= 0 && getsockname(before, (struct sockaddr *)&at, &size) == 0);
  enter(store, NULL, tmp);
  if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) < 4)
    test_skip("the kernel's Landlock does not know the network");
  CHECKF(listen_on_loopback() < 0, "a port was opened in the sandbox");
  CHECK(connect(client, (struct sockaddr *)&at, sizeof at) == 0);
  close(client);
  close(before);
}

static void *write_later(void *arg) {
  static char yes;
  const char **where = arg;
  if (where[1]) /* started before: waits for the sandbox */
    while (access(where[1], F_OK) != 0) usleep(1000);
  return can_write(where[0], "by_thread") ? &yes : NULL;
}

/* Why it must be entered before threads are started; if it was not, it says so. */
TEST(a_thread_that_was_there_before_is_not_passed_over_in_silence) {
  const char *top = test_folder(), *store = make_folder(top, "store"), *tmp = make_folder(top, "tmp");
  const char *old[] = {top, path_of(store, "entered")}, *new[] = {top, NULL};
  char said[400];
  pthread_t before, after;
  void *wrote = NULL;
  CHECK(setenv("TMPDIR", tmp, 1) == 0 && setenv("XDG_CACHE_HOME", tmp, 1) == 0);
  CHECK(pthread_create(&before, NULL, write_later, old) == 0);
  os_sandbox(store, NULL, said, sizeof said);
  CHECK(can_write(store, "entered") && pthread_join(before, &wrote) == 0);
  if (!strstr(said, "Landlock on")) test_skip("the kernel has no Landlock");
  CHECKF(!wrote || strstr(said, "Landlock on for new threads only"), "%s, but not for every thread", said);
  CHECK(pthread_create(&after, NULL, write_later, new) == 0 && pthread_join(after, &wrote) == 0);
  CHECKF(!wrote, "a thread that was started later is not bound");
}

#ifdef __x86_64__
/* getpid() of i386; where the kernel has no such calls, the process dies. */
static int i386_getpid(void) {
  int result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
  return result;
}

TEST(calls_of_other_kinds_are_denied) {
  const char *top = test_folder();
  char said[400];
  int status = 0;
  os_sandbox(top, NULL, said, sizeof said);
  if (!strstr(said, "seccomp on")) test_skip("the kernel has no seccomp");
  CHECKF(syscall(SYS_getpid) == getpid(), "an ordinary call is denied");
  errno = 0;
  CHECKF(syscall(0x40000000 | SYS_getpid) == -1 && errno == EPERM, "an x32 call gives %s", strerror(errno));
  pid_t child = fork();
  if (child == 0) _exit(i386_getpid() == -EPERM ? 0 : 1);
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECKF(WIFSIGNALED(status) || WEXITSTATUS(status) == 0, "an i386 call is not denied");
}
#endif
