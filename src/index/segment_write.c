/* segment_write.c - makes the bytes of a segment; see segment.h.
 *
 * Vectors are written as they come. At the finish the graph is made, and the other sections are written in the order of
 * the file through one page-sized buffer that also collects the checksums; the header comes last, so a file without
 * its end has no header either.
 */
#include "index/segment.h"

enum { BUFFER_BYTES = 1 << 20 };

/* ---- Pages that are checked ---- */

typedef struct pages {
  const lode__maker *maker;
  const lode__segment_layout *layout;
  unsigned char *bytes;  /* BUFFER_BYTES */
  size_t used;
  uint64_t at;           /* file offset of bytes */
  unsigned char *table;
} pages;

static void set_checksum(pages *p, uint64_t page, const void *bytes) {
  uint32_t crc = lode__segment_page_crc(p->maker->info.id, page, bytes);
  memcpy(p->table + lode__segment_checksum_index(p->layout, page) * sizeof crc, &crc, sizeof crc);
}

static lode_status flush(pages *p, lode_error *err) {
  for (size_t i = 0; i < p->used; i += LODE__PAGE_BYTES) set_checksum(p, (p->at + i) / LODE__PAGE_BYTES, p->bytes + i);
  if (p->used) TRY(p->maker->options.write(p->maker->options.ctx, p->at, p->bytes, p->used, err));
  p->at += p->used;
  p->used = 0;
  return LODE_OK;
}

static lode_status put(pages *p, const void *data, size_t n, lode_error *err) {
  const unsigned char *from = data;
  while (n) {
    size_t m = BUFFER_BYTES - p->used < n ? BUFFER_BYTES - p->used : n;
    memcpy(p->bytes + p->used, from, m);
    p->used += m;
    from += m;
    n -= m;
    if (p->used == BUFFER_BYTES) TRY(flush(p, err));
  }
  return LODE_OK;
}

/* Zeros up to the next page. */
static lode_status end_section(pages *p, lode_error *err) {
  static const unsigned char zeros[LODE__PAGE_BYTES];
  size_t part = p->used % LODE__PAGE_BYTES;
  return part ? put(p, zeros, LODE__PAGE_BYTES - part, err) : LODE_OK;
}

/* ---- Rows as they come ---- */

/* Construction reads rows in any order, over and over. */
static bool reserve(lode__maker *maker, uint32_t rows) {
  size_t bytes;
  if (rows == 0) return true;
  if (mem_mul_overflow(rows, maker->stride, &bytes)) return false;
  maker->rows = mem_alloc_large(bytes);
  maker->rows_cap = maker->rows ? rows : 0;
  return maker->rows && mem_grow(&maker->records, &maker->records_cap, rows, LODE__SEG_RECORD_BYTES) &&
         mem_grow(&maker->lengths, &maker->lengths_cap, rows, sizeof *maker->lengths);
}

lode_status lode__maker_begin(lode__maker *maker, const lode__maker_options *options, lode_error *err) {
  const lode__code_model *model = &options->model;
  *maker = (lode__maker){.options = *options};
  if ((options->kind != LODE__FLAT && options->kind != LODE__GRAPH) || model->dim == 0 ||
      model->dim > LODE_MAX_DIMENSION) {
    return err_set(err, LODE_INVALID, "a segment is flat or a graph, of 1 to %d dimensions", LODE_MAX_DIMENSION);
  }
  maker->info = (lode__segment_info){.kind = options->kind, .metric = model->metric, .dim = model->dim,
                                     .id = options->id, .unit = model->unit};
  maker->stride = lode__code_stride(model->dim);
  maker->vectors_end = LODE__PAGE_BYTES;
  maker->buffer = mem_alloc(BUFFER_BYTES);
  if (maker->buffer && reserve(maker, options->rows_hint)) return LODE_OK;
  lode__maker_release(maker);
  return err_nomem(err);
}

static lode_status flush_vectors(lode__maker *maker, lode_error *err) {
  if (!maker->buffered) return LODE_OK;
  TRY(maker->options.write(maker->options.ctx, maker->vectors_end, maker->buffer, maker->buffered, err));
  maker->vectors_end += maker->buffered;
  maker->buffered = 0;
  return LODE_OK;
}

/* In pieces that end at multiples of their size: a file system may then keep each in one large page of its cache, which halves the
 * time that a vector takes to read. */
static lode_status put_vectors(lode__maker *maker, const void *data, size_t n, lode_error *err) {
  const unsigned char *from = data;
  while (n) {
    size_t left = BUFFER_BYTES - (size_t)((maker->vectors_end + maker->buffered) % BUFFER_BYTES), m = left < n ? left : n;
    memcpy(maker->buffer + maker->buffered, from, m);
    maker->buffered += m;
    from += m;
    n -= m;
    if (m == left) TRY(flush_vectors(maker, err));
  }
  return LODE_OK;
}

lode_status lode__maker_add(lode__maker *maker, const float *vector, int64_t key, uint64_t cursor, lode_error *err) {
  uint32_t slot = maker->info.n, dim = maker->info.dim;
  size_t need = (size_t)slot + 1;
  if (need > LODE__MAX_ROWS) return err_set(err, LODE_LIMIT, "a segment has at most %u rows", LODE__MAX_ROWS);
  if (!mem_grow(&maker->rows, &maker->rows_cap, need, maker->stride) ||
      !mem_grow(&maker->records, &maker->records_cap, need, LODE__SEG_RECORD_BYTES) ||
      !mem_grow(&maker->lengths, &maker->lengths_cap, need, sizeof *maker->lengths)) {
    return err_nomem(err);
  }
  TRY(put_vectors(maker, vector, dim * sizeof *vector, err));
  maker->lengths[slot] = lode__code_row(&maker->options.model, vector, slot, maker->rows + slot * maker->stride);
  unsigned char *record = maker->records + (size_t)slot * LODE__SEG_RECORD_BYTES;
  uint32_t crc = lode__segment_vector_crc(maker->info.id, slot, vector, dim * sizeof *vector);
  memset(record, 0, LODE__SEG_RECORD_BYTES);
  memcpy(record, &key, sizeof key);
  memcpy(record + 8, &cursor, sizeof cursor);
  memcpy(record + 16, &crc, sizeof crc);
  maker->info.n++;
  return LODE_OK;
}

/* ---- The finish ---- */

static lode_status pad_vectors(lode__maker *maker, lode_error *err) {
  static const unsigned char zeros[LODE__PAGE_BYTES];
  size_t part = (size_t)((maker->vectors_end + maker->buffered) % LODE__PAGE_BYTES);
  if (part) TRY(put_vectors(maker, zeros, LODE__PAGE_BYTES - part, err));
  return flush_vectors(maker, err);
}

static lode_status put_graph(const lode__maker *maker, const lode__graph *graph, pages *p, lode_error *err) {
  uint32_t links[1024];
  ENSURE(graph->degree <= sizeof links / sizeof *links, err);
  for (uint32_t i = 0; i < maker->info.n; i++) {
    TRY(put(p, maker->rows + (size_t)graph->order[i] * maker->stride, maker->stride, err));
  }
  TRY(end_section(p, err));
  for (uint32_t i = 0; i < maker->info.n; i++) {
    lode__graph_links(graph, i, links);
    TRY(put(p, links, graph->degree * sizeof *links, err));
  }
  TRY(end_section(p, err));
  return put(p, graph->place, (size_t)maker->info.n * sizeof *graph->place, err);
}

static lode_status put_sections(const lode__maker *maker, const lode__graph *graph, pages *p, lode_error *err) {
  TRY(put(p, maker->options.model.mean, maker->info.dim * sizeof(float), err));
  TRY(end_section(p, err));
  if (graph->n) TRY(put_graph(maker, graph, p, err));
  else TRY(put(p, maker->rows, (size_t)maker->info.n * maker->stride, err));
  TRY(end_section(p, err));
  TRY(put(p, maker->records, (size_t)maker->info.n * LODE__SEG_RECORD_BYTES, err));
  TRY(end_section(p, err));
  return flush(p, err);
}

static lode_status put_ends(lode__maker *maker, pages *p, lode_error *err) {
  unsigned char header[LODE__PAGE_BYTES];
  size_t bytes = (size_t)p->layout->bytes[LODE__SEG_CHECKSUMS], all = (size_t)(p->layout->total - p->at);
  lode__segment_header_put(&maker->info, header);
  set_checksum(p, 0, header);
  maker->table_crc = lode__segment_table_crc(maker->info.id, p->table, bytes);
  TRY(maker->options.write(maker->options.ctx, p->at, p->table, all, err));
  return maker->options.write(maker->options.ctx, 0, header, sizeof header, err);
}

lode_status lode__maker_finish(lode__maker *maker, lode_error *err) {
  lode_status st = LODE_OK;
  lode__graph graph = {0};
  lode__segment_layout layout;
  pages p = {.maker = maker, .layout = &layout};
  if (maker->info.n == 0) return err_set(err, LODE_INVALID, "a segment needs at least one row");
  TRY_GOTO(pad_vectors(maker, err));
  if (maker->info.kind == LODE__GRAPH) {
    lode__graph_input input = {.rows = maker->rows, .lengths = maker->lengths, .stride = maker->stride,
                               .n = maker->info.n, .dim = maker->info.dim, .metric = maker->info.metric,
                               .unit = maker->info.unit};
    TRY_GOTO(lode__graph_build(&input, &maker->options.graph, &graph, err));
    maker->info.degree = graph.degree;
    maker->info.n_entries = graph.n_entries;
    maker->info.effort = graph.effort;
    maker->info.curve = graph.curve;
    maker->info.climbs = graph.climbs;
  }
  if (!lode__segment_layout_of(&maker->info, &layout)) {
    TRY_GOTO(err_set(err, LODE_LIMIT, "a segment of %u rows is too large", maker->info.n));
  }
  maker->info.bytes = layout.total;
  p.at = maker->vectors_end;
  size_t table_bytes = (size_t)(layout.total - layout.at[LODE__SEG_CHECKSUMS]);
  p.table = mem_calloc(table_bytes, 1);
  p.bytes = maker->buffer; /* no longer needed for vectors */
  if (!p.table) TRY_GOTO(err_nomem(err));
  if (!INVARIANT(p.at == layout.at[LODE__SEG_MEAN])) TRY_GOTO(err_internal(err, "segment layout"));
  TRY_GOTO(put_sections(maker, &graph, &p, err));
  if (!INVARIANT(p.at == layout.at[LODE__SEG_CHECKSUMS])) TRY_GOTO(err_internal(err, "segment layout"));
  TRY_GOTO(put_ends(maker, &p, err));
done:
  lode__graph_release(&graph);
  mem_free(p.table);
  return st;
}

void lode__maker_release(lode__maker *maker) {
  mem_free(maker->rows);
  mem_free(maker->records);
  mem_free(maker->lengths);
  mem_free(maker->buffer);
  *maker = (lode__maker){0};
}
