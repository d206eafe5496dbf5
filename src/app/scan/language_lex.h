/* SPDX-License-Identifier: Apache-2.0 */
/* language_lex.h - code as tokens, for colours: comments, strings, numbers, words of the language, names.
 *
 * A small lexer for families of languages, not a grammar: it works on any piece of a file, line by line, and what it
 * does not know stays plain. The terminal paints its tokens, and so does the page, which `lode read --spans` tells
 * them.
 */
#ifndef LODE_SCAN_LANGUAGE_LEX_H
#define LODE_SCAN_LANGUAGE_LEX_H

#include "base/base.h"

typedef enum lang_token {
  LANG_TOKEN_PLAIN, /* white space, operators */
  LANG_TOKEN_COMMENT,
  LANG_TOKEN_STRING,
  LANG_TOKEN_NUMBER,
  LANG_TOKEN_WORD, /* of the language: if, return */
  LANG_TOKEN_NAME,
} lang_token;

typedef struct lang_lexer {
  const char *line_comment;       /* "//"; NULL: the language has none */
  const char *open, *close;       /* of comments that span lines; NULL: none */
  bool prose, triple, characters; /* no code; strings of three quotes; ' is for a single character */
  bool c;                         /* few words, so that more of them are names */
  const char *until;              /* inside of a comment or string that ends with this */
  lang_token inside;
} lang_lexer;

/* `language`: a name of lang_table. `first` is the first line of the text, which may begin within a comment. */
void lang_lexer_begin(lang_lexer *lexer, lode_str language, lode_str first);
/* The token at *at, which is less than line.len; moves *at behind it. A line has no newline; call lang_lexer_end_line()
 * after its last token. */
lang_token lang_lexer_next(lang_lexer *lexer, lode_str line, size_t *at);
/* Strings of one line end with it, whether they were closed or not. */
void lang_lexer_end_line(lang_lexer *lexer);

#endif
