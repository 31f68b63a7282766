"""Which server, with how many pages at once? `python -m benchmarks.servers [rounds]`

16 clients, which send a proxy's headers, request a page that does nothing, one that reads an item,
and the start page of a signed-in user.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace

from benchmarks import peers
from benchmarks.arguments import asked
from benchmarks.serving import (
    Asked,
    Figures,
    ask,
    at_once,
    granian,
    median,
    prepared,
    print_rows,
    served,
)


def gunicorn(workers: int, threads: int) -> list[str]:
    """Gunicorn with threads, as this project served itself before."""
    numbers = ["--workers", str(workers), "--threads", str(threads)]
    program = [sys.executable, "-m", "gunicorn", "project.wsgi"]
    return [*at_once(threads), *program, "--bind", "127.0.0.1:0", *numbers]


SERVERS = {
    "granian, 2 × 8": granian(2, 8),
    "granian, 2 × 16": granian(2, 16),
    "gunicorn, 2 × 8": gunicorn(2, 8),
    "gunicorn, 2 × 16": gunicorn(2, 16),
}


def main() -> None:
    [rounds] = asked(__doc__, rounds=5)
    runs: dict[tuple[str, str], list[Figures]] = {}
    pages = [
        Asked("nothing (/livez)", "/livez"),
        Asked("one read (/healthz)", "/healthz"),
        Asked("signed in (/)", "/", "signed-in"),
    ]
    with prepared() as site:
        paths = [str(peers.added("gunicorn")), site.env["PYTHONPATH"]]
        site = replace(site, env=site.env | {"PYTHONPATH": os.pathsep.join(paths)})
        names = list(SERVERS)
        for number in range(rounds):
            turn = number % len(names)
            for name in [*names[turn:], *names[:turn]]:
                sys.stderr.write(f"round {number + 1}: {name}\n")
                with served(SERVERS[name], site) as server:
                    for page in pages:
                        runs.setdefault((page.name, name), []).append(ask(page, server))
    rows = [((page, name), median(found)) for (page, name), found in sorted(runs.items())]
    print_rows("A page under each server, workers × threads", ["page", "server"], rows)


if __name__ == "__main__":
    main()
