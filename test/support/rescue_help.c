/* SPDX-License-Identifier: Apache-2.0 */
/* rescue_help.c - see rescue_help.h. */
#include "support/rescue_help.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "rescue/chroma_dir.h"
#include "support/test.h"

const char *const rescue_fixtures[] = {"0.4.3", "0.4.24", "0.5.23", "0.6.3", "0.6.3-1.5.9", "1.0.21", "1.5.9", NULL};

const char *rescue_unpack(const char *version) {
  const char *folder = test_folder();
  char file[200];
  int status = 0;
  snprintf(file, sizeof file, "test/fixtures/chroma/chroma-%s.tar.xz", version);
  if (access(file, R_OK) != 0) test_skip("the fixtures are not here: run it from the top of the source");
  pid_t pid = fork();
  if (pid == 0) {
    execlp("tar", "tar", "-C", folder, "-xJf", file, (char *)NULL);
    _exit(127);
  }
  if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0) test_skip("tar and xz are needed to unpack the fixtures");
  return folder;
}

void rescue_segment(const char *folder, const char *collection, char *path, size_t size) {
  rescue_dir c;
  lode_error err;
  char dir[300];
  snprintf(dir, sizeof dir, "%s/chroma", folder);
  OK(rescue_dir_open(dir, (lode_progress){0}, &c, &err));
  path[0] = 0;
  for (size_t i = 0; i < c.n_colls; i++)
    if (str_eq(c.colls[i].name, str_of(collection)) && c.colls[i].vector_segment != RESCUE_NO_NAME)
      snprintf(path, size, "%s/%s", dir, c.names[c.colls[i].vector_segment].text.data);
  rescue_dir_close(&c);
  CHECKF(path[0], "%s has no index", collection);
}

void rescue_sql(const char *folder, const char *text) {
  char path[400], *why = NULL;
  sqlite3 *db = NULL;
  snprintf(path, sizeof path, "%s/chroma/chroma.sqlite3", folder);
  CHECK(sqlite3_open(path, &db) == SQLITE_OK);
  CHECKF(sqlite3_exec(db, text, NULL, NULL, &why) == SQLITE_OK, "%s: %s", text, why);
  CHECK(sqlite3_close(db) == SQLITE_OK);
}

/* ---- Running ---- */

typedef struct run {
  rescue_outcome *o;
  char *told; /* "collection\nid\n" of each doubtful record */
  size_t len, cap;
} run;

static lode_status on_collection(void *v, const rescue_counts *n, lode_error *err) {
  run *r = v;
  rescue_counts *t = &r->o->total;
  (void)err;
  CHECK(n->exact + n->from_log + n->embedded + n->missing == n->records);
  r->o->collections++;
  t->records += n->records;
  t->exact += n->exact;
  t->from_log += n->from_log;
  t->missing += n->missing;
  t->refused += n->refused;
  t->lost += n->lost;
  t->doubtful += n->doubtful;
  t->by_order += n->by_order;
  t->written += n->written;
  t->unchanged += n->unchanged;
  return LODE_OK;
}

static lode_status on_doubt(void *v, lode_str collection, lode_str id, const char *what, lode_error *err) {
  run *r = v;
  (void)err;
  CHECK(what && *what);
  r->o->told++;
  size_t need = r->len + collection.len + id.len + 2;
  if (need > r->cap) r->told = realloc(r->told, r->cap = need * 2);
  memcpy(r->told + r->len, collection.data, collection.len);
  r->told[r->len + collection.len] = '\n';
  memcpy(r->told + r->len + collection.len + 1, id.data, id.len);
  r->told[need - 1] = '\n';
  r->len = need;
  return LODE_OK;
}

static bool was_told(const run *r, lode_str collection, lode_str id) {
  for (size_t at = 0; at < r->len;) {
    const char *c = r->told + at, *c_end = memchr(c, '\n', r->len - at);
    const char *i = c_end + 1, *i_end = memchr(i, '\n', (size_t)(r->told + r->len - i));
    if (str_eq((lode_str){c, (size_t)(c_end - c)}, collection) && str_eq((lode_str){i, (size_t)(i_end - i)}, id))
      return true;
    at = (size_t)(i_end + 1 - r->told);
  }
  return false;
}

/* ---- Comparing ---- */

static bool same_number(double a, double b) { return fabs(a - b) <= 1e-5 * (1 + fabs(a)); }

static double number_of(const json_node *n) { return n->type == JSON_NODE_INT ? (double)n->u.i : n->u.d; }
static bool is_number(const json_node *n) { return n->type == JSON_NODE_INT || n->type == JSON_NODE_DOUBLE; }

/* Flat values and arrays of them; types count: 1 is not 1.0. */
static bool same_value(const json_doc *a, uint32_t i, const json_doc *b, uint32_t j) {
  const json_node *x = &a->nodes[i], *y = &b->nodes[j];
  if (x->type != y->type) return false;
  if (x->type == JSON_NODE_STRING) return str_eq(x->u.s, y->u.s);
  if (x->type == JSON_NODE_INT) return x->u.i == y->u.i;
  if (x->type == JSON_NODE_DOUBLE) return x->u.d == y->u.d;
  if (x->type != JSON_NODE_ARRAY) return true;
  if (x->u.count != y->u.count) return false;
  for (uint32_t k = i + 1, l = j + 1; k < x->next; k = a->nodes[k].next, l = b->nodes[l].next) {
    if (is_number(&a->nodes[k]) ? !is_number(&b->nodes[l]) || number_of(&a->nodes[k]) != number_of(&b->nodes[l])
                                : !same_value(a, k, b, l))
      return false;
  }
  return true;
}

static bool same_metadata(const json_doc *want, uint32_t object, lode_str got) {
  json_doc json = {0};
  bool same = true;
  if (want->nodes[object].type == JSON_NODE_NULL) return !got.data;
  if (!got.data || json_parse(&json, got, NULL, NULL) != LODE_OK) return false;
  if (json.nodes[0].u.count != want->nodes[object].u.count) same = false;
  for (uint32_t k = object + 1; same && k < want->nodes[object].next;) {
    uint32_t value = want->nodes[k].next, mine = json_get(&json, 0, want->nodes[k].u.s);
    if (!mine || !same_value(want, value, &json, mine)) same = false;
    k = want->nodes[value].next;
  }
  json_release(&json);
  return same;
}

static bool same_vector(const json_doc *want, uint32_t array, const lode_row *row) {
  uint32_t at = array + 1;
  if (want->nodes[array].u.count != row->dimension) return false;
  for (uint32_t i = 0; i < row->dimension; i++, at = want->nodes[at].next)
    if (!same_number(number_of(&want->nodes[at]), row->vector[i])) return false;
  return true;
}

static void compare_record(run *r, lode_collection *c, lode_str collection, const json_doc *want) {
  rescue_outcome *o = r->o;
  lode_error err;
  lode_result *rows = NULL;
  lode_str id = want->nodes[json_get(want, 0, STR_LIT("id"))].u.s;
  lode_get_request get = {.select = {.ids = &id, .n_ids = 1}, .include = LODE_ALL};
  o->compared++;
  if (!c) {
    o->absent++;
    return;
  }
  OK(lode_get(c, &get, &rows, &err));
  if (lode_result_count(rows) == 0) {
    o->absent++;
  } else {
    const lode_row *row = lode_result_at(rows, 0);
    const json_node *doc = &want->nodes[json_get(want, 0, STR_LIT("document"))];
    bool wrong = doc->type == JSON_NODE_STRING ? !row->document.data || !str_eq(row->document, doc->u.s)
                                               : row->document.data != NULL;
    wrong |= !same_metadata(want, json_get(want, 0, STR_LIT("metadata")), row->metadata);
    bool other = row->vector && !same_vector(want, json_get(want, 0, STR_LIT("embedding")), row);
    o->wrong_text += wrong;
    o->no_vector += !row->vector;
    o->wrong_vector += other;
    o->text_untold += wrong && !was_told(r, collection, id);
    o->wrong_untold += other && !was_told(r, collection, id);
  }
  lode_result_free(rows);
}

static void compare(run *r, lode_store *store, const char *folder, const char *only) {
  char path[300];
  size_t len;
  json_doc json = {0};
  lode_error err;
  lode_collection *c = NULL;
  char name[200] = "";
  uint64_t expected = 0, there = 0, n = 0;
  snprintf(path, sizeof path, "%s/expected.jsonl", folder);
  char *text = test_read_file(path, &len);
  for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
    OK(json_parse(&json, (lode_str){line, (size_t)(end - line)}, NULL, &err));
    uint32_t head = json_get(&json, 0, STR_LIT("collection"));
    if (head) {
      lode_collection_close(c);
      c = NULL;
      snprintf(name, sizeof name, "%.*s", (int)json.nodes[head].u.s.len, json.nodes[head].u.s.data);
      if (only && strcmp(only, name) != 0) continue;
      lode_status st = lode_collection_open(store, str_of(name), &(lode_collection_options){0}, &c, &err);
      if (st == LODE_OK) {
        OK(lode_count(c, &n, &err));
        there += n;
      }
      expected += (uint64_t)json.nodes[json_get(&json, 0, STR_LIT("count"))].u.i;
    } else if (!only || strcmp(only, name) == 0) {
      compare_record(r, c, str_of(name), &json);
    }
  }
  r->o->extra = there > expected - r->o->absent ? there - (expected - r->o->absent) : 0;
  lode_collection_close(c);
  json_release(&json);
  free(text);
}

lode_status rescue_into(const char *folder, const char *to, const char *only, rescue_outcome *o, lode_error *err) {
  char from[300];
  lode_open_options how = {.create = true, .no_background = true};
  lode_store *store = NULL;
  run r = {.o = o};
  *o = (rescue_outcome){0};
  snprintf(from, sizeof from, "%s/chroma", folder);
  lode_status st = lode_open(to, &how, &store, err);
  if (st != LODE_OK) return st;
  rescue_request q = {.from = from, .to = store, .collection = on_collection, .doubt = on_doubt, .ctx = &r};
  st = rescue_from_chroma(&q, err);
  if (st == LODE_OK) compare(&r, store, folder, only);
  lode_close(store);
  free(r.told);
  return st;
}

lode_status rescue_run(const char *folder, const char *only, rescue_outcome *o, lode_error *err) {
  const char *to = test_folder();
  lode_status st = rescue_into(folder, to, only, o, err);
  test_remove_tree(to);
  return st;
}

void rescue_check_whole(const rescue_outcome *o) {
  CHECKF(o->absent == 0 && o->extra == 0, "%llu absent, %llu extra of %llu", (unsigned long long)o->absent,
         (unsigned long long)o->extra, (unsigned long long)o->compared);
  CHECKF(o->wrong_text == 0, "%llu documents or metadata differ", (unsigned long long)o->wrong_text);
  CHECKF(o->wrong_vector == 0, "%llu vectors differ", (unsigned long long)o->wrong_vector);
  CHECKF(o->no_vector == 0, "%llu vectors are missing", (unsigned long long)o->no_vector);
}
