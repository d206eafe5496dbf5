/* segment_write.c - makes the bytes of a segment; see segment.h.
 *
 * Vectors are written as they come. At the finish the graph is made, and the other sections are written in the order of
 * the file through one page-sized buffer that also collects the checksums; the header comes last, so a file without
 * its end has no header either.
 */
#include "index/segment.h"

enum { WRITE_BUFFER_BYTES = 1 << 20 };

/* ---- Pages that are checked ---- */

typedef struct page_writer {
  const index_writer *maker;
  const index_segment_layout *layout;
  unsigned char *bytes;  /* BUFFER_BYTES */
  size_t used;
  uint64_t at;           /* file offset of bytes */
  unsigned char *table;
} page_writer;

static void page_writer_set_crc(page_writer *p, uint64_t page, const void *bytes) {
  uint32_t crc = index_segment_page_crc(p->maker->info.id, page, bytes);
  memcpy(p->table + index_segment_crc_slot(p->layout, page) * sizeof crc, &crc, sizeof crc);
}

static lode_status page_writer_flush(page_writer *p, lode_error *err) {
  for (size_t i = 0; i < p->used; i += INDEX_PAGE_BYTES) page_writer_set_crc(p, (p->at + i) / INDEX_PAGE_BYTES, p->bytes + i);
  if (p->used) TRY(p->maker->options.write(p->maker->options.ctx, p->at, p->bytes, p->used, err));
  p->at += p->used;
  p->used = 0;
  return LODE_OK;
}

static lode_status page_writer_put(page_writer *p, const void *data, size_t n, lode_error *err) {
  const unsigned char *from = data;
  while (n) {
    size_t m = WRITE_BUFFER_BYTES - p->used < n ? WRITE_BUFFER_BYTES - p->used : n;
    memcpy(p->bytes + p->used, from, m);
    p->used += m;
    from += m;
    n -= m;
    if (p->used == WRITE_BUFFER_BYTES) TRY(page_writer_flush(p, err));
  }
  return LODE_OK;
}

/* Zeros up to the next page. */
static lode_status page_writer_end_section(page_writer *p, lode_error *err) {
  static const unsigned char zeros[INDEX_PAGE_BYTES];
  size_t part = p->used % INDEX_PAGE_BYTES;
  return part ? page_writer_put(p, zeros, INDEX_PAGE_BYTES - part, err) : LODE_OK;
}

/* ---- Rows as they come ---- */

/* Construction reads rows in any order, over and over. */
static bool writer_reserve(index_writer *maker, uint32_t rows) {
  size_t bytes;
  if (rows == 0) return true;
  if (mem_mul_overflow(rows, maker->stride, &bytes)) return false;
  maker->rows = mem_alloc_large(bytes);
  maker->rows_cap = maker->rows ? rows : 0;
  return maker->rows && mem_grow(&maker->records, &maker->records_cap, rows, INDEX_SEG_RECORD_BYTES) &&
         mem_grow(&maker->lengths, &maker->lengths_cap, rows, sizeof *maker->lengths);
}

lode_status index_writer_begin(index_writer *maker, const index_writer_options *options, lode_error *err) {
  const quant_model *model = &options->model;
  *maker = (index_writer){.options = *options};
  if ((options->kind != INDEX_FLAT && options->kind != INDEX_GRAPH) || model->dim == 0 ||
      model->dim > LODE_MAX_DIMENSION) {
    return err_set(err, LODE_INVALID, "a segment is flat or a graph, of 1 to %d dimensions", LODE_MAX_DIMENSION);
  }
  maker->info = (index_segment_info){.kind = options->kind, .metric = model->metric, .dim = model->dim,
                                     .id = options->id, .unit = model->unit};
  maker->stride = quant_stride(model->dim);
  maker->vectors_end = INDEX_PAGE_BYTES;
  maker->buffer = mem_alloc(WRITE_BUFFER_BYTES);
  if (maker->buffer && writer_reserve(maker, options->rows_hint)) return LODE_OK;
  index_writer_release(maker);
  return err_nomem(err);
}

static lode_status flush_vectors(index_writer *maker, lode_error *err) {
  if (!maker->buffered) return LODE_OK;
  TRY(maker->options.write(maker->options.ctx, maker->vectors_end, maker->buffer, maker->buffered, err));
  maker->vectors_end += maker->buffered;
  maker->buffered = 0;
  return LODE_OK;
}

/* In pieces that end at multiples of their size: a file system may then keep each in one large page of its cache, which halves the
 * time that a vector takes to read. */
static lode_status put_vectors(index_writer *maker, const void *data, size_t n, lode_error *err) {
  const unsigned char *from = data;
  while (n) {
    size_t left = WRITE_BUFFER_BYTES - (size_t)((maker->vectors_end + maker->buffered) % WRITE_BUFFER_BYTES), m = left < n ? left : n;
    memcpy(maker->buffer + maker->buffered, from, m);
    maker->buffered += m;
    from += m;
    n -= m;
    if (m == left) TRY(flush_vectors(maker, err));
  }
  return LODE_OK;
}

lode_status index_writer_add(index_writer *maker, const float *vector, int64_t key, uint64_t cursor, lode_error *err) {
  uint32_t slot = maker->info.n, dim = maker->info.dim;
  size_t need = (size_t)slot + 1;
  if (need > INDEX_MAX_ROWS) return err_set(err, LODE_LIMIT, "a segment has at most %u rows", INDEX_MAX_ROWS);
  if (!mem_grow(&maker->rows, &maker->rows_cap, need, maker->stride) ||
      !mem_grow(&maker->records, &maker->records_cap, need, INDEX_SEG_RECORD_BYTES) ||
      !mem_grow(&maker->lengths, &maker->lengths_cap, need, sizeof *maker->lengths)) {
    return err_nomem(err);
  }
  TRY(put_vectors(maker, vector, dim * sizeof *vector, err));
  maker->lengths[slot] = quant_encode_row(&maker->options.model, vector, slot, maker->rows + slot * maker->stride);
  unsigned char *record = maker->records + (size_t)slot * INDEX_SEG_RECORD_BYTES;
  uint32_t crc = index_segment_vector_crc(maker->info.id, slot, vector, dim * sizeof *vector);
  memset(record, 0, INDEX_SEG_RECORD_BYTES);
  memcpy(record, &key, sizeof key);
  memcpy(record + 8, &cursor, sizeof cursor);
  memcpy(record + 16, &crc, sizeof crc);
  maker->info.n++;
  return LODE_OK;
}

/* ---- The finish ---- */

static lode_status pad_vectors(index_writer *maker, lode_error *err) {
  static const unsigned char zeros[INDEX_PAGE_BYTES];
  size_t part = (size_t)((maker->vectors_end + maker->buffered) % INDEX_PAGE_BYTES);
  if (part) TRY(put_vectors(maker, zeros, INDEX_PAGE_BYTES - part, err));
  return flush_vectors(maker, err);
}

static lode_status put_graph(const index_writer *maker, const index_graph *graph, page_writer *p, lode_error *err) {
  uint32_t links[1024];
  ENSURE(graph->degree <= sizeof links / sizeof *links, err);
  for (uint32_t i = 0; i < maker->info.n; i++) {
    TRY(page_writer_put(p, maker->rows + (size_t)graph->order[i] * maker->stride, maker->stride, err));
  }
  TRY(page_writer_end_section(p, err));
  for (uint32_t i = 0; i < maker->info.n; i++) {
    index_graph_get_links(graph, i, links);
    TRY(page_writer_put(p, links, graph->degree * sizeof *links, err));
  }
  TRY(page_writer_end_section(p, err));
  return page_writer_put(p, graph->place, (size_t)maker->info.n * sizeof *graph->place, err);
}

static lode_status put_sections(const index_writer *maker, const index_graph *graph, page_writer *p, lode_error *err) {
  TRY(page_writer_put(p, maker->options.model.mean, maker->info.dim * sizeof(float), err));
  TRY(page_writer_end_section(p, err));
  if (graph->n) TRY(put_graph(maker, graph, p, err));
  else TRY(page_writer_put(p, maker->rows, (size_t)maker->info.n * maker->stride, err));
  TRY(page_writer_end_section(p, err));
  TRY(page_writer_put(p, maker->records, (size_t)maker->info.n * INDEX_SEG_RECORD_BYTES, err));
  TRY(page_writer_end_section(p, err));
  return page_writer_flush(p, err);
}

static lode_status put_ends(index_writer *maker, page_writer *p, lode_error *err) {
  unsigned char header[INDEX_PAGE_BYTES];
  size_t bytes = (size_t)p->layout->bytes[INDEX_SEG_CHECKSUMS], all = (size_t)(p->layout->total - p->at);
  index_segment_put_header(&maker->info, header);
  page_writer_set_crc(p, 0, header);
  maker->table_crc = index_segment_table_crc(maker->info.id, p->table, bytes);
  TRY(maker->options.write(maker->options.ctx, p->at, p->table, all, err));
  return maker->options.write(maker->options.ctx, 0, header, sizeof header, err);
}

lode_status index_writer_finish(index_writer *maker, lode_error *err) {
  lode_status st = LODE_OK;
  index_graph graph = {0};
  index_segment_layout layout;
  page_writer p = {.maker = maker, .layout = &layout};
  if (maker->info.n == 0) return err_set(err, LODE_INVALID, "a segment needs at least one row");
  TRY_GOTO(pad_vectors(maker, err));
  if (maker->info.kind == INDEX_GRAPH) {
    index_graph_input input = {.rows = maker->rows, .lengths = maker->lengths, .stride = maker->stride,
                               .n = maker->info.n, .dim = maker->info.dim, .metric = maker->info.metric,
                               .unit = maker->info.unit};
    TRY_GOTO(index_graph_build(&input, &maker->options.graph, &graph, err));
    maker->info.degree = graph.degree;
    maker->info.n_entries = graph.n_entries;
    maker->info.effort = graph.effort;
    maker->info.curve = graph.curve;
    maker->info.climbs = graph.climbs;
  }
  if (!index_segment_layout_of(&maker->info, &layout)) {
    TRY_GOTO(err_set(err, LODE_LIMIT, "a segment of %u rows is too large", maker->info.n));
  }
  maker->info.bytes = layout.total;
  p.at = maker->vectors_end;
  size_t table_bytes = (size_t)(layout.total - layout.at[INDEX_SEG_CHECKSUMS]);
  p.table = mem_calloc(table_bytes, 1);
  p.bytes = maker->buffer; /* no longer needed for vectors */
  if (!p.table) TRY_GOTO(err_nomem(err));
  if (!INVARIANT(p.at == layout.at[INDEX_SEG_MEAN])) TRY_GOTO(err_internal(err, "segment layout"));
  TRY_GOTO(put_sections(maker, &graph, &p, err));
  if (!INVARIANT(p.at == layout.at[INDEX_SEG_CHECKSUMS])) TRY_GOTO(err_internal(err, "segment layout"));
  TRY_GOTO(put_ends(maker, &p, err));
done:
  index_graph_release(&graph);
  mem_free(p.table);
  return st;
}

void index_writer_release(index_writer *maker) {
  mem_free(maker->rows);
  mem_free(maker->records);
  mem_free(maker->lengths);
  mem_free(maker->buffer);
  *maker = (index_writer){0};
}
