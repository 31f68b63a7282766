"""Torture: many thousands of calls under faults and kills, and checks of all their answers.

    make torture SECONDS=1800 [SEED=7]
    python -m tests.torture --seconds 60 --seed 7 [--keep FOLDER]

Exits with 1 if a rule is broken, and shows the calls that break it.
"""

import argparse
import importlib
import os
import secrets
import sys
import tempfile
from pathlib import Path

NICENESS = 10

#: All clients share one address.
_LIMITS = ("SIGN_IN", "SIGN_IN_CLIENT", "SIGN_UP_CLIENT", "MAIL", "MAIL_CLIENT")


def main() -> int:
    """Run, check and report; return the exit code."""
    parser = argparse.ArgumentParser(prog="torture", description=(__doc__ or "").split("\n")[0])
    add = parser.add_argument
    add("--seconds", type=float, default=60)
    add("--seed", default=secrets.token_hex(4), help="of faults and calls; random by default")
    add("--keep", type=Path, help="keep histories, data and logs in this new folder")
    asked = parser.parse_args()
    os.nice(NICENESS)
    # Before the settings are read; not at import, as each forked process imports this file.
    importlib.import_module("tests.environment")
    os.environ.update({f"ACCOUNTS_LIMIT_{name}": "off" for name in _LIMITS})
    with tempfile.TemporaryDirectory(prefix="torture-") as temporary:
        return _run(asked, asked.keep or Path(temporary) / "run")


def _run(asked: argparse.Namespace, folder: Path) -> int:
    from tests.torture import report, result
    from tests.torture.run import running

    print(f"seed {asked.seed}, history in {folder}", file=sys.stderr, flush=True)
    with running(folder, asked.seed) as run:
        run.run(asked.seconds)
        print("all clients have ended; checking", file=sys.stderr, flush=True)
        calls, findings = result.check(run)
    print(report.summary(run, calls))
    if findings:
        print(f"\n{report.first_of(findings)}")
    print(f"\nseed {asked.seed}: {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
