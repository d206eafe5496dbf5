/* SPDX-License-Identifier: Apache-2.0 */
/* op_symbols_read.c - `lode read`: lines of a file, or a definition, as the file is now. */
#include "commands/op_symbols.h"

#include "ops/op_row.h"
#include "table/op_args_symbols.h"

enum { READ_MAX_LINE = 200 }; /* of a use's text, in bytes */

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
  op_row_begin(ctx);
  op_row_text(ctx, "path", shown);
  op_row_count(ctx, "start_line", p->first);
  op_row_count(ctx, "end_line", p->last);
  op_row_text(ctx, "kind", p->kind.len ? p->kind : (lode_str){0});
  op_row_text(ctx, "name", p->name.len ? p->name : (lode_str){0});
  op_row_text(ctx, "language", str_of(source.language->name));
  op_row_text(ctx, "snippet", lines);
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
  if (args->name.set) return read_definitions(ctx, args, err);
  TRY(op_code_project(ctx, args->project.path, &project, err));
  TRY_GOTO(op_code_place_parse(ctx, &project, args->at.text, &place, err));
  strbuf_add(&p.path, place.path.data, place.path.len - 1);
  p.first = place.line ? place.line : 1;
  p.last = p.first + (uint32_t)args->lines.n - 1;
  st = p.path.failed ? err_nomem(err) : read_send(ctx, &project, &p, err);
done:
  strbuf_release(&p.path);
  strbuf_release(&place.path);
  project_release(&project);
  return st;
}
