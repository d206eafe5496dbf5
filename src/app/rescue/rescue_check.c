/* SPDX-License-Identifier: Apache-2.0 */
/* rescue_check.c - reports what is wrong with a Chroma directory, without changing it; see rescue.h. */
#include <fcntl.h>
#include <stdio.h>

#include "os/os.h"
#include "rescue/rescue_plan.h"
#include "rescue/rescue.h"

typedef struct rescue_check_state {
  const rescue_check_request *q;
  rescue_check_report *r;
  lode_status st; /* of the callback */
  lode_error *err;
} rescue_check_state;

__attribute__((format(printf, 4, 5))) static void
rescue_check_report_finding(rescue_check_state *k, const char *what, lode_str collection, const char *format, ...) {
  char text[500];
  va_list list;
  bool damage = what[0] != '-'; /* "-age": worth knowing, not damage */
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  if (damage)
    k->r->damages++;
  else
    k->r->notes++;
  if (k->st == LODE_OK) k->st = k->q->found(k->q->ctx, damage ? what : what + 1, damage, collection, text, k->err);
}

#define RESCUE_ULL(n) ((unsigned long long)(n))

static void rescue_check_database(rescue_check_state *k, const rescue_dir *c) {
  sqf_info i;
  lode_str none = {0};
  sqf_get_info(c->file, &i);
  if (i.header_lost)
    rescue_check_report_finding(k, "database", none,
                                "page 1 of chroma.sqlite3 is damaged: Chroma takes it for an empty or no database");
  if (i.damaged_pages)
    rescue_check_report_finding(k, "database", none,
                                "%u pages of chroma.sqlite3 are not what they should be, the first of them page %u",
                                i.damaged_pages, i.first_damaged);
  if (i.damaged_rows)
    rescue_check_report_finding(k, "database", none, "%llu rows of chroma.sqlite3 cannot be read whole",
                                RESCUE_ULL(i.damaged_rows));
  if (c->schema_lost && !i.header_lost)
    rescue_check_report_finding(k, "database", none, "the list of tables of chroma.sqlite3 is damaged");
  if (i.journal_pages)
    rescue_check_report_finding(
        k, "-journal", none, "a transaction did not finish: %u pages wait in chroma.sqlite3-journal to be rolled back",
        i.journal_pages);
  if (i.wal_pages) rescue_check_report_finding(k, "-journal", none, "%u pages are in chroma.sqlite3-wal", i.wal_pages);
  uint64_t of_segments = 0;
  for (size_t n = 0; n < c->n_names; n++) of_segments += c->names[n].max_seq_blob;
  if (c->seq_integer && c->blob_seqs)
    rescue_check_report_finding(k, of_segments ? "sequence ids" : "-sequence ids", none,
                                "%llu sequence ids are blobs, as 0.6 wrote them, in a database of 1.x, versions of "
                                "which fail on them; quarantine --fix-seq-ids repairs them",
                                RESCUE_ULL(c->blob_seqs));
}

/* Deletions in the log that the index has not applied yet: the index still has the ids, which is not an error. */
static uint64_t rescue_check_pending_deletes(const rescue_plan *p, const rescue_index_dir *f) {
  int64_t applied = p->coll->vector_seq >= 0 ? p->coll->vector_seq : f->pickle_seq;
  uint64_t n = 0;
  for (size_t i = 0; applied >= 0 && i < p->coll->n_log; i++) {
    const rescue_log_entry *l = &p->chroma->logs[p->coll->log + i];
    n += l->op == RESCUE_LOG_DELETE && l->seq > applied;
  }
  return n;
}

static void rescue_check_index_dir(rescue_check_state *k, const rescue_plan *p, const rescue_index_dir *f,
                                   int64_t db_mtime_s) {
  lode_str name = p->coll->name;
  const rescue_hnsw *x = &f->index;
  if (f->set_aside) {
    rescue_check_report_finding(k, "-set aside", name, "%.300s was set aside; a rescue reads it too", f->path);
    return;
  }
  if (f->status == LODE_NOT_FOUND) {
    if (p->coll->vector_seq > 0)
      rescue_check_report_finding(k, "index", name, "the folder of the index is gone: %.300s", f->path);
    return;
  }
  if (f->status != LODE_OK) {
    rescue_check_report_finding(k, "index", name, "%.250s", f->why);
    return;
  }
  uint64_t live = x->live, rows = 0, beyond = 0, going = rescue_check_pending_deletes(p, f);
  uint64_t extra = f->pickle_extra > going ? f->pickle_extra - going : 0;
  for (size_t i = 0; i < p->n; i++) {
    const rescue_rec *r = &p->recs[i];
    rows += r->key > 0 && !r->late;
    beyond += r->slot && &p->folders[r->folder] == f && x->slots[r->slot - 1].beyond;
  }
  if (x->header_bad)
    rescue_check_report_finding(k, "index", name, "header.bin is damaged: count() of Chroma dies of it, or fails");
  if (x->cut)
    rescue_check_report_finding(k, "index", name, "data_level0.bin holds fewer elements than header.bin says (%llu)",
                                RESCUE_ULL(x->claimed));
  if (beyond)
    rescue_check_report_finding(k, "index", name,
                                "the pickle names %llu elements past those that header.bin counts (%llu)",
                                RESCUE_ULL(beyond), RESCUE_ULL(x->claimed));
  if (x->lengths_bad && p->coll->metric == LODE_COSINE && live)
    rescue_check_report_finding(k, "index", name, "length.bin is damaged: vectors are known up to their length only");
  if (x->blank)
    rescue_check_report_finding(
        k, "index", name, "%llu elements of data_level0.bin have no label: they are overwritten", RESCUE_ULL(x->blank));
  if (x->doubles) rescue_check_report_finding(k, "index", name, "%llu labels are there twice", RESCUE_ULL(x->doubles));
  if (f->pickle == RESCUE_PICKLE_TRUNCATED)
    rescue_check_report_finding(
        k, "pickle", name, "index_metadata.pickle is damaged from some byte on: Chroma cannot open the collection");
  if (f->pickle == RESCUE_PICKLE_LOST && live)
    rescue_check_report_finding(k, "pickle", name,
                                f->has_pickle
                                    ? "index_metadata.pickle is damaged: Chroma cannot open the collection"
                                    : "index_metadata.pickle is missing: Chroma forgets what the index holds");
  if (f->pickle_conflicts)
    rescue_check_report_finding(k, "pickle", name, "%llu ids have no label that both halves of the pickle agree on",
                                RESCUE_ULL(f->pickle_conflicts));
  if (extra)
    rescue_check_report_finding(k, "drift", name, "the index claims %llu ids that the database does not have",
                                RESCUE_ULL(extra));
  if (live > rows && live - rows > f->pickle_extra + going)
    rescue_check_report_finding(k, "drift", name, "the index has %llu elements, the database %llu rows for it",
                                RESCUE_ULL(live), RESCUE_ULL(rows));
  if (live && db_mtime_s - x->mtime_s > 3600)
    rescue_check_report_finding(k, "-age", name,
                                "chroma.sqlite3 is %lld seconds newer than data_level0.bin; age alone is no damage",
                                (long long)(db_mtime_s - x->mtime_s));
}

static void rescue_check_coll(rescue_check_state *k, rescue_plan *p, int64_t db_mtime_s) {
  lode_str name = p->coll->name;
  uint64_t pending = 0;
  for (size_t i = 0; i < p->coll->n_log; i++)
    pending += p->coll->vector_seq >= 0 && p->chroma->logs[p->coll->log + i].seq > p->coll->vector_seq;
  if (p->coll->inferred)
    rescue_check_report_finding(k, "collection", name, "its own row is lost: name and configuration are made up");
  if (p->coll->poisoned)
    rescue_check_report_finding(k, "sequence ids", name,
                                "max_seq_id is past anything that was ever written: Chroma ignores newer writes");
  for (size_t i = 0; i < p->n_folders; i++) rescue_check_index_dir(k, p, &p->folders[i], db_mtime_s);
  if (pending)
    rescue_check_report_finding(k, "-lag", name, "%llu writes are in the queue and not in the index yet",
                                RESCUE_ULL(pending));
  if (p->missing)
    rescue_check_report_finding(k, "vectors", name, "%llu vectors are nowhere on the disk", RESCUE_ULL(p->missing));
  k->r->records += p->alive;
  k->r->exact += p->from_index;
  k->r->from_log += p->from_log;
  k->r->missing += p->missing;
  k->r->collections++;
}

lode_status rescue_check(const rescue_check_request *q, rescue_check_report *r, lode_error *err) {
  rescue_check_state k = {.q = q, .r = r, .err = err};
  rescue_dir c;
  strbuf path = {0};
  struct stat sb;
  lode_status st = LODE_OK;
  *r = (rescue_check_report){0};
  err_clear(err);
  TRY(rescue_dir_open(q->from, q->progress, &c, err));
  strbuf_addf(&path, "%s/chroma.sqlite3", q->from);
  strbuf_addch(&path, 0);
  int64_t mtime_s = !path.failed && OS_RETRY(os_api->stat(path.data, &sb)) == 0 ? (int64_t)sb.st_mtime : 0;
  strbuf_release(&path);
  rescue_check_database(&k, &c);
  for (size_t i = 0; i < c.n_colls && st == LODE_OK && k.st == LODE_OK; i++) {
    rescue_plan p;
    st = rescue_plan_make(&c, &c.colls[i], &p, err);
    if (st != LODE_OK) break;
    rescue_check_coll(&k, &p, mtime_s);
    rescue_plan_release(&p);
  }
  rescue_dir_close(&c);
  return st != LODE_OK ? st : k.st;
}
