"""`check_guards`: what it finds in a damaged table, what it repairs, and while others write."""

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from accounts.models import User
from accounts.services import change_email, delete, edit_profile
from dynamo.client import bulk
from dynamo.tables import findings
from dynamo.tables.guards import check_guards
from dynamo.wire.values import text_of
from tests.commands import run
from tests.dynamo.bands import Band, Singer, delete_guard
from tests.factories import (
    assert_guards_match_users,
    guard_owner,
    make_user,
    set_stored,
    stored_items,
)
from tests.items import overwrite, put_item, remove_item, stored_item
from tests.requests import Requests, limit_pages, told

pytestmark = pytest.mark.usefixtures("engine")

#: Items that are read at one instant.
TOGETHER = 5


@pytest.fixture(autouse=True)
def _little_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"TOGETHER": TOGETHER, "AHEAD": 2}.items():
        monkeypatch.setattr(findings, name, value)
    monkeypatch.setattr(bulk, "SEGMENTS", 3)
    limit_pages(monkeypatch, 2)


class Found:
    """A report as a test compares it."""

    def __init__(self, **options: Any) -> None:
        given: dict[str, Any] = {"model": User, "oldest_by": "joinedAt"}
        report = check_guards(**(given | options))
        self.read = report.items, report.guards
        self.repaired, self.still_wrong = report.repaired, report.still_wrong
        self.unusable = report.unusable, report.unusable_example
        self.by_kind = {
            fault: [(pk, key) for pk, key, _outcome in findings.listed]
            for fault, findings in report.found.items()
        }
        self.findings = {kind: found for kind, found in self.by_kind.items() if found}


def put(item: dict[str, Any], table: str | None = None) -> None:
    """Store an item without any condition."""
    wire = {
        name: value if isinstance(value, dict) else {"S": value} for name, value in item.items()
    }
    put_item(table or User.table(), **wire)


def remove(key: str) -> None:
    remove_item(User.table(), pk=key)


def fresh(user: User) -> User:
    return User.get(user.pk)


@contextmanager
def after_request(operation: str, act: Callable[[], None], times: int = 1) -> Iterator[None]:
    """Call `act` right after each of the first `times` requests of this kind."""
    left = iter(range(times))

    def receiver(**signal: Any) -> None:
        if signal["operation"] == operation and next(left, None) is not None:
            act()

    with told(receiver):
        yield


# Sound tables -------------------------------------------------------------------------------------


@pytest.mark.parametrize("users", [0, 20])
def test_a_sound_table_costs_its_scan_and_has_no_findings(
    requests_sent: Requests, users: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(users):
        make_user()
    requests_sent.clear()

    limit_pages(monkeypatch, 1_000)

    found = Found(repair=True)

    assert (found.read, found.findings) == ((users, 2 * users), {})
    assert (found.repaired, found.still_wrong) == (0, 0)
    assert requests_sent.operations == ["Scan"] * 3
    assert all(request["ConsistentRead"] for request in requests_sent.requests)
    assert requests_sent.units <= users or not users


def test_items_that_are_neither_users_nor_their_guards_are_ignored() -> None:
    make_user()
    put({"pk": "shoeSize#42", "owner": "nobody"})
    put({"pk": "#", "owner": "nobody"})
    put({"pk": "config#site", "text": "…"})

    found = Found(repair=True)

    assert (found.read, found.findings) == ((1, 2), {})
    assert {"shoeSize#42", "#", "config#site"} <= stored_items().keys()


# One thing wrong at a time ------------------------------------------------------------------------


NAME, OTHER, GHOST = "userName#ann", "userName#anna", "email#ghost@example.com"


#: Owners, stored in guard items, that are not keys of users.
NOBODY: dict[str, Any] = {
    "gone": "8ec436a8-97e6-4e72-aec2-b47668e96a94",
    "empty": "",
    "a guard": NAME,
    "a number": {"N": "7"},
    "null": {"NULL": True},
    "a map": {"M": {"S": {"S": "x"}}},
    "too long": "x" * 3_000,
    "absent": None,
}


def put_guard(key: str, owner: Any, **more: Any) -> None:
    put({"pk": key} | ({} if owner is None else {"owner": owner}) | more)


#: What is done to the accounts of ann and bob, and which guards are then wrong.
DAMAGE: dict[str, tuple[Callable[[User, User], object], dict[str, list[str]]]] = {
    "a guard is missing": (lambda ann, bob: remove(NAME), {"missing": [NAME]}),
    "a guard is another user's": (lambda ann, bob: put_guard(NAME, bob.pk), {"foreign": [NAME]}),
    "a guard is too many": (lambda ann, bob: put_guard(OTHER, ann.pk), {"orphaned": [OTHER]}),
    "a guard is not normalized": (
        lambda ann, bob: put_guard("userName#ANN", ann.pk),
        {"orphaned": ["userName#ANN"]},
    ),
    "a username was changed alone": (
        lambda ann, bob: set_stored(ann, userName="anna"),
        {"missing": [OTHER], "orphaned": [NAME]},
    ),
    "a user was deleted alone": (
        lambda ann, bob: remove(ann.pk),
        {"orphaned": ["email#ann@example.com", NAME]},
    ),
    **{
        f"the owner of a guard is {name}": (
            lambda ann, bob, owner=owner: put_guard(NAME, owner),
            {"foreign": [NAME]},
        )
        for name, owner in NOBODY.items()
    },
    **{
        f"the owner of a guard too many is {name}": (
            lambda ann, bob, owner=owner: put_guard(GHOST, owner),
            {"orphaned": [GHOST]},
        )
        for name, owner in NOBODY.items()
        if name != "too long"
    },
}


@pytest.mark.parametrize(("damage", "expected"), DAMAGE.values(), ids=DAMAGE)
def test_damage_is_reported_and_repaired(
    damage: Callable[[User, User], object], expected: dict[str, list[str]]
) -> None:
    ann = make_user(username="ann", email="ann@example.com")
    damage(ann, make_user(username="bob"))
    before = stored_items()
    findings = {
        # For an orphaned guard, the owner that it names is reported.
        fault: [
            (text_of(before[key], "owner") if fault == "orphaned" else ann.pk, key) for key in keys
        ]
        for fault, keys in expected.items()
    }
    count = sum(map(len, expected.values()))

    found = Found()
    assert (found.findings, found.repaired, found.still_wrong) == (findings, 0, count)
    assert stored_items() == before

    found = Found(repair=True)
    assert (found.findings, found.repaired, found.still_wrong) == (findings, count, 0)
    assert_guards_match_users()
    assert Found().findings == {}


# Two users, one value -----------------------------------------------------------------------------


def test_if_users_share_a_value_that_has_no_guard_the_oldest_gets_it() -> None:
    users = [make_user() for _ in range(3)]
    # Sorted neither by key nor by registration.
    oldest, *younger = sorted(users, key=lambda user: user.pk, reverse=True)
    for day, user in enumerate([oldest, *younger], 1):
        remove(f"userName#{user.username}")
        set_stored(user, userName="prize", joinedAt=f"2026-01-0{day}T00:00:00.000000+0000")

    found = Found(repair=True)

    key = "userName#prize"
    assert found.findings["missing"] == [(oldest.pk, key)]
    assert sorted(found.findings["foreign"]) == sorted((user.pk, key) for user in younger)
    assert (found.repaired, found.still_wrong) == (1, 2)
    assert guard_owner(key) == oldest.pk


@pytest.mark.parametrize("guard", ["absent", "of a user", "of a gone user"])
@pytest.mark.parametrize("repair", [False, True])
def test_each_of_many_users_with_one_value_is_reported_once_and_few_are_read_together(
    guard: str, repair: bool, requests_sent: Requests
) -> None:
    users = sorted((make_user() for _ in range(11)), key=lambda user: user.pk)
    owner = users[7].pk
    for user in users:
        set_stored(user, userName="crowd")
        remove(f"userName#{user.username}")
    if guard != "absent":
        put_guard("userName#crowd", owner if guard == "of a user" else "gone")

    found = Found(repair=repair)

    reads = requests_sent.of("TransactGetItems")
    assert max(len(request["TransactItems"]) for request in reads) <= TOGETHER
    reported = [pk for pks in found.findings.values() for pk, _key in pks]
    expected = {user.pk for user in users} - ({owner} if guard == "of a user" else set())
    assert sorted(reported) == sorted(expected)
    assert len(found.by_kind["missing"]) == (guard == "absent")
    assert found.repaired == (repair and guard == "absent")
    if guard == "of a user":
        assert guard_owner("userName#crowd") == owner


def test_a_unique_is_added_to_stored_items_while_they_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    by_name, *added = Band._unique_keys
    monkeypatch.setattr(Band, "_unique_keys", [by_name])
    for pk, site in {
        "1": "a.example",
        "2": "b.example",
        "3": "B.example",
        "4": "c.example",
    }.items():
        Band.create(pk=pk, name=pk, site=site)
    monkeypatch.setattr(Band, "_unique_keys", [by_name, *added])
    Band.create(pk="5", name="5", site="d.example")

    with after_request("Scan", lambda: Band.get("4").change(site="e.example")):
        found = Found(model=Band, repair=True, oldest_by=None)

    assert found.findings == {
        "missing": [("1", "site#a.example"), ("2", "site#b.example")],
        "foreign": [("3", "site#b.example")],
    }
    assert found.repaired == 2
    Band.get("3").change(site="f.example")
    assert Found(model=Band, oldest_by=None).findings == {}


def test_guards_in_a_second_table_are_checked_and_repaired_there_with_progress() -> None:
    members = Singer.table()
    guards = Singer._guard_table().name
    put({"singerNumber": "1", "name": "Gold"}, members)
    put({"singerNumber": "2", "name": "Silver", "label": "Sil"}, members)
    put({"singerNumber": "3", "name": "Iron"}, members)
    owners = {"name#gold": "1", "name#silver": "3", "name#lead": "4"}
    for key, owner in {**owners, "other#lead": "4"}.items():
        put({"pk": key, "owner": owner}, guards)
    put({"pk": "1", "name": "no member"}, guards)
    told = Counter[str]()

    found = Found(
        model=Singer,
        repair=True,
        oldest_by=None,
        progress=lambda what, count: told.update({what: count}),
    )

    assert told == {"Items read": 8, "Suspects confirmed": 4}
    assert (found.read, found.repaired, found.still_wrong) == ((3, 3), 4, 0)
    assert found.findings == {
        "missing": [("2", "label#SIL"), ("3", "name#iron")],
        "orphaned": [("4", "name#lead")],
        "foreign": [("2", "name#silver")],
    }
    stored = {key: item.get("owner", {}).get("S") for key, item in stored_items(guards).items()}
    repaired = {"name#silver": "2", "name#iron": "3", "label#SIL": "2"}
    assert stored == {"name#gold": "1", **repaired, "other#lead": "4", "1": None}
    assert Found(model=Singer).findings == {}


@pytest.mark.parametrize("removed", [[], ["requestDigest"]])
def test_the_guard_item_of_a_request_id_is_repaired(removed: list[str]) -> None:
    member = Singer.create(number="1", name="Gold", site="gold.example", request_id="form-1")
    guards, key = Singer._guard_table().name, {"pk": {"S": "requestId#form-1"}}
    before = stored_item(guards, **key)
    remove_item(guards, **key)
    if removed:
        overwrite(member, requestDigest=None)

    found = Found(model=Singer, repair=True, oldest_by=None)

    assert found.findings == {"missing": [("1", "requestId#form-1")]}
    assert found.still_wrong == 0
    digest = {} if removed else {"digest": before["digest"]}
    assert stored_item(guards, **key) == {**key, "owner": {"S": "1"}, **digest}


def test_findings_beyond_the_limit_are_counted_and_repaired_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(findings, "LISTED", 1)
    for number in range(3):
        Band.create(pk=f"{number}", name=f"{number}", site=f"{number}")
        delete_guard(Band, f"name#{number}")
    check = ("checkunique", Band._meta.label)

    [first, more, _counts] = run(*check)[0].splitlines()
    assert (first, more) == ("missing   name#0  0", "missing   … and 2 more")
    found = json.loads(run(*check, "--json")[0])
    assert (found["missing"], found["more"]) == ([{"pk": "0", "value": "name#0"}], {"missing": 2})
    assert run(*check, "--repair")[2] == run(*check)[2] == 0


# Damaged items ------------------------------------------------------------------------------------


UNUSABLE = [
    *(None, "", {"NULL": True}, {"N": "7"}, {"BOOL": True}, {"L": []}, {"M": {}}, {"B": b"\xff"}),
    *({"SS": ["a@example.com"]}, "ann@-ä-.example", "x" * 3_000),
]


@pytest.mark.parametrize("email", UNUSABLE)
def test_a_user_with_an_unusable_value_is_counted_and_all_others_are_checked(email: Any) -> None:
    bob = make_user(username="bob", email="bob@example.com")
    remove("email#bob@example.com")
    damaged = {"pk": str(uuid.uuid4()), "userName": "ann", "version": "no number"}
    put(damaged | ({} if email is None else {"email": email}))
    put_guard("email#ann@example.com", damaged["pk"])

    found = Found(repair=True)

    assert (found.read[0], found.unusable) == (2, (1, (damaged["pk"], "email")))
    assert found.findings == {
        "missing": [(bob.pk, "email#bob@example.com"), (damaged["pk"], "userName#ann")],
        "orphaned": [(damaged["pk"], "email#ann@example.com")],
    }
    assert (found.repaired, found.still_wrong) == (3, 0)


# While others write -------------------------------------------------------------------------------


def test_a_user_that_changes_between_scan_and_confirmation_is_not_a_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ann = make_user(username="ann", email="ann@example.com")

    def move() -> None:
        change_email(fresh(ann), f"{uuid.uuid4()}@example.com")

    monkeypatch.setattr(bulk, "SEGMENTS", 1)
    limit_pages(monkeypatch, 1)
    with after_request("Scan", move, times=3):
        found = Found(repair=True)

    assert (found.findings, found.repaired) == ({}, 0)
    assert_guards_match_users()


def _leave(ann: User) -> None:
    delete(fresh(ann))
    remove("email#ann@example.com")


def _take_prize(_ann: User) -> None:
    remove("email#prize@example.com")
    make_user(username="winner", email="prize@example.com")


#: What is damaged of ann's account, and what another call does after the damage was confirmed. If
#: that call changes another attribute, the guard is repaired nevertheless.
MEANWHILE: dict[str, tuple[Callable[[User], None], Callable[[User], object]]] = {
    "the user changes the value": (
        lambda _ann: remove("email#ann@example.com"),
        lambda ann: change_email(fresh(ann), "new@example.com"),
    ),
    "the user leaves": (lambda _ann: put_guard("email#ann@example.com", "gone"), _leave),
    "another user takes the value": (
        lambda _ann: put_guard("email#prize@example.com", "gone"),
        _take_prize,
    ),
    "the owner takes the value": (
        lambda ann: put_guard("email#new@example.com", ann.pk),
        lambda ann: change_email(fresh(ann), "new@example.com"),
    ),
    "the user changes another attribute": (
        lambda _ann: remove("email#ann@example.com"),
        lambda ann: edit_profile(fresh(ann), full_name="Ann A."),
    ),
}


@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_a_repair_is_made_only_if_the_finding_is_still_true(meanwhile: str) -> None:
    damage, act = MEANWHILE[meanwhile]
    ann = make_user(username="ann", email="ann@example.com")
    damage(ann)

    with after_request("TransactGetItems", lambda: act(ann)):
        found = Found(repair=True)

    repaired = meanwhile == "the user changes another attribute"
    assert (bool(found.findings), found.repaired) == (repaired, repaired)
    assert_guards_match_users()


def test_a_foreign_guard_stays_if_its_owner_gets_the_value_meanwhile() -> None:
    ann = make_user(username="ann")
    bob = make_user(username="bob")
    put_guard("userName#ann", bob.pk)

    with after_request("TransactGetItems", lambda: set_stored(bob, userName="Ann")):
        found = Found(repair=True)

    assert found.by_kind["foreign"] == [(ann.pk, "userName#ann")]
    assert guard_owner("userName#ann") == bob.pk
    assert stored_items()[ann.pk]["userName"] == {"S": "ann"}


def test_a_repair_that_is_refused_three_times_is_reported_as_still_wrong() -> None:
    ann = make_user(username="ann", email="ann@example.com")
    remove("userName#ann")
    spellings = iter(["Ann", "ANN", "aNN", "anN"])

    with after_request(
        "TransactGetItems", lambda: set_stored(ann, userName=next(spellings)), times=3
    ):
        found = Found(repair=True)

    assert found.findings == {"missing": [(ann.pk, "userName#ann")]}
    assert (found.repaired, found.still_wrong, guard_owner("userName#ann")) == (0, 1, None)
