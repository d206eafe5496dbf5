/* minilm.c - not there yet. */
#include "embed/embed.h"

lode_status lode__minilm_open(const lode__embed_setup *setup, lode__embed_model *model, lode_error *err) {
  (void)setup;
  (void)model;
  return lode__fail(err, LODE_UNSUPPORTED, "this build has no minilm models");
}

lode_status lode__minilm_install(const char *from, const char *to, lode_progress progress, lode_error *err) {
  (void)from;
  (void)to;
  (void)progress;
  return lode__fail(err, LODE_UNSUPPORTED, "this build has no minilm");
}

lode_status lode__minilm_verify(const char *file, lode_error *err) {
  (void)file;
  return lode__fail(err, LODE_UNSUPPORTED, "this build has no minilm");
}
