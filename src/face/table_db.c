/* table_db.c - the operations of `lode db`, as data; see op.h. */
#include "op.h"

/* ---- Parameters that several operations share ---- */

#define REQUIRED LODE__PARAM_REQUIRED
#define PLACE LODE__PARAM_POSITIONAL
#define CLI LODE__PARAM_CLI

#define P_COLLECTION                                                                                \
  {.name = "collection", .type = LODE__ARG_TEXT, .flags = REQUIRED | PLACE, .value = "NAME",        \
   .about = "name of the collection"}
#define P_IDS                                                                                       \
  {.name = "ids", .type = LODE__ARG_LIST, .value = "ID,ID",                                         \
   .about = "these records only; on the command line separated by commas, or a JSON array for ids "  \
            "that hold commas or begin with ["}
#define P_IDS_FILE                                                                                  \
  {.name = "ids_file", .type = LODE__ARG_LINES, .flags = CLI, .value = "FILE", .into = "ids",       \
   .about = "the ids of this file, one a line (- is standard input)"}
#define P_IDS_STREAM                                                                                \
  {.name = "ids_file", .type = LODE__ARG_LINES, .flags = CLI, .value = "FILE",                      \
   .about = "the ids of this file, one a line (- is standard input)"}
#define P_WHERE                                                                                     \
  {.name = "where", .type = LODE__ARG_JSON, .value = "JSON",                                        \
   .about = "records whose metadata match this filter (lode help filters)"}
#define P_WHERE_DOCUMENT                                                                            \
  {.name = "where_document", .type = LODE__ARG_JSON, .value = "JSON",                               \
   .about = "records whose document matches this filter"}
#define P_INCLUDE(given)                                                                            \
  {.name = "include", .type = LODE__ARG_SET, .value = "PART,PART", .choices = "document|metadata|embedding", \
   .fallback = given, .about = "parts of each record to show"}
#define P_RECORDS                                                                                   \
  {.name = "records", .type = LODE__ARG_RECORDS, .flags = REQUIRED | PLACE, .value = "FILE",        \
   .about = "the records, {\"id\",\"document\",\"metadata\",\"embedding\"} each; on the command line a file " \
            "with one a line, standard input when not given"}
#define P_BATCH                                                                                     \
  {.name = "batch", .type = LODE__ARG_INT, .flags = CLI, .value = "N", .min = 1, .max = 1000000,    \
   .about = "records in one commit (1,000); each commit is whole or absent, and durable"}
#define P_CREATE                                                                                    \
  {.name = "create", .type = LODE__ARG_FLAG, .about = "make the collection if it does not exist"}
#define P_METRIC                                                                                    \
  {.name = "metric", .type = LODE__ARG_CHOICE, .value = "METRIC", .choices = "l2|cosine|ip", .fallback = "l2", \
   .about = "distance of a new collection: squared Euclidean, 1 - cosine, 1 - inner product"}
#define P_ON_EXISTING                                                                               \
  {.name = "on_existing", .type = LODE__ARG_CHOICE, .value = "WHAT", .choices = "fail|keep", .fallback = "fail", \
   .about = "an id that exists: refuse the batch, or keep the old record and go on"}

#define P_MODEL                                                                                     \
  {.name = "model", .type = LODE__ARG_TEXT, .value = "MODEL",                                       \
   .about = "the model that makes the vectors; when not given, the collection's own, else minilm"}
#define P_EMBED                                                                                     \
  {.name = "embed", .type = LODE__ARG_FLAG,                                                         \
   .about = "make vectors for records that have a document and no embedding"}, P_MODEL

static const lode__param no_params[] = {{0}};
static const lode__param optimize_params[] = {
    {.name = "rebuild_unreadable", .type = LODE__ARG_FLAG,
     .about = "build files of the vector index that cannot be read (a disk with bad sectors) again from the records"},
    {0}};

static const lode__param create_params[] = {
    P_COLLECTION,
    P_METRIC,
    {.name = "metadata", .type = LODE__ARG_JSON, .value = "JSON",
     .about = "any JSON object, kept with the collection"},
    {.name = "embedder", .type = LODE__ARG_TEXT, .value = "MODEL",
     .about = "the model that makes the vectors: minilm, code, another that `lode embed` takes, or a name of yours; vectors of another "
              "one are refused"},
    {.name = "embedder_dim", .type = LODE__ARG_INT, .value = "N", .min = 1, .max = LODE_MAX_DIMENSION,
     .about = "dimension of that model"},
    {.name = "counters", .type = LODE__ARG_LIST, .value = "KEY,KEY",
     .about = "metadata keys whose values are counted by each write, so that facets of them cost nothing"},
    {.name = "if_missing", .type = LODE__ARG_FLAG, .about = "succeed when the collection exists already"},
    {.name = "shards", .type = LODE__ARG_INT, .value = "N", .min = 1, .max = 10000,
     .about = "on a cluster: parts that it is cut into"},
    {.name = "replicas", .type = LODE__ARG_INT, .value = "N", .min = 1, .max = 100, .about = "on a cluster: copies of each part"},
    {.name = "write_consistency", .type = LODE__ARG_INT, .value = "N", .min = 1, .max = 100,
     .about = "on a cluster: copies that must have acknowledged a write"},
    {.name = "page_bytes", .type = LODE__ARG_INT, .flags = CLI, .value = "N", .min = 512, .max = 65536,
     .about = "page size of a new store, a power of two (16,384)"},
    {0}};
static const lode__param rename_params[] = {
    P_COLLECTION,
    {.name = "new_name", .type = LODE__ARG_TEXT, .flags = REQUIRED | PLACE, .value = "NEW", .about = "its new name"},
    {0}};
static const lode__param name_params[] = {P_COLLECTION, {0}};
static const lode__param drop_params[] = {
    P_COLLECTION,
    {.name = "yes", .type = LODE__ARG_FLAG, .letter = 'y', .flags = CLI, .about = "do not ask"},
    {0}};
static const lode__param add_params[] = {P_COLLECTION, P_RECORDS, P_ON_EXISTING, P_CREATE, P_METRIC, P_EMBED, P_BATCH, {0}};
static const lode__param upsert_params[] = {P_COLLECTION, P_RECORDS, P_CREATE, P_METRIC, P_EMBED, P_BATCH, {0}};
static const lode__param update_params[] = {P_COLLECTION, P_RECORDS, P_BATCH, {0}};
static const lode__param fill_params[] = {
    P_COLLECTION,
    P_MODEL,
    {.name = "precision", .type = LODE__ARG_CHOICE, .value = "WHAT", .choices = "full|int8",
     .about = "of the arithmetic; when not given, the faster one that the model has"},
    {.name = "max_tokens", .type = LODE__ARG_INT, .value = "N", .min = 2, .max = 65536,
     .about = "longer documents are cut; when not given, the model's own setting"},
    {.name = "threads", .type = LODE__ARG_INT, .value = "N", .min = 1, .max = 64, .about = "when not given, one for each CPU"},
    {0}};
static const lode__param get_params[] = {
    P_COLLECTION,
    P_IDS,
    P_IDS_FILE,
    P_WHERE,
    P_WHERE_DOCUMENT,
    {.name = "pending", .type = LODE__ARG_FLAG, .about = "only records that have no vector yet"},
    {.name = "limit", .type = LODE__ARG_INT, .value = "N",
     .about = "at most so many records; 0 = all. When not given: all of the ids that are asked for, else 100"},
    {.name = "offset", .type = LODE__ARG_INT, .value = "N", .fallback = "0", .about = "skip so many records"},
    {.name = "after", .type = LODE__ARG_INT, .value = "CURSOR",
     .about = "go on behind an earlier answer: its `next`; unlike --offset this costs nothing"},
    P_INCLUDE("document,metadata"),
    {0}};
static const lode__param query_params[] = {
    P_COLLECTION,
    {.name = "vector", .type = LODE__ARG_VECTOR, .value = "JSON", .about = "what to look for: an array of numbers"},
    {.name = "vectors", .type = LODE__ARG_VECTORS, .value = "FILE",
     .about = "several vectors at once; on the command line a file: .npy, .fvecs, or JSON: one array a line, or an array of arrays"},
    {.name = "text", .type = LODE__ARG_TEXT, .value = "TEXT", .about = "words to look for"},
    {.name = "mode", .type = LODE__ARG_CHOICE, .value = "MODE", .choices = "text|vector|hybrid",
     .about = "rank by words (BM25), by distance, or by both fused; when not given, by what is given"},
    {.name = "k", .type = LODE__ARG_INT, .letter = 'k', .value = "N", .fallback = "10", .min = 1,
     .about = "how many records for each query"},
    P_IDS,
    P_IDS_FILE,
    P_WHERE,
    P_WHERE_DOCUMENT,
    {.name = "exact", .type = LODE__ARG_FLAG, .about = "look at every vector instead of asking the index"},
    {.name = "effort", .type = LODE__ARG_INT, .value = "N", .fallback = "0", .max = LODE_MAX_EFFORT,
     .about = "how far the index is searched: more finds more and takes longer; 0 = as the data need"},
    {.name = "recall", .type = LODE__ARG_REAL, .value = "X", .fallback = "0",
     .about = "the share of the true nearest to aim at, up to 1; 0 = about 0.98"},
    {.name = "vector_weight", .type = LODE__ARG_REAL, .value = "X", .fallback = "1",
     .about = "hybrid: weight of the ranking by distance"},
    {.name = "text_weight", .type = LODE__ARG_REAL, .value = "X", .fallback = "1",
     .about = "hybrid: weight of the ranking by words"},
    P_INCLUDE("document,metadata"),
    {0}};
static const lode__param delete_params[] = {P_COLLECTION, P_IDS, P_IDS_STREAM, P_WHERE, P_WHERE_DOCUMENT, {0}};
static const lode__param facets_params[] = {
    P_COLLECTION,
    {.name = "key", .type = LODE__ARG_TEXT, .flags = REQUIRED | PLACE, .value = "KEY", .about = "the metadata key"},
    P_WHERE,
    {.name = "limit", .type = LODE__ARG_INT, .value = "N", .fallback = "50",
     .about = "at most so many values; 0 = all"},
    {0}};
static const lode__param map_params[] = {
    P_COLLECTION,
    {.name = "sample", .type = LODE__ARG_INT, .value = "N", .fallback = "2000", .min = 1, .max = 5000,
     .about = "at most so many points; fewer where the vectors are very long"},
    {.name = "key", .type = LODE__ARG_TEXT, .value = "KEY", .about = "the metadata key whose value is each point's group"},
    P_WHERE,
    {0}};
static const lode__param stats_params[] = {
    {.name = "collection", .type = LODE__ARG_TEXT, .flags = PLACE, .value = "NAME",
     .about = "one collection; the whole store when not given"},
    {0}};
#define P_AS                                                                                        \
  {.name = "as", .type = LODE__ARG_TEXT, .value = "NAME", .about = "its name there; the same when not given"}
static const lode__param push_params[] = {
    P_COLLECTION,
    {.name = "to", .type = LODE__ARG_PATH, .flags = REQUIRED, .value = "STORE",
     .about = "the other store: a folder, or a cluster's address such as qdrant://HOST:PORT"},
    P_AS,
    {0}};
static const lode__param pull_params[] = {
    P_COLLECTION,
    {.name = "from", .type = LODE__ARG_PATH, .flags = REQUIRED, .value = "STORE",
     .about = "the other store: a folder, or a cluster's address such as qdrant://HOST:PORT"},
    P_AS,
    {0}};
static const lode__param salvage_params[] = {
    {.name = "to", .type = LODE__ARG_PATH, .flags = REQUIRED | PLACE, .value = "DIR",
     .about = "folder of the new store"},
    {.name = "from", .type = LODE__ARG_PATH, .value = "PATH",
     .about = "the damaged store's folder, or its file; --store when not given"},
    {0}};
static const lode__param backup_params[] = {
    {.name = "file", .type = LODE__ARG_PATH, .flags = REQUIRED | PLACE, .value = "FILE",
     .about = "where to write it; must not exist"},
    {0}};
static const lode__param restore_params[] = {
    {.name = "file", .type = LODE__ARG_PATH, .flags = REQUIRED | PLACE, .value = "FILE",
     .about = "a file made by backup"},
    {.name = "to", .type = LODE__ARG_PATH, .flags = PLACE, .value = "DIR",
     .about = "folder of the new store; --store when not given; must not hold a store"},
    {0}};
static const lode__param export_params[] = {
    P_COLLECTION,
    {.name = "file", .type = LODE__ARG_PATH, .flags = PLACE, .value = "FILE", .fallback = "-",
     .about = "where to write; - is standard output; a file appears when it is whole"},
    P_IDS,
    P_IDS_FILE,
    P_WHERE,
    P_WHERE_DOCUMENT,
    P_INCLUDE("document,metadata,embedding"),
    {0}};
static const lode__param import_params[] = {
    P_COLLECTION,
    {.name = "file", .type = LODE__ARG_PATH, .flags = REQUIRED | PLACE, .value = "FILE",
     .about = "what to read; - is standard input"},
    {.name = "format", .type = LODE__ARG_CHOICE, .value = "FORMAT", .choices = "jsonl|npy|fvecs",
     .about = "of the file; when not given, by its extension, else jsonl"},
    {.name = "mode", .type = LODE__ARG_CHOICE, .value = "MODE", .choices = "add|upsert|update", .fallback = "add",
     .about = "what to do with each record"},
    P_ON_EXISTING,
    {.name = "first_id", .type = LODE__ARG_INT, .value = "N", .fallback = "0",
     .about = "npy and fvecs: ids are decimal numbers from here"},
    P_CREATE,
    P_METRIC,
    P_BATCH,
    {0}};

/* ---- Answers ---- */

#define NULLABLE LODE__FIELD_NULLABLE
#define OPTIONAL LODE__FIELD_OPTIONAL

static const lode__field create_summary[] = {
    {"collection", LODE__FIELD_TEXT, 0, "its name"},
    {"metric", LODE__FIELD_TEXT, 0, "l2, cosine or ip"},
    {"created", LODE__FIELD_BOOL, 0, "false: it existed already"},
    {0}};
static const lode__field collections_row[] = {
    {"name", LODE__FIELD_TEXT, 0, "its name"},
    {"records", LODE__FIELD_COUNT, 0, "how many records"},
    {"pending", LODE__FIELD_COUNT, 0, "those of them that have no vector"},
    {"metric", LODE__FIELD_TEXT, 0, "l2, cosine or ip"},
    {"dimension", LODE__FIELD_NUMBER, NULLABLE, "of the vectors; null until there is one"},
    {"embedder", LODE__FIELD_TEXT, NULLABLE, "the model that makes the vectors"},
    {"metadata", LODE__FIELD_OBJECT, NULLABLE, "as given when it was made"},
    {0}};
static const lode__field rename_summary[] = {
    {"collection", LODE__FIELD_TEXT, 0, "the old name"},
    {"new_name", LODE__FIELD_TEXT, 0, "the new one"},
    {0}};
static const lode__field drop_summary[] = {
    {"collection", LODE__FIELD_TEXT, 0, "its name"},
    {"dropped", LODE__FIELD_COUNT, 0, "how many records it had"},
    {0}};
static const lode__field write_summary[] = {
    {"collection", LODE__FIELD_TEXT, 0, "its name"},
    {"read", LODE__FIELD_COUNT, 0, "records read"},
    {"written", LODE__FIELD_COUNT, 0, "records added or changed"},
    {"skipped", LODE__FIELD_COUNT, 0, "add: existed and were kept; update: do not exist"},
    {"missing", LODE__FIELD_TEXTS, OPTIONAL, "update: the ids that do not exist, the first 100 of them"},
    {0}};
static const lode__field get_row[] = {
    {"id", LODE__FIELD_TEXT, 0, "of the record"},
    {"document", LODE__FIELD_TEXT, NULLABLE | OPTIONAL, "its text"},
    {"metadata", LODE__FIELD_OBJECT, NULLABLE | OPTIONAL, "its metadata"},
    {"embedding", LODE__FIELD_VECTOR, NULLABLE | OPTIONAL, "its vector; null while it is pending"},
    {0}};
static const lode__field get_summary[] = {
    {"count", LODE__FIELD_COUNT, 0, "how many records are in the answer"},
    {"next", LODE__FIELD_NUMBER, NULLABLE, "there may be more: give this as `after`"},
    {0}};
static const lode__field query_row[] = {
    {"query", LODE__FIELD_NUMBER, 0, "which of the vectors, from 0"},
    {"rank", LODE__FIELD_NUMBER, 0, "1 is the best"},
    {"id", LODE__FIELD_TEXT, 0, "of the record"},
    {"distance", LODE__FIELD_REAL, NULLABLE, "exact; smaller is nearer; null where there is none"},
    {"score", LODE__FIELD_REAL, OPTIONAL, "text and hybrid: larger is better"},
    {"document", LODE__FIELD_TEXT, NULLABLE | OPTIONAL, "its text"},
    {"metadata", LODE__FIELD_OBJECT, NULLABLE | OPTIONAL, "its metadata"},
    {"embedding", LODE__FIELD_VECTOR, NULLABLE | OPTIONAL, "its vector"},
    {0}};
static const lode__field fill_summary[] = {
    {"collection", LODE__FIELD_TEXT, 0, "its name"},
    {"model", LODE__FIELD_TEXT, 0, "the identity of the embedder"},
    {"embedded", LODE__FIELD_COUNT, 0, "records that got a vector"},
    {"without_document", LODE__FIELD_COUNT, 0, "records that have no text to make one of"},
    {"changed", LODE__FIELD_COUNT, 0, "records that somebody changed meanwhile: run it again"},
    {0}};
static const lode__field delete_summary[] = {
    {"collection", LODE__FIELD_TEXT, 0, "its name"},
    {"deleted", LODE__FIELD_COUNT, 0, "how many records are gone"},
    {0}};
static const lode__field count_summary[] = {
    {"collection", LODE__FIELD_TEXT, 0, "its name"},
    {"count", LODE__FIELD_NUMBER, 0, "how many records"},
    {0}};
static const lode__field facets_row[] = {
    {"value", LODE__FIELD_SCALAR, 0, "a value of the key"},
    {"count", LODE__FIELD_COUNT, 0, "how many records have it"},
    {0}};
static const lode__field map_row[] = {
    {"id", LODE__FIELD_TEXT, 0, "of the record"},
    {"x", LODE__FIELD_REAL, 0, "from -1 to 1"},
    {"y", LODE__FIELD_REAL, 0, "from -1 to 1, by the same scale"},
    {"label", LODE__FIELD_TEXT, 0, "the beginning of its document"},
    {"group", LODE__FIELD_TEXT, NULLABLE, "its value of the key"},
    {0}};
static const lode__field map_summary[] = {
    {"collection", LODE__FIELD_TEXT, 0, "its name"},
    {"records", LODE__FIELD_COUNT, 0, "how many it has"},
    {"points", LODE__FIELD_COUNT, 0, "how many of them are shown"},
    {"variance", LODE__FIELD_REAL, 0, "the share of the vectors' variance that two dimensions show"},
    {0}};
static const lode__field stats_summary[] = {
    {"store", LODE__FIELD_TEXT, 0, "its folder"},
    {"collection", LODE__FIELD_TEXT, OPTIONAL, "its name, when one was asked for"},
    {"metric", LODE__FIELD_TEXT, OPTIONAL, "of the collection"},
    {"dimension", LODE__FIELD_NUMBER, OPTIONAL | NULLABLE, "of the collection"},
    {"embedder", LODE__FIELD_TEXT, OPTIONAL | NULLABLE, "of the collection"},
    {"metadata", LODE__FIELD_OBJECT, OPTIONAL | NULLABLE, "of the collection"},
    {"collections", LODE__FIELD_COUNT, OPTIONAL, "how many collections"},
    {"records", LODE__FIELD_COUNT, 0, "how many records"},
    {"pending", LODE__FIELD_COUNT, 0, "records without a vector"},
    {"cursor", LODE__FIELD_NUMBER, 0, "position of the newest commit"},
    {"untexted", LODE__FIELD_COUNT, 0, "records that text search still scans: optimize puts them into its index"},
    {"unindexed", LODE__FIELD_COUNT, 0, "records that filters still scan: optimize puts them into their index"},
    {"segments", LODE__FIELD_COUNT, 0, "files of the vector index"},
    {"segment_bytes", LODE__FIELD_BYTES, 0, "their size"},
    {"indexed", LODE__FIELD_COUNT, 0, "vectors that they hold"},
    {"tail", LODE__FIELD_COUNT, 0, "vectors that vector queries still scan"},
    {"dead", LODE__FIELD_COUNT, 0, "deleted or replaced vectors in them: compact removes them"},
    {"building", LODE__FIELD_COUNT, 0, "files being made now, by any process"},
    {"build_done", LODE__FIELD_COUNT, 0, "how far this process is with one"},
    {"build_total", LODE__FIELD_COUNT, 0, "of so many steps"},
    {"damaged_segments", LODE__FIELD_COUNT, 0, "files found damaged since the store was opened"},
    {"unerased", LODE__FIELD_COUNT, 0, "deleted records and vectors whose bytes wait for optimize"},
    {"counters", LODE__FIELD_OBJECT, OPTIONAL, "of the collection's declared counters: the most frequent values"},
    {"bytes", LODE__FIELD_BYTES, OPTIONAL, "of all files"},
    {"free_bytes", LODE__FIELD_BYTES, OPTIONAL, "inside them: compact gives them back"},
    {"files", LODE__FIELD_COUNT, OPTIONAL, "in the folder"},
    {"page_bytes", LODE__FIELD_NUMBER, OPTIONAL, "of the truth file"},
    {"format", LODE__FIELD_NUMBER, OPTIONAL, "version of the store's format"},
    {"damaged_pages", LODE__FIELD_COUNT, OPTIONAL, "met by this command: run verify"},
    {"quarantined", LODE__FIELD_COUNT, OPTIONAL, "damaged files that were set aside"},
    {0}};
static const lode__field damage_row[] = {
    {"what", LODE__FIELD_TEXT, 0, "page, record, vector, document, index, counter, file, ..."},
    {"collection", LODE__FIELD_TEXT, NULLABLE, "null where it is not known"},
    {"id", LODE__FIELD_TEXT, NULLABLE, "of the record, where it is known"},
    {"detail", LODE__FIELD_TEXT, 0, "a sentence"},
    {0}};
static const lode__field verify_summary[] = {
    {"store", LODE__FIELD_TEXT, 0, "its folder"},
    {"ok", LODE__FIELD_BOOL, 0, "no damage was found"},
    {"damages", LODE__FIELD_COUNT, 0, "how many were found"},
    {"records", LODE__FIELD_COUNT, NULLABLE, "that the store counts; null where that cannot be read"},
    {"quarantined", LODE__FIELD_COUNT, OPTIONAL, "files that were set aside earlier, if there are any"},
    {0}};
static const lode__field copy_summary[] = {
    {"collection", LODE__FIELD_TEXT, 0, "name of the copy"},
    {"other", LODE__FIELD_TEXT, 0, "the other store"},
    {"records", LODE__FIELD_COUNT, 0, "records read and compared"},
    {"written", LODE__FIELD_COUNT, 0, "records that were written, read back and found equal"},
    {"equal", LODE__FIELD_COUNT, 0, "records that were there already, as they are"},
    {"extra", LODE__FIELD_COUNT, 0, "records that only the copy has"},
    {"checksum", LODE__FIELD_TEXT, 0, "CRC-32C over the checksums of all ranges"},
    {0}};
static const lode__field salvage_summary[] = {
    {"from", LODE__FIELD_TEXT, 0, "the damaged store"},
    {"to", LODE__FIELD_TEXT, 0, "the new one"},
    {"records", LODE__FIELD_COUNT, 0, "brought over, proven by their checksums"},
    {"lost", LODE__FIELD_COUNT, 0, "known to have existed, and not brought over"},
    {"without_document", LODE__FIELD_COUNT, 0, "brought over without their document"},
    {"without_vector", LODE__FIELD_COUNT, 0, "brought over without their vector: pending now"},
    {"pages", LODE__FIELD_COUNT, 0, "of the damaged file"},
    {"damaged_pages", LODE__FIELD_COUNT, 0, "of those"},
    {0}};
static const lode__field backup_summary[] = {
    {"file", LODE__FIELD_TEXT, 0, "the backup"},
    {"bytes", LODE__FIELD_BYTES, 0, "its size"},
    {0}};
static const lode__field restore_summary[] = {
    {"file", LODE__FIELD_TEXT, 0, "the backup"},
    {"store", LODE__FIELD_TEXT, 0, "the new store's folder"},
    {0}};
static const lode__field compact_summary[] = {
    {"store", LODE__FIELD_TEXT, 0, "its folder"},
    {"bytes_before", LODE__FIELD_BYTES, 0, "of all files"},
    {"bytes", LODE__FIELD_BYTES, 0, "of all files, now"},
    {0}};
static const lode__field export_summary[] = {
    {"file", LODE__FIELD_TEXT, 0, "where they are"},
    {"written", LODE__FIELD_COUNT, 0, "how many records"},
    {0}};

/* ---- The table ---- */

#define READS LODE__OP_READS
#define DESTROYS LODE__OP_DESTROYS
#define LONG LODE__OP_LONG
#define LOCAL LODE__OP_LOCAL
#define ROWS_ONLY LODE__OP_HIDE_SUMMARY
#define OP(verb) .group = "db", .name = #verb, .run = lode__op_##verb

const lode__op lode__ops_db[] = {
    {OP(create), .about = "make a collection, and the store if there is none",
     .params = create_params, .summary = create_summary, .say = "{collection}: [{?created}made, ]metric {metric}",
     .detail = "The dimension is fixed by the first vector that is added.",
     .examples = "lode db create notes --metric cosine\n"
                 "lode db create code --counters lang,repo --metadata '{\"owner\":\"me\"}'"},
    {OP(collections), .about = "list the collections", .flags = READS, .params = no_params, .row = collections_row,
     .examples = "lode db collections\nlode db collections --json --store ./data"},
    {OP(rename), .about = "give a collection another name", .params = rename_params, .summary = rename_summary,
     .say = "{collection}: now called {new_name}", .detail = "The collections of a project's code index are refused.", .examples = "lode db rename notes journal"},
    {OP(drop), .about = "remove a collection and all its records", .flags = DESTROYS, .params = drop_params,
     .summary = drop_summary, .say = "{collection}: dropped, {dropped} records",
     .detail = "Asks on a terminal; elsewhere --yes is needed. It is gone at once for every reader. Its bytes are erased by maintenance, and "
               "surely by compact. The collections of a project's code index are refused: lode reset index removes those.",
     .examples = "lode db drop notes\nlode db drop notes --yes"},
    {OP(add), .about = "add records, one JSON object a line", .flags = LONG, .params = add_params,
     .summary = write_summary, .say = "{collection}: {written} added[, {skipped} kept as they were]",
     .detail = "A record without an embedding is pending until an update brings one. Standard input is read as it "
               "comes and committed batch by batch; when a line is refused, the error names it, its batch is not "
               "written, and earlier batches stay.",
     .examples = "lode db add notes < notes.jsonl\n"
                 "echo '{\"id\":\"a\",\"document\":\"hello\",\"metadata\":{\"n\":1},\"embedding\":[1,0,0]}' | lode db add notes --create\n"
                 "# make the vectors with the collection's model, or minilm\n"
                 "lode db add notes notes.jsonl --create --embed\n"
                 "# load what is new, keep what is there\n"
                 "lode db add notes notes.jsonl --on-existing keep"},
    {OP(upsert), .about = "add records, or replace parts of those that exist", .flags = LONG | DESTROYS,
     .params = upsert_params, .summary = write_summary, .say = "{collection}: {written} written",
     .detail = "Of a record that exists, what is given replaces document and embedding, and metadata merge key by key.",
     .examples = "lode db upsert notes < changed.jsonl"},
    {OP(update), .about = "change records that exist", .flags = LONG | DESTROYS, .params = update_params,
     .summary = write_summary, .say = "{collection}: {written} changed[, {skipped} do not exist][: {missing}]",
     .detail = "What a line does not name stays. Metadata merge key by key; null removes a key. Ids that do not exist "
               "are skipped and named; exit code 1 when none exists.",
     .examples = "echo '{\"id\":\"a\",\"metadata\":{\"n\":2,\"old\":null}}' | lode db update notes"},
    {OP(get), .about = "show records by id or filter", .flags = READS | ROWS_ONLY, .params = get_params,
     .row = get_row, .summary = get_summary,
     .detail = "By ids in the order asked, otherwise in the order of insertion. Any number of records is written as it "
               "is read, in bounded memory.",
     .examples = "lode db get notes --ids a,b\n"
                 "lode db get notes --where '{\"lang\":\"c\",\"size\":{\"$gt\":100}}' --limit 20 --json\n"
                 "# all ids that still wait for a vector\n"
                 "lode db get notes --pending --limit 0 --include none --json"},
    {OP(query), .about = "find the nearest records by vector, words or both", .flags = READS, .params = query_params,
     .row = query_row,
     .detail = "Distances are exact: l2 is squared, cosine is 1 - cos, ip is 1 - dot; ties are ordered by id. Text is "
               "ranked by BM25 with a tokenizer that knows code. Hybrid fuses both rankings. One JSON line a hit with "
               "--json; rank begins at 1. Text alone is ranked by words and by meaning when the collection's vectors are made "
               "by a model that is at hand (lode db create --embedder), else by words.",
     .examples = "lode db query notes --vector '[1,0,0]' -k 5\n"
                 "lode db query notes --vector @q.json --where '{\"lang\":{\"$in\":[\"c\",\"h\"]}}' --json\n"
                 "lode db query code --text 'parse header' --where-document '{\"$regex\":\"int \\\\w+\\\\(\"}'\n"
                 "lode db query code --text 'parse header' --vector @q.json --mode hybrid"},
    {.group = "db", .name = "embed", .run = lode__op_fill, .about = "make the vectors of records that have none yet", .flags = LONG,
     .params = fill_params, .summary = fill_summary,
     .say = "{collection}: {embedded} vectors by {model}[, {without_document} records have no document][, {changed} changed meanwhile]",
     .detail = "The documents of pending records become vectors by the collection's model, in batches that are each one commit: stopped at any "
               "moment, the next run goes on. The model's identity is stamped into the collection.",
     .examples = "lode db embed notes\nlode db embed notes --model ollama:nomic-embed-text"},
    {OP(delete), .about = "delete records by id or filter", .flags = DESTROYS, .params = delete_params,
     .summary = delete_summary, .say = "{collection}: {deleted} deleted",
     .detail = "One transaction, however many there are. Without any selection it is refused: --where '{}' means all.",
     .examples = "lode db delete notes --ids a,b\nlode db delete notes --ids-file gone.txt\n"
                 "lode db delete code --where '{\"path\":\"src/old.c\"}'"},
    {OP(count), .about = "print the number of records", .flags = READS, .params = name_params,
     .summary = count_summary, .say = "{count}", .examples = "lode db count notes"},
    {OP(facets), .about = "count the records by each value of a metadata key", .flags = READS, .params = facets_params,
     .row = facets_row,
     .detail = "Largest count first. A key that create --counters named is answered without touching the records.",
     .examples = "lode db facets code lang\nlode db facets code author --where '{\"lang\":\"c\"}' --limit 5"},
    {OP(map), .about = "place a sample of the vectors on the plane", .flags = READS | LONG | ROWS_ONLY, .params = map_params, .row = map_row,
     .summary = map_summary,
     .detail = "The two directions of largest variance (PCA). The same records give the same picture. A sample is spread evenly over the "
               "order of insertion; with --where it is the first that match. The page of `lode ui` draws it.",
     .examples = "lode db map notes\nlode db map code --key language --sample 5000 --json"},
    {OP(stats), .about = "figures of the store or of one collection", .flags = READS, .params = stats_params,
     .summary = stats_summary, .examples = "lode db stats\nlode db stats notes --json"},
    {OP(verify), .about = "check everything and name each damage", .flags = READS | LONG, .params = no_params,
     .row = damage_row, .summary = verify_summary, .say = "{store}: {damages} damages found[ in {records} records][; {quarantined} files were set aside earlier]",
     .detail = "Every record's checksum, the database's own checks, the text index, the counters against a recount, and "
               "derived files. Exit code 3 when there is damage.",
     .examples = "lode db verify\nlode db verify --json --store ./data"},
    {OP(salvage), .about = "read what can be read of a damaged store into a new one", .flags = LONG | LOCAL,
     .params = salvage_params, .row = damage_row, .summary = salvage_summary,
     .say = "{to}: {records} records brought over[, {lost} lost][, {without_document} without their document]"
            "[, {without_vector} without their vector]",
     .detail = "Never writes to the damaged store. Lists what is lost.",
     .examples = "lode db salvage ./rescued --store ./damaged"},
    {OP(backup), .about = "write the whole store to one file while it is in use", .flags = LONG | LOCAL | READS,
     .params = backup_params, .summary = backup_summary, .say = "{file}: {bytes}",
     .examples = "lode db backup notes-monday.lode"},
    {OP(restore), .about = "make a store from a backup", .flags = LONG | LOCAL, .params = restore_params,
     .summary = restore_summary, .say = "{store}: restored from {file}",
     .detail = "The backup is checked first.",
     .examples = "lode db restore notes-monday.lode ./restored"},
    {OP(compact), .about = "rewrite the store as small as it can be", .flags = LONG, .params = no_params,
     .summary = compact_summary, .say = "{store}: {bytes}, was {bytes_before}",
     .detail = "Deleted bytes are gone for good, from the text index and from free pages too. A store never grows by it: what waits to "
               "be indexed goes on waiting, for the background or optimize.",
     .examples = "lode db compact"},
    {OP(optimize), .about = "do the pending background work now", .flags = LONG, .params = optimize_params,
     .summary = compact_summary, .say = "{store}: {bytes}, was {bytes_before}",
     .detail = "Text, metadata and vector index, erasure of deleted data, giving pages back. Damaged files of the vector index are set aside and "
               "rebuilt. One that cannot be read is left alone, as that proves no damage: its records are read one by one, until it can be "
               "read again or --rebuild-unreadable sets it aside too. No record is in danger: the index is made from them.",
     .examples = "lode db optimize\nlode db optimize --rebuild-unreadable"},
    {OP(export), .about = "write records as JSON lines", .flags = READS | LONG | LOCAL, .params = export_params,
     .summary = export_summary, .say = "{file}: {written} records",
     .detail = "The lines are those that add and import read.",
     .examples = "lode db export notes > notes.jsonl\nlode db export notes c.jsonl --where '{\"lang\":\"c\"}'"},
    {OP(import), .about = "read records from a file: JSON lines, .npy or .fvecs", .flags = LONG | LOCAL,
     .params = import_params, .summary = write_summary, .say = "{collection}: {written} written[, {skipped} skipped]",
     .detail = "Committed batch by batch; on failure the error names the line, and earlier batches stay.",
     .examples = "lode db import notes notes.jsonl --create\nlode db import sift base.fvecs --create --metric l2\n"
                 "# add vectors to records whose ids are 0, 1, 2, ...\n"
                 "lode db import notes vectors.npy --mode update"},
    {OP(push), .about = "copy a collection to another store, online", .flags = LONG | LOCAL, .params = push_params,
     .summary = copy_summary,
     .say = "{collection}: {records} records, {written} written, {equal} were there[, {extra} only there]; checksum {checksum}",
     .detail = "Range by range: what the other store has already is compared, what differs is written, read back and compared. "
               "Started again, it goes on where it stopped. The code index of the other store, if it has one, is not written to.",
     .examples = "lode db push notes --to qdrant://10.0.0.5:6333\n"
                 "# two replicas in six shards\nlode db push notes --to 'qdrant://a:6333,b:6333/team?replicas=2&shards=6'"},
    {OP(pull), .about = "copy a collection from another store, online", .flags = LONG | LOCAL, .params = pull_params,
     .summary = copy_summary,
     .say = "{collection}: {records} records, {written} written, {equal} were there[, {extra} only there]; checksum {checksum}",
     .detail = "The same as push, the other way round. The code index of a project is not written to: --as NAME copies under another name.",
     .examples = "lode db pull notes --from qdrant://10.0.0.5:6333"},
    {0}};
