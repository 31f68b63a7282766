"""The check of invoices: what it adds to that of series (`tests.sequences.test_checkseries`)."""

import json
from datetime import date

import pytest

from accounts.services import delete
from invoices.models import InvoiceItem
from invoices.store.check import check_invoices
from invoices.store.settlement import credit, mark_paid, void
from tests import commands, numbered
from tests.factories import make_user
from tests.invoice_factories import (
    DAY,
    issued,
    new_account,
    put_invoice,
    put_state,
    remove_invoice,
    series,
    stored_invoices,
)
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


@pytest.fixture
def account() -> str:
    """An account with three invoices, of the requests a, b and c."""
    made = new_account()
    for request_id in "abc":
        issued(made, request_id=request_id)
    return made


def run(*arguments: str) -> tuple[str, str]:
    """What the command prints, and the line with which it exits 1; empty where it succeeds."""
    out, err, code = commands.run("checkinvoices", *arguments)
    assert code == bool(err)
    return out, err.removeprefix("CommandError: ").rstrip("\n")


# Sound series -------------------------------------------------------------------------------------


def test_sound_series_are_one_line_each_with_the_keys_of_the_contract(account: str) -> None:
    void(account, "2026-000002", "typo")
    issued(account, day=date(2027, 1, 1))

    out, error = run("--json")

    keys = ("series", "last", "issued", "voided", "gaps", "duplicates")
    sound = (f"{account}#2026", 3, 2, 1, [], []), (f"{account}#2027", 1, 1, 0, [], [])
    found = [list(json.loads(line).items()) for line in out.splitlines()]
    assert found == [list(zip(keys, values, strict=True)) for values in sound]
    assert error == ""


def test_two_invoices_of_one_request_in_two_years_are_duplicates(account: str) -> None:
    later = series(account, 2027)
    issued(account, day=date(2027, 1, 1), request_id="z")
    put_invoice(stored_invoices(account)[0], series={"S": later}, number={"N": "2"})
    numbered.put_counter(InvoiceItem, later, 2, "2027-01-01")

    for reports in (check_invoices(), check_invoices(account)):
        assert [report.duplicates.listed for report in reports] == [[1], [2]]


def test_the_check_of_one_account_reads_the_counter_of_each_year(
    account: str, requests_sent: Requests
) -> None:
    requests_sent.clear()

    [report] = check_invoices(account)

    assert report.items == 3
    sizes = [len(item["TransactItems"]) for item in requests_sent.of("TransactGetItems")]
    # The counters of all years; the guards.
    assert sizes == [25] * 5 + [5] + [3]


# The command --------------------------------------------------------------------------------------


def test_damage_is_one_line_per_series_and_exits_1(account: str) -> None:
    remove_invoice(series(account), 2)
    remove_invoice(InvoiceItem.guard_key(series(account), "b"), 0)

    out, error = run()

    assert out == f"{series(account)}  last 3, 2 issued, 0 voided; gaps: 2\n"
    assert error == "1 series is damaged."


def test_the_series_of_one_account_are_checked_even_after_it_was_deleted(account: str) -> None:
    user = make_user(username="ann")
    issued(user.pk)
    remove_invoice(series(account), 2)
    found = [run("--user", "ann", "--json")]
    delete(user)
    found.append(run("--user", user.pk.upper(), "--json"))

    told = [(json.loads(out)["series"], error) for out, error in found]
    assert told == [(series(user.pk), "")] * 2


@pytest.mark.parametrize("of_one_account", [False, True])
def test_credit_notes_and_the_states_of_their_invoices_are_compared(
    account: str, of_one_account: bool
) -> None:
    who = ["--user", account] if of_one_account else []
    first, second, third = (f"{DAY.year}-{number:06}" for number in (1, 2, 3))
    for label in (first, second):
        credit(account, label, "Returned")
    mark_paid(account, third, DAY)
    assert run(*who)[1] == ""

    put_state(account, first, paidOn={"S": str(DAY)})  # as restored: without creditedBy
    put_state(account, third, creditedBy={"S": f"credit#{third}"})
    out, error = run("--json", *who)

    [found] = [item for item in map(json.loads, out.splitlines()) if item.get("credits")]
    assert (found["series"], found["credits"]) == (series(account), [first, third])
    assert (found["gaps"], found["duplicates"]) == ([], [])
    assert error == "1 series is damaged."
    assert f"credits: {first}, {third}" in run(*who)[0]
