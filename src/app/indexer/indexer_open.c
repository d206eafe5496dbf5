/* SPDX-License-Identifier: Apache-2.0 */
/* indexer_open.c - models and collections of an index; see indexer_internal.h.
 *
 * Chunks that were split differently, or vectors of another model, are never mixed: either everything is rebuilt in new
 * collections, or the run is refused.
 */
#include "indexer/indexer_internal.h"

#include "embed/embed.h"

#include <stdio.h>

/* ---- Models ---- */

static bool indexer_is_instant(lode_str identity) {
  static const char family[] = "/static";
  return identity.len >= sizeof family - 1 &&
         memcmp(identity.data + identity.len - (sizeof family - 1), family, sizeof family - 1) == 0;
}

/* The index has vectors of a model that is suppressed until the user trusts it: new chunks must wait, not use another
 * model. */
static bool indexer_waits_for_trust(indexer_ctx *x) {
  const char *held = x->project->config.held[CONFIG_MODEL];
  lode_collection_list *list = NULL;
  bool waits = false;
  if (!held || lode_collections(x->store, &list, NULL) != LODE_OK) return false;
  for (size_t i = 0; i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    waits = waits || (str_eq(info->name, STR_LIT(INDEXER_COLL_CODE)) && info->embedder.data &&
                      embed_model_is_external(info->embedder));
  }
  lode_collection_list_free(list);
  if (waits)
    indexer_note(x, "no vectors are made, search goes by words alone: `lode trust` allows the model %.200s", held);
  return waits;
}

/* Without the model no vectors are made, and a note says so; the run goes on. */
static lode_status indexer_open_first_model(indexer_ctx *x, const char *name, const char *without, lode_embedder **out,
                                            lode_error *err) {
  lode_error why = {.record = LODE_NO_RECORD};
  lode_embedder_options options = {.threads = os_cpu_count()};
  lode_status st = lode_embedder_open(str_of(name), &options, out, &why);
  if (st == LODE_NOMEM) return err_nomem(err);
  if (st != LODE_OK) indexer_note(x, "%s: %.400s", without, why.text);
  return LODE_OK;
}

/* If second vectors are asked for explicitly, a missing model is an error before anything is done. */
static lode_status indexer_open_second_model(indexer_ctx *x, lode_error *err) {
  lode_error why = {.record = LODE_NO_RECORD};
  lode_embedder_options options = {.threads = os_cpu_count()};
  if (!x->options.quality) return LODE_OK;
  lode_status st = lode_embedder_open(STR_LIT(LODE_MODEL_MINILM), &options, &x->second, &why);
  return st == LODE_OK ? st : err_set(err, st, "no second vectors without MiniLM: %.400s", why.text);
}

lode_status indexer_open_models(indexer_ctx *x, lode_error *err) {
  const char *name = config_text(&x->project->config, CONFIG_MODEL);
  x->embedder = x->options.embedder;
  if (!x->embedder && strcmp(name, "none") != 0 && !indexer_waits_for_trust(x)) {
    TRY(indexer_open_first_model(x, name, "no vectors are made, search goes by words alone", &x->embedder, err));
    x->own_embedder = x->embedder != NULL;
  }
  if (x->embedder) x->instant = indexer_is_instant(lode_embedder_info_of(x->embedder)->identity);
  return indexer_open_second_model(x, err);
}

/* ---- Collections ---- */

typedef struct indexer_found { /* the collections that the store has */
  bool code, files, symbols, quality, has_new;
  char embedder[400];
  uint64_t kept[2]; /* vectors of the wanted model that interrupted rebuilds left: in INDEXER_COLL_KEPT, in the new */
  indexer_stamp stamp;
  uint64_t records;
} indexer_found;

static bool indexer_is_named(const lode_collection_info *info, const char *name) {
  return str_eq(info->name, str_of(name));
}

/* Vectors that a rebuild may use: made by a model that takes time, and the same one. */
static uint64_t indexer_usable_vectors(const indexer_ctx *x, const lode_collection_info *info) {
  bool same = x->embedder && !x->instant && info->embedder.data &&
              str_eq(info->embedder, lode_embedder_info_of(x->embedder)->identity);
  return same ? info->records - info->pending : 0;
}

static lode_status indexer_inspect(indexer_ctx *x, indexer_found *f, lode_error *err) {
  lode_collection_list *list = NULL;
  memset(f, 0, sizeof *f);
  TRY(lode_collections(x->store, &list, err));
  for (size_t i = 0; i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    if (indexer_is_named(info, INDEXER_COLL_CODE)) {
      f->code = true;
      f->records = info->records;
      if (info->embedder.data)
        snprintf(f->embedder, sizeof f->embedder, "%.*s", (int)info->embedder.len, info->embedder.data);
    } else if (indexer_is_named(info, INDEXER_COLL_FILES)) {
      f->files = true;
      indexer_stamp_parse(info->metadata, &f->stamp);
    } else if (indexer_is_named(info, INDEXER_COLL_SYMBOLS)) {
      f->symbols = true;
    } else if (indexer_is_named(info, INDEXER_COLL_QUALITY)) {
      f->quality = true;
    } else if (indexer_is_named(info, INDEXER_COLL_KEPT)) {
      f->has_new = true;
      f->kept[0] = indexer_usable_vectors(x, info);
    } else if (indexer_is_named(info, INDEXER_COLL_CODE INDEXER_NEW_SUFFIX) ||
               indexer_is_named(info, INDEXER_COLL_FILES INDEXER_NEW_SUFFIX) ||
               indexer_is_named(info, INDEXER_COLL_QUALITY INDEXER_NEW_SUFFIX) ||
               indexer_is_named(info, INDEXER_COLL_SYMBOLS INDEXER_NEW_SUFFIX)) {
      f->has_new = true;
      if (indexer_is_named(info, INDEXER_COLL_CODE INDEXER_NEW_SUFFIX)) f->kept[1] = indexer_usable_vectors(x, info);
    }
  }
  lode_collection_list_free(list);
  return LODE_OK;
}

static lode_status indexer_drop_coll(indexer_ctx *x, const char *name, lode_error *err) {
  lode_status st = lode_collection_drop(x->store, str_of(name), err);
  if (st != LODE_NOT_FOUND) return st;
  err_clear(err);
  return LODE_OK;
}

/* Drops what an interrupted rebuild left, but for the vectors that the next one can use. */
static lode_status indexer_drop_new_colls(indexer_ctx *x, const indexer_found *f, bool rebuild, lode_error *err) {
  static const char *const names[] = {INDEXER_COLL_CODE INDEXER_NEW_SUFFIX, INDEXER_COLL_FILES INDEXER_NEW_SUFFIX,
                                      INDEXER_COLL_QUALITY INDEXER_NEW_SUFFIX, INDEXER_COLL_SYMBOLS INDEXER_NEW_SUFFIX};
  bool keep = rebuild && f->kept[1] > f->kept[0];
  if (keep || !rebuild || !f->kept[0]) TRY(indexer_drop_coll(x, INDEXER_COLL_KEPT, err));
  if (keep)
    TRY(lode_collection_rename(x->store, STR_LIT(INDEXER_COLL_CODE INDEXER_NEW_SUFFIX), STR_LIT(INDEXER_COLL_KEPT),
                               err));
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) TRY(indexer_drop_coll(x, names[i], err));
  return LODE_OK;
}

lode_status indexer_drop_kept(indexer_ctx *x, lode_error *err) { return indexer_drop_coll(x, INDEXER_COLL_KEPT, err); }

static lode_status indexer_open_coll(indexer_ctx *x, const char *name, bool is_new,
                                     const lode_collection_options *options, lode_collection **out, lode_error *err) {
  char full[64];
  snprintf(full, sizeof full, "%s%s", name, is_new ? INDEXER_NEW_SUFFIX : "");
  return lode_collection_open(x->store, str_of(full), options, out, err);
}

static lode_collection_options indexer_options_with_model(lode_embedder *embedder) {
  lode_collection_options o = {.create = true, .metric = LODE_COSINE};
  if (embedder) {
    o.embedder = lode_embedder_info_of(embedder)->identity;
    o.embedder_dim = lode_embedder_info_of(embedder)->dimension;
  }
  return o;
}

static lode_status indexer_open_colls(indexer_ctx *x, const indexer_found *f, lode_error *err) {
  static const lode_str code_counters[] = {{"language", 8}, {"kind", 4}},
                        file_counters[] = {{"language", 8}, {"skip", 4}};
  lode_collection_options o = indexer_options_with_model(x->embedder);
  bool is_new = x->rebuild;
  x->colls.store = x->store;
  o.counters = code_counters;
  o.n_counters = 2;
  TRY(indexer_open_coll(x, INDEXER_COLL_CODE, is_new, &o, &x->colls.code, err));
  o = (lode_collection_options){.create = true, .counters = file_counters, .n_counters = 2};
  TRY(indexer_open_coll(x, INDEXER_COLL_FILES, is_new, &o, &x->colls.files, err));
  o = (lode_collection_options){.create = true};
  TRY(indexer_open_coll(x, INDEXER_COLL_SYMBOLS, is_new, &o, &x->colls.symbols, err));
  if (!f->quality && !x->options.quality && !config_bool(&x->project->config, CONFIG_QUALITY)) return LODE_OK;
  if (!x->second) TRY(indexer_open_first_model(x, LODE_MODEL_MINILM, "no second vectors are made", &x->second, err));
  if (!x->second && !f->quality) return LODE_OK;
  o = indexer_options_with_model(x->second);
  return indexer_open_coll(x, INDEXER_COLL_QUALITY, is_new, &o, &x->colls.quality, err);
}

void indexer_close_colls(indexer_ctx *x) {
  if (x->colls.code) lode_collection_close(x->colls.code);
  if (x->colls.files) lode_collection_close(x->colls.files);
  if (x->colls.quality) lode_collection_close(x->colls.quality);
  if (x->colls.symbols) lode_collection_close(x->colls.symbols);
  if (x->old_code) lode_collection_close(x->old_code);
  if (x->old_quality) lode_collection_close(x->old_quality);
  x->colls = (indexer_colls){.versioned = x->colls.versioned};
  x->old_code = x->old_quality = NULL;
}

static lode_status indexer_check_model(const indexer_ctx *x, const indexer_found *f, lode_error *err) {
  if (!x->embedder || !f->embedder[0]) return LODE_OK;
  lode_str mine = lode_embedder_info_of(x->embedder)->identity;
  if (str_eq(mine, str_of(f->embedder))) return LODE_OK;
  return err_set(
      err, LODE_MISMATCH,
      "the index has vectors of %.150s, and the configuration says %.*s: `lode index --force` rebuilds the index, "
      "`lode config unset model` goes back; search by words goes on",
      f->embedder, (int)mine.len, mine.data);
}

/* The old collections stay open during a rebuild: vectors of equal texts are copied from there, or from an interrupted
 * rebuild. */
static lode_status indexer_open_donors(indexer_ctx *x, const indexer_found *f, lode_error *err) {
  lode_collection_options plain = {0};
  bool kept = f->kept[0] || f->kept[1];
  x->donate = x->embedder && !x->instant && str_eq(lode_embedder_info_of(x->embedder)->identity, str_of(f->embedder));
  x->other_model = x->embedder && f->embedder[0] && !x->donate;
  if (kept && !x->donate) {
    x->donate = true;
    TRY(indexer_open_coll(x, INDEXER_COLL_KEPT, false, &plain, &x->old_code, err));
  } else if (f->code)
    TRY(indexer_open_coll(x, INDEXER_COLL_CODE, false, &plain, &x->old_code, err));
  if (f->quality) TRY(indexer_open_coll(x, INDEXER_COLL_QUALITY, false, &plain, &x->old_quality, err));
  return LODE_OK;
}

/* code@1 instead of code@0: vectors of an instant model cost next to nothing, and are rebuilt without being asked
 * for. */
static bool indexer_is_newer_model(const indexer_ctx *x, const indexer_found *f) {
  if (!x->embedder || !x->instant || !f->embedder[0]) return false;
  lode_str mine = lode_embedder_info_of(x->embedder)->identity, theirs = str_of(f->embedder);
  size_t name = strcspn(f->embedder, "@") + 1;
  return !str_eq(mine, theirs) && name <= theirs.len && name <= mine.len && memcmp(mine.data, theirs.data, name) == 0;
}

lode_status indexer_save_stamp(indexer_ctx *x, lode_error *err) {
  strbuf text = {0};
  indexer_stamp_put(&text, &x->stamp);
  lode_status st = text.failed
                       ? err_nomem(err)
                       : lode_collection_set_metadata(
                             x->store, str_of(x->rebuild ? INDEXER_COLL_FILES INDEXER_NEW_SUFFIX : INDEXER_COLL_FILES),
                             (lode_str){text.data, text.len}, err);
  strbuf_release(&text);
  return st;
}

/* Somebody dropped the chunks: what is known of the files would keep them from being read again. */
static lode_status indexer_drop_remains(indexer_ctx *x, indexer_found *f, lode_error *err) {
  static const char *const names[] = {INDEXER_COLL_QUALITY, INDEXER_COLL_SYMBOLS, INDEXER_COLL_FILES};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    lode_status st = lode_collection_drop(x->store, str_of(names[i]), err);
    if (st != LODE_OK && st != LODE_NOT_FOUND) return st;
  }
  err_clear(err);
  return indexer_inspect(x, f, err);
}

/* A store that cannot switch collections in one moment is rebuilt in place, file by file, for those who search it
 * meanwhile. Vectors of two models cannot stand side by side in a collection. */
static lode_status indexer_rebuild_in_place(indexer_ctx *x, const indexer_found *f, lode_error *err) {
  lode_str mine = x->embedder ? lode_embedder_info_of(x->embedder)->identity : (lode_str){0};
  if (mine.len && f->embedder[0] && !str_eq(mine, str_of(f->embedder)))
    return err_set(err, LODE_UNSUPPORTED,
                   "the index on the cluster has vectors of %.150s, and this run makes those of %.*s: a cluster cannot "
                   "change from one to the other while it is searched; index under another name "
                   "(qdrant://HOST:PORT/NAME), then remove this index with `lode reset index`",
                   f->embedder, (int)mine.len, mine.data);
  x->rebuild = false;
  x->rewrite = true;
  return LODE_OK;
}

lode_status indexer_prepare_colls(indexer_ctx *x, lode_error *err) {
  char secrets[32];
  indexer_found f;
  TRY(indexer_is_versioned(x->store, &x->colls.versioned, err));
  TRY(indexer_inspect(x, &f, err));
  bool no_chunks = f.files && f.stamp.indexed_ms && !f.code, torn = f.records && !(f.files && f.symbols);
  if (no_chunks || torn) indexer_note(x, "a collection of the index was dropped: everything is indexed again");
  if (no_chunks) TRY(indexer_drop_remains(x, &f, err));
  bool resplit = f.files && f.records && f.stamp.revision != INDEXER_REVISION, newer = indexer_is_newer_model(x, &f);
  x->rebuild = f.code && (x->options.force || resplit || newer || torn);
  if (f.has_new) TRY(indexer_drop_new_colls(x, &f, x->rebuild, err));
  if (resplit && !x->options.force)
    indexer_note(x, "this lode cuts files in another way than the one that made the index: it is rebuilt");
  else if (newer && !x->options.force)
    indexer_note(x, "this lode has a newer model than the one that made the vectors: the index is rebuilt");
  if (x->rebuild && x->colls.versioned) TRY(indexer_rebuild_in_place(x, &f, err));
  if (!x->rebuild) TRY(indexer_check_model(x, &f, err));
  x->stamp = f.stamp;
  indexer_stamp_secrets(&x->project->config, secrets);
  x->recheck = !x->rebuild && f.files && f.stamp.revision && strcmp(f.stamp.secrets, secrets) != 0;
  if (x->recheck)
    indexer_note(x, "secrets are treated in another way than when the index was made: all files are looked at again");
  if (x->rebuild) TRY(indexer_open_donors(x, &f, err));
  TRY(indexer_open_colls(x, &f, err));
  bool first = !x->rebuild && !f.records && f.stamp.revision != INDEXER_REVISION;
  if (!first && (f.stamp.versions || !x->colls.versioned)) return LODE_OK;
  /* Saved at the start, so that the next run continues a first run that was interrupted, and so that readers know of
   * versions before there are any */
  x->stamp.versions = f.stamp.versions || x->colls.versioned;
  if (!first) return indexer_save_stamp(x, err);
  x->stamp.revision = INDEXER_REVISION;
  memcpy(x->stamp.secrets, secrets, sizeof secrets);
  return indexer_save_stamp(x, err);
}
