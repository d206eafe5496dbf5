/* SPDX-License-Identifier: Apache-2.0 */
/* test_embed_model.c - encoders from a folder, against the same sums done plainly in doubles; damage to weights and
 * packs; MiniLM itself where it is installed (LODE_MODELS). */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/byteorder.h"
#include "os/os.h"
#include "embed/bert.h"
#include "embed/embed_threads.h"
#include "embed/pack.h"
#include "embed/safetensors.h"
#include "support/fault.h"
#include "support/test.h"

static lode_error err;

/* ---- A small model of random weights ---- */

enum { H = 20, LAYERS = 2, HEADS = 4, INNER = 37, POSITIONS = 24, WORDS = 16, D = H / HEADS };

static const char *const vocabulary[WORDS] = {"[PAD]", "[UNK]",  "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat",
                                              "##s",   "##ting", "on",    "mat",   ".",      ",",   "c",   "##at"};

typedef struct tensor {
  char name[96];
  size_t rows, columns; /* columns 0: one dimension */
  float *data;
} tensor;
static tensor tensors[128];
static size_t n_tensors;

static float *random_tensor(const char *name, size_t rows, size_t columns, float scale, float centre) {
  tensor *t = &tensors[n_tensors++];
  size_t n = rows * (columns ? columns : 1);
  snprintf(t->name, sizeof t->name, "%s", name);
  t->rows = rows;
  t->columns = columns;
  t->data = malloc(n * sizeof(float));
  for (size_t i = 0; i < n; i++) t->data[i] = centre + scale * ((float)test_below(20001) / 10000 - 1);
  return t->data;
}

static const float *get(const char *format, int layer) {
  char name[96];
  snprintf(name, sizeof name, format, layer);
  for (size_t i = 0; i < n_tensors; i++)
    if (strcmp(tensors[i].name, name) == 0) return tensors[i].data;
  test_failed(__FILE__, __LINE__, "no tensor %s", name);
  return NULL;
}

static void random_model(void) {
  static const struct {
    const char *name;
    size_t rows, columns;
  } parts[] = {{"attention.self.query", H, H},   {"attention.self.key", H, H},     {"attention.self.value", H, H},
               {"attention.output.dense", H, H}, {"intermediate.dense", INNER, H}, {"output.dense", H, INNER}};
  static const char *const norms[] = {"attention.output.LayerNorm", "output.LayerNorm"};
  char name[96];
  n_tensors = 0;
  random_tensor("embeddings.word_embeddings.weight", WORDS, H, 0.5f, 0);
  random_tensor("embeddings.position_embeddings.weight", POSITIONS, H, 0.2f, 0);
  random_tensor("embeddings.token_type_embeddings.weight", 2, H, 0.1f, 0);
  random_tensor("embeddings.LayerNorm.weight", H, 0, 0.3f, 1);
  random_tensor("embeddings.LayerNorm.bias", H, 0, 0.1f, 0);
  for (int l = 0; l < LAYERS; l++) {
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
      snprintf(name, sizeof name, "encoder.layer.%d.%s.weight", l, parts[p].name);
      random_tensor(name, parts[p].rows, parts[p].columns, 0.4f, 0);
      snprintf(name, sizeof name, "encoder.layer.%d.%s.bias", l, parts[p].name);
      random_tensor(name, parts[p].rows, 0, 0.1f, 0);
    }
    for (size_t p = 0; p < 2; p++) {
      snprintf(name, sizeof name, "encoder.layer.%d.%s.weight", l, norms[p]);
      random_tensor(name, H, 0, 0.3f, 1);
      snprintf(name, sizeof name, "encoder.layer.%d.%s.bias", l, norms[p]);
      random_tensor(name, H, 0, 0.1f, 0);
    }
  }
}

static void write_text(const char *folder, const char *name, const char *text) {
  char path[600];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  test_write_file(path, text, strlen(text));
}

static void write_model(const char *folder) {
  strbuf header = {0}, file = {0};
  size_t at = 0;
  for (size_t i = 0; i < n_tensors; i++) {
    size_t bytes = tensors[i].rows * (tensors[i].columns ? tensors[i].columns : 1) * 4;
    strbuf_addf(&header, "%s\"bert.%s\":{\"dtype\":\"F32\",\"shape\":[%zu", i ? "," : "{", tensors[i].name,
                tensors[i].rows);
    if (tensors[i].columns) strbuf_addf(&header, ",%zu", tensors[i].columns);
    strbuf_addf(&header, "],\"data_offsets\":[%zu,%zu]}", at, at + bytes);
    at += bytes;
  }
  strbuf_addstr(&header, ",\"__metadata__\":{\"format\":\"pt\"}}");
  strbuf_add_le32(&file, (uint32_t)header.len);
  strbuf_add_le32(&file, 0);
  strbuf_add(&file, header.data, header.len);
  for (size_t i = 0; i < n_tensors; i++)
    strbuf_add(&file, tensors[i].data, tensors[i].rows * (tensors[i].columns ? tensors[i].columns : 1) * 4);
  char path[600], config[512];
  snprintf(path, sizeof path, "%s/model.safetensors", folder);
  test_write_file(path, file.data, file.len);
  snprintf(config, sizeof config,
           "{\"model_type\":\"bert\",\"hidden_act\":\"gelu\",\"hidden_size\":%d,\"num_hidden_layers\":%d,"
           "\"num_attention_heads\":%d,\"intermediate_size\":%d,\"max_position_embeddings\":%d,\"vocab_size\":%d,"
           "\"layer_norm_eps\":1e-12}",
           H, LAYERS, HEADS, INNER, POSITIONS, WORDS);
  write_text(folder, "config.json", config);
  strbuf words = {0};
  for (int i = 0; i < WORDS; i++) strbuf_addf(&words, "%s\n", vocabulary[i]);
  strbuf_addch(&words, 0);
  write_text(folder, "vocab.txt", words.data);
  strbuf_release(&header);
  strbuf_release(&file);
  strbuf_release(&words);
}

/* ---- The same, plainly ---- */

static void plain_norm(double *x, const float *gain, const float *shift) {
  double mean = 0, var = 0;
  for (int i = 0; i < H; i++) mean += x[i] / H;
  for (int i = 0; i < H; i++) var += (x[i] - mean) * (x[i] - mean) / H;
  for (int i = 0; i < H; i++) x[i] = (x[i] - mean) / sqrt(var + 1e-12) * gain[i] + shift[i];
}

static void plain_linear(const double *x, size_t k, const float *w, const float *b, size_t n, double *out) {
  for (size_t o = 0; o < n; o++) {
    out[o] = b[o];
    for (size_t i = 0; i < k; i++) out[o] += x[i] * w[o * k + i];
  }
}

static void plain_encode(const int *ids, int n, double *out) {
  static double x[POSITIONS][H], q[POSITIONS][H], k[POSITIONS][H], v[POSITIONS][H], c[POSITIONS][H];
  for (int t = 0; t < n; t++) {
    for (int i = 0; i < H; i++)
      x[t][i] = (double)get("embeddings.word_embeddings.weight", 0)[ids[t] * H + i] +
                get("embeddings.position_embeddings.weight", 0)[t * H + i] +
                get("embeddings.token_type_embeddings.weight", 0)[i];
    plain_norm(x[t], get("embeddings.LayerNorm.weight", 0), get("embeddings.LayerNorm.bias", 0));
  }
  for (int l = 0; l < LAYERS; l++) {
    for (int t = 0; t < n; t++) {
      plain_linear(x[t], H, get("encoder.layer.%d.attention.self.query.weight", l),
                   get("encoder.layer.%d.attention.self.query.bias", l), H, q[t]);
      plain_linear(x[t], H, get("encoder.layer.%d.attention.self.key.weight", l),
                   get("encoder.layer.%d.attention.self.key.bias", l), H, k[t]);
      plain_linear(x[t], H, get("encoder.layer.%d.attention.self.value.weight", l),
                   get("encoder.layer.%d.attention.self.value.bias", l), H, v[t]);
    }
    for (int t = 0; t < n; t++) {
      for (int head = 0; head < HEADS; head++) {
        double e[POSITIONS], sum = 0;
        for (int u = 0; u < n; u++) {
          double dot = 0;
          for (int i = 0; i < D; i++) dot += q[t][head * D + i] * k[u][head * D + i];
          sum += e[u] = exp(dot / sqrt(D));
        }
        for (int i = 0; i < D; i++) {
          c[t][head * D + i] = 0;
          for (int u = 0; u < n; u++) c[t][head * D + i] += e[u] / sum * v[u][head * D + i];
        }
      }
    }
    for (int t = 0; t < n; t++) {
      double y[H], up[INNER];
      plain_linear(c[t], H, get("encoder.layer.%d.attention.output.dense.weight", l),
                   get("encoder.layer.%d.attention.output.dense.bias", l), H, y);
      for (int i = 0; i < H; i++) x[t][i] += y[i];
      plain_norm(x[t], get("encoder.layer.%d.attention.output.LayerNorm.weight", l),
                 get("encoder.layer.%d.attention.output.LayerNorm.bias", l));
      plain_linear(x[t], H, get("encoder.layer.%d.intermediate.dense.weight", l),
                   get("encoder.layer.%d.intermediate.dense.bias", l), INNER, up);
      for (int i = 0; i < INNER; i++) up[i] = 0.5 * up[i] * (1 + erf(up[i] / sqrt(2)));
      plain_linear(up, INNER, get("encoder.layer.%d.output.dense.weight", l),
                   get("encoder.layer.%d.output.dense.bias", l), H, y);
      for (int i = 0; i < H; i++) x[t][i] += y[i];
      plain_norm(x[t], get("encoder.layer.%d.output.LayerNorm.weight", l),
                 get("encoder.layer.%d.output.LayerNorm.bias", l));
    }
  }
  double squares = 0;
  for (int i = 0; i < H; i++) {
    out[i] = 0;
    for (int t = 0; t < n; t++) out[i] += x[t][i] / n;
    squares += out[i] * out[i];
  }
  for (int i = 0; i < H; i++) out[i] /= sqrt(squares);
}

static lode_embedder *open_model(const char *folder, lode_precision precision, uint32_t threads) {
  lode_embedder *e;
  OK(lode_embedder_open(str_of(folder), &(lode_embedder_options){.precision = precision, .threads = threads}, &e,
                        &err));
  return e;
}

TEST(an_encoder_agrees_with_plain_sums) {
  bool integers = gemm_kernel_get()->narrow.scaled; /* bfloat16 is coarser */
  test_srand(test_seed());
  random_model();
  const char *folder = test_folder();
  write_model(folder);
  lode_str texts[] = {STR_LIT("The cat sat on the mat."), STR_LIT("cats, sitting"), STR_LIT("")};
  const int ids[][12] = {{2, 5, 6, 7, 10, 5, 11, 12, 3}, {2, 6, 8, 13, 1, 3}, {2, 3}};
  const int counts[] = {9, 6, 2};
  for (int p = LODE_PRECISION_FULL; p <= LODE_PRECISION_INT8; p++) {
    lode_embedder *e = open_model(folder, (lode_precision)p, 1);
    CHECK(lode_embedder_info_of(e)->dimension == H);
    float v[3 * H];
    OK(lode_embed(e, texts, 3, v, &err));
    for (int t = 0; t < 3; t++) {
      double want[H], dot = 0, worst = 0;
      plain_encode(ids[t], counts[t], want);
      for (int i = 0; i < H; i++) {
        dot += want[i] * v[t * H + i];
        worst = fmax(worst, fabs(want[i] - v[t * H + i]));
      }
      CHECKF(dot > (p == LODE_PRECISION_FULL ? 0.9999999
                    : integers               ? 0.99999
                                             : 0.9999),
             "text %d, precision %d: cosine %.9f", t, p, dot);
      CHECKF(worst < (p == LODE_PRECISION_FULL ? 5e-5
                      : integers               ? 5e-3
                                               : 1e-2),
             "text %d, precision %d: %g off", t, p, worst);
    }
    lode_embedder_close(e);
  }
}

TEST(a_vector_does_not_depend_on_batch_or_threads) {
  enum { N = 300 };
  static char bytes[N][64];
  static lode_str texts[N];
  static float all[N * H], one[N * H];
  test_srand(test_seed());
  random_model();
  const char *folder = test_folder();
  write_model(folder);
  for (int i = 0; i < N; i++) {
    size_t len = (size_t)test_below(64);
    for (size_t j = 0; j < len; j++)
      bytes[i][j] = test_below(4) ? "thecatson mat.,"[test_below(15)] : (char)test_below(256);
    texts[i] = (lode_str){bytes[i], len};
  }
  for (int p = LODE_PRECISION_FULL; p <= LODE_PRECISION_INT8; p++) {
    lode_embedder *e = open_model(folder, (lode_precision)p, 1);
    OK(lode_embed(e, texts, N, all, &err));
    for (size_t i = 0; i < N; i++) OK(lode_embed(e, texts + i, 1, one + i * H, &err));
    CHECK(memcmp(all, one, sizeof all) == 0);
    lode_embedder_close(e);
    for (uint32_t threads = 2; threads <= 5; threads += 3) {
      e = open_model(folder, (lode_precision)p, threads);
      OK(lode_embed(e, texts, N, one, &err));
      CHECK(memcmp(all, one, sizeof all) == 0);
      OK(lode_embed(e, texts, 7, one, &err));
      CHECK(memcmp(all, one, 7 * H * sizeof(float)) == 0);
      lode_embedder_close(e);
    }
  }
}

typedef struct user {
  lode_embedder *e;
  const float *want;
  bool right;
} user;

static const lode_str some[] = {STR_LIT("the cat sat"), STR_LIT("on the mat"),
                                STR_LIT("cats, sitting on a mat, and a mat on a cat")};
enum { SOME = 3 };

static void *use_again(void *arg) {
  user *u = arg;
  u->right = true;
  for (int i = 0; i < 50; i++) {
    float v[SOME * H];
    lode_error why;
    size_t n = 1 + (size_t)i % SOME;
    if (lode_embed(u->e, some, n, v, &why) != LODE_OK || memcmp(v, u->want, n * H * sizeof(float)) != 0)
      u->right = false;
  }
  return NULL;
}

/* A model of three threads, and what it makes of `some`. */
static lode_embedder *open_with_threads(float want[SOME * H]) {
  test_srand(test_seed());
  random_model();
  const char *folder = test_folder();
  write_model(folder);
  lode_embedder *e = open_model(folder, LODE_PRECISION_INT8, 3);
  OK(lode_embed(e, some, SOME, want, &err));
  return e;
}

TEST(one_embedder_serves_many_threads) {
  enum { USERS = 4 };
  float want[SOME * H];
  user users[USERS];
  pthread_t threads[USERS];
  lode_embedder *e = open_with_threads(want);
  for (int i = 0; i < USERS; i++) {
    users[i] = (user){.e = e, .want = want};
    CHECK(pthread_create(&threads[i], NULL, use_again, &users[i]) == 0);
  }
  for (int i = 0; i < USERS; i++) {
    CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(users[i].right);
  }
  lode_embedder_close(e);
}

/* Threads of the parent are not there, whatever they held. */
TEST(a_forked_process_embeds) {
  if (BUILD_TSAN) test_skip("ThreadSanitizer knows no threads of a forked process");
  float want[SOME * H], v[SOME * H];
  lode_embedder *e = open_with_threads(want);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    lode_error why;
    bool right = lode_embed(e, some, SOME, v, &why) == LODE_OK && memcmp(v, want, sizeof v) == 0;
    lode_embedder_close(e);
    _exit(right ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  OK(lode_embed(e, some, SOME, v, &err));
  CHECK(memcmp(v, want, sizeof v) == 0);
  child = fork();
  if (child == 0) {
    lode_embedder_close(e); /* without having worked there */
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  lode_embedder_close(e);
}

/* ---- Threads ---- */

static void on_fault(int sig) {
  (void)sig;
  _exit(7);
}

static void fault_elsewhere(void *ctx, size_t me) {
  (void)ctx;
  if (me == 1) __builtin_trap();
}

/* Else crash reports would not be written. */
TEST(a_fault_in_a_thread_reaches_the_programs_handler) {
  if (BUILD_TSAN) test_skip("ThreadSanitizer knows no threads of a forked process");
  int status = -1;
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    struct sigaction action = {.sa_handler = on_fault};
    sigaction(SIGILL, &action, NULL);
    sigaction(SIGTRAP, &action, NULL); /* what other CPUs have for it */
    embed_threadpool *pool = embed_threadpool_new();
    if (!pool || embed_threadpool_grow(pool, 2) != 2) _exit(1);
    embed_threadpool_run(pool, 2, fault_elsewhere, NULL);
    _exit(2);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECKF(WIFEXITED(status) && WEXITSTATUS(status) == 7, "status %x", (unsigned)status);
}

/* ---- A word that cannot be read ---- */

enum { UNREADABLE = 11, UNREADABLE_AT = 20, MANY = 30 }; /* the third chunk of ten texts begins with it */

static lode_status word_or_not(void *ctx, uint32_t id, float *out, lode_error *why) {
  (void)ctx;
  for (int i = 0; i < H; i++) out[i] = (float)((id + 1) * (unsigned)(i + 1) % 7);
  return id == UNREADABLE ? err_set(why, LODE_CORRUPT, "the word is damaged") : LODE_OK;
}

/* Those who work on one chunk wait for each other: also when one of them finds that it cannot go on before another has
 * begun. */
TEST(a_word_that_cannot_be_read_ends_the_call_for_all_threads) {
  const embed_bert_config config = {.hidden = H,
                                    .layers = 0,
                                    .heads = HEADS,
                                    .inner = INNER,
                                    .positions = POSITIONS,
                                    .words = WORDS,
                                    .epsilon = 1e-12f};
  const embed_wordpiece_settings settings = {
      .lowercase = true, .unknown = 1, .first = 2, .last = 3, .max_word_chars = 100};
  const char *long_text = "the cat sat on the cat the cat sat on the cat the cat sat on the cat the cat sat on the cat";
  lode_str tokens[WORDS], texts[MANY];
  static float v[MANY * H];
  embed_bert_sizes sizes;
  embed_wordpiece wp;
  embed_bert bert;
  for (int i = 0; i < WORDS; i++) tokens[i] = str_of(vocabulary[i]);
  for (int i = 0; i < MANY; i++) texts[i] = str_of(i == UNREADABLE_AT ? "mat" : long_text);
  OK(embed_wordpiece_init(&wp, &settings, tokens, WORDS, NULL, 0, &err));
  OK(embed_bert_init(&bert, &config, gemm_kernel_get(), false, &err));
  OK(embed_bert_measure(&config, &sizes, &err));
  memset(bert.vectors, 0, sizes.vectors * sizeof(float));
  bert.word = word_or_not;
  for (uint32_t threads = 1; threads <= 5; threads++) {
    const embed_encode_options options = {.max_tokens = POSITIONS, .threads = threads};
    for (int i = 0; i < 500; i++) FAILS(LODE_CORRUPT, embed_encode(&bert, &wp, &options, texts, MANY, v, &err));
    CHECK(strcmp(err.text, "the word is damaged") == 0);
    OK(embed_encode(&bert, &wp, &options, texts, UNREADABLE_AT, v, &err));
  }
  embed_bert_release(&bert);
  embed_wordpiece_release(&wp);
}

/* ---- Damage ---- */

static lode_status open_quietly(const char *folder) {
  lode_embedder *e;
  lode_status st = lode_embedder_open(str_of(folder), NULL, &e, &err);
  if (st == LODE_OK) {
    float v[H];
    lode_str text = STR_LIT("the cat");
    lode_status used = lode_embed(e, &text, 1, v, &err); /* weights that overflow are refused, not passed on */
    CHECK(used == LODE_OK || used == LODE_REFUSED);
    lode_embedder_close(e);
  } else {
    CHECKF(st == LODE_CORRUPT || st == LODE_UNSUPPORTED || st == LODE_LIMIT, "%s: %s", lode_status_name(st), err.text);
  }
  return st;
}

TEST(lying_weights_are_a_status) {
  test_srand(test_seed());
  random_model();
  const char *folder = test_folder();
  write_model(folder);
  char path[600];
  snprintf(path, sizeof path, "%s/model.safetensors", folder);
  size_t len;
  char *good = test_read_file(path, &len), *bad = malloc(len);
  size_t header = 8 + num_le16(good);
  unsigned refused = 0;
  for (int i = 0; i < (test_full() ? 4000 : 250); i++) {
    memcpy(bad, good, len);
    size_t cut = len;
    if (i % 5 == 0)
      cut = (size_t)test_below(len);
    else
      for (uint64_t k = 1 + test_below(3); k > 0; k--)
        bad[test_below(header)] = i % 2 ? (char)test_below(256) : "0123456789[]{},:\""[test_below(17)];
    test_write_file(path, bad, cut);
    refused += open_quietly(folder) != LODE_OK;
  }
  CHECK(refused > 50);
  static const char *const lies[] = {
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,16]}}",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,18446744073709551615]}}",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[[1],2],\"data_offsets\":[0,8]}}",
      "{\"a\":1}",
      "[]",
      "",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1],\"data_offsets\":[0,4]}}"};
  for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
    embed_safetensors file = {.fd = -1};
    FAILS(LODE_CORRUPT, embed_safetensors_parse(&file, str_of(lies[i]), 8 + strlen(lies[i]) + 16, &err));
    embed_safetensors_close(&file);
  }
  free(good);
  free(bad);
}

TEST(strange_tokenizers_are_a_status) {
  test_srand(test_seed());
  random_model();
  const char *folder = test_folder();
  write_model(folder);
  static const char *const texts[] = {
      "",
      "{",
      "[]",
      "{\"model\":{\"type\":\"BPE\",\"vocab\":{}},\"normalizer\":{\"type\":\"BertNormalizer\"},\"pre_tokenizer\":{"
      "\"type\":\"BertPreTokenizer\"}}",
      "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0,\"b\":0}},\"normalizer\":{\"type\":\"BertNormalizer\"},"
      "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"}}",
      "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":99999999999}},\"normalizer\":{\"type\":\"BertNormalizer\"},"
      "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"}}",
      "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":\"0\"}},\"normalizer\":{\"type\":\"BertNormalizer\"},\"pre_"
      "tokenizer\":{\"type\":\"BertPreTokenizer\"}}",
      "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0}},\"normalizer\":{\"type\":\"BertNormalizer\"},\"pre_"
      "tokenizer\":{\"type\":\"BertPreTokenizer\"}}"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    write_text(folder, "tokenizer.json", texts[i]);
    CHECK(open_quietly(folder) != LODE_OK);
  }
  char *deep = malloc(400001);
  memset(deep, '[', 200000);
  memset(deep + 200000, ']', 200000);
  deep[400000] = 0;
  write_text(folder, "tokenizer.json", deep);
  CHECK(open_quietly(folder) != LODE_OK);
  free(deep);
}

/* ---- Packs ---- */

static unsigned char pack_data[3000];

static lode_status make_pack(const char *path) {
  for (size_t i = 0; i < sizeof pack_data; i++) pack_data[i] = (unsigned char)(i * 7);
  embed_pack_writer w;
  lode_status st = embed_pack_create(&w, path, &err);
  if (st != LODE_OK) return st;
  TRY_GOTO(embed_pack_add(&w, "one", 1000, pack_data, 2500, &err));
  TRY_GOTO(embed_pack_add(&w, "two", 64, pack_data, 100, &err));
  st = embed_pack_finish(&w, "test@1/2/float", &err);
done:
  embed_pack_discard(&w);
  return st;
}

static lode_status check_pack(const char *path) {
  embed_pack pack;
  lode_status st = embed_pack_open(&pack, path, &err);
  if (st != LODE_OK) return st;
  st = embed_pack_verify(&pack, &err);
  embed_pack_close(&pack);
  return st;
}

static size_t files_in(const char *path) {
  size_t n = 0;
  os_dir *folder = os_dir_open(path);
  CHECK(folder);
  while (os_dir_next(folder)) n++;
  os_dir_close(folder);
  return n;
}

static lode_status work_at_pack(void *path, lode_error *unset) {
  (void)unset;
  return make_pack(path);
}

/* kill -9 before each system call, with and without an older pack in place. */
TEST(a_pack_whose_maker_is_killed_is_whole_or_absent) {
  char path[600];
  snprintf(path, sizeof path, "%s/p.pack", test_folder());
  for (int older = 0; older < 2; older++) {
    int absent = 0;
    bool killed = true;
    for (uint64_t n = 1; killed; n++) {
      CHECK(n < 1000);
      unlink(path);
      if (older) OK(make_pack(path));
      killed = fault_in_child(work_at_pack, path, FAULT_ANY, n, FAULT_EXIT) == 0;
      bool there = access(path, F_OK) == 0;
      lode_status st = there ? check_pack(path) : LODE_OK;
      CHECKF(st == LODE_OK && (there || !older), "killed at call %llu: %s", (unsigned long long)n,
             there ? lode_status_name(st) : "it is gone");
      absent += !there;
      OK(make_pack(path));
    }
    CHECK(older || absent > 3);
  }
}

/* The disk is full from each write on, for good: the older pack stays, and nothing half-made does. */
TEST(a_pack_without_room_leaves_nothing) {
  char folder[400], path[600];
  snprintf(folder, sizeof folder, "%s", test_folder());
  snprintf(path, sizeof path, "%s/p.pack", folder);
  OK(make_pack(path));
  size_t files = files_in(folder);
  uint64_t hits = 1, n = 1;
  for (; hits; n++) {
    CHECK(n < 100);
    fault_install(&os_real);
    fault_set(FAULT_PWRITE, n, true, FAULT_ENOSPC);
    lode_status st = make_pack(path);
    hits = fault_hits();
    fault_uninstall();
    CHECKF(st == (hits ? LODE_FULL : LODE_OK), "write %llu: %s", (unsigned long long)n, lode_status_name(st));
    OK(check_pack(path));
    CHECK(files_in(folder) == files);
  }
  CHECK(n > 4);
}

TEST(a_flipped_pack_is_never_believed) {
  char path[600];
  snprintf(path, sizeof path, "%s/p.pack", test_folder());
  unsigned char *data = pack_data, back[3000];
  OK(make_pack(path));
  size_t len;
  char *good = test_read_file(path, &len);
  test_srand(test_seed());
  for (size_t at = 0; at < len; at += test_full() ? 1 : 1 + (size_t)test_below(9)) {
    for (int kind = 0; kind < 2; kind++) { /* a bit flipped; cut here */
      char *bad = malloc(len);
      memcpy(bad, good, len);
      if (kind == 0) bad[at] ^= (char)(1 << test_below(8));
      test_write_file(path, bad, kind == 0 ? len : at);
      free(bad);
      embed_pack pack;
      lode_status st = embed_pack_open(&pack, path, &err);
      if (st == LODE_OK) {
        st = embed_pack_verify(&pack, &err);
        if (st == LODE_OK) { /* a byte between sections: then all that is read is right */
          OK(embed_pack_read(&pack, embed_pack_find(&pack, "one"), back, &err));
          CHECK(memcmp(back, data, 2500) == 0);
        }
        embed_pack_close(&pack);
      }
      CHECKF(st == LODE_OK || st == LODE_CORRUPT || st == LODE_TOO_NEW, "%s", lode_status_name(st));
      CHECK(kind == 0 || st != LODE_OK);
    }
  }
  free(good);
}

static lode_status use(const char *folder) {
  lode_str texts[] = {STR_LIT("the cat sat"), STR_LIT("on the mat")};
  float v[2 * H];
  lode_embedder *e = NULL;
  lode_status st = lode_embedder_open(str_of(folder), &(lode_embedder_options){.threads = 2}, &e, &err);
  if (st == LODE_OK) st = lode_embed(e, texts, 2, v, &err);
  lode_embedder_close(e);
  return st;
}

TEST_SLOW(every_failing_allocation_is_a_status, 120) {
  test_srand(test_seed());
  random_model();
  const char *folder = test_folder();
  write_model(folder);
  fault_alloc_install();
  OK(use(folder));
  uint64_t n = 1, hits = 1;
  for (; hits && n < 5000; n++) {
    fault_alloc_set(n, false);
    lode_status st = use(folder);
    hits = fault_alloc_hits();
    fault_alloc_set(0, false);
    CHECKF(hits ? st == LODE_NOMEM : st == LODE_OK, "call %llu: %s %s", (unsigned long long)n, lode_status_name(st),
           err.text);
  }
  CHECK(n > 20 && n < 5000);
}

TEST_SLOW(every_failing_read_is_a_status, 120) {
  test_srand(test_seed());
  random_model();
  const char *folder = test_folder();
  write_model(folder);
  uint64_t n = 1, hits = 1;
  for (; hits && n < 5000; n++) {
    fault_install(&os_real);
    fault_set(FAULT_ANY, n, false, n % 3 == 0 ? FAULT_SHORT : n % 3 == 1 ? FAULT_EIO : FAULT_EINTR);
    lode_status st = use(folder);
    hits = fault_count(FAULT_ANY) >= n; /* a short count is for transfers only */
    fault_uninstall();
    CHECKF(st == LODE_OK || st == LODE_IO || st == LODE_NOT_FOUND, "call %llu: %s %s", (unsigned long long)n,
           lode_status_name(st), err.text);
  }
  CHECK(n > 5 && n < 5000);
}

/* ---- MiniLM, where it is installed ---- */

typedef struct known {
  const char *text;
  float first[8]; /* of its vector, by onnxruntime with the published float32 weights */
} known;
#include "support/minilm_known.h"

TEST_SLOW(minilm_gives_the_published_vectors, 300) {
  lode_embedder *e;
  if (!getenv("LODE_MODELS")) test_skip("LODE_MODELS does not name a folder with minilm (lode model install minilm)");
  for (int p = LODE_PRECISION_FULL; p <= LODE_PRECISION_INT8; p++) {
    lode_status st =
        lode_embedder_open(STR_LIT("minilm"), &(lode_embedder_options){.precision = (lode_precision)p}, &e, &err);
    if (st == LODE_NOT_FOUND) test_skip("minilm is not installed (lode model install minilm)");
    OK(st);
    for (size_t i = 0; i < sizeof minilm_known / sizeof *minilm_known; i++) {
      float v[384];
      lode_str text = str_of(minilm_known[i].text);
      OK(lode_embed(e, &text, 1, v, &err));
      for (int d = 0; d < 8; d++)
        CHECKF(fabsf(v[d] - minilm_known[i].first[d]) < (p == LODE_PRECISION_FULL ? 5e-4f : 2e-3f),
               "text %zu, number %d: %g, not %g", i, d, (double)v[d], (double)minilm_known[i].first[d]);
    }
    lode_embedder_close(e);
  }
}
