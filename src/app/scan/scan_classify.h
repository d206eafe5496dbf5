/* SPDX-License-Identifier: Apache-2.0 */
/* scan_classify.h - what a name or a text says about a file; internal to scan, others use scan.h. */
#ifndef LODE_SCAN_SCAN_CLASSIFY_H
#define LODE_SCAN_SCAN_CLASSIFY_H

#include "scan/scan.h"

/* From the last name of a path and the folder it is in: BINARY, SECRET, GENERATED, MINIFIED or NONE. */
scan_skip scan_classify_name(lode_str path);
/* Is it a folder of installed packages, or a cache? */
bool scan_is_dependency_dir(lode_str name);
/* EMPTY, BINARY, SECRET (the whole file is one), MINIFIED, GENERATED or NONE, depending on the options. */
scan_skip scan_classify_content(const lang_info *language, lode_str text, const scan_options *options);

#endif
