"""A proxy that delays the replies of an engine on this machine, and counts the round trips."""

from __future__ import annotations

import asyncio
import threading
import time
from asyncio import Queue, StreamReader, StreamWriter
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Self

from tests.requests import round_trips


class FarAway:
    """Passes bytes on to a port of this machine, and those of its replies `seconds` late.

    For protocols whose client sends nothing until the reply begins, as HTTP/1.1 and PostgreSQL's.
    """

    def __init__(self, to_port: int, seconds: float) -> None:
        self._to_port = to_port
        self._seconds = seconds
        self._spans: list[tuple[float, float]] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = self._done(asyncio.start_server(self._serve, "127.0.0.1", 0))
        return self

    def __exit__(self, *_error: object) -> None:
        self._done(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def port(self) -> int:
        return self._server.sockets[0].getsockname()[1]

    def take(self) -> int:
        """The number of round trips since this was called last (`tests.requests.round_trips`)."""
        spans, self._spans = self._spans, []
        return round_trips(spans)

    def _done(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _end(self) -> None:
        # In the loop, as nothing of asyncio's may be called from another thread.
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        replies, answers = await asyncio.open_connection("127.0.0.1", self._to_port)
        late: Queue[tuple[float, bytes]] = Queue()
        sent_at: list[float] = []

        async def send() -> None:
            while data := await reader.read(1 << 16):
                if not sent_at:
                    sent_at.append(time.perf_counter())
                answers.write(data)

        async def receive() -> None:
            while data := await replies.read(1 << 16):
                late.put_nowait((time.perf_counter() + self._seconds, data))

        async def deliver() -> None:
            while True:
                due, data = await late.get()
                await asyncio.sleep(due - time.perf_counter())
                if sent_at:
                    self._spans.append((sent_at.pop(), time.perf_counter()))
                writer.write(data)

        tasks = [asyncio.create_task(item) for item in (send(), receive(), deliver())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            with suppress(OSError):
                writer.close()
                answers.close()
