/* record.c - chunks and files as records. See record.h. */
#include "record.h"

#include <stdio.h>
#include <stdlib.h>

enum {
  EMBED_BODY_BYTES = 1500, /* of a chunk's own text: what stands behind hardly changes the vector */
  OUTLINE_BYTES = 16384,
};

/* ---- Paths ---- */

static const char hex_digits[] = "0123456789abcdef";

static int hex_value(char c) {
  const char *p = c ? strchr(hex_digits, c) : NULL;
  return p ? (int)(p - hex_digits) : -1;
}

static bool is_escape(const char *p, size_t left) {
  return left >= 4 && p[0] == '\\' && p[1] == 'x' && hex_value(p[2]) >= 0 && hex_value(p[3]) >= 0;
}

void lode__path_show(strbuf *out, lode_str path) {
  for (size_t i = 0; i < path.len;) {
    size_t n = utf8_width(path.data + i, path.len - i);
    unsigned char c = (unsigned char)path.data[i];
    bool plain = n > 0 && c >= 0x20 && c != 0x7f && !is_escape(path.data + i, path.len - i);
    if (plain) {
      strbuf_add(out, path.data + i, n);
      i += n;
    } else {
      char text[4] = {'\\', 'x', hex_digits[c >> 4], hex_digits[c & 15]};
      strbuf_add(out, text, sizeof text);
      i++;
    }
  }
}

void lode__path_bytes(strbuf *out, lode_str shown) {
  for (size_t i = 0; i < shown.len;) {
    if (is_escape(shown.data + i, shown.len - i)) {
      strbuf_addch(out, (char)(hex_value(shown.data[i + 2]) * 16 + hex_value(shown.data[i + 3])));
      i += 4;
    } else {
      strbuf_addch(out, shown.data[i++]);
    }
  }
}

/* ---- Writing chunks ---- */

/* Valid UTF-8 without NUL, of any bytes. */
static void put_text(strbuf *out, lode_str text) {
  if (utf8_valid(text.data, text.len) && (text.len == 0 || !memchr(text.data, 0, text.len))) {
    strbuf_add(out, text.data, text.len);
    return;
  }
  for (size_t i = 0; i < text.len;) {
    size_t n = utf8_width(text.data + i, text.len - i);
    if (n && text.data[i]) strbuf_add(out, text.data + i, n);
    else strbuf_addstr(out, "\xef\xbf\xbd");
    i += n ? n : 1;
  }
}

/* What the text index sees before the chunk's own text. */
static void put_head(strbuf *out, const lode__chunk_source *source, const lode__chunk *c) {
  strbuf_add(out, source->path.data, source->path.len);
  strbuf_addch(out, '\n');
  if (c->parents.len || c->name.len) {
    strbuf_add(out, c->parents.data, c->parents.len);
    if (c->parents.len && c->name.len) strbuf_addch(out, ' ');
    strbuf_add(out, c->name.data, c->name.len);
    strbuf_addch(out, '\n');
  }
  if (c->part > 0 && c->signature.len) {
    strbuf_add(out, c->signature.data, c->signature.len);
    strbuf_addch(out, '\n');
  }
  if (c->skeleton.len) {
    strbuf_add(out, c->skeleton.data, c->skeleton.len);
    strbuf_addch(out, '\n');
  }
  strbuf_addch(out, '\n');
}

static void put_field(strbuf *out, const char *key, lode_str value) {
  if (!value.len) return;
  strbuf_addf(out, ",\"%s\":", key);
  json_put_string(out, value);
}

static lode_status finish(strbuf *buf, mem_arena *arena, lode_str *out, lode_error *err) {
  char *copy = buf->failed ? NULL : mem_arena_copy(arena, buf->data ? buf->data : "", buf->len);
  if (!copy) return err_nomem(err);
  *out = (lode_str){copy, buf->len};
  return LODE_OK;
}

lode_status lode__chunk_id(strbuf *buf, lode_str path, size_t i, lode_error *err) {
  buf->len = 0;
  strbuf_add(buf, path.data, path.len);
  strbuf_addf(buf, "#%zu", i);
  strbuf_addch(buf, '\0');
  return buf->failed ? err_nomem(err) : LODE_OK;
}

lode_status lode__chunk_record_make(const lode__chunk_source *source, size_t i, mem_arena *arena, lode__chunk_record *out,
                                    lode_error *err) {
  const lode__chunk *c = &source->chunks->items[i];
  uint8_t digest[LODE__DIGEST_BYTES];
  strbuf buf = {0};
  lode_status st;
  memset(out, 0, sizeof *out);
  TRY_GOTO(lode__chunk_id(&buf, source->path, i, err));
  buf.len--;
  TRY_GOTO(finish(&buf, arena, &out->id, err));
  buf.len = 0;
  put_head(&buf, source, c);
  size_t offset = buf.len;
  put_text(&buf, (lode_str){source->text.data + c->start, c->end - c->start});
  TRY_GOTO(finish(&buf, arena, &out->document, err));
  lode__chunk_view view = {.path = source->path, .language = str_of(source->language->name),
                           .kind = str_of(lode__kind_name(c->kind)), .name = c->name, .parents = c->parents, .offset = offset};
  buf.len = 0;
  strbuf_add(&buf, source->path.data, source->path.len);
  strbuf_addch(&buf, '\n');
  size_t path_bytes = buf.len;
  TRY_GOTO(lode__embed_text(&view, out->document, &buf, err));
  TRY_GOTO(finish(&buf, arena, &out->embed, err));
  lode__digest_of(out->embed.data + path_bytes, out->embed.len - path_bytes, digest);
  lode__digest_hex(digest, out->hash);
  buf.len = 0;
  strbuf_addstr(&buf, "{\"path\":");
  json_put_string(&buf, source->path);
  put_field(&buf, "language", view.language);
  put_field(&buf, "kind", view.kind);
  put_field(&buf, "name", c->name);
  put_field(&buf, "parents", c->parents);
  strbuf_addf(&buf, ",\"span\":\"%u-%u/%u@%zu\",\"hash\":\"%s\"}", c->start_line, c->end_line, c->line, offset, out->hash);
  TRY_GOTO(finish(&buf, arena, &out->metadata, err));
done:
  strbuf_release(&buf);
  return st;
}

lode_status lode__outline_make(const lode__chunk_source *source, strbuf *out, lode_error *err) {
  strbuf_add(out, source->path.data, source->path.len);
  strbuf_addch(out, '\n');
  for (size_t i = 0; i < source->chunks->n && out->len < OUTLINE_BYTES; i++) {
    const lode__chunk *c = &source->chunks->items[i];
    if (c->part > 0) continue;
    if (c->name.len) {
      strbuf_add(out, c->name.data, c->name.len);
      strbuf_addch(out, '\n');
    }
    if (c->symbols.len) {
      strbuf_add(out, c->symbols.data, c->symbols.len);
      strbuf_addch(out, '\n');
    }
  }
  return out->failed ? err_nomem(err) : LODE_OK;
}

/* ---- Reading chunks ---- */

static lode_str text_of(const json_doc *json, const char *key) {
  uint32_t node = json_get(json, 0, str_of(key));
  return node && json->nodes[node].type == JSON_NODE_STRING ? json->nodes[node].u.s : (lode_str){"", 0};
}

/* FIRST-LAST/LINE@OFFSET */
static bool parse_span(lode_str span, lode__chunk_view *view) {
  unsigned long long n[4] = {0};
  static const char ends[] = "-/@";
  size_t at = 0;
  for (size_t i = 0; i < span.len; i++) {
    if (span.data[i] >= '0' && span.data[i] <= '9') {
      n[at] = n[at] * 10 + (unsigned long long)(span.data[i] - '0');
      if (n[at] > UINT32_MAX) return false;
    } else if (at < 3 && span.data[i] == ends[at]) {
      at++;
    } else {
      return false;
    }
  }
  view->first = (uint32_t)n[0];
  view->last = (uint32_t)n[1];
  view->line = (uint32_t)n[2];
  view->offset = (size_t)n[3];
  return at == 3;
}

lode_status lode__chunk_view_of(lode_str metadata, json_doc *json, lode__chunk_view *view, lode_error *err) {
  memset(view, 0, sizeof *view);
  lode_status st = metadata.data ? json_parse(json, metadata, NULL, err) : LODE_INVALID;
  if (st == LODE_NOMEM) return st;
  if (st != LODE_OK || json->nodes[0].type != JSON_NODE_OBJECT || !parse_span(text_of(json, "span"), view))
    return err_set(err, LODE_CORRUPT, "a record of the collection \"%s\" was not written by lode index: `lode index --force` makes it anew",
                      LODE__CODE);
  view->path = text_of(json, "path");
  view->language = text_of(json, "language");
  view->kind = text_of(json, "kind");
  view->name = text_of(json, "name");
  view->parents = text_of(json, "parents");
  view->hash = text_of(json, "hash");
  return LODE_OK;
}

/* Names stand first and alone, so that they weigh more than one word of the body. */
lode_status lode__embed_text(const lode__chunk_view *view, lode_str document, strbuf *out, lode_error *err) {
  size_t offset = view->offset < document.len ? view->offset : document.len;
  lode_str body = {document.data + offset, document.len - offset};
  if (body.len > EMBED_BODY_BYTES) {
    body.len = EMBED_BODY_BYTES;
    while (body.len && ((unsigned char)body.data[body.len] & 0xc0) == 0x80) body.len--;
  }
  if (view->name.len) {
    if (view->parents.len) {
      strbuf_add(out, view->parents.data, view->parents.len);
      strbuf_addch(out, ' ');
    }
    strbuf_add(out, view->name.data, view->name.len);
    strbuf_addch(out, '\n');
  }
  strbuf_add(out, body.data, body.len);
  return out->failed ? err_nomem(err) : LODE_OK;
}

/* ---- Files ---- */

void lode__file_state_put(strbuf *out, const lode__file_state *s, const char *language) {
  char hash[LODE__DIGEST_HEX + 1];
  lode__digest_hex(s->hash, hash);
  strbuf_addstr(out, "{\"language\":");
  json_put_string(out, str_of(language));
  strbuf_addf(out, ",\"size\":%lld,\"mtime\":%lld,\"ctime\":%lld,\"inode\":%lld,\"hash\":\"%s\",\"chunks\":%u,\"at\":%lld", (long long)s->size,
                 (long long)s->mtime_ns, (long long)s->ctime_ns, (long long)s->inode, hash, s->chunks, (long long)s->at_ms);
  if (s->skip != LODE__SKIP_NONE) strbuf_addf(out, ",\"skip\":\"%s\"", lode__skip_name(s->skip));
  if (s->masked) strbuf_addf(out, ",\"masked\":%u", s->masked);
  strbuf_addch(out, '}');
}

static bool number_of(const json_doc *json, const char *key, int64_t *out) {
  uint32_t node = json_get(json, 0, str_of(key));
  if (!node || json->nodes[node].type != JSON_NODE_INT) return false;
  *out = json->nodes[node].u.i;
  return true;
}

bool lode__file_state_of(lode_str metadata, json_doc *json, lode__file_state *s) {
  int64_t size, inode, at, chunks, masked;
  memset(s, 0, sizeof *s);
  if (!metadata.data || json_parse(json, metadata, NULL, NULL) != LODE_OK || json->nodes[0].type != JSON_NODE_OBJECT)
    return false;
  lode_str hash = text_of(json, "hash");
  if (!number_of(json, "size", &size) || !number_of(json, "mtime", &s->mtime_ns) || !number_of(json, "inode", &inode) ||
      !number_of(json, "at", &at) || !number_of(json, "chunks", &chunks) || hash.len != LODE__DIGEST_HEX || chunks < 0 ||
      chunks > UINT32_MAX)
    return false;
  for (size_t i = 0; i < LODE__DIGEST_BYTES; i++) {
    int high = hex_value(hash.data[2 * i]), low = hex_value(hash.data[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    s->hash[i] = (uint8_t)(high * 16 + low);
  }
  if (!number_of(json, "ctime", &s->ctime_ns)) s->ctime_ns = 0;
  s->size = (uint64_t)size;
  s->inode = (uint64_t)inode;
  s->at_ms = (uint64_t)at;
  s->chunks = (uint32_t)chunks;
  s->masked = number_of(json, "masked", &masked) && masked > 0 && masked <= UINT32_MAX ? (uint32_t)masked : 0;
  s->skip = lode__skip_of(text_of(json, "skip"));
  return true;
}
