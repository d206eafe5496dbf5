/* SPDX-License-Identifier: Apache-2.0 */
/* op_table_db.c - the operations of `lode db`, as data; see op_def.h. */
#include "table/op_args_db.h"

/* ---- Parameters that several operations share ---- */

#define P_DB_COLLECTION(args)                                                                                          \
  {                                                                                                                    \
    OP_TEXT(args, collection), .flags = OP_PARAM_REQUIRED | OP_PARAM_POSITIONAL, .value = "NAME",                      \
                               .about = "name of the collection"                                                       \
  }
#define P_DB_IDS(args)                                                                                                 \
  {                                                                                                                    \
    OP_LIST(args, ids),                                                                                                \
        .value = "ID,ID",                                                                                              \
        .about = "these records only; on the command line separated by commas, or a JSON array for ids "               \
                 "that hold commas or begin with ["                                                                    \
  }
/* The same, and also by position: `lode db get notes a b`. */
#define P_DB_IDS_PLACED(args)                                                                                          \
  {                                                                                                                    \
    OP_LIST(args, ids),                                                                                                \
        .flags = OP_PARAM_EITHER, .value = "ID,ID",                                                                    \
        .about = "these records only, also without --ids; on the command line separated by commas, or a JSON array "   \
                 "for ids that hold commas or begin with ["                                                            \
  }
#define P_DB_IDS_FILE(args)                                                                                            \
  {                                                                                                                    \
    OP_LINES(args, ids_file), .flags = OP_PARAM_CLI_ONLY, .value = "FILE", .into = "ids",                              \
                              .about = "the ids of this file, one per line (- is standard input)"                      \
  }
#define P_DB_IDS_STREAM(args)                                                                                          \
  {                                                                                                                    \
    OP_LINES(args, ids_file), .flags = OP_PARAM_CLI_ONLY, .value = "FILE",                                             \
                              .about = "the ids of this file, one per line (- is standard input)"                      \
  }
#define P_DB_WHERE(args)                                                                                               \
  { OP_JSON(args, where), .value = "JSON", .about = "records whose metadata match this filter (lode help filters)" }
#define P_DB_WHERE_DOCUMENT(args)                                                                                      \
  { OP_JSON(args, where_document), .value = "JSON", .about = "records whose document matches this filter" }
#define P_DB_INCLUDE(args, given)                                                                                      \
  {                                                                                                                    \
    OP_SET(args, include), .value = "PART,PART", .choices = "document|metadata|embedding", .fallback = given,          \
                           .about = "parts of each record to show"                                                     \
  }
#define P_DB_RECORDS(args)                                                                                             \
  {                                                                                                                    \
    OP_RECORDS(args, records),                                                                                         \
        .flags = OP_PARAM_REQUIRED | OP_PARAM_POSITIONAL, .value = "FILE",                                             \
        .about = "the records, {\"id\",\"document\",\"metadata\",\"embedding\"} each; on the command line a file "     \
                 "with one per line, standard input when not given"                                                    \
  }
#define P_DB_BATCH(args)                                                                                               \
  {                                                                                                                    \
    OP_INT(args, batch), .flags = OP_PARAM_CLI_ONLY, .value = "N", .min = 1, .max = 1000000,                           \
                         .about = "records in one commit (1,000); each commit is whole or absent, and durable"         \
  }
#define P_DB_CREATE(args)                                                                                              \
  { OP_FLAG(args, create), .about = "make the collection if it does not exist" }
#define P_DB_METRIC(args)                                                                                              \
  {                                                                                                                    \
    OP_CHOICE(args, metric), .value = "METRIC", .choices = "l2|cosine|ip", .fallback = "l2",                           \
                             .about = "distance of a new collection: squared Euclidean, 1 - cosine, 1 - inner product" \
  }
#define P_DB_ON_EXISTING(args)                                                                                         \
  {                                                                                                                    \
    OP_CHOICE(args, on_existing), .value = "WHAT", .choices = "fail|keep", .fallback = "fail",                         \
                                  .about = "an id that exists: refuse the batch, or keep the old record and go on"     \
  }

#define P_DB_MODEL(args)                                                                                               \
  {                                                                                                                    \
    OP_TEXT(args, model),                                                                                              \
        .value = "MODEL",                                                                                              \
        .about = "the model that makes the vectors; when not given, the collection's own, else minilm"                 \
  }
#define P_DB_EMBED(args)                                                                                               \
  {OP_FLAG(args, embed),                                                                                               \
   .about = "make vectors for records that have a document and no embedding; fail if no model can"},                   \
      P_DB_MODEL(args)

static const op_param params_none[] = {{0}};
static const op_param params_db_verify[] = {
    {OP_FLAG(op_verify_args, recall),
     .about = "also measure how many of the ten nearest searches find, by 100 queries of each collection"},
    {0}};
static const op_param optimize_params[] = {
    {OP_FLAG(op_optimize_args, rebuild_unreadable),
     .about = "build files of the vector index that cannot be read (a disk with bad sectors) again from the records"},
    {0}};

static const op_param params_db_create[] = {
    P_DB_COLLECTION(op_create_args),
    P_DB_METRIC(op_create_args),
    {OP_JSON(op_create_args, metadata), .value = "JSON", .about = "any JSON object, kept with the collection"},
    {OP_TEXT(op_create_args, embedder), .value = "MODEL",
     .about = "the model that makes the vectors: minilm, code, another that `lode embed` takes, or a name of your own; "
              "vectors of another "
              "one are refused"},
    {OP_INT(op_create_args, embedder_dim), .value = "N", .min = 1, .max = LODE_MAX_DIMENSION,
     .about = "dimension of that model"},
    {OP_LIST(op_create_args, counters), .value = "KEY,KEY",
     .about = "metadata keys whose values are counted by each write, so that facets of them cost nothing"},
    {OP_FLAG(op_create_args, if_missing), .about = "succeed when the collection exists already"},
    {OP_INT(op_create_args, shards), .value = "N", .min = 1, .max = 10000, .about = "on a cluster: number of shards"},
    {OP_INT(op_create_args, replicas), .value = "N", .min = 1, .max = 100,
     .about = "on a cluster: copies of each shard"},
    {OP_INT(op_create_args, write_consistency), .value = "N", .min = 1, .max = 100,
     .about = "on a cluster: copies that must acknowledge a write"},
    {OP_INT(op_create_args, page_bytes), .flags = OP_PARAM_CLI_ONLY, .value = "N", .min = 512, .max = 65536,
     .about = "page size of a new store, a power of two (16,384)"},
    {0}};
static const op_param params_db_rename[] = {P_DB_COLLECTION(op_rename_args),
                                            {OP_TEXT(op_rename_args, new_name),
                                             .flags = OP_PARAM_REQUIRED | OP_PARAM_POSITIONAL, .value = "NEW",
                                             .about = "its new name"},
                                            {0}};
static const op_param params_db_name[] = {P_DB_COLLECTION(op_count_args), {0}};
static const op_param params_db_add[] = {P_DB_COLLECTION(op_write_args),  P_DB_RECORDS(op_write_args),
                                         P_DB_ON_EXISTING(op_write_args), P_DB_CREATE(op_write_args),
                                         P_DB_METRIC(op_write_args),      P_DB_EMBED(op_write_args),
                                         P_DB_BATCH(op_write_args),       {0}};
static const op_param params_db_upsert[] = {P_DB_COLLECTION(op_write_args),
                                            P_DB_RECORDS(op_write_args),
                                            P_DB_CREATE(op_write_args),
                                            P_DB_METRIC(op_write_args),
                                            P_DB_EMBED(op_write_args),
                                            P_DB_BATCH(op_write_args),
                                            {0}};
static const op_param params_db_update[] = {
    P_DB_COLLECTION(op_write_args), P_DB_RECORDS(op_write_args), P_DB_BATCH(op_write_args), {0}};
#define P_DB_MODEL_OPTIONS(args)                                                                                       \
  {OP_CHOICE(args, precision), .value = "WHAT", .choices = "full|int8",                                                \
   .about = "of the arithmetic; when not given, the faster one that the model supports"},                              \
      {OP_INT(args, max_tokens), .value = "N", .min = 2, .max = 65536,                                                 \
       .about = "longer documents are cut; when not given, the model's own setting"},                                  \
  {                                                                                                                    \
    OP_INT(args, threads), .value = "N", .min = 1, .max = 64, .about = "when not given, one for each CPU"              \
  }
static const op_param params_db_fill[] = {
    P_DB_COLLECTION(op_fill_args), P_DB_MODEL(op_fill_args), P_DB_MODEL_OPTIONS(op_fill_args), {0}};
static const op_param params_db_collections[] = {
    {OP_FLAG(op_collections_args, all), .about = "also those that `lode db reembed` is making: NAME~reembed"}, {0}};
#define P_DB_YES(args)                                                                                                 \
  {OP_FLAG(args, yes), .letter = 'y', .flags = OP_PARAM_CLI_ONLY, .about = "do not ask for confirmation"}, {           \
    OP_FLAG(args, no_backup), .flags = OP_PARAM_CLI_ONLY, .about = "keep no copy of what is removed"                   \
  }
static const op_param params_db_reembed[] = {
    P_DB_COLLECTION(op_reembed_args),
    {OP_TEXT(op_reembed_args, model), .value = "MODEL", .flags = OP_PARAM_REQUIRED,
     .about = "the model that makes the new vectors: minilm, code, another that `lode embed` takes"},
    P_DB_MODEL_OPTIONS(op_reembed_args),
    {OP_FLAG(op_reembed_args, drop_vectors), .about = "records that have a vector and no document lose their vector"},
    P_DB_YES(op_reembed_args),
    {0}};
static const op_param params_db_get[] = {
    P_DB_COLLECTION(op_get_args),
    P_DB_IDS_PLACED(op_get_args),
    P_DB_IDS_FILE(op_get_args),
    P_DB_WHERE(op_get_args),
    P_DB_WHERE_DOCUMENT(op_get_args),
    {OP_FLAG(op_get_args, pending), .about = "only records that have no vector yet"},
    {OP_INT(op_get_args, limit), .value = "N",
     .about = "at most this many records; 0 = all. When not given: all of the ids that are asked for, else 100"},
    {OP_INT(op_get_args, offset), .value = "N", .fallback = "0", .about = "skip this many records"},
    {OP_INT(op_get_args, after), .value = "CURSOR",
     .about = "continue after an earlier answer: its `next`; unlike --offset this costs nothing"},
    P_DB_INCLUDE(op_get_args, "document,metadata"),
    {0}};
static const op_param params_db_query[] = {
    P_DB_COLLECTION(op_query_args),
    {OP_VECTOR(op_query_args, vector), .value = "JSON", .about = "what to look for: an array of numbers"},
    {OP_VECTORS(op_query_args, vectors), .value = "FILE",
     .about = "several vectors at once; on the command line a file: .npy, .fvecs, or JSON: one array per line, or an "
              "array of arrays"},
    {OP_TEXT(op_query_args, text), .flags = OP_PARAM_EITHER | OP_PARAM_REST, .value = "TEXT",
     .about = "words to look for, also without --text"},
    {OP_CHOICE(op_query_args, mode), .value = "MODE", .choices = "text|vector|hybrid",
     .about = "rank by words (BM25), by distance, or by both fused; when not given, by what is given"},
    {OP_INT(op_query_args, k), .letter = 'k', .value = "N", .fallback = "10", .min = 1,
     .about = "how many records for each query"},
    P_DB_IDS(op_query_args),
    P_DB_IDS_FILE(op_query_args),
    P_DB_WHERE(op_query_args),
    P_DB_WHERE_DOCUMENT(op_query_args),
    {OP_FLAG(op_query_args, exact), .about = "look at every vector instead of asking the index"},
    {OP_INT(op_query_args, effort), .value = "N", .fallback = "0", .max = LODE_MAX_EFFORT,
     .about = "how far the index is searched: more finds more and takes longer; 0 = as the data need"},
    {OP_REAL(op_query_args, recall), .value = "X", .fallback = "0",
     .about = "the share of the true nearest to aim at, up to 1; 0 = about 0.98, all of at most 20,000 vectors"},
    {OP_REAL(op_query_args, vector_weight), .value = "X", .fallback = "1",
     .about = "hybrid: weight of the ranking by distance"},
    {OP_REAL(op_query_args, text_weight), .value = "X", .fallback = "1",
     .about = "hybrid: weight of the ranking by words"},
    P_DB_INCLUDE(op_query_args, "document,metadata"),
    {OP_FLAG(op_query_args, explain),
     .about =
         "answer the query, and show how instead of the records: the plan, why, what was done, and how long it took"},
    {0}};
static const op_param params_db_delete[] = {P_DB_COLLECTION(op_delete_args),
                                            P_DB_IDS_PLACED(op_delete_args),
                                            P_DB_IDS_STREAM(op_delete_args),
                                            P_DB_WHERE(op_delete_args),
                                            P_DB_WHERE_DOCUMENT(op_delete_args),
                                            P_DB_YES(op_delete_args),
                                            {0}};
static const op_param params_db_drop[] = {P_DB_COLLECTION(op_drop_args), P_DB_YES(op_drop_args), {0}};
static const op_param params_db_facets[] = {
    P_DB_COLLECTION(op_facets_args),
    {OP_TEXT(op_facets_args, key), .flags = OP_PARAM_REQUIRED | OP_PARAM_POSITIONAL, .value = "KEY",
     .about = "the metadata key"},
    P_DB_WHERE(op_facets_args),
    {OP_INT(op_facets_args, limit), .value = "N", .fallback = "50", .about = "at most this many values; 0 = all"},
    {0}};
static const op_param params_db_map[] = {
    P_DB_COLLECTION(op_map_args),
    {OP_INT(op_map_args, sample), .value = "N", .fallback = "2000", .min = 1, .max = 10000,
     .about = "at most this many points; fewer where the vectors are very long"},
    {OP_TEXT(op_map_args, key), .value = "KEY", .about = "the metadata key whose value is each point's group"},
    {OP_CHOICE(op_map_args, by), .value = "HOW", .choices = "neighbours|pca", .fallback = "neighbours",
     .about = "keep neighbours together, or show the two directions of largest variance"},
    P_DB_WHERE(op_map_args),
    {0}};
static const op_param params_db_stats[] = {{OP_TEXT(op_stats_args, collection), .flags = OP_PARAM_POSITIONAL,
                                            .value = "NAME", .about = "one collection; the whole store when not given"},
                                           {0}};
#define P_DB_AS(args)                                                                                                  \
  { OP_TEXT(args, as), .value = "NAME", .about = "its name there; the same when not given" }
static const op_param params_db_push[] = {
    P_DB_COLLECTION(op_copy_args),
    {OP_PATH(op_copy_args, to), .flags = OP_PARAM_REQUIRED, .value = "STORE",
     .about = "the other store: a folder, or a cluster's address such as qdrant://HOST:PORT"},
    P_DB_AS(op_copy_args),
    {0}};
static const op_param params_db_pull[] = {
    P_DB_COLLECTION(op_copy_args),
    {OP_PATH(op_copy_args, from), .flags = OP_PARAM_REQUIRED, .value = "STORE",
     .about = "the other store: a folder, or a cluster's address such as qdrant://HOST:PORT"},
    P_DB_AS(op_copy_args),
    {0}};
static const op_param params_db_salvage[] = {
    {OP_PATH(op_salvage_args, to), .flags = OP_PARAM_REQUIRED | OP_PARAM_POSITIONAL, .value = "DIR",
     .about = "folder of the new store"},
    {OP_PATH(op_salvage_args, from), .value = "PATH",
     .about = "the damaged store's folder, or its file; --store when not given"},
    {0}};
static const op_param params_db_backup[] = {{OP_PATH(op_backup_args, file),
                                             .flags = OP_PARAM_REQUIRED | OP_PARAM_POSITIONAL, .value = "FILE",
                                             .about = "where to write it; must not exist"},
                                            {0}};
static const op_param params_db_restore[] = {
    {OP_PATH(op_restore_args, file), .flags = OP_PARAM_REQUIRED | OP_PARAM_POSITIONAL, .value = "FILE",
     .about = "a file made by backup"},
    {OP_PATH(op_restore_args, to), .flags = OP_PARAM_POSITIONAL, .value = "DIR",
     .about = "folder of the new store; --store when not given; must not hold a store"},
    {0}};
static const op_param params_db_export[] = {
    P_DB_COLLECTION(op_export_args),
    {OP_PATH(op_export_args, file), .flags = OP_PARAM_POSITIONAL, .value = "FILE", .fallback = "-",
     .about = "where to write; - is standard output; a file appears when it is whole"},
    P_DB_IDS(op_export_args),
    P_DB_IDS_FILE(op_export_args),
    P_DB_WHERE(op_export_args),
    P_DB_WHERE_DOCUMENT(op_export_args),
    P_DB_INCLUDE(op_export_args, "document,metadata,embedding"),
    {0}};
static const op_param params_db_import[] = {
    P_DB_COLLECTION(op_write_args),
    {OP_PATH(op_write_args, file), .flags = OP_PARAM_REQUIRED | OP_PARAM_POSITIONAL, .value = "FILE",
     .about = "what to read; - is standard input"},
    {OP_CHOICE(op_write_args, format), .value = "FORMAT", .choices = "jsonl|npy|fvecs",
     .about = "of the file; when not given, by its extension, else jsonl"},
    {OP_CHOICE(op_write_args, mode), .value = "MODE", .choices = "add|upsert|update", .fallback = "add",
     .about = "what to do with each record"},
    P_DB_ON_EXISTING(op_write_args),
    {OP_INT(op_write_args, first_id), .value = "N", .fallback = "0",
     .about = "npy and fvecs: ids are decimal numbers from here"},
    P_DB_CREATE(op_write_args),
    P_DB_METRIC(op_write_args),
    P_DB_BATCH(op_write_args),
    {0}};

/* ---- Answers ---- */

static const op_field summary_db_create[] = {{"collection", OP_FIELD_TEXT, 0, "its name"},
                                             {"metric", OP_FIELD_TEXT, 0, "l2, cosine or ip"},
                                             {"created", OP_FIELD_BOOL, 0, "false: it existed already"},
                                             {0}};
static const op_field row_db_collections[] = {
    {"name", OP_FIELD_TEXT, 0, "its name"},
    {"records", OP_FIELD_COUNT, 0, "how many records"},
    {"pending", OP_FIELD_COUNT, 0, "those of them that have no vector"},
    {"metric", OP_FIELD_TEXT, 0, "l2, cosine or ip"},
    {"dimension", OP_FIELD_NUMBER, OP_FIELD_NULLABLE, "of the vectors; null until there is one"},
    {"embedder", OP_FIELD_TEXT, OP_FIELD_NULLABLE, "the model that makes the vectors"},
    {"metadata", OP_FIELD_OBJECT, OP_FIELD_NULLABLE, "as given when it was made"},
    {0}};
#define P_DB_BACKUP_FIELD                                                                                              \
  { "backup", OP_FIELD_TEXT, OP_FIELD_OPTIONAL, "a file with a copy of the records, where one was kept" }
static const op_field summary_db_rename[] = {
    {"collection", OP_FIELD_TEXT, 0, "the old name"}, {"new_name", OP_FIELD_TEXT, 0, "the new one"}, {0}};
static const op_field summary_db_drop[] = {{"collection", OP_FIELD_TEXT, 0, "its name"},
                                           {"dropped", OP_FIELD_COUNT, 0, "how many records it had"},
                                           P_DB_BACKUP_FIELD,
                                           {0}};
static const op_field summary_db_write[] = {
    {"collection", OP_FIELD_TEXT, 0, "its name"},
    {"read", OP_FIELD_COUNT, 0, "records read"},
    {"written", OP_FIELD_COUNT, 0, "records added or changed"},
    {"skipped", OP_FIELD_COUNT, 0, "add: existed and were kept; update: do not exist"},
    {"missing", OP_FIELD_TEXTS, OP_FIELD_OPTIONAL, "update: the ids that do not exist, the first 100 of them"},
    {0}};
static const op_field row_db_get[] = {
    {"id", OP_FIELD_TEXT, 0, "of the record"},
    {"document", OP_FIELD_TEXT, OP_FIELD_NULLABLE | OP_FIELD_OPTIONAL, "its text"},
    {"metadata", OP_FIELD_OBJECT, OP_FIELD_NULLABLE | OP_FIELD_OPTIONAL, "its metadata"},
    {"embedding", OP_FIELD_VECTOR, OP_FIELD_NULLABLE | OP_FIELD_OPTIONAL, "its vector; null while it is pending"},
    {0}};
static const op_field summary_db_get[] = {
    {"count", OP_FIELD_COUNT, 0, "how many records are in the answer"},
    {"next", OP_FIELD_NUMBER, OP_FIELD_NULLABLE, "there may be more: give this as `after`"},
    {0}};
static const op_field row_db_query[] = {
    {"query", OP_FIELD_NUMBER, 0, "which of the vectors, from 0"},
    {"rank", OP_FIELD_NUMBER, 0, "1 is the best"},
    {"id", OP_FIELD_TEXT, 0, "of the record"},
    {"distance", OP_FIELD_REAL, OP_FIELD_NULLABLE, "exact; smaller is nearer; null where there is none"},
    {"score", OP_FIELD_REAL, OP_FIELD_OPTIONAL, "text and hybrid: larger is better"},
    {"document", OP_FIELD_TEXT, OP_FIELD_NULLABLE | OP_FIELD_OPTIONAL, "its text"},
    {"metadata", OP_FIELD_OBJECT, OP_FIELD_NULLABLE | OP_FIELD_OPTIONAL, "its metadata"},
    {"embedding", OP_FIELD_VECTOR, OP_FIELD_NULLABLE | OP_FIELD_OPTIONAL, "its vector"},
    {0}};
static const op_field summary_db_query[] = {
    {"results", OP_FIELD_COUNT, OP_FIELD_OPTIONAL, "with explain: how many records the answer has"},
    {"explain", OP_FIELD_OBJECT, OP_FIELD_OPTIONAL, "with explain: the steps of the query"},
    {0}};
static const op_field summary_db_fill[] = {
    {"collection", OP_FIELD_TEXT, 0, "its name"},
    {"model", OP_FIELD_TEXT, 0, "the identity of the embedder"},
    {"embedded", OP_FIELD_COUNT, 0, "records that got a vector"},
    {"without_document", OP_FIELD_COUNT, 0, "records that have no text to make one of"},
    {"changed", OP_FIELD_COUNT, 0, "records that somebody changed meanwhile: run it again"},
    {0}};
static const op_field summary_db_reembed[] = {
    {"collection", OP_FIELD_TEXT, 0, "its name"},
    {"model", OP_FIELD_TEXT, 0, "the identity of the model that its vectors are made by now"},
    {"records", OP_FIELD_COUNT, 0, "of the collection"},
    {"embedded", OP_FIELD_COUNT, 0, "vectors that were made"},
    {"reused", OP_FIELD_COUNT, 0, "vectors that an earlier, interrupted run had made"},
    {"without_vector", OP_FIELD_COUNT, 0, "records without a document"},
    P_DB_BACKUP_FIELD,
    {0}};
static const op_field summary_db_delete[] = {{"collection", OP_FIELD_TEXT, 0, "its name"},
                                             {"deleted", OP_FIELD_COUNT, 0, "how many records are gone"},
                                             P_DB_BACKUP_FIELD,
                                             {0}};
static const op_field summary_db_count[] = {
    {"collection", OP_FIELD_TEXT, 0, "its name"}, {"count", OP_FIELD_NUMBER, 0, "how many records"}, {0}};
static const op_field row_db_facets[] = {
    {"value", OP_FIELD_SCALAR, 0, "a value of the key"}, {"count", OP_FIELD_COUNT, 0, "how many records have it"}, {0}};
static const op_field row_db_map[] = {{"id", OP_FIELD_TEXT, 0, "of the record"},
                                      {"x", OP_FIELD_REAL, 0, "from -1 to 1"},
                                      {"y", OP_FIELD_REAL, 0, "from -1 to 1, by the same scale"},
                                      {"label", OP_FIELD_TEXT, 0, "the beginning of its document"},
                                      {"group", OP_FIELD_TEXT, OP_FIELD_NULLABLE, "its value of the key"},
                                      {"cluster", OP_FIELD_TEXT, OP_FIELD_NULLABLE, "the name of the place it lies in"},
                                      {"path", OP_FIELD_TEXT, OP_FIELD_OPTIONAL, "metadata key path, if it has it"},
                                      {"line", OP_FIELD_NUMBER, OP_FIELD_OPTIONAL, "of code: its first line there"},
                                      {0}};
static const op_field summary_db_map[] = {
    {"collection", OP_FIELD_TEXT, 0, "its name"},
    {"records", OP_FIELD_COUNT, 0, "how many it has"},
    {"points", OP_FIELD_COUNT, 0, "how many of them are shown"},
    {"variance", OP_FIELD_REAL, OP_FIELD_NULLABLE, "by pca: the share of the vectors' variance that is shown"},
    {"clusters", OP_FIELD_COUNT, 0, "how many places have a name"},
    {"kept", OP_FIELD_REAL, 0, "of the 10 nearest of each point on the map, the share that is among its 10 nearest"},
    {"kept_wide", OP_FIELD_REAL, 0, "... that is among its 50 nearest"},
    {0}};
static const op_field summary_db_stats[] = {
    {"store", OP_FIELD_TEXT, 0, "its folder"},
    {"collection", OP_FIELD_TEXT, OP_FIELD_OPTIONAL, "its name, when one was asked for"},
    {"metric", OP_FIELD_TEXT, OP_FIELD_OPTIONAL, "of the collection"},
    {"dimension", OP_FIELD_NUMBER, OP_FIELD_OPTIONAL | OP_FIELD_NULLABLE, "of the collection"},
    {"embedder", OP_FIELD_TEXT, OP_FIELD_OPTIONAL | OP_FIELD_NULLABLE, "of the collection"},
    {"metadata", OP_FIELD_OBJECT, OP_FIELD_OPTIONAL | OP_FIELD_NULLABLE, "of the collection"},
    {"collections", OP_FIELD_COUNT, OP_FIELD_OPTIONAL, "how many collections"},
    {"records", OP_FIELD_COUNT, 0, "how many records"},
    {"pending", OP_FIELD_COUNT, 0, "records without a vector"},
    {"cursor", OP_FIELD_NUMBER, 0, "position of the newest commit"},
    {"untexted", OP_FIELD_COUNT, 0, "records that text search still scans: optimize puts them into its index"},
    {"unindexed", OP_FIELD_COUNT, 0, "records that filters still scan: optimize puts them into their index"},
    {"segments", OP_FIELD_COUNT, 0, "files of the vector index"},
    {"segment_bytes", OP_FIELD_BYTES, 0, "their size"},
    {"indexed", OP_FIELD_COUNT, 0, "vectors that they hold"},
    {"tail", OP_FIELD_COUNT, 0, "vectors that vector queries still scan"},
    {"dead", OP_FIELD_COUNT, 0, "deleted or replaced vectors in them: compact removes them"},
    {"building", OP_FIELD_COUNT, 0, "files being made now, by any process"},
    {"build_done", OP_FIELD_COUNT, 0, "how far this process is with one"},
    {"build_total", OP_FIELD_COUNT, 0, "of this many steps"},
    {"damaged_segments", OP_FIELD_COUNT, 0, "files found damaged since the store was opened"},
    {"unerased", OP_FIELD_COUNT, 0, "deleted records and vectors whose bytes wait for optimize"},
    {"counters", OP_FIELD_OBJECT, OP_FIELD_OPTIONAL, "of the collection's declared counters: the most frequent values"},
    {"bytes", OP_FIELD_BYTES, OP_FIELD_OPTIONAL, "of all files"},
    {"free_bytes", OP_FIELD_BYTES, OP_FIELD_OPTIONAL, "inside them: compact gives them back"},
    {"files", OP_FIELD_COUNT, OP_FIELD_OPTIONAL, "in the folder"},
    {"page_bytes", OP_FIELD_NUMBER, OP_FIELD_OPTIONAL, "of the database file"},
    {"format", OP_FIELD_NUMBER, OP_FIELD_OPTIONAL, "version of the store's format"},
    {"commit_number", OP_FIELD_NUMBER, OP_FIELD_OPTIONAL,
     "counts commits: an older copy of the store has a smaller one"},
    {"committed_ms", OP_FIELD_TIME, OP_FIELD_OPTIONAL, "when records were last changed: ms since 1970, 0: unknown"},
    {"damaged_pages", OP_FIELD_COUNT, OP_FIELD_OPTIONAL, "met by this command: run verify"},
    {"quarantined", OP_FIELD_COUNT, OP_FIELD_OPTIONAL, "damaged files that were set aside"},
    {0}};
static const op_field row_db_damage[] = {
    {"what", OP_FIELD_TEXT, 0, "page, record, vector, document, index, counter, file, ..."},
    {"collection", OP_FIELD_TEXT, OP_FIELD_NULLABLE, "null where it is not known"},
    {"id", OP_FIELD_TEXT, OP_FIELD_NULLABLE, "of the record, where it is known"},
    {"detail", OP_FIELD_TEXT, 0, "a sentence"},
    {0}};
static const op_field summary_db_verify[] = {
    {"store", OP_FIELD_TEXT, 0, "its folder"},
    {"ok", OP_FIELD_BOOL, 0, "no damage was found"},
    {"damages", OP_FIELD_COUNT, 0, "how many were found"},
    {"records", OP_FIELD_COUNT, OP_FIELD_NULLABLE, "that the store counts; null where that cannot be read"},
    {"quarantined", OP_FIELD_COUNT, OP_FIELD_OPTIONAL, "files that were set aside earlier, if there are any"},
    {"recall", OP_FIELD_REAL, OP_FIELD_OPTIONAL, "with --recall: the share of the ten nearest that is found"},
    {"recall_margin", OP_FIELD_REAL, OP_FIELD_OPTIONAL, "the true share is within this of it, with 95 % confidence"},
    {"recall_queries", OP_FIELD_COUNT, OP_FIELD_OPTIONAL,
     "measured with so many: half are vectors of records, half lie between two of them"},
    {"recall_collection", OP_FIELD_TEXT, OP_FIELD_OPTIONAL, "the collection in which it is worst"},
    {0}};
static const op_field summary_db_copy[] = {
    {"collection", OP_FIELD_TEXT, 0, "name of the copy"},
    {"other", OP_FIELD_TEXT, 0, "the other store"},
    {"records", OP_FIELD_COUNT, 0, "records read and compared"},
    {"written", OP_FIELD_COUNT, 0, "records that were written, read back and found equal"},
    {"equal", OP_FIELD_COUNT, 0, "records that were there already, as they are"},
    {"extra", OP_FIELD_COUNT, 0, "records that only the copy has"},
    {"checksum", OP_FIELD_TEXT, 0, "CRC-32C over the checksums of all ranges"},
    {0}};
static const op_field summary_db_salvage[] = {
    {"from", OP_FIELD_TEXT, 0, "the damaged store"},
    {"to", OP_FIELD_TEXT, 0, "the new one"},
    {"records", OP_FIELD_COUNT, 0, "brought over, proven by their checksums"},
    {"lost", OP_FIELD_COUNT, 0, "known to have existed, and not brought over"},
    {"without_document", OP_FIELD_COUNT, 0, "brought over without their document"},
    {"without_vector", OP_FIELD_COUNT, 0, "brought over without their vector: pending now"},
    {"pages", OP_FIELD_COUNT, 0, "of the damaged file"},
    {"damaged_pages", OP_FIELD_COUNT, 0, "of those"},
    {0}};
static const op_field summary_db_backup[] = {
    {"file", OP_FIELD_TEXT, 0, "the backup"}, {"bytes", OP_FIELD_BYTES, 0, "its size"}, {0}};
static const op_field summary_db_restore[] = {
    {"file", OP_FIELD_TEXT, 0, "the backup"}, {"store", OP_FIELD_TEXT, 0, "the new store's folder"}, {0}};
static const op_field summary_db_compact[] = {{"store", OP_FIELD_TEXT, 0, "its folder"},
                                              {"bytes_before", OP_FIELD_BYTES, 0, "of all files"},
                                              {"bytes", OP_FIELD_BYTES, 0, "of all files, now"},
                                              {0}};
static const op_field summary_db_export[] = {
    {"file", OP_FIELD_TEXT, 0, "where they are"}, {"written", OP_FIELD_COUNT, 0, "how many records"}, {0}};

/* ---- The table ---- */

#define OP_OF_DB(verb) .group = "db", .name = #verb, OP_RUNS(verb)

const op_def op_table_db[] = {
    {OP_OF_DB(create), .about = "create a collection, and the store if there is none", .params = params_db_create,
     .summary = summary_db_create, .say = "{collection}: [{?created}created, ]metric {metric}",
     .detail = "The dimension is fixed by the first vector that is added.",
     .examples = "lode db create notes --metric cosine\n"
                 "lode db create code --counters lang,repo --metadata '{\"owner\":\"me\"}'"},
    {OP_OF_DB(collections), .about = "list the collections", .flags = OP_READ_ONLY, .params = params_db_collections,
     .row = row_db_collections, .examples = "lode db collections\nlode db collections --json --store ./data"},
    {OP_OF_DB(rename), .about = "give a collection another name", .params = params_db_rename,
     .summary = summary_db_rename, .say = "{collection}: now called {new_name}",
     .detail = "The collections of a project's code index are refused.", .examples = "lode db rename notes journal"},
    {OP_OF_DB(drop), .about = "remove a collection and all its records", .flags = OP_DESTRUCTIVE,
     .params = params_db_drop, .summary = summary_db_drop,
     .say = "{collection}: dropped, {dropped} record{s}[; a copy is at {backup}]",
     .detail =
         "Asks on a terminal, and keeps a copy of the records beside the store as JSON lines, which `lode db add` "
         "reads; --yes does not ask and keeps none, and is needed where there is no terminal. It is gone at once for "
         "every reader. Its bytes are erased by "
         "maintenance, and "
         "surely by compact. The collections of a project's code index are refused: lode reset index removes those.",
     .examples = "lode db drop notes\nlode db drop notes --yes"},
    {OP_OF_DB(add), .about = "add records, one JSON object per line", .flags = OP_LONG, .params = params_db_add,
     .summary = summary_db_write, .say = "{collection}: {written} added[, {skipped} kept as {it was|they were}]",
     .detail = "Records with a document and no embedding get a vector of the collection's model, or of minilm in a "
               "collection without vectors, if it is at hand and they are not many; else they are pending, which is "
               "said, and `lode db embed` makes their vectors. Standard input is read as it "
               "comes and committed batch by batch; when a line is refused, the error names it, its batch is not "
               "written, and earlier batches stay.",
     .examples = "lode db add notes < notes.jsonl\n"
                 "echo '{\"id\":\"a\",\"document\":\"hello\",\"metadata\":{\"n\":1},\"embedding\":[1,0,0]}' | lode db "
                 "add notes --create\n"
                 "# make the vectors with the collection's model, or minilm\n"
                 "lode db add notes notes.jsonl --create --embed\n"
                 "# load what is new, keep what is there\n"
                 "lode db add notes notes.jsonl --on-existing keep"},
    {OP_OF_DB(upsert), .about = "add records, or replace parts of those that exist", .flags = OP_LONG | OP_DESTRUCTIVE,
     .params = params_db_upsert, .summary = summary_db_write, .say = "{collection}: {written} written",
     .detail = "Of a record that exists, what is given replaces document and embedding, and metadata merge key by key.",
     .examples = "lode db upsert notes < changed.jsonl"},
    {OP_OF_DB(update), .about = "change records that exist", .flags = OP_LONG | OP_DESTRUCTIVE,
     .params = params_db_update, .summary = summary_db_write,
     .say = "{collection}: {written} changed[, {skipped} {does|do} not exist][: {missing}]",
     .detail = "What a line does not name stays. Metadata merge key by key; null removes a key. Ids that do not exist "
               "are skipped and named; exit code 1 when none exists.",
     .examples = "echo '{\"id\":\"a\",\"metadata\":{\"n\":2,\"old\":null}}' | lode db update notes"},
    {OP_OF_DB(get), .about = "show records by id or filter", .flags = OP_READ_ONLY | OP_HIDE_SUMMARY,
     .params = params_db_get, .row = row_db_get, .summary = summary_db_get,
     .detail =
         "By ids in the order asked, otherwise in the order of insertion. Memory is bounded: an answer of more than "
         "32 MiB is written while it is read, and a note says so if others changed the collection meanwhile.",
     .examples = "lode db get notes a b\n"
                 "lode db get notes --where '{\"lang\":\"c\",\"size\":{\"$gt\":100}}' --limit 20 --json\n"
                 "# all ids that still wait for a vector\n"
                 "lode db get notes --pending --limit 0 --include none --json"},
    {OP_OF_DB(query), .about = "find the nearest records by vector, words or both", .flags = OP_READ_ONLY,
     .params = params_db_query, .row = row_db_query, .summary = summary_db_query,
     .detail =
         "Distances are exact: l2 is squared, cosine is 1 - cos, ip is 1 - dot; ties are ordered by id. Text is "
         "ranked by BM25 with a tokenizer that knows code. Hybrid fuses both rankings. One JSON line per hit with "
         "--json; rank begins at 1. Text alone is ranked by words and by meaning when the collection's vectors "
         "are made by a model that is at hand (or by Chroma's default function, which is minilm), else by words, "
         "which is said.\n\n"
         "With --explain the query is answered, and instead of records its steps are shown: how the filter is "
         "applied, how vectors and words are searched, why so, how much was looked at, and the time of each.",
     .examples = "lode db query notes 'how tokens are read'\n"
                 "lode db query notes --vector '[1,0,0]' -k 5\n"
                 "lode db query notes --vector @q.json --where '{\"lang\":{\"$in\":[\"c\",\"h\"]}}' --json\n"
                 "lode db query code --text 'parse header' --where-document '{\"$regex\":\"int \\\\w+\\\\(\"}'\n"
                 "lode db query code --text 'parse header' --vector @q.json --mode hybrid\n"
                 "# why is it slow?\n"
                 "lode db query notes --vector @q.json --where '{\"lang\":\"c\"}' --explain"},
    {.group = "db",
     .name = "embed",
     OP_RUNS(fill),
     .about = "make the vectors of records that have none yet",
     .flags = OP_LONG,
     .params = params_db_fill,
     .summary = summary_db_fill,
     .say =
         "{collection}: {embedded} vector{s} by {model}[, {without_document} record{s} without a document][, {changed} "
         "changed meanwhile]",
     .detail = "The documents of pending records become vectors by the collection's model, in batches that are each "
               "one commit: stopped at any "
               "moment, the next run goes on. The model's identity is stamped into the collection.",
     .examples = "lode db embed notes\nlode db embed notes --model ollama:nomic-embed-text"},
    {OP_OF_DB(reembed), .about = "give a collection the vectors of another model, while it is in use",
     .flags = OP_LONG | OP_DESTRUCTIVE, .params = params_db_reembed, .summary = summary_db_reembed,
     .say = "{collection}: vectors by {model}: {embedded} made[, {reused} from the interrupted run][, {without_vector} "
            "record{s} without a document][; a copy is at {backup}]",
     .detail =
         "The documents become vectors of the other model, aside, in the collection NAME~reembed; reads and "
         "writes go on meanwhile, and answers come from the old vectors. Then one transaction puts the new ones "
         "in place: no answer mixes two models. Stopped or killed at any moment, the collection is as it was, and "
         "the same command goes on where it stopped. `lode db drop NAME~reembed` gives up instead. Vectors of a "
         "collection "
         "without a model's name are your own: it asks on a terminal, and keeps a copy of the records beside the store "
         "as "
         "JSON lines; --yes does not ask and keeps none, and is needed where there is no terminal.",
     .examples = "lode db reembed notes --model minilm\nlode db reembed notes --model ollama:nomic-embed-text"},
    {OP_OF_DB(delete), .about = "delete records by id or filter", .flags = OP_DESTRUCTIVE, .params = params_db_delete,
     .summary = summary_db_delete, .say = "{collection}: {deleted} deleted[; a copy is at {backup}]",
     .detail = "One transaction, however many there are. Without any selection it is refused: --where '{}' means all. "
               "On a terminal it asks, and keeps a copy of the records beside the store as JSON lines; not with --yes, "
               "--ids-file, or where there is no terminal.",
     .examples = "lode db delete notes a b\nlode db delete notes --ids-file gone.txt\n"
                 "lode db delete code --where '{\"path\":\"src/old.c\"}'"},
    {OP_OF_DB(count), .about = "print the number of records", .flags = OP_READ_ONLY, .params = params_db_name,
     .summary = summary_db_count, .say = "{count}", .examples = "lode db count notes"},
    {OP_OF_DB(facets), .about = "count records by the values of a metadata key", .flags = OP_READ_ONLY,
     .params = params_db_facets, .row = row_db_facets,
     .detail = "Largest count first. A key that create --counters named is answered without touching the records.",
     .examples = "lode db facets code lang\nlode db facets code author --where '{\"lang\":\"c\"}' --limit 5"},
    {OP_OF_DB(map), .about = "place a sample of the vectors on the plane",
     .flags = OP_READ_ONLY | OP_LONG | OP_HIDE_SUMMARY, .params = params_db_map, .row = row_db_map,
     .summary = summary_db_map,
     .detail =
         "Neighbours on the map are near each other in the collection as far as the plane allows (t-SNE over the 15 "
         "nearest of each point); the summary says how far that is. The same records give the same picture. "
         "Clusters are named by the folder or the words that are frequent there and rare elsewhere. A sample is "
         "spread evenly over the order of insertion; with --where it is the first that match. Places are kept in "
         "the store's folder (map-N.cache, at most eight), and made again when the vectors change. The page of "
         "`lode ui` draws it.",
     .examples = "lode db map notes\nlode db map code --key language --sample 5000 --json\nlode db map code --by pca"},
    {OP_OF_DB(stats), .about = "show statistics of the store or of one collection", .flags = OP_READ_ONLY,
     .params = params_db_stats, .summary = summary_db_stats, .examples = "lode db stats\nlode db stats notes --json"},
    {OP_OF_DB(verify), .about = "check everything and report all damage", .flags = OP_READ_ONLY | OP_LONG,
     .params = params_db_verify, .row = row_db_damage, .summary = summary_db_verify,
     .say = "{store}: {damages} problem{s} found[ in {records} record{s}][; {quarantined} file{s} set aside earlier]"
            "[; recall {recall} +- {recall_margin} in {recall_collection}]",
     .detail =
         "Every record's checksum, the database's own checks, the text index, the counters against a recount, and "
         "derived files. Exit code 3 when there is damage.",
     .examples = "lode db verify\nlode db verify --json --store ./data\nlode db verify --recall"},
    {OP_OF_DB(salvage), .about = "copy what can be read of a damaged store into a new one", .flags = OP_LONG | OP_LOCAL,
     .params = params_db_salvage, .row = row_db_damage, .summary = summary_db_salvage,
     .say = "{to}: {records} record{s} brought over[, {lost} lost][, {without_document} without {its|their} document]"
            "[, {without_vector} without {its|their} vector]",
     .detail = "Never writes to the damaged store. Lists what is lost.",
     .examples = "lode db salvage ./rescued --store ./damaged"},
    {OP_OF_DB(backup), .about = "write the whole store to one file while it is in use",
     .flags = OP_LONG | OP_LOCAL | OP_READ_ONLY, .params = params_db_backup, .summary = summary_db_backup,
     .say = "{file}: {bytes}", .examples = "lode db backup notes-monday.lode"},
    {OP_OF_DB(restore), .about = "make a store from a backup", .flags = OP_LONG | OP_LOCAL, .params = params_db_restore,
     .summary = summary_db_restore, .say = "{store}: restored from {file}", .detail = "The backup is checked first.",
     .examples = "lode db restore notes-monday.lode ./restored"},
    {OP_OF_DB(compact), .about = "rewrite the store in as little space as possible", .flags = OP_LONG,
     .params = params_none, .summary = summary_db_compact, .say = "{store}: {bytes}, was {bytes_before}",
     .detail = "Deleted bytes are gone for good, from the text index and from free pages too. It never makes "
               "a store larger: what waits to be indexed is left to the background or to optimize.",
     .examples = "lode db compact"},
    {OP_OF_DB(optimize), .about = "do the pending background work now", .flags = OP_LONG, .params = optimize_params,
     .summary = summary_db_compact, .say = "{store}: {bytes}, was {bytes_before}",
     .detail =
         "Updates the text, metadata and vector indexes, erases deleted data and frees pages. Damaged files of the "
         "vector "
         "index are set aside and "
         "rebuilt. One that cannot be read is left alone, as that proves no damage: its records are read one by one, "
         "until it can be "
         "read again or --rebuild-unreadable sets it aside too. No record is in danger: the index is made from them.",
     .examples = "lode db optimize\nlode db optimize --rebuild-unreadable"},
    {OP_OF_DB(export), .about = "write records as JSON lines", .flags = OP_READ_ONLY | OP_LONG | OP_LOCAL,
     .params = params_db_export, .summary = summary_db_export, .say = "{file}: {written} record{s}",
     .detail = "The lines are those that add and import read.",
     .examples = "lode db export notes > notes.jsonl\nlode db export notes c.jsonl --where '{\"lang\":\"c\"}'"},
    {OP_OF_DB(import), .about = "read records from a file: JSON lines, .npy or .fvecs", .flags = OP_LONG | OP_LOCAL,
     .params = params_db_import, .summary = summary_db_write,
     .say = "{collection}: {written} written[, {skipped} skipped]",
     .detail = "Committed batch by batch; on failure the error names the line, and earlier batches stay.",
     .examples = "lode db import notes notes.jsonl --create\nlode db import sift base.fvecs --create --metric l2\n"
                 "# add vectors to records whose ids are 0, 1, 2, ...\n"
                 "lode db import notes vectors.npy --mode update"},
    {OP_OF_DB(push), .about = "copy a collection to another store, online", .flags = OP_LONG | OP_LOCAL,
     .params = params_db_push, .summary = summary_db_copy,
     .say = "{collection}: {records} record{s}, {written} written, {equal} unchanged[, {extra} only in the copy]; "
            "checksum "
            "{checksum}",
     .detail = "Range by range: what the other store has already is compared, what differs is written, read back and "
               "compared. "
               "Started again, it continues where it stopped, or brings the copy up to date. A code index that `lode "
               "index` keeps in the other store is "
               "not written to; a copy of one is.",
     .examples =
         "lode db push notes --to qdrant://10.0.0.5:6333\n"
         "# two replicas in six shards\nlode db push notes --to 'qdrant://a:6333,b:6333/team?replicas=2&shards=6'"},
    {OP_OF_DB(pull), .about = "copy a collection from another store, online", .flags = OP_LONG | OP_LOCAL,
     .params = params_db_pull, .summary = summary_db_copy,
     .say = "{collection}: {records} record{s}, {written} written, {equal} unchanged[, {extra} only in the copy]; "
            "checksum "
            "{checksum}",
     .detail = "The same as push, the other way round. The code index of a project is not written to: --as NAME copies "
               "under another name.",
     .examples = "lode db pull notes --from qdrant://10.0.0.5:6333"},
    {0}};
