/* SPDX-License-Identifier: Apache-2.0 */
/* remote_client.c - the cluster: addresses, connections, requests and their retries.
 *
 * An address is qdrant://HOST:PORT,HOST:PORT/PREFIX?shards=N&replicas=N&write_consistency=N (qdrants:// uses TLS).
 * The API key is taken from the environment (LODE_QDRANT_API_KEY or QDRANT_API_KEY): addresses end up in logs and
 * process lists, keys must not.
 *
 * Any node can answer for the whole cluster. The one that answered last is tried first; if it does not answer within
 * busy_ms, the next one is tried. All requests are idempotent: after a failure it does not matter whether the server
 * has executed them.
 */
#include "remote/remote.h"

#include "os/os.h"

#include <stdlib.h>

enum {
  CLIENT_BUSY_MS = 10000,    /* how long a request is tried, where the store's options have no busy_ms */
  CLIENT_MIN_WAIT_MS = 20,   /* the first pause before a request is repeated; each is longer than the one before */
  CLIENT_MAX_WAIT_MS = 1000, /* the longest pause */
};

/* ---- Addresses ---- */

static bool address_parse_number(lode_str text, uint32_t *out) {
  uint64_t n = 0;
  for (size_t i = 0; i < text.len; i++) {
    if (text.data[i] < '0' || text.data[i] > '9' || (n = n * 10 + (uint64_t)(text.data[i] - '0')) > 100000)
      return false;
  }
  *out = (uint32_t)n;
  return text.len > 0 && n > 0;
}

static lode_status address_parse_option(remote_store *s, lode_str option, lode_error *err) {
  char quoted[256];
  const struct {
    const char *name;
    uint32_t *into;
  } options[] = {{"shards=", &s->shards},
                 {"replicas=", &s->replicas},
                 {"write_consistency=", &s->write_consistency},
                 {"plain_key=", &s->plain_key}};
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
    size_t len = strlen(options[i].name);
    if (option.len < len || memcmp(option.data, options[i].name, len) != 0) continue;
    if (address_parse_number((lode_str){option.data + len, option.len - len}, options[i].into)) return LODE_OK;
    break;
  }
  return err_set(
      err, LODE_INVALID,
      "the store's address has an option %s: shards=N, replicas=N, write_consistency=N and plain_key=1 are known",
      str_quote(option, quoted, sizeof quoted));
}

static bool address_is_name(const char *text, size_t len) {
  for (size_t i = 0; i < len; i++) {
    char c = text[i];
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_'))
      return false;
  }
  return len > 0 && len <= 64;
}

static bool address_is_host(const char *text, size_t len) {
  for (size_t i = 0; i < len; i++)
    if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]_", text[i])) return false;
  return len > 0 && len < 256;
}

static const char *address_copy(remote_store *s, const char *head, const char *text, size_t len) {
  size_t head_len = strlen(head);
  char *p = mem_arena_alloc(&s->arena, head_len + len + 1);
  if (!p) return NULL;
  memcpy(p, head, head_len);
  memcpy(p + head_len, text, len);
  p[head_len + len] = '\0';
  return p;
}

/* HOST, HOST:PORT, [V6] or [V6]:PORT. Returns false if the port is invalid. */
static bool address_has_port(const char *host, size_t len, bool *has_port) {
  size_t at = len;
  unsigned long port = 0;
  while (at > 0 && host[at - 1] != ':' && host[at - 1] != ']') at--;
  *has_port = at > 0 && host[at - 1] == ':';
  if (!*has_port) return true;
  for (size_t i = at; i < len && port <= 65535; i++) {
    if (host[i] < '0' || host[i] > '9') return false;
    port = port * 10 + (unsigned long)(host[i] - '0');
  }
  return port >= 1 && port <= 65535 && at > 1;
}

static lode_status address_parse_hosts(remote_store *s, const char *scheme, const char *hosts, size_t len,
                                       lode_error *err) {
  for (size_t at = 0; at <= len;) {
    size_t end = at;
    while (end < len && hosts[end] != ',') end++;
    bool has_port;
    if (!address_is_host(hosts + at, end - at) || !address_has_port(hosts + at, end - at, &has_port))
      return err_set(err, LODE_INVALID,
                     "the store's address must be qdrant://HOST:PORT, or several HOST:PORT with commas between them");
    if (s->n_bases == REMOTE_MAX_ADDRESSES)
      return err_set(err, LODE_LIMIT, "the store's address names more than %d nodes", REMOTE_MAX_ADDRESSES);
    const char *base = address_copy(s, scheme, hosts + at, end - at);
    if (base && !has_port) base = address_copy(s, base, ":6333", 5);
    if (!base) return err_nomem(err);
    s->bases[s->n_bases++] = base;
    at = end + 1;
  }
  return LODE_OK;
}

/* "http://HOST:PORT": is HOST this machine, by a name that no resolver is asked for? */
static bool address_is_loopback(const char *base) {
  const char *host = strstr(base, "://") + 3;
  size_t len = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
  return str_eq((lode_str){host, len}, STR_LIT("localhost")) || str_eq((lode_str){host, len}, STR_LIT("[::1]")) ||
         (strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == len);
}

/* Whoever listens on the way would have the key: that must be asked for. */
static lode_status address_add_key(remote_store *s, lode_error *err) {
  const char *key = getenv("LODE_QDRANT_API_KEY");
  if (!key || !*key) key = getenv("QDRANT_API_KEY");
  if (!key || !*key) return LODE_OK;
  for (size_t i = 0; i < s->n_bases && !s->plain_key; i++)
    if (strncmp(s->bases[i], "http:", 5) == 0 && !address_is_loopback(s->bases[i]))
      return err_set(
          err, LODE_REFUSED,
          "the key of the environment (LODE_QDRANT_API_KEY) would be sent unencrypted to %s: use qdrants://, "
          "or add ?plain_key=1 to the address if nobody can listen on the way",
          s->bases[i]);
  s->headers[0] = address_copy(s, "api-key: ", key, strlen(key));
  return s->headers[0] ? LODE_OK : err_nomem(err);
}

static lode_status address_parse(remote_store *s, const char *address, lode_error *err) {
  bool tls = strncmp(address, "qdrants://", 10) == 0;
  const char *p = address + (tls ? 10 : 9), *end = p + strlen(p);
  const char *query = memchr(p, '?', (size_t)(end - p)), *stop = query ? query : end;
  const char *slash = memchr(p, '/', (size_t)(stop - p)), *hosts_end = slash ? slash : stop;
  TRY(address_parse_hosts(s, tls ? "https://" : "http://", p, (size_t)(hosts_end - p), err));
  s->prefix = "lode";
  if (slash && slash + 1 < stop) {
    if (!address_is_name(slash + 1, (size_t)(stop - slash - 1)))
      return err_set(err, LODE_INVALID,
                     "the name after the / of the store's address may have 1 to 64 letters, digits, - and _");
    if (!(s->prefix = address_copy(s, "", slash + 1, (size_t)(stop - slash - 1)))) return err_nomem(err);
  }
  for (const char *at = query; at && at < end;) {
    size_t len = strcspn(at + 1, "&");
    TRY(address_parse_option(s, (lode_str){at + 1, len}, err));
    at += len + 1;
  }
  return address_add_key(s, err);
}

/* ---- Connections ---- */

static lode_status client_take_conn(remote_store *s, http_client **http, lode_error *err) {
  *http = NULL;
  pthread_mutex_lock(&s->lock);
  if (s->n_idle) *http = s->idle[--s->n_idle];
  pthread_mutex_unlock(&s->lock);
  return *http ? LODE_OK : http_new(http, err);
}

static void client_give_conn(remote_store *s, http_client *http) {
  pthread_mutex_lock(&s->lock);
  if (s->n_idle < REMOTE_MAX_IDLE_CONNS) {
    s->idle[s->n_idle++] = http;
    http = NULL;
  }
  pthread_mutex_unlock(&s->lock);
  http_free(http);
}

/* ---- Requests ---- */

remote_transport_fn *remote_transport = http_send;

void remote_call_release(remote_call *call) {
  http_free(call->started);
  strbuf_release(&call->path);
  strbuf_release(&call->body);
  strbuf_release(&call->url);
  strbuf_release(&call->response.body);
  json_release(&call->answer);
  *call = (remote_call){0};
}

void remote_call_path(remote_call *call, const char *format, ...) {
  char text[512];
  va_list ap;
  va_start(ap, format);
  int n = vsnprintf(text, sizeof text, format, ap);
  va_end(ap);
  call->path.len = 0;
  if (n < 0 || (size_t)n >= sizeof text)
    call->path.failed = true;
  else
    strbuf_add(&call->path, text, (size_t)n);
  call->body.len = 0;
}

/* The server's message: {"status":{"error":"..."}}. */
static void client_error_text(remote_call *call, char *text, size_t size) {
  lode_error unused;
  lode_str body = {call->response.body.data, call->response.body.len};
  snprintf(text, size, "status %ld", call->response.status);
  if (!body.len || json_parse(&call->answer, body, NULL, &unused) != LODE_OK) return;
  uint32_t status = call->answer.nodes[0].type == JSON_NODE_OBJECT ? json_get(&call->answer, 0, STR_LIT("status")) : 0;
  uint32_t error = status && call->answer.nodes[status].type == JSON_NODE_OBJECT
                       ? json_get(&call->answer, status, STR_LIT("error"))
                       : 0;
  if (!error || call->answer.nodes[error].type != JSON_NODE_STRING) return;
  lode_str s = call->answer.nodes[error].u.s;
  snprintf(text, size, "status %ld: %.*s", call->response.status, s.len > 300 ? 300 : (int)s.len, s.data);
}

/* If so, the request is not retried. */
static bool client_disk_is_full(const remote_call *call) {
  static const char *const words[] = {"No space left", "out of disk", "disk space"};
  lode_str body = {call->response.body.data, call->response.body.len};
  for (size_t i = 0; body.data && i < sizeof words / sizeof *words; i++)
    if (memmem(body.data, body.len, words[i], strlen(words[i]))) return true;
  return false;
}

static bool client_is_transient(long status) {
  return status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

static lode_status client_read_answer(remote_call *call, lode_error *err) {
  char words[400];
  long status = call->response.status;
  if (status < 200 || status > 299) {
    client_error_text(call, words, sizeof words);
    if (client_disk_is_full(call))
      return err_set(err, LODE_FULL, "a disk of the cluster is full: make room there, then repeat the call; %s", words);
    if (status == 404) return err_set(err, LODE_NOT_FOUND, "the cluster does not know it: %s", words);
    if (status == 401 || status == 403)
      return err_set(err, LODE_REFUSED, "the cluster refuses the key (LODE_QDRANT_API_KEY): %s", words);
    return err_set(err, client_is_transient(status) ? LODE_IO : LODE_REFUSED, "the cluster answered: %s", words);
  }
  lode_str body = {call->response.body.data ? call->response.body.data : "", call->response.body.len};
  lode_error why;
  lode_status st = json_parse(&call->answer, body, NULL, &why);
  if (st == LODE_NOMEM) return err_nomem(err);
  call->result = st == LODE_OK && call->answer.nodes[0].type == JSON_NODE_OBJECT
                     ? json_get(&call->answer, 0, STR_LIT("result"))
                     : 0;
  if (!call->result)
    return err_set(err, LODE_CORRUPT, "the cluster's answer is not one of Qdrant's (%s)",
                   st != LODE_OK ? why.text : "no result");
  return LODE_OK;
}

static bool client_goes_on(void *ctx) {
  const lode_progress *progress = ctx;
  return err_go_on(*progress, "reading", 0, 0);
}

/* The request points into the call. `last`: there is no other address to try. */
static http_request client_make_request(const remote_store *s, size_t base, bool last, const char *method,
                                        remote_call *call) {
  call->url.len = 0;
  strbuf_addstr(&call->url, s->bases[base]);
  strbuf_add(&call->url, call->path.data, call->path.len);
  strbuf_addch(&call->url, '\0');
  return (http_request){
      .method = method,
      .url = call->url.data,
      .headers = s->headers,
      .body = call->body.len ? (lode_str){call->body.data, call->body.len} : (lode_str){0},
      .connect_ms = s->n_bases > 1 ? 1000 : s->head.options->busy_ms,
      .go_on = call->progress.step ? client_goes_on : NULL,
      .ctx = &call->progress,
      .timeout_ms = !last || s->head.options->busy_ms > 60000 ? s->head.options->busy_ms : 60000,
  };
}

static bool client_is_complete(const remote_call *call) {
  return !call->path.failed && !call->body.failed && !call->url.failed;
}

/* Tries each address once, beginning with the one that answered last. */
static lode_status client_try_addresses(remote_store *s, http_client *http, const char *method, remote_call *call,
                                        lode_error *err) {
  lode_status st = LODE_IO;
  size_t first = atomic_load_explicit(&s->base, memory_order_relaxed);
  for (size_t i = 0; i < s->n_bases; i++) {
    size_t base = (first + i) % s->n_bases;
    http_request request = client_make_request(s, base, i + 1 == s->n_bases, method, call);
    if (!client_is_complete(call)) return err_nomem(err);
    st = remote_transport(http, &request, &call->response, err);
    if (st == LODE_OK) {
      atomic_store_explicit(&s->base, base, memory_order_relaxed);
      if (!client_is_transient(call->response.status) || i + 1 == s->n_bases) break;
    } else if (st != LODE_IO) {
      break;
    }
  }
  return st;
}

void remote_call_start(remote_store *s, const char *method, remote_call *call) {
  lode_error unused;
  http_client *http;
  call->base = atomic_load_explicit(&s->base, memory_order_relaxed);
  http_request request = client_make_request(s, call->base, s->n_bases == 1, method, call);
  if (!client_is_complete(call) || remote_transport != http_send || client_take_conn(s, &http, &unused) != LODE_OK)
    return;
  if (http_begin(http, &request, &call->response, &unused) == LODE_OK)
    call->started = http;
  else
    client_give_conn(s, http);
}

void remote_call_push(remote_call *call) {
  if (call->started) http_pump(call->started);
}

lode_status remote_call_send(remote_store *s, const char *method, remote_call *call, lode_error *err) {
  uint64_t until = os_api->now_ns() + (uint64_t)s->head.options->busy_ms * 1000000, wait = CLIENT_MIN_WAIT_MS;
  http_client *http = call->started;
  lode_status st;
  bool started = http != NULL;
  call->started = NULL;
  if (!http) TRY(client_take_conn(s, &http, err));
  for (;;) {
    st = started ? http_finish(http, err) : client_try_addresses(s, http, method, call, err);
    bool transient =
        st == LODE_IO || (st == LODE_OK && client_is_transient(call->response.status) && !client_disk_is_full(call));
    /* If the only node is busy, wait before the retry; otherwise retry at once. */
    bool at_once = started && transient && (st == LODE_IO || s->n_bases > 1);
    started = false;
    if (at_once) { /* a normal attempt, beginning with the next address unless another thread has moved on already */
      size_t base = call->base;
      atomic_compare_exchange_strong(&s->base, &base, (base + 1) % s->n_bases);
      continue;
    }
    uint64_t now = os_api->now_ns(), asked = (uint64_t)call->response.retry_after_s * 1000;
    if (asked > wait) wait = asked;
    if (!transient || now + wait * 1000000 > until) break;
    os_api->sleep_us(wait * 1000);
    wait = wait * 2 > CLIENT_MAX_WAIT_MS ? CLIENT_MAX_WAIT_MS : wait * 2;
  }
  if (st == LODE_OK) st = client_read_answer(call, err);
  client_give_conn(s, http);
  return st;
}

uint64_t remote_next_seq(remote_store *s, size_t n) {
  /* Microseconds since 2025, times 8 */
  uint64_t wall = os_wall_ms(), start = 1735689600000u;
  uint64_t now = wall > start ? (wall - start) * 8000 : 0, last = atomic_load(&s->clock), first;
  do {
    first = now > last ? now : last + 1;
  } while (!atomic_compare_exchange_weak(&s->clock, &last, first + n));
  return first;
}

/* ---- Open and close ---- */

static lode_status client_open_registry(remote_store *s, bool create, lode_error *err) {
  remote_call call = {0};
  lode_status st;
  remote_call_path(&call, "/collections/%s-registry", s->prefix);
  st = remote_call_send(s, "GET", &call, err);
  if (st != LODE_NOT_FOUND) goto done;
  if (!create) {
    st = err_set(err, LODE_NOT_FOUND, "there is no store %s in this cluster: `lode db create` makes it", s->prefix);
    goto done;
  }
  strbuf_addstr(&call.body, "{\"vectors\":{},\"on_disk_payload\":false");
  if (s->replicas) strbuf_addf(&call.body, ",\"replication_factor\":%u", s->replicas);
  if (s->write_consistency) strbuf_addf(&call.body, ",\"write_consistency_factor\":%u", s->write_consistency);
  strbuf_addstr(&call.body, "}");
  st = remote_call_send(s, "PUT", &call, err);
  if (st == LODE_REFUSED) { /* somebody else has created it meanwhile */
    remote_call_path(&call, "/collections/%s-registry", s->prefix);
    st = remote_call_send(s, "GET", &call, err);
  }
done:
  remote_call_release(&call);
  return st;
}

lode_status remote_open(const char *address, const lode_open_options *options, lode_store **out, lode_error *err) {
  static const lode_open_options defaults;
  lode_status st;
  *out = NULL;
  remote_store *s = mem_calloc(1, sizeof *s);
  if (!s) return err_nomem(err);
  s->head.engine = &remote_table;
  s->filled = options ? *options : defaults;
  s->head.options = &s->filled;
  if (!s->filled.busy_ms) s->filled.busy_ms = CLIENT_BUSY_MS;
  if (!s->filled.memory_bytes) s->filled.memory_bytes = (uint64_t)256 << 20;
  if (!s->filled.max_document_bytes) s->filled.max_document_bytes = (uint64_t)64 << 20;
  mem_arena_init(&s->arena, 0);
  (void)pthread_mutex_init(&s->lock, NULL);
  TRY_GOTO(address_parse(s, address, err));
  TRY_GOTO(client_open_registry(s, s->filled.create, err));
  *out = &s->head;
done:
  if (st != LODE_OK) remote_close(&s->head);
  return st;
}

void remote_close(lode_store *head) {
  remote_store *s = remote_store_of(head);
  for (size_t i = 0; i < s->n_idle; i++) http_free(s->idle[i]);
  (void)pthread_mutex_destroy(&s->lock);
  mem_arena_release(&s->arena);
  mem_free(s);
}

/* ---- The table of operations ---- */

const iface_ops remote_table = {.open = remote_open,
                                .close = remote_close,
                                .collection_close = remote_collection_close,
                                .rollback = remote_rollback,
#define REMOTE_MEMBER(name, handle, params, args) .name = remote_##name,
                                IFACE_OPS(REMOTE_MEMBER)
#undef REMOTE_MEMBER
};
