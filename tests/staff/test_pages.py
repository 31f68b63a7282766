"""The staff pages: look-up, accounts, actions, the audit log, locks."""

import html
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import User
from accounts.services import delete
from dynamo import admin
from dynamo.admin.models import journal_of, list_entries
from invoices.document.invoice import Customer
from invoices.store.customers import add_customer
from locks.lock import Lock, claim_once
from locks.registry import State, look
from tests.clocks import hold_the_day
from tests.factories import make_user, set_stored, stored_items
from tests.invoice_factories import issued
from tests.items import put_item, remove_item
from tests.pages import Page, meanwhile
from tests.requests import OF_EVERY_PAGE, Requests
from tests.session_maps import begun
from tests.staff.scenes import (
    WHY,
    act,
    acting,
    again,
    below,
    do,
    let_in,
    logged_actions,
    make_staff,
    page_of,
    stored_entries,
    stored_report,
)

pytestmark = pytest.mark.usefixtures("engine")

UNKNOWN = str(uuid.UUID(int=7))
USERS, CUSTOMERS = "/admin/accounts/user/", "/admin/invoices/customeritem/"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0"
TODAY = timezone.localdate()


@pytest.fixture
def client(engine: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A browser in which a staff account is signed in. Midnight does not pass."""
    hold_the_day(TODAY, monkeypatch)
    return let_in(make_staff(username="grace"))


@pytest.fixture
def bob(engine: str) -> User:
    return make_user(username="Bob", email="Bob@example.com", full_name="Bob Example")


def damage(user: User) -> None:
    set_stored(user, joinedAt="soon")


def rows(response: Any) -> list[str]:
    """The accounts of a list, by their keys."""
    return re.findall(f'href="{USERS}([^"/]+)/change/"', response.content.decode())


def seen(response: Any) -> str:
    """The text of a page in one line, and its source."""
    text = " ".join(Page(response).text.replace("\xa0", " ").split())
    return f"{text}\n{html.unescape(response.content.decode())}"


# What pages show ----------------------------------------------------------------------------------


def use(bob: User) -> None:
    begun(bob, browser=FIREFOX, address="::1")
    issued(bob.pk, day=TODAY)


def lose_guards(bob: User) -> None:
    other = make_user(username="other", request_id="other")
    remove_item("users", pk="userName#bob")
    put_item("users", pk="email#bob@example.com", owner=other.pk)


def own_by(owner: str) -> Callable[[User], None]:
    return lambda _bob: put_item("users", pk="email#bob@example.com", owner=owner)


def log_six(bob: User) -> None:
    actor = acting(make_staff(username="heidi"))
    for number in range(3):
        do(actor, "deactivate", again(bob), f"Reason {number} a")
        do(actor, "activate", again(bob), f"Reason {number} b")


def deactivate_and_delete(bob: User) -> None:
    do(acting(make_staff(username="heidi")), "deactivate", again(bob), "Spam")
    delete(again(bob))


@dataclass(frozen=True)
class Shown:
    """What a page shows, and what not, and which requests it needs besides those of every page."""

    path: str
    texts: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    given: Callable[[User], object] = lambda _bob: None
    requests: tuple[str, ...] | None = None


ACCOUNT = "/admin/accounts/user/{pk}/change/"
DAMAGED = "The item '{pk}' of users is damaged: joinedAt."
PAGES = {
    "an account without its password hash": Shown(
        ACCOUNT,
        (
            *("{pk}", "Bob@example.com", "Bob Example", "userName#bob", "email#bob@example.com"),
            *("Firefox on Linux", "::1", f"{TODAY.year}: 1", f"{CUSTOMERS}?account={{pk}}"),
            "Sound",
        ),
        ("{password}", "md5$", "Missing"),
        use,
        ("Query", "GetItem", "TransactGetItems", "GetItem"),
    ),
    "wrong guard items": Shown(
        ACCOUNT,
        ("Missing", "Another account’s", f"{USERS}{User.key_for('other')}/change/"),
        ("Sound",),
        lose_guards,
    ),
    "an owner of a guard item that has no page": Shown(
        ACCOUNT, ("a/b",), (f"{USERS}a/b",), own_by("a/b")
    ),
    "an owner of a guard item that does not exist": Shown(
        ACCOUNT, ("gone",), (f"{USERS}gone",), own_by("gone")
    ),
    "a guard item of a deleted account": Shown(
        f"{USERS}?q=Lost",
        ("There is a guard item userName#lost. Its owner: gone",),
        given=lambda _bob: put_item("users", pk="userName#lost", owner="gone"),
    ),
    "the audit log of a deleted account": Shown(
        ACCOUNT,
        ("This account was deleted.", "Deactivated the account", "heidi"),
        given=deactivate_and_delete,
    ),
    "a damaged account": Shown(ACCOUNT, (DAMAGED,), given=damage),
    "a damaged account that is searched": Shown(f"{USERS}?q={{pk}}", (DAMAGED,), given=damage),
    "all accounts": Shown(USERS, ("All accounts, newest first.",), ("in no order",)),
    "no report of accounts": Shown(
        f"{USERS}?newest", ("No report is stored yet",), ("0 accounts",)
    ),
    "a search by one letter": Shown(
        f"{USERS}?q=x", ("Enter at least two letters.",), ("0 accounts", "All accounts")
    ),
    "a search that finds nothing": Shown(
        f"{USERS}?q=xx", ("0 accounts",), ("at least two letters.",)
    ),
    "no address book": Shown(CUSTOMERS, lacks=("0 customers",)),
    "an empty address book": Shown(f"{CUSTOMERS}?account={{pk}}", ("0 customers",)),
    "an opening among the recent actions": Shown(
        "/admin/",
        ("Opened invoices",),
        ("Changed:", "changelink"),
        lambda bob: let_in(User.find(username="grace")).get(
            f"{below(bob)}invoices/{issued(bob.pk, day=TODAY).label}/"
        ),
    ),
    "the actions of an account": Shown(
        "/admin/accounts/user/{pk}/history/", ("Reason 0 a", "Reason 2 b"), given=log_six
    ),
    "all actions": Shown("/admin/record/", ("Reason 0 a", "Reason 2 b"), (), log_six, ("Query",)),
    "a month without entries": Shown("/admin/record/?month=2024-02", ("There are no entries.",)),
    "no report": Shown("/admin/", ("No report is stored yet.",)),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_what_its_row_says(
    name: str, client: Any, bob: User, requests_sent: Requests
) -> None:
    page = PAGES[name]
    values = {"pk": bob.pk, "password": str(bob.password)}
    page.given(bob)
    requests_sent.clear()

    response = client.get(page.path.format(**values))

    if page.requests is not None:
        assert requests_sent.operations == [*OF_EVERY_PAGE, *page.requests]
    while response.status_code == 302:
        response = client.get(response.url)
    assert "no-store" in response["Cache-Control"]
    text = seen(response)
    assert [item for item in page.texts if item.format(**values) not in text] == []
    assert [lack for lack in page.lacks if lack.format(**values) in text] == []


@pytest.mark.parametrize(
    "path",
    [
        *(f"/admin/record/?month={month}" for month in ("2026-13", "2026", "on%23x", "")),
        *(f"/admin/lock/?name={name}" for name in ("", "never", "x" * 3000)),
        *("/admin/runs/format-disks/", "/admin/runs/checkguards/"),
    ],
)
def test_an_address_that_names_nothing_is_not_found(client: Any, path: str) -> None:
    assert client.get(path).status_code == 404
    assert client.post(path, WHY).status_code in {404, 405}


# Finding ------------------------------------------------------------------------------------------


def test_an_account_is_found_by_its_values_and_keys_and_by_no_other(client: Any, bob: User) -> None:
    for who in (
        *("Bob", " ＢＯＢ ", "BO", "BOB@Example.com", "Bob@e", "{pk}"),
        *("userName#bob", "userName#BOB", "email#bob@example.com"),
        *("{pk}#2026", "invoices#{pk}#2026", "requestId#{pk}#a#b"),
    ):
        assert rows(client.get(USERS, {"q": who.format(pk=bob.pk)})) == [bob.pk], who
    for who in ("nobody", "no@body.example", "phone#1", "a#b#c", "x" * 3000, "a@", "b", UNKNOWN):
        assert rows(client.get(USERS, {"q": who})) == [], who


def test_the_list_is_live_and_its_pages_have_each_account_once_at_a_bounded_cost(
    client: Any, bob: User, requests_sent: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    latest = make_user()
    assert rows(client.get(USERS))[:2] == [latest.pk, bob.pk]

    monkeypatch.setattr(admin.site._registry[User], "list_per_page", 2)
    found, address = [], "?"
    while address:
        requests_sent.clear()
        response = client.get(f"{USERS}{address}")
        assert "in no order" in seen(response)
        assert set(requests_sent.operations[len(OF_EVERY_PAGE) :]) == {"Scan"}
        assert len(requests_sent.operations) <= len(OF_EVERY_PAGE) + 3
        found += rows(response)
        following = re.search(r'href="([^"]*)" rel="next"', response.content.decode())
        address = html.unescape(following[1]) if following else ""

    assert sorted(found) == sorted([bob.pk, latest.pk, User.find(username="grace").pk])


def test_the_newest_accounts_of_the_last_report_are_listed(
    client: Any, bob: User, requests_sent: Requests
) -> None:
    gone = make_user()
    latest = make_user()
    stored_report("statistics")
    delete(gone)
    make_user()
    requests_sent.clear()

    response = client.get(f"{USERS}?newest")

    assert rows(response)[:2] == [latest.pk, bob.pk]
    assert gone.pk not in response.content.decode()
    assert requests_sent.operations == [*OF_EVERY_PAGE, "TransactGetItems", "BatchGetItem"]


def test_an_account_that_two_fields_find_is_on_one_page(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin.site._registry[User], "list_per_page", 2)
    users = [make_user(username=f"carol{item}", email=f"carol{item}@example.org") for item in "abc"]

    found, address = [], "?q=carol"
    while address:
        response = client.get(f"{USERS}{address}")
        found += rows(response)
        following = re.search(r'href="([^"]*)" rel="next"', response.content.decode())
        address = html.unescape(following[1]) if following else ""

    assert sorted(found) == sorted(user.pk for user in users)


def test_a_damaged_account_is_listed_as_damaged_and_its_address_book_opens(
    client: Any, bob: User
) -> None:
    add_customer(bob.pk, Customer(name="Carl"), request_id="one")
    damage(bob)

    assert "damaged" in seen(client.get(USERS))
    assert "Carl" in seen(client.get(CUSTOMERS, {"account": bob.pk}))
    assert logged_actions() == ["openCustomers"]


@pytest.mark.parametrize("pk", ["nobody", "userName_23bob", "x" * 3000, UNKNOWN])
def test_a_key_without_an_account_is_not_found(client: Any, bob: User, pk: str) -> None:
    before = stored_items()

    for more in ("change/", "action/deactivate/", "action/endSession/?session=x"):
        path = f"{USERS}{pk}/{more}"
        for response in (client.get(path), client.post(path, WHY)):
            assert response.status_code in {302, 403}
        assert pk.replace("_23", "#") in Page(client.get("/admin/")).messages[0]

    assert stored_items() == before


# Actions ------------------------------------------------------------------------------------------


def messages(client: Any, bob: User) -> list[str]:
    return Page(client.get(page_of(bob))).messages


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda bob: bob.change(full_name="Robert"), "nothing was stored"),
        (delete, "“Bob”: This account was deleted meanwhile."),
    ],
)
def test_an_account_that_changes_meanwhile_is_not_deactivated(
    engine: str, client: Any, bob: User, change: Callable[[User], None], message: str
) -> None:
    with meanwhile(engine, "TransactWriteItems", lambda: change(again(bob))):
        response = act(client, bob, "deactivate")

    shown = client.get(response.url)
    assert message in Page(client.get(shown.url) if shown.status_code == 302 else shown).messages[0]
    assert logged_actions() == []


@pytest.mark.parametrize(
    ("action", "subject", "said"),
    [
        ("sendPasswordReset", "password", "Sent a password reset: “Bob”"),
        ("sendConfirmation", "onfirm", "Sent the confirmation again: “Bob”"),
    ],
)
def test_a_mail_is_sent_again_with_its_reason_in_the_audit_log(
    client: Any, bob: User, mailoutbox: Any, settings: Any, action: str, subject: str, said: str
) -> None:
    settings.ACCOUNTS_LIMITS = settings.ACCOUNTS_LIMITS | {"mail": (1, 3600)}

    act(client, bob, action, _reason="The first one was lost")

    [mail] = mailoutbox
    assert (mail.to, subject in mail.subject) == ([bob.email], True)
    assert messages(client, bob) == [said]
    [entry, _of_account] = stored_entries()
    assert (entry["action"]["S"], entry["reason"]["S"]) == (action, "The first one was lost")
    act(client, bob, action)
    assert "Too many attempts" in messages(client, bob)[0]
    assert (len(mailoutbox), logged_actions()) == (1, [action])


@pytest.mark.parametrize(
    ("action", "values"),
    [
        ("sendPasswordReset", {"is_active": False}),
        ("sendPasswordReset", {"password": "!"}),
        ("sendConfirmation", {"email_confirmed_at": timezone.now()}),
    ],
)
def test_a_mail_that_would_be_of_no_use_is_not_sent(
    client: Any, bob: User, mailoutbox: Any, action: str, values: dict[str, Any]
) -> None:
    again(bob).change(**values)

    act(client, bob, action)

    assert messages(client, bob) == ["“Bob”: There was nothing to do."]
    assert (mailoutbox, logged_actions()) == ([], [])


def test_an_address_book_is_read_only_and_each_opening_is_in_the_audit_log(
    client: Any, bob: User, requests_sent: Requests
) -> None:
    client.get(CUSTOMERS, {"account": bob.pk})
    assert logged_actions() == []
    add_customer(bob.pk, Customer(name="Carl"), request_id="one")
    requests_sent.clear()

    page = Page(client.get(CUSTOMERS, {"account": bob.pk}))

    assert "Carl" in page.text
    assert requests_sent.operations == [*OF_EVERY_PAGE, "Query", "GetItem", "TransactWriteItems"]
    assert logged_actions() == ["openCustomers"]
    assert client.get(f"{CUSTOMERS}add/").status_code == 404


def test_the_audit_log_is_shown_newest_first_page_by_page(client: Any, bob: User) -> None:
    log_six(bob)
    reasons = [f"Reason {number} {item}" for number in (2, 1, 0) for item in "ba"]

    page = list_entries(journal_of(bob), limit=4)
    rest = list_entries(journal_of(bob), before=page.next, limit=4)

    assert [action.reason for action in page.items + rest.items] == reasons
    assert (len(rest), rest.next) == (2, None)
    for path in ("/admin/record/", f"{below(bob)}history/"):
        text = Page(client.get(path, {"before": page[2].id})).text
        assert [reason in text for reason in reasons] == [False] * 3 + [True] * 3


# Locks --------------------------------------------------------------------------------------------

LOCK = "/admin/lock/?name=a"


@pytest.mark.parametrize("name", ["../..", "a b&c=#?", "鍵" * 600])
def test_a_lock_is_shown_and_broken(client: Any, name: str) -> None:
    Lock(name, lease_seconds=600, owner="worker-7").acquire()
    page = Page(client.get("/admin/lock/", {"name": name}))
    assert "worker-7" in page.text

    sent = WHY | {"holder": page.value("holder")}
    response = client.post("/admin/lock/", sent, query_params={"name": name})

    assert look(name).state is State.RELEASED
    assert "nothing to break" in Page(client.get(response.url)).text
    assert logged_actions() == ["breakLock"]


def test_a_claim_is_deleted(client: Any) -> None:
    claim_once("a")
    page = Page(client.get(LOCK))
    assert "Claimed permanently" in page.text

    response = client.post(LOCK, WHY | {"holder": page.value("holder")})

    assert response.url == "/admin/"
    assert client.get(LOCK).status_code == 404


def test_a_later_holder_is_shown_and_keeps_the_lock(client: Any) -> None:
    lease = Lock("a", lease_seconds=600, owner="first").acquire()
    sent = WHY | {"holder": Page(client.get(LOCK)).value("holder")}
    lease.release()
    later = Lock("a", lease_seconds=600, owner="second").acquire()

    page = Page(client.post(LOCK, sent))

    assert "second" in page.text
    assert "It was not broken." in page.text
    later.renew()
    assert client.post(LOCK, WHY | {"holder": page.value("holder")}).status_code == 302
    assert logged_actions() == ["breakLock"]


@pytest.mark.parametrize(("remove", "status"), [(False, 200), (True, 404)])
def test_a_lock_that_is_released_or_deleted_meanwhile_is_not_broken(
    engine: str, client: Any, remove: bool, status: int
) -> None:
    lease = Lock("a", lease_seconds=600).acquire()
    sent = WHY | {"holder": Page(client.get(LOCK)).value("holder")}

    with meanwhile(engine, "TransactWriteItems", lambda: lease.release(remove=remove)):
        response = client.post(LOCK, sent)

    assert response.status_code == status
    assert logged_actions() == []
