/* mcp.h - the face for agents: the Model Context Protocol over standard input and output. `lode mcp` runs it.
 *
 *   op_mcp.c       lines in and out, the supervisor, the watcher
 *   mcp.c          messages: both eras of the protocol, requests in flight, cancellation, progress; no I/O
 *   mcp_tools.c    the tools, and which operation of the table is behind each
 *   mcp_service.c  the worker's half: runs a tool, and makes an answer that fits an agent's context
 *   mcp_text.c     that answer as text
 *
 * Eras: a request that names its protocol version in _meta is of the stateless era (2026-07-28) and answered so; all others are of the
 * handshake era. Nothing is kept between requests but those in flight, so one client may even mix them.
 *
 * Threads: one thread gives lines; answers and progress may come from any. `lock` guards the list of requests and the batches; nothing
 * is sent or called with it held.
 */
#ifndef LODE_MCP_MCP_H
#define LODE_MCP_MCP_H

#include "worker/worker.h"

#define MCP_MAX_LINE_BYTES (32u << 20) /* longest line */
#define MCP_STATELESS_VERSION "2026-07-28"

/* ---- Tools (mcp_tools.c) ---- */

typedef struct mcp_tool {
  const char *name, *title, *about;
  const char *group, *base;   /* the operation behind it */
  const op_param *params;  /* instead of the operation's, or NULL */
  const char *hide;           /* "a|b": parameters of the operation that it does not offer */
  const char *renames;        /* "language=lang|kind=type": where a parameter goes */
  const char *project;        /* the operation's parameter that takes the project's root; NULL: a tool of memory */
  const char *always;         /* a flag of the operation that is always given */
  bool is_long;               /* may take minutes, tells its progress */
} mcp_tool;

extern const mcp_tool mcp_tools[]; /* ends with a NULL name */
const mcp_tool *mcp_tool_find(lode_str name);
const op_def *mcp_tool_base_op(const mcp_tool *tool);
/* The tool as an operation: its own parameters, the answer of the one behind it. The parameters go into `params`. */
void mcp_tool_as_op(const mcp_tool *tool, op_def *op, op_param params[OP_MAX_PARAMS + 1]);
/* [{"name",..},..] */
void mcp_tools_put(strbuf *out);
/* Checked arguments of the tool become those of the operation behind it. `args` is used up. */
lode_status mcp_tool_translate(const mcp_tool *tool, const char *root, op_args *args, op_args *base, lode_error *err);

/* ---- Messages (mcp.c) ---- */

typedef struct mcp_session mcp_session;
typedef struct mcp_request mcp_request;

typedef struct mcp_callbacks {
  /* A line with its end; takes the buffer's memory. */
  void (*send)(void *ctx, strbuf *line);
  /* Runs a tool. mcp_respond must come for it, once, from any thread, perhaps before this returns. */
  void (*call)(void *ctx, mcp_request *request);
  /* Nobody waits for this call any more; the answer must come all the same. */
  void (*cancel)(void *ctx, uint64_t call);
  void *ctx;
} mcp_callbacks;

struct mcp_request {
  mcp_session *mcp;
  const mcp_tool *tool;
  strbuf arguments;       /* JSON */
  uint64_t call;             /* set by whoever runs it, before anything of it is answered */
  /* of mcp.c */
  strbuf id, token;       /* JSON; token empty: no progress wanted */
  bool modern, cancelled;
  struct mcp_batch *batch;
  uint64_t base, shown, shown_ns; /* progress: only ever more */
  char phase[40];
  mcp_request *before, *after;
};

lode_status mcp_session_new(const mcp_callbacks *port, mcp_session **mcp, lode_error *err);
/* All requests must have been answered. */
void mcp_session_free(mcp_session *mcp);
/* One message, or a batch of them. Never fails: what is wrong with it is answered. */
void mcp_handle_line(mcp_session *mcp, lode_str line);
/* A line longer than MCP_MAX_LINE_BYTES was thrown away. */
void mcp_line_too_long(mcp_session *mcp);
/* `members`: what is inside of the result's braces. Frees the request. */
void mcp_respond(mcp_request *request, lode_str members);
/* The same, for a failure that has no members yet. */
void mcp_respond_error(mcp_request *request, const char *text);
void mcp_send_progress(mcp_request *request, lode_str phase, uint64_t done, uint64_t total);
/* Asks all requests to stop, or only the long ones. */
void mcp_cancel_all(mcp_session *mcp, bool only_long);
size_t mcp_in_flight(mcp_session *mcp);

/* ---- Answers (mcp_service.c, mcp_text.c) ---- */

/* The worker's half of a call. */
void mcp_service(worker_task *task);

/* "content":[..],"isError":true */
void mcp_put_failure(strbuf *out, lode_str text);
/* Text by others as part of one line: without control characters and backticks. */
void mcp_put_line(strbuf *out, lode_str text);
/* A row of an answer for reading. */
void mcp_put_row(strbuf *out, const op_def *op, const json_doc *row, size_t number);
lode_status mcp_put_summary(strbuf *out, const op_def *op, lode_str summary, lode_error *err);

#endif
