"""How long do pages take if the database is as far away as on AWS?

    python -m benchmarks.distance [rounds] [seconds] [milliseconds]

Each reply of either database is so many milliseconds late. One client, so that nothing waits for
its turn. A round trip is a wait: requests that are sent together are one.
"""

from __future__ import annotations

import http.client
import statistics
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import cycle, islice
from urllib.parse import urlsplit

from benchmarks import peers
from benchmarks.arguments import asked
from benchmarks.far import FarAway
from benchmarks.harness import Contender, Load, measure
from benchmarks.locks import lock_worker
from benchmarks.pages import OURS, PAGES, PEER, SITES, WORKERS, pages_of
from benchmarks.prepared import SESSIONS
from benchmarks.serving import HEADERS, Asked, Server, Site, ask, granian, served

ONE = Load(1, 1)
LOCKS = 100
#: A single page is asked for so often to count its round trips.
TIMES = 5

Row = tuple[float, float, float]
"""Round trips, and the milliseconds of the median and of the 99th percentile."""


@contextmanager
def moved(site: Site, seconds: float) -> Iterator[tuple[Site, FarAway]]:
    """The site with its database far away."""
    url = site.env.get(peers.ENDPOINT, "")
    port = urlsplit(url).port or int(site.env["BENCH_PG_PORT"])
    with FarAway(port, seconds) as far:
        where = {peers.ENDPOINT: f"http://127.0.0.1:{far.port}"} if url else {}
        yield replace(site, env=site.env | where | {"BENCH_PG_PORT": str(far.port)}), far


def count(page: Asked, server: Server, far: FarAway) -> float:
    """The round trips of one page: the fewest, because a server may open connections meanwhile."""
    # From the end, because the forms at the beginning were sent already; always the same account.
    lines = (server.site.folder / page.requests).read_text().splitlines()[::-SESSIONS]
    found = []
    for line in islice(cycle(lines), TIMES):
        cookie, body = line.split("\t")
        headers = HEADERS | {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        far.take()
        connection.request(page.method, page.path, body or None, headers)
        status = connection.getresponse().status
        connection.close()
        if status != page.status:
            raise SystemExit(f"{page.name}: answered {status}.")
        found.append(far.take())
    return min(found)


def lock(contender: Contender, far: FarAway) -> Row:
    """A lock that is acquired and released."""
    far.take()
    result = measure(contender, ONE, LOCKS)
    return far.take() / LOCKS, result.median_ms, result.p99_ms


def main() -> None:
    rounds, seconds, milliseconds = asked(__doc__, rounds=5, seconds=3, milliseconds=4)
    pages = [page for page in pages_of(seconds) if page.path != "/livez"]
    runs: dict[tuple[str, str], list[Row]] = {}
    workers = {
        OURS: lock_worker([sys.executable, "-m", "benchmarks.lock_worker"], "ours"),
        PEER: lock_worker(
            [peers.peer_python(), str(peers.ROOT / "benchmarks" / "postgres_worker.py")], "lock"
        ),
    }
    for number in range(rounds):
        with ExitStack() as stack:
            servers, proxies = {}, {}
            for name, prepare in SITES.items():
                site = stack.enter_context(prepare())
                site, far = stack.enter_context(moved(site, milliseconds / 1000))
                proxies[name] = far
                server = granian(WORKERS, PAGES)
                servers[name] = stack.enter_context(served(server, site))
            turns = sorted(servers, reverse=bool(number % 2))
            for page in pages:
                for name in turns:
                    sys.stderr.write(f"round {number + 1}: {page.name}, {name}\n")
                    found = ask(page, servers[name], clients=1)
                    waits = count(page, servers[name], proxies[name])
                    row = (waits, found.median_ms, found.p99_ms)
                    runs.setdefault((page.name, name), []).append(row)
            for name in turns:
                # The peer's worker must not find our package `sequences`.
                path = str(peers.ROOT) if name == OURS else ""
                env = servers[name].site.env | {"PYTHONPATH": path}
                contender = Contender(name, workers[name], env)
                found_lock = lock(contender, proxies[name])
                runs.setdefault(("lock and release", name), []).append(found_lock)
    print(f"\n### Replies {milliseconds} ms late, one client\n")
    print("| page | site | round trips | median ms | 99 % ms |")
    print("|---|---|---:|---:|---:|")
    names = [*(page.name for page in pages), "lock and release"]
    for key in [(page, name) for page in names for name in SITES]:
        waits, median_ms, p99_ms = map(statistics.median, zip(*runs[key], strict=True))
        print(f"| {' | '.join(key)} | {waits:.0f} | {median_ms:.1f} | {p99_ms:.1f} |")


if __name__ == "__main__":
    main()
