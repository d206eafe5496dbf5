/* SPDX-License-Identifier: Apache-2.0 */
/* base64.h - vectors as Chroma's clients send them: standard base64, padded, of little-endian 32-bit floats. */
#ifndef LODE_CHROMA_BASE64_H
#define LODE_CHROMA_BASE64_H

#include "base/base.h"

/* Number of floats in the text, or SIZE_MAX if its length is invalid. */
size_t chroma_base64_floats(lode_str text);
/* Decodes all of them. False if the text is not base64. */
bool chroma_base64_decode(lode_str text, float *out);

#endif
