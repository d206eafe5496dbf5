/* SPDX-License-Identifier: Apache-2.0 */
/* banned.h - functions that must not be used here: they overflow, depend on the locale, or cannot report errors. */
#ifndef LODE_BASE_BANNED_H
#define LODE_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Some of them are macros in some C libraries, and only plain identifiers can be poisoned. */
#undef strcpy
#undef strcat
#undef strncpy
#undef strncat
#undef sprintf
#undef vsprintf
#undef strtok
#undef alloca

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf gets strtok atoi atol atof alloca

#endif
