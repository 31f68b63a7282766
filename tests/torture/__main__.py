"""Torture: many thousands of calls under faults and kills, and checks of all their answers.

    make torture SECONDS=1800 [SEED=7]
    python -m tests.torture --seconds 60 --seed 7 [--keep FOLDER] [--slowness 2]

Exits with 1 if a rule is broken, and shows the calls that break it.
"""

from __future__ import annotations

import argparse
import importlib
import os
import secrets
import sys
import tempfile
import time
from pathlib import Path

import django

NICENESS = 10

#: All clients share one address.
_LIMITS = ("SIGN_IN", "SIGN_IN_CLIENT", "SIGN_UP_CLIENT", "MAIL", "MAIL_CLIENT")


def main() -> int:
    """Run, check and report; return the exit code."""
    parser = argparse.ArgumentParser(prog="torture", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument(
        "--seed", default="", help="of the faults and of the calls; random by default"
    )
    parser.add_argument(
        "--keep", type=Path, help="keep histories, data and logs in this new folder"
    )
    parser.add_argument("--workers", type=int, default=3, help="how many processes run clients")
    parser.add_argument("--slowness", type=float, default=1, help="2 makes half as many calls")
    parser.add_argument("--no-engine-kills", action="store_true", help="do not kill the engine")
    options = parser.parse_args()
    os.nice(NICENESS)
    _prepare_environment()
    with tempfile.TemporaryDirectory(prefix="torture-") as temporary:
        return _run(options, options.keep or Path(temporary) / "run")


def _prepare_environment() -> None:
    # Before the settings are read; not at import, as each forked process imports this file.
    importlib.import_module("tests.environment")
    os.environ.update({f"ACCOUNTS_LIMIT_{name}": "off" for name in _LIMITS})
    django.setup()


def _run(options: argparse.Namespace, folder: Path) -> int:
    from tests.torture import report, result
    from tests.torture.run import Options, Run
    from tests.torture.worker import Place

    seed = options.seed or secrets.token_hex(4)
    report.say(f"seed {seed}, history in {folder}", sys.stderr)
    began = time.monotonic()
    chosen = Options(
        seconds=options.seconds,
        seed=seed,
        place=Place(folder),
        workers=options.workers,
        slowness=options.slowness,
        engine_kills=not options.no_engine_kills,
    )
    with Run(chosen) as run:
        run.run(report.Progress(options.seconds))
        report.say("all clients have ended; checking", sys.stderr)
        checked = result.check(run)
    report.say(report.summary(run, checked, time.monotonic() - began))
    if checked.findings:
        report.say(f"\n{report.findings(checked)}")
    report.say(f"\nseed {seed}: {len(checked.findings)} findings")
    return 1 if checked.findings else 0


if __name__ == "__main__":
    sys.exit(main())
