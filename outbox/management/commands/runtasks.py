"""`runtasks`: the worker of background tasks."""

import json
from functools import partial

from django.core.management.base import CommandError, CommandParser

from dynamo.management.base import DynamoCommand, positive, seconds
from dynamo.management.progress import stop_on_signals
from locks.lock import LEASE_SECONDS
from outbox.worker import Ran, Worker


class Command(DynamoCommand):
    """Runs tasks until TERM or Ctrl-C.

    Running tasks may then end; after a time they are given back.
    """

    help = "Run background tasks, in any number of processes on any machines."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        parser.add_argument(
            "--queue",
            metavar="Q",
            action="append",
            default=[],
            help="run only tasks of this queue; may be repeated",
        )
        parser.add_argument(
            "--threads", metavar="N", type=positive, default=4, help="tasks at a time, default 4"
        )
        parser.add_argument(
            "--lease",
            metavar="S",
            type=seconds,
            default=LEASE_SECONDS,
            help="seconds after which other workers take over the tasks of one that died",
        )
        parser.add_argument("--once", action="store_true", help="run what is due, and exit")
        parser.add_argument("--json", action="store_true", help="print one JSON object per attempt")

    def handle(
        self,
        *args: object,
        queue: list[str],
        threads: int,
        lease: float,
        once: bool,
        **options: object,
    ) -> None:
        """Run the worker. Prints a line for each attempt."""
        with stop_on_signals() as stop:
            try:
                worker = Worker(
                    queue,
                    threads=threads,
                    lease_seconds=lease,
                    on_ran=partial(self._print, is_json=bool(options["json"])),
                    stop=stop,
                )
            except ValueError as error:
                raise CommandError(str(error), returncode=2) from error
            worker.run(once=once)

    def _print(self, ran: Ran, *, is_json: bool) -> None:
        shown = {**vars(ran), "seconds": round(ran.seconds, 3), "error": ran.shown_error}
        text = "{outcome:10} {function}, attempt {attempt}, {seconds:.3f} s  {error}"
        if is_json:
            self.stdout.write(json.dumps(shown))
        else:
            self.tell(text.format(**shown).rstrip())
        self.stdout.flush()
