"""Editors in a browser: superusers who change and delete accounts by the forms of `dynamo.admin`.

Each form has a reason of its own, which the audit log keeps with what the form has done.
"""

import json
from typing import Any

from django.core import signing

from accounts import services
from accounts.exceptions import UnknownUser
from dynamo.exceptions import DynamoError
from tests.factories import PASSWORD
from tests.pages import Page
from tests.torture.clients.accounts import shared_value, shown
from tests.torture.clients.browser import NoAnswer, PageFailed
from tests.torture.clients.pages import SIGN_IN, Visitor, write_down_stale
from tests.torture.history import Running

ACCOUNTS = "/editors/accounts/user/"


class Editor(Visitor):
    """A client; one step is a sign-in and a few forms. Its own account is not edited."""

    name = ""

    def story(self) -> None:
        """Sign in, and edit some accounts."""
        self._sign_in()
        for _form in range(self.chance.randrange(1, 6)):
            who = shared_value(self.chance.choice(["username", "email"]), self.chance)
            try:
                pk = services.find_user(who).pk
            except UnknownUser:
                continue
            except DynamoError as error:
                raise NoAnswer from error
            (self._delete if self.chance.random() < 0.3 else self._change)(pk)

    def _sign_in(self) -> None:
        self.name = self.name or f"editor-{self.new_id()}"
        values = {"username": self.name, "email": f"{self.name}@example.org"}
        pk = services.account_key(self.name)
        with self.journal.call("register", request=self.name, pk=pk, **values) as call:
            rights = {"is_staff": True, "is_superuser": True}
            user = services.register(**values, **rights, password=PASSWORD, request_id=self.name)
            call.ok(**shown(user))
        if call.outcome != "ok":
            raise NoAnswer
        typed = {"username": self.name, "password": PASSWORD}
        answer = self.browser.send(SIGN_IN, self.form(SIGN_IN), **typed)
        if answer.status != 302:
            raise PageFailed(f"the sign-in says {answer.page.errors}")

    def _change(self, pk: str) -> None:
        path = f"{ACCOUNTS}{pk}/change/"
        answer = self.browser.get(path)
        if answer.status == 302:
            return  # the account is gone
        form = answer.page
        attribute = self.chance.choice(["username", "email", "full_name"])
        if attribute == "full_name":
            do, new = "edit", f"Person {self.chance.getrandbits(32)}"
            asked = {attribute: new}
        else:
            do, new = "change", shared_value(attribute, self.chance)
            asked = {"attribute": attribute, "old": form.value(attribute), "new": new}
        if asked.get("old") != new:
            asked |= {"pk": pk, "version": int(form.value("version").partition(":")[0])}
            self._send_twice(do, asked, path, form, **{attribute: new})

    def _delete(self, pk: str) -> None:
        page, path = (f"{ACCOUNTS}{pk}/{each}/" for each in ("change", "delete"))
        before, form = self.browser.get(page), self.browser.get(path)
        if 302 in (before.status, form.status):
            return
        version = before.page.value("version").partition(":")[0]
        if _versions_seen(form.page.value("_seen")) != {pk: version}:
            return  # whose values are not known
        asked = {name: before.page.value(name) for name in ("username", "email")}
        self._send_twice("delete", {"pk": pk, "version": int(version)} | asked, path, form.page)

    def _send_twice(
        self, do: str, asked: dict[str, Any], path: str, form: Page, **typed: str
    ) -> None:
        """Send a form until it is answered, at most twice, each time with another reason."""
        for is_last in (False, True):
            reason = self.new_id()
            try:
                sent = asked | {"reason": reason}
                self.send(do, sent, path, form, typed | {"_reason": reason}, times=1)
                return
            except NoAnswer:
                if is_last:
                    raise

    def write_down_done(self, call: Running, do: str, location: str) -> None:
        """The page after a deletion says what was done."""
        if do != "delete":
            if not location.startswith(ACCOUNTS):
                raise PageFailed(f"sent to {location}")
            call.ok()
            return
        said = " ".join(self.browser.get(location).page.messages)
        if said.endswith(("Deleted.", "There was nothing to do.")):
            call.ok()
        elif not write_down_stale(call, said):
            raise PageFailed(f"the deletion says {said!r}")


def _versions_seen(hidden: str) -> Any:
    """The version of each account that the page of a deletion has shown."""
    return json.loads(signing.b64_decode(hidden.partition(":")[0].encode()))
