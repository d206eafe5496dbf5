/* SPDX-License-Identifier: Apache-2.0 */
/* browser.h - opens an address in the user's browser. */
#ifndef LODE_SERVER_BROWSER_H
#define LODE_SERVER_BROWSER_H

#include "os/proc.h"

/* Runs xdg-open, if there is a desktop and that program. False: nothing was opened; print the address instead. */
bool server_browser_open(const char *url, proc_child *proc);
/* Forgets the child: the browser may outlive us. */
void server_browser_detach(proc_child *proc);

#endif
