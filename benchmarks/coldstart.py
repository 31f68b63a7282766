"""What does a cold start of the Lambda function cost? `python -m benchmarks.coldstart [rounds]`

    python -m benchmarks.coldstart 20 --before FOLDER

FOLDER is a checkout of another commit that is measured in turn with this one. Each run is a new
process; its modules were compiled by the run before the first round. The engine has no TLS: on AWS
the first request also loads certificates and takes more round trips.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.arguments import count
from benchmarks.peers import ROOT
from benchmarks.serving import prepared

WORKER = Path(__file__).with_name("coldstart_worker.py")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.coldstart",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("rounds", nargs="?", type=count, default=20)
    parser.add_argument("--before", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    checkouts = {"now": ROOT}
    if options.before:
        checkouts = {"before": options.before.resolve(), **checkouts}
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in checkouts}
    with prepared() as site:
        env = dict(site.env)
        # Else the first run could not store the compiled modules.
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        cookies = (site.folder / "signed-in").read_text().split("\t")[0]
        for checkout in checkouts.values():
            collect = [sys.executable, "manage.py", "collectstatic", "--no-input"]
            in_it = env | {"PYTHONPATH": str(checkout)}
            subprocess.run(collect, env=in_it, cwd=checkout, check=True, stdout=subprocess.DEVNULL)
            measure(checkout, env, cookies)
        for number in range(options.rounds):
            sys.stderr.write(f"round {number + 1}\n")
            for name, checkout in sorted(checkouts.items(), reverse=bool(number % 2)):
                runs[name].append(measure(checkout, env, cookies))
    print_table(runs)


def measure(checkout: Path, env: dict[str, str], cookies: str) -> dict[str, Any]:
    """One cold start of the function in this checkout."""
    done = subprocess.run(
        # Without -P this folder would be on the path, where modules are named as packages are.
        [sys.executable, "-P", str(WORKER), cookies],
        cwd=checkout,
        env=env | {"PYTHONPATH": str(checkout)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def print_table(runs: dict[str, list[dict[str, Any]]]) -> None:
    """Print Markdown: a row a checkout, with the medians of its runs."""
    steps = list(next(iter(runs.values()))[0]["milliseconds"])
    print("\n### Cold start, CPU ms\n")
    print(f"| | {' | '.join([*steps, 'all'])} | modules | MB |")
    print(f"|---|{'---:|' * (len(steps) + 3)}")
    for name, found in runs.items():
        times = [list(run["milliseconds"].values()) for run in found]
        medians = [statistics.median(item) for item in zip(*times, strict=True)]
        total = statistics.median(sum(time_) for time_ in times)
        columns = " | ".join(f"{median:.0f}" for median in [*medians, total])
        modules = statistics.median(run["modules"] for run in found)
        megabytes = statistics.median(run["megabytes"] for run in found)
        print(f"| {name} | {columns} | {modules:,.0f} | {megabytes:.0f} |")


if __name__ == "__main__":
    main()
