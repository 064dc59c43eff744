
; What only C++ has
(class_specifier name: (_) body: (_)) @class
(alias_declaration) @class
(field_declaration declarator: (function_declarator) default_value: (number_literal)) @function
(field_declaration declarator: (pointer_declarator (function_declarator)) default_value: (number_literal)) @function
(concept_definition) @class
(namespace_definition name: (_)) @module
(template_declaration) @outer
(using_declaration) @import
(call_expression function: (qualified_identifier) @call)
(call_expression function: (template_function name: (identifier) @call))
(new_expression type: (_) @call)
(base_class_clause [(type_identifier) (qualified_identifier) (template_type)] @base)
(qualified_identifier) @type
(parameter_declaration type: (_) @typed.type declarator: (reference_declarator (identifier) @typed.name))
; Store store(path); looks like the declaration of a function
(compound_statement (declaration type: (_) @typed.type declarator: (function_declarator declarator: (identifier) @typed.name)))
(declaration type: (_) @typed.type declarator: (init_declarator declarator: (reference_declarator (identifier) @typed.name)))
(field_declaration type: (_) @typed.type declarator: (reference_declarator (field_identifier) @typed.name))
(init_declarator declarator: (identifier) @made.name value: (new_expression type: (_) @made.by))
(init_declarator declarator: (identifier) @made.name value: (call_expression function: [(identifier) (qualified_identifier) (field_expression)] @made.by))
(init_declarator declarator: (pointer_declarator declarator: (identifier) @made.name) value: (new_expression type: (_) @made.by))
(raw_string_content) @string
