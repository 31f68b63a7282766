"""Runs every operation of the site once on a real engine and counts its requests.

Items have typical sizes: names of ten letters, invoices of one line. All are below 1 KB, for which
AWS counts one unit; each further KB costs one more.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from typing import Any

from django.contrib.sessions.backends.base import SessionBase
from django.core import mail
from django.test import Client
from django.test.utils import override_settings

from accounts import services
from accounts.conf import LIMITS
from accounts.limits.windows import Limit
from accounts.models import User
from benchmarks.scale.prices import ITEM_OVERHEAD_BYTES
from benchmarks.scale.tally import Tally, tallied
from dynamo.auth import make_password
from dynamo.cache.items import CacheItem
from dynamo.client.sending import send
from dynamo.sessions import SessionStore
from dynamo.transactions import Transaction
from dynamo.wire.values import item_bytes
from invoices.document.amounts import Line
from invoices.document.invoice import Customer, Draft, Seller, draw_up, series_of
from invoices.models import InvoiceItem
from invoices.store.issuing import issue_invoice, today
from invoices.store.lists import list_invoices
from invoices.store.records import to_item
from invoices.store.settlement import credit, mark_paid, void
from locks import requests
from locks.exceptions import LeaseLost
from locks.leases import Lease
from locks.lock import Lock, claim_once
from outbox.worker import Worker
from sequences import series
from sequences.combining import Caller
from sequences.counters import next_value, next_values
from sequences.groups import Unnumbered
from sequences.models import REQUEST_PREFIX
from uploads import claims

PASSWORD = "correct horse battery"  # noqa: S105 - of accounts that live for a second
NO_LIMITS = dict.fromkeys(LIMITS)
HIGH_LIMITS = dict.fromkeys(LIMITS, "1000/1h")
DRAFT = Draft(
    Customer("A customer", "1 Road\nTown"),
    (Line("Work", Decimal(8), Decimal("95.50"), Decimal(19)),),
    "EUR",
)
SELLER = Seller("A seller", "2 Street\nCity", "GB123456789")

Measured = dict[str, Tally]
_numbers = itertools.count(1)


def measured() -> Measured:
    """Run every operation; return what each sent. Needs empty tables, and leaves items."""
    found: Measured = {}
    with override_settings(TASKS={"default": {"BACKEND": "outbox.TaskBackend"}}):
        for part in (_accounts, _pages, _sessions, _counters, _invoices, _locks, _uploads):
            part(lambda name, act: found.__setitem__(name, _tally_of(act)))
    return found


Measure = Callable[[str, Callable[[], Any]], None]


def _tally_of(act: Callable[[], Any]) -> Tally:
    with tallied() as tally:
        act()
    return tally


def _user() -> Any:
    name = f"user{next(_numbers):06}"
    return services.register(username=name, email=f"{name}@example.com", password=PASSWORD)


def _accounts(measure: Measure) -> None:
    measure("register", _user)
    user = _user()
    measure("change the username", lambda: services.change_username(user, "another_name"))
    measure("change the email address", lambda: services.change_email(user, "new@example.com"))
    measure(
        "change only the spelling of a value",
        lambda: services.change_email(user, "New@example.com"),
    )
    measure("edit the profile", lambda: services.edit_profile(user, full_name="Ann Example"))
    measure("change the password", lambda: user.change(password=make_password(None)))
    measure("find by username or email address", lambda: services.find_user("new@example.com"))
    measure("find by key", lambda: services.find_user(user.pk))
    measure("delete the account", lambda: services.delete(user))


def _pages(measure: Measure) -> None:
    with _site(NO_LIMITS):
        _tasks_run(lambda act: act())  # those of the accounts before
        client = Client()
        measure("page: sign up", lambda: _sign_up(client))
        _tasks_run(partial(measure, "worker: send a mail"))
        link = _link()
        measure("page: confirm an email address", lambda: client.post(link))
        client.get("/accounts/profile/")
        measure(
            "page: any, signed in, without its own data", lambda: client.get("/accounts/sessions/")
        )
        user = _user()
        fresh = Client()
        measure("page: sign in", lambda: _sign_in(fresh, user))
        measure("page: sign out", lambda: fresh.post("/accounts/logout/"))
    with _site(HIGH_LIMITS):
        measure("page: sign up, with limits", lambda: _sign_up(Client()))
        user = _user()
        measure("page: sign in, with limits", lambda: _sign_in(Client(), user))


@contextmanager
def _site(limits: dict[str, Any]) -> Iterator[None]:
    with override_settings(
        ACCOUNTS_LIMITS=limits,
        ALLOWED_HOSTS=["*"],
        EMAIL_BACKEND="django.core.mail.backends.locmem.EmailBackend",
        # Argon2 is slow on purpose and takes no units.
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    ):
        mail.outbox = []
        yield


def _sign_up(client: Client) -> None:
    from accounts.forms import SignUpForm

    name = f"visitor{next(_numbers):06}"
    values = {"username": name, "email": f"{name}@example.com", "full_name": "Ann Example"}
    passwords = {"password1": PASSWORD, "password2": PASSWORD}
    form = values | passwords | {"request_id": SignUpForm.new_request_id()}
    _expect(302, client.post("/accounts/signup/", form))


def _sign_in(client: Client, user: User) -> None:
    form = {"username": user.username, "password": PASSWORD}
    _expect(302, client.post("/accounts/login/", form))


def _expect(status: int, response: Any) -> None:
    if response.status_code != status:
        raise SystemExit(f"The site answered {response.status_code}: {response.content[:500]!r}")


def _tasks_run(run: Callable[[Callable[[], Any]], Any]) -> None:
    """Pass to `run` what a worker does with each task that it has found."""
    worker = Worker()
    try:
        worker._lease.current()
        for item in worker._find(worker._partitions, is_consistent=True):
            run(partial(worker._claim_and_run, item))
            # As a thread of the worker does. Its end waits for those that run, up to 25 seconds.
            worker._running.clear()
    finally:
        worker._end()


def _link() -> str:
    words = str(mail.outbox[-1].body).split()
    [link] = [word for word in words if "/confirm/" in word]
    return "/" + link.split("/", 3)[3]


def _sessions(measure: Measure) -> None:
    session = SessionStore()
    session["theme"] = "dark"
    measure("session: create", session.save)
    again: SessionBase = SessionStore(session.session_key)
    measure("session: read", lambda: again.get("theme"))
    again["theme"] = "light"
    measure("session: save", again.save)
    measure("session: end", again.delete)
    limit = Limit("scale", 5, 900)
    measure("rate limit: first attempt of a window", lambda: limit.take("ann"))
    slot = limit.take("ann")
    measure("rate limit: each further attempt", lambda: limit.take("ann"))
    measure("rate limit: give one back", slot.give_back)


def _counters(measure: Measure) -> None:
    measure("next number of a counter", lambda: next_value("scale"))
    measure("next 1,000 numbers", lambda: next_values(1000, "scale"))
    measure("next number, optimistic", lambda: next_value("scale", strategy="optimistic"))


def _invoices(measure: Measure) -> None:
    def one() -> None:
        issue_invoice(DRAFT, account="scale", seller=SELLER)

    one()  # from now on the process knows how far the series is
    measure("issue an invoice", one)
    measure("issue a group of 10 invoices", partial(_issue_group, 10))
    this_year = today().year
    first = f"{this_year}-000001"
    second = f"{this_year}-000002"
    measure("void an invoice", lambda: void("scale", first, "Wrong customer"))
    measure("mark an invoice as paid", lambda: mark_paid("scale", second, today()))
    measure("credit an invoice", lambda: credit("scale", second, "Returned"))
    measure("list 50 invoices", lambda: list_invoices("scale", this_year))


def _issue_group(size: int) -> None:
    """Issue a group of invoices, as the combiner sends those that wait together."""
    name = series_of("scale", today().year)
    callers: list[Any] = []
    for _ in range(size):
        invoice = draw_up(DRAFT, "scale", SELLER, today(), str(uuid.uuid4()))
        item = InvoiceItem.prepared(name, to_item(invoice), DRAFT.digest())
        item.request_id = invoice.request_id
        callers.append(
            Caller(Unnumbered(item, item.to_wire(), invoice.request_id, DRAFT.digest(), 1000), 0.0)
        )
    series._send_group((InvoiceItem, name), callers)


def _locks(measure: Measure) -> None:
    taken: list[Lease] = []
    measure("lock: acquire", lambda: taken.append(Lock("scale", wait_seconds=0).acquire()))
    [lease] = taken
    measure("lock: renew", lease.renew)
    measure("lock: a waiter's read", lambda: requests.read("scale"))
    measure("lock: `hold_in` a transaction that puts an item", lambda: _hold(lease))
    measure("lock: release", lease.release)
    measure("claim once", lambda: claim_once("scale#once"))


def _hold(lease: Lease) -> None:
    with Transaction() as write:
        lease.hold_in(write)
        item = CacheItem("scale")
        write.put(item, CacheItem.key.does_not_exist(), otherwise=LeaseLost("scale", 0, "twice"))


def _uploads(measure: Measure) -> None:
    lease = Lock("scale-uploads", wait_seconds=0).acquire()
    try:
        url = "s3://bucket/file.log"

        def store() -> None:
            claim = claims.take(url, 10_000, lease)
            if not isinstance(claim, claims.Claim):
                raise SystemExit(f"{url} is taken")
            claims.finish(claim, 10_000, "x" * 44, "x" * 32)

        measure("upload a file up to 8 MB", store)
        measure("upload a file that was uploaded before", lambda: claims.take(url, 10_000, lease))
    finally:
        lease.release(remove=True)


def stored_bytes() -> dict[str, float]:
    """The mean size on disk of an item of each kind, after `measured`."""
    sizes: dict[str, list[int]] = {}
    for table, key, kind_of in (
        (User.table(), "pk", lambda key: "guard of an account" if "#" in key else "account"),
        (InvoiceItem.table(), "series", _kind_of_invoice),
        (CacheItem.table(), "key", lambda _key: "session or limit"),
    ):
        for item in send("Scan", {"TableName": table})["Items"]:
            size = item_bytes(item) + ITEM_OVERHEAD_BYTES
            sizes.setdefault(kind_of(item[key]["S"]), []).append(size)
    return {kind: sum(size) / len(size) for kind, size in sizes.items()}


def _kind_of_invoice(key: str) -> str:
    return "guard of an invoice" if key.startswith(REQUEST_PREFIX) else "invoice"
