"""The profile: what it stores, and what it rejects at which field."""

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from accounts.models import User
from accounts.services import edit_profile
from tests.factories import stored_user
from tests.pages import PROFILE, Page, form_values

pytestmark = pytest.mark.usefixtures("ann_is_signed_in")


#: By name: a text as it is typed, and as it is stored.
VALUES = {
    "full_name": ("Ann Example", "Ann Example"),
    "phone_number": ("+1 202-555-0124", "+12025550124"),
    "language": ("ja", "ja"),
    "time_zone": ("Europe/Berlin", "Europe/Berlin"),
}
TYPED = {name: typed for name, (typed, _stored) in VALUES.items()}
STORED = {name: stored for name, (_typed, stored) in VALUES.items()}


def profile_of(user: User) -> dict[str, object]:
    read = User.get(user.pk)
    return {name: getattr(read, name) for name in VALUES}


def test_the_page_and_the_operation_store_the_profile_alike(client: Client, ann: User) -> None:
    response = client.post(PROFILE, TYPED | {"language": "en"})

    assert (response.status_code, response["Location"]) == (302, PROFILE)
    assert profile_of(ann) == STORED | {"language": "en"}
    page = Page(client.get(PROFILE))
    assert page.messages == ["Your details were saved."]
    assert page.value("phone_number") == "+1 202-555-0124"

    client.post(PROFILE, dict.fromkeys(VALUES, ""))
    assert profile_of(ann) == dict.fromkeys(VALUES)
    edit_profile(User.get(ann.pk), **TYPED)
    assert profile_of(ann) == STORED


def test_fields_that_are_not_sent_do_not_change(client: Client, ann: User) -> None:
    client.post(PROFILE, TYPED)

    client.post(PROFILE, {"full_name": "Anna"})

    assert profile_of(ann) == STORED | {"full_name": "Anna"}


@pytest.mark.parametrize("name", ["phone_number", "time_zone", "language"])
def test_a_wrong_value_is_rejected_at_its_field_and_by_the_operation(
    client: Client, ann: User, name: str
) -> None:
    before = stored_user(ann.pk)

    page = Page(client.post(PROFILE, TYPED | {name: "Nowhere"}))

    assert list(page.errors) == [name]
    with pytest.raises(ValidationError):
        edit_profile(User.get(ann.pk), **(TYPED | {name: "Nowhere"}))
    assert stored_user(ann.pk) == before


def test_a_profile_that_another_tab_changed_is_refused_and_can_be_sent_again(
    client: Client, ann: User
) -> None:
    shown = form_values(client, PROFILE) | {"language": "", "time_zone": "UTC"}
    one, two = shown | {"phone_number": "+12025550124"}, shown | {"full_name": "Ann Example"}
    assert client.post(PROFILE, one).status_code == 302

    page = Page(client.post(PROFILE, two))

    (told,) = page.errors[""]
    assert " was changed after this page was opened" in told
    assert "Stored now" in page.errors["phone_number"][0]
    assert profile_of(ann)["full_name"] is None
    again = two | {name: page.value(name) for name in two if name in page.fields}
    again |= {"phone_number": "+12025550124"}
    assert client.post(PROFILE, again).status_code == 302
    assert profile_of(ann)["full_name"] == "Ann Example"
    assert profile_of(ann)["phone_number"] == "+12025550124"
    # The same form is sent twice, as after a lost answer.
    assert client.post(PROFILE, again).status_code == 302


def test_a_profile_that_a_form_led_to_leads_back_with_or_without_changes(
    client: Client, ann: User
) -> None:
    url = f"{PROFILE}?next=/invoices/new/"

    assert '<a href="/invoices/new/">Cancel</a>' in client.get(url).content.decode()
    assert client.post(url, {"full_name": "Ann"})["Location"] == "/invoices/new/"
    for elsewhere in ("", "?next=https://evil.example/"):
        assert "Cancel" not in Page(client.get(f"{PROFILE}{elsewhere}")).text
