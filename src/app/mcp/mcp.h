/* SPDX-License-Identifier: Apache-2.0 */
/* mcp.h - the front end for agents: the Model Context Protocol over standard input and output. `lode mcp` runs it.
 *
 *   op_mcp.c       lines in and out, the supervisor, the watcher
 *   mcp.c          messages: both eras of the protocol, requests in flight, cancellation, progress; no I/O
 *   mcp_tools.c    the tools, and the operation of the table behind each
 *   mcp_compat.c   the same for the tools of mcp-vector-search, with --compat
 *   mcp_prompts.c  the prompts
 *   mcp_resources.c  the resources
 *   mcp_service.c  the worker part: runs a tool, and makes a reply that fits an agent's context
 *   mcp_text.c     the reply as text
 *
 * Eras: a request that names its protocol version in _meta belongs to the stateless era (2026-07-28) and is answered
 * accordingly; all others belong to the handshake era. No state is kept between requests besides those in flight, so a
 * client may even mix them.
 *
 * Threads: one thread passes in lines; replies and progress may come from any thread. `lock` guards the list of
 * requests and the batches; nothing is sent or called while it is held.
 */
#ifndef LODE_MCP_MCP_H
#define LODE_MCP_MCP_H

#include "worker/worker.h"

#define MCP_MAX_LINE_BYTES (32u << 20) /* maximum length of a line */
#define MCP_STATELESS_VERSION "2026-07-28"

/* ---- Tools (mcp_tools.c) ---- */

typedef struct mcp_tool {
  const char *name, *title, *about;
  const char *group, *base; /* the operation behind it */
  const op_param *params;   /* replace the operation's, or NULL */
  const char *hide;         /* "a|b": parameters of the operation that are not offered */
  size_t args_size;         /* of its struct of arguments, which begins with the operation's; 0: the operation's */
  const char *place;        /* the operation's parameter that takes "file" and "line" */
  const char *project;      /* the operation's parameter for the project's root; NULL: a memory tool */
  const char *always;       /* a flag of the operation that is always set */
  bool is_long;             /* may take minutes, reports progress */
  bool listed;              /* tools/list has it; the others are older names, and members of families */
  bool brief;               /* the reply is text within a budget of tokens, MCP_DEFAULT_TOKENS unless the caller says */
  bool compat;              /* of mcp_compat.c */
  const char *unused;       /* "a|b": arguments that are accepted, and that have no effect, which a note says */
  /* Makes arguments that the operation does not have those that it has; after the arguments were checked. */
  lode_status (*adapt)(op_args *args, const char *root, lode_error *err);
  /* A family: the argument `pick` says which of its tools is meant, "word=tool|word=tool". */
  const char *pick, *picks;
  const char *schema; /* of a family's arguments */
  const char *parts;  /* "tool|tool": the reply is theirs, one after the other */
} mcp_tool;

#define MCP_DEFAULT_TOKENS 2000
#define MCP_TOKEN_BYTES 4 /* an estimate: of code, a token is three to four bytes */

extern const mcp_tool mcp_tools[]; /* ends with a NULL name */
extern const mcp_tool mcp_compat_tools[];
/* compat: those of mcp-vector-search come first. */
const mcp_tool *mcp_tool_find(lode_str name, bool compat);
/* What to use instead of a tool of mcp-vector-search that is not answered; NULL if there is no such tool. */
const char *mcp_compat_instead(lode_str name);
const op_def *mcp_tool_base_op(const mcp_tool *tool);
/* The tool of a family that the word means; NULL when there is none. */
const mcp_tool *mcp_tool_pick(const mcp_tool *family, lode_str word);
/* The tool as an operation: its own parameters, which are put into `params`, and the result of the one behind it. */
void mcp_tool_as_op(const mcp_tool *tool, op_def *op, op_param params[OP_MAX_PARAMS + 1]);
/* [{"name",..},..] */
void mcp_tools_put(strbuf *out, bool compat);
/* Makes checked arguments of the tool those of the operation behind it. */
LODE_MUST lode_status mcp_tool_complete(const mcp_tool *tool, const char *root, op_args *args, lode_error *err);

/* ---- Prompts (mcp_prompts.c) ---- */

/* [{"name",..},..] */
void mcp_prompts_put(strbuf *out);
/* The members of the result of prompts/get with these params; false: `why` says what is wrong with them. */
bool mcp_prompt_put(strbuf *out, const json_doc *json, uint32_t params, char *why, size_t size);

/* ---- Resources (mcp_resources.c) ---- */

void mcp_resources_put(strbuf *out);          /* [{"uri",..},..] */
void mcp_resource_templates_put(strbuf *out); /* [{"uriTemplate",..},..] */
/* The tool whose reply the resource is, and its arguments; NULL: there is no such resource. */
const mcp_tool *mcp_resource_find(lode_str uri, strbuf *arguments);
/* Makes the members of a tool's result those of resources/read. False: the tool failed, and `why` is its text. */
bool mcp_resource_put(strbuf *out, lode_str uri, lode_str members, strbuf *why);

/* ---- Messages (mcp.c) ---- */

typedef struct mcp_session mcp_session;
typedef struct mcp_request mcp_request;

typedef struct mcp_callbacks {
  /* Sends a line, with its end; takes over the buffer. */
  void (*send)(void *ctx, strbuf *line);
  /* Runs a tool. mcp_respond must be called once, from any thread, perhaps before this returns. */
  void (*call)(void *ctx, mcp_request *request);
  /* The call's reply is no longer wanted; mcp_respond must still be called. */
  void (*cancel)(void *ctx, uint64_t call);
  void *ctx;
  bool compat; /* the tools of mcp-vector-search are there, too */
} mcp_callbacks;

struct mcp_request {
  mcp_session *mcp;
  const mcp_tool *tool;
  strbuf arguments; /* JSON */
  strbuf uri;       /* of the resource that is read; empty: a tool is called */
  uint64_t call;    /* set by the callback `call`, before any reply */
  /* private to mcp.c */
  strbuf id, token; /* JSON; empty token: no progress wanted */
  bool stateless, cancelled;
  bool detached; /* the client gave up waiting: the work goes on, and the next such request gets the reply */
  struct mcp_batch *batch;
  uint64_t base, shown, shown_ns; /* progress must only grow */
  char phase[40];
  mcp_request *before, *after;
};

LODE_MUST lode_status mcp_session_new(const mcp_callbacks *callbacks, mcp_session **mcp, lode_error *err);
/* All requests must have been answered. */
void mcp_session_free(mcp_session *mcp);
/* Handles one message, or a batch. Never fails: errors are answered. */
void mcp_handle_line(mcp_session *mcp, lode_str line);
/* A line longer than MCP_MAX_LINE_BYTES was dropped. */
void mcp_line_too_long(mcp_session *mcp);
/* `members`: the members of the result object. Frees the request. */
void mcp_respond(mcp_request *request, lode_str members);
/* The same for a failure, with a text. */
void mcp_respond_error(mcp_request *request, const char *text);
void mcp_send_progress(mcp_request *request, lode_str phase, uint64_t done, uint64_t total);
/* Cancels all requests, or only the long ones. */
void mcp_cancel_all(mcp_session *mcp, bool only_long);
size_t mcp_in_flight(mcp_session *mcp);

/* ---- Replies (mcp_service.c, mcp_text.c) ---- */

/* The worker part of a call. */
void mcp_service(worker_task *task);

/* "content":[..],"isError":true */
void mcp_put_failure(strbuf *out, lode_str text);
/* A text for people as one for agents: commands become tools. */
void mcp_put_agent_text(strbuf *out, lode_str text);
/* A row of a result as text. */
void mcp_put_row(strbuf *out, const op_def *op, const op_row *row, size_t number);
/* A definition by its lines and its signature, or kind and name, below the path of its file unless that is "". */
void mcp_put_short_row(strbuf *out, const op_row *row, lode_str path, bool signature);
void mcp_put_summary(strbuf *out, const op_def *op, const op_row *summary);

#endif
