/* SPDX-License-Identifier: Apache-2.0 */
/* git_index.c - see git_index.h. The format is that of git's Documentation/gitformat-index.txt. */
#include "scan/git_index.h"

#include "base/byteorder.h"
#include "os/os.h"
#include "scan/git.h"

#include <strings.h>

enum {
  GIT_INDEX_BUFFER = 64 * 1024,
  GIT_INDEX_MAX_NAME = 16 * 1024, /* no system that git runs on has longer paths */
  GIT_INDEX_STAT_BYTES = 40,      /* bytes of an entry before its object id */
  GIT_INDEX_MODE_AT = 24,         /* offset of the mode in an entry */
  GIT_MAX_REPOS = 32,
};
#define GIT_INDEX_MAX_BYTES (UINT64_C(4) << 30)

/* ---- Buffered reading ---- */

typedef struct git_index_source {
  int fd;
  uint64_t at, end; /* file offsets: next read, and end of the data; the checksum after it is not read */
  unsigned char piece[GIT_INDEX_BUFFER];
  size_t next, have;
  bool failed;
} git_index_source;

static bool git_source_fill(git_index_source *s) {
  uint64_t left = s->end - s->at;
  size_t want = left < GIT_INDEX_BUFFER ? (size_t)left : GIT_INDEX_BUFFER, got = 0;
  if (s->failed || want == 0 || os_read_full(s->fd, s->piece, want, s->at, &got, NULL) != LODE_OK || got == 0) {
    s->failed = true;
    return false;
  }
  s->at += got;
  s->next = 0;
  s->have = got;
  return true;
}

static uint64_t git_source_left(const git_index_source *s) { return s->end - s->at + (s->have - s->next); }

static int git_source_byte(git_index_source *s) {
  if (s->next == s->have && !git_source_fill(s)) return -1;
  return s->piece[s->next++];
}

static bool git_source_bytes(git_index_source *s, void *to, size_t n) {
  unsigned char *out = to;
  while (n > 0) {
    if (s->next == s->have && !git_source_fill(s)) return false;
    size_t take = s->have - s->next < n ? s->have - s->next : n;
    if (out) {
      memcpy(out, s->piece + s->next, take);
      out += take;
    }
    s->next += take;
    n -= take;
  }
  return true;
}

/* Skips extensions that do not matter, without reading them. */
static bool git_source_skip(git_index_source *s, uint64_t n) {
  uint64_t here = s->have - s->next;
  if (n > git_source_left(s)) return false;
  if (n <= here) {
    s->next += (size_t)n;
  } else {
    s->at += n - here;
    s->next = s->have;
  }
  return true;
}

/* ---- Entries ---- */

typedef struct git_index_name {
  char text[GIT_INDEX_MAX_NAME + 1];
  size_t len;
} git_index_name;

/* Appends bytes up to a NUL. */
static bool git_read_to_nul(git_index_source *s, git_index_name *n) {
  for (int c; (c = git_source_byte(s)) != 0;) {
    if (c < 0 || n->len == GIT_INDEX_MAX_NAME) return false;
    n->text[n->len++] = (char)c;
  }
  return true;
}

/* Version 4: how many bytes to drop from the end of the previous name, then what to append. */
static bool git_read_compressed(git_index_source *s, git_index_name *n) {
  int c = git_source_byte(s);
  uint64_t strip = (uint64_t)(c & 127);
  while (c >= 0 && c & 128) {
    c = git_source_byte(s);
    if (strip > GIT_INDEX_MAX_NAME) return false;
    strip = (strip + 1) << 7 | (uint64_t)(c & 127);
  }
  if (c < 0 || strip > n->len) return false;
  n->len -= (size_t)strip;
  return git_read_to_nul(s, n);
}

static bool git_read_padded(git_index_source *s, git_index_name *n, size_t stated, size_t head) {
  unsigned char pad[8];
  n->len = 0;
  if (stated < 0xfff) {
    if (!git_source_bytes(s, n->text, stated) || memchr(n->text, 0, stated)) return false;
    n->len = stated;
    size_t rest = 8 - (head + stated) % 8;
    return git_source_bytes(s, pad, rest) && memcmp(pad, "\0\0\0\0\0\0\0\0", rest) == 0;
  }
  if (!git_read_to_nul(s, n) || n->len < 0xfff) return false;
  size_t rest = 7 - (head + n->len) % 8; /* one NUL is read */
  return git_source_bytes(s, pad, rest) && memcmp(pad, "\0\0\0\0\0\0\0", rest) == 0;
}

static bool git_index_read_entry(git_index_source *s, uint32_t version, size_t oid_bytes, git_index_name *n,
                                 uint32_t *mode) {
  unsigned char head[GIT_INDEX_STAT_BYTES + 32 + 4];
  size_t size = GIT_INDEX_STAT_BYTES + oid_bytes + 2;
  if (!git_source_bytes(s, head, size)) return false;
  unsigned flags = num_be16(head + size - 2);
  if (flags & 0x4000) { /* extended */
    if (version < 3 || !git_source_bytes(s, head + size, 2)) return false;
    size += 2;
  }
  *mode = num_be32(head + GIT_INDEX_MODE_AT);
  return version == 4 ? git_read_compressed(s, n) : git_read_padded(s, n, flags & 0xfff, size);
}

/* ---- Does an entry match? ---- */

static bool git_entry_is_excepted(const char *const *except, const char *text, size_t len) {
  for (; except && *except; except++)
    if (strlen(*except) == len && strncasecmp(*except, text, len) == 0) return true;
  return false;
}

/* A folder of a sparse index, whose files are not listed: its name ends with a slash. */
static bool git_entry_is_collapsed(const git_index_name *n, uint32_t mode) {
  return (mode & 0170000) == 0040000 && n->len && n->text[n->len - 1] == '/';
}

/* A collapsed folder that contains what is asked for: its files may be tracked. */
static bool git_entry_may_contain(const git_index_query *q, const git_index_name *n, uint32_t mode) {
  return git_entry_is_collapsed(n, mode) && n->len <= q->below.len && q->below.data[n->len - 1] == '/' &&
         strncasecmp(n->text, q->below.data, n->len) == 0;
}

static bool git_entry_matches(const git_index_query *q, const git_index_name *n, uint32_t mode) {
  size_t len = q->below.len;
  if (n->len < len || strncasecmp(n->text, q->below.data, len) != 0) return false;
  if (git_entry_is_collapsed(n, mode) && n->len == len + 1) return true;
  if (n->len == len) return true; /* a submodule, a link, a file */
  return n->text[len] == '/' && !git_entry_is_excepted(q->except, n->text + len + 1, n->len - len - 1);
}

/* True when neither this name nor any later one can match: in byte order, capital letters come before small ones. */
static bool is_past(const git_index_query *q, const git_index_name *n) {
  for (size_t i = 0; i < q->below.len && i < n->len; i++) {
    unsigned char c = (unsigned char)q->below.data[i], other = (unsigned char)n->text[i];
    if (c >= 'A' && c <= 'Z') c = (unsigned char)(c - 'A' + 'a');
    if (other != c) return other > c;
  }
  return n->len > q->below.len && (unsigned char)n->text[q->below.len] > '/';
}

/* ---- The file ---- */

static bool git_read_extensions(git_index_source *s, const git_index_query *q, git_index_answer *answer) {
  while (git_source_left(s) > 0) {
    unsigned char head[8];
    if (!git_source_bytes(s, head, sizeof head)) return false;
    uint64_t size = num_be32(head + 4);
    if (memcmp(head, "link", 4) == 0) {
      if (size < q->oid_bytes || answer->split || !git_source_bytes(s, answer->base, q->oid_bytes)) return false;
      answer->split = true;
      size -= q->oid_bytes;
    } else if (memcmp(head, "sdir", 4) != 0 && (head[0] < 'A' || head[0] > 'Z')) {
      return false; /* a mandatory extension that we do not know */
    }
    if (!git_source_skip(s, size)) return false;
  }
  return true;
}

static git_tracked git_index_conclude(bool found, bool collapsed) {
  return found ? GIT_TRACKED_YES : collapsed ? GIT_TRACKED_UNKNOWN : GIT_TRACKED_NO;
}

/* False when it is damaged. */
static bool git_index_read_all(git_index_source *s, const git_index_query *q, git_index_answer *answer,
                               git_index_name *n) {
  unsigned char head[12];
  uint32_t mode;
  bool found = false, nameless = false;
  if (!git_source_bytes(s, head, sizeof head) || memcmp(head, "DIRC", 4) != 0) return false;
  uint32_t version = num_be32(head + 4), count = num_be32(head + 8);
  if (version < 2 || version > 4 || (uint64_t)count * (GIT_INDEX_STAT_BYTES + q->oid_bytes + 3) > git_source_left(s))
    return false;
  for (uint32_t i = 0; i < count; i++) {
    if (!git_index_read_entry(s, version, q->oid_bytes, n, &mode)) return false;
    nameless = nameless || n->len == 0;
    found = found || git_entry_matches(q, n, mode);
    answer->collapsed = answer->collapsed || git_entry_may_contain(q, n, mode);
    if (q->quick && (found || is_past(q, n))) {
      answer->tracked = git_index_conclude(found, answer->collapsed);
      return true;
    }
  }
  if (!git_read_extensions(s, q, answer)) return false;
  answer->tracked = git_index_conclude(found, answer->collapsed);
  /* In a split index, entries without a name replace entries of the shared index, which has their names. */
  return answer->split || !nameless;
}

void git_index_read(int fd, uint64_t size, const git_index_query *query, git_index_answer *answer) {
  git_index_source *s = mem_alloc(sizeof *s);
  git_index_name *n = mem_alloc(sizeof *n);
  *answer = (git_index_answer){.tracked = GIT_TRACKED_UNKNOWN};
  if (s && n && size > query->oid_bytes && size <= GIT_INDEX_MAX_BYTES) {
    s->fd = fd;
    s->at = 0;
    s->end = size - query->oid_bytes;
    s->next = s->have = 0;
    s->failed = false;
    n->len = 0;
    if (!git_index_read_all(s, query, answer, n)) *answer = (git_index_answer){.tracked = GIT_TRACKED_UNKNOWN};
  }
  mem_free(s);
  mem_free(n);
}

/* ---- Repositories ---- */

/* A file that does not exist tracks nothing, unless it must exist. */
static void git_index_read_file(const char *path, const git_index_query *query, bool must_exist,
                                git_index_answer *answer) {
  struct stat st;
  int fd = os_open_regular(path);
  *answer = (git_index_answer){.tracked = GIT_TRACKED_UNKNOWN};
  if (fd < 0) {
    if (errno == ENOENT && !must_exist) answer->tracked = GIT_TRACKED_NO;
    return;
  }
  if (OS_RETRY(os_api->fstat(fd, &st)) == 0 && st.st_size > 0) git_index_read(fd, (uint64_t)st.st_size, query, answer);
  os_api->close(fd);
}

/* A split index says so only at its end, but its base lies in the same folder. True when that folder cannot be read. */
static bool may_be_split(const char *git) {
  static const char base[] = "sharedindex.";
  os_dir *folder = os_dir_open(git);
  bool split = !folder;
  os_kind kind;
  int errnum = 0;
  for (const char *name; folder && !split && (name = os_dir_next_kind(folder, &kind, &errnum)) != NULL;)
    split = strncmp(name, base, sizeof base - 1) == 0;
  os_dir_close(folder);
  return split || errnum;
}

/* *collapsed: the answer is "unknown" only because a folder of a sparse index contains it. */
static git_tracked git_ask_repo(const git_repo *git, const git_index_query *asked, strbuf *file, bool *collapsed) {
  git_index_query query = *asked;
  git_index_answer answer, shared;
  query.oid_bytes = git->sha256 ? 32 : 20;
  query.quick = asked->quick && !may_be_split(git->own.data);
  file->len = 0;
  strbuf_addf(file, "%s/index%c", git->own.data, 0);
  if (file->failed) return GIT_TRACKED_UNKNOWN;
  git_index_read_file(file->data, &query, false, &answer);
  *collapsed = answer.collapsed;
  if (answer.tracked == GIT_TRACKED_YES || !answer.split) return answer.tracked;
  file->len = 0;
  strbuf_addf(file, "%s/sharedindex.", git->own.data);
  for (size_t i = 0; i < query.oid_bytes; i++) strbuf_addf(file, "%02x", answer.base[i]);
  strbuf_addch(file, '\0');
  if (file->failed) return GIT_TRACKED_UNKNOWN;
  git_index_read_file(file->data, &query, true, &shared);
  *collapsed = *collapsed || shared.collapsed;
  return shared.split ? GIT_TRACKED_UNKNOWN : shared.tracked == GIT_TRACKED_NO ? answer.tracked : shared.tracked;
}

git_tracked git_tracks(const char *folder, const char *name, const char *const *except, bool quick, strbuf *file) {
  git_repo git = {0};
  strbuf below = {0};
  size_t len = strlen(folder);
  git_tracked answer = GIT_TRACKED_NO;
  file->len = 0;
  for (int i = 0; i < GIT_MAX_REPOS && answer == GIT_TRACKED_NO; i++) {
    git_repo_found found = git_repo_find(folder, len, &git);
    bool collapsed = false;
    if (found == GIT_REPO_NONE) break;
    below.len = 0;
    if (git.top < strlen(folder)) strbuf_addf(&below, "%s/", folder + git.top + (folder[git.top] == '/'));
    strbuf_addstr(&below, name);
    if (found == GIT_REPO_BROKEN || below.failed) {
      answer = GIT_TRACKED_UNKNOWN;
      file->len = 0;
      strbuf_addf(file, "%.*s/.git%c", (int)git.top, folder, 0);
    } else {
      git_index_query query = {.below = {below.data, below.len}, .except = except, .quick = quick};
      answer = git_ask_repo(&git, &query, file, &collapsed);
    }
    /* Of those that cannot be read, only the nearest one may block the user */
    if (answer == GIT_TRACKED_UNKNOWN && i > 0 && !collapsed) answer = GIT_TRACKED_NO;
    if (git.top <= 1) break;
    for (len = git.top; len > 1 && folder[len - 1] != '/';) len--;
    if (len > 1) len--;
  }
  if (answer == GIT_TRACKED_NO || file->failed) strbuf_release(file);
  strbuf_release(&below);
  git_repo_release(&git);
  return answer;
}
