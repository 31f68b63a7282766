"""How fast is one counter? `python -m benchmarks.counters [rounds]`"""

from __future__ import annotations

import subprocess

from benchmarks import peers
from benchmarks.arguments import asked
from benchmarks.harness import Contender, Load, compare, print_table
from benchmarks.invoices import HERE, operations, postgres_worker, site_worker

LOADS = [Load(1, 1), Load(1, 8), Load(1, 16)]


def main() -> None:
    [rounds] = asked(__doc__, rounds=5)
    python = peers.peer_python()
    with peers.site() as site, peers.postgres() as postgres:
        setup = [python, str(HERE / "postgres_worker.py"), "setup"]
        subprocess.run(setup, env=postgres, check=True)
        contenders = [
            Contender("next_value", site_worker("counter_atomic"), site),
            Contender("bare boto3 update_item", site_worker("counter_boto3"), site),
            Contender("django-sequences, PostgreSQL", postgres_worker(python, "counter"), postgres),
            Contender("next_value, optimistic", site_worker("counter_optimistic"), site),
        ]
        results = compare(contenders, LOADS, operations, rounds, between=lambda: peers.empty(site))
    print_table("The next value of one counter", contenders, LOADS, results)


if __name__ == "__main__":
    main()
