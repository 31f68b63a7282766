"""How fast do files get to S3? `python -m benchmarks.uploads [rounds [small [big]]]`

5,000 files of 10 KB, and 5 of 200 MB: `uploadfiles` against `aws s3 cp --recursive`, each a process
of its own, on one dynoxide. Every run has a new ministack, in memory.

S3 checks the SHA-256 of everything that `uploadfiles` sends, but a CRC-32 for `aws s3 cp`. The
third contender is therefore `aws s3 cp` with SHA-256. (ministack then computes it twice: for the
value, and for the name of the algorithm, which we do not send.)
"""

from __future__ import annotations

import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3

from benchmarks import peers
from benchmarks.arguments import asked
from tests import engines

MB = 1_000_000
SHA256 = ["--checksum-algorithm", "SHA256"]
OURS, AWS, AWS_SHA256 = "uploadfiles", "aws s3 cp", "aws s3 cp, SHA-256"
Command = Callable[[Path, str], list[str]]
"""The command line that uploads a folder to a destination."""


@dataclass(frozen=True)
class Load:
    """Files of one size."""

    files: int
    size_bytes: int

    def __str__(self) -> str:
        size = f"{self.size_bytes // 1000:,} KB" if self.size_bytes < MB else f"{self.megabytes} MB"
        return f"{self.files:,} of {size}"

    @property
    def megabytes(self) -> int:
        """Of one file."""
        return self.size_bytes // MB


@dataclass(frozen=True)
class Result:
    """One run: its time, the CPU time and the peak memory of the client, the CPU time of S3.

    S3's is that of the whole engine, with its start.
    """

    seconds: float
    cpu_seconds: float
    peak_mb: float
    s3_cpu_seconds: float


def main() -> None:
    rounds, small, big = asked(__doc__, rounds=3, small=5000, big=5)
    loads = [Load(small, 10_000), Load(big, 200 * MB)]
    manage = [sys.executable, str(peers.ROOT / "manage.py")]
    aws = [peers.aws_cli(), "s3", "cp", "--recursive", "--only-show-errors"]
    commands: dict[str, Command] = {
        OURS: lambda folder, to: [*manage, "uploadfiles", str(folder), to],
        AWS: lambda folder, to: [*aws, str(folder), to],
        AWS_SHA256: lambda folder, to: [*aws, *SHA256, str(folder), to],
    }
    runs: dict[tuple[Load, str], list[Result]] = {}
    with tempfile.TemporaryDirectory() as folder, peers.site() as site:
        for load in loads:
            files = made(Path(folder), load)
            for number in range(rounds):
                peers.empty(site)
                names = contenders_of(load)
                turn = number % len(names)
                for name in [*names[turn:], *names[:turn]]:
                    sys.stderr.write(f"round {number + 1}: {load} {name}\n")
                    result = measure(commands[name], files, load, site)
                    runs.setdefault((load, name), []).append(result)
    print_table(loads, runs)


def contenders_of(load: Load) -> list[str]:
    """The contenders. For small files the checksums matter least, so the third is left out."""
    return [OURS, AWS] if load.size_bytes < MB else [OURS, AWS, AWS_SHA256]


def made(folder: Path, load: Load) -> Path:
    """A folder with the files of a load, with random contents."""
    chance = random.Random(0)  # noqa: S311 - contents, no secret
    files = folder / str(load.size_bytes)
    files.mkdir()
    for number in range(load.files):
        with (files / f"{number:05}").open("wb") as file:
            for _ in range(0, load.size_bytes, MB):
                file.write(chance.randbytes(min(MB, load.size_bytes)))
    return files


def measure(command: Command, files: Path, load: Load, site: dict[str, str]) -> Result:
    """One run on an empty S3; every file must exist afterwards."""
    all_cpu_seconds = -cpu_seconds_of_children()
    with storage() as (env, s3):
        s3.create_bucket(Bucket="benchmark")
        began = time.perf_counter()
        # In their own process, as peak memory is counted for each from its start.
        process = subprocess.Popen(
            command(files, f"s3://benchmark/{time.time_ns()}"),
            env=site | env,
            stdout=subprocess.DEVNULL,
        )
        _pid, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket="benchmark")
        stored = [content["Size"] for page in pages for content in page.get("Contents", [])]
    if process.returncode or stored != [load.size_bytes] * load.files:
        raise SystemExit(f"{process.args!r}: exit code {process.returncode}, {len(stored)} objects")
    all_cpu_seconds += cpu_seconds_of_children()
    cpu_seconds = used.ru_utime + used.ru_stime
    return Result(seconds, cpu_seconds, used.ru_maxrss * 1024 / 1e6, all_cpu_seconds - cpu_seconds)


def cpu_seconds_of_children() -> float:
    """The CPU time of our processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def storage() -> Iterator[tuple[dict[str, str], Any]]:
    """A ministack: the environment that points to it, and a client."""
    with engines.running("s3") as url:
        yield (
            {"AWS_ENDPOINT_URL_S3": url},
            boto3.client(
                "s3",
                endpoint_url=url,
                region_name="us-east-1",
                aws_access_key_id="benchmarks",
                aws_secret_access_key="benchmarks",  # noqa: S106 - opens nothing
            ),
        )


def print_table(loads: list[Load], runs: dict[tuple[Load, str], list[Result]]) -> None:
    """Print Markdown: one row per load and contender, medians of the rounds."""
    print("\n### Files to S3\n")
    columns = ["seconds", "files a second", "MB a second", "CPU s", "S3's CPU s", "peak MB"]
    print(f"| files | contender | {' | '.join(columns)} |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for load in loads:
        for name in contenders_of(load):
            results = runs[load, name]
            seconds = statistics.median(result.seconds for result in results)
            cpu_seconds = statistics.median(result.cpu_seconds for result in results)
            peak_mb = max(result.peak_mb for result in results)
            s3_cpu_seconds = statistics.median(result.s3_cpu_seconds for result in results)
            rate = load.files / seconds
            print(
                f"| {load} | {name} | {seconds:.1f} | {rate:,.1f} | "
                f"{rate * load.size_bytes / MB:,.1f} | {cpu_seconds:.1f} | "
                f"{s3_cpu_seconds:.1f} | {peak_mb:,.0f} |"
            )


if __name__ == "__main__":
    main()
