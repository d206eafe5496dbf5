/* SPDX-License-Identifier: Apache-2.0 */
/* symbol_tuning.h - every number of the symbols that was chosen rather than derived. */
#ifndef LODE_SYMBOLS_SYMBOL_TUNING_H
#define LODE_SYMBOLS_SYMBOL_TUNING_H

enum {
  /* Chunks looked at for the definitions of one name, and for its uses: bounds the work on names like `get`. */
  SYMBOLS_DEF_CHUNKS = 2000,
  SYMBOLS_USE_CHUNKS = 5000,
  /* What a question for the uses of a name costs, in percent of reading all tables: of one word of the text index, and
   * of a name in parts, whose chunks are looked at if they hold the parts. Both grow with the project. Measured on
   * 95,000 chunks of Go (9,207 files, whose tables take 0.3 s and 190 MB): 20 ms, and ten times as much. When questions
   * have cost as much as all tables, those are read, if the project has at most so many files. */
  SYMBOLS_COST_WORD = 5,
  SYMBOLS_COST_PARTS = 50,
  SYMBOLS_FEW_FILES = 20000,
  /* Tables of symbols read in one call of the store. */
  SYMBOLS_LOAD_BATCH = 500,
  /* Bytes of all tables that one question may read. */
  SYMBOLS_MAX_BYTES = 1 << 30,
  /* Definitions of one name that are compared. */
  SYMBOLS_MAX_CANDIDATES = 2000,
  /* Of so many definitions it is looked at first whether a use can mean them, before all others of the name are. */
  SYMBOLS_FEW_ASKED = 16,
  /* Comparisons of a use with a definition or an import, in one question: a second or two. */
  SYMBOLS_MAX_STEPS = 20 * 1000 * 1000,
  /* Bases of bases that are followed. */
  SYMBOLS_MAX_BASES = 24,
  /* Definitions that a walk over callers or callees visits. */
  SYMBOLS_MAX_VISITS = 2000,
};

/* Evidence for a candidate, from 0 to 100. */
enum {
  SYMBOLS_SCORE_RESOLVED = 50, /* at least this much is called resolved */
  SYMBOLS_SCORE_WEAK = 20,     /* a member of that name, of a value of which nothing is known */
};

#endif
