/* SPDX-License-Identifier: Apache-2.0 */
/* server_guard.c - checks who may talk to us. See server.h. */
#include "server/server.h"

#include <arpa/inet.h>
#include <strings.h>

/* The name in "name:port", "[::1]:port" or "name"; false if it is none of these. */
static bool guard_host_name(const char *host, char *name, size_t size) {
  size_t len = strlen(host);
  const char *end = host + len;
  if (host[0] == '[') {
    end = strchr(host, ']');
    if (!end || (end[1] && end[1] != ':')) return false;
    host++;
  } else {
    const char *colon = strchr(host, ':');
    if (colon) end = colon;
  }
  len = (size_t)(end - host);
  if (len == 0 || len >= size) return false;
  memcpy(name, host, len);
  name[len] = '\0';
  return true;
}

static bool guard_is_ip(const char *name) {
  unsigned char bytes[16];
  return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

bool server_is_loopback(const char *host) {
  struct in_addr four;
  struct in6_addr six;
  if (strcasecmp(host, "localhost") == 0) return true;
  if (inet_pton(AF_INET, host, &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
  return inet_pton(AF_INET6, host, &six) == 1 && memcmp(&six, &in6addr_loopback, sizeof six) == 0;
}

static bool guard_is_listed(const lode_str *list, size_t n, const char *text) {
  for (size_t i = 0; i < n; i++)
    if (list[i].len == strlen(text) && strncasecmp(list[i].data, text, list[i].len) == 0) return true;
  return false;
}

bool server_host_allowed(const server_options *options, const char *host) {
  char name[256];
  if (!host) return true; /* HTTP/1.0; browsers always send Host */
  if (!guard_host_name(host, name, sizeof name)) return false;
  return guard_is_ip(name) || strcasecmp(name, "localhost") == 0 || strcasecmp(name, options->host) == 0 ||
         guard_is_listed(options->allow_hosts, options->n_allow_hosts, name);
}

bool server_is_header_name(const char *name) {
  static const char also[] = "!#$%&'*+-.^_`|~";
  if (!*name) return false;
  for (; *name; name++) {
    char c = *name;
    if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !strchr(also, c)) return false;
  }
  return true;
}

bool server_is_one_line(const char *name, const char *value) {
  const char *at = name + strlen(name) + 1;
  if (!value || (uintptr_t)value < (uintptr_t)at) return false;
  while (at < value && (*at == ' ' || *at == '\t')) at++;
  return at == value;
}

bool server_origin_allowed(const server_options *options, const char *origin, const char *host) {
  const char *scheme = options->certificate ? "https://" : "http://";
  if (!origin) return true;
  if (host && strncasecmp(origin, scheme, strlen(scheme)) == 0 && strcasecmp(origin + strlen(scheme), host) == 0)
    return true;
  return guard_is_listed(options->allow_origins, options->n_allow_origins, origin);
}

bool server_token_matches(lode_str token, lode_str given) {
  size_t differs = token.len ^ given.len;
  if (token.len == 0) return false;
  for (size_t i = 0; i < given.len; i++) differs |= (size_t)(unsigned char)(given.data[i] ^ token.data[i % token.len]);
  return differs == 0;
}

static int guard_hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool server_percent_decode(char *text, size_t *len) {
  size_t to = 0;
  for (size_t from = 0; from < *len; from++) {
    char c = text[from];
    if (c == '%') {
      int high = from + 2 <= *len - 1 ? guard_hex(text[from + 1]) : -1,
          low = from + 2 <= *len - 1 ? guard_hex(text[from + 2]) : -1;
      if (high < 0 || low < 0) return false;
      c = (char)(high << 4 | low);
      from += 2;
    }
    if (c == '\0') return false;
    text[to++] = c;
  }
  *len = to;
  return utf8_valid(text, to);
}
