"""Histories of accounts that break a rule, each one rule; and some that only look so."""

from __future__ import annotations

from typing import Any

import pytest

from tests.torture.checkers.accounts import Account, check
from tests.torture.findings import Finding
from tests.torture.histories import call
from tests.torture.history import Call

A, B = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa", "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"


def registered(
    began: float, ended: float, pk: str = A, name: str = "ann", *args: Any, **options: Any
) -> Call:
    asked = {"pk": pk, "username": name, "email": f"{name}@example.org"}
    answer = {} if args else {"answer": {"version": 1}}
    return call("register", began, ended, *args, **(asked | answer | options))


def refused(began: float, ended: float, pk: str, name: str, taken: list[str]) -> Call:
    answer = {"error": "ValueTaken", "taken": taken}
    return registered(began, ended, pk, name, "refused", answer=answer)


def found(began: float, ended: float, who: str, pk: str, name: str, version: int = 1) -> Call:
    return call("find", began, ended, who=who, answer=shown(pk, name, version))


def shown(pk: str, name: str, version: int = 1) -> dict[str, Any]:
    return {"pk": pk, **account(name, version)._asdict()}


def account(name: str, version: int = 1, email: str | None = None) -> Account:
    return Account(name, email or f"{name}@example.org", version, "")


def unknown(began: float, ended: float, who: str) -> Call:
    return call("find", began, ended, "refused", who=who, answer={"error": "UnknownUser"})


def changed(
    began: float, ended: float, old: str, new: str, *args: Any, pk: str = A, **options: Any
) -> Call:
    asked = {"pk": pk, "attribute": "username", "old": old, "new": new, "version": 1}
    answer = {"answer": {"version": 2}} if not args else {}
    return call("change", began, ended, *args, **(asked | answer | options))


def deleted(began: float, ended: float, *args: Any, pk: str = A, **options: Any) -> Call:
    asked = {"pk": pk, "version": 1, "username": "ann", "email": "ann@example.org"}
    return call("delete", began, ended, *args, **(asked | options))


def stale(calls: Call) -> Call:
    calls.outcome, calls.answer = "refused", {"error": "StaleUser", "taken": []}
    return calls


def rules(findings: list[Finding]) -> set[str]:
    return {f"{finding.rule} {finding.about}" for finding in findings}


def test_an_account_that_came_changed_and_went_breaks_nothing() -> None:
    calls = [
        unknown(0, 1, "ann"),
        registered(2, 3),
        found(4, 5, "ANN", A, "ann"),
        changed(6, 7, "ann", "Bea"),
        unknown(8, 9, "ann"),
        registered(10, 11, B, "cid"),
    ]

    assert check(calls, {A: account("Bea", 2, "ann@example.org"), B: account("cid")}) == []


def test_two_owners_of_one_value() -> None:
    findings = check(
        [registered(0, 1), registered(2, 3, B)], {A: account("ann"), B: account("ann")}
    )

    assert {"uniqueness username ann", "uniqueness email ann@example.org"} <= rules(findings)


def test_two_spellings_are_one_value() -> None:
    calls = [registered(0, 1), registered(2, 3, B, "ANN", email="b@example.org")]
    stored = {A: account("ann"), B: account("ANN", email="b@example.org")}

    assert rules(check(calls, stored)) == {"uniqueness username ann"}


def test_taken_is_said_of_a_value_that_nobody_has() -> None:
    calls = [refused(0, 1, B, "ann", ["username"]), registered(2, 3)]

    assert rules(check(calls, {A: account("ann")})) == {"uniqueness username ann"}


def test_taken_is_right_while_another_registers() -> None:
    calls = [
        registered(0, 9),
        refused(1, 2, B, "ann", ["username", "email"]),
    ]

    assert check(calls, {A: account("ann")}) == []


def test_taken_is_not_said_of_a_value_that_is() -> None:
    calls = [registered(0, 1), refused(2, 3, B, "ann", ["username"])]

    assert rules(check(calls, {A: account("ann")})) == {"uniqueness email ann@example.org"}


def test_a_success_that_is_not_there_in_the_end() -> None:
    assert f"account {A}" in rules(check([registered(0, 1)], {}))


def test_a_success_that_says_something_else_in_the_end() -> None:
    calls = [registered(0, 1), changed(2, 3, "ann", "bea")]

    assert f"account {A}" in rules(check(calls, {A: account("ann")}))


def test_an_account_that_nobody_asked_for() -> None:
    assert f"account {A}" in rules(check([], {A: account("ann")}))


def test_one_who_was_deleted_comes_back() -> None:
    calls = [registered(0, 1), deleted(2, 3), found(4, 5, "ann", A, "ann")]

    assert f"account {A}" in rules(check(calls, {}))


def test_an_old_value_is_seen_after_its_change() -> None:
    calls = [registered(0, 1), changed(2, 3, "ann", "bea"), found(4, 5, A, A, "ann")]

    findings = check(calls, {A: account("bea", 2, "ann@example.org")})

    assert rules(findings) == {f"account {A}", "uniqueness username ann"}


def test_a_change_to_a_version_that_another_had_changed() -> None:
    lost = changed(4, 5, "ann", "cid")
    calls = [registered(0, 1), changed(2, 3, "ann", "bea"), lost]

    assert f"account {A}" in rules(check(calls, {A: account("cid", 2, "ann@example.org")}))


def test_stale_is_said_of_an_account_that_nobody_changed() -> None:
    calls = [registered(0, 1), stale(changed(2, 3, "ann", "bea"))]

    assert rules(check(calls, {A: account("ann")})) == {f"account {A}"}


def test_of_two_who_change_one_version_the_second_is_told() -> None:
    calls = [registered(0, 1), changed(2, 5, "ann", "bea"), stale(deleted(2, 5))]

    assert check(calls, {A: account("bea", 2, "ann@example.org")}) == []


def anew(began: float, ended: float, name: str = "bea", *args: Any, version: int = 501) -> Call:
    """The account registered again under its key, when it was deleted."""
    answer = {} if args else {"answer": {"version": version}}
    return registered(began, ended, A, name, *args, **answer)


def test_a_stale_copy_that_leaves_the_new_account_alone_breaks_nothing() -> None:
    calls = [
        registered(0, 1),
        deleted(2, 3),
        anew(4, 5),
        stale(changed(6, 7, "ann", "cid")),
        stale(deleted(8, 9)),
        stale(changed(10, 11, "ann", "bea")),
    ]

    assert check(calls, {A: account("bea", 501)}) == []


@pytest.mark.parametrize("version", [1, 501])
@pytest.mark.parametrize("args", [(), ("unknown",)])
def test_a_stale_copy_that_changes_the_new_account(version: int, args: tuple[str, ...]) -> None:
    came = anew(4, 5, "bea", *args) if args else anew(4, 5, version=version)
    calls = [registered(0, 1), deleted(2, 3), came, changed(6, 7, "ann", "cid")]

    stored = account("cid", version + 1, "bea@example.org")

    assert f"account {A}" in rules(check(calls, {A: stored}))


@pytest.mark.parametrize("args", [(), ("unknown",)])
def test_a_stale_copy_that_deletes_the_new_account(args: tuple[str, ...]) -> None:
    calls = [registered(0, 1), deleted(2, 3), anew(4, 5, "bea", *args), unknown(5.5, 5.6, "cid")]
    calls.insert(3, found(5.1, 5.2, A, A, "bea", 501))
    calls.append(deleted(6, 7))

    assert f"account {A}" in rules(check(calls, {}))


def test_a_stale_copy_that_takes_the_new_account_for_its_own() -> None:
    taken_over = changed(6, 7, "ann", "bea", answer={"version": 501})
    taken_over.answer = {"version": 501}
    calls = [registered(0, 1), deleted(2, 3), anew(4, 5, version=2**30), taken_over]

    assert f"account {A}" in rules(check(calls, {A: account("bea", 2**30)}))


def test_a_version_that_an_earlier_account_had() -> None:
    calls = [registered(0, 1), deleted(2, 3), anew(4, 5, version=1)]

    assert f"account {A}" in rules(check(calls, {A: account("bea", 1)}))


@pytest.mark.parametrize("is_there", [True, False])
def test_who_was_killed_may_have_registered_or_not(*, is_there: bool) -> None:
    stored = {A: account("ann")} if is_there else {}

    assert check([registered(0, 1, A, "ann", "unknown")], stored) == []


def test_who_was_killed_may_have_deleted_later_and_another_has_the_name_then() -> None:
    gone = deleted(2, 3, "unknown", lingers=9)
    calls = [
        registered(0, 1),
        gone,
        found(4, 5, "ann", A, "ann"),
        unknown(6, 7, "ann"),
        registered(8, 9, B),
    ]

    assert check(calls, {B: account("ann")}) == []


def test_but_what_was_seen_gone_stays_gone() -> None:
    calls = [
        registered(0, 1),
        deleted(2, 3, "unknown", lingers=9),
        unknown(4, 5, "ann"),
        found(6, 7, "ann", A, "ann"),
    ]

    assert rules(check(calls, {A: account("ann")})) == {"uniqueness username ann"}


def test_a_registration_asked_for_again_is_the_same_one() -> None:
    calls = [registered(0, 1, A, "ann", "unknown", lingers=9), registered(2, 3), registered(4, 5)]

    assert check(calls, {A: account("ann")}) == []


def test_a_request_id_of_other_contents_is_refused_for_a_reason() -> None:
    used = registered(2, 3, A, "bea", "refused", answer={"error": "RequestIdUsed", "taken": []})

    assert check([registered(0, 1), used], {A: account("ann")}) == []
    assert rules(check([used], {})) == {f"account {A}"}


def test_who_is_told_that_the_account_is_gone_may_have_changed_it_before() -> None:
    gone = stale(changed(2, 9, "ann", "bea"))
    calls = [registered(0, 1), gone, found(3, 4, A, A, "ann"), deleted(6, 7)]
    calls[2].answer |= {"username": "bea", "email": "ann@example.org", "version": 2}
    calls[3].asked |= {"username": "bea", "version": 2}

    assert rules(check(calls, {})) != set()
    gone.answer["gone"] = True
    assert check(calls, {}) == []


def test_an_engine_that_was_killed_may_have_forgotten_what_it_did() -> None:
    # Carried out, undone by another, and, as its token was forgotten, carried out again.
    calls = [registered(0, 5), found(2, 2.5, "ann", A, "ann"), deleted(2.6, 3)]

    assert rules(check(calls, {A: account("ann")})) != set()
    assert check(calls, {A: account("ann")}, engine_kills=[1.5]) == []


def test_a_finding_shows_the_calls_that_break_the_rule() -> None:
    [finding, *_others] = check([registered(0, 1), registered(2, 3, B)], {})

    assert A in str(finding)
    assert B in str(finding)
