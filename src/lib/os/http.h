/* SPDX-License-Identifier: Apache-2.0 */
/* http.h - an HTTP client, based on libcurl.
 *
 * libcurl and its dependencies take some 10 ms to load, and most processes never use HTTP: it is loaded on first use;
 * if it is not installed, that is LODE_UNSUPPORTED with a text that says so.
 *
 * An http_client is one connection that is kept alive between requests. It belongs to one thread at a time; after a
 * fork the child opens a connection of its own.
 */
#ifndef LODE_OS_HTTP_H
#define LODE_OS_HTTP_H

#include "base/base.h"

typedef struct http_client http_client;

typedef struct http_request {
  const char *method; /* "GET", "POST", "PUT", "PATCH", "DELETE" */
  const char *url;
  const char *const *headers; /* "Name: value", then NULL; NULL: none */
  lode_str body;              /* absent: none; sent as application/json unless a header says otherwise */
  uint32_t connect_ms;        /* 0 = 5,000 */
  uint32_t timeout_ms;        /* of the whole request; 0 = 60,000 */
  size_t max_bytes;           /* of the response body; 0 = 1 GiB */
  bool (*go_on)(void *ctx);   /* called several times a second; false ends it with LODE_CANCELLED; may be NULL */
  void *ctx;
} http_request;

typedef struct http_response {
  long status;            /* HTTP status; 0 if there was no response */
  strbuf body;            /* not NUL-terminated; reused by later requests, released by the caller */
  uint32_t retry_after_s; /* as requested by the server; 0 = not given */
  bool unsent;            /* there was no response, and the server cannot have seen the request */
} http_response;

LODE_MUST lode_status http_new(http_client **http, lode_error *err);
void http_free(http_client *http);
/* LODE_OK: there is a response, with any status. LODE_IO: there is none (refused, disconnected, timed out). */
LODE_MUST lode_status http_send(http_client *http, const http_request *request, http_response *response,
                                lode_error *err);
/* The same in two steps, for callers that have other work meanwhile: whatever the request points to, and the response,
 * must live until http_finish(). Nothing happens in the background: http_pump() sends and receives what it can without
 * waiting, and must be called now and then. */
LODE_MUST lode_status http_begin(http_client *http, const http_request *request, http_response *response,
                                 lode_error *err);
void http_pump(http_client *http);
LODE_MUST lode_status http_finish(http_client *http, lode_error *err);

#endif
