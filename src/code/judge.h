/* judge.h - what a name or a text alone says about a file; walk.h is the door for others. */
#ifndef LODE_CODE_JUDGE_H
#define LODE_CODE_JUDGE_H

#include "code/walk.h"

/* Of the last name of a path: BINARY, SECRET, GENERATED, MINIFIED or NONE. */
lode__skip lode__judge_name(lode_str name);
/* A folder of installed packages, or a cache. */
bool lode__judge_dependencies(lode_str name);
/* EMPTY, BINARY, SECRET, MINIFIED, GENERATED or NONE; generated_too: the last two do not count. */
lode__skip lode__judge_content(const lode__language *language, lode_str text, bool generated_too);

#endif
