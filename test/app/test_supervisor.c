/* SPDX-License-Identifier: Apache-2.0 */
/* test_supervisor.c - a worker that dies in every way, and a face that never notices more than an error.
 *
 * This program is its own worker: started with WORKER_ARG it serves "test." calls that crash, hang, sleep, count and
 * echo, and the operations of the table beside them. */
#include "os/os.h"
#include "worker/crash.h"
#include "worker/supervisor.h"
#include "support/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static lode_error err;

/* ---- The worker ---- */

static volatile int zero;
/* Each level holds on to the one above, so that it cannot become a loop. */
static int overflow(const volatile char *above) {
  volatile char page[4096];
  page[0] = above ? above[0] : 1;
  return zero ? page[0] : page[0] + overflow(page);
}

static void serve_test(worker_task *task) {
  const char *what = task->name + strlen("test.");
  task->code = LODE_OK;
  if (strcmp(what, "segv") == 0)
    *(volatile int *)(uintptr_t)(16 + (unsigned)zero) = 1;
  else if (strcmp(what, "bus") == 0)
    raise(SIGBUS);
  else if (strcmp(what, "abort") == 0)
    abort();
  else if (strcmp(what, "kill") == 0)
    raise(SIGKILL);
  else if (strcmp(what, "exit") == 0)
    _exit(3);
  else if (strcmp(what, "stack") == 0)
    task->code = (unsigned)overflow(NULL);
  else if (strcmp(what, "sleep") == 0) {
    for (int i = 0; i < 30000 && !worker_task_cancelled(task); i++) os_api->sleep_us(1000);
    task->code = worker_task_cancelled(task) ? LODE_CANCELLED : LODE_OK;
  } else if (strcmp(what, "deaf") == 0) {
    for (;;) os_api->sleep_us(100000);
  } else if (strcmp(what, "rows") == 0) {
    for (uint64_t i = 0; i < 100; i++) {
      char row[32];
      int n = snprintf(row, sizeof row, "{\"n\":%d}", (int)i);
      if (worker_task_send_row(task, (lode_str){row, (size_t)n}, NULL) != LODE_OK) break;
      worker_task_progress(task, "counting", i + 1, 100);
    }
  } else if (strcmp(what, "large") == 0 ||
             strcmp(what, "hold") == 0) { /* says that it runs, and goes on until it is cancelled */
    if (strcmp(what, "large") == 0 && worker_task_defer(task, WORKER_LARGE_READ_ROWS + 1)) return;
    if (worker_task_send_row(task, STR_LIT("{\"runs\":1}"), NULL) != LODE_OK) {
      task->code = LODE_CANCELLED;
      return;
    }
    for (int i = 0; i < 30000 && !worker_task_cancelled(task); i++) os_api->sleep_us(1000);
    task->code = worker_task_cancelled(task) ? LODE_CANCELLED : LODE_OK;
  } else { /* echo */
    for (size_t i = 0; i < task->n_words; i++) {
      strbuf_add(&task->out, task->words[i].data, task->words[i].len);
      strbuf_addch(&task->out, '|');
    }
    strbuf_add(&task->out, task->body.data, task->body.len);
  }
}

static const worker_service services[] = {{"test.", serve_test}, {"", worker_op_service}, {0}};

__attribute__((constructor)) static void maybe_worker(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], WORKER_ARG) == 0) exit(worker_main(argc, argv, services));
}

/* ---- The face ---- */

typedef struct asked {
  pthread_mutex_t lock;
  pthread_cond_t wake;
  bool done;
  supervisor_outcome end;
  unsigned code;
  char *body, text[700];
  size_t size, steps;
  atomic_size_t rows;
  uint64_t total;
  size_t place; /* among those that were answered, from 1 */
} asked;
static atomic_size_t answers;
static uint64_t client; /* of the calls that are begun */

static void on_row(void *ctx, lode_str row) {
  asked *a = ctx;
  CHECK(row.len > 4 && row.data[0] == '{');
  a->rows++;
}

static void on_progress(void *ctx, lode_str phase, uint64_t done, uint64_t total) {
  asked *a = ctx;
  CHECK(str_eq(phase, STR_LIT("counting")) && done == a->steps + 1);
  a->steps++;
  a->total = total;
}

static void on_done(void *ctx, supervisor_reply *answer) {
  asked *a = ctx;
  pthread_mutex_lock(&a->lock);
  CHECK(!a->done);
  a->done = true;
  a->place = atomic_fetch_add(&answers, 1) + 1;
  a->end = answer->end;
  a->code = answer->code;
  a->body = answer->body;
  a->size = answer->size;
  answer->body = NULL;
  if (answer->text) snprintf(a->text, sizeof a->text, "%s", answer->text);
  pthread_cond_signal(&a->wake);
  pthread_mutex_unlock(&a->lock);
}

static void begin(supervisor_state *s, asked *a, const char *name, lode_str body, unsigned flags, uint32_t timeout_ms,
                  uint64_t *id) {
  static const lode_str words[] = {{"one", 3}, {"", 0}, {"three", 5}};
  *a = (asked){.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};
  supervisor_call call = {.name = name,
                          .words = words,
                          .n_words = strncmp(name, "test.", 5) == 0 ? 3 : 0,
                          .body = body,
                          .flags = flags,
                          .timeout_ms = timeout_ms,
                          .client = client,
                          .row = on_row,
                          .progress = on_progress,
                          .done = on_done,
                          .ctx = a};
  OK(supervisor_submit(s, &call, id, &err));
}

static void await(asked *a) {
  pthread_mutex_lock(&a->lock);
  while (!a->done) pthread_cond_wait(&a->wake, &a->lock);
  pthread_mutex_unlock(&a->lock);
}

static void ask(supervisor_state *s, asked *a, const char *name, const char *body) {
  begin(s, a, name, str_of(body), 0, 0, NULL);
  await(a);
}

static void check_echo(supervisor_state *s) {
  asked a;
  ask(s, &a, "test.echo", "hello");
  CHECKF(a.end == SUPERVISOR_ANSWERED && a.size == 16 && memcmp(a.body, "one||three|hello", 16) == 0, "%d %.*s %s",
         (int)a.end, (int)a.size, a.body ? a.body : "", a.text);
  mem_free(a.body);
}

static void log_line(void *ctx, const char *line) {
  (void)ctx;
  if (getenv("LODE_TEST_LOG")) fprintf(stderr, "%s\n", line);
}

static supervisor_state *start(const char *store, const supervisor_options *more) {
  supervisor_options o = more ? *more : (supervisor_options){0};
  supervisor_state *s;
  o.setup.store = store;
  o.setup.create = true;
  o.log = log_line;
  OK(supervisor_start(&o, &s, &err));
  return s;
}

/* ---- Tests ---- */

TEST(a_call_is_answered_with_what_the_worker_said) {
  supervisor_state *s = start(test_folder(), NULL);
  for (int i = 0; i < 100; i++) check_echo(s);
  supervisor_stop(s, 1000);
}

TEST(operations_of_the_table_run_in_the_worker) {
  supervisor_state *s = start(test_folder(), NULL);
  asked a;
  ask(s, &a, "db.add", "{\"collection\":\"c\",\"create\":true,\"records\":[{\"id\":\"a\",\"embedding\":[1,2]}]}");
  CHECKF(a.code == LODE_OK && strstr(a.body, "\"written\":1"), "%s", a.body);
  mem_free(a.body);
  ask(s, &a, "db.query", "{\"collection\":\"c\",\"vector\":[1,2],\"include\":[]}");
  CHECKF(strcmp(a.body, "{\"rows\":[{\"query\":0,\"rank\":1,\"id\":\"a\",\"distance\":0.0}],\"summary\":null}") == 0,
         "%s", a.body);
  mem_free(a.body);
  ask(s, &a, "db.query", "{\"collection\":\"none\",\"vector\":[1,2]}");
  CHECKF(a.code == LODE_NOT_FOUND && strstr(a.body, "{\"error\":{\"status\":\"NOT_FOUND\""), "%s", a.body);
  mem_free(a.body);
  ask(s, &a, "db.nonsense", "");
  CHECK(a.code == LODE_NOT_FOUND);
  mem_free(a.body);
  supervisor_stop(s, 1000);
}

TEST(rows_and_progress_arrive_in_order_before_the_answer) {
  supervisor_state *s = start(test_folder(), NULL);
  asked a;
  begin(s, &a, "test.rows", (lode_str){0}, WIRE_CALL_ROWS | WIRE_CALL_PROGRESS, 0, NULL);
  await(&a);
  CHECK(a.rows == 100 && a.steps == 100 && a.total == 100);
  mem_free(a.body);
  supervisor_stop(s, 1000);
}

/* The report that an answer's text names. */
static void check_report(const char *text, const char *how, const char *operation, const char *trace) {
  const char *path = strstr(text, "crash report: ");
  CHECKF(path, "%s", text);
  size_t len;
  char *report = test_read_file(path + strlen("crash report: "), &len);
  CHECKF(strstr(report, how), "%s", report);
  CHECKF(strstr(report, operation), "%s", report);
  CHECKF(!trace || strstr(report, trace), "%s", report);
  CHECKF(!strstr(report, "secret"), "%s", report);
  free(report);
}

TEST(whatever_kills_the_worker_the_call_says_so_and_the_next_is_answered) {
  static const struct {
    const char *name, *how, *trace;
  } ways[] = {{"test.segv", "SIGSEGV", "backtrace"},
              {"test.bus", "SIGBUS", "backtrace"},
              {"test.abort", "SIGABRT", "backtrace"},
              {"test.stack", "SIGSEGV", "backtrace"},
              {"test.kill", "SIGKILL", "nothing: the process"},
              {"test.exit", "exit status 3", NULL}};
  supervisor_state *s = start(test_folder(), NULL);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    asked a;
    ask(s, &a, ways[i].name, "secret");
    CHECKF(a.end == SUPERVISOR_WORKER_DIED && strstr(a.text, ways[i].how), "%s: %s", ways[i].name, a.text);
    check_report(a.text, ways[i].how, ways[i].name, ways[i].trace);
    check_echo(s);
  }
  supervisor_stats f;
  supervisor_get_stats(s, &f);
  CHECK(f.restarts == 6 && f.died == 6 && f.in_flight == 0 && f.ready);
  supervisor_stop(s, 1000);
}

TEST(every_call_in_flight_is_told_once) {
  enum { N = 50 };
  supervisor_state *s = start(test_folder(), NULL);
  static asked a[N], killer;
  check_echo(s);
  for (int i = 0; i < N; i++) begin(s, &a[i], "test.sleep", (lode_str){0}, i % 2 ? WIRE_CALL_LONG : 0, 0, NULL);
  supervisor_stats f;
  supervisor_get_stats(s, &f);
  CHECK(f.in_flight == N);
  kill(f.worker, SIGKILL);
  for (int i = 0; i < N; i++) {
    await(&a[i]);
    CHECK(a[i].end == SUPERVISOR_WORKER_DIED);
  }
  begin(s, &killer, "test.echo", (lode_str){0}, 0, 0, NULL);
  await(&killer);
  CHECK(killer.end == SUPERVISOR_ANSWERED);
  mem_free(killer.body);
  supervisor_stop(s, 1000);
}

TEST(cancelling_and_expiring_end_a_call_and_nothing_else) {
  supervisor_state *s = start(test_folder(), NULL);
  asked a, b;
  uint64_t id;
  check_echo(s);
  begin(s, &a, "test.sleep", (lode_str){0}, 0, 0, &id);
  supervisor_cancel(s, id);
  await(&a);
  CHECK(a.end == SUPERVISOR_ANSWERED && a.code == LODE_CANCELLED);
  mem_free(a.body);
  supervisor_cancel(s, id);
  supervisor_cancel(s, id + 1);
  begin(s, &b, "test.sleep", (lode_str){0}, 0, 50, NULL);
  await(&b);
  CHECK(b.end == SUPERVISOR_TIMED_OUT);
  check_echo(s);
  supervisor_stats f;
  supervisor_get_stats(s, &f);
  CHECK(f.restarts == 0 && f.expired == 1 && f.in_flight == 0);
  supervisor_stop(s, 1000);
}

TEST(long_calls_do_not_hold_up_short_ones) {
  enum { N = 80 };
  supervisor_state *s = start(test_folder(), NULL);
  static asked a[N];
  static uint64_t id[N];
  for (int i = 0; i < N; i++) begin(s, &a[i], "test.sleep", (lode_str){0}, WIRE_CALL_LONG, 0, &id[i]);
  check_echo(s);
  for (int i = 0; i < N; i++) supervisor_cancel(s, id[i]);
  for (int i = 0; i < N; i++) {
    await(&a[i]);
    mem_free(a[i].body);
  }
  supervisor_stop(s, 1000);
}

static void await_running(asked *a) {
  while (atomic_load(&a->rows) == 0) os_api->sleep_us(1000);
}

static void let_go(supervisor_state *s, asked *a, const uint64_t *ids, size_t n) {
  for (size_t i = 0; i < n; i++) supervisor_cancel(s, ids[i]);
  for (size_t i = 0; i < n; i++) {
    await(&a[i]);
    CHECKF(a[i].end == SUPERVISOR_ANSWERED && a[i].code == LODE_CANCELLED, "%zu: %d %u", i, (int)a[i].end, a[i].code);
    mem_free(a[i].body);
  }
}

/* One client has queued many calls when another comes with one: it is among the next that are answered, not the last.
 */
TEST(clients_take_turns) {
  enum { THREADS = 4, MANY = 100 };
  supervisor_options o = {.setup.threads = THREADS};
  supervisor_state *s = start(test_folder(), &o);
  asked held[THREADS], many[MANY], one;
  uint64_t ids[THREADS];
  for (client = 0; client < THREADS; client++) {
    begin(s, &held[client], "test.hold", (lode_str){0}, WIRE_CALL_ROWS, 0, &ids[client]);
    await_running(&held[client]);
  }
  client = 77;
  for (int i = 0; i < MANY; i++) begin(s, &many[i], "test.echo", (lode_str){0}, 0, 0, NULL);
  client = 78;
  begin(s, &one, "test.echo", (lode_str){0}, 0, 0, NULL);
  size_t before = atomic_load(&answers);
  let_go(s, held, ids,
         1); /* one thread for all, so that the order is that of the queue: what was held, one of many, the one */
  await(&one);
  CHECKF(one.place - before == 3, "answered as number %zu", one.place - before);
  mem_free(one.body);
  for (int i = 0; i < MANY; i++) {
    await(&many[i]);
    CHECK(many[i].end == SUPERVISOR_ANSWERED);
    mem_free(many[i].body);
  }
  let_go(s, held + 1, ids + 1, THREADS - 1);
  client = 0;
  supervisor_stop(s, 1000);
}

/* However many large reads are queued, short calls of the same client find a thread; the reads wait, and are then
 * answered whole. */
TEST(large_reads_do_not_hold_up_short_ones) {
  enum { THREADS = 4, LARGE = 12, RECORDS = WORKER_LARGE_READ_ROWS + 200 };
  supervisor_options o = {.setup.threads = THREADS};
  supervisor_state *s = start(test_folder(), &o);
  asked large[LARGE], get, query, flagged;
  uint64_t ids[LARGE];
  strbuf body = {0};
  strbuf_addstr(&body, "{\"collection\":\"c\",\"create\":true,\"records\":[");
  for (int i = 0; i < RECORDS; i++) strbuf_addf(&body, "%s{\"id\":\"r%04d\",\"embedding\":[%d,1]}", i ? "," : "", i, i);
  strbuf_addf(&body, "]}%c", 0);
  ask(s, &get, "db.add", body.data);
  CHECKF(get.code == LODE_OK, "%s", get.body);
  mem_free(get.body);
  strbuf_release(&body);
  for (int i = 0; i < LARGE; i++) {
    begin(s, &large[i], "test.large", (lode_str){0}, WIRE_CALL_ROWS, 0, &ids[i]);
    if (i == 0) await_running(&large[0]);
  }
  begin(s, &get, "db.get", STR_LIT("{\"collection\":\"c\",\"limit\":0,\"include\":[]}"), 0, 0, NULL);
  begin(s, &query, "db.query", STR_LIT("{\"collection\":\"c\",\"vector\":[1,1],\"k\":1200,\"include\":[]}"), 0, 0,
        NULL);
  begin(s, &flagged, "test.echo", STR_LIT("x"), WIRE_CALL_LARGE, 0, NULL);
  for (int i = 0; i < 20; i++) check_echo(s);
  CHECK(!get.done && !query.done && !flagged.done); /* the place of large reads is taken until it is let go */
  let_go(s, large, ids, LARGE);
  await(&get);
  CHECKF(get.code == LODE_OK && strstr(get.body, "\"r0000\"") && strstr(get.body, "\"r1199\"") &&
             strncmp(get.body, "{\"rows\":[{\"id\"", 14) == 0,
         "%.200s", get.body);
  await(&query);
  CHECKF(query.code == LODE_OK && strstr(query.body, "\"rank\":1200"), "%.200s", query.body);
  await(&flagged);
  CHECK(flagged.end == SUPERVISOR_ANSWERED);
  mem_free(get.body);
  mem_free(query.body);
  mem_free(flagged.body);
  supervisor_stop(s, 1000);
}

TEST(too_many_calls_are_refused_and_stopping_ends_all) {
  supervisor_options o = {.max_calls = 4, .max_bytes = 1000};
  supervisor_state *s = start(test_folder(), &o);
  static asked a[4];
  char big[600] = {0};
  supervisor_call fifth = {.name = "test.echo", .done = on_done};
  begin(s, &a[0], "test.sleep", (lode_str){big, sizeof big}, 0, 0, NULL);
  fifth.body = (lode_str){big, sizeof big};
  FAILS(LODE_LIMIT, supervisor_submit(s, &fifth, NULL, &err));
  fifth.body.len = 0;
  for (int i = 1; i < 4; i++) begin(s, &a[i], "test.sleep", (lode_str){0}, 0, 0, NULL);
  FAILS(LODE_LIMIT, supervisor_submit(s, &fifth, NULL, &err));
  lode_str nul = {"a\0b", 3};
  fifth.words = &nul;
  fifth.n_words = 1;
  FAILS(LODE_INVALID, supervisor_submit(s, &fifth, NULL, &err));
  supervisor_stop(s, 50);
  for (int i = 0; i < 4; i++) CHECK(a[i].done && a[i].end == SUPERVISOR_STOPPING);
}

TEST(a_large_body_goes_through_in_both_directions) {
  enum { SIZE = 20 << 20 };
  supervisor_state *s = start(test_folder(), NULL);
  char *body = malloc(SIZE);
  asked a, b;
  for (size_t i = 0; i < SIZE; i++) body[i] = (char)(i * 31 >> 3);
  begin(s, &a, "test.echo", (lode_str){body, SIZE}, 0, 0, NULL);
  begin(s, &b, "test.echo", (lode_str){body, 3}, 0, 0, NULL);
  await(&b);
  await(&a);
  CHECK(a.size == SIZE + 11 && memcmp(a.body + 11, body, SIZE) == 0);
  mem_free(a.body);
  mem_free(b.body);
  free(body);
  supervisor_stop(s, 1000);
}

TEST(a_worker_that_cannot_start_fails_its_calls_soon) {
  supervisor_options o = {.program = "/bin/false"};
  supervisor_state *s = start(test_folder(), &o);
  asked a;
  ask(s, &a, "test.echo", "");
  CHECK(a.end == SUPERVISOR_WORKER_DIED);
  supervisor_stop(s, 100);
}

TEST(stopping_does_not_wait_for_a_dead_worker) {
  supervisor_options o = {.program = "/bin/false"};
  supervisor_state *s = start(test_folder(), &o);
  asked a;
  for (int i = 0; i < 3; i++) ask(s, &a, "test.echo", ""); /* the next worker starts in a second or more */
  begin(s, &a, "test.echo", (lode_str){0}, 0, 0, NULL);
  uint64_t before = os_api->now_ns();
  supervisor_stop(s, 60000);
  CHECK(a.done && a.end == SUPERVISOR_STOPPING);
  CHECKF(os_api->now_ns() - before < 30000000000u, "a call that no worker will answer delays the end");
}

TEST(a_worker_that_hears_nothing_is_ended_and_replaced) {
  supervisor_options o = {.stuck_ms = 50};
  supervisor_state *s = start(test_folder(), &o);
  supervisor_stats f;
  asked a;
  check_echo(s);
  begin(s, &a, "test.deaf", (lode_str){0}, 0, 20, NULL);
  await(&a);
  CHECK(a.end == SUPERVISOR_TIMED_OUT);
  do {
    os_api->sleep_us(1000);
    supervisor_get_stats(s, &f);
  } while (f.restarts == 0);
  check_echo(s);
  supervisor_stop(s, 1000);
}

TEST(reports_do_not_pile_up) {
  const char *folder = test_folder();
  supervisor_state *s = start(folder, NULL);
  char path[500];
  size_t n = 0;
  for (int i = 0; i < CRASH_MAX_REPORTS + 5; i++) {
    asked a;
    check_echo(s);
    ask(s, &a, "test.exit", "");
  }
  supervisor_stop(s, 1000);
  snprintf(path, sizeof path, "%s/crashes", folder);
  os_dir *list = os_dir_open(path);
  while (os_dir_next(list)) n++;
  os_dir_close(list);
  CHECKF(n == CRASH_MAX_REPORTS, "%zu", n);
}

/* ---- Two hundred deaths under load ---- */

typedef struct load {
  supervisor_state *supervisor;
  int number;
  atomic_bool *stop;
  atomic_int acknowledged; /* records 0 .. this - 1 were acknowledged */
  atomic_int answered, died;
} load;

static void *make_load(void *ctx) {
  load *l = ctx;
  while (!atomic_load(l->stop)) {
    char body[200];
    asked a;
    snprintf(body, sizeof body,
             "{\"collection\":\"c\",\"create\":true,\"records\":[{\"id\":\"%d-%d\",\"embedding\":[%d,%d]}]}", l->number,
             atomic_load(&l->acknowledged), l->number, atomic_load(&l->acknowledged));
    ask(l->supervisor, &a, "db.upsert", body);
    if (a.end == SUPERVISOR_WORKER_DIED)
      atomic_fetch_add(&l->died, 1);
    else
      CHECKF(a.end == SUPERVISOR_ANSWERED && a.code == LODE_OK, "%d %s %s", (int)a.end, a.text, a.body ? a.body : "");
    if (a.end == SUPERVISOR_ANSWERED) {
      atomic_fetch_add(&l->acknowledged, 1);
      atomic_fetch_add(&l->answered, 1);
    }
    mem_free(a.body);
  }
  return NULL;
}

TEST_SLOW(two_hundred_deaths_under_load_lose_nothing_that_was_acknowledged, 300) {
  enum { THREADS = 4 };
  static const int signals[] = {SIGKILL, SIGSEGV, SIGBUS};
  int deaths = test_full() ? 200 : 40;
  supervisor_state *s = start(test_folder(), NULL);
  pthread_t threads[THREADS];
  static load loads[THREADS];
  atomic_bool stop = false;
  supervisor_stats f;
  test_srand(test_seed());
  for (int i = 0; i < THREADS; i++) {
    loads[i] = (load){.supervisor = s, .number = i, .stop = &stop};
    CHECK(pthread_create(&threads[i], NULL, make_load, &loads[i]) == 0);
  }
  for (int i = 0; i < deaths; i++) {
    /* most of them while it works, some while it starts */
    bool early = test_below(8) == 0;
    do {
      os_api->sleep_us(test_below(3000));
      supervisor_get_stats(s, &f);
    } while (!(early ? f.worker != 0 : f.ready && test_below(4) == 0));
    kill(f.worker, signals[test_below(3)]);
  }
  atomic_store(&stop, true);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  /* every acknowledged record is there, with its own vector */
  for (int i = 0; i < THREADS; i++) {
    for (int n = 0; n < atomic_load(&loads[i].acknowledged); n++) {
      char body[200], want[100];
      asked a;
      snprintf(body, sizeof body, "{\"collection\":\"c\",\"ids\":[\"%d-%d\"],\"include\":[\"embedding\"]}", i, n);
      snprintf(want, sizeof want, "\"embedding\":[%d.0,%d.0]", i, n);
      ask(s, &a, "db.get", body);
      if (a.end == SUPERVISOR_WORKER_DIED) { /* the last signal came late */
        mem_free(a.body);
        ask(s, &a, "db.get", body);
      }
      CHECKF(a.end == SUPERVISOR_ANSWERED && a.code == LODE_OK && strstr(a.body, want), "%s: %s", want,
             a.body ? a.body : a.text);
      mem_free(a.body);
    }
  }
  asked a;
  ask(s, &a, "db.verify", "{}");
  CHECKF(a.code == LODE_OK && strstr(a.body, "\"damages\":0"), "%s", a.body ? a.body : a.text);
  mem_free(a.body);
  supervisor_stop(s, 2000);
}
