/* audit.c - see audit.h. */
#include "audit.h"

enum { PAGE = 5000 };

typedef struct auditing {
  lode__shelf shelf;
  lode__known_files known;
  uint32_t *counts;        /* chunks seen, by position in known */
  lode__audit *audit;
  lode_progress progress;
  bool repair;
} auditing;

static lode_status open_shelf(auditing *a, lode_store *store, lode_error *err) {
  lode_collection_options plain = {0};
  a->shelf.store = store;
  TRY(lode_collection_open(store, STR_LIT(LODE__CODE), &plain, &a->shelf.code, err));
  TRY(lode_collection_open(store, STR_LIT(LODE__CODE_FILES), &plain, &a->shelf.files, err));
  lode_status st = lode_collection_open(store, STR_LIT(LODE__CODE_QUALITY), &plain, &a->shelf.quality, err);
  if (st != LODE_OK && st != LODE_NOT_FOUND) return st;
  err_clear(err);
  return LODE_OK;
}

/* PATH#N */
static bool split_id(lode_str id, lode_str *path) {
  size_t at = id.len;
  while (at && id.data[at - 1] >= '0' && id.data[at - 1] <= '9') at--;
  if (at == id.len || at < 2 || id.data[at - 1] != '#') return false;
  *path = (lode_str){id.data, at - 1};
  return true;
}

static lode_status delete_some(lode_collection *c, const lode_str *ids, size_t n, lode_error *err) {
  lode_selection select = {.ids = ids, .n_ids = n};
  return c && n ? lode_delete(c, NULL, &select, NULL, err) : LODE_OK;
}

static lode_status look_at_chunks(auditing *a, lode_error *err) {
  lode_get_request request = {.limit = PAGE};
  lode_status st = LODE_OK;
  do {
    lode_result *rows = NULL;
    lode_str orphans[PAGE];
    size_t n = 0;
    TRY(lode_get(a->shelf.code, &request, &rows, err));
    for (size_t i = 0; i < lode_result_count(rows); i++) {
      lode_str id = lode_result_at(rows, i)->id, path;
      lode__known *known = split_id(id, &path) ? lode__known_find(&a->known, path) : NULL;
      a->audit->chunks++;
      if (known) a->counts[known - a->known.items]++;
      else orphans[n++] = id;
    }
    a->audit->orphans += n;
    if (a->repair) {
      st = delete_some(a->shelf.code, orphans, n, err);
      if (st == LODE_OK) st = delete_some(a->shelf.quality, orphans, n, err);
      a->audit->mended += n;
    }
    request.after = lode_result_next(rows);
    lode_result_free(rows);
    if (st != LODE_OK) return st;
    if (a->progress.step && !a->progress.step(a->progress.ctx, "checking chunks", a->audit->chunks, 0))
      return err_set(err, LODE_CANCELLED, "interrupted");
  } while (request.after);
  return LODE_OK;
}

static lode_status look_at_files(auditing *a, lode_error *err) {
  for (size_t i = 0; i < a->known.n; i++) {
    lode__known *known = &a->known.items[i];
    uint32_t most = a->counts[i] > known->file.chunks ? a->counts[i] : known->file.chunks;
    a->audit->files++;
    if (a->counts[i] == known->file.chunks) continue;
    a->audit->short_files++;
    if (!a->repair) continue;
    /* Ordinals beyond the count are possible when some in the middle are lost */
    known->file.chunks = most + 1024;
    TRY(lode__file_batch_remove(&a->shelf, &a->known, &known, 1, (lode_progress){0}, err));
    a->audit->mended++;
  }
  return LODE_OK;
}

lode_status lode__audit_run(lode_store *store, bool repair, lode_progress progress, lode__audit *audit, lode_error *err) {
  auditing a = {.audit = audit, .repair = repair, .progress = progress};
  uint64_t code = 0, quality = 0;
  lode_status st;
  memset(audit, 0, sizeof *audit);
  TRY_GOTO(open_shelf(&a, store, err));
  TRY_GOTO(lode__known_load(&a.known, a.shelf.files, progress, err));
  a.counts = mem_calloc(a.known.n + 1, sizeof *a.counts);
  if (!a.counts) TRY_GOTO(err_nomem(err));
  TRY_GOTO(look_at_chunks(&a, err));
  TRY_GOTO(look_at_files(&a, err));
  if (a.shelf.quality) {
    TRY_GOTO(lode_count(a.shelf.code, &code, err));
    TRY_GOTO(lode_count(a.shelf.quality, &quality, err));
    audit->unpaired = code > quality ? code - quality : quality - code;
  }
done:
  if (a.shelf.code) lode_collection_close(a.shelf.code);
  if (a.shelf.files) lode_collection_close(a.shelf.files);
  if (a.shelf.quality) lode_collection_close(a.shelf.quality);
  lode__known_release(&a.known);
  mem_free(a.counts);
  return st;
}
