/* SPDX-License-Identifier: Apache-2.0 */
/* op_table.c - the groups of operations, and lookups in them. All that a front end shows or checks comes from here;
 * see op_def.h.
 *
 * To add an operation: its arguments and its handler in op_args_GROUP.h, its parameters and its entry in the table of
 * its group (op_table_GROUP.c), the handler in commands, and tests in test/shell/cli.sh. To add a group: its table, and
 * a line below. Several tables may share a name, or have none (`lode search`): each table is a section of the help.
 */
#include "table/op_table.h"

const op_group op_groups[] = {{NULL, "code search", op_table_code},
                              {NULL, "definitions and their uses", op_table_symbols},
                              {"config", "settings of a project", op_table_config},
                              {"db", "the vector database", op_table_db},
                              {"rescue", "rescue of other vector databases", op_table_rescue},
                              {"import", "import from other vector databases", op_table_import},
                              {"chroma", "maintenance of Chroma directories", op_table_chroma},
                              {"export", "export to other programs", op_table_export},
                              {NULL, "servers", op_table_serve},
                              {NULL, "embedding", op_table_embed},
                              {"model", "the models that make vectors", op_table_model},
                              {NULL, "for AI agents", op_table_mcp},
                              {"mcp", "AI tools on this machine", op_table_mcp_clients},
                              {0}};

const op_def *op_find(const char *group, lode_str name) {
  OP_EACH_GROUP(g) {
    if (!op_same_group(g->name, group)) continue;
    OP_EACH(g, op) if (str_eq(str_of(op->name), name)) return op;
  }
  return NULL;
}

bool op_same_group(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

bool op_is_group(lode_str word) {
  OP_EACH_GROUP(g) if (g->name && str_eq(str_of(g->name), word)) return true;
  return false;
}
