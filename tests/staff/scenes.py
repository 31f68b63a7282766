"""Staff, those it acts on, and what the audit log says afterwards."""

from __future__ import annotations

from typing import Any

from django.test import Client

from accounts.models import User
from dynamo.client.sending import send
from dynamo.models import Item
from staff.audit_log import Actor
from staff.models import StaffAction
from staff.reports import KINDS, LastReport, last_reports, make_report, store
from tests.factories import PASSWORD, make_user

ADDRESS = "192.0.2.9"
WHY = {"reason": "Spam", "password": PASSWORD}


def make_staff(**values: Any) -> User:
    """A member of staff."""
    return make_user(is_staff=True, **values)


def acting(user: User | None = None) -> Actor:
    """A member of staff who acts now, outside of any session."""
    return Actor(user or make_staff(username="grace"), ADDRESS)


def let_in(user: User) -> Client:
    """A browser in which `user` is signed in."""
    client = Client(REMOTE_ADDR=ADDRESS)
    client.force_login(user)
    return client


def again(user: User) -> User:
    """The account as it is stored now."""
    return User.get(user.pk)


def page_of(user: User, *more: str) -> str:
    """The address of staff's page of an account, or of one below it."""
    return "/".join(["/staff/accounts", user.pk, *more, ""])


def stored_record() -> list[Item]:
    """Every item of the record, as on the wire, the oldest first."""
    items: list[Item] = send("Scan", {"TableName": StaffAction.table()})["Items"]
    return sorted(items, key=lambda item: (item["id"]["S"], item["journal"]["S"]))


def recorded_actions() -> list[str]:
    """What is recorded to have been done, in that order; each action is in the month's journal."""
    return [
        item["action"]["S"] for item in stored_record() if not item["journal"]["S"].startswith("on")
    ]


def stored_report(name: str) -> LastReport:
    """Store a report as its command does; what pages show of it.

    (Django refuses commands in a thread in which Playwright runs.)
    """
    kind = KINDS[name]
    store(make_report(kind, by="site@web-1", progress=lambda _count: None))
    [view] = last_reports(kind)
    return view


def take_rights(user: User) -> None:
    """Let the account be staff no more, as an operator does."""
    again(user).store({"is_staff": False})
