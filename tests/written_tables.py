"""Records which tables may have items, so that only those are emptied before the next test.

The suite has 66 tables. To empty all takes 11 ms of CPU and 6 ms of the engine's, and some four
thousand tests begin with empty tables, so this saves about half a minute of two cores.

All requests of this process pass `http.client`. Those of other processes do not: while a process
that was started here runs, and once after it has ended or after a fork, all tables count as
written.
"""

import http.client
import multiprocessing
import multiprocessing.process
import os
import re
import subprocess
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import pytest

from tests import engines

#: Everything in quotes in a request; the names of its tables are among it.
_QUOTED = re.compile(rb'"([A-Za-z0-9_.-]{3,255})"')
_OF_TABLES = (b'"TableName"', b'"RequestItems"')
#: Every read of `dynamo.client.sending` has it, and no write.
_OF_READS = b'"ConsistentRead"'


class Process(Protocol):
    """A `subprocess.Popen` or a `Forked`."""

    def poll(self) -> int | None:
        """The exit code; None while the process runs."""


class WrittenTables:
    """The tables that were written since the last call of `among`; all at first."""

    def __init__(self) -> None:
        self._all = True
        self._names: set[str] = set()
        self._processes: weakref.WeakSet[Process] = weakref.WeakSet()

    def add_all(self) -> None:
        """Another process may have written."""
        self._all = True

    def add_process(self, process: Process) -> None:
        """This process may write while it runs."""
        self._processes.add(process)
        self._all = True

    def add_request(self, sent: Any) -> None:
        """These bytes were sent: a request, or its headers, or its body."""
        if not isinstance(sent, bytes) or not any(name in sent for name in _OF_TABLES):
            return
        if _OF_READS not in sent:
            self._names.update(name.decode() for name in _QUOTED.findall(sent))

    def among(self, tables: list[str]) -> list[str]:
        """Which of `tables` were written since the last call."""
        written = tables if self._all else [name for name in tables if name in self._names]
        self._names = set()
        # Engines themselves send no requests.
        writers = set(self._processes) - set(engines.processes)
        self._all = any(process.poll() is None for process in writers) or bool(
            multiprocessing.active_children()
        )
        return written


_recording: list[WrittenTables] = []


def another_writes(process: Process) -> None:
    """This process, which `subprocess` does not know, may write while it runs."""
    for written in _recording:
        written.add_process(process)


@contextmanager
def recorded() -> Iterator[WrittenTables]:
    """Record the tables that are written in the block."""
    written = WrittenTables()
    send, start = http.client.HTTPConnection.send, subprocess.Popen.__init__
    start_worker = multiprocessing.process.BaseProcess.start

    def recorded_send(connection: http.client.HTTPConnection, data: Any) -> None:
        written.add_request(data)
        send(connection, data)

    def recorded_start(process: subprocess.Popen[Any], *arguments: Any, **named: Any) -> None:
        start(process, *arguments, **named)
        written.add_process(process)

    def recorded_start_of_worker(process: multiprocessing.process.BaseProcess) -> None:
        start_worker(process)
        written.add_all()

    # It cannot be unregistered, which does no harm.
    os.register_at_fork(after_in_parent=written.add_all)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http.client.HTTPConnection, "send", recorded_send)
        patch.setattr(subprocess.Popen, "__init__", recorded_start)
        patch.setattr(multiprocessing.process.BaseProcess, "start", recorded_start_of_worker)
        _recording.append(written)
        yield written
        _recording.remove(written)
