"""Editors in a browser: superusers who change and delete accounts by the forms of `dynamo.admin`.

Each form has a reason of its own, which the audit log keeps with what the form has done.
"""

from __future__ import annotations

import json
import random
import uuid
from typing import Any

from django.core import signing

from accounts import services
from accounts.exceptions import UnknownUser
from dynamo.exceptions import DynamoError
from tests.pages import Page
from tests.torture.clients.accounts import shared_address, shared_value, shown
from tests.torture.clients.browser import Answer, NoAnswer, PageFailed
from tests.torture.clients.pages import PASSWORD, SIGN_IN, Visitor
from tests.torture.history import Journal, Running

ACCOUNTS = "/editors/accounts/user/"

CHANGED = "was changed after this page was opened"
DELETED = "was deleted after this page was opened"
GONE = "Perhaps it was deleted?"
TAKEN = "already exists."


class Editor(Visitor):
    """A client; one step is a sign-in and a few forms. Its own account is not edited."""

    def __init__(self, journal: Journal, chance: random.Random, ports: list[int]) -> None:
        super().__init__(journal, chance, ports)
        self._name = f"editor-{uuid.UUID(int=chance.getrandbits(128), version=4)}"

    def _story(self) -> None:
        self._sign_in()
        for _form in range(self._chance.randrange(1, 6)):
            if pk := self._find():
                if self._chance.random() < 0.3:
                    self._delete_account(pk)
                else:
                    self._change(pk)

    def _sign_in(self) -> None:
        request, email = self._name, f"{self._name}@example.org"
        asked = {"pk": services.account_key(request), "username": self._name, "email": email}
        with self._journal.call("register", request=request, **asked) as call:
            rights = {"is_staff": True, "is_superuser": True}
            user = services.register(
                username=self._name, email=email, password=PASSWORD, request_id=request, **rights
            )
            call.ok(**shown(user))
        if call.outcome != "ok":
            raise NoAnswer
        typed = {"username": self._name, "password": PASSWORD}
        answer = self._browser.send(SIGN_IN, self._form(SIGN_IN), **typed)
        if answer.status != 302:
            raise PageFailed(f"the sign-in says {answer.page.errors}")

    def _find(self) -> str | None:
        who = self._chance.choice([shared_value, shared_address])(self._chance)
        try:
            pk: str = services.find_user(who).pk
        except UnknownUser:
            return None
        except DynamoError as error:
            raise NoAnswer from error
        return pk

    def _change(self, pk: str) -> None:
        path = f"{ACCOUNTS}{pk}/change/"
        answer = self._browser.get(path)
        if answer.status == 302:
            return  # the account is gone
        form = answer.page
        asked = {"pk": pk, "version": int(form.value("version").partition(":")[0])}
        attribute = self._chance.choice(["username", "email", "full_name"])
        if attribute == "full_name":
            new = asked["full_name"] = f"Person {self._chance.getrandbits(32)}"
        else:
            new = (shared_value if attribute == "username" else shared_address)(self._chance)
            old = form.value(attribute)
            if new == old:
                return
            asked |= {"attribute": attribute, "old": old, "new": new}
        do = "edit" if attribute == "full_name" else "change"
        self._send_form(do, asked, path, form, **{attribute: new})

    def _delete_account(self, pk: str) -> None:
        page, path = (f"{ACCOUNTS}{pk}/{each}/" for each in ("change", "delete"))
        before, form = self._browser.get(page), self._browser.get(path)
        if 302 in (before.status, form.status):
            return
        version = before.page.value("version").partition(":")[0]
        if _versions_seen(form.page.value("_seen")) != {pk: version}:
            return  # whose values are not known
        asked = {"pk": pk, "version": int(version)}
        asked |= {name: before.page.value(name) for name in ("username", "email")}
        self._send_form("delete", asked, path, form.page)

    def _send_form(
        self, do: str, asked: dict[str, Any], path: str, form: Page, **typed: str
    ) -> None:
        """Send a form until it is answered, at most twice."""
        for times_left in (1, 0):
            reason = f"because {self._chance.getrandbits(64)}"
            try:
                self._send(
                    do, asked | {"reason": reason}, path, form, typed | {"_reason": reason}, times=1
                )
            except NoAnswer:
                if not times_left:
                    raise
            else:
                return

    def _write_down(self, call: Running, do: str, answer: Answer) -> None:
        if do == "delete":
            self._write_down_deletion(call, answer)
        elif answer.status == 302 and answer.location.startswith(ACCOUNTS):
            call.ok()
        else:
            said = {name: " ".join(texts) for name, texts in answer.page.errors.items()}
            taken = [name for name, text in said.items() if text.endswith(TAKEN)]
            gone = DELETED in said.get("", "")
            if gone or CHANGED in said.get("", ""):
                call.refused("StaleUser", taken=[], gone=gone)
            elif taken and len(taken) == len(said):
                call.refused("ValueTaken", taken=taken)
            else:
                raise PageFailed(f"the form says {said}; {answer.status} {answer.location}")

    def _write_down_deletion(self, call: Running, answer: Answer) -> None:
        """The page after it says what was done."""
        try:
            said = " ".join(self._browser.get(answer.location).page.messages)
        except NoAnswer as error:
            call.unanswered(error)
            return
        if said.endswith(("Deleted.", "There was nothing to do.")):
            call.ok()
        elif any(text in said for text in (CHANGED, DELETED, GONE)):
            call.refused("StaleUser", taken=[], gone=CHANGED not in said)
        else:
            raise PageFailed(f"the deletion says {said!r}; {answer.status} {answer.location}")


def _versions_seen(hidden: str) -> Any:
    """The version of each account that the page of a deletion has shown."""
    return json.loads(signing.b64_decode(hidden.partition(":")[0].encode()))
