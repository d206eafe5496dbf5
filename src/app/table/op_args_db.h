/* SPDX-License-Identifier: Apache-2.0 */
/* op_args_db.h - arguments and handlers of `lode db`. */
#ifndef LODE_TABLE_OP_ARGS_DB_H
#define LODE_TABLE_OP_ARGS_DB_H

#include "table/op_table.h"

typedef struct op_no_args {
  bool unused;
} op_no_args;
typedef struct op_collections_args {
  op_arg_flag all;
} op_collections_args;
OP_HANDLER(collections, op_collections_args)
OP_HANDLER(compact, op_no_args)

typedef struct op_create_args {
  op_arg_text collection, embedder;
  op_arg_choice metric;
  op_arg_json metadata;
  op_arg_int embedder_dim, shards, replicas, write_consistency, page_bytes;
  op_arg_list counters;
  op_arg_flag if_missing;
} op_create_args;
OP_HANDLER(create, op_create_args)

typedef struct op_rename_args {
  op_arg_text collection, new_name;
} op_rename_args;
OP_HANDLER(rename, op_rename_args)

typedef struct op_drop_args {
  op_arg_text collection;
  op_arg_flag yes, no_backup;
} op_drop_args;
OP_HANDLER(drop, op_drop_args)

typedef struct op_count_args {
  op_arg_text collection;
} op_count_args;
OP_HANDLER(count, op_count_args)

typedef struct op_facets_args {
  op_arg_text collection, key;
  op_arg_json where;
  op_arg_int limit;
} op_facets_args;
OP_HANDLER(facets, op_facets_args)

typedef struct op_stats_args {
  op_arg_text collection;
} op_stats_args;
OP_HANDLER(stats, op_stats_args)

/* Each of these operations takes a part of them. */
typedef struct op_write_args {
  op_arg_text collection, model;
  op_arg_records records;
  op_arg_choice on_existing, metric, format, mode;
  op_arg_flag create, embed;
  op_arg_int batch, first_id;
  op_arg_path file;
} op_write_args;
OP_HANDLER(add, op_write_args)
OP_HANDLER(upsert, op_write_args)
OP_HANDLER(update, op_write_args)
OP_HANDLER(import, op_write_args)

typedef struct op_fill_args {
  op_arg_text collection, model;
  op_arg_choice precision;
  op_arg_int max_tokens, threads;
} op_fill_args;
OP_HANDLER(fill, op_fill_args)

typedef struct op_reembed_args {
  op_arg_text collection, model;
  op_arg_choice precision;
  op_arg_int max_tokens, threads;
  op_arg_flag drop_vectors, yes, no_backup;
} op_reembed_args;
OP_HANDLER(reembed, op_reembed_args)

typedef struct op_get_args {
  op_arg_text collection;
  op_arg_list ids;
  op_arg_lines ids_file;
  op_arg_json where, where_document;
  op_arg_flag pending;
  op_arg_int limit, offset, after;
  op_arg_set include;
} op_get_args;
OP_HANDLER(get, op_get_args)

typedef struct op_query_args {
  op_arg_text collection, text;
  op_arg_vectors vector, vectors;
  op_arg_choice mode;
  op_arg_int k, effort;
  op_arg_list ids;
  op_arg_lines ids_file;
  op_arg_json where, where_document;
  op_arg_flag exact, explain;
  op_arg_real recall, vector_weight, text_weight;
  op_arg_set include;
} op_query_args;
OP_HANDLER(query, op_query_args)

typedef struct op_export_args {
  op_arg_text collection;
  op_arg_path file;
  op_arg_list ids;
  op_arg_lines ids_file;
  op_arg_json where, where_document;
  op_arg_set include;
} op_export_args;
OP_HANDLER(export, op_export_args)

typedef struct op_delete_args {
  op_arg_text collection;
  op_arg_list ids;
  op_arg_lines ids_file;
  op_arg_json where, where_document;
  op_arg_flag yes, no_backup;
} op_delete_args;
OP_HANDLER(delete, op_delete_args)

typedef struct op_map_args {
  op_arg_text collection, key;
  op_arg_choice by;
  op_arg_int sample;
  op_arg_json where;
} op_map_args;
OP_HANDLER(map, op_map_args)

/* `to` of push, `from` of pull. */
typedef struct op_copy_args {
  op_arg_text collection, as;
  op_arg_path to, from;
} op_copy_args;
OP_HANDLER(push, op_copy_args)
OP_HANDLER(pull, op_copy_args)

typedef struct op_salvage_args {
  op_arg_path to, from;
} op_salvage_args;
OP_HANDLER(salvage, op_salvage_args)

typedef struct op_backup_args {
  op_arg_path file;
} op_backup_args;
OP_HANDLER(backup, op_backup_args)

typedef struct op_restore_args {
  op_arg_path file, to;
} op_restore_args;
OP_HANDLER(restore, op_restore_args)

typedef struct op_verify_args {
  op_arg_flag recall;
} op_verify_args;
OP_HANDLER(verify, op_verify_args)

typedef struct op_optimize_args {
  op_arg_flag rebuild_unreadable;
} op_optimize_args;
OP_HANDLER(optimize, op_optimize_args)

#endif
