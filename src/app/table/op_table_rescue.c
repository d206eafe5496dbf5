/* SPDX-License-Identifier: Apache-2.0 */
/* op_table_rescue.c - the operations of `lode rescue`, `import`, `chroma` and `export`, as data; see op_def.h. */
#include "table/op_args_db.h"
#include "table/op_args_rescue.h"

#define P_RESCUE_FROM(args)                                                                                            \
  {                                                                                                                    \
    OP_PATH(args, dir), .flags = OP_PARAM_REQUIRED | OP_PARAM_POSITIONAL, .value = "DIR",                              \
                        .about = "the Chroma directory: what chromadb.PersistentClient(path=...) was given"            \
  }

#define P_RESCUE_HOW                                                                                                   \
  {OP_FLAG(op_rescue_args, dry_run), .about = "write nothing; report what would be copied"},                           \
      {OP_FLAG(op_rescue_args, embed), .about = "compute vectors that are not found anywhere again from the "          \
                                                "documents, if the model is known and installed"},                     \
      {OP_TEXT(op_rescue_args, model), .value = "MODEL",                                                               \
       .about = "with --embed: the model that made the vectors, for directories that do not say it (all before 1.0)"}, \
  {                                                                                                                    \
    OP_PATH(op_rescue_args, doubtful),                                                                                 \
        .value = "FILE",                                                                                               \
        .about =                                                                                                       \
            "list the records with something doubtful or missing here, one JSON object per line; when not given, "     \
            "STORE-doubtful.jsonl"                                                                                     \
  }
static const op_param params_rescue[] = {
    P_RESCUE_FROM(op_rescue_args),
    {OP_PATH(op_rescue_args, to), .value = "STORE",
     .about = "the store to write to, made if there is none; --store when not given"},
    P_RESCUE_HOW,
    {0}};

static const op_param params_palace[] = {{OP_PATH(op_rescue_args, dir),
                                          .flags = OP_PARAM_REQUIRED | OP_PARAM_POSITIONAL, .value = "PALACE",
                                          .about = "the palace; `mempalace status` names it"},
                                         {OP_PATH(op_rescue_args, to), .value = "PALACE", .flags = OP_PARAM_REQUIRED,
                                          .about = "the folder of the new palace, made if there is none"},
                                         P_RESCUE_HOW,
                                         {0}};

static const op_field row_rescue[] = {
    {"collection", OP_FIELD_TEXT, 0, "its name in the store"},
    {"records", OP_FIELD_COUNT, 0, "brought over"},
    {"exact", OP_FIELD_COUNT, 0, "vectors from the index"},
    {"from_queue", OP_FIELD_COUNT, 0, "vectors from the write-ahead queue"},
    {"re_embedded", OP_FIELD_COUNT, 0, "vectors made again from the document"},
    {"missing", OP_FIELD_COUNT, 0, "records without a vector"},
    {"doubtful", OP_FIELD_COUNT, 0, "records with something doubtful or missing, each listed"},
    {"refused", OP_FIELD_COUNT, 0, "records that a store does not take, each listed"},
    {"lost", OP_FIELD_COUNT, 0, "records that the index knows and the damaged database does not, each listed"},
    {"metric", OP_FIELD_TEXT, 0, "l2, cosine or ip"},
    {"dimension", OP_FIELD_NUMBER, OP_FIELD_NULLABLE, "of the vectors"},
    {0}};
#define F_RESCUE                                                                                                       \
  {"from", OP_FIELD_TEXT, 0, "the Chroma directory"},                                                                  \
      {"to", OP_FIELD_TEXT, OP_FIELD_NULLABLE, "the store; null for a dry run"},                                       \
      {"collections", OP_FIELD_COUNT, 0, "how many"}, {"records", OP_FIELD_COUNT, 0, "brought over"},                  \
      {"written", OP_FIELD_COUNT, 0, "of those, were not in the store yet, or differed"},                              \
      {"exact", OP_FIELD_COUNT, 0, "vectors from the index"},                                                          \
      {"from_queue", OP_FIELD_COUNT, 0, "vectors from the write-ahead queue"},                                         \
      {"re_embedded", OP_FIELD_COUNT, 0, "vectors made again"},                                                        \
      {"missing", OP_FIELD_COUNT, 0, "records without a vector"},                                                      \
      {"doubtful", OP_FIELD_COUNT, 0, "records listed in the file"},                                                   \
      {"refused", OP_FIELD_COUNT, 0, "records that a store does not take"},                                            \
      {"lost", OP_FIELD_COUNT, 0, "records that the index knows and the damaged database does not"}, {                 \
    "doubtful_file", OP_FIELD_TEXT, OP_FIELD_NULLABLE, "the list; null when there is none"                             \
  }
static const op_field summary_rescue[] = {F_RESCUE, {0}};
static const op_field summary_palace[] = {
    F_RESCUE,
    {"files", OP_FIELD_COUNT, 0, "other files of the palace that were copied"},
    {"file_bytes", OP_FIELD_COUNT, 0, "in them"},
    {"kept", OP_FIELD_COUNT, 0, "files that were in the new palace already, and stay as they are"},
    {"left_out", OP_FIELD_COUNT, 0, "links, devices and the like"},
    {"models", OP_FIELD_COUNT, 0, "collections whose model the palace names"},
    {0}};

#define SAY_RESCUE                                                                                                     \
  "{from}: {records} record{s} in {collections} collection{s}, {exact} vector{s} from the index[, {from_queue} from "  \
  "the "                                                                                                               \
  "queue]"                                                                                                             \
  "[, {re_embedded} made again][, {missing} missing][, {refused} refused][, {lost} lost][, {doubtful} doubtful][; "    \
  "those are listed in {doubtful_file}]"
#define DETAIL_RESCUE                                                                                                  \
  "Reads directories of chromadb 0.4 to 1.x. Nothing of the directory is written or loaded by Chroma's code: rows "    \
  "come from the pages of "                                                                                            \
  "chroma.sqlite3, vectors from the write-ahead queue and from data_level0.bin; a damaged graph, header, pickle or "   \
  "database "                                                                                                          \
  "costs what it held and nothing else. The directory may be read-only or in use. Running it again goes on where it "  \
  "stopped. Exit code 3 "                                                                                              \
  "when something is missing."

#define OP_OF_RESCUE(group_name)                                                                                       \
  .group = group_name, .name = "chroma", OP_RUNS(rescue_chroma), .flags = OP_LONG | OP_LOCAL, .params = params_rescue, \
  .row = row_rescue, .summary = summary_rescue, .say = SAY_RESCUE, .detail = DETAIL_RESCUE

const op_def op_table_rescue[] = {
    {OP_OF_RESCUE("rescue"), .about = "copy everything that can be read of a Chroma directory into a store",
     .examples = "lode rescue chroma ./chroma --dry-run\nlode rescue chroma ~/.mempalace/palace --to ./palace.lode\n"
                 "# vectors that are lost are made again from the documents\n"
                 "lode rescue chroma ./chroma --to ./data --embed --model minilm"},
    {.group = "rescue",
     .name = "palace",
     OP_RUNS(rescue_palace),
     .flags = OP_LONG | OP_LOCAL,
     .params = params_palace,
     .about = "move a MemPalace palace to Lode: drawers, knowledge graph, and everything else in it",
     .row = row_rescue,
     .summary = summary_palace,
     .say = SAY_RESCUE "[; {files} other file{s} copied][, {kept} kept][, {left_out} left out]",
     .detail = "What `lode rescue chroma` does, into the folder lode of the new palace, which MemPalace's backend for "
               "Lode uses; then all other files of the palace are copied: the knowledge graph with its log, settings, "
               "and whatever else is there. The model that made the vectors is recorded as the palace names it. The "
               "old palace is only read. Files that are in the new palace already stay as they are, so an interrupted "
               "move is completed by starting it again.",
     .examples = "lode rescue palace ~/.mempalace/palace --to ~/.mempalace/palace-on-lode\n"
                 "MEMPALACE_BACKEND=lode mempalace --palace ~/.mempalace/palace-on-lode status"},
    {0}};

/* ---- import lance ---- */

static const op_param params_import_lance[] = {
    {OP_PATH(op_import_lance_args, dir), .flags = OP_PARAM_REQUIRED | OP_PARAM_POSITIONAL, .value = "DIR",
     .about = "the database: what lancedb.connect(...) was given"},
    {OP_PATH(op_import_lance_args, to), .value = "STORE",
     .about = "the store to write to, made if there is none; --store when not given"},
    {OP_TEXT(op_import_lance_args, table), .value = "NAME", .about = "one table; when not given, all"},
    {OP_TEXT(op_import_lance_args, collection), .value = "NAME",
     .about = "the collection for it; when not given, named like the table"},
    {OP_CHOICE(op_import_lance_args, metric), .value = "METRIC", .choices = "l2|cosine|ip",
     .about = "when not given, that of the table's vector index, else l2, LanceDB's default"},
    {OP_TEXT(op_import_lance_args, id), .value = "COLUMN",
     .about = "of the ids; when not given id, chunk_id, doc_id or uuid, else rows are numbered"},
    {OP_TEXT(op_import_lance_args, text), .value = "COLUMN",
     .about = "of the documents; when not given document, text, content, page_content or body"},
    {OP_TEXT(op_import_lance_args, vector), .value = "COLUMN",
     .about = "of the vectors; when not given vector, or the only one there is"},
    {OP_PATH(op_import_lance_args, python), .value = "PROGRAM",
     .about = "the Python that has the packages lancedb and lode; when not given, python3"},
    {0}};
static const op_field row_import_lance[] = {
    {"table", OP_FIELD_TEXT, 0, "its name"},
    {"metric", OP_FIELD_TEXT, 0, "l2, cosine or ip"},
    {"rows", OP_FIELD_COUNT, 0, "of the table"},
    {"records", OP_FIELD_COUNT, 0, "of those, not replaced by a later row with the same id"},
    {"written", OP_FIELD_COUNT, 0, "of those, not in the store before"},
    {0}};
static const op_field summary_import_lance[] = {
    {"from", OP_FIELD_TEXT, 0, "the database"},
    {"tables", OP_FIELD_COUNT, 0, "how many"},
    {"records", OP_FIELD_COUNT, 0, "of the tables"},
    {"written", OP_FIELD_COUNT, 0, "of those, not in the store before"},
    {"replaced", OP_FIELD_COUNT, 0, "rows with the id of a later one, left out"},
    {0}};

const op_def op_table_import[] = {
    {OP_OF_RESCUE("import"), .about = "copy a Chroma directory into a store",
     .examples = "lode import chroma ./chroma --to ./data"},
    {.group = "import",
     .name = "lance",
     OP_RUNS(import_lance),
     .about = "copy the tables of a LanceDB database into a store",
     .flags = OP_LONG | OP_LOCAL,
     .params = params_import_lance,
     .row = row_import_lance,
     .summary = summary_import_lance,
     .say = "{from}: {records} record{s} in {tables} table{s}, {written} written[, {replaced} row{s} with the id of a "
            "later one left out]",
     .detail =
         "LanceDB's own Python package reads the tables, in a process of its own: `pip install lancedb` beside the "
         "package lode (docs/PYTHON.md). Ids, documents and vectors come from columns with the usual names, all "
         "other columns become metadata: dates as text, structs as JSON. Ids that are in the collection already "
         "are kept, so an interrupted import is completed by starting it again; at the end the records are "
         "counted. The database is only read.",
     .examples = "lode import lance ./lance --to ./data\n"
                 "lode import lance ./lance --table notes --id key --text body --to ./data --python ./venv/bin/python"},
    {0}};

/* ---- chroma check, chroma quarantine ---- */

static const op_param params_chroma_check[] = {P_RESCUE_FROM(op_chroma_check_args), {0}};
static const op_param params_chroma_quarantine[] = {
    P_RESCUE_FROM(op_quarantine_args),
    {OP_PATH(op_quarantine_args, to), .value = "STORE",
     .about = "the store that everything is rescued into first; --store when not given"},
    {OP_INT(op_quarantine_args, stale_seconds), .value = "N", .fallback = "3600",
     .about = "set an index aside if the database is newer by this many seconds; 0 = every index"},
    {OP_FLAG(op_quarantine_args, fix_seq_ids),
     .about = "convert sequence ids that are blobs to integers: Chroma 1.x fails on those that 0.6 wrote"},
    {OP_FLAG(op_quarantine_args, dry_run), .about = "change nothing; report what would be done"},
    {0}};

static const op_field row_chroma_check[] = {
    {"what", OP_FIELD_TEXT, 0, "database, index, pickle, drift, vectors, sequence ids, age, lag, ..."},
    {"damage", OP_FIELD_BOOL, 0, "false: worth knowing, no damage"},
    {"collection", OP_FIELD_TEXT, OP_FIELD_NULLABLE, "null: the whole directory"},
    {"detail", OP_FIELD_TEXT, 0, "a sentence"},
    {0}};
static const op_field summary_chroma_check[] = {
    {"dir", OP_FIELD_TEXT, 0, "the Chroma directory"},
    {"ok", OP_FIELD_BOOL, 0, "no damage was found"},
    {"damages", OP_FIELD_COUNT, 0, "how many were found"},
    {"collections", OP_FIELD_COUNT, 0, "how many collections"},
    {"records", OP_FIELD_COUNT, 0, "that a rescue would bring over"},
    {"exact", OP_FIELD_COUNT, 0, "of those, vectors from the index"},
    {"from_queue", OP_FIELD_COUNT, 0, "of those, vectors from the write-ahead queue"},
    {"missing", OP_FIELD_COUNT, 0, "of those, vectors that are nowhere on the disk"},
    {0}};
static const op_field row_chroma_quarantine[] = {{"what", OP_FIELD_TEXT, 0, "what was done, or would be"},
                                                 {"path", OP_FIELD_TEXT, 0, "what was renamed"},
                                                 {"became", OP_FIELD_TEXT, 0, "its name now; nothing is deleted"},
                                                 {0}};
static const op_field summary_chroma_quarantine[] = {
    {"dir", OP_FIELD_TEXT, 0, "the Chroma directory"},
    {"store", OP_FIELD_TEXT, OP_FIELD_NULLABLE, "the store that has everything; null for a dry run"},
    {"records", OP_FIELD_COUNT, 0, "in it, or that would be"},
    {"set_aside", OP_FIELD_COUNT, 0, "indexes"},
    {"kept", OP_FIELD_COUNT, 0, "indexes that are not older than that"},
    {"seq_ids", OP_FIELD_COUNT, 0, "repaired"},
    {0}};

const op_def op_table_chroma[] = {
    {.group = "chroma",
     .name = "check",
     OP_RUNS(chroma_check),
     .flags = OP_READ_ONLY | OP_LONG | OP_LOCAL,
     .params = params_chroma_check,
     .row = row_chroma_check,
     .summary = summary_chroma_check,
     .about = "check a Chroma directory without changing it",
     .say = "{dir}: {damages} problem{s}; a rescue brings over {records} record{s} in {collections} collection{s}, "
            "{exact} "
            "vector{s} from the index"
            "[, {from_queue} from the queue][, {missing} lost]",
     .detail = "Drift between index and rows, ages, sequence ids that are blobs, damaged files, transactions that did "
               "not finish. Exit code 3 when there "
               "is damage.",
     .examples = "lode chroma check ./chroma\nlode chroma check ~/.mempalace/palace --json"},
    {.group = "chroma",
     .name = "quarantine",
     OP_RUNS(chroma_quarantine),
     .flags = OP_DESTRUCTIVE | OP_LONG | OP_LOCAL,
     .params = params_chroma_quarantine,
     .row = row_chroma_quarantine,
     .summary = summary_chroma_quarantine,
     .about = "move aside indexes that make Chroma crash, once everything is safe in a store",
     .say =
         "{dir}: {set_aside} index{es} set aside[, {kept} kept][, {seq_ids} sequence id{s} repaired][; {store} has all "
         "{records} record{s}]",
     .detail = "First everything is rescued into the store; when something of it is missing, nothing is done. Then "
               "folders of indexes that are older than "
               "the database are renamed to NAME.drift-TIME; rename them back to undo it. Chroma does not rebuild such "
               "an index: vectors that its queue no "
               "longer has are then in the store alone. Stop the programs that use the directory first.",
     .examples = "lode chroma quarantine ./chroma --to ./data --dry-run\nlode chroma quarantine ./chroma --to ./data "
                 "--stale-seconds 3600 --fix-seq-ids"},
    {0}};

/* ---- export ---- */

#define P_EXPORT_COLLECTION(args)                                                                                      \
  {                                                                                                                    \
    OP_TEXT(args, collection), .flags = OP_PARAM_REQUIRED | OP_PARAM_POSITIONAL, .value = "NAME",                      \
                               .about = "name of the collection"                                                       \
  }
#define P_EXPORT_WHERE(args)                                                                                           \
  { OP_JSON(args, where), .value = "JSON", .about = "records whose metadata match this filter (lode help filters)" }

static const op_param params_export_jsonl[] = {
    P_EXPORT_COLLECTION(op_export_args),
    {OP_PATH(op_export_args, file), .flags = OP_PARAM_POSITIONAL, .value = "FILE", .fallback = "-",
     .about = "where to write; - is standard output; a file appears when it is whole"},
    P_EXPORT_WHERE(op_export_args),
    {OP_SET(op_export_args, include), .value = "PART,PART", .choices = "document|metadata|embedding",
     .fallback = "document,metadata,embedding", .about = "parts of each record to write"},
    {0}};
static const op_param params_export_chroma[] = {P_EXPORT_COLLECTION(op_export_file_args),
                                                {OP_PATH(op_export_file_args, file),
                                                 .flags = OP_PARAM_REQUIRED | OP_PARAM_POSITIONAL, .value = "FILE",
                                                 .about = "where to write; appears when it is whole"},
                                                P_EXPORT_WHERE(op_export_file_args),
                                                {0}};
static const op_param params_export_npy[] = {
    P_EXPORT_COLLECTION(op_export_file_args),
    {OP_PATH(op_export_file_args, file), .flags = OP_PARAM_REQUIRED | OP_PARAM_POSITIONAL, .value = "FILE",
     .about = "where to write the vectors; their ids go to FILE.ids, one JSON string per line"},
    P_EXPORT_WHERE(op_export_file_args),
    {0}};
static const op_field summary_export[] = {
    {"file", OP_FIELD_TEXT, 0, "where they are"}, {"written", OP_FIELD_COUNT, 0, "how many records"}, {0}};

#define OP_OF_EXPORT(op_name, handler)                                                                                 \
  .group = "export", .name = op_name, OP_RUNS(handler), .flags = OP_READ_ONLY | OP_LONG | OP_LOCAL,                    \
  .summary = summary_export, .say = "{file}: {written} record{s}"

const op_def op_table_export[] = {
    {OP_OF_EXPORT("jsonl", export), .params = params_export_jsonl, .about = "write records as JSON lines",
     .detail = "The same as lode db export: the lines are those that add and import read.",
     .examples = "lode export jsonl notes > notes.jsonl"},
    {OP_OF_EXPORT("chroma-jsonl", export_chroma), .params = params_export_chroma,
     .about = "write records as JSON lines with the names of Chroma's add()",
     .detail = "Each line has id, embedding, document, metadata and uri, null where there is none.",
     .examples = "lode export chroma-jsonl notes notes.jsonl"},
    {OP_OF_EXPORT("npy", export_npy), .params = params_export_npy,
     .about = "write the vectors as a NumPy array, and their ids",
     .detail = "float32, one row per record, in the order of insertion; records without a vector are left out.",
     .examples = "lode export npy notes notes.npy"},
    {0}};
