/* test_mask.c - secrets inside text: every shape is found, what only looks like one is not, and nothing else changes. */
#include "code/mask.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Written in two parts, so that this file has no secret in it. */
#define KEY_BODY "MIIEpAIBAAKCAQEA7bq0h3Jd8sKz4Lr1XyT9mPq2WvN5cFgHjKlZxCvBnM8QwErT\nyUiOpAsDfGhJkLzXcVbNm1234567890abcdefghijklmnopqrstuvwxyzABCDEFG\nhIjK=="
#define BEGIN_KEY "-----BEGIN RSA " "PRIVATE KEY-----"
#define END_KEY "-----END RSA " "PRIVATE KEY-----"

static const struct {
  const char *before, *secret, *after;
} tokens[] = {
    {"id = \"AKIA", "QYLPMN5HHHFPZAM2", "\""},
    {"ASIA", "QYLPMN5HHHFPZAM2", "\n"},
    {"aws_secret_access_key = ", "wJalrXUtnFEMIK7MDENGbPxRfiCYzzzzzzzzKEYq", "\n"},
    {"\"SecretAccessKey\": \"", "wJalrXUtnFEMIK7MDENG/bPxRfiCYzzzzzzzz+Ay", "\""},
    {"export AWS_SECRET_ACCESS_KEY=", "wJalrXUtnFEMIK7MDENGbPxRfiCYzzzzzzzzKEYq", ""},
    {"ghp_", "16C7e42F292c6912E7710c838347Ae178B4a", " "},
    {"https://x:gho_", "16C7e42F292c6912E7710c838347Ae178B4a", "@github.com"},
    {"\"text\\nghs_", "16C7e42F292c6912E7710c838347Ae178B4a", "\""},
    {"github_pat_", "11ABCDEFG0abcdefghijklmn_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefghijklmnopqrstuvwxy", ";"},
    {"glpat-", "xYz12AbC34dEf56GhI78", "\n"},
    {"xoxb-", "123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx", "'"},
    {"https://hooks.slack.com/services/", "T00000000/B00000000/abcdefghijklmnopqrstuvwx", "\n"},
    {"OPENAI_API_KEY=sk-", "proj-Abcd1234Efgh5678Ijkl9012Mnop3456Qrst7890Uvwx", "\n"},
    {"key: sk-", "ant-api03-Abcd1234Efgh5678Ijkl9012Mnop3456Qrst7890UvwxAA", "\n"},
    {"sk_live_", "4eC39HqLyjWDarjtT1zdp7dc", "\""},
    {"AIza", "SyD3xAmPl3xAmPl3xAmPl3xAmPl3xAmPl3x", "\""},
    {"//registry.npmjs.org/:_authToken=", "npm0123456789abcdef", "\n"},
    {"npm_", "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5", "\n"},
    {"hf_", "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeF12", "\""},
    {"SG.", "aBcDeFgHiJkLmNoPqRsTuV.aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789aBcDeF1", "\""},
    {"dop_v1_", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "\""},
    {"Bearer eyJ", "hbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c", "\n"},
    {"AccountKey=", "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==", ";"},
    {"export KEY=LS0tLS1CRUdJTi", "BSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlFcEFJQkFBS0NBUUVBN2JxMGgzSmQ4c0t6NExyMVh5VDltUHEyV3ZONWNGZ0hqS2xaeEN2Qm5NOFF3RXJU==", "\n"},
    {"client-key-data: LS0tLS1CRUdJTi",
     "BSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlFcEFJQkFBS0NBUUVBN2JxMGgzSmQ4c0t6NExyMVh5VDltUHEyV3ZONWNGZ0hqS2xaeEN2Qm5NOFF3RXJU", "\n"},
};

static const char *const harmless[] = {
    "see AKIAIOSFODNN7EXAMPLE in the manual",
    "AKIA is a prefix, AKIAQYLPMN5HHHFPZAM is short, XAKIAQYLPMN5HHHFPZAM2 is a word, AKIAQYLPMN5HHHFPZAM2x too",
    "class=\"sk-folding-cube sk-circle-fade-dot-with-a-very-long-name\" task-management-of-the-very-long-kind-1A",
    "risk-Aa1Aa1Aa1Aa1Aa1Aa1Aa1Aa1Aa1Aa1Aa1Aa1",
    "ghp_ is GitHub's; regex ghp_[A-Za-z0-9]{36}",
    "if (!eyJ) return eyJhbGciOiJIUzI1NiJ9;",
    "//registry.npmjs.org/:_authToken=${NPM_TOKEN}",
    "this._authToken = readTheTokenFromSomewhereElse();",
    "aws_secret_access_key = os.environ[\"AWS_SECRET_ACCESS_KEY\"]",
    "certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUM1ekNDQWMrZ0F3SUJBZ0lCQURBTkJna3Foa2lHOXcwQkFRc0ZBREFWTVJNd0VRWURWUVFE",
    "const begin = \"-----BEGIN RSA " "PRIVATE KEY-----\";\nconst end = \"-----END RSA " "PRIVATE KEY-----\";\nreturn text.slice(begin.length);\n",
    ("looks for \"-----BEGIN RSA " "PRIVATE KEY-----\" in the text of a file, as a scanner of secrets does\n"),
    "-----BEGIN CERTIFICATE-----\nMIIEpAIBAAKCAQEA7bq0h3Jd8sKz4Lr1XyT9mPq2WvN5cFgHjKlZxCvBnM8QwErT\n-----END CERTIFICATE-----\n",
    "-----BEGIN PUBLIC KEY-----\nMIIEpAIBAAKCAQEA7bq0h3Jd8sKz4Lr1XyT9mPq2WvN5cFgHjKlZxCvBnM8QwErT\n-----END PUBLIC KEY-----\n",
};

/* Masked in place: the same length, the same lines; bytes that differ became '*'. */
static size_t masked(const char *text, size_t len, char *out) {
  memcpy(out, text, len);
  size_t n = lode__mask(out, len);
  for (size_t i = 0; i < len; i++) CHECKF(out[i] == text[i] || (out[i] == '*' && text[i] != '\n' && text[i] != '\r'), "byte %zu", i);
  return n;
}

TEST(tokens_of_every_shape_are_masked) {
  for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
    char text[600], out[600];
    int len = snprintf(text, sizeof text, "%s%s%s", tokens[i].before, tokens[i].secret, tokens[i].after);
    size_t n = masked(text, (size_t)len, out), before = strlen(tokens[i].before), secret = strlen(tokens[i].secret);
    out[len] = '\0';
    CHECKF(n == 1, "%zu: %s", i, out);
    for (size_t k = 0; k < secret; k++) CHECKF(out[before + k] == '*', "%zu: %s", i, out);
    CHECKF(memcmp(out, text, before) == 0 && strcmp(out + before + secret, tokens[i].after) == 0, "%zu: %s", i, out);
    CHECKF(lode__mask(out, (size_t)len) == 0, "%zu is found again: %s", i, out);
  }
}

TEST(what_only_looks_like_a_secret_stays) {
  for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++) {
    char out[600];
    size_t len = strlen(harmless[i]), n = masked(harmless[i], len, out);
    out[len] = '\0';
    CHECKF(n == 0 && strcmp(out, harmless[i]) == 0, "%zu: %s", i, out);
  }
}

/* The key as it stands in files of all kinds: each line of it is gone, the code around it stays. */
TEST(private_keys_are_masked_wherever_they_stand) {
  static const struct {
    const char *open, *line, *close;
  } forms[] = {
      {"key: |\n  " BEGIN_KEY "\n", "  %s\n", "  " END_KEY "\nport: 80\n"},
      {"static const char key[] = \"" BEGIN_KEY "\\n\"\n", "    \"%s\\n\"\n", "    \"" END_KEY "\\n\";\nint port;\n"},
      {"{\"private_key\": \"" BEGIN_KEY "\\n", "%s\\n", END_KEY "\\n\", \"port\": 80}\n"},
      {"var k = '" BEGIN_KEY "' +\n", "  '%s' +\n", "  '" END_KEY "';\nport = 80;\n"},
      {"# " BEGIN_KEY "\r\n# Proc-Type: 4,ENCRYPTED\r\n", "# %s\r\n", "# " END_KEY "\r\nport = 80\r\n"},
      {BEGIN_KEY "\n", "%s\n", "this file goes on with port 80 and no end of the key\n"},
      {"a\n" BEGIN_KEY "\n", "%s\n", ""},
  };
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    char text[2000], out[2000], lines[] = KEY_BODY, *rest = lines;
    size_t len = (size_t)snprintf(text, sizeof text, "%s", forms[i].open);
    for (char *line; (line = strsep(&rest, "\n")) != NULL;)
      if (strlen(line) > 10 || i < 5) {
        char format[40];
        snprintf(format, sizeof format, "%s", forms[i].line);
        char *at = strstr(format, "%s");
        len += (size_t)snprintf(text + len, sizeof text - len, "%.*s%s%s", (int)(at - format), format, line, at + 2);
      }
    len += (size_t)snprintf(text + len, sizeof text - len, "%s", forms[i].close);
    CHECKF(masked(text, len, out) == 1, "%zu: %s", i, text);
    out[len] = '\0';
    CHECKF(!strstr(out, "MIIE") && !strstr(out, "yUiO") && !strstr(out, "hIjK") && !strstr(out, "mPq2WvN5"), "%zu: %s", i, out);
    CHECKF(strncmp(out, forms[i].open, 20) == 0 && strcmp(out + len - strlen(forms[i].close), forms[i].close) == 0, "%zu: %s", i, out);
    CHECKF(lode__mask(out, len) == 0, "%zu is found again: %s", i, out);
  }
}

/* ---- Random texts ---- */

static size_t put_noise(char *out, size_t room) {
  static const char *const words[] = {"-----BEGIN ", "PRIVATE KEY-----", "-----END ", "-----", "ghp_", "sk-", "eyJ", ".eyJ", "AKIA", "\\n", "\n", "\r\n", " ",
                                      "\"", "=", "xoxb-", "LS0tLS1CRUdJTi", "aws_secret_access_key", "Zm9vYmFyYmF6cXV4", "A1b2", "é", "\xff", "_", "/*"};
  size_t n = 0;
  while (n < room && test_rand() % 200) {
    const char *w = words[test_rand() % (sizeof words / sizeof *words)];
    size_t len = strlen(w);
    if (test_rand() % 4 == 0) out[n++] = (char)test_rand();
    else if (n + len <= room) {
      memcpy(out + n, w, len);
      n += len;
    } else break;
  }
  return n;
}

TEST(random_texts_keep_their_length_and_lines_and_lose_their_secrets) {
  enum { NOISE = 1500 };
  static char text[2 * NOISE + 700], out[sizeof text];
  test_srand(test_seed());
  for (int round = 0; round < 20000; round++) {
    size_t i = test_rand() % (sizeof tokens / sizeof *tokens), len = put_noise(text, NOISE);
    text[len++] = '\n'; /* a place where a token can begin */
    len += (size_t)snprintf(text + len, 700, "%s%s%s", tokens[i].before, tokens[i].secret, tokens[i].after);
    text[len++] = '\n';
    len += put_noise(text + len, NOISE);
    size_t n = masked(text, len, out);
    CHECKF(n >= 1, "token %zu is not found in round %d", i, round);
    CHECKF(!memmem(out, len, tokens[i].secret, strlen(tokens[i].secret)), "token %zu is there in round %d", i, round);
    CHECKF(lode__utf8_valid(text, len) <= lode__utf8_valid(out, len), "round %d: no longer UTF-8", round);
  }
}

/* Texts made to take long: the number of bytes that rules look at is linear, so eight times the text is no more than a few times that. */
TEST(texts_made_to_take_long_do_not) {
  static const char *const units[] = {"sk-", "eyJ", "eyJ.", "-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "ghp_", "\\nsk-", "a", "AKIA", "-----BEGIN PRIVATE KEY-----\nZm9vYmFyYmF6cXV4\n",
                                      "LS0tLS1CRUdJTi", "LS0tLS1CRUdJTi=", "LS0tLS1CRUdJTi/", "\\neyJ", "hooks.slack.com/services/"};
  size_t len = LODE__ASAN ? 256u << 10 : 8u << 20; /* the sanitizer looks at all that memmem might read, each time */
  char *text = malloc(len);
  CHECK(text != NULL);
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    size_t n = strlen(units[i]);
    for (size_t at = 0; at < len; at++) text[at] = units[i][at % n];
    (void)lode__mask(text, len); /* quadratic, it would take hours: the test's time limit decides */
  }
  free(text);
}
