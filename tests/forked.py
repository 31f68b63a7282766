"""Forked processes: programs that `tests.fork_server` runs, and forks of this process."""

import os
import select
import signal
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import IO, Self

SECONDS = 120


class Forked:
    """A program that `tests.fork_server` runs, with the interface of `subprocess.Popen`.

    `channel` sends its pid first, and its exit code when it has ended: the negative number of the
    signal that killed it.
    """

    def __init__(self, channel: socket.socket, streams: Sequence[IO[str] | None]) -> None:
        self._channel = channel
        self.stdin, self.stdout, self.stderr = streams
        self.returncode: int | None = None
        self.pid = int(self._told(SECONDS))

    def _told(self, seconds: float) -> str:
        self._channel.settimeout(seconds)
        told = self._channel.recv(64).decode()
        assert told, "the fork server has ended"
        return told

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        if self.returncode is None and select.select([self._channel], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float = SECONDS) -> int:
        """Wait for the end, and return the exit code.

        Raises:
            TimeoutError: it still runs.
        """
        if self.returncode is None:
            self.returncode = int(self._told(timeout))
            self._channel.close()
        return self.returncode

    def communicate(self, said: str = "", timeout: float = SECONDS) -> tuple[str, str]:
        """Write `said` to its input and wait for its end; the rest of its output and of its errors.

        Raises:
            TimeoutError: it ran longer, and was killed.
        """
        if self.stdin is not None and not self.stdin.closed:
            with suppress(BrokenPipeError), self.stdin:
                self.stdin.write(said)
        with ThreadPoolExecutor(2) as pool:
            out, err = (pool.submit(_rest, stream) for stream in (self.stdout, self.stderr))
            try:
                self.wait(timeout)
            except TimeoutError:
                self.kill()
                raise
        return out.result(), err.result()

    def send_signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL, if it still runs."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Send SIGTERM, if it still runs."""
        self.send_signal(signal.SIGTERM)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                # Its input may have text that it has not read.
                with suppress(BrokenPipeError):
                    stream.close()
        self.wait()


def _rest(stream: IO[str] | None) -> str:
    if stream is None or stream.closed:
        return ""
    with stream:
        return stream.read()


def in_a_child(work: Callable[[], object]) -> int:
    """Run `work` in a fork of this process and return the exit code: 0 if it did not raise.

    A child that hangs is ended after SECONDS.
    """
    pid = os.fork()
    if not pid:
        signal.alarm(SECONDS)
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
