"""The operations of the site; see `tests.operations`."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from django.core.exceptions import ValidationError
from django.http import Http404

from accounts.exceptions import StaleUser
from accounts.models import User
from accounts.services import change_username, deactivate, delete, grant_staff
from dynamo import Transaction, admin
from dynamo.admin import LogEntry
from dynamo.client.plain import PlainModel
from invoices.document.invoice import Customer
from invoices.exceptions import (
    AlreadyCredited,
    AlreadyPaid,
    AlreadySent,
    AlreadyVoided,
    DateTooEarly,
    InvoiceRequestReused,
    NotPaid,
)
from invoices.models import CustomerItem, InvoiceItem, InvoiceState, SellerProfile
from invoices.store.customers import add_customer
from invoices.store.sellers import open_profile, profile_of
from invoices.store.settlement import credit, mark_paid, mark_unpaid, void
from locks import LockChanged
from locks.models import LockItem
from locks.registry import LockView, look
from sequences.models import Counter
from tests.account_operations import (
    ann,
    ann_in_a_session,
    change_as_stored,
    delete_as_stored,
    register_again,
    staff_ann,
    taken_since,
)
from tests.factories import assert_guards_match_users
from tests.invoice_factories import DAY, assert_invoices_whole, issued, put_sendings
from tests.items import put_item
from tests.locks.items import taken
from tests.operations import DELETE, TRANSACTION, UPDATE, Operation, Refusals, nothing
from tests.staff.scenes import acting, do, make_staff, take_rights

#: What an actor loses while an action runs.
_LOST: Refusals = {
    "the actor is not on the staff any more": (lambda both: take_rights(both[0].user), Http404),
    "the actor was deactivated": (lambda both: deactivate(User.get(both[0].user.pk)), Http404),
    "the actor's session ended": (
        lambda both: setattr(both[0].user, "session_id", "ended"),
        Http404,
    ),
}


def _of_staff(
    name: str,
    act: Callable[[Any], object],
    model: type[PlainModel],
    given: Any,
    refusals: Refusals | None = None,
    **more: Any,
) -> Operation:
    """It is one transaction with the check of the staff account and the entry of the audit log."""
    models = [User, model, LogEntry]
    values = {"units": 8, "assert_sound": assert_guards_match_users} | more
    values["refusals"] = _LOST | (refusals or {})
    return Operation(f"{name} by staff", TRANSACTION, act, models, given, **values)


def _as_staff(**values: Any) -> Any:
    return acting(make_staff(username="grace", email="g@example.org", **values))


def _on_user(action: str, deleted: Any = None, **more: Any) -> Operation:
    def given() -> tuple[Any, User]:
        return _as_staff(), ann_in_a_session()

    def act(both: tuple[Any, User]) -> object:
        return do(both[0], action, both[1], session=str(both[1].session_id))

    refusals = {"deleted since": (lambda both: delete_as_stored(both[1]), deleted)}
    return _of_staff(action, act, User, given, refusals | more.pop("refusals", {}), **more)


EDITORS: Any = admin.ModelAdmin(User, admin.site)


def _by_form(
    name: str, act: Callable[..., object], taken: Refusals | None = None, **more: Any
) -> Operation:
    """A change or deletion of an account, as the forms of the admin write it."""

    def given() -> tuple[Any, User]:
        return _as_staff(is_superuser=True), ann()

    def write(both: tuple[Any, User]) -> object:
        request, user = both
        write = Transaction()
        act(user, write=write)
        return EDITORS.commit(request, write, name, user, permission=name, reason="Why")

    refusals: Refusals = {
        "changed since": (lambda both: change_as_stored(both[1]), StaleUser),
        "registered again since": (lambda both: register_again(both[1]), StaleUser),
    }
    more = {"units": 14} | more
    return _of_staff(name, write, User, given, refusals=refusals | (taken or {}), **more)


def _seen_lock() -> tuple[Any, LockView]:
    taken("a")
    return _as_staff(), look("a")


def _break_lock(both: tuple[Any, LockView]) -> object:
    site: Any = admin.site
    return site.break_lock(*both, "Stuck")


GET = ["GetItem"]

STAFF = [
    _on_user(
        "deactivate",
        ValidationError,
        refusals={
            "the account became staff": (
                lambda both: grant_staff(User.get(both[1].pk)),
                ValidationError,
            )
        },
    ),
    *map(_on_user, ["endSessions", "endSession"]),
    _of_staff(
        "deactivate of staff",
        lambda both: do(both[0], "deactivate", both[1]),
        User,
        lambda: (_as_staff(is_superuser=True), staff_ann()),
        {
            "the actor is not a superuser any more": (
                lambda both: User.get(both[0].user.pk).change(is_superuser=False),
                Http404,
            )
        },
    ),
    _by_form("change", partial(change_username, username="Bea"), taken_since(username="BEA")),
    _by_form("delete", delete, again=StaleUser, units=18),
    _of_staff(
        "breakLock",
        _break_lock,
        LockItem,
        _seen_lock,
        again=LockChanged,
        units=7,
        reads=["GetItem"],
    ),
]

FIRST = f"{DAY.year}-000001"


def _invoice() -> object:
    return issued("ann", request_id="before")


def _paid_invoice() -> None:
    _invoice()
    mark_paid("ann", FIRST, DAY)


def _void(_invoice: Any, **write: Any) -> None:
    void("ann", FIRST, "Wrong", **write)


def _send(_invoice: Any) -> None:
    """As a process does before it asks the mail server."""
    entry = {"to": "bob@example.org", "at": f"{DAY}T10:00:00+00:00", "outcome": "unknown"}
    put_sendings("ann", FIRST, {"r": entry})


def _credit(_invoice: Any) -> object:
    return credit("ann", FIRST, "Returned")


def _pay(_invoice: Any, **write: Any) -> None:
    mark_paid("ann", FIRST, DAY, **write)


def _unpay(_invoice: Any, **write: Any) -> None:
    mark_unpaid("ann", FIRST, DAY, **write)


def _pay_later(_invoice: Any) -> None:
    mark_unpaid("ann", FIRST, DAY)
    mark_paid("ann", FIRST, LATER)


def _of_invoice(
    name: str,
    act: Callable[..., object],
    given: Any = _invoice,
    api: str = TRANSACTION,
    **more: Any,
) -> Operation:
    models = [InvoiceItem, InvoiceState, Counter]
    return Operation(name, api, act, models, given, assert_sound=assert_invoices_whole, **more)


def _customer() -> CustomerItem:
    put_item(User.table(), pk="ann")
    return add_customer("ann", Customer("Bob"), request_id="r")


def _of_customer(name: str, api: str, act: Callable[..., object], deleted: Any) -> Operation:
    refusals: Refusals = {
        "changed since": (
            lambda item: CustomerItem.get(item.account, item.id).change(name="Eve"),
            CustomerItem.Stale,
        ),
        "deleted since": (lambda item: CustomerItem.get(item.account, item.id).delete(), deleted),
    }
    return Operation(name, api, act, [CustomerItem, Counter], _customer, refusals=refusals)


def _seller(user: User) -> SellerProfile:
    return open_profile(user, profile_of(user.pk))


VOIDED: Refusals = {"voided": (_void, AlreadyVoided)}
CREDITED: Refusals = {"credited": (_credit, AlreadyCredited)}
PAID: Refusals = {"paid": (_pay, AlreadyPaid)}
LATER = DAY + timedelta(days=1)

INVOICES = [
    _of_invoice(
        "issue_invoice",
        lambda _none: issued("ann", request_id="r"),
        nothing,
        units=7,
        reads=GET,
        refusals={
            "the request had other contents": (
                lambda _none: issued("ann", request_id="r", customer="Carl"),
                InvoiceRequestReused,
            ),
            "a later one was issued": (lambda _none: issued("ann", day=LATER), DateTooEarly),
        },
    ),
    _of_invoice(
        "void",
        _void,
        again=AlreadyVoided,
        units=12,
        reads=["TransactGetItems"],
        refusals=VOIDED | CREDITED | PAID | {"sent": (_send, AlreadySent)},
    ),
    _of_invoice(
        "credit",
        _credit,
        units=16,
        reads=["TransactGetItems"],
        refusals=VOIDED | {"credited": (lambda _: credit("ann", FIRST, "Another"), None)},
    ),
    _of_invoice(
        "mark_paid",
        _pay,
        units=4,
        refusals=VOIDED
        | CREDITED
        | {"paid on another day": (lambda _: mark_paid("ann", FIRST, LATER), AlreadyPaid)},
    ),
    _of_invoice(
        "mark_unpaid",
        _unpay,
        _paid_invoice,
        api=UPDATE,
        refusals={"paid on another day": (_pay_later, NotPaid)},
    ),
    _of_customer("delete_customer", DELETE, CustomerItem.delete, None),
    Operation(
        "open_profile",
        TRANSACTION,
        lambda user: open_profile(user, profile_of(user.pk)),
        [SellerProfile, User],
        lambda: ann(),
        units=5,
        reads=GET,
        refusals={"opened since": (_seller, None), "deleted since": (delete_as_stored, StaleUser)},
    ),
]
