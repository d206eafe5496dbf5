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
#ifndef LODE_PROJECT_PROJECT_H
#define LODE_PROJECT_PROJECT_H

#include "project/project_config.h"
#include "project/trust.h"

#define PROJECT_DIR_NAME ".lode"

typedef struct project_info {
  char *root;    /* absolute, without symbolic links; "": there is none */
  char *folder;  /* of the store */
  config_values config;
  trust_info trust; /* whose the store is, once somebody has asked trust_examine */
  char passed[400];  /* a .lode or .git that was passed over, and why; "": none */
} project_info;

/* The nearest .lode at or above a folder (absolute, without links), by the rules above: *store is the length of the folder that has it, *git
 * that of the one with the .git where the search ended; 0: none. `passed` (of `size` bytes) says which was passed over. */
LODE_MUST lode_status project_find(lode_str from, size_t *store, size_t *git, char *passed, size_t size, lode_error *err);

/* Finds the project of a file or folder (NULL: the working directory). `store` names the store's folder, or is NULL. Writes
 * nothing. A configuration that cannot be read is an error; project_locate leaves it alone. */
lode_status project_open(project_info *project, const char *start, const char *store, lode_error *err);
lode_status project_locate(project_info *project, const char *start, const char *store, lode_error *err);
/* The project of a store, for callers who may not name a folder: the root is the folder that the store lies in as .lode. Any other store has
 * no root ("": no file is read or looked at), whatever it says of itself: its content is its writers' claim. */
LODE_MUST lode_status project_of_store(project_info *project, const char *store, lode_error *err);
void project_release(project_info *project);
/* A model that the store or its settings name: LODE_REFUSED when it reaches beyond this machine and the store may not name such a one. */
LODE_MUST lode_status project_open_model(const project_info *project, lode_str name, const lode_embedder_options *options,
                                               lode_embedder **model, lode_error *err);
/* What to call it in messages: the root, or the store's folder where there is none. */
const char *project_display_name(const project_info *project);
/* There is a store. */
bool project_has_store(const project_info *project);
/* Makes the store's folder, with a .gitignore in it. */
lode_status project_prepare(const project_info *project, lode_error *err);
/* A folder of the project that git is not to see: a .gitignore in it, unless there is one. */
lode_status project_write_gitignore(const char *folder, lode_error *err);

/* ---- Who is at work ---- */

typedef enum project_job_kind { PROJECT_JOB_INDEX, PROJECT_JOB_WATCH } project_job_kind;

typedef struct project_job {
  int fd; /* -1: not held */
  uint64_t started_ms, noted_ms;
} project_job;

/* Waits at most wait_ms for another holder, then LODE_BUSY says who it is. */
lode_status project_job_begin(project_job *job, const project_info *project, project_job_kind kind, uint64_t wait_ms, lode_error *err);
/* What is being done; cheap, and written a few times a second at most. */
void project_job_note(project_job *job, const char *phase, uint64_t done, uint64_t total);
void project_job_end(project_job *job);

typedef struct project_job_status {
  bool running;
  uint64_t pid, done, total, started_ms;
  char phase[40];
} project_job_status;
/* Never fails: what cannot be read is not running. */
void project_job_read(const char *folder, project_job_kind kind, project_job_status *view);

#endif
