/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor.c - see supervisor.h.
 *
 * One lock guards everything; it is never held during a callback or a blocking system call. Calls live in a table of
 * fixed size; a call's id is its index in the table plus a multiple of the table's size, so that ids are never reused.
 * A call is QUEUED (in `outbox`, in order), then SENT (the worker has at least its first byte), then FREE. A call that
 * was sent and timed out is ORPHANED until the worker's own reply arrives, so that its id stays taken.
 *
 * Sending never blocks: whoever makes a call sends as much as the socket takes, and the supervisor's thread sends the
 * rest. That thread also receives, detects the worker's death as the end of its stream, expires calls, and starts the
 * next worker.
 */
#include "worker/supervisor.h"
#include "ops/op_context.h"
#include "worker/crash.h"

#include "os/os.h"
#include "platform/event.h"
#include "platform/socket.h"
#include "scan/files.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#define SUPERVISOR_NS_PER_MS 1000000u
#define SUPERVISOR_NEVER UINT64_MAX
enum { SUPERVISOR_TEXT_BYTES = 700 };

typedef enum call_slot_state { CALL_SLOT_FREE, CALL_SLOT_QUEUED, CALL_SLOT_SENT, CALL_SLOT_ORPHANED } call_slot_state;

typedef struct call_slot call_slot;
struct call_slot {
  call_slot_state state;
  uint64_t id;
  char name[CRASH_NAME_BYTES];
  supervisor_call call;
  unsigned char head[PROC_FRAME_HEAD_BYTES];
  strbuf words; /* as sent */
  uint64_t started_ns, deadline_ns;
  call_slot *next; /* in outbox, or in the free list */
};

struct supervisor_state {
  supervisor_options options;
  strbuf store, crashes; /* strings that `options` points to */
  pthread_t thread;
  pthread_mutex_t lock;
  os_event wake;
  call_slot *table, *free;
  call_slot *outbox, **outbox_last;
  size_t sent;    /* bytes sent of the first frame in outbox */
  strbuf control; /* CANCEL frames: sent between calls */
  size_t bytes;   /* total size of bodies in flight */
  uint64_t next_deadline_ns;
  atomic_bool stopping;
  uint64_t stop_ns; /* end of the grace period */
  supervisor_stats stats;
  /* used by the supervisor's thread only */
  proc_child proc;
  int crash_fd;
  proc_inbox in;
  uint64_t started_ns, died_ns, restart_ns, answered_before;
  unsigned quick_deaths;
  bool hung_up;
  supervisor_call *lost; /* calls of a worker that died; max_calls entries */
  crash_call *lost_names;
};

static void supervisor_log(supervisor_state *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void supervisor_log(supervisor_state *s, const char *format, ...) {
  char line[SUPERVISOR_TEXT_BYTES];
  va_list list;
  if (!s->options.log) return;
  va_start(list, format);
  vsnprintf(line, sizeof line, format, list);
  va_end(list);
  s->options.log(s->options.log_ctx, line);
}

static void supervisor_wake(supervisor_state *s) { os_event_set(s->wake); }

/* ---- Sending (caller holds the lock) ---- */

/* The rest of a frame of which `done` bytes are sent. */
static size_t call_slot_rest(call_slot *e, size_t done, struct iovec *iov) {
  struct iovec parts[3] = {{e->head, sizeof e->head},
                           {e->words.data, e->words.len},
                           {(void *)(uintptr_t)e->call.body.data, e->call.body.len}};
  size_t n = 0;
  for (size_t i = 0; i < 3; i++) {
    if (done >= parts[i].iov_len) {
      done -= parts[i].iov_len;
      continue;
    }
    iov[n++] = (struct iovec){(char *)parts[i].iov_base + done, parts[i].iov_len - done};
    done = 0;
  }
  return n;
}

/* False if the socket takes no more now; a broken socket is detected by the receiver. */
static bool supervisor_send_some(supervisor_state *s, struct iovec *iov, size_t n, size_t *sent) {
  ssize_t got = os_socket_send(s->proc.fd, iov, n, false);
  if (got < 0) return errno == EINTR;
  *sent += (size_t)got;
  return true;
}

static void supervisor_send_outbox(supervisor_state *s) {
  struct iovec iov[3];
  while (s->stats.ready && (s->outbox || s->control.len)) {
    call_slot *e = s->outbox;
    if (s->control.len && s->sent == 0) {
      size_t done = 0;
      iov[0] = (struct iovec){s->control.data, s->control.len};
      if (!supervisor_send_some(s, iov, 1, &done)) return;
      memmove(s->control.data, s->control.data + done, s->control.len - done);
      s->control.len -= done;
      /* a partly sent frame: nothing may be sent in between */
      if (s->control.len % PROC_FRAME_HEAD_BYTES) continue;
    } else {
      if (!supervisor_send_some(s, iov, call_slot_rest(e, s->sent, iov), &s->sent)) return;
      e->state = CALL_SLOT_SENT;
      if (s->sent < sizeof e->head + e->words.len + e->call.body.len) continue;
      s->sent = 0;
      s->outbox = e->next;
      if (!s->outbox) s->outbox_last = &s->outbox;
    }
  }
}

/* ---- Calls ---- */

static call_slot *call_slot_of(supervisor_state *s, uint64_t id) {
  call_slot *e = &s->table[id % s->options.max_calls];
  return e->state != CALL_SLOT_FREE && e->id == id ? e : NULL;
}

static lode_status supervisor_admit(supervisor_state *s, size_t bytes, lode_error *err) {
  if (s->stopping) return err_set(err, LODE_CANCELLED, "stopping: no more calls are taken");
  if (s->free && bytes <= s->options.max_bytes - s->bytes) return LODE_OK;
  s->stats.refused++;
  return err_set(err, LODE_LIMIT,
                 "too many requests at once: %zu calls and %zu bytes are in flight, %zu and %zu are the most; "
                 "try again",
                 s->stats.in_flight, s->bytes, s->options.max_calls, s->options.max_bytes);
}

static lode_status supervisor_put_words(strbuf *out, const supervisor_call *call, lode_error *err) {
  out->len = 0;
  strbuf_add(out, call->name, strlen(call->name) + 1);
  for (size_t i = 0; i < call->n_words; i++) {
    if (memchr(call->words[i].data, '\0', call->words[i].len))
      return err_set(err, LODE_INVALID, "a name may not hold a NUL character");
    strbuf_add(out, call->words[i].data, call->words[i].len);
    strbuf_addch(out, '\0');
  }
  return out->failed ? err_nomem(err) : LODE_OK;
}

static void supervisor_enqueue(supervisor_state *s, call_slot *e) {
  e->state = CALL_SLOT_QUEUED;
  e->next = NULL;
  *s->outbox_last = e;
  s->outbox_last = &e->next;
  s->bytes += e->call.body.len;
  s->stats.in_flight++;
  s->stats.calls++;
}

lode_status supervisor_submit(supervisor_state *s, const supervisor_call *call, uint64_t *id, lode_error *err) {
  uint32_t timeout = call->timeout_ms ? call->timeout_ms : call->flags & WIRE_CALL_LONG ? 0 : s->options.timeout_ms;
  strbuf words = {0};
  lode_status st;
  if (call->n_words >= WIRE_MAX_WORDS) return err_internal(err, "a call with too many words");
  st = supervisor_put_words(&words, call, err);
  pthread_mutex_lock(&s->lock);
  if (st == LODE_OK) st = supervisor_admit(s, call->body.len, err);
  if (st != LODE_OK) {
    pthread_mutex_unlock(&s->lock);
    strbuf_release(&words);
    return st;
  }
  call_slot *e = s->free;
  s->free = e->next;
  e->id += s->options.max_calls;
  e->call = *call;
  e->words = words;
  snprintf(e->name, sizeof e->name, "%s", call->name);
  proc_frame frame = {.type = WIRE_CALL,
                      .words = (uint16_t)(call->n_words + 1),
                      .code = call->flags,
                      .id = e->id,
                      .client = call->client,
                      .bytes = words.len + call->body.len};
  proc_frame_encode(&frame, e->head);
  e->started_ns = os_api->now_ns();
  e->deadline_ns = timeout ? e->started_ns + (uint64_t)timeout * SUPERVISOR_NS_PER_MS : SUPERVISOR_NEVER;
  if (id) *id = e->id;
  supervisor_enqueue(s, e);
  supervisor_send_outbox(s);
  bool awake = s->outbox != NULL || e->deadline_ns < s->next_deadline_ns;
  if (e->deadline_ns < s->next_deadline_ns) s->next_deadline_ns = e->deadline_ns;
  pthread_mutex_unlock(&s->lock);
  if (awake) supervisor_wake(s);
  return LODE_OK;
}

static void supervisor_ask_cancel(supervisor_state *s, uint64_t id) {
  unsigned char head[PROC_FRAME_HEAD_BYTES];
  proc_frame_encode(&(proc_frame){.type = WIRE_CANCEL, .id = id}, head);
  strbuf_add(&s->control, head, sizeof head);
  supervisor_send_outbox(s);
}

/* Caller holds the lock. Removes the call from the outbox. */
static void supervisor_unqueue(supervisor_state *s, call_slot *e) {
  call_slot **at = &s->outbox;
  while (*at != e) at = &(*at)->next;
  *at = e->next;
  if (s->outbox_last == &e->next) s->outbox_last = at;
}

/* Caller holds the lock. Frees the slot and returns its call, for the callback. */
static supervisor_call call_slot_release(supervisor_state *s, call_slot *e) {
  supervisor_call call = e->call;
  if (e->state != CALL_SLOT_ORPHANED) {
    s->bytes -= call.body.len;
    s->stats.in_flight--;
  }
  strbuf_release(&e->words);
  e->state = CALL_SLOT_FREE;
  e->next = s->free;
  s->free = e;
  return call;
}

static void supervisor_finish_call(const supervisor_call *call, supervisor_outcome end, const char *text) {
  supervisor_reply reply = {.end = end, .text = text};
  call->done(call->ctx, &reply);
}

void supervisor_cancel(supervisor_state *s, uint64_t id) {
  supervisor_call call = {0};
  pthread_mutex_lock(&s->lock);
  call_slot *e = call_slot_of(s, id);
  if (e && e->state == CALL_SLOT_SENT) supervisor_ask_cancel(s, id);
  if (e && e->state == CALL_SLOT_QUEUED) {
    supervisor_unqueue(s, e);
    call = call_slot_release(s, e);
  }
  pthread_mutex_unlock(&s->lock);
  supervisor_wake(s);
  if (call.done) supervisor_finish_call(&call, SUPERVISOR_CANCELLED, "cancelled");
}

/* ---- Receiving ---- */

static void supervisor_take_reply(supervisor_state *s, proc_inbox *in) {
  supervisor_call call = {0};
  pthread_mutex_lock(&s->lock);
  call_slot *e = call_slot_of(s, in->frame.id);
  bool wanted = e && e->state == CALL_SLOT_SENT;
  if (e && e->state != CALL_SLOT_QUEUED) call = call_slot_release(s, e);
  s->stats.answered++;
  pthread_mutex_unlock(&s->lock);
  if (!wanted) return;
  supervisor_reply reply = {
      .end = SUPERVISOR_ANSWERED, .code = in->frame.code, .body = in->body.data, .size = in->body.len};
  call.done(call.ctx, &reply);
  if (!reply.body) in->body = (strbuf){0}; /* the callback took it */
}

static void supervisor_take_event(supervisor_state *s, const proc_inbox *in) {
  wire_progress progress;
  supervisor_call call = {0};
  pthread_mutex_lock(&s->lock);
  call_slot *e = call_slot_of(s, in->frame.id);
  if (e && e->state == CALL_SLOT_SENT) call = e->call;
  pthread_mutex_unlock(&s->lock);
  if (in->frame.type == WIRE_ROW) {
    if (call.row) call.row(call.ctx, (lode_str){in->body.data, in->body.len});
  } else if (call.progress && in->body.len >= sizeof progress) {
    memcpy(&progress, in->body.data, sizeof progress);
    call.progress(call.ctx, (lode_str){in->body.data + sizeof progress, in->body.len - sizeof progress}, progress.done,
                  progress.total);
  }
}

static void supervisor_take_ready(supervisor_state *s, const proc_inbox *in) {
  uint64_t now = os_api->now_ns();
  pthread_mutex_lock(&s->lock);
  s->stats.ready = true;
  if (s->died_ns) s->stats.restart_ns = now - s->died_ns;
  supervisor_send_outbox(s);
  pthread_mutex_unlock(&s->lock);
  supervisor_log(s, "worker %d is ready after %llu ms; %s", (int)s->proc.pid,
                 (unsigned long long)((now - s->started_ns) / SUPERVISOR_NS_PER_MS), in->body.data);
}

static void supervisor_take_frame(supervisor_state *s, proc_inbox *in) {
  switch (in->frame.type) {
    case WIRE_DONE: supervisor_take_reply(s, in); break;
    case WIRE_ROW:
    case WIRE_PROGRESS: supervisor_take_event(s, in); break;
    case WIRE_READY: supervisor_take_ready(s, in); break;
    case WIRE_LOG: supervisor_log(s, "%s", in->body.data); break;
    default: break;
  }
  proc_inbox_clear(in);
}

/* Reads what has arrived. False: end of stream, invalid data, or no memory; handled as if the worker had died. */
static bool supervisor_receive(supervisor_state *s) {
  for (;;) {
    bool complete;
    if (proc_inbox_receive(&s->in, s->proc.fd, WIRE_MAX_BODY, &complete, NULL) != LODE_OK) return false;
    if (!complete) return true;
    if (!wire_frame_valid(&s->in.frame)) return false;
    supervisor_take_frame(s, &s->in);
  }
}

/* ---- Worker life cycle ---- */

/* The worker part of a crash report goes to a file without a name. */
static lode_status supervisor_pass_crash_fd(supervisor_state *s, lode_error *err) {
  s->crash_fd = os_nameless_file();
  if (s->crash_fd < 0) return err_errno(err, errno, "a file for crash reports");
  if (os_socket_send_fd(s->proc.fd, s->crash_fd) < 0) return err_errno(err, errno, "sending to a process");
  return LODE_OK;
}

static lode_status supervisor_start_worker(supervisor_state *s, lode_error *err) {
  const char *program = s->options.program ? s->options.program : os_program_again();
  char *argv[WORKER_MAX_ARGS + 1];
  strbuf strings = {0};
  lode_status st;
  TRY_GOTO(worker_build_argv(&s->options.setup, program, &strings, argv, err));
  proc_options options = {.path = program, .argv = (const char *const *)argv, .no_core = true, .no_new_privs = true};
  TRY_GOTO(proc_spawn(&options, &s->proc, err));
  TRY_GOTO(supervisor_pass_crash_fd(s, err));
  s->started_ns = os_api->now_ns();
  s->answered_before = s->stats.answered;
  pthread_mutex_lock(&s->lock);
  s->stats.worker = s->proc.pid;
  pthread_mutex_unlock(&s->lock);
done:
  strbuf_release(&strings);
  return st;
}

/* The delay grows with each worker that died young without answering a call. */
static uint64_t supervisor_backoff_ns(unsigned quick_deaths) {
  static const unsigned ms[] = {0, 0, 20, 100, 500, 2000, 5000};
  size_t last = sizeof ms / sizeof *ms - 1;
  return (uint64_t)ms[quick_deaths < last ? quick_deaths : last] * SUPERVISOR_NS_PER_MS;
}

static void supervisor_try_start(supervisor_state *s) {
  lode_error err = {.record = LODE_NO_RECORD};
  s->restart_ns = SUPERVISOR_NEVER;
  if (supervisor_start_worker(s, &err) == LODE_OK) return;
  proc_kill(&s->proc);
  if (s->crash_fd >= 0) close(s->crash_fd);
  s->crash_fd = -1;
  s->quick_deaths++;
  s->restart_ns = os_api->now_ns() + supervisor_backoff_ns(s->quick_deaths + 2);
  supervisor_log(s, "the worker cannot be started: %s", err.text);
}

/* Removes the calls that the dead worker had received from the table. The others wait for the next worker, unless
 * workers keep dying. */
static size_t supervisor_collect_lost(supervisor_state *s, supervisor_call *calls, crash_call *names) {
  uint64_t now = os_api->now_ns();
  size_t n = 0;
  pthread_mutex_lock(&s->lock);
  if (s->sent) { /* partly sent */
    call_slot *e = s->outbox;
    s->outbox = e->next;
    if (!s->outbox) s->outbox_last = &s->outbox;
  }
  s->sent = 0;
  s->control.len = 0;
  for (size_t i = 0; i < s->options.max_calls; i++) {
    call_slot *e = &s->table[i];
    bool lost = e->state == CALL_SLOT_SENT || (e->state == CALL_SLOT_QUEUED && s->quick_deaths >= 3);
    if (e->state == CALL_SLOT_ORPHANED) (void)call_slot_release(s, e);
    if (!lost) continue;
    if (e->state == CALL_SLOT_QUEUED) supervisor_unqueue(s, e);
    memcpy(names[n].name, e->name, sizeof e->name);
    names[n].ms = (now - e->started_ns) / SUPERVISOR_NS_PER_MS;
    calls[n++] = call_slot_release(s, e);
  }
  s->stats.died += n;
  s->stats.restarts++;
  pthread_mutex_unlock(&s->lock);
  return n;
}

static void supervisor_write_report(supervisor_state *s, crash_facts *facts, char *text, size_t size) {
  strbuf path = {0};
  lode_error err = {.record = LODE_NO_RECORD};
  char how[64];
  crash_describe_end(&facts->end, how, sizeof how);
  facts->folder = s->crashes.data;
  facts->store = s->store.data;
  bool written = crash_write_report(facts, &path, &err) == LODE_OK;
  snprintf(text, size,
           "the worker process died (%s) while it ran this request; the request is not tried again, and a write may or "
           "may not have been done; crash report: %.300s",
           how, written ? path.data : err.text);
  supervisor_log(s, "worker %d died (%s) with %zu calls in flight; crash report: %.300s", (int)facts->pid, how,
                 facts->n_calls, written ? path.data : err.text);
  strbuf_release(&path);
}

static void supervisor_bury_worker(supervisor_state *s) {
  crash_facts facts = {.pid = s->proc.pid,
                       .fd = s->crash_fd,
                       .lived_ms = (os_api->now_ns() - s->started_ns) / SUPERVISOR_NS_PER_MS,
                       .answered = s->stats.answered - s->answered_before};
  char text[SUPERVISOR_TEXT_BYTES] = "the worker process died";
  pthread_mutex_lock(&s->lock);
  s->stats.ready = false; /* stops sending */
  s->stats.worker = 0;
  pthread_mutex_unlock(&s->lock);
  facts.end = proc_kill(&s->proc); /* its stream has ended: kills it to make sure, and reaps it */
  s->died_ns = os_api->now_ns();
  s->quick_deaths = facts.answered == 0 && facts.lived_ms < 1000 ? s->quick_deaths + 1 : 0;
  s->crash_fd = -1;
  proc_inbox_clear(&s->in);
  facts.n_calls = supervisor_collect_lost(s, s->lost, s->lost_names);
  facts.calls = s->lost_names;
  s->restart_ns = s->died_ns + supervisor_backoff_ns(s->quick_deaths);
  if (!s->stopping && s->restart_ns == s->died_ns) supervisor_try_start(s); /* starts while the report is written */
  supervisor_write_report(s, &facts, text, sizeof text);
  for (size_t i = 0; i < facts.n_calls; i++) supervisor_finish_call(&s->lost[i], SUPERVISOR_WORKER_DIED, text);
  close(facts.fd);
}

/* ---- Timeouts ---- */

/* Finds one call that timed out, and orphans or releases it. *stuck: the worker does not even react to
 * cancellations. */
static bool supervisor_next_expired(supervisor_state *s, uint64_t now, supervisor_call *call, bool *stuck) {
  bool found = false;
  pthread_mutex_lock(&s->lock);
  s->next_deadline_ns = SUPERVISOR_NEVER;
  for (size_t i = 0; i < s->options.max_calls && !found; i++) {
    call_slot *e = &s->table[i];
    if (e->state == CALL_SLOT_FREE) continue;
    if (e->deadline_ns > now) {
      if (e->deadline_ns < s->next_deadline_ns) s->next_deadline_ns = e->deadline_ns;
      continue;
    }
    if (e->state == CALL_SLOT_ORPHANED || (e == s->outbox && s->sent)) {
      *stuck = true;
      e->deadline_ns = SUPERVISOR_NEVER;
    } else if (e->state == CALL_SLOT_QUEUED) {
      supervisor_unqueue(s, e);
      *call = call_slot_release(s, e);
      found = true;
    } else {
      *call = e->call;
      s->bytes -= e->call.body.len;
      s->stats.in_flight--;
      e->state = CALL_SLOT_ORPHANED;
      e->deadline_ns = now + (uint64_t)s->options.stuck_ms * SUPERVISOR_NS_PER_MS;
      supervisor_ask_cancel(s, e->id);
      found = true;
    }
  }
  s->stats.expired += found;
  if (found) s->next_deadline_ns = now; /* look again */
  pthread_mutex_unlock(&s->lock);
  return found;
}

static void supervisor_expire_calls(supervisor_state *s, uint64_t now) {
  supervisor_call call;
  bool stuck = false;
  if (s->proc.fd < 0 && now >= s->restart_ns && !s->stopping) supervisor_try_start(s);
  pthread_mutex_lock(&s->lock);
  bool due = now >= s->next_deadline_ns;
  pthread_mutex_unlock(&s->lock);
  if (!due) return;
  while (supervisor_next_expired(s, now, &call, &stuck))
    supervisor_finish_call(&call, SUPERVISOR_TIMED_OUT, "it took longer than a request may; it was cancelled");
  if (!stuck || s->proc.pid == 0) return;
  supervisor_log(s, "worker %d is stuck: ended", (int)s->proc.pid);
  kill(s->proc.pid, SIGABRT); /* its handler reports where; then its stream ends */
}

static int supervisor_wait_ms(supervisor_state *s, uint64_t now) {
  uint64_t until = s->next_deadline_ns;
  if (s->proc.fd < 0 && s->restart_ns < until) until = s->restart_ns;
  if (s->stopping && s->stop_ns < until) until = s->stop_ns;
  if (until == SUPERVISOR_NEVER) return -1;
  return until <= now                                      ? 0
         : until - now > 3600000ull * SUPERVISOR_NS_PER_MS ? 3600000
                                                           : (int)((until - now) / SUPERVISOR_NS_PER_MS) + 1;
}

/* ---- The thread ---- */

static bool supervisor_is_idle(supervisor_state *s) {
  pthread_mutex_lock(&s->lock);
  bool nothing = s->stats.in_flight == 0;
  pthread_mutex_unlock(&s->lock);
  return nothing;
}

/* True if there is nothing left to do. */
static bool supervisor_wind_down(supervisor_state *s, uint64_t now) {
  bool stopping = s->stopping, late = stopping && now >= s->stop_ns;
  if (!stopping) return false;
  if (s->proc.fd < 0 || late) return true; /* no other worker is started, so queued calls would wait for nothing */
  if (!supervisor_is_idle(s)) return false;
  /* the worker finishes its calls, closes the store and exits */
  if (!s->hung_up) os_socket_shut(s->proc.fd, false);
  s->hung_up = true;
  return false;
}

static void *supervisor_thread(void *ctx) {
  supervisor_state *s = ctx;
  supervisor_try_start(s);
  for (;;) {
    uint64_t now = os_api->now_ns();
    supervisor_expire_calls(s, now);
    if (supervisor_wind_down(s, now)) break;
    pthread_mutex_lock(&s->lock);
    struct pollfd fds[2] = {
        {.fd = s->wake.in, .events = POLLIN},
        {.fd = s->proc.fd,
         .events = (short)(POLLIN | (s->stats.ready && (s->outbox || s->control.len) ? POLLOUT : 0))}};
    int wait = supervisor_wait_ms(s, now);
    pthread_mutex_unlock(&s->lock);
    if (os_poll(fds, 2, wait) < 0) continue;
    if (fds[0].revents) os_event_clear(s->wake);
    if (fds[1].revents & POLLOUT) {
      pthread_mutex_lock(&s->lock);
      supervisor_send_outbox(s);
      pthread_mutex_unlock(&s->lock);
    }
    if (fds[1].revents && !supervisor_receive(s)) {
      if (s->hung_up && supervisor_is_idle(s)) break;
      supervisor_bury_worker(s);
    }
  }
  return NULL;
}

/* ---- Start and stop ---- */

void supervisor_put_crash_folder(const worker_options *setup, strbuf *folder) {
  const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
  bool elsewhere = setup->read_only || op_is_address(setup->store);
  if (!elsewhere)
    strbuf_addstr(folder, setup->store);
  else if (state && state[0] == '/')
    strbuf_addf(folder, "%s/lode", state);
  else
    strbuf_addf(folder, "%s/.local/state/lode", home ? home : "/tmp");
  strbuf_addf(folder, "/crashes/%c", 0);
  if (folder->failed) return;
  if (elsewhere) (void)!files_make_parents(folder->data, NULL); /* without it there are no reports */
  folder->data[strlen(folder->data) - 1] = 0;
}

static lode_status supervisor_copy_strings(supervisor_state *s, const supervisor_options *o, lode_error *err) {
  strbuf_addf(&s->store, "%s%c", o->setup.store, 0);
  supervisor_put_crash_folder(&o->setup, &s->crashes);
  if (s->store.failed || s->crashes.failed) return err_nomem(err);
  s->options.setup.store = s->store.data;
  return LODE_OK;
}

static void supervisor_destroy(supervisor_state *s) {
  proc_kill(&s->proc);
  if (s->crash_fd >= 0) close(s->crash_fd);
  os_event_close(&s->wake);
  proc_inbox_clear(&s->in);
  strbuf_release(&s->control);
  strbuf_release(&s->store);
  strbuf_release(&s->crashes);
  pthread_mutex_destroy(&s->lock);
  mem_free(s->table);
  mem_free(s->lost);
  mem_free(s->lost_names);
  mem_free(s);
}

lode_status supervisor_start(const supervisor_options *options, supervisor_state **out, lode_error *err) {
  supervisor_state *s = mem_calloc(1, sizeof *s);
  lode_status st;
  *out = NULL;
  if (!s) return err_nomem(err);
  s->options = *options;
  s->proc = PROC_NONE;
  s->crash_fd = -1;
  s->next_deadline_ns = s->restart_ns = SUPERVISOR_NEVER;
  s->outbox_last = &s->outbox;
  if (!s->options.max_calls) s->options.max_calls = 2048;
  if (!s->options.max_bytes) s->options.max_bytes = (size_t)1 << 30;
  if (!s->options.timeout_ms) s->options.timeout_ms = 60000;
  if (!s->options.stuck_ms) s->options.stuck_ms = 30000;
  pthread_mutex_init(&s->lock, NULL);
  if (os_event_open(&s->wake) < 0) TRY_GOTO(err_errno(err, errno, "opening an event"));
  TRY_GOTO(supervisor_copy_strings(s, options, err));
  s->table = mem_calloc(s->options.max_calls, sizeof *s->table);
  s->lost = mem_calloc(s->options.max_calls, sizeof *s->lost);
  s->lost_names = mem_calloc(s->options.max_calls, sizeof *s->lost_names);
  if (!s->table || !s->lost || !s->lost_names) TRY_GOTO(err_nomem(err));
  for (size_t i = s->options.max_calls; i-- > 0;) {
    s->table[i].id = i;
    s->table[i].next = s->free;
    s->free = &s->table[i];
  }
  int errnum = pthread_create(&s->thread, NULL, supervisor_thread, s);
  if (errnum) TRY_GOTO(err_errno(err, errnum, "pthread_create"));
  *out = s;
done:
  if (st != LODE_OK) supervisor_destroy(s);
  return st;
}

void supervisor_stop(supervisor_state *s, uint32_t grace_ms) {
  if (!s) return;
  pthread_mutex_lock(&s->lock);
  s->stop_ns = os_api->now_ns() + (uint64_t)grace_ms * SUPERVISOR_NS_PER_MS;
  s->stopping = true;
  pthread_mutex_unlock(&s->lock);
  supervisor_wake(s);
  pthread_join(s->thread, NULL);
  for (size_t i = 0; i < s->options.max_calls; i++) {
    if (s->table[i].state == CALL_SLOT_FREE || s->table[i].state == CALL_SLOT_ORPHANED) continue;
    supervisor_call call = call_slot_release(s, &s->table[i]);
    supervisor_finish_call(&call, SUPERVISOR_STOPPING, "the server is stopping");
  }
  if (s->hung_up && s->proc.fd >= 0) (void)proc_close(&s->proc, 2000);
  supervisor_destroy(s);
}

void supervisor_get_stats(supervisor_state *s, supervisor_stats *stats) {
  pthread_mutex_lock(&s->lock);
  *stats = s->stats;
  pthread_mutex_unlock(&s->lock);
}
