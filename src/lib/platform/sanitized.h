/* SPDX-License-Identifier: Apache-2.0 */
/* sanitized.h - is this an AddressSanitizer or ThreadSanitizer build? gcc defines macros, clang has features. */
#ifndef LODE_PLATFORM_SANITIZED_H
#define LODE_PLATFORM_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__)
#define BUILD_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BUILD_ASAN 1
#endif
#endif
#ifndef BUILD_ASAN
#define BUILD_ASAN 0
#endif

#if defined(__SANITIZE_THREAD__)
#define BUILD_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BUILD_TSAN 1
#endif
#endif
#ifndef BUILD_TSAN
#define BUILD_TSAN 0
#endif

#endif
