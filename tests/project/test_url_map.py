"""What every URL answers to every kind of visitor, to a GET and to a POST of its form.

Each URL has a row: its status, or the name of the URL that it redirects to, for visitors who are
not signed in, for those who are, and for exceptions.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.core.signing import TimestampSigner
from django.test import Client
from django.urls import URLResolver, get_resolver, resolve, reverse
from django.utils.crypto import get_random_string

from accounts.forms import SignUpForm
from accounts.models import User
from accounts.services import deactivate
from dynamo.forms import RequestIdForm
from invoices.pages.changes import SendForm
from invoices.pages.customers import NewCustomerForm
from tests.factories import PASSWORD, make_user
from tests.invoice_factories import DAY, issued
from tests.invoices.forms import typed
from tests.pages import new_account
from tests.policies import rights, rights_for
from tests.requests import Requests

NEW_PASSWORD = "another horse battery"

OUT = ("anonymous", "deactivated")
IN = ("signed in", "unconfirmed", "locked", "staff")
VISITORS = OUT + IN

Answer = int | str
LOGIN = "login"
LABEL = f"{DAY.year}-000001"


@dataclass(frozen=True)
class Row:
    """What a URL answers to GET and POST: a status, or the name of the URL that it leads to.

    Each for visitors who are not signed in, and for those who are; `but` names exceptions, as in
    `"POST locked"`. `sent` makes the form's values for an account.
    """

    get: tuple[Answer, Answer]
    post: tuple[Answer, Answer] = (405, 405)
    but: dict[str, Answer] = field(default_factory=dict)
    sent: Callable[[User], dict[str, Any]] = lambda _user: {}
    arguments: tuple[str | int, ...] = ()

    def expected(self, method: str, visitor: str) -> Answer:
        pair = self.get if method == "GET" else self.post
        return self.but.get(f"{method} {visitor}", pair[visitor in IN])


def page(get: tuple[Answer, Answer] = (200, 200), *arguments: str | int, **more: Any) -> Row:
    """A page that only shows something."""
    return Row(get, arguments=arguments, **more)


def own(post: Answer = 405, *arguments: str | int, get: Answer = 200, **more: Any) -> Row:
    """A page for signed-in visitors; others are asked to sign in."""
    return Row((LOGIN, get), (LOGIN, post), arguments=arguments, **more)


def link() -> Row:
    """A link from a mail, here one that is not whole; its own tests follow true ones."""
    return page((410, 410), "not-whole", post=(410, 410))


def password(user: User) -> dict[str, Any]:
    return {"password": PASSWORD}


def own_address(user: User) -> dict[str, Any]:
    return {"email": user.email}


def sign_up_values(user: User) -> dict[str, Any]:
    values = new_account(get_random_string(8), NEW_PASSWORD)
    return values | {"request_id": SignUpForm.new_request_id()}


def with_id(form: type[RequestIdForm], **values: str) -> Callable[[User], dict[str, Any]]:
    return lambda _user: values | {"request_id": form.new_request_id()}


def staff(get: Answer, post: Answer = 405, *arguments: str | int, **more: Any) -> Row:
    """A staff page, a 404 for all other signed-in visitors."""
    but: dict[str, Answer] = {"GET staff": get, "POST staff": post}
    return Row((LOGIN, 404), (LOGIN, 404), but, arguments=arguments, **more)


def confirmation(user: User) -> dict[str, Any]:
    """The form of the page that asks for confirmation of an action."""
    signer = TimestampSigner(salt="dynamo.admin.deactivate.users")
    seen = {LOOKED_AT: str(User.get(LOOKED_AT).version)}
    return {"_seen": signer.sign_object(seen), "_reason": "Spam", "_password": PASSWORD}


#: The account that staff looks at: that of a registration with this request id.
LOOKED_AT = User.key_for("looked at")

USERS, USER = "admin:accounts_user_changelist", "admin:accounts_user_change"

ROWS = {
    "home": page(),
    "how_it_works": page(),
    "healthz": Row((200, 200), (200, 200)),
    "livez": Row((200, 200), (200, 200)),
    "set_language": Row(("home", "home"), ("home", "home"), sent=lambda _user: {"language": "ja"}),
    # Signing up and in
    "signup": Row((200, "home"), ("home", "home"), sent=sign_up_values),
    "signup_sent": page(),
    "signup_confirm": link(),
    "login": Row(
        (200, 200),
        ("home", "home"),
        {"POST locked": 429, "POST deactivated": 200},
        lambda user: password(user) | {"username": user.username},
    ),
    "logout": Row((405, 405), ("home", "home")),
    # One's own account
    "profile": own("profile"),
    "seller": own("seller"),
    "seller_payment": own("seller_payment"),
    "username_change": own(
        "profile", sent=lambda user: password(user) | {"username": get_random_string(8)}
    ),
    "email_change": own(
        "profile",
        sent=lambda user: password(user) | {"email": f"{get_random_string(8)}@example.org"},
    ),
    "email_change_cancel": own("profile", get=405),
    "email_change_confirm": link(),
    "email_confirm": link(),
    "email_confirm_send": own("profile", get=405),
    "password_change": own(
        "password_change_done",
        sent=lambda _user: (
            dict.fromkeys(("new_password1", "new_password2"), NEW_PASSWORD)
            | {"old_password": PASSWORD}
        ),
    ),
    "password_change_done": own(),
    "account_sessions": own(),
    "session_end": own("account_sessions", get=405),
    "sessions_end_others": own("account_sessions", get=405),
    "reauthenticate": own("profile", sent=password),
    "account_export": own(),
    "account_delete": own("home", sent=password),
    # Ways back to an account
    "password_reset": Row((200, 200), ("password_reset_done",) * 2, sent=own_address),
    "password_reset_done": page(),
    "password_reset_confirm": page((200, 200), "bm9ib2R5", "not-whole", post=(200, 200)),
    "password_reset_complete": page(),
    "username_reminder": Row((200, 200), ("username_reminder_done",) * 2, sent=own_address),
    "username_reminder_done": page(),
    # Invoices
    "invoice_list": own(),
    "invoice_new": own("invoice", sent=lambda _user: typed(), but={"POST unconfirmed": 200}),
    # Nothing is kept.
    "invoice_new_preview": own(405, get="invoice_new"),
    "invoice_preview_pdf": own(405, get="invoice_new"),
    "invoice_preview": own(200, get=405),
    "invoices_csv": own(405, DAY.year),
    "invoices_lines": own(405, DAY.year),
    "invoices_bookings": own(405, DAY.year),
    "invoices_zip": own(405, DAY.year),
    "customer_list": own(),
    "customer_names": own(),
    "customer_new": own("customer_list", sent=with_id(NewCustomerForm, name="Bob")),
    # It has none.
    "customer": own(404, LOOKED_AT, get=404),
    "customer_delete": own(404, LOOKED_AT, get=404),
    # Without a bucket for exports.
    "export": own(404, LOOKED_AT, get=404),
    "export_file": own(404, LOOKED_AT, get=404),
    "invoice": own(405, LABEL),
    "invoice_pdf": own(405, LABEL),
    "invoice_xml": own(405, LABEL, get=404),  # it lacks what an electronic invoice needs
    "invoice_send": own(
        "invoice",
        LABEL,
        sent=with_id(SendForm, to="bob@example.org", subject="A", message="B"),
        but={"POST unconfirmed": 200},
    ),
    "invoice_void": own("invoice", LABEL, sent=lambda _user: {"reason": "Wrong"}),
    "invoice_credit": own(
        "invoice", LABEL, sent=lambda _user: {"reason": "Wrong"}, but={"POST unconfirmed": 200}
    ),
    "invoice_paid": own("invoice", LABEL, sent=lambda _user: {"paid_on": str(DAY)}),
    "invoice_unpaid": own(
        "invoice", LABEL, get="invoice", sent=lambda _user: {"paid_on": str(DAY)}
    ),
    # Staff
    "admin:index": staff(200, 200),
    "admin:login": page((LOGIN, LOGIN), post=(LOGIN, LOGIN)),
    "admin:logout": staff(405, "home"),
    "admin:password_change": staff("password_change", "password_change"),
    "admin:password_change_done": staff("password_change_done", "password_change_done"),
    "admin:jsi18n": staff(200, 405),
    "admin:app_list": staff(200, 200, "accounts"),
    "admin:accounts_user_changelist": staff(200, USERS),
    "admin:accounts_user_add": staff(200, 200),
    "admin:accounts_user_change": staff(200, 403, LOOKED_AT),
    "admin:accounts_user_email": staff(200, 200, LOOKED_AT),
    "admin:accounts_user_delete": staff(200, 200, LOOKED_AT),
    "admin:accounts_user_action": staff(200, USER, LOOKED_AT, "deactivate", sent=confirmation),
    "admin:accounts_user_history": staff(200, 200, LOOKED_AT),
    "admin:accounts_user_invoices": staff(200, 405, LOOKED_AT),
    # It has none.
    "admin:accounts_user_invoice": staff(404, 405, LOOKED_AT, LABEL),
    "admin:accounts_user_invoice_pdf": staff(404, 405, LOOKED_AT, LABEL),
    "admin:invoices_customeritem_changelist": staff(200, 200),
    "admin:outbox_taskitem_changelist": staff(200, "admin:outbox_taskitem_changelist"),
    "admin:outbox_taskitem_add": staff(403, 403),
    # There is none.
    "admin:outbox_taskitem_change": staff("admin:index", 403, "0"),
    "admin:outbox_taskitem_delete": staff(403, 403, "0"),
    "admin:outbox_taskitem_action": staff("admin:index", "admin:index", "0", "restart"),
    "admin:outbox_taskitem_history": staff("admin:index", "admin:index", "0"),
    # Without the name of one.
    "admin:lock": staff(404, 404),
    "admin:record": staff(200),
    "admin:run": staff(200, 405, "guards"),
}


def url_names(resolver: URLResolver) -> Iterator[str]:
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            names = url_names(pattern)
            yield from (
                (f"{pattern.namespace}:{name}" for name in names) if pattern.namespace else names
            )
        else:
            # As contrib.admin's, the redirect to the page of an item has no name.
            assert pattern.name or str(pattern.pattern) == "<path:object_id>/", pattern.pattern
            if pattern.name:
                yield pattern.name


@pytest.fixture(autouse=True)
def _locks_at_once(settings: Any) -> None:
    """One failed sign-in locks an account; whose address is not confirmed issues no invoice."""
    settings.ACCOUNTS_LIMITS = settings.ACCOUNTS_LIMITS | {"sign_in": (1, 900)}
    settings.INVOICES_REQUIRE_CONFIRMED_EMAIL = True
    # None of this is about time, of which a busy machine takes some.
    settings.DYNAMODB_PAGE_SECONDS = 60


def arrive(visitor: str) -> tuple[Client, User]:
    """A browser that this visitor has used before, and the account that the visitor has."""
    user = make_user(is_staff=visitor == "staff", email_confirmed=visitor != "unconfirmed")
    make_user(username="looked.at", email="looked.at@example.org", request_id="looked at")
    client = Client(enforce_csrf_checks=True)
    if visitor != "anonymous":
        client.force_login(user)
    if visitor == "deactivated":
        deactivate(User.get(user.pk))
    if visitor == "locked":
        wrong = {"username": user.username, "password": "not that"}
        assert Client().post("/accounts/login/", wrong).status_code == 200
    return client, user


def send(client: Client, path: str, values: dict[str, Any]) -> Any:
    """Send a form as the site made it."""
    secret = get_random_string(32)
    client.cookies[settings.CSRF_COOKIE_NAME] = secret
    return client.post(path, values, headers={"x-csrftoken": secret})


def path_of(name: str) -> str:
    return reverse(name, args=ROWS[name].arguments)


def answer(response: Any) -> Answer:
    """The status, or of a redirect the name of the URL that it leads to."""
    response.close()
    if response.status_code != 302:
        return int(response.status_code)
    return resolve(urlsplit(response.url).path).view_name


def test_every_url_has_a_row_and_every_row_a_url() -> None:
    names = list(url_names(get_resolver()))

    # The site has pages of its own in place of two of `accounts`.
    assert {*names} == ROWS.keys()


@pytest.mark.usefixtures("engine")
# Nothing that is only shown depends on a lock or on a confirmed address.
@pytest.mark.parametrize("visitor", [*OUT, "signed in", "staff"])
def test_every_page_answers_each_visitor_as_its_row_says(
    visitor: str, requests_sent: Requests
) -> None:
    client, user = arrive(visitor)
    issued(user.pk)
    requests_sent.clear()

    found = {name: answer(client.get(path_of(name))) for name in ROWS}

    assert found == {name: row.expected("GET", visitor) for name, row in ROWS.items()}
    sent = [*zip(requests_sent.operations, requests_sent.requests, strict=True)]
    # Only the list of accounts scans, one page.
    scans = [request["TableName"] for operation, request in sent if operation == "Scan"]
    assert scans == (["users"] if visitor == "staff" else [])
    reads = [request for operation, request in sent if operation in {"GetItem", "Query"}]
    assert all(request["ConsistentRead"] for request in reads)
    assert set(rights_for(requests_sent)) <= set(rights("site"))


@pytest.mark.usefixtures("engine")
def test_a_sign_in_leads_to_a_page_that_begins_the_download() -> None:
    client, user = arrive("staff")
    # Everything that the electronic invoice needs.
    issued(user.pk)
    values = {"username": user.username, "password": PASSWORD}
    downloads = []
    for name in ROWS:
        response = client.get(path_of(name))
        is_file = "attachment" in response.headers.get("Content-Disposition", "")
        response.close()
        if is_file:
            downloads.append(name)
            page = send(Client(), "/accounts/login/", values | {"next": path_of(name)})
            assert page["Location"] == f"{path_of(name)}?page"
            begun = client.get(page["Location"])
            assert begun["Refresh"] == f"1;url={path_of(name)}"
            assert f'href="{path_of(name)}"' in begun.content.decode()
    assert {"account_export", "invoices_csv", "invoices_zip"} <= {*downloads}


@pytest.mark.fault_of("moto", "fails at the size of an attribute that is not there")
@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("visitor", VISITORS)
def test_every_form_answers_each_visitor_as_its_row_says(
    visitor: str, requests_sent: Requests
) -> None:
    found: dict[str, Answer] = {}
    arrived = None
    for name, row in ROWS.items():
        client, user = arrived or arrive(visitor)
        if LABEL in row.arguments:
            issued(user.pk)
        found[name] = answer(send(client, path_of(name), row.sent(user)))
        # Where nothing happened, the next form finds the account as it was.
        arrived = (client, user) if found[name] in {LOGIN, 403, 404, 405, 429} else None

    assert found == {name: row.expected("POST", visitor) for name, row in ROWS.items()}
    assert set(rights_for(requests_sent)) <= set(rights("site"))


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("visitor", ["anonymous", "signed in"])
def test_no_form_is_accepted_without_a_csrf_token(visitor: str) -> None:
    client, user = arrive(visitor)
    expected: dict[str, Answer] = dict.fromkeys(ROWS, 403) | {"healthz": 200, "livez": 200}
    if visitor == "signed in":
        # They sent the form of an entrance twice, and are led on; the sign-up names another.
        expected |= {"login": "home"}

    found = {name: answer(client.post(path_of(name), row.sent(user))) for name, row in ROWS.items()}

    assert found == expected
