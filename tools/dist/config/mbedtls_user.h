/* SPDX-License-Identifier: Apache-2.0 */
/* mbedtls_user.h - what `make dist` changes of mbedTLS's defaults: several threads speak TLS; no keys in files, no
 * server's side. */
#define MBEDTLS_THREADING_C
#define MBEDTLS_THREADING_PTHREAD
#undef MBEDTLS_PSA_CRYPTO_STORAGE_C
#undef MBEDTLS_PSA_ITS_FILE_C
#undef MBEDTLS_SELF_TEST
#undef MBEDTLS_SSL_SRV_C
#undef MBEDTLS_SSL_COOKIE_C
#undef MBEDTLS_SSL_PROTO_DTLS
#undef MBEDTLS_SSL_DTLS_ANTI_REPLAY
#undef MBEDTLS_SSL_DTLS_HELLO_VERIFY
#undef MBEDTLS_SSL_DTLS_CONNECTION_ID
#undef MBEDTLS_SSL_DTLS_CONNECTION_ID_COMPAT
#undef MBEDTLS_SSL_DTLS_CLIENT_PORT_REUSE
#undef MBEDTLS_LMS_C
#undef MBEDTLS_PKCS12_C
