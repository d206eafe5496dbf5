/* SPDX-License-Identifier: Apache-2.0 */
/* project.h - a code base and its index: the root, the folder of its store, the settings, and which process is
 * working on it.
 *
 * The root is the nearest folder upward that has a .lode folder, else the nearest that has .git, else the folder
 * itself. The search for .lode ends at the first folder that has a .git, folder or file (submodules and worktrees
 * have a file): what is above belongs to another tree. A .lode that belongs to another user, or that others may
 * write, is passed over. The store is ROOT/.lode, which has a .gitignore to hide itself from git, unless the user
 * names another folder. Of a store on a cluster, which has an address, ROOT/.lode keeps what is this machine's:
 * settings and locks.
 *
 * One process indexes at a time: it holds a lock on FOLDER/index.lock and writes its progress into that file, for
 * others to show. The lock ends with its holder. A watcher holds FOLDER/watch.lock in the same way while it runs.
 */
#ifndef LODE_PROJECT_PROJECT_H
#define LODE_PROJECT_PROJECT_H

#include "project/project_config.h"
#include "project/trust.h"

#define PROJECT_DIR_NAME ".lode"

typedef struct project_info {
  char *root;    /* absolute, without symbolic links; "": none */
  char *folder;  /* of the store, the settings and the locks; with a cluster, of the latter two */
  char *address; /* of the cluster that has the store; NULL: it is in the folder */
  config_values config;
  trust_info trust; /* whose the store is; set by trust_examine() */
  char passed[400]; /* a .lode or .git that was passed over, and why; "": none */
} project_info;

/* The nearest .lode at or above a folder (absolute, without links), by the rules above. *store is the length of the
 * path of the folder that has it, *git that of the folder with the .git that ended the search; 0: none. `passed` (of
 * `size` bytes) says what was passed over. */
LODE_MUST lode_status project_find(lode_str from, size_t *store, size_t *git, char *passed, size_t size,
                                   lode_error *err);

/* Finds the project of a file or folder (NULL: the working directory). `store` names the store's folder, or is NULL.
 * Writes nothing. project_open() also reads the configuration, and fails if it cannot; project_locate() does not read
 * it. */
LODE_MUST lode_status project_open(project_info *project, const char *start, const char *store, lode_error *err);
LODE_MUST lode_status project_locate(project_info *project, const char *start, const char *store, lode_error *err);
/* The project of a store, for callers that may not name a folder: the root is the folder in which the store is .lode.
 * Any other store has no root ("": no file is read), whatever its content says: anyone may have written that. */
LODE_MUST lode_status project_of_store(project_info *project, const char *store, lode_error *err);
void project_release(project_info *project);
/* Opens a model that the store or its settings name. LODE_REFUSED: it reaches beyond this machine, and the store is
 * not trusted to name such a model. */
LODE_MUST lode_status project_open_model(const project_info *project, lode_str name,
                                         const lode_embedder_options *options, lode_embedder **model, lode_error *err);
/* Its name in messages: the root, or the store's folder where there is none. */
const char *project_display_name(const project_info *project);
/* What lode_open() takes: the folder, or the address. */
const char *project_store(const project_info *project);
/* Is there a store? Of a cluster this is not asked here: an index that it does not have is LODE_NOT_FOUND later. */
bool project_has_store(const project_info *project);
/* LODE_UNSUPPORTED if the store is not in a folder but on a cluster: `what` cannot be done there. */
LODE_MUST lode_status project_need_folder(const project_info *project, const char *what, lode_error *err);
/* Creates the folder, with a .gitignore in it. */
LODE_MUST lode_status project_prepare(const project_info *project, lode_error *err);
/* Writes a .gitignore into a folder that git should ignore, unless there is one. */
LODE_MUST lode_status project_write_gitignore(const char *folder, lode_error *err);

/* ---- Jobs: which process is indexing or watching ---- */

typedef enum project_job_kind { PROJECT_JOB_INDEX, PROJECT_JOB_WATCH } project_job_kind;

typedef struct project_job {
  int fd; /* -1: not held */
  uint64_t started_ms, noted_ms;
} project_job;

/* Waits at most wait_ms for another holder; then LODE_BUSY, which names it. */
LODE_MUST lode_status project_job_begin(project_job *job, const project_info *project, project_job_kind kind,
                                        uint64_t wait_ms, lode_error *err);
/* Reports progress; cheap, and written at most a few times a second. */
void project_job_note(project_job *job, const char *phase, uint64_t done, uint64_t total);
void project_job_end(project_job *job);

/* The phase of a watcher that has seen to every change it knows of. */
#define PROJECT_WATCH_CURRENT "watching"
typedef struct project_job_status {
  bool running;
  uint64_t pid, done, total, started_ms;
  char phase[40];
} project_job_status;
/* Has `lode index` ever worked on the store in this folder? Its lock file stays. */
bool project_was_indexed(const char *folder);
/* Never fails: a job that cannot be read is reported as not running. */
void project_job_read(const char *folder, project_job_kind kind, project_job_status *status);

#endif
