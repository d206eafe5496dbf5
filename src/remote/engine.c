/* engine.c - the engine of clusters: its functions, for api.c. */
#include "remote.h"

const lode__engine lode__remote_engine = {
    .open = lode__remote_open,
    .close = lode__remote_close,
    .collection_close = lode__remote_collection_close,
    .rollback = lode__remote_rollback,
#define MEMBER(name, handle, params, args) .name = lode__remote_##name,
    LODE__ENGINE_OPS(MEMBER)
#undef MEMBER
};
