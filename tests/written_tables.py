"""Which tables may hold something, so that no other one is emptied before the next test.

Every request of this process passes `http.client`, whoever sends it: our client, botocore, a proxy
of the tests. What another process writes nobody here sees: once one was started or forked, all
tables count as written for as long as it lives.
"""

from __future__ import annotations

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

#: All that a request has in quotes: the names of its tables are among it.
_QUOTED = re.compile(rb'"([A-Za-z0-9_.-]{3,255})"')
_OF_TABLES = (b'"TableName"', b'"RequestItems"')
#: `dynamo.client.sending` says it in each read, and no write has it.
_OF_READS = b'"ConsistentRead"'


class Process(Protocol):
    """What is known to have ended or not."""

    def poll(self) -> int | None:
        """Its exit code, None while it runs."""
        ...


class UnrecordedConnection(http.client.HTTPConnection):
    """A connection whose requests leave nothing behind."""


class WrittenTables:
    """What was written to since it was last asked for; in the beginning, all."""

    def __init__(self) -> None:
        self._all = True
        self._names: set[str] = set()
        self._processes: weakref.WeakSet[Process] = weakref.WeakSet()

    def note_all(self) -> None:
        """Another process may have written."""
        self._all = True

    def note_process(self, process: Process) -> None:
        """This one may write as long as it lives."""
        self._processes.add(process)
        self._all = True

    def note_sent(self, sent: Any) -> None:
        """So many bytes were sent, which are a request, or its headers, or its body."""
        if not isinstance(sent, bytes) or not any(name in sent for name in _OF_TABLES):
            return
        if _OF_READS not in sent:
            self._names.update(name.decode() for name in _QUOTED.findall(sent))

    def among(self, tables: list[str]) -> list[str]:
        """Those that were written since it was last asked; from here on it is noted anew."""
        written = tables if self._all else [name for name in tables if name in self._names]
        self._names = set()
        # Engines write nothing of themselves.
        writers = set(self._processes) - set(engines.processes)
        self._all = any(process.poll() is None for process in writers) or bool(
            multiprocessing.active_children()
        )
        return written


_noting: list[WrittenTables] = []


def another_writes(process: Process) -> None:
    """This one, which is none of `subprocess`, may write as long as it lives."""
    for written in _noting:
        written.note_process(process)


@contextmanager
def noted() -> Iterator[WrittenTables]:
    """Note it all in the block."""
    written = WrittenTables()
    send, start = http.client.HTTPConnection.send, subprocess.Popen.__init__
    start_worker = multiprocessing.process.BaseProcess.start

    def noted_send(connection: http.client.HTTPConnection, data: Any) -> None:
        if not isinstance(connection, UnrecordedConnection):
            written.note_sent(data)
        send(connection, data)

    def noted_start(process: subprocess.Popen[Any], *arguments: Any, **named: Any) -> None:
        start(process, *arguments, **named)
        written.note_process(process)

    def noted_start_of_worker(process: multiprocessing.process.BaseProcess) -> None:
        start_worker(process)
        written.note_all()

    # For as long as this process lives: there is no way back, and it does no harm.
    os.register_at_fork(after_in_parent=written.note_all)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http.client.HTTPConnection, "send", noted_send)
        patch.setattr(subprocess.Popen, "__init__", noted_start)
        patch.setattr(multiprocessing.process.BaseProcess, "start", noted_start_of_worker)
        _noting.append(written)
        yield written
        _noting.remove(written)
