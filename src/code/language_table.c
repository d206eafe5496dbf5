/* language_table.c - the table of languages. To add one: its rules, its row, a line of deps/grammars/grammars.txt, its
 * package in deps/grammars/package.json, a sample in test/chunk. `lode-parser --check` compares the rules with the grammars.
 *
 * Names of nodes are the grammars' own. The path to a name goes down through fields and, where there is no such field,
 * through children of that type; ^ is the first child, * repeats a step as often as possible, and what follows a < is
 * the path to what the definition says that it belongs to. The first rule of a node whose condition holds counts.
 */
#include "code/language.h"

#define LEAF LODE__ROLE_LEAF
#define HOLD LODE__ROLE_HOLD
#define MINOR LODE__ROLE_MINOR
#define WRAP LODE__ROLE_WRAP
#define K(kind) LODE__KIND_##kind
#define NO_KIND K(MODULE)
#define END {NULL, NO_KIND, LEAF, NULL, NULL}

#define C_RULES                                                                     \
  {"function_definition", K(FUNCTION), LEAF, "declarator*", NULL},                  \
  {"struct_specifier", K(STRUCT), HOLD, NULL, "body"},                              \
  {"union_specifier", K(UNION), HOLD, NULL, "body"},                                \
  {"enum_specifier", K(ENUM), LEAF, NULL, "body"},                                  \
  {"type_definition", K(STRUCT), LEAF, "declarator*", "type=struct_specifier"},     \
  {"type_definition", K(UNION), LEAF, "declarator*", "type=union_specifier"},       \
  {"type_definition", K(ENUM), LEAF, "declarator*", "type=enum_specifier"},         \
  {"type_definition", K(TYPE), MINOR, "declarator*", NULL},                         \
  {"declaration", K(FUNCTION), MINOR, "declarator*", "declarator*=function_declarator"}, \
  {"declaration", K(VARIABLE), MINOR, "declarator*", NULL},                         \
  {"preproc_function_def", K(MACRO), MINOR, NULL, NULL},                            \
  {"preproc_def", K(MACRO), MINOR, NULL, NULL}

static const lode__rule c_rules[] = {C_RULES, END};

static const lode__rule cpp_rules[] = {
    {"template_declaration", NO_KIND, WRAP, NULL, NULL},
    {"namespace_definition", K(NAMESPACE), HOLD, NULL, NULL},
    {"class_specifier", K(CLASS), HOLD, NULL, "body"},
    {"concept_definition", K(TYPE), MINOR, NULL, NULL},
    {"alias_declaration", K(TYPE), MINOR, NULL, NULL},
    C_RULES,
    END,
};

static const lode__rule python_rules[] = {
    {"decorated_definition", NO_KIND, WRAP, NULL, NULL},
    {"expression_statement", NO_KIND, WRAP, NULL, NULL},
    {"function_definition", K(FUNCTION), LEAF, NULL, NULL},
    {"class_definition", K(CLASS), HOLD, NULL, NULL},
    {"assignment", K(VARIABLE), MINOR, "left", "left=identifier"},
    END,
};

#define JS_RULES                                                                                              \
  {"export_statement", NO_KIND, WRAP, NULL, NULL},                                                            \
  {"lexical_declaration", NO_KIND, WRAP, NULL, NULL},                                                         \
  {"variable_declaration", NO_KIND, WRAP, NULL, NULL},                                                        \
  {"expression_statement", NO_KIND, WRAP, NULL, NULL},                                                        \
  {"function_declaration", K(FUNCTION), LEAF, NULL, NULL},                                                    \
  {"generator_function_declaration", K(FUNCTION), LEAF, NULL, NULL},                                          \
  {"class_declaration", K(CLASS), HOLD, NULL, NULL},                                                          \
  {"method_definition", K(METHOD), LEAF, NULL, NULL},                                                         \
  {"variable_declarator", K(FUNCTION), LEAF, NULL, "value=arrow_function|function_expression|generator_function"}, \
  {"variable_declarator", K(CLASS), HOLD, NULL, "value=class"},                                               \
  {"variable_declarator", K(VARIABLE), MINOR, NULL, NULL},                                                    \
  {"assignment_expression", K(FUNCTION), LEAF, "left", "right=arrow_function|function_expression|generator_function"}, \
  {"assignment_expression", K(CLASS), HOLD, "left", "right=class"},                                           \
  {"pair", K(FUNCTION), LEAF, "key", "value=arrow_function|function_expression|generator_function"}

static const lode__rule javascript_rules[] = {
    JS_RULES,
    {"field_definition", K(FUNCTION), LEAF, "property", "value=arrow_function|function_expression"},
    {"field_definition", K(PROPERTY), MINOR, "property", NULL},
    END,
};

static const lode__rule typescript_rules[] = {
    JS_RULES,
    {"ambient_declaration", NO_KIND, WRAP, NULL, NULL},
    {"abstract_class_declaration", K(CLASS), HOLD, NULL, NULL},
    {"interface_declaration", K(INTERFACE), HOLD, NULL, NULL},
    {"enum_declaration", K(ENUM), LEAF, NULL, NULL},
    {"type_alias_declaration", K(TYPE), MINOR, NULL, NULL},
    {"internal_module", K(NAMESPACE), HOLD, NULL, NULL},
    {"module", K(NAMESPACE), HOLD, NULL, NULL},
    {"function_signature", K(FUNCTION), MINOR, NULL, NULL},
    {"method_signature", K(METHOD), MINOR, NULL, NULL},
    {"abstract_method_signature", K(METHOD), MINOR, NULL, NULL},
    {"public_field_definition", K(FUNCTION), LEAF, NULL, "value=arrow_function|function_expression"},
    {"public_field_definition", K(PROPERTY), MINOR, NULL, NULL},
    END,
};

#define JAVA_RULES                                                                \
  {"class_declaration", K(CLASS), HOLD, NULL, NULL},                              \
  {"interface_declaration", K(INTERFACE), HOLD, NULL, NULL},                      \
  {"enum_declaration", K(ENUM), HOLD, NULL, NULL},                                \
  {"record_declaration", K(CLASS), HOLD, NULL, NULL},                             \
  {"annotation_type_declaration", K(INTERFACE), HOLD, NULL, NULL},                \
  {"method_declaration", K(METHOD), LEAF, NULL, NULL},                            \
  {"constructor_declaration", K(CONSTRUCTOR), LEAF, NULL, NULL},                  \
  {"compact_constructor_declaration", K(CONSTRUCTOR), LEAF, NULL, NULL},          \
  {"field_declaration", K(PROPERTY), MINOR, "declarator.name", NULL},             \
  {"constant_declaration", K(CONSTANT), MINOR, "declarator.name", NULL}

static const lode__rule java_rules[] = {JAVA_RULES, END};

static const lode__rule groovy_rules[] = {JAVA_RULES, {"function_definition", K(FUNCTION), LEAF, NULL, NULL}, END};

static const lode__rule csharp_rules[] = {
    {"namespace_declaration", K(NAMESPACE), HOLD, NULL, NULL},
    {"class_declaration", K(CLASS), HOLD, NULL, NULL},
    {"struct_declaration", K(STRUCT), HOLD, NULL, NULL},
    {"record_declaration", K(CLASS), HOLD, NULL, NULL},
    {"interface_declaration", K(INTERFACE), HOLD, NULL, NULL},
    {"enum_declaration", K(ENUM), LEAF, NULL, NULL},
    {"delegate_declaration", K(TYPE), MINOR, NULL, NULL},
    {"method_declaration", K(METHOD), LEAF, NULL, NULL},
    {"constructor_declaration", K(CONSTRUCTOR), LEAF, NULL, NULL},
    {"destructor_declaration", K(METHOD), LEAF, NULL, NULL},
    {"operator_declaration", K(METHOD), LEAF, "operator", NULL},
    {"indexer_declaration", K(PROPERTY), LEAF, "type", NULL},
    {"local_function_statement", K(FUNCTION), LEAF, NULL, NULL},
    {"property_declaration", K(PROPERTY), MINOR, NULL, NULL},
    {"event_declaration", K(PROPERTY), MINOR, NULL, NULL},
    {"field_declaration", K(PROPERTY), MINOR, "variable_declaration.variable_declarator.name", NULL},
    END,
};

static const lode__rule go_rules[] = {
    {"function_declaration", K(FUNCTION), LEAF, NULL, NULL},
    {"method_declaration", K(METHOD), LEAF, "name<receiver.parameter_declaration.type", NULL},
    {"type_declaration", NO_KIND, WRAP, NULL, NULL},
    {"const_declaration", NO_KIND, WRAP, NULL, NULL},
    {"var_declaration", NO_KIND, WRAP, NULL, NULL},
    {"type_spec", K(STRUCT), LEAF, NULL, "type=struct_type"},
    {"type_spec", K(INTERFACE), LEAF, NULL, "type=interface_type"},
    {"type_spec", K(TYPE), MINOR, NULL, NULL},
    {"type_alias", K(TYPE), MINOR, NULL, NULL},
    {"const_spec", K(CONSTANT), MINOR, NULL, NULL},
    {"var_spec", K(VARIABLE), MINOR, NULL, NULL},
    END,
};

static const lode__rule rust_rules[] = {
    {"function_item", K(FUNCTION), LEAF, NULL, NULL},
    {"function_signature_item", K(FUNCTION), MINOR, NULL, NULL},
    {"struct_item", K(STRUCT), LEAF, NULL, NULL},
    {"union_item", K(UNION), LEAF, NULL, NULL},
    {"enum_item", K(ENUM), LEAF, NULL, NULL},
    {"trait_item", K(TRAIT), HOLD, NULL, NULL},
    {"impl_item", K(IMPL), HOLD, "type", NULL},
    {"mod_item", K(NAMESPACE), HOLD, NULL, "body"},
    {"foreign_mod_item", K(NAMESPACE), HOLD, "", NULL},
    {"macro_definition", K(MACRO), LEAF, NULL, NULL},
    {"type_item", K(TYPE), MINOR, NULL, NULL},
    {"const_item", K(CONSTANT), MINOR, NULL, NULL},
    {"static_item", K(VARIABLE), MINOR, NULL, NULL},
    END,
};

static const lode__rule ruby_rules[] = {
    {"class", K(CLASS), HOLD, NULL, NULL},
    {"singleton_class", K(CLASS), HOLD, "value", NULL},
    {"module", K(NAMESPACE), HOLD, NULL, NULL},
    {"method", K(FUNCTION), LEAF, NULL, NULL},
    {"singleton_method", K(FUNCTION), LEAF, NULL, NULL},
    {"assignment", K(CONSTANT), MINOR, "left", "left=constant"},
    END,
};

static const lode__rule php_rules[] = {
    {"namespace_definition", K(NAMESPACE), HOLD, NULL, "body"},
    {"class_declaration", K(CLASS), HOLD, NULL, NULL},
    {"interface_declaration", K(INTERFACE), HOLD, NULL, NULL},
    {"trait_declaration", K(TRAIT), HOLD, NULL, NULL},
    {"enum_declaration", K(ENUM), HOLD, NULL, NULL},
    {"method_declaration", K(METHOD), LEAF, NULL, NULL},
    {"function_definition", K(FUNCTION), LEAF, NULL, NULL},
    {"property_declaration", K(PROPERTY), MINOR, "property_element.name", NULL},
    {"const_declaration", K(CONSTANT), MINOR, "const_element.name", NULL},
    END,
};

static const lode__rule kotlin_rules[] = {
    {"class_declaration", K(CLASS), HOLD, NULL, NULL},
    {"object_declaration", K(CLASS), HOLD, NULL, NULL},
    {"companion_object", K(CLASS), HOLD, NULL, NULL},
    {"function_declaration", K(FUNCTION), LEAF, NULL, NULL},
    {"secondary_constructor", K(CONSTRUCTOR), LEAF, "", NULL},
    {"type_alias", K(TYPE), MINOR, "type", NULL},
    {"property_declaration", K(PROPERTY), MINOR, "variable_declaration.identifier", NULL},
    END,
};

static const lode__rule swift_rules[] = {
    {"class_declaration", K(STRUCT), HOLD, NULL, "declaration_kind:struct"},
    {"class_declaration", K(ENUM), HOLD, NULL, "declaration_kind:enum"},
    {"class_declaration", K(IMPL), HOLD, NULL, "declaration_kind:extension"},
    {"class_declaration", K(CLASS), HOLD, NULL, NULL},
    {"protocol_declaration", K(INTERFACE), HOLD, NULL, NULL},
    {"function_declaration", K(FUNCTION), LEAF, NULL, NULL},
    {"init_declaration", K(CONSTRUCTOR), LEAF, NULL, NULL},
    {"deinit_declaration", K(METHOD), LEAF, "", NULL},
    {"subscript_declaration", K(METHOD), LEAF, "", NULL},
    {"protocol_function_declaration", K(METHOD), MINOR, NULL, NULL},
    {"typealias_declaration", K(TYPE), MINOR, NULL, NULL},
    {"property_declaration", K(PROPERTY), MINOR, NULL, NULL},
    END,
};

static const lode__rule scala_rules[] = {
    {"class_definition", K(CLASS), HOLD, NULL, NULL},
    {"object_definition", K(CLASS), HOLD, NULL, NULL},
    {"trait_definition", K(TRAIT), HOLD, NULL, NULL},
    {"enum_definition", K(ENUM), HOLD, NULL, NULL},
    {"package_object", K(NAMESPACE), HOLD, NULL, NULL},
    {"extension_definition", K(IMPL), HOLD, "", NULL},
    {"function_definition", K(FUNCTION), LEAF, NULL, NULL},
    {"given_definition", K(VARIABLE), LEAF, NULL, NULL},
    {"function_declaration", K(FUNCTION), MINOR, NULL, NULL},
    {"type_definition", K(TYPE), MINOR, NULL, NULL},
    {"val_definition", K(CONSTANT), MINOR, "pattern", NULL},
    {"var_definition", K(VARIABLE), MINOR, "pattern", NULL},
    END,
};

static const lode__rule dart_rules[] = {
    {"method_signature", NO_KIND, WRAP, NULL, NULL},
    {"declaration", NO_KIND, WRAP, NULL, NULL},
    {"class_definition", K(CLASS), HOLD, NULL, NULL},
    {"mixin_declaration", K(TRAIT), HOLD, "identifier", NULL},
    {"extension_declaration", K(IMPL), HOLD, NULL, NULL},
    {"enum_declaration", K(ENUM), HOLD, NULL, NULL},
    {"function_signature", K(FUNCTION), LEAF, NULL, NULL},
    {"getter_signature", K(FUNCTION), LEAF, NULL, NULL},
    {"setter_signature", K(FUNCTION), LEAF, NULL, NULL},
    {"constructor_signature", K(CONSTRUCTOR), LEAF, NULL, NULL},
    {"factory_constructor_signature", K(CONSTRUCTOR), LEAF, "identifier", NULL},
    {"type_alias", K(TYPE), MINOR, "type_identifier", NULL},
    {"initialized_variable_definition", K(VARIABLE), MINOR, NULL, NULL},
    END,
};

static const lode__rule lua_rules[] = {
    {"function_declaration", K(FUNCTION), LEAF, NULL, NULL},
    {"variable_declaration", NO_KIND, WRAP, NULL, NULL},
    {"assignment_statement", K(FUNCTION), LEAF, "variable_list.name", "expression_list.value=function_definition"},
    {"assignment_statement", K(VARIABLE), MINOR, "variable_list.name", NULL},
    {"field", K(FUNCTION), LEAF, NULL, "value=function_definition"},
    END,
};

static const lode__rule bash_rules[] = {
    {"function_definition", K(FUNCTION), LEAF, NULL, NULL},
    {"variable_assignment", K(VARIABLE), MINOR, NULL, NULL},
    END,
};

static const lode__rule elixir_rules[] = {
    {"call", K(NAMESPACE), HOLD, "arguments.^", "target:defmodule"},
    {"call", K(INTERFACE), HOLD, "arguments.^", "target:defprotocol"},
    {"call", K(IMPL), HOLD, "arguments.^", "target:defimpl"},
    {"call", K(FUNCTION), LEAF, "arguments.^.left*.target*", "target:def|defp|defguard|defguardp|defdelegate"},
    {"call", K(MACRO), LEAF, "arguments.^.left*.target*", "target:defmacro|defmacrop"},
    {"call", K(FUNCTION), LEAF, "arguments.^", "target:test|describe"},
    END,
};

static const lode__rule haskell_rules[] = {
    {"function", K(FUNCTION), LEAF, NULL, NULL},
    {"bind", K(FUNCTION), LEAF, NULL, NULL},
    {"data_type", K(TYPE), LEAF, NULL, NULL},
    {"newtype", K(TYPE), LEAF, NULL, NULL},
    {"type_synomym", K(TYPE), MINOR, NULL, NULL},
    {"class", K(TRAIT), HOLD, NULL, NULL},
    {"instance", K(IMPL), HOLD, NULL, NULL},
    END,
};

static const lode__rule ocaml_rules[] = {
    {"value_definition", NO_KIND, WRAP, NULL, NULL},
    {"let_binding", K(FUNCTION), LEAF, "pattern", NULL},
    {"type_definition", NO_KIND, WRAP, NULL, NULL},
    {"type_binding", K(TYPE), LEAF, NULL, NULL},
    {"module_definition", NO_KIND, WRAP, NULL, NULL},
    {"module_binding", K(NAMESPACE), HOLD, "module_name", NULL},
    {"module_type_definition", K(INTERFACE), HOLD, "module_type_name", NULL},
    {"class_definition", NO_KIND, WRAP, NULL, NULL},
    {"class_binding", K(CLASS), HOLD, "class_name", NULL},
    {"method_definition", K(METHOD), LEAF, "method_name", NULL},
    {"exception_definition", K(TYPE), MINOR, "constructor_declaration", NULL},
    {"external", K(FUNCTION), MINOR, "value_name", NULL},
    END,
};

static const lode__rule zig_rules[] = {
    {"function_declaration", K(FUNCTION), LEAF, NULL, NULL},
    {"test_declaration", K(FUNCTION), LEAF, "string", NULL},
    {"variable_declaration", K(STRUCT), HOLD, "identifier", "struct_declaration"},
    {"variable_declaration", K(ENUM), HOLD, "identifier", "enum_declaration"},
    {"variable_declaration", K(UNION), HOLD, "identifier", "union_declaration"},
    {"variable_declaration", K(CONSTANT), MINOR, "identifier", NULL},
    END,
};

static const lode__rule perl_rules[] = {
    {"function_definition", K(FUNCTION), LEAF, NULL, NULL},
    {"package_statement", K(NAMESPACE), MINOR, "package_name", NULL},
    END,
};

static const lode__rule r_rules[] = {
    {"binary_operator", K(FUNCTION), LEAF, "lhs", "rhs=function_definition"},
    END,
};

static const lode__rule powershell_rules[] = {
    {"function_statement", K(FUNCTION), LEAF, "function_name", NULL},
    {"class_statement", K(CLASS), HOLD, "simple_name", NULL},
    {"class_method_definition", K(METHOD), LEAF, "simple_name", NULL},
    {"enum_statement", K(ENUM), LEAF, "simple_name", NULL},
    END,
};

static const lode__rule solidity_rules[] = {
    {"contract_declaration", K(CLASS), HOLD, NULL, NULL},
    {"interface_declaration", K(INTERFACE), HOLD, NULL, NULL},
    {"library_declaration", K(CLASS), HOLD, NULL, NULL},
    {"function_definition", K(FUNCTION), LEAF, NULL, NULL},
    {"constructor_definition", K(CONSTRUCTOR), LEAF, "", NULL},
    {"modifier_definition", K(FUNCTION), LEAF, NULL, NULL},
    {"fallback_receive_definition", K(FUNCTION), LEAF, "", NULL},
    {"struct_declaration", K(STRUCT), LEAF, NULL, NULL},
    {"enum_declaration", K(ENUM), LEAF, NULL, NULL},
    {"event_definition", K(TYPE), MINOR, NULL, NULL},
    {"error_declaration", K(TYPE), MINOR, NULL, NULL},
    {"state_variable_declaration", K(VARIABLE), MINOR, NULL, NULL},
    END,
};

static const lode__rule sql_rules[] = {
    {"statement", NO_KIND, WRAP, NULL, NULL},
    {"create_table", K(TABLE), LEAF, "object_reference", NULL},
    {"create_view", K(TABLE), LEAF, "object_reference", NULL},
    {"create_materialized_view", K(TABLE), LEAF, "object_reference", NULL},
    {"create_function", K(FUNCTION), LEAF, "object_reference", NULL},
    {"create_trigger", K(FUNCTION), LEAF, "object_reference", NULL},
    {"create_type", K(TYPE), LEAF, "object_reference", NULL},
    {"create_index", K(RULE), MINOR, "column", NULL},
    END,
};

static const lode__rule css_rules[] = {
    {"rule_set", K(RULE), MINOR, "selectors", NULL},
    {"media_statement", K(RULE), MINOR, "", NULL},
    {"keyframes_statement", K(RULE), MINOR, "keyframes_name", NULL},
    END,
};

static const lode__rule html_rules[] = {
    {"script_element", K(MODULE), LEAF, "", NULL},
    {"style_element", K(RULE), LEAF, "", NULL},
    END,
};

static const lode__rule json_rules[] = {{"pair", K(PROPERTY), MINOR, "key", NULL}, END};
static const lode__rule yaml_rules[] = {{"block_mapping_pair", K(PROPERTY), MINOR, "key", NULL}, END};

static const lode__rule toml_rules[] = {
    {"table", K(SECTION), MINOR, "^", NULL},
    {"table_array_element", K(SECTION), MINOR, "^", NULL},
    END,
};

static const lode__rule hcl_rules[] = {{"block", K(SECTION), LEAF, "string_lit", "string_lit"}, {"block", K(SECTION), LEAF, "identifier", NULL}, END};

static const lode__rule make_rules[] = {
    {"rule", K(RULE), LEAF, "^", NULL},
    {"define_directive", K(MACRO), LEAF, NULL, NULL},
    {"variable_assignment", K(VARIABLE), MINOR, NULL, NULL},
    END,
};

#define PLAIN(name_, ext_, ...) {.name = name_, .extensions = ext_, .reader = LODE__READ_LINES, __VA_ARGS__}

const lode__language lode__languages[] = {
    /* the first is what nothing is known about */
    {.name = "text", .aliases = "txt plain", .extensions = "txt text log"},
    {.name = "c", .extensions = "c h i inl", .reader = LODE__READ_TREE, .grammar = "c", .rules = c_rules},
    {.name = "c++", .aliases = "cpp cxx", .extensions = "cc cpp cxx c++ hpp hh hxx h++ ipp tpp ixx cppm cu cuh ino", .reader = LODE__READ_TREE,
     .grammar = "cpp", .rules = cpp_rules},
    {.name = "python", .aliases = "py", .extensions = "py pyi pyw pyx pxd gyp gypi bzl star", .file_names = "SConstruct SConscript wscript BUILD WORKSPACE",
     .interpreters = "python pypy", .reader = LODE__READ_TREE, .grammar = "python", .docstring = true, .rules = python_rules},
    {.name = "javascript", .aliases = "js jsx node", .extensions = "js jsx mjs cjs es6", .interpreters = "node nodejs bun deno",
     .file_names = "Jakefile", .reader = LODE__READ_TREE, .grammar = "javascript", .rules = javascript_rules},
    {.name = "typescript", .aliases = "ts", .extensions = "ts mts cts", .interpreters = "ts-node tsx", .reader = LODE__READ_TREE,
     .grammar = "typescript", .rules = typescript_rules},
    {.name = "tsx", .extensions = "tsx", .reader = LODE__READ_TREE, .grammar = "tsx", .rules = typescript_rules},
    {.name = "java", .extensions = "java", .reader = LODE__READ_TREE, .grammar = "java", .comment = "line_comment block_comment", .rules = java_rules},
    {.name = "c#", .aliases = "csharp cs", .extensions = "cs csx", .reader = LODE__READ_TREE, .grammar = "c_sharp", .rules = csharp_rules},
    {.name = "go", .aliases = "golang", .extensions = "go", .reader = LODE__READ_TREE, .grammar = "go", .rules = go_rules},
    {.name = "rust", .aliases = "rs", .extensions = "rs", .reader = LODE__READ_TREE, .grammar = "rust",
     .comment = "line_comment block_comment attribute_item", .rules = rust_rules},
    {.name = "ruby", .aliases = "rb", .extensions = "rb rake gemspec ru podspec", .file_names = "Rakefile Gemfile Vagrantfile Podfile Fastfile Guardfile",
     .interpreters = "ruby rake", .reader = LODE__READ_TREE, .grammar = "ruby", .rules = ruby_rules},
    {.name = "php", .extensions = "php phtml php5 inc", .interpreters = "php", .reader = LODE__READ_TREE, .grammar = "php", .rules = php_rules},
    {.name = "kotlin", .aliases = "kt", .extensions = "kt kts", .reader = LODE__READ_TREE, .grammar = "kotlin",
     .body = "class_body enum_class_body function_body", .comment = "line_comment block_comment", .rules = kotlin_rules},
    {.name = "swift", .extensions = "swift", .reader = LODE__READ_TREE, .grammar = "swift", .comment = "comment multiline_comment", .rules = swift_rules},
    {.name = "scala", .extensions = "scala sc sbt", .reader = LODE__READ_TREE, .grammar = "scala", .comment = "comment block_comment", .rules = scala_rules},
    {.name = "dart", .extensions = "dart", .reader = LODE__READ_TREE, .grammar = "dart", .body = "body function_body class_body enum_body extension_body",
     .comment = "comment documentation_comment marker_annotation annotation", .rules = dart_rules},
    {.name = "lua", .extensions = "lua", .interpreters = "lua luajit", .reader = LODE__READ_TREE, .grammar = "lua", .rules = lua_rules},
    {.name = "shell", .aliases = "bash sh zsh", .extensions = "sh bash zsh ksh bats ebuild", .interpreters = "sh bash zsh dash ksh ash",
     .file_names = "PKGBUILD APKBUILD .bashrc .profile", .reader = LODE__READ_TREE, .grammar = "bash", .rules = bash_rules},
    {.name = "elixir", .extensions = "ex exs", .interpreters = "elixir", .reader = LODE__READ_TREE, .grammar = "elixir",
     .body = "do_block", .comment = "comment unary_operator", .clauses = true, .rules = elixir_rules},
    {.name = "haskell", .aliases = "hs", .extensions = "hs", .interpreters = "runhaskell", .reader = LODE__READ_TREE, .grammar = "haskell",
     .body = "match declarations constructors", .comment = "comment haddock signature", .clauses = true, .rules = haskell_rules},
    {.name = "ocaml", .aliases = "ml", .extensions = "ml mli", .reader = LODE__READ_TREE, .grammar = "ocaml", .rules = ocaml_rules},
    {.name = "zig", .extensions = "zig", .reader = LODE__READ_TREE, .grammar = "zig", .body = "body struct_declaration enum_declaration union_declaration",
     .rules = zig_rules},
    {.name = "perl", .aliases = "pl", .extensions = "pl pm t", .interpreters = "perl", .reader = LODE__READ_TREE, .grammar = "perl",
     .comment = "comments pod_statement", .rules = perl_rules},
    {.name = "r", .extensions = "r", .interpreters = "Rscript", .reader = LODE__READ_TREE, .grammar = "r", .rules = r_rules},
    {.name = "powershell", .aliases = "ps1 pwsh", .extensions = "ps1 psm1 psd1", .interpreters = "pwsh", .reader = LODE__READ_TREE,
     .grammar = "powershell", .body = "script_block", .rules = powershell_rules},
    {.name = "groovy", .extensions = "groovy gradle", .file_names = "Jenkinsfile", .interpreters = "groovy", .reader = LODE__READ_TREE,
     .grammar = "groovy", .comment = "line_comment block_comment", .rules = groovy_rules},
    {.name = "solidity", .aliases = "sol", .extensions = "sol", .reader = LODE__READ_TREE, .grammar = "solidity", .rules = solidity_rules},
    {.name = "sql", .extensions = "sql ddl", .reader = LODE__READ_TREE, .grammar = "sql", .comment = "comment marginalia", .rules = sql_rules},
    {.name = "html", .extensions = "html htm xhtml vue", .reader = LODE__READ_TREE, .grammar = "html", .rules = html_rules},
    {.name = "svelte", .extensions = "svelte", .reader = LODE__READ_TREE, .grammar = "svelte", .rules = html_rules},
    {.name = "css", .extensions = "css", .reader = LODE__READ_TREE, .grammar = "css", .rules = css_rules},
    {.name = "json", .extensions = "json jsonc json5 webmanifest geojson", .reader = LODE__READ_TREE, .grammar = "json", .data = true, .rules = json_rules},
    {.name = "yaml", .aliases = "yml", .extensions = "yaml yml", .reader = LODE__READ_TREE, .grammar = "yaml", .data = true, .rules = yaml_rules},
    {.name = "toml", .extensions = "toml", .reader = LODE__READ_TREE, .grammar = "toml", .data = true, .rules = toml_rules},
    {.name = "hcl", .aliases = "terraform", .extensions = "tf hcl tfvars", .reader = LODE__READ_TREE, .grammar = "hcl", .data = true, .rules = hcl_rules},
    {.name = "make", .aliases = "makefile", .extensions = "mk mak", .file_names = "Makefile GNUmakefile Kbuild", .interpreters = "make",
     .reader = LODE__READ_TREE, .grammar = "make", .rules = make_rules},
    {.name = "markdown", .aliases = "md", .extensions = "md markdown mdx mkd", .file_names = "README CHANGELOG CONTRIBUTING", .reader = LODE__READ_MARKDOWN},
    {.name = "rst", .aliases = "restructuredtext", .extensions = "rst rest", .reader = LODE__READ_RST},
    PLAIN("asciidoc", "adoc asciidoc"),
    PLAIN("org", "org"),
    PLAIN("latex", "tex sty cls bib", .aliases = "tex"),
    PLAIN("man", "1 2 3 4 5 6 7 8"),
    PLAIN("assembly", "s asm nasm", .aliases = "asm"),
    PLAIN("objective-c", "m mm", .aliases = "objc"),
    PLAIN("clojure", "clj cljs cljc edn"),
    PLAIN("erlang", "erl hrl", .interpreters = "escript"),
    PLAIN("f#", "fs fsi fsx", .aliases = "fsharp"),
    PLAIN("julia", "jl", .interpreters = "julia"),
    PLAIN("nim", "nim nims"),
    PLAIN("crystal", "cr"),
    PLAIN("d", "d di"),
    PLAIN("pascal", "pas pp dpr lpr"),
    PLAIN("fortran", "f f90 f95 f03 f08 for"),
    PLAIN("ada", "ada adb ads"),
    PLAIN("lisp", "lisp lsp el cl scm ss rkt", .aliases = "elisp scheme racket"),
    PLAIN("tcl", "tcl", .interpreters = "tclsh wish expect"),
    PLAIN("awk", "awk", .interpreters = "awk gawk mawk"),
    PLAIN("vim", "vim"),
    PLAIN("verilog", "v vh sv svh"),
    PLAIN("vhdl", "vhd vhdl"),
    PLAIN("glsl", "glsl vert frag geom comp hlsl wgsl metal"),
    PLAIN("protobuf", "proto", .aliases = "proto"),
    PLAIN("thrift", "thrift"),
    PLAIN("graphql", "graphql gql"),
    PLAIN("prisma", "prisma"),
    PLAIN("scss", "scss sass less styl", .aliases = "sass less"),
    PLAIN("xml", "xml xsd xsl xslt svg plist csproj vcxproj props targets rss wsdl xaml ui qrc", .data = true),
    PLAIN("csv", "csv tsv", .data = true),
    PLAIN("ini", "ini cfg conf properties desktop service editorconfig", .data = true, .file_names = ".editorconfig .gitconfig"),
    PLAIN("devicetree", "dts dtsi dtso", .data = true),
    PLAIN("kconfig", NULL, .file_names = "Kconfig", .data = true),
    PLAIN("cmake", "cmake", .file_names = "CMakeLists.txt"),
    PLAIN("meson", NULL, .file_names = "meson.build meson_options.txt"),
    PLAIN("docker", "dockerfile", .file_names = "Dockerfile Containerfile", .aliases = "dockerfile"),
    PLAIN("nix", "nix"),
    PLAIN("bazel", NULL, .file_names = "BUILD.bazel WORKSPACE.bazel"),
    PLAIN("diff", "diff patch", .data = true),
    PLAIN("batch", "bat cmd"),
    PLAIN("template", "j2 jinja jinja2 tmpl tpl mustache hbs ejs erb haml pug jade twig liquid"),
    PLAIN("notebook", "ipynb", .data = true),
    PLAIN("grammar", "y yy l ll g4 peg ebnf bnf"),
    PLAIN("linker", "ld lds"),
};

const size_t lode__language_count = sizeof lode__languages / sizeof *lode__languages;
