"""`breaklock`: release a lock for its holder, or delete a claim."""

import sys
from datetime import UTC, datetime

from django.core.management.base import CommandError, CommandParser

from dynamo.management.base import DynamoCommand, argument, is_confirmed
from dynamo.runtime.terminal import printable
from locks.management.commands.listlocks import as_row
from locks.registry import State, break_lock, look
from locks.requests import checked_name

#: The messages, by the state that the lock had.
_SAID = {
    State.HELD: "is free now",
    State.CLAIMED: "is no longer claimed",
    State.RELEASED: "was free already",
}


class Command(DynamoCommand):
    """Breaks a lock. On a terminal, it asks first, and breaks only the lease that it showed."""

    help = "Release a lock, or delete a claim. A running holder learns it at its next renewal."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the lock and `--no-input`."""
        parser.add_argument("name", metavar="NAME", type=argument(checked_name), help="the lock")
        parser.add_argument(
            "--no-input", "--noinput", action="store_false", dest="interactive", help="do not ask"
        )

    def handle(self, *args: object, name: str, interactive: bool, **options: object) -> None:
        """Ask on a terminal, then break the lock."""
        lock = look(name)
        is_held = lock.state is not State.RELEASED
        asked = interactive and is_held and sys.stdin.isatty()
        if asked and not is_confirmed(f"{as_row(lock, datetime.now(UTC))}\nBreak it?"):
            raise CommandError("Nothing was broken.")
        broken = break_lock(lock.name, as_seen=lock if asked else None)
        self.tell(f"The lock {printable(lock.name)} {_SAID[broken]}.")
