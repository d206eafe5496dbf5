/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors.c - see safetensors.h. */
#include "embed/safetensors.h"

#include "base/byteorder.h"
#include "base/vector.h"

#include "os/os.h"

/* ---- Header ---- */

static embed_tensor_kind tensor_kind_of(lode_str s, uint64_t *size) {
  static const struct {
    const char *name;
    embed_tensor_kind kind;
    uint64_t size;
  } kinds[] = {
      {"F32", EMBED_F32, 4},           {"F16", EMBED_F16, 2},          {"BF16", EMBED_BF16, 2},
      {"F64", EMBED_TENSOR_OTHER, 8},  {"I64", EMBED_TENSOR_OTHER, 8}, {"U64", EMBED_TENSOR_OTHER, 8},
      {"I32", EMBED_TENSOR_OTHER, 4},  {"U32", EMBED_TENSOR_OTHER, 4}, {"I16", EMBED_TENSOR_OTHER, 2},
      {"U16", EMBED_TENSOR_OTHER, 2},  {"I8", EMBED_TENSOR_OTHER, 1},  {"U8", EMBED_TENSOR_OTHER, 1},
      {"BOOL", EMBED_TENSOR_OTHER, 1},
  };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (str_eq(s, str_of(kinds[i].name))) {
      *size = kinds[i].size;
      return kinds[i].kind;
    }
  }
  *size = 0;
  return EMBED_TENSOR_OTHER;
}

static lode_status tensor_invalid(lode_error *err, lode_str name, const char *what) {
  char quoted[256];
  return err_set(err, LODE_CORRUPT, "safetensors: tensor %s: %s", str_quote(name, quoted, sizeof quoted), what);
}

static lode_status tensor_read_shape(const json_doc *json, uint32_t node, embed_tensor *t, lode_error *err) {
  if (!node || json->nodes[node].type != JSON_NODE_ARRAY) return tensor_invalid(err, t->name, "there is no shape");
  t->dims = json->nodes[node].u.count;
  if (t->dims > EMBED_TENSOR_MAX_DIMS) return tensor_invalid(err, t->name, "it has too many dimensions");
  t->count = 1;
  for (size_t d = 0; d < t->dims; d++) {
    const json_node *n = &json->nodes[node + 1 + d]; /* numbers have one node each; anything else is refused */
    if (n->type != JSON_NODE_INT || n->u.i < 0)
      return tensor_invalid(err, t->name, "its shape is not of whole numbers");
    t->shape[d] = (uint64_t)n->u.i;
    if (__builtin_mul_overflow(t->count, t->shape[d], &t->count))
      return tensor_invalid(err, t->name, "its shape is impossible");
  }
  return LODE_OK;
}

static lode_status tensor_read(const json_doc *json, uint32_t object, uint64_t data, uint64_t length, embed_tensor *t,
                               lode_error *err) {
  if (json->nodes[object].type != JSON_NODE_OBJECT)
    return tensor_invalid(err, t->name, "it is not described by an object");
  uint32_t kind = json_get(json, object, STR_LIT("dtype")), range = json_get(json, object, STR_LIT("data_offsets"));
  uint64_t size = 0, bytes;
  if (!kind || json->nodes[kind].type != JSON_NODE_STRING) return tensor_invalid(err, t->name, "there is no dtype");
  t->kind = tensor_kind_of(json->nodes[kind].u.s, &size);
  TRY(tensor_read_shape(json, json_get(json, object, STR_LIT("shape")), t, err));
  if (!range || json->nodes[range].type != JSON_NODE_ARRAY || json->nodes[range].u.count != 2)
    return tensor_invalid(err, t->name, "there are no data_offsets");
  const json_node *begin = &json->nodes[range + 1], *end = begin + 1;
  if (begin->type != JSON_NODE_INT || end->type != JSON_NODE_INT || begin->u.i < 0 || end->u.i < begin->u.i ||
      (uint64_t)end->u.i > length - data)
    return tensor_invalid(err, t->name, "its data_offsets are outside of the file");
  t->offset = data + (uint64_t)begin->u.i;
  t->bytes = (uint64_t)(end->u.i - begin->u.i);
  if (size && (__builtin_mul_overflow(t->count, size, &bytes) || bytes != t->bytes))
    return tensor_invalid(err, t->name, "its shape and its data_offsets disagree");
  return LODE_OK;
}

lode_status embed_safetensors_parse(embed_safetensors *file, lode_str header, uint64_t length, lode_error *err) {
  uint64_t data = 8 + (uint64_t)header.len;
  if (data > length) return err_set(err, LODE_CORRUPT, "safetensors: the header is longer than the file");
  lode_error why = {0};
  json_limits limits = {.max_nodes = 16 * (size_t)EMBED_TENSORS_MAX, .max_depth = 16};
  lode_status st = json_parse(&file->json, header, &limits, &why);
  if (st == LODE_NOMEM) return err_nomem(err);
  if (st != LODE_OK) return err_set(err, LODE_CORRUPT, "safetensors: the header: %s", why.text);
  const json_doc *json = &file->json;
  if (json->nodes[0].type != JSON_NODE_OBJECT || json->nodes[0].u.count > EMBED_TENSORS_MAX)
    return err_set(err, LODE_CORRUPT, "safetensors: the header is not an object of at most %d tensors",
                   EMBED_TENSORS_MAX);
  size_t pairs = json->nodes[0].u.count;
  file->tensors = mem_calloc(pairs + 1, sizeof *file->tensors);
  if (!file->tensors) return err_nomem(err);
  uint32_t i = 1;
  for (size_t n = 0; n < pairs; n++) {
    lode_str name = json->nodes[i].u.s;
    uint32_t value = json->nodes[i].next;
    i = json->nodes[value].next;
    if (str_eq(name, STR_LIT("__metadata__"))) continue;
    embed_tensor *t = &file->tensors[file->count];
    t->name = name;
    TRY(tensor_read(json, value, data, length, t, err));
    file->count++;
  }
  file->length = length;
  return LODE_OK;
}

/* ---- File ---- */

lode_status embed_safetensors_open(embed_safetensors *file, const char *path, lode_error *err) {
  *file = (embed_safetensors){.fd = -1};
  lode_status st = LODE_OK;
  struct stat info;
  unsigned char head[8];
  size_t got;
  file->fd = os_open_regular(path);
  if (file->fd < 0) return err_errno(err, errno, path);
  if (os_api->fstat(file->fd, &info) != 0) {
    st = err_errno(err, errno, path);
    goto done;
  }
  TRY_GOTO(os_read_full(file->fd, head, sizeof head, 0, &got, err));
  uint64_t length = (uint64_t)info.st_size, header = num_le64(head);
  if (got < sizeof head || header > length - 8 || header > EMBED_TENSORS_MAX_HEADER) {
    st = err_set(err, LODE_CORRUPT, "%s is not a safetensors file, or it is cut short", path);
    goto done;
  }
  file->header = mem_alloc((size_t)header + 1);
  if (!file->header) {
    st = err_nomem(err);
    goto done;
  }
  TRY_GOTO(os_read_full(file->fd, file->header, (size_t)header, 8, &got, err));
  if (got < header) {
    st = err_set(err, LODE_CORRUPT, "%s was cut short while it was read", path);
    goto done;
  }
  st = embed_safetensors_parse(file, (lode_str){file->header, (size_t)header}, length, err);
done:
  if (st != LODE_OK) embed_safetensors_close(file);
  return st;
}

void embed_safetensors_close(embed_safetensors *file) {
  if (file->fd >= 0) os_api->close(file->fd);
  json_release(&file->json);
  mem_free(file->tensors);
  mem_free(file->header);
  *file = (embed_safetensors){.fd = -1};
}

const embed_tensor *embed_safetensors_find(const embed_safetensors *file, lode_str name) {
  for (size_t i = 0; i < file->count; i++)
    if (str_eq(file->tensors[i].name, name)) return &file->tensors[i];
  return NULL;
}

static void tensor_to_floats(embed_tensor_kind kind, const unsigned char *bytes, size_t n, float *out) {
  for (size_t i = 0; i < n; i++) {
    uint16_t half;
    uint32_t bits;
    if (kind == EMBED_F32) {
      memcpy(&out[i], bytes + 4 * i, 4);
      continue;
    }
    memcpy(&half, bytes + 2 * i, 2);
    if (kind == EMBED_F16) {
      out[i] = vec_half_to_float(half);
    } else {
      bits = (uint32_t)half << 16;
      memcpy(&out[i], &bits, 4);
    }
  }
}

lode_status embed_safetensors_read(const embed_safetensors *file, const embed_tensor *tensor, uint64_t first, size_t n,
                                   float *out, lode_error *err) {
  if (tensor->kind == EMBED_TENSOR_OTHER)
    return tensor_invalid(err, tensor->name, "only F32, F16 and BF16 are supported");
  if (first > tensor->count || n > tensor->count - first)
    return tensor_invalid(err, tensor->name, "it is smaller than the model needs");
  unsigned char buf[16384];
  size_t size = tensor->kind == EMBED_F32 ? 4 : 2, max = sizeof buf / size;
  for (size_t at = 0; at < n;) {
    size_t some = n - at < max ? n - at : max, got;
    TRY(os_read_full(file->fd, buf, some * size, tensor->offset + (first + at) * size, &got, err));
    if (got < some * size) return tensor_invalid(err, tensor->name, "the file was cut short while it was read");
    tensor_to_floats(tensor->kind, buf, some, out + at);
    at += some;
  }
  return LODE_OK;
}
