"""What the invoices of an account say of their seller: its pages, and its end."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from accounts.exceptions import StaleUser
from accounts.models import User
from accounts.services import delete
from invoices.models import SELLER_VALUES, SellerProfile
from invoices.store.sellers import open_profile, profile_of
from tests.factories import make_user
from tests.faults.kinds import Meanwhile
from tests.faults.proxy import FaultProxy
from tests.invoice_factories import sell_as
from tests.items import scanned
from tests.pages import Page, arrive, form_values, meanwhile
from tests.requests import OF_EVERY_PAGE, Requests

SELLER, PAYMENT = "/invoices/seller/", "/invoices/seller/payment/"

#: By page and name: a text as it is typed, and as it is stored.
PAGES: dict[str, dict[str, tuple[str, object]]] = {
    SELLER: {
        "name": ("Ann Ltd", "Ann Ltd"),
        "address": ("1 High Street\r\nLondon", "1 High Street\nLondon"),
        "country": ("DE", "DE"),
        "vat_id": ("de 136 695 976", "DE136695976"),
        "tax_number": (" 12/345/67890 ", "12/345/67890"),
    },
    PAYMENT: {
        "account_holder": ("Ann Ltd", "Ann Ltd"),
        "iban": ("de89 3704 0044 0532 0130 00", "DE89370400440532013000"),
        "bic": ("cobadeffxxx", "COBADEFFXXX"),
        "currency": ("EUR", "EUR"),
        "payment_days": ("14", 14),
        "payment_terms": ("Within 14 days.\r\nNo discount.", "Within 14 days.\nNo discount."),
    },
}
TYPED = {
    url: {name: typed for name, (typed, _stored) in values.items()} for url, values in PAGES.items()
}
STORED = {name: stored for values in PAGES.values() for name, (_typed, stored) in values.items()}


def stored_seller(user: User) -> dict[str, object]:
    profile = profile_of(user.pk)
    return {name: getattr(profile, name) for name in STORED}


def items() -> list[Any]:
    return scanned(SellerProfile.table())


def test_the_pages_store_the_seller(client: Client, ann: User) -> None:
    for url, typed in TYPED.items():
        response = client.post(url, typed)
        assert (response.status_code, response["Location"]) == (302, url)
        assert Page(client.get(url)).messages == ["Your details were saved."]

    assert stored_seller(ann) == STORED
    assert Page(client.get(SELLER)).value("address") == "1 High Street\nLondon"
    assert Page(client.get(PAYMENT)).value("iban") == "DE89 3704 0044 0532 0130 00"
    for url, typed in TYPED.items():
        client.post(url, dict.fromkeys(typed, ""))
    assert stored_seller(ann) == dict.fromkeys(STORED)


def test_the_pages_have_all_values_of_the_seller(client: Client, ann: User) -> None:
    shown = client.get(SELLER).text + client.get(PAYMENT).text

    assert [name for name in SELLER_VALUES if f'name="{name}"' not in shown] == []


@pytest.mark.parametrize(
    ("url", "name", "text", "told"),
    [
        (PAYMENT, "iban", "DE89 3704 0044 0532 0130 01", "0130 01” is not an IBAN"),
        (PAYMENT, "bic", "COBADE", "“COBADE” is not a BIC"),
        (SELLER, "vat_id", "DE136695977", "“DE136695977” is not a VAT ID"),
        (SELLER, "vat_id", "FR40303265045", "“FR40303265045” is not a VAT ID"),
        (PAYMENT, "payment_days", "366", "less than or equal to 365"),
        (PAYMENT, "payment_days", "-1", "greater than or equal to 0"),
        (PAYMENT, "payment_days", "1.5", "whole number"),
        (SELLER, "name", "\u202eltd", ""),
        (SELLER, "address", "x" * 501, ""),
        (SELLER, "vat_id", "1" * 33, ""),
        (SELLER, "country", "Nowhere", ""),
        (PAYMENT, "currency", "Nowhere", ""),
    ],
)
def test_a_wrong_value_is_rejected_at_its_field(
    client: Client, ann: User, url: str, name: str, text: str, told: str
) -> None:
    page = Page(client.post(url, TYPED[url] | {name: text}))

    assert list(page.errors) == [name]
    assert told in page.errors[name][0]
    assert stored_seller(ann) == dict.fromkeys(STORED)


def test_a_vat_id_is_read_as_its_country_writes_it(ann: User) -> None:
    for country, typed, stored in (
        ("DE", "136695976", "DE136695976"),
        ("AT", "ATU13585627", "ATU13585627"),
        ("FR", "fr 40 303265045", "FR40303265045"),
        ("GR", "EL 094259216", "EL094259216"),
        ("GB", "GB 980 7806 84", "GB980780684"),
        ("CH", "CHE107787577MWST", "CHE-107.787.577 MWST"),
        ("NO", "995525828mva", "NO 995 525 828 MVA"),
        ("JP", "t5835678256246", "T5835678256246"),
        ("US", "12-3456789", "12-3456789"),
        ("", "Any 1", "Any 1"),
    ):
        for text in (typed, stored):
            sell_as(ann, country=country, vat_id=text)
            assert profile_of(ann.pk).vat_id == stored


def test_a_vat_id_with_a_wrong_check_digit_is_not_stored(ann: User) -> None:
    for country, text in (
        ("JP", "T1234567890123"),
        ("JP", "T58356782562"),
        ("CH", "CHE107787578MWST"),
        ("GB", "1"),
    ):
        with pytest.raises(ValidationError, match=text):
            sell_as(ann, country=country, vat_id=text)
    assert profile_of(ann.pk).vat_id is None


def test_a_vat_id_that_was_stored_before_is_kept_until_it_is_changed(
    client: Client, ann: User
) -> None:
    sell_as(ann, vat_id="DE 1")

    assert client.post(SELLER, TYPED[SELLER] | {"vat_id": "DE 1"}).status_code == 302
    assert profile_of(ann.pk).vat_id == "DE 1"
    # Without the country, the stored one decides.
    assert Page(client.post(SELLER, {"vat_id": "DE 2"})).errors.keys() == {"vat_id"}
    assert profile_of(ann.pk).vat_id == "DE 1"


def test_a_page_that_another_tab_changed_is_refused_and_can_be_sent_again(
    client: Client, ann: User
) -> None:
    shown = form_values(client, SELLER) | {"country": ""}
    one, two = shown | {"name": "Ann Ltd"}, shown | {"tax_number": "12"}
    assert client.post(SELLER, one).status_code == 302

    page = Page(client.post(SELLER, two))

    (told,) = page.errors[""]
    assert "The seller was changed after this page was opened" in told
    assert page.errors["name"] == ["Stored now: Ann Ltd"]
    assert profile_of(ann.pk).tax_number is None
    again = two | {"version": page.value("version"), "name": "Ann Ltd"}
    for _time in range(2):  # the second one as after a lost answer
        assert client.post(SELLER, again).status_code == 302
    assert (profile_of(ann.pk).name, profile_of(ann.pk).tax_number) == ("Ann Ltd", "12")


def test_a_seller_that_changes_during_the_request_stays_as_it_is_then(
    client: Client, ann: User, proxy: FaultProxy
) -> None:
    client.post(SELLER, form_values(client, SELLER, name="Ann Ltd", country=""))
    shown = form_values(client, SELLER, tax_number="12", country="")
    proxy.plan("UpdateItem", Meanwhile(lambda: profile_of(ann.pk).change(name="Eve Ltd")))

    page = Page(client.post(SELLER, shown))

    assert "The seller was changed after this page was opened" in page.errors[""][0]
    assert (profile_of(ann.pk).name, profile_of(ann.pk).tax_number) == ("Eve Ltd", None)


# Requests -----------------------------------------------------------------------------------------


def test_the_seller_is_read_together_with_the_visitor(
    client: Client, ann: User, requests_sent: Requests
) -> None:
    sell_as(ann, name="Ann Ltd")
    arrive(client, ann)
    for url in (SELLER, "/invoices/new/", "/invoices/customers/new/"):
        requests_sent.clear()
        client.get(url)
        assert sorted(requests_sent.operations) == sorted([*OF_EVERY_PAGE, "GetItem"])


def test_a_cookie_of_another_account_shows_the_visitors_own_seller(
    client: Client, ann: User
) -> None:
    bob = make_user(username="bob", email="bob@example.org")
    sell_as(ann, name="Ann Ltd")
    sell_as(bob, name="Bob Ltd")
    arrive(client, ann)
    other = Client()
    arrive(other, bob)
    client.cookies["account"] = other.cookies["account"].value

    assert Page(client.get(SELLER)).value("name") == "Ann Ltd"


# With its account ---------------------------------------------------------------------------------


def test_the_seller_is_deleted_with_its_account(ann: User) -> None:
    sell_as(ann, name="Ann Ltd", iban="DE89370400440532013000")

    delete(User.get(ann.pk))

    assert items() == []


def test_a_refused_deletion_of_the_account_leaves_its_seller(ann: User) -> None:
    sell_as(ann, name="Ann Ltd")
    outdated = User.get(ann.pk)
    User.get(ann.pk).change(full_name="Since")

    with pytest.raises(StaleUser):
        delete(outdated)

    assert stored_seller(ann)["name"] == "Ann Ltd"


def test_no_seller_is_made_for_an_account_that_is_deleted_meanwhile(engine: str, ann: User) -> None:
    user = User.get(ann.pk)

    with (
        meanwhile(engine, "TransactWriteItems", lambda: delete(User.get(ann.pk))),
        pytest.raises(StaleUser),
    ):
        open_profile(user, profile_of(user.pk))

    assert items() == []


def test_two_that_open_the_form_first_get_one_seller(engine: str, ann: User) -> None:
    user = User.get(ann.pk)

    with meanwhile(engine, "TransactWriteItems", lambda: sell_as(User.get(ann.pk), name="Ann")):
        profile = open_profile(user, profile_of(user.pk))

    assert profile.name == "Ann"
