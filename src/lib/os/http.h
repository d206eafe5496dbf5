/* http.h - a client of HTTP servers, over libcurl.
 *
 * libcurl and the libraries that it needs take some 10 ms to load, and most processes never speak HTTP: it is
 * loaded at the first use, and where it is not installed that is LODE_UNSUPPORTED with a text that says so.
 *
 * A http_client is one connection that is kept alive between requests. It belongs to one thread at a time; after a fork it
 * connects anew.
 */
#ifndef LODE_OS_HTTP_H
#define LODE_OS_HTTP_H

#include "base/base.h"

typedef struct http_client http_client;

typedef struct http_request {
  const char *method;         /* "GET", "POST", "PUT", "PATCH", "DELETE" */
  const char *url;
  const char *const *headers; /* "Name: value", then NULL; NULL: none */
  lode_str body;              /* absent: none; sent as application/json unless a header says otherwise */
  uint32_t connect_ms;        /* 0 = 5,000 */
  uint32_t timeout_ms;        /* of the whole request; 0 = 60,000 */
  size_t max_bytes;           /* of the answer's body; 0 = 1 GiB */
  bool (*go_on)(void *ctx);   /* asked some times a second; false ends it with LODE_CANCELLED; may be NULL */
  void *ctx;
} http_request;

typedef struct http_response {
  long status;             /* of HTTP; 0 when there was no answer */
  strbuf body;          /* not NUL-terminated; kept between requests, released by the caller */
  uint32_t retry_after_s;  /* as the server asks; 0 = it does not */
  bool unsent;             /* there was no answer, and the server cannot have seen the request */
} http_response;

lode_status http_new(http_client **http, lode_error *err);
void http_free(http_client *http);
/* LODE_OK: there is an answer, of whatever status. LODE_IO: there is none (refused, cut, timed out). */
lode_status http_send(http_client *http, const http_request *request, http_response *response,
                            lode_error *err);
/* The same in two steps, for who has something else to do meanwhile: what the request points to, and the response, must live until
 * the end. Nothing moves by itself: push sends and takes what can be without waiting, and is to be called now and then. */
lode_status http_begin(http_client *http, const http_request *request, http_response *response, lode_error *err);
void http_pump(http_client *http);
lode_status http_finish(http_client *http, lode_error *err);

#endif
