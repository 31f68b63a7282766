"""The history: every call with its start, end and answer, in files that survive a killed client.

Each process writes one file. Each line is one `write` to the end of it, so a killed process leaves
whole lines:

    {"n": 7, "at": …, "do": "register", "asked": {…}, "by": "w2.1/accounts-0", …}    before the call
    {"n": 7, "at": …, "note": {…}}                                                   during it
    {"n": 7, "at": …, "outcome": "ok", "answer": {…}}                                after it

Times are those of CLOCK_MONOTONIC, which all processes of a machine share. A call without an
answer (its process was killed, or its reply was lost) may take effect at any time until its
`latest`, or never.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dynamo import DynamoError, Refused

Outcome = Literal["ok", "refused", "unknown"]

#: How long after a call without an answer its request may still be carried out: longer than the
#: proxy holds it (`tests.faults.random_proxy.LATEST_SECONDS`).
LINGERS_SECONDS = 12.0


@dataclass
class Call:
    """One call; times are in seconds."""

    do: str
    by: str
    began: float
    ended: float
    outcome: Outcome
    asked: dict[str, Any] = field(default_factory=dict)
    answer: dict[str, Any] = field(default_factory=dict)
    notes: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    lingers: float = LINGERS_SECONDS

    @property
    def latest(self) -> float:
        """When its effect has happened at the latest, if it happens at all."""
        return self.ended + self.lingers if self.outcome == "unknown" else self.ended

    def line(self, zero: float = 0.0) -> str:
        """A line for people; times count from `zero`."""
        asked = " ".join(f"{name}={value}" for name, value in self.asked.items())
        answer = " ".join(f"{name}={value}" for name, value in self.answer.items())
        times = f"{self.began - zero:9.3f} to {self.ended - zero:9.3f}"
        return f"{times}  {self.by:<18} {self.do:<9} {asked} → {self.outcome} {answer}".rstrip()


class Running:
    """A call in progress; without `ok` or `refused` its outcome is unknown."""

    def __init__(self, journal: Journal, number: int) -> None:
        self._journal = journal
        self._number = number
        self.outcome: Outcome = "unknown"
        self.answer: dict[str, Any] = {}

    def ok(self, **answer: Any) -> None:
        """The call succeeded with this answer."""
        self.outcome, self.answer = "ok", answer

    def refused(self, error: str, **answer: Any) -> None:
        """The call was refused with the error of that name."""
        self.outcome, self.answer = "refused", {"error": error, **answer}

    def refused_by(self, error: Exception) -> None:
        """The call was refused: the names of its errors, and what they tell."""
        errors = error.exceptions if isinstance(error, Refused) else (error,)
        reason = getattr(error, "reason", "")
        self.refused(
            "+".join(sorted(type(error).__name__ for error in errors)),
            # Of accounts: the values that others have, and whether the account was deleted.
            taken=[error.attributes[0] for error in errors if hasattr(error, "attributes")],
            gone=any(getattr(error, "deleted", False) for error in errors),
            **({"reason": reason} if reason else {}),
        )

    def unanswered(self, error: BaseException) -> None:
        """The call had no answer."""
        self.outcome, self.answer = "unknown", {"error": type(error).__name__}

    def note(self, *, at: float | None = None, **noted: Any) -> None:
        """Note what happened during the call, at a time of `time.monotonic`."""
        at = time.monotonic() if at is None else at
        self._journal.write(n=self._number, at=at, note=noted)


class Journal:
    """Writes the history of one process. Thread-safe."""

    def __init__(self, file: Path) -> None:
        self._descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._life = file.stem
        self._numbers = itertools.count()

    @contextmanager
    def call(
        self,
        do: str,
        *,
        refusals: tuple[type[Exception], ...] = (),
        lingers: float = LINGERS_SECONDS,
        **asked: Any,
    ) -> Iterator[Running]:
        """Record a call before its body runs, and its answer afterwards.

        The errors `refusals` are answers; a DynamoError means that there was no answer. Any other
        exception is an error of the harness or of the site, and is reported as a finding.
        """
        number = next(self._numbers)
        by = f"{self._life}/{threading.current_thread().name}"
        self.write(n=number, at=time.monotonic(), do=do, asked=asked, by=by, lingers=lingers)
        running = Running(self, number)
        try:
            yield running
        except refusals as error:
            running.refused_by(error)
        except DynamoError as error:
            running.unanswered(error)
        except Exception as error:
            running.outcome, running.answer = "unknown", {"crashed": repr(error)}
            raise
        finally:
            end = {"outcome": running.outcome, "answer": running.answer}
            self.write(n=number, at=time.monotonic(), **end)

    def write(self, **line: Any) -> None:
        """Write a line; it is in the file when this returns, even if the process is killed then."""
        os.write(self._descriptor, json.dumps(line).encode() + b"\n")


def read(folder: Path, ends: dict[str, float], over: float) -> list[Call]:
    """All calls, by their start.

    `ends` has the time at which each killed process was dead; calls of other processes that have
    no answer end at `over`.
    """
    calls: list[Call] = []
    for file in folder.glob("*.jsonl"):
        of_file: dict[int, Call] = {}
        for line in file.read_text(encoding="utf-8").splitlines(keepends=True):
            if not line.endswith("\n"):
                break
            said = json.loads(line)
            call = of_file.get(said["n"])
            if call is None:
                asked = said["asked"]
                end = ends.get(file.stem, over)
                call = Call(said["do"], said["by"], said["at"], end, "unknown", asked)
                call.lingers = said["lingers"]
                of_file[said["n"]] = call
            elif "note" in said:
                call.notes.append((said["at"], said["note"]))
            else:
                call.ended = said["at"]
                call.outcome = said["outcome"]
                call.answer = said["answer"]
        calls += of_file.values()
    return sorted(calls, key=lambda call: call.began)
