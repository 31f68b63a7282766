"""Confirming and changing an email address: the operations, then their pages.

Refusals, repetitions and faults of each operation: test_operation_faults.py. What holds for all
links in mails: test_mailed_links.py.
"""

import re
import time
from functools import partial

import pytest
from django.core import mail
from django.core.exceptions import ValidationError
from django.test import Client

from accounts.emails import links
from accounts.emails.links import confirm_change, request_change
from accounts.exceptions import BadLink, EmailTaken, StaleUser
from accounts.models import User
from accounts.services import change_email, edit_profile, find_user
from tests.emailchanges import (
    DAY,
    NEW,
    NEW_KEY,
    again,
    assert_guards_are_correct,
    days_later,
    refusal_of,
    token_of,
    waiting_user,
)
from tests.factories import (
    PASSWORD,
    assert_guards_match_users,
    changes_of,
    guard_owner,
    make_user,
    stored_items,
)
from tests.faults.kinds import Meanwhile
from tests.faults.proxy import FaultProxy
from tests.mailbox import link, the_mail, told_by, whole_link
from tests.pages import PROFILE, Page, meanwhile

pytestmark = pytest.mark.usefixtures("engine", "ann_is_signed_in")

SEND = "/accounts/confirm/send/"
EMAIL = "/accounts/email/"
CANCEL = "/accounts/email/cancel/"
NOTES = {"pendingEmail", "pendingId", "pendingUntil"}


def test_a_requested_change_is_only_a_note_on_its_account_for_three_days() -> None:
    user = make_user(email="old@example.org")
    before = stored_items()

    request_change(user, "New@Example.org")

    items = stored_items()
    noted = {name: items[user.pk][name] for name in NOTES}
    assert noted["pendingEmail"] == {"S": "New@Example.org"}
    assert abs(int(noted["pendingUntil"]["N"]) - time.time() - 3 * DAY) < 60
    written = {name: user.stored[name] for name in ("version", "writeId")}
    assert items == before | {user.pk: before[user.pk] | noted | written}
    assert user.stored == items[user.pk]
    assert_guards_are_correct()


def test_a_change_that_waits_does_not_reserve_its_address() -> None:
    user = waiting_user()
    assert not User.is_taken(email=NEW)
    with pytest.raises(User.DoesNotExist):
        User.named(NEW)

    other = make_user(email=NEW)

    assert find_user(NEW) == other
    assert refusal_of(lambda: confirm_change(token_of(user))) is EmailTaken
    assert again(user).awaited_email == NEW
    assert_guards_are_correct()


def test_the_same_request_again_waits_longer_and_voids_the_older_link() -> None:
    user = waiting_user()
    first, until = token_of(user), user.pending_until

    with days_later(1):
        request_change(user, "NEW@example.org")

    assert user.pending_until >= until + DAY - 60
    assert links.address_of(links.CHANGE, first) == ""
    assert refusal_of(lambda: confirm_change(first)) is BadLink
    assert links.address_of(links.CHANGE, token_of(user)) == "NEW@example.org"
    assert confirm_change(token_of(user))[0].email == "NEW@example.org"
    assert refusal_of(lambda: request_change(user, "no address")) is ValidationError


def test_the_link_takes_the_address_and_frees_the_old_one() -> None:
    user = waiting_user("New@Example.org", email="old@example.org")
    old_link = links.make(links.CONFIRM, user.pk, str(user.confirmation_id))

    token = token_of(user)

    changed, before = confirm_change(token)

    assert before
    assert (before.email, before.is_confirmed) == ("old@example.org", False)
    items = stored_items()
    assert confirm_change(token) == (changed, None)
    assert changed.stored == items[user.pk]
    assert guard_owner(NEW_KEY) == user.pk
    assert again(user).pending_id is None
    read = again(user)
    assert (read.email, read.is_confirmed, changes_of(user)) == ("New@Example.org", True, 2)
    assert find_user(NEW) == user
    assert refusal_of(lambda: links.confirm(old_link)) is BadLink
    make_user(email="old@example.org")
    assert_guards_are_correct()


def test_a_link_with_the_id_of_another_account_changes_nothing() -> None:
    user = waiting_user()
    other = waiting_user("other@example.org")
    token = links.make(links.CHANGE, other.pk, str(user.pending_id))

    assert refusal_of(lambda: confirm_change(token)) is BadLink


def test_following_a_link_fails_if_every_attempt_meets_another_change(proxy: FaultProxy) -> None:
    user = waiting_user()
    for number in range(9):
        edit = partial(edit_profile, full_name=f"Ann {number}")
        proxy.plan("TransactWriteItems", Meanwhile(lambda edit=edit: edit(again(user))))

    with pytest.raises(StaleUser):
        links.repeat_if_stale(lambda: confirm_change(token_of(user)))

    proxy.forget()
    assert again(user).awaited_email == NEW


def test_an_immediate_change_to_the_same_address_ends_the_waiting_one() -> None:
    user = waiting_user()
    email = "New@Example.ORG"

    change_email(user, email)

    assert again(user).email == email
    assert not again(user).is_confirmed
    assert again(user).pending_id is None
    assert guard_owner(NEW_KEY) == user.pk
    assert_guards_are_correct()


def test_a_change_whose_link_is_too_old_is_not_shown_and_not_made() -> None:
    user = waiting_user()
    token = token_of(user)
    with days_later(2.999):
        assert again(user).awaited_email == NEW

    with days_later():
        assert again(user).awaited_email is None
        assert refusal_of(lambda: confirm_change(token)) is BadLink
        # A link that is made later does not make it either.
        assert refusal_of(lambda: confirm_change(token_of(user))) is BadLink
        request_change(user, NEW)
        assert confirm_change(token_of(user))[0].email == NEW
    assert_guards_are_correct()


# The pages ----------------------------------------------------------------------------------------


def confirm_on_page(client: Client) -> None:
    """Request a link on the profile, and follow it."""
    client.post(SEND)
    client.post(link())
    mail.outbox.clear()


def change_on_page(client: Client, email: str = NEW) -> None:
    response = client.post(EMAIL, {"email": email, "password": PASSWORD})
    assert (response.status_code, response["Location"]) == (302, PROFILE)


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
        links.repeat_if_stale(lambda: links.confirm(token))

    assert not again(ann).is_confirmed


def test_the_button_sends_another_link_until_the_address_is_confirmed(
    client: Client, ann: User
) -> None:
    response = client.post(SEND)

    assert (response.status_code, response["Location"]) == (302, PROFILE)
    page = Page(client.get(PROFILE))
    assert page.messages == ["We are sending the link. Check your email."]
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


def test_a_change_is_mailed_to_the_new_address_and_shown_as_waiting_even_if_another_account_has_it(
    client: Client, ann: User
) -> None:
    make_user(email=NEW)
    assert "when you follow it" in Page(client.get(EMAIL)).text

    change_on_page(client)

    assert the_mail().to == [NEW]
    assert not re.search(r"\bann\b(?!@)", told_by(the_mail()))
    page = Page(client.get(PROFILE))
    assert page.messages == [
        "We are sending a link to your new email address. Follow it to make the change."
    ]
    assert f"It becomes {NEW} when you follow the link" in " ".join(page.text.split())
    assert "Cancel this change" in page.text
    assert again(ann).email == "ann@example.org"
    assert guard_owner("email#ann@example.org") == ann.pk
    assert_guards_match_users()

    with days_later():
        text = Page(client.get(PROFILE)).text
    assert "Cancel this change" not in text
    assert NEW not in text


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


@pytest.mark.parametrize("button", [SEND, CANCEL])
def test_a_button_whose_session_has_ended_leads_to_its_page_after_the_sign_in(button: str) -> None:
    make_user(username="ann")
    visitor = Client()

    sign_in = visitor.post(button)["Location"]
    typed = {"username": "ann", "password": PASSWORD}
    answer = visitor.post(sign_in, typed, follow=True)

    assert (answer.status_code, answer.request["PATH_INFO"]) == (200, PROFILE)
