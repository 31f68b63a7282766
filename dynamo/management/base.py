"""What all our commands share: how they end when something outside of them goes wrong."""

from __future__ import annotations

import codecs
import io
import json
import logging
import os
import sys
import time
from typing import Any, NoReturn

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import translation

from dynamo.exceptions import DynamoError
from dynamo.tally import Tally, counting

log = logging.getLogger("dynamo.commands")

#: Of all that commands say, whatever LANG says and from whatever page they are called: programs
#: read it, and logs and questions to others quote it.
LANGUAGE = "en"

# What a shell shows for a program that the signal itself ended: 128 + SIGINT, 128 + SIGPIPE.
INTERRUPTED = 130
READER_LEFT = 141


class DynamoCommandMixin(BaseCommand):
    """Goes before a command: says in one line on stderr why DynamoDB did not do it, and exits 1.

    Ctrl-C ends it with 130, a reader that leaves (`| head`) with 141; both without a word. Letters
    that the encoding of stdout has not are printed as JSON escapes them.

    What it cost stands on stderr with `--verbosity 2`, and in the log where `LOG_COMMANDS` is set.
    Processes that it starts count by themselves.
    """

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command.

        Raises:
            CommandError: what DynamoDB, or the way to it, refused.
        """
        began = time.perf_counter()
        with translation.override(LANGUAGE), counting() as tally:
            try:
                return super().execute(*args, **options)
            except DynamoError as error:
                raise CommandError(" ".join(str(error).split())) from error
            finally:
                self._say_cost(tally, time.perf_counter() - began, options.get("verbosity", 1))

    def _say_cost(self, tally: Tally, seconds: float, verbosity: int) -> None:
        name = type(self).__module__.rpartition(".")[2]
        if verbosity > 1:
            # Not in red, which lines on stderr are else: nothing is wrong.
            self.stderr.write(f"{name}: {tally}; {seconds:.1f} s", lambda line: line)
        if settings.LOG_COMMANDS:
            milliseconds = round(seconds * 1000, 1)
            fields = {"command": name, "milliseconds": milliseconds} | tally.fields()
            log.info("%s, %s ms, %s", name, milliseconds, tally, extra={"fields": fields})

    def run_from_argv(self, argv: list[str]) -> None:
        """Run the command as typed."""
        if isinstance(sys.stdout, io.TextIOWrapper):
            # Names come from whoever wrote them, and a cron job's encoding may be ASCII.
            sys.stdout.reconfigure(errors=_ESCAPES)
        if sys.stdin is None:
            # It was closed (`<&-`); whoever asks gets no answer, as of /dev/null.
            sys.stdin = io.StringIO()
        try:
            try:
                super().run_from_argv(argv)
            finally:
                # Here, where it can be caught, and not when Python closes its streams.
                sys.stdout.flush()
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)
        except BrokenPipeError:
            _leave_quietly()


class DynamoCommand(DynamoCommandMixin):
    """The base of our own commands."""


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


# Not backslashreplace: JSON has no \xe9, and programs read what some commands print.
_ESCAPES = "dynamo.jsonescapes"
codecs.register_error(_ESCAPES, _escaped)


def _leave_quietly() -> NoReturn:
    # Python flushes once more at its end. Source: docs.python.org, "Note on SIGPIPE".
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(READER_LEFT)
