"""The staff pages: look-up, accounts, actions, the audit log, locks, statistics."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import User
from accounts.services import delete
from dynamo._internal.client.sending import send
from locks._internal.lock import Lock, claim_once
from locks._internal.registry import State, look
from sequences._internal.counters import next_value
from staff import actions
from staff.audit_log import list_actions, on_account
from tests.clocks import hold_the_day
from tests.factories import PASSWORD, make_user, stored_items
from tests.invoice_factories import issued
from tests.pages import Page, meanwhile
from tests.requests import OF_EVERY_PAGE, Requests
from tests.session_maps import begun, stored_ids
from tests.staff.scenes import (
    WHY,
    acting,
    again,
    let_in,
    logged_actions,
    make_staff,
    page_of,
    stored_report,
)

pytestmark = pytest.mark.usefixtures("engine")

UNKNOWN = str(uuid.UUID(int=7))


@pytest.fixture
def client(engine: str) -> Any:
    """A browser in which a staff account is signed in."""
    return let_in(make_staff(username="grace"))


@pytest.fixture
def bob(engine: str) -> User:
    return make_user(username="Bob", email="Bob@example.com", full_name="Bob Example")


def item(table: str, **attributes: dict[str, Any]) -> None:
    send("PutItem", {"TableName": table, "Item": attributes})


# Finding ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "who",
    [
        "Bob",
        " ＢＯＢ ",
        "BOB@Example.com",
        "{pk}",
        "userName#bob",
        "userName#BOB",
        "email#bob@example.com",
        "{pk}#2026",
        "invoices#{pk}#2026",
        "requestId#{pk}#a#b",
    ],
)
def test_an_account_is_found_by_its_values_and_keys(client: Any, bob: User, who: str) -> None:
    response = client.post("/staff/", {"who": who.format(pk=bob.pk)})

    assert response.url == page_of(bob)


@pytest.mark.parametrize("who", ["nobody", "no@body.example", "phone#1", "a#b#c", "x" * 3000, "a@"])
def test_an_unknown_value_is_not_found(client: Any, who: str) -> None:
    response = client.post("/staff/", {"who": who})

    assert response.status_code == 200
    assert list(Page(response).errors) == ["who"]


def test_a_guard_item_of_a_deleted_account_is_shown(client: Any) -> None:
    item("users", pk={"S": "userName#lost"}, owner={"S": "gone"})

    page = Page(client.post("/staff/", {"who": "Lost"}))

    assert "There is no such account." in page.errors["who"]
    assert "userName#lost" in page.text
    assert "gone" in page.text


def test_the_search_is_not_part_of_the_address(client: Any) -> None:
    content = client.get("/staff/").content.decode()

    assert '<form method="post" role="search">' in content
    assert client.get("/staff/?who=bob").status_code == 200


# The account --------------------------------------------------------------------------------------


def test_an_account_is_shown_without_its_password_hash(
    client: Any, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold_the_day(timezone.localdate(), monkeypatch)
    begun(bob, browser="Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0", address="::1")
    issued(bob.pk, day=timezone.localdate())

    response = client.get(page_of(bob))

    text = " ".join(Page(response).text.split())
    for part in (
        bob.pk,
        "Bob@example.com",
        "Bob Example",
        "userName#bob",
        "email#bob@example.com",
        "Firefox on Linux",
        "::1",
        f"{timezone.localdate().year}: 1",
    ):
        assert part in text
    assert text.count("Sound") == 2
    assert again(bob).password not in response.content.decode()
    assert "md5$" not in response.content.decode()
    assert "no-store" in response["Cache-Control"]


def test_a_page_of_an_account_costs_five_requests(
    client: Any, bob: User, requests_sent: Requests
) -> None:
    client.get(page_of(bob))

    assert requests_sent.operations == [*OF_EVERY_PAGE, "Query", "GetItem", "TransactGetItems"]


def test_wrong_guard_items_are_marked(client: Any, bob: User) -> None:
    other = make_user()
    send("DeleteItem", {"TableName": "users", "Key": {"pk": {"S": "userName#bob"}}})
    item("users", pk={"S": "email#bob@example.com"}, owner={"S": other.pk})

    response = client.get(page_of(bob))

    page = Page(response)
    assert "Missing" in page.text
    assert "Another account’s" in page.text
    assert page_of(other) in response.content.decode()


def test_a_deleted_account_still_has_its_audit_log(client: Any, bob: User) -> None:
    actions.deactivate(acting(make_staff(username="heidi")), again(bob), "Spam")
    delete(again(bob))

    page = Page(client.get(page_of(bob)))

    assert "was deleted" in page.text
    assert "Deactivated the account" in page.text
    assert "heidi" in page.text


@pytest.mark.parametrize("more", ["", "deactivate/", "activate/", "sessions/end/", "record/"])
@pytest.mark.parametrize("pk", ["nobody", "userName%23bob", "x" * 3000, UNKNOWN])
def test_a_key_without_an_account_is_not_found(client: Any, bob: User, pk: str, more: str) -> None:
    before = stored_items()

    # The audit log of an account outlives it.
    status = 200 if (pk, more) == (UNKNOWN, "record/") else 404
    assert client.get(f"/staff/accounts/{pk}/{more}").status_code == status
    assert client.post(f"/staff/accounts/{pk}/{more}", WHY).status_code in {404, 405}

    assert stored_items() == before


def test_a_damaged_account_is_reported(client: Any, bob: User) -> None:
    item("users", pk={"S": bob.pk}, userName={"S": "Bob"}, joinedAt={"S": "soon"})

    response = client.get(page_of(bob))

    assert response.url == "/staff/"
    [message] = Page(client.get("/staff/")).messages
    assert bob.pk in message
    assert bob.pk in str(Page(client.post("/staff/", {"who": bob.pk})).errors["who"])


@pytest.mark.parametrize("owner", ["a/b", "gone"])
def test_an_owner_that_is_not_an_account_key_is_shown_without_a_link(
    client: Any, bob: User, owner: str
) -> None:
    item("users", pk={"S": "email#bob@example.com"}, owner={"S": owner})

    for response in (client.get(page_of(bob)), client.post("/staff/", {"who": "bob@example.com"})):
        assert owner in Page(response).text
        assert f"/staff/accounts/{owner}" not in response.content.decode()


# Actions ------------------------------------------------------------------------------------------


def test_an_account_is_deactivated_and_activated_on_its_page(client: Any, bob: User) -> None:
    theirs = let_in(bob)
    page = Page(client.get(page_of(bob, "deactivate")))
    assert "Bob" in page.text
    assert "Bob@example.com" in page.text

    response = client.post(page_of(bob, "deactivate"), WHY)

    assert response.url == page_of(bob)
    page = Page(client.get(response.url))
    assert page.messages == ["The account is deactivated."]
    assert "Spam" in page.text
    assert theirs.get("/accounts/profile/").status_code == 302
    client.post(page_of(bob, "activate"), WHY)
    assert Page(client.get(response.url)).messages == ["The account is active."]
    assert logged_actions() == ["deactivate", "activate"]


def test_one_session_is_ended_and_then_all(client: Any, bob: User) -> None:
    first, _second, _third = begun(bob), begun(bob), begun(bob)

    client.post(page_of(bob, "sessions", first, "end"), WHY)
    assert len(stored_ids(bob)) == 2
    client.post(page_of(bob, "sessions", "end"), WHY)

    assert stored_ids(bob) == set()
    assert logged_actions() == ["endSession", "endSessions"]
    assert client.get(page_of(bob, "sessions", first, "end")).url == page_of(bob)
    client.post(page_of(bob, "sessions", first, "end"), WHY)
    page = Page(client.get(page_of(bob)))
    assert page.messages[-1] == "The session had already ended."
    assert logged_actions() == ["endSession", "endSessions"]


def test_an_account_that_changes_meanwhile_is_not_deactivated(
    engine: str, client: Any, bob: User
) -> None:
    def rename() -> None:
        again(bob).change(full_name="Robert")

    with meanwhile(engine, "TransactWriteItems", rename):
        page = Page(client.post(page_of(bob, "deactivate"), WHY))

    assert "nothing was stored" in page.errors["__all__" if "__all__" in page.errors else ""][0]
    assert logged_actions() == []


def test_an_account_that_is_deleted_meanwhile_is_reported(
    engine: str, client: Any, bob: User
) -> None:
    with meanwhile(engine, "TransactWriteItems", lambda: delete(again(bob))):
        response = client.post(page_of(bob, "deactivate"), WHY)

    assert response.url == "/staff/"
    assert Page(client.get("/staff/")).messages == ["This account was deleted meanwhile."]
    assert logged_actions() == []


# The audit log ------------------------------------------------------------------------------------


def test_the_audit_log_is_shown_newest_first_page_by_page(
    client: Any, monkeypatch: pytest.MonkeyPatch, bob: User, requests_sent: Requests
) -> None:
    actor = acting(make_staff(username="heidi"))
    for number in range(3):
        actions.deactivate(actor, again(bob), f"Reason {number} a")
        actions.activate(actor, again(bob), f"Reason {number} b")
    every = list_actions(on_account(bob.pk)).actions
    assert [each.reason for each in every][:3] == ["Reason 2 b", "Reason 2 a", "Reason 1 b"]

    page = list_actions(on_account(bob.pk), limit=4)
    rest = list_actions(on_account(bob.pk), before=page.before, limit=4)

    assert [each.id for each in page.actions + rest.actions] == [each.id for each in every]
    assert (len(rest.actions), rest.before) == (2, None)
    requests_sent.clear()
    text = Page(client.get(f"/staff/record/?before={every[2].id.replace('+', '%2B')}")).text
    assert requests_sent.operations == [*OF_EVERY_PAGE, "Query"]
    assert "Reason 1 a" in text
    assert "Reason 1 b" not in text
    assert "Reason 0 a" in Page(client.get(page_of(bob, "record"))).text


def test_the_audit_log_translates_a_run_of_an_earlier_version(
    client: Any,
) -> None:
    at = timezone.now()
    item(
        "staffactions",
        journal={"S": f"{at:%Y-%m}"},
        id={"S": f"{at.isoformat()}#{uuid.uuid4()}"},
        action={"S": "startRun"},
        byPk={"S": str(uuid.uuid4())},
        byName={"S": "fay"},
        what={"S": "checkguards"},
    )

    text = Page(client.get("/staff/record/", headers={"accept-language": "ja"})).text

    assert "ガード項目の検査" in text
    assert "checkguards" not in text


def test_a_month_may_have_no_entries_and_other_text_is_not_found(client: Any) -> None:
    assert "There are no entries." in Page(client.get("/staff/record/?month=2024-02")).text
    for month in ("2026-13", "2026", "on#x", ""):
        assert client.get("/staff/record/", {"month": month}).status_code == 404
    assert client.get("/staff/record/", {"before": "x" * 101}).status_code == 404


# Locks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nightly", "../..", "a b&c=#?", "鍵" * 600])
def test_a_lock_is_shown_and_broken(client: Any, name: str) -> None:
    Lock(name, lease_seconds=600, owner="worker-7").acquire()
    path = "/staff/lock/"
    page = Page(client.get(path, {"name": name}))
    assert "worker-7" in page.text

    response = client.post(
        path, WHY | {"holder": page.value("holder")}, query_params={"name": name}
    )

    assert response.status_code == 302
    assert look(name).state is State.RELEASED
    assert "nothing to break" in Page(client.get(response.url)).text
    assert logged_actions() == ["breakLock"]


def test_a_claim_is_deleted(client: Any) -> None:
    claim_once("import")
    page = Page(client.get("/staff/lock/?name=import"))
    assert "Claimed permanently" in page.text

    response = client.post("/staff/lock/?name=import", WHY | {"holder": page.value("holder")})

    assert response.url == "/staff/"
    assert client.get("/staff/lock/?name=import").status_code == 404


def test_a_later_holder_is_shown_and_keeps_the_lock(client: Any) -> None:
    lease = Lock("a", lease_seconds=600, owner="first").acquire()
    holder = Page(client.get("/staff/lock/?name=a")).value("holder")
    lease.release()
    later = Lock("a", lease_seconds=600, owner="second").acquire()

    page = Page(client.post("/staff/lock/?name=a", WHY | {"holder": holder}))

    assert "second" in page.text
    assert "It was not broken." in page.text
    later.renew()
    again_sent = WHY | {"holder": page.value("holder")}
    assert client.post("/staff/lock/?name=a", again_sent).status_code == 302
    assert logged_actions() == ["breakLock"]


def test_an_unknown_lock_is_not_found(client: Any) -> None:
    for name in ("", "never", "x" * 3000):
        assert client.get("/staff/lock/", {"name": name}).status_code == 404
    assert client.post("/staff/lock/?name=never", WHY).status_code == 404


# Statistics ---------------------------------------------------------------------------------------


def test_the_overview_shows_accounts_counters_locks_and_uploads(
    client: Any, bob: User, requests_sent: Requests
) -> None:
    issued(bob.pk)
    for _ in range(2):
        next_value("tickets")
    Lock("nightly", lease_seconds=600, owner="worker-7").acquire()
    claim_once("import")
    done = {"state": {"S": "done"}, "size": {"N": "1024"}}
    item("uploads", key={"S": "s3://b/a"}, **done)
    item(
        "uploads",
        key={"S": "s3://b/late"},
        state={"S": "uploading"},
        size={"N": "5"},
        updatedAt={"S": "2026-01-02T03:04:05+00:00"},
    )
    assert Page(client.get("/staff/")).text.count("No report is stored yet.") == 3
    view = stored_report("statistics")
    requests_sent.clear()

    response = client.get("/staff/")

    assert requests_sent.operations == [*OF_EVERY_PAGE, "TransactGetItems"]
    text = " ".join(Page(response).text.split())
    for part in (
        "Series of invoices1",
        "Numbers given out1",
        "tickets2",
        "nightly worker-7",
        "import",
        "Stored 1 1.0 KB",
        "s3://b/late",
        "Sign-ups per day, the last 30 days (UTC): 2 in total",
    ):
        assert part in text.replace("\xa0", " "), part
    assert view.result is not None
    assert view.result["accounts"] | {"days": []} == {
        "all": 2,
        "inactive": 0,
        "staff": 1,
        "confirmed": 0,
        "present": 1,
        "days": [],
    }
    assert (view.result["counters"]["shown"], view.result["counters"]["more"]) == (
        [{"name": "tickets", "value": 2}],
        0,
    )
    assert [each["name"] for each in view.result["locks"]["shown"]] == ["nightly", "import"]
    assert "nightly" in Page(client.get("/staff/runs/survey/")).text


def test_statistics_have_the_largest_counters_and_the_locks_longest_without_renewal() -> None:
    for number in range(55):
        name = {"S": f"c{number:02}"}
        item("counters", counterName=name, currentValue={"N": str(number)})
        item(
            "locks",
            key=name,
            ownerName={"S": "we"},
            leaseDuration={"S": "20000"},
            renewedAt={"S": f"2026-01-01T00:00:{number:02}+00:00"},
        )

    view = stored_report("statistics")

    assert view.result is not None
    counters, locks = view.result["counters"], view.result["locks"]
    assert counters["shown"][0] == {"name": "c54", "value": 54}
    assert (len(counters["shown"]), counters["more"]) == (50, 5)
    assert locks["shown"][0]["name"] == "c00"
    assert (len(locks["shown"]), locks["more"]) == (50, locks["held"] - 50)


def test_the_chart_has_a_bar_for_each_day_with_sign_ups(client: Any, bob: User) -> None:
    stored_report("statistics")

    content = client.get("/staff/").content.decode()

    assert 'viewBox="0 0 30 2"' in content
    assert content.count("<rect ") == 1
    assert '<rect x="29.15" width="0.7" height="2"' in content


def test_the_form_asks_for_the_password_of_the_actor(client: Any) -> None:
    other = make_user(password="quite another one")

    client.post(page_of(other, "deactivate"), WHY | {"password": "quite another one"})
    assert again(other).is_active
    client.post(page_of(other, "deactivate"), WHY | {"password": PASSWORD})
    assert not again(other).is_active
