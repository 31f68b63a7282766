"""`check_guards` and values that are only reserved: what is sound, and what serves nobody."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import pytest

from accounts.emails.change import cancel_change, confirm_change, request_change
from accounts.exceptions import BadLink, EmailTaken
from accounts.services import delete
from dynamo.client.sending import send
from dynamo.unique import guards
from tests.dynamo.test_guardcheck import STRESS_TURNS, Found, after_request, put, remove, set_text
from tests.dynamo.test_reservations import Orchestra, change, insert, note
from tests.emailchanges import NEW, NEW_KEY, again, days_later, token_of, waiting_user
from tests.factories import assert_guards_match_users, make_user, stored_items, stored_user
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


def reservation(owner: str, expires: int | None = None, **more: Any) -> dict[str, Any]:
    """A reserved guard as a hand may leave it."""
    expires = guards.now() + 1000 if expires is None else expires
    wire = {"expires": {"N": str(expires)}, "reservation": "by hand"}
    return {"pk": NEW_KEY, "owner": owner, **wire, **more}


def unset(pk: str, name: str) -> None:
    """Take one attribute away past all rules."""
    send(
        "UpdateItem",
        {
            "TableName": "users",
            "Key": {"pk": {"S": pk}},
            "UpdateExpression": "REMOVE #name",
            "ExpressionAttributeNames": {"#name": name},
        },
    )


def test_a_reservation_that_its_owner_notes_is_sound_and_counts_as_a_guard() -> None:
    waiting_user()
    make_user()

    found = Found(repair=True)

    assert (found.users, found.guards, found.findings) == (2, 5, {})


def test_it_costs_nothing_beyond_the_scan(requests_sent: Requests) -> None:
    waiting_user()
    requests_sent.clear()

    Found()

    assert set(requests_sent.operations) == {"Scan"}


def test_a_lapsed_one_that_its_owner_notes_is_sound_still() -> None:
    waiting_user()
    before = stored_items()

    with days_later():
        assert Found(repair=True).findings == {}

    assert stored_items() == before


@pytest.mark.parametrize("theirs", ["guard", "reservation"])
def test_a_note_whose_lapsed_reservation_another_took_is_no_finding(
    theirs: str, requests_sent: Requests
) -> None:
    waiting_user()
    with days_later():
        waiting_user() if theirs == "reservation" else make_user(email=NEW)
        requests_sent.clear()

        found = Found(repair=True)

    assert (found.findings, found.repaired) == ({}, 0)
    assert set(requests_sent.operations) == {"Scan"}


def test_many_who_waited_for_one_address_are_no_suspects(requests_sent: Requests) -> None:
    for turn in range(8):
        with days_later(4 * turn):
            waiting_user()
    requests_sent.clear()

    with days_later(4 * 7):
        found = Found(repair=True)

    assert found.findings == {}
    # At most one reading, where the one who has it now is not among the first.
    assert requests_sent.operations.count("TransactGetItems") <= 1
    assert "reservation" in stored_items()[NEW_KEY]


def test_a_note_whose_reservation_is_gone_is_no_finding_and_simply_cannot_be_had() -> None:
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
def test_one_that_its_owner_does_not_note_any_more_is_orphaned(days: int, gone: str) -> None:
    user = waiting_user()
    unset(user.pk, gone)
    orphaned = {"orphaned": [(user.pk, NEW_KEY)]}

    with days_later(days):
        assert Found().findings == orphaned
        found = Found(repair=True)

    assert (found.findings, found.repaired, found.still_wrong) == (orphaned, 1, 0)
    assert NEW_KEY not in stored_items()
    assert Found().findings == {}


def test_one_by_another_id_than_its_owner_notes_is_orphaned() -> None:
    user = waiting_user()
    set_text(user.pk, "pendingReservation", "another")

    found = Found(repair=True)

    assert (found.findings, found.repaired) == ({"orphaned": [(user.pk, NEW_KEY)]}, 1)


@pytest.mark.parametrize("expires", [1, 9_999_999_999])
@pytest.mark.parametrize("owner", ["gone", "", "userName#ann"])
def test_one_whose_owner_is_nobody_is_orphaned(owner: str, expires: int) -> None:
    put(reservation(owner, expires))

    found = Found(repair=True)

    assert (found.findings, found.repaired) == ({"orphaned": [(owner, NEW_KEY)]}, 1)
    assert stored_items() == {}


def test_a_user_deleted_by_hand_leaves_an_orphaned_reservation() -> None:
    user = waiting_user()
    remove(user.pk)

    assert (user.pk, NEW_KEY) in Found(repair=True).findings["orphaned"]
    assert stored_items() == {}


@pytest.mark.parametrize(
    "damaged", [{"reservation": {"N": "7"}}, {"expires": "soon"}, {"expires": {"NULL": True}}]
)
def test_a_damaged_reservation_is_told_and_does_not_stop_the_check(damaged: Any) -> None:
    user = make_user()
    put(reservation(user.pk) | damaged)

    found = Found(repair=True)

    assert (found.findings, found.repaired) == ({"orphaned": [(user.pk, NEW_KEY)]}, 1)


def test_a_value_whose_guard_is_only_reserved_by_its_own_user_is_missing_its_guard() -> None:
    user = make_user(email=NEW)
    put(reservation(user.pk))

    found = Found(repair=True)

    assert (found.findings, found.repaired) == ({"missing": [(user.pk, NEW_KEY)]}, 1)
    assert stored_items()[NEW_KEY] == {"pk": {"S": NEW_KEY}, "owner": {"S": user.pk}}
    assert_guards_match_users()


@pytest.mark.parametrize("left", [{"expires": {"N": "1"}}, {"reservation": "by hand"}])
def test_a_guard_with_half_a_reservation_is_none_that_its_user_can_rely_on(left: Any) -> None:
    user = make_user(email=NEW)
    put({"pk": NEW_KEY, "owner": user.pk, **left})
    missing = {"missing": [(user.pk, NEW_KEY)]}

    found = Found(repair=True)

    assert (found.findings, found.repaired) == (missing, 1)
    assert stored_items()[NEW_KEY].keys() == {"pk", "owner"}


def test_a_value_that_is_reserved_for_another_is_given_back_to_who_carries_it() -> None:
    user = make_user()
    other = waiting_user()
    set_text(user.pk, "email", NEW)
    remove(f"email#{user.email}")

    found = Found(repair=True)

    assert (found.findings, found.repaired) == ({"foreign": [(user.pk, NEW_KEY)]}, 1)
    assert stored_items()[NEW_KEY] == {"pk": {"S": NEW_KEY}, "owner": {"S": user.pk}}
    delete(again(other))
    assert_guards_match_users()


def test_an_unusable_note_holds_nothing_and_stops_nothing() -> None:
    user = waiting_user()
    set_text(user.pk, "pendingEmail", "x" * 3_000)

    found = Found(repair=True)

    assert (found.findings, found.unusable) == ({"orphaned": [(user.pk, NEW_KEY)]}, 0)


# While others write -------------------------------------------------------------------------------


def test_a_repair_gives_way_to_an_owner_who_reserves_the_value_meanwhile() -> None:
    user = make_user()
    put(reservation(user.pk))

    with after_request("TransactGetItems", lambda: request_change(again(user), NEW)):
        found = Found(repair=True)

    assert (found.findings, found.repaired) == ({}, 0)
    assert again(user).awaited_email == NEW
    assert_guards_match_users()


def test_a_change_that_comes_or_goes_between_scan_and_confirmation_is_no_finding() -> None:
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
def test_changes_that_wait_end_and_begin_during_the_scan_are_never_a_finding() -> None:
    ended = threading.Event()
    failures: list[BaseException] = []

    def write(seed: int) -> None:
        try:
            while not ended.is_set():
                user = waiting_user(f"one{seed}@example.org")
                request_change(user, f"two{seed}@example.org")
                user = confirm_change(token_of(user)).user
                with suppress(EmailTaken):
                    request_change(user, NEW)
                    cancel_change(user)
                delete(user)
        except BaseException as error:
            failures.append(error)
            raise

    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(3)]
    for writer in writers:
        writer.start()
    try:
        reports = [Found(repair=bool(turn % 2)) for turn in range(STRESS_TURNS)]
    finally:
        ended.set()
        for writer in writers:
            writer.join()

    assert failures == []
    assert [(found.findings, found.repaired) for found in reports] == [({}, 0)] * STRESS_TURNS
    assert_guards_match_users()


# A second table -----------------------------------------------------------------------------------


def test_reservations_in_a_second_table_are_checked_there() -> None:
    who = insert(Orchestra("1", name="Who", site="who.example"))
    change(who, **note("new.example"))
    table = Orchestra.unique.guard_model.table()
    lost = {"expires": {"N": "1"}, "reservation": "r9", "owner": "1"}
    put({"pk": "site#lost.example", **lost}, table)
    put({"pk": "name#lost", **lost}, table)

    found = Found(unique=Orchestra.unique, repair=True, oldest_by=None)

    assert found.findings == {"orphaned": [("1", "name#lost"), ("1", "site#lost.example")]}
    assert (found.users, found.guards, found.repaired) == (1, 5, 2)
    assert Found(unique=Orchestra.unique).findings == {}


def test_a_cancelled_link_stays_void_after_a_repair() -> None:
    user = waiting_user()
    token = token_of(user)
    unset(user.pk, "pendingReservation")
    Found(repair=True)

    with pytest.raises(BadLink):
        confirm_change(token)
