/* SPDX-License-Identifier: Apache-2.0 */
/* op_symbols_read.c - `lode read`: lines of a file, or a definition, as the file is now, or as it was indexed. */
#include "commands/op_symbols.h"

#include "ops/op_row.h"
#include "scan/language_lex.h"
#include "search/indexed_file.h"
#include "table/op_args_symbols.h"

enum {
  READ_MAX_LINE = 200,    /* of a use's text, in bytes */
  READ_SPANS_LINE = 4000, /* bytes of a line that are told as tokens */
};

typedef struct read_place {
  strbuf path; /* escaped */
  uint32_t first, last;
  lode_str kind, name;
} read_place;

static const char *read_reason(scan_skip skip) {
  return skip == SCAN_SKIP_UNREADABLE ? "there is no such file, or it cannot be read" : scan_skip_name(skip);
}

/* Reads and judges the file at `path`, which is not escaped. */
static lode_status read_file(op_source *source, lode_str path, scan_entry *entry, lode_error *err) {
  scan_options options = indexer_scan_options(&source->project->config);
  strbuf *text = &source->text;
  uint32_t masked;
  if (!source->root) TRY(scan_root_open(source->project->root, &options, &source->root, err));
  TRY(scan_root_classify(source->root, path, entry, err));
  if (entry->skip == SCAN_SKIP_NONE && entry->is_folder) return LODE_OK;
  if (entry->skip == SCAN_SKIP_NONE) TRY(scan_root_read(source->root, path, text, entry, err));
  if (entry->skip != SCAN_SKIP_NONE) return LODE_OK;
  source->language = lang_detect(path, (lode_str){text->data, text->len});
  entry->skip = scan_classify_text(source->root, path, source->language, (lode_str){text->data, text->len});
  if (entry->skip == SCAN_SKIP_GENERATED || entry->skip == SCAN_SKIP_MINIFIED) entry->skip = SCAN_SKIP_NONE;
  if (entry->skip == SCAN_SKIP_NONE) entry->skip = scan_root_mask(source->root, text->data, text->len, &masked);
  return LODE_OK;
}

lode_status op_source_read(op_source *source, lode_str shown, lode_error *err) {
  strbuf raw = {0};
  scan_entry entry = {0};
  char quoted[256];
  lode_status st;
  source->path.len = source->text.len = source->at = 0;
  source->line = 1;
  strbuf_add(&source->path, shown.data, shown.len);
  files_path_unescape(&raw, shown);
  strbuf_addch(&raw, '\0');
  if (raw.failed || source->path.failed) TRY_GOTO(err_nomem(err));
  TRY_GOTO(read_file(source, (lode_str){raw.data, raw.len - 1}, &entry, err));
  if (entry.skip == SCAN_SKIP_NONE && entry.is_folder)
    TRY_GOTO(err_set(err, LODE_INVALID, "%s is a folder", str_quote(shown, quoted, sizeof quoted)));
  if (entry.skip != SCAN_SKIP_NONE)
    st = err_set(err, LODE_NOT_FOUND, "%s is not shown: %s", str_quote(shown, quoted, sizeof quoted),
                 read_reason(entry.skip));
done:
  if (st != LODE_OK) source->text.len = 0;
  strbuf_release(&raw);
  return st;
}

lode_str op_source_line(op_source *source, lode_str path, uint32_t line, lode_str name) {
  lode_error why = {.record = LODE_NO_RECORD};
  bool other = source->path.len != path.len || memcmp(source->path.data, path.data, path.len) != 0;
  if (!source->project || (other && op_source_read(source, path, &why) != LODE_OK)) return STR_LIT("");
  const char *data = source->text.data, *end;
  if (line < source->line) source->at = 0, source->line = 1;
  for (; source->line < line && source->at < source->text.len; source->line++) {
    end = memchr(data + source->at, '\n', source->text.len - source->at);
    source->at = end ? (size_t)(end - data) + 1 : source->text.len;
  }
  if (source->at >= source->text.len) return STR_LIT("");
  end = memchr(data + source->at, '\n', source->text.len - source->at);
  lode_str text = {data + source->at, (end ? (size_t)(end - data) : source->text.len) - source->at};
  while (text.len && (unsigned char)text.data[0] <= ' ') text = (lode_str){text.data + 1, text.len - 1};
  if (text.len > READ_MAX_LINE) text.len = READ_MAX_LINE;
  while (text.len && ((unsigned char)text.data[text.len - 1] <= ' ' || text.len == READ_MAX_LINE)) text.len--;
  return memmem(text.data, text.len, name.data, name.len) ? text : STR_LIT("");
}

void op_source_close(op_source *source) {
  scan_root_close(source->root);
  strbuf_release(&source->path);
  strbuf_release(&source->text);
}

/* Lines first to last of the text; *last is cut to what there is. */
static lode_str read_lines(lode_str text, uint32_t first, uint32_t *last) {
  uint32_t line = 1;
  size_t at = 0, start;
  while (line < first && at < text.len) line += text.data[at++] == '\n';
  start = at;
  while (line <= *last && at < text.len) line += text.data[at++] == '\n';
  if (line <= *last && at > start) *last = line - (text.data[at - 1] == '\n');
  if (at > start && text.data[at - 1] == '\n') at--;
  return (lode_str){text.data + start, at - start};
}

/* ---- Tokens ---- */

static lode_str read_next_line(lode_str *text) {
  const char *end = memchr(text->data, '\n', text->len);
  lode_str line = {text->data, end ? (size_t)(end - text->data) : text->len};
  size_t used = line.len + (end != NULL);
  *text = (lode_str){text->data + used, text->len - used};
  return line;
}

/* Characters as JavaScript, Java and C# count them. */
static size_t read_utf16_len(lode_str text) {
  size_t n = 0;
  for (size_t i = 0; i < text.len; i++) {
    unsigned char c = (unsigned char)text.data[i];
    n += (c & 0xc0) != 0x80;
    n += c >= 0xf0;
  }
  return n;
}

static void read_put_line(strbuf *out, lang_lexer *lexer, lode_str line) {
  lang_token kind = LANG_TOKEN_PLAIN, last = LANG_TOKEN_PLAIN;
  size_t from = 0;
  bool any = false;
  strbuf_addch(out, '[');
  for (size_t at = 0; at < line.len;) {
    size_t start = at;
    kind = lang_lexer_next(lexer, line, &at);
    if (start >= READ_SPANS_LINE) continue; /* what goes on in the next line counts */
    if (start && (kind != last || kind == LANG_TOKEN_NAME)) {
      strbuf_addf(out, "%s%d,%zu", any ? "," : "", (int)last,
                  read_utf16_len((lode_str){line.data + from, start - from}));
      any = true;
      from = start;
    }
    last = kind;
  }
  if (from < line.len)
    strbuf_addf(out, "%s%d,%zu", any ? "," : "", (int)last,
                read_utf16_len((lode_str){line.data + from, line.len - from}));
  strbuf_addch(out, ']');
  lang_lexer_end_line(lexer);
}

/* [[kind, length, ...], ...] for each line; `before` is text that the lexer only passes. */
static void read_put_spans(strbuf *out, lode_str language, lode_str before, lode_str lines) {
  lode_str head = before.len ? before : lines;
  strbuf passed = {0};
  lang_lexer lexer;
  lang_lexer_begin(&lexer, language, read_next_line(&head));
  while (before.len) {
    passed.len = 0;
    read_put_line(&passed, &lexer, read_next_line(&before));
  }
  strbuf_release(&passed);
  strbuf_addch(out, '[');
  for (size_t n = 0; lines.len; n++) {
    if (n) strbuf_addch(out, ',');
    read_put_line(out, &lexer, read_next_line(&lines));
  }
  strbuf_addch(out, ']');
}

static void read_row_begin(op_context *ctx, const read_place *p, lode_str language, lode_str lines) {
  op_row_begin(ctx);
  op_row_text(ctx, "path", (lode_str){p->path.data ? p->path.data : "", p->path.len});
  op_row_count(ctx, "start_line", p->first);
  op_row_count(ctx, "end_line", p->last);
  op_row_text(ctx, "kind", p->kind.len ? p->kind : (lode_str){0});
  op_row_text(ctx, "name", p->name.len ? p->name : (lode_str){0});
  op_row_text(ctx, "language", language);
  op_row_text(ctx, "snippet", lines);
}

/* ---- Sending ---- */

static lode_status read_send_indexed(op_context *ctx, const project_info *project, read_place *p, bool spans,
                                     lode_error *err) {
  search_indexed_file file = {0};
  lode_store *store = NULL;
  strbuf tokens = {0};
  lode_status st;
  TRY(op_code_open(ctx, project, false, &store, err));
  TRY_GOTO(
      search_indexed_file_read(project, store, (lode_str){p->path.data, p->path.len}, p->first, p->last, &file, err));
  p->first = file.first;
  p->last = file.last;
  if (spans) read_put_spans(&tokens, file.language, file.before, file.text);
  if (tokens.failed) TRY_GOTO(err_nomem(err));
  if (file.text.len && file.text.data[file.text.len - 1] == '\n') file.text.len--;
  read_row_begin(ctx, p, file.language, file.text);
  op_row_count(ctx, "lines", file.lines);
  if (spans) op_row_json(ctx, "spans", (lode_str){tokens.data, tokens.len});
  st = op_row_send(ctx, err);
done:
  ctx->release(ctx->opener, store);
  search_indexed_file_release(&file);
  strbuf_release(&tokens);
  return st;
}

static lode_status read_send(op_context *ctx, const project_info *project, read_place *p, lode_error *err) {
  op_source source = {.project = project};
  lode_str shown = {p->path.data ? p->path.data : "", p->path.len};
  char quoted[256];
  lode_status st;
  TRY_GOTO(op_source_read(&source, shown, err));
  lode_str text = {source.text.data ? source.text.data : "", source.text.len};
  lode_str lines = read_lines(text, p->first, &p->last);
  if (!lines.len && p->first > 1)
    TRY_GOTO(err_set(err, LODE_NOT_FOUND, "%s has no line %u", str_quote(shown, quoted, sizeof quoted), p->first));
  read_row_begin(ctx, p, str_of(source.language->name), lines);
  st = op_row_send(ctx, err);
done:
  op_source_close(&source);
  return st;
}

static lode_status read_definitions(op_context *ctx, const op_read_args *args, lode_error *err) {
  enum { READ_MAX_DEFINITIONS = 5 };
  op_symbols s = {0};
  symbols_ids ids = {0};
  size_t sent = 0;
  lode_status st;
  TRY_GOTO(op_symbols_open(ctx, args->project.path, &s, err));
  TRY_GOTO(op_symbols_find(&s, args->name.text, &ids, err));
  for (size_t i = 0; i < ids.n && sent < READ_MAX_DEFINITIONS; i++) {
    const chunk_def *d = symbols_def(&s.world, ids.v[i]);
    if (d->declared && ids.n > 1) continue;
    read_place p = {.first = d->line, .last = d->end_line, .kind = str_of(lang_kind_name(d->kind)), .name = d->name};
    lode_str path = s.world.files[ids.v[i].file].path;
    strbuf_add(&p.path, path.data, path.len);
    st = p.path.failed ? err_nomem(err) : read_send(ctx, &s.project, &p, err);
    strbuf_release(&p.path);
    if (st != LODE_OK) goto done;
    sent++;
  }
  op_symbols_note(&s, 0, false);
  if (ids.n > READ_MAX_DEFINITIONS) op_note(ctx, "%zu definitions have that name", ids.n);
done:
  mem_free(ids.v);
  op_symbols_close(&s);
  return st;
}

lode_status op_do_read(op_context *ctx, const op_read_args *args, lode_error *err) {
  project_info project = {0};
  op_code_place place = {0};
  read_place p = {0};
  lode_status st;
  if (args->at.set == args->name.set)
    return err_set(err, LODE_INVALID, "name one thing: a file and a line, or a \"name\"");
  if (ctx->remote && !args->indexed.on)
    return err_set(err, LODE_UNSUPPORTED, "files of this machine are not read for others: only what is \"indexed\"");
  if ((args->indexed.on && args->name.set) || (args->spans.on && !args->indexed.on))
    return err_set(err, LODE_INVALID, "\"%s\" is for a file that is read from the index",
                   args->name.set ? "indexed" : "spans");
  if (args->name.set) return read_definitions(ctx, args, err);
  TRY(op_code_project(ctx, args->project.path, &project, err));
  TRY_GOTO(op_code_place_parse(ctx, &project, args->at.text, &place, err));
  strbuf_add(&p.path, place.path.data, place.path.len - 1);
  p.first = place.line ? place.line : 1;
  p.last = p.first + (uint32_t)args->lines.n - 1;
  st = p.path.failed      ? err_nomem(err)
       : args->indexed.on ? read_send_indexed(ctx, &project, &p, args->spans.on, err)
                          : read_send(ctx, &project, &p, err);
done:
  strbuf_release(&p.path);
  strbuf_release(&place.path);
  project_release(&project);
  return st;
}
