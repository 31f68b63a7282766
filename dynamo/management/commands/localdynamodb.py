from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from dynamo._internal import engine
from dynamo.exceptions import LocalEngineFailed


class Command(BaseCommand):
    help = "Starts or stops the local engine, which all processes of a checkout share."
    requires_system_checks = ()  # a check of the tables would start the engine

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=["start", "stop", "status"])

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        if not settings.DYNAMODB_LOCAL:
            raise CommandError(
                "This site uses AWS or a configured endpoint. "
                "The local engine needs DJANGO_DEBUG and no endpoint."
            )
        try:
            self.stdout.write({"start": start, "stop": stop, "status": status}[action]())
        except LocalEngineFailed as error:
            raise CommandError(str(error)) from error


def start() -> str:
    running = engine.status()
    if running is not None:
        return f"Already running: {describe(running)}"
    return f"Started {describe(engine.start())}"


def stop() -> str:
    return "Stopped." if engine.stop() else "Not running."


def status() -> str:
    running = engine.status()
    if running is None:
        raise CommandError("The local engine is not running.")
    return f"Running: {describe(running)}"


def describe(running: engine.Running) -> str:
    return f"{running.program} on {running.endpoint} (pid {running.pid})"
