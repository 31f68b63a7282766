"""How fast is a registration with a unique username and email address?

    python -m benchmarks.registration [rounds]

The password is hashed beforehand, because hashing takes longer than everything else and is the same
for all. The second table shows which contenders keep usernames unique: 16 threads register the same
ten names at the same time.
"""

from __future__ import annotations

import subprocess
import sys
import uuid

from benchmarks import peers
from benchmarks.arguments import asked
from benchmarks.harness import Command, Contender, Load, compare, measure, print_table

LOADS = [Load(1, 1), Load(1, 16)]
RACE = Load(1, 16)
NAMES, ATTEMPTS = 10, 160


def operations(load: Load) -> int:
    """Enough that each run takes a second or two."""
    return 600 if load.threads == 1 else 1600


def worker(program: list[str], contender: str, name: str = "register") -> Command:
    """The command of a worker; `name` tells it what to do."""

    def command(threads: int, share: int) -> list[str]:
        options = ("--threads", str(threads), "--operations", str(share), "--name", name)
        return [*program, contender, *options]

    return command


def main() -> None:
    [rounds] = asked(__doc__, rounds=5)
    ours = [sys.executable, "-m", "benchmarks.registration_worker"]
    theirs = [peers.peer_python(), "-m", "benchmarks.registration_peers"]
    on_postgres = [peers.peer_python(), str(peers.ROOT / "benchmarks" / "postgres_worker.py")]
    node = peers.node_program("onetable_worker.mjs")
    with peers.site() as site, peers.postgres() as postgres:
        subprocess.run([*on_postgres, "setup"], env=postgres, check=True)
        backend = Contender(
            "django-dynamodb-backend 1.0.0", worker(theirs, "django_dynamodb_backend"), site, 0.2
        )
        contenders = [
            Contender("accounts.services.register", worker(ours, "register"), site),
            Contender("Model.create", worker(ours, "create"), site),
            Contender("a signed request by hand", worker(ours, "by_hand"), site),
            Contender("pydynox", worker(theirs, "pydynox"), site),
            Contender("bare boto3", worker(ours, "bare_boto3"), site),
            Contender("PynamoDB, TransactWrite", worker(ours, "pynamodb"), site),
            Contender("dynamodb-onetable, Node", worker(node, "onetable"), site),
            backend,
            Contender("Django's ORM, PostgreSQL", worker(on_postgres, "register"), postgres),
        ]
        results = compare(contenders, LOADS, operations, rounds, between=lambda: peers.empty(site))
        print_table("Registrations", contenders, LOADS, results)
        peers.empty(site)
        race = f"race-{uuid.uuid4().hex[:8]}"
        _race(
            Contender("accounts.services.register", worker(ours, "register", race), site),
            Contender("PynamoDB, TransactWrite", worker(ours, "pynamodb", f"{race}-p"), site),
            Contender("dynamodb-onetable, Node", worker(node, "onetable", race), site),
            Contender(backend.name, worker(theirs, "django_dynamodb_backend", race), site),
            Contender("Django's ORM, PostgreSQL", worker(on_postgres, "register", race), postgres),
        )


def _race(*contenders: Contender) -> None:
    print(f"\n### {RACE.threads} threads register the same {NAMES} names\n")
    print("| contender | attempts | accounts made |")
    print("|---|---:|---:|")
    for contender in contenders:
        result = measure(contender, RACE, ATTEMPTS)
        print(f"| {contender.name} | {ATTEMPTS} | {result.made} |")


if __name__ == "__main__":
    main()
