/* SPDX-License-Identifier: Apache-2.0 */
/* trust.h - whose is a store that was found? The rules are in docs/SECURITY.md.
 *
 * They apply to a .lode folder that Lode found by itself, never to one that the user named with --store. It is
 *   foreign  owned by another user, or writable by others: not used;
 *   ours     made by this user here, or trusted with `lode trust`;
 *   adopted  owned by this user, unknown so far, and not tracked by git: used from now on, but none of its settings and
 *            models reach beyond the folder;
 *   tracked  git tracks files in it, so a clone, pull or checkout may have written them: not used until the user runs
 *            `lode trust`, even if the user made the store; asked again when git tracks it again.
 *            Without a lode.db there is no store to trust, and it has to be removed.
 * LODE_TRUST=1 in the environment switches all of this off.
 *
 * A store is recognised by its file (inode and birth time of lode.db: git, tar and cp create a new file), else by its
 * path together with its id. An id alone proves nothing: whoever has a copy of a store has its id.
 *
 * Settings that reach beyond the folder apply only with the exact values that this user has set (`lode config set`,
 * `lode setup`) or trusted.
 */
#ifndef LODE_PROJECT_TRUST_H
#define LODE_PROJECT_TRUST_H

#include "project/project_config.h"

typedef enum trust_state {
  TRUST_NAMED, /* named by the user, or LODE_TRUST=1: nothing was checked */
  TRUST_NONE,  /* there is no store yet */
  TRUST_OURS,
  TRUST_ADOPTED,
  TRUST_TRACKED,
  TRUST_FOREIGN,
} trust_state;
const char *trust_state_name(trust_state state);

typedef struct trust_info {
  trust_state state;
  char why[600];       /* as long as lode_error.text; tracked, foreign: what is wrong and what to do */
  char note[500];      /* it was adopted just now, or is used although git tracks files in it; "": neither */
  bool tracked;        /* git tracks files in it */
  char list_note[500]; /* what is wrong with the user's list; "": nothing */
  strbuf settings;     /* {"model":"openai:x"}: the values that may reach beyond the folder */
} trust_info;

/* Examines a folder that was found. `remember`: a store that is adopted is added to the user's list. Never fails. */
void trust_examine(const char *folder, bool remember, trust_info *trust);
void trust_release(trust_info *trust);
/* Passes what the user should know about it to note, which may be NULL. */
void trust_report(const trust_info *trust, void (*note)(void *ctx, const char *text), void *ctx);
/* LODE_REFUSED with the reason for a store that must not be used. */
LODE_MUST lode_status trust_check(const trust_info *trust, lode_error *err);
/* Suppresses settings that reach beyond the folder without the user's consent; `held` lists them ("model = openai:x,
 * ..."). */
void trust_suppress_config(const trust_info *trust, config_values *config, strbuf *held);
/* May a model that the store names be opened? Yes if the store is the user's own or the model is local. */
bool trust_allows_model(const trust_info *trust, lode_str model);

/* "" when a folder and the files in it are this user's alone (or it does not exist), else the reason. */
const char *trust_foreign_reason(const char *folder);

/* ---- Changes to the user's list; a failure is only worth a note ---- */

/* Is there a lode.db, of any file type? */
bool trust_has_store(const char *folder);
/* This user created a store here; store NULL: a process that cannot write the list is about to create it. */
LODE_MUST lode_status trust_add_created(const char *folder, lode_store *store, lode_error *err);
/* The user has set this value; value.data NULL: has unset it. */
LODE_MUST lode_status trust_set_value(const char *folder, config_key key, lode_str value, lode_error *err);
/* The user trusts the store as it is now, with its settings; without a store, the settings alone: a store that appears
 * later must be trusted again, unless this user makes it. LODE_NOT_FOUND when there is neither a store nor a setting
 * that reaches beyond the folder. `settings` gets, as JSON, what may reach beyond the folder from now on. */
LODE_MUST lode_status trust_grant(const char *folder, strbuf *settings, lode_error *err);

#endif
