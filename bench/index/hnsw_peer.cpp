// hnsw_peer.cpp - see hnsw_peer.h. Compiled with -O3 -march=native, as hnswlib's users do.
#include "hnsw_peer.h"

#include <hnswlib/hnswlib.h>

#include <memory>
#include <string>

struct hnsw_peer {
  std::unique_ptr<hnswlib::SpaceInterface<float>> space;
  std::unique_ptr<hnswlib::HierarchicalNSW<float>> graph;
};

static hnsw_peer *with_space(size_t dim, int cosine) {
  auto *peer = new hnsw_peer;
  if (cosine) peer->space.reset(new hnswlib::InnerProductSpace(dim));
  else peer->space.reset(new hnswlib::L2Space(dim));
  return peer;
}

hnsw_peer *hnsw_peer_new(size_t n, size_t dim, int cosine) {
  hnsw_peer *peer = with_space(dim, cosine);
  peer->graph.reset(new hnswlib::HierarchicalNSW<float>(peer->space.get(), n, 16, 200));
  return peer;
}

void hnsw_peer_add(hnsw_peer *peer, const float *vector, size_t label) { peer->graph->addPoint(vector, label); }

void hnsw_peer_search(hnsw_peer *peer, const float *query, size_t k, size_t ef, uint32_t *labels) {
  peer->graph->setEf(ef);
  auto found = peer->graph->searchKnn(query, k);
  size_t i = found.size();
  for (size_t j = i; j < k; j++) labels[j] = UINT32_MAX;
  for (; i > 0; found.pop()) labels[--i] = static_cast<uint32_t>(found.top().second);
}

int hnsw_peer_save(hnsw_peer *peer, const char *path) {
  try {
    peer->graph->saveIndex(path);
    return 1;
  } catch (...) {
    return 0;
  }
}

hnsw_peer *hnsw_peer_load(const char *path, size_t n, size_t dim, int cosine) {
  hnsw_peer *peer = with_space(dim, cosine);
  try {
    peer->graph.reset(new hnswlib::HierarchicalNSW<float>(peer->space.get(), std::string(path), false, n));
    return peer;
  } catch (...) {
    delete peer;
    return nullptr;
  }
}

void hnsw_peer_free(hnsw_peer *peer) { delete peer; }
