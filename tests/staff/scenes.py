"""Staff accounts, their pages, and the audit log."""

from typing import Any

from django.test import Client, RequestFactory

from accounts.models import User
from dynamo import Transaction, admin
from dynamo.admin.models import LogEntry
from staff.admin import UserAdmin
from staff.reports import KINDS, LastReport, last_reports, make_report, store
from tests.factories import PASSWORD, make_user
from tests.items import Item, scanned
from tests.pages import Page, arrive

ADDRESS = "192.0.2.9"
WHY = {"_reason": "Spam", "_password": PASSWORD}


def make_staff(**values: Any) -> User:
    return make_user(is_staff=True, **values)


def acting(user: User | None = None) -> Any:
    """The request of a staff account that acts without a session."""
    request: Any = RequestFactory(REMOTE_ADDR=ADDRESS).post("/")
    request.user = user or make_staff(username="grace")
    return request


def do(request: Any, action: str, user: User, reason: str = "Why", session: str = "") -> bool:
    """Run an action of the admin on `user`, as its page does after it was confirmed."""
    users = UserAdmin(User, admin.site)
    write = Transaction()
    request.GET = {"session": session}
    what = users._named_actions()[action](users, request, user, write)
    return users.commit(
        request, write, action, user, permission="act", what=what or "", reason=reason
    )


def let_in(user: User) -> Client:
    """A browser in which `user` is signed in."""
    client = Client(REMOTE_ADDR=ADDRESS)
    arrive(client, user)
    return client


def again(user: User) -> User:
    """The account as it is stored now."""
    return User.get(user.pk)


def below(user: User) -> str:
    """What the addresses of an account's pages begin with."""
    return f"/admin/accounts/user/{user.pk}/"


def page_of(user: User, action: str = "", session: str = "") -> str:
    """The address of an account's page in the admin, or of the page that confirms an action."""
    page = f"action/{action}/" if action else "change/"
    return below(user) + page + (f"?session={session}" if session else "")


def act(client: Client, user: User, action: str, session: str = "", **typed: str) -> Any:
    """Open the page of an action on an account, and confirm it. Returns the last answer."""
    path = page_of(user, action, session)
    response = client.get(path)
    if response.status_code != 200:
        return response
    page = Page(response)
    shown = {name: page.value(name) for name in page.fields}
    return client.post(path, shown | WHY | typed)


def fill(client: Any, path: str, **typed: str) -> dict[str, str]:
    """What a browser sends of the form at `path`, with these values and those that confirm."""
    page = Page(client.get(path))
    return {name: page.value(name) for name in page.fields} | WHY | typed


def send(client: Any, path: str, **typed: str) -> Any:
    return client.post(path, fill(client, path, **typed))


def stored_entries() -> list[Item]:
    """Every item of the audit log as stored, oldest first."""
    return sorted(
        scanned(LogEntry.table()), key=lambda item: (item["id"]["S"], item["journal"]["S"])
    )


def logged_actions() -> list[str]:
    """The actions in the journals of months, oldest first."""
    return [
        item["action"]["S"]
        for item in stored_entries()
        if not item["journal"]["S"].startswith("on")
    ]


def stored_report(name: str) -> LastReport:
    """Store a report as its command does, and read it as the pages do.

    (Django refuses commands in a thread in which Playwright runs.)
    """
    kind = KINDS[name]
    store(make_report(kind, by="site@web-1", progress=lambda _what, _count: None))
    [view] = last_reports(kind)
    return view


def take_rights(user: User) -> None:
    """Revoke the staff rights, as an operator does."""
    again(user).change(is_staff=False)
