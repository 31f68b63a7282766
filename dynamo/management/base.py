"""The base of all commands: their arguments, output, errors and exit codes."""

import argparse
import codecs
import io
import json
import logging
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TextIO, TypeVar

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.utils import translation

from dynamo.client.plain import PlainModel, all_models
from dynamo.client.tally import Tally, collect
from dynamo.exceptions import ErrorWithValues
from dynamo.runtime.terminal import listed, printable, quantity

M = TypeVar("M", bound=PlainModel)
T = TypeVar("T")

log = logging.getLogger("dynamo.commands")

#: Commands print English with any LANG, because programs read their output.
LANGUAGE = "en"

# The exit codes that a shell shows for a program that a signal ended: 128 + SIGINT, 128 + SIGPIPE.
INTERRUPTED = 130
READER_LEFT = 141


def model_type(
    base: type[M], kind: str, is_one: Callable[[type[M]], bool] = bool
) -> Callable[[str], type[M]]:
    """A type for argparse: the model `app.Model`, in any case, among those that derive from `base`.

    `kind` names such models in the message about an unknown name; `is_one` rejects other models.
    """

    def named(name: str) -> type[M]:
        models = [model for model in all_models() if issubclass(model, base) and is_one(model)]
        for model in models:
            if model._meta.label.lower() == name.lower():
                return model
        known = ", ".join(sorted(model._meta.label for model in models)) or "none"
        raise argparse.ArgumentTypeError(f"{name!r} is not a {kind} model; there are: {known}")

    return named


class DynamoCommand(BaseCommand):
    """A command that prints an error in one line on stderr and exits with 1.

    Ctrl-C ends it with 130, and a closed pipe (`| head`) with 141, both without a message.
    Characters that the encoding of stdout lacks are printed as JSON escapes.

    With `--verbosity 2` it prints its requests and capacity on stderr, and with LOG_COMMANDS it
    logs them. Processes that it starts count their own.
    """

    # Some of our commands derive from Django's, which may require these checks. Here, they need no
    # relational database.
    requires_migrations_checks = False

    verbosity = 1

    def tell(self, text: str) -> None:
        """Print what was done, unless `--verbosity 0`. Results are always printed."""
        if self.verbosity:
            self.stdout.write(text)

    def execute(self, *args: object, **options: Any) -> str | None:
        """Run the command.

        Raises:
            CommandError: an error of the library, or of an app whose errors are `ErrorWithValues`;
                a value that breaks a rule; input that has ended; a file that cannot be used.
        """
        began = time.perf_counter()
        self.verbosity = options.get("verbosity", 1)
        with translation.override(LANGUAGE), collect() as tally:
            try:
                return super().execute(*args, **options)
            except ValidationError as error:
                raise CommandError(" ".join(error.messages)) from error
            except EOFError as error:
                raise CommandError("The input ended before there was an answer.") from error
            except OSError as error:
                if error.filename is None:
                    raise
                raise CommandError(f"{error.filename}: {error.strerror}.") from error
            except (ErrorWithValues, ImproperlyConfigured) as error:
                raise CommandError(" ".join(str(error).split())) from error
            finally:
                self._report_cost(tally, time.perf_counter() - began)

    def _report_cost(self, tally: Tally, seconds: float) -> None:
        name = type(self).__module__.rpartition(".")[2]
        if self.verbosity > 1:
            # This is not an error, so it is printed without the red style of stderr.
            self.stderr.write(f"{name}: {tally}; {seconds:.1f} s", lambda line: line)
        if settings.LOG_COMMANDS:
            milliseconds = round(seconds * 1000, 1)
            fields = {"command": name, "milliseconds": milliseconds} | tally.fields()
            log.info("%s, %s ms, %s", name, milliseconds, tally, extra={"fields": fields})

    def run_from_argv(self, argv: list[str]) -> None:
        """Run the command as typed."""
        if isinstance(sys.stdout, io.TextIOWrapper):
            # Names may contain any character, and a cron job's encoding may be ASCII.
            sys.stdout.reconfigure(errors=_ESCAPES)
        if sys.stdin is None:
            # If stdin was closed (`<&-`), a question gets no answer, as from /dev/null.
            sys.stdin = io.StringIO()
        try:
            try:
                super().run_from_argv(argv)
            finally:
                # The output is flushed here, where an error can be caught, and not when Python
                # exits.
                sys.stdout.flush()
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)
        except BrokenPipeError:
            # Python flushes again when it exits. Source: docs.python.org, "Note on SIGPIPE".
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(READER_LEFT)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


# "backslashreplace" is not used: programs read what some commands print, and JSON has no \xe9.
_ESCAPES = "dynamo.jsonescapes"
codecs.register_error(_ESCAPES, _escaped)


def argument(parse: Callable[[str], T]) -> Callable[[str], T]:
    """`parse` as the type of an argument. Its error is reported as wrong usage, with its text."""

    def parsed(text: str) -> T:
        try:
            return parse(text)
        except ValidationError as error:
            raise argparse.ArgumentTypeError(f"{text!r}: {' '.join(error.messages)}") from error
        except (ErrorWithValues, ValueError) as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return parsed


def up_to(most: float) -> Callable[[str], int]:
    """The type of an argument that is an integer from 1 to `most`."""
    wanted = f"from 1 to {most:,}" if most < math.inf else "of at least 1"

    def parse(text: str) -> int:
        if text.isascii() and text.isdigit() and 1 <= int(text) <= most:
            return int(text)
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer {wanted}")

    return parse


#: The type of an argument that is an integer of at least 1.
positive = up_to(math.inf)


def seconds(text: str) -> float:
    """The type of an argument that is a number of seconds: at least 0, and finite."""
    with suppress(ValueError):
        if 0 <= float(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")


def unreadable(kind: str, keys: Sequence[str]) -> CommandError:
    """The error of a command that skipped damaged items of a `kind` (`account`) with these keys."""
    damaged = quantity(len(keys), f"damaged {kind}")
    return CommandError(f"{damaged} could not be read: {listed([*map(printable, keys)])}.")


def read_line(file: TextIO, default: str | None = None) -> str:
    """The next line, without its line end. At the end of the file, `default`.

    Raises:
        ValidationError: the line is not in the file's encoding.
        EOFError: the file has ended, and no default is given.
    """
    try:
        line = file.readline()
    except UnicodeDecodeError as error:
        raise ValidationError("This is not valid text.") from error
    if not line and default is None:
        raise EOFError
    return line.rstrip("\r\n") or default or ""


def is_confirmed(question: str) -> bool:
    """Whether the answer to `question` is yes. The end of the input means no."""
    try:
        return input(f"{question} Type yes to continue: ").strip().lower() == "yes"
    except EOFError:
        print()  # Ctrl-D leaves the line of the question open.
        return False
