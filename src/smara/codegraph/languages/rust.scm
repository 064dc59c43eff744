; Definitions
(struct_item) @class
(enum_item) @class
(union_item) @class
(trait_item) @class
(type_item) @class
(mod_item body: (_)) @module
(function_item) @function
(function_signature_item) @function
(macro_definition) @function
(impl_item) @implementation
(const_item) @constant
(static_item) @constant
(attribute_item) @before

; Imports
(use_declaration) @import
(extern_crate_declaration) @import
(mod_item !body) @import

; Uses
(call_expression function: [(identifier) (field_expression) (scoped_identifier)] @call)
(generic_function function: [(identifier) (field_expression) (scoped_identifier)] @call)
(macro_invocation macro: [(identifier) (scoped_identifier)] @call)
(struct_expression name: [(type_identifier) (scoped_type_identifier)] @call)
(token_tree (identifier) @token . (token_tree))
(impl_item trait: [(type_identifier) (scoped_type_identifier)] @base)
(impl_item trait: (generic_type type: [(type_identifier) (scoped_type_identifier)] @base))
(trait_item bounds: (trait_bounds [(type_identifier) (scoped_type_identifier)] @base))
(type_identifier) @use
(arguments [(identifier) (scoped_identifier)] @use)
(scoped_identifier path: (identifier)) @use

; Variables whose type is plain to see
(parameter pattern: (identifier) @typed.name type: (_) @typed.type)
(let_declaration pattern: (identifier) @typed.name type: (_) @typed.type)
(field_declaration name: (field_identifier) @typed.name type: (_) @typed.type)
(let_declaration pattern: (identifier) @made.name value: (call_expression function: [(identifier) (field_expression) (scoped_identifier)] @made.by))
(let_declaration pattern: (identifier) @made.name value: (try_expression (call_expression function: [(identifier) (field_expression) (scoped_identifier)] @made.by)))
(let_declaration pattern: (identifier) @made.name value: (struct_expression name: [(type_identifier) (scoped_type_identifier)] @made.by))
(function_item return_type: (_) @returns)
(function_signature_item return_type: (_) @returns)

; What is said apart from layout
(line_comment) @comment
(block_comment) @comment
(string_content) @string
(char_literal) @string
