/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_resources.c - resources: facts about the project that a client attaches to a conversation. See mcp.h.
 *
 * A resource is the reply of a tool, some of which are not listed as tools, to arguments that its URI names; reading it
 * is a call like any other: bounded, cancellable, run by the worker.
 */
#include "mcp/mcp.h"

typedef struct mcp_resource {
  const char *uri;                 /* of a template without the part in braces */
  const char *variable, *argument; /* of a template: the part in braces, and the tool's argument that takes it */
  const char *name, *title, *about;
  const char *tool, *always; /* the arguments without that one */
} mcp_resource;

static const mcp_resource mcp_resources[] = {
    {"lode://overview", NULL, NULL, "overview", "Overview of the project",
     "State of the index, files that changed since, what the project defines, and where it is hardest to change.",
     "overview", ""},
    {"lode://status", NULL, NULL, "status", "State of the index", "Size, languages, age, files that changed since.",
     "status", "\"check\":true"},
    {"lode://hotspots", NULL, NULL, "hotspots", "Hotspots",
     "Functions that are the hardest to change: by branches, size and how often the file changed.", "hotspots", ""},
    {"lode://cycles", NULL, NULL, "cycles", "Cycles", "Files that import each other.", "cycles", ""},
    {"lode://unused", NULL, NULL, "unused", "Unused definitions", "Functions and types whose names no file uses.",
     "unused", ""},
    {"lode://outline/", "{+path}", "file", "outline", "Outline of a file or folder",
     "What it defines: kinds, names, lines, signatures.", "outline", ""},
    {"lode://symbol/", "{+name}", "name", "symbol", "Definition of a name", "Where it is defined, and as what.",
     "symbol_definition", ""},
    {"lode://impact/", "{+name}", "name", "impact", "Impact of a change", "What uses a definition, and what uses that.",
     "impact", ""},
    {0}};

static void mcp_put_resources(strbuf *out, bool templates) {
  bool first = true;
  strbuf_addch(out, '[');
  for (const mcp_resource *r = mcp_resources; r->uri; r++) {
    if (templates != (r->variable != NULL)) continue;
    strbuf_addf(out,
                "%s{\"%s\":\"%s%s\",\"name\":\"%s\",\"title\":\"%s\",\"description\":\"%s\",\"mimeType\":"
                "\"text/plain\"}",
                first ? "" : ",", templates ? "uriTemplate" : "uri", r->uri, templates ? r->variable : "", r->name,
                r->title, r->about);
    first = false;
  }
  strbuf_addch(out, ']');
}

void mcp_resources_put(strbuf *out) { mcp_put_resources(out, false); }
void mcp_resource_templates_put(strbuf *out) { mcp_put_resources(out, true); }

static int mcp_hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The text behind %XX; false: it is not UTF-8, empty, or has control characters. */
static bool mcp_unescape_uri(lode_str in, strbuf *out) {
  for (size_t i = 0; i < in.len; i++) {
    int high = in.data[i] == '%' && i + 2 < in.len ? mcp_hex_value(in.data[i + 1]) : -1;
    int low = high >= 0 ? mcp_hex_value(in.data[i + 2]) : -1;
    char c = low >= 0 ? (char)(high * 16 + low) : in.data[i];
    if ((unsigned char)c < ' ') return false;
    strbuf_addch(out, c);
    if (low >= 0) i += 2;
  }
  return out->len && !out->failed && utf8_valid(out->data, out->len);
}

const mcp_tool *mcp_resource_find(lode_str uri, strbuf *arguments) {
  for (const mcp_resource *r = mcp_resources; r->uri; r++) {
    size_t n = strlen(r->uri);
    bool fits = r->variable ? uri.len > n && memcmp(uri.data, r->uri, n) == 0 : str_eq(uri, str_of(r->uri));
    strbuf value = {0};
    if (!fits) continue;
    if (r->variable && !mcp_unescape_uri((lode_str){uri.data + n, uri.len - n}, &value)) {
      strbuf_release(&value);
      return NULL;
    }
    strbuf_addf(arguments, "{%s", r->always);
    if (r->variable) {
      strbuf_addf(arguments, "%s\"%s\":", r->always[0] ? "," : "", r->argument);
      json_put_string(arguments, (lode_str){value.data, value.len});
    }
    strbuf_addch(arguments, '}');
    strbuf_release(&value);
    return mcp_tool_find(str_of(r->tool), false);
  }
  return NULL;
}

bool mcp_resource_put(strbuf *out, lode_str uri, lode_str members, strbuf *why) {
  json_doc json = {0};
  strbuf object = {0}, text = {0};
  strbuf_addch(&object, '{');
  strbuf_add(&object, members.data, members.len);
  strbuf_addch(&object, '}');
  bool read = !object.failed && json_parse(&json, (lode_str){object.data, object.len}, NULL, NULL) == LODE_OK;
  uint32_t error = read ? json_get(&json, 0, STR_LIT("isError")) : 0;
  uint32_t content = read ? json_get(&json, 0, STR_LIT("content")) : 0;
  bool failed = !content || (error && json.nodes[error].type == JSON_NODE_TRUE);
  for (uint32_t i = content ? content + 1 : 0; i && i < json.nodes[content].next; i = json.nodes[i].next) {
    uint32_t part = json_get(&json, i, STR_LIT("text"));
    if (!part || json.nodes[part].type != JSON_NODE_STRING) continue;
    if (text.len) strbuf_addstr(&text, "\n\n");
    strbuf_add(&text, json.nodes[part].u.s.data, json.nodes[part].u.s.len);
  }
  lode_str whole = {text.data ? text.data : "", text.len};
  if (failed) {
    strbuf_add(why, whole.data, whole.len);
    strbuf_addch(why, '\0');
  } else {
    strbuf_addstr(out, "\"contents\":[{\"uri\":");
    json_put_string(out, uri);
    strbuf_addstr(out, ",\"mimeType\":\"text/plain\",\"text\":");
    json_put_string(out, whole);
    strbuf_addstr(out, "}]");
  }
  out->failed = out->failed || text.failed || object.failed;
  strbuf_release(&object);
  strbuf_release(&text);
  json_release(&json);
  return !failed;
}
