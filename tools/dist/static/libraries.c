/* SPDX-License-Identifier: Apache-2.0 */
/* libraries.c - libcurl and libmicrohttpd inside lode, and libcurl inside liblode (DIST_LIBRARY). */
#include "dist_static.h"
#include "platform/library.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <unistd.h>

#undef curl_easy_setopt
#undef curl_easy_getinfo

/* The certificates of the system: SSL_CERT_FILE and SSL_CERT_DIR as OpenSSL has them, then where distributions keep
 * them. */
static const char *certificates_file(void) {
  static const char *const places[] = {
      "/etc/ssl/certs/ca-certificates.crt",                /* Debian, Ubuntu, Arch, Alpine, Gentoo */
      "/etc/pki/tls/certs/ca-bundle.crt",                  /* Fedora, Red Hat */
      "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* newer Fedora */
      "/etc/ssl/ca-bundle.pem",                            /* openSUSE */
      "/etc/ssl/cert.pem",                                 /* macOS, Alpine, BSD */
      "/var/lib/ca-certificates/ca-bundle.pem",            /* openSUSE MicroOS */
  };
  const char *asked = getenv("SSL_CERT_FILE");
  if (asked && *asked) return asked;
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    if (access(places[i], R_OK) == 0) return places[i];
  return NULL;
}

static const char *certificates_folder(void) {
  const char *asked = getenv("SSL_CERT_DIR");
  return asked && *asked ? asked : NULL;
}

/* Lode resets a handle before each request, and sets its own options after that. */
static void reset_with_certificates(CURL *curl) {
  const char *file = certificates_file(), *folder = certificates_folder();
  curl_easy_reset(curl);
  if (file) (void)curl_easy_setopt(curl, CURLOPT_CAINFO, file);
  if (folder) (void)curl_easy_setopt(curl, CURLOPT_CAPATH, folder);
}

#define CURL_SYMBOL(name)                                                                                              \
  { OS_LIBRARY_NAME("curl", "4"), "curl_" #name, (void (*)(void))curl_##name }

#ifndef DIST_LIBRARY
#include "server/mhd.h"
#define MHD_SYMBOL(name) {OS_LIBRARY_NAME("microhttpd", "12"), "MHD_" #name, (void (*)(void))MHD_##name},
#endif

const dist_symbol dist_symbols[] = {
    {OS_LIBRARY_NAME("curl", "4"), "curl_easy_reset", (void (*)(void))reset_with_certificates},
    CURL_SYMBOL(global_init),
    CURL_SYMBOL(easy_init),
    CURL_SYMBOL(easy_setopt),
    CURL_SYMBOL(easy_getinfo),
    CURL_SYMBOL(easy_cleanup),
    CURL_SYMBOL(easy_strerror),
    CURL_SYMBOL(multi_init),
    CURL_SYMBOL(multi_add_handle),
    CURL_SYMBOL(multi_remove_handle),
    CURL_SYMBOL(multi_perform),
    CURL_SYMBOL(multi_poll),
    CURL_SYMBOL(multi_info_read),
    CURL_SYMBOL(multi_cleanup),
    CURL_SYMBOL(slist_append),
    CURL_SYMBOL(slist_free_all),
#ifndef DIST_LIBRARY
    SERVER_MHD_FUNCTIONS(MHD_SYMBOL)
#endif
        {0},
};
