/* op_serve.c - `lode serve` and `lode ui`: puts supervisor and HTTP face together, runs until SIGTERM, SIGINT or SIGHUP, and stops
 * in good order: no new connections, what runs is finished, the worker closes the store. A second signal ends the process at once;
 * the store does not mind. Log lines go to standard error, one write each.
 */
#include "browser.h"
#include "cli.h"
#include "model.h"
#include "peer.h"
#include "server.h"
#include "sandbox.h"

#include "base/os.h"
#include "code/fs.h"
#include "code/trust.h"
#include "base/proc.h"

#include <signal.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { GRACE_MS = 10000, SHORTEST_TOKEN = 16, MADE_TOKEN = 24 /* bytes, each two characters */, MOST_FILE = 1 << 20 };

static void log_line(void *ctx, const char *text) {
  (void)ctx;
  strbuf line = {0};
  struct tm now;
  uint64_t ms = os_wall_ms();
  time_t seconds = (time_t)(ms / 1000);
  gmtime_r(&seconds, &now);
  strbuf_addf(&line, "%04d-%02d-%02dT%02d:%02d:%02d.%03uZ ", now.tm_year + 1900, now.tm_mon + 1, now.tm_mday, now.tm_hour, now.tm_min,
                 now.tm_sec, (unsigned)(ms % 1000));
  lode__put_clean(&line, str_of(text), 0);
  strbuf_addch(&line, '\n');
  /* Nobody is left to be told when standard error fails */
  if (!line.failed) (void)lode__write_fd(STDERR_FILENO, line.data, line.len);
  strbuf_release(&line);
}

/* ---- Files ---- */

typedef struct files {
  strbuf token, certificate, key;
} files;

static lode_status read_token(const char *path, files *f, lode_str *token, lode_error *err) {
  struct stat info;
  TRY(lode__read_all(path, MOST_FILE, &f->token, err));
  if (os_api->stat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_mode & (S_IRGRP | S_IROTH))
    log_line(NULL, "warning: other users can read the file of the token; chmod 600 keeps it secret");
  while (f->token.len && strchr(" \t\r\n", f->token.data[f->token.len - 1])) f->token.len--;
  if (f->token.len < SHORTEST_TOKEN)
    return err_set(err, LODE_REFUSED, "%.300s holds a token of %zu characters; at least %d are needed: head -c 24 /dev/urandom | base64 makes one",
                      path, f->token.len, SHORTEST_TOKEN);
  *token = (lode_str){f->token.data, f->token.len};
  return LODE_OK;
}

/* A new one, for this run. */
static lode_status make_token(files *f, lode_str *token, lode_error *err) {
  unsigned char bytes[MADE_TOKEN];
  if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) return err_errno(err, errno, "getrandom");
  for (size_t i = 0; i < sizeof bytes; i++) strbuf_addf(&f->token, "%02x", bytes[i]);
  if (f->token.failed) return err_nomem(err);
  *token = (lode_str){f->token.data, f->token.len};
  return LODE_OK;
}

static lode_status read_pem(const char *path, strbuf *out, const char **text, lode_error *err) {
  TRY(lode__read_all(path, MOST_FILE, out, err));
  strbuf_addch(out, '\0');
  *text = out->data;
  return out->failed ? err_nomem(err) : LODE_OK;
}

/* Who must send a token. Without one the server is for connections of its own user. One that is given is asked of everybody: a proxy of
 * the same user may bring requests from anywhere. `ui` always makes one; its own user, whose browser opens the page, needs none. */
static lode_status choose_token(const lode__args *args, bool ui, files *f, lode__server_options *o, lode_error *err) {
  const lode__arg *file = lode__arg_of(args, "token_file"), *who = lode__arg_of(args, "token_for");
  bool make = ui || lode__arg_of(args, "token")->number, asks_all = !ui && who->number == 0;
  if (file->set && make) return err_set(err, LODE_INVALID, "--token makes a token and --token-file reads one: give one of them");
  if (file->set) TRY(read_token(file->text.data, f, &o->token, err));
  if (make) TRY(make_token(f, &o->token, err));
  if (!o->token.data && who->set) return err_set(err, LODE_INVALID, "--token-for needs a token: --token, or --token-file FILE");
  if (!o->token.data && !lode__is_loopback(o->host))
    return err_set(err, LODE_REFUSED, "%.200s can be reached from other machines: name a file with a secret, --token-file FILE", o->host);
  if (o->token.data && asks_all) return LODE_OK;
  o->own_user = lode__peer_known();
  if (!o->own_user && !o->token.data)
    log_line(NULL, "warning: whose connections come in cannot be known here, so every user of this machine can use this server; --token keeps "
                   "others out");
  else if (!o->own_user) log_line(NULL, "whose connections come in cannot be known here: everybody must send the token");
  return LODE_OK;
}

/* Of `serve`; `ui` has a few of these parameters, and the defaults for the rest. */
static lode_status read_options(const lode__args *args, bool ui, files *f, lode__server_options *o, lode_error *err) {
  static const lode__server_log logs[] = {LODE__LOG_REQUESTS, LODE__LOG_ERRORS, LODE__LOG_NOTHING};
  const lode__arg *certificate = lode__arg_of(args, "certificate"), *key = lode__arg_of(args, "key");
  *o = (lode__server_options){
      .host = lode__arg_of(args, "host")->text.data,
      .port = (uint16_t)lode__arg_of(args, "port")->number,
      .any_port = true,
      .allow_hosts = lode__arg_of(args, "allow_host")->list,
      .n_allow_hosts = lode__arg_of(args, "allow_host")->n,
      .allow_origins = lode__arg_of(args, "allow_origin")->list,
      .n_allow_origins = lode__arg_of(args, "allow_origin")->n,
      .allow_reset = lode__arg_of(args, "allow_reset")->number != 0,
      .max_body = (size_t)lode__arg_of(args, "max_body")->number,
      .max_connections = (uint32_t)lode__arg_of(args, "max_connections")->number,
      .wait_s = (uint32_t)lode__arg_of(args, "wait")->number,
      .log = logs[lode__arg_of(args, "log")->number],
      .say = log_line,
  };
  if (!o->host) o->host = "127.0.0.1";
  TRY(choose_token(args, ui, f, o, err));
  if (certificate->set != key->set) return err_set(err, LODE_INVALID, "TLS needs both --certificate and --key");
  if (certificate->set) TRY(read_pem(certificate->text.data, &f->certificate, &o->certificate, err));
  if (key->set) TRY(read_pem(key->text.data, &f->key, &o->key, err));
  return LODE_OK;
}

/* ---- Around the server ---- */

/* Each connection is a descriptor. */
static void raise_descriptors(void) {
  struct rlimit now;
  if (getrlimit(RLIMIT_NOFILE, &now) != 0) return;
  now.rlim_cur = now.rlim_max < 65536 ? now.rlim_max : 65536;
  (void)setrlimit(RLIMIT_NOFILE, &now);
}

/* Tells systemd, if it asked. */
static void notify(const char *state) {
  const char *path = getenv("NOTIFY_SOCKET");
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  if (!path || strlen(path) >= sizeof to.sun_path) return;
  memcpy(to.sun_path, path, strlen(path) + 1);
  if (to.sun_path[0] == '@') to.sun_path[0] = '\0';
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  (void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path)));
  close(fd);
}

/* It is there before the sandbox is. */
static lode_status make_folder(const char *store, lode_error *err) {
  strbuf path = {0};
  strbuf_addf(&path, "%s/%c", store, 0);
  lode_status st = path.failed ? err_nomem(err) : files_make_parents(path.data, err);
  strbuf_release(&path);
  return st;
}

/* The worker makes it, and cannot write the user's list. */
static lode_status expect_store(lode__op_context *ctx, lode_error *err) {
  lode_error why = {.record = LODE_NO_RECORD};
  lode_status st = trust_add_created(ctx->folder, NULL, &why);
  if (st == LODE_NOMEM) return err_nomem(err);
  if (st != LODE_OK) lode__op_note(ctx, "%.200s cannot be remembered as made by you: %.300s", ctx->folder, why.text);
  return LODE_OK;
}

static void announce(const lode__server_options *o, const lode__server *http, const char *folder, const char *sandbox, bool made) {
  char line[1000];
  bool six = strchr(o->host, ':') != NULL;
  snprintf(line, sizeof line, "serving %.300s at %s://%s%.100s%s:%u%s; %s", folder, o->certificate ? "https" : "http", six ? "[" : "", o->host, six ? "]" : "",
           lode__server_port(http), o->token.data ? ", with a token" : o->own_user ? ", for its own user" : "", sandbox);
  log_line(NULL, line);
  if (made) {
    snprintf(line, sizeof line, "%s must send the token %.*s", o->own_user ? "other users" : "clients", (int)o->token.len, o->token.data);
    log_line(NULL, line);
  }
  notify("READY=1");
}

static void wait_for_signal(const sigset_t *signals) {
  int number;
  char line[80], name[32];
  while (sigwait(signals, &number) != 0) continue;
  /* The next one ends the process */
  pthread_sigmask(SIG_UNBLOCK, signals, NULL);
  snprintf(line, sizeof line, "stopping (%s)", proc_signal_name(number, name, sizeof name));
  log_line(NULL, line);
  notify("STOPPING=1");
}

static void drain(lode__server *http, uint32_t ms) {
  lode__server_figures f;
  for (uint32_t waited = 0; waited < ms; waited += 10) {
    lode__server_figures_get(http, &f);
    if (f.requests == 0) return;
    os_api->sleep_us(10000);
  }
}

static lode_status summary(lode__op_context *ctx, const lode__supervisor_figures *f, lode_error *err) {
  lode__row_begin(ctx);
  lode__row_text(ctx, "store", str_of(ctx->folder));
  lode__row_count(ctx, "calls", f->calls);
  lode__row_count(ctx, "restarts", f->restarts);
  return lode__row_summary(ctx, err);
}

/* Where a person finds the page, and the browser that shows it. Other users can see the arguments of a browser, so no token is in them:
 * where our own user needs one too, the person opens the page. */
static void open_page(const lode__server_options *o, const lode__server *http, bool no_open, proc_child *browser) {
  char url[200], line[400];
  snprintf(url, sizeof url, "http://%.100s:%u/", o->host, lode__server_port(http));
  bool opened = !no_open && o->own_user && lode__browser_open(url, browser);
  snprintf(line, sizeof line, "%s %s#token=%.*s; Ctrl-C ends", opened ? "the browser shows" : "the page is at", url, (int)o->token.len,
           o->token.data);
  log_line(NULL, line);
}

static lode_status serve(lode__op_context *ctx, const lode__args *args, bool ui, lode_error *err) {
  const lode_open_options *settings = ctx->settings;
  bool no_sandbox = lode__arg_of(args, "no_sandbox")->number != 0;
  lode__supervisor *supervisor = NULL;
  lode__supervisor_figures figures = {0};
  lode__server *http = NULL;
  lode__server_options options;
  lode__model_policy models;
  files f = {0};
  proc_child browser = PROC_NONE;
  sigset_t signals;
  struct sigaction hangup;
  char sandbox[400] = "no sandbox: switched off";
  lode_status st;
  TRY_GOTO(read_options(args, ui, &f, &options, err));
  TRY_GOTO(lode__models_allowed(args, &models, err));
  if (ui) options.log = LODE__LOG_ERRORS;
  if (!settings->read_only && !lode__is_address(ctx->folder)) TRY_GOTO(make_folder(ctx->folder, err));
  if (ctx->found && !ui && !settings->read_only && !trust_has_store(ctx->folder)) TRY_GOTO(expect_store(ctx, err));
  raise_descriptors();
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
    sigaddset(&signals, SIGHUP); /* blocked, it would be taken even under nohup */
  pthread_sigmask(SIG_BLOCK, &signals, NULL); /* in all threads that follow */
  lode__supervisor_options so = {
      .setup = {.store = ctx->folder, .memory_bytes = settings->memory_bytes, .max_document_bytes = settings->max_document_bytes,
                .busy_ms = settings->busy_ms, .threads = (uint32_t)lode__arg_of(args, "threads")->number, .create = !ui, .preload = true,
                .no_sandbox = no_sandbox, .read_only = settings->read_only, .models = models,
                .found = ctx->found, .adopted = ctx->adopted},
      .timeout_ms = (uint32_t)lode__arg_of(args, "timeout")->number * 1000,
      .log = log_line};
  TRY_GOTO(lode__supervisor_start(&so, &supervisor, err));
  TRY_GOTO(lode__server_start(&options, supervisor, &http, err));
  if (ui) open_page(&options, http, lode__arg_of(args, "no_open")->number != 0, &browser); /* which needs its privileges */
  if (!no_sandbox) lode__sandbox_face(ctx->folder, lode__supervisor_crashes(supervisor), sandbox, sizeof sandbox);
  announce(&options, http, ctx->folder, sandbox, lode__arg_of(args, "token")->number != 0);
  wait_for_signal(&signals);
  lode__server_drain(http);
  drain(http, GRACE_MS);
done:
  if (supervisor) lode__supervisor_figures_get(supervisor, &figures);
  lode__supervisor_stop(supervisor, 1000);
  if (http) drain(http, 1000); /* answers on their way out */
  lode__server_stop(http);
  lode__browser_forget(&browser);
  strbuf_release(&f.token);
  strbuf_release(&f.certificate);
  strbuf_release(&f.key);
  return st == LODE_OK ? summary(ctx, &figures, err) : st;
}

lode_status lode__op_serve(lode__op_context *ctx, const lode__args *args, lode_error *err) { return serve(ctx, args, false, err); }

lode_status lode__op_ui(lode__op_context *ctx, const lode__args *args, lode_error *err) { return serve(ctx, args, true, err); }
