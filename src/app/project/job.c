/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - which process is indexing or watching, and its progress; see project.h.
 *
 * The lock is on the first byte of the lock file. The text in it, at most PROJECT_JOB_NOTE_BYTES, is
 * "pid started_ms done total phase\n". A reader may see a text half overwritten by the next: it is only displayed. */
#include "project/project.h"

#include "scan/files.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { PROJECT_JOB_NOTE_BYTES = 160, PROJECT_JOB_NOTE_EVERY_MS = 150, PROJECT_JOB_POLL_US = 20000 };

static const char *const project_job_lock_files[] = {STOREFILE_INDEX_LOCK, STOREFILE_WATCH_LOCK};
static const char *const project_job_verbs[] = {"indexes", "watches"};

static bool project_job_parse_note(char *text, project_job_status *view) {
  unsigned long long pid, started, done, total;
  int at = 0;
  if (sscanf(text, "%20llu %20llu %20llu %20llu %n", &pid, &started, &done, &total, &at) != 4 || at <= 0) return false;
  view->pid = pid;
  view->started_ms = started;
  view->done = done;
  view->total = total;
  snprintf(view->phase, sizeof view->phase, "%.*s", (int)strcspn(text + at, "\n"), text + at);
  return true;
}

void project_job_read(const char *folder, project_job_kind kind, project_job_status *view) {
  char text[PROJECT_JOB_NOTE_BYTES + 1] = {0};
  memset(view, 0, sizeof *view);
  int fd = beneath_open(folder, project_job_lock_files[kind], O_RDONLY, 0);
  if (fd < 0) return;
  view->running = os_api->lock_held(fd, F_RDLCK, 0, 1) == 1;
  if (view->running && os_api->pread(fd, text, PROJECT_JOB_NOTE_BYTES, 0) > 0) (void)project_job_parse_note(text, view);
  os_api->close(fd);
}

bool project_was_indexed(const char *folder) {
  int fd = beneath_open(folder, STOREFILE_INDEX_LOCK, O_RDONLY, 0);
  if (fd >= 0) os_api->close(fd);
  /* A cluster's address is no path; a file that only cannot be read is there */
  return fd >= 0 || (errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG);
}

static lode_status project_job_wait_lock(int fd, const char *folder, project_job_kind kind, uint64_t wait_ms,
                                         lode_error *err) {
  uint64_t start = os_api->now_ns();
  project_job_status view;
  while (os_api->lock(fd, F_WRLCK, 0, 1) < 0) {
    if (errno != EAGAIN) return err_errno(err, errno, project_job_lock_files[kind]);
    if (os_api->now_ns() - start >= wait_ms * 1000000) {
      project_job_read(folder, kind, &view);
      if (view.total == 0)
        return err_set(err, LODE_BUSY, "process %llu %s this project; `lode status` shows it",
                       (unsigned long long)view.pid, project_job_verbs[kind]);
      return err_set(err, LODE_BUSY,
                     "process %llu %s this project (%s %llu of %llu); `lode status` shows how far it is",
                     (unsigned long long)view.pid, project_job_verbs[kind], view.phase, (unsigned long long)view.done,
                     (unsigned long long)view.total);
    }
    os_api->sleep_us(PROJECT_JOB_POLL_US);
  }
  return LODE_OK;
}

lode_status project_job_begin(project_job *job, const project_info *project, project_job_kind kind, uint64_t wait_ms,
                              lode_error *err) {
  strbuf path = {0};
  lode_status st;
  *job = (project_job){.fd = -1};
  TRY_GOTO(files_join(&path, project->folder, project_job_lock_files[kind], err));
  job->fd = storefile_open_or_create(project->folder, project_job_lock_files[kind]);
  if (job->fd < 0) {
    st = errno == EACCES || errno == EROFS
             ? err_set(err, LODE_READONLY,
                       "%.400s cannot be written: %.80s; another place can be named with --store DIR", path.data,
                       strerror(errno))
             : err_errno(err, errno, path.data);
    goto done;
  }
  TRY_GOTO(project_job_wait_lock(job->fd, project->folder, kind, wait_ms, err));
  job->started_ms = os_wall_ms();
  project_job_note(job, "starting", 0, 0);
  job->noted_ms = 0; /* the first real phase is written at once */
done:
  if (st != LODE_OK) project_job_end(job);
  strbuf_release(&path);
  return st;
}

void project_job_note(project_job *job, const char *phase, uint64_t done, uint64_t total) {
  char text[PROJECT_JOB_NOTE_BYTES];
  uint64_t now = os_wall_ms();
  if (job->fd < 0 || (now >= job->noted_ms && now - job->noted_ms < PROJECT_JOB_NOTE_EVERY_MS)) return;
  int n = snprintf(text, sizeof text, "%llu %llu %llu %llu %.39s\n", (unsigned long long)getpid(),
                   (unsigned long long)job->started_ms, (unsigned long long)done, (unsigned long long)total, phase);
  /* For display only: a full disk is no reason to stop */
  if (n > 0) (void)!os_api->pwrite(job->fd, text, (size_t)n, 0);
  job->noted_ms = now;
}

void project_job_end(project_job *job) {
  if (job->fd >= 0) os_api->close(job->fd);
  job->fd = -1;
}
