"""What do 1,000 sign-ups per second cost? `python -m benchmarks.scale [FILE]`

Measures each operation on a new dynoxide, computes, simulates, and prints docs/scale.md and
simulation.md, or writes FILE and simulation.md. Takes some seconds.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tests import engines


def main() -> None:
    """Measure, compute, simulate and print the pages."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path)
    file: Path | None = parser.parse_args().file
    with engines.running("dynoxide") as url:
        os.environ.update(
            DJANGO_SETTINGS_MODULE="project.settings",
            DJANGO_DEBUG="on",
            DJANGO_SECRET_KEY="of-the-benchmarks-alone",  # noqa: S106 - signs nothing that lasts
            DYNAMODB_TABLE_PREFIX="",
            AWS_ENDPOINT_URL_DYNAMODB=url,
            AWS_REGION="us-east-1",
            AWS_ACCESS_KEY_ID="benchmarks",
            AWS_SECRET_ACCESS_KEY="benchmarks",  # noqa: S106 - opens nothing
            EMAIL_URL="memorymail://",
        )
        page, simulation = _pages()
    if file:
        file.write_text(page, encoding="utf-8")
        Path(__file__).with_name("simulation.md").write_text(simulation, encoding="utf-8")
    else:
        sys.stdout.write(page + simulation)


def _pages() -> tuple[str, str]:
    import django

    django.setup()

    from benchmarks.scale import operations, page, scenarios  # with the settings
    from dynamo.tables import definitions as tables

    for table in tables.all_tables():
        tables.create(table)
    measured = operations.measured()
    return (page.text(measured, operations.stored_bytes()), page.simulation(scenarios.all_rows()))


if __name__ == "__main__":
    main()
