/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 against the standard's examples, and in pieces of every size. */
#include "base/sha256.h"
#include "support/test.h"

static const char *hex_of(const void *data, size_t len) {
  static char hex[SHA256_HEX_BYTES];
  uint8_t digest[SHA256_BYTES];
  sha256_of(data, len, digest);
  sha256_hex(digest, hex);
  return hex;
}

TEST(the_standards_examples) {
  CHECK(strcmp(hex_of("", 0), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855") == 0);
  CHECK(strcmp(hex_of("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad") == 0);
  CHECK(strcmp(hex_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56),
               "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1") == 0);
  static char million[1000000];
  memset(million, 'a', sizeof million);
  CHECK(strcmp(hex_of(million, sizeof million), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0") ==
        0);
}

TEST(pieces_of_any_size_give_the_same) {
  uint8_t data[300], whole[SHA256_BYTES], pieces[SHA256_BYTES];
  for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 7);
  for (size_t len = 0; len <= sizeof data; len++) {
    sha256_of(data, len, whole);
    for (size_t step = 1; step < 130; step += 1 + step / 8) {
      sha256_ctx sha;
      sha256_init(&sha);
      for (size_t at = 0; at < len; at += step) sha256_update(&sha, data + at, len - at < step ? len - at : step);
      sha256_final(&sha, pieces);
      CHECK(memcmp(whole, pieces, sizeof whole) == 0);
    }
  }
}
