/* SPDX-License-Identifier: Apache-2.0 */
/* search_glossary.h - questions in German, Spanish, French, Japanese and Chinese to code that is written in English.
 *
 * A table leads words of these languages to the English words that programs have for them ("Warteschlange": queue);
 * words that say nothing ("und") lead to none. It is learnt from translated messages (tools/train/glossary.py) and lies
 * beside the model for code. It is read only when a question is in one of these languages: its script says so, or
 * words that only connect others, and English ones are fewer.
 *
 * The file, all numbers little-endian:
 *    0  "LODEGLO1"
 *    8  u32 version (1), u32 entries, u32 bytes of text, u32 CRC-32C of everything after the header
 *   24  u64 size of the file
 *   32  zeros
 *   60  u32 CRC-32C of bytes 0 to 59
 *   64  entries, ordered by language and key: u32 where the key begins in the text, u8 its length, u8 length of the
 * word, which follows it, u8 language, u8 zero
 *   ..  the text
 * Keys of languages with Latin letters are folded as words are (base/token.h); a key may be three words.
 */
#ifndef LODE_SEARCH_SEARCH_GLOSSARY_H
#define LODE_SEARCH_SEARCH_GLOSSARY_H

#include "base/base.h"

#define SEARCH_GLOSSARY_FILE "words.glossary"

/* Numbers as in the file. */
typedef enum search_language {
  SEARCH_GERMAN,
  SEARCH_SPANISH,
  SEARCH_FRENCH,
  SEARCH_JAPANESE,
  SEARCH_CHINESE,
  SEARCH_LANGUAGES,
  SEARCH_ENGLISH = SEARCH_LANGUAGES, /* or none that is known */
} search_language;

typedef struct search_glossary search_glossary;

/* The language of a question; SEARCH_ENGLISH in doubt. */
search_language search_language_of(lode_str question);
const char *search_language_name(search_language language);

/* Reads a table; path NULL: the one that is installed. LODE_NOT_FOUND, LODE_CORRUPT. */
LODE_MUST lode_status search_glossary_open(const char *path, search_glossary **glossary, lode_error *err);
void search_glossary_close(search_glossary *glossary);
size_t search_glossary_count(const search_glossary *glossary);

/* Appends the question with English words in place of those that the table has. What looks like code stays, and so do
 * words that nothing is known of. Chinese and Japanese are cut by the longest match. */
void search_glossary_translate(const search_glossary *glossary, search_language language, lode_str question,
                               strbuf *out);

#endif
