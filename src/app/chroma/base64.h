/* base64.h - vectors as Chroma's clients send them: standard base64, padded, of little-endian 32-bit floats. */
#ifndef LODE_CHROMA_BASE64_H
#define LODE_CHROMA_BASE64_H

#include "base/base.h"

/* How many floats a text holds, or SIZE_MAX when its length cannot be right. */
size_t chroma_base64_floats(lode_str text);
/* Decodes that many. False when it is not base64. */
bool chroma_base64_decode(lode_str text, float *out);

#endif
