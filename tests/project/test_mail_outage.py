"""Sign-ups while the mail server hangs: no page waits for it, and each mail arrives once."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.http import HttpResponse

from outbox.worker import Ran, Worker
from tests.mailbox import MailServer, sent_by
from tests.pages import SIGN_UP, Page, new_account
from tests.production import HOST
from tests.registration import RunTasks
from tests.served import Server
from tests.waiting import wait_until

CONNECTIONS = 24


def sign_up(server: Server, number: int) -> float:
    """Open the form, send it, and open the next page; the seconds of the slowest page."""
    seconds = []
    cookies = SimpleCookie[str]()
    visitor = {"X-Forwarded-For": f"198.51.100.{number}", "Origin": f"https://{HOST}"}

    def page(path: str, form: dict[str, str] | None = None) -> Any:
        headers = visitor | {
            "Cookie": "; ".join(f"{name}={item.value}" for name, item in cookies.items())
        }
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        body = urlencode(form or {}).encode()
        began = time.perf_counter()
        reply = server.ask("GET" if form is None else "POST", path, body, headers)
        seconds.append(time.perf_counter() - began)
        for line in reply.headers.get_all("Set-Cookie", []):
            cookies.load(line)
        return reply

    shown = Page(HttpResponse(page(SIGN_UP).body))
    sent = {name: shown.value(name) for name in shown.fields} | new_account(f"visitor-{number}")
    # A busy page asks the visitor to send the form again.
    while (reply := page(SIGN_UP, sent)).status == 503:
        pass
    assert (reply.status, page(reply.headers["Location"]).status) == (302, 200)
    return max(seconds)


def sign_ups(server: Server) -> list[float]:
    """Sign up over all connections at once; the seconds of each one's slowest page."""
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        return list(pool.map(lambda number: sign_up(server, number), range(CONNECTIONS)))


@pytest.fixture
def ran(settings: Any, worker: RunTasks) -> Iterator[list[Ran]]:
    """The attempts of a worker that runs."""
    # The mails of the worker wait until the mail server is back, however slow this machine is.
    settings.EMAIL_TIMEOUT = 600
    attempts: list[Ran] = []
    stop = threading.Event()
    thread = threading.Thread(target=Worker(stop=stop, on_ran=attempts.append).run)
    thread.start()
    yield attempts
    stop.set()
    thread.join()


def test_24_visitors_sign_up_while_the_mail_server_hangs_and_each_mail_arrives_once(
    served_checkout: Path, engine_url: str, settings: Any, ran: list[Ran]
) -> None:
    with MailServer() as mails, MailServer() as of_pages:
        sent_by(settings, mails.port)
        mails.may_greet.clear()
        options = {
            "EMAIL_URL": f"smtp://127.0.0.1:{of_pages.port}",
            "ACCOUNTS_PREVENT_ENUMERATION": "off",
        }
        with Server(served_checkout, engine_url, **options) as server:
            sign_ups(server)

        wait_until(lambda: mails.connections)
        assert (mails.taken, of_pages.connections) == ([], [])
        mails.may_greet.set()

        wait_until(lambda: len(ran) == CONNECTIONS)
    addresses = {f"<visitor-{number}@example.org>" for number in range(CONNECTIONS)}
    assert [attempt.outcome for attempt in ran] == ["successful"] * CONNECTIONS
    assert len(mails.taken) == CONNECTIONS
    assert {recipient for recipient, _mail in mails.taken} == addresses
