; Definitions
(class_definition) @class
(function_definition) @function
(decorated_definition) @outer
(module (expression_statement (assignment left: (identifier)) @constant))
(module (if_statement (block (expression_statement (assignment left: (identifier)) @constant))))
(module (try_statement (block (expression_statement (assignment left: (identifier)) @constant))))
(module (with_statement (block (expression_statement (assignment left: (identifier)) @constant))))
(class_definition body: (block (expression_statement (assignment left: (identifier)) @field)))

; What a definition says about itself
(class_definition body: (block . (expression_statement (string) @doc)))
(function_definition body: (block . (expression_statement (string) @doc)))
(module . (expression_statement (string) @doc))
(function_definition return_type: (type) @returns)

; Imports
(import_statement) @import
(import_from_statement) @import

; Uses
(call function: [(identifier) (attribute)] @call)
(class_definition superclasses: (argument_list [
  (identifier) @base
  (attribute) @base
  (subscript value: [(identifier) (attribute)] @base)]))
(argument_list [(identifier) (attribute)] @use)
(keyword_argument value: [(identifier) (attribute)] @use)
(decorator [(identifier) (attribute)] @use)
(type [(identifier) (attribute)] @use)
(generic_type (identifier) @use)
(except_clause [(identifier) (attribute)] @use)
(except_clause (tuple [(identifier) (attribute)] @use))
(except_clause (as_pattern [(identifier) (attribute)] @use))
(assignment right: [(identifier) (attribute)] @use)
(return_statement [(identifier) (attribute)] @use)
(list [(identifier) (attribute)] @use)
(pair value: [(identifier) (attribute)] @use)

; Variables whose type is plain to see
(assignment left: [(identifier) (attribute)] @made.name right: (call function: [(identifier) (attribute)] @made.by))
(as_pattern (call function: [(identifier) (attribute)] @opened.by) alias: (as_pattern_target (identifier) @opened.name))
(assignment left: (attribute) @copied.name right: (identifier) @copied.from)
(assignment left: [(identifier) (attribute)] @typed.name type: (type) @typed.type)
(typed_parameter . (identifier) @typed.name type: (type) @typed.type)
(typed_default_parameter name: (identifier) @typed.name type: (type) @typed.type)

; What is said apart from layout
(comment) @comment
(string_content) @string
(block) @block
(return_statement [(parenthesized_expression) (tuple)] @parentheses)
(assignment right: [(parenthesized_expression) (tuple)] @parentheses)
(if_statement condition: (parenthesized_expression) @parentheses)
(elif_clause condition: (parenthesized_expression) @parentheses)
(while_statement condition: (parenthesized_expression) @parentheses)
(assert_statement (parenthesized_expression) @parentheses)
(argument_list (parenthesized_expression) @parentheses)
(keyword_argument value: (parenthesized_expression) @parentheses)
(for_statement left: (tuple_pattern) @parentheses)
(raise_statement (parenthesized_expression) @parentheses)
(parenthesized_expression (parenthesized_expression) @parentheses)
