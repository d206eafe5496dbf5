/* SPDX-License-Identifier: Apache-2.0 */
/* language_uses.h - how languages use names: calls, imports, bases, local names. One row for each grammar that has any
 * of these (language_uses.c); the others get definitions and uses of names alone. */
#ifndef LODE_SCAN_LANGUAGE_USES_H
#define LODE_SCAN_LANGUAGE_USES_H

#include "scan/language.h"

/* How the text of an import reads. */
typedef enum lang_import {
  LANG_IMPORT_NONE,
  LANG_IMPORT_C,      /* #include "a/b.h" */
  LANG_IMPORT_PYTHON, /* import a.b as c; from .x import y as z, w */
  LANG_IMPORT_JS,     /* import d, {x as y} from './m'; export {k} from './m' */
  LANG_IMPORT_GO,     /* f "a/b" */
  LANG_IMPORT_DOTS,   /* import [static] a.b.C [as D]; using A.B; use A\B as C */
  LANG_IMPORT_RUST,   /* use a::b::{c, d as e, f::*} */
} lang_import;

/* Lists are separated by spaces. A place is NODE or NODE:FIELD, "NODE:" being a child without a field. */
typedef struct lang_uses {
  const char *grammar;
  const char *calls;   /* NODE.FIELD: the callee, with what it belongs to; NODE.NAME<OWNER: two fields; ^ is the first
                          child */
  const char *imports; /* nodes */
  lang_import import;  /* how they read */
  const char *binds;   /* places of names that are local to the function around them */
  const char *bases;   /* places of names that a type extends or implements */
  const char *members; /* NODE.PATH: members of types that are no definitions of the language's rules */
  const char *values;  /* NODE.PATH: the same, for values of an enum */
  const char
      *common; /* methods of the language's own types: of a value of which nothing is known, they are no evidence */
  bool implicit_this;   /* a bare name may be a member of the class around it */
  bool package_by_path; /* files of one folder see each other's names without an import */
} lang_uses;

/* NULL when the language has no grammar, or the grammar no row. */
const lang_uses *lang_uses_of(const lang_info *language);
/* Languages that call each other share a family: c and c++; javascript and typescript; java, kotlin, ... */
const char *lang_family(const lang_info *language);

#endif
