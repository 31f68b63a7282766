"""What each client did: every call with start, end and answer, in files that outlive the client.

A process writes one file. Each line is one `write` to the end of it, so a process that is killed
leaves whole lines:

    {"n": 7, "at": …, "do": "register", "by": "2.1/accounts-0", "asked": {…}}    before the call
    {"n": 7, "at": …, "note": {…}}                                               during it
    {"n": 7, "at": …, "outcome": "ok", "answer": {…}}                            after it

Times are those of CLOCK_MONOTONIC, which all processes of a machine share. A call without an
answer (its process was killed, or it got none) may have happened, at any time until its `latest`.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Outcome = Literal["ok", "refused", "unknown"]

#: For how long what a call asked for may still happen when the client has given it up: longer than
#: a request takes through the proxy (`tests.faults.random_proxy.LATEST_SECONDS`).
LINGERS_SECONDS = 12.0


@dataclass
class Call:
    """One call as the history has it; times in seconds."""

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
        """When what it asked for has happened, if it ever does."""
        return self.ended + self.lingers if self.outcome == "unknown" else self.ended

    def line(self, zero: float = 0.0) -> str:
        """For people; times from `zero` on."""
        asked = " ".join(f"{name}={value}" for name, value in self.asked.items())
        answer = " ".join(f"{name}={value}" for name, value in self.answer.items())
        times = f"{self.began - zero:9.3f} to {self.ended - zero:9.3f}"
        return f"{times}  {self.by:<18} {self.do:<9} {asked} → {self.outcome} {answer}".rstrip()


class Running:
    """A call under way; without `ok` or `refused` its outcome is unknown."""

    def __init__(self, journal: Journal, number: int) -> None:
        self._journal = journal
        self._number = number
        self.outcome: Outcome = "unknown"
        self.answer: dict[str, Any] = {}

    def ok(self, **answer: Any) -> None:
        """It succeeded, and said this."""
        self.outcome, self.answer = "ok", answer

    def refused(self, error: str, **answer: Any) -> None:
        """It was refused for good, with the error of that name."""
        self.outcome, self.answer = "refused", {"error": error, **answer}

    def unanswered(self, error: BaseException) -> None:
        """Nobody knows."""
        self.outcome, self.answer = "unknown", {"error": type(error).__name__}

    def note(self, *, at: float | None = None, **noted: Any) -> None:
        """Something that happened during the call, at a time of `time.monotonic`."""
        at = time.monotonic() if at is None else at
        self._journal.write({"n": self._number, "at": at, "note": noted})


class Journal:
    """Writes the history of one process. Safe in threads."""

    def __init__(self, file: Path) -> None:
        self._descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._life = file.stem
        self._numbers = itertools.count()

    @contextmanager
    def call(self, do: str, *, lingers: float | None = None, **asked: Any) -> Iterator[Running]:
        """A call: is written down before the body, and with its answer after it.

        An exception that the body lets through is a mistake of the run or of the site: it is
        written down as such, and the checker reports it.
        """
        number = next(self._numbers)
        began: dict[str, Any] = {"n": number, "at": time.monotonic(), "do": do, "asked": asked}
        began["by"] = f"{self._life}/{threading.current_thread().name}"
        if lingers is not None:
            began["lingers"] = lingers
        self.write(began)
        running = Running(self, number)
        try:
            yield running
        except Exception as error:
            running.outcome = "unknown"
            running.answer = {"crashed": repr(error)}
            raise
        finally:
            ended = {"n": number, "at": time.monotonic(), "outcome": running.outcome}
            self.write(ended | {"answer": running.answer})

    def write(self, line: dict[str, Any]) -> None:
        """One line; it stands in the file when this returns, whoever is killed then."""
        os.write(self._descriptor, json.dumps(line, ensure_ascii=False).encode() + b"\n")


def read(folder: Path, ends: dict[str, float], over: float) -> list[Call]:
    """All calls, by their start. `ends` says when the processes that were killed were dead.

    `over` is the end of calls without an answer in processes that were not.
    """
    calls: list[Call] = []
    for file in sorted(folder.glob("*.jsonl")):
        calls += _calls_of(file, ends.get(file.stem, over))
    return sorted(calls, key=lambda call: call.began)


def _calls_of(file: Path, over: float) -> Iterable[Call]:
    calls: dict[int, Call] = {}
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if not line.endswith("\n"):
                break
            said = json.loads(line)
            if "do" in said:
                call = Call(said["do"], said["by"], said["at"], over, "unknown", said["asked"])
                call.lingers = said.get("lingers", LINGERS_SECONDS)
                calls[said["n"]] = call
            elif "note" in said:
                calls[said["n"]].notes.append((said["at"], said["note"]))
            else:
                call = calls[said["n"]]
                call.ended, call.outcome, call.answer = said["at"], said["outcome"], said["answer"]
    return calls.values()
