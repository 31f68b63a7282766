"""`dynamo.admin`, end to end over HTTP."""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from html import unescape
from itertools import product
from typing import Any, cast
from urllib.parse import quote

import pytest
from django.contrib.admin import ModelAdmin as ContribsModelAdmin, site as default_site
from django.contrib.auth.tokens import default_token_generator
from django.contrib.messages.storage.cookie import CookieStorage
from django.contrib.sessions.models import Session
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured, PermissionDenied
from django.test import Client, RequestFactory, override_settings
from django.utils.encoding import iri_to_uri
from django.utils.http import urlsafe_base64_encode

from dynamo import Transaction
from dynamo.admin import (
    AdminSite,
    LogEntry,
    ModelAdmin,
    UserAdmin,
    journal_of,
    list_entries,
    month_of,
)
from dynamo.admin.actions import OVERTAKEN
from dynamo.admin.identity import id_of, is_sensitive, name_of
from dynamo.forms import modelform_factory
from tests.dynamo.adminpages import PROJECT, Form, content, opened, submit
from tests.dynamo.desk.models import Badge, Booking, Chair, Clerk, Customer, Locker, Shelf, Team
from tests.faults.kinds import Meanwhile
from tests.faults.proxy import FaultProxy, through
from tests.items import put_item, scanned, stored_items
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

CUSTOMERS = "/admin/desk/customer/"
ANN = {"email": "ann@example.org", "club": "chess"}
CHANGE = "desk.change_customer"
#: Requests of each page for its user.
USER = 1
PASSWORD = "correct horse battery"
STORES_39_DIGITS = pytest.mark.fault_of(
    "moto", "stores numbers of 39 digits and answers 500 to the next Scan"
)


@pytest.fixture
def editor(project: None) -> Clerk:
    return Clerk.objects.create_superuser("boss", "boss@example.org", PASSWORD)


@pytest.fixture
def client(editor: Clerk) -> Client:
    return browser_of(editor)


def browser_of(user: Clerk, **options: Any) -> Client:
    browser = Client(**options)
    browser.force_login(user)  # type: ignore[arg-type]  # the stubs want a model
    return browser


def entries(item: Any) -> list[LogEntry]:
    return list_entries(journal_of(item)).items


def test_a_registered_model_is_added_listed_changed_and_deleted(
    client: Client, editor: Clerk
) -> None:
    assert run_checks(tags=["admin"]) == []
    added = submit(client, f"{CUSTOMERS}add/", **ANN)
    [ann] = Customer.scan()
    assert (added.status_code, added.url) == (302, CUSTOMERS)
    listed = client.get(CUSTOMERS)
    assert "was added successfully" in listed.text
    assert "ANN@EXAMPLE.ORG" in content(listed.text)
    assert f'href="{page_of(ann)}"' in listed.text

    assert submit(client, page_of(ann), club="go", _reason="She asked.").status_code == 302
    assert Customer.get(ann.pk).club == "go"
    history = content(client.get(page_of(ann, "history")).text)
    assert "Changed: club She asked. 127.0.0.1" in history

    deleted = submit(client, page_of(ann, "delete"))
    assert (deleted.status_code, deleted.url) == (302, CUSTOMERS)
    assert stored_items(Customer.table()) == {}
    assert [entry.action for entry in entries(ann)] == ["delete", "change", "add"]
    assert {entry.by for entry in entries(ann)} == {editor.pk}
    assert "My actions Deleted:" in content(client.get("/admin/").text)


BOOKINGS = "/admin/desk/booking/"


def test_a_reference_is_looked_up_in_the_list_of_its_model(client: Client) -> None:
    *_others, ann, bob = map(make, range(7))
    page = client.get(f"{BOOKINGS}add/?customer={ann.pk}").text
    assert f'<strong><a href="{page_of(ann)}">{ann.email}</a></strong>' in page
    links = re.findall(r'<a href="([^"]*)" class="related-lookup" id="([^"]*)"', page)
    assert links == [(CUSTOMERS, "lookup_id_customer"), (CUSTOMERS, "lookup_id_payer")]
    assert "RelatedObjectLookups.js" in page

    chosen = client.get(f"{CUSTOMERS}?_popup=1&club=chess").text
    assert f'data-popup-opener="{bob.pk}"' in chosen
    assert "RelatedObjectLookups.js" in chosen
    assert "Select customer" in content(chosen)
    assert not re.search('name="action"|action-select|addlink', chosen)
    # Each link and form of the window stays in it.
    found = re.findall(
        r'(?:href="(\?[^"]*)")|(<form [^>]*method="get".*?</form>)', chosen, re.DOTALL
    )
    assert len(found) > 4
    assert all("_popup=1" in link or 'name="_popup" value="1"' in form for link, form in found)
    assert "data-popup-opener" not in client.get(CUSTOMERS).text

    sent = submit(client, f"{BOOKINGS}add/", customer=ann.pk, payer=bob.pk)
    [booking] = Booking.scan()
    assert (sent.status_code, booking.customer, booking.payer) == (302, ann.pk, bob.pk)
    bob.delete()
    shown = client.get(page_of(booking)).text
    assert f'value="{bob.pk}"' in shown
    assert shown.count("<strong><a") == 1
    refused = submit(client, page_of(booking), customer=bob.pk)
    assert "Select a valid choice" in refused.text
    assert Booking.get(booking.pk).customer == ann.pk


def test_a_list_names_the_items_that_references_refer_to(
    client: Client, requests_sent: Requests
) -> None:
    ann, bob, gone = make(0), make(1), make(2)
    Booking.create(customer=ann, payer=bob, locker=Shelf.create())
    Booking.create(customer=ann, payer=gone)
    gone.delete()
    before = len(requests_sent.operations)

    page = content(client.get(BOOKINGS).text)

    assert page.count(ann.email) == 2
    assert page.count(bob.email) == 1
    assert gone.pk in page
    assert requests_sent.operations[before:].count("BatchGetItem") == 1


def test_a_look_up_shows_nothing_that_its_user_may_not_see(project: None) -> None:
    ann = make(0)
    booking = Booking.create(customer=ann)
    helper = Clerk.objects.create_user("helper", is_staff=True)
    helper.change(permissions={"desk.change_booking"})

    page = browser_of(helper).get(page_of(booking)).text
    listed = browser_of(helper).get(BOOKINGS).text

    assert f'value="{ann.pk}"' in page
    assert ann.pk in listed
    assert ann.email not in page + listed
    assert "related-lookup" not in page


@pytest.mark.parametrize("done", ["added", "changed"])
@pytest.mark.parametrize(
    ("button", "leads_to", "more"),
    [
        ("_save", "", ""),
        ("_continue", "{pk}/change/", " You may edit it again"),
        ("_addanother", "add/", " You may add another"),
    ],
)
def test_each_button_of_a_form_leads_where_it_says(
    done: str, button: str, leads_to: str, more: str, client: Client
) -> None:
    page = f"{CUSTOMERS}add/" if done == "added" else page_of(make(0))

    answer = submit(client, page, **ANN, **{button: "x"})

    [ann] = Customer.scan()
    assert answer.url == CUSTOMERS + leads_to.format(pk=ann.pk)
    said = f'“<a href="{page_of(ann)}">{name_of(ann)}</a>” was {done} successfully.{more}'
    assert said in client.get(answer.url).text


def test_a_form_that_is_sent_twice_names_the_item_both_times(client: Client) -> None:
    form = opened(client, f"{CUSTOMERS}add/") | ANN

    pages = [client.post(f"{CUSTOMERS}add/", form, follow=True).text for _twice in range(2)]

    [ann] = Customer.scan()
    said = f'“<a href="{page_of(ann)}">{name_of(ann)}</a>” was added successfully.'
    assert all(said in page for page in pages)


def make(number: int, **values: Any) -> Customer:
    return Customer.create(**{"email": f"c{number}@example.org", "club": "chess", **values})


def page_of(item: Any, page: str = "change") -> str:
    return f"/admin/desk/{type(item).__name__.lower()}/{id_of(item)}/{page}/"


@pytest.mark.parametrize(
    ("meanwhile", "said", "status_of_the_next"),
    [
        (
            lambda ann: ann.change(region="north"),
            ["was changed after this page was opened", "Stored now: north"],
            302,
        ),
        (Customer.delete, ["was deleted after this page was opened"], 200),
        (lambda ann: make(2), ["Customer with this Email address already exists."], 200),
    ],
    ids=["changed", "deleted", "taken"],
)
def test_a_refused_form_says_why_keeps_what_was_typed_and_can_be_sent_again(
    meanwhile: Callable[[Customer], object],
    said: list[str],
    status_of_the_next: int,
    client: Client,
) -> None:
    ann = make(1)
    form = opened(client, page_of(ann)) | {"region": "south", "email": "C2@example.org"}
    meanwhile(ann)
    before = stored_items(Customer.table())

    refused = client.post(page_of(ann), form)

    assert refused.status_code == 200
    assert all(item in refused.text for item in ['value="south"', *said])
    assert stored_items(Customer.table()) == before
    assert entries(ann) == []
    again = client.post(page_of(ann), Form(refused.text).values)
    assert again.status_code == status_of_the_next


@pytest.mark.parametrize("when", ["before the form is sent", "just before the write"])
@pytest.mark.parametrize(
    ("gets", "takes"),
    [
        ({"is_superuser": True}, lambda clerk, team: clerk.change(is_superuser=False)),
        ({"is_superuser": True}, lambda clerk, team: clerk.change(is_active=False)),
        ({"permissions": {CHANGE}}, lambda clerk, team: clerk.change(permissions=None)),
        ({"permissions": {CHANGE}}, lambda clerk, team: clerk.change(is_staff=False)),
        ({"groups": {"crew"}}, lambda clerk, team: clerk.change(groups=None)),
        ({"groups": {"crew"}}, lambda clerk, team: team.change(permissions={"desk.view_seat"})),
        ({"groups": {"crew"}}, lambda clerk, team: team.delete()),
    ],
)
def test_a_form_is_refused_if_the_right_ended_after_it_was_shown(
    gets: dict[str, Any], takes: Any, when: str, project: None, engine: str
) -> None:
    team = Team.create(name="crew", permissions={CHANGE})
    clerk = clerk_with(**gets)
    customer = make(1)
    client = browser_of(clerk)
    form = opened(client, page_of(customer)) | {"region": "south"}

    with FaultProxy(engine) as proxy, through(proxy):
        if when == "just before the write":
            proxy.plan("TransactWriteItems", Meanwhile(lambda: takes(clerk, team)))
        else:
            takes(clerk, team)
        refused = client.post(page_of(customer), form)

    # Without the rights of staff the page leads to the sign-in page.
    assert refused.status_code in {403, 302}
    assert Customer.get(customer.pk).region is None
    assert entries(customer) == []
    if when == "before the form is sent":
        # What the write has read of a group counts for the next page, too.
        assert 'name="_save"' not in client.get(page_of(customer)).text


def clerk_with(*names: str, **values: Any) -> Clerk:
    """A member of staff, with these permissions."""
    rights = {"is_staff": True, "permissions": {f"desk.{name}" for name in names} or None}
    made: Clerk = Clerk.objects.create_user("ann", "ann@example.org", PASSWORD, **rights | values)
    return made


def test_a_user_who_may_only_delete_is_led_where_he_may_look(project: None) -> None:
    client = browser_of(clerk_with("delete_customer", "add_customer"))
    ann = make(0)
    bob = make(1)
    delete = partial(page_of, page="delete")

    for page, typed, leads_to in (
        (delete(ann), {}, "/admin/"),
        (f"{CUSTOMERS}add/", {**ANN, "_continue": ""}, "/admin/"),
        (f"{CUSTOMERS}add/", {**ANN, "email": "new@example.org"}, "/admin/"),
    ):
        answer = submit(client, page, **typed)
        assert answer.url == leads_to
        said = "Deleted: “" if "delete" in page else "was added successfully."
        assert said in client.get(leads_to).text
    links = re.findall('href="([^"]*)"', client.get(delete(bob)).text.partition("breadcrumbs")[2])
    assert {client.get(link).status_code for link in links if link.startswith("/admin/")} == {200}


def test_the_address_of_an_item_leads_to_its_form(client: Client) -> None:
    badge = Badge.create(code="a/b ü")

    shown = client.get(page_of(badge).removesuffix("change/"), follow=True)

    assert shown.redirect_chain == [(iri_to_uri(page_of(badge)), 302)]
    assert shown.status_code == 200


def test_an_action_without_permissions_needs_the_right_to_change(project: None) -> None:
    badge = Badge.create(code="b")
    client = browser_of(clerk_with("view_badge"))
    action = page_of(badge, "action/stamp")

    assert action not in client.get(page_of(badge)).text
    assert client.get(action).status_code == client.post(action).status_code == 403
    assert Badge.get("b").email is None


def test_a_clerk_grants_no_rights_and_neither_changes_nor_deletes_other_staff(
    project: None,
) -> None:
    boss = Clerk.objects.create_superuser("boss", "boss@example.org", PASSWORD)
    clerk = clerk_with("change_clerk", "delete_clerk")
    client = browser_of(clerk)

    form = opened(client, page_of(clerk))
    granted = {"is_superuser": "on", "permissions": "desk.add_seat", "groups": "crew"}
    sent = form | granted | {"email": "new@example.org"}
    assert client.post(page_of(clerk), sent).status_code == 302
    stored = Clerk.get(clerk.pk)
    assert not form.keys() & {*granted, "is_staff"}
    assert (stored.email, stored.is_superuser, stored.groups) == ("new@example.org", False, set())
    assert stored.permissions == clerk.permissions

    for other in (boss, Clerk.objects.create_user("eve", "eve@x.org", PASSWORD, is_staff=True)):
        shown = client.get(page_of(other)).text
        assert 'name="_save"' not in shown
        assert page_of(other, "action/move") not in shown
        assert client.post(page_of(other), form).status_code == 403
        assert client.post(page_of(other, "delete")).status_code == 403
        refused = run_action(client, "/admin/desk/clerk/", "delete_selected", [other.pk])
        assert "You do not have the right to do this." in refused.text
        assert Clerk.get(other.pk).stored == other.stored


NEW = "new@example.org"


def commit_by_a_page_of_the_project(client: Client, clerk: Clerk) -> None:
    write = Transaction()
    request = RequestFactory().get("/")
    site = cast(Any, default_site)
    request.user = Clerk.get(client.session["_auth_user_id"])  # type: ignore[assignment]  # a Model
    clerk.change(email=NEW, write=write)
    with suppress(PermissionDenied):
        site.commit(request, write, "move", "desk.change_clerk", on=clerk)


#: Each way to another email address of an account, and its deletion.
WAYS: dict[str, Callable[[Client, Clerk], object]] = {
    "the form": lambda client, clerk: client.post(
        page_of(clerk), opened(client, page_of(clerk)) | {"username": clerk.username, "email": NEW}
    ),
    "the page that deletes": lambda client, clerk: client.post(
        page_of(clerk, "delete"), Form(client.get(page_of(clerk, "delete")).text).values
    ),
    "a deletion in the list": lambda client, clerk: run_action(
        client, "/admin/desk/clerk/", "delete_selected", [clerk.pk]
    ),
    "an action for those who change accounts": lambda client, clerk: run_action(
        client, "/admin/desk/clerk/", "move", [clerk.pk]
    ),
    "an action for those who see accounts": lambda client, clerk: run_action(
        client, "/admin/desk/clerk/", "move_seen", [clerk.pk]
    ),
    "an action on another item": lambda client, clerk: run_action(
        client, "/admin/desk/badge/", "move", [Badge.create(code=clerk.pk).code]
    ),
    "a page of the project": commit_by_a_page_of_the_project,
}


@pytest.mark.parametrize(
    ("way", "rights"),
    [
        *product(WAYS, [{}, {"is_staff": True}]),
        ("the form", {"is_superuser": True}),
        ("the form", {"is_staff": True, "is_superuser": True}),
        ("the form", {"is_staff": True, "is_active": False}),
    ],
)
def test_only_a_superuser_writes_the_account_of_another_member_of_staff(
    way: str, rights: dict[str, Any], project: None
) -> None:
    names = ("change_clerk", "delete_clerk", "view_clerk", "change_badge")
    editor = clerk_with(*names)
    boss = Clerk.objects.create_superuser("boss", "boss@example.org", PASSWORD)

    for user, may_write in ((editor, not rights), (boss, True)):
        other = Clerk.objects.create_user("eve", "eve@example.org", PASSWORD, **rights)
        WAYS[way](browser_of(user), other)

        stored = Clerk.get_or_none(other.pk)
        assert (stored is None or stored.email == NEW) is may_write
        logged = list_entries(month_of(datetime.now(UTC))).items
        assert (user.pk in {item.by for item in logged}) is may_write
        if stored:
            stored.delete()


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_staff_writes_its_own_account(way: Any, project: None) -> None:
    editor = clerk_with("change_clerk", "delete_clerk", "view_clerk", "change_badge")

    way(browser_of(editor), editor)

    may_write = way not in (WAYS["the page that deletes"], WAYS["a deletion in the list"])
    assert (Clerk.get(editor.pk).email == NEW) is may_write


def run_action(client: Client, listed: str, action: str, keys: list[str], **typed: str) -> Any:
    """Run an action on the selected items of a list, and confirm it."""
    chosen = {"_selected_action": keys, "action": action, "index": "0"}
    asked = client.post(listed, chosen).text
    return client.post(listed, Form(asked).values | chosen | typed, follow=True)


@pytest.mark.parametrize(
    ("action", "said", "written"),
    [
        ("sign", "Sign: “", ("signed@example.org", "b")),
        # It writes another model under the same key: the right is a condition of that write.
        ("plan", "Plan: “", ("planned@example.org", "b")),
    ],
)
def test_an_action_may_also_write_the_item_that_gives_the_right(
    action: str, said: str, written: tuple[Any, Any], project: None
) -> None:
    badge = Badge.create(code="b")
    clerk = clerk_with("change_badge")

    page = page_of(badge, f"action/{action}")

    assert said in submit(browser_of(clerk), page, follow=True).text
    assert (Badge.get("b").email, Clerk.get(clerk.pk).pin) == written


@pytest.mark.parametrize("place", ["/admin/password_change/", "/password_change/", "/reset/"])
def test_a_form_of_a_new_password_says_that_the_user_changed_meanwhile(
    place: str, project: None, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It was imported with the user model of the site.
    monkeypatch.setattr("django.contrib.auth.views.UserModel", Clerk)
    clerk, page = clerk_with(), place
    client = browser_of(clerk)
    if place == "/reset/":
        token = default_token_generator.make_token(Clerk.get(clerk.pk))
        uid = urlsafe_base64_encode(clerk.pk.encode())
        page = client.get(f"/reset/{uid}/{token}/").url
    new = dict.fromkeys(("new_password1", "new_password2"), "another horse battery")
    form = {"old_password": PASSWORD, **new}

    with FaultProxy(engine) as proxy, through(proxy):
        proxy.plan("UpdateItem", Meanwhile(lambda: Clerk.get(clerk.pk).change(is_staff=False)))
        refused = client.post(page, form)
    assert refused.status_code == 200
    assert "The clerk was changed after this page was opened, so nothing was done." in refused.text
    assert Clerk.get(clerk.pk).check_password(PASSWORD)

    Clerk.get(clerk.pk).change(is_staff=True)
    assert client.post(page, form).url == f"{place}done/"
    assert Clerk.get(clerk.pk).check_password("another horse battery")


def test_the_right_to_change_does_not_allow_adding(client: Client, project: None) -> None:
    form = opened(client, "/admin/desk/badge/add/") | {"code": "new"}

    browser_of(clerk_with("change_badge")).post("/admin/desk/badge/new/change/", form)

    assert list(Badge.scan()) == []


def test_a_damaged_group_has_no_permissions_and_the_others_have_theirs(project: None) -> None:
    Team.create(name="crew", permissions={CHANGE})
    broken = {"name": {"S": "broken"}, "permissions": {"S": CHANGE}}
    put_item(Team.table(), **broken)
    client = browser_of(clerk_with(groups={"broken", "crew"}))

    assert submit(client, page_of(make(1)), region="south").status_code == 302
    assert client.get("/admin/desk/seat/").status_code == 403


def test_an_action_takes_a_bounded_number_of_items_and_reads_the_rights_once(
    project: None, max_requests: Any
) -> None:
    Team.create(name="crew", permissions={CHANGE, "desk.delete_customer"})
    client = browser_of(clerk_with(groups={"crew"}))
    keys = [make(number).pk for number in range(3)]

    chosen = {"_selected_action": keys, "action": "delete_selected", "index": "0"}

    listed = client.get(CUSTOMERS).text
    assert "Delete selected customers</option>" in listed
    assert "select the objects across all pages" not in listed
    many = {**chosen, "_selected_action": [str(number) for number in range(13)]}
    assert "Select at most 12 items." in client.post(CUSTOMERS, many, follow=True).text
    form = Form(client.post(CUSTOMERS, chosen).text).values | chosen
    with max_requests(USER + 1 + 1 + 3):
        client.post(CUSTOMERS, form)
    assert list(Customer.scan()) == []


def test_a_damaged_item_is_listed_as_damaged_and_described_only_to_users_who_may_see_it(
    client: Client,
) -> None:
    item = {"pk": {"S": "broken"}, "visits": {"S": "many"}}
    put_item(Customer.table(), **item)
    ann = make(1)
    other = browser_of(clerk_with("view_seat"))

    listed = client.get(CUSTOMERS).text
    assert ann.email in listed
    assert "visits" in content(listed)
    assert "broken" in content(client.get(f"{CUSTOMERS}broken/change/", follow=True).text)
    for page in ("change", "delete", "action/welcome"):
        assert other.get(f"{CUSTOMERS}broken/{page}/").status_code == 403


@pytest.mark.parametrize(
    "path", [f"badge/b/history/?before={'9' * 1100}", f"locker/?q=bo&p={'1' * 4400}.x", "badge/"]
)
def test_wrong_addresses_and_incomplete_items_do_not_break_a_page(
    path: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Badge, "__str__", lambda badge: badge.email.upper())
    Badge.create(code="b")

    assert client.get(f"/admin/desk/{path}", follow=True).status_code == 200


def test_the_address_of_an_empty_form_may_have_initial_values(client: Client) -> None:
    wrong = "visits=x&called=x&nothing=z&wants_mail=q&tags=a"
    form = opened(client, f"{CUSTOMERS}add/?club=chess&{wrong}")
    assert (form["club"], form["visits"], form["called_0"]) == ("chess", "0", "")


def test_editors_cannot_remove_their_own_rights_or_delete_themselves(
    client: Client, editor: Clerk
) -> None:
    assert submit(client, page_of(editor), email="new@example.org").status_code == 302
    form = opened(client, page_of(editor))
    del form["is_superuser"]

    refused = client.post(page_of(editor), form)
    deleted = submit(client, page_of(editor, "delete"), follow=True)

    assert "You cannot remove your own rights." in refused.text
    assert "You cannot delete your own account." in deleted.text
    stored = Clerk.get(editor.pk)
    assert (stored.email, stored.is_superuser) == ("new@example.org", True)
    assert [entry.what for entry in entries(editor)] == ["email"]


@pytest.mark.parametrize("count", [20, 100])
def test_the_first_page_a_search_and_the_tenth_page_cost_the_same_for_few_and_many_items(
    count: int, client: Client, max_requests: Any
) -> None:
    for number in range(count):
        make(number, region="north")
    with max_requests(USER + 3):
        client.get(CUSTOMERS)
    with max_requests(USER + 3):
        found = client.get(CUSTOMERS, {"q": "C7@example.org"})
    assert "1 of" not in content(found.text)
    assert "c7@example.org" in found.text
    address = f"{CUSTOMERS}?club=chess"
    seen: list[str] = []
    for _page in range(min(10, count // 5)):
        with max_requests(USER + 1):
            page = client.get(address).text
        seen += re.findall(r'change/">(c\d+@)', page)
        address = CUSTOMERS + next_of(page)
    assert seen == [f"c{number}@" for number in reversed(range(count))][:50]


def next_of(page: str) -> str:
    found = re.search(r'href="([^"]*)" rel="next"', page)
    return unescape(found[1]) if found else ""


def test_a_list_without_an_index_shows_each_item_once_and_says_that_there_is_more(
    client: Client, max_requests: Any
) -> None:
    badges = [Badge.create(code=f"b{n}", email=f"b{n}@example.org").code for n in range(120)]
    address, seen = "", []
    for _page in range(100):
        with max_requests(USER + 3):
            page = client.get(f"/admin/desk/badge/{address}").text
        seen += re.findall(r'change/">(b\d+)<', page)
        address = next_of(page)
        if not address:
            break
    assert sorted(seen) == sorted(badges)


@pytest.mark.parametrize(
    ("code", "floor"),
    [
        *[(b"\x00\xff", Decimal("1.50")), (b",/._", Decimal(-3))],
        *[(b"a", Decimal("-0")), (b"a", Decimal("1E-130"))],
        pytest.param(b"a", Decimal("1E+38"), marks=STORES_39_DIGITS),
    ],
)
def test_items_whose_keys_are_numbers_and_bytes_have_pages_and_guard_items(
    code: bytes, floor: Decimal, client: Client
) -> None:
    locker = Locker.create(floor=floor, code=code, owner="ann")
    page = page_of(locker)

    for listed in ("", "?q=ann", f"?q={quote(str(floor))}", f"?q={floor:f}"):
        listed = f"/admin/desk/locker/{listed}"
        assert f'href="{page}"' in client.get(listed).text
    assert "This field is required." in submit(client, page, owner="bob").text
    assert submit(client, page, owner="bob", _reason="sold").status_code == 302

    assert Locker.find(owner="bob") == locker
    assert not Locker.is_taken(owner="ann")
    assert [(entry.what, entry.reason) for entry in entries(locker)] == [("owner", "sold")]


def test_the_first_letters_of_a_searchable_value_find_items_page_by_page(
    client: Client, max_requests: Any
) -> None:
    for number in range(8):
        Locker.create(floor=1, code=bytes([number]), owner=f"{'bob' if number else 'an'}{number}")
    address, seen = "?q=bo", []
    while address:
        with max_requests(USER + 4):
            page = client.get(f"/admin/desk/locker/{address}").text
        seen.append(re.findall(r'field-owner">(\w+)', page))
        address = next_of(page)

    assert seen == [["bob1", "bob2", "bob3"], ["bob4", "bob5", "bob6"], ["bob7"]]
    asked, nothing = (client.get("/admin/desk/locker/", {"q": name}).text for name in ("b", "by"))
    assert ("at least two letters" in asked, "0 lockers" in content(asked)) == (True, False)
    assert ("at least two letters" in nothing, "0 lockers" in content(nothing)) == (False, True)
    # A term that is too short for one field may be the value of the next one.
    Locker.create(floor=7, code=b"7", owner="7b")
    assert "7b" in client.get("/admin/desk/locker/?q=7").text
    assert client.get("/admin/desk/locker/?q=bo&p=2.x").url == "/admin/desk/locker/"


@pytest.mark.parametrize("key", ["..", "a/b", "_2F", "add", 'é "&<', "1,2", " "])
def test_any_text_is_a_key(key: str, client: Client) -> None:
    badge = Badge.create(code=key)

    assert client.get(page_of(badge)).status_code == 200
    assert f'href="{iri_to_uri(page_of(badge))}"' in client.get("/admin/desk/badge/").text


@pytest.mark.parametrize(
    "path",
    [
        "seat/red,1e9999999/",
        "locker/1e9999999,00/",
        "locker/1,zz/",
        "locker/1/",
        "locker/x,00/",
        "locker/1.5,00/",
        "seat/red,x/",
        "seat/,1/",
        "badge/absent/",
    ],
)
def test_an_item_that_is_absent_or_cannot_exist_is_not_found(path: str, client: Client) -> None:
    # An absent item may have a history.
    for page in ("change", "delete", *(["history"] if "absent" not in path else [])):
        shown = client.get(f"/admin/desk/{path}{page}/", follow=True).text
        assert "doesn’t exist. Perhaps it was deleted?" in shown


def test_a_form_keeps_unknown_attributes_and_values_that_it_cannot_show_without_loss(
    client: Client,
) -> None:
    item = {
        "floor": {"N": "1"},
        "code": {"B": b"a"},
        "version": {"N": "1"},
        "size": {"N": "12345678901234567890123456789012345678"},
        "marks": {"NS": ["1", "12345678901234567890123456789"]},
        "parts": {"L": [{"S": "x"}, {"B": b"\xff"}]},
        "labels": {"M": {"a": {"SS": ["b"]}}},
        "picture": {"B": b"\x00\x01"},
        "unknown": {"M": {"of": {"N": "1.5"}}},
    }
    put_item(Locker.table(), **item)
    [locker] = Locker.scan()

    assert "0001" in content(client.get(page_of(locker)).text)
    assert submit(client, page_of(locker), owner="ann", _reason="sold").status_code == 302

    [stored] = scanned(Locker.table())
    stored["marks"]["NS"].sort()
    drawn = {name: stored[name] for name in ("version", "writeId")}
    assert stored == {**item, **drawn, "owner": {"S": "ann"}}


@pytest.mark.parametrize(
    ("tags", "is_shown"), [({"a", "b"}, True), ({"a", "b\nc"}, False), ({" a"}, False)]
)
def test_values_that_come_back_unchanged_are_kept_and_a_set_that_lines_cannot_hold_is_read_only(
    tags: set[str], is_shown: bool, client: Client
) -> None:
    notes, called = " one\ntwo ", datetime(2026, 11, 23, 1, 2, 3, 456789, UTC)
    others = {"details": {"big": 2**60}, "balance": Decimal("1.25")}
    ann = make(1, notes=notes, called=called, tags=tags, **others)

    assert ("tags" in opened(client, page_of(ann))) is is_shown
    assert submit(client, page_of(ann)).status_code == 302

    assert entries(ann) == []
    assert Customer.get(ann.pk).stored == ann.stored


@pytest.mark.parametrize(("typed", "stored"), [(str(2**60 + 1), 2**60 + 1), ("1.5", 1.5)])
def test_a_number_is_stored_as_it_is_typed(typed: str, stored: Any, client: Client) -> None:
    page = page_of(Locker.create(floor=1, code=b"a"))

    for unfit in ("0.12345678901234567890123", "nan", "-inf", "1e9999999"):
        assert "Enter a number." in submit(client, page, size=unfit, _reason="x").text
    assert submit(client, page, size=typed, _reason="measured").status_code == 302

    assert Locker.get(1, b"a").size == stored


def test_no_item_of_a_list_is_selected_at_first_and_names_are_escaped(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Badge, "__str__", lambda badge: f'<b>"{badge.code}"')
    badge, listed = Badge.create(code="b"), "/admin/desk/badge/"
    chosen = {"_selected_action": "b", "action": "stamp"}

    first = client.get(listed).text
    asked = client.post(listed, chosen).text
    submit(client, page_of(badge), email="b@example.org")
    pages = (page_of(badge), listed, page_of(badge, "history"), "/admin/")
    shown = [first, asked, *(client.get(page).text for page in pages)]

    [checkbox] = re.findall(r"<input[^>]*_selected_action[^>]*>", first)
    assert "checked" not in checkbox
    assert all("&lt;b&gt;&quot;b&quot;" in name and '<b>"' not in name for name in shown)


@pytest.mark.parametrize(
    "options",
    [
        {"get_exclude": lambda *args: ["visits"]},
        {"exclude": ["visits"]},
        {"form": modelform_factory(Customer, fields=["email", "club", "region"])},
        {"form": modelform_factory(Customer, exclude=["visits"])},
    ],
)
def test_what_an_option_or_the_form_leaves_out_is_neither_shown_nor_taken(
    options: dict[str, Any], client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = make(1)
    for name, value in options.items():
        monkeypatch.setattr(type(default_site._registry[Customer]), name, value)

    assert "visits" not in opened(client, page_of(ann))
    assert submit(client, page_of(ann), visits="7", region="x").status_code == 302

    assert "Visits" not in content(client.get(page_of(ann)).text)
    assert (Customer.get(ann.pk).visits, Customer.get(ann.pk).region) == (0, "x")


class Overriding(ModelAdmin):
    """Calls methods as overrides of Django's ModelAdmin do."""

    save_on_top, view_on_site = True, False
    actions = ("delete_selected", "count")

    def change_view(
        self, request: Any, object_id: str, form_url: str = "", extra: Any = None
    ) -> Any:
        return super().change_view(request, object_id, "/elsewhere/", {"title": "Own"})

    def response_add(self, request: Any, obj: Any, post_url_continue: Any = None) -> Any:
        self.message_user(request, "Said", "warning", "tag", True)
        return super().response_add(request, obj, "/next/")


def test_methods_take_the_arguments_of_djangos_model_admin(
    site: AdminSite, editor: Clerk, rf: RequestFactory
) -> None:
    site.add_action(lambda *args: None, "count")
    for name in ("count", "delete_selected"):
        site.disable_action(name)
    own = Overriding(Customer, site)
    ann = make(1)
    request: Any = rf.post("/", {"_continue": ""})
    request.user, request._messages = editor, CookieStorage(rf.get("/"))

    assert [*own.get_actions(request)] == ["delete_selected", "count"]
    assert [*ModelAdmin(Customer, site).get_actions(request)] == []
    assert own.get_object(request, ann.pk, None) == ann
    assert own.response_add(request, ann).url == "/next/"
    assert "tag warning" in [message.tags for message in request._messages]
    request.method = "GET"
    deletion: Any = own.delete_view(request, ann.pk, {"title": "Own"})
    assert "<h1>Own</h1>" in deletion.render().text
    shown = own.change_view(request, ann.pk).render().text
    assert all(text in shown for text in ("<h1>Own</h1>", 'action="/elsewhere/"'))
    assert (shown.count('name="_save"'), ann.get_absolute_url() in shown) == (2, False)


def test_an_action_asks_reports_each_result_and_never_acts_on_an_overtaken_item(
    client: Client, editor: Clerk
) -> None:
    ann, bob, eve, dan = (make(number) for number in range(4))
    chosen = {"_selected_action": [item.pk for item in (ann, bob, eve, dan)], "action": "welcome"}
    asked = client.post(CUSTOMERS, chosen | {"index": "0"})
    form = Form(asked.text).values | chosen | {"_reason": "new"}
    bob.change(region="north")
    eve.delete()
    dan.change(is_known=True)

    wrong = client.post(CUSTOMERS, form | {"_password": "guessed"})
    done = client.post(CUSTOMERS, form | {"_password": PASSWORD}, follow=True)

    assert "Are you sure?" in asked.text
    assert "This is not your password." in wrong.text
    assert re.findall(r'<li class="(\w+)">(.*?)</li>', done.text) == [
        ("success", "Welcome: “c0@example.org”"),
        ("error", f"“c1@example.org”, “c3@example.org”: {OVERTAKEN}"),
        ("warning", f"“customer {eve.pk}”: It was deleted after this page was opened."),
    ]
    assert [Customer.get(item.pk).is_known for item in (ann, bob)] == [True, False]
    [entry] = entries(ann)
    assert (entry.action, entry.reason, entry.by) == ("welcome", "new", editor.pk)
    assert entry.what == "with a card"
    assert entries(bob) == entries(eve) == entries(dan) == []


def test_a_page_of_the_project_logs_an_action_without_an_item_if_the_user_has_the_right(
    editor: Clerk, rf: RequestFactory
) -> None:
    def commit() -> bool:
        request: Any = rf.get("/")
        request.user = editor
        site: Any = default_site
        done: bool = site.commit(request, Transaction(), "count", "desk.view_customer", what="all")
        return done

    assert commit()
    Clerk.get(editor.pk).change(is_staff=False)
    with pytest.raises(PermissionDenied):
        commit()

    [entry] = list_entries(month_of(datetime.now(UTC))).items
    assert (entry.action, entry.what, entry.by, entry.on) == ("count", "all", editor.pk, None)


def test_one_item_has_its_actions_on_its_page_and_deletions_may_ask_for_the_password(
    client: Client, editor: Clerk, settings: Any
) -> None:
    ann = make(1)
    locker = Locker.create(floor=1, code=b"a", owner="ann")
    action = page_of(ann, "action/welcome")
    delete = page_of(locker, "delete")
    better = "django.contrib.auth.hashers.ScryptPasswordHasher"
    settings.PASSWORD_HASHERS = [better, *settings.PASSWORD_HASHERS]

    assert action in client.get(page_of(ann)).text
    assert submit(client, action, _password=PASSWORD).url == page_of(ann)
    assert Customer.get(ann.pk).is_known
    # The session goes on, although the check has upgraded the hash.
    assert Clerk.get(editor.pk).password.startswith("scrypt")

    assert submit(client, delete, _reason="broken", _password="guessed").status_code == 200
    assert submit(client, delete, _reason="broken", _password=PASSWORD).status_code == 302
    assert list(Locker.scan()) == []
    history = client.get(page_of(locker, "history"))
    assert "Deleted broken" in content(history.text)


def test_a_sensitive_attribute_is_never_shown(client: Client) -> None:
    clerk = Clerk.objects.create_user("ann", "ann@example.org", PASSWORD, pin="of-ann-alone")
    assert all(is_sensitive(Clerk, name) for name in ("pin", "password", "session_epoch"))
    for page in (page_of(clerk), "/admin/desk/clerk/", "/admin/desk/clerk/?q=ann"):
        shown = client.get(page).text
        assert not any(item in shown for item in ("of-ann-alone", "Pin", clerk.password))


def test_only_staff_gets_in_after_signing_in(project: None) -> None:
    Clerk.objects.create_user("ann", "ann@example.org", PASSWORD)
    Clerk.objects.create_superuser("boss", "boss@example.org", PASSWORD)
    browser = Client()
    asked = browser.get(CUSTOMERS)
    assert (asked.status_code, asked.url) == (302, f"/admin/login/?next={CUSTOMERS}")

    assert submit(browser, asked.url, username="ann", password=PASSWORD).status_code == 200
    entered = submit(browser, asked.url, username="boss", password=PASSWORD)

    assert (entered.status_code, entered.url) == (302, CUSTOMERS)
    assert browser.get("/admin/password_change/done/").status_code == 200
    assert browser.post("/admin/logout/").status_code == 200
    assert browser.get("/admin/").status_code == 302


def test_the_pages_are_in_japanese_if_the_browser_asks_for_it(editor: Clerk) -> None:
    client = browser_of(editor, headers={"accept-language": "ja"})
    ann = make(1)
    for page in (CUSTOMERS, page_of(ann), page_of(ann, "delete"), "/admin/"):
        shown = client.get(page).text
        assert all(text in shown for text in ('lang="ja"', "ログアウト"))
    assert "理由" in client.get(page_of(ann)).text
    assert "削除しました: “" in submit(client, page_of(ann, "delete"), follow=True).text


def test_a_form_of_a_new_user_that_is_sent_twice_adds_once_and_is_logged_once(
    client: Client,
) -> None:
    add = "/admin/desk/clerk/add/"
    form = opened(client, add) | {"username": "ann", "email": "ann@example.org"}
    weak = client.post(add, form | {"password1": "ann", "password2": "other"})
    right = {"password1": PASSWORD, "password2": PASSWORD}

    assert [client.post(add, form | right).status_code for _twice in range(2)] == [302, 302]

    assert "The two password fields" in weak.text
    ann = Clerk.find(username="ann")
    assert ann.check_password(PASSWORD)
    assert [entry.action for entry in entries(ann)] == ["add"]


def test_rights_are_granted_by_lines(client: Client) -> None:
    clerk = clerk_with()
    lines = {"permissions": f"{CHANGE}\r\n desk.view_seat \r\n", "groups": "crew"}
    Team.create(name="crew")

    assert submit(client, page_of(clerk), **lines).status_code == 302
    stored = Clerk.get(clerk.pk)
    assert (stored.permissions, stored.groups) == ({CHANGE, "desk.view_seat"}, {"crew"})
    assert submit(client, page_of(clerk), permissions="").status_code == 302
    assert Clerk.get(clerk.pk).permissions == set()


@pytest.mark.parametrize("name", ["crew", "n" * 3000, "#"])
def test_a_permission_or_a_group_that_does_not_exist_is_refused_at_its_field(
    name: str, client: Client, max_requests: Any
) -> None:
    team = Team.create(name="others")
    clerk = clerk_with()
    lines = f"others\r\n{name}\r\nothers"

    for page, typed in (
        (page_of(clerk), {"groups": lines}),
        (page_of(clerk), {"permissions": f"{CHANGE}\r\n{name}.x"}),
        (page_of(team), {"permissions": f"{CHANGE}\r\n{name}.x"}),
    ):
        form = opened(client, page)
        with max_requests(USER + 1 + len(set(lines.split()))):
            refused = client.post(page, form | typed)
        [field] = typed
        unknown = name if field == "groups" else f"{name}.x"
        assert refused.status_code == 200
        assert f"These {field} do not exist: {unknown}." in content(refused.text)
    assert Clerk.get(clerk.pk).stored == clerk.stored
    assert Team.get("others").permissions == set()


#: Options that list a partition of an index.
BY_CLUB = {"list_index": Customer.by_club, "list_partition": "a"}


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"list_display": ["emial"]}, "E009: list_display names emial, which is not an attribute"),
        ({"readonly_fields": ["nothing"]}, "E009: readonly_fields names nothing"),
        ({"search_fields": "email"}, "E009: search_fields must be a list, not a text."),
        ({"ordering": "joined"}, "E009: ordering must be a list, not a text."),
        ({"fieldsets": [("More", {"field": []})]}, "E009: The fieldset 'More' must have the key"),
        ({"radio_fields": {"email": 1}}, "E009: radio_fields names email, which has no choices."),
        ({"fields": [("email", "nothing")]}, "E009: fields names nothing"),
        ({"list_display": ["pin"]}, "E009: list_display names pin, which is declared sensitive"),
        ({"search_fields": ["pin"]}, "E009: search_fields names pin, which is declared sensitive"),
        ({"list_filter": [("club", object)]}, "E009: list_filter names ('club', <class 'object'>)"),
        ({"list_filter": ["plan"]}, "E010: list_filter names plan, which is not the partition"),
        ({"search_fields": ["notes"]}, "E010: search_fields names notes, which is neither unique"),
        ({"search_fields": ["card"]}, "E010: search_fields names card"),
        ({"ordering": ["-joined"]}, "E010: ordering is -joined, but the list is read from the"),
        ({"ordering": ["email"], "list_filter": ["club"]}, "E010: ordering is email, but no index"),
        ({"list_index": Customer.by_club}, "E010: list_index must be an index of the model"),
        (
            {"list_index": Customer.by_region, "list_partition": "a", "ordering": ["-joined"]},
            "E010: ordering is -joined, which is not the sort key of list_index",
        ),
        ({**BY_CLUB, "ordering": ["joined", "pk"]}, "E010: ordering names several"),
        ({**BY_CLUB, "ordering": ["-joined"]}, ""),
        ({"ordering": None}, ""),
        ({"list_filter": ["club", "region"], "search_fields": ["email", "club"]}, ""),
        ({"list_display": [str, "unique_email", "get_absolute_url", "__str__"]}, ""),
        ({"model_or_iterable": Chair}, "E011: A request id of Chair needs a guard item"),
    ],
)
def test_check_refuses_what_no_query_can_serve_and_names_what_to_declare(
    options: dict[str, Any], found: str, site: AdminSite
) -> None:
    of_clerks = {"model_or_iterable": Clerk, "admin_class": UserAdmin}
    of_customers = {"model_or_iterable": Customer}
    site.register(**{**(of_clerks if "pin" in str(options) else of_customers), **options})

    messages = [f"{item.id}: {item.msg}" for item in site.check(None)]

    assert (messages == []) if not found else messages[0].startswith(f"dynamo.{found}")
    assert all(item.hint for item in site.check(None) if item.id == "dynamo.E010")


def test_check_names_relational_models_and_missing_settings(site: AdminSite) -> None:
    site.register(Session, ModelAdmin)
    site.register(Customer, ContribsModelAdmin)  # type: ignore[arg-type]

    found = [check.msg for check in run_checks(tags=["admin"]) if check.id == "dynamo.E014"]
    with override_settings(TEMPLATES=[{**PROJECT["TEMPLATES"][0], "OPTIONS": {}}]):
        missing = {check.id for check in run_checks(tags=["admin"])}

    assert sorted(item.split()[0] for item in found) == ["Customer", "Session"]
    assert missing == {"dynamo.E014", "dynamo.E011"}
    both = override_settings(INSTALLED_APPS=["dynamo.admin", "django.contrib.admin"])
    with pytest.raises(ImproperlyConfigured, match="duplicates: admin"):
        both.enable()
