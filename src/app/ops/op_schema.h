/* SPDX-License-Identifier: Apache-2.0 */
/* op_schema.h - an operation as others see it: JSON Schema of its arguments and result, and what HTTP may use. */
#ifndef LODE_OPS_OP_SCHEMA_H
#define LODE_OPS_OP_SCHEMA_H

#include "ops/op_def.h"

/* {"name","description","inputSchema","outputSchema","annotations"}: an entry of MCP's tools/list. */
void op_schema(strbuf *out, const op_def *op);
void op_input_schema(strbuf *out, const op_def *op);

/* May an HTTP request run it? Not servers, not what changes files of this machine or needs a path, and not what
 * returns raw bytes. */
bool op_allowed_over_http(const op_def *op);
/* The operation as HTTP requests see it: without path arguments. `params` receives its parameter list. */
void op_http_view(const op_def *op, op_def *out, op_param params[OP_MAX_PARAMS + 1]);

#endif
