"""Whether an address is its owner's: the link that is sent to it, and the button for another."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.core import mail
from django.test import Client

from accounts.emails import confirmation, links
from accounts.models import User
from accounts.services import change_email, delete, edit_profile
from dynamo.client.sending import send
from tests.accounts.test_sign_up_page import ANN, URL
from tests.factories import PASSWORD, changes_of, make_user, stored_items, stored_user
from tests.faults.kinds import CloseBefore, DropReply, TimeOut
from tests.faults.proxy import FaultProxy
from tests.mailbox import later, link, the_mail, whole_link
from tests.pages import Page, form_values, meanwhile, sign_in, signed_in_as
from tests.requests import Requests

PROFILE = "/accounts/profile/"
SEND = "/accounts/confirm/send/"
REFUSED = "This link was already used, is too old, or is incomplete."


@pytest.fixture
def ann(engine: str, client: Client) -> User:
    """An account whose address is not confirmed, and whose owner is signed in as `client`."""
    user = make_user(username="Ann", email="ann@example.org", request_id="ann")
    sign_in(client, user)
    return user


def link_for(client: Client) -> str:
    """The path of a new link, asked for on the profile."""
    mail.outbox.clear()
    client.post(SEND)
    return link()


def is_confirmed(user: User) -> bool:
    return User.get(user.pk).is_confirmed


def assert_refused(client: Client, path: str, status: int = 410, reason: str = REFUSED) -> None:
    """The page says that nothing was changed, and nothing was."""
    before = stored_items()

    response = client.post(path)

    assert response.status_code == status
    page = Page(response)
    assert reason in page.text
    assert "Nothing was changed." in page.text
    assert stored_items() == before


# The link ---------------------------------------------------------------------------------------


def test_signing_up_sends_a_link_that_confirms_the_address(engine: str, client: Client) -> None:
    client.post(URL, form_values(client, URL, **ANN))
    assert the_mail().to == ["ann@example.org"]
    assert "Not confirmed" in Page(client.get(PROFILE)).text

    response = client.post(link())

    assert (response.status_code, response["Location"]) == (302, PROFILE)
    page = Page(client.get(PROFILE))
    assert page.messages[-1] == "Your email address is confirmed."
    assert "Not confirmed" not in page.text
    assert "Confirmed" in page.text


def test_who_is_signed_out_is_led_to_the_sign_in_page(client: Client, ann: User) -> None:
    path, visitor = link_for(client), Client()

    response = visitor.post(path)

    assert (response.status_code, response["Location"]) == (302, "/accounts/login/")
    assert Page(visitor.get(response["Location"])).messages == ["Your email address is confirmed."]
    assert signed_in_as(visitor) is None
    assert is_confirmed(ann)


def test_confirming_costs_a_read_and_a_write(
    client: Client, ann: User, requests_sent: Requests
) -> None:
    path = link_for(client)
    requests_sent.clear()

    Client().post(path)

    assert requests_sent.operations == ["GetItem", "UpdateItem"]


def test_a_link_followed_twice_says_the_same_and_writes_nothing(
    client: Client, ann: User, requests_sent: Requests
) -> None:
    path = link_for(client)
    Client().post(path)
    before, visitor = stored_user(ann.pk), Client()
    requests_sent.clear()

    response = visitor.post(path)

    assert requests_sent.operations == ["GetItem"]
    assert stored_user(ann.pk) == before
    assert Page(visitor.get(response["Location"])).messages == ["Your email address is confirmed."]


def test_a_link_is_good_for_three_days(client: Client, ann: User) -> None:
    path = link_for(client)

    with later(days=3, seconds=2):
        assert_refused(Client(), path)
    with later(days=3, seconds=-60):
        assert Client().post(path).status_code == 302

    assert is_confirmed(ann)


def test_a_link_confirms_no_other_account(client: Client, ann: User) -> None:
    bob = make_user()

    client.post(link_for(client))

    assert is_confirmed(ann)
    assert not is_confirmed(bob)


def test_a_link_does_nothing_after_the_address_changed(client: Client, ann: User) -> None:
    path = link_for(client)
    change_email(User.get(ann.pk), "new@example.org")

    assert_refused(client, path)


def test_a_link_does_nothing_after_the_address_changed_and_changed_back(
    client: Client, ann: User
) -> None:
    path = link_for(client)
    for email in ("new@example.org", "ann@example.org"):
        change_email(User.get(ann.pk), email)

    assert_refused(client, path)


def test_a_link_does_nothing_after_the_account_was_deleted(client: Client, ann: User) -> None:
    path = link_for(client)
    delete(User.get(ann.pk))

    assert_refused(Client(), path)


def test_a_link_does_nothing_for_an_account_made_anew_under_the_same_key(
    client: Client, ann: User
) -> None:
    path = link_for(client)
    delete(User.get(ann.pk))
    again = make_user(username="Ann", email="ann@example.org", request_id="ann")
    assert again.pk == ann.pk

    assert_refused(Client(), path)


@pytest.mark.parametrize("purpose", ["signup", "email_change", ""])
def test_a_link_of_another_purpose_confirms_nothing(ann: User, purpose: str) -> None:
    token = links.make(purpose, ann.pk, str(ann.confirmation_id))

    assert_refused(Client(), f"/accounts/confirm/{token}/")


@pytest.mark.parametrize("parts", [(), ("",), ("a", "b", "c")])
def test_a_link_of_other_parts_confirms_nothing(engine: str, parts: tuple[str, ...]) -> None:
    token = links.make(confirmation.PURPOSE, *parts)

    assert_refused(Client(), f"/accounts/confirm/{token}/")


@pytest.mark.parametrize("what", ["", "pk", "id"])
def test_a_link_without_a_name_in_it_confirms_nothing(ann: User, what: str) -> None:
    parts = (ann.pk if what == "pk" else "x", str(ann.confirmation_id) if what == "id" else "")
    token = links.make(confirmation.PURPOSE, *parts)

    assert_refused(Client(), f"/accounts/confirm/{token}/")


def test_a_link_without_id_does_not_confirm_an_account_without_one(ann: User) -> None:
    forget_confirmation_id(ann)

    assert_refused(
        Client(), f"/accounts/confirm/{links.make(confirmation.PURPOSE, ann.pk, 'None')}/"
    )


@pytest.mark.parametrize(
    "cut",
    [
        lambda token: token[:-1],
        lambda token: token + "x",
        lambda token: token[1:],
        lambda token: token.swapcase(),
        lambda token: token.replace(":", "", 1),
        lambda token: "x",
        lambda token: ":::",
        lambda token: "%00%0d%0aX",
        lambda token: "%c3%a9%ff%ed%a0%80",
        lambda token: "a" * 3000,
    ],
)
def test_a_link_that_is_not_whole_confirms_nothing(client: Client, ann: User, cut: Any) -> None:
    token = link_for(client).split("/")[-2]

    assert_refused(Client(), f"/accounts/confirm/{cut(token)}/")


def test_looking_at_a_link_without_following_it_does_nothing(client: Client, ann: User) -> None:
    path = link_for(client)

    assert [Client().head(path).status_code, Client().put(path).status_code] == [200, 405]
    assert not is_confirmed(ann)


def test_opening_a_link_shows_a_button_and_pressing_it_confirms(ann: User, client: Client) -> None:
    path, owner = link_for(client), Client(enforce_csrf_checks=True)
    before = stored_items()

    opened = owner.get(path)

    assert opened.status_code == 200
    assert "no-store" in opened["Cache-Control"]
    page = Page(opened)
    assert "Confirm my email address" in page.text
    assert stored_items() == before
    token = page.value("csrfmiddlewaretoken")
    assert owner.post(path).status_code == 403
    assert owner.post(path, {"csrfmiddlewaretoken": token}).status_code == 302
    assert is_confirmed(ann)


def test_opening_a_link_that_is_too_old_says_so_at_once(client: Client, ann: User) -> None:
    path = link_for(client)

    with later(days=3, seconds=2):
        assert Client().get(path).status_code == 410
    assert Client().get(path + "x/").status_code == 404
    assert Client().get("/accounts/confirm/x/").status_code == 410


@pytest.mark.parametrize("lost", [DropReply(), CloseBefore(), TimeOut()])
@pytest.mark.parametrize("operation", ["GetItem", "UpdateItem"])
def test_a_confirmation_whose_reply_is_lost_happens_once(
    proxy: FaultProxy, operation: str, lost: Any
) -> None:
    user = make_user()
    token = links.make(confirmation.PURPOSE, user.pk, str(user.confirmation_id))
    proxy.plan(operation, lost)

    assert confirmation.confirm(token).is_confirmed

    assert changes_of(user) == 1


def test_a_link_followed_by_many_at_once_confirms_once(ann: User, at_once: Any) -> None:
    token = links.make(confirmation.PURPOSE, ann.pk, str(ann.confirmation_id))

    users = at_once(lambda _number: confirmation.confirm(token))

    assert {user.email_confirmed_at for user in users} == {User.get(ann.pk).email_confirmed_at}
    assert changes_of(ann) == 1


def test_a_confirmation_goes_on_past_other_changes(engine: str, ann: User) -> None:
    token = links.make(confirmation.PURPOSE, ann.pk, str(ann.confirmation_id))

    with meanwhile(
        engine, "UpdateItem", lambda: edit_profile(User.get(ann.pk), full_name="Ann Example")
    ):
        confirmation.confirm(token)

    assert (is_confirmed(ann), User.get(ann.pk).full_name) == (True, "Ann Example")


@pytest.mark.parametrize(
    "change", [lambda user: change_email(user, "new@example.org"), delete], ids=["change", "delete"]
)
def test_a_confirmation_that_meets_a_change_of_address_confirms_nothing(
    engine: str, ann: User, change: Any
) -> None:
    token = links.make(confirmation.PURPOSE, ann.pk, str(ann.confirmation_id))

    with meanwhile(engine, "UpdateItem", lambda: change(User.get(ann.pk))):
        response = Client().post(f"/accounts/confirm/{token}/")

    assert response.status_code == 410
    stored = stored_user(ann.pk)
    assert stored is None or "emailConfirmedAt" not in stored


def test_a_link_that_came_to_nothing_is_logged_without_its_token(
    client: Client, ann: User, caplog: pytest.LogCaptureFixture
) -> None:
    token = link_for(client).split("/")[-2]
    change_email(User.get(ann.pk), "new@example.org")

    with caplog.at_level(logging.DEBUG):
        client.post(f"/accounts/confirm/{token}/")

    assert "A link was refused (BadLink)." in caplog.text
    assert token not in caplog.text


# Another link -----------------------------------------------------------------------------------


def test_the_profile_sends_another_link(client: Client, ann: User) -> None:
    response = client.post(SEND)

    assert (response.status_code, response["Location"]) == (302, PROFILE)
    page = Page(client.get(PROFILE))
    assert page.messages == ["The link was sent. Check your email."]
    assert (the_mail().to, whole_link().startswith("http://testserver/accounts/confirm/")) == (
        ["ann@example.org"],
        True,
    )


def test_each_of_several_links_to_one_address_is_good(client: Client, ann: User) -> None:
    first, _second = link_for(client), link_for(client)

    assert client.post(first)["Location"] == PROFILE
    assert is_confirmed(ann)


def test_a_confirmed_address_is_sent_no_link(client: Client, ann: User) -> None:
    client.post(link_for(client))
    mail.outbox.clear()

    client.post(SEND)

    assert Page(client.get(PROFILE)).messages[-1] == "Your email address is already confirmed."
    assert mail.outbox == []


def test_the_button_is_for_the_signed_in_alone(client: Client, ann: User) -> None:
    assert Client().post(SEND)["Location"].startswith("/accounts/login/")
    assert client.get(SEND).status_code == 405
    assert mail.outbox == []


def forget_confirmation_id(user: User) -> None:
    """Make of an account one that is older than confirmations."""
    key, names = {"pk": {"S": user.pk}}, "REMOVE confirmationId"
    send("UpdateItem", {"TableName": User.table(), "Key": key, "UpdateExpression": names})


@pytest.mark.parametrize("lost", [None, DropReply(), CloseBefore()])
def test_an_account_older_than_confirmations_can_be_confirmed(
    proxy: FaultProxy, client: Client, lost: Any
) -> None:
    user = make_user()
    sign_in(client, user)
    forget_confirmation_id(user)
    if lost:
        proxy.plan("UpdateItem", lost, when=lambda body: "confirmationId" in str(body))

    client.post(link_for(client))

    assert is_confirmed(user)


# The mail server ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_mail")
def test_signing_up_succeeds_without_a_mail_server(
    engine: str, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    response = client.post(URL, form_values(client, URL, **ANN))

    assert (response.status_code, response["Location"]) == (302, PROFILE)
    assert signed_in_as(client) == "Ann"
    assert "A mail (confirm) was not sent: " in caplog.text
    assert "example.org" not in caplog.text
    assert "http" not in caplog.text


@pytest.mark.usefixtures("no_mail")
def test_the_button_says_that_the_mail_could_not_be_sent(
    client: Client, ann: User, caplog: pytest.LogCaptureFixture
) -> None:
    client.post(SEND)

    page = Page(client.get(PROFILE))
    assert page.messages == ["The mail could not be sent. Please try again later."]
    assert "example.org" not in caplog.text
    assert "http" not in caplog.text


# A change of address -----------------------------------------------------------------------------


def change_on_page(client: Client, email: str) -> None:
    typed = {"email": email, "password": PASSWORD}
    assert client.post("/accounts/email/", typed)["Location"] == PROFILE


def test_a_changed_address_is_not_confirmed_and_both_owners_are_told(
    client: Client, ann: User
) -> None:
    client.post(link_for(client))
    mail.outbox.clear()

    change_on_page(client, "new@example.org")

    assert not is_confirmed(ann)
    told, asked = mail.outbox
    assert (told.to, asked.to) == (["ann@example.org"], ["new@example.org"])
    assert "new@example.org" not in told.body
    client.post(link(asked))
    assert is_confirmed(ann)


@pytest.mark.parametrize("email", ["Ann@Example.ORG", "ann@example.org"])
def test_another_spelling_of_the_address_stays_confirmed_and_sends_nothing(
    client: Client, ann: User, email: str
) -> None:
    client.post(link_for(client))
    mail.outbox.clear()

    change_on_page(client, email)

    assert (is_confirmed(ann), User.get(ann.pk).email, mail.outbox) == (True, email, [])
