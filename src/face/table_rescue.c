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
    {"doubtful_file", LODE__FIELD_TEXT, NULLABLE, "the list; null when there is none"},
    {0}};

#define RESCUE_SAY                                                                                             \
  "{from}: {records} records in {collections} collections, {exact} vectors from the index[, {from_queue} from the queue]" \
  "[, {re_embedded} made again][, {missing} missing][, {refused} refused][; {doubtful} doubtful, listed in {doubtful_file}]"
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
