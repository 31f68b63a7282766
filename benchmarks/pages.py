"""How fast are the site's pages under the documented server? `python -m benchmarks.pages [rounds]`

Forms are prepared beforehand (`benchmarks.prepared`). Each is sent once and answered by a redirect.
"""

from __future__ import annotations

import sys

from benchmarks.arguments import asked
from benchmarks.serving import (
    Asked,
    Figures,
    ask,
    granian,
    median,
    prepared,
    print_rows,
    served,
)

WORKERS, PAGES = 2, 8


def main() -> None:
    [rounds] = asked(__doc__, rounds=5)
    runs: dict[str, list[Figures]] = {}
    for number in range(rounds):
        # A fresh engine each time: forms cannot be sent twice.
        with prepared() as (env, folder), served(granian(WORKERS, PAGES), env) as (server, port):
            pages = [
                Asked("nothing (/livez)", "/livez", folder / "anonymous"),
                Asked("anonymous (/)", "/", folder / "anonymous"),
                Asked("signed in, two reads (/)", "/", folder / "signed-in"),
                Asked("profile, two reads", "/accounts/profile/", folder / "signed-in"),
                Asked("invoice issued", "/invoices/new/", folder / "issue", "POST", 302, 8),
                Asked("invoice list", "/invoices/", folder / "signed-in"),
                Asked("sign-up", "/accounts/signup/", folder / "sign-up", "POST", 302, 20),
                Asked("sign-in", "/accounts/login/", folder / "sign-in", "POST", 302, 20),
            ]
            for page in pages:
                sys.stderr.write(f"round {number + 1}: {page.name}\n")
                runs.setdefault(page.name, []).append(ask(page, port, server))
    rows = [((name,), median(found)) for name, found in runs.items()]
    print_rows(f"Pages, {WORKERS} × {PAGES}, 16 clients", ["page"], rows)


if __name__ == "__main__":
    main()
