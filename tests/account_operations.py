"""The operations of accounts; see `tests.operations`."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.apps import apps
from django.contrib.auth.hashers import make_password

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
from tests.emailchanges import NEW, token_of
from tests.factories import PASSWORD, assert_guards_match_users, change_password, make_user
from tests.operations import DONE, TRANSACTION, UPDATE, Operation, Refusals
from tests.session_maps import begun, let_pass, read_for

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


def delete_as_stored(user: User) -> None:
    delete(User.get(user.pk))


def register_again(user: User) -> None:
    """Delete the account, and register it with the same contents, as an import of a file does."""
    delete_as_stored(user)
    ann()


def change_as_stored(user: User) -> None:
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
        delete_as_stored(user)
        act(given())

    since: Refusals = {
        "deleted since": (delete_as_stored, stale),
        "registered again since": (register_again, stale),
        "registered again since, with the same change": (register_again_and_act, stale),
        "changed since": (change_as_stored, changed),
    }
    more = {"assert_sound": assert_guards_match_users, "refusals": since | (refusals or {})} | more
    return Operation(name, api, act, [User], given, again, **more)


def _registered(**values: Any) -> Callable[[Any], object]:
    return lambda _given: make_user(**values)


def taken_since(**values: Any) -> Refusals:
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
        refusals=taken_since(username="ANN")
        | taken_since(email="ANN@example.org")
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
        "change_username",
        partial(change_username, username="Bea"),
        refusals=taken_since(username="BEA"),
    ),
    _account("change_username's spelling", partial(change_username, username="ANN")),
    _moving("change_email", partial(change_email, email=NEW), refusals=taken_since(email=NEW)),
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
        # On the site also of its seller, and of the task that deletes its address book.
        units=12 if apps.is_installed("invoices") else 8,
        refusals=dict.fromkeys(
            ["deleted since", "registered again since, with the same change"],
            (delete_as_stored, None),
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
        refusals=taken_since(email=NEW),
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
