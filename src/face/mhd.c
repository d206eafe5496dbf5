/* mhd.c - see mhd.h. */
#include "mhd.h"

#include <dlfcn.h>

lode__mhd_table lode__mhd;

lode_status lode__mhd_load(lode_error *err) {
  static const struct {
    const char *name;
    size_t offset;
  } symbols[] = {
#define ENTRY(name) {"MHD_" #name, offsetof(lode__mhd_table, name)},
      LODE__MHD(ENTRY)
#undef ENTRY
  };
  void *so = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL); /* stays until the process ends */
  if (!so) return err_set(err, LODE_UNSUPPORTED, "lode serve needs libmicrohttpd: install the package libmicrohttpd12 (%.200s)", dlerror());
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    void *symbol = dlsym(so, symbols[i].name);
    if (!symbol) return err_set(err, LODE_UNSUPPORTED, "this libmicrohttpd is too old: it has no %s", symbols[i].name);
    memcpy((char *)&lode__mhd + symbols[i].offset, &symbol, sizeof symbol);
  }
  return LODE_OK;
}
