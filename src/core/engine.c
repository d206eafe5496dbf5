/* engine.c - the embedded engine: its functions, for api.c. */
#include "core.h"

const lode__engine lode__core_engine = {
    .open = lode__core_open,
    .close = lode__core_close,
    .collection_close = lode__core_collection_close,
    .rollback = lode__core_rollback,
    .loaded = lode__core_loaded,
#define MEMBER(name, handle, params, args) .name = lode__core_##name,
    LODE__ENGINE_OPS(MEMBER)
#undef MEMBER
};
