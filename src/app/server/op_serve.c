/* SPDX-License-Identifier: Apache-2.0 */
/* op_serve.c - `lode serve` and `lode ui`: starts supervisor and HTTP server, runs until SIGTERM, SIGINT or SIGHUP,
 * and shuts down in order: no new connections, running requests are finished, the worker closes the store. A second
 * signal ends the process at once, which is safe for the store. Log lines go to standard error, one write each. */
#include "server/browser.h"
#include "ops/op_row.h"
#include "table/op_args_serve.h"
#include "ops/op_text.h"
#include "models/model_embedder.h"
#include "server/server.h"

#include "os/os.h"
#include "scan/files.h"
#include "project/trust.h"
#include "os/proc.h"

#include "platform/process.h"
#include "platform/sandbox.h"
#include "platform/socket.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { SERVE_GRACE_MS = 10000, SERVE_MIN_TOKEN = 16, SERVE_MAX_FILE_BYTES = 1 << 20 };
enum { SERVE_TOKEN_BYTES = 24 }; /* of a token that we make: two characters each */

static void serve_log_line(void *ctx, const char *text) {
  (void)ctx;
  strbuf line = {0};
  struct tm now;
  uint64_t ms = os_wall_ms();
  time_t seconds = (time_t)(ms / 1000);
  gmtime_r(&seconds, &now);
  strbuf_addf(&line, "%04d-%02d-%02dT%02d:%02d:%02d.%03uZ ", now.tm_year + 1900, now.tm_mon + 1, now.tm_mday,
              now.tm_hour, now.tm_min, now.tm_sec, (unsigned)(ms % 1000));
  op_put_printable(&line, str_of(text), 0);
  strbuf_addch(&line, '\n');
  /* a failure cannot be reported to anybody */
  if (!line.failed) (void)!op_write_fd(STDERR_FILENO, line.data, line.len);
  strbuf_release(&line);
}

/* ---- Token and TLS files ---- */

typedef struct serve_secrets {
  strbuf token, certificate, key;
} serve_secrets;

static lode_status serve_read_token(const char *path, serve_secrets *f, lode_str *token, lode_error *err) {
  struct stat info;
  TRY(op_read_file(path, SERVE_MAX_FILE_BYTES, &f->token, err));
  if (os_api->stat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_mode & (S_IRGRP | S_IROTH))
    serve_log_line(NULL, "warning: other users can read the file of the token; chmod 600 keeps it secret");
  while (f->token.len && strchr(" \t\r\n", f->token.data[f->token.len - 1])) f->token.len--;
  if (f->token.len < SERVE_MIN_TOKEN)
    return err_set(
        err, LODE_REFUSED,
        "%.300s holds a token of %zu characters; at least %d are needed: head -c 24 /dev/urandom | base64 makes one",
        path, f->token.len, SERVE_MIN_TOKEN);
  *token = (lode_str){f->token.data, f->token.len};
  return LODE_OK;
}

/* A new token, for this run. */
static lode_status serve_make_token(serve_secrets *f, lode_str *token, lode_error *err) {
  unsigned char bytes[SERVE_TOKEN_BYTES];
  if (os_random(bytes, sizeof bytes, false) != 0) return err_errno(err, errno, "random bytes");
  for (size_t i = 0; i < sizeof bytes; i++) strbuf_addf(&f->token, "%02x", bytes[i]);
  if (f->token.failed) return err_nomem(err);
  *token = (lode_str){f->token.data, f->token.len};
  return LODE_OK;
}

static lode_status serve_read_pem(const char *path, strbuf *out, const char **text, lode_error *err) {
  TRY(op_read_file(path, SERVE_MAX_FILE_BYTES, out, err));
  strbuf_addch(out, '\0');
  *text = out->data;
  return out->failed ? err_nomem(err) : LODE_OK;
}

/* Decides who must send a token. Without a token the server only serves its own user. A given token is required of
 * everybody by default: a proxy of the same user may forward requests from anywhere. `ui` always makes a token; its
 * own user, whose browser opens the page, does not need it. */
static lode_status serve_choose_token(const op_serve_args *args, bool ui, serve_secrets *f, server_options *o,
                                      lode_error *err) {
  bool make = ui || args->token.on, asks_all = !ui && args->token_for.index == 0;
  if (args->token_file.set && make)
    return err_set(err, LODE_INVALID, "--token makes a token and --token-file reads one: give one of them");
  if (args->token_file.set) TRY(serve_read_token(args->token_file.path, f, &o->token, err));
  if (make) TRY(serve_make_token(f, &o->token, err));
  if (!o->token.data && args->token_for.set)
    return err_set(err, LODE_INVALID, "--token-for needs a token: --token, or --token-file FILE");
  if (!o->token.data && !server_is_loopback(o->host))
    return err_set(err, LODE_REFUSED,
                   "%.200s can be reached from other machines: name a file with a secret, --token-file FILE", o->host);
  if (o->token.data && asks_all) return LODE_OK;
  o->own_user = os_peer_supported();
  if (!o->own_user && !o->token.data)
    serve_log_line(NULL, "warning: whose connections come in cannot be known here, so every user of this machine can "
                         "use this server; --token keeps "
                         "others out");
  else if (!o->own_user)
    serve_log_line(NULL, "whose connections come in cannot be known here: everybody must send the token");
  return LODE_OK;
}

/* The options of `serve`; `ui` has a few of these parameters, and defaults for the rest. */
static lode_status serve_read_options(const op_serve_args *args, bool ui, serve_secrets *f, server_options *o,
                                      lode_error *err) {
  static const server_log_level logs[] = {SERVER_LOG_REQUESTS, SERVER_LOG_ERRORS, SERVER_LOG_NOTHING};
  const op_arg_path *certificate = &args->certificate, *key = &args->key;
  *o = (server_options){
      .host = args->host.text.data,
      .port = (uint16_t)args->port.n,
      .any_port = true,
      .allow_hosts = args->allow_host.items,
      .n_allow_hosts = args->allow_host.n,
      .allow_origins = args->allow_origin.items,
      .n_allow_origins = args->allow_origin.n,
      .allow_reset = args->allow_reset.on,
      .max_body = (size_t)args->max_body.bytes,
      .max_connections = (uint32_t)args->max_connections.n,
      .wait_s = (uint32_t)args->wait.n,
      .log = logs[args->log.index],
      .say = serve_log_line,
  };
  if (!o->host) o->host = "127.0.0.1";
  TRY(serve_choose_token(args, ui, f, o, err));
  if (certificate->set != key->set) return err_set(err, LODE_INVALID, "TLS needs both --certificate and --key");
  if (certificate->set) TRY(serve_read_pem(certificate->path, &f->certificate, &o->certificate, err));
  if (key->set) TRY(serve_read_pem(key->path, &f->key, &o->key, err));
  return LODE_OK;
}

/* ---- Running the server ---- */

/* Creates the store's folder: it must exist before the sandbox is set up. */
static lode_status serve_make_folder(const char *store, lode_error *err) {
  strbuf path = {0};
  strbuf_addf(&path, "%s/%c", store, 0);
  lode_status st = path.failed ? err_nomem(err) : files_make_parents(path.data, err);
  strbuf_release(&path);
  return st;
}

/* Adds the store to the user's trust list: the worker, which creates the store, cannot write that list. */
static lode_status serve_expect_store(op_context *ctx, lode_error *err) {
  lode_error why = {.record = LODE_NO_RECORD};
  lode_status st = trust_add_created(ctx->folder, NULL, &why);
  if (st == LODE_NOMEM) return err_nomem(err);
  if (st != LODE_OK) op_note(ctx, "%.200s cannot be remembered as made by you: %.300s", ctx->folder, why.text);
  return LODE_OK;
}

static void serve_announce(const server_options *o, const server_state *http, const char *folder, const char *sandbox,
                           bool made) {
  char line[1000];
  bool six = strchr(o->host, ':') != NULL;
  snprintf(line, sizeof line, "serving %.300s at %s://%s%.100s%s:%u%s; %s", folder, o->certificate ? "https" : "http",
           six ? "[" : "", o->host, six ? "]" : "", server_get_port(http),
           o->token.data ? ", with a token"
           : o->own_user ? ", for its own user"
                         : "",
           sandbox);
  serve_log_line(NULL, line);
  if (made) {
    snprintf(line, sizeof line, "%s must send the token %.*s", o->own_user ? "other users" : "clients",
             (int)o->token.len, o->token.data);
    serve_log_line(NULL, line);
  }
  os_notify_service("READY=1");
}

static void serve_wait_for_signal(const sigset_t *signals) {
  int number;
  char line[80], name[32];
  while (sigwait(signals, &number) != 0) continue;
  /* the next signal ends the process */
  pthread_sigmask(SIG_UNBLOCK, signals, NULL);
  snprintf(line, sizeof line, "stopping (%s)", proc_signal_name(number, name, sizeof name));
  serve_log_line(NULL, line);
  os_notify_service("STOPPING=1");
}

static void serve_drain(server_state *http, uint32_t ms) {
  server_stats f;
  for (uint32_t waited = 0; waited < ms; waited += 10) {
    server_get_stats(http, &f);
    if (f.requests == 0) return;
    os_api->sleep_us(10000);
  }
}

static lode_status serve_send_summary(op_context *ctx, const supervisor_stats *f, lode_error *err) {
  op_summary_begin(ctx);
  op_row_text(ctx, "store", str_of(ctx->folder));
  op_row_count(ctx, "calls", f->calls);
  op_row_count(ctx, "restarts", f->restarts);
  return op_row_send(ctx, err);
}

/* Shows the page's address, and opens it in the browser. Other users can see the arguments of a process, so the
 * browser's URL has no token; if our own user needs one too, the browser is not opened. */
static void serve_open_page(const server_options *o, const server_state *http, bool no_open, proc_child *browser) {
  char url[200], line[400];
  snprintf(url, sizeof url, "http://%.100s:%u/", o->host, server_get_port(http));
  bool opened = !no_open && o->own_user && server_browser_open(url, browser);
  snprintf(line, sizeof line, "%s %s#token=%.*s; Ctrl-C ends", opened ? "the browser shows" : "the page is at", url,
           (int)o->token.len, o->token.data);
  serve_log_line(NULL, line);
}

static void serve_enter_sandbox(const worker_options *setup, char *summary, size_t size) {
  strbuf crashes = {0};
  supervisor_put_crash_folder(setup, &crashes);
  os_sandbox(setup->store, crashes.failed ? NULL : crashes.data, summary, size);
  strbuf_release(&crashes);
}

static lode_status serve_run(op_context *ctx, const op_serve_args *args, bool ui, lode_error *err) {
  const lode_open_options *settings = ctx->settings;
  bool no_sandbox = args->no_sandbox.on;
  supervisor_state *supervisor = NULL;
  supervisor_stats stats = {0};
  server_state *http = NULL;
  server_options options;
  op_model_policy models;
  serve_secrets f = {0};
  proc_child browser = PROC_NONE;
  sigset_t signals;
  struct sigaction hangup;
  char sandbox[400] = "no sandbox: switched off";
  lode_status st;
  TRY_GOTO(serve_read_options(args, ui, &f, &options, err));
  TRY_GOTO(model_policy_of_args(&args->allow_model, &models, err));
  if (ui) options.log = SERVER_LOG_ERRORS;
  options.own_page = ui && !settings->read_only;
  bool absent = !op_is_address(ctx->folder) && !trust_has_store(ctx->folder);
  if (absent && !ui && !settings->read_only) {
    char line[600];
    snprintf(line, sizeof line, "there is no store at %.400s yet: an empty one is made", ctx->folder);
    serve_log_line(NULL, line);
  }
  if (!settings->read_only && !op_is_address(ctx->folder)) TRY_GOTO(serve_make_folder(ctx->folder, err));
  if (ctx->found && !settings->read_only && !trust_has_store(ctx->folder)) TRY_GOTO(serve_expect_store(ctx, err));
  os_raise_fd_limit(); /* each connection takes a descriptor */
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
    sigaddset(&signals, SIGHUP); /* only if not ignored: if blocked, it would be received even under nohup */
  pthread_sigmask(SIG_BLOCK, &signals, NULL); /* in all threads started from here on */
  supervisor_options so = {.setup = {.store = ctx->folder,
                                     .memory_bytes = settings->memory_bytes,
                                     .max_document_bytes = settings->max_document_bytes,
                                     .busy_ms = settings->busy_ms,
                                     .threads = (uint32_t)args->threads.n,
                                     .create = !ui,
                                     .preload = true,
                                     .no_sandbox = no_sandbox,
                                     .read_only = settings->read_only,
                                     .models = models,
                                     .found = ctx->found,
                                     .adopted = ctx->adopted},
                           .timeout_ms = (uint32_t)args->timeout.n * 1000,
                           .log = serve_log_line};
  TRY_GOTO(server_listen(&options, &http, err));
  if (ui) serve_open_page(&options, http, args->no_open.on, &browser);      /* not in the sandbox */
  if (!no_sandbox) serve_enter_sandbox(&so.setup, sandbox, sizeof sandbox); /* before there are threads */
  TRY_GOTO(supervisor_start(&so, &supervisor, err));
  TRY_GOTO(server_start(http, supervisor, err));
  serve_announce(&options, http, ctx->folder, sandbox, args->token.on);
  serve_wait_for_signal(&signals);
  server_drain(http);
  serve_drain(http, SERVE_GRACE_MS);
done:
  if (supervisor) supervisor_get_stats(supervisor, &stats);
  supervisor_stop(supervisor, 1000);
  if (http) serve_drain(http, 1000); /* responses being sent */
  server_stop(http);
  server_browser_detach(&browser);
  strbuf_release(&f.token);
  strbuf_release(&f.certificate);
  strbuf_release(&f.key);
  return st == LODE_OK ? serve_send_summary(ctx, &stats, err) : st;
}

lode_status op_do_serve(op_context *ctx, const op_serve_args *args, lode_error *err) {
  return serve_run(ctx, args, false, err);
}

lode_status op_do_ui(op_context *ctx, const op_serve_args *args, lode_error *err) {
  return serve_run(ctx, args, true, err);
}
