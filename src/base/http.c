/* http.c - requests through libcurl, which is loaded when it is first needed. See http.h. */
#include "http.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

/* curl.h wraps these names in macros that check types; here they are members of a table. */
#undef curl_easy_setopt
#undef curl_easy_getinfo

/* What libcurl sends and takes at once: by default less, and it waits for the socket each time. */
enum { UPLOAD_BYTES = 1 << 20, DOWNLOAD_BYTES = 1 << 18 };

typedef struct library {
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
} library;

static library lib;
static bool loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void) {
  void *so = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (!so) so = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
  if (!so) return;
  const struct {
    const char *name;
    void *into;
  } symbols[] = {{"curl_global_init", &lib.global_init},     {"curl_easy_init", &lib.easy_init},
                 {"curl_multi_init", &lib.multi_init},       {"curl_multi_add_handle", &lib.multi_add_handle},
                 {"curl_multi_perform", &lib.multi_perform}, {"curl_multi_remove_handle", &lib.multi_remove_handle},
                 {"curl_multi_poll", &lib.multi_poll},       {"curl_multi_info_read", &lib.multi_info_read},
                 {"curl_easy_setopt", &lib.easy_setopt},     {"curl_multi_cleanup", &lib.multi_cleanup},
                 {"curl_easy_getinfo", &lib.easy_getinfo},   {"curl_easy_cleanup", &lib.easy_cleanup},
                 {"curl_easy_reset", &lib.easy_reset},       {"curl_easy_strerror", &lib.easy_strerror},
                 {"curl_slist_append", &lib.slist_append},   {"curl_slist_free_all", &lib.slist_free_all}};
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    void *symbol = dlsym(so, symbols[i].name);
    if (!symbol) return;
    memcpy(symbols[i].into, &symbol, sizeof symbol);
  }
  loaded = lib.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

typedef struct exchange {
  lode__http_request request;
  lode__http_response *response;
  struct curl_slist *headers;
  size_t max;
  bool begun, too_long, cancelled;
} exchange;

struct lode__http {
  CURL *curl;
  CURLM *multi;     /* has the connection, and drives curl while a request is on its way */
  pid_t pid;        /* whose connection it is */
  char *text;       /* libcurl's own words about the last failure */
  exchange x;
};

/* A forked child leaves the parent's connection alone. */
static lode_status connect_as_me(lode__http *http, lode_error *err) {
  if (http->pid != getpid()) {
    http->pid = getpid();
    http->curl = NULL;
    http->multi = NULL;
  }
  if (!http->curl) http->curl = lib.easy_init();
  if (!http->multi) http->multi = lib.multi_init();
  return http->curl && http->multi ? LODE_OK : lode__fail_nomem(err);
}

lode_status lode__http_new(lode__http **out, lode_error *err) {
  *out = NULL;
  (void)pthread_once(&once, load);
  if (!loaded)
    return lode__fail(err, LODE_UNSUPPORTED, "speaking HTTP needs libcurl (Debian: apt-get install libcurl4), which could not be loaded");
  lode__http *http = lode__alloc_zero(1, sizeof *http);
  if (!http) return lode__fail_nomem(err);
  http->text = lode__alloc_zero(1, CURL_ERROR_SIZE);
  lode_status st = http->text ? connect_as_me(http, err) : lode__fail_nomem(err);
  if (st == LODE_OK) *out = http;
  else lode__http_free(http);
  return st;
}

/* The request is over, or given up. */
static void forget(lode__http *http) {
  if (http->x.begun) (void)lib.multi_remove_handle(http->multi, http->curl);
  lib.slist_free_all(http->x.headers);
  http->x = (exchange){0};
}

void lode__http_free(lode__http *http) {
  if (!http) return;
  if (http->pid == getpid()) {
    forget(http);
    if (http->curl) lib.easy_cleanup(http->curl);
    if (http->multi) (void)lib.multi_cleanup(http->multi);
  }
  lode__free(http->text);
  lode__free(http);
}

/* ---- One request ---- */

static size_t take_body(char *data, size_t size, size_t n, void *ctx) {
  exchange *x = ctx;
  lode__buf *body = &x->response->body;
  if (size * n > x->max - body->len) {
    x->too_long = true;
    return 0;
  }
  lode__buf_add(body, data, size * n);
  return body->failed ? 0 : size * n;
}

static int ask(void *ctx, curl_off_t dt, curl_off_t dn, curl_off_t ut, curl_off_t un) {
  exchange *x = ctx;
  (void)dt, (void)dn, (void)ut, (void)un;
  x->cancelled = x->request.go_on && !x->request.go_on(x->request.ctx);
  return x->cancelled;
}

static bool add_header(struct curl_slist **list, const char *header) {
  struct curl_slist *longer = lib.slist_append(*list, header);
  if (longer) *list = longer;
  return longer != NULL;
}

static bool make_headers(const lode__http_request *r, struct curl_slist **list) {
  bool typed = false;
  for (const char *const *h = r->headers; h && *h; h++) {
    if (!add_header(list, *h)) return false;
    typed = typed || strncasecmp(*h, "content-type:", 13) == 0;
  }
  if (r->body.data && !typed && !add_header(list, "Content-Type: application/json")) return false;
  return add_header(list, "Expect:"); /* no waiting for 100 Continue */
}

static void set_options(lode__http *http) {
  exchange *x = &http->x;
  const lode__http_request *r = &x->request;
  CURL *c = http->curl;
  lib.easy_reset(c);
  http->text[0] = '\0';
  lib.easy_setopt(c, CURLOPT_ERRORBUFFER, http->text);
  lib.easy_setopt(c, CURLOPT_URL, r->url);
  if (lib.easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") != CURLE_OK) /* before 7.85 */
    lib.easy_setopt(c, (CURLoption)(CURLOPTTYPE_LONG + 181), 3L);           /* CURLOPT_PROTOCOLS, of which the headers warn */
  lib.easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  if (!getenv("no_proxy") && !getenv("NO_PROXY")) lib.easy_setopt(c, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
  lib.easy_setopt(c, CURLOPT_TCP_NODELAY, 1L);
  lib.easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L);
  lib.easy_setopt(c, CURLOPT_UPLOAD_BUFFERSIZE, (long)UPLOAD_BYTES);
  lib.easy_setopt(c, CURLOPT_BUFFERSIZE, (long)DOWNLOAD_BYTES);
  lib.easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
  lib.easy_setopt(c, CURLOPT_USERAGENT, "lode/" LODE_VERSION_TEXT);
  lib.easy_setopt(c, CURLOPT_ACCEPT_ENCODING, NULL);
  lib.easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, r->connect_ms ? (long)r->connect_ms : 5000L);
  lib.easy_setopt(c, CURLOPT_TIMEOUT_MS, r->timeout_ms ? (long)r->timeout_ms : 60000L);
  lib.easy_setopt(c, CURLOPT_HTTPHEADER, x->headers);
  lib.easy_setopt(c, CURLOPT_CUSTOMREQUEST, r->method);
  if (r->body.data) {
    lib.easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.len);
    lib.easy_setopt(c, CURLOPT_POSTFIELDS, r->body.data);
  }
  lib.easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body);
  lib.easy_setopt(c, CURLOPT_WRITEDATA, x);
  lib.easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
  lib.easy_setopt(c, CURLOPT_XFERINFOFUNCTION, ask);
  lib.easy_setopt(c, CURLOPT_XFERINFODATA, x);
}

static bool never_arrived(CURLcode code) {
  return code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY ||
         code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_SSL_CONNECT_ERROR;
}

static lode_status explain(const lode__http *http, CURLcode code, lode_error *err) {
  const exchange *x = &http->x;
  if (x->cancelled) return lode__fail(err, LODE_CANCELLED, "cancelled while waiting for %s", x->request.url);
  if (x->response->body.failed || code == CURLE_OUT_OF_MEMORY) return lode__fail_nomem(err);
  if (x->too_long)
    return lode__fail(err, LODE_LIMIT, "the answer of %s is longer than %zu bytes", x->request.url, x->max);
  return lode__fail(err, LODE_IO, "no answer from %s: %s", x->request.url,
                    http->text[0] ? http->text : lib.easy_strerror(code));
}

lode_status lode__http_begin(lode__http *http, const lode__http_request *request, lode__http_response *response, lode_error *err) {
  response->status = 0;
  response->retry_after_s = 0;
  response->unsent = true;
  response->body.len = 0;
  LODE__TRY(connect_as_me(http, err));
  http->x = (exchange){.request = *request, .response = response, .max = request->max_bytes ? request->max_bytes : (size_t)1 << 30};
  bool made = make_headers(request, &http->x.headers);
  if (made) set_options(http);
  http->x.begun = made && lib.multi_add_handle(http->multi, http->curl) == CURLM_OK;
  if (!http->x.begun) {
    forget(http);
    return lode__fail_nomem(err);
  }
  lode__http_push(http);
  return LODE_OK;
}

void lode__http_push(lode__http *http) {
  int running;
  (void)lib.multi_perform(http->multi, &running); /* whatever it is, it comes again at the end */
}

/* How it went, when it is over. */
static CURLcode wait_for(lode__http *http) {
  enum { LOOK_MS = 1000 };
  int running = 1, left;
  while (lib.multi_perform(http->multi, &running) == CURLM_OK && running)
    if (lib.multi_poll(http->multi, NULL, 0, LOOK_MS, NULL) != CURLM_OK) break;
  const CURLMsg *end = lib.multi_info_read(http->multi, &left);
  return end ? end->data.result : CURLE_OUT_OF_MEMORY; /* all that a sound handle can fail by */
}

lode_status lode__http_end(lode__http *http, lode_error *err) {
  lode__http_response *response = http->x.response;
  CURLcode code = wait_for(http);
  lode_status st = code == CURLE_OK ? LODE_OK : explain(http, code, err);
  curl_off_t wait = 0;
  response->unsent = never_arrived(code);
  if (st == LODE_OK) {
    (void)lib.easy_getinfo(http->curl, CURLINFO_RESPONSE_CODE, &response->status);
    if (lib.easy_getinfo(http->curl, CURLINFO_RETRY_AFTER, &wait) == CURLE_OK && wait > 0)
      response->retry_after_s = wait > 3600 ? 3600 : (uint32_t)wait;
  }
  forget(http);
  return st;
}

lode_status lode__http_send(lode__http *http, const lode__http_request *request, lode__http_response *response, lode_error *err) {
  LODE__TRY(lode__http_begin(http, request, response, err));
  return lode__http_end(http, err);
}
