"""Items in the form of DynamoDB. Nothing here sends a request.

`types` has the types of values, items and requests; `attributes` declares typed values, and
`fields` represents them as Django's fields; `values` has the stored form of values, sizes and
digests; `updates` has the changes and conditions of writes.
"""
