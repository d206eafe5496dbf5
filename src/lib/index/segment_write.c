/* SPDX-License-Identifier: Apache-2.0 */
/* segment_write.c - writes the bytes of a segment; see segment.h.
 *
 * Vectors are written as they are added. At the end the graph is built, and the other sections are written in file
 * order through a buffer that also collects the checksums; the header comes last, so an incomplete file has no header
 * either.
 */
#include "index/segment.h"
#include "index/index_tuning.h"

/* ---- Pages with checksums ---- */

typedef struct page_writer {
  const index_writer *writer;
  const index_segment_layout *layout;
  unsigned char *bytes; /* INDEX_WRITE_BYTES */
  size_t used;
  uint64_t at; /* file offset of bytes */
  unsigned char *table;
} page_writer;

static void page_writer_set_crc(page_writer *p, uint64_t page, const void *bytes) {
  uint32_t crc = index_segment_page_crc(p->writer->info.id, page, bytes);
  memcpy(p->table + index_segment_crc_slot(p->layout, page) * sizeof crc, &crc, sizeof crc);
}

static lode_status page_writer_flush(page_writer *p, lode_error *err) {
  for (size_t i = 0; i < p->used; i += INDEX_PAGE_BYTES)
    page_writer_set_crc(p, (p->at + i) / INDEX_PAGE_BYTES, p->bytes + i);
  if (p->used) TRY(p->writer->options.write(p->writer->options.ctx, p->at, p->bytes, p->used, err));
  p->at += p->used;
  p->used = 0;
  return LODE_OK;
}

static lode_status page_writer_put(page_writer *p, const void *data, size_t n, lode_error *err) {
  const unsigned char *from = data;
  while (n) {
    size_t m = INDEX_WRITE_BYTES - p->used < n ? INDEX_WRITE_BYTES - p->used : n;
    memcpy(p->bytes + p->used, from, m);
    p->used += m;
    from += m;
    n -= m;
    if (p->used == INDEX_WRITE_BYTES) TRY(page_writer_flush(p, err));
  }
  return LODE_OK;
}

/* Zeros up to the next page. */
static lode_status page_writer_end_section(page_writer *p, lode_error *err) {
  static const unsigned char zeros[INDEX_PAGE_BYTES];
  size_t part = p->used % INDEX_PAGE_BYTES;
  return part ? page_writer_put(p, zeros, INDEX_PAGE_BYTES - part, err) : LODE_OK;
}

/* ---- Adding rows ---- */

static bool writer_reserve_low(index_writer *writer, size_t rows) {
  return writer->low_bytes == 0 || mem_grow(&writer->low, &writer->low_cap, rows, writer->low_bytes);
}

/* Large pages: the construction of the graph reads rows in random order. */
static bool writer_reserve(index_writer *writer, uint32_t rows) {
  size_t bytes;
  if (rows == 0) return true;
  if (mem_mul_overflow(rows, writer->stride, &bytes)) return false;
  writer->rows = mem_alloc_large(bytes);
  writer->rows_cap = writer->rows ? rows : 0;
  return writer->rows &&
         mem_grow(&writer->records, &writer->records_cap, rows, index_segment_record_bytes(&writer->info)) &&
         mem_grow(&writer->lengths, &writer->lengths_cap, rows, sizeof *writer->lengths) &&
         mem_grow(&writer->sums, &writer->sums_cap, rows, sizeof *writer->sums) && writer_reserve_low(writer, rows);
}

lode_status index_writer_begin(index_writer *writer, const index_writer_options *options, lode_error *err) {
  const quant_model *model = &options->model;
  *writer = (index_writer){.options = *options};
  if ((options->kind != INDEX_FLAT && options->kind != INDEX_GRAPH) || model->dim == 0 ||
      model->dim > LODE_MAX_DIMENSION) {
    return err_set(err, LODE_INVALID, "a segment is flat or a graph, of 1 to %d dimensions", LODE_MAX_DIMENSION);
  }
  writer->info = (index_segment_info){
      .kind = options->kind, .metric = model->metric, .dim = model->dim, .id = options->id, .unit = model->unit};
  writer->info.placed = options->placed;
  writer->info.grid = model->grid;
  writer->low_bytes = quant_grid_low_bytes(&model->grid, model->dim);
  writer->stride = quant_stride(model->dim);
  writer->vectors_end = INDEX_PAGE_BYTES;
  writer->buffer = mem_alloc(INDEX_WRITE_BYTES);
  if (writer->buffer && writer_reserve(writer, options->rows_hint)) return LODE_OK;
  index_writer_release(writer);
  return err_nomem(err);
}

static lode_status flush_vectors(index_writer *writer, lode_error *err) {
  if (!writer->buffered) return LODE_OK;
  TRY(writer->options.write(writer->options.ctx, writer->vectors_end, writer->buffer, writer->buffered, err));
  writer->vectors_end += writer->buffered;
  writer->buffered = 0;
  return LODE_OK;
}

/* Written in blocks aligned to their size: the file system may then keep each in one large page of its cache, which
 * halves the time to read a vector. */
static lode_status put_vectors(index_writer *writer, const void *data, size_t n, lode_error *err) {
  const unsigned char *from = data;
  while (n) {
    size_t left = INDEX_WRITE_BYTES - (size_t)((writer->vectors_end + writer->buffered) % INDEX_WRITE_BYTES);
    size_t m = left < n ? left : n;
    memcpy(writer->buffer + writer->buffered, from, m);
    writer->buffered += m;
    from += m;
    n -= m;
    if (m == left) TRY(flush_vectors(writer, err));
  }
  return LODE_OK;
}

lode_status index_writer_add(index_writer *writer, const float *vector, int64_t key, uint64_t cursor, lode_error *err) {
  return index_writer_add_placed(writer, vector, key, cursor, 0, err);
}

lode_status index_writer_add_placed(index_writer *writer, const float *vector, int64_t key, uint64_t cursor,
                                    uint64_t place, lode_error *err) {
  uint32_t slot = writer->info.n, dim = writer->info.dim;
  size_t need = (size_t)slot + 1, record_bytes = index_segment_record_bytes(&writer->info);
  if (need > INDEX_MAX_ROWS) return err_set(err, LODE_LIMIT, "a segment has at most %u rows", INDEX_MAX_ROWS);
  if (!mem_grow(&writer->rows, &writer->rows_cap, need, writer->stride) ||
      !mem_grow(&writer->records, &writer->records_cap, need, record_bytes) ||
      !mem_grow(&writer->lengths, &writer->lengths_cap, need, sizeof *writer->lengths) ||
      !mem_grow(&writer->sums, &writer->sums_cap, need, sizeof *writer->sums) || !writer_reserve_low(writer, need)) {
    return err_nomem(err);
  }
  if (!writer->info.placed) TRY(put_vectors(writer, vector, dim * sizeof *vector, err));
  writer->lengths[slot] = quant_encode_row(&writer->options.model, vector, slot, writer->rows + slot * writer->stride);
  quant_spread_add(&writer->info.spread, &writer->options.model, vector, writer->rows + slot * writer->stride);
  if (writer->low_bytes) quant_grid_encode_low(&writer->info.grid, vector, dim, writer->low + slot * writer->low_bytes);
  writer->sums[slot] = index_segment_vector_crc(writer->info.id, 0, vector, dim * sizeof *vector);
  unsigned char *record = writer->records + (size_t)slot * record_bytes;
  uint32_t crc = index_segment_vector_crc(writer->info.id, slot, vector, dim * sizeof *vector);
  memset(record, 0, record_bytes);
  memcpy(record, &key, sizeof key);
  memcpy(record + 8, &cursor, sizeof cursor);
  memcpy(record + 16, &crc, sizeof crc);
  if (writer->info.placed) memcpy(record + INDEX_SEG_PLACE_AT, &place, sizeof place);
  writer->info.n++;
  return LODE_OK;
}

/* ---- Finishing ---- */

static lode_status pad_vectors(index_writer *writer, lode_error *err) {
  static const unsigned char zeros[INDEX_PAGE_BYTES];
  size_t part = (size_t)((writer->vectors_end + writer->buffered) % INDEX_PAGE_BYTES);
  if (part) TRY(put_vectors(writer, zeros, INDEX_PAGE_BYTES - part, err));
  return flush_vectors(writer, err);
}

static lode_status put_graph(const index_writer *writer, const index_graph *graph, page_writer *p, lode_error *err) {
  uint32_t links[INDEX_MAX_DEGREE], bits = writer->info.link_bits;
  unsigned char packed[sizeof links];
  ENSURE(graph->degree <= sizeof links / sizeof *links, err);
  for (uint32_t i = 0; i < writer->info.n; i++) {
    TRY(page_writer_put(p, writer->rows + (size_t)graph->order[i] * writer->stride, writer->stride, err));
  }
  TRY(page_writer_end_section(p, err));
  for (uint32_t i = 0; i < writer->info.n && writer->low_bytes; i++)
    TRY(page_writer_put(p, writer->low + (size_t)graph->order[i] * writer->low_bytes, writer->low_bytes, err));
  TRY(page_writer_end_section(p, err));
  for (uint32_t i = 0; i < writer->info.n; i++) {
    index_graph_get_links(graph, i, links);
    index_pack_links(links, graph->degree, bits, packed);
    TRY(page_writer_put(p, packed, index_link_row_bytes(graph->degree, bits), err));
  }
  TRY(page_writer_end_section(p, err));
  return page_writer_put(p, graph->place, (size_t)writer->info.n * sizeof *graph->place, err);
}

static lode_status put_flat(const index_writer *writer, page_writer *p, lode_error *err) {
  TRY(page_writer_put(p, writer->rows, (size_t)writer->info.n * writer->stride, err));
  TRY(page_writer_end_section(p, err));
  return writer->low_bytes ? page_writer_put(p, writer->low, (size_t)writer->info.n * writer->low_bytes, err) : LODE_OK;
}

static lode_status put_sections(const index_writer *writer, const index_graph *graph, page_writer *p, lode_error *err) {
  TRY(page_writer_put(p, writer->options.model.mean, writer->info.dim * sizeof(float), err));
  TRY(page_writer_end_section(p, err));
  TRY(graph->n ? put_graph(writer, graph, p, err) : put_flat(writer, p, err));
  TRY(page_writer_end_section(p, err));
  TRY(page_writer_put(p, writer->records, (size_t)writer->info.n * index_segment_record_bytes(&writer->info), err));
  TRY(page_writer_end_section(p, err));
  return page_writer_flush(p, err);
}

static lode_status put_ends(index_writer *writer, page_writer *p, lode_error *err) {
  unsigned char header[INDEX_PAGE_BYTES];
  size_t bytes = (size_t)p->layout->bytes[INDEX_SEG_CHECKSUMS], all = (size_t)(p->layout->total - p->at);
  index_segment_put_header(&writer->info, header);
  page_writer_set_crc(p, 0, header);
  writer->table_crc = index_segment_table_crc(writer->info.id, p->table, bytes);
  TRY(writer->options.write(writer->options.ctx, p->at, p->table, all, err));
  return writer->options.write(writer->options.ctx, 0, header, sizeof header, err);
}

/* Do many different vectors have the same code, as far as codes are precise? Then a graph of codes finds any of them,
 * not the nearest. */
static lode_status writer_is_blind(const index_writer *writer, bool *blind, lode_error *err) {
  uint32_t n = writer->info.n, same = 0;
  uint64_t *codes = mem_calloc(n, sizeof *codes);
  *blind = false;
  if (!codes) return err_nomem(err);
  for (uint32_t i = 0; i < n; i++)
    codes[i] = (uint64_t)quant_cell_hash(writer->rows + i * writer->stride, writer->info.dim) << 32 | writer->sums[i];
  qsort(codes, n, sizeof *codes, sort_cmp_u64);
  for (uint32_t i = 1; i < n && !*blind; i++) {
    same = codes[i] >> 32 != codes[i - 1] >> 32 ? 0 : same + (codes[i] != codes[i - 1]);
    *blind = same >= INDEX_MAX_SAME_CODE;
  }
  mem_free(codes);
  return LODE_OK;
}

static lode_status writer_build_graph(index_writer *writer, index_graph *graph, lode_error *err) {
  index_graph_input input = {.rows = writer->rows,
                             .lengths = writer->lengths,
                             .stride = writer->stride,
                             .n = writer->info.n,
                             .dim = writer->info.dim,
                             .metric = writer->info.metric,
                             .unit = writer->info.unit};
  bool blind;
  TRY(writer_is_blind(writer, &blind, err));
  TRY(index_graph_build(&input, &writer->options.graph, graph, err));
  writer->info.degree = graph->degree;
  writer->info.n_entries = graph->n_entries;
  writer->info.effort = graph->effort;
  writer->info.curve = graph->curve;
  writer->info.entry_climbs = graph->entry_climbs;
  if (blind) index_effort_set_blind(&writer->info.curve);
  return LODE_OK;
}

lode_status index_writer_finish(index_writer *writer, lode_error *err) {
  lode_status st = LODE_OK;
  index_graph graph = {0};
  index_segment_layout layout;
  page_writer p = {.writer = writer, .layout = &layout};
  if (writer->info.n == 0) return err_set(err, LODE_INVALID, "a segment needs at least one row");
  TRY_GOTO(pad_vectors(writer, err));
  if (writer->info.kind == INDEX_GRAPH) TRY_GOTO(writer_build_graph(writer, &graph, err));
  writer->info.link_bits = index_link_bits(writer->info.n);
  if (!index_segment_layout_of(&writer->info, &layout)) {
    TRY_GOTO(err_set(err, LODE_LIMIT, "a segment of %u rows is too large", writer->info.n));
  }
  writer->info.bytes = layout.total;
  p.at = writer->vectors_end;
  size_t table_bytes = (size_t)(layout.total - layout.at[INDEX_SEG_CHECKSUMS]);
  p.table = mem_calloc(table_bytes, 1);
  p.bytes = writer->buffer; /* no longer needed for vectors */
  if (!p.table) TRY_GOTO(err_nomem(err));
  if (!INVARIANT(p.at == layout.at[INDEX_SEG_MEAN])) TRY_GOTO(err_internal(err, "segment layout"));
  TRY_GOTO(put_sections(writer, &graph, &p, err));
  if (!INVARIANT(p.at == layout.at[INDEX_SEG_CHECKSUMS])) TRY_GOTO(err_internal(err, "segment layout"));
  TRY_GOTO(put_ends(writer, &p, err));
done:
  index_graph_release(&graph);
  mem_free(p.table);
  return st;
}

void index_writer_release(index_writer *writer) {
  mem_free(writer->rows);
  mem_free(writer->records);
  mem_free(writer->low);
  mem_free(writer->lengths);
  mem_free(writer->sums);
  mem_free(writer->buffer);
  *writer = (index_writer){0};
}
