"""`checkseries`: check that the numbers of each series of a model are 1, 2, 3 … without a gap."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.core.management.base import CommandParser

from dynamo.items import all_models
from sequences.check import check_series
from sequences.management.base import SeriesCheckCommand
from sequences.models import NumberedItem
from sequences.seriesreport import SeriesReport


class Command(SeriesCheckCommand):
    """Items may be issued meanwhile. For its costs see `sequences.check.check_series`."""

    help = (
        "Check that the numbers of each series of a model are 1, 2, 3 … up to its counter, each "
        "on one item, and that no two items have the same request id. Reads two whole tables. "
        "Exits 1 if a series is damaged."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the model and `--json`."""
        parser.add_argument(
            "model", metavar="APP.MODEL", type=_numbered_model, help="such as tickets.Ticket"
        )
        super().add_arguments(parser)

    def reports(self, options: dict[str, Any]) -> Iterator[SeriesReport]:
        """The report of each series of the model."""
        return check_series(options["model"])


def _numbered_model(name: str) -> type[NumberedItem]:
    """The numbered model `app.Model`, in any case; a name that is not one is wrong usage."""
    models = {
        f"{_app_label(model)}.{model.__name__}": model
        for model in all_models()
        if issubclass(model, NumberedItem)
    }
    for known, model in models.items():
        if known.lower() == name.lower():
            return model
    known = ", ".join(sorted(models)) or "none"
    raise argparse.ArgumentTypeError(f"{name!r} is not a numbered model; there are: {known}")


def _app_label(model: type[NumberedItem]) -> str:
    app = apps.get_containing_app_config(model.__module__)
    return app.label if app else model.__module__
