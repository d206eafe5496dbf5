/* SPDX-License-Identifier: Apache-2.0 */
/* language_uses.c - see language_uses.h. `lode-parser --check` compares the nodes with the grammars. */
#include "scan/language_uses.h"

#define C_BINDS                                                                                                        \
  "parameter_declaration:declarator init_declarator:declarator declaration:declarator pointer_declarator:declarator "  \
  "array_declarator:declarator"
#define JS_CALLS "call_expression.function new_expression.constructor"
#define JS_BINDS                                                                                                       \
  "formal_parameters: assignment_pattern:left variable_declarator:name array_pattern: object_pattern: "                \
  "pair_pattern:value rest_pattern: catch_clause:parameter arrow_function:parameter for_in_statement:left"

#define JS_COMMON                                                                                                      \
  "map filter forEach reduce some every find findIndex indexOf includes push pop shift unshift slice splice concat "   \
  "join split replace replaceAll match matchAll test exec trim toString valueOf keys values entries get set has add "  \
  "delete clear then catch finally call apply bind on once off emit write end pipe close open read next return throw " \
  "sort reverse flat flatMap fill at charAt charCodeAt startsWith endsWith padStart padEnd repeat toLowerCase "        \
  "toUpperCase toFixed toISOString getTime hasOwnProperty addEventListener removeEventListener append remove send "    \
  "destroy resume pause abort log error warn info json text"
#define PYTHON_COMMON                                                                                                  \
  "get keys values items pop append extend insert remove clear copy update setdefault add discard union sort reverse " \
  "index count join split rsplit strip lstrip rstrip replace startswith endswith format encode decode lower upper "    \
  "title find read readline readlines write writelines close flush seek tell open match search group groups sub "      \
  "findall start stop run wait set acquire release send put exists mkdir is_file is_dir resolve as_posix"
#define JAVA_COMMON                                                                                                    \
  "get set add put remove contains containsKey size isEmpty clear keySet values entrySet iterator hasNext next "       \
  "toString equals hashCode compareTo length charAt substring indexOf split trim replace format append insert "        \
  "stream map filter forEach collect reduce apply accept test run call close read write flush getName getKey "         \
  "getValue of valueOf parse start stop await submit execute first last"
#define RUST_COMMON                                                                                                    \
  "len is_empty iter iter_mut into_iter next map map_err filter filter_map and_then or_else unwrap unwrap_or expect "  \
  "ok err get get_mut insert remove push pop extend contains contains_key clone as_ref as_mut as_str as_bytes "        \
  "to_string to_owned into from try_into try_from parse trim split lines bytes chars find rfind replace starts_with "  \
  "ends_with join collect fold any all count min max sum zip rev skip take chain enumerate peekable sort sort_by "     \
  "dedup retain drain clear first last position write write_all flush read read_to_end read_line seek lock send recv " \
  "spawn wait kill output status arg args env eq cmp partial_cmp hash fmt default borrow deref drop display path "     \
  "is_some is_none is_ok is_err copied cloned entry keys values capacity reserve truncate start end name kind"
#define RUBY_COMMON                                                                                                    \
  "each map select reject find inject reduce first last size length empty? any? all? include? key? keys values push "  \
  "pop shift unshift join split gsub sub match strip to_s to_i to_a to_h to_sym merge fetch delete dup freeze call "   \
  "new send respond_to? is_a? nil? sort sort_by uniq flatten compact zip each_with_index read write close open puts "  \
  "name get set add update"

static const lang_uses lang_uses_table[] = {
    {.grammar = "c",
     .calls = "call_expression.function",
     .imports = "preproc_include",
     .import = LANG_IMPORT_C,
     .binds = C_BINDS,
     .members = "field_declaration.declarator*",
     .values = "enumerator.name"},
    {.grammar = "cpp",
     .calls = "call_expression.function new_expression.type",
     .imports = "preproc_include",
     .import = LANG_IMPORT_C,
     .binds = C_BINDS " reference_declarator: for_range_loop:declarator optional_parameter_declaration:declarator "
                      "structured_binding_declarator:",
     .bases = "base_class_clause",
     .members = "field_declaration.declarator*",
     .values = "enumerator.name",
     .implicit_this = true},
    {.grammar = "python",
     .common = PYTHON_COMMON,
     .calls = "call.function decorator.^",
     .imports = "import_statement import_from_statement future_import_statement",
     .import = LANG_IMPORT_PYTHON,
     .binds = "parameters: default_parameter:name typed_parameter: typed_default_parameter:name list_splat_pattern: "
              "dictionary_splat_pattern: assignment:left for_statement:left for_in_clause:left as_pattern_target: "
              "lambda_parameters: named_expression:name",
     .bases = "class_definition:superclasses"},
    {.grammar = "javascript",
     .common = JS_COMMON,
     .calls = JS_CALLS,
     .imports = "import_statement",
     .import = LANG_IMPORT_JS,
     .binds = JS_BINDS,
     .bases = "class_heritage"},
    {.grammar = "typescript",
     .common = JS_COMMON,
     .calls = JS_CALLS,
     .imports = "import_statement",
     .import = LANG_IMPORT_JS,
     .binds = JS_BINDS " required_parameter:pattern optional_parameter:pattern",
     .bases = "class_heritage extends_type_clause",
     .members = "property_signature.name"},
    {.grammar = "tsx",
     .common = JS_COMMON,
     .calls = JS_CALLS " jsx_opening_element.name jsx_self_closing_element.name",
     .imports = "import_statement",
     .import = LANG_IMPORT_JS,
     .binds = JS_BINDS " required_parameter:pattern optional_parameter:pattern",
     .bases = "class_heritage extends_type_clause",
     .members = "property_signature.name"},
    {.grammar = "java",
     .common = JAVA_COMMON,
     .calls = "method_invocation.name<object object_creation_expression.type",
     .imports = "import_declaration",
     .import = LANG_IMPORT_DOTS,
     .binds = "formal_parameter:name variable_declarator:name catch_formal_parameter:name enhanced_for_statement:name "
              "lambda_expression:parameters inferred_parameters: resource:name instanceof_expression:name",
     .bases = "superclass super_interfaces extends_interfaces",
     .values = "enum_constant.name",
     .implicit_this = true,
     .package_by_path = true},
    {.grammar = "groovy",
     .common = JAVA_COMMON,
     .calls = "method_invocation.name<object object_creation_expression.type",
     .imports = "import_declaration",
     .import = LANG_IMPORT_DOTS,
     .binds = "formal_parameter:name variable_declarator:name",
     .bases = "superclass super_interfaces",
     .implicit_this = true,
     .package_by_path = true},
    {.grammar = "c_sharp",
     .common = JAVA_COMMON,
     .calls = "invocation_expression.function object_creation_expression.type",
     .imports = "using_directive",
     .import = LANG_IMPORT_DOTS,
     .binds = "parameter:name variable_declarator:name foreach_statement:left declaration_expression:name "
              "catch_declaration:name declaration_pattern:name",
     .bases = "base_list",
     .values = "enum_member_declaration.name",
     .implicit_this = true,
     .package_by_path = true},
    {.grammar = "go",
     .calls = "call_expression.function",
     .imports = "import_spec",
     .import = LANG_IMPORT_GO,
     .binds = "parameter_declaration:name variadic_parameter_declaration:name short_var_declaration:left var_spec:name "
              "const_spec:name range_clause:left receive_statement:left type_switch_statement:alias",
     .bases = "field_declaration:type type_elem",
     .members = "field_declaration.name method_elem.name",
     .package_by_path = true},
    {.grammar = "rust",
     .common = RUST_COMMON,
     .calls = "call_expression.function macro_invocation.macro",
     .imports = "use_declaration",
     .import = LANG_IMPORT_RUST,
     .binds = "let_declaration:pattern parameter:pattern closure_parameters: for_expression:pattern tuple_pattern: "
              "tuple_struct_pattern: mut_pattern: ref_pattern: captured_pattern: let_condition:pattern "
              "reference_pattern: slice_pattern: field_pattern:pattern",
     .bases = "impl_item:trait trait_bounds",
     .members = "field_declaration.name",
     .values = "enum_variant.name"},
    {.grammar = "ruby",
     .common = RUBY_COMMON,
     .calls = "call.method<receiver",
     .binds = "method_parameters: block_parameters: assignment:left optional_parameter:name keyword_parameter:name "
              "splat_parameter:name hash_splat_parameter:name block_parameter:name left_assignment_list: "
              "lambda_parameters:",
     .bases = "superclass",
     .implicit_this = true},
    {.grammar = "php",
     .calls = "function_call_expression.function member_call_expression.name<object "
              "nullsafe_member_call_expression.name<object scoped_call_expression.name<scope "
              "object_creation_expression.^",
     .imports = "namespace_use_clause",
     .import = LANG_IMPORT_DOTS,
     .binds = "simple_parameter:name assignment_expression:left property_promotion_parameter:name "
              "variadic_parameter:name foreach_statement: catch_clause:name",
     .bases = "base_clause class_interface_clause"},
    {.grammar = "kotlin",
     .common = JAVA_COMMON,
     .calls = "call_expression.^ constructor_invocation.^",
     .imports = "import",
     .import = LANG_IMPORT_DOTS,
     .binds = "parameter: variable_declaration: lambda_parameters: catch_block:",
     .bases = "delegation_specifiers",
     .members = "class_parameter.identifier",
     .values = "enum_entry.identifier",
     .implicit_this = true,
     .package_by_path = true},
    {.grammar = "swift",
     .calls = "call_expression.^",
     .imports = "import_declaration",
     .import = LANG_IMPORT_DOTS,
     .bases = "inheritance_specifier",
     .implicit_this = true,
     .package_by_path = true},
    {.grammar = "scala",
     .common = JAVA_COMMON,
     .calls = "call_expression.function instance_expression.^",
     .imports = "import_declaration",
     .import = LANG_IMPORT_DOTS,
     .bases = "extends_clause",
     .implicit_this = true,
     .package_by_path = true},
    {.grammar = "lua", .calls = "function_call.name"},
    {.grammar = "bash", .calls = "command.name"},
    {.grammar = "zig", .calls = "call_expression.function"},
    {.grammar = "r", .calls = "call.function"},
    {.grammar = "solidity",
     .calls = "call_expression.function",
     .bases = "inheritance_specifier",
     .implicit_this = true},
};
static const size_t lang_uses_count = sizeof lang_uses_table / sizeof *lang_uses_table;

const lang_uses *lang_uses_of(const lang_info *language) {
  for (size_t i = 0; language->grammar && i < lang_uses_count; i++)
    if (strcmp(lang_uses_table[i].grammar, language->grammar) == 0) return &lang_uses_table[i];
  return NULL;
}

const char *lang_family(const lang_info *language) {
  static const char *const families[][2] = {{"cpp", "c"},
                                            {"tsx", "javascript"},
                                            {"typescript", "javascript"},
                                            {"svelte", "javascript"},
                                            {"kotlin", "java"},
                                            {"groovy", "java"},
                                            {"scala", "java"}};
  if (!language->grammar) return language->name;
  for (size_t i = 0; i < sizeof families / sizeof *families; i++)
    if (strcmp(families[i][0], language->grammar) == 0) return families[i][1];
  return language->grammar;
}
