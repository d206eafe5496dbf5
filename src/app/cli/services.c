/* SPDX-License-Identifier: Apache-2.0 */
/* services.c - the services of this program's worker: see worker/worker.h. */
#include "chroma/chroma.h"
#include "mcp/mcp.h"

const worker_service worker_services[] = {
    {"chroma.", chroma_service}, {"mcp.", mcp_service}, {"", worker_op_service}, {0}};
