/* SPDX-License-Identifier: Apache-2.0 */
/* test_lying_disk.c - single lies of a disk, each at every place where it can be told; the simulator tells them at
 * random (test_simulator.c). Answers are of one commit, or say damage. */
#include "lode.h"
#include "support/fault.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define S(text) ((lode_str){(text), sizeof(text) - 1})
enum { RECORDS = 40 };

static lode_error err;

typedef struct handle {
  lode_store *store;
  lode_collection *c;
} handle;

static lode_status open_in(const char *folder, handle *h) {
  lode_open_options o = {.create = true, .no_background = true, .page_bytes = 512};
  *h = (handle){0};
  lode_status st = lode_open(folder, &o, &h->store, &err);
  if (st == LODE_OK)
    st = lode_collection_open(h->store, S("c"), &(lode_collection_options){.create = true}, &h->c, &err);
  return st;
}

static void close_it(handle *h) {
  lode_collection_close(h->c);
  lode_close(h->store);
}

static lode_status put(handle *h, int first, int n, const char *word) {
  static char ids[RECORDS][20], texts[RECORDS][300];
  lode_record r[RECORDS];
  for (int i = 0; i < n; i++) {
    int id = snprintf(ids[i], sizeof ids[i], "%d", first + i);
    int text = snprintf(texts[i], sizeof texts[i], "%s %0*d", word, 100 + (first + i) * 3, 7);
    r[i] = (lode_record){.id = {ids[i], (size_t)id}, .document = {texts[i], (size_t)text}};
  }
  return lode_upsert(h->c, NULL, r, (size_t)n, NULL, &err);
}

static lode_status drop(handle *h, const char *id) {
  lode_str s = {id, strlen(id)};
  size_t n = 0;
  return lode_delete(h->c, NULL, &(lode_selection){.ids = &s, .n_ids = 1}, &n, &err);
}

/* Ids and first words, in the order of insertion. */
static lode_status read_all(handle *h, char *text, size_t size) {
  lode_result *rows;
  lode_status st = lode_get(h->c, &(lode_get_request){.include = LODE_ALL}, &rows, &err);
  size_t at = 0;
  text[0] = 0;
  for (size_t i = 0; st == LODE_OK && i < lode_result_count(rows); i++) {
    const lode_row *row = lode_result_at(rows, i);
    at += (size_t)snprintf(text + at, size - at, "%.*s %.5s, ", (int)row->id.len, row->id.data, row->document.data);
    CHECK(at < size);
  }
  lode_result_free(rows);
  return st;
}

/* ---- Lies ---- */

static struct {
  uint64_t flip_at;      /* journal write whose first byte is changed; 0: none */
  uint64_t full_at;      /* database write that finds the disk full */
  bool loses_truncation; /* the next one of the journal */
  uint64_t journal_writes, db_writes;
} disk;

static bool is_file(const oscall *c, const char *name) {
  char path[OSCALL_PATH];
  oscall_path(c, path);
  const char *slash = strrchr(path, '/');
  return slash && strcmp(slash + 1, name) == 0;
}

static int64_t lying(oscall *c) {
  unsigned char copy[1024];
  if (c->kind == OSCALL_FTRUNCATE && disk.loses_truncation && is_file(c, "lode.db-journal")) {
    disk.loses_truncation = false;
    return 0;
  }
  if (c->kind != OSCALL_PWRITE) return oscall_pass(c);
  if (is_file(c, "lode.db") && ++disk.db_writes == disk.full_at) {
    errno = ENOSPC;
    return -1;
  }
  if (!is_file(c, "lode.db-journal") || ++disk.journal_writes != disk.flip_at || c->n > sizeof copy)
    return oscall_pass(c);
  memcpy(copy, c->from, c->n);
  copy[0] ^= 0x10;
  c->from = copy;
  return oscall_pass(c);
}

/* SQLite takes a record that it cannot read for the end of the journal. */
TEST_SLOW(a_transaction_that_rolls_itself_back_checks_its_journal, 300) {
  char base[400], work[400], before[2000], after[2000];
  uint64_t damaged = 0, undone = 0;
  handle h;
  snprintf(base, sizeof base, "%s/base", test_folder());
  snprintf(work, sizeof work, "%s/work", test_folder());
  OK(open_in(base, &h));
  OK(put(&h, 0, RECORDS, "older"));
  OK(read_all(&h, before, sizeof before));
  close_it(&h);
  oscall_push(lying, &os_real);
  for (uint64_t n = 1;; n++) {
    memset(&disk, 0, sizeof disk);
    test_remove_tree(work);
    test_copy_tree(base, work);
    OK(open_in(work, &h));
    memset(&disk, 0, sizeof disk);
    disk.flip_at = n;
    disk.full_at = 6;
    lode_status st = put(&h, 5, 20, "newer");
    CHECKF(st == LODE_FULL || st == LODE_CORRUPT, "write %llu: %s", (unsigned long long)n, lode_status_name(st));
    uint64_t writes = disk.journal_writes;
    disk.full_at = disk.flip_at = 0;
    for (int again = 0; again < 2; again++) {
      st = again ? open_in(work, &h) : LODE_OK;
      if (st == LODE_OK) st = read_all(&h, after, sizeof after);
      CHECKF(st == LODE_OK || st == LODE_CORRUPT, "write %llu: %s", (unsigned long long)n, err.text);
      CHECKF(st != LODE_OK || strcmp(before, after) == 0, "write %llu: %s", (unsigned long long)n, after);
      close_it(&h);
    }
    undone += st == LODE_OK;
    damaged += st != LODE_OK;
    if (n > writes) break;
  }
  oscall_pop(lying);
  CHECKF(damaged > 20 && undone, "%llu damaged, %llu undone", (unsigned long long)damaged, (unsigned long long)undone);
}

/* The first page of a new database: there is nothing to undo, and nothing may be completed either. */
TEST(a_store_that_cannot_be_made_is_made_later) {
  uint64_t hits = 1;
  for (uint64_t n = 1; hits; n++) {
    char folder[400], text[100];
    handle h;
    snprintf(folder, sizeof folder, "%s/s", test_folder());
    fault_install(&os_real);
    fault_set(FAULT_PWRITE, n, false, FAULT_EIO);
    lode_status st = open_in(folder, &h);
    hits = fault_hits();
    fault_uninstall();
    CHECKF(st == LODE_OK || (hits && (st == LODE_IO || st == LODE_GONE)), "write %llu: %s", (unsigned long long)n,
           err.text);
    close_it(&h);
    OK(open_in(folder, &h));
    OK(put(&h, 0, 1, "older"));
    OK(read_all(&h, text, sizeof text));
    close_it(&h);
  }
}

/* A commit without its end is undone by the next one who comes, and another takes its place: the handle that made it
 * keeps nothing of it. */
TEST(a_commit_that_the_disk_lost_is_in_no_cache) {
  char folder[400], a_sees[2000], b_sees[2000];
  handle a, b;
  snprintf(folder, sizeof folder, "%s/s", test_folder());
  memset(&disk, 0, sizeof disk);
  oscall_push(lying, &os_real);
  OK(open_in(folder, &a));
  OK(put(&a, 0, RECORDS, "older"));
  OK(open_in(folder, &b));
  OK(read_all(&b, b_sees, sizeof b_sees));
  for (int round = 0; round < 8; round++) {
    char id[20];
    snprintf(id, sizeof id, "%d", round * 5);
    OK(read_all(&a, a_sees, sizeof a_sees));
    disk.loses_truncation = true;
    if (round % 2)
      OK(put(&a, round, 20, "newer"));
    else
      OK(drop(&a, id));
    OK(put(&b, 10 + round, 7, "other"));
    if (round >= 4) OK(drop(&a, id)); /* before it reads anything */
    OK(read_all(&a, a_sees, sizeof a_sees));
    OK(read_all(&b, b_sees, sizeof b_sees));
    CHECKF(strcmp(a_sees, b_sees) == 0 && !strstr(a_sees, "newer"), "round %d: %s\n%s", round, a_sees, b_sees);
    OK(drop(&a, id));
    OK(read_all(&a, a_sees, sizeof a_sees));
    OK(read_all(&b, b_sees, sizeof b_sees));
    snprintf(id, sizeof id, " %d ", round * 5);
    CHECKF(strcmp(a_sees, b_sees) == 0 && !strstr(a_sees, id), "round %d: %s\n%s", round, a_sees, b_sees);
    OK(lode_verify(a.store, NULL, NULL, (lode_progress){0}, &err));
  }
  close_it(&a);
  close_it(&b);
  oscall_pop(lying);
}
