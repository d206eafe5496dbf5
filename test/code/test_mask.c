/* SPDX-License-Identifier: Apache-2.0 */
/* test_mask.c - secrets inside text: every shape is found, what only looks like one is not, and nothing else changes.
 */
#include "scan/mask.h"
#include "indexer/index_stamp.h"
#include "support/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Written in two parts, so that this file has no secret in it. */
#define KEY_BODY                                                                                                       \
  "MIIEpAIBAAKCAQEA7bq0h3Jd8sKz4Lr1XyT9mPq2WvN5cFgHjKlZxCvBnM8QwErT\nyUiOpAsDfGhJkLzXcVbNm1234567890abcdefghijklmnopq" \
  "rstuvwxyzABCDEFG\nhIjK=="
#define BEGIN_KEY                                                                                                      \
  "-----BEGIN RSA "                                                                                                    \
  "PRIVATE KEY-----"
#define END_KEY                                                                                                        \
  "-----END RSA "                                                                                                      \
  "PRIVATE KEY-----"

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
    {"Bearer eyJ",
     "hbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c", "\n"},
    {"AccountKey=", "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==", ";"},
    {"export KEY=LS0tLS1CRUdJTi",
     "BSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlFcEFJQkFBS0NBUUVBN2JxMGgzSmQ4c0t6NExyMVh5VDltUHEyV3ZONWNGZ0hqS2xaeEN2Qm5NOFF3RXJ"
     "U==",
     "\n"},
    {"client-key-data: LS0tLS1CRUdJTi",
     "BSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlFcEFJQkFBS0NBUUVBN2JxMGgzSmQ4c0t6NExyMVh5VDltUHEyV3ZONWNGZ0hqS2xaeEN2Qm5NOFF3RXJ"
     "U",
     "\n"},
    {"TF_TOKEN=aBcDeFgHiJkLmN.atlasv1.", "kTyGJMuHbEL31IeL2HPcHyGcFRl1SPnXNYvMIHa_2o76umfXfKm_r5kJP1VrT-1FV1y", "\n"},
    {"AKCp", "jky40UVsWmflzdE1F8ResqEDusTpkr0cStY4qWB8dWKnHfDNxSIvPZZ63fFKcZjR4I0b3", "\""},
    {"ATATT3",
     "rj1twdTKWTddB-XhkAS1voQG6yyzyN9zHYIa4UOrGNATMuDJawTgsu8PO-799nKSNrh9UCauSDmLhuVtcqcYezdZ_tDDj8hYs5su"
     "KcNd8Zra9A9sKPxZ9W3qLy7zKUVQDT7S8sTQCBNR3YbDgbleph1QHt61QTC4XATWS8PHp9NHfYjFMQ7r=1A2B3C4D",
     "'"},
    {"ATBB", "Bw56EcUngmgMsRcgizeg8Psh4487Q7j5", " "},
    {"CCIPAT_", "8M1cIaHZcUEqPbENqTyH5x_4b484e73cf575dcad6ba2b0aee0ca92373288158", "\n"},
    {"CFPAT-", "yQ2hzT_pLjHX2JiCLhKcIhP6Br1iQFeOUhGXZnnaJ7q", "\""},
    {"CLOJARS_", "lrwbqcab69m64p2g158z6tnovmizwdiaeq1kdfy6spsc3lkr2aqxv9upctnw", "\""},
    {"EZAK", "LAVYFeRgpMPgxAFQ0FJZlCZBTToOFl9h2wJq5ty4mYwUufJSunpJC0", "\""},
    {"GR1348941", "w2RCdKDFRuNw5GCf-I0o", "\n"},
    {"HRKU-AA", "zILI8gJhead6_wJ9kFZJSqgmRB9H-iMb-lk777PZnK8Cl6J5ixaaJLSX8i", "\n"},
    {"LTAI", "8XIm0ogR4HtXOf54fZBK", "\""},
    {"NRAK-", "A52ZTJ0WYUHVAUVZHMASQXEZYEX", "\""},
    {"PMAK-", "d818319478da6bd0c621de49-f145fda9988c79fc35526f7eaed46725a2", "\""},
    {"PrivateKey = ", "UPXQzkM4Bv3aYavhNYRVwDfRk9XIrghoy32NFR5PYZp=", "\n"},
    {"sid: SK", "ed9041dff02cee737443e210471948d3", "\n"},
    {"aio_", "GETh8lMYQOymAAiTdR9Up14PehPj", "\n"},
    {"bkua_", "70d9106fd287db7f1adbc60926f6967e7893f57f", "\n"},
    {"dapi", "d14c1604d115cea325a65e19cbae5302", "\n"},
    {"dckr_pat_", "iKs1Pawtn3LG8Zv5Ypu8D0fzB6b", "\n"},
    {"dckr_oat_", "oIHgYIruiqFhojmAIDdN87xg3_Q_XA4w", "\n"},
    {"https://discord.com/api/webhooks/",
     "123456789012345678/yTepo6uKZyUf0IE9pU2NJhKaM1_5WdR16ePlljivghZ4fXfeTkYpIygfdM7ENA8d5L0j", "\""},
    {"https://discordapp.com/api/webhooks/",
     "123456789012345678/hPGYYJvW5hANsbEvrSFagEaBp0vXnJaE_9I0MyTLUyi0kn1Gnt11CuZyzaA3U2OLzS5o", "\""},
    {"doo_v1_", "54014c2b54b95523cf6941fa1c257c6f561c5cb347611a3ce9d97dcbee500fe7", "\n"},
    {"dor_v1_", "ee5fc324bdb2e1142a21c402364f9572b85a8e48f687ab165c58ac5831be38cb", "\n"},
    {"dp.pt.", "QYXkJXVwFcOLnv9DS0hQTo93l7q5UuAvCOJSnobagX5", "\n"},
    {"dt0c01.", "DI5OCBDAWTG7W8O0TINX4KIA.PJ2GEJRZQAD9W275PKACD8BZLPKDGA9MJ0M760L6TETD48AY13F2LOGQOCHVQDR9", "\n"},
    {"figd_", "v3hlbKBVheZUpYxqew88AD3dnbyJVSEDONUsSW0a", "\""},
    {"FlyV1 fm2_",
     "CIspoCsEvCE2lwXM090i5qE43w6t8YGPNNHCC826zwoF0wooSeGIGywpNSUVbQBWQ7SDtwX6Ux9mge2SnvByaBbhxGWetDikNt30"
     "Fk0SKbAhMSwwDAWfGfsy0L9flW91gQk8KS0N8sOfKH8oxFfysj==",
     "\n"},
    {"fo1_", "zNptMzyL2Dvamh2Vwd6QEspT5pV74gdQq7eYimTTH5t", "\n"},
    {"glagent-", "qsUepYhNVNZxTSmm3jZNNjax7EBz3cl7CSgzAf31ddXP63oI1n", "\n"},
    {"glcbt-", "hzUg296C0XpBx-NEgbUZsM6R3w", "\n"},
    {"gldt-", "pCvr06aXyPtHgjwzHA1n", "\n"},
    {"glft-", "nthNcmzcy7bVQIY8cE5v", "\n"},
    {"gloas-", "de94fb78c8d5f08b79affd2b49c12a4b0062983475eb46c5296f62e338d74ff1", "\n"},
    {"glptt-", "fe4f7f505aef9ebdd25b001a3ff416d4a3baf69d", "\n"},
    {"glrt-", "k2gGllt_zqisa_PqYK4e", "\n"},
    {"glsoat-", "sLFzzGzmNAFY8HwSKG0v", "\n"},
    {"glc_eyJ", "6WMXE1MBvRnhmX1EoC3G/FP1z5IBxT80NK8bTB2ABPLbPQ8Cjf5XGuSKl/6g==", "\n"},
    {"glsa_", "69DtCADA4pr0nFYTTumK931fmDUX8kuc_f543b5df", "\n"},
    {"gsk_", "Yxyc8RywkVSRDnptz0mV3muA1Jm1Tlb4PYYrYmx5OzcSsAUQRbKl", "\n"},
    {"hvb.",
     "yFkSSj_sK-wZdnHy7agBx6LtIdyhp9ZYbYLXlutzTfF_vNv7KToDsjCMEa-bhj2M5QgErZXwKDGEv6-IyPLgodLyX5UvecWEgtHD"
     "Gh9HMSoAZm4N8pvgxPv9wV4eSB7YEUcJvR5MxA1o",
     "\n"},
    {"hvs.", "VU0OeHoXJVOvDLtcj4Jc3JRa", "\n"},
    {"lin_api_", "aPJBRk1SVzKQfGUd5eHJgDo5yq7Nje1SHQwMXbQP", "\n"},
    {"lsv2_pt_", "73c9d51940ea4e095bd1d6854575622f_856469602d", "\n"},
    {"lsv2_sk_", "1ba9f20df4875b15b0be23b7ac193fe0_4072755398", "\n"},
    {"napi_", "9bbgmqb37p2gwglcrh356rhhhzi8ooj3zkby07czdxvzpv1uz9du7jwp1axg7leu", "\n"},
    {"nfp_", "bMgqBOIaZx7doCz44CC3pnR6rnRoiz7CnGQH", "\n"},
    {"ntn_", "hAbP8CSHTWpKHDm996g5RFdli7JcHgI4S6akSRPvFviS1d", "\n"},
    {"ops_eyJ",
     "cxZu6m98nDfqcYxyBtUepp+ikblHCUIs4Hx4tNcT1rtRZjM8iQ0NA0P/yT1jOw56ktltyxpA/w4mXmS3wdLqpfpa2BDGg/mn33x7"
     "tFs5BIdM0vzTY1+z4rLVuouJnWOlr1UlaY0XHNtF0BAnAmyMBDZW/iSZ0PSUNDMJV+73HBpSetjVEiMIsY5xCGcyF4GefcFUWoA6"
     "m1g/Ifxc0nz+CfLWVtwXAlyuOqxqzIP2sfxY7kse3EjDrTeQLZiQ47eUvtbz",
     "\n"},
    {"phx_", "Yo9lNT8egNO2crI8tQm5clXiPZmgNI3wHrgFi2RvxwY", "\n"},
    {"pnu_", "BqtkJTAYtFsLx2OUMq5GEj6XzgwTMEtTFOSI", "\n"},
    {"pplx-", "0tZSWZ26dxo4o33I7RLBXrzqsW5aBqtsdP2ZW5oGLSHR6muO", "\n"},
    {"pscale_oauth_", "wFzFU3ZmTwFnWd_g3sAOkFGfOEoasL1ycjLs24r5Q0v", "\n"},
    {"pscale_pw_", "wa2Q-YFhWUehfHVts0LZnRR-9eeA4RsmRSeqP2VTT7y", "\n"},
    {"pscale_tkn_", "maOlBu-aFHjmZOn5OUp47ulVJFB7-KqhN-3-YpBtC4u", "\n"},
    {"pul-", "872400c49b5539ac5ba7b4b87113c16fdf592475", "\n"},
    {"pypi-AgEIcHlwaS5vcmc",
     "e4zLF49YbvAE2SkJH1rI4BWVwlA4sZ8Kp62TzKHqm1v9RmrDYc5KSv1ue4yhOdXZOcgMYg-d6cOK0J4RON6yVY8LRvHzeGvFBb6m"
     "PR2LZOtVurBgPevt-B9l",
     "\n"},
    {"pypi-AgENdGVzdC5weXBpLm9yZ",
     "dtpOEfgtY5C4OC-OJhXTlwSgi4BDrT-9EEJXy8U5ydJuqbnQFbVu7q7xtoAq9qdCf6FSSixiIhtREMZ2MukeSJmrufszqHrp9vfe"
     "sTRaA6z5ymVISmngrC3s",
     "\n"},
    {"r8_", "7FlLTlWdWxsbu37E1fU5LR5QiBwKoRPtBNDZc", "\n"},
    {"rk_live_", "M5mS3gpGMPuD9ImDFEz04kVu", "\n"},
    {"rk_test_", "IAMRip4AoU7BNUU3vBpfZnrz", "\n"},
    {"rubygems_", "a51d12afc8e00aa1da5204642bbdb4a78f19e8b8480f3b47", "\n"},
    {"sb_secret_", "mLDRPHaXhuTWUDsf4_bsx6bpDNBIZ6v", "\n"},
    {"sbp_", "b17cdc70808d77b6ad89f65f84992a0f75ae616b", "\n"},
    {"sgp_", "1e5d490340494b35ec2daca1760147d301a233f4", "\n"},
    {"shippo_live_", "d05743bf2b672850882161db80a1e9ad8cdadc4c", "\n"},
    {"shpat_", "cd4078c763211caeae0ffac7cb2c8a27", "\n"},
    {"shpca_", "88fbf742b65b754e51acbd3d48c3bb9e", "\n"},
    {"shppa_", "28c9e3ef5404bf7bac806081598a878e", "\n"},
    {"shpss_", "2f264d9b1ecb19dd8b7c46b26a22eccd", "\n"},
    {"key=sk-", "f03eeddf52ecf4076c19ace327203f26", "\n"},
    {"key=sk-or-v1-", "e16af1d4d14aa605882ac89cd1997cd896416bef4ba6e1a02da187e966ece661", "\n"},
    {"sk_test_", "Lb2oHDI34E0mfLA7ujvzKfOr", "\n"},
    {"sntrys_eyJ",
     "lbUSaM7MZLG1cg42THRFU5ldoTnhpbTdyEpwTlcLZ7TX3qzOEtPaJl+sC/LZ+jmLZR8idmEMAsYTmGWqs59fquWOmI6MOUy7EEFM"
     "0Q1tJvUuVLqA9mThMNeO=_JfRiiHUdPKkiCgQX8MSZjNI6Pu3igP4GAG8DfyyskNs",
     "\n"},
    {"sntryu_", "725480dc3932677172a31659a2e50add127454b4667a20f1fa2261bd2b5ff489", "\n"},
    {"sq0atp-", "b7V3xmOIgdeZ6e_GyyrM6c", "\n"},
    {"sq0csp-", "hr2nAm-CO810m6SqbKty7ElqLiX40ePbFwXxiqTuF3l", "\n"},
    {"tfp_", "tyn_oYUyBAWNf6gtMwRg1Jq4ilunwH__uCHPw5nT6Ep9RAiSYFyWjelDN8n", "\n"},
    {"v1.0-",
     "2cfb8a5f1b461595919cb589-f6aec38bcacf836ed5a148fd28cbc938e019bb8723d39553ccaccfab54d946a2d207dc68447"
     "7391c94c8286793b2b023a60e4e81e11e3f79aa766907508db2823ccd71ba82f4dee6a6",
     "\n"},
    {"whsec_", "HZKSwMEv5hBcxMytvMxQMjws1Svy8B6v", "\n"},
    {"xai-", "unuBEWNaA13puvoiQjWoKkoUWTGCvLsWa5BztdxGVG2JXx4efF6VyUe50I2GhkQgYNWQqB86MtR80hbx", "\n"},
    {"xapp-", "1-A0YK1IIAHN8-1234567890123-c002e162aaef6076bc3346eee21f5c7ff43fc277", "\n"},
    {"xkeysib-", "0c7173601e1c771d814e0f33545a3c0202219ec0605e636d32b32732b89994fa-mafechn7y30nfbdb", "\n"},
    {"xoxa-", "2-123456789012-qrI26bz4DLn8ScQtIQyT2WBU", "'"},
    {"xoxc-", "2-123456789012-YGKcK8pp7ewn1wwwURzPAaiB", "'"},
    {"xoxe-", "2-123456789012-VOi4W60VAxxxP4VyFiKGC02U", "'"},
    {"xoxo-", "2-123456789012-boVXEiH9dKNhDpqiP86a76hs", "'"},
    {"xoxp-", "2-123456789012-x9oFpNNSw64AtQbtH8LncnrK", "'"},
    {"xoxr-", "2-123456789012-s8vSwZPVQ9BFs3NpQn9ppvlJ", "'"},
    {"xoxs-", "2-123456789012-pEmEsZTEEuEiAEXEJjHufpgs", "'"},
    {"ghu_", "4R6xcL5GQTZassLcu4G37dVU1NBY1yOG2NzW", "\n"},
    {"ghr_", "qVRnA2ME5FKyqqlTqQLCJeG1DYQpFklODESAR27I79WXiuLIXyvQXXKhqH3P6yKSwY7wBOpM4OwY", "\n"},
    {"ya29.",
     "le8hAGMwvekD84-OO6-LzP-9Wd24HPYIiu48erHJc9bwOH3HeVobMK9h76QJ5oMajuIP89gXBD8Ed_RuSxpFvXdC6K5bEk4RYmoZ"
     "IzDVBu9dI9v-bbY8ZJ7i",
     "\""},
    {"GOCSPX-", "hpE0Wr0CvUeATh68xRhePj1TRQ2s", "\""},
    {"AGE-SECRET-KEY-1", "5R2WM29U6SWF36XRMXPJYJTG6YCN8U0LHVMYSCTS06HSYR7D5QU74TA5WM", "\n"},
    {"Endpoint=sb://x;SharedAccessKey=", "F9NiaZ9I5vOXvtXYqfxXIOoN4RHCgI4ZnapEeld8Vki=", ";"},
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
    "certificate-authority-data: "
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUM1ekNDQWMrZ0F3SUJBZ0lCQURBTkJna3Foa2lHOXcwQkFRc0ZBREFWTVJNd0VRWURWUVFE",
    "see Private-Lines: 4 and the lines behind it\nPrivate-MAC: is the next header, and both are described in the "
    "manual of PuTTY\n",
    "if (starts(line, \"Private-Lines: \")) n = atoi(line + 15);\nfor (int i = 0; i < n; i++) append(&blob, "
    "next_line(file));\n",
    "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: x\nPublic-Lines: 2\n"
    "AAAAC3NzaC1lZDI1NTE5AAAAIHJCszOHaI9X/yGLtjn22f0hO6VPMQDVtctkym6F\nJH1W\n",
    "class=\"glft-navigation-bar glrt-very-long-name-of-a-class pul-to-refresh sk-circle-fade "
    "fm2_player_of_the_second_kind\"",
    "SK00000000 SKETCH skdeadbeefdeadbeefdeadbeefdeadbeef dapifunctions_of_the_operating_system xai-"
    "configuration-of-a-model",
    "PrivateKey = loadPrivateKeyFromFile(settings.path);\nPrivateKey: "
    "generateTheVeryLongNameOfThisFunctionForTests1(a)\n",
    "hvs.render(); dp.pt.x = 3; v1.0-beta-2; tfp_count = 1; ntn_ = 2; r8_unorm "
    "r8_g8_b8_a8_unorm_srgb_block_format_of_textures",
    "shpat_format whsec_from_the_dashboard rubygems_api_key lin_api_key npm_config_registry "
    "hf_hub_download_with_retries_and_cache",
    "const begin = \"-----BEGIN RSA "
    "PRIVATE KEY-----\";\nconst end = \"-----END RSA "
    "PRIVATE KEY-----\";\nreturn text.slice(begin.length);\n",
    ("looks for \"-----BEGIN RSA "
     "PRIVATE KEY-----\" in the text of a file, as a scanner of secrets does\n"),
    "-----BEGIN CERTIFICATE-----\nMIIEpAIBAAKCAQEA7bq0h3Jd8sKz4Lr1XyT9mPq2WvN5cFgHjKlZxCvBnM8QwErT\n-----END "
    "CERTIFICATE-----\n",
    "-----BEGIN PUBLIC KEY-----\nMIIEpAIBAAKCAQEA7bq0h3Jd8sKz4Lr1XyT9mPq2WvN5cFgHjKlZxCvBnM8QwErT\n-----END PUBLIC "
    "KEY-----\n",
};

/* Masked in place: the same length, the same lines; bytes that differ became '*'. */
static size_t masked(const char *text, size_t len, char *out) {
  memcpy(out, text, len);
  size_t n = mask_secrets(out, len);
  for (size_t i = 0; i < len; i++)
    CHECKF(out[i] == text[i] || (out[i] == '*' && text[i] != '\n' && text[i] != '\r'), "byte %zu", i);
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
    CHECKF(mask_secrets(out, (size_t)len) == 0, "%zu is found again: %s", i, out);
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
      {"PuTTY-User-Key-File-2: ssh-rsa\nEncryption: none\nPrivate-Lines: 3\n", "%s\n",
       "Private-MAC: 2baf65ef\nport: 80\n"},
      {"key: |\n  PuTTY-User-Key-File-3: ssh-rsa\n  Private-Lines: 3\n", "  %s\n",
       "  Private-MAC: 2baf65ef\nport: 80\n"},
      {"char k[] = \"PuTTY-User-Key-File-3: ssh-rsa\\nPrivate-Lines: 3\\n", "%s\\n",
       "Private-MAC: 2baf65ef\\n\";\nint port;\n"},
      {"Encryption: none\r\nPrivate-Lines: 3\r\n", "%s\r\n",
       "this text goes on with port 80 and no end of the key\r\n"},
      {"<tls-auth>\n-----BEGIN "
       "OpenVPN Static key V1-----\n",
       "%s\n",
       "-----END "
       "OpenVPN Static key V1-----\n</tls-auth>\n"},
  };
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    char text[2000], out[2000], lines[] = KEY_BODY, *rest = lines;
    size_t len = (size_t)snprintf(text, sizeof text, "%s", forms[i].open);
    for (char *line; (line = strsep(&rest, "\n")) != NULL;)
      if (strlen(line) > 10 || strstr(forms[i].close, "END") || strstr(forms[i].close, "MAC")) {
        char format[40];
        snprintf(format, sizeof format, "%s", forms[i].line);
        char *at = strstr(format, "%s");
        len += (size_t)snprintf(text + len, sizeof text - len, "%.*s%s%s", (int)(at - format), format, line, at + 2);
      }
    len += (size_t)snprintf(text + len, sizeof text - len, "%s", forms[i].close);
    CHECKF(masked(text, len, out) == 1, "%zu: %s", i, text);
    out[len] = '\0';
    CHECKF(!strstr(out, "MIIE") && !strstr(out, "yUiO") && !strstr(out, "hIjK") && !strstr(out, "mPq2WvN5"), "%zu: %s",
           i, out);
    CHECKF(strncmp(out, forms[i].open, 20) == 0 && strcmp(out + len - strlen(forms[i].close), forms[i].close) == 0,
           "%zu: %s", i, out);
    CHECKF(mask_secrets(out, len) == 0, "%zu is found again: %s", i, out);
  }
}

/* A piece cut out of a key has neither its beginning nor its end; code, hashes and short words stay. */
TEST(pieces_of_keys_are_masked_where_they_are_doubted) {
  static const char code[] = "int sum(int a) {\n  return a + some_very_long_name_of_a_function(a);\n}\n"
                             "commit 0123456789abcdef0123456789abcdef\n";
  char text[1000], out[1000];
  size_t len = (size_t)snprintf(text, sizeof text, "%s\n", KEY_BODY);
  memcpy(out, text, len);
  CHECK(mask_secrets(out, len) == 0 && mask_fragment(out, len) == 2);
  out[len] = '\0';
  CHECKF(!strstr(out, "MIIE") && !strstr(out, "yUiO") && strstr(out, "\nhIjK==\n"), "%s", out);
  memcpy(out, code, sizeof code);
  CHECKF(mask_fragment(out, sizeof code - 1) == 0 && strcmp(out, code) == 0, "%s", out);
}

TEST(an_index_of_other_rules_is_doubted) {
  static const struct {
    const char *stamp, *setting;
    indexer_display showing;
  } cases[] = {{"", "mask", INDEXER_DISPLAY_UNSURE},        {"mask@1", "mask", INDEXER_DISPLAY_UNSURE},
               {"index@2", "mask", INDEXER_DISPLAY_UNSURE}, {"mask@2", "skip", INDEXER_DISPLAY_UNSURE},
               {"mask@2", "mask", INDEXER_DISPLAY_MASKED},  {"", "index", INDEXER_DISPLAY_RAW}};
  CHECK(MASK_VERSION == 2); /* then the table wants the new number */
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    indexer_stamp stamp = {0};
    config_values config = {0};
    lode_error err;
    char text[] = "mPq2WvN5cFgHjKlZxCvBnM8QwErTyUiOpAsDfGhJkLzXcVbNm\n";
    OK(config_set(&config, CONFIG_INDEX_SECRETS, str_of(cases[i].setting), &err));
    snprintf(stamp.secrets, sizeof stamp.secrets, "%s", cases[i].stamp);
    indexer_display showing = indexer_stamp_display(&stamp, &config);
    CHECKF(showing == cases[i].showing, "case %zu: %d", i, showing);
    indexer_mask_for_display(showing, text, strlen(text));
    CHECKF((text[0] == '*') == (showing == INDEXER_DISPLAY_UNSURE), "case %zu: %s", i, text);
    config_release(&config);
  }
}

/* ---- This project's own files ---- */

static void scan_folder(const char *folder, unsigned *files) {
  static const char *const keys[] = {"./test/code/test_mask.c", "./test/code/test_scan.c",
                                     "./test/shell/code.sh"}; /* have some for tests */
  DIR *dir = opendir(folder);
  CHECKF(dir != NULL, "%s", folder);
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    char path[700];
    size_t n;
    bool known = false;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    if (e->d_name[0] == '.' || strcmp(path, "./build") == 0) continue;
    if (e->d_type == DT_DIR) scan_folder(path, files);
    if (e->d_type != DT_REG) continue;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) known |= strcmp(path, keys[i]) == 0;
    char *text = test_read_file(path, &n);
    size_t found = mask_secrets(text, n);
    free(text);
    CHECKF(known || found == 0, "%zu secrets in %s", found, path);
    ++*files;
  }
  closedir(dir);
}

TEST_SLOW(ordinary_code_has_no_secrets, 300) {
  unsigned files = 0;
  scan_folder(".", &files);
  CHECKF(files > 400, "%u files", files);
}

/* ---- Random texts ---- */

static size_t put_noise(char *out, size_t room) {
  static const char *const words[] = {"-----BEGIN ",
                                      "PRIVATE KEY-----",
                                      "-----END ",
                                      "-----",
                                      "ghp_",
                                      "sk-",
                                      "eyJ",
                                      ".eyJ",
                                      "AKIA",
                                      "\\n",
                                      "\n",
                                      "\r\n",
                                      " ",
                                      "\"",
                                      "=",
                                      "xoxb-",
                                      "LS0tLS1CRUdJTi",
                                      "aws_secret_access_key",
                                      "Private-Lines: ",
                                      "Private-MAC",
                                      "12",
                                      ".atlasv1.",
                                      "SK",
                                      "Zm9vYmFyYmF6cXV4",
                                      "A1b2",
                                      "é",
                                      "\xff",
                                      "_",
                                      "/*"};
  size_t n = 0;
  while (n < room && test_rand() % 200) {
    const char *w = words[test_rand() % (sizeof words / sizeof *words)];
    size_t len = strlen(w);
    if (test_rand() % 4 == 0)
      out[n++] = (char)test_rand();
    else if (n + len <= room) {
      memcpy(out + n, w, len);
      n += len;
    } else
      break;
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
    CHECKF(utf8_valid(text, len) <= utf8_valid(out, len), "round %d: no longer UTF-8", round);
  }
}

/* Texts made to take long: the number of bytes that rules look at is linear, so eight times the text is no more than a
 * few times that. */
TEST(texts_made_to_take_long_do_not) {
  static const char *const units[] = {"sk-",
                                      "eyJ",
                                      "eyJ.",
                                      "-----BEGIN PRIVATE KEY-----",
                                      "-----BEGIN ",
                                      "ghp_",
                                      "\\nsk-",
                                      "a",
                                      "AKIA",
                                      "-----BEGIN PRIVATE KEY-----\nZm9vYmFyYmF6cXV4\n",
                                      "LS0tLS1CRUdJTi",
                                      "LS0tLS1CRUdJTi=",
                                      "LS0tLS1CRUdJTi/",
                                      "\\neyJ",
                                      "hooks.slack.com/services/",
                                      "Private-Lines: ",
                                      "Private-Lines: 9\nZm9vYmFyYmF6cXV4\n",
                                      "Private-Lines: 1\nx",
                                      "Private-Lines: 1\nZm9vYmFyYmF6cXV4\nPrivate-M",
                                      ".atlasv1.",
                                      ".atlasv1.a",
                                      "\\nSK",
                                      "fm2_",
                                      "fm2_=",
                                      "\\nfm2_a",
                                      "v1.0-",
                                      "\\nv1.0-a",
                                      "sntrys_eyJ=",
                                      "\\nATATT3=",
                                      "ops_eyJ",
                                      "PrivateKey ",
                                      "PrivateKey=",
                                      "discord.com/api/webhooks/"};
  size_t len = BUILD_ASAN ? 256u << 10 : 8u << 20; /* the sanitizer looks at all that memmem might read, each time */
  char *text = malloc(len);
  CHECK(text != NULL);
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    size_t n = strlen(units[i]);
    for (size_t at = 0; at < len; at++) text[at] = units[i][at % n];
    (void)mask_secrets(text, len); /* quadratic, it would take hours: the test's time limit decides */
  }
  free(text);
}
