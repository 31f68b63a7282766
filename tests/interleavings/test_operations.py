"""Operations at once, in every order of their requests; most of them are of the register."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

from accounts.models import User
from accounts.services import delete, edit_profile
from tests.interleavings.account_races import ACCOUNT_RACES
from tests.interleavings.conftest import Explore, runs_of
from tests.interleavings.invoice_races import INVOICE_RACES
from tests.interleavings.processes import apart
from tests.interleavings.races import FORGETFUL, LOSS, AtOnce, Race
from tests.operations import LIBRARY, Operation
from tests.site_operations import ACCOUNTS, INVOICES, ann

pytestmark = pytest.mark.fault_of("moto", "does not isolate transactions")


@pytest.fixture(autouse=True)
def _processes() -> Iterator[None]:
    with apart():
        yield


def twice(operation: Operation, **faults: Any) -> Race:
    is_told = operation.name not in UNTOLD
    return Race(operation, [operation.act] * 2, operation.given, is_told=is_told, **faults)


def _edit(user: User) -> None:
    """Read the account and change it."""
    edit_profile(User.get(user.pk), business_name="Since")


def _delete(user: User) -> None:
    delete(User.get(user.pk))


def _sign_up_again(_user: User) -> User:
    """Sign up with the same request id and values."""
    return ann()


def _name(*operations: Operation) -> str:
    return " and ".join(each.name for each in operations)


def _pairs(operations: list[Operation], alone: Any) -> Iterator[tuple[str, Race]]:
    """Each two operations on one item; one that expects more was prepared for both."""
    for one, other in combinations(operations, 2):
        if one.given is alone or other.given in {alone, one.given}:
            given = other.given if one.given is alone else one.given
            yield _name(one, other), Race(one, [one.act, other.act], given, None, LOSS)


#: Two calls at once may both be told that they did it.
UNTOLD = {"break_lock", "break_lock of a claim", "confirm_change"}
#: Those that `make test` runs with lost requests; the others take longer.
QUICK = {
    "register",
    "issue_invoice",
    "edit_profile",
    "change_email",
    "sessions.begin",
    "Model.save",
}
#: Two threads that share a lease wait for each other.
APART = [*(each for each in LIBRARY if not each.name.startswith("Lease.")), *ACCOUNTS, *INVOICES]
CHANGES = ACCOUNTS[1:]

RACES: dict[str, Race] = {
    **{
        f"{each.name} twice": twice(each, quick=LOSS if each.name in QUICK else {}, slow=FORGETFUL)
        for each in APART
    },
    **{
        f"{each.name} while another change is made": Race(
            each,
            [each.act, _edit],
            each.given,
            LOSS if each.name in QUICK else {},
            FORGETFUL,
            readers={1},
        )
        for each in CHANGES
    },
    **{
        f"{each.name} while the account is deleted and registered again": Race(
            each, [each.act, _delete, _sign_up_again], each.given, {}, LOSS, readers={1}
        )
        for each in CHANGES
    },
    **dict(_pairs(CHANGES, ann)),
    **dict(_pairs(INVOICES[1:5], INVOICES[1].given)),
    **ACCOUNT_RACES,
    **INVOICE_RACES,
}


@pytest.mark.parametrize(("race", "faults"), runs_of(RACES))
def test_operations_at_once_end_as_if_one_came_after_the_other(
    explore: Explore, race: Race, faults: dict[str, Any]
) -> None:
    assert explore(lambda: AtOnce(race), **faults) > 1
