/* SPDX-License-Identifier: Apache-2.0 */
/* parser_pool.c - the pool of parser processes; see parser_pool.h.
 *
 * Threads: one mutex guards the `busy` flags of the workers. A worker that is taken belongs to the thread that took it;
 * nobody waits for a process while holding the mutex.
 */
#include "chunk/parser_pool.h"

#include "base/byteorder.h"
#include "os/frame.h"
#include "os/os.h"
#include "os/proc.h"
#include "chunk/parser_wire.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { PARSER_POOL_MAX_WORKERS = 64, PARSER_POOL_CLOSE_MS = 2000, PARSER_POOL_DEFINES_BYTES = 32 << 10 };

#define OUTCOME_TEXT(id, text) text,
static const char *const outcome_texts[] = {PARSER_POOL_OUTCOMES(OUTCOME_TEXT)};

const char *parser_pool_outcome_text(parser_pool_outcome outcome) {
  return (unsigned)outcome < PARSER_POOL_COUNT ? outcome_texts[outcome] : "unknown";
}

typedef struct parser_pool_worker {
  proc_child proc;
  bool busy;
  strbuf answer;
} parser_pool_worker;

struct parser_pool {
  parser_pool_options options;
  char *parser, *grammars; /* NULL: none */
  char *has;               /* by language id: is its grammar installed? */
  pthread_mutex_t lock;
  pthread_cond_t freed;
  parser_pool_worker *workers;
};

/* ---- Finding the parser ---- */

static char *parser_pool_join_path(const char *folder, size_t len, const char *rest) {
  size_t n = strlen(rest);
  char *path = mem_alloc(len + n + 1);
  if (!path) return NULL;
  memcpy(path, folder, len);
  memcpy(path + len, rest, n + 1);
  return path;
}

/* The first of the paths, relative to the folder of this program, that exists. */
static char *parser_pool_find_near(const char *const *places, int mode) {
  char self[4096];
  if (!os_program_path(self, sizeof self)) return NULL;
  char *slash = strrchr(self, '/');
  size_t len = slash ? (size_t)(slash - self) + 1 : 0;
  for (; *places; places++) {
    char *path = parser_pool_join_path(self, len, *places);
    if (path && access(path, mode) == 0) return path;
    mem_free(path);
  }
  return NULL;
}

static char *parser_pool_find_parser(const char *given) {
  static const char *const places[] = {"lode-parser", "../lode-parser", "../lib/lode/lode-parser", NULL};
  const char *env = getenv("LODE_PARSER");
  if (!given && env && *env) given = env;
  return given ? parser_pool_join_path(given, strlen(given), "") : parser_pool_find_near(places, X_OK);
}

/* A self-contained lode-parser has the grammars linked in (tools/dist/static), and takes them from no folder. */
#ifdef LODE_GRAMMARS_LINKED
enum { PARSER_POOL_LINKED = 1 };
#else
enum { PARSER_POOL_LINKED = 0 };
#endif

static char *parser_pool_find_grammars(void) {
  static const char *const places[] = {"../lib/lode/grammars", "../grammars", "../../grammars", NULL};
  const char *env = getenv("LODE_GRAMMARS");
  if (PARSER_POOL_LINKED) return str_dup("", 0);
  return env && *env ? parser_pool_join_path(env, strlen(env), "") : parser_pool_find_near(places, R_OK);
}

static void parser_pool_probe_grammars(parser_pool *pool) {
  for (size_t i = 0; i < lang_count && pool->grammars; i++) {
    char name[120];
    if (!lang_table[i].grammar) continue;
    snprintf(name, sizeof name, "/%.80s.so", lang_table[i].grammar);
    char *path = parser_pool_join_path(pool->grammars, strlen(pool->grammars), name);
    pool->has[i] = PARSER_POOL_LINKED || (path && access(path, R_OK) == 0);
    mem_free(path);
  }
}

/* ---- Opening and closing ---- */

lode_status parser_pool_open(const parser_pool_options *options, parser_pool **out, lode_error *err) {
  lode_status st = LODE_OK;
  parser_pool *pool = mem_calloc(1, sizeof *pool);
  *out = NULL;
  if (!pool) return err_nomem(err);
  if (options) pool->options = *options;
  parser_pool_options *o = &pool->options;
  if (o->workers == 0) {
    unsigned cpus = os_cpu_count();
    o->workers = cpus > 16 ? 16 : cpus;
  }
  if (o->workers > PARSER_POOL_MAX_WORKERS) o->workers = PARSER_POOL_MAX_WORKERS;
  if (o->memory_bytes == 0) o->memory_bytes = 512u << 20;
  if (o->memory_bytes < (32u << 20)) o->memory_bytes = 32u << 20;
  if (o->cpu_ms == 0) o->cpu_ms = 5000;
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->freed, NULL);
  pool->workers = mem_calloc(o->workers, sizeof *pool->workers);
  pool->has = mem_calloc(lang_count, 1);
  if (!pool->workers || !pool->has) TRY_GOTO(err_nomem(err));
  for (uint32_t i = 0; i < o->workers; i++) pool->workers[i].proc = PROC_NONE;
  pool->parser = parser_pool_find_parser(o->parser);
  pool->grammars = parser_pool_find_grammars();
  o->parser = pool->parser;
  if (pool->parser) parser_pool_probe_grammars(pool);
  *out = pool;
  return LODE_OK;
done:
  parser_pool_close(pool);
  return st;
}

void parser_pool_close(parser_pool *pool) {
  if (!pool) return;
  for (uint32_t i = 0; pool->workers && i < pool->options.workers; i++) {
    proc_child *p = &pool->workers[i].proc;
    if (p->fd >= 0) close(p->fd); /* asks all of them to exit before waiting for the first */
    p->fd = -1;
  }
  for (uint32_t i = 0; pool->workers && i < pool->options.workers; i++) {
    if (pool->workers[i].proc.pid) proc_close(&pool->workers[i].proc, PARSER_POOL_CLOSE_MS);
    strbuf_release(&pool->workers[i].answer);
  }
  pthread_mutex_destroy(&pool->lock);
  pthread_cond_destroy(&pool->freed);
  mem_free(pool->workers);
  mem_free(pool->has);
  mem_free(pool->parser);
  mem_free(pool->grammars);
  mem_free(pool);
}

const char *parser_pool_program(const parser_pool *pool) { return pool->parser; }
bool parser_pool_has(const parser_pool *pool, const lang_info *language) { return pool->has[lang_id(language)]; }

void parser_pool_result_release(parser_pool_result *result) {
  chunk_list_release(&result->chunks);
  strbuf_release(&result->symbols);
  *result = (parser_pool_result){0};
}

/* ---- Taking and returning workers ---- */

static parser_pool_worker *parser_pool_take_worker(parser_pool *pool) {
  parser_pool_worker *w = NULL;
  pthread_mutex_lock(&pool->lock);
  for (;;) {
    for (uint32_t i = 0; i < pool->options.workers; i++) {
      parser_pool_worker *c = &pool->workers[i];
      if (!c->busy && (!w || (c->proc.pid && !w->proc.pid))) w = c; /* prefer one that is running */
    }
    if (w) break;
    pthread_cond_wait(&pool->freed, &pool->lock);
  }
  w->busy = true;
  pthread_mutex_unlock(&pool->lock);
  return w;
}

static void parser_pool_return_worker(parser_pool *pool, parser_pool_worker *w) {
  pthread_mutex_lock(&pool->lock);
  w->busy = false;
  pthread_cond_signal(&pool->freed);
  pthread_mutex_unlock(&pool->lock);
}

static lode_status parser_pool_start_worker(parser_pool *pool, parser_pool_worker *w, lode_error *err) {
  char memory[32];
  snprintf(memory, sizeof memory, "%llu", (unsigned long long)pool->options.memory_bytes);
  const char *argv[] = {"lode-parser", pool->grammars, memory, NULL};
  proc_options o = {.path = pool->parser, .argv = argv, .no_core = true, .no_new_privs = true, .quiet = true};
  return proc_spawn(&o, &w->proc, err);
}

/* ---- One file ---- */

static lode_status parser_pool_send_request(const parser_pool *pool, parser_pool_worker *w, const lang_info *language,
                                            lode_str text, uint64_t deadline, lode_error *err) {
  unsigned char head[4 * PARSER_WIRE_NUMBERS];
  const parser_pool_options *o = &pool->options;
  lode_str name = str_of(language->name);
  uint32_t numbers[PARSER_WIRE_NUMBERS] = {PARSER_WIRE_VERSION, o->chunk.max_bytes, o->chunk.min_bytes, o->cpu_ms, 0,
                                           (uint32_t)name.len,  (uint32_t)text.len};
  for (int i = 0; i < PARSER_WIRE_NUMBERS; i++) num_put_le32(head + 4 * i, numbers[i]);
  lode_str parts[] = {{(const char *)head, sizeof head}, name, text};
  return proc_frame_send(w->proc.fd, (proc_frame){.type = PARSER_WIRE_PARSE}, parts, 3, deadline, err);
}

static void parser_pool_set_outcome(parser_pool_result *r, parser_pool_outcome outcome, const char *detail) {
  r->outcome = outcome;
  snprintf(r->detail, sizeof r->detail, "%s", detail);
}

/* The worker ended, or was killed: sets the outcome from the way it ended. */
static void parser_pool_explain_exit(parser_pool_result *r, lode_status st, proc_exit end, bool killed) {
  char buf[32];
  if (killed && st == LODE_BUSY)
    parser_pool_set_outcome(r, PARSER_POOL_HUNG, "no answer");
  else if (end.signal == SIGPROF || end.signal == SIGXCPU)
    parser_pool_set_outcome(r, PARSER_POOL_HUNG, "out of CPU time");
  else if (!end.signal && end.code == PARSER_WIRE_EXIT_NOMEM)
    parser_pool_set_outcome(r, PARSER_POOL_MEMORY, "");
  else if (end.signal && !killed)
    parser_pool_set_outcome(r, PARSER_POOL_CRASHED, proc_signal_name(end.signal, buf, sizeof buf));
  else if (st == LODE_CORRUPT)
    parser_pool_set_outcome(r, PARSER_POOL_REFUSED, "its answer is damaged");
  else {
    snprintf(buf, sizeof buf, "exit code %d", end.code);
    parser_pool_set_outcome(r, PARSER_POOL_CRASHED, buf);
  }
}

static void parser_pool_reap_worker(parser_pool_worker *w, lode_status st, parser_pool_result *r) {
  /* one that closed its end is about to exit by itself, and its exit code says more */
  bool kill_it = st == LODE_BUSY || st == LODE_CORRUPT;
  proc_exit end = kill_it ? proc_kill(&w->proc) : proc_close(&w->proc, PARSER_POOL_CLOSE_MS);
  bool killed = end.signal == SIGKILL && kill_it;
  parser_pool_explain_exit(r, st, end, killed);
}

/* Takes the table of symbols off the answer. It is checked here, so that what is stored is a table. */
static lode_status parser_pool_take_symbols(lode_str *rest, parser_pool_result *r, lode_error *err) {
  chunk_symbols symbols = {0};
  uint32_t n = rest->len < 4 ? UINT32_MAX : num_le32((const unsigned char *)rest->data);
  if (rest->len < 4 || n > rest->len - 4) return err_set(err, LODE_CORRUPT, "a short answer");
  lode_status st = chunk_symbols_decode((lode_str){rest->data + 4, n}, &symbols, err);
  chunk_symbols_release(&symbols);
  if (st != LODE_OK) return st;
  strbuf_add(&r->symbols, rest->data + 4, n);
  *rest = (lode_str){rest->data + 4 + n, rest->len - 4 - n};
  return r->symbols.failed ? err_nomem(err) : LODE_OK;
}

static lode_status parser_pool_read_answer(parser_pool_worker *w, uint32_t type, size_t text_bytes,
                                           parser_pool_result *r, lode_error *err) {
  const unsigned char *p = (const unsigned char *)w->answer.data;
  char said[sizeof r->detail];
  if (w->answer.len < 4) return err_set(err, LODE_CORRUPT, "a short answer");
  uint32_t number = num_le32(p);
  lode_str rest = {w->answer.data + 4, w->answer.len - 4};
  if (type == PARSER_WIRE_CHUNKS) {
    TRY(parser_pool_take_symbols(&rest, r, err));
    TRY(chunk_list_decode(rest, text_bytes, &r->chunks, err));
    r->broken = number != 0;
    parser_pool_set_outcome(r, PARSER_POOL_SYNTAX, "");
    return LODE_OK;
  }
  if (type != PARSER_WIRE_FAILED) return err_set(err, LODE_CORRUPT, "an unknown answer");
  snprintf(said, sizeof said, "%.*s", rest.len < sizeof said ? (int)rest.len : (int)sizeof said - 1, rest.data);
  parser_pool_set_outcome(r,
                          number == PARSER_WIRE_NO_GRAMMAR    ? PARSER_POOL_NO_GRAMMAR
                          : number == PARSER_WIRE_OUT_OF_TIME ? PARSER_POOL_HUNG
                          : number == PARSER_WIRE_NO_MEMORY   ? PARSER_POOL_MEMORY
                                                              : PARSER_POOL_REFUSED,
                          said);
  return LODE_OK;
}

/* Fails only when a worker cannot be started, for lack of memory or descriptors. */
static lode_status parser_pool_ask_worker(parser_pool *pool, parser_pool_worker *w, const lang_info *language,
                                          lode_str text, parser_pool_result *r, lode_error *err) {
  /* the worker limits its own CPU time; this deadline is for one that sleeps, and allows for a busy machine */
  uint64_t deadline = os_api->now_ns() + ((uint64_t)pool->options.cpu_ms * 20 + 60000) * 1000000u;
  proc_frame frame;
  lode_error why;
  lode_status st;
  for (int tries = 0;; tries++) {
    if (!w->proc.pid) {
      st = parser_pool_start_worker(pool, w, err);
      if (st == LODE_NOT_FOUND) {
        parser_pool_set_outcome(r, PARSER_POOL_NO_GRAMMAR, "lode-parser cannot be started");
        return LODE_OK;
      }
      if (st != LODE_OK) return st;
    }
    st = parser_pool_send_request(pool, w, language, text, deadline, &why);
    if (st != LODE_GONE || tries > 0) break;
    proc_kill(&w->proc); /* it died while idle: not this file's fault */
  }
  if (st == LODE_OK) st = proc_frame_receive(w->proc.fd, PARSER_WIRE_MAX_ANSWER, deadline, &frame, &w->answer, &why);
  if (st == LODE_OK) st = parser_pool_read_answer(w, frame.type, text.len, r, &why);
  if (st != LODE_OK) parser_pool_reap_worker(w, st, r);
  return LODE_OK;
}

/* Long lists of #define, as generated from descriptions of hardware, have no syntax worth the time. */
static bool parser_pool_is_define_table(const lang_info *language, lode_str text) {
  size_t lines = 0, defines = 0;
  if (text.len < PARSER_POOL_DEFINES_BYTES || !language->grammar ||
      (strcmp(language->grammar, "c") != 0 && strcmp(language->grammar, "cpp") != 0))
    return false;
  for (const char *p = text.data, *end = p + text.len; p < end; lines++) {
    defines += end - p > 8 && memcmp(p, "#define ", 8) == 0;
    const char *eol = memchr(p, '\n', (size_t)(end - p));
    p = eol ? eol + 1 : end;
  }
  return defines * 10 > lines * 8;
}

lode_status parser_pool_chunk(parser_pool *pool, const lang_info *language, lode_str text, parser_pool_result *result,
                              lode_error *err) {
  parser_pool_set_outcome(result, PARSER_POOL_PLAIN, "");
  result->broken = false;
  result->symbols.len = 0;
  chunk_list_clear(&result->chunks);
  if (text.len > LANG_MAX_TEXT)
    return err_set(err, LODE_LIMIT, "a text of %zu bytes; the limit is %u", text.len, LANG_MAX_TEXT);
  if (text.len && language->split == LANG_SPLIT_TREE && !parser_pool_is_define_table(language, text)) {
    if (parser_pool_has(pool, language)) {
      parser_pool_worker *w = parser_pool_take_worker(pool);
      lode_status st = parser_pool_ask_worker(pool, w, language, text, result, err);
      parser_pool_return_worker(pool, w);
      TRY(st);
    } else {
      parser_pool_set_outcome(result, PARSER_POOL_NO_GRAMMAR, "");
    }
    if (result->outcome == PARSER_POOL_SYNTAX) return LODE_OK;
    result->symbols.len = 0;
  }
  return chunk_plain(language, text, &pool->options.chunk, &result->chunks, err);
}
