"""A function that is frozen between events, restored from a snapshot, or short of time."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from tests.dynamo.providers import Provider
from tests.faults.kinds import TimeOut
from tests.faults.proxy import FaultProxy
from tests.serverless.runtime import SNAP_START, Function
from tests.serverless.test_story import issue, post, sign_up

HANDLER = "tests.serverless.handlers.handler"


@pytest.fixture
def function(new_function: Callable[..., Function], proxy: FaultProxy) -> Iterator[Function]:
    """A function that reaches the engine through `proxy`."""
    with new_function(HANDLER, AWS_ENDPOINT_URL_DYNAMODB=proxy.url) as function:
        yield function


def test_restored_functions_share_nothing_that_was_drawn_before_the_snapshot(
    new_function: Callable[..., Function],
) -> None:
    drawn = []
    for _number in range(2):
        with new_function(HANDLER, **SNAP_START) as restored:
            restored.wait_for_snapshot()
            restored.restore()
            drawn.append(restored.invoke({"do": "draw"}))

    assert all(drawn[0][name] != drawn[1][name] for name in ("random", "uuid", "version"))
    assert [item["same_client"] for item in drawn] == [False, False]
    # These are of the snapshot: loading them took place once.
    assert [item["has_pages"] for item in drawn] == [True, True]


def test_a_page_ends_before_the_function_s_time_does(function: Function, proxy: FaultProxy) -> None:
    sign_up(function)
    proxy.plan("BatchGetItem", TimeOut(), times=50)

    began = time.monotonic()
    reply = function.request("GET", "/accounts/profile/", seconds=9.0)

    assert reply.status == 503
    assert time.monotonic() - began < 9.0


# Clocks, credentials and threads ---------------------------------------------------------------


def test_a_clock_that_jumped_ends_neither_a_lease_nor_a_session(function: Function) -> None:
    sign_up(function)
    function.invoke({"do": "hold"})

    for number, seconds in enumerate((3600.0, -3600.0), 1):
        function.jump(seconds)

        assert function.invoke({"do": "check"}) == "held"
        assert function.request("GET", "/accounts/profile/").status == 200
        assert issue(function).endswith(f"-{number:06}/")


def test_credentials_that_expired_during_a_pause_or_before_a_restore_are_not_used(
    new_function: Callable[..., Function],
) -> None:
    # As with SnapStart, where the environment contains no keys.
    keys = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
    with Provider() as provider:
        address = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{provider.url}/keys"}
        with new_function(HANDLER, **SNAP_START, **address, **keys) as function:
            function.wait_for_snapshot()
            function.restore()
            used = [function.invoke({"do": "credentials"}) for _event in range(2)]
            function.jump(provider.lives + 60)
            used += [function.invoke({"do": "credentials"}) for _event in range(2)]

    assert used == ["AKID1", "AKID1", "AKID2", "AKID2"]


def test_no_thread_has_work_left_after_the_response(function: Function) -> None:
    sign_up(function)
    pdf = function.request("GET", issue(function).rstrip("/") + ".pdf")
    archive = function.request("GET", f"/invoices/{datetime.now(UTC).year}.zip")
    assert (pdf.status, archive.status) == (200, 200)
    post(function, "/accounts/password_reset/", email="ann@example.org")

    threads = function.invoke({"do": "threads"})

    # Threads for password hashes and requests wait for the next one; there is no other.
    names = {name.rstrip("0123456789") for name in threads}
    assert names == {"password hash_", "together_"}
    assert set(threads.values()) == {"_worker"}
