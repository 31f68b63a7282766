"""What do 100,000 users cost? `python -m benchmarks.size [small [large]]`

For each size: a file of users is imported into an empty engine, each gets an invoice, and the two
checks run. Time, disk and memory are measured from outside, as an operator sees them. Then some
pages are opened; the requests that they send must not depend on the size.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks import peers
from benchmarks.arguments import asked
from benchmarks.peers import ROOT

WORKERS = 8
#: The password of all users; its hash is imported, as a site that moves here would do.
PASSWORD = "correct horse battery"  # noqa: S105 - of accounts that are gone a minute later
MOST_MEGABYTES = 150.0


@dataclass(frozen=True)
class Ran:
    """How long a program took, and its peak memory."""

    seconds: float
    megabytes: float


@dataclass(frozen=True)
class Sized:
    """What a number of users cost, and the requests and units of each page."""

    users: int
    imported: Ran
    disk_megabytes: float
    checked_guards: Ran
    checked_invoices: Ran
    pages: dict[str, list[float]]


def main() -> None:
    """Measure each size and print both tables; exit 1 if a limit is exceeded."""
    small, large = asked(__doc__, small=1_000, large=100_000)
    measured = [measure(users) for users in (small, large)]
    print_sizes(measured)
    print_pages(measured)
    if any(item.pages != measured[0].pages for item in measured):
        raise SystemExit("A page sends more requests if there are more users.")
    for entry in measured:
        if max(entry.checked_guards.megabytes, entry.checked_invoices.megabytes) > MOST_MEGABYTES:
            raise SystemExit(f"A check of {entry.users:,} users took too much memory.")


def measure(users: int) -> Sized:
    """Measure with this number of users on a new engine."""
    with peers.site() as env, tempfile.TemporaryDirectory() as folder:
        _tell(f"{users:,} users: import")
        file = Path(folder) / "users.csv"
        write_users(file, users, worker(env, "hash")[0])
        imported = manage(env, "importusers", str(file), "--workers", str(WORKERS), "--json")
        disk = sum(path.stat().st_size for path in Path(env["BENCH_ENGINE_FOLDER"]).iterdir())
        _tell(f"{users:,} users: invoices")
        worker(env, "invoices")
        _tell(f"{users:,} users: checks")
        checked_guards = manage(env, "checkguards", "--json")
        checked_invoices = manage(env, "checkinvoices", "--json")
        _tell(f"{users:,} users: pages")
        pages = json.loads(worker(env, "pages")[-1])
        return Sized(users, imported, disk / 1e6, checked_guards, checked_invoices, pages)


def write_users(file: Path, users: int, password_hash: str) -> None:
    """A file for `importusers`."""
    with file.open("w", newline="") as text:
        rows = csv.writer(text)
        rows.writerow(["username", "email", "full_name", "phone_number", "password_hash"])
        for number in range(users):
            name = f"user{number:06}"
            phone = f"+49301{number:06}"
            rows.writerow([name, f"{name}@example.com", f"User {number}", phone, password_hash])


def worker(env: dict[str, str], job: str) -> list[str]:
    """What `benchmarks.size_worker` prints for a job."""
    command = [sys.executable, "-m", "benchmarks.size_worker", job]
    answer = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    return answer.stdout.splitlines()


def manage(env: dict[str, str], *arguments: str) -> Ran:
    """Run a command of the site, which must exit 0."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), *arguments], env=env, stdout=subprocess.DEVNULL
    )
    _pid, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{arguments[0]} ended with {process.returncode}.")
    # In KiB on Linux, in bytes on macOS: getrusage(2) of each.
    unit = 1 if sys.platform == "darwin" else 1024
    return Ran(time.perf_counter() - began, usage.ru_maxrss * unit / 1e6)


def print_sizes(measured: list[Sized]) -> None:
    """Print Markdown: one row per size."""
    print("\n### Users by number\n")
    print(
        "| users | import s | a second | MB | on disk MB | `checkguards` s | MB "
        "| `checkinvoices` s | MB |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for item in measured:
        print(
            f"| {item.users:,} | {item.imported.seconds:.1f} | "
            f"{item.users / item.imported.seconds:,.0f} | {item.imported.megabytes:.0f} | "
            f"{item.disk_megabytes:.1f} | {item.checked_guards.seconds:.1f} | "
            f"{item.checked_guards.megabytes:.0f} | {item.checked_invoices.seconds:.1f} | "
            f"{item.checked_invoices.megabytes:.0f} |"
        )


def print_pages(measured: list[Sized]) -> None:
    """Print Markdown: one row per page, two columns per size."""
    print("\n### What pages ask of DynamoDB\n")
    print("| page |" + "".join(f" requests of {item.users:,} | units |" for item in measured))
    print("|---|" + "---:|---:|" * len(measured))
    for page in measured[0].pages:
        figures = [item.pages[page] for item in measured]
        print(
            f"| {page} |" + "".join(f" {requests:.0f} | {units:g} |" for requests, units in figures)
        )


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    main()
