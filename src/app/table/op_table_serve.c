/* SPDX-License-Identifier: Apache-2.0 */
/* op_table_serve.c - operations that are servers. See op_def.h. */
#include "table/op_args_serve.h"

#define P_SERVE_ALLOW_MODEL(args)                                                                                      \
  {                                                                                                                    \
    OP_LIST(args, allow_model),                                                                                        \
        .value = "MODEL,MODEL",                                                                                        \
        .about = "models that requests may name besides those installed and the collection's own: openai:MODEL, "      \
                 "ollama:MODEL, a folder"                                                                              \
  }

#define P_SERVE_PROJECT(args)                                                                                          \
  {                                                                                                                    \
    OP_PATH(args, project), .letter = 'p', .value = "DIR",                                                             \
                            .about = "a file or folder of the project whose store is served; when not given, the "     \
                                     "store is found as --store says"                                                  \
  }

static const op_param params_serve[] = {
    P_SERVE_PROJECT(op_serve_args),
    {OP_TEXT(op_serve_args, host), .value = "HOST", .fallback = "127.0.0.1",
     .about = "address to listen at; one that other machines can reach needs a token"},
    {OP_INT(op_serve_args, port), .value = "N", .fallback = "8000", .max = 65535,
     .about = "0: the system picks one, and the log says which"},
    {OP_PATH(op_serve_args, token_file), .value = "FILE", .about = "file with the secret that clients must send"},
    {OP_FLAG(op_serve_args, token), .about = "make such a secret for this run; the log shows it"},
    {OP_CHOICE(op_serve_args, token_for), .value = "WHOM", .choices = "all|others", .fallback = "all",
     .about = "who must send it: everybody, or all but connections of the server's own user on this machine"},
    {OP_FLAG(op_serve_args, allow_reset), .about = "let clients remove everything but the code index (Chroma's reset)"},
    {OP_LIST(op_serve_args, allow_host), .value = "NAME,NAME",
     .about = "names, other than addresses and localhost, that the server answers to"},
    {OP_LIST(op_serve_args, allow_origin), .value = "URL,URL",
     .about = "web pages of other servers that may use this one: https://example.org"},
    P_SERVE_ALLOW_MODEL(op_serve_args),
    {OP_PATH(op_serve_args, certificate), .value = "FILE", .about = "TLS: the certificate chain, PEM"},
    {OP_PATH(op_serve_args, key), .value = "FILE", .about = "TLS: its private key, PEM"},
    {OP_SIZE(op_serve_args, max_body), .value = "SIZE", .fallback = "128M", .about = "largest request"},
    {OP_INT(op_serve_args, max_connections), .value = "N", .fallback = "512", .min = 17, .max = 60000,
     .about = "most connections at a time"},
    {OP_INT(op_serve_args, wait), .value = "SECONDS", .fallback = "30", .min = 1, .max = 3600,
     .about = "how long a connection may take to send a request, to begin one, or to read on in an answer"},
    {OP_INT(op_serve_args, timeout), .value = "SECONDS", .fallback = "60", .min = 1, .max = 86400,
     .about = "how long a request may be worked on"},
    {OP_INT(op_serve_args, threads), .value = "N", .fallback = "0", .max = 32,
     .about = "requests that are worked on at a time; 0: by the number of CPUs"},
    {OP_CHOICE(op_serve_args, log), .value = "WHAT", .choices = "requests|errors|nothing", .fallback = "requests",
     .about = "what the log says of requests"},
    {OP_FLAG(op_serve_args, no_sandbox), .about = "keep all privileges: for debuggers"},
    {0}};

static const op_param params_ui[] = {
    P_SERVE_PROJECT(op_serve_args),
    {OP_INT(op_serve_args, port), .value = "N", .fallback = "0", .max = 65535,
     .about = "0: the system picks a free one"},
    P_SERVE_ALLOW_MODEL(op_serve_args),
    {OP_FLAG(op_serve_args, no_open), .about = "print the address, and open no browser"},
    {OP_FLAG(op_serve_args, no_sandbox), .about = "keep all privileges: for debuggers"},
    {0}};

static const op_field summary_serve[] = {{"store", OP_FIELD_TEXT, 0, "its folder"},
                                         {"calls", OP_FIELD_COUNT, 0, "requests that reached the worker"},
                                         {"restarts", OP_FIELD_COUNT, 0, "workers that died"},
                                         {0}};

const op_def op_table_serve[] = {
    {.name = "serve",
     OP_RUNS(serve),
     .about = "serve the store over HTTP, also to Chroma's clients",
     .flags = OP_SERVER | OP_LOCAL,
     .params = params_serve,
     .summary = summary_serve,
     .say = "{store}: stopped after {calls} call{s}[, {restarts} worker{s} died]",
     .detail = "Speaks the v2 API of Chroma, so that its clients work unchanged, and lode's own under /api/lode/v1 "
               "(GET it for a list). "
               "Also /healthz, /readyz and /metrics. Without a token it is for connections of the user who started it: "
               "other users of "
               "this machine are refused. Runs until SIGTERM or Ctrl-C, then finishes what runs. The work is done in a "
               "separate process: if that dies, its requests are answered with an error that names a crash report, "
               "and the next "
               "request is served.",
     .examples =
         "lode serve --store ./data\n"
         "# the code search of a project, from anywhere\nlode serve --project ~/src/app\n"
         "# other users of this machine too, with the token that the log shows\nlode serve --token --token-for others\n"
         "lode serve --host 0.0.0.0 --token-file token --certificate cert.pem --key key.pem\n"
         "curl http://127.0.0.1:8000/api/lode/v1/db/query -d '{\"collection\":\"notes\",\"text\":\"parser\"}'"},
    {.name = "ui",
     OP_RUNS(ui),
     .about = "open the web page of the nearest project or store in the browser",
     .flags = OP_SERVER | OP_LOCAL,
     .params = params_ui,
     .summary = summary_serve,
     .say = "{store}: stopped after {calls} call{s}[, {restarts} worker{s} died]",
     .detail = "Search as you type, the health of the store, a map of its vectors. The same page is at / of every "
               "`lode serve`. Only this "
               "machine can reach it, and other users of it need the token that the address shows. Without a desktop, "
               "or with --no-open, the address is printed. Runs until Ctrl-C.",
     .examples = "lode ui\nlode ui --project ~/src/app\nlode ui --store ./data --port 8080 --no-open"},
    {0}};
