/* job.c - who indexes or watches, and how far it is. See project.h.
 *
 * The lock is on the first byte; the text, of NOTE_BYTES at most, is "pid started_ms done total phase\n". A reader may meet
 * one text half written over another: it only ever shows it. */
#include "project.h"

#include "fs.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { NOTE_BYTES = 160, NOTE_EVERY_MS = 150, POLL_US = 20000 };

static const char *const names[] = {STOREFILE_INDEX_LOCK, STOREFILE_WATCH_LOCK};
static const char *const verbs[] = {"indexes", "watches"};

static bool parse(char *text, lode__job_view *view) {
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

void lode__job_look(const char *folder, lode__job_kind kind, lode__job_view *view) {
  char text[NOTE_BYTES + 1] = {0};
  memset(view, 0, sizeof *view);
  int fd = beneath_open(folder, names[kind], O_RDONLY, 0);
  if (fd < 0) return;
  view->running = os_api->lock_held(fd, F_RDLCK, 0, 1) == 1;
  if (view->running && os_api->pread(fd, text, NOTE_BYTES, 0) > 0) (void)parse(text, view);
  os_api->close(fd);
}

static lode_status wait_for(int fd, const char *folder, lode__job_kind kind, uint64_t wait_ms, lode_error *err) {
  uint64_t start = os_api->now_ns();
  lode__job_view view;
  while (os_api->lock(fd, F_WRLCK, 0, 1) < 0) {
    if (errno != EAGAIN) return err_errno(err, errno, names[kind]);
    if (os_api->now_ns() - start >= wait_ms * 1000000) {
      lode__job_look(folder, kind, &view);
      if (view.total == 0)
        return err_set(err, LODE_BUSY, "process %llu %s this project; `lode status` shows it", (unsigned long long)view.pid, verbs[kind]);
      return err_set(err, LODE_BUSY, "process %llu %s this project (%s %llu of %llu); `lode status` shows how far it is",
                        (unsigned long long)view.pid, verbs[kind], view.phase, (unsigned long long)view.done,
                        (unsigned long long)view.total);
    }
    os_api->sleep_us(POLL_US);
  }
  return LODE_OK;
}

lode_status lode__job_begin(lode__job *job, const lode__project *project, lode__job_kind kind, uint64_t wait_ms, lode_error *err) {
  strbuf path = {0};
  lode_status st;
  *job = (lode__job){.fd = -1};
  TRY_GOTO(lode__fs_join(&path, project->folder, names[kind], err));
  job->fd = beneath_open(project->folder, names[kind], O_RDWR | O_CREAT, 0600);
  if (job->fd < 0) {
    st = errno == EACCES || errno == EROFS
        ? err_set(err, LODE_READONLY, "%.400s cannot be written: %.80s; another place can be named with --store DIR",
                     path.data, strerror(errno))
        : err_errno(err, errno, path.data);
    goto done;
  }
  TRY_GOTO(wait_for(job->fd, project->folder, kind, wait_ms, err));
  job->started_ms = os_wall_ms();
  lode__job_note(job, "starting", 0, 0);
  job->noted_ms = 0; /* what is really being done shall be seen at once */
done:
  if (st != LODE_OK) lode__job_end(job);
  strbuf_release(&path);
  return st;
}

void lode__job_note(lode__job *job, const char *phase, uint64_t done, uint64_t total) {
  char text[NOTE_BYTES];
  uint64_t now = os_wall_ms();
  if (job->fd < 0 || (now >= job->noted_ms && now - job->noted_ms < NOTE_EVERY_MS)) return;
  int n = snprintf(text, sizeof text, "%llu %llu %llu %llu %.39s\n", (unsigned long long)getpid(),
                   (unsigned long long)job->started_ms, (unsigned long long)done, (unsigned long long)total, phase);
  /* Only for others to look at: a full disk is no reason to stop */
  if (n > 0) (void)!os_api->pwrite(job->fd, text, (size_t)n, 0);
  job->noted_ms = now;
}

void lode__job_end(lode__job *job) {
  if (job->fd >= 0) os_api->close(job->fd);
  job->fd = -1;
}
