"""Downloads: one at a time for each account, a few in a process; also under ASGI."""

import asyncio
import gc
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from typing import Any

import pytest
from django.test import AsyncClient, Client

from invoices.pages.downloads import AT_ONCE
from tests.factories import make_user
from tests.invoice_factories import DAY, issued, put_invoice, stored_invoices
from tests.pages import Page, let_in

pytestmark = pytest.mark.usefixtures("engine")

YEAR = DAY.year
FILES = [f"/invoices/{YEAR}.csv", f"/invoices/{YEAR}.zip", "/accounts/export/"]
CSV = FILES[0]


def seller(invoices: int = 2) -> Client:
    """A browser of an account that has issued so many invoices."""
    user = make_user()
    for _number in range(invoices):
        issued(user.pk)
    return let_in(user)


def taken(response: Any) -> bytes:
    return b"".join(response.streaming_content)


def assert_refused(response: Any, status: int, told: str) -> None:
    assert response.status_code == status
    assert int(response["Retry-After"]) > 0
    assert response["Cache-Control"] == "private, no-store"
    assert told in Page(response).text


def test_during_a_download_an_account_gets_no_other_one_but_all_pages() -> None:
    client = seller(1)
    told = "Another download of your account is still running."
    for url, other in pairwise([*FILES, CSV]):
        first = client.get(url)
        assert first.status_code == 200

        assert_refused(client.get(other), 429, told)

        assert taken(first)
        assert taken(client.get(other))
    with closing(client.get(CSV)):
        assert client.get(f"/invoices/{YEAR}-000001.pdf").status_code == 200


def test_a_process_sends_at_most_a_few_files_at_once() -> None:
    clients = [seller(1) for _number in range(AT_ONCE + 1)]
    running = [client.get(CSV) for client in clients[:-1]]
    assert [response.status_code for response in running] == [200] * AT_ONCE

    told = "Too many files are being downloaded right now."
    assert_refused(clients[-1].get(CSV), 503, told)

    assert taken(running[0])
    assert taken(clients[-1].get(CSV))


def test_only_one_of_the_downloads_that_an_account_starts_at_once_runs(
    at_once: Callable[..., list[Any]],
) -> None:
    client = seller()
    clients = [Client() for _number in range(8)]
    for item in clients:
        item.cookies = client.cookies

    found = at_once(lambda n: clients[n].get(CSV), 8)

    assert sorted(response.status_code for response in found) == [200] + [429] * 7


def test_the_next_download_begins_when_one_was_closed_dropped_or_not_found() -> None:
    client = seller(1)

    def leave(response: Any) -> None:
        next(iter(response.streaming_content))
        response.close()

    for end in (leave, lambda response: response.close(), lambda response: None):
        end(client.get(CSV))
        gc.collect()

        assert taken(client.get(CSV))
    assert client.get("/invoices/1999.zip").status_code == 404
    assert taken(client.get(CSV))


def test_a_download_that_fails_has_ended() -> None:
    user = make_user()
    issued(user.pk)
    put_invoice(stored_invoices(user.pk)[0], lines={"S": "none"})
    client = let_in(user)

    for _time in range(2):
        with pytest.raises(Exception, match="damaged"):
            taken(client.get(CSV))


# ASGI ---------------------------------------------------------------------------------------------


def test_under_asgi_a_download_is_the_same_and_rejects_the_next_until_it_ends() -> None:
    client = seller()
    expected = taken(client.get(CSV))

    async def look() -> None:
        visitor = AsyncClient()
        visitor.cookies = client.cookies
        first: Any = await visitor.get(CSV)
        assert first.is_async
        assert (await visitor.get(CSV)).status_code == 429
        assert b"".join([part async for part in first.streaming_content]) == expected
        third: Any = await visitor.get(CSV)
        assert third.status_code == 200
        assert [part async for part in third.streaming_content]

    asyncio.run(look())
