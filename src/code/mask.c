/* mask.c - see mask.h. The rules are data; a scan goes once over the text and tries those that begin with the two bytes at hand. */
#include "mask.h"

#include <pthread.h>

#define MASK_CHAR '*'

static const char *const secrets_names[] = {"mask", "skip", "index"};

lode__secrets lode__secrets_of(const char *name) {
  size_t i = 2;
  while (i && strcmp(name, secrets_names[i]) != 0) i--;
  return (lode__secrets)i;
}

const char *lode__secrets_name(lode__secrets secrets) { return secrets_names[secrets]; }

/* ---- Alphabets ---- */

enum { UPPER = 1, LOWER = 2, DIGIT = 4, DASH = 8, UNDERSCORE = 16, BASE64 = 32 /* + /, and = at the end */, DOT = 64, SLASH = 128, PADDING = 256 };
#define ALNUM (UPPER | LOWER | DIGIT)
#define URL_SAFE (ALNUM | DASH | UNDERSCORE)

static unsigned class_of(char c) {
  if (c >= 'A' && c <= 'Z') return UPPER;
  if (c >= 'a' && c <= 'z') return LOWER;
  if (c >= '0' && c <= '9') return DIGIT;
  switch (c) {
    case '-': return DASH;
    case '_': return UNDERSCORE;
    case '+': return BASE64;
    case '/': return BASE64 | SLASH;
    case '=': return PADDING;
    case '.': return DOT;
    default: return 0;
  }
}

/* ---- Tokens ---- */

enum {
  MIXED = 1,  /* upper case, lower case, digits, and 16 of them in a row: rules out words joined by hyphens */
  VALUE = 2,  /* the prefix is the name of a setting: quotes, colons, ... may stand between it and its value */
  JWT = 4,    /* three parts with dots, the second one JSON too */
  KEY64 = 8,  /* base64 of a PEM block that is no certificate and no public key */
};

/* `least` to `most` bytes of the alphabet follow the prefix, and nothing of it comes before. Sorted by prefix. */
typedef struct rule {
  const char *prefix;
  unsigned alphabet, flags;
  size_t least, most;
} rule;

static const rule rules[] = {
    {":_authToken=", URL_SAFE | BASE64 | DOT, 0, 8, 1000},          /* npm */
    {"AGE-SECRET-KEY-1", UPPER | DIGIT, 0, 50, 64},
    {"AIza", URL_SAFE, 0, 35, 35},                                  /* Google */
    {"AKIA", UPPER | DIGIT, 0, 16, 16},                             /* AWS */
    {"ASIA", UPPER | DIGIT, 0, 16, 16},
    {"AWS_SECRET_ACCESS_KEY", ALNUM | BASE64, VALUE, 40, 40},
    {"AccountKey=", ALNUM | BASE64, 0, 40, 100},                    /* Azure */
    {"GOCSPX-", URL_SAFE, 0, 24, 40},
    {"LS0tLS1CRUdJTi", ALNUM | BASE64, KEY64, 100, 100000},         /* "-----BEGIN " in base64: kubeconfig, CI variables */
    {"SG.", URL_SAFE | DOT, MIXED, 60, 75},                         /* SendGrid */
    {"SecretAccessKey", ALNUM | BASE64, VALUE, 40, 40},
    {"SharedAccessKey=", ALNUM | BASE64, 0, 40, 100},
    {"aws_secret_access_key", ALNUM | BASE64, VALUE, 40, 40},
    {"dop_v1_", LOWER | DIGIT, 0, 64, 64},                          /* DigitalOcean */
    {"eyJ", URL_SAFE | DOT, JWT, 40, 16000},
    {"ghp_", ALNUM, 0, 36, 255},                                    /* GitHub */
    {"gho_", ALNUM, 0, 36, 255},
    {"ghr_", ALNUM, 0, 36, 255},
    {"ghs_", ALNUM, 0, 36, 255},
    {"ghu_", ALNUM, 0, 36, 255},
    {"github_pat_", ALNUM | UNDERSCORE, 0, 40, 255},
    {"glpat-", URL_SAFE | DOT, 0, 20, 255},                         /* GitLab */
    {"hf_", ALNUM, MIXED, 34, 40},                                  /* Hugging Face */
    {"hooks.slack.com/services/", ALNUM | SLASH, 0, 30, 80},
    {"npm_", ALNUM, MIXED, 36, 36},
    {"pypi-AgEIcHlwaS5vcmc", URL_SAFE, 0, 50, 1000},
    {"rk_live_", ALNUM, 0, 16, 255},                                /* Stripe */
    {"shpat_", ALNUM, 0, 32, 32},                                   /* Shopify */
    {"sk-", URL_SAFE, MIXED, 20, 255},                              /* OpenAI, Anthropic, ... */
    {"sk_live_", ALNUM, 0, 16, 255},
    {"sk_test_", ALNUM, 0, 16, 255},
    {"xapp-", ALNUM | DASH, MIXED, 30, 255},                        /* Slack */
    {"xoxa-", ALNUM | DASH, 0, 16, 255},
    {"xoxb-", ALNUM | DASH, 0, 16, 255},
    {"xoxe-", ALNUM | DASH, 0, 16, 255},
    {"xoxp-", ALNUM | DASH, 0, 16, 255},
    {"xoxr-", ALNUM | DASH, 0, 16, 255},
    {"xoxs-", ALNUM | DASH, 0, 16, 255},
    {"ya29.", URL_SAFE, 0, 30, 2000},
};
enum { RULES = sizeof rules / sizeof *rules };

/* Which pairs of bytes begin a rule, and the first rule of each first byte. */
static struct {
  uint64_t pairs[256][4];
  uint8_t first[256], n[256];
} table;
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void make_table(void) {
  for (size_t i = RULES; i-- > 0;) {
    unsigned char a = (unsigned char)rules[i].prefix[0], b = (unsigned char)rules[i].prefix[1];
    table.pairs[a][b / 64] |= UINT64_C(1) << (b % 64);
    table.first[a] = (uint8_t)i;
    table.n[a]++;
  }
}

static size_t run_of(const char *text, size_t at, size_t len, unsigned alphabet, size_t most) {
  size_t n = 0;
  while (n <= most && at + n < len && class_of(text[at + n]) & alphabet) n++;
  if (alphabet & BASE64)
    for (int i = 0; i < 2 && n && at + n < len && text[at + n] == '='; i++) n++;
  return n;
}

/* A token begins where a word of its alphabet does, so that no byte is looked at from many beginnings; \n and the like before it are the
 * escapes of a string. */
static bool begins(const char *text, size_t at, unsigned alphabet) {
  if (at == 0 || !class_of(text[at]) || !(class_of(text[at - 1]) & (alphabet | ALNUM | UNDERSCORE))) return true;
  if (alphabet & SLASH && text[at - 1] == '/') return true; /* https://hooks... */
  return at >= 2 && text[at - 2] == '\\' && strchr("nrt", text[at - 1]);
}

static bool is_mixed(const char *text, size_t n) {
  unsigned seen = 0;
  size_t part = 0, longest = 0;
  for (size_t i = 0; i < n; i++) {
    unsigned c = class_of(text[i]);
    seen |= c;
    part = c & ALNUM ? part + 1 : 0;
    if (part > longest) longest = part;
  }
  return (seen & ALNUM) == ALNUM && longest >= 16;
}

static bool is_jwt(const char *text, size_t n) {
  const char *dot = memchr(text, '.', n), *second = dot ? memchr(dot + 1, '.', n - (size_t)(dot + 1 - text)) : NULL;
  if (!second || memchr(second + 1, '.', n - (size_t)(second + 1 - text))) return false;
  size_t claims = (size_t)(second - dot) - 1, signature = n - (size_t)(second + 1 - text);
  return dot - text >= 10 && claims >= 10 && memcmp(dot + 1, "eyJ", 3) == 0 && signature >= 20;
}

static bool is_private64(const char *text, size_t n) {
  static const char certificate[] = "BDRVJU", public_key[] = "BQVUJM";
  return n > 6 && memcmp(text, certificate, 6) != 0 && memcmp(text, public_key, 6) != 0;
}

/* The bytes to mask: from *start, as many as are returned. */
static size_t match(const rule *r, const char *text, size_t at, size_t len, size_t *start) {
  size_t prefix = strlen(r->prefix);
  if (len - at < prefix + r->least || memcmp(text + at, r->prefix, prefix) != 0 || !begins(text, at, r->alphabet)) return 0;
  size_t from = at + prefix;
  if (r->flags & VALUE) {
    size_t most = from + 8;
    while (from < len && from < most && strchr(" \t\"':=>,", text[from]) && text[from]) from++;
  }
  size_t n = run_of(text, from, len, r->alphabet, r->most);
  if (n < r->least || n > r->most) return 0;
  if (r->flags & MIXED && !is_mixed(text + from, n)) return 0;
  if (r->flags & JWT && !is_jwt(text + from, n)) return 0;
  if (r->flags & KEY64 && !is_private64(text + from, n)) return 0;
  /* A longer word of other characters is another thing; AWS's documents have AKIAIOSFODNN7EXAMPLE */
  if (from + n < len && class_of(text[from + n]) & (ALNUM | UNDERSCORE)) return 0;
  if (n >= 7 && memcmp(text + from + n - 7, "EXAMPLE", 7) == 0) return 0;
  *start = from;
  return n;
}

static size_t mask_tokens(char *text, size_t len) {
  size_t found = 0;
  for (size_t i = 0; i + 1 < len; i++) {
    unsigned char a = (unsigned char)text[i], b = (unsigned char)text[i + 1];
    if (!(table.pairs[a][b / 64] >> (b % 64) & 1)) continue;
    for (size_t k = table.first[a], end = k + table.n[a]; k < end; k++) {
      size_t start, n = match(&rules[k], text, i, len, &start);
      if (!n) continue;
      memset(text + start, MASK_CHAR, n);
      found++;
      i = start + n - 1;
      break;
    }
  }
  return found;
}

/* ---- Private keys ---- */

enum { KEY_RUN = 16, LABEL_BYTES = 64 };

static bool is_key_char(char c) { return class_of(c) & (ALNUM | BASE64 | PADDING); }

/* Is most of it base64? Code between two constants that name the armour is not. */
static bool is_key_text(const char *text, size_t len) {
  size_t solid = 0, key = 0, run = 0;
  for (size_t i = 0; i <= len; i++) {
    if (i < len && is_key_char(text[i])) {
      run++;
      continue;
    }
    solid += run + (i < len && (unsigned char)text[i] > ' ');
    if (run >= KEY_RUN) key += run;
    run = 0;
  }
  return key && key * 10 >= solid * 6;
}

/* Base64 becomes mask; quotes, escapes, operators and indentation stay, so that the code around it is still code. */
static void mask_key(char *text, size_t len) {
  for (size_t i = 0; i < len;) {
    size_t n = 0;
    while (i + n < len && is_key_char(text[i + n])) n++;
    bool escape = n && i > 0 && text[i - 1] == '\\' && strchr("nrt", text[i]);
    if (n >= 2) memset(text + i + escape, MASK_CHAR, n - escape);
    i += n ? n : 1;
  }
}

/* Without its end: the lines that look like a key, and headers like "Proc-Type: 4,ENCRYPTED" before them. */
static size_t open_key(const char *text, size_t len) {
  size_t end = 0;
  for (size_t at = 0, line = 0; at < len; line++) {
    const char *eol = memchr(text + at, '\n', len - at);
    size_t n = eol ? (size_t)(eol - text) - at : len - at;
    if (is_key_text(text + at, n)) end = at + n;
    else if (line > 3) break;
    at += n + 1;
  }
  return end;
}

static size_t mask_keys(char *text, size_t len) {
  static const char begin[] = "-----BEGIN ", dashes[] = "-----", label[] = "PRIVATE KEY";
  size_t found = 0, at = 0;
  char *head;
  while (at < len && (head = memmem(text + at, len - at, begin, sizeof begin - 1)) != NULL) {
    size_t left = len - (size_t)(head - text) - (sizeof begin - 1);
    char *name = head + sizeof begin - 1, *close = memmem(name, left < LABEL_BYTES ? left : LABEL_BYTES, dashes, sizeof dashes - 1);
    at = (size_t)(name - text);
    if (!close || !memmem(name, (size_t)(close - name), label, sizeof label - 1)) continue;
    char *body = close + sizeof dashes - 1;
    left = len - (size_t)(body - text);
    const char *mark = memmem(body, left, dashes, sizeof dashes - 1);
    size_t n = mark ? (size_t)(mark - body) : left;
    bool closed = mark && left - n >= 9 && memcmp(mark, "-----END ", 9) == 0;
    if (!closed) n = open_key(body, n);
    at = (size_t)(body - text) + n;
    if (n == 0 || !is_key_text(body, n)) continue;
    mask_key(body, n);
    found++;
  }
  return found;
}

size_t lode__mask(char *text, size_t len) {
  pthread_once(&table_once, make_table);
  return mask_keys(text, len) + mask_tokens(text, len);
}
