"""Pages while another request deletes, deactivates or changes the visitor's account."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any

import pytest
from django.core import mail
from django.test import Client, override_settings
from django.utils.http import urlsafe_base64_encode

from accounts.emails import links
from accounts.models import User
from accounts.services import deactivate, delete, edit_profile
from accounts.signals import account_deleting
from dynamo import Transaction
from tests.factories import PASSWORD, assert_guards_match_users, make_user, stored_items
from tests.faults.kinds import Meanwhile
from tests.faults.proxy import FaultProxy
from tests.mailbox import link
from tests.operations import Other
from tests.pages import PROFILE, RESET, SIGN_IN, Page, let_in, shown_user

ADDRESS = "ann@example.org"
ANOTHER_ADDRESS = "anna@example.org"
ANOTHER = "quite another password"

EMAIL = "/accounts/email/"
DELETE = "/accounts/delete/"

Send = Callable[[Client, User], Any]
Stored = dict[str, dict[str, Any]]


def posting(url: str, typed: dict[str, str] | None = None) -> Send:
    return lambda client, _user: client.post(url, typed)


def getting(url: str) -> Send:
    return lambda client, _user: client.get(url)


def following(url: str, token_of: Callable[[User], str]) -> Send:
    return lambda client, user: client.post(f"{url}{token_of(user)}/")


def at_once(send: Send) -> Send:
    def sent(client: Client, user: User) -> Any:
        with override_settings(ACCOUNTS_EMAIL_CHANGE="immediate"):
            return send(client, user)

    return sent


#: Forms, which are shown again with what was typed and an error if they are refused.
FORMS = {
    "the profile": (PROFILE, {"full_name": "Ann Example"}),
    "another username": ("/accounts/username/", {"username": "anna", "password": PASSWORD}),
    "another address": (EMAIL, {"email": ANOTHER_ADDRESS, "password": PASSWORD}),
    "another spelling": (EMAIL, {"email": "ANN@example.org", "password": PASSWORD}),
    "another password": (
        "/accounts/password_change/",
        {"old_password": PASSWORD, "new_password1": ANOTHER, "new_password2": ANOTHER},
    ),
    "a deletion": (DELETE, {"password": PASSWORD}),
}
SENDS: dict[str, Send] = {name: posting(*form) for name, form in FORMS.items()} | {
    "another address at once": at_once(posting(*FORMS["another address"])),
    "a canceled change": posting("/accounts/email/cancel/"),
    "a followed change": following("/accounts/email/confirm/", links.change_token),
    "the link again": posting("/accounts/confirm/send/"),
    "a confirmation": following("/accounts/confirm/", links.confirmation_token),
    "an export": getting("/accounts/export/"),
    "the sessions": getting("/accounts/sessions/"),
    "the end of the others": posting("/accounts/sessions/end_others/"),
    "the password again": posting("/accounts/reauthenticate/", {"password": PASSWORD}),
    "a new password": lambda client, user: client.post(
        f"/accounts/reset/{urlsafe_base64_encode(user.pk.encode())}/set-password/",
        {"new_password1": ANOTHER, "new_password2": ANOTHER},
    ),
    "a sign-in": posting(SIGN_IN, {"username": "ann", "password": PASSWORD}),
    "a sign-out": posting("/accounts/logout/"),
    "a language": posting("/i18n/setlang/", {"language": "ja"}),
}
#: An email change waits for its link; the address is not confirmed yet; there is another session.
WAITING = {"a canceled change", "a followed change"}
UNCONFIRMED = {"the link again", "a confirmation"}
BESIDE_ANOTHER = {"another password", "the sessions", "the end of the others"}


def signed_in(name: str = "") -> tuple[Client, User]:
    """A browser in which Ann is signed in, and what the form `name` needs."""
    user = make_user(username="ann", email=ADDRESS, email_confirmed=name not in UNCONFIRMED)
    if name in BESIDE_ANOTHER:
        let_in(user)
    client = let_in(user)
    user = User.get(user.pk)
    if name in WAITING:
        links.request_change(user, ANOTHER_ADDRESS)
    if name == "a new password":
        client = Client()
        client.post(RESET, {"email": ADDRESS})
        client.get(link(mail.outbox[-1]))
    return client, user


Act = Callable[[Client, User], object]


def by_another(act: Callable[[User], object]) -> Act:
    """`act` by another request, which reads the account."""
    return lambda _client, user: act(User.get(user.pk))


def answers(
    proxy: FaultProxy, name: str, act: Act, *, also: Callable[[User], object] = bool
) -> Iterator[tuple[Any, User, Stored]]:
    """Of each request of a page: the answer if `act` happens just before it.

    Also the account, and what was stored after `act`. `also` is done before the page is asked for.
    """
    for nth in count():
        client, user = signed_in(name)
        also(user)
        requests: list[object] = []
        then: list[Stored] = []
        proxy.forget()
        happening = Meanwhile(partial(_act, act, client, user, then))
        proxy.plan("*", happening, when=partial(_is_nth, nth, requests))
        mail.outbox.clear()
        answer = SENDS[name](client, user)
        if not then:
            assert nth > 1
            return
        yield answer, user, then[0]


def _act(act: Act, client: Client, user: User, then: list[Stored]) -> None:
    act(client, user)
    then.append(stored_items())


def _is_nth(nth: int, requests: list[object], body: object) -> bool:
    requests.append(body)
    return len(requests) == nth + 1


def edit(user: User) -> None:
    edit_profile(user, full_name="Elsewhere")


@pytest.mark.parametrize("act", [delete, deactivate, edit])
@pytest.mark.parametrize("name", SENDS)
def test_a_page_has_an_answer_whenever_another_request_changes_the_account(
    proxy: FaultProxy, limits: Any, name: str, act: Callable[[User], None]
) -> None:
    for answer, user, then in answers(proxy, name, by_another(act)):
        assert answer.status_code in {200, 302, 409, 410}
        if name in FORMS and answer.status_code == 200:
            page = Page(answer)
            [told] = page.errors[""]
            assert ("deleted" if act is delete else "changed") + " meanwhile" in told
            for field, typed in FORMS[name][1].items():
                assert page.value(field) == ("" if "password" in field else typed)
            assert (stored_items(), mail.outbox) == (then, [])
        assert_guards_match_users()
        stored = User.get_or_none(user.pk)
        assert act is not delete or stored is None
        if stored is not None:
            is_out = not (stored.is_active or stored.sessions_read())
            assert act is not deactivate or is_out
            delete(stored)


@pytest.mark.parametrize("name", [*FORMS, "another address at once", "a new password"])
def test_a_form_that_is_sent_twice_at_once_is_a_success_both_times(
    proxy: FaultProxy, limits: Any, name: str
) -> None:
    first: list[Any] = []

    def send_first(client: Client, user: User) -> None:
        twin = Client()
        twin.cookies.load(client.cookies.output(header=""))
        first.append(SENDS[name](twin, user))

    for answer, user, _then in answers(proxy, name, send_first):
        for one in (first.pop(), answer):
            # A link can be used up before the page reads it.
            assert one.status_code == 302 or "link was already used" in Page(one).text
        assert_guards_match_users()
        if stored := User.get_or_none(user.pk):
            delete(stored)


# Together with the account, a receiver deletes a note of another app ------------------------------


def delete_note(account: str, write: Transaction, **_signal: object) -> None:
    Other.get(account).delete(write=write)


def delete_note_if_there(account: str, write: Transaction, **_signal: object) -> None:
    if note := Other.get_or_none(account):
        note.delete(missing_ok=True, write=write)


@pytest.fixture(params=[delete_note, delete_note_if_there])
def receiver(request: Any) -> Iterator[None]:
    account_deleting.connect(request.param)
    yield
    account_deleting.disconnect(request.param)


def make_note(user: User) -> None:
    Other.create(pk=user.pk)


@pytest.mark.usefixtures("receiver")
def test_two_deletions_at_once_both_sign_out(proxy: FaultProxy, limits: Any) -> None:
    for answer, user, _then in answers(proxy, "a deletion", by_another(delete), also=make_note):
        assert (answer.status_code, User.get_or_none(user.pk)) == (302, None)
        assert Other.get_or_none(user.pk) is None
        assert shown_user(answer.client.get("/")) is None


def change_note(user: User) -> None:
    Other.get(user.pk).change(text="since")


def remove_note(user: User) -> None:
    Other.get(user.pk).delete()


@pytest.mark.parametrize("receiver", [delete_note_if_there], indirect=True)
@pytest.mark.parametrize("act", [change_note, remove_note])
@pytest.mark.usefixtures("receiver")
def test_what_changed_meanwhile_is_deleted_with_the_account_or_the_form_is_shown_again(
    proxy: FaultProxy, limits: Any, act: Callable[[User], None]
) -> None:
    shown = 0
    for answer, user, _then in answers(proxy, "a deletion", by_another(act), also=make_note):
        is_deleted = answer.status_code == 302
        assert (User.get_or_none(user.pk) is None) == is_deleted
        assert [sent.subject.split()[-1] for sent in mail.outbox] == is_deleted * ["deleted"]
        if not is_deleted:
            [told] = Page(answer).errors[""]
            assert "changed meanwhile" in told
            assert (Other.get_or_none(user.pk) is None) == (act is remove_note)
            shown += 1
            delete(user)
        assert Other.get_or_none(user.pk) is None
    assert shown == 1
