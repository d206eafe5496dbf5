/* SPDX-License-Identifier: Apache-2.0 */
/* language_table.c - the table of languages. To add one: its rules, its row, a line of deps/grammars/grammars.txt,
 * its package in deps/grammars/package.json, a sample in test/chunk. `lode-parser --check` compares the rules with
 * the grammars.
 *
 * Node types are the grammars' own. A path to a name descends through fields or, where there is no such field, through
 * children of that type. ^ is the first child, * repeats a step as often as possible, and what follows < is the path to
 * what the definition says it belongs to. The first rule for a node whose condition holds is used.
 */
#include "scan/language.h"

#define LEAF LANG_ROLE_LEAF
#define HOLD LANG_ROLE_CONTAINER
#define MINOR LANG_ROLE_MINOR
#define WRAP LANG_ROLE_WRAPPER
#define KIND(kind) LANG_KIND_##kind
#define NO_KIND KIND(MODULE)
/* clang-format off */
#define RULES_END {NULL, NO_KIND, LEAF, NULL, NULL}
/* clang-format on */

/* clang-format off */
#define C_RULES                                                                     \
  {"function_definition", KIND(FUNCTION), LEAF, "declarator*", NULL},                  \
  {"struct_specifier", KIND(STRUCT), HOLD, NULL, "body"},                              \
  {"union_specifier", KIND(UNION), HOLD, NULL, "body"},                                \
  {"enum_specifier", KIND(ENUM), LEAF, NULL, "body"},                                  \
  {"type_definition", KIND(STRUCT), LEAF, "declarator*", "type=struct_specifier"},     \
  {"type_definition", KIND(UNION), LEAF, "declarator*", "type=union_specifier"},       \
  {"type_definition", KIND(ENUM), LEAF, "declarator*", "type=enum_specifier"},         \
  {"type_definition", KIND(TYPE), MINOR, "declarator*", NULL},                         \
  {"declaration", KIND(FUNCTION), MINOR, "declarator*", "declarator*=function_declarator"}, \
  {"declaration", KIND(VARIABLE), MINOR, "declarator*", NULL},                         \
  {"preproc_function_def", KIND(MACRO), MINOR, NULL, NULL},                            \
  {"preproc_def", KIND(MACRO), MINOR, NULL, NULL}
/* clang-format on */

static const lang_rule c_rules[] = {C_RULES, RULES_END};

static const lang_rule cpp_rules[] = {
    {"template_declaration", NO_KIND, WRAP, NULL, NULL},
    {"namespace_definition", KIND(NAMESPACE), HOLD, NULL, NULL},
    {"class_specifier", KIND(CLASS), HOLD, NULL, "body"},
    {"concept_definition", KIND(TYPE), MINOR, NULL, NULL},
    {"alias_declaration", KIND(TYPE), MINOR, NULL, NULL},
    C_RULES,
    RULES_END,
};

static const lang_rule python_rules[] = {
    {"decorated_definition", NO_KIND, WRAP, NULL, NULL},
    {"expression_statement", NO_KIND, WRAP, NULL, NULL},
    {"function_definition", KIND(FUNCTION), LEAF, NULL, NULL},
    {"class_definition", KIND(CLASS), HOLD, NULL, NULL},
    {"assignment", KIND(VARIABLE), MINOR, "left", "left=identifier"},
    RULES_END,
};

/* clang-format off */
#define JS_RULES                                                                                              \
  {"export_statement", NO_KIND, WRAP, NULL, NULL},                                                            \
  {"lexical_declaration", NO_KIND, WRAP, NULL, NULL},                                                         \
  {"variable_declaration", NO_KIND, WRAP, NULL, NULL},                                                        \
  {"expression_statement", NO_KIND, WRAP, NULL, NULL},                                                        \
  {"function_declaration", KIND(FUNCTION), LEAF, NULL, NULL},                                                    \
  {"generator_function_declaration", KIND(FUNCTION), LEAF, NULL, NULL},                                          \
  {"class_declaration", KIND(CLASS), HOLD, NULL, NULL},                                                          \
  {"method_definition", KIND(METHOD), LEAF, NULL, NULL},                                                         \
  {"variable_declarator", KIND(FUNCTION), LEAF, NULL, "value=arrow_function|function_expression|generator_function"}, \
  {"variable_declarator", KIND(CLASS), HOLD, NULL, "value=class"},                                               \
  {"variable_declarator", KIND(VARIABLE), MINOR, NULL, NULL},                                                    \
  {"assignment_expression", KIND(FUNCTION), LEAF, "left",                                                     \
   "right=arrow_function|function_expression|generator_function"},                                            \
  {"assignment_expression", KIND(CLASS), HOLD, "left", "right=class"},                                           \
  {"pair", KIND(FUNCTION), LEAF, "key", "value=arrow_function|function_expression|generator_function"}
/* clang-format on */

static const lang_rule javascript_rules[] = {
    JS_RULES,
    {"field_definition", KIND(FUNCTION), LEAF, "property", "value=arrow_function|function_expression"},
    {"field_definition", KIND(PROPERTY), MINOR, "property", NULL},
    RULES_END,
};

static const lang_rule typescript_rules[] = {
    JS_RULES,
    {"ambient_declaration", NO_KIND, WRAP, NULL, NULL},
    {"abstract_class_declaration", KIND(CLASS), HOLD, NULL, NULL},
    {"interface_declaration", KIND(INTERFACE), HOLD, NULL, NULL},
    {"enum_declaration", KIND(ENUM), LEAF, NULL, NULL},
    {"type_alias_declaration", KIND(TYPE), MINOR, NULL, NULL},
    {"internal_module", KIND(NAMESPACE), HOLD, NULL, NULL},
    {"module", KIND(NAMESPACE), HOLD, NULL, NULL},
    {"function_signature", KIND(FUNCTION), MINOR, NULL, NULL},
    {"method_signature", KIND(METHOD), MINOR, NULL, NULL},
    {"abstract_method_signature", KIND(METHOD), MINOR, NULL, NULL},
    {"public_field_definition", KIND(FUNCTION), LEAF, NULL, "value=arrow_function|function_expression"},
    {"public_field_definition", KIND(PROPERTY), MINOR, NULL, NULL},
    RULES_END,
};

/* clang-format off */
#define JAVA_RULES                                                                \
  {"class_declaration", KIND(CLASS), HOLD, NULL, NULL},                              \
  {"interface_declaration", KIND(INTERFACE), HOLD, NULL, NULL},                      \
  {"enum_declaration", KIND(ENUM), HOLD, NULL, NULL},                                \
  {"record_declaration", KIND(CLASS), HOLD, NULL, NULL},                             \
  {"annotation_type_declaration", KIND(INTERFACE), HOLD, NULL, NULL},                \
  {"method_declaration", KIND(METHOD), LEAF, NULL, NULL},                            \
  {"constructor_declaration", KIND(CONSTRUCTOR), LEAF, NULL, NULL},                  \
  {"compact_constructor_declaration", KIND(CONSTRUCTOR), LEAF, NULL, NULL},          \
  {"field_declaration", KIND(PROPERTY), MINOR, "declarator.name", NULL},             \
  {"constant_declaration", KIND(CONSTANT), MINOR, "declarator.name", NULL}
/* clang-format on */

static const lang_rule java_rules[] = {JAVA_RULES, RULES_END};

static const lang_rule groovy_rules[] = {
    JAVA_RULES, {"function_definition", KIND(FUNCTION), LEAF, NULL, NULL}, RULES_END};

static const lang_rule csharp_rules[] = {
    {"namespace_declaration", KIND(NAMESPACE), HOLD, NULL, NULL},
    {"class_declaration", KIND(CLASS), HOLD, NULL, NULL},
    {"struct_declaration", KIND(STRUCT), HOLD, NULL, NULL},
    {"record_declaration", KIND(CLASS), HOLD, NULL, NULL},
    {"interface_declaration", KIND(INTERFACE), HOLD, NULL, NULL},
    {"enum_declaration", KIND(ENUM), LEAF, NULL, NULL},
    {"delegate_declaration", KIND(TYPE), MINOR, NULL, NULL},
    {"method_declaration", KIND(METHOD), LEAF, NULL, NULL},
    {"constructor_declaration", KIND(CONSTRUCTOR), LEAF, NULL, NULL},
    {"destructor_declaration", KIND(METHOD), LEAF, NULL, NULL},
    {"operator_declaration", KIND(METHOD), LEAF, "operator", NULL},
    {"indexer_declaration", KIND(PROPERTY), LEAF, "type", NULL},
    {"local_function_statement", KIND(FUNCTION), LEAF, NULL, NULL},
    {"property_declaration", KIND(PROPERTY), MINOR, NULL, NULL},
    {"event_declaration", KIND(PROPERTY), MINOR, NULL, NULL},
    {"field_declaration", KIND(PROPERTY), MINOR, "variable_declaration.variable_declarator.name", NULL},
    RULES_END,
};

static const lang_rule go_rules[] = {
    {"function_declaration", KIND(FUNCTION), LEAF, NULL, NULL},
    {"method_declaration", KIND(METHOD), LEAF, "name<receiver.parameter_declaration.type", NULL},
    {"type_declaration", NO_KIND, WRAP, NULL, NULL},
    {"const_declaration", NO_KIND, WRAP, NULL, NULL},
    {"var_declaration", NO_KIND, WRAP, NULL, NULL},
    {"type_spec", KIND(STRUCT), LEAF, NULL, "type=struct_type"},
    {"type_spec", KIND(INTERFACE), LEAF, NULL, "type=interface_type"},
    {"type_spec", KIND(TYPE), MINOR, NULL, NULL},
    {"type_alias", KIND(TYPE), MINOR, NULL, NULL},
    {"const_spec", KIND(CONSTANT), MINOR, NULL, NULL},
    {"var_spec", KIND(VARIABLE), MINOR, NULL, NULL},
    RULES_END,
};

static const lang_rule rust_rules[] = {
    {"function_item", KIND(FUNCTION), LEAF, NULL, NULL},
    {"function_signature_item", KIND(FUNCTION), MINOR, NULL, NULL},
    {"struct_item", KIND(STRUCT), LEAF, NULL, NULL},
    {"union_item", KIND(UNION), LEAF, NULL, NULL},
    {"enum_item", KIND(ENUM), LEAF, NULL, NULL},
    {"trait_item", KIND(TRAIT), HOLD, NULL, NULL},
    {"impl_item", KIND(IMPL), HOLD, "type", NULL},
    {"mod_item", KIND(NAMESPACE), HOLD, NULL, "body"},
    {"foreign_mod_item", KIND(NAMESPACE), HOLD, "", NULL},
    {"macro_definition", KIND(MACRO), LEAF, NULL, NULL},
    {"type_item", KIND(TYPE), MINOR, NULL, NULL},
    {"const_item", KIND(CONSTANT), MINOR, NULL, NULL},
    {"static_item", KIND(VARIABLE), MINOR, NULL, NULL},
    RULES_END,
};

static const lang_rule ruby_rules[] = {
    {"class", KIND(CLASS), HOLD, NULL, NULL},
    {"singleton_class", KIND(CLASS), HOLD, "value", NULL},
    {"module", KIND(NAMESPACE), HOLD, NULL, NULL},
    {"method", KIND(FUNCTION), LEAF, NULL, NULL},
    {"singleton_method", KIND(FUNCTION), LEAF, NULL, NULL},
    {"assignment", KIND(CONSTANT), MINOR, "left", "left=constant"},
    RULES_END,
};

static const lang_rule php_rules[] = {
    {"namespace_definition", KIND(NAMESPACE), HOLD, NULL, "body"},
    {"class_declaration", KIND(CLASS), HOLD, NULL, NULL},
    {"interface_declaration", KIND(INTERFACE), HOLD, NULL, NULL},
    {"trait_declaration", KIND(TRAIT), HOLD, NULL, NULL},
    {"enum_declaration", KIND(ENUM), HOLD, NULL, NULL},
    {"method_declaration", KIND(METHOD), LEAF, NULL, NULL},
    {"function_definition", KIND(FUNCTION), LEAF, NULL, NULL},
    {"property_declaration", KIND(PROPERTY), MINOR, "property_element.name", NULL},
    {"const_declaration", KIND(CONSTANT), MINOR, "const_element.name", NULL},
    RULES_END,
};

static const lang_rule kotlin_rules[] = {
    {"class_declaration", KIND(CLASS), HOLD, NULL, NULL},
    {"object_declaration", KIND(CLASS), HOLD, NULL, NULL},
    {"companion_object", KIND(CLASS), HOLD, NULL, NULL},
    {"function_declaration", KIND(FUNCTION), LEAF, NULL, NULL},
    {"secondary_constructor", KIND(CONSTRUCTOR), LEAF, "", NULL},
    {"type_alias", KIND(TYPE), MINOR, "type", NULL},
    {"property_declaration", KIND(PROPERTY), MINOR, "variable_declaration.identifier", NULL},
    RULES_END,
};

static const lang_rule swift_rules[] = {
    {"class_declaration", KIND(STRUCT), HOLD, NULL, "declaration_kind:struct"},
    {"class_declaration", KIND(ENUM), HOLD, NULL, "declaration_kind:enum"},
    {"class_declaration", KIND(IMPL), HOLD, NULL, "declaration_kind:extension"},
    {"class_declaration", KIND(CLASS), HOLD, NULL, NULL},
    {"protocol_declaration", KIND(INTERFACE), HOLD, NULL, NULL},
    {"function_declaration", KIND(FUNCTION), LEAF, NULL, NULL},
    {"init_declaration", KIND(CONSTRUCTOR), LEAF, NULL, NULL},
    {"deinit_declaration", KIND(METHOD), LEAF, "", NULL},
    {"subscript_declaration", KIND(METHOD), LEAF, "", NULL},
    {"protocol_function_declaration", KIND(METHOD), MINOR, NULL, NULL},
    {"typealias_declaration", KIND(TYPE), MINOR, NULL, NULL},
    {"property_declaration", KIND(PROPERTY), MINOR, NULL, NULL},
    RULES_END,
};

static const lang_rule scala_rules[] = {
    {"class_definition", KIND(CLASS), HOLD, NULL, NULL},
    {"object_definition", KIND(CLASS), HOLD, NULL, NULL},
    {"trait_definition", KIND(TRAIT), HOLD, NULL, NULL},
    {"enum_definition", KIND(ENUM), HOLD, NULL, NULL},
    {"package_object", KIND(NAMESPACE), HOLD, NULL, NULL},
    {"extension_definition", KIND(IMPL), HOLD, "", NULL},
    {"function_definition", KIND(FUNCTION), LEAF, NULL, NULL},
    {"given_definition", KIND(VARIABLE), LEAF, NULL, NULL},
    {"function_declaration", KIND(FUNCTION), MINOR, NULL, NULL},
    {"type_definition", KIND(TYPE), MINOR, NULL, NULL},
    {"val_definition", KIND(CONSTANT), MINOR, "pattern", NULL},
    {"var_definition", KIND(VARIABLE), MINOR, "pattern", NULL},
    RULES_END,
};

static const lang_rule dart_rules[] = {
    {"method_signature", NO_KIND, WRAP, NULL, NULL},
    {"declaration", NO_KIND, WRAP, NULL, NULL},
    {"class_definition", KIND(CLASS), HOLD, NULL, NULL},
    {"mixin_declaration", KIND(TRAIT), HOLD, "identifier", NULL},
    {"extension_declaration", KIND(IMPL), HOLD, NULL, NULL},
    {"enum_declaration", KIND(ENUM), HOLD, NULL, NULL},
    {"function_signature", KIND(FUNCTION), LEAF, NULL, NULL},
    {"getter_signature", KIND(FUNCTION), LEAF, NULL, NULL},
    {"setter_signature", KIND(FUNCTION), LEAF, NULL, NULL},
    {"constructor_signature", KIND(CONSTRUCTOR), LEAF, NULL, NULL},
    {"factory_constructor_signature", KIND(CONSTRUCTOR), LEAF, "identifier", NULL},
    {"type_alias", KIND(TYPE), MINOR, "type_identifier", NULL},
    {"initialized_variable_definition", KIND(VARIABLE), MINOR, NULL, NULL},
    RULES_END,
};

static const lang_rule lua_rules[] = {
    {"function_declaration", KIND(FUNCTION), LEAF, NULL, NULL},
    {"variable_declaration", NO_KIND, WRAP, NULL, NULL},
    {"assignment_statement", KIND(FUNCTION), LEAF, "variable_list.name", "expression_list.value=function_definition"},
    {"assignment_statement", KIND(VARIABLE), MINOR, "variable_list.name", NULL},
    {"field", KIND(FUNCTION), LEAF, NULL, "value=function_definition"},
    RULES_END,
};

static const lang_rule bash_rules[] = {
    {"function_definition", KIND(FUNCTION), LEAF, NULL, NULL},
    {"variable_assignment", KIND(VARIABLE), MINOR, NULL, NULL},
    RULES_END,
};

static const lang_rule elixir_rules[] = {
    {"call", KIND(NAMESPACE), HOLD, "arguments.^", "target:defmodule"},
    {"call", KIND(INTERFACE), HOLD, "arguments.^", "target:defprotocol"},
    {"call", KIND(IMPL), HOLD, "arguments.^", "target:defimpl"},
    {"call", KIND(FUNCTION), LEAF, "arguments.^.left*.target*", "target:def|defp|defguard|defguardp|defdelegate"},
    {"call", KIND(MACRO), LEAF, "arguments.^.left*.target*", "target:defmacro|defmacrop"},
    {"call", KIND(FUNCTION), LEAF, "arguments.^", "target:test|describe"},
    {"unary_operator", KIND(TYPE), MINOR, "operand.arguments.^.left*.target*", "operand.target:type|typep|opaque"},
    {"unary_operator", KIND(METHOD), MINOR, "operand.arguments.^.left*.target*",
     "operand.target:callback|macrocallback"},
    RULES_END,
};

static const lang_rule haskell_rules[] = {
    {"function", KIND(FUNCTION), LEAF, NULL, NULL},  {"bind", KIND(FUNCTION), LEAF, NULL, NULL},
    {"data_type", KIND(TYPE), LEAF, NULL, NULL},     {"newtype", KIND(TYPE), LEAF, NULL, NULL},
    {"type_synomym", KIND(TYPE), MINOR, NULL, NULL}, {"class", KIND(TRAIT), HOLD, NULL, NULL},
    {"instance", KIND(IMPL), HOLD, NULL, NULL},      RULES_END,
};

static const lang_rule ocaml_rules[] = {
    {"value_definition", NO_KIND, WRAP, NULL, NULL},
    {"let_binding", KIND(FUNCTION), LEAF, "pattern", NULL},
    {"type_definition", NO_KIND, WRAP, NULL, NULL},
    {"type_binding", KIND(TYPE), LEAF, NULL, NULL},
    {"module_definition", NO_KIND, WRAP, NULL, NULL},
    {"module_binding", KIND(NAMESPACE), HOLD, "module_name", NULL},
    {"module_type_definition", KIND(INTERFACE), HOLD, "module_type_name", NULL},
    {"class_definition", NO_KIND, WRAP, NULL, NULL},
    {"class_binding", KIND(CLASS), HOLD, "class_name", NULL},
    {"method_definition", KIND(METHOD), LEAF, "method_name", NULL},
    {"exception_definition", KIND(TYPE), MINOR, "constructor_declaration", NULL},
    {"external", KIND(FUNCTION), MINOR, "value_name", NULL},
    RULES_END,
};

static const lang_rule zig_rules[] = {
    {"function_declaration", KIND(FUNCTION), LEAF, NULL, NULL},
    {"test_declaration", KIND(FUNCTION), LEAF, "string", NULL},
    {"variable_declaration", KIND(STRUCT), HOLD, "identifier", "struct_declaration"},
    {"variable_declaration", KIND(ENUM), HOLD, "identifier", "enum_declaration"},
    {"variable_declaration", KIND(UNION), HOLD, "identifier", "union_declaration"},
    {"variable_declaration", KIND(CONSTANT), MINOR, "identifier", NULL},
    RULES_END,
};

static const lang_rule perl_rules[] = {
    {"function_definition", KIND(FUNCTION), LEAF, NULL, NULL},
    {"package_statement", KIND(NAMESPACE), MINOR, "package_name", NULL},
    RULES_END,
};

static const lang_rule r_rules[] = {
    {"binary_operator", KIND(FUNCTION), LEAF, "lhs", "rhs=function_definition"},
    RULES_END,
};

static const lang_rule powershell_rules[] = {
    {"function_statement", KIND(FUNCTION), LEAF, "function_name", NULL},
    {"class_statement", KIND(CLASS), HOLD, "simple_name", NULL},
    {"class_method_definition", KIND(METHOD), LEAF, "simple_name", NULL},
    {"enum_statement", KIND(ENUM), LEAF, "simple_name", NULL},
    RULES_END,
};

static const lang_rule solidity_rules[] = {
    {"contract_declaration", KIND(CLASS), HOLD, NULL, NULL},
    {"interface_declaration", KIND(INTERFACE), HOLD, NULL, NULL},
    {"library_declaration", KIND(CLASS), HOLD, NULL, NULL},
    {"function_definition", KIND(FUNCTION), LEAF, NULL, NULL},
    {"constructor_definition", KIND(CONSTRUCTOR), LEAF, "", NULL},
    {"modifier_definition", KIND(FUNCTION), LEAF, NULL, NULL},
    {"fallback_receive_definition", KIND(FUNCTION), LEAF, "", NULL},
    {"struct_declaration", KIND(STRUCT), LEAF, NULL, NULL},
    {"enum_declaration", KIND(ENUM), LEAF, NULL, NULL},
    {"event_definition", KIND(TYPE), MINOR, NULL, NULL},
    {"error_declaration", KIND(TYPE), MINOR, NULL, NULL},
    {"state_variable_declaration", KIND(VARIABLE), MINOR, NULL, NULL},
    RULES_END,
};

static const lang_rule sql_rules[] = {
    {"statement", NO_KIND, WRAP, NULL, NULL},
    {"create_table", KIND(TABLE), LEAF, "object_reference", NULL},
    {"create_view", KIND(TABLE), LEAF, "object_reference", NULL},
    {"create_materialized_view", KIND(TABLE), LEAF, "object_reference", NULL},
    {"create_function", KIND(FUNCTION), LEAF, "object_reference", NULL},
    {"create_trigger", KIND(FUNCTION), LEAF, "object_reference", NULL},
    {"create_type", KIND(TYPE), LEAF, "object_reference", NULL},
    {"create_index", KIND(RULE), MINOR, "column", NULL},
    RULES_END,
};

static const lang_rule css_rules[] = {
    {"rule_set", KIND(RULE), MINOR, "selectors", NULL},
    {"media_statement", KIND(RULE), MINOR, "", NULL},
    {"keyframes_statement", KIND(RULE), MINOR, "keyframes_name", NULL},
    RULES_END,
};

static const lang_rule html_rules[] = {
    {"script_element", KIND(MODULE), LEAF, "", NULL},
    {"style_element", KIND(RULE), LEAF, "", NULL},
    RULES_END,
};

static const lang_rule lang_json_rules[] = {{"pair", KIND(PROPERTY), MINOR, "key", NULL}, RULES_END};
static const lang_rule yaml_rules[] = {{"block_mapping_pair", KIND(PROPERTY), MINOR, "key", NULL}, RULES_END};

static const lang_rule toml_rules[] = {
    {"table", KIND(SECTION), MINOR, "^", NULL},
    {"table_array_element", KIND(SECTION), MINOR, "^", NULL},
    RULES_END,
};

static const lang_rule hcl_rules[] = {{"block", KIND(SECTION), LEAF, "string_lit", "string_lit"},
                                      {"block", KIND(SECTION), LEAF, "identifier", NULL},
                                      RULES_END};

static const lang_rule make_rules[] = {
    {"rule", KIND(RULE), LEAF, "^", NULL},
    {"define_directive", KIND(MACRO), LEAF, NULL, NULL},
    {"variable_assignment", KIND(VARIABLE), MINOR, NULL, NULL},
    RULES_END,
};

/* clang-format off */
#define PLAIN_LANG(name_, ext_, ...) {.name = name_, .extensions = ext_, .split = LANG_SPLIT_LINES, __VA_ARGS__}
/* clang-format on */

const lang_info lang_table[] = {
    /* the first is the default: nothing is known about the file */
    {.name = "text", .aliases = "txt plain", .extensions = "txt text log"},
    {.name = "c", .extensions = "c h i inl", .split = LANG_SPLIT_TREE, .grammar = "c", .rules = c_rules},
    {.name = "c++",
     .aliases = "cpp cxx",
     .extensions = "cc cpp cxx c++ hpp hh hxx h++ ipp tpp ixx cppm cu cuh ino",
     .split = LANG_SPLIT_TREE,
     .grammar = "cpp",
     .rules = cpp_rules},
    {.name = "python",
     .aliases = "py",
     .extensions = "py pyi pyw pyx pxd gyp gypi bzl star",
     .file_names = "SConstruct SConscript wscript BUILD WORKSPACE",
     .interpreters = "python pypy",
     .split = LANG_SPLIT_TREE,
     .grammar = "python",
     .docstring = true,
     .rules = python_rules},
    {.name = "javascript",
     .aliases = "js jsx node",
     .extensions = "js jsx mjs cjs es6",
     .interpreters = "node nodejs bun deno",
     .file_names = "Jakefile",
     .split = LANG_SPLIT_TREE,
     .grammar = "javascript",
     .rules = javascript_rules},
    {.name = "typescript",
     .aliases = "ts",
     .extensions = "ts mts cts",
     .interpreters = "ts-node tsx",
     .split = LANG_SPLIT_TREE,
     .grammar = "typescript",
     .rules = typescript_rules},
    {.name = "tsx", .extensions = "tsx", .split = LANG_SPLIT_TREE, .grammar = "tsx", .rules = typescript_rules},
    {.name = "java",
     .extensions = "java",
     .split = LANG_SPLIT_TREE,
     .grammar = "java",
     .comment = "line_comment block_comment",
     .rules = java_rules},
    {.name = "c#",
     .aliases = "csharp cs",
     .extensions = "cs csx",
     .split = LANG_SPLIT_TREE,
     .grammar = "c_sharp",
     .rules = csharp_rules},
    {.name = "go",
     .aliases = "golang",
     .extensions = "go",
     .split = LANG_SPLIT_TREE,
     .grammar = "go",
     .rules = go_rules},
    {.name = "rust",
     .aliases = "rs",
     .extensions = "rs",
     .split = LANG_SPLIT_TREE,
     .grammar = "rust",
     .comment = "line_comment block_comment attribute_item",
     .rules = rust_rules},
    {.name = "ruby",
     .aliases = "rb",
     .extensions = "rb rake gemspec ru podspec",
     .file_names = "Rakefile Gemfile Vagrantfile Podfile Fastfile Guardfile",
     .interpreters = "ruby rake",
     .split = LANG_SPLIT_TREE,
     .grammar = "ruby",
     .rules = ruby_rules},
    {.name = "php",
     .extensions = "php phtml php5 inc",
     .interpreters = "php",
     .split = LANG_SPLIT_TREE,
     .grammar = "php",
     .rules = php_rules},
    {.name = "kotlin",
     .aliases = "kt",
     .extensions = "kt kts",
     .split = LANG_SPLIT_TREE,
     .grammar = "kotlin",
     .body = "class_body enum_class_body function_body",
     .comment = "line_comment block_comment",
     .rules = kotlin_rules},
    {.name = "swift",
     .extensions = "swift",
     .split = LANG_SPLIT_TREE,
     .grammar = "swift",
     .comment = "comment multiline_comment",
     .rules = swift_rules},
    {.name = "scala",
     .extensions = "scala sc sbt",
     .split = LANG_SPLIT_TREE,
     .grammar = "scala",
     .comment = "comment block_comment",
     .rules = scala_rules},
    {.name = "dart",
     .extensions = "dart",
     .split = LANG_SPLIT_TREE,
     .grammar = "dart",
     .body = "body function_body class_body enum_body extension_body",
     .comment = "comment documentation_comment marker_annotation annotation",
     .rules = dart_rules},
    {.name = "lua",
     .extensions = "lua",
     .interpreters = "lua luajit",
     .split = LANG_SPLIT_TREE,
     .grammar = "lua",
     .rules = lua_rules},
    {.name = "shell",
     .aliases = "bash sh zsh",
     .extensions = "sh bash zsh ksh bats ebuild",
     .interpreters = "sh bash zsh dash ksh ash",
     .file_names = "PKGBUILD APKBUILD .bashrc .profile",
     .split = LANG_SPLIT_TREE,
     .grammar = "bash",
     .rules = bash_rules},
    {.name = "elixir",
     .extensions = "ex exs",
     .interpreters = "elixir",
     .split = LANG_SPLIT_TREE,
     .grammar = "elixir",
     .body = "do_block",
     .comment = "comment unary_operator",
     .clauses = true,
     .rules = elixir_rules},
    {.name = "haskell",
     .aliases = "hs",
     .extensions = "hs",
     .interpreters = "runhaskell",
     .split = LANG_SPLIT_TREE,
     .grammar = "haskell",
     .body = "match declarations constructors",
     .comment = "comment haddock signature",
     .clauses = true,
     .rules = haskell_rules},
    {.name = "ocaml",
     .aliases = "ml",
     .extensions = "ml mli",
     .split = LANG_SPLIT_TREE,
     .grammar = "ocaml",
     .rules = ocaml_rules},
    {.name = "zig",
     .extensions = "zig",
     .split = LANG_SPLIT_TREE,
     .grammar = "zig",
     .body = "body struct_declaration enum_declaration union_declaration",
     .rules = zig_rules},
    {.name = "perl",
     .aliases = "pl",
     .extensions = "pl pm t",
     .interpreters = "perl",
     .split = LANG_SPLIT_TREE,
     .grammar = "perl",
     .comment = "comments pod_statement",
     .rules = perl_rules},
    {.name = "r",
     .extensions = "r",
     .interpreters = "Rscript",
     .split = LANG_SPLIT_TREE,
     .grammar = "r",
     .rules = r_rules},
    {.name = "powershell",
     .aliases = "ps1 pwsh",
     .extensions = "ps1 psm1 psd1",
     .interpreters = "pwsh",
     .split = LANG_SPLIT_TREE,
     .grammar = "powershell",
     .body = "script_block",
     .rules = powershell_rules},
    {.name = "groovy",
     .extensions = "groovy gradle",
     .file_names = "Jenkinsfile",
     .interpreters = "groovy",
     .split = LANG_SPLIT_TREE,
     .grammar = "groovy",
     .comment = "line_comment block_comment",
     .rules = groovy_rules},
    {.name = "solidity",
     .aliases = "sol",
     .extensions = "sol",
     .split = LANG_SPLIT_TREE,
     .grammar = "solidity",
     .rules = solidity_rules},
    {.name = "sql",
     .extensions = "sql ddl",
     .split = LANG_SPLIT_TREE,
     .grammar = "sql",
     .comment = "comment marginalia",
     .rules = sql_rules},
    {.name = "html",
     .extensions = "html htm xhtml vue",
     .split = LANG_SPLIT_TREE,
     .grammar = "html",
     .rules = html_rules},
    {.name = "svelte", .extensions = "svelte", .split = LANG_SPLIT_TREE, .grammar = "svelte", .rules = html_rules},
    {.name = "css", .extensions = "css", .split = LANG_SPLIT_TREE, .grammar = "css", .rules = css_rules},
    {.name = "json",
     .extensions = "json jsonc json5 webmanifest geojson",
     .split = LANG_SPLIT_TREE,
     .grammar = "json",
     .data = true,
     .rules = lang_json_rules},
    {.name = "yaml",
     .aliases = "yml",
     .extensions = "yaml yml",
     .split = LANG_SPLIT_TREE,
     .grammar = "yaml",
     .data = true,
     .rules = yaml_rules},
    {.name = "toml",
     .extensions = "toml",
     .split = LANG_SPLIT_TREE,
     .grammar = "toml",
     .data = true,
     .rules = toml_rules},
    {.name = "hcl",
     .aliases = "terraform",
     .extensions = "tf hcl tfvars",
     .split = LANG_SPLIT_TREE,
     .grammar = "hcl",
     .data = true,
     .rules = hcl_rules},
    {.name = "make",
     .aliases = "makefile",
     .extensions = "mk mak",
     .file_names = "Makefile GNUmakefile Kbuild",
     .interpreters = "make",
     .split = LANG_SPLIT_TREE,
     .grammar = "make",
     .rules = make_rules},
    {.name = "markdown",
     .aliases = "md",
     .extensions = "md markdown mdx mkd",
     .file_names = "README CHANGELOG CONTRIBUTING",
     .split = LANG_SPLIT_MARKDOWN},
    {.name = "rst", .aliases = "restructuredtext", .extensions = "rst rest", .split = LANG_SPLIT_RST},
    PLAIN_LANG("asciidoc", "adoc asciidoc"),
    PLAIN_LANG("org", "org"),
    PLAIN_LANG("latex", "tex sty cls bib", .aliases = "tex"),
    PLAIN_LANG("man", "1 2 3 4 5 6 7 8"),
    PLAIN_LANG("assembly", "s asm nasm", .aliases = "asm"),
    PLAIN_LANG("objective-c", "m mm", .aliases = "objc"),
    PLAIN_LANG("clojure", "clj cljs cljc edn"),
    PLAIN_LANG("erlang", "erl hrl", .interpreters = "escript"),
    PLAIN_LANG("f#", "fs fsi fsx", .aliases = "fsharp"),
    PLAIN_LANG("julia", "jl", .interpreters = "julia"),
    PLAIN_LANG("nim", "nim nims"),
    PLAIN_LANG("crystal", "cr"),
    PLAIN_LANG("d", "d di"),
    PLAIN_LANG("pascal", "pas pp dpr lpr"),
    PLAIN_LANG("fortran", "f f90 f95 f03 f08 for"),
    PLAIN_LANG("ada", "ada adb ads"),
    PLAIN_LANG("lisp", "lisp lsp el cl scm ss rkt", .aliases = "elisp scheme racket"),
    PLAIN_LANG("tcl", "tcl", .interpreters = "tclsh wish expect"),
    PLAIN_LANG("awk", "awk", .interpreters = "awk gawk mawk"),
    PLAIN_LANG("vim", "vim"),
    PLAIN_LANG("verilog", "v vh sv svh"),
    PLAIN_LANG("vhdl", "vhd vhdl"),
    PLAIN_LANG("glsl", "glsl vert frag geom comp hlsl wgsl metal"),
    PLAIN_LANG("protobuf", "proto", .aliases = "proto"),
    PLAIN_LANG("thrift", "thrift"),
    PLAIN_LANG("graphql", "graphql gql"),
    PLAIN_LANG("prisma", "prisma"),
    PLAIN_LANG("scss", "scss sass less styl", .aliases = "sass less"),
    PLAIN_LANG("xml", "xml xsd xsl xslt svg plist csproj vcxproj props targets rss wsdl xaml ui qrc", .data = true),
    PLAIN_LANG("csv", "csv tsv", .data = true),
    PLAIN_LANG("ini", "ini cfg conf properties desktop service editorconfig", .data = true,
               .file_names = ".editorconfig .gitconfig"),
    PLAIN_LANG("devicetree", "dts dtsi dtso", .data = true),
    PLAIN_LANG("kconfig", NULL, .file_names = "Kconfig", .data = true),
    PLAIN_LANG("cmake", "cmake", .file_names = "CMakeLists.txt"),
    PLAIN_LANG("meson", NULL, .file_names = "meson.build meson_options.txt"),
    PLAIN_LANG("docker", "dockerfile", .file_names = "Dockerfile Containerfile", .aliases = "dockerfile"),
    PLAIN_LANG("nix", "nix"),
    PLAIN_LANG("bazel", NULL, .file_names = "BUILD.bazel WORKSPACE.bazel"),
    PLAIN_LANG("diff", "diff patch", .data = true),
    PLAIN_LANG("batch", "bat cmd"),
    PLAIN_LANG("template", "j2 jinja jinja2 tmpl tpl mustache hbs ejs erb haml pug jade twig liquid"),
    PLAIN_LANG("notebook", "ipynb", .data = true),
    PLAIN_LANG("grammar", "y yy l ll g4 peg ebnf bnf"),
    PLAIN_LANG("linker", "ld lds"),
};

const size_t lang_count = sizeof lang_table / sizeof *lang_table;
