/* SPDX-License-Identifier: Apache-2.0 */
/* notes.c - liblode in one page: a store, a few records, the nearest of them, a filter.
 *
 *   cc -o notes notes.c $(pkg-config --cflags --libs lode)
 *   ./notes FOLDER
 */
#include <lode.h>
#include <stdio.h>
#include <string.h>

static lode_str text(const char *s) { return (lode_str){s, strlen(s)}; }

static int complain(const lode_error *err) {
  fprintf(stderr, "notes: %s\n", err->text);
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: notes FOLDER\n");
    return 2;
  }
  lode_error err;
  lode_store *store = NULL;
  lode_collection *notes = NULL;
  lode_result *rows = NULL;
  int code = 1;

  lode_open_options open = {.create = true};
  lode_collection_options kind = {.create = true, .metric = LODE_COSINE};
  if (lode_open(argv[1], &open, &store, &err) != LODE_OK) return complain(&err);
  if (lode_collection_open(store, text("notes"), &kind, &notes, &err) != LODE_OK) goto failed;

  static const float north[2] = {0, 1}, east[2] = {1, 0}, north_east[2] = {1, 1};
  lode_record records[] = {
      {.id = text("n"),
       .document = text("due north"),
       .metadata = text("{\"year\":2024}"),
       .vector = north,
       .dimension = 2},
      {.id = text("e"),
       .document = text("due east"),
       .metadata = text("{\"year\":2025}"),
       .vector = east,
       .dimension = 2},
      {.id = text("ne"),
       .document = text("in between"),
       .metadata = text("{\"year\":2026}"),
       .vector = north_east,
       .dimension = 2},
  };
  /* durable when it returns LODE_OK; all of the batch or nothing of it */
  if (lode_upsert(notes, NULL, records, 3, NULL, &err) != LODE_OK) goto failed;

  lode_query_request query = {.vectors = east,
                              .dimension = 2,
                              .n = 1,
                              .k = 2,
                              .select.where = text("{\"year\":{\"$gte\":2025}}"),
                              .include = LODE_ALL};
  if (lode_query(notes, &query, &rows, &err) != LODE_OK) goto failed;
  for (size_t i = 0; i < lode_result_count(rows); i++) {
    const lode_row *row = lode_result_at(rows, i);
    printf("%.*s %.3f %.*s\n", (int)row->id.len, row->id.data, row->distance, (int)row->document.len,
           row->document.data);
  }
  code = 0;
  goto done;
failed:
  complain(&err);
done:
  lode_result_free(rows);
  lode_collection_close(notes);
  lode_close(store);
  return code;
}
