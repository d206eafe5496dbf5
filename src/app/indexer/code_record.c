/* SPDX-License-Identifier: Apache-2.0 */
/* code_record.c - chunks and files as records; see code_record.h. */
#include "indexer/code_record.h"
#include "indexer/indexer_tuning.h"

/* ---- Writing chunks ---- */

/* Appends any bytes as valid UTF-8 without NUL. */
static void indexer_record_put_text(strbuf *out, lode_str text) {
  if (utf8_valid(text.data, text.len) && (text.len == 0 || !memchr(text.data, 0, text.len))) {
    strbuf_add(out, text.data, text.len);
    return;
  }
  for (size_t i = 0; i < text.len;) {
    size_t n = utf8_width(text.data + i, text.len - i);
    if (n && text.data[i])
      strbuf_add(out, text.data + i, n);
    else
      strbuf_addstr(out, "\xef\xbf\xbd");
    i += n ? n : 1;
  }
}

/* What the text index sees before the chunk's own text. */
static void indexer_record_put_head(strbuf *out, const indexer_chunk_source *source, const chunk_item *c) {
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

static void indexer_record_put_field(strbuf *out, const char *key, lode_str value) {
  if (!value.len) return;
  strbuf_addf(out, ",\"%s\":", key);
  json_put_string(out, value);
}

/* ---- Definitions of a chunk ---- */

/* Takes the next line of chunk_item.symbols. */
static bool indexer_record_next_symbol(lode_str *rest, indexer_def *def) {
  const char *end = rest->len ? memchr(rest->data, '\n', rest->len) : NULL;
  lode_str line = {rest->data, end ? (size_t)(end - rest->data) : rest->len};
  *def = (indexer_def){0};
  if (!line.len) return false;
  rest->data += end ? line.len + 1 : line.len;
  rest->len -= end ? line.len + 1 : line.len;
  const char *kind = memchr(line.data, ' ', line.len), *stop = line.data + line.len;
  const char *name = kind ? memchr(kind + 1, ' ', (size_t)(stop - kind - 1)) : NULL;
  if (!name) return false;
  for (const char *p = line.data; p < kind && *p >= '0' && *p <= '9'; p++)
    def->line = def->line * 10 + (uint32_t)(*p - '0');
  def->declared = *++kind == '-';
  def->kind = (lode_str){kind + def->declared, (size_t)(name - kind) - def->declared};
  def->name = (lode_str){name + 1, (size_t)(stop - name - 1)};
  return true;
}

static bool indexer_record_is_own(const chunk_item *c, const indexer_def *def) {
  return str_eq(def->name, c->name) && str_eq(def->kind, str_of(lang_kind_name(c->kind)));
}

/* Does a definition of this chunk come before `stop` (an end of its list) with the same kind? */
static bool indexer_record_had_kind(const chunk_item *c, const char *stop, lode_str kind) {
  indexer_def def;
  for (lode_str rest = c->symbols; indexer_record_next_symbol(&rest, &def) && rest.data < stop;)
    if (!indexer_record_is_own(c, &def) && str_eq(def.kind, kind)) return true;
  return false;
}

enum { INDEXER_LIST_DEFS, INDEXER_LIST_AT, INDEXER_LIST_KINDS };

/* One of the lists of the other definitions: their names, places or kinds. */
static void indexer_record_put_list(strbuf *out, const chunk_item *c, int what) {
  static const char *const keys[] = {"defs", "at", "kinds"};
  size_t n = 0;
  indexer_def def;
  for (lode_str rest = c->symbols; indexer_record_next_symbol(&rest, &def);) {
    if (indexer_record_is_own(c, &def) ||
        (what == INDEXER_LIST_KINDS && indexer_record_had_kind(c, rest.data, def.kind)))
      continue;
    if (n++)
      strbuf_addch(out, ',');
    else
      strbuf_addf(out, what == INDEXER_LIST_AT ? ",\"%s\":\"" : ",\"%s\":[", keys[what]);
    if (what == INDEXER_LIST_AT)
      strbuf_addf(out, "%u %s%.*s", def.line, def.declared ? "-" : "", (int)def.kind.len, def.kind.data);
    else
      json_put_string(out, what == INDEXER_LIST_DEFS ? def.name : def.kind);
  }
  if (n) strbuf_addch(out, what == INDEXER_LIST_AT ? '"' : ']');
}

/* Where the chunk's own definition begins, and the definitions that share the chunk with it. */
static void indexer_record_put_defs(strbuf *out, const chunk_item *c) {
  bool head = false, declared = false;
  indexer_def def;
  for (lode_str rest = c->symbols; c->name.len && !head && indexer_record_next_symbol(&rest, &def);)
    if (indexer_record_is_own(c, &def)) {
      head = true;
      declared = def.declared;
    }
  /* headings and data have no list; of a definition that was split, the part without one is the comment before it */
  bool listed = c->kind != LANG_KIND_SECTION && c->kind != LANG_KIND_DATA && c->parts > 1;
  head = head || (c->name.len && !c->symbols.len && c->part == 0 && !listed);
  if (head) strbuf_addf(out, ",\"head\":\"%s\"", declared ? "declared" : "defined");
  indexer_record_put_list(out, c, INDEXER_LIST_DEFS);
  indexer_record_put_list(out, c, INDEXER_LIST_AT);
  indexer_record_put_list(out, c, INDEXER_LIST_KINDS);
}

bool indexer_chunk_view_def(const indexer_chunk_view *view, const json_doc *json, size_t i, const char **at,
                            indexer_def *def) {
  const char *end = view->at.data + view->at.len;
  uint32_t node = view->defs ? view->defs + 1 + (uint32_t)i : 0;
  memset(def, 0, sizeof *def);
  if (!node || node >= json->nodes[view->defs].next || json->nodes[node].type != JSON_NODE_STRING) return false;
  def->name = json->nodes[node].u.s;
  const char *p = *at ? *at : view->at.data;
  while (p < end && *p >= '0' && *p <= '9' && def->line < UINT32_MAX / 16)
    def->line = def->line * 10 + (uint32_t)(*p++ - '0');
  if (p < end && *p == ' ') p++;
  def->declared = p < end && *p == '-';
  p += def->declared;
  def->kind.data = p;
  while (p < end && *p != ',') p++;
  def->kind.len = (size_t)(p - def->kind.data);
  *at = p < end ? p + 1 : end;
  if (def->line < view->first || def->line > view->last) def->line = view->first;
  return true;
}

static lode_status indexer_record_finish(strbuf *buf, mem_arena *arena, lode_str *out, lode_error *err) {
  char *copy = buf->failed ? NULL : mem_arena_copy(arena, buf->data ? buf->data : "", buf->len);
  if (!copy) return err_nomem(err);
  *out = (lode_str){copy, buf->len};
  return LODE_OK;
}

lode_status indexer_record_make(const indexer_chunk_source *source, size_t i, mem_arena *arena, indexer_record *out,
                                lode_error *err) {
  const chunk_item *c = &source->chunks->items[i];
  uint8_t digest[INDEXER_DIGEST_BYTES];
  strbuf buf = {0};
  lode_status st;
  memset(out, 0, sizeof *out);
  TRY_GOTO(indexer_chunk_id(&buf, source->path, NULL, i, err));
  buf.len--;
  TRY_GOTO(indexer_record_finish(&buf, arena, &out->id, err));
  buf.len = 0;
  indexer_record_put_head(&buf, source, c);
  size_t offset = buf.len;
  indexer_record_put_text(&buf, (lode_str){source->text.data + c->start, c->end - c->start});
  TRY_GOTO(indexer_record_finish(&buf, arena, &out->document, err));
  indexer_chunk_view view = {.path = source->path,
                             .language = str_of(source->language->name),
                             .kind = str_of(lang_kind_name(c->kind)),
                             .name = c->name,
                             .parents = c->parents,
                             .offset = offset};
  buf.len = 0;
  strbuf_add(&buf, source->path.data, source->path.len);
  strbuf_addch(&buf, '\n');
  size_t path_bytes = buf.len;
  TRY_GOTO(indexer_embed_text(&view, out->document, &buf, err));
  TRY_GOTO(indexer_record_finish(&buf, arena, &out->embed, err));
  indexer_digest_of(out->embed.data + path_bytes, out->embed.len - path_bytes, digest);
  indexer_digest_hex(digest, out->hash);
  buf.len = 0;
  strbuf_addstr(&buf, "{\"path\":");
  json_put_string(&buf, source->path);
  indexer_record_put_field(&buf, "language", view.language);
  indexer_record_put_field(&buf, "kind", view.kind);
  indexer_record_put_field(&buf, "name", c->name);
  indexer_record_put_field(&buf, "parents", c->parents);
  indexer_record_put_defs(&buf, c);
  strbuf_addf(&buf, ",\"span\":\"%u-%u/%u@%zu\",\"hash\":\"%s\"}", c->start_line, c->end_line, c->line, offset,
              out->hash);
  TRY_GOTO(indexer_record_finish(&buf, arena, &out->metadata, err));
done:
  strbuf_release(&buf);
  return st;
}

lode_status indexer_outline_make(const indexer_chunk_source *source, strbuf *out, lode_error *err) {
  strbuf_add(out, source->path.data, source->path.len);
  strbuf_addch(out, '\n');
  for (size_t i = 0; i < source->chunks->n && out->len < INDEXER_OUTLINE_BYTES; i++) {
    const chunk_item *c = &source->chunks->items[i];
    if (c->part > 0) continue;
    if (c->name.len) {
      strbuf_add(out, c->name.data, c->name.len);
      strbuf_addch(out, '\n');
    }
    indexer_def def;
    for (lode_str rest = c->symbols; indexer_record_next_symbol(&rest, &def);)
      if (!indexer_record_is_own(c, &def)) {
        strbuf_add(out, def.name.data, def.name.len);
        strbuf_addch(out, '\n');
      }
  }
  return out->failed ? err_nomem(err) : LODE_OK;
}

/* ---- Symbols ---- */

void indexer_symbols_put(strbuf *out, const lang_info *language, lode_str table) {
  strbuf_addstr(out, "{\"language\":");
  json_put_string(out, str_of(language->name));
  indexer_record_put_field(out, "table", table);
  strbuf_addch(out, '}');
}

static lode_str indexer_record_json_text(const json_doc *json, const char *key) {
  uint32_t node = json_get(json, 0, str_of(key));
  return node && json->nodes[node].type == JSON_NODE_STRING ? json->nodes[node].u.s : (lode_str){"", 0};
}

lode_status indexer_symbols_parse(lode_str metadata, json_doc *json, lode_str *table, const lang_info **language) {
  lode_status st = metadata.data ? json_parse(json, metadata, NULL, NULL) : LODE_CORRUPT;
  if (st == LODE_NOMEM) return st;
  if (st != LODE_OK || json->nodes[0].type != JSON_NODE_OBJECT) return LODE_CORRUPT;
  *table = indexer_record_json_text(json, "table");
  *language = lang_find(indexer_record_json_text(json, "language"));
  return *language ? LODE_OK : LODE_CORRUPT;
}

/* ---- Reading chunks ---- */

/* FIRST-LAST/LINE@OFFSET */
static bool indexer_record_parse_span(lode_str span, indexer_chunk_view *view) {
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

lode_status indexer_chunk_view_parse(lode_str metadata, json_doc *json, indexer_chunk_view *view, lode_error *err) {
  memset(view, 0, sizeof *view);
  lode_status st = metadata.data ? json_parse(json, metadata, NULL, err) : LODE_INVALID;
  if (st == LODE_NOMEM) return st;
  if (st != LODE_OK || json->nodes[0].type != JSON_NODE_OBJECT ||
      !indexer_record_parse_span(indexer_record_json_text(json, "span"), view))
    return err_set(err, LODE_CORRUPT,
                   "a record of the collection \"%s\" was not written by lode index: "
                   "`lode index --force` rebuilds it",
                   INDEXER_COLL_CODE);
  view->path = indexer_record_json_text(json, "path");
  view->language = indexer_record_json_text(json, "language");
  view->kind = indexer_record_json_text(json, "kind");
  view->name = indexer_record_json_text(json, "name");
  view->parents = indexer_record_json_text(json, "parents");
  view->hash = indexer_record_json_text(json, "hash");
  view->head = indexer_record_json_text(json, "head");
  view->at = indexer_record_json_text(json, "at");
  uint32_t defs = json_get(json, 0, STR_LIT("defs"));
  if (defs && json->nodes[defs].type == JSON_NODE_ARRAY) view->defs = defs;
  return LODE_OK;
}

/* Names come first, on their own line, so that they weigh more than a word of the body. */
lode_status indexer_embed_text(const indexer_chunk_view *view, lode_str document, strbuf *out, lode_error *err) {
  size_t offset = view->offset < document.len ? view->offset : document.len;
  lode_str body = {document.data + offset, document.len - offset};
  if (body.len > INDEXER_EMBED_BODY_BYTES) {
    body.len = INDEXER_EMBED_BODY_BYTES;
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

void indexer_file_state_put(strbuf *out, const indexer_file_state *s, const char *language) {
  char hash[INDEXER_DIGEST_HEX + 1];
  indexer_digest_hex(s->hash, hash);
  strbuf_addstr(out, "{\"language\":");
  json_put_string(out, str_of(language));
  strbuf_addf(out,
              ",\"size\":%lld,\"mtime\":%lld,\"ctime\":%lld,\"inode\":%lld,\"hash\":\"%s\",\"chunks\":%u,\"at\":%lld",
              (long long)s->size, (long long)s->mtime_ns, (long long)s->ctime_ns, (long long)s->inode, hash, s->chunks,
              (long long)s->at_ms);
  if (s->skip != SCAN_SKIP_NONE) strbuf_addf(out, ",\"skip\":\"%s\"", scan_skip_name(s->skip));
  if (s->masked) strbuf_addf(out, ",\"masked\":%u", s->masked);
  if (s->version.text[0])
    strbuf_addf(out, ",\"version\":\"%s\"%s", s->version.text, s->symbols ? ",\"symbols\":true" : "");
  strbuf_addch(out, '}');
}

static bool indexer_record_json_number(const json_doc *json, const char *key, int64_t *out) {
  uint32_t node = json_get(json, 0, str_of(key));
  if (!node || json->nodes[node].type != JSON_NODE_INT) return false;
  *out = json->nodes[node].u.i;
  return true;
}

bool indexer_file_state_parse(lode_str metadata, json_doc *json, indexer_file_state *s) {
  int64_t size, inode, at, chunks, masked;
  memset(s, 0, sizeof *s);
  if (!metadata.data || json_parse(json, metadata, NULL, NULL) != LODE_OK || json->nodes[0].type != JSON_NODE_OBJECT)
    return false;
  lode_str hash = indexer_record_json_text(json, "hash");
  if (!indexer_record_json_number(json, "size", &size) || !indexer_record_json_number(json, "mtime", &s->mtime_ns) ||
      !indexer_record_json_number(json, "inode", &inode) || !indexer_record_json_number(json, "at", &at) ||
      !indexer_record_json_number(json, "chunks", &chunks) || hash.len != INDEXER_DIGEST_HEX || chunks < 0 ||
      chunks > UINT32_MAX)
    return false;
  for (size_t i = 0; i < INDEXER_DIGEST_BYTES; i++) {
    int high = files_hex_value(hash.data[2 * i]), low = files_hex_value(hash.data[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    s->hash[i] = (uint8_t)(high * 16 + low);
  }
  if (!indexer_record_json_number(json, "ctime", &s->ctime_ns)) s->ctime_ns = 0;
  s->size = (uint64_t)size;
  s->inode = (uint64_t)inode;
  s->at_ms = (uint64_t)at;
  s->chunks = (uint32_t)chunks;
  s->masked =
      indexer_record_json_number(json, "masked", &masked) && masked > 0 && masked <= UINT32_MAX ? (uint32_t)masked : 0;
  s->skip = scan_skip_parse(indexer_record_json_text(json, "skip"));
  indexer_version_parse(&s->version, indexer_record_json_text(json, "version"));
  s->symbols = json_get(json, 0, STR_LIT("symbols")) != 0;
  return true;
}
