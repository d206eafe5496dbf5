/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_journal.c - see sqlite_journal.h. */
#include "sqlite/sqlite_journal.h"

const unsigned char sqf_journal_magic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};

uint32_t sqf_journal_sum(uint32_t nonce, const unsigned char *page, uint32_t page_bytes) {
  for (uint32_t i = page_bytes; i > 200; i -= 200) nonce += page[i - 200];
  return nonce;
}

bool sqf_images_add(sqf_images *l, uint32_t number, uint64_t offset) {
  if (!mem_grow(&l->items, &l->cap, l->n + 1, sizeof *l->items)) return false;
  l->items[l->n++] = (sqf_image){number, offset};
  return true;
}

static int sqf_compare_images(const void *x, const void *y) {
  const sqf_image *a = x, *b = y;
  if (a->number != b->number) return a->number < b->number ? -1 : 1;
  return (a->offset > b->offset) - (a->offset < b->offset);
}

void sqf_images_sort(sqf_images *l, bool keep_last) {
  size_t n = 0;
  if (l->n > 1) qsort(l->items, l->n, sizeof *l->items, sqf_compare_images);
  for (size_t i = 0; i < l->n; i++) {
    bool again = n && l->items[n - 1].number == l->items[i].number;
    if (again && keep_last) l->items[n - 1] = l->items[i];
    if (!again) l->items[n++] = l->items[i];
  }
  l->n = n;
}

const sqf_image *sqf_images_find(const sqf_images *l, uint32_t number) {
  size_t low = 0, high = l->n;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    if (l->items[mid].number < number)
      low = mid + 1;
    else
      high = mid;
  }
  return low < l->n && l->items[low].number == number ? &l->items[low] : NULL;
}

void sqf_images_release(sqf_images *l) {
  mem_free(l->items);
  *l = (sqf_images){0};
}
