"""The one client of a process, and the local engine.

`sending` sends a request until an answer comes or the deadline passes; `retries` says which errors
are retried; `lean` is the short path to botocore's connections, which `connections` keeps;
`breaker` stops sending while DynamoDB is down; `addressing` finds the endpoint and `credentials`
the keys; `tally` counts what was sent; `engine` starts and stops the local engine.
"""
