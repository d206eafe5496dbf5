/* SPDX-License-Identifier: Apache-2.0 */
/* row_checksums.h - the checksum of each kind of row: it proves a row even if it is found alone on a page. */
#ifndef LODE_STORE_ROW_CHECKSUMS_H
#define LODE_STORE_ROW_CHECKSUMS_H

#include "store/store.h"

uint32_t store_crc_document(int64_t rid, lode_str text);
uint32_t store_crc_vector(int64_t vid, int64_t rid, const void *data, size_t bytes);
uint32_t store_crc_record(const store_rec *rec);
uint32_t store_crc_tombstone(int64_t gid, lode_str rids, int64_t vid);
uint32_t store_crc_collection(const store_coll *coll);
uint32_t store_crc_manifest(const store_manifest_row *row);

#endif
