"""Functions at their limits: time, memory, and passwords that are guessed at many of them."""

from __future__ import annotations

import re
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import chain
from pathlib import Path

from tests.factories import make_user
from tests.faults.kinds import Delay
from tests.faults.proxy import FaultProxy
from tests.serverless.runtime import Function, event
from tests.serverless.test_story import INVOICE, hidden, issue, sign_up
from tests.waiting import wait_until

#: docs/lambda.md names it.
MOST_MEGABYTES = 200


def megabytes(function: Function) -> float:
    """The most memory that the function has had."""
    status = Path(f"/proc/{function.process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024


def test_hashes_and_pdfs_fit_into_the_documented_memory(
    site_folder: Path, environment: dict[str, str]
) -> None:
    # A fork would share memory, and have other packages loaded.
    with Function(environment, folder=site_folder, python=(sys.executable,)) as function:
        sign_up(function)
        for _attempt in range(5):
            page = function.request("GET", "/accounts/login/").text
            fields = {"username": "ann", "password": "wrong"}
            token = hidden(page, "csrfmiddlewaretoken")
            reply = function.request(
                "POST", "/accounts/login/", fields | {"csrfmiddlewaretoken": token}
            )
            assert reply.status == 200
        for customer in ("Bob & Söhne", "株式会社サンプル"):
            invoice = issue(function, customer_name=customer)
            assert function.request("GET", invoice.rstrip("/") + ".pdf").status == 200

        assert megabytes(function) < MOST_MEGABYTES


def test_a_mail_server_that_hangs_does_not_use_up_the_function_s_time(
    site_folder: Path, environment: dict[str, str]
) -> None:
    make_user(username="ann", email="ann@example.org")
    # It accepts connections and says nothing.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        mail = {"EMAIL_URL": f"smtp://127.0.0.1:{silent.getsockname()[1]}"}
        with Function(environment | mail, folder=site_folder) as function:
            page = function.request("GET", "/accounts/password_reset/").text
            token = hidden(page, "csrfmiddlewaretoken")
            fields = {"email": "ann@example.org", "csrfmiddlewaretoken": token}

            began = time.monotonic()
            reply = function.request("POST", "/accounts/password_reset/", fields, seconds=8.0)

    # The form again, with an error.
    assert (reply.status, "errorlist" in reply.text) == (200, True)
    assert time.monotonic() - began < 8.0


def test_a_form_whose_function_was_ended_is_carried_out_once(
    site_folder: Path, environment: dict[str, str], function: Function, proxy: FaultProxy
) -> None:
    through = environment | {"AWS_ENDPOINT_URL_DYNAMODB": proxy.url}
    with Function(through, folder=site_folder) as ended:
        sign_up(ended)
        page = ended.request("GET", "/invoices/new/").text
        fields = INVOICE | {
            name: hidden(page, name) for name in ("csrfmiddlewaretoken", "request_id")
        }
        before = proxy.count("TransactWriteItems")
        # Carried out, but the function is waiting for the reply when its time is over.
        proxy.plan("TransactWriteItems", Delay(60))
        sent = event("POST", "/invoices/new/", fields, cookies=ended.cookies)
        ended.start(sent)
        wait_until(lambda: proxy.count("TransactWriteItems") > before)
        ended.process.kill()
        function.cookies = ended.cookies

    reply = function.request("POST", "/invoices/new/", fields)

    assert reply.status == 302
    assert reply.headers["location"].endswith("-000001/")
    assert issue(function).endswith("-000002/")


def test_guesses_at_many_functions_are_bounded_together(
    site_folder: Path, environment: dict[str, str]
) -> None:
    make_user(username="ann")
    environment |= {"ACCOUNTS_LIMIT_SIGN_IN": "4/15m"}
    with ExitStack() as stack:
        functions = [
            stack.enter_context(Function(environment, folder=site_folder)) for _number in range(3)
        ]

        def guess(function: Function) -> list[int]:
            page = function.request("GET", "/accounts/login/").text
            fields = {
                "username": "ann",
                "password": "wrong",
                "csrfmiddlewaretoken": hidden(page, "csrfmiddlewaretoken"),
            }
            return [
                function.request("POST", "/accounts/login/", fields).status for _guess in range(3)
            ]

        with ThreadPoolExecutor(len(functions)) as pool:
            statuses = list(chain.from_iterable(pool.map(guess, functions)))

    assert sorted(statuses) == [200] * 4 + [429] * 5


def test_two_functions_issue_into_one_series_at_once(
    site_folder: Path, environment: dict[str, str], function: Function
) -> None:
    sign_up(function)
    with Function(environment, folder=site_folder) as other:
        other.cookies.load(function.cookies.output(header="", sep=";"))

        def issue_many(each: Function) -> list[str]:
            return [issue(each) for _number in range(4)]

        with ThreadPoolExecutor(2) as pool:
            pages = list(chain.from_iterable(pool.map(issue_many, (function, other))))

    numbers = sorted(int(page.rstrip("/").rsplit("-", 1)[1]) for page in pages)
    assert numbers == list(range(1, 9))
