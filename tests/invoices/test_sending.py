"""Sending an invoice by email: at most once for each request id, with its outcome on record."""

import socket
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core import mail
from django.core.exceptions import ValidationError

from accounts.exceptions import TooManyAttempts
from accounts.limits.windows import DEFAULTS
from accounts.models import User
from dynamo.exceptions import DamagedItem
from invoices.document.invoice import Seller
from invoices.document.money import readable_amount
from invoices.exceptions import SendingReused, TooManySendings
from invoices.output.pdf import render
from invoices.output.sending import MAX_SENDINGS, MESSAGE, TO, Sending, send_invoice, sendings_of
from invoices.store.records import find_record
from invoices.store.settlement import credit, mark_paid
from tests.clocks import hold_the_day
from tests.engines import free_port
from tests.factories import make_user
from tests.faults.kinds import Meanwhile
from tests.faults.proxy import FaultProxy
from tests.invoice_factories import DAY, issued, put_sendings, put_state
from tests.mailbox import MailServer, later, sent_by, the_mail
from tests.pages import stored_counts
from tests.requests import Requests

FIRST = f"{DAY.year}-000001"
BOB = "bob@example.org"


def send(user: User, to: str = BOB, label: str = FIRST, **more: Any) -> Sending:
    return send_invoice(user, find_record(user.pk, label), to, **more)


def sendings(user: User, label: str = FIRST) -> list[Sending]:
    return sendings_of(find_record(user.pk, label).state)


# The mail -----------------------------------------------------------------------------------------


def test_the_mail_has_the_pdf_and_says_what_it_is(sender: User, settings: Any) -> None:
    settings.DEFAULT_FROM_EMAIL = "Ledger <ledger@example.org>"

    send(sender, message="Dear Bob,\nthank you.")

    sent = the_mail()
    assert (sent.to, sent.cc, sent.bcc, sent.reply_to) == ([BOB], [], [], ["ann@example.org"])
    assert sent.subject == f"Invoice {FIRST}: €119.00, due on March 21, 2026"
    assert sent.body == (
        f"Ann & Söhne sends you invoice {FIRST} of March 14, 2026.\n\n"
        "Dear Bob,\nthank you.\n\n"
        "Total: €119.00\nDue on: March 21, 2026\n\n"
        "The document is attached as a PDF.\n\n"
        "Sent by testserver for Ann & Söhne. Your reply goes to ann@example.org.\n"
    )
    pdf = render(find_record(sender.pk, FIRST).invoice)
    assert sent.attachments == [(f"{FIRST}.pdf", pdf, "application/pdf")]


def test_a_credit_note_can_be_sent_too(sender: User, monkeypatch: pytest.MonkeyPatch) -> None:
    hold_the_day(DAY, monkeypatch)
    note = credit(sender.pk, FIRST, "Returned")

    send(sender, label=note.label)

    assert the_mail().subject == f"Credit note {note.label}: {readable_amount(-11900, 'EUR')}"
    assert f"cancels invoice {FIRST}" in the_mail().body


HOSTILE = [
    "Ann\r\nBcc: x@evil.example",
    "Ann\x00\x0b\u2028Bcc: x@evil.example",
    '"Ann" <x@evil.example>, ',
    "=?utf-8?q?Ann=0aBcc:_x@evil.example?=",
    "Ann, x@evil.example;",
    "ö" * 200,
]


def test_no_text_adds_a_header_or_a_recipient(sender: User, settings: Any) -> None:
    record = find_record(sender.pk, FIRST)
    for text in HOSTILE:
        # No form stores it, but another program might.
        hostile = replace(record, invoice=replace(record.invoice, seller=Seller(text)))
        with MailServer() as server:
            sent_by(settings, server.port)
            send_invoice(sender, hostile, BOB, text)

        assert [to for to, _bytes in server.taken] == [f"<{BOB}>"]
        received = server.received()
        assert sorted(name.lower() for name in received) == [
            *("content-type", "date", "from", "message-id", "mime-version"),
            *("reply-to", "subject", "to"),
        ]
        assert (str(received["To"]), str(received["Reply-To"])) == (BOB, "ann@example.org")
        [shown] = received["From"].addresses
        assert shown.addr_spec == "webmaster@localhost"


def test_the_recipient_is_one_plain_address_and_the_message_any_text() -> None:
    assert TO.clean(" bob@Bücher.example ") == "bob@xn--bcher-kva.example"
    assert MESSAGE.clean(" Hello \r\n🙂 ") == "Hello\n🙂"
    for address in (
        *("", "bob", "bob@example.org, eve@example.org", "bob@example.org\nBcc: eve@example.org"),
        *("Bob <bob@example.org>", "\u212aate@example.org", "=?utf-8?q?x=40evil?=@example.org"),
    ):
        with pytest.raises(ValidationError):
            TO.clean(address)


# Who and what -------------------------------------------------------------------------------------


def test_only_an_account_with_a_confirmed_address_that_mails_can_reach_sends(sender: User) -> None:
    for attribute, value, said in (
        ("email", "\u212aate@example.org", "your own email address"),
        ("email_confirmed_at", None, "Confirm your email address first"),
    ):
        setattr(sender, attribute, value)
        with pytest.raises(ValidationError, match=said):
            send(sender)

    assert (mail.outbox, sendings(sender), stored_counts()) == ([], [], [])


# At most once -------------------------------------------------------------------------------------


@pytest.mark.fault_of("moto", "reports other capacity")
def test_a_sending_is_stored_and_costs_two_requests_besides_those_of_limits(
    sender: User, requests_sent: Requests
) -> None:
    record = find_record(sender.pk, FIRST)
    requests_sent.clear()

    sending = send_invoice(sender, record, BOB)

    others, of_limits = requests_sent.apart()
    assert others == ["TransactWriteItems", "UpdateItem"]
    assert of_limits == ["PutItem"] * 4
    assert requests_sent.units == 4 + 4 + 1
    assert (sending.to, sending.outcome) == (BOB, "sent")
    assert sendings(sender) == [sending]


def test_the_same_request_sends_once_to_one_address_and_counts_once_for_limits(
    sender: User,
) -> None:
    old = find_record(sender.pk, FIRST)
    first, counts = send(sender, request_id="r"), stored_counts()

    assert send(sender, request_id="r") == first
    assert send_invoice(sender, old, BOB, request_id="r") == first
    with pytest.raises(SendingReused) as refused:
        send(sender, "eve@example.org", request_id="r")
    assert refused.value.to == BOB
    assert stored_counts() == counts
    with later(hours=1):
        assert send(sender, request_id="r") == first

    assert len(mail.outbox) == 1
    send(sender, request_id="another")
    assert len(mail.outbox) == 2


def test_a_payment_and_a_sending_at_once_are_both_kept(sender: User, proxy: FaultProxy) -> None:
    proxy.plan("TransactWriteItems", Meanwhile(lambda: mark_paid(sender.pk, FIRST, DAY)))

    send(sender)

    record = find_record(sender.pk, FIRST)
    assert (record.state.paid_on, len(sendings(sender))) == (DAY, 1)


# Mail servers that do not send it -----------------------------------------------------------------


def test_only_a_mail_that_may_have_been_sent_counts_for_limits_and_no_server_is_waited_for_twice(
    sender: User, settings: Any
) -> None:
    settings.ACCOUNTS_LIMITS = settings.ACCOUNTS_LIMITS | {"mail_recipient": (2, 86400)}
    settings.EMAIL_TIMEOUT = 0.2
    working = settings.EMAIL_BACKEND
    sent_by(settings, free_port())
    assert send(sender).outcome == "failed"
    with socket.create_server(("127.0.0.1", 0)) as black_hole:
        sent_by(settings, black_hole.getsockname()[1])
        assert send(sender).outcome == "failed"
    with MailServer(verdict="") as server:
        sent_by(settings, server.port)
        assert send(sender).outcome == "unknown"
        assert [send(sender).outcome for _ in range(2)] == ["failed"] * 2
        assert len(server.taken) == 1

    sent_by(settings, backend=working)
    assert send(sender).outcome == "sent"
    outcomes = ["sent", "failed", "failed", "unknown", "failed", "failed"]
    assert [each.outcome for each in sendings(sender)] == outcomes


# Limits -------------------------------------------------------------------------------------------


def test_a_stranger_cannot_use_up_the_limit_of_a_recipient() -> None:
    (of_account, period), (of_all, of_all_period) = (
        DEFAULTS[limit].split("/") for limit in ("mail_account_recipient", "mail_recipient")
    )

    assert 10 * int(of_account) < int(of_all)
    assert period == of_all_period


@pytest.mark.parametrize(
    "limit", ["mail_account", "mail_account_day", "mail_account_recipient", "mail_recipient"]
)
def test_an_account_and_a_recipient_have_limits(sender: User, settings: Any, limit: str) -> None:
    settings.ACCOUNTS_LIMITS = settings.ACCOUNTS_LIMITS | {limit: (2, 3600)}
    carl = make_user(email_confirmed=True)
    issued(carl.pk)
    # A recipient has one limit for all accounts.
    send(carl if limit == "mail_recipient" else sender)
    send(sender, "BOB@example.org")
    sent = len(sendings(sender))

    with pytest.raises(TooManyAttempts) as refused:
        send(sender)

    assert refused.value.limit == limit
    assert (len(mail.outbox), len(sendings(sender))) == (2, sent)


# What is kept -------------------------------------------------------------------------------------


def many_sent(ago: timedelta) -> dict[str, dict[str, str]]:
    """As many sendings as can be kept, the oldest so long ago and then one each second."""
    times = (datetime.now(UTC) - ago + timedelta(seconds=n) for n in range(MAX_SENDINGS))
    return {
        f"old-{n}": {"to": BOB, "at": at.isoformat(), "outcome": "sent"}
        for n, at in enumerate(times)
    }


def test_the_oldest_sending_makes_room_for_another_unless_it_is_of_the_last_two_days(
    sender: User, settings: Any
) -> None:
    settings.ACCOUNTS_LIMITS = settings.ACCOUNTS_LIMITS | {"mail_recipient": (1, 86400)}
    put_sendings(sender.pk, FIRST, many_sent(timedelta(hours=47)))
    for _ in range(2):
        with pytest.raises(TooManySendings):
            send(sender)
    assert (len(sendings(sender)), mail.outbox) == (MAX_SENDINGS, [])
    put_sendings(sender.pk, FIRST, many_sent(timedelta(days=3)))

    latest = send(sender)

    kept = [each.request_id for each in sendings(sender)]
    assert kept == [latest.request_id, *[f"old-{n}" for n in range(MAX_SENDINGS - 1, 0, -1)]]


@pytest.mark.parametrize("entry", [{"S": "x"}, {"M": {"to": {"S": BOB}}}])
def test_a_damaged_sending_is_an_error_that_names_its_table(sender: User, entry: Any) -> None:
    put_state(sender.pk, FIRST, sendings={"M": {"r": entry}})

    with pytest.raises(DamagedItem, match="invoicestates"):
        sendings(sender)
