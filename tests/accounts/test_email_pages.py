"""The pages on which an email address is confirmed and changed.

What holds for all links in mails: test_mailed_links.py.
"""

import re

import pytest
from django.core import mail
from django.test import Client

from accounts.emails import links
from accounts.exceptions import BadLink
from accounts.models import User
from accounts.services import change_email
from tests.emailchanges import NEW, again, days_later, refusal_of, token_of
from tests.factories import PASSWORD, assert_guards_match_users, guard_owner, make_user, set_stored
from tests.mailbox import link, the_mail, told_by, whole_link
from tests.pages import Page, meanwhile

pytestmark = pytest.mark.usefixtures("ann_is_signed_in")

PROFILE = "/accounts/profile/"
SEND = "/accounts/confirm/send/"
EMAIL = "/accounts/email/"
CANCEL = "/accounts/email/cancel/"
SENT = "We sent a link to your new email address. Follow it to make the change."


def confirm_on_page(client: Client) -> None:
    """Request a link on the profile, and follow it."""
    client.post(SEND)
    client.post(link())
    mail.outbox.clear()


def change_on_page(client: Client, email: str = NEW) -> None:
    response = client.post(EMAIL, {"email": email, "password": PASSWORD})
    assert (response.status_code, response["Location"]) == (302, PROFILE)


# Confirming: the link -----------------------------------------------------------------------------


def test_a_link_is_refused_after_the_address_changed_even_if_it_changed_back(ann: User) -> None:
    token = links.confirmation_token(ann)

    for email in (NEW, "ann@example.org"):
        change_email(again(ann), email)
        assert refusal_of(lambda: links.confirm(token)) is BadLink


def test_a_confirmation_during_a_change_of_address_confirms_nothing(engine: str, ann: User) -> None:
    token = links.confirmation_token(ann)

    with (
        meanwhile(engine, "UpdateItem", lambda: change_email(again(ann), NEW)),
        pytest.raises(BadLink),
    ):
        links.confirm(token)

    assert not again(ann).is_confirmed


def test_an_account_older_than_confirmations_can_be_confirmed(client: Client, ann: User) -> None:
    set_stored(ann, confirmationId=None)
    forged = links.make(links.CONFIRM, ann.pk, "None")
    assert refusal_of(lambda: links.confirm(forged)) is BadLink

    confirm_on_page(client)

    assert again(ann).is_confirmed


# Confirming: the button on the profile ------------------------------------------------------------


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


# Changing it at once ------------------------------------------------------------------------------


@pytest.mark.usefixtures("changes_at_once")
def test_another_address_is_unconfirmed_and_both_get_a_mail_but_another_spelling_changes_nothing(
    client: Client, ann: User
) -> None:
    confirm_on_page(client)

    change_on_page(client, "Ann@Example.ORG")
    assert (again(ann).is_confirmed, again(ann).email) == (True, "Ann@Example.ORG")
    assert mail.outbox == []

    change_on_page(client)
    assert not again(ann).is_confirmed
    told, asked = mail.outbox
    assert (told.to, asked.to) == (["Ann@example.org"], [NEW])
    assert NEW not in told.body
    client.post(link(asked))
    assert again(ann).is_confirmed


# A change that waits for its link -----------------------------------------------------------------


def test_a_change_is_mailed_to_the_new_address_and_shown_as_waiting(
    client: Client, ann: User
) -> None:
    assert "when you follow it" in Page(client.get(EMAIL)).text

    change_on_page(client)

    assert the_mail().to == [NEW]
    assert not re.search(r"\bann\b(?!@)", told_by(the_mail()))
    page = Page(client.get(PROFILE))
    assert page.messages == [SENT]
    assert f"It becomes {NEW} when you follow the link" in " ".join(page.text.split())
    assert "Cancel this change" in page.text
    assert again(ann).email == "ann@example.org"
    assert guard_owner("email#ann@example.org") == ann.pk
    assert_guards_match_users()

    with days_later():
        text = Page(client.get(PROFILE)).text
    assert "Cancel this change" not in text
    assert NEW not in text


def test_a_link_to_an_address_of_another_account_says_so_and_the_form_does_not(
    client: Client, ann: User
) -> None:
    make_user(email=NEW)
    change_on_page(client)
    assert Page(client.get(PROFILE)).messages == [SENT]

    response = client.post(f"/accounts/email/confirm/{token_of(again(ann))}/")

    assert response.status_code == 409
    assert "Another account now has the same: Email" in Page(response).text
    assert again(ann).email == "ann@example.org"


def test_the_button_cancels_the_change(client: Client, ann: User) -> None:
    change_on_page(client)
    client.get(PROFILE)

    response = client.post(CANCEL)

    assert (response.status_code, response["Location"]) == (302, PROFILE)
    page = Page(client.get(PROFILE))
    assert page.messages == ["The change was canceled. Your email address stays the same."]
    assert "Cancel this change" not in page.text
    assert again(ann).pending_until is None
    assert client.post(link()).status_code == 410
