"""Items as DynamoDB has them. Nothing here sends a request.

`types` are values, items and requests as they are sent; `attributes` declares typed values, and
`fields` shows them to Django; `values` is the one stored form of a value, with sizes and digests;
`updates` is what a write changes and requires.
"""
