/* SPDX-License-Identifier: Apache-2.0 */
/* http_kit.h - a server in a thread of the test that speaks just enough HTTP. */
#ifndef LODE_HTTP_KIT_H
#define LODE_HTTP_KIT_H

#include <stdbool.h>
#include <stddef.h>

/* Answers one request on fd; `body` points into `request`, and both end with a NUL. False: the connection is cut. */
typedef bool http_kit_fn(int fd, const char *request, const char *body, size_t len);
/* On a port of loopback, which it returns, until the process ends; again: the same server with another fn. Each
 * connection has a thread. */
unsigned http_kit_serve(http_kit_fn *fn);
void http_kit_answer(int fd, const char *status, const char *headers, const char *body);

#endif
