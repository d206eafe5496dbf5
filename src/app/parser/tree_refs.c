/* SPDX-License-Identifier: Apache-2.0 */
/* tree_refs.c - groups of uses, and local names; see tree_refs.h. Work on each name is bounded: chains of buckets are
 * followed a fixed number of steps. */
#include "parser/tree_refs.h"

enum { REFS_MAX_STEPS = 64, REFS_MIN_TABLE = 1024 };

void parser_refs_clear(parser_refs *r) {
  r->n_groups = r->n = r->n_locals = 0;
  r->failed = false;
  if (r->table) memset(r->table, 0, r->table_size * sizeof *r->table);
  memset(r->buckets, 0, sizeof r->buckets);
  mem_arena_reset(&r->strings);
}

void parser_refs_release(parser_refs *r) {
  mem_free(r->groups);
  mem_free(r->occurrences);
  mem_free(r->table);
  mem_free(r->locals);
  mem_arena_release(&r->strings);
  *r = (parser_refs){0};
}

/* ---- Uses ---- */

static size_t refs_bucket(const parser_refs *r, const chunk_ref_group *u) {
  uint64_t h = hash_bytes(u->name.data, u->name.len) * 31 + hash_bytes(u->qualifier.data, u->qualifier.len) + u->use;
  return (size_t)(h & (r->table_size - 1));
}

static bool refs_grow_table(parser_refs *r) {
  if (r->n_groups < r->table_size) return true;
  size_t size = r->table_size ? 2 * r->table_size : REFS_MIN_TABLE;
  uint32_t *table = mem_calloc(size, sizeof *table);
  if (!table) return false;
  mem_free(r->table);
  r->table = table;
  r->table_size = size;
  for (size_t i = 0; i < r->n_groups; i++) {
    size_t b = refs_bucket(r, &r->groups[i].g);
    r->groups[i].next = r->table[b];
    r->table[b] = (uint32_t)i + 1;
  }
  return true;
}

static bool refs_same(const chunk_ref_group *a, const chunk_ref_group *b) {
  return a->use == b->use && str_eq(a->name, b->name) && str_eq(a->qualifier, b->qualifier) &&
         str_eq(a->local, b->local);
}

static parser_ref_group *refs_group(parser_refs *r, const chunk_ref_group *u) {
  if (!refs_grow_table(r)) return NULL;
  size_t b = refs_bucket(r, u);
  int steps = 0;
  for (uint32_t at = r->table[b]; at && steps < REFS_MAX_STEPS; at = r->groups[at - 1].next, steps++)
    if (refs_same(&r->groups[at - 1].g, u)) return &r->groups[at - 1];
  if (!mem_grow(&r->groups, &r->groups_cap, r->n_groups + 1, sizeof *r->groups)) return NULL;
  parser_ref_group *g = &r->groups[r->n_groups++];
  *g = (parser_ref_group){.g = *u, .next = r->table[b]};
  r->table[b] = (uint32_t)r->n_groups;
  return g;
}

void parser_refs_add(parser_refs *r, const chunk_ref_group *use, uint32_t line) {
  if (r->failed || r->n >= PARSER_MAX_REFS || use->name.len > 256) return;
  parser_ref_group *g = refs_group(r, use);
  r->failed = !g || !mem_grow(&r->occurrences, &r->cap, r->n + 1, sizeof *r->occurrences);
  if (r->failed) return;
  r->occurrences[r->n++] = (parser_occurrence){.line = line};
  if (g->first)
    r->occurrences[g->last - 1].next = (uint32_t)r->n;
  else
    g->first = (uint32_t)r->n;
  g->last = (uint32_t)r->n;
  g->g.n_lines++;
}

void parser_refs_encode(parser_refs *r, strbuf *out) {
  uint32_t *lines = mem_calloc(r->n + 1, sizeof *lines);
  if (!lines) r->failed = true;
  for (size_t i = 0; i < r->n_groups && !r->failed; i++) {
    chunk_ref_group g = r->groups[i].g;
    size_t n = 0;
    for (uint32_t at = r->groups[i].first; at; at = r->occurrences[at - 1].next) {
      uint32_t line = r->occurrences[at - 1].line;
      /* calls are added before the names inside them, which may stand on an earlier line */
      lines[n] = n && line < lines[n - 1] ? lines[n - 1] : line;
      n++;
    }
    g.lines = lines;
    g.n_lines = n;
    chunk_symbols_put_refs(out, &g);
  }
  mem_free(lines);
}

/* ---- Local names ---- */

static uint32_t refs_local_bucket(lode_str name) {
  return (uint32_t)(hash_bytes(name.data, name.len) % (sizeof((parser_refs *)0)->buckets / sizeof(uint32_t)));
}

void parser_bind_local(parser_refs *r, lode_str name, lode_str type) {
  if (r->failed || r->n_locals >= PARSER_MAX_LOCALS) return;
  if (!mem_grow(&r->locals, &r->locals_cap, r->n_locals + 1, sizeof *r->locals)) {
    r->failed = true;
    return;
  }
  uint32_t b = refs_local_bucket(name);
  r->locals[r->n_locals++] = (parser_local){.name = name, .type = type, .before = r->buckets[b], .bucket = b};
  r->buckets[b] = (uint32_t)r->n_locals;
}

const parser_local *parser_find_local(const parser_refs *r, lode_str name) {
  int steps = 0;
  for (uint32_t at = r->buckets[refs_local_bucket(name)]; at && steps < REFS_MAX_STEPS; steps++) {
    const parser_local *l = &r->locals[at - 1];
    if (str_eq(l->name, name)) return l;
    at = l->before;
  }
  return NULL;
}

void parser_forget_locals(parser_refs *r, size_t n) {
  while (r->n_locals > n) {
    const parser_local *l = &r->locals[--r->n_locals];
    r->buckets[l->bucket] = l->before;
  }
}
