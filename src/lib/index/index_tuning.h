/* SPDX-License-Identifier: Apache-2.0 */
/* index_tuning.h - every number of the vector index that was chosen rather than derived, and why.
 *
 * Measured means: with `make bench-vectors` on images (60,000 x 784), words (340,479 x 100) and patches
 * (1,000,000 x 128), at equal recall, and for filters by recall on random clusters; docs/INDEX.md has the results. None
 * of these numbers is in a file: a segment stores the degree, the entries, the climbs and the curve that it was built
 * with. Costs are in distances between codes.
 */
#ifndef LODE_INDEX_INDEX_TUNING_H
#define LODE_INDEX_INDEX_TUNING_H

/* ---- Construction ---- */

enum {
  /* Links of a row, and beam of the searches that find them. Measured: half of the beam and 24 links build in half of
   * the time, at a recall of 0.999 instead of 0.9995 (240,000 chunks of code, beam 200), which bulk loads use. */
  INDEX_DEGREE = 32,
  INDEX_BUILD_BEAM = 128,
  INDEX_MAX_DEGREE = 1024, /* a limit: bounds what a header may claim */
  /* Entry points: sqrt(n) / 2, within these bounds. More do not shorten walks, but each cluster of the data should have
   * one; they are stored next to each other and stay in the cache. The bounds were not measured. */
  INDEX_MIN_ENTRIES = 32,
  INDEX_MAX_ENTRIES = 256,
  /* Rows sampled for each entry that is chosen to be far from all before it. Not measured. */
  INDEX_ENTRY_SAMPLE = 8,
  /* Neighbours that a candidate is compared with at a time while links are pruned. Not measured. */
  INDEX_PRUNE_GROUP = 8,
  /* Rows are inserted in batches that search the graph as it was before. Up to the first size a batch is as large as
   * the graph, then a 24th of it: rows of a batch do not see each other, so larger ones cost links, smaller ones
   * leave threads waiting. The largest bounds the memory of a batch. Not measured apart. */
  INDEX_FIRST_BATCH = 32,
  INDEX_BATCH_SHARE = 24,
  INDEX_MAX_BATCH = 16384,
  /* Inner products: walks begin with this many entry climbs if the longest row is more than `uneven` times as long
   * (squared) as rows are on average. Measured: of 60 seeds with lengths that differ by factors of 2 to 5, none has a
   * mean recall below 0.95, without climbs 8 do; 3,100 distances instead of 1,500. */
  INDEX_ENTRY_CLIMBS = 32,
  INDEX_UNEVEN_LENGTHS = 2,
  /* Children of a copy in the tree of equal rows: a tree of a million copies has seven levels, and links are left for
   * others. Not measured. */
  INDEX_COPIES_FANOUT = 8,
  /* Different vectors that may have the same code, but for its errors: with more, the segment is searched exactly
   * (effort.h). More than the ten nearest, fewer than a beam. Not measured. */
  INDEX_MAX_SAME_CODE = 32,
};

/* How much nearer (squared) a neighbour must be to occlude another. Measured: with places that pruning leaves empty
 * filled by the nearest of those pruned, 1.05 needs 10 % fewer distances on words and 5 % fewer on images than 1.2
 * without filling. */
#define INDEX_PRUNE_ALPHA 1.05f

/* ---- Calibration ---- */

enum {
  /* Queries: a third of them are rows, the others lie between two rows. The error of a recall of 0.98 of rows is then
   * about 0.5 %, that of 0.90 between clusters about 2 %, which the curve leaves room for. */
  INDEX_CALIBRATE_SAMPLE = 320,
  INDEX_CALIBRATE_K = 10,          /* nearest rows to find; for more, the effort grows (INDEX_EFFORT_PER_RESULT) */
  INDEX_CALIBRATE_MIN_ROWS = 2000, /* smaller graphs have no curve: INDEX_DEFAULT_BEAM */
  /* Bounds of the default effort. The lower one is more than easy data need: real queries are not drawn from the rows.
   * With them, recall is 0.997 on images, 0.986 on words, 0.990 on patches. */
  INDEX_EFFORT_MIN = 48,
  INDEX_EFFORT_MAX = 1024,
};
/* The recall that the default effort is read from the curve for. */
#define INDEX_DEFAULT_RECALL 0.98

/* ---- Walks ---- */

enum {
  /* Distances that a walk computes for each row of its effort, about: decides between walks and scans. With an effort
   * above n / 20 all codes are scanned. */
  INDEX_COST_PER_EFFORT = 20,
  INDEX_DEFAULT_BEAM = 64, /* for segments that were not calibrated; not measured */
  /* How much more effort a recall above INDEX_DEFAULT_RECALL gets in a segment that was not calibrated. Not measured.
   */
  INDEX_HIGH_RECALL_FACTOR = 8,
  INDEX_EFFORT_PER_RESULT = 2, /* added to the effort for each result beyond INDEX_CALIBRATE_K; not measured */
  INDEX_WALK_SEEDS = 8,        /* nearest entries that a walk starts with; not measured */
  INDEX_WALK_MAX_SEEDS = 64,   /* the most with entry climbs; a limit */
  /* Rows whose keys are computed together: all are prefetched before the first is needed. Not measured. */
  INDEX_STEP_ROWS = 64,
  INDEX_POOL_ROWS_AHEAD = 16,  /* rows of the pool whose slots are asked for ahead; not measured */
  INDEX_WALK_LINKS_AHEAD = 8,  /* rows of links that are prefetched; not measured */
  INDEX_WALK_LINES_AHEAD = 14, /* cache lines of a row that are prefetched: then the hardware recognises the stream */
};

/* ---- Filters ---- */

enum {
  /* Rows nearest to the query that a walk among allowed rows finds first; with fewer allowed ones around them than
   * this, the matches are distant; seeds that are used if they are not. Not measured apart from the tests of filters:
   * recall of at least 0.95 for 44 random seeds. */
  INDEX_WALK_PROBES = 16,
  INDEX_WALK_FEW_ALLOWED = 4 * INDEX_WALK_PROBES,
  INDEX_WALK_NEAR_SEEDS = 32,
  INDEX_WALK_MAX_FRESH = 32, /* allowed rows that one expansion finds at most: as many as a row has links */
  INDEX_ALLOWED_SEEDS = 512, /* evenly spread allowed rows that a walk for distant matches starts with, at most */
  /* For this many rows that a plain walk passes on its way to the k-th match, its effort grows by one. Measured with
   * filters of 10 to 50 %: 1,016 to 729 distances on images instead of 1,654 to 829 with an effort of two for each row,
   * recall at least 0.996; 1,366 to 910 on 250,000 patches instead of 2,114 to 1,025, recall at least 0.985. */
  INDEX_PASSED_PER_EFFORT = 2,
  /* Scanning this many matches costs as much as one distance of a walk: they are asked for long ahead. Measured on
   * images and words: 20 ns instead of 40. */
  INDEX_SCANNED_PER_COST = 2,
  /* Marking this many matches by ordinal costs as much as one distance. Not measured. */
  INDEX_MARKS_PER_COST = 8,
  /* If at least this share of rows matches, a plain walk with a wider beam is always best. Not measured. */
  INDEX_PLAIN_WALK_PERCENT = 90,
  /* If a smaller share matches, walks among matches go astray: they are scanned. Not measured apart from recall. */
  INDEX_MIN_WALK_PERMILLE = 10,
  /* Matches are scanned if that costs no more than this many walks: near the query, and distant from it, where walks
   * are least reliable; beyond that, the beam for distant matches is this much wider. Chosen for recall. */
  INDEX_NEAR_SCAN_WALKS = 4,
  INDEX_DISTANT_SCAN_WALKS = 64,
  INDEX_DISTANT_BEAM_FACTOR = 16,
  /* Candidates kept for distant matches, in beams: codes of distant rows differ by less than their errors. */
  INDEX_DISTANT_KEEP = 4,
  /* Of a prepared filter, whose codes are contiguous: scanned if that costs no more than this many walks; beam of the
   * probe before a walk. Not measured. */
  INDEX_FILTERED_SCAN_WALKS = 2,
  INDEX_PROBE_BEAM = 16,
  /* Rows visited to find the links of one match, at most: bounds the first walk of a prepared filter. Not measured. */
  INDEX_REACH_MAX = 1024,
  /* Where a walk over a prepared filter starts: matches at the nearest entries of the segment, and some that are evenly
   * spread. Not measured. */
  INDEX_NEAR_ENTRIES = 8,
  INDEX_SPREAD_STARTS = 32,
  INDEX_FILTERED_STARTS = INDEX_NEAR_ENTRIES + INDEX_SPREAD_STARTS,
  /* Matches that may be missing around a row by chance before it counts as sparse. Not measured. */
  INDEX_FILTERED_SLACK = 4,
};

/* ---- Exact searches by codes ---- */

enum {
  /* If at most this share of rows is not allowed, all are scanned in the order in which they lie in memory. */
  INDEX_SCAN_ALL_SHARE = 4,
  /* Of rows that are anywhere in memory, this much is asked for ahead, but not fewer rows than that: a scan of 2 % of
   * the images takes 0.44 of the time that it takes without, of 1 % of the words 0.39. The numbers were not measured
   * apart. */
  INDEX_SCAN_AHEAD_BYTES = 1 << 13,
  INDEX_SCAN_AHEAD_MIN = 8,
  /* If more than this share of rows can be among the nearest, all vectors are read one after the other. */
  INDEX_POSSIBLE_SHARE = 4,
};

/* ---- Reranking ---- */

enum {
  /* Reranking stops after k / this candidates in a row that are not among the nearest. Measured with the errors below:
   * 10.7 vectors are read for ten results on images, 12.2 on patches. */
  INDEX_RERANK_PATIENCE = 4,
  /* Candidates measured before the error of codes is estimated from them. Not measured. */
  INDEX_MIN_ERRORS_SEEN = 8,
  INDEX_RERANK_AHEAD = 4,      /* vectors whose cache lines are asked for ahead; not measured */
  INDEX_EXACT_BYTES = 1 << 16, /* read at a time by an exact scan; not measured */
};

/* ---- Segments in memory ---- */

enum {
  INDEX_LARGE_BYTES = 4 << 20, /* sections of at least this size use large pages; not measured */
  INDEX_RANGE_MIN_KEYS = 64,   /* with fewer keys, their pages are read one by one; not measured */
  INDEX_WRITE_BYTES = 1 << 20, /* written at a time; not measured */
};

#endif
