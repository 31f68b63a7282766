"""`localdynamodb`: start and stop the local engine."""

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from dynamo.client import engine
from dynamo.management.base import DynamoCommand


class Command(DynamoCommand):
    help = "Starts or stops the local engine, which all processes of a checkout share."
    requires_system_checks = ()  # a check of the tables would start the engine

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "action", choices=["start", "stop", "status"], help="status fails if it does not run"
        )

    def handle(self, *args: object, action: str, **options: object) -> None:
        if not settings.DYNAMODB_LOCAL:
            raise CommandError(
                "This site uses AWS or a configured endpoint. "
                "The local engine needs DEBUG and no endpoint."
            )
        show = self.stdout.write if action == "status" else self.tell
        show(self._done(action))

    def _done(self, action: str) -> str:
        if action == "stop":
            return "Stopped." if engine.stop() else "Not running."
        told = "Already running:" if action == "start" else "Running:"
        running = engine.status()
        if running is None and action == "start":
            told, running = "Started", engine.start()
        if running is None:
            raise CommandError("The local engine is not running.")
        return f"{told} {running.program} on {running.endpoint} (pid {running.pid})"
