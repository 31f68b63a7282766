"""Ways back: the four steps of a password reset, and the reminder of the username."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.conf import settings as site
from django.core import mail
from django.test import Client
from django.urls import reverse
from django.utils.http import urlsafe_base64_encode

from accounts.emails import links
from accounts.emails.change import request_change
from accounts.emails.confirmation import mark_confirmed
from accounts.models import User
from accounts.services import (
    change_email,
    change_password,
    change_username,
    deactivate,
    delete,
    edit_profile,
)
from tests.factories import PASSWORD, make_user, stored_items, stored_user
from tests.faults.kinds import CloseBefore, DropReply, TimeOut
from tests.faults.proxy import FaultProxy
from tests.mailbox import later, link, the_mail, whole_link
from tests.pages import Page, form_values, meanwhile, sign_in, signed_in_as
from tests.requests import Requests

RESET = "/accounts/password_reset/"
REMINDER = "/accounts/username_reminder/"
NEW_PASSWORD = "another good password"
REFUSED = "This link was already used, is too old, or is incomplete."


@pytest.fixture
def ann(engine: str) -> User:
    """An account whose owner has forgotten something."""
    return make_user(username="Ann", email="ann@example.org")


def ask(email: str = "ann@example.org", url: str = RESET) -> Any:
    """Send the form with this address."""
    mail.outbox.clear()
    return Client().post(url, {"email": email})


def reset_link(email: str = "ann@example.org") -> str:
    """The path of a link that was asked for."""
    ask(email)
    return link()


def opened(path: str) -> tuple[Client, str]:
    """A visitor who followed the link, and where the form is."""
    visitor = Client()
    response = visitor.get(path)
    assert response.status_code == 302
    return visitor, response["Location"]


def set_password(visitor: Client, form: str, password: str = NEW_PASSWORD) -> Any:
    return visitor.post(form, {"new_password1": password, "new_password2": password})


def assert_refused(path: str, visitor: Client | None = None) -> None:
    """The page says that the link is void, and nothing is written."""
    visitor = visitor or Client()
    before = stored_items()

    for response in (visitor.get(path), set_password(visitor, path)):
        assert response.status_code == 200
        page = Page(response)
        assert REFUSED in page.text
        assert page.fields == {}
    assert stored_items() == before


# Asking -----------------------------------------------------------------------------------------


def test_the_four_steps_set_a_password(ann: User) -> None:
    assert ask()["Location"] == reverse("password_reset_done")
    assert the_mail().to == ["ann@example.org"]
    visitor, form = opened(link())
    assert form == f"/accounts/reset/{urlsafe_base64_encode(ann.pk.encode())}/set-password/"

    response = set_password(visitor, form)

    assert response["Location"] == reverse("password_reset_complete")
    assert visitor.get(response["Location"]).status_code == 200
    assert User.get(ann.pk).check_password(NEW_PASSWORD)
    assert signed_in_as(visitor) is None
    sign_in(visitor, ann, NEW_PASSWORD)
    assert signed_in_as(visitor) == "Ann"


def answer_to(url: str, email: str, requests_sent: Requests) -> tuple[Any, ...]:
    """What a visitor can tell of the answer, and what it took."""
    requests_sent.clear()
    response = ask(email, url)
    operations = list(requests_sent.operations)
    headers = dict(response.items()) | {"Expires": "", "X-Request-ID": ""}
    done = Client().get(response["Location"])
    return (
        response.status_code,
        headers,
        response.content,
        Page(done).text,
        operations,
        len(mail.outbox),
    )


@pytest.mark.parametrize("url", [RESET, REMINDER])
def test_the_answer_does_not_tell_whether_an_address_is_known(
    engine: str, limits: Any, requests_sent: Requests, url: str
) -> None:
    make_user(email="ann@example.org")
    make_user(email="cy@example.org", password=None)
    deactivate(make_user(email="dot@example.org"))
    request_change(make_user(), "reserved@example.org")

    answers = [
        answer_to(url, f"{name}@example.org", requests_sent)
        for name in ("ann", "bob", "cy", "dot", "reserved")
    ]

    assert answers[1:] == answers[:1] * 4
    assert answers[0][-2:] == (["GetItem", "GetItem"], 1)


@pytest.mark.parametrize("url", [RESET, REMINDER])
@pytest.mark.parametrize("stored", ["kate@example.org", "\u212aate@example.org"])
@pytest.mark.parametrize("typed", ["kate@example.org", "\u212aate@example.org"])
def test_a_spelling_that_no_mail_can_go_to_does_not_tell_either(
    engine: str, requests_sent: Requests, url: str, stored: str, typed: str
) -> None:
    def answer() -> tuple[Any, ...]:
        requests_sent.clear()
        status = ask(typed, url).status_code
        reads = requests_sent.operations.count("GetItem")
        return status, reads, [message.to for message in mail.outbox]

    unknown = answer()
    make_user(email=stored)

    assert answer() == unknown


@pytest.mark.parametrize("url", [RESET, REMINDER])
def test_the_mail_goes_to_the_address_that_is_stored(ann: User, url: str) -> None:
    ask("ANN@EXAMPLE.ORG", url)

    assert the_mail().to == ["ann@example.org"]


def test_an_address_without_account_is_told_so_and_gets_no_link(ann: User) -> None:
    ask("bob@example.org")

    assert the_mail().to == ["bob@example.org"]
    assert "no account that can sign in has this email address" in the_mail().body
    assert whole_link() == "http://testserver/accounts/signup/"


@pytest.mark.parametrize("url", [RESET, REMINDER])
@pytest.mark.parametrize("shut", [deactivate, lambda user: change_password(user, None)])
def test_an_account_that_nobody_can_sign_in_to_gets_the_other_mail(
    ann: User, url: str, shut: Any
) -> None:
    shut(ann)

    ask(url=url)

    assert "no account that can sign in has this email address" in the_mail().body
    assert "Ann" not in the_mail().body


@pytest.mark.parametrize("url", [RESET, REMINDER])
def test_an_address_with_a_domain_of_other_letters_is_found(engine: str, url: str) -> None:
    make_user(username="Jo", email="jo@Bücher.example")

    ask("JO@xn--bcher-kva.example", url)

    assert the_mail().to == ["jo@xn--bcher-kva.example"]
    assert "no account" not in the_mail().body


@pytest.mark.parametrize("url", [RESET, REMINDER])
@pytest.mark.parametrize("typed", ["", "ann", "ann@", "a@b\r\nBcc: c@d.org", "a@b.org,c@d.org"])
def test_what_is_no_address_is_refused_at_its_field(engine: str, url: str, typed: str) -> None:
    response = ask(typed, url)

    assert response.status_code == 200
    assert Page(response).errors.keys() == {"email"}
    assert mail.outbox == []


@pytest.mark.usefixtures("no_mail")
@pytest.mark.parametrize("url", [RESET, REMINDER])
def test_the_page_says_that_the_mail_could_not_be_sent(
    ann: User, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    answers = [ask(f"{name}@example.org", url) for name in ("ann", "bob")]

    for response in answers:
        assert response.status_code == 200
        page = Page(response)
        assert page.errors[""] == ["The mail could not be sent. Please try again later."]
    assert "example.org" not in caplog.text
    assert "http" not in caplog.text


# The link ---------------------------------------------------------------------------------------


def test_a_link_is_good_once(ann: User) -> None:
    path = reset_link()
    set_password(*opened(path))

    assert_refused(path)


def test_a_form_left_open_is_void_once_the_link_was_used(ann: User) -> None:
    path = reset_link()
    left_open, form = opened(path)
    set_password(*opened(path))

    assert_refused(form, left_open)


def test_a_link_is_good_for_three_days(ann: User) -> None:
    path = reset_link()
    assert site.PASSWORD_RESET_TIMEOUT == links.VALID_SECONDS

    with later(days=3, seconds=2):
        assert_refused(path)
    with later(days=3, seconds=-60):
        opened(path)


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
def test_a_link_is_void_after(ann: User, change: Any, is_open: bool) -> None:
    path, visitor = reset_link(), None
    if is_open:
        visitor, path = opened(path)
    change(User.get(ann.pk))

    assert_refused(path, visitor)


def test_a_link_is_good_after_a_change_that_does_not_concern_it(ann: User) -> None:
    path = reset_link()
    change_username(User.get(ann.pk), "Anna")
    edit_profile(ann := User.get(ann.pk), full_name="Ann Example")

    set_password(*opened(path))

    assert User.get(ann.pk).check_password(NEW_PASSWORD)


def test_a_link_is_good_for_no_other_account(ann: User) -> None:
    bob = make_user()
    token = reset_link().split("/")[-2]

    assert_refused(f"/accounts/reset/{urlsafe_base64_encode(bob.pk.encode())}/{token}/")


def test_a_link_is_void_for_an_account_made_anew_under_the_same_key(engine: str) -> None:
    again = {"username": "Cy", "email": "cy@example.org", "request_id": "cy"}
    first = make_user(**again)
    path = reset_link("cy@example.org")
    delete(first)
    make_user(**again)

    assert_refused(path)


@pytest.mark.parametrize(
    "uid",
    [
        "x",
        "%20",
        "%00",
        "set-password",
        "a" * 3000,
        "%ff%fe",
        *(
            urlsafe_base64_encode(name)
            for name in (
                b"email#ann@example.org",
                b"userName#ann",
                b"\xff\xfe",
                b"\xed\xa0\x80",
                b"\x00",
                b"nobody",
                b"Ann",
                b"x" * 2900,
                "５b0f6c9e-6d0b-4b43-9a35-0f4c1f1c9c57".encode(),
            )
        ),
        "spellings",
    ],
)
@pytest.mark.parametrize("token", ["x", "set-password", "a-b", "%00-%00", "é-é", "z" * 3000])
def test_a_link_that_was_made_up_is_refused(ann: User, uid: str, token: str) -> None:
    if uid == "spellings":
        uid = urlsafe_base64_encode(ann.pk.upper().encode())

    response = Client().get(f"/accounts/reset/{uid}/{token}/")

    assert response.status_code == 200
    assert REFUSED in Page(response).text


@pytest.mark.parametrize("path", ["/accounts/reset//x/", "/accounts/reset/x//", "/accounts/reset/"])
def test_a_link_without_its_parts_leads_nowhere(engine: str, path: str) -> None:
    assert Client().get(path).status_code == 404


# The new password --------------------------------------------------------------------------------


def test_a_new_password_ends_all_sessions(ann: User) -> None:
    signed_in = Client()
    sign_in(signed_in, ann)
    path = reset_link()

    set_password(*opened(path))

    assert signed_in_as(signed_in) is None


def test_a_new_password_can_be_set_where_one_is_signed_in(ann: User) -> None:
    visitor = Client()
    sign_in(visitor, ann)
    path = reset_link()

    response = set_password(visitor, visitor.get(path)["Location"])

    assert visitor.get(response["Location"]).status_code == 200
    assert User.get(ann.pk).check_password(NEW_PASSWORD)
    assert signed_in_as(visitor) is None


def test_a_new_password_can_be_set_where_a_session_was_ended_from_elsewhere(ann: User) -> None:
    visitor = Client()
    sign_in(visitor, ann)
    change_password(User.get(ann.pk), "what somebody else has set")
    form = visitor.get(reset_link())["Location"]
    assert "Set a new password" in Page(visitor.get(form)).text

    response = set_password(visitor, form)

    assert response.status_code == 302
    assert User.get(ann.pk).check_password(NEW_PASSWORD)


@pytest.mark.parametrize("password", ["", "short", "password", "1234567890", "ann@example.org"])
def test_a_new_password_keeps_the_rules(ann: User, password: str) -> None:
    visitor, form = opened(reset_link())
    before = stored_items()

    response = set_password(visitor, form, password)

    assert response.status_code == 200
    assert Page(response).errors
    assert stored_items() == before


def test_two_different_passwords_are_refused_and_the_link_stays_good(ann: User) -> None:
    visitor, form = opened(reset_link())

    typed = {"new_password1": NEW_PASSWORD, "new_password2": PASSWORD}
    assert Page(visitor.post(form, typed)).errors.keys() == {"new_password2"}

    assert set_password(visitor, form).status_code == 302


def test_the_form_as_it_is_drawn_is_accepted(ann: User) -> None:
    visitor, form = opened(reset_link())
    typed = {"new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}

    assert visitor.post(form, form_values(visitor, form, **typed)).status_code == 302


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda user: edit_profile(user, full_name="Ann"), "Please try again."),
        (lambda user: change_password(user, PASSWORD), "Please try again."),
        (lambda user: change_email(user, "new@example.org"), "Please try again."),
        (deactivate, "Please try again."),
        (delete, "This account was deleted meanwhile."),
    ],
)
def test_a_change_at_the_same_moment_is_said_and_nothing_is_stored(
    engine: str, ann: User, change: Any, told: str
) -> None:
    visitor, form = opened(reset_link())

    with meanwhile(engine, "UpdateItem", lambda: change(User.get(ann.pk))):
        response = set_password(visitor, form)

    assert response.status_code == 200
    assert told in Page(response).errors[""][0]
    stored = stored_user(ann.pk)
    assert stored is None or not User.from_raw_data(stored).check_password(NEW_PASSWORD)


def test_of_two_who_use_a_link_at_once_one_sets_the_password(ann: User, at_once: Any) -> None:
    visitors = [opened(path) for path in [reset_link()] * 4]

    def use(number: int) -> int:
        status: int = set_password(*visitors[number], f"{NEW_PASSWORD} {number}").status_code
        return status

    statuses = at_once(use, threads=4)

    assert sorted(statuses) == [200, 200, 200, 302]
    assert User.get(ann.pk).check_password(f"{NEW_PASSWORD} {statuses.index(302)}")


@pytest.mark.parametrize("lost", [DropReply(), CloseBefore(), TimeOut()])
def test_a_password_whose_reply_is_lost_is_set(proxy: FaultProxy, lost: Any) -> None:
    user = make_user(email="ann@example.org")
    visitor, form = opened(reset_link())
    proxy.plan("UpdateItem", lost)

    assert set_password(visitor, form).status_code == 302

    assert User.get(user.pk).check_password(NEW_PASSWORD)


def test_no_link_and_no_password_is_logged(ann: User, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        path = reset_link()
        set_password(*opened(path))
        Client().get(path)

    assert path.split("/")[-2] not in caplog.text
    assert NEW_PASSWORD not in caplog.text


# The reminder ------------------------------------------------------------------------------------


def test_the_reminder_mails_the_user_name(ann: User) -> None:
    assert ask(url=REMINDER)["Location"] == reverse("username_reminder_done")

    assert "\n\nAnn\n\n" in the_mail().body
    assert whole_link() == "http://testserver/accounts/login/"


def test_an_address_without_account_is_reminded_of_nothing(ann: User) -> None:
    ask("bob@example.org", REMINDER)

    assert the_mail().to == ["bob@example.org"]
    assert "Ann" not in the_mail().body
    assert whole_link() == "http://testserver/accounts/signup/"


@pytest.mark.parametrize("name", ["win.prize.example", "win．prize．example", "win․prize"])
def test_a_name_like_a_web_address_is_mailed_to_its_confirmed_owner_alone(
    engine: str, name: str
) -> None:
    user = make_user(username=name, email="ann@example.org")

    ask(url=REMINDER)
    assert name not in the_mail().body
    assert whole_link() == "http://testserver/accounts/login/"

    mark_confirmed(user)
    ask(url=REMINDER)
    assert f"\n\n{name}\n\n" in the_mail().body


def test_the_sign_in_page_leads_to_both(engine: str) -> None:
    page = Client().get("/accounts/login/").content.decode()

    assert f'href="{RESET}"' in page
    assert f'href="{REMINDER}"' in page
