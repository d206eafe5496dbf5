/* trust.h - whose is a store that was found? docs/SECURITY.md has the rules.
 *
 * They concern a .lode folder that Lode found by itself, never one that the user named with --store. Such a folder is
 *   foreign  owned by another user, or open to writing by others: not used;
 *   ours     made by this user here, or trusted by `lode trust`;
 *   adopted  the user's own by the file system, unknown so far, and not tracked by git: used from now on, but no setting and no model of
 *            it reaches beyond the folder;
 *   tracked  git tracks files in it, so a clone, pull or checkout may have written them: not used until the user says `lode trust`,
 *            not even a store that the user made. Without a lode.db there is nothing to trust, and it has to be removed.
 * LODE_TRUST=1 in the environment switches all of this off.
 *
 * A store is known again by its file (inode and time of birth of lode.db: git, tar and cp make a new file), else by its path
 * together with its id. An id alone proves nothing: whoever has a copy of a store has its id.
 *
 * Settings that reach beyond the folder count only with the very values that this user has set (`lode config set`, `lode setup`) or trusted.
 */
#ifndef LODE_PROJECT_TRUST_H
#define LODE_PROJECT_TRUST_H

#include "project/project_config.h"

typedef enum trust_state {
  TRUST_NAMED,   /* by the user: nothing was looked at */
  TRUST_NONE,    /* there is no store yet */
  TRUST_OURS,
  TRUST_ADOPTED,
  TRUST_TRACKED,
  TRUST_FOREIGN,
} trust_state;
const char *trust_state_name(trust_state state);

typedef struct trust_info {
  trust_state state;
  char why[700];       /* tracked, foreign: what is wrong and what to do */
  char note[500];      /* it was adopted now, or is used though git tracks files in it; "": neither */
  bool tracked;        /* git tracks files in it */
  char list_note[500]; /* what is wrong with the user's list; "": nothing */
  strbuf settings;  /* {"model":"openai:x"}: the values that may reach beyond the folder */
} trust_info;

/* Of a folder that was found. `remember`: a store that is adopted is written into the user's list. Never fails. */
void trust_examine(const char *folder, bool remember, trust_info *trust);
void trust_release(trust_info *trust);
/* What the user should hear about it; note may be NULL. */
void trust_report(const trust_info *trust, void (*note)(void *ctx, const char *text), void *ctx);
/* LODE_REFUSED with the reason for stores that are not to be used. */
LODE_MUST lode_status trust_check(const trust_info *trust, lode_error *err);
/* Settings that reach beyond the folder without the user's word lose their effect, and are named in `held` ("model = openai:x, ..."). */
void trust_suppress_config(const trust_info *trust, config_values *config, strbuf *held);
/* A model that the store names may be opened: it is the user's own store, or the model is one of this machine. */
bool trust_allows_model(const trust_info *trust, lode_str model);

/* "" when a folder and the files in it are this user's alone (or it does not exist), else why not. */
const char *trust_foreign_reason(const char *folder);

/* ---- What the user's list learns; failures are for a note ---- */

/* Whether there is a lode.db, of whatever kind. */
bool trust_has_store(const char *folder);
/* A store was made here by this user; store NULL: it is about to be made by a process that cannot write the list. */
LODE_MUST lode_status trust_add_created(const char *folder, lode_store *store, lode_error *err);
/* The user has set this value; absent: taken it back. */
LODE_MUST lode_status trust_set_value(const char *folder, config_key key, lode_str value, lode_error *err);
/* The user trusts the store as it is now; LODE_NOT_FOUND when there is none. `settings` gets what may reach beyond the folder from now
 * on, as JSON. */
LODE_MUST lode_status trust_grant(const char *folder, strbuf *settings, lode_error *err);

#endif
