/* SPDX-License-Identifier: Apache-2.0 */
/* hnsw_peer.h - hnswlib behind C, for the benchmark alone. */
#ifndef LODE_HNSW_PEER_H
#define LODE_HNSW_PEER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hnsw_peer hnsw_peer;
hnsw_peer *hnsw_peer_new(size_t n, size_t dim, int cosine);             /* M 16, efConstruction 200 */
void hnsw_peer_add(hnsw_peer *peer, const float *vector, size_t label); /* cosine: normalised vectors */
void hnsw_peer_search(hnsw_peer *peer, const float *query, size_t k, size_t ef, uint32_t *labels);
int hnsw_peer_save(hnsw_peer *peer, const char *path);
hnsw_peer *hnsw_peer_load(const char *path, size_t n, size_t dim, int cosine);
void hnsw_peer_free(hnsw_peer *peer);

#ifdef __cplusplus
}
#endif

#endif
