/* SPDX-License-Identifier: Apache-2.0 */
/* regex.c - PCRE2 with bounds on time and memory: see regex.h.
 *
 * PCRE2 counts steps again from each start position, so its match limit alone does not bound a search: a pattern that
 * stays just below the limit everywhere would take hours on a long text. So a search processes the text in windows of
 * start positions (PCRE2's offset limit), and window x limit is constant: one call does at most CALL_STEPS steps, and
 * the clock is read between calls. Windows grow while there is no match; one that reaches its limit is repeated as
 * smaller ones with a higher limit, and only the limit of the smallest window is final.
 *
 * Patterns are compiled to machine code if possible; if that exhausts its own small stack, the interpreter is used,
 * whose memory is limited too.
 */
#include "query/regex.h"

#include "os/os.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* Windows of start positions: the smallest, whose limit is final; the first; the largest; and how much the next one is
 * larger or smaller. Most texts are one window. Not measured. */
#define MIN_WINDOW ((size_t)64)
#define FIRST_WINDOW ((size_t)1024)
#define MAX_WINDOW ((size_t)262144)
#define WINDOW_FACTOR 16
/* Steps of one call of PCRE2 at most, between two looks at the clock. Not measured. */
#define CALL_STEPS ((size_t)1 << 26)
/* Memory of the interpreter, and nesting of parentheses, which bounds the stack of the compiler. */
#define HEAP_KIB (64u << 10)
#define PARENS_NEST 250
/* Time that a runner may take: a fixed part, and so much for each search and each byte of text. Patterns that do not
 * backtrack stay far below it; what takes more is refused as too expensive. */
#define REGEX_RUNNER_NS 2000000000u
#define REGEX_SEARCH_NS 10000u
#define REGEX_BYTE_NS 200u

struct regex_pattern {
  pcre2_code *code;
  bool anchored; /* the only start position is the first */
  lode_str pattern;
  char pattern_bytes[]; /* the start of the pattern, for messages */
};

struct regex_runner {
  pcre2_general_context *general;
  pcre2_match_context *context;
  pcre2_match_data *match;
  uint64_t spent_ns, allowed_ns;
};

/* ---- Compiling ---- */

static void *regex_malloc(PCRE2_SIZE size, void *ctx) {
  (void)ctx;
  return mem_alloc(size);
}

static void regex_mfree(void *p, void *ctx) {
  (void)ctx;
  mem_free(p);
}

/* A construct in the pattern that would not work window by window, or NULL. A false positive is harmless. */
static const char *regex_forbidden(lode_str p) {
  for (size_t i = 0; i + 1 < p.len; i++) {
    if (p.data[i] == '(' && p.data[i + 1] == '*' && i + 2 < p.len) {
      char c = p.data[i + 2];
      if (c == ':' || (c >= 'A' && c <= 'Z')) return "a verb like (*SKIP)";
    }
    if (p.data[i] != '\\') continue;
    if (p.data[i + 1] == 'G') return "\\G";
    if (p.data[i + 1] == 'Q') {
      const char *end = memmem(p.data + i, p.len - i, "\\E", 2);
      if (!end) return NULL;
      i = (size_t)(end - p.data);
    }
    i++;
  }
  return NULL;
}

static lode_status check_pattern(lode_str pattern, lode_error *err) {
  char shown[256];
  if (pattern.len > REGEX_MAX_PATTERN_BYTES) {
    return err_set(err, LODE_LIMIT, "the regular expression %s is %zu bytes long, the limit is %u",
                   str_quote(pattern, shown, sizeof shown), pattern.len, REGEX_MAX_PATTERN_BYTES);
  }
  if (!utf8_valid(pattern.data, pattern.len)) {
    return err_set(err, LODE_INVALID, "the regular expression %s is not valid UTF-8",
                   str_quote(pattern, shown, sizeof shown));
  }
  const char *what = regex_forbidden(pattern);
  if (what) {
    return err_set(err, LODE_INVALID, "the regular expression %s has %s, which filters do not allow; leave it out",
                   str_quote(pattern, shown, sizeof shown), what);
  }
  return LODE_OK;
}

static lode_status fail_compile(lode_str pattern, int code, size_t offset, lode_error *err) {
  char shown[256], why[160];
  if (code == PCRE2_ERROR_HEAP_FAILED) return err_nomem(err);
  if (pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why) < 0) why[0] = '\0';
  return err_set(err, LODE_INVALID, "the regular expression %s is wrong at byte %zu: %s",
                 str_quote(pattern, shown, sizeof shown), offset, why);
}

lode_status regex_new(lode_str pattern, regex_pattern **regex, lode_error *err) {
  lode_status st = LODE_OK;
  pcre2_general_context *general = NULL;
  pcre2_compile_context *context = NULL;
  regex_pattern *r = NULL;
  int code = 0;
  PCRE2_SIZE offset = 0;
  uint32_t options = 0;
  *regex = NULL;
  TRY_GOTO(check_pattern(pattern, err));
  st = LODE_NOMEM;
  size_t kept = pattern.len < 64 ? pattern.len : 64; /* str_quote() shows at most 60 */
  r = mem_calloc(1, sizeof *r + kept);
  general = pcre2_general_context_create(regex_malloc, regex_mfree, NULL);
  if (!r || !general) goto done;
  context = pcre2_compile_context_create(general);
  if (!context) goto done;
  pcre2_set_parens_nest_limit(context, PARENS_NEST);
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  if (kept) memcpy(r->pattern_bytes, pattern.data, kept);
  r->pattern = (lode_str){r->pattern_bytes, kept};
  r->code =
      pcre2_compile(pattern.len ? (PCRE2_SPTR)pattern.data : (PCRE2_SPTR) "", pattern.len,
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT, &code, &offset, context);
  if (!r->code) {
    st = fail_compile(pattern, code, offset, err);
    goto done;
  }
  (void)pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE); /* without machine code it is slower but correct */
  (void)pcre2_pattern_info(r->code, PCRE2_INFO_ALLOPTIONS, &options);
  r->anchored = options & PCRE2_ANCHORED;
  *regex = r;
  r = NULL;
  st = LODE_OK;
done:
  if (st == LODE_NOMEM) st = err_nomem(err);
  pcre2_compile_context_free(context);
  pcre2_general_context_free(general);
  regex_free(r);
  return st;
}

void regex_free(regex_pattern *regex) {
  if (!regex) return;
  pcre2_code_free(regex->code);
  mem_free(regex);
}

/* ---- Searching ---- */

lode_status regex_runner_new(regex_runner **runner, lode_error *err) {
  *runner = NULL;
  regex_runner *r = mem_calloc(1, sizeof *r);
  if (!r) return err_nomem(err);
  r->general = pcre2_general_context_create(regex_malloc, regex_mfree, NULL);
  if (r->general) r->context = pcre2_match_context_create(r->general);
  if (r->context) r->match = pcre2_match_data_create(1, r->general);
  if (!r->match) {
    regex_runner_free(r);
    return err_nomem(err);
  }
  pcre2_set_heap_limit(r->context, HEAP_KIB);
  r->allowed_ns = REGEX_RUNNER_NS;
  *runner = r;
  return LODE_OK;
}

void regex_runner_free(regex_runner *runner) {
  if (!runner) return;
  pcre2_match_data_free(runner->match);
  pcre2_match_context_free(runner->context);
  pcre2_general_context_free(runner->general);
  mem_free(runner);
}

/* One timed call over the start positions [from, from + window). */
static int regex_search_window(regex_runner *runner, const regex_pattern *regex, lode_str text, size_t from,
                               size_t window, uint32_t options) {
  size_t last = text.len - from < window ? text.len : from + window - 1;
  pcre2_set_offset_limit(runner->context, last);
  pcre2_set_match_limit(runner->context, (uint32_t)(CALL_STEPS / window));
  uint64_t begin = os_api->now_ns();
  int rc = pcre2_match(regex->code, (PCRE2_SPTR)text.data, text.len, from, PCRE2_NO_UTF_CHECK | options, runner->match,
                       runner->context);
  runner->spent_ns += os_api->now_ns() - begin;
  return rc;
}

static lode_status fail_search(const regex_pattern *regex, int rc, lode_error *err) {
  char shown[256], why[160];
  if (rc == PCRE2_ERROR_NOMEMORY) return err_nomem(err);
  if (pcre2_get_error_message(rc, (PCRE2_UCHAR *)why, sizeof why) < 0) why[0] = '\0';
  return err_set(err, LODE_LIMIT,
                 "the regular expression %s takes too much work on a document (%s); write it without repeats inside "
                 "repeats, or narrow the search by other filters",
                 str_quote(regex->pattern, shown, sizeof shown), why);
}

static lode_status fail_time(const regex_pattern *regex, const regex_runner *runner, lode_error *err) {
  char shown[256];
  return err_set(err, LODE_LIMIT,
                 "the regular expression %s took %.1f seconds, far more than such an amount of text should; write it "
                 "without repeats inside repeats, or narrow the search by other filters",
                 str_quote(regex->pattern, shown, sizeof shown), (double)runner->spent_ns / 1e9);
}

static bool regex_in_character(lode_str text, size_t at) {
  return at < text.len && ((unsigned char)text.data[at] & 0xC0) == 0x80;
}

lode_status regex_search(regex_runner *runner, const regex_pattern *regex, lode_str text, bool *found,
                         lode_error *err) {
  size_t from = 0, window = regex->anchored ? MIN_WINDOW : FIRST_WINDOW, max_window = MAX_WINDOW;
  uint32_t options = 0;
  *found = false;
  if (!text.data) return LODE_OK;
  runner->allowed_ns += REGEX_SEARCH_NS + text.len * REGEX_BYTE_NS;
  for (;;) {
    int rc = regex_search_window(runner, regex, text, from, window, options);
    if (rc >= 0) {
      *found = true;
      return LODE_OK;
    }
    if (runner->spent_ns > runner->allowed_ns) return fail_time(regex, runner, err);
    if (rc == PCRE2_ERROR_NOMATCH) {
      if (regex->anchored || text.len - from < window) return LODE_OK;
      from += window;
      while (regex_in_character(text, from)) from++;
      if (window < max_window) window *= WINDOW_FACTOR;
    } else if (rc == PCRE2_ERROR_MATCHLIMIT && window > MIN_WINDOW) {
      window /= WINDOW_FACTOR;
      max_window = window;
    } else if (rc == PCRE2_ERROR_JIT_STACKLIMIT && !options) {
      options = PCRE2_NO_JIT;
    } else {
      return fail_search(regex, rc, err);
    }
  }
}
