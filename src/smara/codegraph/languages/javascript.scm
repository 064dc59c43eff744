
; What only JavaScript has
(field_definition property: (property_identifier) value: [(arrow_function) (function_expression)]) @method
(field_definition property: (property_identifier)) @field
(class_heritage [(identifier) (member_expression)] @base)
(class_heritage (call_expression arguments: (arguments [(identifier) (member_expression)] @base)))
(jsx_opening_element name: [(identifier) (member_expression)] @element)
(jsx_self_closing_element name: [(identifier) (member_expression)] @element)
(jsx_expression [(identifier) (member_expression)] @use)
(field_definition property: (property_identifier) @made.name value: (new_expression constructor: [(identifier) (member_expression)] @made.by))
