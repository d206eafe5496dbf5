/* project.h - a code base and its index: the root, the store's folder in it, the settings, and who is at work there.
 *
 * The root is the nearest folder upward that has a .lode folder, else the nearest that has .git, else the folder itself. The search for
 * .lode ends at the first folder that has a .git of either kind (a submodule and a worktree have a file): what lies above belongs to
 * another tree. A .lode of another user, or one that others may write, is passed over. The store is ROOT/.lode, which tells
 * git to ignore it; it may lie elsewhere when its user says so.
 *
 * One process indexes at a time: it holds a lock on FOLDER/index.lock, and writes into that file what it is doing, so that others
 * can say so. The lock dies with its holder. A watcher holds FOLDER/watch.lock in the same way for as long as it runs.
 */
#ifndef LODE_CODE_PROJECT_H
#define LODE_CODE_PROJECT_H

#include "config.h"
#include "trust.h"

#define LODE__PROJECT_FOLDER ".lode"

typedef struct lode__project {
  char *root;    /* absolute, without symbolic links; "": there is none */
  char *folder;  /* of the store */
  lode__config config;
  lode__trust trust; /* whose the store is, once somebody has asked lode__trust_look */
  char passed[400];  /* a .lode or .git that was passed over, and why; "": none */
} lode__project;

/* The nearest .lode at or above a folder (absolute, without links), by the rules above: *store is the length of the folder that has it, *git
 * that of the one with the .git where the search ended; 0: none. `passed` (of `size` bytes) says which was passed over. */
LODE_MUST lode_status lode__project_find(lode_str from, size_t *store, size_t *git, char *passed, size_t size, lode_error *err);

/* Finds the project of a file or folder (NULL: the working directory). `store` names the store's folder, or is NULL. Writes
 * nothing. A configuration that cannot be read is an error; lode__project_locate leaves it alone. */
lode_status lode__project_open(lode__project *project, const char *start, const char *store, lode_error *err);
lode_status lode__project_locate(lode__project *project, const char *start, const char *store, lode_error *err);
/* The project of a store, for callers who may not name a folder: the root is the folder that the store lies in as .lode. Any other store has
 * no root ("": no file is read or looked at), whatever it says of itself: its content is its writers' claim. */
LODE_MUST lode_status lode__project_of_store(lode__project *project, const char *store, lode_error *err);
void lode__project_release(lode__project *project);
/* A model that the store or its settings name: LODE_REFUSED when it reaches beyond this machine and the store may not name such a one. */
LODE_MUST lode_status lode__project_open_model(const lode__project *project, lode_str name, const lode_embedder_options *options,
                                               lode_embedder **model, lode_error *err);
/* What to call it in messages: the root, or the store's folder where there is none. */
const char *lode__project_name(const lode__project *project);
/* There is a store. */
bool lode__project_has_store(const lode__project *project);
/* Makes the store's folder, with a .gitignore in it. */
lode_status lode__project_prepare(const lode__project *project, lode_error *err);
/* A folder of the project that git is not to see: a .gitignore in it, unless there is one. */
lode_status lode__project_hide(const char *folder, lode_error *err);

/* ---- Who is at work ---- */

typedef enum lode__job_kind { LODE__JOB_INDEX, LODE__JOB_WATCH } lode__job_kind;

typedef struct lode__job {
  int fd; /* -1: not held */
  uint64_t started_ms, noted_ms;
} lode__job;

/* Waits at most wait_ms for another holder, then LODE_BUSY says who it is. */
lode_status lode__job_begin(lode__job *job, const lode__project *project, lode__job_kind kind, uint64_t wait_ms, lode_error *err);
/* What is being done; cheap, and written a few times a second at most. */
void lode__job_note(lode__job *job, const char *phase, uint64_t done, uint64_t total);
void lode__job_end(lode__job *job);

typedef struct lode__job_view {
  bool running;
  uint64_t pid, done, total, started_ms;
  char phase[40];
} lode__job_view;
/* Never fails: what cannot be read is not running. */
void lode__job_look(const char *folder, lode__job_kind kind, lode__job_view *view);

#endif
