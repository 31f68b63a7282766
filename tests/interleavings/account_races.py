"""Races of different operations on accounts that the register does not have."""

from collections.abc import Callable
from typing import Any

from accounts.emails.links import confirm_change, repeat_if_stale, request_change
from accounts.models import User
from accounts.services import change_email, change_username, delete, edit_profile, register
from tests.account_operations import ACCOUNTS
from tests.emailchanges import NEW, token_of
from tests.interleavings.races import FORGETFUL, LOSS, Race
from tests.operations import nothing

Act = Callable[[Any], object]

ONE, TWO = "one@example.com", "two@example.com"
DEATH = LOSS | {"deaths": 1}


def signed_up(name: str, email: str = "", request_id: str = "") -> User:
    """Sign up without a password, which takes time to hash."""
    return register(
        username=name,
        email=email or f"{name}@example.com",
        password_hash="!",
        request_id=request_id or name,
    )


def sign_up(*values: str) -> Act:
    return lambda _ann: signed_up(*values)


def ann() -> User:
    return signed_up("ann")


def ann_and_bob() -> User:
    signed_up("bob")
    return ann()


def ann_and_bob_with_links() -> User:
    """Both, whose email address changes to NEW when their link is followed."""
    request_change(signed_up("bob"), NEW)
    user = ann()
    request_change(user, NEW)
    return user


def of(act: Act | Callable[..., object], *arguments: str) -> Act:
    return lambda user: act(user, *arguments)


def of_bob(act: Callable[..., object], *arguments: str) -> Act:
    return lambda _ann: act(User.get(User.key_for("bob")), *arguments)


def rename(user: User, name: str) -> None:
    edit_profile(user, full_name=name)


def follow(user: User) -> object:
    """Follow the link that `user` was sent."""
    return repeat_if_stale(lambda: confirm_change(token_of(user)))


def reading(act: Callable[..., object], *arguments: str) -> Act:
    """Read the account and act on it."""
    return lambda _user: act(User.get(User.key_for("ann")), *arguments)


def _race(
    given: Callable[[], Any], *acts: Act, quick: Any = LOSS, slow: Any = None, readers: Any = ()
) -> Race:
    return Race(ACCOUNTS[0], acts, given, quick, slow, readers)


ACCOUNT_RACES = {
    "two sign-ups with one username": _race(
        nothing, sign_up("ann", ONE, "one"), sign_up("ANN", TWO, "two")
    ),
    "two sign-ups with one username and one email address": _race(
        nothing, sign_up("ann", "", "one"), sign_up("ann", "", "two")
    ),
    "one request id with two contents": _race(
        nothing, sign_up("ann", "", "one"), sign_up("bob", "", "one")
    ),
    "a deletion and a sign-up with its username": _race(ann, delete, sign_up("ann", ONE, "one")),
    "a change to an email address and a sign-up with it": _race(
        ann, of(change_email, ONE), sign_up("bob", ONE), slow=FORGETFUL
    ),
    "a change from an email address and a sign-up with it": _race(
        ann, of(change_email, ONE), sign_up("bob", "ann@example.com")
    ),
    "two changes to each other's username": _race(
        ann_and_bob, of(change_username, "bob"), of_bob(change_username, "ann"), quick={}, slow=LOSS
    ),
    "two changes of one email address": _race(
        ann, of(change_email, ONE), of(change_email, TWO), quick={}, slow=LOSS
    ),
    "two sign-ups with one email address, one process dies": _race(
        ann, sign_up("eve", ONE), sign_up("bob", ONE), quick={"deaths": 1}, slow=DEATH
    ),
    "a change to an email address and a sign-up with it, one process dies": _race(
        ann, of(change_email, ONE), sign_up("bob", ONE), quick={"deaths": 1}, slow=DEATH
    ),
    "a deletion and a sign-up, one process dies": _race(
        ann, delete, sign_up("bob", ONE), quick={"deaths": 1}, slow=DEATH
    ),
    "three calls for one email address": _race(
        ann_and_bob,
        of(change_email, "bob@example.com"),
        of_bob(delete),
        sign_up("eve", "bob@example.com"),
        quick={},
        slow=LOSS,
    ),
    "three sign-ups with one username, one process dies": _race(
        nothing,
        sign_up("ann", ONE, "one"),
        sign_up("ann", TWO, "two"),
        sign_up("ann", ONE, "one"),
        quick=None,
        slow=DEATH,
    ),
    "a sign-up and a change of the new account": _race(
        nothing, sign_up("ann"), reading(change_username, "bea"), quick=FORGETFUL, readers={1}
    ),
    "two links to one email address": _race(
        ann_and_bob_with_links, follow, of_bob(follow), quick={}, slow=LOSS
    ),
}
