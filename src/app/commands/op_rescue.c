/* SPDX-License-Identifier: Apache-2.0 */
/* op_rescue.c - Chroma directories: rescue, import, check, quarantine. */
#include "ops/op_row.h"
#include "table/op_args_rescue.h"

#include <fcntl.h>
#include <stdlib.h>

#include "os/beneath.h"
#include "os/os.h"
#include "embed/embed.h"
#include "rescue/rescue.h"

/* ---- The list of doubtful records: a file, created with the first of them ---- */

typedef struct op_rescue_doubts {
  const char *path;
  int fd;
  uint64_t at;
  strbuf line;
} op_rescue_doubts;

static lode_status op_rescue_doubts_flush(op_rescue_doubts *d, lode_error *err) {
  if (d->line.failed) return err_nomem(err);
  if (d->line.len) TRY(os_write_full(d->fd, d->line.data, d->line.len, d->at, err));
  d->at += d->line.len;
  d->line.len = 0;
  return LODE_OK;
}

static lode_status op_rescue_doubts_add(op_rescue_doubts *d, lode_str collection, lode_str id, const char *what,
                                        lode_error *err) {
  if (!d->path) return LODE_OK;
  if (d->fd < 0) {
    d->fd = OS_RETRY(os_api->open(d->path, O_WRONLY | O_CREAT | O_TRUNC, 0600));
    if (d->fd < 0) return err_errno(err, errno, d->path);
  }
  strbuf_addstr(&d->line, "{\"collection\":");
  json_put_string(&d->line, collection);
  strbuf_addstr(&d->line, ",\"id\":");
  json_put_string(&d->line, id);
  strbuf_addstr(&d->line, ",\"what\":");
  json_put_string(&d->line, str_of(what));
  strbuf_addstr(&d->line, "}\n");
  return d->line.len > (1u << 16) ? op_rescue_doubts_flush(d, err) : LODE_OK;
}

static lode_status op_rescue_doubts_close(op_rescue_doubts *d, lode_error *err) {
  lode_status st = d->fd >= 0 ? op_rescue_doubts_flush(d, err) : LODE_OK;
  if (d->fd >= 0) (void)os_api->close(d->fd);
  strbuf_release(&d->line);
  return st;
}

/* ---- The code index of the target ---- */

/* Where a rescue writes; the first member of the state that its callbacks get. */
typedef struct rescue_target {
  op_context *ctx;
  lode_store *store;
  const char *folder; /* of the store; NULL: the context's */
} rescue_target;

static lode_status may_write(void *v, lode_str name, lode_error *err) {
  const rescue_target *t = v;
  char quoted[256];
  lode_status st = op_check_may_change(t->ctx, t->store, t->folder, name, err);
  if (st != LODE_REFUSED) return st;
  return err_set(err, st,
                 "the directory has a collection %s, and in this store that name belongs to the code index of the "
                 "project: nothing was "
                 "brought over; --to DIR brings it into another store",
                 str_quote(name, quoted, sizeof quoted));
}

/* ---- rescue chroma, import chroma ---- */

typedef struct op_rescue_state {
  rescue_target target;
  op_context *ctx;
  const char *from;
  bool is_palace;
  rescue_counts total;
  uint64_t collections;
  op_rescue_doubts list;
  rescue_palace_report files; /* of a palace */
  uint64_t identities;
} op_rescue_state;

static void op_rescue_put_counts(op_context *ctx, const rescue_counts *n) {
  op_row_count(ctx, "exact", n->exact);
  op_row_count(ctx, "from_queue", n->from_log);
  op_row_count(ctx, "re_embedded", n->embedded);
  op_row_count(ctx, "missing", n->missing);
  op_row_count(ctx, "doubtful", n->doubtful);
  op_row_count(ctx, "refused", n->refused);
  op_row_count(ctx, "lost", n->lost);
}

static lode_status op_rescue_on_collection(void *v, const rescue_counts *n, lode_error *err) {
  op_rescue_state *r = v;
  rescue_counts *t = &r->total;
  r->collections++;
  t->records += n->records;
  t->exact += n->exact;
  t->from_log += n->from_log;
  t->embedded += n->embedded;
  t->missing += n->missing;
  t->doubtful += n->doubtful;
  t->refused += n->refused;
  t->lost += n->lost;
  t->written += n->written;
  op_row_begin(r->ctx);
  op_row_text(r->ctx, "collection", n->name);
  op_row_count(r->ctx, "records", n->records);
  op_rescue_put_counts(r->ctx, n);
  op_row_text(r->ctx, "metric", str_of(n->metric));
  if (n->dimension)
    op_row_count(r->ctx, "dimension", n->dimension);
  else
    op_row_null(r->ctx, "dimension");
  return op_row_send(r->ctx, err);
}

static lode_status op_rescue_on_doubt(void *v, lode_str collection, lode_str id, const char *what, lode_error *err) {
  op_rescue_state *r = v;
  return op_rescue_doubts_add(&r->list, collection, id, what, err);
}

static void op_rescue_on_note(void *v, const char *text) {
  op_rescue_state *r = v;
  op_note(r->ctx, "%s", text);
}

/* The real path of the nearest existing folder of a path that may not exist yet; NULL on failure. */
static char *op_rescue_real_folder(const char *path) {
  size_t len = strlen(path);
  char *copy = strdup(path), *real = NULL;
  while (copy && !(real = realpath(copy, NULL)) && len) {
    while (len && copy[len - 1] == '/') len--;
    while (len && copy[len - 1] != '/') len--;
    copy[len] = '\0';
    if (len == 0) real = realpath(".", NULL);
    if (real) break;
  }
  free(copy);
  return real;
}

/* The directory is only read, so no store may be created in it. */
static lode_status op_rescue_check_apart(const char *from, const char *target, lode_error *err) {
  char *dir = realpath(from, NULL), *place = NULL;
  lode_status st = LODE_OK;
  if (!dir) return err_set(err, LODE_NOT_FOUND, "there is no folder %.300s", from);
  if (strstr(target, "://")) goto done;
  place = op_rescue_real_folder(target);
  if (!place) TRY_GOTO(err_nomem(err));
  size_t len = strlen(dir);
  if (strncmp(place, dir, len) == 0 && (place[len] == '\0' || place[len] == '/'))
    st = err_set(err, LODE_INVALID,
                 "the store would lie in the Chroma directory, which is only read: name another folder, --to DIR");
done:
  free(dir);
  free(place);
  return st;
}

static lode_status op_rescue_open_target(op_context *ctx, const char *from, const op_arg_path *to, lode_store **store,
                                         lode_error *err) {
  TRY(op_rescue_check_apart(from, to->set ? to->path : ctx->folder, err));
  op_open_options how = {.write = true, .create = true, .bulk = true, .folder = to->set ? to->path : NULL};
  return ctx->open(ctx->opener, &how, store, err);
}

static lode_status op_rescue_send_summary(op_rescue_state *r, const char *from, const char *to, lode_error *err) {
  op_context *ctx = r->ctx;
  op_summary_begin(ctx);
  op_row_text(ctx, "from", str_of(from));
  op_row_text(ctx, "to", str_of(to));
  op_row_count(ctx, "collections", r->collections);
  op_row_count(ctx, "records", r->total.records);
  op_row_count(ctx, "written", r->total.written);
  op_rescue_put_counts(ctx, &r->total);
  op_row_text(ctx, "doubtful_file", str_of(r->list.fd >= 0 ? r->list.path : NULL));
  if (r->is_palace) {
    op_row_count(ctx, "files", r->files.files);
    op_row_count(ctx, "file_bytes", r->files.bytes);
    op_row_count(ctx, "kept", r->files.kept);
    op_row_count(ctx, "left_out", r->files.left_out);
    op_row_count(ctx, "models", r->identities);
  }
  return op_row_send(ctx, err);
}

static lode_status op_rescue_on_file(void *v, const char *path, const char *what, lode_error *err) {
  op_rescue_state *r = v;
  (void)err;
  if (strcmp(what, "copied") != 0) op_note(r->ctx, "%.400s was left out: %s", path, what);
  return LODE_OK;
}

/* The files of a palace beside its new store, which is the folder `lode` in it. */
static lode_status op_rescue_copy_files(op_rescue_state *r, const char *palace, bool dry, lode_error *err) {
  static const char graph[] = "knowledge_graph.sqlite3";
  rescue_palace_request q = {.from = r->from, .to = palace, .dry_run = dry, .file = op_rescue_on_file, .ctx = r};
  struct stat st;
  TRY(rescue_palace_files(&q, &r->files, err));
  /* The graph of the default palace, ~/.mempalace/palace, may lie beside it */
  char *real = realpath(r->from, NULL), *slash = real ? strrchr(real, '/') : NULL;
  lode_status status = LODE_OK;
  if (slash && strcmp(slash, "/palace") == 0 && beneath_lstat(real, graph, &st) != 0) {
    *slash = 0;
    q.from = slash == real ? "/" : real;
    q.only = graph;
    if (beneath_lstat(q.from, graph, &st) == 0) status = rescue_palace_files(&q, &r->files, err);
  }
  free(real);
  return status;
}

/* palace: NULL, or the folder of a palace whose store is `to`. */
static lode_status op_rescue_run(op_context *ctx, const op_rescue_args *args, const char *palace, lode_error *err) {
  const op_arg_path *to = &args->to;
  const char *from = args->dir.path, *target = to->set ? to->path : ctx->folder;
  bool dry = args->dry_run.on;
  op_rescue_state r = {.target = {.ctx = ctx, .folder = target},
                       .ctx = ctx,
                       .from = from,
                       .is_palace = palace != NULL,
                       .list = {.fd = -1}};
  lode_error ignored;
  strbuf path = {0};
  lode_status st = LODE_OK;
  rescue_request q = {
      .from = from,
      .embed = args->embed.on,
      .model = args->model.text,
      .progress = ctx->progress,
      .may_write = may_write,
      .collection = op_rescue_on_collection,
      .doubt = op_rescue_on_doubt,
      .note = op_rescue_on_note,
      .ctx = &r,
  };
  strbuf_addf(&path, "%s-doubtful.jsonl", target);
  strbuf_addch(&path, 0);
  if (path.failed) {
    strbuf_release(&path);
    return err_nomem(err);
  }
  if (q.embed && q.model.len && embed_model_check_name(q.model, err) != LODE_OK) {
    if (err) err->status = LODE_INVALID;
    TRY_GOTO(LODE_INVALID);
  }
  if (args->doubtful.set)
    r.list.path = args->doubtful.path;
  else if (!dry)
    r.list.path = path.data;
  if (!dry) TRY_GOTO(op_rescue_open_target(ctx, from, to, &q.to, err));
  r.target.store = q.to;
  TRY_GOTO(rescue_from_chroma(&q, err));
  if (palace) TRY_GOTO(op_rescue_copy_files(&r, palace, dry, err));
  if (palace && q.to) TRY_GOTO(rescue_palace_identity(from, q.to, &r.identities, err));
  TRY_GOTO(op_rescue_doubts_flush(&r.list, err));
  if (q.to && r.total.written) (void)!lode_optimize(q.to, ctx->progress, NULL); /* the records are safe either way */
  TRY_GOTO(op_rescue_send_summary(&r, from, dry ? NULL : target, err));
  if (r.total.missing || r.total.refused || r.total.lost)
    st = err_set(err, LODE_CORRUPT,
                 "%llu records came without their vector and %llu not at all: they are damaged in the directory%s",
                 (unsigned long long)r.total.missing, (unsigned long long)(r.total.refused + r.total.lost),
                 r.total.missing && !q.embed ? "; --embed makes vectors again from the documents" : "");
done:
  if (op_rescue_doubts_close(&r.list, &ignored) != LODE_OK && st == LODE_OK) {
    *err = ignored;
    st = ignored.status;
  }
  if (q.to) ctx->release(ctx->opener, q.to);
  strbuf_release(&path);
  return st;
}

lode_status op_do_rescue_chroma(op_context *ctx, const op_rescue_args *args, lode_error *err) {
  return op_rescue_run(ctx, args, NULL, err);
}

lode_status op_do_rescue_palace(op_context *ctx, const op_rescue_args *args, lode_error *err) {
  op_rescue_args chroma = *args;
  strbuf store = {0};
  if (!args->to.set) return err_set(err, LODE_INVALID, "name the folder of the new palace: --to PALACE");
  if (strstr(args->to.path, "://"))
    return err_set(err, LODE_UNSUPPORTED, "a palace is a folder: `lode rescue chroma` copies its records to a cluster");
  strbuf_addf(&store, "%s/lode", args->to.path);
  strbuf_addch(&store, 0);
  if (store.failed) {
    strbuf_release(&store);
    return err_nomem(err);
  }
  chroma.to.path = store.data;
  lode_status st = op_rescue_check_apart(args->dir.path, args->to.path, err);
  if (st == LODE_OK && !args->dry_run.on && OS_RETRY(os_api->mkdir(args->to.path, 0700)) != 0 && errno != EEXIST)
    st = err_errno(err, errno, args->to.path);
  if (st == LODE_OK) st = op_rescue_run(ctx, &chroma, args->to.path, err);
  strbuf_release(&store);
  return st;
}

/* ---- chroma check ---- */

static lode_status op_rescue_on_finding(void *v, const char *what, bool damage, lode_str collection, const char *detail,
                                        lode_error *err) {
  op_context *ctx = v;
  op_row_begin(ctx);
  op_row_text(ctx, "what", str_of(what));
  op_row_bool(ctx, "damage", damage);
  op_row_text(ctx, "collection", collection);
  op_row_text(ctx, "detail", str_of(detail));
  return op_row_send(ctx, err);
}

lode_status op_do_chroma_check(op_context *ctx, const op_chroma_check_args *args, lode_error *err) {
  const char *dir = args->dir.path;
  rescue_check_request q = {.from = dir, .progress = ctx->progress, .found = op_rescue_on_finding, .ctx = ctx};
  rescue_check_report r;
  TRY(rescue_check(&q, &r, err));
  op_summary_begin(ctx);
  op_row_text(ctx, "dir", str_of(dir));
  op_row_bool(ctx, "ok", r.damages == 0);
  op_row_count(ctx, "damages", r.damages);
  op_row_count(ctx, "collections", r.collections);
  op_row_count(ctx, "records", r.records);
  op_row_count(ctx, "exact", r.exact);
  op_row_count(ctx, "from_queue", r.from_log);
  op_row_count(ctx, "missing", r.missing);
  TRY(op_row_send(ctx, err));
  if (r.damages == 0) return LODE_OK;
  return err_set(err, LODE_CORRUPT,
                 "the directory is damaged; `lode rescue chroma %.300s --to STORE` brings over what is left", dir);
}

/* ---- chroma quarantine ---- */

typedef struct quarantining {
  rescue_target target;
  rescue_counts all;
} quarantining;

static lode_status op_rescue_count_only(void *v, const rescue_counts *n, lode_error *err) {
  rescue_counts *t = &((quarantining *)v)->all;
  (void)err;
  t->records += n->records;
  t->missing += n->missing;
  t->refused += n->refused + n->lost;
  return LODE_OK;
}

static lode_status op_rescue_on_step(void *v, const char *what, const char *path, const char *became, lode_error *err) {
  op_context *ctx = v;
  op_row_begin(ctx);
  op_row_text(ctx, "what", str_of(what));
  op_row_text(ctx, "path", str_of(path));
  op_row_text(ctx, "became", str_of(became));
  return op_row_send(ctx, err);
}

lode_status op_do_chroma_quarantine(op_context *ctx, const op_quarantine_args *args, lode_error *err) {
  const op_arg_path *to = &args->to;
  const char *dir = args->dir.path;
  bool dry = args->dry_run.on;
  quarantining into = {.target = {.ctx = ctx, .folder = to->set ? to->path : NULL}};
  const rescue_counts *all = &into.all;
  rescue_request rescue = {
      .from = dir, .progress = ctx->progress, .may_write = may_write, .collection = op_rescue_count_only, .ctx = &into};
  rescue_quarantine_request q = {
      .from = dir,
      .stale_seconds = args->stale_seconds.n,
      .fix_seq_ids = args->fix_seq_ids.on,
      .dry_run = dry,
      .done = op_rescue_on_step,
      .ctx = ctx,
  };
  rescue_quarantine_report r;
  if (!dry) TRY(op_rescue_open_target(ctx, dir, to, &rescue.to, err));
  into.target.store = rescue.to;
  lode_status st = rescue_from_chroma(&rescue, err);
  if (rescue.to && to->set)
    lode_close(rescue.to);
  else if (rescue.to)
    ctx->release(ctx->opener, rescue.to);
  if (st != LODE_OK) return st;
  if (all->missing || all->refused)
    return err_set(
        err, LODE_REFUSED,
        "nothing was done: %llu vectors and %llu records did not come over into the store; see `lode rescue chroma`",
        (unsigned long long)all->missing, (unsigned long long)all->refused);
  TRY(rescue_quarantine(&q, &r, err));
  op_summary_begin(ctx);
  op_row_text(ctx, "dir", str_of(dir));
  op_row_text(ctx, "store", str_of(dry ? NULL : to->set ? to->path : ctx->folder));
  op_row_count(ctx, "records", all->records);
  op_row_count(ctx, "set_aside", r.set_aside);
  op_row_count(ctx, "kept", r.kept);
  op_row_count(ctx, "seq_ids", r.seq_ids);
  if (dry) op_note(ctx, "a dry run: nothing was done");
  return op_row_send(ctx, err);
}
