/* sanitized.h - is this build one of AddressSanitizer or ThreadSanitizer? gcc says it by macros, clang by features. */
#ifndef LODE_SANITIZED_H
#define LODE_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__)
#define LODE__ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LODE__ASAN 1
#endif
#endif
#ifndef LODE__ASAN
#define LODE__ASAN 0
#endif

#if defined(__SANITIZE_THREAD__)
#define LODE__TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define LODE__TSAN 1
#endif
#endif
#ifndef LODE__TSAN
#define LODE__TSAN 0
#endif

#endif
