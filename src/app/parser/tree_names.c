/* SPDX-License-Identifier: Apache-2.0 */
/* tree_names.c - names, scopes and signatures of definitions, as slices of the text; see tree.h. */
#include "parser/tree.h"

#include <ctype.h>

bool parser_is_class(lang_kind k) {
  return k == LANG_KIND_CLASS || k == LANG_KIND_STRUCT || k == LANG_KIND_UNION || k == LANG_KIND_ENUM ||
         k == LANG_KIND_INTERFACE || k == LANG_KIND_TRAIT || k == LANG_KIND_IMPL;
}

void parser_split_name(lode_str name, lode_str *scope, lode_str *last) {
  *scope = STR_LIT("");
  *last = name;
  if (name.len > CHUNK_MAX_NAME) return;
  for (size_t i = 0; i < name.len; i++)
    if (!isalnum((unsigned char)name.data[i]) && !strchr("_.:~$", name.data[i]) &&
        !((unsigned char)name.data[i] & 0x80))
      return;
  for (size_t i = name.len; i-- > 1;) {
    if (name.data[i] != '.' && name.data[i] != ':') continue;
    if (i + 1 == name.len) return;
    *last = (lode_str){name.data + i + 1, name.len - i - 1};
    *scope = (lode_str){name.data, name.data[i] == ':' && name.data[i - 1] == ':' ? i - 1 : i};
    return;
  }
}

lode_str parser_bare_name(lode_str s) {
  if (s.len >= 2 && (s.data[0] == '"' || s.data[0] == '\'' || s.data[0] == '`') && s.data[s.len - 1] == s.data[0])
    return (lode_str){s.data + 1, s.len - 2};
  while (s.len > 1 && (s.data[0] == '*' || s.data[0] == '&')) s.data++, s.len--;
  bool is_operator = s.len >= 8 && memcmp(s.data, "operator", 8) == 0;
  char last = s.len ? s.data[s.len - 1] : 0;
  const char *args =
      s.len && (last == '>' || last == ']') && !is_operator ? memchr(s.data, last == '>' ? '<' : '[', s.len) : NULL;
  if (args && args > s.data && isalnum((unsigned char)args[-1])) s.len = (size_t)(args - s.data);
  return s;
}

/* static void printflike(3, 4) name(...): what looks like the name is a macro, whose arguments are numbers. */
lode_str parser_behind_macro(lode_str text, lode_str name) {
  const char *end = text.data + text.len, *at = name.data + name.len, *args;
  if (!name.len || at < text.data || at >= end || *at != '(') return name;
  for (args = ++at; at < end && (isdigit((unsigned char)*at) || *at == ',' || *at == ' ');) at++;
  if (at == args || at == end || *at++ != ')') return name;
  while (at < end && (isspace((unsigned char)*at) || *at == '*')) at++;
  const char *from = at;
  while (at < end && (isalnum((unsigned char)*at) || *at == '_')) at++;
  return at > from && at < end && *at == '(' && !isdigit((unsigned char)*from) ? (lode_str){from, (size_t)(at - from)}
                                                                               : name;
}

void parser_names_of(const parser_def *d, lode_str *scope, lode_str *last) {
  parser_split_name(parser_bare_name(d->name), scope, last);
  if (scope->len == 0) *scope = parser_bare_name(d->scope);
}

lode_str parser_signature(const parser_grammar *g, lode_str text, const parser_def *d) {
  uint32_t from = ts_node_start_byte(d->node), end = d->body ? d->body : parser_body_start(g, d->node);
  if (end <= from || end > d->end) { /* no body: the first line, or up to a brace */
    end = from;
    uint32_t max = d->end < from + CHUNK_MAX_SIGNATURE ? d->end : from + CHUNK_MAX_SIGNATURE;
    while (end < max && text.data[end] != '\n' && text.data[end] != '{') end++;
  }
  while (end > from && (isspace((unsigned char)text.data[end - 1]) || strchr("{:=>", text.data[end - 1]))) {
    /* a > of type arguments stays */
    if (text.data[end - 1] == '>' && !(end - 1 > from && text.data[end - 2] == '=')) break;
    end--;
  }
  return (lode_str){text.data + from, end - from};
}
