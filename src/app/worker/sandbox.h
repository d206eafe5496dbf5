/* sandbox.h - a process gives up what it does not need. Each part is used where the kernel has it; `said` gets one line
 * for the log that names what is in force and what is not. */
#ifndef LODE_WORKER_SANDBOX_H
#define LODE_WORKER_SANDBOX_H

#include "base/base.h"

/* Of a worker: it may read files, write below the store's folder and in the temporary folder, and make no connection. */
void worker_sandbox_engine(const char *store, char *said, size_t size);
/* Of the face: it may read files, write below the store's folder and where crash reports go, and start its worker. */
void worker_sandbox_frontend(const char *store, const char *crashes, char *said, size_t size);

#endif
