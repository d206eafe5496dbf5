/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox.h - a process gives up privileges that it does not need. Each part is used if the kernel supports it;
 * `summary` gets one line for the log that says what is in force and what is not. Called before other threads are
 * started: Landlock does not bind those that already run, and then the summary says so. */
#ifndef LODE_WORKER_SANDBOX_H
#define LODE_WORKER_SANDBOX_H

#include "base/base.h"

/* For a worker: it may read files, and write below the store's folder, if that exists, the temporary folder and the
 * user's cache. It may not open a TCP port. */
void worker_sandbox_engine(const char *store, char *summary, size_t size);
/* For a front end: as a worker, and it may write crash reports. */
void worker_sandbox_frontend(const char *store, const char *crashes, char *summary, size_t size);

#endif
