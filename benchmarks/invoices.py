"""How fast are gapless invoices on one series? `python -m benchmarks.invoices [rounds]`

Prints a table, and draws the README's chart from the same results.
"""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path

from benchmarks import chart, peers
from benchmarks.arguments import asked
from benchmarks.harness import Command, Contender, Load, compare, print_table

LOADS = [Load(1, 1), Load(1, 8), Load(1, 16), Load(2, 8)]
HERE = Path(__file__).parent


def operations(load: Load) -> int:
    """More for more threads, so that each run takes about a second."""
    return 400 * min(10, load.processes * load.threads)


def site_worker(contender: str) -> Command:
    """The command of a worker on DynamoDB; one series for all its runs."""
    return _command([sys.executable, "-m", "benchmarks.site_worker", contender])


def postgres_worker(python: str, contender: str) -> Command:
    """The command of a worker on PostgreSQL."""
    return _command([python, str(HERE / "postgres_worker.py"), contender])


def _command(program: list[str]) -> Command:
    run = str(uuid.uuid4())

    def command(threads: int, share: int) -> list[str]:
        return [
            *program,
            *("--threads", str(threads), "--operations", str(share), "--name", f"bench-{run}"),
        ]

    return command


def main() -> None:
    [rounds] = asked(__doc__, rounds=5)
    python = peers.peer_python()
    with peers.site() as site, peers.postgres() as postgres:
        setup = [python, str(HERE / "postgres_worker.py"), "setup"]
        subprocess.run(setup, env=postgres, check=True)
        contenders = [
            Contender("ours", site_worker("ours"), site),
            Contender("plain transaction with retry", site_worker("plain_transaction"), site, 0.1),
            Contender("django-sequences, PostgreSQL", postgres_worker(python, "invoice"), postgres),
        ]
        results = compare(contenders, LOADS, operations, rounds, between=lambda: peers.empty(site))
    print_table("Gapless invoices on one series", contenders, LOADS, results)
    latencies = {
        (str(load), contender.name): results[contender.name, load].p99_ms
        for load in LOADS
        for contender in contenders
    }
    chart.CHART.write_text(chart.drawn(latencies), encoding="utf-8")


if __name__ == "__main__":
    main()
