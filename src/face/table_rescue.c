/* table_rescue.c - the operations of `lode rescue`, `import`, `chroma` and `export`, as data; see op.h. */
#include "op.h"

#define REQUIRED LODE__PARAM_REQUIRED
#define PLACE LODE__PARAM_POSITIONAL
#define NULLABLE LODE__FIELD_NULLABLE
#define OPTIONAL LODE__FIELD_OPTIONAL

#define P_FROM                                                                                       \
  {.name = "dir", .type = LODE__ARG_PATH, .flags = REQUIRED | PLACE, .value = "DIR",                 \
   .about = "the Chroma directory: what chromadb.PersistentClient(path=...) was given"}

static const lode__param rescue_params[] = {
    P_FROM,
    {.name = "to", .type = LODE__ARG_PATH, .value = "STORE", .about = "the store to write to, made if there is none; --store when not given"},
    {.name = "dry_run", .type = LODE__ARG_FLAG, .about = "write nothing: say what would come over"},
    {.name = "embed", .type = LODE__ARG_FLAG,
     .about = "make vectors that are nowhere on the disk again from the documents, where the model is known and installed"},
    {.name = "model", .type = LODE__ARG_TEXT, .value = "MODEL",
     .about = "with --embed: the model that made the vectors, for directories that do not say it (all before 1.0)"},
    {.name = "doubtful", .type = LODE__ARG_PATH, .value = "FILE",
     .about = "list the records with something doubtful or missing here, one JSON object a line; when not given, STORE-doubtful.jsonl"},
    {0}};

static const lode__field rescue_row[] = {
    {"collection", LODE__FIELD_TEXT, 0, "its name in the store"},
    {"records", LODE__FIELD_COUNT, 0, "brought over"},
    {"exact", LODE__FIELD_COUNT, 0, "vectors from the index"},
    {"from_queue", LODE__FIELD_COUNT, 0, "vectors from the write-ahead queue"},
    {"re_embedded", LODE__FIELD_COUNT, 0, "vectors made again from the document"},
    {"missing", LODE__FIELD_COUNT, 0, "records without a vector"},
    {"doubtful", LODE__FIELD_COUNT, 0, "records with something doubtful or missing, each listed"},
    {"refused", LODE__FIELD_COUNT, 0, "records that a store does not take, each listed"},
    {"lost", LODE__FIELD_COUNT, 0, "records that the index knows and the damaged database does not, each listed"},
    {"metric", LODE__FIELD_TEXT, 0, "l2, cosine or ip"},
    {"dimension", LODE__FIELD_NUMBER, NULLABLE, "of the vectors"},
    {0}};
static const lode__field rescue_summary[] = {
    {"from", LODE__FIELD_TEXT, 0, "the Chroma directory"},
    {"to", LODE__FIELD_TEXT, NULLABLE, "the store; null for a dry run"},
    {"collections", LODE__FIELD_COUNT, 0, "how many"},
    {"records", LODE__FIELD_COUNT, 0, "brought over"},
    {"written", LODE__FIELD_COUNT, 0, "of those, were not in the store yet, or differed"},
    {"exact", LODE__FIELD_COUNT, 0, "vectors from the index"},
    {"from_queue", LODE__FIELD_COUNT, 0, "vectors from the write-ahead queue"},
    {"re_embedded", LODE__FIELD_COUNT, 0, "vectors made again"},
    {"missing", LODE__FIELD_COUNT, 0, "records without a vector"},
    {"doubtful", LODE__FIELD_COUNT, 0, "records listed in the file"},
    {"refused", LODE__FIELD_COUNT, 0, "records that a store does not take"},
    {"lost", LODE__FIELD_COUNT, 0, "records that the index knows and the damaged database does not"},
    {"doubtful_file", LODE__FIELD_TEXT, NULLABLE, "the list; null when there is none"},
    {0}};

#define RESCUE_SAY                                                                                             \
  "{from}: {records} records in {collections} collections, {exact} vectors from the index[, {from_queue} from the queue]" \
  "[, {re_embedded} made again][, {missing} missing][, {refused} refused][, {lost} lost][, {doubtful} doubtful][; those are listed in {doubtful_file}]"
#define RESCUE_DETAIL                                                                                          \
  "Reads directories of chromadb 0.4 to 1.x. Nothing of the directory is written or loaded by Chroma's code: rows come from the pages of "    \
  "chroma.sqlite3, vectors from the write-ahead queue and from data_level0.bin; a damaged graph, header, pickle or database "  \
  "costs what it held and nothing else. The directory may be read-only or in use. Running it again goes on where it stopped. Exit code 3 " \
  "when something is missing."

#define RESCUE_OP(group_name)                                                                                  \
  .group = group_name, .name = "chroma", .run = lode__op_rescue_chroma, .flags = LODE__OP_LONG | LODE__OP_LOCAL, \
  .params = rescue_params, .row = rescue_row, .summary = rescue_summary, .say = RESCUE_SAY, .detail = RESCUE_DETAIL

const lode__op lode__ops_rescue[] = {
    {RESCUE_OP("rescue"), .about = "bring everything that is left of a Chroma directory into a store",
     .examples = "lode rescue chroma ./chroma --dry-run\nlode rescue chroma ~/.mempalace/palace --to ./palace.lode\n"
                 "# vectors that are lost are made again from the documents\n"
                 "lode rescue chroma ./chroma --to ./data --embed --model minilm"},
    {0}};
const lode__op lode__ops_import[] = {
    {RESCUE_OP("import"), .about = "bring a Chroma directory into a store",
     .examples = "lode import chroma ./chroma --to ./data"},
    {0}};

/* ---- chroma check, chroma quarantine ---- */

static const lode__param check_params[] = {P_FROM, {0}};
static const lode__param quarantine_params[] = {
    P_FROM,
    {.name = "to", .type = LODE__ARG_PATH, .value = "STORE", .about = "the store that everything is rescued into first; --store when not given"},
    {.name = "stale_seconds", .type = LODE__ARG_INT, .value = "N", .fallback = "3600",
     .about = "set an index aside when the database is newer than it by so much; 0 = every index"},
    {.name = "fix_seq_ids", .type = LODE__ARG_FLAG, .about = "make integers of sequence ids that are blobs: 1.x fails on those that 0.6 wrote"},
    {.name = "dry_run", .type = LODE__ARG_FLAG, .about = "do nothing: say what would be done"},
    {0}};

static const lode__field check_row[] = {
    {"what", LODE__FIELD_TEXT, 0, "database, index, pickle, drift, vectors, sequence ids, age, lag, ..."},
    {"damage", LODE__FIELD_BOOL, 0, "false: worth knowing, no damage"},
    {"collection", LODE__FIELD_TEXT, NULLABLE, "null: the whole directory"},
    {"detail", LODE__FIELD_TEXT, 0, "a sentence"},
    {0}};
static const lode__field check_summary[] = {
    {"dir", LODE__FIELD_TEXT, 0, "the Chroma directory"},
    {"ok", LODE__FIELD_BOOL, 0, "no damage was found"},
    {"damages", LODE__FIELD_COUNT, 0, "how many were found"},
    {"collections", LODE__FIELD_COUNT, 0, "how many collections"},
    {"records", LODE__FIELD_COUNT, 0, "that a rescue would bring over"},
    {"exact", LODE__FIELD_COUNT, 0, "of those, vectors from the index"},
    {"from_queue", LODE__FIELD_COUNT, 0, "of those, vectors from the write-ahead queue"},
    {"missing", LODE__FIELD_COUNT, 0, "of those, vectors that are nowhere on the disk"},
    {0}};
static const lode__field quarantine_row[] = {
    {"what", LODE__FIELD_TEXT, 0, "what was done, or would be"},
    {"path", LODE__FIELD_TEXT, 0, "what was renamed"},
    {"became", LODE__FIELD_TEXT, 0, "its name now; nothing is deleted"},
    {0}};
static const lode__field quarantine_summary[] = {
    {"dir", LODE__FIELD_TEXT, 0, "the Chroma directory"},
    {"store", LODE__FIELD_TEXT, NULLABLE, "the store that has everything; null for a dry run"},
    {"records", LODE__FIELD_COUNT, 0, "in it, or that would be"},
    {"set_aside", LODE__FIELD_COUNT, 0, "indexes"},
    {"kept", LODE__FIELD_COUNT, 0, "indexes that are not older than that"},
    {"seq_ids", LODE__FIELD_COUNT, 0, "mended"},
    {0}};

const lode__op lode__ops_chroma[] = {
    {.group = "chroma", .name = "check", .run = lode__op_chroma_check, .flags = LODE__OP_READS | LODE__OP_LONG | LODE__OP_LOCAL,
     .params = check_params, .row = check_row, .summary = check_summary,
     .about = "say what is wrong with a Chroma directory, without touching it",
     .say = "{dir}: {damages} damages; a rescue brings over {records} records in {collections} collections, {exact} vectors from the index"
            "[, {from_queue} from the queue][, {missing} are lost]",
     .detail = "Drift between index and rows, ages, sequence ids that are blobs, damaged files, transactions that did not finish. Exit code 3 when there "
               "is damage.",
     .examples = "lode chroma check ./chroma\nlode chroma check ~/.mempalace/palace --json"},
    {.group = "chroma", .name = "quarantine", .run = lode__op_chroma_quarantine,
     .flags = LODE__OP_DESTROYS | LODE__OP_LONG | LODE__OP_LOCAL, .params = quarantine_params, .row = quarantine_row, .summary = quarantine_summary,
     .about = "set indexes aside that make Chroma crash, after everything is safe in a store",
     .say = "{dir}: {set_aside} indexes set aside[, {kept} kept][, {seq_ids} sequence ids mended][; {store} has all {records} records]",
     .detail = "First everything is rescued into the store; when something of it is missing, nothing is done. Then folders of indexes that are older than "
               "the database are renamed to NAME.drift-TIME; rename them back to undo it. Chroma does not build such an index anew: vectors that its queue no "
               "longer has are then in the store alone. Stop the programs that use the directory first.",
     .examples = "lode chroma quarantine ./chroma --to ./data --dry-run\nlode chroma quarantine ./chroma --to ./data --stale-seconds 3600 --fix-seq-ids"},
    {0}};

/* ---- export ---- */

#define P_EXPORT                                                                                              \
  {.name = "collection", .type = LODE__ARG_TEXT, .flags = REQUIRED | PLACE, .value = "NAME", .about = "name of the collection"}
#define P_EXPORT_WHERE                                                                                        \
  {.name = "where", .type = LODE__ARG_JSON, .value = "JSON", .about = "records whose metadata match this filter (lode help filters)"}

static const lode__param jsonl_params[] = {
    P_EXPORT,
    {.name = "file", .type = LODE__ARG_PATH, .flags = PLACE, .value = "FILE", .fallback = "-",
     .about = "where to write; - is standard output; a file appears when it is whole"},
    P_EXPORT_WHERE,
    {.name = "include", .type = LODE__ARG_SET, .value = "PART,PART", .choices = "document|metadata|embedding",
     .fallback = "document,metadata,embedding", .about = "parts of each record to write"},
    {0}};
static const lode__param chroma_jsonl_params[] = {
    P_EXPORT,
    {.name = "file", .type = LODE__ARG_PATH, .flags = REQUIRED | PLACE, .value = "FILE", .about = "where to write; appears when it is whole"},
    P_EXPORT_WHERE,
    {0}};
static const lode__param npy_params[] = {
    P_EXPORT,
    {.name = "file", .type = LODE__ARG_PATH, .flags = REQUIRED | PLACE, .value = "FILE",
     .about = "where to write the vectors; their ids go to FILE.ids, one JSON string a line"},
    P_EXPORT_WHERE,
    {0}};
static const lode__field export_summary[] = {
    {"file", LODE__FIELD_TEXT, 0, "where they are"},
    {"written", LODE__FIELD_COUNT, 0, "how many records"},
    {0}};

#define EXPORT_OP(op_name, handler)                                                                           \
  .group = "export", .name = op_name, .run = handler, .flags = LODE__OP_READS | LODE__OP_LONG | LODE__OP_LOCAL, .summary = export_summary, \
  .say = "{file}: {written} records"

const lode__op lode__ops_export[] = {
    {EXPORT_OP("jsonl", lode__op_export), .params = jsonl_params, .about = "write records as JSON lines",
     .detail = "The same as lode db export: the lines are those that add and import read.",
     .examples = "lode export jsonl notes > notes.jsonl"},
    {EXPORT_OP("chroma-jsonl", lode__op_export_chroma), .params = chroma_jsonl_params,
     .about = "write records as JSON lines with the names of Chroma's add()",
     .detail = "Each line has id, embedding, document, metadata and uri, null where there is none.",
     .examples = "lode export chroma-jsonl notes notes.jsonl"},
    {EXPORT_OP("npy", lode__op_export_npy), .params = npy_params, .about = "write the vectors as a NumPy array, and their ids",
     .detail = "float32, one row a record, in the order of insertion; records without a vector are left out.",
     .examples = "lode export npy notes notes.npy"},
    {0}};
