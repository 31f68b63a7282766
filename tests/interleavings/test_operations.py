"""Operations at once, in every order of their requests; most of them are of the register."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

from accounts.models import User
from accounts.services import delete, edit_profile
from tests.account_operations import ACCOUNTS, ann, ann_with_all_sessions
from tests.interleavings.account_races import ACCOUNT_RACES
from tests.interleavings.conftest import Explore, runs_of
from tests.interleavings.invoice_races import INVOICE_RACES
from tests.interleavings.processes import apart
from tests.interleavings.races import FORGETFUL, LOSS, Race, at_once, left_by
from tests.operations import LIBRARY, Operation
from tests.site_operations import INVOICES

pytestmark = pytest.mark.fault_of("moto", "does not isolate transactions")


@pytest.fixture(autouse=True)
def _processes() -> Iterator[None]:
    # The tables were emptied before the test.
    left_by.clear()
    with apart():
        yield


#: Two calls at once may both be told that they did it.
UNTOLD = {"break_lock", "break_lock of a claim"}
#: Those that `make test` runs with lost requests; the others take longer.
QUICK = {
    *("register", "issue_invoice", "edit_profile", "change_email", "sessions.begin", "claim_once"),
    *("Model.change and Model.delete", "Model.change and Model.change of a unique value"),
}
#: One for each way in which accounts change.
PAIRED = {
    *("change_email", "edit_profile", "change_password", "deactivate", "delete", "upgrade_hash"),
    *("confirm", "request_change", "confirm_change", "cancel_change", "record_sign_in"),
    *("sessions.begin", "sessions.end", "sessions.end_others", "sessions.end_all"),
}


def _edit(user: User) -> None:
    """Read the account and change it."""
    edit_profile(User.get(user.pk), full_name="Since")


def _delete(user: User) -> None:
    delete(User.get(user.pk))


def _sign_up_again(_user: User) -> User:
    """Sign up with the same request id and values."""
    return ann()


def _vague(*operations: Operation) -> set[int]:
    """Those on sessions, which another call can end."""
    return {at for at, operation in enumerate(operations) if operation.name.startswith("sessions.")}


def _twice() -> Iterator[tuple[str, Race]]:
    for account in [*LIBRARY, *ACCOUNTS, *INVOICES]:
        # Two threads that share a lease wait for each other; sessions of one second have no order.
        if not account.name.startswith("Lease.") and account.given is not ann_with_all_sessions:
            quick = LOSS if account.name in QUICK else {} if account.reads else None
            acts = [account.act] * 2
            is_told = account.name not in UNTOLD
            race = Race(
                account,
                acts,
                account.given,
                quick,
                FORGETFUL,
                (),
                is_told,
                _vague(account, account),
            )
            yield f"{account.name} twice", race


def _beside_another() -> Iterator[tuple[str, Race]]:
    for account in ACCOUNTS[1:]:
        quick = LOSS if account.name in QUICK else {} if account.reads else None
        acts, vague = [account.act, _edit], _vague(account)
        # If its reply was lost and the account changed since, the link was followed before.
        is_told = account.name != "confirm_change"
        race = Race(account, acts, account.given, quick, FORGETFUL, {1}, is_told, vague)
        yield f"{account.name} and a change", race
        if account.given is not ann_with_all_sessions:
            acts = [account.act, _delete, _sign_up_again]
            name = f"{account.name} and a deletion and the same sign-up again"
            slow = LOSS if account.name in QUICK else None
            # Without reads it is the same as afterwards, which `tests.faults.matrix` tests.
            quick = {} if account.reads else None
            yield name, Race(account, acts, account.given, quick, slow or {}, {1}, vague=vague)


def _pairs(operations: list[Operation], alone: Any) -> Iterator[tuple[str, Race]]:
    """Each two operations on one item; one that expects more was prepared for both."""
    for one, other in combinations(operations, 2):
        if one.given is alone or other.given in {alone, one.given}:
            given = other.given if one.given is alone else one.given
            name = f"{one.name} and {other.name}"
            quick = LOSS if name in QUICK else None
            acts, vague = [one.act, other.act], _vague(one, other)
            yield name, Race(one, acts, given, quick, LOSS, vague=vague)


RACES: dict[str, Race] = dict(
    [
        *_twice(),
        *_beside_another(),
        *_pairs(LIBRARY[2:9], LIBRARY[2].given),
        *_pairs([account for account in ACCOUNTS if account.name in PAIRED], ann),
        *_pairs(INVOICES[1:5], INVOICES[1].given),
        *ACCOUNT_RACES.items(),
        *INVOICE_RACES.items(),
    ]
)


@pytest.mark.parametrize(("race", "faults"), runs_of(RACES))
def test_operations_at_once_end_as_if_one_came_after_the_other(
    explore: Explore, race: Race, faults: dict[str, Any]
) -> None:
    assert explore(lambda: at_once(race), **faults) > 1
