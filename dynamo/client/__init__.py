"""The one client of a process, what it sends, and the local engine.

`plain` is the base of every model, which is PynamoDB's model on this client; `writes` is one write
of a transaction; `bulk` reads and writes many items.

`sending` sends a request until an answer comes or the deadline passes; `retries` says which errors
are retried; `lean` is the short path to botocore's connections, which `connections` keeps;
`private` types the private names of botocore that it uses; `breaker` stops sending while DynamoDB
is down; `endpoints` finds the endpoint and `credentials` the keys; `tally` counts what was sent;
`engine` starts and stops the local engine.
"""
