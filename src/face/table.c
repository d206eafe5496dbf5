/* table.c - the groups of operations, and look-ups in them. Everything that a face shows or checks comes from here; see op.h.
 *
 * To add an operation: an entry in the table of its group (table_GROUP.c), a handler in an op_*.c, its declaration in op.h, and
 * its lines in test/cli.sh. To add a group: its table, and a line below. Several tables may have the same
 * name, or none (`lode search`): what they have in common is a heading of the help.
 */
#include "op.h"

const lode__op_group lode__groups[] = {
    {NULL, "code search", lode__ops_code},
    {"config", "settings of a project", lode__ops_config},
    {"db", "the vector database", lode__ops_db},
    {"rescue", "out of other vector databases, damaged ones too", lode__ops_rescue},
    {"import", "out of other vector databases that are well", lode__ops_import},
    {"chroma", "care of Chroma directories", lode__ops_chroma},
    {"export", "for other programs", lode__ops_export},
    {NULL, "servers", lode__ops_serve},
    {NULL, "text to vector", lode__ops_embed},
    {"model", "the models that make vectors", lode__ops_model},
    {NULL, "for AI agents", lode__ops_mcp},
    {"mcp", "AI tools on this machine", lode__ops_mcp_clients},
    {0}};

const lode__op *lode__op_find(const char *group, lode_str name) {
  LODE__EACH_GROUP(g) {
    if (!lode__same_group(g->name, group)) continue;
    LODE__EACH_OP(g, op) if (str_eq(str_of(op->name), name)) return op;
  }
  return NULL;
}

bool lode__same_group(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

bool lode__is_group(lode_str word) {
  LODE__EACH_GROUP(g) if (g->name && str_eq(str_of(g->name), word)) return true;
  return false;
}

const lode__param *lode__param_find(const lode__param *params, lode_str name) {
  for (; params->name; params++)
    if (str_eq(str_of(params->name), name)) return params;
  return NULL;
}

void lode__choices_each(const char *choices, bool (*fn)(void *ctx, size_t i, lode_str choice), void *ctx) {
  for (size_t i = 0;; i++) {
    const char *end = strchr(choices, '|');
    size_t len = end ? (size_t)(end - choices) : strlen(choices);
    if (!fn(ctx, i, (lode_str){choices, len}) || !end) return;
    choices = end + 1;
  }
}

struct choice_search {
  lode_str text;
  int index;
};

static bool choice_match(void *ctx, size_t i, lode_str choice) {
  struct choice_search *search = ctx;
  if (str_eq(choice, search->text)) search->index = (int)i;
  return search->index < 0;
}

int lode__choice_index(const char *choices, lode_str text) {
  struct choice_search search = {text, -1};
  lode__choices_each(choices, choice_match, &search);
  return search.index;
}
