/* SPDX-License-Identifier: Apache-2.0 */
/* mhd.h - libmicrohttpd, loaded when a server starts: it loads a TLS library, and no other command and no restarted
 * worker should pay for that. Its header is needed to build. */
#ifndef LODE_SERVER_MHD_H
#define LODE_SERVER_MHD_H

#include "base/base.h"

#include <microhttpd.h>

/* clang-format off */
#define SERVER_MHD_FUNCTIONS(X)                                                                           \
  X(start_daemon) X(stop_daemon) X(quiesce_daemon) X(suspend_connection) X(resume_connection)             \
  X(create_response_from_buffer) X(create_response_from_buffer_with_free_callback) X(add_response_header) \
  X(queue_response) X(destroy_response) X(lookup_connection_value) X(get_connection_values)               \
  X(get_connection_info) X(is_feature_supported) X(get_version)
/* clang-format on */

typedef struct server_mhd_calls {
#define SERVER_MHD_FIELD(name) __typeof__(MHD_##name) *name;
  SERVER_MHD_FUNCTIONS(SERVER_MHD_FIELD)
#undef SERVER_MHD_FIELD
} server_mhd_calls;

extern server_mhd_calls server_mhd;
/* LODE_UNSUPPORTED, with the name of the package, if it is not installed. */
LODE_MUST lode_status server_mhd_load(lode_error *err);

#endif
