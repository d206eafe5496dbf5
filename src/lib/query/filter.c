/* SPDX-License-Identifier: Apache-2.0 */
/* filter.c - filter objects: parsing, properties, freeing. See filter_internal.h for the parts.
 *
 * A filter is immutable once made, so that evaluators in many threads can share it. It owns everything that it points
 * to; the texts it was made from need not outlive the call.
 */
#include "query/filter_internal.h"

/* ---- Keys ---- */

enum { FILTER_FEW_KEYS = 8 }; /* up to this many, a linear search is faster than hashing */

static uint32_t *filter_key_slot(const filter_expr *f, lode_str key) {
  size_t at = hash_bytes(key.data, key.len) & f->key_mask;
  while (f->key_slots[at] && !str_eq(f->keys[f->key_slots[at] - 1], key)) at = (at + 1) & f->key_mask;
  return &f->key_slots[at];
}

uint32_t filter_find_key(const filter_expr *f, lode_str key) {
  if (f->n_keys > FILTER_FEW_KEYS) return *filter_key_slot(f, key) - 1; /* 0 - 1 is FILTER_NO_KEY */
  for (size_t i = 0; i < f->n_keys; i++) {
    if (str_eq(f->keys[i], key)) return (uint32_t)i;
  }
  return FILTER_NO_KEY;
}

/* Allocates a table with at least four slots per key, and inserts the keys. */
static bool filter_grow_slots(filter_expr *f) {
  size_t size = 64;
  while (size < f->n_keys * 4) size *= 2;
  uint32_t *slots = mem_calloc(size, sizeof *slots);
  if (!slots) return false;
  mem_free(f->key_slots);
  f->key_slots = slots;
  f->key_mask = size - 1;
  for (size_t i = 0; i < f->n_keys; i++) *filter_key_slot(f, f->keys[i]) = (uint32_t)i + 1;
  return true;
}

lode_status filter_add_key(filter_expr *f, lode_str key, uint32_t *index, lode_error *err) {
  *index = filter_find_key(f, key);
  if (*index != FILTER_NO_KEY) return LODE_OK;
  if ((f->n_keys + 1) * 2 > f->key_mask && !filter_grow_slots(f)) return err_nomem(err);
  if (!mem_grow(&f->keys, &f->keys_cap, f->n_keys + 1, sizeof *f->keys)) return err_nomem(err);
  char *copy = mem_arena_copy(&f->arena, key.data, key.len);
  if (!copy) return err_nomem(err);
  lode_str kept = {copy, key.len};
  *filter_key_slot(f, kept) = (uint32_t)f->n_keys + 1;
  *index = (uint32_t)f->n_keys;
  f->keys[f->n_keys++] = kept;
  return LODE_OK;
}

/* ---- The filter ---- */

static void filter_note_needs(filter_expr *f) {
  for (size_t i = 0; i < f->n_tests; i++) {
    if (filter_test_on_metadata(&f->program[i])) f->needs_metadata = true;
    if (filter_test_on_document(&f->program[i])) f->needs_document = true;
  }
}

lode_status filter_parse(lode_str where, lode_str where_document, filter_expr **filter, lode_error *err) {
  lode_status st = LODE_OK;
  filter_tree tree = {0};
  *filter = NULL;
  filter_expr *f = mem_calloc(1, sizeof *f);
  if (!f) return err_nomem(err);
  mem_arena_init(&f->arena, 0);
  if (where.data) TRY_GOTO(filter_read(f, &tree, where, false, err));
  if (where_document.data) TRY_GOTO(filter_read(f, &tree, where_document, true, err));
  TRY_GOTO(filter_merge(f, &tree, err));
  TRY_GOTO(filter_make_probes(f, &tree, err));
  TRY_GOTO(filter_emit(f, &tree, err));
  filter_note_needs(f);
  *filter = f;
  f = NULL;
done:
  mem_free(tree.tests);
  mem_free(tree.nodes);
  filter_free(f);
  return st;
}

void filter_free(filter_expr *f) {
  if (!f) return;
  for (size_t i = 0; i < f->n_regexes; i++) regex_free(f->regexes[i]);
  mem_free(f->regexes);
  mem_free(f->keys);
  mem_free(f->key_slots);
  mem_free(f->program);
  mem_arena_release(&f->arena);
  mem_free(f);
}

bool filter_is_true(const filter_expr *f) { return f->n_tests == 0; }
bool filter_needs_metadata(const filter_expr *f) { return f->needs_metadata; }
bool filter_needs_document(const filter_expr *f) { return f->needs_document; }

size_t filter_get_probes(const filter_expr *f, const filter_probe **probes) {
  *probes = f->probes;
  return f->n_probes;
}

bool filter_is_probe(const filter_expr *f) { return f->is_probe; }
