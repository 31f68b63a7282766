"""The business part of a profile: what it stores, and what it rejects at which field."""

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from accounts.models import User
from accounts.services import edit_profile
from tests.factories import stored_user
from tests.pages import PROFILE, Page, form_values

pytestmark = pytest.mark.usefixtures("ann_is_signed_in")


#: By name: a text as it is typed, and as it is stored.
BUSINESS = {
    "full_name": ("Ann Example", "Ann Example"),
    "phone_number": ("+1 202-555-0124", "+12025550124"),
    "business_name": ("Ann Ltd", "Ann Ltd"),
    "business_address": ("1 High Street\r\nLondon", "1 High Street\nLondon"),
    "country": ("DE", "DE"),
    "vat_id": ("de 136 695 976", "DE136695976"),
    "tax_number": (" 12/345/67890 ", "12/345/67890"),
    "account_holder": ("Ann Ltd", "Ann Ltd"),
    "iban": ("de89 3704 0044 0532 0130 00", "DE89370400440532013000"),
    "bic": ("cobadeffxxx", "COBADEFFXXX"),
    "currency": ("EUR", "EUR"),
    "payment_days": ("14", 14),
    "payment_terms": ("Within 14 days.\r\nNo discount.", "Within 14 days.\nNo discount."),
    "time_zone": ("Europe/Berlin", "Europe/Berlin"),
}
TYPED = {name: typed for name, (typed, _stored) in BUSINESS.items()}
STORED = {name: stored for name, (_typed, stored) in BUSINESS.items()}


def business_of(user: User) -> dict[str, object]:
    read = User.get(user.pk)
    return {name: getattr(read, name) for name in BUSINESS}


def test_the_page_and_the_operation_store_the_business_details_alike(
    client: Client, ann: User
) -> None:
    response = client.post(PROFILE, TYPED)

    assert (response.status_code, response["Location"]) == (302, PROFILE)
    assert business_of(ann) == STORED
    pages = [Page(client.get(f"{PROFILE}{part}")) for part in ("", "business/", "invoicing/")]
    assert pages[0].messages == ["Your details were saved."]
    shown = {name: page.value(name) for page in pages for name in page.fields}
    assert shown["phone_number"] == "+1 202-555-0124"
    assert shown["business_address"] == "1 High Street\nLondon"
    assert shown["iban"] == "DE89 3704 0044 0532 0130 00"

    client.post(PROFILE, dict.fromkeys(BUSINESS, ""))
    assert business_of(ann) == dict.fromkeys(BUSINESS)
    edit_profile(User.get(ann.pk), **TYPED)
    assert business_of(ann) == STORED


def test_fields_that_are_not_sent_stay_as_they_are(client: Client, ann: User) -> None:
    client.post(PROFILE, TYPED)

    client.post(PROFILE, {"full_name": "Anna"})

    assert business_of(ann) == STORED | {"full_name": "Anna"}


WRONG = [
    ("iban", "DE89 3704 0044 0532 0130 01", "“DE89 3704 0044 0532 0130 01” is not an IBAN"),
    ("bic", "COBADE", "“COBADE” is not a BIC"),
    ("vat_id", "DE136695977", "“DE136695977” is not a VAT ID"),
    ("vat_id", "FR40303265045", "“FR40303265045” is not a VAT ID"),
    ("payment_days", "366", "from 0 to 365"),
    ("payment_days", "-1", "from 0 to 365"),
    ("payment_days", "１４", "from 0 to 365"),
    *((name, "Nowhere", "") for name in ("country", "currency", "time_zone", "language")),
]


def test_a_wrong_value_is_rejected_at_its_field_and_by_the_operation(
    client: Client, ann: User
) -> None:
    before = stored_user(ann.pk)

    for name, text, part in WRONG:
        page = Page(client.post(PROFILE, TYPED | {name: text}))

        assert list(page.errors) == [name]
        assert part in page.errors[name][0]
        with pytest.raises(ValidationError):
            edit_profile(User.get(ann.pk), **(TYPED | {name: text}))
    assert stored_user(ann.pk) == before


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
            edit_profile(ann, country=country, vat_id=text)
            assert User.get(ann.pk).vat_id == stored


def test_a_vat_id_with_a_wrong_check_digit_is_not_stored(ann: User) -> None:
    for country, text in (
        ("JP", "T1234567890123"),
        ("JP", "T58356782562"),
        ("CH", "CHE107787578MWST"),
        ("GB", "1"),
    ):
        with pytest.raises(ValidationError, match=text):
            edit_profile(ann, country=country, vat_id=text)
    assert User.get(ann.pk).vat_id is None


def test_a_vat_id_that_was_stored_before_stays_until_it_is_changed(
    client: Client, ann: User
) -> None:
    edit_profile(ann, vat_id="DE 1")

    assert client.post(PROFILE, TYPED | {"vat_id": "DE 1"}).status_code == 302
    assert User.get(ann.pk).vat_id == "DE 1"
    # Without the country, the stored one decides.
    page = Page(client.post(PROFILE, {"vat_id": "DE 2", "bic": "zz"}))
    assert page.errors.keys() == {"vat_id", "bic"}
    assert User.get(ann.pk).vat_id == "DE 1"


def test_a_profile_that_another_tab_changed_is_refused_and_can_be_sent_again(
    client: Client, ann: User
) -> None:
    shown = form_values(client, f"{PROFILE}business/") | form_values(client, PROFILE)
    one, two = (shown | {"language": "", "time_zone": "UTC"} for _tab in range(2))
    assert client.post(PROFILE, one | {"business_name": "Ann Ltd"}).status_code == 302

    page = Page(client.post(PROFILE, two | {"full_name": "Ann Example"}))

    (told,) = page.errors[""]
    assert "The account was changed after this page was opened" in told
    assert page.errors["business_name"] == ["Stored now: Ann Ltd"]
    assert (User.get(ann.pk).full_name, User.get(ann.pk).business_name) == (None, "Ann Ltd")
    again = (
        two
        | {name: page.value(name) for name in two if name in page.fields}
        | {"business_name": "Ann Ltd"}
    )
    assert client.post(PROFILE, again).status_code == 302
    assert (User.get(ann.pk).full_name, User.get(ann.pk).business_name) == (
        "Ann Example",
        "Ann Ltd",
    )
    # The same form is sent twice, as after a lost answer.
    assert client.post(PROFILE, again).status_code == 302


def test_a_profile_that_a_form_led_to_leads_back_with_or_without_changes(
    client: Client, ann: User
) -> None:
    url = f"{PROFILE}business/?next=/invoices/new/"

    assert '<a href="/invoices/new/">Cancel</a>' in client.get(url).content.decode()
    assert client.post(url, {"tax_number": "1"})["Location"] == "/invoices/new/"
    for elsewhere in ("", "?next=https://evil.example/"):
        assert "Cancel" not in Page(client.get(f"{PROFILE}business/{elsewhere}")).text
