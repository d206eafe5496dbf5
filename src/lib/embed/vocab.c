/* SPDX-License-Identifier: Apache-2.0 */
/* vocab.c - see vocab.h. */
#include "embed/vocab.h"

#include "base/byteorder.h"
#include "base/json.h"

/* ---- tokenizer.json ---- */

static const json_node *vocab_member(const json_doc *json, uint32_t object, const char *key, json_node_type type) {
  if (json->nodes[object].type != JSON_NODE_OBJECT) return NULL;
  uint32_t i = json_get(json, object, str_of(key));
  return i && json->nodes[i].type == type ? &json->nodes[i] : NULL;
}

static uint32_t vocab_object_at(const json_doc *json, uint32_t object, const char *key) {
  const json_node *n = vocab_member(json, object, key, JSON_NODE_OBJECT);
  return n ? (uint32_t)(n - json->nodes) : 0;
}

static bool vocab_is_kind(const json_doc *json, uint32_t object, const char *kind) {
  const json_node *n = object ? vocab_member(json, object, "type", JSON_NODE_STRING) : NULL;
  return n && str_eq(n->u.s, str_of(kind));
}

/* true, false, or `otherwise` if it is absent or null */
static bool vocab_flag(const json_doc *json, uint32_t object, const char *key, bool otherwise) {
  if (vocab_member(json, object, key, JSON_NODE_TRUE)) return true;
  if (vocab_member(json, object, key, JSON_NODE_FALSE)) return false;
  return otherwise;
}

static lode_status vocab_find(const embed_vocab *v, const char *text, uint32_t *id, lode_error *err) {
  for (size_t i = v->count; i-- > 0;) {
    if (str_eq(v->tokens[i], str_of(text))) {
      *id = (uint32_t)i;
      return LODE_OK;
    }
  }
  return err_set(err, LODE_CORRUPT, "the vocabulary has no token %s", text);
}

static lode_status vocab_set_token(embed_vocab *v, lode_str text, const json_node *id, lode_error *err) {
  if (id->type != JSON_NODE_INT || id->u.i < 0 || (uint64_t)id->u.i >= v->count)
    return err_set(err, LODE_CORRUPT, "tokenizer.json: a token's id is not a number below %zu", v->count);
  lode_str *slot = &v->tokens[id->u.i];
  if (slot->data && !str_eq(*slot, text))
    return err_set(err, LODE_CORRUPT, "tokenizer.json: two tokens have the id %lld", (long long)id->u.i);
  *slot = text;
  return LODE_OK;
}

/* Reads the vocabulary and the added tokens, which are the special ones; their ids may be past the vocabulary. */
static lode_status vocab_read_tokens(embed_vocab *v, const json_doc *json, uint32_t vocab, const json_node *added,
                                     lode_error *err) {
  v->count = json->nodes[vocab].u.count + (added ? added->u.count : 0);
  if (v->count > EMBED_VOCAB_MAX)
    return err_set(err, LODE_CORRUPT, "tokenizer.json: %zu tokens are too many", v->count);
  v->tokens = mem_calloc(v->count ? v->count : 1, sizeof *v->tokens);
  if (!v->tokens) return err_nomem(err);
  uint32_t i = vocab + 1;
  for (size_t n = json->nodes[vocab].u.count; n > 0; n--) {
    uint32_t value = json->nodes[i].next;
    TRY(vocab_set_token(v, json->nodes[i].u.s, &json->nodes[value], err));
    i = json->nodes[value].next;
  }
  if (!added) return LODE_OK;
  i = (uint32_t)(added - json->nodes) + 1;
  for (size_t n = added->u.count; n > 0; n--, i = json->nodes[i].next) {
    const json_node *id = vocab_member(json, i, "id", JSON_NODE_INT);
    const json_node *text = vocab_member(json, i, "content", JSON_NODE_STRING);
    if (!id || !text || text->u.s.len == 0)
      return err_set(err, LODE_CORRUPT, "tokenizer.json: an added token without id or content");
    TRY(vocab_set_token(v, text->u.s, id, err));
    if (v->n_specials == EMBED_VOCAB_MAX_SPECIALS)
      return err_set(err, LODE_UNSUPPORTED, "tokenizer.json: more than %d added tokens", EMBED_VOCAB_MAX_SPECIALS);
    v->specials[v->n_specials++] = (uint32_t)id->u.i;
  }
  return LODE_OK;
}

/* Removes unused places at the end: added tokens that are part of the vocabulary were counted twice. */
static lode_status vocab_close_gaps(embed_vocab *v, lode_error *err) {
  while (v->count > 0 && !v->tokens[v->count - 1].data) v->count--;
  for (size_t i = 0; i < v->count; i++)
    if (!v->tokens[i].data) return err_set(err, LODE_CORRUPT, "tokenizer.json: no token has the id %zu", i);
  return LODE_OK;
}

static lode_status vocab_read_json(embed_vocab *v, const json_doc *json, lode_error *err) {
  uint32_t model = vocab_object_at(json, 0, "model"), normal = vocab_object_at(json, 0, "normalizer");
  uint32_t pre = vocab_object_at(json, 0, "pre_tokenizer");
  if (!model || !normal || !pre)
    return err_set(err, LODE_CORRUPT, "tokenizer.json: model, normalizer and pre_tokenizer are needed");
  /* older files do not name the type of the model */
  if ((vocab_member(json, model, "type", JSON_NODE_STRING) && !vocab_is_kind(json, model, "WordPiece")) ||
      !vocab_is_kind(json, normal, "BertNormalizer") || !vocab_is_kind(json, pre, "BertPreTokenizer"))
    return err_set(err, LODE_UNSUPPORTED, "tokenizer.json: only BERT's WordPiece tokenizer is supported");
  const json_node *prefix = vocab_member(json, model, "continuing_subword_prefix", JSON_NODE_STRING);
  if (prefix && !str_eq(prefix->u.s, STR_LIT("##")))
    return err_set(err, LODE_UNSUPPORTED, "tokenizer.json: continuing_subword_prefix is not ##");
  uint32_t vocab = vocab_object_at(json, model, "vocab");
  if (!vocab) return err_set(err, LODE_CORRUPT, "tokenizer.json: there is no vocabulary");
  TRY(vocab_read_tokens(v, json, vocab, vocab_member(json, 0, "added_tokens", JSON_NODE_ARRAY), err));
  TRY(vocab_close_gaps(v, err));

  embed_wordpiece_settings *s = &v->settings;
  s->clean_text = vocab_flag(json, normal, "clean_text", true);
  s->chinese_chars = vocab_flag(json, normal, "handle_chinese_chars", true);
  s->lowercase = vocab_flag(json, normal, "lowercase", true);
  s->strip_accents = vocab_flag(json, normal, "strip_accents", s->lowercase);
  const json_node *max_chars = vocab_member(json, model, "max_input_chars_per_word", JSON_NODE_INT);
  s->max_word_chars = !max_chars                                                    ? 100
                      : max_chars->u.i < 1 || max_chars->u.i > EMBED_MAX_WORD_CHARS ? 0
                                                                                    : (uint32_t)max_chars->u.i;
  const json_node *unknown = vocab_member(json, model, "unk_token", JSON_NODE_STRING);
  if (unknown && !str_eq(unknown->u.s, STR_LIT("[UNK]")))
    return err_set(err, LODE_UNSUPPORTED, "tokenizer.json: the unknown token is not [UNK]");
  TRY(vocab_find(v, "[UNK]", &s->unknown, err));
  TRY(vocab_find(v, "[CLS]", &s->first, err));
  return vocab_find(v, "[SEP]", &s->last, err);
}

lode_status embed_vocab_from_json(embed_vocab *vocab, lode_str text, lode_error *err) {
  *vocab = (embed_vocab){0};
  if (text.len > EMBED_TOKENIZER_MAX_BYTES)
    return err_set(err, LODE_LIMIT, "tokenizer.json has %zu bytes; the most is %u", text.len,
                   EMBED_TOKENIZER_MAX_BYTES);
  json_doc *json = mem_calloc(1, sizeof *json);
  if (!json) return err_nomem(err);
  vocab->owned = json;
  lode_error why = {0};
  json_limits limits = {.max_nodes = 4 * (size_t)EMBED_VOCAB_MAX, .max_depth = 64};
  lode_status st = json_parse(json, text, &limits, &why);
  if (st == LODE_NOMEM)
    st = err_nomem(err);
  else if (st != LODE_OK)
    st = err_set(err, LODE_CORRUPT, "tokenizer.json: %s", why.text);
  else
    st = vocab_read_json(vocab, json, err);
  if (st != LODE_OK) embed_vocab_release(vocab);
  return st;
}

/* ---- vocab.txt ---- */

lode_status embed_vocab_from_lines(embed_vocab *vocab, lode_str text, bool lowercase, lode_error *err) {
  static const char *const specials[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  *vocab = (embed_vocab){.settings = {.clean_text = true,
                                      .chinese_chars = true,
                                      .strip_accents = lowercase,
                                      .lowercase = lowercase,
                                      .max_word_chars = 100}};
  lode_status st = LODE_OK;
  size_t cap = 0;
  if (text.len > EMBED_TOKENIZER_MAX_BYTES) return err_set(err, LODE_LIMIT, "vocab.txt has %zu bytes", text.len);
  for (size_t at = 0; at < text.len;) {
    const char *end = memchr(text.data + at, '\n', text.len - at);
    size_t len = end ? (size_t)(end - text.data) - at : text.len - at;
    lode_str line = {text.data + at, len};
    if (line.len && line.data[line.len - 1] == '\r') line.len--;
    at += len + 1;
    if (vocab->count == EMBED_VOCAB_MAX) {
      st = err_set(err, LODE_CORRUPT, "vocab.txt has more than %u lines", EMBED_VOCAB_MAX);
      goto done;
    }
    if (!mem_grow(&vocab->tokens, &cap, vocab->count + 1, sizeof *vocab->tokens)) {
      st = err_nomem(err);
      goto done;
    }
    vocab->tokens[vocab->count++] = line;
  }
  TRY_GOTO(vocab_find(vocab, "[UNK]", &vocab->settings.unknown, err));
  TRY_GOTO(vocab_find(vocab, "[CLS]", &vocab->settings.first, err));
  TRY_GOTO(vocab_find(vocab, "[SEP]", &vocab->settings.last, err));
  for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
    if (vocab_find(vocab, specials[i], &vocab->specials[vocab->n_specials], NULL) == LODE_OK) vocab->n_specials++;
done:
  if (st != LODE_OK) embed_vocab_release(vocab);
  return st;
}

/* ---- Packs ---- */

void embed_vocab_put(const embed_vocab *v, strbuf *out) {
  const embed_wordpiece_settings *s = &v->settings;
  strbuf_add_le32(out, (uint32_t)v->count);
  strbuf_add_le32(out, (s->clean_text ? 1u : 0) | (s->chinese_chars ? 2u : 0) | (s->strip_accents ? 4u : 0) |
                           (s->lowercase ? 8u : 0));
  strbuf_add_le32(out, s->unknown);
  strbuf_add_le32(out, s->first);
  strbuf_add_le32(out, s->last);
  strbuf_add_le32(out, s->max_word_chars);
  strbuf_add_le32(out, (uint32_t)v->n_specials);
  for (size_t i = 0; i < v->n_specials; i++) strbuf_add_le32(out, v->specials[i]);
  for (size_t i = 0; i < v->count; i++) strbuf_addch(out, (char)(unsigned char)v->tokens[i].len);
  for (size_t i = 0; i < v->count; i++) strbuf_add(out, v->tokens[i].data, v->tokens[i].len);
}

lode_status embed_vocab_from_pack(embed_vocab *v, lode_str bytes, lode_error *err) {
  *v = (embed_vocab){0};
  size_t at = 28;
  if (bytes.len < at) return err_set(err, LODE_CORRUPT, "the vocabulary of a pack is cut short");
  size_t count = num_le32(bytes.data), flags = num_le32(bytes.data + 4);
  size_t n_specials = num_le32(bytes.data + 24);
  if (count > EMBED_VOCAB_MAX || n_specials > EMBED_VOCAB_MAX_SPECIALS || bytes.len - at < 4 * n_specials + count)
    return err_set(err, LODE_CORRUPT, "the vocabulary of a pack is cut short");
  v->settings = (embed_wordpiece_settings){
      .clean_text = flags & 1,
      .chinese_chars = flags & 2,
      .strip_accents = flags & 4,
      .lowercase = flags & 8,
      .unknown = num_le32(bytes.data + 8),
      .first = num_le32(bytes.data + 12),
      .last = num_le32(bytes.data + 16),
      .max_word_chars = num_le32(bytes.data + 20),
  };
  for (size_t i = 0; i < n_specials; i++, at += 4) v->specials[i] = num_le32(bytes.data + at);
  v->n_specials = n_specials;
  v->tokens = mem_calloc(count ? count : 1, sizeof *v->tokens);
  if (!v->tokens) return err_nomem(err);
  v->count = count;
  const unsigned char *lengths = (const unsigned char *)bytes.data + at;
  at += count;
  for (size_t i = 0; i < count; i++) {
    if (lengths[i] > bytes.len - at) {
      embed_vocab_release(v);
      return err_set(err, LODE_CORRUPT, "the vocabulary of a pack is cut short");
    }
    v->tokens[i] = (lode_str){bytes.data + at, lengths[i]};
    at += lengths[i];
  }
  return LODE_OK;
}

void embed_vocab_release(embed_vocab *vocab) {
  if (vocab->owned) json_release(vocab->owned);
  mem_free(vocab->owned);
  mem_free(vocab->tokens);
  *vocab = (embed_vocab){0};
}
