"""The account checker reports a history that breaks a rule, and no other."""

from dataclasses import replace
from typing import Any

import pytest

from tests.torture.checkers.accounts import Account, check
from tests.torture.histories import call, in_turn
from tests.torture.history import Call, Outcome

A, B = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa", "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"

Answer = dict[str, Any]


def registered(
    pk: str = A, name: str = "ann", outcome: Outcome = "ok", version: int = 1, **options: Any
) -> Call:
    asked = {"pk": pk, "username": name, "email": f"{name}@example.org"}
    answer = {"answer": {"version": version}} if outcome == "ok" else {}
    return call("register", outcome, **(asked | answer | options))


def taken(*attributes: str, **options: Any) -> Call:
    answer = {"error": "ValueTaken", "taken": [*attributes]}
    return registered(B, "ann", "refused", answer=answer, **options)


def found(who: str = A, name: str = "ann", version: int = 1, **options: Any) -> Call:
    return call("find", who=who, answer=shown(name, version), **options)


def shown(name: str, version: int = 1, **values: Any) -> Answer:
    return {"pk": A, **stored(name, version)._asdict(), **values}


def stored(name: str, version: int = 1, email: str | None = None) -> Account:
    return Account(name, email or f"{name}@example.org", version, "")


def unknown(who: str, **options: Any) -> Call:
    return call("find", "refused", who=who, answer={"error": "UnknownUser"}, **options)


def changed(
    old: str = "ann", new: str = "bea", outcome: Outcome = "ok", told: int = 2, **options: Any
) -> Call:
    asked = {"pk": A, "attribute": "username", "old": old, "new": new, "version": 1}
    answer = {"answer": {"version": told}} if outcome == "ok" else {}
    return call("change", outcome, **(asked | answer | options))


def other(*told: int) -> Call:
    return call("other", pk=A, version=1, answer={"version": told[0]} if told else {})


def deleted(outcome: Outcome = "ok", **options: Any) -> Call:
    asked = {"pk": A, "version": 1, "username": "ann", "email": "ann@example.org"}
    return call("delete", outcome, **(asked | options))


def stale(refused: Call, *, gone: bool = False) -> Call:
    answer = {"error": "StaleUser", "taken": [], "gone": gone}
    return replace(refused, outcome="refused", answer=answer)


def renewed(outcome: Outcome = "ok", version: int = 501) -> list[Call]:
    """The account is deleted, and another one is registered under its key."""
    return [registered(), deleted(), registered(A, "bea", outcome, version)]


def reused() -> Call:
    answer = {"error": "AccountRequestReused", "taken": []}
    return registered(A, "bea", "refused", answer=answer)


OLD_EMAIL = "ann@example.org"
USERNAME, EMAIL, NEW = "username ann", f"email {OLD_EMAIL}", "username bea"
NEW_EMAIL = "email bea@example.org"
ANN = stored("ann")
BEA = stored("bea", 2, OLD_EMAIL)
OTHER_ANN = stored("ANN", email="b@example.org")
MAYBE_DELETED = deleted("unknown", lingers=9)
LONG = (0, 9)

#: Calls, the accounts that are stored in the end, and the objects whose history is wrong.
HISTORIES: dict[str, tuple[list[Call], dict[str, Account], set[str]]] = {
    "an account that comes, changes and goes": (
        [
            *(unknown("ann"), registered(), found("ANN"), changed("ann", "Bea"), unknown("ann")),
            *(registered(B, "cid"), deleted(username="bea", version=2), unknown("bea")),
        ],
        {B: stored("cid")},
        set(),
    ),
    "two owners of one value in two spellings": (
        [registered(), registered(B, "ANN", email="b@example.org")],
        {A: ANN, B: OTHER_ANN},
        {USERNAME},
    ),
    "taken, of a value without an owner": ([taken("username"), registered()], {A: ANN}, {USERNAME}),
    "taken, of one of two taken values": ([registered(), taken("username")], {A: ANN}, {EMAIL}),
    "a success that is not stored": ([registered()], {}, {A, USERNAME, EMAIL}),
    "an account without a registration": ([], {A: ANN}, {A, USERNAME, EMAIL}),
    "an old value that is found after its change": (
        [registered(), changed(), found()],
        {A: BEA},
        {A, USERNAME},
    ),
    "stale, of an account that did not change": ([registered(), stale(changed())], {A: ANN}, {A}),
    "stale, for the second of two calls": (
        [registered(), changed(at=(2, 5)), stale(deleted(at=(2, 5)))],
        {A: BEA},
        set(),
    ),
    "a stale copy that leaves the new account alone": (
        [*renewed(), stale(changed("ann", "cid")), stale(deleted()), stale(changed())],
        {A: stored("bea", 501)},
        set(),
    ),
    "a stale copy that changes a new account of unknown version": (
        [*renewed("unknown"), changed("ann", "cid")],
        {A: stored("cid", 2, "bea@example.org")},
        {A},
    ),
    "a stale copy that deletes a new account of unknown version": (
        [*renewed("unknown"), found(A, "bea", 501), deleted()],
        {},
        {A, NEW, NEW_EMAIL},
    ),
    "a stale copy that takes the new account for its own": (
        [*renewed(version=2**30), changed(answer={})],
        {A: stored("bea", 2**30)},
        {A},
    ),
    "a killed registration that is not stored": ([registered(outcome="unknown")], {}, set()),
    "a killed deletion that happens later": (
        [registered(), MAYBE_DELETED, found("ann"), unknown("ann"), registered(B)],
        {B: ANN},
        set(),
    ),
    "a registration that is repeated": (
        [registered(outcome="unknown", lingers=9), registered(), registered()],
        {A: ANN},
        set(),
    ),
    "a registration that returns a later change of another call": (
        [registered(at=LONG, answer=shown("bea", 2, email=OLD_EMAIL)), changed()],
        {A: BEA},
        set(),
    ),
    "a registration that returns one version with the values of another": (
        [registered(at=LONG, answer=shown("ann", 2)), changed()],
        {A: BEA},
        {A},
    ),
    "another operation that raises the version": (
        [registered(), other(2)],
        {A: stored("ann", 2)},
        set(),
    ),
    "another operation that has nothing to do, on a copy of a deleted account": (
        [registered(), deleted(), other()],
        {},
        set(),
    ),
    "another operation that is not stored": ([registered(), other(2)], {A: ANN}, {A}),
    "a used request id": ([registered(), reused()], {A: ANN}, set()),
    "a used request id that was never used": ([reused()], {}, {A}),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_of_accounts_has_the_findings_of_the_rules_that_it_breaks(name: str) -> None:
    calls, in_the_end, objects = HISTORIES[name]

    assert {finding.about for finding in check(in_turn(calls), in_the_end)} == objects


@pytest.mark.parametrize("gone", [True, False])
def test_a_change_whose_account_is_gone_may_have_been_made(gone: bool) -> None:
    calls = [
        *(registered(), stale(changed(at=(2, 9)), gone=gone)),
        call("find", at=(3, 4), who=A, answer=shown("bea", 2, email=OLD_EMAIL)),
        deleted(at=(6, 7), username="bea", version=2),
    ]

    assert (check(in_turn(calls), {}) == []) == gone


def test_a_killed_engine_may_carry_out_a_repeated_request_again() -> None:
    calls = [registered(at=(0, 5)), found("ann", at=(2, 2.5)), deleted(at=(2.6, 3))]

    assert check(calls, {A: ANN}) != []
    assert check(calls, {A: ANN}, engine_kills=[1.5]) == []


def test_a_finding_shows_the_calls_that_break_the_rule() -> None:
    [finding, *_others] = check(in_turn([registered(), registered(B)]), {})

    assert A in str(finding)
    assert B in str(finding)
