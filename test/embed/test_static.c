/* SPDX-License-Identifier: Apache-2.0 */
/* test_static.c - the static model: its vocabulary, its file, its sums, and what damage does to it.
 *
 * Most tests write a model of a few dozen words, so that every byte of it can be damaged. The one that is part of lode
 * is asked a few questions too.
 */
#include "base/base.h"
#include "base/crc32c.h"
#include "embed/embed.h"
#include "embed/static_file.h"
#include "support/fault.h"
#include "support/test.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static lode_error err;

/* ---- A small model ---- */

enum { MAX_TOY = 64 };
static const char *const toy_words[] = {"read",     "file", "get",   "addr",   "info", "http",  "server", "the",
                                        "readfile", "a",    "write", "socket", "open", "close", "parse",  "json",
                                        "tree",     "node", "hash",  "map",    "list", "zwölf", "thread", "lock"};
enum { TOY = sizeof toy_words / sizeof toy_words[0] };

typedef struct toy {
  embed_words words;
  uint32_t starts[MAX_TOY + 1];
  char bytes[1024];
  uint8_t costs[MAX_TOY];
  uint16_t slots[128];
  int8_t rows[MAX_TOY * EMBED_STATIC_DIM];
  float scales[MAX_TOY];
} toy;

static void toy_init(toy *t) {
  size_t used = 0;
  memset(t, 0, sizeof *t);
  for (uint32_t i = 0; i < TOY; i++) {
    size_t n = strlen(toy_words[i]);
    memcpy(t->bytes + used, toy_words[i], n);
    used += n;
    t->starts[i + 1] = (uint32_t)used;
    t->costs[i] = n == 1 ? 255 : 60;
    t->scales[i] = 0.01f * (float)(i + 1);
    for (int d = 0; d < EMBED_STATIC_DIM; d++)
      t->rows[i * EMBED_STATIC_DIM + (uint32_t)d] = (int8_t)((i * 31 + (uint32_t)d * 7) % 255 - 127);
  }
  t->words = (embed_words){TOY, 128, t->starts, t->bytes, used, t->costs, t->slots};
  embed_words_fill(&t->words, t->slots);
}

static char *toy_file(size_t *size) {
  static toy t;
  toy_init(&t);
  char *bytes = embed_static_bytes(&(embed_static_parts){&t.words, t.rows, t.scales, "toy", 500}, size);
  CHECK(bytes);
  return bytes;
}

static char folder[256];
static void make_folder(void) { CHECK((size_t)snprintf(folder, sizeof folder, "%s", test_folder()) < sizeof folder); }

static void put_file(const char *bytes, size_t size) {
  char path[320];
  snprintf(path, sizeof path, "%s/%s", folder, EMBED_STATIC_PACK);
  FILE *out = fopen(path, "wb");
  CHECK(out && fwrite(bytes, 1, size, out) == size && fclose(out) == 0);
}

static void drop_folder(void) {
  char path[320];
  snprintf(path, sizeof path, "%s/%s", folder, EMBED_STATIC_PACK);
  unlink(path);
  rmdir(folder);
}

static lode_status open_toy(lode_embedder **e) {
  lode_embedder_options options = {.folder = folder};
  return lode_embedder_open(STR_LIT(LODE_MODEL_CODE), &options, e, &err);
}

static float dot(const float *a, const float *b) {
  double sum = 0;
  for (int d = 0; d < EMBED_STATIC_DIM; d++) sum += (double)a[d] * b[d];
  return (float)sum;
}

/* ---- Words ---- */

typedef struct heard {
  char text[512];
  const embed_words *words;
} heard;

static int hear(void *ctx, uint32_t row) {
  heard *h = ctx;
  const embed_words *w = h->words;
  size_t n = strlen(h->text);
  snprintf(h->text + n, sizeof h->text - n, "%s%.*s", n ? " " : "", (int)(w->starts[row + 1] - w->starts[row]),
           w->bytes + w->starts[row]);
  return 0;
}

static void check_words(const toy *t, const char *text, const char *wanted) {
  heard h = {.words = &t->words};
  CHECK(embed_words_split(&t->words, text, strlen(text), hear, &h) == 0);
  CHECKF(strcmp(h.text, wanted) == 0, "\"%s\" is \"%s\", wanted \"%s\"", text, h.text, wanted);
}

TEST(names_are_split_and_unknown_parts_cut_into_known_words) {
  toy t;
  toy_init(&t);
  OK(embed_words_check(&t.words, &err));
  check_words(&t, "read the file", "read the file");
  check_words(&t, "readFile(HTTPServer)", "readfile read file http server");
  check_words(&t, "read_file", "read file");
  check_words(&t, "getaddrinfo", "get addr info");
  check_words(&t, "xxgetqqq", "get");
  check_words(&t, "Zwölf ZWÖLF", "");
  check_words(&t, "qqq 12345 \xff\xfe", "");
  check_words(&t, "", "");
}

TEST(a_vocabulary_that_lies_is_refused) {
  toy t;
  toy_init(&t);
  embed_words w = t.words;
  w.count = 0;
  FAILS(LODE_CORRUPT, embed_words_check(&w, &err));
  w = t.words;
  w.n_slots = 100;
  FAILS(LODE_CORRUPT, embed_words_check(&w, &err));
  t.starts[3] = 5000;
  FAILS(LODE_CORRUPT, embed_words_check(&t.words, &err));
  toy_init(&t);
  t.starts[3] = t.starts[2];
  FAILS(LODE_CORRUPT, embed_words_check(&t.words, &err));
  toy_init(&t);
  for (int i = 0; i < 128; i++) t.slots[i] = 1; /* no empty slot: a search would not end */
  FAILS(LODE_CORRUPT, embed_words_check(&t.words, &err));
  toy_init(&t);
  for (int i = 0; i < 128; i++) t.slots[i] = t.slots[i] ? TOY + 1 : 0;
  FAILS(LODE_CORRUPT, embed_words_check(&t.words, &err));
}

/* ---- Vectors ---- */

TEST(a_vector_is_the_weighted_sum_of_its_words) {
  size_t size;
  char *bytes = toy_file(&size);
  lode_embedder *e;
  static toy t;
  toy_init(&t);
  make_folder();
  put_file(bytes, size);
  OK(open_toy(&e));
  const lode_embedder_info *info = lode_embedder_info_of(e);
  CHECK(str_eq(info->identity, STR_LIT("code@toy/256/static")) && info->dimension == 256);
  float v[EMBED_STATIC_DIM], wanted[EMBED_STATIC_DIM];
  lode_str text = STR_LIT("file FILE file, file; server");
  OK(lode_embed(e, &text, 1, v, &err));
  double square = 0;
  for (int d = 0; d < EMBED_STATIC_DIM; d++) {
    wanted[d] =
        2.0f * t.scales[1] * t.rows[1 * 256 + d] + t.scales[6] * t.rows[6 * 256 + d]; /* 4 to the power of 0.5 */
    square += (double)wanted[d] * wanted[d];
  }
  for (int d = 0; d < EMBED_STATIC_DIM; d++) CHECK(fabs(v[d] - wanted[d] / sqrt(square)) < 1e-5);
  lode_embedder_close(e);
  drop_folder();
  mem_free(bytes);
}

TEST(any_bytes_give_a_vector_of_length_1) {
  size_t size, big = 10 << 20;
  char *bytes = toy_file(&size), *line = mem_alloc(big);
  lode_embedder *e;
  CHECK(line);
  memset(line, 'r', big);
  make_folder();
  put_file(bytes, size);
  OK(open_toy(&e));
  lode_str texts[] = {{NULL, 0},      STR_LIT(""), STR_LIT("\0\0\xff\xfe\x80"),
                      STR_LIT("qqq"), {line, big}, STR_LIT("read")};
  float v[6 * EMBED_STATIC_DIM], alone[EMBED_STATIC_DIM];
  OK(lode_embed(e, texts, 6, v, &err));
  for (int i = 0; i < 6; i++) CHECK(fabs(dot(v + 256 * i, v + 256 * i) - 1) < 1e-4);
  for (int i = 0; i < 6; i++) { /* whatever stands beside it */
    OK(lode_embed(e, &texts[i], 1, alone, &err));
    CHECK(memcmp(alone, v + 256 * i, sizeof alone) == 0);
  }
  for (size_t i = 0; i + 5 <= big; i += 5) memcpy(line + i, "file ", 5);
  OK(lode_embed(e, &texts[4], 1, alone, &err)); /* cut, and done at once */
  lode_embedder_close(e);
  drop_folder();
  mem_free(bytes);
  mem_free(line);
}

TEST(every_kernel_gives_the_same_bits) {
  size_t size;
  char *bytes = toy_file(&size);
  lode_embedder *fast, *plain;
  make_folder();
  put_file(bytes, size);
  OK(open_toy(&fast));
  setenv("LODE_SIMD", "portable", 1);
  OK(open_toy(&plain));
  CHECK(strcmp(lode_embedder_info_of(plain)->kernel, "portable") == 0);
  lode_str text = STR_LIT(
      "the server opens a socket, parses json, locks the thread: getaddrinfo, readFile, hash map of tree nodes");
  float a[EMBED_STATIC_DIM], b[EMBED_STATIC_DIM];
  OK(lode_embed(fast, &text, 1, a, &err));
  OK(lode_embed(plain, &text, 1, b, &err));
  CHECK(memcmp(a, b, sizeof a) == 0);
  lode_embedder_close(fast);
  lode_embedder_close(plain);
  drop_folder();
  mem_free(bytes);
}

typedef struct sharer {
  lode_embedder *e;
  const float *wanted;
} sharer;

static void *share(void *arg) {
  sharer *s = arg;
  lode_error mine;
  for (int i = 0; i < 400; i++) {
    lode_str text = str_of(toy_words[i % TOY]);
    float v[EMBED_STATIC_DIM];
    if (lode_embed(s->e, &text, 1, v, &mine) != LODE_OK ||
        memcmp(v, s->wanted + (size_t)(i % TOY) * EMBED_STATIC_DIM, sizeof v) != 0)
      return arg;
  }
  return NULL;
}

TEST(threads_share_an_embedder) {
  size_t size;
  char *bytes = toy_file(&size);
  static float wanted[TOY * EMBED_STATIC_DIM];
  lode_embedder *e;
  make_folder();
  put_file(bytes, size);
  OK(open_toy(&e));
  for (int i = 0; i < TOY; i++) {
    lode_str text = str_of(toy_words[i]);
    OK(lode_embed(e, &text, 1, wanted + (size_t)i * EMBED_STATIC_DIM, &err));
  }
  lode_embedder_close(e);
  for (int round = 0; round < 10; round++) {
    pthread_t threads[4];
    OK(open_toy(&e));
    sharer s = {e, wanted};
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, share, &s) == 0);
    for (int i = 0; i < 4; i++) {
      void *failed;
      pthread_join(threads[i], &failed);
      CHECK(!failed);
    }
    lode_embedder_close(e);
  }
  drop_folder();
  mem_free(bytes);
}

/* ---- Damage ---- */

/* Opens and embeds; damage must be a status, and what is answered must be right. */
static void survive(const float *wanted, const char *what, size_t at) {
  lode_embedder *e;
  lode_str texts[2] = {STR_LIT("read the file from getaddrinfo"), STR_LIT("lock")};
  float v[2 * EMBED_STATIC_DIM];
  lode_status st = open_toy(&e);
  if (st == LODE_OK) {
    st = lode_embed(e, texts, 2, v, &err);
    if (st == LODE_OK)
      CHECKF(memcmp(v, wanted, sizeof v) == 0, "%s at %zu: another vector, and no word of it", what, at);
    lode_embedder_close(e);
  }
  CHECKF(st == LODE_OK || st == LODE_CORRUPT || st == LODE_UNSUPPORTED, "%s at %zu: %s", what, at,
         lode_status_name(st));
  CHECKF(st == LODE_OK || strlen(err.text) > 20, "%s at %zu: no text", what, at);
}

TEST_SLOW(flipped_and_cut_bytes_are_found, 120) {
  size_t size;
  char *bytes = toy_file(&size);
  lode_embedder *e;
  static float wanted[2 * EMBED_STATIC_DIM];
  lode_str texts[2] = {STR_LIT("read the file from getaddrinfo"), STR_LIT("lock")};
  make_folder();
  put_file(bytes, size);
  OK(open_toy(&e));
  OK(lode_embed(e, texts, 2, wanted, &err));
  lode_embedder_close(e);
  OK(lode_model_verify(STR_LIT(LODE_MODEL_CODE), &(lode_embedder_options){.folder = folder}, &err));
  test_srand(test_seed());
  size_t step = test_full() ? 1 : 1 + test_below(17);
  for (size_t at = 0; at < size; at += at < 256 ? 1 : step) {
    bytes[at] = (char)(bytes[at] ^ (1 << test_below(8)));
    put_file(bytes, size);
    survive(wanted, "a flipped bit", at);
    FAILS(LODE_CORRUPT, lode_model_verify(STR_LIT(LODE_MODEL_CODE), &(lode_embedder_options){.folder = folder}, &err));
    bytes = (mem_free(bytes), toy_file(&size));
  }
  for (size_t cut = 0; cut < size; cut += test_full() ? 1 : 1 + test_below(97)) {
    put_file(bytes, cut);
    survive(wanted, "a cut", cut);
  }
  drop_folder();
  mem_free(bytes);
}

/* A part of an older revision of the same size: its checksum is held by what comes before it. */
TEST(a_page_of_an_older_revision_is_damage) {
  enum { MODEL_PAGE = EMBED_STATIC_PAGE_BYTES };
  static toy t;
  size_t size, older_size, tried = 0;
  char *bytes = toy_file(&size);
  toy_init(&t);
  for (size_t i = 0; i < sizeof t.rows; i++) t.rows[i] = (int8_t)(t.rows[i] / 2);
  char *older = embed_static_bytes(&(embed_static_parts){&t.words, t.rows, t.scales, "toy", 500}, &older_size);
  CHECK(older && older_size == size);
  make_folder();
  for (size_t at = 0; at < size; at += MODEL_PAGE) {
    size_t n = size - at < MODEL_PAGE ? size - at : MODEL_PAGE;
    if (memcmp(bytes + at, older + at, n) == 0) continue;
    memcpy(bytes + at, older + at, n);
    put_file(bytes, size);
    FAILS(LODE_CORRUPT, lode_model_verify(STR_LIT(LODE_MODEL_CODE), &(lode_embedder_options){.folder = folder}, &err));
    bytes = (mem_free(bytes), toy_file(&size));
    tried++;
  }
  CHECKF(tried > 1, "%zu pages", tried);
  drop_folder();
  mem_free(bytes);
  mem_free(older);
}

/* Headers that lie, with checksums that are right. */
TEST(sizes_that_lie_are_refused) {
  size_t size;
  char *bytes = toy_file(&size);
  lode_embedder *e;
  make_folder();
  uint32_t lies[] = {0, 1, 23, 25, 1000, 65535, 65536, 0x7FFFFFFF, 0xFFFFFFFF};
  for (size_t field = 8; field < 40; field += 4) {
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
      embed_static_header h;
      memcpy(&h, bytes, sizeof h);
      if (memcmp((char *)&h + field, &lies[i], 4) == 0) continue;
      memcpy((char *)&h + field, &lies[i], 4);
      h.crc = crc32c_update(0, &h, offsetof(embed_static_header, crc));
      char *lying = mem_alloc(size);
      CHECK(lying);
      memcpy(lying, bytes, size);
      memcpy(lying, &h, sizeof h);
      put_file(lying, size);
      mem_free(lying);
      lode_status st = open_toy(&e);
      bool harmless = field == 32 && lies[i] <= 1000; /* the exponent */
      CHECKF(harmless ? st == LODE_OK : st == LODE_CORRUPT || st == LODE_UNSUPPORTED, "field %zu as %u: %s", field,
             lies[i], lode_status_name(st));
      lode_embedder_close(e);
    }
  }
  drop_folder();
  mem_free(bytes);
}

TEST(a_file_cut_under_a_reader_is_a_status) {
  size_t size;
  char *bytes = toy_file(&size), path[320];
  lode_embedder *e;
  lode_str text = STR_LIT("lock");
  float v[EMBED_STATIC_DIM];
  make_folder();
  put_file(bytes, size);
  OK(open_toy(&e));
  snprintf(path, sizeof path, "%s/%s", folder, EMBED_STATIC_PACK);
  CHECK(truncate(path, (off_t)size / 2) == 0);
  FAILS(LODE_CORRUPT, lode_embed(e, &text, 1, v, &err));
  put_file(bytes, size);
  OK(lode_embed(e, &text, 1, v, &err));
  lode_embedder_close(e);
  drop_folder();
  mem_free(bytes);
}

static lode_status open_and_embed(void) {
  lode_embedder *e;
  lode_str texts[20];
  static float v[20 * EMBED_STATIC_DIM];
  for (int i = 0; i < 20; i++) texts[i] = str_of(toy_words[i]);
  lode_status st = open_toy(&e);
  if (st != LODE_OK) {
    CHECK(!e);
    return st;
  }
  st = lode_embed(e, texts, 1, v, &err);
  if (st == LODE_OK) st = lode_embed(e, texts, 20, v, &err);
  lode_embedder_close(e);
  return st;
}

TEST(memory_and_files_may_fail_at_every_call) {
  size_t size;
  char *bytes = toy_file(&size);
  make_folder();
  put_file(bytes, size);
  fault_alloc_install();
  for (uint64_t n = 1;; n++) {
    fault_alloc_set(n, false);
    lode_status st = open_and_embed();
    uint64_t hits = fault_alloc_hits();
    fault_alloc_set(0, false);
    CHECKF(hits ? st == LODE_NOMEM : st == LODE_OK, "allocation %u: %s", (unsigned)n, lode_status_name(st));
    if (!hits) break;
  }
  fault_install(&os_real);
  for (int effect = FAULT_EIO; effect <= FAULT_EINTR; effect++) {
    if (effect == FAULT_ENOSPC) continue;
    for (uint64_t n = 1;; n++) {
      fault_set(effect == FAULT_SHORT ? FAULT_PREAD : FAULT_ANY, n, false, (fault_effect)effect);
      lode_status st = open_and_embed();
      uint64_t hits = fault_hits();
      CHECKF(st == LODE_OK || (effect == FAULT_EIO && st == LODE_IO), "call %u, effect %d: %s", (unsigned)n, effect,
             lode_status_name(st));
      if (!hits) break;
    }
  }
  fault_uninstall();
  drop_folder();
  mem_free(bytes);
}

/* ---- The model that is part of lode ---- */

TEST(the_model_that_comes_with_lode_knows_code) {
  lode_embedder *e;
  OK(lode_embedder_open(STR_LIT(LODE_MODEL_CODE), NULL, &e, &err));
  lode_str texts[] = {
      STR_LIT("read a whole file into memory"),
      STR_LIT("static char *slurp(const char *path, size_t *len) { FILE *f = fopen(path, \"rb\"); fseek(f, 0, "
              "SEEK_END); *len = ftell(f); "
              "rewind(f); char *data = malloc(*len); fread(data, 1, *len, f); fclose(f); return data; }"),
      STR_LIT("def send_mail(sender, recipients, subject, body):\n    smtp = SMTP(host)\n    smtp.sendmail(sender, "
              "recipients, message)"),
      STR_LIT("function hslToRgb(h, s, l) { return [hue2rgb(p, q, h), hue2rgb(p, q, h + 1), hue2rgb(p, q, h - 1)] }"),
      STR_LIT("deliver an email message"),
      STR_LIT("convert a color between color spaces"),
  };
  static float v[6 * EMBED_STATIC_DIM];
  OK(lode_embed(e, texts, 6, v, &err));
  float *read_q = v, *mail_q = v + 4 * 256, *color_q = v + 5 * 256, *read_c = v + 256, *mail_c = v + 2 * 256,
        *color_c = v + 3 * 256;
  CHECK(dot(read_q, read_c) > dot(read_q, mail_c) && dot(read_q, read_c) > dot(read_q, color_c));
  CHECK(dot(mail_q, mail_c) > dot(mail_q, read_c) && dot(mail_q, mail_c) > dot(mail_q, color_c));
  CHECK(dot(color_q, color_c) > dot(color_q, read_c) && dot(color_q, color_c) > dot(color_q, mail_c));
  const embed_model_kind *kind = embed_model_find(STR_LIT(LODE_MODEL_CODE));
  CHECK(str_eq(lode_embedder_info_of(e)->identity, str_of(kind->identity)));
  OK(lode_model_verify(STR_LIT(LODE_MODEL_CODE), NULL, &err));
  lode_embedder_close(e);
}
