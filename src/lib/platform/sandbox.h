/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox.h - a process gives up privileges that it does not need. */
#ifndef LODE_PLATFORM_SANDBOX_H
#define LODE_PLATFORM_SANDBOX_H

#include <stddef.h>

/* From now on the process may read files, and write below the store's folder, if that exists, the temporary folder, the
 * user's cache and, if it is given, the folder of crash reports. It may not open a TCP port. Each part is used if the
 * kernel supports it; `summary` gets one line for the log that says what is in force and what is not. Called before
 * other threads are started: Landlock does not bind those that already run, and then the summary says so. */
void os_sandbox(const char *store, const char *crashes, char *summary, size_t size);

#endif
