/* mask.c - see mask.h. The rules are data; a scan goes once over the text and tries those that begin with the three bytes at hand. */
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

/* ---- Private keys ---- */

enum { KEY_RUN = 16, KEY_LINE = 40 };

static bool is_key_char(char c) { return class_of(c) & (ALNUM | BASE64 | PADDING); }

/* Is most of it base64, in runs of at least `least`? Code between two constants that name the armour is not. */
static bool is_key_text(const char *text, size_t len, size_t least) {
  size_t solid = 0, key = 0, run = 0;
  for (size_t i = 0; i <= len; i++) {
    if (i < len && is_key_char(text[i])) {
      run++;
      continue;
    }
    solid += run + (i < len && (unsigned char)text[i] > ' ');
    if (run >= least) key += run;
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
    if (is_key_text(text + at, n, KEY_RUN)) end = at + n;
    else if (line > 3) break;
    at += n + 1;
  }
  return end;
}

/* ---- Tokens ---- */

enum {
  MIXED = 1,   /* upper case, lower case, digits, and 16 of them in a row: rules out words joined by hyphens */
  VALUE = 2,   /* the prefix is the name of a setting: quotes, colons, ... may stand between it and its value */
  JWT = 4,     /* three parts with dots, the second one JSON too */
  KEY64 = 8,   /* base64 of a PEM block that is no certificate and no public key */
  VARIED = 16, /* upper case, lower case and digits */
  HEX = 32,    /* digits and a to f alone */
  INSIDE = 64, /* the prefix stands in the middle of the token */
  PUTTY = 128, /* a number follows, and lines of base64 up to "Private-MAC" */
};

/* `least` to `most` bytes of the alphabet follow the prefix, and nothing of it comes before. Those that begin with the same byte stand together. */
typedef struct rule {
  const char *prefix;
  unsigned alphabet, flags;
  size_t least, most;
} rule;

#define LOWNUM (LOWER | DIGIT)
static const rule rules[] = {
    {".atlasv1.", URL_SAFE, INSIDE, 60, 80},                        /* HCP Terraform */
    {":_authToken=", URL_SAFE | BASE64 | DOT, 0, 8, 1000},          /* npm */
    {"AGE-SECRET-KEY-1", UPPER | DIGIT, 0, 50, 64},
    {"AIza", URL_SAFE, 0, 35, 35},                                  /* Google */
    {"AKIA", UPPER | DIGIT, 0, 16, 16},                             /* AWS */
    {"ASIA", UPPER | DIGIT, 0, 16, 16},
    {"AKCp", ALNUM, MIXED, 69, 69},                                 /* JFrog */
    {"ATATT3", URL_SAFE | PADDING, MIXED, 100, 300},                /* Atlassian */
    {"ATBB", ALNUM, MIXED, 32, 32},                                 /* Bitbucket */
    {"AWS_SECRET_ACCESS_KEY", ALNUM | BASE64, VALUE, 40, 40},
    {"AccountKey=", ALNUM | BASE64, 0, 40, 100},                    /* Azure */
    {"CCIPAT_", ALNUM | UNDERSCORE, VARIED, 60, 70},                /* CircleCI */
    {"CFPAT-", URL_SAFE, VARIED, 43, 43},                           /* Contentful */
    {"CLOJARS_", LOWNUM, 0, 60, 60},
    {"EZAK", ALNUM, MIXED, 54, 54},                                 /* EasyPost */
    {"GOCSPX-", URL_SAFE, 0, 24, 40},
    {"GR1348941", URL_SAFE, VARIED, 20, 20},                        /* runners of GitLab */
    {"HRKU-AA", URL_SAFE, 0, 58, 58},                               /* Heroku */
    {"LS0tLS1CRUdJTi", ALNUM | BASE64, KEY64, 100, 100000},         /* "-----BEGIN " in base64: kubeconfig, CI variables */
    {"LTAI", ALNUM, MIXED, 20, 20},                                 /* Alibaba Cloud */
    {"NRAK-", UPPER | DIGIT, 0, 27, 27},                            /* New Relic */
    {"PMAK-", LOWNUM | DASH, 0, 59, 59},                            /* Postman */
    {"PrivateKey", ALNUM | BASE64, VALUE | MIXED, 44, 44},          /* WireGuard */
    {"Private-Lines: ", 0, PUTTY, 0, 0},
    {"SG.", URL_SAFE | DOT, MIXED, 60, 75},                         /* SendGrid */
    {"SK", LOWNUM, HEX, 32, 32},                                    /* Twilio */
    {"SecretAccessKey", ALNUM | BASE64, VALUE, 40, 40},
    {"SharedAccessKey=", ALNUM | BASE64, 0, 40, 100},
    {"aio_", ALNUM, MIXED, 28, 28},                                 /* Adafruit */
    {"aws_secret_access_key", ALNUM | BASE64, VALUE, 40, 40},
    {"bkua_", LOWNUM, HEX, 40, 40},                                 /* Buildkite */
    {"dapi", LOWNUM, HEX, 32, 32},                                  /* Databricks */
    {"dckr_oat_", URL_SAFE, VARIED, 27, 40},                        /* Docker */
    {"dckr_pat_", URL_SAFE, VARIED, 27, 40},
    {"discord.com/api/webhooks/", URL_SAFE | SLASH, 0, 60, 120},
    {"discordapp.com/api/webhooks/", URL_SAFE | SLASH, 0, 60, 120},
    {"doo_v1_", LOWNUM, 0, 64, 64},                                 /* DigitalOcean */
    {"dop_v1_", LOWNUM, 0, 64, 64},
    {"dor_v1_", LOWNUM, 0, 64, 64},
    {"dp.pt.", ALNUM, 0, 40, 44},                                   /* Doppler */
    {"dt0c01.", UPPER | DIGIT | DOT, 0, 89, 89},                    /* Dynatrace */
    {"eyJ", URL_SAFE | DOT, JWT, 40, 16000},
    {"figd_", URL_SAFE, VARIED, 40, 50},                            /* Figma */
    {"fm2_", ALNUM | BASE64, MIXED, 100, 4000},                     /* Fly.io */
    {"fo1_", URL_SAFE, VARIED, 43, 43},
    {"ghp_", ALNUM, 0, 36, 255},                                    /* GitHub */
    {"gho_", ALNUM, 0, 36, 255},
    {"ghr_", ALNUM, 0, 36, 255},
    {"ghs_", ALNUM, 0, 36, 255},
    {"ghu_", ALNUM, 0, 36, 255},
    {"github_pat_", ALNUM | UNDERSCORE, 0, 40, 255},
    {"glagent-", URL_SAFE, VARIED, 50, 50},                         /* GitLab */
    {"glcbt-", URL_SAFE, VARIED, 20, 40},
    {"gldt-", URL_SAFE, VARIED, 20, 40},
    {"glft-", URL_SAFE, VARIED, 20, 40},
    {"gloas-", LOWNUM, 0, 64, 64},
    {"glpat-", URL_SAFE | DOT, 0, 20, 255},
    {"glptt-", LOWNUM, HEX, 40, 40},
    {"glrt-", URL_SAFE | DOT, VARIED, 20, 255},
    {"glsoat-", URL_SAFE, VARIED, 20, 40},
    {"glc_eyJ", ALNUM | BASE64, 0, 40, 1000},                       /* Grafana */
    {"glsa_", ALNUM | UNDERSCORE, 0, 41, 41},
    {"gsk_", ALNUM, MIXED, 52, 52},                                 /* Groq */
    {"hf_", ALNUM, MIXED, 34, 40},                                  /* Hugging Face */
    {"hooks.slack.com/services/", ALNUM | SLASH, 0, 30, 80},
    {"hvb.", URL_SAFE, MIXED, 90, 300},                             /* Vault */
    {"hvs.", URL_SAFE, MIXED, 24, 300},
    {"lin_api_", ALNUM, 0, 40, 40},                                 /* Linear */
    {"lsv2_pt_", LOWNUM | UNDERSCORE, 0, 40, 60},                   /* LangSmith */
    {"lsv2_sk_", LOWNUM | UNDERSCORE, 0, 40, 60},
    {"napi_", LOWNUM, 0, 64, 64},                                   /* Neon */
    {"nfp_", ALNUM, MIXED, 36, 40},                                 /* Netlify */
    {"npm_", ALNUM, MIXED, 36, 36},
    {"ntn_", ALNUM, MIXED, 46, 46},                                 /* Notion */
    {"ops_eyJ", ALNUM | BASE64, 0, 200, 4000},                      /* 1Password */
    {"phx_", ALNUM, MIXED, 40, 60},                                 /* PostHog */
    {"pnu_", ALNUM, MIXED, 36, 36},                                 /* Prefect */
    {"pplx-", ALNUM, MIXED, 48, 56},                                /* Perplexity */
    {"pscale_oauth_", URL_SAFE | DOT, VARIED, 32, 64},              /* PlanetScale */
    {"pscale_pw_", URL_SAFE | DOT, VARIED, 32, 64},
    {"pscale_tkn_", URL_SAFE | DOT, VARIED, 32, 64},
    {"pul-", LOWNUM, HEX, 40, 40},                                  /* Pulumi */
    {"pypi-AgEIcHlwaS5vcmc", URL_SAFE, 0, 50, 1000},
    {"pypi-AgENdGVzdC5weXBpLm9yZ", URL_SAFE, 0, 50, 1000},          /* test.pypi.org */
    {"r8_", ALNUM, MIXED, 37, 37},                                  /* Replicate */
    {"rk_live_", ALNUM, 0, 16, 255},                                /* Stripe */
    {"rk_test_", ALNUM, 0, 16, 255},
    {"rubygems_", LOWNUM, HEX, 48, 48},
    {"sb_secret_", URL_SAFE, VARIED, 30, 60},                       /* Supabase */
    {"sbp_", LOWNUM, HEX, 40, 40},
    {"sgp_", LOWNUM, HEX, 40, 40},                                  /* Sourcegraph */
    {"shippo_live_", LOWNUM, HEX, 40, 40},
    {"shpat_", ALNUM, 0, 32, 32},                                   /* Shopify */
    {"shpca_", ALNUM, 0, 32, 32},
    {"shppa_", ALNUM, 0, 32, 32},
    {"shpss_", ALNUM, 0, 32, 32},
    {"sk-", URL_SAFE, MIXED, 20, 255},                              /* OpenAI, Anthropic, ... */
    {"sk-", LOWNUM, HEX, 32, 32},                                   /* DeepSeek */
    {"sk-or-v1-", LOWNUM, HEX, 64, 64},                             /* OpenRouter */
    {"sk_live_", ALNUM, 0, 16, 255},
    {"sk_test_", ALNUM, 0, 16, 255},
    {"sntrys_eyJ", ALNUM | BASE64 | PADDING | UNDERSCORE, 0, 80, 1000}, /* Sentry */
    {"sntryu_", LOWNUM, HEX, 64, 64},
    {"sq0atp-", URL_SAFE, VARIED, 22, 22},                          /* Square */
    {"sq0csp-", URL_SAFE, VARIED, 43, 43},
    {"tfp_", URL_SAFE | DOT, VARIED, 59, 59},                       /* Typeform */
    {"v1.0-", LOWNUM | DASH, 0, 171, 171},                          /* Cloudflare */
    {"whsec_", ALNUM | BASE64, MIXED, 32, 60},                      /* webhooks of Stripe and others */
    {"xai-", ALNUM, MIXED, 80, 80},
    {"xapp-", ALNUM | DASH, MIXED, 30, 255},                        /* Slack */
    {"xkeysib-", LOWNUM | DASH, 0, 80, 90},                         /* Brevo */
    {"xoxa-", ALNUM | DASH, 0, 16, 255},
    {"xoxb-", ALNUM | DASH, 0, 16, 255},
    {"xoxc-", ALNUM | DASH, 0, 16, 255},
    {"xoxe-", ALNUM | DASH, 0, 16, 255},
    {"xoxo-", ALNUM | DASH, 0, 16, 255},
    {"xoxp-", ALNUM | DASH, 0, 16, 255},
    {"xoxr-", ALNUM | DASH, 0, 16, 255},
    {"xoxs-", ALNUM | DASH, 0, 16, 255},
    {"ya29.", URL_SAFE, 0, 30, 2000},
};
enum { RULES = sizeof rules / sizeof *rules, TRIPLE_BITS = 14, TRIPLES = 1 << TRIPLE_BITS };

/* Which three bytes begin a rule, by their hash, and the first rule of each first byte. */
static struct {
  uint64_t triples[TRIPLES / 64];
  uint8_t first[256], n[256];
} table;
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static unsigned triple_of(const char *text) {
  unsigned a = (unsigned char)text[0], b = (unsigned char)text[1], c = (unsigned char)text[2];
  return ((a << 16 | b << 8 | c) * UINT32_C(2654435761)) >> (32 - TRIPLE_BITS);
}

static void add_triple(char a, char b, char c) {
  unsigned h = triple_of((const char[]){a, b, c});
  table.triples[h / 64] |= UINT64_C(1) << (h % 64);
}

static void make_table(void) {
  for (size_t i = RULES; i-- > 0;) {
    const char *prefix = rules[i].prefix;
    unsigned char a = (unsigned char)prefix[0];
    if (prefix[2]) add_triple(prefix[0], prefix[1], prefix[2]);
    for (int c = 0; !prefix[2] && c < 128; c++) /* of two bytes: with any that may follow */
      if (class_of((char)c) & rules[i].alphabet) add_triple(prefix[0], prefix[1], (char)c);
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

/* Upper case, lower case and digits, `row` of them in a row. */
static bool is_mixed(const char *text, size_t n, size_t row) {
  unsigned seen = 0;
  size_t part = 0, longest = 0;
  for (size_t i = 0; i < n; i++) {
    unsigned c = class_of(text[i]);
    seen |= c;
    part = c & ALNUM ? part + 1 : 0;
    if (part > longest) longest = part;
  }
  return (seen & ALNUM) == ALNUM && longest >= row;
}

static bool is_hex(const char *text, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!(class_of(text[i]) & DIGIT) && (text[i] < 'a' || text[i] > 'f')) return false;
  return true;
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

/* PuTTY's private part, which begins with the number of its lines; the public part before it stays. The next "Private-" ends it, so that no
 * byte is looked at from many beginnings. */
static size_t putty_key(const char *text, size_t at, size_t len, size_t *start) {
  static const char end[] = "Private-";
  while (at < len && class_of(text[at]) & DIGIT) at++;
  const char *mark = memmem(text + at, len - at, end, sizeof end - 1);
  size_t left = len - at, n = mark ? (size_t)(mark - text) - at : left;
  bool closed = mark && left - n >= sizeof end + 2 && memcmp(mark + sizeof end - 1, "MAC", 3) == 0;
  if (!closed) n = open_key(text + at, n);
  *start = at;
  return n && is_key_text(text + at, n, KEY_RUN) ? n : 0;
}

/* The bytes to mask: from *start, as many as are returned. */
static size_t match(const rule *r, const char *text, size_t at, size_t len, size_t *start) {
  size_t prefix = strlen(r->prefix);
  if (text[at + 1] != r->prefix[1] || len - at < prefix + r->least || memcmp(text + at, r->prefix, prefix) != 0) return 0;
  if (!(r->flags & INSIDE) && !begins(text, at, r->alphabet)) return 0;
  size_t from = at + prefix;
  if (r->flags & PUTTY) return putty_key(text, from, len, start);
  if (r->flags & VALUE) {
    size_t most = from + 8;
    while (from < len && from < most && strchr(" \t\"':=>,", text[from]) && text[from]) from++;
  }
  size_t n = run_of(text, from, len, r->alphabet, r->most);
  if (n < r->least || n > r->most) return 0;
  if (r->flags & (MIXED | VARIED) && !is_mixed(text + from, n, r->flags & MIXED ? 16 : 1)) return 0;
  if (r->flags & HEX && !is_hex(text + from, n)) return 0;
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
  for (size_t i = 0; i + 2 < len; i++) {
    unsigned char a = (unsigned char)text[i];
    unsigned triple = triple_of(text + i);
    if (!(table.triples[triple / 64] >> (triple % 64) & 1)) continue;
    for (size_t k = table.first[a], end = k + table.n[a]; k < end; k++) {
      size_t start, n = match(&rules[k], text, i, len, &start);
      if (!n) continue;
      if (rules[k].flags & PUTTY) mask_key(text + start, n);
      else memset(text + start, MASK_CHAR, n);
      found++;
      i = start + n - 1;
      break;
    }
  }
  return found;
}

/* ---- PEM ---- */

enum { LABEL_BYTES = 64 };

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
    char *name = head + sizeof begin - 1, *close = memmem(name, left < LABEL_BYTES ? left : LABEL_BYTES, dashes, sizeof dashes - 1);
    at = (size_t)(name - text);
    if (!close || !has_label(name, (size_t)(close - name))) continue;
    char *body = close + sizeof dashes - 1;
    left = len - (size_t)(body - text);
    const char *mark = memmem(body, left, dashes, sizeof dashes - 1);
    size_t n = mark ? (size_t)(mark - body) : left;
    bool closed = mark && left - n >= 9 && memcmp(mark, "-----END ", 9) == 0;
    if (!closed) n = open_key(body, n);
    at = (size_t)(body - text) + n;
    if (n == 0 || !is_key_text(body, n, KEY_RUN)) continue;
    mask_key(body, n);
    found++;
  }
  return found;
}

size_t lode__mask(char *text, size_t len) {
  pthread_once(&table_once, make_table);
  return mask_pem(text, len) + mask_tokens(text, len);
}

size_t lode__mask_piece(char *text, size_t len) {
  size_t found = lode__mask(text, len);
  for (size_t at = 0; at < len;) {
    const char *eol = memchr(text + at, '\n', len - at);
    size_t n = eol ? (size_t)(eol - text) - at : len - at;
    if (is_key_text(text + at, n, KEY_LINE)) {
      mask_key(text + at, n);
      found++;
    }
    at += n + 1;
  }
  return found;
}
