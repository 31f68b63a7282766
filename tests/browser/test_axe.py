"""axe-core finds nothing serious on any page, and no page scrolls sideways.

Each page is opened narrow and light, or wide and dark, with long names and texts: the two looks
alternate from page to page. In `make test-slow` each page is opened in both.
"""

import itertools
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Literal

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import include, path, reverse
from playwright.sync_api import Browser, Page

from accounts.emails.links import make, request_change
from accounts.models import User
from accounts.services import edit_profile
from accounts.sessions import services as sessions
from invoices.document.amounts import Line
from invoices.store.settlement import credit, mark_paid, void
from locks.lock import Lock, claim_once
from sequences.counters import next_value
from tests.browser.conftest import let_in
from tests.browser.test_invoices import write
from tests.factories import PASSWORD, make_user
from tests.invoice_factories import DAY, issued, sell_as
from tests.items import remove_item
from tests.project.test_url_map import ROWS
from tests.staff.scenes import acting, do, make_staff, stored_report

pytestmark = [
    pytest.mark.browser,
    pytest.mark.urls(__name__),
    pytest.mark.parametrize("in_both", [False, pytest.param(True, marks=pytest.mark.slow)]),
]

Look = tuple[int, Literal["light", "dark"]]
LOOKS: tuple[Look, Look] = ((390, "light"), (1280, "dark"))
LABEL = f"{DAY.year}-000001"
VOIDED = f"{DAY.year}-000002"
ERRORS = ("400", "403", "403_csrf", "404", "429", "500", "503")

# These show no page of the site, or the same page as another one.
LEFT_OUT = {
    "healthz",
    "livez",
    "account_export",
    "invoices_bookings",
    "invoices_csv",
    "invoices_lines",
    "invoices_zip",
    "invoice_pdf",
    "customer_names",
    "signup_confirm",
    "email_change_confirm",
}


def error_page(request: HttpRequest, name: str) -> HttpResponse:
    context = {"wait": "15 minutes", "is_sign_in": True}
    return HttpResponse(render_to_string(f"{name}.html", context))


urlpatterns = [path("error/<str:name>/", error_page), path("", include("project.urls"))]


@pytest.fixture
def visitor(open_page: Callable[..., Page], browser: Browser) -> Page:
    # Colors in transition between the two looks would have too little contrast.
    page = open_page(browser, reduced_motion="reduce")
    # Sent once, because it has half a megabyte.
    page.add_init_script(AXE_SCRIPT)
    return page


def pages(*, signed_in: bool) -> list[str]:
    """The addresses of the pages for this visitor; for a signed-in one, only those that differ."""
    found = [reverse("home")] if signed_in else []
    for name, row in ROWS.items():
        out, own = row.get
        answer = out if not signed_in else own if own != out else 405
        if isinstance(answer, int) and answer not in {404, 405} and name not in LEFT_OUT:
            found.append(reverse(name, args=row.arguments))
    return found


def faults(page: Page, looks: Sequence[Look] = LOOKS) -> list[Any]:
    """The findings of axe on the current page in these looks, and in which it is too wide."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    found: list[Any] = []
    for width, scheme in looks:
        page.set_viewport_size({"width": width, "height": 844})
        page.emulate_media(color_scheme=scheme)
        found += [[page.url, width, scheme, *fault] for fault in _run(page)]
        if page.evaluate("document.documentElement.scrollWidth") > width:
            found.append([page.url, width, scheme, "it scrolls sideways", ""])
    return found


#: The serious findings, and how many rules ran. A finding is as serious as its rule, so the rules
#: of all others are left out, which takes a third of the time.
_RUN = """async () => {
    const minor = axe._audit.rules.filter((rule) => ["minor", "moderate"].includes(rule.impact));
    const rules = Object.fromEntries(minor.map((rule) => [rule.id, {enabled: false}]));
    const result = await axe.run({resultTypes: ["violations"], rules});
    const ran = result.violations.length + result.passes.length + result.inapplicable.length;
    return [ran, result.violations.filter((each) => ["serious", "critical"].includes(each.impact))];
}"""


def _run(page: Page) -> list[list[str]]:
    """Rule and place of each serious finding."""
    ran, violations = page.evaluate(_RUN)
    assert ran
    return [
        [violation["id"], str(node["target"])]
        for violation in violations
        for node in violation["nodes"]
    ]


def seen(page: Page, addresses: list[str], *, in_both: bool = True) -> list[Any]:
    found: list[Any] = []
    for address, look in zip(addresses, itertools.cycle(LOOKS), strict=False):
        page.goto(address)
        found += faults(page, LOOKS if in_both else [look])
    return found


def test_axe_finds_nothing_serious_on_public_pages(visitor: Page, in_both: bool) -> None:
    make_user(username="ann")
    errors = [f"/error/{name}/" for name in ERRORS]

    links = [reverse("signup_confirm", args=[make("signup", "x")])]
    found = seen(visitor, [*pages(signed_in=False), *errors, *links], in_both=in_both)

    visitor.goto("/accounts/signup/")
    visitor.get_by_label("Username").fill("ann")
    visitor.get_by_label("Email address").fill("ann@example.org")
    visitor.get_by_label("Password", exact=True).fill(PASSWORD)
    visitor.get_by_label("Password confirmation").fill(PASSWORD)
    visitor.get_by_role("button", name="Create account").click()
    visitor.get_by_text("This username is taken.").wait_for()
    assert found + faults(visitor) == []
    # A page with errors, to check that axe runs at all.
    visitor.set_content('<p><font color="#eeeeee">Pale</font><input>')
    assert {fault[-2] for fault in faults(visitor)} >= {"color-contrast", "label"}


def test_axe_finds_nothing_serious_on_the_pages_of_an_account(
    visitor: Page, site: str, settings: Any, in_both: bool
) -> None:
    settings.ACCOUNTS_EMAIL_CHANGE = "confirm"
    long = f"{'a' * 64}@{'b' * 60}.{'c' * 60}.example"
    user = make_user(username="n" * 150, email=long, full_name="Ann Example")
    let_in(visitor.context, site, user)
    user = User.get(user.pk)
    sell_as(user, name="Ann Ltd", address="1 High Street\nLondon")
    sessions.begin(user, browser="Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0", address="::1")
    issued(user.pk)
    issued(user.pk)
    void(user.pk, VOIDED, "Wrong price")
    paid = issued(user.pk).label
    credited = issued(user.pk).label
    mark_paid(user.pk, paid, DAY)
    line = Line("x" * 1000, Decimal(999), Decimal("99999999.123456"), Decimal(19))
    wide = issued(user.pk, customer="y" * 200, note="z" * 500, lines=(line, line)).label
    note = credit(user.pk, credited, "Returned").label

    addresses = [*pages(signed_in=True), "/invoices/?customer=" + "q" * 300]
    became = [f"/invoices/{label}/" for label in (VOIDED, paid, credited, note, wide)]
    became.append(f"/invoices/{wide}/void/")
    found = seen(visitor, [*addresses, *became, f"/invoices/?year={DAY.year}"], in_both=in_both)

    visitor.goto("/accounts/email/")
    visitor.get_by_label("Email address").fill("ann@new.example")
    visitor.get_by_label("Current password").fill(PASSWORD)
    visitor.get_by_role("button", name="email").click()
    visitor.get_by_role("status").wait_for()
    found += faults(visitor)
    write(visitor, [("x" * 1000, "x", "0.125", "7")])
    visitor.get_by_role("button", name="Issue the invoice").click()
    visitor.get_by_role("alert").wait_for()
    found += faults(visitor)
    edit_profile(User.get(user.pk), language="ja")
    japanese = [reverse(name) for name in ("invoice_new", "invoice_list", "profile")]
    assert found + seen(visitor, japanese, in_both=in_both) == []


def test_axe_finds_nothing_serious_on_the_pages_of_staff(
    visitor: Page, site: str, in_both: bool
) -> None:
    bob = make_user(username="bob", full_name="Bob Example", request_id="looked at")
    sessions.begin(bob, browser="Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0", address="::1")
    request_change(User.get(bob.pk), "bob@new.example")
    remove_item("users", pk="userName#bob")
    Lock("nightly", lease_seconds=600).acquire()
    next_value("a-counter-of-a-name-without-a-place-to-break-it" * 3)
    claim_once("import")
    for name in ("statistics", "guards"):
        stored_report(name)
    staff = make_staff()
    do(acting(staff), "deactivate", make_user())
    let_in(visitor.context, site, staff)

    # One of each template.
    issued(bob.pk)
    names = [name for name, row in ROWS.items() if row.expected("GET", "staff") == 200]
    names = [name for name in names if name.startswith("admin:") and name != "admin:jsi18n"]
    addresses = [reverse(name, args=ROWS[name].arguments) for name in names]
    invoices = f"/admin/accounts/user/{bob.pk}/invoices/{DAY.year}-000001/"
    found = seen(visitor, [*addresses, invoices, "/admin/lock/?name=nightly"], in_both=in_both)

    visitor.goto("/admin/runs/statistics/")
    visitor.get_by_text("The numbers as a table").click()
    assert found + faults(visitor) == []
