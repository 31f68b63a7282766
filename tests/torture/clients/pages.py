"""Visitors of the site: they sign up, change their username, issue and void invoices, and leave.

They fill in the forms of the pages, and send a form again if it had no answer. Others want the same
usernames, but no other client changes their accounts.
"""

from __future__ import annotations

import random
import time
from contextlib import suppress
from typing import Any

from accounts.services import account_key
from tests.pages import Page
from tests.torture.clients.accounts import ERA_SECONDS
from tests.torture.clients.browser import LINGERS_SECONDS, Answer, Browser, NoAnswer, PageFailed
from tests.torture.history import Journal, Running

PASSWORD = "correct horse battery"
VALUES = 4
TIMES_SENT = 3

SIGN_IN = "/accounts/login/"
SIGN_UP = "/accounts/signup/"
USERNAME = "/accounts/username/"
DELETE = "/accounts/delete/"
INVOICE = "/invoices/new/"

TAKEN = {
    "username": "This username is taken.",
    "email": "This email address belongs to another account.",
}
CHANGED = "This account was changed meanwhile, and nothing was stored. Please try again."


def visitors_name(chance: random.Random) -> str:
    """A username that other visitors want too."""
    return f"p{int(time.monotonic() / ERA_SECONDS)}-{chance.randrange(VALUES)}"


class Visitor:
    """A client; one step is the whole life of an account."""

    def __init__(self, journal: Journal, chance: random.Random, ports: list[int]) -> None:
        self._journal = journal
        self._chance = chance
        self._ports = ports
        self._browser = Browser(ports[0])

    def step(self) -> None:
        """Sign up and use the account, until a call has no answer."""
        self._browser = Browser(self._chance.choice(self._ports))
        # The history has recorded the call without an answer.
        with suppress(NoAnswer):
            self._story()

    def _story(self) -> None:
        username, email = visitors_name(self._chance), f"{visitors_name(self._chance)}@example.org"
        pk = self._sign_up(username, email)
        if pk is None:
            return
        for _page in range(self._chance.randrange(5)):
            what = self._chance.random()
            if what < 0.5:
                self._issue(pk)
            else:
                username = self._change_username(pk, username)
        if self._chance.random() < 0.6:
            self._delete(pk, username, email)

    def _sign_up(self, username: str, email: str) -> str | None:
        form = self._form(SIGN_UP)
        request = form.value("request_id").partition(":")[0]
        pk = account_key(request)
        asked = {"pk": pk, "username": username, "email": email, "request": request}
        typed = {"username": username, "email": email}
        typed |= {"password1": PASSWORD, "password2": PASSWORD}
        answer = self._send("register", asked, SIGN_UP, form, typed)
        return pk if answer.status == 302 else None

    def _form(self, path: str) -> Page:
        answer = self._browser.get(path)
        if answer.status == 302:
            raise NoAnswer(f"sent to {answer.location}")
        return answer.page

    def _change_username(self, pk: str, old: str) -> str:
        new = visitors_name(self._chance)
        if new == old:
            return old
        form = self._form(USERNAME)
        asked = {"pk": pk, "attribute": "username", "old": old, "new": new}
        typed = {"username": new, "password": PASSWORD}
        return new if self._send("change", asked, USERNAME, form, typed).status == 302 else old

    def _issue(self, pk: str) -> None:
        form = self._form(INVOICE)
        request = form.value("request_id").partition(":")[0]
        asked = {"account": pk, "request": request, "customer": f"Customer of {request}"}
        typed = {
            "customer_name": asked["customer"],
            "currency": "EUR",
            "lines-0-description": "Work",
            "lines-0-quantity": "1",
            "lines-0-unit_price": "100",
            "lines-0-vat_rate": "19",
        }
        answer = self._send("issue", asked, INVOICE, form, typed)
        if answer.status == 302 and self._chance.random() < 0.4:
            self._void(pk, answer.location)

    def _void(self, pk: str, page: str) -> None:
        path = f"{page}void/"
        form = self._form(path)
        reason = f"because {self._chance.getrandbits(64)}"
        asked = {"account": pk, "number": _number_of(page), "reason": reason}
        self._send("void", asked, path, form, {"reason": reason}, times=1)

    def _delete(self, pk: str, username: str, email: str) -> None:
        form = self._form(DELETE)
        asked = {"pk": pk, "username": username, "email": email}
        self._send("delete", asked, DELETE, form, {"password": PASSWORD}, times=1)

    def _send(
        self,
        do: str,
        asked: dict[str, Any],
        path: str,
        form: Page,
        typed: dict[str, Any],
        times: int = TIMES_SENT,
    ) -> Answer:
        """Send a form until it is answered; each attempt is a call. Raises NoAnswer."""
        for _time in range(times):
            with self._journal.call(do, lingers=LINGERS_SECONDS, page=path, **asked) as call:
                try:
                    answer = self._browser.send(path, form, **typed)
                except NoAnswer as error:
                    call.unanswered(error)
                else:
                    self._write_down(call, do, answer)
                    return answer
        raise NoAnswer(f"{times} times")

    def _write_down(self, call: Running, do: str, answer: Answer) -> None:
        if answer.status == 302:
            if answer.location.startswith(SIGN_IN):
                call.refused("SignedOut", taken=[])
            else:
                call.ok(**({"number": _number_of(answer.location)} if do == "issue" else {}))
            return
        said = {name: " ".join(texts) for name, texts in answer.page.errors.items()}
        taken = [name for name, text in said.items() if text == TAKEN.get(name)]
        if taken and len(taken) == len(said):
            call.refused("ValueTaken", taken=taken)
        elif do == "change" and CHANGED in said.values():
            call.refused("StaleUser", taken=[])
        else:
            text = " ".join(answer.page.text.split())
            raise PageFailed(f"the form says: {said}; the page: {text[:300]!r}")


def _number_of(page: str) -> int:
    """The number in the address of an invoice's page, such as `/invoices/2026-000042/`."""
    return int(page.split("-")[1].rstrip("/"))
