/* crash_cli.h - if the program itself ever crashes: say what was being done, leave a report, and die by the same signal. */
#ifndef LODE_CLI_CRASH_CLI_H
#define LODE_CLI_CRASH_CLI_H

/* Catches SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS and SIGABRT. `command` ("search", "db query") must stay valid. The report goes to
 * $XDG_STATE_HOME/lode/crashes, else ~/.local/state/lode/crashes, else it is left out. What cannot be prepared is no error. */
void cli_crash_install(const char *command);

#endif
