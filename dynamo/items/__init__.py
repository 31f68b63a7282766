"""Items as DynamoDB has them, without any promise of `dynamo.model`.

`attributes` declares typed values, `fields` shows them to Django; `values` is their one stored
form; `plain` is the base of every model; `updates` and `conditions` are what a write does and
requires; `bulk` reads and writes many items; `altering` marks methods that templates must not
call.
"""
