/* scan_classify.h - what a name or a text alone says about a file; scan.h is the door for others. */
#ifndef LODE_SCAN_SCAN_CLASSIFY_H
#define LODE_SCAN_SCAN_CLASSIFY_H

#include "scan/scan.h"

/* Of the last name of a path, and the folder it is in: BINARY, SECRET, GENERATED, MINIFIED or NONE. */
scan_skip scan_classify_name(lode_str path);
/* A folder of installed packages, or a cache. */
bool scan_is_dependency_dir(lode_str name);
/* EMPTY, BINARY, SECRET (the whole of it), MINIFIED, GENERATED or NONE, as far as the options want them left out. */
scan_skip scan_classify_content(const lang_info *language, lode_str text, const scan_options *options);

#endif
