/* judge.c - what a name and a text say about a file: secrets, dependencies, binaries, minified and generated files.
 *
 * The lists are data at the top. Names are compared without regard to case where file systems differ in it. Everything
 * looks at a bounded part of a text.
 */
#include "code/judge.h"

#include "code/ignore.h"

#include <ctype.h>

#define SKIP_NAME(id, name, text) name,
#define SKIP_TEXT(id, name, text) text,
static const char *const skip_names[] = {LODE__SKIPS(SKIP_NAME)};
static const char *const skip_texts[] = {LODE__SKIPS(SKIP_TEXT)};

const char *lode__skip_name(lode__skip skip) { return (unsigned)skip < LODE__SKIP_COUNT ? skip_names[skip] : "unknown"; }
const char *lode__skip_text(lode__skip skip) { return (unsigned)skip < LODE__SKIP_COUNT ? skip_texts[skip] : "unknown"; }

lode__skip lode__skip_of(lode_str name) {
  for (size_t i = 0; i < LODE__SKIP_COUNT; i++)
    if (str_eq(name, str_of(skip_names[i]))) return (lode__skip)i;
  return LODE__SKIP_NONE;
}

/* Globs over lower-case names, each with its verdict; the first that matches decides. */
static const struct {
  const char *glob;
  lode__skip skip;
} names[] = {
    {".env.example", LODE__SKIP_NONE}, {".env.sample", LODE__SKIP_NONE}, {".env.template", LODE__SKIP_NONE},
    {".env.dist", LODE__SKIP_NONE}, {".env", LODE__SKIP_SECRET}, {".env.*", LODE__SKIP_SECRET},
    {"*.env", LODE__SKIP_SECRET}, {"*.pem", LODE__SKIP_SECRET}, {"*.key", LODE__SKIP_SECRET},
    {"*.p12", LODE__SKIP_SECRET}, {"*.pfx", LODE__SKIP_SECRET}, {"*.pkcs12", LODE__SKIP_SECRET},
    {"*.jks", LODE__SKIP_SECRET}, {"*.keystore", LODE__SKIP_SECRET}, {"*.kdbx", LODE__SKIP_SECRET},
    {"*.ppk", LODE__SKIP_SECRET}, {"*.ovpn", LODE__SKIP_SECRET}, {"*.agekey", LODE__SKIP_SECRET},
    {"id_rsa", LODE__SKIP_SECRET}, {"id_dsa", LODE__SKIP_SECRET}, {"id_ecdsa", LODE__SKIP_SECRET},
    {"id_ecdsa_sk", LODE__SKIP_SECRET}, {"id_ed25519", LODE__SKIP_SECRET}, {"id_ed25519_sk", LODE__SKIP_SECRET},
    {".netrc", LODE__SKIP_SECRET}, {"_netrc", LODE__SKIP_SECRET}, {".pgpass", LODE__SKIP_SECRET},
    {".my.cnf", LODE__SKIP_SECRET}, {".htpasswd", LODE__SKIP_SECRET}, {".npmrc", LODE__SKIP_SECRET},
    {".pypirc", LODE__SKIP_SECRET}, {".dockercfg", LODE__SKIP_SECRET}, {".dockerconfigjson", LODE__SKIP_SECRET},
    {".s3cfg", LODE__SKIP_SECRET}, {".boto", LODE__SKIP_SECRET}, {".vault-token", LODE__SKIP_SECRET},
    {".git-credentials", LODE__SKIP_SECRET}, {"credentials", LODE__SKIP_SECRET},
    {"credentials.json", LODE__SKIP_SECRET}, {"credentials.toml", LODE__SKIP_SECRET},
    {"credentials.tfrc.json", LODE__SKIP_SECRET}, {".terraformrc", LODE__SKIP_SECRET},
    {"client_secret*.json", LODE__SKIP_SECRET}, {"service-account*.json", LODE__SKIP_SECRET},
    {"service_account*.json", LODE__SKIP_SECRET}, {"serviceaccount*.json", LODE__SKIP_SECRET},
    {"application_default_credentials.json", LODE__SKIP_SECRET}, {"kubeconfig", LODE__SKIP_SECRET},
    {"kubeconfig.y*ml", LODE__SKIP_SECRET}, {"*.kubeconfig", LODE__SKIP_SECRET},
    {"secrets.y*ml", LODE__SKIP_SECRET}, {"secrets.json", LODE__SKIP_SECRET}, {"secrets.toml", LODE__SKIP_SECRET},
    {"*.tfvars", LODE__SKIP_SECRET}, {"*.tfvars.json", LODE__SKIP_SECRET}, {"*.tfstate", LODE__SKIP_SECRET},
    {"*.tfstate.backup", LODE__SKIP_SECRET},
    {"package-lock.json", LODE__SKIP_GENERATED}, {"npm-shrinkwrap.json", LODE__SKIP_GENERATED},
    {"yarn.lock", LODE__SKIP_GENERATED},      {"pnpm-lock.yaml", LODE__SKIP_GENERATED},
    {"composer.lock", LODE__SKIP_GENERATED},  {"cargo.lock", LODE__SKIP_GENERATED},
    {"poetry.lock", LODE__SKIP_GENERATED},    {"pipfile.lock", LODE__SKIP_GENERATED},
    {"uv.lock", LODE__SKIP_GENERATED},        {"gemfile.lock", LODE__SKIP_GENERATED},
    {"go.sum", LODE__SKIP_GENERATED},         {"flake.lock", LODE__SKIP_GENERATED},
    {"packages.lock.json", LODE__SKIP_GENERATED}, {"mix.lock", LODE__SKIP_GENERATED},
    {"pubspec.lock", LODE__SKIP_GENERATED},   {"podfile.lock", LODE__SKIP_GENERATED},
    {"*.pb.go", LODE__SKIP_GENERATED},        {"*.pb.cc", LODE__SKIP_GENERATED},
    {"*.pb.h", LODE__SKIP_GENERATED},         {"*_pb2.py", LODE__SKIP_GENERATED},
    {"*_pb2_grpc.py", LODE__SKIP_GENERATED},  {"*.pb.swift", LODE__SKIP_GENERATED},
    {"*.g.dart", LODE__SKIP_GENERATED},       {"*.freezed.dart", LODE__SKIP_GENERATED},
    {"*.designer.cs", LODE__SKIP_GENERATED},  {"*.g.cs", LODE__SKIP_GENERATED},
    {"*.map", LODE__SKIP_GENERATED},          {"*.snap", LODE__SKIP_GENERATED},
    {"*.min.js", LODE__SKIP_MINIFIED},        {"*.min.mjs", LODE__SKIP_MINIFIED},
    {"*.min.css", LODE__SKIP_MINIFIED},       {"*-min.js", LODE__SKIP_MINIFIED},
    {"*.bundle.js", LODE__SKIP_MINIFIED},
};

/* Files that are secrets because of the folder they are in: both as globs over lower-case names. The first that matches decides. */
static const struct {
  const char *folder, *glob;
  bool secret;
} places[] = {
    {".docker", "config.json", true}, {".kube", "config", true},      {".aws", "config", true}, {".ssh", "*.pub", false},
    {".ssh", "config", false},        {".ssh", "known_hosts*", false}, {".ssh", "*", true},      {".gnupg", "*", true},
};

/* Endings of what is never text: saves the reading. */
static const char binary_endings[] =
    " png jpg jpeg gif bmp ico webp tif tiff psd xcf heic avif mp3 mp4 m4a m4v mkv avi mov webm ogg oga ogv opus flac wav aac mid"
    " zip gz tgz bz2 tbz xz txz zst lz lz4 lzma 7z rar tar jar war ear whl egg apk aab ipa deb rpm dmg iso img cab msi"
    " o a so ko lo la obj lib dll dylib exe bin elf class pyc pyo pyd wasm bc rlib rmeta gch pch pdb ilk dsym hi beam"
    " ttf otf woff woff2 eot pfb pdf doc docx xls xlsx ppt pptx odt ods odp epub mobi sqlite sqlite3 db db3 mdb dbf rdb"
    " npy npz pkl pickle pt pth onnx safetensors gguf h5 hdf5 parquet arrow feather tfrecord rds rdata swp"
    " der gpg glb fbx blend stl nib gmo lockb ";

/* Folders of installed packages and caches, wherever they are. */
static const char dependency_folders[] =
    " node_modules bower_components jspm_packages __pycache__ site-packages .venv .tox .nox .mypy_cache .pytest_cache .ruff_cache"
    " .gradle .terraform .next .nuxt .svelte-kit .parcel-cache .yarn .pnpm-store .eggs .stack-work .dart_tool .bundle elm-stuff"
    " .ipynb_checkpoints __pypackages__ pods deriveddata ";

/* Is the word, in lower case, in a list with a space around each? */
static bool listed(const char *list, const char *word, size_t len) {
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

bool lode__judge_dependencies(lode_str name) { return listed(dependency_folders, name.data, name.len); }

static bool lower(lode_str name, char low[256]) {
  if (name.len > 256) return false;
  for (size_t i = 0; i < name.len; i++) low[i] = (char)tolower((unsigned char)name.data[i]);
  return true;
}

static bool is_secret_place(lode_str folder, lode_str low) {
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    if (str_eq(folder, str_of(places[i].folder)) && lode__glob_match(str_of(places[i].glob), low)) return places[i].secret;
  return false;
}

/* The name of the folder that the last name of a path is in; empty when there is none. */
static lode_str folder_of(lode_str path, lode_str name) {
  if (path.len == name.len) return (lode_str){path.data, 0};
  size_t end = path.len - name.len - 1, start = end;
  while (start && path.data[start - 1] != '/') start--;
  return (lode_str){path.data + start, end - start};
}

lode__skip lode__judge_name(lode_str path) {
  char low[256];
  const char *slash = path.len ? memrchr(path.data, '/', path.len) : NULL;
  lode_str name = slash ? (lode_str){slash + 1, path.len - (size_t)(slash + 1 - path.data)} : path;
  const char *dot = name.len ? memrchr(name.data, '.', name.len) : NULL;
  if (dot && listed(binary_endings, dot + 1, name.len - (size_t)(dot + 1 - name.data))) return LODE__SKIP_BINARY;
  if (!lower(name, low)) return LODE__SKIP_NONE;
  if (is_secret_place(folder_of(path, name), (lode_str){low, name.len})) return LODE__SKIP_SECRET;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (lode__glob_match(str_of(names[i].glob), (lode_str){low, name.len})) return names[i].skip;
  return LODE__SKIP_NONE;
}

/* ---- Marks ---- */

static const char test_folders[] = " test tests testing spec specs testdata test_data fixtures mocks e2e selftests ";
static const char vendor_folders[] =
    " vendor vendors vendored third_party third-party thirdparty 3rdparty external externals extern godeps"
    " submodules bundled deps ";
static const char example_folders[] = " example examples sample samples demo demos tutorial tutorials benchmark benchmarks bench ";
static const char doc_folders[] = " doc docs documentation man manual ";

static const char old_folders[] = " legacy compat deprecated obsolete attic ";
static const char foreign_systems[] =
    " win windows win32 win64 winnt mingw cygwin msvc darwin macos osx freebsd openbsd netbsd dragonfly dragonflybsd bsd solaris sunos illumos aix"
    " os390 zos os400 ibmi hpux haiku plan9 qnx vxworks vms amiga ";
static const char native_systems[] = " linux unix posix ";

bool lode__is_foreign(lode_str word) { return listed(foreign_systems, word.data, word.len); }

static bool starts(lode_str s, const char *with) {
  size_t n = strlen(with);
  return s.len >= n && memcmp(s.data, with, n) == 0;
}

/* Names of test files: test_x.py, x_test.go, x.test.ts, x.spec.ts, XTest.java, XTests.cs, conftest.py */
static bool is_test_name(lode_str name) {
  const char *dot = memchr(name.data, '.', name.len);
  lode_str stem = {name.data, dot ? (size_t)(dot - name.data) : name.len};
  lode_str rest = {stem.data + stem.len, name.len - stem.len};
  if (starts(name, "test_") || starts(name, "conftest.") || starts(rest, ".test.") || starts(rest, ".spec.")) return true;
  static const char *const ends[] = {"_test", "_tests", "_spec", "-test", "-spec", "Test", "Tests", "Spec", "TestCase"};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    size_t n = strlen(ends[i]);
    if (stem.len > n && memcmp(stem.data + stem.len - n, ends[i], n) == 0) return true;
  }
  return false;
}

static bool has_ending(lode_str name, const char *ending) {
  size_t n = strlen(ending);
  return name.len > n && memcmp(name.data + name.len - n, ending, n) == 0;
}

/* The system of x_windows.go, x-win.c, windows.rs; empty when there is none. */
static lode_str system_of(lode_str name) {
  const char *dot = memchr(name.data, '.', name.len);
  size_t end = dot ? (size_t)(dot - name.data) : name.len, start = end;
  while (start && name.data[start - 1] != '_' && name.data[start - 1] != '-') start--;
  return (lode_str){name.data + start, end - start};
}

static unsigned system_marks(lode_str word) {
  return (listed(foreign_systems, word.data, word.len) ? LODE__MARK_FOREIGN : 0u) | (listed(native_systems, word.data, word.len) ? LODE__MARK_NATIVE : 0u);
}

unsigned lode__path_marks(lode_str path) {
  unsigned marks = 0;
  size_t at = 0;
  for (size_t i = 0; i < path.len; i++) {
    if (path.data[i] != '/') continue;
    while (at < i && path.data[at] == '_') at++; /* _examples, __tests__, _vendor */
    const char *word = path.data + at;
    size_t len = i - at;
    while (len && word[len - 1] == '_') len--;
    if (listed(test_folders, word, len)) marks |= LODE__MARK_TEST;
    if (listed(vendor_folders, word, len)) marks |= LODE__MARK_VENDORED;
    if (listed(example_folders, word, len)) marks |= LODE__MARK_EXAMPLE;
    if (listed(doc_folders, word, len)) marks |= LODE__MARK_DOC;
    if (listed(old_folders, word, len)) marks |= LODE__MARK_OLD;
    marks |= system_marks((lode_str){word, len});
    at = i + 1;
  }
  lode_str name = {path.data + at, path.len - at};
  if (name.len == 0) return marks;
  if (is_test_name(name)) marks |= LODE__MARK_TEST;
  marks |= system_marks(system_of(name));
  if (has_ending(name, ".d.ts") || has_ending(name, ".pyi")) marks |= LODE__MARK_STUB;
  return marks;
}

/* ---- Text ---- */

enum { HEAD_BYTES = 64 << 10, GENERATED_BYTES = 2048, LONG_LINE = 5000 };

static bool has(lode_str text, const char *words) { return memmem(text.data, text.len, words, strlen(words)) != NULL; }

/* A NUL in the first part, or too many control characters: no text. UTF-16 has NULs, and is taken as binary too. */
static bool is_binary(lode_str text) {
  size_t n = text.len < HEAD_BYTES ? text.len : HEAD_BYTES, odd = 0;
  if (n == 0) return false;
  if (memchr(text.data, '\0', n)) return true;
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)text.data[i];
    odd += (c < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != 0x1B && c != '\b') || c == 0x7F;
  }
  return odd * 20 > n;
}

/* Programs write lines of thousands of bytes, people do not. Only for languages in which lines can be joined at will. */
static bool is_minified(const lode__language *language, lode_str text) {
  static const char *const squeezed[] = {"javascript", "typescript", "tsx", "css", "html", "json", "svg", "xml"};
  bool can_be = false;
  size_t lines = 1, longest = 0, at = 0, n = text.len < 4 * HEAD_BYTES ? text.len : 4 * HEAD_BYTES;
  for (size_t i = 0; i < sizeof squeezed / sizeof *squeezed; i++) can_be |= strcmp(language->name, squeezed[i]) == 0;
  if (!can_be || n < LONG_LINE) return false;
  for (size_t i = 0; i <= n; i++) {
    if (i < n && text.data[i] != '\n') continue;
    if (i - at > longest) longest = i - at;
    lines += i < n;
    at = i + 1;
  }
  return longest >= LONG_LINE && n / lines > 400;
}

/* What generators write into the head of their files. */
static bool is_generated(lode_str text) {
  lode_str head = {text.data, text.len < GENERATED_BYTES ? text.len : GENERATED_BYTES};
  static const char *const says[] = {"@generated", "DO NOT EDIT", "Do not edit this file", "do not edit by hand",
                                     "Generated by the protocol buffer compiler", "auto-generated file", "autogenerated file",
                                     "This file was automatically generated", "This file is automatically generated",
                                     "<auto-generated", "This file was autogenerated"};
  static const char *const doubts[] = {"enerated by", "enerated from", "enerated file", "ENERATED", "enerated code", "ode generated",
                                       "utogenerated", "uto-generated", "enerated automatically", "utomatically generated"};
  for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
    if (!has(head, says[i])) continue;
    if (i != 1) return true;
    /* "DO NOT EDIT" alone is also said by people */
    for (size_t j = 0; j < sizeof doubts / sizeof *doubts; j++)
      if (has(head, doubts[j])) return true;
  }
  return false;
}

/* The whole file is a secret: a private key, the account of a service, the settings of kubectl. Secrets inside other files are masked. */
static bool is_secret(lode_str text) {
  lode_str head = {text.data, text.len < HEAD_BYTES ? text.len : HEAD_BYTES};
  size_t at = 0;
  while (at < head.len && (unsigned char)head.data[at] <= ' ') at++;
  lode_str first = {head.data + at, head.len - at < 64 ? head.len - at : 64};
  if (starts(first, "-----BEGIN ") && has(first, "PRIVATE KEY") && head.len - at > 100) return true;
  if (starts(first, "PuTTY-User-Key-File-") && has(head, "Private-Lines: ")) return true;
  if (starts(first, "{") && has(head, "\"service_account\"") && has(head, "\"private_key\"")) return true;
  return has(head, "kind: Config") && has(head, "clusters:") && has(head, "users:") && has(head, "contexts:");
}

lode__skip lode__judge_content(const lode__language *language, lode_str text, const lode__walk_options *options) {
  if (text.len == 0) return LODE__SKIP_EMPTY;
  if (is_binary(text)) return LODE__SKIP_BINARY;
  if (options->secrets != LODE__SECRETS_INDEX && is_secret(text)) return LODE__SKIP_SECRET;
  if (options->generated) return LODE__SKIP_NONE;
  if (is_minified(language, text)) return LODE__SKIP_MINIFIED;
  return is_generated(text) ? LODE__SKIP_GENERATED : LODE__SKIP_NONE;
}
