/* SPDX-License-Identifier: Apache-2.0 */
/* parser_wire.h - the protocol between parser_pool.c and the program lode-parser, in frames (os/frame.h).
 *
 * A request is one frame: seven 32-bit little-endian numbers, the name of the language, the text. The answer is one
 * frame. A worker that can no longer answer reports the reason with its exit code.
 */
#ifndef LODE_CHUNK_PARSER_WIRE_H
#define LODE_CHUNK_PARSER_WIRE_H

#define PARSER_WIRE_VERSION 2u
#define PARSER_WIRE_MAX_ANSWER (128u << 20) /* longest answer */

enum {
  PARSER_WIRE_PARSE = 1,  /* version, max_bytes, min_bytes, cpu_ms, 0, length of the name, length of the text */
  PARSER_WIRE_CHUNKS = 2, /* 1 if the text has syntax errors, else 0; length of the table of symbols,
                             the table, a list of chunks */
  PARSER_WIRE_FAILED = 3, /* a parser_wire_reason, then text for people */
};
enum { PARSER_WIRE_NUMBERS = 7 };

typedef enum parser_wire_reason {
  PARSER_WIRE_NO_GRAMMAR = 1,
  PARSER_WIRE_OUT_OF_TIME = 2, /* CPU time */
  PARSER_WIRE_NO_MEMORY = 3,
  PARSER_WIRE_OTHER = 4,
} parser_wire_reason;

#define PARSER_WIRE_EXIT_NOMEM 86

#endif
