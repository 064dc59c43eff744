; Definitions
(type_spec) @class
(type_alias) @class
(type_declaration) @outer
(function_declaration) @function
(method_declaration) @method
(method_elem) @method
(source_file (const_declaration (const_spec) @constant))
(source_file (var_declaration (var_spec) @constant))
(source_file (var_declaration (var_spec_list (var_spec) @constant)))
(package_clause (package_identifier) @package)

; Imports
(import_spec) @import

; Uses
(call_expression function: [(identifier) (selector_expression)] @call)
(composite_literal type: [(type_identifier) (qualified_type)] @call)
(field_declaration !name type: [(type_identifier) (qualified_type)] @base)
(field_declaration !name type: (pointer_type [(type_identifier) (qualified_type)] @base))
(interface_type (type_elem [(type_identifier) (qualified_type)] @base))
(type_identifier) @type
(qualified_type) @type
(argument_list [(identifier) (selector_expression)] @use)
(binary_expression [(identifier) (selector_expression)] @use)
(expression_list [(identifier) (selector_expression)] @use)
(literal_element [(identifier) (selector_expression)] @use)

; Variables whose type is plain to see
(parameter_declaration name: (identifier) @typed.name type: (_) @typed.type)
(var_spec name: (identifier) @typed.name type: (_) @typed.type)
(field_declaration name: (field_identifier) @typed.name type: (_) @typed.type)
(short_var_declaration left: (expression_list . (identifier) @made.name) right: (expression_list . (call_expression function: [(identifier) (selector_expression)] @made.by)))
(short_var_declaration left: (expression_list . (identifier) @made.name) right: (expression_list . (composite_literal type: [(type_identifier) (qualified_type)] @made.by)))
(short_var_declaration left: (expression_list . (identifier) @made.name) right: (expression_list . (unary_expression (composite_literal type: [(type_identifier) (qualified_type)] @made.by))))
(function_declaration result: (_) @returns)
(method_declaration result: (_) @returns)
(method_elem result: (_) @returns)

; What is said apart from layout
(comment) @comment
(interpreted_string_literal) @string
(raw_string_literal) @string
