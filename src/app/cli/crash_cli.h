/* SPDX-License-Identifier: Apache-2.0 */
/* crash_cli.h - if the program itself crashes: prints what it was doing, writes a report, and dies by the same
 * signal. */
#ifndef LODE_CLI_CRASH_CLI_H
#define LODE_CLI_CRASH_CLI_H

/* Catches SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS and SIGABRT. `command` ("search", "db query") must stay valid. The
 * report goes to $XDG_STATE_HOME/lode/crashes, else ~/.local/state/lode/crashes, else there is none. Failures to
 * prepare are ignored. */
void cli_crash_install(const char *command);

#endif
