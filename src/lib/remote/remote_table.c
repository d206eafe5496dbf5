/* SPDX-License-Identifier: Apache-2.0 */
/* remote_table.c - the function table of the cluster engine, for src/lib/api. */
#include "remote/remote.h"

const iface_ops remote_table = {.open = remote_open,
                                .close = remote_close,
                                .collection_close = remote_collection_close,
                                .rollback = remote_rollback,
#define REMOTE_MEMBER(name, handle, params, args) .name = remote_##name,
                                IFACE_OPS(REMOTE_MEMBER)
#undef REMOTE_MEMBER
};
