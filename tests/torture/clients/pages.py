"""Visitors of the site: they sign up, change their username, issue and void invoices, and leave.

They fill in the forms of the pages, and send a form again if it had no answer. Others want the same
usernames, but no other client changes their accounts.
"""

import random
import time
from contextlib import suppress
from typing import Any

from accounts.models import User
from tests.factories import PASSWORD
from tests.pages import SIGN_UP, Page, new_account
from tests.torture.clients.accounts import ERA_SECONDS
from tests.torture.clients.browser import LINGERS_SECONDS, Answer, Browser, NoAnswer, PageFailed
from tests.torture.clients.client import Client
from tests.torture.history import Running

VALUES = 4
TIMES_SENT = 3

SIGN_IN = "/accounts/login/"
USERNAME = "/accounts/username/"
DELETE = "/accounts/delete/"
INVOICE = "/invoices/new/"

#: The errors for values that another account has, and for an account that another call has changed.
TAKEN = ("This username is taken.", "belongs to another account.")
CHANGED = "was changed meanwhile, and nothing was stored"


def visitors_name(chance: random.Random) -> str:
    """A username that other visitors want too."""
    return f"p{int(time.monotonic() / ERA_SECONDS)}-{chance.randrange(VALUES)}"


class Visitor(Client):
    """A client; one step is the whole life of an account."""

    browser: Browser

    def step(self) -> None:
        """Open a browser and use it, until a call has no answer."""
        self.browser = Browser(self.chance.choice(self.plan.ports))
        # The history has recorded the call without an answer.
        with suppress(NoAnswer):
            self.story()

    def story(self) -> None:
        """Sign up and use the account."""
        username = visitors_name(self.chance)
        email = f"{visitors_name(self.chance)}@example.org"
        form = self.form(SIGN_UP)
        request = form.value("request_id").partition(":")[0]
        asked = {"pk": User.key_for(request), "username": username, "email": email}
        typed = new_account(username) | {"email": email}
        answer = self.send("register", asked | {"request": request}, SIGN_UP, form, typed)
        if answer.status != 302:
            return
        for _page in range(self.chance.randrange(5)):
            if self.chance.random() < 0.5:
                self._issue(asked["pk"])
            elif (new := visitors_name(self.chance)) != asked["username"]:
                self._change_username(asked, new)
        if self.chance.random() < 0.6:
            typed = {"password": PASSWORD}
            self.send("delete", asked, DELETE, self.form(DELETE), typed, times=1)

    def form(self, path: str) -> Page:
        answer = self.browser.get(path)
        if answer.status == 302:
            raise NoAnswer(f"sent to {answer.location}")
        return answer.page

    def _change_username(self, account: dict[str, str], new: str) -> None:
        form = self.form(USERNAME)
        asked = {"pk": account["pk"], "attribute": "username", "old": account["username"]}
        typed = {"username": new, "password": PASSWORD}
        if self.send("change", asked | {"new": new}, USERNAME, form, typed).status == 302:
            account["username"] = new

    def _issue(self, pk: str) -> None:
        form = self.form(INVOICE)
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
        answer = self.send("issue", asked, INVOICE, form, typed)
        if answer.status == 302 and self.chance.random() < 0.4:
            path = f"{answer.location}void/"
            typed = {"reason": self.new_id()}
            number = {"number": _number_of(answer.location)}
            self.send("void", {"account": pk} | number | typed, path, self.form(path), typed, 1)

    def send(
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
            with self.journal.call(do, lingers=LINGERS_SECONDS, page=path, **asked) as call:
                try:
                    answer = self.browser.send(path, form, **typed)
                    self.write_down(call, do, answer)
                    return answer
                except NoAnswer as error:
                    call.unanswered(error)
        raise NoAnswer(f"{times} times")

    def write_down(self, call: Running, do: str, answer: Answer) -> None:
        """Record what the answer to a form says."""
        if answer.status == 302 and answer.location.startswith(SIGN_IN):
            call.refused("SignedOut", taken=[])
        elif answer.status == 302:
            call.ok(**({"number": _number_of(answer.location)} if do == "issue" else {}))
        else:
            said = {name: " ".join(texts) for name, texts in answer.page.errors.items()}
            taken = [name for name, text in said.items() if text.endswith(TAKEN)]
            if taken and len(taken) == len(said):
                call.refused("ValueTaken", taken=taken)
            elif do == "change" and any(CHANGED in text for text in said.values()):
                call.refused("StaleUser", taken=[])
            else:
                text = " ".join(answer.page.text.split())
                raise PageFailed(f"the form says: {said}; the page: {text[:300]!r}")


def _number_of(page: str) -> int:
    """The number in the address of an invoice's page, such as `/invoices/2026-000042/`."""
    return int(page.split("-")[1].rstrip("/"))
