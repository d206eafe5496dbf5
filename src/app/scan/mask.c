/* SPDX-License-Identifier: Apache-2.0 */
/* mask.c - see mask.h. The rules are data. One pass over the text tries, at each byte, the rules that begin with the
 * three bytes there. */
#include "scan/mask.h"

#include <pthread.h>

#define MASK_CHAR '*'

static const char *const mask_policy_names[] = {"mask", "skip", "index"};

mask_policy mask_policy_parse(const char *name) {
  size_t i = 2;
  while (i && strcmp(name, mask_policy_names[i]) != 0) i--;
  return (mask_policy)i;
}

const char *mask_policy_name(mask_policy secrets) { return mask_policy_names[secrets]; }

/* ---- Alphabets ---- */

enum {
  MASK_UPPER = 1,
  MASK_LOWER = 2,
  MASK_DIGIT = 4,
  MASK_DASH = 8,
  MASK_UNDERSCORE = 16,
  MASK_BASE64 = 32, /* + and /, and = at the end */
  MASK_DOT = 64,
  MASK_SLASH = 128,
  MASK_PADDING = 256,
};
#define MASK_ALNUM (MASK_UPPER | MASK_LOWER | MASK_DIGIT)
#define MASK_URL_SAFE (MASK_ALNUM | MASK_DASH | MASK_UNDERSCORE)

static unsigned mask_class_of(char c) {
  if (c >= 'A' && c <= 'Z') return MASK_UPPER;
  if (c >= 'a' && c <= 'z') return MASK_LOWER;
  if (c >= '0' && c <= '9') return MASK_DIGIT;
  switch (c) {
    case '-': return MASK_DASH;
    case '_': return MASK_UNDERSCORE;
    case '+': return MASK_BASE64;
    case '/': return MASK_BASE64 | MASK_SLASH;
    case '=': return MASK_PADDING;
    case '.': return MASK_DOT;
    default: return 0;
  }
}

/* ---- Private keys ---- */

enum { MASK_KEY_RUN = 16, KEY_LINE = 40 };

static bool mask_is_key_char(char c) { return mask_class_of(c) & (MASK_ALNUM | MASK_BASE64 | MASK_PADDING); }

/* Is most of it base64, in runs of at least `min`? Code between two constants that name the armour is not. */
static bool mask_is_key_text(const char *text, size_t len, size_t min) {
  size_t solid = 0, key = 0, run = 0;
  for (size_t i = 0; i <= len; i++) {
    if (i < len && mask_is_key_char(text[i])) {
      run++;
      continue;
    }
    solid += run + (i < len && (unsigned char)text[i] > ' ');
    if (run >= min) key += run;
    run = 0;
  }
  return key && key * 10 >= solid * 6;
}

/* Masks base64; quotes, escapes, operators and indentation stay, so that the code around it is still code. */
static void mask_key(char *text, size_t len) {
  for (size_t i = 0; i < len;) {
    size_t n = 0;
    while (i + n < len && mask_is_key_char(text[i + n])) n++;
    bool escape = n && i > 0 && text[i - 1] == '\\' && strchr("nrt", text[i]);
    if (n >= 2) memset(text + i + escape, MASK_CHAR, n - escape);
    i += n ? n : 1;
  }
}

/* Length of a key without an end line: lines that look like a key, after headers like "Proc-Type: 4,ENCRYPTED". */
static size_t mask_unclosed_key(const char *text, size_t len) {
  size_t end = 0;
  for (size_t at = 0, line = 0; at < len; line++) {
    const char *eol = memchr(text + at, '\n', len - at);
    size_t n = eol ? (size_t)(eol - text) - at : len - at;
    if (mask_is_key_text(text + at, n, MASK_KEY_RUN))
      end = at + n;
    else if (line > 3)
      break;
    at += n + 1;
  }
  return end;
}

/* ---- Tokens ---- */

enum {
  MASK_RULE_MIXED = 1, /* upper case, lower case and digits, 16 of them in a row: rules out words joined by hyphens */
  MASK_RULE_VALUE = 2, /* the prefix is the name of a setting: quotes, colons, ... may stand between it and its value */
  MASK_RULE_JWT = 4,   /* three parts separated by dots, the second one JSON too */
  MASK_RULE_KEY64 = 8, /* base64 of a PEM block that is neither a certificate nor a public key */
  VARIED = 16,         /* upper case, lower case and digits */
  HEX = 32,            /* digits and a to f only */
  INSIDE = 64,         /* the prefix is in the middle of the token */
  PUTTY = 128,         /* a number follows, then lines of base64 up to "Private-MAC" */
};

/* The prefix is followed by `min` to `max` bytes of the alphabet, and not preceded by one. Rules with the same first
 * byte must be adjacent. */
typedef struct mask_rule {
  const char *prefix;
  unsigned alphabet, flags;
  size_t min, max;
} mask_rule;

#define LOWNUM (MASK_LOWER | MASK_DIGIT)
static const mask_rule mask_rule_table[] = {
    {".atlasv1.", MASK_URL_SAFE, INSIDE, 60, 80},                         /* HCP Terraform */
    {":_authToken=", MASK_URL_SAFE | MASK_BASE64 | MASK_DOT, 0, 8, 1000}, /* npm */
    {"AGE-SECRET-KEY-1", MASK_UPPER | MASK_DIGIT, 0, 50, 64},
    {"AIza", MASK_URL_SAFE, 0, 35, 35},           /* Google */
    {"AKIA", MASK_UPPER | MASK_DIGIT, 0, 16, 16}, /* AWS */
    {"ASIA", MASK_UPPER | MASK_DIGIT, 0, 16, 16},
    {"AKCp", MASK_ALNUM, MASK_RULE_MIXED, 69, 69},                       /* JFrog */
    {"ATATT3", MASK_URL_SAFE | MASK_PADDING, MASK_RULE_MIXED, 100, 300}, /* Atlassian */
    {"ATBB", MASK_ALNUM, MASK_RULE_MIXED, 32, 32},                       /* Bitbucket */
    {"AWS_SECRET_ACCESS_KEY", MASK_ALNUM | MASK_BASE64, MASK_RULE_VALUE, 40, 40},
    {"AccountKey=", MASK_ALNUM | MASK_BASE64, 0, 40, 100},     /* Azure */
    {"CCIPAT_", MASK_ALNUM | MASK_UNDERSCORE, VARIED, 60, 70}, /* CircleCI */
    {"CFPAT-", MASK_URL_SAFE, VARIED, 43, 43},                 /* Contentful */
    {"CLOJARS_", LOWNUM, 0, 60, 60},
    {"EZAK", MASK_ALNUM, MASK_RULE_MIXED, 54, 54}, /* EasyPost */
    {"GOCSPX-", MASK_URL_SAFE, 0, 24, 40},
    {"GR1348941", MASK_URL_SAFE, VARIED, 20, 20},                               /* GitLab runners */
    {"HRKU-AA", MASK_URL_SAFE, 0, 58, 58},                                      /* Heroku */
    {"LS0tLS1CRUdJTi", MASK_ALNUM | MASK_BASE64, MASK_RULE_KEY64, 100, 100000}, /* "-----BEGIN ": kubeconfig, CI */
    {"LTAI", MASK_ALNUM, MASK_RULE_MIXED, 20, 20},                              /* Alibaba Cloud */
    {"NRAK-", MASK_UPPER | MASK_DIGIT, 0, 27, 27},                              /* New Relic */
    {"PMAK-", LOWNUM | MASK_DASH, 0, 59, 59},                                   /* Postman */
    {"PrivateKey", MASK_ALNUM | MASK_BASE64, MASK_RULE_VALUE | MASK_RULE_MIXED, 44, 44}, /* WireGuard */
    {"Private-Lines: ", 0, PUTTY, 0, 0},
    {"SG.", MASK_URL_SAFE | MASK_DOT, MASK_RULE_MIXED, 60, 75}, /* SendGrid */
    {"SK", LOWNUM, HEX, 32, 32},                                /* Twilio */
    {"SecretAccessKey", MASK_ALNUM | MASK_BASE64, MASK_RULE_VALUE, 40, 40},
    {"SharedAccessKey=", MASK_ALNUM | MASK_BASE64, 0, 40, 100},
    {"aio_", MASK_ALNUM, MASK_RULE_MIXED, 28, 28}, /* Adafruit */
    {"aws_secret_access_key", MASK_ALNUM | MASK_BASE64, MASK_RULE_VALUE, 40, 40},
    {"bkua_", LOWNUM, HEX, 40, 40},               /* Buildkite */
    {"dapi", LOWNUM, HEX, 32, 32},                /* Databricks */
    {"dckr_oat_", MASK_URL_SAFE, VARIED, 27, 40}, /* Docker */
    {"dckr_pat_", MASK_URL_SAFE, VARIED, 27, 40},
    {"discord.com/api/webhooks/", MASK_URL_SAFE | MASK_SLASH, 0, 60, 120},
    {"discordapp.com/api/webhooks/", MASK_URL_SAFE | MASK_SLASH, 0, 60, 120},
    {"doo_v1_", LOWNUM, 0, 64, 64}, /* DigitalOcean */
    {"dop_v1_", LOWNUM, 0, 64, 64},
    {"dor_v1_", LOWNUM, 0, 64, 64},
    {"dp.pt.", MASK_ALNUM, 0, 40, 44},                          /* Doppler */
    {"dt0c01.", MASK_UPPER | MASK_DIGIT | MASK_DOT, 0, 89, 89}, /* Dynatrace */
    {"eyJ", MASK_URL_SAFE | MASK_DOT, MASK_RULE_JWT, 40, 16000},
    {"figd_", MASK_URL_SAFE, VARIED, 40, 50},                       /* Figma */
    {"fm2_", MASK_ALNUM | MASK_BASE64, MASK_RULE_MIXED, 100, 4000}, /* Fly.io */
    {"fo1_", MASK_URL_SAFE, VARIED, 43, 43},
    {"ghp_", MASK_ALNUM, 0, 36, 255}, /* GitHub */
    {"gho_", MASK_ALNUM, 0, 36, 255},
    {"ghr_", MASK_ALNUM, 0, 36, 255},
    {"ghs_", MASK_ALNUM, 0, 36, 255},
    {"ghu_", MASK_ALNUM, 0, 36, 255},
    {"github_pat_", MASK_ALNUM | MASK_UNDERSCORE, 0, 40, 255},
    {"glagent-", MASK_URL_SAFE, VARIED, 50, 50}, /* GitLab */
    {"glcbt-", MASK_URL_SAFE, VARIED, 20, 40},
    {"gldt-", MASK_URL_SAFE, VARIED, 20, 40},
    {"glft-", MASK_URL_SAFE, VARIED, 20, 40},
    {"gloas-", LOWNUM, 0, 64, 64},
    {"glpat-", MASK_URL_SAFE | MASK_DOT, 0, 20, 255},
    {"glptt-", LOWNUM, HEX, 40, 40},
    {"glrt-", MASK_URL_SAFE | MASK_DOT, VARIED, 20, 255},
    {"glsoat-", MASK_URL_SAFE, VARIED, 20, 40},
    {"glc_eyJ", MASK_ALNUM | MASK_BASE64, 0, 40, 1000}, /* Grafana */
    {"glsa_", MASK_ALNUM | MASK_UNDERSCORE, 0, 41, 41},
    {"gsk_", MASK_ALNUM, MASK_RULE_MIXED, 52, 52}, /* Groq */
    {"hf_", MASK_ALNUM, MASK_RULE_MIXED, 34, 40},  /* Hugging Face */
    {"hooks.slack.com/services/", MASK_ALNUM | MASK_SLASH, 0, 30, 80},
    {"hvb.", MASK_URL_SAFE, MASK_RULE_MIXED, 90, 300}, /* Vault */
    {"hvs.", MASK_URL_SAFE, MASK_RULE_MIXED, 24, 300},
    {"lin_api_", MASK_ALNUM, 0, 40, 40},               /* Linear */
    {"lsv2_pt_", LOWNUM | MASK_UNDERSCORE, 0, 40, 60}, /* LangSmith */
    {"lsv2_sk_", LOWNUM | MASK_UNDERSCORE, 0, 40, 60},
    {"napi_", LOWNUM, 0, 64, 64},                  /* Neon */
    {"nfp_", MASK_ALNUM, MASK_RULE_MIXED, 36, 40}, /* Netlify */
    {"npm_", MASK_ALNUM, MASK_RULE_MIXED, 36, 36},
    {"ntn_", MASK_ALNUM, MASK_RULE_MIXED, 46, 46},               /* Notion */
    {"ops_eyJ", MASK_ALNUM | MASK_BASE64, 0, 200, 4000},         /* 1Password */
    {"phx_", MASK_ALNUM, MASK_RULE_MIXED, 40, 60},               /* PostHog */
    {"pnu_", MASK_ALNUM, MASK_RULE_MIXED, 36, 36},               /* Prefect */
    {"pplx-", MASK_ALNUM, MASK_RULE_MIXED, 48, 56},              /* Perplexity */
    {"pscale_oauth_", MASK_URL_SAFE | MASK_DOT, VARIED, 32, 64}, /* PlanetScale */
    {"pscale_pw_", MASK_URL_SAFE | MASK_DOT, VARIED, 32, 64},
    {"pscale_tkn_", MASK_URL_SAFE | MASK_DOT, VARIED, 32, 64},
    {"pul-", LOWNUM, HEX, 40, 40}, /* Pulumi */
    {"pypi-AgEIcHlwaS5vcmc", MASK_URL_SAFE, 0, 50, 1000},
    {"pypi-AgENdGVzdC5weXBpLm9yZ", MASK_URL_SAFE, 0, 50, 1000}, /* test.pypi.org */
    {"r8_", MASK_ALNUM, MASK_RULE_MIXED, 37, 37},               /* Replicate */
    {"rk_live_", MASK_ALNUM, 0, 16, 255},                       /* Stripe */
    {"rk_test_", MASK_ALNUM, 0, 16, 255},
    {"rubygems_", LOWNUM, HEX, 48, 48},
    {"sb_secret_", MASK_URL_SAFE, VARIED, 30, 60}, /* Supabase */
    {"sbp_", LOWNUM, HEX, 40, 40},
    {"sgp_", LOWNUM, HEX, 40, 40}, /* Sourcegraph */
    {"shippo_live_", LOWNUM, HEX, 40, 40},
    {"shpat_", MASK_ALNUM, 0, 32, 32}, /* Shopify */
    {"shpca_", MASK_ALNUM, 0, 32, 32},
    {"shppa_", MASK_ALNUM, 0, 32, 32},
    {"shpss_", MASK_ALNUM, 0, 32, 32},
    {"sk-", MASK_URL_SAFE, MASK_RULE_MIXED, 20, 255}, /* OpenAI, Anthropic, ... */
    {"sk-", LOWNUM, HEX, 32, 32},                     /* DeepSeek */
    {"sk-or-v1-", LOWNUM, HEX, 64, 64},               /* OpenRouter */
    {"sk_live_", MASK_ALNUM, 0, 16, 255},
    {"sk_test_", MASK_ALNUM, 0, 16, 255},
    {"sntrys_eyJ", MASK_ALNUM | MASK_BASE64 | MASK_PADDING | MASK_UNDERSCORE, 0, 80, 1000}, /* Sentry */
    {"sntryu_", LOWNUM, HEX, 64, 64},
    {"sq0atp-", MASK_URL_SAFE, VARIED, 22, 22}, /* Square */
    {"sq0csp-", MASK_URL_SAFE, VARIED, 43, 43},
    {"tfp_", MASK_URL_SAFE | MASK_DOT, VARIED, 59, 59},            /* Typeform */
    {"v1.0-", LOWNUM | MASK_DASH, 0, 171, 171},                    /* Cloudflare */
    {"whsec_", MASK_ALNUM | MASK_BASE64, MASK_RULE_MIXED, 32, 60}, /* webhooks: Stripe, ... */
    {"xai-", MASK_ALNUM, MASK_RULE_MIXED, 80, 80},
    {"xapp-", MASK_ALNUM | MASK_DASH, MASK_RULE_MIXED, 30, 255}, /* Slack */
    {"xkeysib-", LOWNUM | MASK_DASH, 0, 80, 90},                 /* Brevo */
    {"xoxa-", MASK_ALNUM | MASK_DASH, 0, 16, 255},
    {"xoxb-", MASK_ALNUM | MASK_DASH, 0, 16, 255},
    {"xoxc-", MASK_ALNUM | MASK_DASH, 0, 16, 255},
    {"xoxe-", MASK_ALNUM | MASK_DASH, 0, 16, 255},
    {"xoxo-", MASK_ALNUM | MASK_DASH, 0, 16, 255},
    {"xoxp-", MASK_ALNUM | MASK_DASH, 0, 16, 255},
    {"xoxr-", MASK_ALNUM | MASK_DASH, 0, 16, 255},
    {"xoxs-", MASK_ALNUM | MASK_DASH, 0, 16, 255},
    {"ya29.", MASK_URL_SAFE, 0, 30, 2000},
};
enum { MASK_RULES = sizeof mask_rule_table / sizeof *mask_rule_table, TRIPLE_BITS = 14, TRIPLES = 1 << TRIPLE_BITS };

/* A bitmap of the hashes of the three bytes that begin each rule; and the first rule, and number of rules, by first
 * byte. */
static struct {
  uint64_t triples[TRIPLES / 64];
  uint8_t first[256], n[256];
} mask_prefix_table;
static pthread_once_t mask_table_once = PTHREAD_ONCE_INIT;

static unsigned triple_of(const char *text) {
  unsigned a = (unsigned char)text[0], b = (unsigned char)text[1], c = (unsigned char)text[2];
  return ((a << 16 | b << 8 | c) * UINT32_C(2654435761)) >> (32 - TRIPLE_BITS);
}

static void add_triple(char a, char b, char c) {
  unsigned h = triple_of((const char[]){a, b, c});
  mask_prefix_table.triples[h / 64] |= UINT64_C(1) << (h % 64);
}

static void mask_make_table(void) {
  for (size_t i = MASK_RULES; i-- > 0;) {
    const char *prefix = mask_rule_table[i].prefix;
    unsigned char a = (unsigned char)prefix[0];
    if (prefix[2]) add_triple(prefix[0], prefix[1], prefix[2]);
    for (int c = 0; !prefix[2] && c < 128; c++) /* two bytes: with every byte that may follow */
      if (mask_class_of((char)c) & mask_rule_table[i].alphabet) add_triple(prefix[0], prefix[1], (char)c);
    mask_prefix_table.first[a] = (uint8_t)i;
    mask_prefix_table.n[a]++;
  }
}

static size_t mask_run_length(const char *text, size_t at, size_t len, unsigned alphabet, size_t max) {
  size_t n = 0;
  while (n <= max && at + n < len && mask_class_of(text[at + n]) & alphabet) n++;
  if (alphabet & MASK_BASE64)
    for (int i = 0; i < 2 && n && at + n < len && text[at + n] == '='; i++) n++;
  return n;
}

/* A token starts where a word of its alphabet starts, so that no byte is scanned from many starts. A \n or the like
 * before it is an escape in a string. */
static bool mask_token_begins(const char *text, size_t at, unsigned alphabet) {
  if (at == 0 || !mask_class_of(text[at]) || !(mask_class_of(text[at - 1]) & (alphabet | MASK_ALNUM | MASK_UNDERSCORE)))
    return true;
  if (alphabet & MASK_SLASH && text[at - 1] == '/') return true; /* https://hooks... */
  return at >= 2 && text[at - 2] == '\\' && strchr("nrt", text[at - 1]);
}

/* Has it upper case, lower case and digits, and `row` alphanumeric characters in a row? */
static bool mask_is_mixed(const char *text, size_t n, size_t row) {
  unsigned seen = 0;
  size_t part = 0, longest = 0;
  for (size_t i = 0; i < n; i++) {
    unsigned c = mask_class_of(text[i]);
    seen |= c;
    part = c & MASK_ALNUM ? part + 1 : 0;
    if (part > longest) longest = part;
  }
  return (seen & MASK_ALNUM) == MASK_ALNUM && longest >= row;
}

static bool is_hex(const char *text, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!(mask_class_of(text[i]) & MASK_DIGIT) && (text[i] < 'a' || text[i] > 'f')) return false;
  return true;
}

static bool mask_is_jwt(const char *text, size_t n) {
  const char *dot = memchr(text, '.', n), *second = dot ? memchr(dot + 1, '.', n - (size_t)(dot + 1 - text)) : NULL;
  if (!second || memchr(second + 1, '.', n - (size_t)(second + 1 - text))) return false;
  size_t claims = (size_t)(second - dot) - 1, signature = n - (size_t)(second + 1 - text);
  return dot - text >= 10 && claims >= 10 && memcmp(dot + 1, "eyJ", 3) == 0 && signature >= 20;
}

static bool mask_is_private64(const char *text, size_t n) {
  static const char certificate[] = "BDRVJU", public_key[] = "BQVUJM";
  return n > 6 && memcmp(text, certificate, 6) != 0 && memcmp(text, public_key, 6) != 0;
}

/* PuTTY's private part, which begins with the number of its lines; the public part before it stays. It ends at the next
 * "Private-", so that no byte is scanned from many starts. */
static size_t putty_key(const char *text, size_t at, size_t len, size_t *start) {
  static const char end[] = "Private-";
  while (at < len && mask_class_of(text[at]) & MASK_DIGIT) at++;
  const char *mark = memmem(text + at, len - at, end, sizeof end - 1);
  size_t left = len - at, n = mark ? (size_t)(mark - text) - at : left;
  bool closed = mark && left - n >= sizeof end + 2 && memcmp(mark + sizeof end - 1, "MAC", 3) == 0;
  if (!closed) n = mask_unclosed_key(text + at, n);
  *start = at;
  return n && mask_is_key_text(text + at, n, MASK_KEY_RUN) ? n : 0;
}

/* Returns the number of bytes to mask, from *start. */
static size_t mask_match_rule(const mask_rule *r, const char *text, size_t at, size_t len, size_t *start) {
  size_t prefix = strlen(r->prefix);
  if (text[at + 1] != r->prefix[1] || len - at < prefix + r->min || memcmp(text + at, r->prefix, prefix) != 0) return 0;
  if (!(r->flags & INSIDE) && !mask_token_begins(text, at, r->alphabet)) return 0;
  size_t from = at + prefix;
  if (r->flags & PUTTY) return putty_key(text, from, len, start);
  if (r->flags & MASK_RULE_VALUE) {
    size_t max = from + 8;
    while (from < len && from < max && strchr(" \t\"':=>,", text[from]) && text[from]) from++;
  }
  size_t n = mask_run_length(text, from, len, r->alphabet, r->max);
  if (n < r->min || n > r->max) return 0;
  if (r->flags & (MASK_RULE_MIXED | VARIED) && !mask_is_mixed(text + from, n, r->flags & MASK_RULE_MIXED ? 16 : 1))
    return 0;
  if (r->flags & HEX && !is_hex(text + from, n)) return 0;
  if (r->flags & MASK_RULE_JWT && !mask_is_jwt(text + from, n)) return 0;
  if (r->flags & MASK_RULE_KEY64 && !mask_is_private64(text + from, n)) return 0;
  /* Part of a longer word is something else. AWS's documentation has AKIAIOSFODNN7EXAMPLE. */
  if (from + n < len && mask_class_of(text[from + n]) & (MASK_ALNUM | MASK_UNDERSCORE)) return 0;
  if (n >= 7 && memcmp(text + from + n - 7, "EXAMPLE", 7) == 0) return 0;
  *start = from;
  return n;
}

static size_t mask_tokens(char *text, size_t len) {
  size_t found = 0;
  for (size_t i = 0; i + 2 < len; i++) {
    unsigned char a = (unsigned char)text[i];
    unsigned triple = triple_of(text + i);
    if (!(mask_prefix_table.triples[triple / 64] >> (triple % 64) & 1)) continue;
    for (size_t k = mask_prefix_table.first[a], end = k + mask_prefix_table.n[a]; k < end; k++) {
      size_t start, n = mask_match_rule(&mask_rule_table[k], text, i, len, &start);
      if (!n) continue;
      if (mask_rule_table[k].flags & PUTTY)
        mask_key(text + start, n);
      else
        memset(text + start, MASK_CHAR, n);
      found++;
      i = start + n - 1;
      break;
    }
  }
  return found;
}

/* ---- PEM ---- */

enum { MASK_LABEL_BYTES = 64 };

static bool has_label(const char *name, size_t len) {
  static const char *const labels[] = {"PRIVATE KEY", "OpenVPN Static key"};
  for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
    if (memmem(name, len, labels[i], strlen(labels[i]))) return true;
  return false;
}

static size_t mask_pem(char *text, size_t len) {
  static const char begin[] = "-----BEGIN ", dashes[] = "-----";
  size_t found = 0, at = 0;
  char *head;
  while (at < len && (head = memmem(text + at, len - at, begin, sizeof begin - 1)) != NULL) {
    size_t left = len - (size_t)(head - text) - (sizeof begin - 1);
    char *name = head + sizeof begin - 1;
    char *close = memmem(name, left < MASK_LABEL_BYTES ? left : MASK_LABEL_BYTES, dashes, sizeof dashes - 1);
    at = (size_t)(name - text);
    if (!close || !has_label(name, (size_t)(close - name))) continue;
    char *body = close + sizeof dashes - 1;
    left = len - (size_t)(body - text);
    const char *mark = memmem(body, left, dashes, sizeof dashes - 1);
    size_t n = mark ? (size_t)(mark - body) : left;
    bool closed = mark && left - n >= 9 && memcmp(mark, "-----END ", 9) == 0;
    if (!closed) n = mask_unclosed_key(body, n);
    at = (size_t)(body - text) + n;
    if (n == 0 || !mask_is_key_text(body, n, MASK_KEY_RUN)) continue;
    mask_key(body, n);
    found++;
  }
  return found;
}

size_t mask_secrets(char *text, size_t len) {
  pthread_once(&mask_table_once, mask_make_table);
  return mask_pem(text, len) + mask_tokens(text, len);
}

size_t mask_fragment(char *text, size_t len) {
  size_t found = mask_secrets(text, len);
  for (size_t at = 0; at < len;) {
    const char *eol = memchr(text + at, '\n', len - at);
    size_t n = eol ? (size_t)(eol - text) - at : len - at;
    if (mask_is_key_text(text + at, n, KEY_LINE)) {
      mask_key(text + at, n);
      found++;
    }
    at += n + 1;
  }
  return found;
}
