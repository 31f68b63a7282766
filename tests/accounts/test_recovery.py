"""The password reset, in Django's four steps, and the username reminder."""

import logging
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings as site
from django.core import mail
from django.test import Client
from django.urls import reverse
from django.utils.http import urlsafe_base64_encode

from accounts.emails import links
from accounts.emails.links import mark_confirmed, request_change
from accounts.models import User
from accounts.services import change_email, deactivate, delete
from tests.factories import PASSWORD, change_password, make_user, stored_items
from tests.items import overwrite
from tests.mailbox import link, the_mail, whole_link
from tests.pages import REMINDER, RESET, Page, form_values, sign_in, signed_in_as
from tests.requests import Requests

NEW_PASSWORD = "another good password"
REFUSED = "This link was already used, is too old, or is incomplete."

each_form = pytest.mark.parametrize("url", [RESET, REMINDER])


def ask(email: str = "ann@example.org", url: str = RESET) -> Any:
    """Send the form with this address."""
    mail.outbox.clear()
    return Client().post(url, {"email": email})


def reset_link(email: str = "ann@example.org") -> str:
    """The path of a new link."""
    ask(email)
    return link()


def opened(path: str, visitor: Client | None = None) -> tuple[Client, str]:
    """A visitor who followed the link, and the address of the form."""
    visitor = visitor or Client()
    response = visitor.get(path)
    assert response.status_code == 302
    return visitor, response["Location"]


def set_password(visitor: Client, form: str, password: str = NEW_PASSWORD) -> Any:
    return visitor.post(form, {"new_password1": password, "new_password2": password})


def is_refused(path: str, visitor: Client | None = None) -> bool:
    """Whether the page refuses the link. Checks that nothing is written."""
    visitor = visitor or Client()
    before = stored_items()
    pages = [Page(visitor.get(path)), Page(set_password(visitor, path))]
    assert stored_items() == before
    return all(REFUSED in page.text and page.fields == {} for page in pages)


# The forms ----------------------------------------------------------------------------------------


def answer_to(url: str, email: str, requests_sent: Requests) -> tuple[Any, ...]:
    """What a visitor can see of the answer, and which requests and mails it took."""
    requests_sent.clear()
    response = ask(email, url)
    operations = list(requests_sent.operations)
    headers = dict(response.items()) | {"Expires": "", "X-Request-ID": ""}
    done = Page(Client().get(response.get("Location", url))).text
    shown = re.sub(rb'value="[^"]{64}"', b"", response.content)
    return response.status_code, headers, shown, done, operations, len(mail.outbox)


@each_form
def test_the_answer_does_not_tell_whether_an_address_is_known(
    engine: str, limits: Any, requests_sent: Requests, url: str
) -> None:
    make_user(email="ann@example.org")
    make_user(email="cy@example.org", password=None)
    deactivate(make_user(email="dot@example.org"))
    request_change(make_user(), "awaited@example.org")

    answers = [
        answer_to(url, f"{name}@example.org", requests_sent)
        for name in ("ann", "bob", "cy", "dot", "awaited")
    ]

    assert answers[1:] == answers[:1] * 4
    assert answers[0][-2:] == (["GetItem", "GetItem"], 1)


# The Kelvin sign is another spelling of k, and no mail can be sent to it.
@pytest.mark.parametrize("stored", ["kate@example.org", "\u212aate@example.org"])
@pytest.mark.parametrize("typed", ["kate@example.org", "\u212aate@example.org"])
def test_the_answer_does_not_tell_whether_another_spelling_of_an_address_is_known(
    engine: str, requests_sent: Requests, limits: Any, stored: str, typed: str
) -> None:
    unknown = answer_to(RESET, typed, requests_sent)
    # New accounts cannot have such an address.
    overwrite(make_user(email="kate@example.org"), email={"S": stored})

    assert answer_to(RESET, typed, requests_sent) == unknown


@each_form
@pytest.mark.parametrize(
    "shut",
    [deactivate, lambda user: change_password(user, None), delete],
    ids=["deactivated", "no password", "unknown"],
)
def test_an_address_whose_account_cannot_sign_in_gets_a_mail_without_a_link(
    ann: User, url: str, shut: Callable[[User], None]
) -> None:
    shut(ann)

    ask(url=url)

    assert the_mail().to == ["ann@example.org"]
    assert "no account that can sign in has this email address" in the_mail().body
    assert not re.search(r"\bann\b(?!@)", str(the_mail().body))
    assert whole_link() == "http://testserver/accounts/signup/"


def test_an_invalid_address_is_refused_at_its_field() -> None:
    for typed in ("", "ann", "ann@", "a@b\r\nBcc: c@d.org", "a@b.org,c@d.org"):
        assert Page(ask(typed)).errors.keys() == {"email"}
    assert mail.outbox == []


# The link to a new password -----------------------------------------------------------------------


def test_the_four_steps_set_a_password(ann: User, caplog: pytest.LogCaptureFixture) -> None:
    assert site.PASSWORD_RESET_TIMEOUT == links.VALID_SECONDS
    caplog.set_level(logging.DEBUG)
    mark_confirmed(ann)
    assert ask()["Location"] == reverse("password_reset_done")
    path = link()
    visitor, form = opened(path)
    assert form == f"/accounts/reset/{urlsafe_base64_encode(ann.pk.encode())}/set-password/"
    typed = {"new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}
    assert Page(set_password(visitor, form, "password")).errors.keys() == {"new_password1"}

    response = visitor.post(form, form_values(visitor, form, **typed))

    assert response["Location"] == reverse("password_reset_complete")
    assert mail.outbox[-1].subject == "Your password at Dynamo Ledger was changed"
    assert visitor.get(response["Location"]).status_code == 200
    assert signed_in_as(visitor) is None
    sign_in(visitor, ann, NEW_PASSWORD)
    assert signed_in_as(visitor) == "ann"
    assert path.split("/")[-2] not in caplog.text
    assert NEW_PASSWORD not in caplog.text


@pytest.mark.parametrize(
    "change",
    [
        lambda user: change_email(user, "new@example.org"),
        lambda user: change_password(user, PASSWORD),
        lambda user: sign_in(Client(), user),
        deactivate,
        delete,
    ],
    ids=["address", "password", "sign-in", "deactivation", "deletion"],
)
@pytest.mark.parametrize("is_open", [False, True], ids=["before", "while the form is open"])
def test_a_link_is_refused_after_a_change_that_ends_it(
    ann: User, change: Any, is_open: bool
) -> None:
    path, visitor = reset_link(), None
    if is_open:
        visitor, path = opened(path)
    change(User.get(ann.pk))

    assert is_refused(path, visitor)


def test_a_link_is_refused_for_another_account_or_one_registered_again(ann: User) -> None:
    token = reset_link().split("/")[-2]
    bob = make_user()
    assert is_refused(f"/accounts/reset/{urlsafe_base64_encode(bob.pk.encode())}/{token}/")

    again = {"username": "Cy", "email": "cy@example.org", "request_id": "cy"}
    first = make_user(**again)
    path = reset_link("cy@example.org")
    delete(first)
    make_user(**again)
    assert is_refused(path)


UIDS = ["x", "%00", "a" * 3000, "%ff%fe"]
UIDS += map(urlsafe_base64_encode, (b"email#ann@example.org", b"\xff\xfe", b"\x00", b"x" * 2900))
TOKENS = ["x", "set-password", "%00-%00", "é-é", "z" * 3000]


def test_an_invented_link_is_refused(ann: User) -> None:
    spelled = urlsafe_base64_encode(ann.pk.upper().encode())

    for uid, token in [(uid, "x") for uid in UIDS] + [(spelled, token) for token in TOKENS]:
        response = Client().get(f"/accounts/reset/{uid}/{token}/")

        assert response.status_code == 200
        assert REFUSED in Page(response).text, (uid, token)


@pytest.mark.parametrize("is_signed_in", [True, False], ids=["signed in", "session ended"])
def test_a_new_password_ends_the_session_of_the_browser_in_which_it_is_set(
    ann: User, is_signed_in: bool
) -> None:
    visitor = Client()
    sign_in(visitor, ann)
    if not is_signed_in:
        change_password(User.get(ann.pk), "what somebody else has set")
    _visitor, form = opened(reset_link(), visitor)
    assert "Set a new password" in Page(visitor.get(form)).text

    response = set_password(visitor, form)

    assert visitor.get(response["Location"]).status_code == 200
    assert User.get(ann.pk).check_password(NEW_PASSWORD)
    assert signed_in_as(visitor) is None


# The reminder -------------------------------------------------------------------------------------


def test_the_reminder_mails_the_username_to_any_spelling_of_the_address(ann: User) -> None:
    response = ask("ANN@EXAMPLE.ORG", REMINDER)

    assert response["Location"] == reverse("username_reminder_done")
    assert the_mail().to == ["ann@example.org"]
    assert "\n\nann\n\n" in the_mail().body
    assert whole_link() == "http://testserver/accounts/login/"


def test_a_username_like_a_web_address_is_mailed_only_to_a_confirmed_address(engine: str) -> None:
    for name in ("win.prize.example", "win．prize．example", "win․prize"):
        user = make_user(username=name)

        ask(user.email, REMINDER)
        assert name not in the_mail().body
        assert whole_link() == "http://testserver/accounts/login/"

        mark_confirmed(user)
        ask(user.email, REMINDER)
        assert f"\n\n{name}\n\n" in the_mail().body
        delete(user)
