/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_serve.c - any request body to an operation: answered or refused, in JSON, and never by "internal error".
 *
 * Input: a line with the name of a call and its words ("chroma.add tenant database ID", "db.query"), then the body. ID
 * stands for the collection that is there. Words are percent-decoded first, as those of a path are.
 */
#include "chroma/chroma.h"
#include "server/server.h"
#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static worker_stores *shared;
static char id[CHROMA_UUID_BYTES];

static void prepare(void) {
  static const lode_open_options options = {.create = true, .no_background = true, .page_bytes = 4096};
  static const op_open_options how = {.write = true};
  static const lode_collection_options create = {.create = true};
  static const float v[2] = {1, 2};
  lode_collection_list *list;
  lode_collection *things;
  lode_store *store;
  lode_error err;
  char path[300];
  if (shared) return;
  scratch_begin();
  scratch_store(path, sizeof path);
  REQUIRE(worker_stores_new(path, &options, &shared, &err) == LODE_OK);
  REQUIRE(worker_stores_main(shared, &how, &store, &err) == LODE_OK);
  REQUIRE(lode_collection_open(store, str_of("things"), &create, &things, &err) == LODE_OK);
  for (int i = 0; i < 20; i++) {
    char name[20];
    snprintf(name, sizeof name, "r%d", i);
    lode_record r = {.id = str_of(name),
                     .document = str_of(i % 3 ? "some text" : "other"),
                     .vector = v,
                     .dimension = 2,
                     .metadata = str_of(i % 2 ? "{\"k\":1,\"tags\":[\"x\"]}" : "{\"chroma:uri\":\"u\",\"k\":2.5}")};
    REQUIRE(lode_upsert(things, NULL, &r, 1, NULL, &err) == LODE_OK);
  }
  REQUIRE(lode_collections(store, &list, &err) == LODE_OK);
  chroma_uuid_format(lode_collection_list_at(list, 0)->uid, id);
  lode_collection_list_free(list);
  lode_collection_close(things);
}

/* Operations that end or leave this process, or that take long, are not for it. */
static bool allowed(const char *name) {
  if (strncmp(name, "chroma.", 7) == 0)
    return strcmp(name, "chroma.reset") != 0 && strcmp(name, "chroma.delete_collection") != 0 &&
           strcmp(name, "chroma.delete_database") != 0;
  const op_def *op = worker_op_of_call(name);
  return op && strncmp(name, "db.", 3) == 0 && !(op->flags & (OP_LOCAL | OP_SERVER | OP_LONG)) &&
         strcmp(op->name, "drop") != 0 && strcmp(op->name, "rename") != 0;
}

static void check(const worker_task *task) {
  json_doc json = {0};
  lode_error err;
  bool chroma = strncmp(task->name, "chroma.", 7) == 0;
  REQUIRE(!task->out.failed);
  REQUIRE(json_parse(&json, (lode_str){task->out.data, task->out.len}, &(json_limits){.max_depth = 2000}, &err) ==
          LODE_OK);
  if (chroma)
    REQUIRE((task->code >= 200 && task->code < 500) || task->code == 501);
  else
    REQUIRE(task->code != LODE_INTERNAL && task->code != LODE_CORRUPT && task->code != LODE_IO);
  json_release(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint8_t *end = memchr(data, '\n', size);
  char line[1000], *at = line, *next;
  worker_task task = {0};
  if (!end || (size_t)(end - data) >= sizeof line || memchr(data, '\0', (size_t)(end - data))) return 0;
  prepare();
  memcpy(line, data, (size_t)(end - data));
  line[end - data] = '\0';
  for (size_t n = 0; at && n < 6; n++, at = next) {
    next = strchr(at, ' ');
    if (next) *next++ = '\0';
    size_t len = strlen(at);
    if (n == 0)
      task.name = at;
    else if (!server_percent_decode(at, &len))
      return 0;
    else
      task.words[task.n_words++] = len == 2 && memcmp(at, "ID", 2) == 0 ? str_of(id) : (lode_str){at, len};
  }
  if (!allowed(task.name)) return 0;
  server_options guard = {.host = "127.0.0.1"};
  if (task.n_words) {
    char host[200];
    snprintf(host, sizeof host, "%.*s", (int)task.words[0].len, task.words[0].data);
    (void)!server_host_allowed(&guard, host);
    (void)!server_origin_allowed(&guard, host, "localhost:1");
  }
  for (; task.n_words < 4; task.n_words++) task.words[task.n_words] = STR_LIT("");
  char *body = malloc(size + 1);
  REQUIRE(body != NULL);
  size_t body_len = size - (size_t)(end + 1 - data);
  memcpy(body, end + 1, body_len);
  body[body_len] = '\0';
  task.body = (lode_str){body, body_len};
  task.shared = shared;
  if (strncmp(task.name, "chroma.", 7) == 0)
    chroma_service(&task);
  else
    worker_op_service(&task);
  check(&task);
  strbuf_release(&task.out);
  free(body);
  return 0;
}
