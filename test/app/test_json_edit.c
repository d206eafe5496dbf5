/* SPDX-License-Identifier: Apache-2.0 */
/* test_json_edit.c - one value of a settings file is set or removed; every other byte, comments too, stays. */
#include "base/base.h"
#include "setup/json_edit.h"
#include "support/test.h"

static lode_error err;
static const char *const path[] = {"servers", "lode"};

static void check_edit(const char *before, const char *value, const char *after) {
  strbuf out = {0}, again = {0};
  lode_str found;
  if (value)
    OK(setup_json_set(str_of(before), path, 2, str_of(value), &out, &err));
  else
    OK(setup_json_remove(str_of(before), path, 2, &out, &err));
  lode_str edited = {out.data, out.len};
  CHECKF(str_eq(edited, str_of(after)), "%s\nbecame\n%.*s\nnot\n%s", before, (int)out.len, out.data, after);
  OK(setup_json_find(edited, path, 2, &found, &err));
  CHECKF(value ? str_eq(found, str_of(value)) : !found.data, "%s", before);
  if (value)
    OK(setup_json_set(edited, path, 2, str_of(value), &again, &err));
  else
    OK(setup_json_remove(edited, path, 2, &again, &err));
  CHECKF(str_eq(edited, (lode_str){again.data, again.len}), "%s is changed twice", before);
  strbuf_release(&out);
  strbuf_release(&again);
}

TEST(a_value_is_set) {
  check_edit("", "1", "{\n  \"servers\": {\n    \"lode\": 1\n  }\n}\n");
  check_edit("{\"servers\": {\"lode\": 0, \"a\": 1}}", "1", "{\"servers\": {\"lode\": 1, \"a\": 1}}");
  check_edit("{\n  \"servers\": {\n    \"a\": 1 // one\n  }\n}\n", "1",
             "{\n  \"servers\": {\n    \"a\": 1,\n    \"lode\": 1 // one\n  }\n}\n");
}

TEST(a_value_is_removed) {
  check_edit("{\"servers\": {\"lode\": {\"x\": 1}}}", NULL, "{\"servers\": {}}");
  check_edit("{\"servers\": {\"a\": 1, \"lode\": 1}}", NULL, "{\"servers\": {\"a\": 1}}");
  check_edit("{\"servers\": {\"lode\": 1, \"a\": 1}}", NULL, "{\"servers\": { \"a\": 1}}");
  check_edit("{\"servers\": {\"a\": 1, \"lode\": 1, \"b\": 2}}", NULL, "{\"servers\": {\"a\": 1, \"b\": 2}}");
  check_edit("{\"servers\": {\"a\": 1, \"lode\": 1,}}", NULL, "{\"servers\": {\"a\": 1,}}");
  check_edit("{\n  \"servers\": {\n    \"a\": 1,\n    \"lode\": 1\n  }\n}\n", NULL,
             "{\n  \"servers\": {\n    \"a\": 1\n  }\n}\n");
}

TEST(comments_before_a_removed_value_stay) {
  check_edit("{\"servers\": {\"a\": 1, /* next */ \"lode\": 1}}", NULL, "{\"servers\": {\"a\": 1 /* next */ }}");
  check_edit("{\"servers\": {\"a\": 1 /* one */, \"lode\": 1}}", NULL, "{\"servers\": {\"a\": 1 /* one */}}");
  check_edit("{\"servers\": {\n    \"a\": 1, // one\n    // two\n    \"lode\": 1\n  }\n}\n", NULL,
             "{\"servers\": {\n    \"a\": 1 // one\n    // two\n  }\n}\n");
  check_edit("{\"servers\": {\"a\": 1, // one\n \"lode\": 1, \"b\": 2}}", NULL,
             "{\"servers\": {\"a\": 1 // one\n , \"b\": 2}}");
  check_edit("{\"servers\": {\n    // first\n    \"lode\": 1, // ours\n    \"b\": 2\n  }\n}\n", NULL,
             "{\"servers\": {\n    // first\n     // ours\n    \"b\": 2\n  }\n}\n");
  check_edit("{\"servers\": {\"lode\": 1 /* x */, \"b\": 2}}", NULL, "{\"servers\": { \"b\": 2}}");
}

TEST(texts_that_are_no_json_are_refused) {
  static const char *const texts[] = {"[]",
                                      "{\"servers\": {\"lode\": 1}",
                                      "{\"servers\": {,}}",
                                      "{} x",
                                      "{\"a\" 1}",
                                      "{/* }",
                                      "{\"servers\": {\"lode\": 1, \"lode\": 2}}"};
  strbuf out = {0};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    FAILS(LODE_INVALID, setup_json_remove(str_of(texts[i]), path, 2, &out, &err));
  strbuf_release(&out);
}
