"""All data of an account as one JSON document; its invoices before and after it is deleted."""

import json
from datetime import UTC, date, datetime
from itertools import islice

import pytest
from django.test import Client

from accounts import personal_data
from accounts.models import User
from accounts.services import edit_profile
from accounts.sessions import services as sessions
from accounts.signals import account_exporting
from dynamo.exceptions import Unavailable
from invoices.document.invoice import Customer
from invoices.models import SELLER_VALUES
from invoices.store.customers import add_customer
from invoices.store.issuing import today
from invoices.store.records import find_invoice
from invoices.store.settlement import mark_paid
from tests.accounts.test_unavailable_pages import unanswered
from tests.commands import run
from tests.factories import PASSWORD, make_user
from tests.faults.kinds import Answer
from tests.faults.proxy import FaultProxy
from tests.invoice_factories import issued, sell_as
from tests.pages import Page, arrive
from tests.requests import OF_EVERY_PAGE, Requests

EXPORT, DELETE = "/accounts/export/", "/accounts/delete/"
HIDDEN = {
    "password",
    "session_epoch",
    "confirmation_id",
    "pending_id",
    "sessions",
    "version",
    # What staff may do; see dynamo.auth.
    "permissions",
}


def parts_of(client: Client) -> list[bytes]:
    return [*client.get(EXPORT).streaming_content]  # type: ignore[attr-defined]  # streamed


def test_the_export_has_what_further_apps_store(client: Client, ann: User) -> None:
    def export_notes(user: User, **_signal: object) -> dict[str, object]:
        return {"notes": [user.pk]}

    account_exporting.connect(export_notes)
    try:
        export = json.loads(b"".join(parts_of(client)))
    finally:
        account_exporting.disconnect(export_notes)

    assert (export["notes"], export["customers"]) == ([ann.pk], [])


def test_the_export_has_the_account_as_stored(client: Client, ann: User) -> None:
    edit_profile(User.get(ann.pk), full_name="Änn “A” Example")
    sell_as(ann, address="Main Street 1\n12345 Town", vat_id="DE1")
    until = int(datetime(2030, 1, 2, tzinfo=UTC).timestamp())
    User.get(ann.pk).change(pending_email="new@example.org", pending_until=until)
    for page in ("/accounts/profile/", DELETE):
        assert f'href="{EXPORT}"' in client.get(page).content.decode()

    response = client.get(EXPORT)
    export = json.loads(b"".join(response.streaming_content))  # type: ignore[attr-defined]

    headers = {
        "Content-Type": "application/json",
        "Content-Disposition": 'attachment; filename="account.json"',
        "Cache-Control": "private, no-store",
    }
    assert headers.items() <= response.headers.items()
    assert export["invoices"] == []
    account = {name: value for name, value in export["account"].items() if value is not None}
    times = [datetime.fromisoformat(account.pop(name)) for name in ("joinedAt", "lastLoginAt")]
    assert all(time.tzinfo for time in times)
    assert account == {
        "pk": ann.pk,
        "userName": "ann",
        "email": "ann@example.org",
        "pendingEmail": "new@example.org",
        "pendingUntil": "2030-01-02T00:00:00+00:00",
        "fullName": "Änn “A” Example",
        **{"isStaff": False, "isSuperuser": False, "isActive": True},
    }
    assert len(export["account"]) == len(personal_data.shown_attributes())
    seller = {name: value for name, value in export["seller"].items() if value is not None}
    assert seller == {"address": "Main Street 1\n12345 Town", "vatId": "DE1"}
    assert len(export["seller"]) == len(SELLER_VALUES)


def test_every_attribute_is_either_shown_or_hidden() -> None:
    assert {*personal_data.shown_attributes(), *HIDDEN} == set(User.get_attributes())
    assert HIDDEN.isdisjoint(personal_data.shown_attributes())


def test_the_export_has_the_sessions_and_no_secrets(client: Client, ann: User) -> None:
    sessions.begin(User.get(ann.pk), browser="Firefox/1", address="192.0.2.7")
    user = User.get(ann.pk)

    text = b"".join(parts_of(client)).decode()

    found = json.loads(text)["sessions"]
    assert {(item["browser"], item["address"]) for item in found} == {
        ("Firefox/1", "192.0.2.7"),
        ("", ""),
    }
    assert found[0].keys() == {"browser", "address", "signedInAt", "seenAt", "expiresAt"}
    ids = [session.id for session in sessions.active_sessions(user)]
    for secret in (user.password, user.confirmation_id, client.cookies["sessionid"].value, *ids):
        assert secret
        assert secret not in text


def test_the_export_has_the_address_book_and_all_invoices_as_showinvoice_prints_them(
    client: Client, ann: User
) -> None:
    values = {"address": "2 Low Road\nLeeds", "country": "GB", "email": "bob@example.org"}
    for account in (ann.pk, make_user().pk):
        issued(account)
        add_customer(account, Customer("Bob Ltd", **values), request_id="r")
    for day in (date(2024, 1, 1), date(2026, 3, 15)):
        issued(ann.pk, day=day)
    mark_paid(ann.pk, "2026-000002", date(2026, 3, 20))

    export = json.loads(b"".join(parts_of(client)))

    others = {"vatId": "", "number": "1", "language": ""}
    assert export["customers"] == [{"name": "Bob Ltd", **values, **others}]
    paid = {invoice["number"]: invoice.get("paidOn") for invoice in export["invoices"]}
    assert paid == {"2024-000001": None, "2026-000001": None, "2026-000002": "2026-03-20"}
    for item in export["invoices"]:
        out, _err, _code = run("showinvoice", "--user", "ann", item["number"], "--json")
        assert json.loads(out) == item


def test_invoices_are_read_while_they_are_sent(
    client: Client, ann: User, requests_sent: Requests
) -> None:
    arrive(client, ann)
    for year in (2022, 2023, 2024):
        issued(ann.pk, day=date(year, 1, 1))
    requests_sent.clear()

    pieces = iter(client.get(EXPORT).streaming_content)  # type: ignore[attr-defined]
    assert requests_sent.operations.count("Query") == 2
    list(islice(pieces, 4))
    assert requests_sent.operations.count("Query") == 2
    list(pieces)

    of_invoices = [*["TransactGetItems"] * 6, *["Query"] * 6]
    assert sorted(requests_sent.operations) == sorted(
        [*OF_EVERY_PAGE, *of_invoices, "GetItem", "Query"]
    )


def test_without_an_answer_before_the_first_byte_the_export_is_a_503_and_later_it_is_no_json(
    proxy: FaultProxy, client: Client, ann: User, impatient: float
) -> None:
    for year in (2023, 2024):
        issued(ann.pk, day=date(year, 1, 1))
    broken = Answer(500, "InternalServerError")
    proxy.plan("Query", broken, times=1_000)
    assert client.get(EXPORT).status_code == 503

    proxy.forget()
    proxy.plan("Query", broken, times=1_000, when=lambda body: "#2024" in json.dumps(body))
    got: list[bytes] = []
    with pytest.raises(Unavailable):
        got.extend(client.get(EXPORT).streaming_content)  # type: ignore[attr-defined]

    assert b"2023-000001" in got[-1]
    with pytest.raises(json.JSONDecodeError):
        json.loads(b"".join(got))


# Before an account is deleted ---------------------------------------------------------------------


def test_the_downloads_of_each_year_are_offered_before_an_account_is_deleted_and_stay(
    client: Client, ann: User, requests_sent: Requests
) -> None:
    assert ".zip" not in client.get(DELETE).content.decode()
    # The oldest year that is offered, and the next one.
    years = [today().year - 9, today().year + 1]
    for year in (years[0] - 1, *years):
        issued(ann.pk, day=date(year, 1, 1))
    requests_sent.clear()

    shown = client.get(DELETE).content.decode()

    assert requests_sent.operations == [*OF_EVERY_PAGE, "TransactGetItems"]
    assert "Invoices that you issued stay stored" in shown
    for path in (f"/invoices/{year}.{ending}" for year in years for ending in ("zip", "csv")):
        assert f'href="{path}"' in shown
        assert client.get(path).getvalue()  # type: ignore[attr-defined]  # streamed
    assert f"/invoices/{years[0] - 1}.zip" not in shown
    client.post(DELETE, {"password": PASSWORD})
    assert [find_invoice(ann.pk, f"{year}-000001").number for year in years] == [1, 1]


def test_without_an_answer_the_page_of_deletion_does_not_look_for_invoices(
    engine: str, client: Client, ann: User, requests_sent: Requests
) -> None:
    issued(ann.pk, day=today())
    requests_sent.clear()

    with unanswered(engine, "TransactWriteItems"):
        answer = client.post(DELETE, {"password": PASSWORD})

    assert answer.status_code == 503
    assert "Send the form again" in Page(answer).text
    assert "TransactGetItems" not in requests_sent.operations
