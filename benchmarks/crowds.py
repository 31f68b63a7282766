"""What do other pages feel of a crowd? `python -m benchmarks.crowds [rounds] [seconds]`

Four clients request the start page of their accounts, first alone, then while 24 others sign in,
and while 20 others download a year's invoices as PDFs. One of these who is refused waits as long as
the answer says. Then one account attacks: over 64 connections it requests the PDFs of its invoices
of 200 lines, and over 48 it posts a form of 200 lines with errors, again and again at once.
"""

from __future__ import annotations

import http.client
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.arguments import asked
from benchmarks.pages import PAGES, WORKERS
from benchmarks.serving import (
    HEADERS,
    Asked,
    Server,
    answered,
    children,
    granian,
    prepared,
    served,
    wait_until_idle,
    wrk,
)

OTHERS, SIGNING_IN, EXPORTING = 4, 24, 20
PDFS, FORMS = 64, 48
#: Until every client of a crowd has sent its first request.
HEAD_START_SECONDS = 1


@dataclass(frozen=True)
class Felt:
    """One run. `crowd` is what the crowd got per second, `peak_mb` the memory of a worker."""

    rate: float
    median_ms: float
    p99_ms: float
    failed: float
    crowd: float
    peak_mb: float


Crowd = Callable[[Server, int], "Iterator[list[float]]"]


def nobody(_server: Server, _seconds: int) -> Iterator[list[float]]:
    """No crowd."""
    yield [0.0]


def asking(page: Asked, clients: int) -> Crowd:
    """Each sends its next request when the last one is answered, also if it was refused."""

    def crowd(server: Server, seconds: int) -> Iterator[list[float]]:
        asked = replace(page, seconds=seconds)
        process = subprocess.Popen(wrk(asked, server, clients), stdout=subprocess.PIPE)
        rate = [0.0]
        yield rate
        found = answered(asked, process)
        rate[0] = found["good"] / found["seconds"]

    return crowd


def exporting(server: Server, seconds: int) -> Iterator[list[float]]:
    """Each has an account of its own and downloads again and again."""
    done = [0.0]
    ended = threading.Event()
    lines = (server.site.folder / "signed-in").read_text().splitlines()[:EXPORTING]

    def download(cookie: str) -> None:
        path = f"/invoices/{datetime.now(UTC).year}.zip"
        while not ended.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
            connection.request("GET", path, headers=HEADERS | {"Cookie": cookie})
            reply = connection.getresponse()
            while (piece := reply.read(1 << 16)) and not ended.is_set():
                done[0] += len(piece) / 1e6
            connection.close()
            if reply.status != 200:
                ended.wait(float(reply.headers["Retry-After"]))

    threads = [threading.Thread(target=download, args=[line.split("\t")[0]]) for line in lines]
    for thread in threads:
        thread.start()
    yield done
    ended.set()
    for thread in threads:
        thread.join()
    done[0] /= seconds


CROWDS: dict[str, Crowd] = {
    "alone": nobody,
    f"{SIGNING_IN} clients sign in": asking(
        Asked("sign-in", "/accounts/login/", "sign-in", "POST", 302), SIGNING_IN
    ),
    f"{EXPORTING} clients download PDFs": exporting,
    f"{PDFS} connections of one account request PDFs": asking(
        Asked("PDFs", "/", "long-pdfs"), PDFS
    ),
    f"{FORMS} connections of one account post forms": asking(
        Asked("forms", "/invoices/new/", "long-forms", "POST"), FORMS
    ),
}


def feel(crowd: Crowd, server: Server, seconds: int) -> Felt:
    """Request the start page while the crowd is there."""
    wait_until_idle(server)
    page = Asked("signed in (/)", "/", "signed-in", seconds=seconds)
    with contextmanager(crowd)(server, seconds + 2 * HEAD_START_SECONDS) as done:
        time.sleep(HEAD_START_SECONDS)
        clients = subprocess.Popen(wrk(page, server, OTHERS), stdout=subprocess.PIPE)
        found = answered(page, clients)
    failed = found["done"] - found["good"]
    rate = found["done"] / found["seconds"]
    return Felt(rate, found["median_ms"], found["p99_ms"], failed, done[0], peak_mb(server.process))


def peak_mb(process: int) -> float:
    """The largest peak of the worker processes."""
    peaks = []
    for worker in children(process):
        status = Path(f"/proc/{worker}/status").read_text()
        [line] = [line for line in status.splitlines() if line.startswith("VmHWM")]
        peaks.append(int(line.split()[1]) / 1024)
    return max(peaks)


def main() -> None:
    rounds, seconds = asked(__doc__, rounds=5, seconds=10)
    runs: dict[str, list[Felt]] = {}
    for number in range(rounds):
        with prepared() as site:
            for name, crowd in CROWDS.items():
                sys.stderr.write(f"round {number + 1}: {name}\n")
                # A new server for each, because a process keeps the memory of its peak.
                with served(granian(WORKERS, PAGES), site) as server:
                    runs.setdefault(name, []).append(feel(crowd, server, seconds))
    print(f"\n### The start page of {OTHERS} others\n")
    print(
        "| | per second | median ms | 99 % ms | failed | sign-ins, MB, PDFs or forms per second "
        "| peak MB of a worker |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, found in runs.items():
        felt = Felt(*map(statistics.median, zip(*map(astuple, found), strict=True)))
        print(
            f"| {name} | {felt.rate:,.0f} | {felt.median_ms:.1f} | {felt.p99_ms:.1f} | "
            f"{felt.failed:.0f} | {felt.crowd:.1f} | {felt.peak_mb:.0f} |"
        )


if __name__ == "__main__":
    main()
