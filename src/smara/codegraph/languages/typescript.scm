
; What only TypeScript has
(abstract_class_declaration) @class
(interface_declaration) @class
(enum_declaration) @class
(type_alias_declaration) @class
(internal_module) @module
(module) @module
(function_signature) @function
(method_signature) @method
(abstract_method_signature) @method
(public_field_definition name: (property_identifier) value: [(arrow_function) (function_expression)]) @method
(public_field_definition name: (property_identifier)) @field
(export_statement "default" declaration: (abstract_class_declaration name: (_) @exported))
(export_statement "default" declaration: (interface_declaration name: (_) @exported))
(extends_clause value: [(identifier) (member_expression)] @base)
(implements_clause [(type_identifier) (nested_type_identifier)] @base)
(implements_clause (generic_type name: [(type_identifier) (nested_type_identifier)] @base))
(extends_type_clause [(type_identifier) (nested_type_identifier)] @base)
(extends_type_clause (generic_type name: [(type_identifier) (nested_type_identifier)] @base))
(type_identifier) @use
(required_parameter pattern: (identifier) @typed.name type: (type_annotation) @typed.type)
(optional_parameter pattern: (identifier) @typed.name type: (type_annotation) @typed.type)
(required_parameter (accessibility_modifier) pattern: (identifier) @own.name type: (type_annotation) @own.type)
(variable_declarator name: (identifier) @typed.name type: (type_annotation) @typed.type)
(public_field_definition name: (property_identifier) @typed.name type: (type_annotation) @typed.type)
(property_signature name: (property_identifier) @typed.name type: (type_annotation) @typed.type)
(public_field_definition name: (property_identifier) @made.name value: (new_expression constructor: [(identifier) (member_expression)] @made.by))
(function_declaration return_type: (type_annotation) @returns)
(arrow_function return_type: (type_annotation) @returns)
(function_expression return_type: (type_annotation) @returns)
(method_definition return_type: (type_annotation) @returns)
(method_signature return_type: (type_annotation) @returns)
(abstract_method_signature return_type: (type_annotation) @returns)
