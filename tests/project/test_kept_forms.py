"""A form that is sent after its session ended is shown again after the sign-in, unsent."""

import html
import re
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django import forms
from django.conf import settings
from django.contrib.auth.mixins import LoginRequiredMixin
from django.core import signing
from django.http import QueryDict
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils.crypto import get_random_string
from django.views.generic import FormView

from accounts.models import User
from accounts.pages import keptforms
from accounts.pages.base import NOT_SENT, SignedInFormMixin, filled_form
from invoices.store.issuing import today
from invoices.store.records import find_invoice
from locks.lock import claim_once
from tests.accounts.test_unavailable_pages import outage
from tests.factories import PASSWORD, change_password, make_user, stored_items
from tests.invoice_factories import DAY, issued, sell_as, stored_numbers
from tests.pages import Page, sign_in, stored_sessions
from tests.requests import Requests
from tests.staff.scenes import make_staff, stored_entries

LOGIN = "/accounts/login/"
PROFILE = "/accounts/profile/"
NEW = "/invoices/new/"
VOID = f"/invoices/{DAY.year}-000001/void/"
SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}
LINE_VALUES = {"description": "設計", "quantity": "3", "unit_price": "12.50", "vat_rate": "19"}
LINE = {f"lines-0-{name}": text for name, text in LINE_VALUES.items()}
#: Japanese text that is hard to compress.
MANY_LINES = {
    f"lines-{line}-{name}": text
    for line in range(200)
    for name, text in {
        **LINE_VALUES,
        "description": "".join(
            chr(0x4E00 + (line * 7919 + at * 104729) % 20_000) for at in range(80)
        ),
    }.items()
}


def browser(user: User | None = None) -> Client:
    """A browser whose CSRF tokens are checked, in which `user` is signed in."""
    client = Client(enforce_csrf_checks=True)
    if user:
        client.force_login(user)
    return client


def opened(client: Client, url: str) -> dict[str, str]:
    """What the form at `url` sends if nothing is typed, with its CSRF token."""
    page = Page(client.get(url))
    return {name: page.value(name) for name in page.fields}


def let_expire(client: Client) -> None:
    """Delete the session, which the browser does not notice."""
    client.session.flush()


def sent_too_late(client: Client, url: str, **typed: str) -> Any:
    """The answer to a form that was opened and sent, and whose session ended in between."""
    values = opened(client, url) | typed
    let_expire(client)
    return client.post(url, values)


def signed_in_again(
    client: Client, shown: Any, user: User, password: str = PASSWORD, **more: Any
) -> Any:
    """The answer to the sign-in form of the page `shown`."""
    page = Page(shown)
    fields = {name: page.value(name) for name in page.fields if name != "remember_me"}
    return client.post(LOGIN, fields | {"username": user.username, "password": password}, **more)


def returned(client: Client, user: User, url: str, **typed: str) -> Page:
    """The form at `url` after it was sent too late and `user` signed in again."""
    answer = signed_in_again(client, sent_too_late(client, url, **typed), user)
    assert (answer.status_code, answer["Location"]) == (302, url)
    return Page(client.get(url))


def is_kept(response: Any) -> bool:
    return str(NOT_SENT) in Page(response).messages


# Every form ---------------------------------------------------------------------------------------


def views(resolver: URLResolver) -> Iterator[tuple[str, type]]:
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            yield from views(pattern)
        elif isinstance(pattern, URLPattern):
            yield str(pattern.name), getattr(pattern.callback, "view_class", type(None))


def test_every_form_for_signed_in_visitors_is_kept() -> None:
    with_forms = {
        name: view
        for name, view in views(get_resolver())
        if issubclass(view, FormView) and issubclass(view, LoginRequiredMixin)
    }

    kept = {name: view for name, view in with_forms.items() if issubclass(view, SignedInFormMixin)}
    # Its form has only a password.
    assert with_forms.keys() - kept.keys() == {"reauthenticate"}
    assert {"profile", "invoice_new", "invoice_void", "lock"} <= kept.keys()
    templates = {name for view in kept.values() for name in view().get_template_names()}
    # The field that names the account that opened the form.
    assert {name for name in templates if "form_owner" not in _with_parents(name)} == set()


def _with_parents(name: str) -> str:
    """The text of a template and of those that it extends or includes."""
    root = Path(settings.BASE_DIR)
    files = [folder / name for folder in (root / "templates", *root.glob("*/templates"))]
    text = "".join(file.read_text() for file in files if file.exists())
    others = {*re.findall(r'{% (?:extends|include) "([^"]+)"', text)}
    # One extends that of contrib.admin with its own name.
    return text + "".join(map(_with_parents, others - {name}))


def _page_of_a_lock() -> str:
    claim_once("import")
    return "/admin/lock/?name=import"


@pytest.mark.parametrize(
    ("url", "typed"),
    [
        ("/invoices/seller/", {"address": "1 Road\nTown 山田\n\nEnd"}),
        ("/accounts/username/", {"username": "anna", "password": PASSWORD}),
        ("/accounts/email/", {"email": "anna@example.org", "password": PASSWORD}),
        (NEW, {"customer_name": "“Böb” & <Söhne>", "note": "a\n b\n", **LINE}),
        (NEW, MANY_LINES),
        (f"{NEW}?from={DAY.year}-000001", {"customer_name": "Carl"}),
        (VOID, {"reason": "間違い"}),
        (_page_of_a_lock, {"_reason": "Spam", "_password": PASSWORD}),
    ],
)
def test_a_form_is_shown_again_after_the_sign_in_and_was_not_sent(
    engine: str, url: str | Callable[[], str], typed: dict[str, str], requests_sent: Requests
) -> None:
    user = make_staff(username="ann", email="ann@example.org")
    issued(user.pk)
    path = url if isinstance(url, str) else url()
    client = browser(user)
    before = stored_items() | {"invoices": stored_numbers(user.pk)}

    asked = sent_too_late(client, path, **typed)
    assert asked.status_code == 200
    assert PASSWORD not in asked.content.decode()
    assert stored_sessions() == []
    answer = signed_in_again(client, asked, user)

    assert (answer.status_code, answer["Location"]) == (302, path)
    requests_sent.clear()
    shown = client.get(path)
    # The form stays in the session, without a write.
    assert not {"PutItem", "TransactWriteItems", "UpdateItem"} & {*requests_sent.operations}
    page = Page(shown)
    assert is_kept(shown)
    for name, text in typed.items():
        assert page.value(name) == ("" if "password" in name else text), name
    assert {name for name, item in stored_items().items() if item != before.get(name)} <= {user.pk}
    assert stored_numbers(user.pk) == before["invoices"]
    assert find_invoice(user.pk, f"{DAY.year}-000001").is_voided is False
    assert stored_entries() == []


def test_a_kept_invoice_is_issued_once_with_its_request_id(ann: User) -> None:
    client = browser(ann)
    values = opened(client, NEW) | {"customer_name": "Bob", "currency": "EUR"} | LINE
    # It was issued, and its reply was lost.
    assert client.post(NEW, values).status_code == 302
    let_expire(client)
    asked = client.post(NEW, values)
    signed_in_again(client, asked, ann)

    again = opened(client, NEW) | {"currency": "EUR"}
    assert again["request_id"] == values["request_id"]
    answer = client.post(NEW, again)

    assert answer.status_code == 302
    [number] = stored_numbers(ann.pk, int(answer["Location"].split("/")[2][:4]))
    assert number == 1
    assert not is_kept(client.get(NEW))


@pytest.mark.parametrize(
    ("button", "left"),
    [({"add_line": "1"}, ["Design", "Print", ""]), ({"remove_line": "0"}, ["Print"])],
)
def test_a_button_of_the_form_acts_after_the_sign_in(
    ann: User, button: dict[str, str], left: list[str]
) -> None:
    typed = {"lines-0-description": "Design", "lines-1-description": "Print"}

    page = returned(browser(ann), ann, NEW, **typed, **button)

    assert [page.value(f"lines-{at}-description") for at in range(len(left))] == left
    assert f"lines-{len(left)}-description" not in page.fields


def test_a_check_box_that_was_not_ticked_stays_so() -> None:
    class BoxForm(forms.Form):
        ticked = forms.BooleanField(required=False)
        text = forms.CharField()
        new = forms.CharField(initial="of a later version")

    class View(FormView):
        form_class = BoxForm

        def get_form_kwargs(self) -> dict[str, Any]:
            return {"initial": {"ticked": True, "text": "stored"}}

    form = filled_form(View(), QueryDict("text=typed"))

    assert [form[name].initial for name in ("ticked", "text", "new")] == [
        *(False, "typed", "of a later version")
    ]


# Who gets it --------------------------------------------------------------------------------------


def test_a_failed_sign_in_does_not_lose_the_form(ann: User) -> None:
    client = browser(ann)
    asked = sent_too_late(client, PROFILE, full_name="Ann Other")

    asked = signed_in_again(client, asked, ann, "wrong password")
    assert asked.status_code == 200
    with outage():
        asked = signed_in_again(client, asked, ann)
    assert asked.status_code == 503
    signed_in_again(client, asked, ann)

    assert Page(client.get(PROFILE)).value("full_name") == "Ann Other"


def sign_out(client: Client) -> None:
    client.post("/accounts/logout/", opened(client, "/"))


def _sign_out_and_lose_cookies(client: Client, _user: User) -> None:
    sign_out(client)
    client.cookies.clear()


@pytest.mark.parametrize(
    "end",
    [
        _sign_out_and_lose_cookies,
        lambda client, _user: let_expire(client),
        lambda _client, user: change_password(User.get(user.pk), PASSWORD),
    ],
    ids=["signed out", "expired", "changed password"],
)
def test_a_form_is_shown_again_to_the_account_that_opened_it_and_to_no_other(
    ann: User, end: Callable[[Client, User], None]
) -> None:
    bob = make_user(username="bob", email="bob@example.org")
    client = browser(ann)
    values = opened(client, PROFILE) | {"full_name": "Ann Other"}
    end(client, ann)

    asked = client.post(PROFILE, values, headers=SAME_ORIGIN)
    answer = signed_in_again(client, asked, bob)
    assert (answer.status_code, answer["Location"]) == (302, PROFILE)
    shown = client.get(PROFILE)
    assert not is_kept(shown)
    assert "Ann Other" not in shown.content.decode()

    sign_out(client)
    asked = client.post(PROFILE, values, headers=SAME_ORIGIN)
    signed_in_again(client, asked, ann)
    assert Page(client.get(PROFILE)).value("full_name") == "Ann Other"


def test_a_form_is_not_shown_to_an_account_that_signed_in_in_another_tab(ann: User) -> None:
    bob = make_user(username="bob", email="bob@example.org")
    client = browser(ann)
    values = opened(client, PROFILE) | {"full_name": "Ann Other"}
    sign_out(client)
    signed_in_again(client, client.get(LOGIN), bob)

    answer = client.post(PROFILE, values, headers=SAME_ORIGIN)

    assert answer.status_code == 403
    shown = client.get(PROFILE)
    assert not is_kept(shown)
    assert "Ann Other" not in shown.content.decode()


@pytest.mark.parametrize("owner", [None, "x", signing.Signer(salt="another").sign("x")])
def test_a_form_that_names_no_account_is_not_kept(ann: User, owner: str | None) -> None:
    client = browser(ann)
    values = opened(client, PROFILE) | {"full_name": "Ann Other"}
    del values[keptforms.OWNER]
    let_expire(client)

    answer = client.post(PROFILE, values | ({} if owner is None else {keptforms.OWNER: owner}))

    assert answer.status_code == 302
    assert answer["Location"].startswith(f"{LOGIN}?next=")


def test_a_kept_form_is_shown_on_its_own_page_only(ann: User) -> None:
    client = browser(ann)
    returned(client, ann, "/accounts/username/", username="anna")

    for other in (PROFILE, NEW, "/accounts/username/?other", "/accounts/email/"):
        assert not is_kept(client.get(other))
    assert is_kept(client.get("/accounts/username/"))


def test_a_kept_form_ends_when_it_is_sent_or_its_user_signs_out_or_after_a_day(
    ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept() -> Client:
        client = browser(ann)
        returned(client, ann, PROFILE, full_name="Ann Other")
        # Also when it is loaded again, or after the back button.
        assert is_kept(client.get(PROFILE))
        return client

    client = kept()
    assert client.post(PROFILE, opened(client, PROFILE)).status_code == 302
    assert not is_kept(client.get(PROFILE))

    client = kept()
    assert "Start with an empty form" in client.get(PROFILE).text
    assert client.post(PROFILE, opened(client, PROFILE) | {"start_empty": "1"}).url == PROFILE
    assert not is_kept(client.get(PROFILE))

    client = kept()
    sign_out(client)
    sign_in(client, ann)
    assert not is_kept(client.get(PROFILE))

    client = kept()
    later = time.time() + keptforms.KEPT_SECONDS + 1
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: later)
        assert not is_kept(client.get(PROFILE))
    assert not is_kept(client.get(PROFILE))


@pytest.mark.parametrize("packed", ["{}:x:y", "of another page"])
def test_only_what_this_site_packed_is_kept(ann: User, packed: str) -> None:
    client = browser()
    values = opened(client, LOGIN) | {"username": "ann", "password": PASSWORD}
    if packed == "of another page":
        packed = signing.dumps([PROFILE, [["full_name", "Mallory"]], None])

    answer = client.post(LOGIN, values | {"kept_form": packed, "next": PROFILE})

    assert answer["Location"] == PROFILE
    assert not is_kept(client.get(PROFILE))


# What is not kept ---------------------------------------------------------------------------------


def test_a_form_that_is_too_large_is_not_kept_and_its_sender_is_told(
    ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keptforms, "MAX_PACKED", 300)
    client = browser(ann)

    asked = sent_too_late(client, PROFILE, full_name=get_random_string(400))

    assert "too long to keep" in Page(asked).text
    assert signed_in_again(client, asked, ann)["Location"] == PROFILE
    assert not is_kept(client.get(PROFILE))
    typed = opened(client, NEW) | {"customer_name": "Bob", "leave": PROFILE}
    stays = Page(client.post(NEW, typed | {"note": get_random_string(400)}))
    assert "too long to be kept" in stays.messages[0]
    assert stays.value("customer_name") == "Bob"


# Another tab --------------------------------------------------------------------------------------


def test_a_form_of_another_tab_is_shown_again_after_a_sign_in_in_this_one(ann: User) -> None:
    client = browser(ann)
    first = opened(client, PROFILE) | {"full_name": "Ann Other"}
    second = opened(client, "/accounts/username/") | {"username": "anna"}
    let_expire(client)
    signed_in_again(client, client.post(PROFILE, first), ann)

    # The sign-in changed the CSRF token.
    answer = client.post("/accounts/username/", second, headers=SAME_ORIGIN)

    assert (answer.status_code, answer["Location"]) == (302, "/accounts/username/")
    shown = client.get("/accounts/username/")
    assert is_kept(shown)
    assert Page(shown).value("username") == "anna"
    assert User.get(ann.pk).username == "ann"


@pytest.mark.parametrize("site", [None, "same-site"])
@pytest.mark.parametrize("is_signed_in", [True, False])
def test_a_form_of_another_site_is_refused_and_not_kept(
    ann: User, site: str | None, is_signed_in: bool
) -> None:
    client = browser(ann if is_signed_in else None)
    headers = {"Sec-Fetch-Site": site} if site else {}

    forged = {"full_name": "Mallory", "csrfmiddlewaretoken": "x" * 32}
    answer = client.post(PROFILE, forged, headers=headers)

    assert answer.status_code == 403
    assert "Mallory" not in answer.content.decode()
    assert not is_signed_in or not is_kept(client.get(PROFILE))


def test_the_sign_in_page_sent_again_after_the_back_button_leads_to_the_form(ann: User) -> None:
    client = browser(ann)
    asked = sent_too_late(client, PROFILE, full_name="Ann Other")
    signed_in_again(client, asked, ann)

    answer = signed_in_again(client, asked, ann, headers=SAME_ORIGIN)

    assert (answer.status_code, answer["Location"]) == (302, PROFILE)
    assert is_kept(client.get(PROFILE))


def test_a_session_keeps_the_newest_forms_within_a_size(
    ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = browser(ann)
    urls = [f"{NEW}?draft={at}" for at in range(keptforms.MOST_KEPT + 1)]

    def kept() -> list[bool]:
        return [Page(client.get(url)).value("customer_name") == url for url in urls]

    typed = opened(client, NEW)
    for url in urls:
        client.post(url, typed | {"customer_name": url, "leave": PROFILE})
    assert kept() == [False] + [True] * keptforms.MOST_KEPT

    size = len(max((packed for _url, packed in client.session[keptforms._KEY]), key=len))
    monkeypatch.setattr(keptforms, "MAX_PACKED", 2 * size)
    client.post(urls[1], typed | {"customer_name": urls[1], "leave": PROFILE})
    assert kept() == [False, True, *[False] * (keptforms.MOST_KEPT - 2), True]


# A visitor who leaves the page --------------------------------------------------------------------


def test_a_form_that_is_left_for_the_profile_is_shown_again_afterwards(ann: User) -> None:
    client = browser(ann)
    typed = opened(client, NEW) | LINE | {"customer_name": "Bob"}

    left = client.post(NEW, typed | {"leave": f"{PROFILE}#id_vat_id"})

    assert left["Location"] == f"{PROFILE}?next=%2Finvoices%2Fnew%2F#id_vat_id"
    there = left["Location"].partition("#")[0]
    profile = opened(client, there) | {"full_name": "Ann Example"}
    assert client.post(there, profile)["Location"] == NEW
    page = Page(client.get(NEW))
    assert page.value("customer_name") == "Bob"
    assert {name: page.value(name) for name in LINE} == LINE
    assert page.value("request_id") == typed["request_id"]
    assert page.messages == [
        "Your details were saved.",
        "Here is what you typed. It was not sent yet.",
    ]
    assert "Ann Example" in page.text
    assert stored_numbers(ann.pk, DAY.year) == []


@pytest.mark.parametrize("is_left", [True, False], ids=["left", "session ended"])
def test_a_kept_form_has_the_defaults_of_now_where_nothing_was_typed(
    ann: User, is_left: bool
) -> None:
    sell_as(ann, country="DE", payment_days=30, payment_terms="Net 30\n\nThanks", currency="EUR")
    client = browser(ann)
    typed = opened(client, NEW) | LINE | {"currency": "CHF", "customer_country": "DE"}
    typed["payment_terms"] = typed["payment_terms"].replace("\n", "\r\n")
    if is_left:
        client.post(NEW, typed | {"leave": PROFILE})
    else:
        let_expire(client)
        answer = client.post(NEW, typed)
    sell_as(ann, country="FR", payment_days=7, payment_terms=None, currency="USD")
    if not is_left:
        signed_in_again(client, answer, ann)

    shown = client.get(NEW)

    page = Page(shown)
    assert page.value("due_date") == (today() + timedelta(days=7)).isoformat()
    assert page.value("payment_terms") == ""
    chosen = re.findall(r'<option value="(\w+)"\s+selected>', shown.content.decode())
    assert {"FR", "CHF"} <= {*chosen}
    assert {name: page.value(name) for name in LINE} == LINE


def test_a_switch_of_the_language_keeps_the_form_until_it_is_issued(ann: User) -> None:
    client = browser(ann)
    issued(ann.pk)
    url = f"{NEW}?from={DAY.year}-000001"
    typed = opened(client, url) | LINE | {"currency": "EUR"}
    shown = client.get(url).content.decode()
    [switch] = set(re.findall(r'form="new-invoice" formaction="(/i18n/setlang/[^"]+)"', shown))
    [page] = set(re.findall(r'id="new-invoice" method="post" action="([^"]+)"', shown))

    page = html.unescape(page)
    assert client.post(switch, typed | {"language": "ja"})["Location"] == page
    again = client.get(page)
    assert '<html lang="ja"' in again.content.decode()
    kept = Page(again)
    assert {name: kept.value(name) for name in LINE} == LINE
    client.post(page, typed)

    assert stored_numbers(ann.pk, today().year)
    assert Page(client.get(NEW)).value("lines-0-description") == ""


def test_a_form_cannot_be_left_for_another_site(ann: User) -> None:
    client = browser(ann)
    values = opened(client, NEW)

    for away in ("https://example.com/", "//example.com/", "//[", "javascript:x", "x"):
        assert client.post(NEW, values | {"leave": away}).status_code == 400
