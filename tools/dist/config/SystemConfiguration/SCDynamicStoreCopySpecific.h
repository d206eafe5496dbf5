/* SPDX-License-Identifier: Apache-2.0 */
/* SCDynamicStoreCopySpecific.h - the compiler of `make dist` brings no frameworks of macOS. libcurl calls this one only
 * so that literal IPv4 addresses are translated in networks that have IPv6 alone; without it, they are not. */
#include <stddef.h>

typedef const void *CFDictionaryRef;
#define SCDynamicStoreCopyProxies(store) ((CFDictionaryRef)(store))
#define CFRelease(object) ((void)(object))
