"""`checkseries`: whether the numbers of each series are 1, 2, 3 … without a gap."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.core.management.base import CommandError, CommandParser

from dynamo.models import all_models
from sequences.check import check_series
from sequences.management.checking import SeriesCheckCommand
from sequences.models import NumberedItem
from sequences.seriesreport import SeriesReport


class Command(SeriesCheckCommand):
    """Safe while items are issued. Costs: `sequences.check.check_series`."""

    help = (
        "Check that the numbers of each series of a model are 1, 2, 3 … up to its counter, each "
        "on one item, and that no request id has two. Reads two whole tables. Exits 1 if "
        "something is wrong."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the model, and the form of the answer."""
        parser.add_argument("model", metavar="APP.MODEL", help="such as tickets.Ticket")
        super().add_arguments(parser)

    def reports(self, options: dict[str, Any]) -> Iterator[SeriesReport]:
        """The report of each series of the model."""
        return check_series(_model_called(options["model"]))


def _label_of(model: type[NumberedItem]) -> str:
    app = apps.get_containing_app_config(model.__module__)
    return app.label if app else model.__module__


def _model_called(name: str) -> type[NumberedItem]:
    """The numbered model `app.Model`. Raises CommandError with those there are."""
    models = {
        f"{_label_of(model)}.{model.__name__}": model
        for model in all_models()
        if issubclass(model, NumberedItem)
    }
    found = {known.lower(): model for known, model in models.items()}.get(name.lower())
    if found is None:
        known = ", ".join(sorted(models)) or "none"
        raise CommandError(f"{name!r} is not a numbered model. Numbered models: {known}.")
    return found
