"""The address book: adding, finding, changing and deleting the customers of an account."""

import re
import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from invoices.document.invoice import Customer
from invoices.exceptions import AddressBookFull
from invoices.models import CustomerItem
from invoices.pages.customers import NewCustomerForm
from invoices.store import customers as book, lists
from invoices.store.customers import add_customer, customer_of, list_customers
from invoices.store.issuing import today
from invoices.store.lists import all_invoices
from invoices.store.settlement import mark_paid
from tests.commands import run
from tests.factories import PASSWORD, make_user
from tests.faults.kinds import DropReply, Meanwhile
from tests.faults.proxy import FaultProxy
from tests.invoice_factories import issued
from tests.invoices.forms import NEW, typed
from tests.pages import Page, form_values
from tests.policies import rights, rights_for
from tests.requests import Requests

BOOK = "/invoices/customers/"
BOB = Customer("Bob Ltd", "2 Low Road\nLeeds", "GB980780684", "GB", email="bob@example.org")


@pytest.fixture
def account(engine: str) -> str:
    """The primary key of an account."""
    return make_user().pk


def added(account: str, customer: Customer | str = BOB) -> CustomerItem:
    customer = Customer(customer) if isinstance(customer, str) else customer
    return add_customer(account, customer, request_id=str(uuid.uuid4()))


def names(account: str, search: str = "") -> list[str]:
    return [customer.name for customer in list_customers(account, search)]


def test_a_customer_gets_the_next_number_of_the_account(
    account: str, requests_sent: Requests
) -> None:
    first = added(account)
    second = added(account, "Carol")

    assert requests_sent.operations == ["UpdateItem", "TransactWriteItems"] * 2
    assert (first.number, second.number, added(make_user().pk).number) == ("1", "2", "1")
    assert customer_of(CustomerItem.get(account, first.id)) == replace(BOB, number="1")


def test_the_same_request_adds_one_customer(account: str, proxy: FaultProxy) -> None:
    proxy.plan("TransactWriteItems", DropReply())
    first = add_customer(account, BOB, request_id="r")
    first.change(name="Bob & Sons")

    again = add_customer(account, BOB, request_id="r")

    assert (again.number, again.name) == ("1", "Bob & Sons")
    assert names(account) == ["Bob & Sons"]


def test_a_list_is_ordered_by_name_and_can_be_searched_and_ends(account: str) -> None:
    for name in ("carol", "Bob", "Éva", "株式会社ｶﾞｽ"):
        added(account, name)

    assert names(account)[:2] == ["Bob", "carol"]
    assert names(account, "e\u0301") == ["Éva"]
    assert names(account, "ガス") == ["株式会社ｶﾞｽ"]
    assert names(account, "2") == ["Bob"]
    found = list_customers(account, limit=3)
    rest = list_customers(account, after=found.next or "", limit=3)
    assert [customer.name for customer in [*found, *rest]] == names(account)
    assert (len(found), rest.next) == (3, None)


def test_a_list_reads_names_and_numbers_only(account: str, requests_sent: Requests) -> None:
    added(account)
    requests_sent.clear()

    list_customers(account)

    [request] = requests_sent.of("Query")
    assert request["ProjectionExpression"] == "#id, #number, #name"


# The bound ----------------------------------------------------------------------------------------


def test_an_account_has_at_most_so_many_customers_also_if_several_are_added_at_once(
    account: str, settings: Any, at_once: Callable[..., list[Any]]
) -> None:
    settings.INVOICES_MAX_CUSTOMERS = 5
    first = [added(account) for _customer in range(4)]

    def add(number: int) -> str:
        try:
            return add_customer(account, BOB, request_id=str(number)).id
        except AddressBookFull as error:
            return f"full at {error.limit}"

    answers = at_once(add, 4)

    assert sorted(answers)[1:] == ["full at 5"] * 3
    assert len(names(account)) == 5
    again = add_customer(account, BOB, request_id=min(answers))
    assert again.id == min(answers)
    first[0].delete()
    assert add(9) == "9"
    assert add(10) == "full at 5"


def test_customers_that_are_added_at_once_are_all_added(
    account: str, at_once: Callable[..., list[Any]]
) -> None:
    numbers = at_once(lambda _number: added(account).number, 6)

    assert len(set(numbers)) == len(names(account)) == 6


def test_a_full_address_book_is_said_in_the_form(client: Client, ann: User, settings: Any) -> None:
    settings.INVOICES_MAX_CUSTOMERS = 1
    added(ann.pk)

    refused = sent(client, BOOK + "new/", name="Carol")

    assert "The address book has 1 customers, and more are not allowed." in refused.errors[""][0]
    assert refused.value("name") == "Carol"
    assert names(ann.pk) == ["Bob Ltd"]


# Pages --------------------------------------------------------------------------------------------


def sent(client: Client, address: str, **values: str) -> Page:
    """The page after sending the form at `address` with these values."""
    return Page(client.post(address, form_values(client, address, **values), follow=True))


def test_a_customer_is_added_changed_and_deleted_by_pages_and_with_its_account(
    client: Client, ann: User, requests_sent: Requests
) -> None:
    assert sent(client, BOOK + "new/", name="Bob").messages == ["Customer 1 was added."]
    [item] = list_customers(ann.pk)
    address = f"{BOOK}{item.id}/"
    sent(client, address, name="Bob & Sons", country="GB")
    assert names(ann.pk) == ["Bob & Sons"]
    assert sent(client, f"{address}delete/").messages == ["The customer was deleted."]
    assert client.get(address).status_code == 404

    for _ in range(30):
        added(ann.pk)
    other = added(make_user().pk)
    client.post("/accounts/delete/", {"password": PASSWORD})

    assert (names(ann.pk), names(other.account)) == ([], ["Bob Ltd"])
    needed = {item for item in rights_for(requests_sent) if item[0] == "customers"}
    assert needed == {right for right in rights("site") if right[0] == "customers"}


def test_a_vat_id_is_stored_as_its_country_writes_it(client: Client, ann: User) -> None:
    for name, country, vat_id, stored in (
        ("a", "FR", "fr 40 303 265 045", "FR40303265045"),
        ("b", "", "el 094259216", "EL094259216"),
        ("c", "CH", "CHE107787577MWST", "CHE-107.787.577 MWST"),
        ("d", "CH", "DE136695976", "DE136695976"),
        ("e", "GB", "xi 980 7806 84", "XI980780684"),
        ("f", "US", "12-3456789", "12-3456789"),
        ("g", "", "on request", "on request"),
        ("h", "", "xi 980 7806 84", "XI980780684"),
    ):
        party = {"name": name, "country": country, "vat_id": vat_id}
        client.post(BOOK + "new/", party | {"request_id": NewCustomerForm.new_request_id()})
        client.post(NEW, typed(**{f"customer_{name}": text for name, text in party.items()}))

        newest = list_customers(ann.pk)[-1]
        assert CustomerItem.get(ann.pk, newest.id).vat_id == stored
        latest = next(iter(all_invoices(ann.pk, timezone.localdate().year)))
        assert latest.customer.vat_id == stored


def test_the_pages_of_the_list_lead_through_all_customers(
    client: Client, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(book, "list_customers", partial(list_customers, limit=2))
    for name in "edcba":
        added(ann.pk, name)

    shown, address = "", BOOK
    while address:
        text = client.get(address).content.decode()
        shown += "".join(re.findall(r"<bdi>(.)</bdi>", text))
        [address] = re.findall(r'rel="next" href="(.*)"', text) or [""]
        address = address and BOOK + address

    assert shown == "abcde"


@pytest.mark.parametrize(
    ("country", "vat_id"),
    [("FR", "FR12345678901"), ("DE", "FR12345678901"), ("", "FR12345678901"), ("FR", "on request")],
)
def test_what_is_not_a_vat_id_is_refused_at_the_field(
    client: Client, ann: User, country: str, vat_id: str
) -> None:
    party = {"name": "Bob", "country": country, "vat_id": vat_id}
    in_book = party | {"request_id": NewCustomerForm.new_request_id()}
    on_invoice = typed(**{f"customer_{name}": text for name, text in party.items()})
    more = [f"--customer-{name.replace('_', '-')}={party[name]}" for name in ("country", "vat_id")]

    for url, form, field in (
        (BOOK + "new/", in_book, "vat_id"),
        (NEW, on_invoice, "customer_vat_id"),
        (NEW, on_invoice | {"preview": "1"}, "customer_vat_id"),
    ):
        assert f"“{vat_id}” is not a VAT ID" in Page(client.post(url, form)).errors[field][0]
    _out, error, code = run(
        *("issueinvoice", "--user", "ann", "--customer", "Bob", "--line", "Work;1;1;1"), *more
    )
    assert (code, f"Customer VAT ID: “{vat_id}” is not" in error) == (1, True)
    assert names(ann.pk) == []
    assert list(all_invoices(ann.pk, timezone.localdate().year)) == []


def test_an_error_is_shown_at_its_field(client: Client, ann: User) -> None:
    form = {"name": "Bob", "request_id": NewCustomerForm.new_request_id()}

    for field, text in (("name", ""), ("email", "x"), ("country", "Germany")):
        assert field in Page(client.post(BOOK + "new/", form | {field: text})).errors
    assert names(ann.pk) == []


def test_a_change_can_be_sent_twice_and_an_outdated_page_changes_nothing(
    client: Client, ann: User
) -> None:
    item = added(ann.pk)
    address = f"{BOOK}{item.id}/"
    form = form_values(client, address, name="Carol")
    deletion = form_values(client, f"{address}delete/")
    client.post(address, form)

    assert Page(client.post(address, form, follow=True)).messages[-1] == "The customer was saved."
    answer = client.post(address, form | {"name": "D"})
    assert "<h1><bdi>Carol</bdi></h1>" in answer.content.decode()
    outdated = Page(answer)
    kept = Page(client.post(f"{address}delete/", deletion))
    for page in (outdated, kept):
        assert "was changed after this page was opened, so nothing was done" in page.errors[""][0]
    assert outdated.value("name") == "D"
    assert "Stored now: Carol" in outdated.errors["name"]
    assert names(ann.pk) == ["Carol"]


@pytest.mark.parametrize("page", ["", "delete/"])
def test_a_customer_that_changes_during_the_request_stays_as_it_is_then(
    client: Client, ann: User, proxy: FaultProxy, page: str
) -> None:
    item = added(ann.pk)
    address = f"{BOOK}{item.id}/{page}"
    form = form_values(client, address)
    operation = "DeleteItem" if page else "UpdateItem"
    proxy.plan(operation, Meanwhile(lambda: item.change(name="Dan")))

    refused = Page(client.post(address, form | ({} if page else {"name": "Carol"})))

    assert "was changed after this page was opened, so nothing was done" in refused.errors[""][0]
    assert names(ann.pk) == ["Dan"]


def test_a_customer_of_an_invoice_is_saved_unless_the_address_book_has_it(
    client: Client, ann: User
) -> None:
    save = "Save the customer…"
    known = added(ann.pk)
    of_book = issued(ann.pk, customer=customer_of(known))
    typed = issued(ann.pk, customer=BOB.name.upper())
    of_carol = Page(client.get(f"{BOOK}new/?from={issued(ann.pk, customer='Carol').label}"))

    assert of_carol.value("name") == "Carol"
    assert save not in Page(client.get(f"/invoices/{of_book.label}/")).text
    assert save in Page(client.get(f"/invoices/{typed.label}/")).text
    answer = client.get(f"{BOOK}new/?from={typed.label}", follow=True)
    assert answer.redirect_chain == [(f"{BOOK}{known.id}/", 302)]
    assert Page(answer).messages == ["Customer 1 of your address book has this name."]


def test_another_accounts_customer_is_not_found(client: Client, ann: User) -> None:
    address = f"{BOOK}{added(make_user().pk).id}/"

    assert client.get(address).status_code == 404
    assert client.post(f"{address}delete/").status_code == 404


# The invoice form ---------------------------------------------------------------------------------


def test_a_new_invoice_begins_with_the_data_of_a_customer(client: Client, ann: User) -> None:
    item = added(ann.pk)

    page = Page(client.get(f"{NEW}?customer={item.id}"))

    found = [page.value(f"customer_{name}").strip() for name in ("name", "address", "number")]
    assert found == ["Bob Ltd", "2 Low Road\nLeeds", "1"]
    assert client.get(f"{NEW}?customer={'x' * 2_000}").status_code == 404


def test_a_customer_is_found_by_a_part_of_its_name_or_chosen_and_typed_values_are_kept(
    client: Client, ann: User
) -> None:
    item = added(ann.pk)
    for name in ("Carol", "Bobby"):
        added(ann.pk, name)

    for name, button, found, text in (
        ("ltd", {"find_customer": "1"}, BOB.name, "GB980780684"),
        ("Zoe", {"find_customer": "1"}, "Zoe", "No customer matches “Zoe”."),
        ("bob", {"find_customer": "1"}, "bob", "Bobby (3)"),
        ("bob", {"use_customer": item.id}, BOB.name, "GB980780684"),
        ("Zoe", {"use_customer": "x" * 2_000}, "Zoe", "This customer was deleted meanwhile."),
    ):
        typed = {"currency": "EUR", "note": "Typed", "lines-0-description": "Tea"}
        page = Page(client.post(NEW, typed | {"customer_name": name} | button))
        assert (page.value("note"), page.value("lines-0-description")) == ("Typed", "Tea")
        assert page.value("customer_name") == found
        assert text in page.text + page.value("customer_vat_id")


def test_enter_finds_the_customer_until_a_line_is_typed(client: Client, ann: User) -> None:
    added(ann.pk)
    typed = {"customer_name": "bob", "lines-TOTAL_FORMS": "1", "enter": "1"}

    for line, found, has_another in (
        ({"lines-0-quantity": "1"}, BOB.name, False),
        ({"lines-0-description": "Work"}, "bob", True),
    ):
        page = Page(client.post(NEW, typed | line))
        assert page.value("customer_name") == found
        assert ("lines-1-description" in page.fields) == has_another


def test_a_customers_page_shows_its_own_invoices_and_what_is_open(
    client: Client, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = added(ann.pk, "BOB")
    year = today().year
    day = today()
    labels = [issued(ann.pk, issued_on=day, customer="Bob").label for _invoice in range(3)]
    for customer in ("Bobby", "Bobby"):
        issued(ann.pk, issued_on=day, customer=customer)
    mark_paid(ann.pk, labels[0], day)

    def shown() -> tuple[list[str], str]:
        page = client.get(f"{BOOK}{item.id}/")
        text = " ".join(Page(page).text.split())
        return re.findall(r'href="/invoices/([\d-]+)/"', page.content.decode()), text

    found, text = shown()
    assert found == labels[::-1]
    assert "Open €238.00 2 invoices" in text
    assert "older invoices" not in text

    # So many others have similar names that older invoices are on another page.
    monkeypatch.setattr(lists, "list_invoices", partial(lists.list_invoices, limit=2))
    found, text = shown()
    assert found == labels[:0:-1]
    assert "Older invoices are not listed here." in text
    older = f"?customer=BOB&amp;year={year}&amp;before=2"
    assert older in client.get(f"{BOOK}{item.id}/").content.decode()


def test_customers_are_suggested_by_a_part_of_their_name(client: Client, ann: User) -> None:
    item = added(ann.pk, "Café Bob")
    added(make_user().pk, "Bobby")

    for name, found in {"cafe": {"Café Bob (1)": item.id}, "zzz": {}, " ": {}}.items():
        assert client.get(BOOK + "names/", {"name": name}).json() == found
