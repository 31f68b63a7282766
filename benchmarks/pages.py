"""How fast are the site's pages under the documented server? `python -m benchmarks.pages [rounds]`

Next to it, the same pages by Django's own users, sessions and models on PostgreSQL
(`benchmarks.on_postgres`). Forms are prepared beforehand (`benchmarks.prepared`). Each is sent once
and answered by a redirect.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime

from benchmarks.arguments import asked
from benchmarks.serving import (
    Asked,
    Figures,
    Server,
    Site,
    ask,
    granian,
    median,
    prepared,
    prepared_on_postgres,
    print_rows,
    served,
)

WORKERS, PAGES = 2, 8
OURS, PEER = "ours", "PostgreSQL"
SITES: dict[str, Callable[[], AbstractContextManager[Site]]] = {
    OURS: prepared,
    PEER: prepared_on_postgres,
}


def pages_of(seconds: int, slow: int = 5) -> list[Asked]:
    """What is requested, and for how long: `slow` times as long if a password is hashed."""
    ours, long = "signed-in", slow * seconds
    one = f"/invoices/{datetime.now(UTC).year}-000001/"
    return [
        Asked("nothing (/livez)", "/livez", seconds=seconds),
        Asked("anonymous (/)", "/", seconds=seconds),
        Asked("sign-in form", "/accounts/login/", seconds=seconds),
        Asked("signed in (/)", "/", ours, seconds=seconds),
        Asked("profile", "/accounts/profile/", ours, seconds=seconds),
        Asked("50 invoices", "/invoices/", ours, seconds=seconds),
        Asked("one invoice", one, ours, seconds=seconds),
        Asked("invoice issued", "/invoices/new/", "issue", "POST", 302, seconds),
        Asked("sign-up", "/accounts/signup/", "sign-up", "POST", 302, long),
        Asked("sign-in", "/accounts/login/", "sign-in", "POST", 302, long),
    ]


@contextmanager
def both() -> Iterator[dict[str, Server]]:
    """Both sites, each on a new engine and under its own server; one is idle while one is asked."""
    with ExitStack() as stack:
        sites = {name: stack.enter_context(prepare()) for name, prepare in SITES.items()}
        server = granian(WORKERS, PAGES)
        yield {name: stack.enter_context(served(server, site)) for name, site in sites.items()}


def main() -> None:
    rounds, seconds = asked(__doc__, rounds=5, seconds=3)
    pages = pages_of(seconds)
    runs: dict[tuple[str, str], list[Figures]] = {}
    for number in range(rounds):
        # New engines each time: forms cannot be sent twice.
        with both() as servers:
            turns = sorted(servers, reverse=bool(number % 2))
            for page in pages:
                for name in turns:
                    sys.stderr.write(f"round {number + 1}: {page.name}, {name}\n")
                    runs.setdefault((page.name, name), []).append(ask(page, servers[name]))
    found = {(page.name, name): median(runs[page.name, name]) for page in pages for name in SITES}
    title = f"Pages, {WORKERS} × {PAGES}, 16 clients"
    print_rows(title, ["page", "site"], list(found.items()))
    print("\n| page | server’s CPU, ours ÷ PostgreSQL | ÷ the start page, ours | PostgreSQL |")
    print("|---|---:|---:|---:|")
    for page in pages:
        [ours, peer] = (found[page.name, name].server_ms for name in SITES)
        [our_home, peer_home] = (found["signed in (/)", name].server_ms for name in SITES)
        ratios = (ours / peer, ours / our_home, peer / peer_home)
        print(f"| {page.name} | {' | '.join(f'{ratio:.2f}' for ratio in ratios)} |")


if __name__ == "__main__":
    main()
