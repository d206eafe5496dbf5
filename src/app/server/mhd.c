/* SPDX-License-Identifier: Apache-2.0 */
/* mhd.c - see mhd.h. */
#include "server/mhd.h"

#include "platform/library.h"

server_mhd_calls server_mhd;

lode_status server_mhd_load(lode_error *err) {
  static const struct {
    const char *name;
    size_t offset;
  } symbols[] = {
#define SERVER_MHD_ENTRY(name) {"MHD_" #name, offsetof(server_mhd_calls, name)},
      SERVER_MHD_FUNCTIONS(SERVER_MHD_ENTRY)
#undef SERVER_MHD_ENTRY
  };
  void *so = os_library_open(OS_LIBRARY_NAME("microhttpd", "12")); /* stays loaded until the process exits */
  if (!so)
    return err_set(err, LODE_UNSUPPORTED,
                   "lode serve needs libmicrohttpd: install the package libmicrohttpd12 (%.200s)", os_library_error());
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    void *symbol = os_library_symbol(so, symbols[i].name);
    if (!symbol) return err_set(err, LODE_UNSUPPORTED, "this libmicrohttpd is too old: it has no %s", symbols[i].name);
    memcpy((char *)&server_mhd + symbols[i].offset, &symbol, sizeof symbol);
  }
  return LODE_OK;
}
