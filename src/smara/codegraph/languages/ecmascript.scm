; What JavaScript and TypeScript share

; Definitions
(class_declaration) @class
(variable_declarator name: (identifier) value: (class)) @class
(function_declaration) @function
(generator_function_declaration) @function
(variable_declarator name: (identifier) value: [(arrow_function) (function_expression) (generator_function)]) @function
(assignment_expression left: (member_expression) right: [(arrow_function) (function_expression) (generator_function)]) @function
(pair key: (property_identifier) value: [(arrow_function) (function_expression)]) @function
(method_definition) @method
(export_statement value: [(arrow_function) (function_expression) (class) (object) (call_expression) (new_expression)]) @default
(program (lexical_declaration (variable_declarator name: (identifier)) @constant))
(program (variable_declaration (variable_declarator name: (identifier)) @constant))
(program (export_statement declaration: (lexical_declaration (variable_declarator name: (identifier)) @constant)))
(export_statement declaration: (_)) @outer
(lexical_declaration . (variable_declarator)) @outer
(expression_statement (call_expression function: [(identifier) (member_expression)] arguments: (arguments . [(string) (template_string)] . [(arrow_function) (function_expression)])) @case)

; Imports
(import_statement) @import
(export_statement source: (string)) @import
(export_statement (export_clause)) @import
(export_statement value: (identifier)) @import
(export_statement "default" declaration: [(class_declaration name: (_) @exported) (function_declaration name: (_) @exported)])
(assignment_expression left: (member_expression) right: [(identifier) (object)]) @import
(assignment_expression left: (member_expression) right: (call_expression function: (identifier) arguments: (arguments . (string) .))) @import
(variable_declarator value: (call_expression function: (identifier) arguments: (arguments . (string) .))) @import
(variable_declarator value: (member_expression object: (call_expression function: (identifier) arguments: (arguments . (string) .)))) @import
(expression_statement (call_expression function: (identifier) arguments: (arguments . (string) .)) @import)
(call_expression function: (import) arguments: (arguments . (string))) @import

; Uses
(call_expression function: [(identifier) (member_expression)] @call)
(new_expression constructor: [(identifier) (member_expression)] @call)
(arguments [(identifier) (member_expression)] @use)
(pair value: [(identifier) (member_expression)] @use)
(shorthand_property_identifier) @use
(array [(identifier) (member_expression)] @use)
(assignment_expression right: [(identifier) (member_expression)] @use)
(variable_declarator value: [(identifier) (member_expression)] @use)
(return_statement [(identifier) (member_expression)] @use)
(decorator [(identifier) (member_expression)] @use)
(binary_expression right: (identifier) @use)
(template_substitution [(identifier) (member_expression)] @use)

; Variables whose type is plain to see
(variable_declarator name: (identifier) @made.name value: (new_expression constructor: [(identifier) (member_expression)] @made.by))
(variable_declarator name: (identifier) @made.name value: (call_expression function: [(identifier) (member_expression)] @made.by))
(variable_declarator name: (identifier) @made.name value: (await_expression (call_expression function: [(identifier) (member_expression)] @made.by)))
(assignment_expression left: (member_expression) @made.name right: (new_expression constructor: [(identifier) (member_expression)] @made.by))
(assignment_expression left: (member_expression) @made.name right: (call_expression function: [(identifier) (member_expression)] @made.by))
(assignment_expression left: (member_expression) @copied.name right: (identifier) @copied.from)

; What is said apart from layout
(comment) @comment
(string_fragment) @string
