; Definitions
(class_declaration) @class
(interface_declaration) @class
(enum_declaration) @class
(record_declaration) @class
(annotation_type_declaration) @class
(method_declaration) @method
(constructor_declaration) @method
(compact_constructor_declaration) @method
(field_declaration) @field
(constant_declaration) @field
(enum_constant) @field
(package_declaration [(scoped_identifier) (identifier)] @package)

; Imports
(import_declaration) @import

; Uses
(method_invocation) @invoke
(object_creation_expression type: (_) @call)
(superclass (_) @base)
(super_interfaces (type_list (_) @base))
(extends_interfaces (type_list (_) @base))
(type_identifier) @type
(field_access object: (identifier)) @type
(method_reference . (identifier) (identifier)) @use
(marker_annotation name: (_) @type)
(annotation name: (_) @type)
(argument_list (identifier) @use)

; Variables whose type is plain to see
(formal_parameter type: (_) @typed.type name: (identifier) @typed.name)
(local_variable_declaration type: (_) @typed.type declarator: (variable_declarator name: (identifier) @typed.name))
(field_declaration type: (_) @typed.type declarator: (variable_declarator name: (identifier) @typed.name))
(enhanced_for_statement type: (_) @typed.type name: (identifier) @typed.name)
(resource type: (_) @typed.type name: (identifier) @typed.name)
(variable_declarator name: (identifier) @made.name value: (object_creation_expression type: (_) @made.by))
(variable_declarator name: (identifier) @got.name value: (method_invocation) @got.from)
(method_declaration type: (_) @returns)

; What is said apart from layout
(line_comment) @comment
(block_comment) @comment
(string_fragment) @string
