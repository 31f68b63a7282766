"""Confirming an email address: by its link, the button for another link, and `verifyemail`."""

import pytest
from django.core import mail
from django.test import Client

from accounts.emails import links
from accounts.exceptions import BadLink
from accounts.models import User
from accounts.services import change_email, edit_profile
from tests.commands import run
from tests.emailchanges import again, refusal_of
from tests.factories import PASSWORD, make_user, set_stored
from tests.mailbox import link, the_mail, whole_link
from tests.pages import Page, meanwhile, sign_in, sign_up, signed_in_as

pytestmark = pytest.mark.usefixtures("changes_at_once", "ann_is_signed_in")

PROFILE = "/accounts/profile/"
SEND = "/accounts/confirm/send/"


def link_for(client: Client) -> str:
    """The path of a new link, requested on the profile."""
    mail.outbox.clear()
    client.post(SEND)
    return link()


# The link: see also test_mailed_links.py ----------------------------------------------------------


def test_a_link_is_refused_after_the_address_changed_even_if_it_changed_back(ann: User) -> None:
    token = links.confirmation_token(ann)

    for email in ("new@example.org", "ann@example.org"):
        change_email(again(ann), email)
        assert refusal_of(lambda: links.confirm(token)) is BadLink


def test_a_confirmation_during_a_change_of_address_confirms_nothing(engine: str, ann: User) -> None:
    token = links.confirmation_token(ann)

    def change() -> None:
        change_email(again(ann), "new@example.org")

    with meanwhile(engine, "UpdateItem", change), pytest.raises(BadLink):
        links.confirm(token)

    assert not again(ann).is_confirmed


def test_an_account_older_than_confirmations_can_be_confirmed(client: Client, ann: User) -> None:
    set_stored(ann, confirmationId=None)
    forged = links.make(links.CONFIRM, ann.pk, "None")
    assert refusal_of(lambda: links.confirm(forged)) is BadLink

    client.post(link_for(client))

    assert again(ann).is_confirmed


# The button on the profile ------------------------------------------------------------------------


def test_the_button_sends_another_link_until_the_address_is_confirmed(
    client: Client, ann: User
) -> None:
    response = client.post(SEND)

    assert (response.status_code, response["Location"]) == (302, PROFILE)
    page = Page(client.get(PROFILE))
    assert page.messages == ["The link was sent. Check your email."]
    assert "Not confirmed" in page.text
    assert the_mail().to == ["ann@example.org"]
    assert whole_link().startswith("http://testserver/accounts/confirm/")

    links.mark_confirmed(again(ann))
    mail.outbox.clear()
    client.post(SEND)

    page = Page(client.get(PROFILE))
    assert page.messages == ["Your email address is already confirmed."]
    assert "Not confirmed" not in page.text
    assert mail.outbox == []


@pytest.mark.usefixtures("no_mail")
@pytest.mark.parametrize("is_sign_up", [True, False])
def test_a_mail_server_that_refuses_does_not_fail_the_sign_up_but_the_button_says_so(
    engine: str, client: Client, caplog: pytest.LogCaptureFixture, is_sign_up: bool
) -> None:
    if is_sign_up:
        response = sign_up(client)
    else:
        sign_in(client, make_user(username="Ann", email="ann@example.org"))
        response = client.post(SEND)

    assert (response.status_code, response["Location"]) == (302, "/" if is_sign_up else PROFILE)
    if not is_sign_up:
        page = Page(client.get(PROFILE))
        assert page.messages == ["The mail could not be sent. Please try again later."]
    assert signed_in_as(client) == "Ann"
    assert "A mail (confirm) was not sent: " in caplog.text
    assert "example.org" not in caplog.text
    assert "http" not in caplog.text


# An immediate change of the address ---------------------------------------------------------------


def change_on_page(client: Client, email: str) -> None:
    typed = {"email": email, "password": PASSWORD}
    assert client.post("/accounts/email/", typed)["Location"] == PROFILE


def test_a_changed_address_is_unconfirmed_and_both_addresses_get_a_mail(
    client: Client, ann: User
) -> None:
    client.post(link_for(client))
    mail.outbox.clear()

    change_on_page(client, "new@example.org")

    assert not again(ann).is_confirmed
    told, asked = mail.outbox
    assert (told.to, asked.to) == (["ann@example.org"], ["new@example.org"])
    assert "new@example.org" not in told.body
    client.post(link(asked))
    assert again(ann).is_confirmed


def test_another_spelling_stays_confirmed_and_sends_no_mail(client: Client, ann: User) -> None:
    client.post(link_for(client))
    mail.outbox.clear()
    email = "Ann@Example.ORG"

    change_on_page(client, email)

    assert (again(ann).is_confirmed, again(ann).email, mail.outbox) == (True, email, [])


# verifyemail --------------------------------------------------------------------------------------


def test_verifyemail_does_not_confirm_an_account_that_changes_meanwhile(
    engine: str, ann: User
) -> None:
    with meanwhile(engine, "UpdateItem", lambda: edit_profile(again(ann), full_name="Ann")):
        _out, err, code = run("verifyemail", "ann")

    assert code == 1
    assert "changed meanwhile. Nothing was written." in err
    assert not again(ann).is_confirmed
