/* SPDX-License-Identifier: Apache-2.0 */
/* scan_classify.c - what names and texts say about a file: secret, dependency, binary, minified, generated.
 *
 * The lists are data at the top. Names are compared ignoring case where file systems differ in it. Only a bounded
 * part of a text is examined.
 */
#include "scan/scan_classify.h"

#include "scan/ignore.h"
#include "platform/platform.h"

#include <ctype.h>

#define SKIP_NAME(id, name, text) name,
#define SKIP_TEXT(id, name, text) text,
static const char *const skip_names[] = {SCAN_SKIPS(SKIP_NAME)};
static const char *const skip_texts[] = {SCAN_SKIPS(SKIP_TEXT)};

const char *scan_skip_name(scan_skip skip) { return (unsigned)skip < SCAN_SKIP_COUNT ? skip_names[skip] : "unknown"; }
const char *scan_skip_text(scan_skip skip) { return (unsigned)skip < SCAN_SKIP_COUNT ? skip_texts[skip] : "unknown"; }

scan_skip scan_skip_parse(lode_str name) {
  for (size_t i = 0; i < SCAN_SKIP_COUNT; i++)
    if (str_eq(name, str_of(skip_names[i]))) return (scan_skip)i;
  return SCAN_SKIP_NONE;
}

/* clang-format off */
/* Globs over lower-case names, and what a match means; the first match decides. */
static const struct {
  const char *glob;
  scan_skip skip;
} scan_name_globs[] = {
    {".env.example", SCAN_SKIP_NONE}, {".env.sample", SCAN_SKIP_NONE}, {".env.template", SCAN_SKIP_NONE},
    {".env.dist", SCAN_SKIP_NONE}, {".env", SCAN_SKIP_SECRET}, {".env.*", SCAN_SKIP_SECRET},
    {"*.env", SCAN_SKIP_SECRET}, {"*.pem", SCAN_SKIP_SECRET}, {"*.key", SCAN_SKIP_SECRET},
    {"*.p12", SCAN_SKIP_SECRET}, {"*.pfx", SCAN_SKIP_SECRET}, {"*.pkcs12", SCAN_SKIP_SECRET},
    {"*.jks", SCAN_SKIP_SECRET}, {"*.keystore", SCAN_SKIP_SECRET}, {"*.kdbx", SCAN_SKIP_SECRET},
    {"*.ppk", SCAN_SKIP_SECRET}, {"*.ovpn", SCAN_SKIP_SECRET}, {"*.agekey", SCAN_SKIP_SECRET},
    {"id_rsa", SCAN_SKIP_SECRET}, {"id_dsa", SCAN_SKIP_SECRET}, {"id_ecdsa", SCAN_SKIP_SECRET},
    {"id_ecdsa_sk", SCAN_SKIP_SECRET}, {"id_ed25519", SCAN_SKIP_SECRET}, {"id_ed25519_sk", SCAN_SKIP_SECRET},
    {".netrc", SCAN_SKIP_SECRET}, {"_netrc", SCAN_SKIP_SECRET}, {".pgpass", SCAN_SKIP_SECRET},
    {".my.cnf", SCAN_SKIP_SECRET}, {".htpasswd", SCAN_SKIP_SECRET}, {".npmrc", SCAN_SKIP_SECRET},
    {".pypirc", SCAN_SKIP_SECRET}, {".dockercfg", SCAN_SKIP_SECRET}, {".dockerconfigjson", SCAN_SKIP_SECRET},
    {".s3cfg", SCAN_SKIP_SECRET}, {".boto", SCAN_SKIP_SECRET}, {".vault-token", SCAN_SKIP_SECRET},
    {".git-credentials", SCAN_SKIP_SECRET}, {"credentials", SCAN_SKIP_SECRET},
    {"credentials.json", SCAN_SKIP_SECRET}, {"credentials.toml", SCAN_SKIP_SECRET},
    {"credentials.tfrc.json", SCAN_SKIP_SECRET}, {".terraformrc", SCAN_SKIP_SECRET},
    {"client_secret*.json", SCAN_SKIP_SECRET}, {"service-account*.json", SCAN_SKIP_SECRET},
    {"service_account*.json", SCAN_SKIP_SECRET}, {"serviceaccount*.json", SCAN_SKIP_SECRET},
    {"application_default_credentials.json", SCAN_SKIP_SECRET}, {"kubeconfig", SCAN_SKIP_SECRET},
    {"kubeconfig.y*ml", SCAN_SKIP_SECRET}, {"*.kubeconfig", SCAN_SKIP_SECRET},
    {"secrets.y*ml", SCAN_SKIP_SECRET}, {"secrets.json", SCAN_SKIP_SECRET}, {"secrets.toml", SCAN_SKIP_SECRET},
    {"*.tfvars", SCAN_SKIP_SECRET}, {"*.tfvars.json", SCAN_SKIP_SECRET}, {"*.tfstate", SCAN_SKIP_SECRET},
    {"*.tfstate.backup", SCAN_SKIP_SECRET},
    {"package-lock.json", SCAN_SKIP_GENERATED}, {"npm-shrinkwrap.json", SCAN_SKIP_GENERATED},
    {"yarn.lock", SCAN_SKIP_GENERATED},      {"pnpm-lock.yaml", SCAN_SKIP_GENERATED},
    {"composer.lock", SCAN_SKIP_GENERATED},  {"cargo.lock", SCAN_SKIP_GENERATED},
    {"poetry.lock", SCAN_SKIP_GENERATED},    {"pipfile.lock", SCAN_SKIP_GENERATED},
    {"uv.lock", SCAN_SKIP_GENERATED},        {"gemfile.lock", SCAN_SKIP_GENERATED},
    {"go.sum", SCAN_SKIP_GENERATED},         {"flake.lock", SCAN_SKIP_GENERATED},
    {"packages.lock.json", SCAN_SKIP_GENERATED}, {"mix.lock", SCAN_SKIP_GENERATED},
    {"pubspec.lock", SCAN_SKIP_GENERATED},   {"podfile.lock", SCAN_SKIP_GENERATED},
    {"*.pb.go", SCAN_SKIP_GENERATED},        {"*.pb.cc", SCAN_SKIP_GENERATED},
    {"*.pb.h", SCAN_SKIP_GENERATED},         {"*_pb2.py", SCAN_SKIP_GENERATED},
    {"*_pb2_grpc.py", SCAN_SKIP_GENERATED},  {"*.pb.swift", SCAN_SKIP_GENERATED},
    {"*.g.dart", SCAN_SKIP_GENERATED},       {"*.freezed.dart", SCAN_SKIP_GENERATED},
    {"*.designer.cs", SCAN_SKIP_GENERATED},  {"*.g.cs", SCAN_SKIP_GENERATED},
    {"*.map", SCAN_SKIP_GENERATED},          {"*.snap", SCAN_SKIP_GENERATED},
    {"*.min.js", SCAN_SKIP_MINIFIED},        {"*.min.mjs", SCAN_SKIP_MINIFIED},
    {"*.min.css", SCAN_SKIP_MINIFIED},       {"*-min.js", SCAN_SKIP_MINIFIED},
    {"*.bundle.js", SCAN_SKIP_MINIFIED},
};
/* clang-format on */

/* clang-format off */
/* Files that are secrets because of the folder they are in; globs match lower-case names. The first match decides. */
static const struct {
  const char *folder, *glob;
  bool secret;
} scan_secret_globs[] = {
    {".docker", "config.json", true}, {".kube", "config", true},       {".aws", "config", true},
    {".ssh", "*.pub", false},         {".ssh", "config", false},       {".ssh", "known_hosts*", false},
    {".ssh", "*", true},              {".gnupg", "*", true},
};
/* clang-format on */

/* Extensions of files that are never text: saves reading them. */
static const char binary_extensions[] =
    " png jpg jpeg gif bmp ico webp tif tiff psd xcf heic avif mp3 mp4 m4a m4v mkv avi mov webm ogg oga ogv opus flac "
    "wav aac mid"
    " zip gz tgz bz2 tbz xz txz zst lz lz4 lzma 7z rar tar jar war ear whl egg apk aab ipa deb rpm dmg iso img cab msi"
    " o a so ko lo la obj lib dll dylib exe bin elf class pyc pyo pyd wasm bc rlib rmeta gch pch pdb ilk dsym hi beam"
    " ttf otf woff woff2 eot pfb pdf doc docx xls xlsx ppt pptx odt ods odp epub mobi sqlite sqlite3 db db3 mdb dbf rdb"
    " npy npz pkl pickle pt pth onnx safetensors gguf h5 hdf5 parquet arrow feather tfrecord rds rdata swp"
    " der gpg glb fbx blend stl nib gmo lockb ";

/* Folders of installed packages and caches, wherever they are. */
static const char dependency_folders[] = " node_modules bower_components jspm_packages __pycache__ site-packages .venv "
                                         ".tox .nox .mypy_cache .pytest_cache .ruff_cache"
                                         " .gradle .terraform .next .nuxt .svelte-kit .parcel-cache .yarn .pnpm-store "
                                         ".eggs .stack-work .dart_tool .bundle elm-stuff"
                                         " .ipynb_checkpoints __pypackages__ pods deriveddata ";

/* Is the word, in lower case, in a list with spaces around each word? */
static bool scan_list_has(const char *list, const char *word, size_t len) {
  char key[40];
  if (len == 0 || len + 3 > sizeof key) return false;
  key[0] = ' ';
  for (size_t i = 0; i < len; i++) {
    if (word[i] == ' ' || word[i] == '\0') return false;
    key[i + 1] = (char)tolower((unsigned char)word[i]);
  }
  key[len + 1] = ' ';
  key[len + 2] = '\0';
  return strstr(list, key) != NULL;
}

bool scan_is_dependency_dir(lode_str name) { return scan_list_has(dependency_folders, name.data, name.len); }

static bool scan_lower_name(lode_str name, char low[256]) {
  if (name.len > 256) return false;
  for (size_t i = 0; i < name.len; i++) low[i] = (char)tolower((unsigned char)name.data[i]);
  return true;
}

static bool scan_is_secret_path(lode_str folder, lode_str low) {
  for (size_t i = 0; i < sizeof scan_secret_globs / sizeof *scan_secret_globs; i++)
    if (str_eq(folder, str_of(scan_secret_globs[i].folder)) &&
        ignore_glob_match(str_of(scan_secret_globs[i].glob), low))
      return scan_secret_globs[i].secret;
  return false;
}

/* The name of the folder that contains the last name of a path; empty when there is none. */
static lode_str scan_parent_name(lode_str path, lode_str name) {
  if (path.len == name.len) return (lode_str){path.data, 0};
  size_t end = path.len - name.len - 1, start = end;
  while (start && path.data[start - 1] != '/') start--;
  return (lode_str){path.data + start, end - start};
}

scan_skip scan_classify_name(lode_str path) {
  char low[256];
  const char *slash = path.len ? os_memrchr(path.data, '/', path.len) : NULL;
  lode_str name = slash ? (lode_str){slash + 1, path.len - (size_t)(slash + 1 - path.data)} : path;
  const char *dot = name.len ? os_memrchr(name.data, '.', name.len) : NULL;
  if (dot && scan_list_has(binary_extensions, dot + 1, name.len - (size_t)(dot + 1 - name.data)))
    return SCAN_SKIP_BINARY;
  if (!scan_lower_name(name, low)) return SCAN_SKIP_NONE;
  if (scan_is_secret_path(scan_parent_name(path, name), (lode_str){low, name.len})) return SCAN_SKIP_SECRET;
  for (size_t i = 0; i < sizeof scan_name_globs / sizeof *scan_name_globs; i++)
    if (ignore_glob_match(str_of(scan_name_globs[i].glob), (lode_str){low, name.len})) return scan_name_globs[i].skip;
  return SCAN_SKIP_NONE;
}

/* ---- Path flags ---- */

static const char test_folders[] = " test tests testing spec specs testdata test_data fixtures mocks e2e selftests ";
static const char vendor_folders[] =
    " vendor vendors vendored third_party third-party thirdparty 3rdparty external externals extern godeps"
    " submodules bundled deps ";
static const char example_folders[] =
    " example examples sample samples demo demos tutorial tutorials benchmark benchmarks bench ";
static const char doc_folders[] = " doc docs documentation man manual ";

static const char legacy_folders[] = " legacy compat deprecated obsolete attic ";
static const char other_os_names[] =
    " win windows win32 win64 winnt mingw cygwin msvc darwin macos osx freebsd openbsd netbsd dragonfly dragonflybsd "
    "bsd"
    " solaris sunos illumos aix os390 zos os400 ibmi hpux haiku plan9 qnx vxworks vms amiga ";
static const char this_os_names[] = " linux unix posix ";

bool scan_is_other_os(lode_str word) { return scan_list_has(other_os_names, word.data, word.len); }

static bool scan_starts_with(lode_str s, const char *with) {
  size_t n = strlen(with);
  return s.len >= n && memcmp(s.data, with, n) == 0;
}

/* Names of test files: test_x.py, x_test.go, x.test.ts, x.spec.ts, XTest.java, XTests.cs, conftest.py */
static bool scan_is_test_name(lode_str name) {
  const char *dot = memchr(name.data, '.', name.len);
  lode_str stem = {name.data, dot ? (size_t)(dot - name.data) : name.len};
  lode_str rest = {stem.data + stem.len, name.len - stem.len};
  if (scan_starts_with(name, "test_") || scan_starts_with(name, "conftest.") || scan_starts_with(rest, ".test.") ||
      scan_starts_with(rest, ".spec."))
    return true;
  static const char *const ends[] = {"_test", "_tests", "_spec", "-test", "-spec", "Test", "Tests", "Spec", "TestCase"};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    size_t n = strlen(ends[i]);
    if (stem.len > n && memcmp(stem.data + stem.len - n, ends[i], n) == 0) return true;
  }
  return false;
}

static bool scan_has_extension(lode_str name, const char *ending) {
  size_t n = strlen(ending);
  return name.len > n && memcmp(name.data + name.len - n, ending, n) == 0;
}

/* The operating system in x_windows.go, x-win.c, windows.rs; empty when there is none. */
static lode_str scan_os_of_name(lode_str name) {
  const char *dot = memchr(name.data, '.', name.len);
  size_t end = dot ? (size_t)(dot - name.data) : name.len, start = end;
  while (start && name.data[start - 1] != '_' && name.data[start - 1] != '-') start--;
  return (lode_str){name.data + start, end - start};
}

static unsigned scan_os_flags(lode_str word) {
  return (scan_list_has(other_os_names, word.data, word.len) ? SCAN_PATH_OTHER_OS : 0u) |
         (scan_list_has(this_os_names, word.data, word.len) ? SCAN_PATH_THIS_OS : 0u);
}

unsigned scan_path_flags(lode_str path) {
  unsigned flags = 0;
  size_t at = 0;
  for (size_t i = 0; i < path.len; i++) {
    if (path.data[i] != '/') continue;
    while (at < i && path.data[at] == '_') at++; /* _examples, __tests__, _vendor */
    const char *word = path.data + at;
    size_t len = i - at;
    while (len && word[len - 1] == '_') len--;
    if (scan_list_has(test_folders, word, len)) flags |= SCAN_PATH_TEST;
    if (scan_list_has(vendor_folders, word, len)) flags |= SCAN_PATH_VENDORED;
    if (scan_list_has(example_folders, word, len)) flags |= SCAN_PATH_EXAMPLE;
    if (scan_list_has(doc_folders, word, len)) flags |= SCAN_PATH_DOC;
    if (scan_list_has(legacy_folders, word, len)) flags |= SCAN_PATH_LEGACY;
    flags |= scan_os_flags((lode_str){word, len});
    at = i + 1;
  }
  lode_str name = {path.data + at, path.len - at};
  if (name.len == 0) return flags;
  if (scan_is_test_name(name)) flags |= SCAN_PATH_TEST;
  flags |= scan_os_flags(scan_os_of_name(name));
  if (scan_has_extension(name, ".d.ts") || scan_has_extension(name, ".pyi")) flags |= SCAN_PATH_STUB;
  return flags;
}

/* ---- Text ---- */

enum { SCAN_HEAD_BYTES = 64 << 10, SCAN_GENERATED_BYTES = 2048, SCAN_LONG_LINE = 5000 };

static bool scan_text_has(lode_str text, const char *words) {
  return memmem(text.data, text.len, words, strlen(words)) != NULL;
}

/* Binary: a NUL in the head of the text, or too many control characters. UTF-16 contains NULs and counts as binary. */
static bool scan_is_binary(lode_str text) {
  size_t n = text.len < SCAN_HEAD_BYTES ? text.len : SCAN_HEAD_BYTES, odd = 0;
  if (n == 0) return false;
  if (memchr(text.data, '\0', n)) return true;
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)text.data[i];
    odd += (c < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != 0x1B && c != '\b') || c == 0x7F;
  }
  return odd * 20 > n;
}

/* Programs write lines of thousands of bytes, people do not. Only for languages in which lines may be joined freely. */
static bool scan_is_minified(const lang_info *language, lode_str text) {
  static const char *const squeezed[] = {"javascript", "typescript", "tsx", "css", "html", "json", "svg", "xml"};
  bool can_be = false;
  size_t lines = 1, longest = 0, at = 0, n = text.len < 4 * SCAN_HEAD_BYTES ? text.len : 4 * SCAN_HEAD_BYTES;
  for (size_t i = 0; i < sizeof squeezed / sizeof *squeezed; i++) can_be |= strcmp(language->name, squeezed[i]) == 0;
  if (!can_be || n < SCAN_LONG_LINE) return false;
  for (size_t i = 0; i <= n; i++) {
    if (i < n && text.data[i] != '\n') continue;
    if (i - at > longest) longest = i - at;
    lines += i < n;
    at = i + 1;
  }
  return longest >= SCAN_LONG_LINE && n / lines > 400;
}

/* Phrases that generators write at the head of their files. */
static bool scan_is_generated(lode_str text) {
  lode_str head = {text.data, text.len < SCAN_GENERATED_BYTES ? text.len : SCAN_GENERATED_BYTES};
  static const char *const says[] = {"@generated",
                                     "DO NOT EDIT",
                                     "Do not edit this file",
                                     "do not edit by hand",
                                     "Generated by the protocol buffer compiler",
                                     "auto-generated file",
                                     "autogenerated file",
                                     "This file was automatically generated",
                                     "This file is automatically generated",
                                     "<auto-generated",
                                     "This file was autogenerated"};
  static const char *const doubts[] = {"enerated by",
                                       "enerated from",
                                       "enerated file",
                                       "ENERATED",
                                       "enerated code",
                                       "ode generated",
                                       "utogenerated",
                                       "uto-generated",
                                       "enerated automatically",
                                       "utomatically generated"};
  for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
    if (!scan_text_has(head, says[i])) continue;
    if (i != 1) return true;
    /* people write "DO NOT EDIT" too */
    for (size_t j = 0; j < sizeof doubts / sizeof *doubts; j++)
      if (scan_text_has(head, doubts[j])) return true;
  }
  return false;
}

/* Does a line begin with it? */
static bool scan_has_line(lode_str text, const char *begin) {
  char line[32];
  snprintf(line, sizeof line, "\n%s", begin);
  return scan_starts_with(text, begin) || scan_text_has(text, line);
}

/* Is the whole file a secret: a private key, a service account, a kubectl configuration? Secrets inside other files are
 * masked instead. */
static bool scan_is_secret_text(lode_str text) {
  lode_str head = {text.data, text.len < SCAN_HEAD_BYTES ? text.len : SCAN_HEAD_BYTES};
  size_t at = 0;
  while (at < head.len && (unsigned char)head.data[at] <= ' ') at++;
  lode_str first = {head.data + at, head.len - at < 64 ? head.len - at : 64};
  if (scan_starts_with(first, "-----BEGIN ") && scan_text_has(first, "PRIVATE KEY") && head.len - at > 100) return true;
  if (scan_starts_with(first, "PuTTY-User-Key-File-") && scan_text_has(head, "Private-Lines: ")) return true;
  if (scan_starts_with(first, "{") && scan_text_has(head, "\"service_account\"") &&
      scan_text_has(head, "\"private_key\""))
    return true;
  return scan_has_line(head, "kind: Config") && scan_has_line(head, "clusters:") && scan_has_line(head, "users:") &&
         scan_has_line(head, "contexts:");
}

scan_skip scan_classify_content(const lang_info *language, lode_str text, const scan_options *options) {
  if (text.len == 0) return SCAN_SKIP_EMPTY;
  if (scan_is_binary(text)) return SCAN_SKIP_BINARY;
  if (options->secrets != MASK_POLICY_INDEX && scan_is_secret_text(text)) return SCAN_SKIP_SECRET;
  if (options->generated) return SCAN_SKIP_NONE;
  if (scan_is_minified(language, text)) return SCAN_SKIP_MINIFIED;
  return scan_is_generated(text) ? SCAN_SKIP_GENERATED : SCAN_SKIP_NONE;
}
