"""`check_guards` and reserved values: which reservations are sound, and which are orphaned."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from accounts.emails.change import cancel_change, confirm_change, request_change
from accounts.exceptions import EmailTaken
from accounts.services import delete
from dynamo.client.sending import send
from dynamo.unique import guards
from tests.dynamo.bands import Singer, change, note, the_who
from tests.dynamo.test_guardcheck import (
    Found,
    after_request,
    put,
    remove,
    set_text,
)
from tests.emailchanges import NEW, NEW_KEY, again, days_later, token_of, waiting_user
from tests.factories import assert_guards_match_users, make_user, stored_items, stored_user
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

STRESS_TURNS = 60 if os.environ.get("STRESS") == "full" else 6


def reservation(owner: str, expires: int | None = None, **more: Any) -> dict[str, Any]:
    """A reserved guard."""
    expires = guards.now() + 1000 if expires is None else expires
    wire = {"expires": {"N": str(expires)}, "reservation": "by hand"}
    return {"pk": NEW_KEY, "owner": owner, **wire, **more}


def unset(pk: str, name: str) -> None:
    """Remove one attribute without any condition."""
    send(
        "UpdateItem",
        {
            "TableName": "users",
            "Key": {"pk": {"S": pk}},
            "UpdateExpression": "REMOVE #name",
            "ExpressionAttributeNames": {"#name": name},
        },
    )


def test_a_reservation_that_its_owner_notes_is_sound(requests_sent: Requests) -> None:
    waiting_user()
    make_user()
    requests_sent.clear()

    found = Found(repair=True)

    assert (found.users, found.guards, found.findings) == (2, 5, {})
    assert set(requests_sent.operations) == {"Scan"}


def test_a_lapsed_reservation_that_its_owner_notes_is_sound() -> None:
    waiting_user()
    before = stored_items()

    with days_later():
        assert Found(repair=True).findings == {}

    assert stored_items() == before


@pytest.mark.parametrize("theirs", ["guard", "reservation"])
def test_a_note_whose_lapsed_reservation_is_anothers_now_is_not_a_finding(
    theirs: str, requests_sent: Requests
) -> None:
    waiting_user()
    with days_later():
        waiting_user() if theirs == "reservation" else make_user(email=NEW)
        requests_sent.clear()

        found = Found(repair=True)

    assert (found.findings, found.repaired) == ({}, 0)
    assert set(requests_sent.operations) == {"Scan"}


def test_users_that_have_waited_for_one_address_are_not_suspects(requests_sent: Requests) -> None:
    for turn in range(8):
        with days_later(4 * turn):
            waiting_user()
    requests_sent.clear()

    with days_later(4 * 7):
        found = Found(repair=True)

    assert found.findings == {}
    # One confirmation, if the owner is not among the first users that are scanned.
    assert requests_sent.operations.count("TransactGetItems") <= 1
    assert "reservation" in stored_items()[NEW_KEY]


def test_a_note_whose_reservation_is_gone_is_not_a_finding_and_its_link_fails() -> None:
    user = waiting_user()
    remove(NEW_KEY)

    assert Found(repair=True).findings == {}
    other = make_user(email=NEW)
    with pytest.raises(EmailTaken):
        confirm_change(token_of(user))
    cancel_change(again(user))
    assert stored_items()[NEW_KEY]["owner"] == {"S": other.pk}
    assert_guards_match_users()


@pytest.mark.parametrize("days", [0, 3])
@pytest.mark.parametrize("gone", ["pendingEmail", "pendingReservation"])
def test_a_reservation_that_its_owner_no_longer_notes_is_orphaned(days: int, gone: str) -> None:
    user = waiting_user()
    unset(user.pk, gone)
    orphaned = {"orphaned": [(user.pk, NEW_KEY)]}

    with days_later(days):
        assert Found().findings == orphaned
        found = Found(repair=True)

    assert (found.findings, found.repaired, found.still_wrong) == (orphaned, 1, 0)
    assert NEW_KEY not in stored_items()
    assert Found().findings == {}


def test_a_reservation_with_another_id_than_its_owner_notes_is_orphaned() -> None:
    user = waiting_user()
    set_text(user.pk, "pendingReservation", "another")

    found = Found(repair=True)

    assert (found.findings, found.repaired) == ({"orphaned": [(user.pk, NEW_KEY)]}, 1)


@pytest.mark.parametrize("expires", [1, 9_999_999_999])
@pytest.mark.parametrize("owner", ["gone", "", "userName#ann"])
def test_a_reservation_without_an_owner_is_orphaned(owner: str, expires: int) -> None:
    put(reservation(owner, expires))

    found = Found(repair=True)

    assert (found.findings, found.repaired) == ({"orphaned": [(owner, NEW_KEY)]}, 1)
    assert stored_items() == {}


@pytest.mark.parametrize(
    "damaged", [{"reservation": {"N": "7"}}, {"expires": "soon"}, {"expires": {"NULL": True}}]
)
def test_a_damaged_reservation_is_orphaned(damaged: Any) -> None:
    user = make_user()
    put(reservation(user.pk) | damaged)

    found = Found(repair=True)

    assert (found.findings, found.repaired) == ({"orphaned": [(user.pk, NEW_KEY)]}, 1)


def test_a_value_with_a_reservation_in_place_of_its_guard_is_missing_the_guard() -> None:
    user = make_user(email=NEW)
    put(reservation(user.pk))

    found = Found(repair=True)

    assert (found.findings, found.repaired) == ({"missing": [(user.pk, NEW_KEY)]}, 1)
    assert stored_items()[NEW_KEY] == {"pk": {"S": NEW_KEY}, "owner": {"S": user.pk}}
    assert_guards_match_users()


@pytest.mark.parametrize("left", [{"expires": {"N": "1"}}, {"reservation": "by hand"}])
def test_a_value_with_a_guard_that_is_half_a_reservation_is_missing_the_guard(left: Any) -> None:
    user = make_user(email=NEW)
    put({"pk": NEW_KEY, "owner": user.pk, **left})
    missing = {"missing": [(user.pk, NEW_KEY)]}

    found = Found(repair=True)

    assert (found.findings, found.repaired) == (missing, 1)
    assert stored_items()[NEW_KEY].keys() == {"pk", "owner"}


def test_a_value_that_is_reserved_for_another_user_gets_its_guard_back() -> None:
    user = make_user()
    other = waiting_user()
    set_text(user.pk, "email", NEW)
    remove(f"email#{user.email}")

    found = Found(repair=True)

    assert (found.findings, found.repaired) == ({"foreign": [(user.pk, NEW_KEY)]}, 1)
    assert stored_items()[NEW_KEY] == {"pk": {"S": NEW_KEY}, "owner": {"S": user.pk}}
    delete(again(other))
    assert_guards_match_users()


def test_a_reservation_whose_note_is_unusable_is_orphaned() -> None:
    user = waiting_user()
    set_text(user.pk, "pendingEmail", "x" * 3_000)

    found = Found(repair=True)

    assert (found.findings, found.unusable) == ({"orphaned": [(user.pk, NEW_KEY)]}, 0)


# While others write -------------------------------------------------------------------------------


def test_a_reservation_that_its_owner_notes_meanwhile_is_not_repaired() -> None:
    user = make_user()
    put(reservation(user.pk))

    with after_request("TransactGetItems", lambda: request_change(again(user), NEW)):
        found = Found(repair=True)

    assert (found.findings, found.repaired) == ({}, 0)
    assert again(user).awaited_email == NEW
    assert_guards_match_users()


def test_a_reservation_that_changes_between_scan_and_confirmation_is_not_a_finding() -> None:
    user = waiting_user()
    waiting_user("other@example.org")

    with after_request("Scan", lambda: cancel_change(again(user))):
        assert Found(repair=True).findings == {}
    with after_request("Scan", lambda: request_change(again(user), NEW)):
        assert Found(repair=True).findings == {}
    with after_request("Scan", lambda: confirm_change(token_of(again(user)))):
        assert Found(repair=True).findings == {}

    assert (stored_user(user.pk) or {})["email"] == {"S": NEW}
    assert_guards_match_users()


@pytest.mark.stress
def test_reservations_that_begin_and_end_during_the_scan_are_never_a_finding() -> None:
    ended = threading.Event()

    def write(seed: int) -> None:
        while not ended.is_set():
            user = waiting_user(f"one{seed}@example.org")
            request_change(user, f"two{seed}@example.org")
            user = confirm_change(token_of(user)).user
            with suppress(EmailTaken):
                request_change(user, NEW)
                cancel_change(user)
            delete(user)

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, seed) for seed in range(4)]
        try:
            reports = [Found(repair=bool(turn % 2)) for turn in range(STRESS_TURNS)]
        finally:
            ended.set()
        for writer in writers:
            writer.result()

    assert [(found.findings, found.repaired) for found in reports] == [({}, 0)] * STRESS_TURNS
    assert_guards_match_users()


# A second table -----------------------------------------------------------------------------------


def test_reservations_in_a_second_table_are_checked_there() -> None:
    who = the_who(Singer)
    change(who, **note("new.example"))
    table = Singer.unique.guard_model.table()
    lost = {"expires": {"N": "1"}, "reservation": "r9", "owner": "1"}
    put({"pk": "site#lost.example", **lost}, table)
    put({"pk": "name#lost", **lost}, table)

    found = Found(unique=Singer.unique, repair=True, oldest_by=None)

    assert found.findings == {"orphaned": [("1", "name#lost"), ("1", "site#lost.example")]}
    assert (found.users, found.guards, found.repaired) == (1, 5, 2)
    assert Found(unique=Singer.unique).findings == {}
