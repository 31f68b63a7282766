"""How much CPU does the client take for one request? `python -m benchmarks.client [rounds]`

One UpdateItem after the other, in one thread. The engine's time is the same for all; the rest is
what the client needs to build, sign and send a request and to read its reply.
"""

from __future__ import annotations

import sys

from benchmarks import peers
from benchmarks.arguments import asked
from benchmarks.harness import Contender, Load, compare, print_table
from benchmarks.registration import worker

LOADS = [Load(1, 1)]


def operations(_load: Load) -> int:
    """Enough that each run takes a second or two."""
    return 1000


def main() -> None:
    [rounds] = asked(__doc__, rounds=5)
    module = ["-m", "benchmarks.client_worker"]
    ours, theirs = [sys.executable, *module], [peers.peer_python(), *module]
    with peers.site() as site:
        by_botocore = site | {"DYNAMODB_LEAN": "off"}
        contenders = [
            Contender("dynamo.client.sending.send", worker(ours, "ours"), site),
            Contender("Model.change", worker(ours, "change"), site),
            Contender("the same, DYNAMODB_LEAN=off", worker(ours, "ours"), by_botocore),
            Contender("bare boto3", worker(ours, "bare_boto3"), site),
            Contender("PynamoDB, Model.update", worker(ours, "pynamodb"), site),
            Contender("pydynox", worker(theirs, "pydynox"), site),
        ]
        results = compare(contenders, LOADS, operations, rounds, between=lambda: peers.empty(site))
    print_table("One UpdateItem", contenders, LOADS, results)


if __name__ == "__main__":
    main()
