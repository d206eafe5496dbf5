/* SPDX-License-Identifier: Apache-2.0 */
/* engine_table.c - the embedded engine's table of functions, for api/api.c. */
#include "engine/engine.h"

const iface_ops engine_table = {.open = engine_open,
                                .close = engine_close,
                                .collection_close = engine_collection_close,
                                .rollback = engine_rollback,
                                .loaded = engine_loaded,
#define ENGINE_MEMBER(name, handle, params, args) .name = engine_##name,
                                IFACE_OPS(ENGINE_MEMBER)
#undef ENGINE_MEMBER
};
