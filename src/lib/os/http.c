/* SPDX-License-Identifier: Apache-2.0 */
/* http.c - HTTP requests through libcurl, which is loaded on first use. See http.h. */
#include "os/http.h"

#include "platform/library.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

/* curl.h wraps these names in macros that check types; here they are members of a table. */
#undef curl_easy_setopt
#undef curl_easy_getinfo

/* libcurl's buffer sizes. Its defaults are smaller, and it waits for the socket after each buffer. */
enum { UPLOAD_BYTES = 1 << 20, DOWNLOAD_BYTES = 1 << 18 };

typedef struct curl_library {
  CURLcode (*global_init)(long flags);
  CURL *(*easy_init)(void);
  CURLcode (*easy_setopt)(CURL *, CURLoption, ...);
  CURLcode (*easy_getinfo)(CURL *, CURLINFO, ...);
  void (*easy_cleanup)(CURL *);
  void (*easy_reset)(CURL *);
  const char *(*easy_strerror)(CURLcode);
  CURLM *(*multi_init)(void);
  CURLMcode (*multi_add_handle)(CURLM *, CURL *);
  CURLMcode (*multi_remove_handle)(CURLM *, CURL *);
  CURLMcode (*multi_perform)(CURLM *, int *running);
  CURLMcode (*multi_poll)(CURLM *, struct curl_waitfd *, unsigned n, int ms, int *ready);
  CURLMsg *(*multi_info_read)(CURLM *, int *left);
  CURLMcode (*multi_cleanup)(CURLM *);
  struct curl_slist *(*slist_append)(struct curl_slist *, const char *);
  void (*slist_free_all)(struct curl_slist *);
} curl_library;

static curl_library curl_lib;
static bool curl_loaded;
static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void load_curl(void) {
  void *so = os_library_open(OS_LIBRARY_NAME("curl", "4"));
  if (!so) so = os_library_open(OS_LIBRARY_NAME("curl-gnutls", "4"));
  if (!so) return;
  const struct {
    const char *name;
    void *into;
  } symbols[] = {
      {"curl_global_init", &curl_lib.global_init},     {"curl_easy_init", &curl_lib.easy_init},
      {"curl_multi_init", &curl_lib.multi_init},       {"curl_multi_add_handle", &curl_lib.multi_add_handle},
      {"curl_multi_perform", &curl_lib.multi_perform}, {"curl_multi_remove_handle", &curl_lib.multi_remove_handle},
      {"curl_multi_poll", &curl_lib.multi_poll},       {"curl_multi_info_read", &curl_lib.multi_info_read},
      {"curl_easy_setopt", &curl_lib.easy_setopt},     {"curl_multi_cleanup", &curl_lib.multi_cleanup},
      {"curl_easy_getinfo", &curl_lib.easy_getinfo},   {"curl_easy_cleanup", &curl_lib.easy_cleanup},
      {"curl_easy_reset", &curl_lib.easy_reset},       {"curl_easy_strerror", &curl_lib.easy_strerror},
      {"curl_slist_append", &curl_lib.slist_append},   {"curl_slist_free_all", &curl_lib.slist_free_all}};
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    void *symbol = os_library_symbol(so, symbols[i].name);
    if (!symbol) return;
    memcpy(symbols[i].into, &symbol, sizeof symbol);
  }
  curl_loaded = curl_lib.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

typedef struct http_exchange {
  http_request request;
  http_response *response;
  struct curl_slist *headers;
  size_t max;
  bool begun, too_long, cancelled;
} http_exchange;

struct http_client {
  CURL *curl;
  CURLM *multi; /* owns the connection, and drives `curl` during a request */
  pid_t pid;    /* the process that owns the connection */
  char *text;   /* libcurl's message for the last failure */
  http_exchange x;
};

/* A forked child does not use the parent's connection. */
static lode_status http_connect(http_client *http, lode_error *err) {
  if (http->pid != getpid()) {
    http->pid = getpid();
    http->curl = NULL;
    http->multi = NULL;
  }
  if (!http->curl) http->curl = curl_lib.easy_init();
  if (!http->multi) http->multi = curl_lib.multi_init();
  return http->curl && http->multi ? LODE_OK : err_nomem(err);
}

lode_status http_new(http_client **out, lode_error *err) {
  *out = NULL;
  (void)pthread_once(&curl_once, load_curl);
  if (!curl_loaded)
    return err_set(err, LODE_UNSUPPORTED,
                   "speaking HTTP needs libcurl (Debian: apt-get install libcurl4), which could not be loaded");
  http_client *http = mem_calloc(1, sizeof *http);
  if (!http) return err_nomem(err);
  http->text = mem_calloc(1, CURL_ERROR_SIZE);
  lode_status st = http->text ? http_connect(http, err) : err_nomem(err);
  if (st == LODE_OK)
    *out = http;
  else
    http_free(http);
  return st;
}

/* After a request, finished or abandoned. */
static void http_reset(http_client *http) {
  if (http->x.begun) (void)curl_lib.multi_remove_handle(http->multi, http->curl);
  curl_lib.slist_free_all(http->x.headers);
  http->x = (http_exchange){0};
}

void http_free(http_client *http) {
  if (!http) return;
  if (http->pid == getpid()) {
    http_reset(http);
    if (http->curl) curl_lib.easy_cleanup(http->curl);
    if (http->multi) (void)curl_lib.multi_cleanup(http->multi);
  }
  mem_free(http->text);
  mem_free(http);
}

/* ---- One request ---- */

static size_t http_on_body(char *data, size_t size, size_t n, void *ctx) {
  http_exchange *x = ctx;
  strbuf *body = &x->response->body;
  if (size * n > x->max - body->len) {
    x->too_long = true;
    return 0;
  }
  strbuf_add(body, data, size * n);
  return body->failed ? 0 : size * n;
}

static int http_on_progress(void *ctx, curl_off_t dt, curl_off_t dn, curl_off_t ut, curl_off_t un) {
  http_exchange *x = ctx;
  (void)dt, (void)dn, (void)ut, (void)un;
  x->cancelled = x->request.go_on && !x->request.go_on(x->request.ctx);
  return x->cancelled;
}

static bool http_add_header(struct curl_slist **list, const char *header) {
  struct curl_slist *longer = curl_lib.slist_append(*list, header);
  if (longer) *list = longer;
  return longer != NULL;
}

static bool http_make_headers(const http_request *r, struct curl_slist **list) {
  bool typed = false;
  for (const char *const *h = r->headers; h && *h; h++) {
    if (!http_add_header(list, *h)) return false;
    typed = typed || strncasecmp(*h, "content-type:", 13) == 0;
  }
  if (r->body.data && !typed && !http_add_header(list, "Content-Type: application/json")) return false;
  return http_add_header(list, "Expect:"); /* do not wait for 100 Continue */
}

static void http_set_options(http_client *http) {
  http_exchange *x = &http->x;
  const http_request *r = &x->request;
  CURL *c = http->curl;
  curl_lib.easy_reset(c);
  http->text[0] = '\0';
  curl_lib.easy_setopt(c, CURLOPT_ERRORBUFFER, http->text);
  curl_lib.easy_setopt(c, CURLOPT_URL, r->url);
  if (curl_lib.easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") != CURLE_OK) /* libcurl before 7.85: */
    curl_lib.easy_setopt(c, (CURLoption)(CURLOPTTYPE_LONG + 181), 3L);          /* CURLOPT_PROTOCOLS, now deprecated */
  curl_lib.easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  if (!getenv("no_proxy") && !getenv("NO_PROXY")) curl_lib.easy_setopt(c, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
  curl_lib.easy_setopt(c, CURLOPT_TCP_NODELAY, 1L);
  curl_lib.easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_lib.easy_setopt(c, CURLOPT_UPLOAD_BUFFERSIZE, (long)UPLOAD_BYTES);
  curl_lib.easy_setopt(c, CURLOPT_BUFFERSIZE, (long)DOWNLOAD_BYTES);
  curl_lib.easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
  curl_lib.easy_setopt(c, CURLOPT_USERAGENT, "lode/" LODE_VERSION_TEXT);
  curl_lib.easy_setopt(c, CURLOPT_ACCEPT_ENCODING, NULL);
  curl_lib.easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, r->connect_ms ? (long)r->connect_ms : 5000L);
  curl_lib.easy_setopt(c, CURLOPT_TIMEOUT_MS, r->timeout_ms ? (long)r->timeout_ms : 60000L);
  curl_lib.easy_setopt(c, CURLOPT_HTTPHEADER, x->headers);
  curl_lib.easy_setopt(c, CURLOPT_CUSTOMREQUEST, r->method);
  if (r->body.data) {
    curl_lib.easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.len);
    curl_lib.easy_setopt(c, CURLOPT_POSTFIELDS, r->body.data);
  }
  curl_lib.easy_setopt(c, CURLOPT_WRITEFUNCTION, http_on_body);
  curl_lib.easy_setopt(c, CURLOPT_WRITEDATA, x);
  curl_lib.easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
  curl_lib.easy_setopt(c, CURLOPT_XFERINFOFUNCTION, http_on_progress);
  curl_lib.easy_setopt(c, CURLOPT_XFERINFODATA, x);
}

static bool http_never_sent(CURLcode code) {
  return code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY ||
         code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_SSL_CONNECT_ERROR;
}

static lode_status http_explain(const http_client *http, CURLcode code, lode_error *err) {
  const http_exchange *x = &http->x;
  if (x->cancelled) return err_set(err, LODE_CANCELLED, "cancelled while waiting for %s", x->request.url);
  if (x->response->body.failed || code == CURLE_OUT_OF_MEMORY) return err_nomem(err);
  if (x->too_long) return err_set(err, LODE_LIMIT, "the answer of %s is longer than %zu bytes", x->request.url, x->max);
  return err_set(err, LODE_IO, "no answer from %s: %s", x->request.url,
                 http->text[0] ? http->text : curl_lib.easy_strerror(code));
}

lode_status http_begin(http_client *http, const http_request *request, http_response *response, lode_error *err) {
  response->status = 0;
  response->retry_after_s = 0;
  response->unsent = true;
  response->body.len = 0;
  TRY(http_connect(http, err));
  http->x = (http_exchange){
      .request = *request, .response = response, .max = request->max_bytes ? request->max_bytes : (size_t)1 << 30};
  bool made = http_make_headers(request, &http->x.headers);
  if (made) http_set_options(http);
  http->x.begun = made && curl_lib.multi_add_handle(http->multi, http->curl) == CURLM_OK;
  if (!http->x.begun) {
    http_reset(http);
    return err_nomem(err);
  }
  http_pump(http);
  return LODE_OK;
}

void http_pump(http_client *http) {
  int running;
  (void)curl_lib.multi_perform(http->multi, &running); /* http_wait() reports any failure */
}

/* Runs the request to its end and returns the result. */
static CURLcode http_wait(http_client *http) {
  enum { HTTP_POLL_MS = 1000 };
  int running = 1, left;
  while (curl_lib.multi_perform(http->multi, &running) == CURLM_OK && running)
    if (curl_lib.multi_poll(http->multi, NULL, 0, HTTP_POLL_MS, NULL) != CURLM_OK) break;
  const CURLMsg *end = curl_lib.multi_info_read(http->multi, &left);
  return end ? end->data.result : CURLE_OUT_OF_MEMORY; /* the only way a valid handle can fail */
}

lode_status http_finish(http_client *http, lode_error *err) {
  http_response *response = http->x.response;
  CURLcode code = http_wait(http);
  lode_status st = code == CURLE_OK ? LODE_OK : http_explain(http, code, err);
  curl_off_t wait = 0;
  response->unsent = http_never_sent(code);
  if (st == LODE_OK) {
    (void)curl_lib.easy_getinfo(http->curl, CURLINFO_RESPONSE_CODE, &response->status);
    if (curl_lib.easy_getinfo(http->curl, CURLINFO_RETRY_AFTER, &wait) == CURLE_OK && wait > 0)
      response->retry_after_s = wait > 3600 ? 3600 : (uint32_t)wait;
  }
  http_reset(http);
  return st;
}

lode_status http_send(http_client *http, const http_request *request, http_response *response, lode_error *err) {
  TRY(http_begin(http, request, response, err));
  return http_finish(http, err);
}
