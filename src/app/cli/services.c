/* services.c - what a worker of this program serves: see worker/worker.h. */
#include "chroma/chroma.h"
#include "mcp/mcp.h"

const worker_service worker_services[] = {{"chroma.", chroma_service}, {"mcp.", mcp_service}, {"", worker_op_service}, {0}};
