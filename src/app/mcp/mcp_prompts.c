/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_prompts.c - prompts: tasks that the client's own model does with facts from the tools. See mcp.h.
 *
 * A prompt is a text that says which tools gather the facts, in which order, and what to write. The values of its
 * arguments are put in as JSON strings: they stay one line and cannot end the sentence around them.
 */
#include "mcp/mcp.h"

typedef struct mcp_prompt {
  const char *name, *title, *about;
  const char *argument, *argument_about; /* one, or none */
  bool required;
  const char *text; /* %s is the argument */
} mcp_prompt;

static const mcp_prompt mcp_prompts[] = {
    {"review_change", "Review a change", "Review what differs from a revision, with what it may break.", "changed",
     "what changed: a file, or the name of a definition", true,
     "Review the change to %s in this project. First gather facts with Lode's tools: outline of the file, or symbol "
     "for the name; read for each definition that changed; impact for each of them (depth 3); search with \"test\" and "
     "its name for the tests that cover it. Then report, most serious first: callers that the change breaks, each as "
     "path:line with the reason; callers without a test; names or documentation that no longer fit. Say which of "
     "Lode's edges were uncertain (candidates). Report nothing that the facts do not show."},
    {"explain_module", "Explain a module", "How a file or folder works: what it is for, its parts, who uses it.",
     "path", "a file or folder", true,
     "Explain %s to a developer who is new to it. Gather facts with Lode's tools: outline of it; read for the "
     "definitions that look central; symbol with what=callees for its entry points, and what=callers for what others "
     "use. Then write: its purpose in two sentences; its parts and how a call travels through them, each with "
     "path:line; what others rely on; what is surprising. At most one page."},
    {"onboard", "Tour of the project", "An outline of a wiki for newcomers: rooms, entry points, flows.", NULL, NULL,
     false,
     "Write an outline of a wiki for newcomers to this project. Gather facts with Lode's tools: status for languages "
     "and size; outline without a file for the folders; search for how it is started, configured, built and tested; "
     "symbol with what=callees for the entry points. Then list the pages: for each a title, the question that it "
     "answers, and the places (path:line) from which it is to be written. Begin with a map of the folders, one line "
     "each, and the three flows that a newcomer should follow first."},
    {"impact_of_change", "Impact of a change", "What may break if a definition changes, and how to change it safely.",
     "name", "a function, type or other definition", true,
     "What breaks if %s changes? Gather facts with Lode's tools: symbol for its definition; impact for it (depth 3); "
     "read for callers whose use is not plain; search for tests of it. Then write: what relies on it directly, by "
     "file; what is reached further; which uses are uncertain; which tests to run; an order of steps in which every "
     "step leaves the project working."},
    {0}};

void mcp_prompts_put(strbuf *out) {
  strbuf_addch(out, '[');
  for (const mcp_prompt *p = mcp_prompts; p->name; p++) {
    strbuf_addf(out, "%s{\"name\":\"%s\",\"title\":\"%s\",\"description\":\"%s\"", p == mcp_prompts ? "" : ",", p->name,
                p->title, p->about);
    if (p->argument)
      strbuf_addf(out, ",\"arguments\":[{\"name\":\"%s\",\"description\":\"%s\",\"required\":%s}]", p->argument,
                  p->argument_about, p->required ? "true" : "false");
    strbuf_addch(out, '}');
  }
  strbuf_addch(out, ']');
}

bool mcp_prompt_put(strbuf *out, const json_doc *json, uint32_t params, char *why, size_t size) {
  enum { PROMPT_MAX_ARGUMENT = 1000 };
  uint32_t name = params ? json_get(json, params, STR_LIT("name")) : 0;
  uint32_t given = params ? json_get(json, params, STR_LIT("arguments")) : 0;
  const mcp_prompt *p = mcp_prompts;
  char quoted[256];
  strbuf text = {0}, value = {0};
  if (!name || json->nodes[name].type != JSON_NODE_STRING) {
    snprintf(why, size, "\"name\" must be the name of a prompt");
    return false;
  }
  while (p->name && !str_eq(str_of(p->name), json->nodes[name].u.s)) p++;
  if (!p->name) {
    snprintf(why, size, "there is no prompt %s; prompts/list has them",
             str_quote(json->nodes[name].u.s, quoted, sizeof quoted));
    return false;
  }
  bool object = given && json->nodes[given].type == JSON_NODE_OBJECT;
  uint32_t argument = object && p->argument ? json_get(json, given, str_of(p->argument)) : 0;
  bool fits = argument && json->nodes[argument].type == JSON_NODE_STRING && json->nodes[argument].u.s.len &&
              json->nodes[argument].u.s.len <= PROMPT_MAX_ARGUMENT;
  if (p->required && !fits) {
    snprintf(why, size, "the prompt %s needs \"%s\", a text of at most %d bytes: %s", p->name, p->argument,
             PROMPT_MAX_ARGUMENT, p->argument_about);
    return false;
  }
  if (fits) json_put_string(&value, json->nodes[argument].u.s);
  const char *mark = strstr(p->text, "%s");
  if (mark) strbuf_add(&text, p->text, (size_t)(mark - p->text));
  if (mark && value.len) strbuf_add(&text, value.data, value.len);
  strbuf_addstr(&text, mark ? mark + 2 : p->text);
  strbuf_addf(out, "\"description\":\"%s\",\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":",
              p->about);
  json_put_string(out, (lode_str){text.data ? text.data : "", text.len});
  strbuf_addstr(out, "}}]");
  out->failed = out->failed || text.failed || value.failed;
  strbuf_release(&text);
  strbuf_release(&value);
  return true;
}
