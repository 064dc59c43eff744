; Definitions
(function_definition) @function
(struct_specifier name: (_) body: (_)) @class
(union_specifier name: (_) body: (_)) @class
(enum_specifier name: (_) body: (_)) @class
(type_definition declarator: (type_identifier)) @class
(preproc_def) @constant
(preproc_function_def) @function
(translation_unit (declaration declarator: (init_declarator)) @constant)

; Imports
(preproc_include) @import

; Uses
(call_expression function: [(identifier) (field_expression)] @call)
(type_identifier) @type
(argument_list (identifier) @use)
(init_declarator value: (identifier) @use)
(initializer_list (identifier) @use)
(initializer_pair value: (identifier) @use)
(assignment_expression right: (identifier) @use)
(return_statement (identifier) @use)
(binary_expression (identifier) @use)
(case_statement value: (identifier) @use)

; Variables whose type is plain to see
(parameter_declaration type: (_) @typed.type declarator: (identifier) @typed.name)
(parameter_declaration type: (_) @typed.type declarator: (pointer_declarator declarator: (identifier) @typed.name))
(declaration type: (_) @typed.type declarator: (identifier) @typed.name)
(declaration type: (_) @typed.type declarator: (pointer_declarator declarator: (identifier) @typed.name))
(declaration type: (_) @typed.type declarator: (init_declarator declarator: (identifier) @typed.name))
(declaration type: (_) @typed.type declarator: (init_declarator declarator: (pointer_declarator declarator: (identifier) @typed.name)))
(field_declaration type: (_) @typed.type declarator: (field_identifier) @typed.name)
(field_declaration type: (_) @typed.type declarator: (pointer_declarator declarator: (field_identifier) @typed.name))
(function_definition type: (_) @returns)

; What is said apart from layout
(comment) @comment
(string_content) @string
(char_literal) @string
