/* browser.h - shows an address in the person's browser. */
#ifndef LODE_SERVER_BROWSER_H
#define LODE_SERVER_BROWSER_H

#include "os/proc.h"

/* By xdg-open, where there is a desktop and such a program. False: nothing was opened, tell the address. */
bool server_browser_open(const char *url, proc_child *proc);
/* Lets go of it: the browser may outlive us. */
void server_browser_detach(proc_child *proc);

#endif
