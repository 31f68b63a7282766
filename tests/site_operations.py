"""The operations of the site; see `tests.operations`."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from django.contrib.auth.hashers import make_password
from django.core.exceptions import ValidationError
from django.http import Http404

from accounts.emails import links
from accounts.emails.links import cancel_change, confirm_change, request_change
from accounts.exceptions import AccountRequestReused, BadLink, EmailTaken, StaleUser, UsernameTaken
from accounts.models import User
from accounts.services import (
    activate,
    change_email,
    change_username,
    deactivate,
    delete,
    edit_profile,
    grant_staff,
    revoke_staff,
)
from accounts.sessions import services as sessions
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
from invoices.store.customers import add_customer, change_customer
from invoices.store.sellers import open_profile, profile_of
from invoices.store.settlement import credit, mark_paid, mark_unpaid, void
from locks import LockChanged
from locks.models import LockItem
from locks.registry import LockView, look
from sequences.models import Counter
from tests.emailchanges import NEW, token_of
from tests.factories import PASSWORD, assert_guards_match_users, change_password, make_user
from tests.invoice_factories import DAY, assert_invoices_whole, issued, put_sendings
from tests.items import put_item
from tests.locks.items import taken
from tests.operations import DELETE, DONE, TRANSACTION, UPDATE, Operation, Refusals, nothing
from tests.session_maps import begun, let_pass, read_for
from tests.staff.scenes import acting, do, make_staff, take_rights

ANN = {"username": "Ann", "email": "ann@example.org", "full_name": "Ann", "request_id": "ann"}


def ann(**values: Any) -> User:
    """An account whose password hash is outdated."""
    outdated = make_password(PASSWORD, salt="short", hasher="md5")
    return make_user(**ANN | {"password": None, "password_hash": outdated} | values)


def waiting_ann() -> User:
    """The same account with a change of email address that waits for its link."""
    user = ann()
    request_change(user, NEW)
    return user


def ann_in_a_session() -> User:
    """The same account as one of its two sessions reads it."""
    user = ann()
    mine = begun(user, browser="mine")
    begun(user, browser="other")
    return read_for(user, mine)


def ann_with_all_sessions() -> User:
    """The same account with as many sessions as it can have."""
    user = ann()
    for _ in range(sessions.MOST):
        begun(user, browser="old")
    return User.get(user.pk)


def ann_seen_long_ago() -> User:
    """The same account with one session, which was last seen an hour ago."""
    user = ann()
    let_pass(user, begun(user), "seenAt", 3600)
    return User.get(user.pk)


def deactivated_ann() -> User:
    user = ann()
    deactivate(user)
    return user


def staff_ann() -> User:
    return make_user(**ANN, is_staff=True)


def _confirm(user: User, **write: Any) -> User:
    token = links.confirmation_token(user)
    return links.repeat_if_stale(lambda: links.confirm(token, **write))


def _follow(user: User, **write: Any) -> tuple[User, User | None]:
    return links.repeat_if_stale(lambda: confirm_change(token_of(user), **write))


def _end_other(user: User, **write: Any) -> None:
    [other] = [item.id for item in sessions.active_sessions(user) if item.id != user.session_id]
    sessions.end(user, other, **write)


def _end_all_and_begin(user: User) -> None:
    sessions.end_all(User.get(user.pk))
    begun(user)


def _see(user: User, **write: Any) -> None:
    [session] = sessions.active_sessions(user)
    sessions.mark_seen(user, session, address="192.0.2.8", **write)


def _delete(user: User) -> None:
    delete(User.get(user.pk))


def _register_again(user: User) -> None:
    """Delete the account, and register it with the same contents, as an import of a file does."""
    _delete(user)
    ann()


def _change(user: User) -> None:
    edit_profile(User.get(user.pk), full_name="Since")


def _deactivate(user: User) -> None:
    deactivate(User.get(user.pk))


def _with_another_password(outcome: type[Exception] | None) -> Refusals:
    return {"the password changed since": (lambda user: _password(User.get(user.pk)), outcome)}


def _account(
    name: str,
    act: Callable[..., object],
    given: Callable[[], object] = ann,
    again: str = "same",
    *,
    api: str = UPDATE,
    stale: type[Exception] | None = StaleUser,
    changed: type[Exception] | str | None = StaleUser,
    refusals: Refusals | None = None,
    **more: Any,
) -> Operation:
    """`stale`: its refusal if the account was deleted since; `changed`: if it was changed since."""

    def register_again_and_act(user: User) -> None:
        _delete(user)
        act(given())

    since: Refusals = {
        "deleted since": (_delete, stale),
        "registered again since": (_register_again, stale),
        "registered again since, with the same change": (register_again_and_act, stale),
        "changed since": (_change, changed),
    }
    more = {"assert_sound": assert_guards_match_users, "refusals": since | (refusals or {})} | more
    return Operation(name, api, act, [User], given, again, **more)


def _registered(**values: Any) -> Callable[[Any], object]:
    return lambda _given: make_user(**values)


def _taken(**values: Any) -> Refusals:
    [name] = values
    error = UsernameTaken if name == "username" else EmailTaken
    return {f"the {name} is taken": (_registered(**values), error)}


#: These move guard items.
_moving = partial(_account, api=TRANSACTION, units=8)
#: Sign-ins and sessions neither make a form stale nor are refused by one that was saved.
_session = partial(_account, changed=DONE)
_by_link = {"stale": BadLink, "changed": DONE, "reads": ["GetItem"]}
_third = {"email": "third@example.org"}
_password = partial(change_password, password="another good password")

ACCOUNTS = [
    Operation(
        "register",
        TRANSACTION,
        lambda _none, **write: make_user(**ANN, **write),
        [User],
        assert_sound=assert_guards_match_users,
        units=8,
        refusals=_taken(username="ANN")
        | _taken(email="ANN@example.org")
        | {
            "the request had other contents": (
                _registered(**ANN | {"username": "bob"}),
                AccountRequestReused,
            ),
            "the address changed since": (
                lambda _none: change_email(make_user(**ANN), "new@example.org"),
                AccountRequestReused,
            ),
        },
    ),
    _moving(
        "change_username", partial(change_username, username="Bea"), refusals=_taken(username="BEA")
    ),
    _account("change_username's spelling", partial(change_username, username="ANN")),
    _moving("change_email", partial(change_email, email=NEW), refusals=_taken(email=NEW)),
    _account("change_email's spelling", partial(change_email, email="ANN@example.org")),
    _account("edit_profile", partial(edit_profile, full_name="", phone_number="+12025550124")),
    _account("change_password", _password, again="another"),
    _account("change_password in a session", _password, ann_in_a_session, "another"),
    _account("mark_confirmed", links.mark_confirmed, again="another"),
    _account("confirm", _confirm, units=2, **_by_link),
    _account("deactivate", deactivate),
    _account("activate", activate, deactivated_ann),
    _account("grant_staff", partial(grant_staff, superuser=True)),
    _account("revoke_staff", revoke_staff, staff_ann),
    _account(
        "delete",
        delete,
        api=TRANSACTION,
        # Also of its seller, and of the task that deletes its address book.
        units=12,
        refusals=dict.fromkeys(
            ["deleted since", "registered again since, with the same change"], (_delete, None)
        ),
    ),
    _session("record_sign_in", User.record_sign_in, again="another"),
    _session(
        "upgrade_hash",
        partial(User.upgrade_hash, raw_password=PASSWORD),
        refusals=_with_another_password(StaleUser),
    ),
    _session(
        "check_password with an outdated hash",
        lambda user: user.check_password(PASSWORD),
        stale=None,
        refusals=_with_another_password(None),
    ),
    # A change of the email address that waits for its link
    _account("request_change", partial(request_change, email=NEW)),
    _account("request_change to a spelling", partial(request_change, email="ANN@example.org")),
    _account("request_change again", partial(request_change, email=NEW), waiting_ann, changed=None),
    _account("request_change to another address", partial(request_change, **_third), waiting_ann),
    _moving(
        "confirm_change",
        _follow,
        waiting_ann,
        **_by_link | {"units": 9},
        refusals=_taken(email=NEW),
    ),
    _account("cancel_change", cancel_change, waiting_ann),
    _moving(
        "change_email to the address that waits", partial(change_email, email=NEW), waiting_ann
    ),
    _moving("change_email while another one waits", partial(change_email, **_third), waiting_ann),
    # Sessions
    _session(
        "sessions.begin",
        sessions.begin,
        again="another",
        refusals=_with_another_password(StaleUser)
        | {"deactivated since": (_deactivate, StaleUser)},
    ),
    _session(
        "sessions.begin in a full account",
        partial(sessions.begin, browser="new"),
        ann_with_all_sessions,
        "another",
        units=3,
    ),
    _session("sessions.end", _end_other, ann_in_a_session),
    _session(
        "sessions.end of its own",
        lambda user, **write: sessions.end(user, user.session_id, **write),
        ann_in_a_session,
        stale=None,
    ),
    _session("sessions.end_others", sessions.end_others, ann_in_a_session),
    _session(
        "sessions.end_all",
        sessions.end_all,
        ann_in_a_session,
        stale=None,
        refusals={"all ended since, and one began": (_end_all_and_begin, DONE)},
    ),
    # The page goes on with the account as it was read.
    _session("sessions.mark_seen", _see, ann_seen_long_ago, stale=None, is_in_hand=False),
]


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

    refusals = {"deleted since": (lambda both: _delete(both[1]), deleted)}
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
        "changed since": (lambda both: _change(both[1]), StaleUser),
        "registered again since": (lambda both: _register_again(both[1]), StaleUser),
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
    _by_form("change", partial(change_username, username="Bea"), _taken(username="BEA")),
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
            lambda item: change_customer(CustomerItem.get(item.account, item.id), Customer("Eve")),
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
    _of_customer(
        "change_customer",
        UPDATE,
        partial(change_customer, customer=Customer("Carol", number="7")),
        CustomerItem.Stale,
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
        refusals={"opened since": (_seller, None), "deleted since": (_delete, StaleUser)},
    ),
]

SITE = [*ACCOUNTS, *STAFF, *INVOICES]
