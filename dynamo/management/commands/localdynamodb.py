from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from dynamo import engine
from dynamo.exceptions import LocalEngineFailed


class Command(BaseCommand):
    help = "The local engine, which all processes of this checkout share: start, stop or status."
    requires_system_checks = ()  # a check of the tables would start the engine

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=["start", "stop", "status"])

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        if not settings.DYNAMODB_LOCAL:
            raise CommandError(
                "This site talks to AWS or to the endpoint it was given; "
                "the local engine is for DJANGO_DEBUG without an endpoint."
            )
        try:
            self.stdout.write({"start": start, "stop": stop, "status": status}[action]())
        except LocalEngineFailed as error:
            raise CommandError(str(error)) from error


def start() -> str:
    running = engine.status()
    if running is not None:
        return f"Runs already: {describe(running)}"
    return f"Started {describe(engine.start())}"


def stop() -> str:
    return "Stopped." if engine.stop() else "It does not run."


def status() -> str:
    running = engine.status()
    if running is None:
        raise CommandError("The local engine does not run.")
    return f"Runs: {describe(running)}"


def describe(running: engine.Running) -> str:
    return f"{running.program} on {running.endpoint} (pid {running.pid})"
