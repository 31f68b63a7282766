"""The invoice commands: one line or one JSON document, exit 1 for a refusal, 2 for wrong usage."""

import io
import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from accounts.models import User
from accounts.services import delete
from invoices.document.amounts import MAX_LINES
from invoices.store.issuing import today
from invoices.store.records import find_invoice, find_record
from invoices.store.settlement import credit, mark_paid, void
from tests import commands
from tests.clocks import hold_the_day
from tests.faults.kinds import Answer
from tests.faults.proxy import FaultProxy
from tests.invoice_factories import (
    DAY,
    issued,
    put_sendings,
    sell_as,
    stored_invoices,
    stored_numbers,
)

ISSUE = "issueinvoice --user ann --customer Bob --line Work;1;1;1"
LINE_2 = f"{ISSUE} --line "
FIRST, VOIDED, PAID, SENT, CREDITED, NOTE = (f"{DAY.year}-{number:06}" for number in range(1, 7))
MAIL = {"to": "bob@example.org", "at": "2026-11-20T10:00:00+00:00", "outcome": "unknown"}
DAY_BEFORE = DAY - timedelta(days=1)
LATE = DAY + timedelta(days=2)


def run(*arguments: str, code: int = 0) -> str:
    """What a command prints; with a `code`, the line with which it ends."""
    out, err, ended = commands.run(*arguments)
    assert (ended, err.count("\n")) == (code, int(code == 1)), err
    return err.removeprefix("CommandError: ").rstrip("\n") if code else out


def issue(*more: str, line: str = "Work;1.5;100;19") -> dict[str, Any]:
    """What `issueinvoice --json` prints."""
    command = ["issueinvoice", "--user", "ann", "--customer", "Bob", "--line", line, *more]
    shown: dict[str, Any] = json.loads(run(*command, "--json"))
    return shown


# issueinvoice -------------------------------------------------------------------------------------


def test_issuing_prints_the_object_of_the_contract_and_for_the_same_request_the_same(
    ann: User,
) -> None:
    for _time in range(2):
        shown = issue("--date", "2026-03-14", "--request-id", "order-7")

        assert list(shown.items()) == [
            ("number", "2026-000001"),
            ("series", f"{ann.pk}#2026"),
            ("net", 15_000),
            ("vat", 2_850),
            ("gross", 17_850),
            ("currency", "EUR"),
            ("issuedAt", "2026-03-14"),
            ("status", "issued"),
        ]


def test_a_description_may_contain_semicolons_and_lines_may_be_repeated(ann: User) -> None:
    sell_as(ann, name="Ann & Söhne", address="Main Street 1\nTown")
    options = ("--line", "A; b; c;-1;0.5;0", "--currency", "jpy", "--note", "Thanks")
    shown = issue(*options, "--address", "Road 1\nTown", line="x;y;2;3;8.1")

    invoice = find_invoice(ann.pk, shown["number"])
    assert [line.description for line in invoice.lines] == ["x;y", "A; b; c"]
    assert (invoice.currency, invoice.note, shown["net"]) == ("JPY", "Thanks", 5)
    assert invoice.customer.address == "Road 1\nTown"
    assert (invoice.seller.name, invoice.seller.address) == ("Ann & Söhne", "Main Street 1\nTown")


REFUSALS = {
    f"{LINE_2}Work;0;1;1": "Line 2, quantity: Enter a number other than 0.",
    f"{LINE_2}Work;1;1;101": "Line 2, VAT rate: Enter a number from 0 to 100.",
    f"{LINE_2};1;1;1": "Line 2, description: This field is required.",
    f"{LINE_2}W;{'9' * 9};{'9' * 12};1": "Lines: The total of the invoice is too large.",
    f"{ISSUE} --currency DEM": "Currency: Enter a currency code such as EUR.",
    f"{ISSUE} --customer {'x' * 201}": "Customer: Use at most 200 characters.",
    f"{ISSUE} --request-id {'x' * 101}": "Request id: Use at most 100 characters.",
    f"{ISSUE} --request-id=": "Request id: This field is required.",
    f"{ISSUE} --request-id r": f"This request id issued invoice {FIRST} before, with other",
    f"{ISSUE} --date {DAY_BEFORE}": f"The last invoice is dated {DAY}. {DAY_BEFORE} is before that",
    f"{ISSUE} --date {LATE}": f"{LATE} is after tomorrow. With it, no other invoice of its year",
    **dict.fromkeys(
        (f"{ISSUE} --user nobody", "listinvoices --user nobody"), "There is no account"
    ),
    **{
        f"{command} --user ann {number}": error
        for command, number, error in (
            ("voidinvoice --reason x", VOIDED, f"Invoice {VOIDED} was already voided: Wrong"),
            ("voidinvoice --reason x", CREDITED, f"Invoice {CREDITED} was already credited by"),
            (
                "voidinvoice --reason x",
                PAID,
                f"Invoice {PAID} is already marked as paid on {DAY}. Use",
            ),
            (
                "voidinvoice --reason x",
                SENT,
                f"Invoice {SENT} was sent by email, or may have been.",
            ),
            ("voidinvoice --reason \u2060", FIRST, "Reason: This field is required."),
            ("creditinvoice --reason x", NOTE, f"{NOTE} is a credit note. It cannot be voided,"),
            ("creditinvoice --reason \u2060", FIRST, "Reason: This field is required."),
            ("markpaid", CREDITED, f"Invoice {CREDITED} was already credited."),
            (f"markpaid --date {DAY_BEFORE}", PAID, f"Invoice {PAID} is already marked as paid on"),
            (f"markpaid --undo --date {DAY_BEFORE}", PAID, f"Invoice {PAID} is not marked as paid"),
            ("markpaid --date 2099-12-31", FIRST, "Date: Enter a day that is not in the future."),
            ("invoicepdf -o x.pdf", f"{DAY.year}-000099", "There is no invoice 2026-000099."),
        )
    },
}


def test_a_refusal_is_one_line_on_stderr_and_exit_code_1(
    ann: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold_the_day(DAY, monkeypatch)
    for _number in range(5):
        issued(ann.pk, request_id=None if stored_numbers(ann.pk) else "r")
    void(ann.pk, VOIDED, "Wrong")
    mark_paid(ann.pk, PAID, DAY)
    put_sendings(ann.pk, SENT, {"r": MAIL})
    credit(ann.pk, CREDITED, "Returned")
    before = stored_invoices(ann.pk)
    monkeypatch.chdir(tmp_path)

    for command, error in REFUSALS.items():
        assert run(*command.split(" "), code=1).startswith(error), command

    assert stored_invoices(ann.pk) == before
    assert find_record(ann.pk, PAID).state.paid_on == DAY
    assert list(tmp_path.iterdir()) == []


def test_an_invoice_that_may_have_been_mailed_is_voided_if_the_command_says_so(ann: User) -> None:
    issued(ann.pk)
    put_sendings(ann.pk, FIRST, {"r": MAIL})

    run("voidinvoice", "--user", "ann", FIRST, "--reason", "It came back", "--even-if-sent")

    assert find_invoice(ann.pk, FIRST).void_reason == "It came back"


def test_japans_reduced_rate_is_marked(ann: User) -> None:
    sell_as(ann, country="JP", name="山田商店", vat_id="T5835678256246")

    label = issue("--supplied-from", str(DAY), "--currency", "JPY", line="Tea;1;108;8")["number"]

    assert [line.tax_category for line in find_invoice(ann.pk, label).lines] == ["reduced"]


def test_the_date_may_be_tomorrow_and_later_if_forced(
    ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold_the_day(DAY, monkeypatch)
    tomorrow = DAY + timedelta(days=1)

    dates = [
        issue("--date", str(tomorrow))["issuedAt"],
        issue("--date", str(LATE), "--force-date")["issuedAt"],
    ]

    assert dates == [str(tomorrow), str(LATE)]


def test_wrong_usage_exits_2() -> None:
    for command in (
        "issueinvoice --user ann --customer Bob",
        "issueinvoice --user ann --customer Bob --line Work;1;1",
        "issueinvoice --user ann --line Work;1;1;1",
        *(f"{ISSUE} --date {day}" for day in ("2026-W48-1", "20261121", "２０２６-11-21")),
        "voidinvoice --user ann 2026-000001",
        "listinvoices --user ann --limit 0",
    ):
        out, err, code = commands.run(*command.split())
        assert (out, code, err.startswith("usage: ")) == ("", 2, True), command


def test_an_invoice_of_too_many_lines_is_refused_in_one_line(ann: User) -> None:
    error = run(*ISSUE.split(), *["--line", "Work;1;1;1"] * MAX_LINES, code=1)

    assert error == "Lines: An invoice has at most 200 lines."
    assert stored_numbers(ann.pk, today().year) == []


def test_an_account_that_must_not_issue_is_told_why_in_one_line(ann: User, settings: Any) -> None:
    sell_as(ann, name="Ann \U0001f986", country="DE")
    assert run(*ISSUE.split(), code=1).startswith("Change your profile first. This character")
    sell_as(ann, name="Ann GmbH")
    assert "law requires this. Add it to your profile: Your" in run(*ISSUE.split(), code=1)
    settings.INVOICES_REQUIRE_CONFIRMED_EMAIL = True
    assert run(*ISSUE.split(), code=1).startswith("Confirm your email address first.")

    assert stored_numbers(ann.pk, today().year) == []


def test_without_an_answer_issueinvoice_shows_the_request_id_to_repeat(
    proxy: FaultProxy, ann: User, impatient: float
) -> None:
    proxy.plan("TransactWriteItems", Answer(500, "InternalServerError", carried_out=True), 1_000)
    error = run(*ISSUE.split(), "--date", "2026-03-14", code=1)
    proxy.forget()

    request_id = error.split("--request-id ")[1].split(":")[0]
    run(*ISSUE.split(), "--date", "2026-03-14", "--request-id", request_id)
    assert stored_numbers(ann.pk) == [1]


# The others ---------------------------------------------------------------------------------------


def test_showing_prints_everything_the_invoice_says(ann: User) -> None:
    issued(ann.pk, request_id="a", note="Thanks")
    voided = run("voidinvoice", "--user", "ann", FIRST, "--reason", "typo", "--json")

    shown = json.loads(run("showinvoice", "--user", "ann", FIRST, "--json"))

    assert shown.items() >= json.loads(voided).items()
    assert (shown["status"], shown["voidReason"], shown["note"]) == ("voided", "typo", "Thanks")
    empty = ("address", "vatId", "country", "number", "email", "language")
    assert shown["customer"] == {"name": "Bob", **dict.fromkeys(empty, "")}
    typed = {"description": "Work", "quantity": "1", "unitPrice": "100", "vatRate": "19"}
    assert shown["lines"] == [typed | {"taxCategory": "", "unit": "", "net": 10_000}]
    share = {"rate": "19", "net": 10_000, "vat": 1_900, "taxCategory": "standard"}
    assert shown["vatShares"] == [share]
    text = run("showinvoice", "--user", "ann", FIRST)
    assert "gross:       119.00 EUR" in text.splitlines()


def test_listing_is_newest_first_over_all_years_or_one(ann: User) -> None:
    for day in (DAY, DAY, date(2025, 1, 2)):
        issued(ann.pk, day=day)

    for options, numbers in {
        (): ["2026-000002", "2026-000001", "2025-000001"],
        ("--year", "2025"): ["2025-000001"],
        ("--limit", "2"): ["2026-000002", "2026-000001"],
    }.items():
        lines = run("listinvoices", "--user", "ann", "--json", *options).splitlines()
        assert [json.loads(line)["number"] for line in lines] == numbers
    assert run("listinvoices", "--user", "ann", "--limit", "1").startswith("2026-000002  2026-")


def write_pdf(path: Path | str, code: int = 0) -> str:
    """What the command prints that writes the first invoice's PDF."""
    return run("invoicepdf", "--user", "ann", FIRST, "-o", str(path), code=code)


def test_the_pdf_is_always_the_same_file(ann: User, tmp_path: Path) -> None:
    issued(ann.pk)
    path = tmp_path / "invoice.pdf"
    path.write_bytes(b"before")

    assert write_pdf(path) == ""

    first = path.read_bytes()
    assert first.startswith(b"%PDF-")
    write_pdf(path)
    assert path.read_bytes() == first
    written = io.TextIOWrapper(io.BytesIO())
    call_command("invoicepdf", FIRST, "--user=ann", "--output=-", stdout=written)
    assert written.buffer.getvalue() == first  # type: ignore[attr-defined]  # a BytesIO
    for wrong in (tmp_path / "absent" / "x.pdf", tmp_path, "."):
        assert write_pdf(wrong, code=1).startswith(f"Cannot write {wrong}: ")
    assert list(tmp_path.rglob("*")) == [path]


def test_the_invoices_of_a_deleted_account_are_found_voided_paid_and_credited_by_its_key(
    ann: User,
) -> None:
    issued(ann.pk)
    delete(ann)
    issued(ann.pk)
    of_first = ("--user", ann.pk, FIRST)

    assert run("listinvoices", "--user", ann.pk).startswith("2026-000002")
    run("voidinvoice", "--user", ann.pk, "2026-000002", "--reason", "x")
    assert find_invoice(ann.pk, "2026-000002").is_voided
    for undo in ([], ["--undo"], []):
        said = "is not marked as paid." if undo else f"is marked as paid on {DAY}."
        assert run("markpaid", *of_first, "--date", str(DAY), *undo) == f"{FIRST} {said}\n"
    credit_it = ("creditinvoice", *of_first, "--reason", "Returned")
    for _time in range(2):
        shown = json.loads(run(*credit_it, "--json"))
        assert (shown["credits"], shown["gross"]) == (FIRST, -11_900)
        assert f"(credit note for {FIRST})" in run(*credit_it)
    text = run("showinvoice", *of_first)
    assert f"paid on:     {DAY}" in text
    assert f"credited by: {shown['number']}" in text


def test_invoices_continue_the_numbers_of_another_system(ann: User) -> None:
    start = ("startinvoices", "--user", "ann")
    for _repeated in range(2):
        assert "2026-001001" in run(*start, "2026-001001")

    assert [issued(ann.pk).label, issued(ann.pk).label] == ["2026-001001", "2026-001002"]

    assert "has begun already" in run(*start, "2026-002000", code=1)
    assert "not a number such as" in run(*start, "1001", code=1)
    [report] = map(json.loads, run("checkinvoices", "--user", "ann", "--json").splitlines())
    assert (report["first"], report["last"], report["issued"]) == (1001, 1002, 2)
