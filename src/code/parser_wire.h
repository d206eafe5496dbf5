/* parser_wire.h - what pool.c and the program lode-parser say to each other, in frames (base/proc.h).
 *
 * A request is one frame: seven 32-bit numbers (little-endian), the name of the language, the text. The answer is one
 * frame. Exit codes tell the parent what a worker could not say.
 */
#ifndef LODE_CODE_PARSER_WIRE_H
#define LODE_CODE_PARSER_WIRE_H

#include <stdint.h>

#define LODE__WIRE_VERSION 1u
#define LODE__WIRE_ANSWER_BYTES (128u << 20) /* longest answer */

enum {
  LODE__WIRE_PARSE = 1,   /* version, max_bytes, min_bytes, cpu_ms, 0, length of the name, length of the text */
  LODE__WIRE_CHUNKS = 2,  /* 1 if the text has errors of syntax, else 0; then a list of chunks */
  LODE__WIRE_FAILED = 3,  /* one of lode__wire_reason, then text for people */
};
enum { LODE__WIRE_NUMBERS = 7 };

typedef enum lode__wire_reason {
  LODE__WIRE_NO_GRAMMAR = 1,
  LODE__WIRE_TOO_LONG = 2,  /* CPU time */
  LODE__WIRE_NO_MEMORY = 3,
  LODE__WIRE_OTHER = 4,
} lode__wire_reason;

#define LODE__WIRE_EXIT_MEMORY 86

static inline void lode__wire_put(unsigned char *p, uint32_t v) {
  for (int i = 0; i < 4; i++) p[i] = (unsigned char)(v >> (8 * i));
}
static inline uint32_t lode__wire_get(const unsigned char *p) {
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

#endif
