"""The proxy of the benchmarks. Not part of `make test`, which the benchmarks cannot break."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from benchmarks.far import FarAway
from dynamo._internal.client.sending import send
from tests.faults.proxy import through

pytestmark = pytest.mark.slow


def read(_number: int = 0) -> Any:
    return send("GetItem", {"TableName": "cache", "Key": {"key": {"S": "none"}}})


def test_the_proxy_delays_replies_and_counts_round_trips(
    engine: str, at_once: Callable[..., list[Any]]
) -> None:
    with FarAway(urlsplit(engine).port or 0, 0.5) as far, through(f"http://127.0.0.1:{far.port}"):
        began = time.perf_counter()
        read()
        assert time.perf_counter() - began >= 0.5
        read()
        assert far.take() == 2

        at_once(read, threads=4)

        assert far.take() == 1


def test_the_server_of_the_proxy_is_closed_in_its_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    close = asyncio.Server.close
    closed: list[asyncio.Server] = []

    def close_in_loop(server: asyncio.Server) -> None:
        asyncio.get_running_loop()
        close(server)
        closed.append(server)

    monkeypatch.setattr(asyncio.Server, "close", close_in_loop)

    with FarAway(9, 0):
        pass

    assert len(closed) == 1
