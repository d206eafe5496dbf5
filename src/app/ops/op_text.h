/* SPDX-License-Identifier: Apache-2.0 */
/* op_text.h - values of results as text for people: shared by the command line and the MCP tools. */
#ifndef LODE_OPS_OP_TEXT_H
#define LODE_OPS_OP_TEXT_H

#include "base/json.h"
#include "ops/op_row.h"

/* 1234567 as 1,234,567; 1536 as 1.5 KiB. */
void op_put_grouped(strbuf *out, uint64_t n);
void op_put_bytes(strbuf *out, uint64_t n);
/* "2026-11-16 02:55:01", of milliseconds since 1970; 0: "-" */
void op_put_time(strbuf *out, uint64_t wall_ms);
/* User text for a terminal: control characters are made visible; at most max characters (0 = all), then an ellipsis. */
void op_put_printable(strbuf *out, lode_str text, size_t max);
/* A value, formatted by the type of its field. */
void op_put_value(strbuf *out, const op_value *value, size_t max);
/* A value inside JSON that a user gave. */
void op_put_node(strbuf *out, const json_doc *json, uint32_t node, size_t max);
/* The sentence of an operation (`say` of its entry), filled in from its summary: "{written} added[, {skipped} kept]".
 * A part in brackets is left out if a field in it is blank. {?made} is only tested, and prints nothing. {s} and {es}
 * are the end of a plural: nothing if the count before them is 1; {was|were} are words for one and for others. */
void op_put_sentence(strbuf *out, const char *say, const op_row *summary);

#endif
