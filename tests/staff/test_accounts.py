"""Staff adds an account, corrects its email address and deletes it, with reason and password."""

import re
from typing import Any

import pytest
from django.test import Client

from accounts.emails.links import request_change
from accounts.models import User
from invoices.document.invoice import Customer
from invoices.store.customers import add_customer, list_customers
from tests.factories import assert_guards_match_users, make_user, stored_items
from tests.pages import Page, signed_in_as
from tests.staff.scenes import (
    ADDRESS,
    again,
    below,
    fill,
    let_in,
    logged_actions,
    make_staff,
    page_of,
    send,
    stored_entries,
)

pytestmark = pytest.mark.usefixtures("engine")

ADD = "/admin/accounts/user/add/"
NEW_PASSWORD = "another good password"
CARL = {"username": "carl", "email": "carl@example.org"}


@pytest.fixture
def client(engine: str) -> Any:
    return let_in(make_staff(username="grace"))


@pytest.fixture
def bob(engine: str) -> User:
    values = {"username": "bob", "email": "bob@example.org", "email_confirmed": True}
    return make_user(**values)


def linked(mail: Any) -> str:
    """The path of the link of a mail."""
    [path] = re.findall(r"https?://[^/\s]+(/\S+)", mail.body)
    return str(path)


# Correcting the email address ---------------------------------------------------------------------


def test_a_corrected_address_is_not_confirmed_and_both_addresses_are_told(
    client: Any, bob: User, mailoutbox: Any
) -> None:
    theirs = let_in(bob)
    request_change(again(bob), "elsewhere@example.org")

    response = send(client, f"{below(bob)}email/", email="Bob@new.example.org")

    assert response.url == page_of(bob)
    page = Page(client.get(response.url))
    assert page.messages == ["Corrected the email address: “bob”, Bob@new.example.org"]
    stored = again(bob)
    assert (stored.email, stored.is_confirmed) == ("Bob@new.example.org", False)
    assert stored.awaited_email is None
    assert_guards_match_users()
    assert signed_in_as(theirs) == "bob"
    to_old, to_new = mailoutbox
    assert (to_old.to, to_new.to) == (["bob@example.org"], ["Bob@new.example.org"])
    assert "By: the staff of this site" in to_old.body
    assert not any(item in to_old.body for item in (ADDRESS, "From:", "knows your password"))
    theirs.post(linked(to_new))
    assert again(bob).is_confirmed
    [entry, of_account] = stored_entries()
    assert entry["action"]["S"] == of_account["action"]["S"] == "changeEmail"
    assert (entry["onName"]["S"], entry["reason"]["S"], "what" in entry) == ("bob", "Spam", False)


def test_another_spelling_of_the_address_keeps_it_confirmed_and_the_same_one_changes_nothing(
    client: Any, bob: User, mailoutbox: Any
) -> None:
    send(client, f"{below(bob)}email/", email="Bob@Example.org")
    assert (again(bob).email, again(bob).is_confirmed) == ("Bob@Example.org", True)

    response = send(client, f"{below(bob)}email/", email="Bob@Example.org")

    assert Page(client.get(response.url)).messages == ["There was nothing to do."]
    assert (logged_actions(), mailoutbox) == (["changeEmail"], [])


def test_an_address_that_cannot_be_stored_is_refused_at_its_field(
    client: Any, bob: User, mailoutbox: Any
) -> None:
    make_user(username="eve", email="eve@example.org")
    before = stored_items()

    for typed, field in (
        ({"email": "EVE@example.org"}, "email"),
        ({"email": "bob"}, "email"),
        ({"email": "new@example.org", "_reason": " "}, "_reason"),
        ({"email": "new@example.org", "_password": "that of bob"}, "_password"),
    ):
        page = Page(send(client, f"{below(bob)}email/", **typed))
        assert list(page.errors) == [field], typed
        assert page.value("email") == typed["email"]

    assert (stored_items(), stored_entries(), mailoutbox) == (before, [], [])


def test_an_account_that_changed_meanwhile_keeps_its_address(client: Any, bob: User) -> None:
    form = fill(client, f"{below(bob)}email/", email="new@example.org")
    again(bob).change(full_name="Robert", email="newer@example.org")

    response = client.post(f"{below(bob)}email/", form)

    assert "newer@example.org" in Page(response).errors["email"][0]
    assert (again(bob).email, logged_actions()) == ("newer@example.org", [])


def test_beyond_the_limit_of_mails_no_address_is_corrected(
    client: Any, bob: User, settings: Any
) -> None:
    settings.ACCOUNTS_LIMITS = settings.ACCOUNTS_LIMITS | {"mail_client": (1, 3600)}
    send(client, f"{below(bob)}email/", email="one@example.org")

    response = send(client, f"{below(bob)}email/", email="two@example.org")

    assert "Too many attempts" in Page(response).text
    assert (again(bob).email, logged_actions()) == ("one@example.org", ["changeEmail"])


# Deleting -----------------------------------------------------------------------------------------


def test_a_deleted_account_frees_its_values_and_its_owner_is_told(
    client: Any, bob: User, mailoutbox: Any
) -> None:
    theirs = let_in(bob)
    add_customer(bob.pk, Customer(name="Carl"), request_id="one")

    response = send(client, f"{below(bob)}delete/")

    assert Page(client.get(response.url)).messages == ["Deleted: “bob”"]
    make_user(username="bob", email="bob@example.org", request_id="another")
    assert_guards_match_users()
    assert not list_customers(bob.pk)
    assert signed_in_as(theirs) is None
    [mail] = mailoutbox
    assert (mail.to, "By: the staff of this site" in mail.body) == (["bob@example.org"], True)
    history = Page(client.get(page_of(bob), follow=True))
    assert ("This account was deleted." in history.messages, "Spam" in history.text) == (True, True)
    assert logged_actions() == ["delete"]


def test_accounts_are_not_deleted_by_the_list(client: Any, bob: User) -> None:
    listed = "/admin/accounts/user/"
    assert "delete_selected" not in client.get(listed).content.decode()

    client.post(listed, {"_selected_action": bob.pk, "action": "delete_selected", "index": "0"})

    assert again(bob) == bob


# Adding -------------------------------------------------------------------------------------------


def test_the_owner_of_an_added_account_sets_the_password(client: Any, mailoutbox: Any) -> None:
    response = send(client, ADD, **CARL, is_staff="on", is_superuser="on")

    carl = User.find(username="carl")
    assert response.url == page_of(carl)
    assert Page(client.get(response.url)).messages == ["Added: “carl”, carl@example.org"]
    assert (carl.is_staff, carl.is_superuser, carl.is_confirmed) == (False, False, False)
    assert_guards_match_users()
    [mail] = mailoutbox
    theirs = Client()
    form = theirs.get(linked(mail), follow=True).redirect_chain[-1][0]
    theirs.post(form, dict.fromkeys(("new_password1", "new_password2"), NEW_PASSWORD))
    theirs.post("/accounts/login/", {"username": "carl", "password": NEW_PASSWORD})
    assert signed_in_as(theirs) == "carl"
    [entry, _of_account] = stored_entries()
    assert [entry[name]["S"] for name in ("action", "onPk", "onName")] == ["add", carl.pk, "carl"]


def test_a_form_that_is_sent_twice_adds_one_account_and_sends_one_mail(
    client: Any, mailoutbox: Any
) -> None:
    form = fill(client, ADD, **CARL)

    answers = [client.post(ADD, form).url for _time in range(2)]

    assert answers == [page_of(User.find(username="carl"))] * 2
    assert (len(mailoutbox), logged_actions()) == (1, ["add"])
    page = Page(client.post(ADD, form | {"email": "other@example.org"}))
    assert "with other values" in page.text
    assert (len(mailoutbox), logged_actions()) == (1, ["add"])
