"""Sending an invoice by email: at most once for each request id; its page and its command."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core import mail
from django.core.exceptions import ValidationError
from django.test import Client

from accounts.conf import LIMITS
from accounts.exceptions import TooManyAttempts
from accounts.models import User
from dynamo.exceptions import DamagedItem
from invoices.document.invoice import Seller
from invoices.document.money import readable_amount
from invoices.exceptions import AlreadyVoided, SendingReused, TooManySendings
from invoices.output import sending
from invoices.output.pdf import render
from invoices.output.sending import (
    MAX_SENDINGS,
    MESSAGE,
    NOT_SENT,
    TO,
    current_sendings,
    send_invoice,
)
from invoices.store.records import Sending, find_record, sendings_of
from invoices.store.settlement import credit, mark_paid, void
from locks import Lock
from outbox import TaskContext, steps
from tests.clocks import hold_the_day
from tests.commands import run
from tests.engines import free_port
from tests.factories import make_user, set_stored
from tests.faults.kinds import Meanwhile
from tests.faults.proxy import FaultProxy
from tests.invoice_factories import DAY, issued, put_sendings, put_state
from tests.mailbox import MailServer, later, sent_by, the_mail
from tests.pages import Page, form_values, stored_counts
from tests.policies import rights, rights_for
from tests.registration import RunTasks
from tests.requests import OF_EVERY_PAGE, Requests

FIRST = f"{DAY.year}-000001"
BOB = "bob@example.org"
INVOICE = f"/invoices/{FIRST}/"
SEND = f"{INVOICE}send/"
COMMAND = ["sendinvoice", "--user=ann", FIRST]


def send(user: User, to: str = BOB, label: str = FIRST, **more: Any) -> Sending:
    return send_invoice(user, find_record(user.pk, label), to, **more)


def sendings(user: User, label: str = FIRST) -> list[Sending]:
    return sendings_of(find_record(user.pk, label).state)


def outcomes(user: User) -> list[tuple[str, str]]:
    record = find_record(user.pk, FIRST)
    return [(item.to, item.outcome) for item in current_sendings(record)]


def put_sending(user: User, request_id: str, at: str = "2026-03-14T22:30:00+00:00") -> None:
    """Store the claim of a process that has not stored its outcome."""
    put_sendings(user.pk, FIRST, {request_id: {"to": BOB, "at": at, "outcome": "unknown"}})


# The mail -----------------------------------------------------------------------------------------


def test_the_mail_has_the_pdf_and_says_what_it_is(sender: User, settings: Any) -> None:
    settings.DEFAULT_FROM_EMAIL = "Ledger <ledger@example.org>"

    send(sender)

    sent = the_mail()
    assert (sent.to, sent.cc, sent.bcc, sent.reply_to) == ([BOB], [], [], ["ann@example.org"])
    assert sent.subject == f"Invoice {FIRST}: €119.00, due on March 21, 2026"
    assert sent.body == (
        f"Hello,\n\nAnn & Söhne sends you invoice {FIRST} of March 14, 2026.\n\n"
        "Total: €119.00\nDue on: March 21, 2026\n\n"
        "The document is attached as a PDF.\n\n"
        "Sent by testserver for Ann & Söhne. Your reply goes to ann@example.org.\n"
    )
    pdf = render(find_record(sender.pk, FIRST).invoice)
    assert sent.attachments == [(f"{FIRST}.pdf", pdf, "application/pdf")]


def test_the_page_shows_the_mail_and_what_is_changed_is_sent(client: Client, sender: User) -> None:
    page = Page(client.get(SEND))
    assert page.value("subject").startswith(f"Invoice {FIRST}: €119.00")
    assert "The document is attached as a PDF." in page.value("message")

    emptied = client.post(SEND, form_values(client, SEND, subject="", message=" "))
    assert Page(emptied).errors.keys() == {"subject", "message"}
    changed = {"subject": "Our invoice", "message": "Dear Bob,\nthank you."}
    client.post(SEND, form_values(client, SEND, **changed))

    assert the_mail().subject == "Our invoice"
    assert the_mail().body == (
        "Dear Bob,\nthank you.\n\n"
        "Sent by testserver for Ann & Söhne. Your reply goes to ann@example.org.\n"
    )


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
            send_invoice(sender, hostile, BOB, text, subject=text)

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


def test_an_invoice_that_was_voided_after_it_was_read_is_not_sent(sender: User) -> None:
    read = find_record(sender.pk, FIRST)
    void(sender.pk, FIRST, "Wrong customer")

    with pytest.raises(AlreadyVoided):
        send_invoice(sender, read, BOB)

    assert (mail.outbox, sendings(sender)) == ([], [])


# At most once -------------------------------------------------------------------------------------


@pytest.mark.fault_of("moto", "reports other capacity")
def test_a_sending_is_stored_with_its_task_and_costs_one_request_in_addition_to_those_of_limits(
    sender: User, requests_sent: Requests, worker: RunTasks
) -> None:
    record = find_record(sender.pk, FIRST)
    requests_sent.clear()

    sending = send_invoice(sender, record, BOB)

    others, of_limits = requests_sent.apart()
    assert others == ["TransactWriteItems"]
    assert of_limits == ["PutItem"] * 4
    assert requests_sent.units == 6 + 4
    assert (sending.to, sending.outcome) == (BOB, "waiting")
    assert sendings(sender) == [sending]
    [ran] = worker()
    assert ran.outcome == "successful"
    assert sendings(sender) == [replace(sending, outcome="sent")]


def test_the_same_request_sends_once_to_one_address_and_counts_once_for_limits(
    sender: User,
) -> None:
    old = find_record(sender.pk, FIRST)
    send(sender, request_id="r")
    [first] = sendings(sender)
    counts = stored_counts()

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


@pytest.mark.parametrize(
    ("answers", "outcome", "attempts"),
    [
        ({"answer": "550 no"}, "refused", 1),
        ({"verdict": "554 spam"}, "refused", 1),
        # Nobody knows whether it was sent, so it is not sent again.
        ({"verdict": ""}, "unknown", 1),
        (None, "failed", 5),
    ],
)
def test_a_mail_server_that_cannot_be_reached_is_tried_again_and_any_other_answer_is_final(
    client: Client,
    sender: User,
    settings: Any,
    worker: RunTasks,
    answers: dict[str, str] | None,
    outcome: str,
    attempts: int,
) -> None:
    settings.EMAIL_TIMEOUT = 0.2
    values = form_values(client, SEND, message="Hello")
    with MailServer(**answers or {}) as server:
        sent_by(settings, server.port if answers else free_port())
        assert client.post(SEND, values)["Location"] == INVOICE
        assert f"{BOB}: is being sent" in " ".join(Page(client.get(INVOICE)).text.split())
        assert len(worker()) == attempts

    assert outcomes(sender) == [(BOB, outcome)]
    page = Page(client.post(SEND, values))
    assert NOT_SENT[outcome] % {"to": BOB} in page.text
    typed = {name: page.value(name) for name in ("to", "subject", "message", "request_id")}
    assert (typed["to"], typed["message"]) == (BOB, "Hello")
    assert typed["request_id"] != values["request_id"]


@pytest.mark.parametrize("killed_at", ["connected", "handed over"])
def test_an_attempt_that_ends_between_two_steps_never_sends_the_mail_twice(
    sender: User, worker: RunTasks, monkeypatch: pytest.MonkeyPatch, killed_at: str
) -> None:
    """The process is gone before the entry says "unknown", or before it has its outcome."""

    def gone(*_arguments: object, **_options: object) -> None:
        monkeypatch.undo()
        raise SystemExit

    target = sending._store_outcome if killed_at == "connected" else TaskContext.finish
    owner = sending if killed_at == "connected" else TaskContext
    monkeypatch.setattr(owner, target.__name__, gone)
    send(sender)

    worker()

    assert len(mail.outbox) == 1
    assert outcomes(sender) == [(BOB, "sent" if killed_at == "connected" else "unknown")]


def test_a_mail_that_cannot_be_made_is_shown_to_its_sender_and_as_a_failed_task(
    sender: User, worker: RunTasks, settings: Any
) -> None:
    settings.EMAIL_BACKEND = "no.such.Backend"
    send(sender)

    ran = worker()

    assert [attempt.outcome for attempt in ran] == ["repeated"] * 4 + ["failed"]
    assert outcomes(sender) == [(BOB, "failed")]


@pytest.mark.fault_of("moto", "reports other capacity")
def test_a_mail_whose_worker_is_killed_at_the_last_attempt_is_shown_as_not_sent(
    client: Client, sender: User, worker: RunTasks, settings: Any, requests_sent: Requests
) -> None:
    settings.TASKS["default"]["OPTIONS"]["RETRY"]["*"]["attempts"] = 1
    values = form_values(client, SEND)
    client.post(SEND, values)
    [waiting] = sendings(sender)
    lease = Lock("killed").acquire()
    assert steps.claim(steps.find(waiting.task), lease)
    assert outcomes(sender) == [(BOB, "waiting")]
    lease.release(remove=True)
    worker()

    requests_sent.clear()
    text = " ".join(Page(client.get(INVOICE)).text.split())
    assert f"{BOB}: not sent" in text
    assert requests_sent.operations == [*OF_EVERY_PAGE, "TransactGetItems", "GetItem"]
    assert NOT_SENT["failed"] % {"to": BOB} in Page(client.post(SEND, values)).text

    steps.restart(waiting.task)
    assert outcomes(sender) == [(BOB, "waiting")]
    worker()
    assert (outcomes(sender), len(mail.outbox)) == ([(BOB, "sent")], 1)


def test_a_mail_whose_failed_task_is_discarded_is_shown_as_not_sent(
    sender: User, worker: RunTasks, settings: Any
) -> None:
    settings.EMAIL_BACKEND = "no.such.Backend"
    task = send(sender).task
    worker()

    steps.discard(task)

    assert outcomes(sender) == [(BOB, "failed")]


def test_an_invoice_that_is_voided_while_its_mail_waits_is_not_sent(
    sender: User, worker: RunTasks
) -> None:
    send(sender)
    void(sender.pk, FIRST, "Wrong customer", even_if_sent=True)

    worker()

    assert (mail.outbox, outcomes(sender)) == ([], [(BOB, "failed")])


# Limits -------------------------------------------------------------------------------------------


def test_a_stranger_cannot_use_up_the_limit_of_a_recipient() -> None:
    (of_account, period), (of_all, of_all_period) = (
        LIMITS[limit].split("/") for limit in ("mail_account_recipient", "mail_recipient")
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
    """As many sendings as can be kept, one each second. The oldest was so long `ago`."""
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

    kept = [sending.request_id for sending in sendings(sender)]
    assert kept == [latest.request_id, *[f"old-{n}" for n in range(MAX_SENDINGS - 1, 0, -1)]]


@pytest.mark.parametrize("entry", [{"S": "x"}, {"M": {"to": {"S": BOB}}}])
def test_a_damaged_sending_is_an_error_that_says_what_is_wrong(sender: User, entry: Any) -> None:
    put_state(sender.pk, FIRST, sendings={"M": {"r": entry}})

    with pytest.raises(
        DamagedItem, match="of invoicestates is damaged: sendings: not a map of sendings"
    ):
        sendings(sender)


# The page -----------------------------------------------------------------------------------------


def test_the_form_has_the_customers_address_and_leads_back_to_the_invoice(
    client: Client, sender: User, requests_sent: Requests, worker: RunTasks
) -> None:
    assert f'href="{SEND}"' in client.get(INVOICE).content.decode()
    assert "Replies go to ann@example.org." in Page(client.get(SEND)).text
    form = form_values(client, SEND, message="Thanks")
    assert form["to"] == BOB
    requests_sent.clear()

    response = client.post(SEND, form)

    others, of_limits = requests_sent.apart()
    assert others == [*OF_EVERY_PAGE, "TransactGetItems", "TransactWriteItems"]
    assert len(of_limits) == 5
    worker()
    assert set(rights_for(requests_sent)) <= set(rights("site"))
    assert response["Location"] == INVOICE
    assert (the_mail().to, "Thanks" in the_mail().body) == ([BOB], True)
    shown = Page(client.get(INVOICE))
    assert shown.messages == [f"{FIRST} is being sent to {BOB}."]
    assert f"{BOB}: sent" in " ".join(shown.text.split())


def test_the_second_of_two_clicks_leads_to_the_invoice_and_sends_nothing(
    client: Client, sender: User, worker: RunTasks
) -> None:
    values = form_values(client, SEND)

    assert [client.post(SEND, values)["Location"] for _ in range(2)] == [INVOICE] * 2

    said = f"{FIRST} is being sent to {BOB}."
    assert Page(client.get(INVOICE)).messages == [said] * 2
    assert len(worker()) == len(mail.outbox) == 1
    client.post(SEND, values)
    assert Page(client.get(INVOICE)).messages == [f"{FIRST} was sent to {BOB}."]


def test_a_form_that_was_sent_and_then_changed_sends_to_the_other_address_when_sent_again(
    client: Client, sender: User
) -> None:
    values = form_values(client, SEND)
    client.post(SEND, values)
    other = values | {"to": "carl@example.org", "message": "Hi"}

    page = Page(client.post(SEND, other))

    assert f"already sent the invoice to {BOB}" in page.text
    assert (page.value("to"), page.value("message")) == ("carl@example.org", "Hi")
    assert len(mail.outbox) == 1
    client.post(SEND, other | {"request_id": page.value("request_id")})
    assert [message.to for message in mail.outbox] == [[BOB], ["carl@example.org"]]


def test_a_wrong_recipient_or_request_id_sends_nothing_and_keeps_what_was_typed(
    client: Client, sender: User
) -> None:
    values = form_values(client, SEND, message="Hello")
    for field, text in (("to", f"{BOB}, eve@example.org"), ("request_id", "r:1:2")):
        page = Page(client.post(SEND, values | {field: text}))
        assert list(page.errors) == [field]
        assert page.value("message") == "Hello"
    assert (mail.outbox, outcomes(sender)) == ([], [])
    client.post(SEND, values | {"request_id": page.value("request_id")})
    assert len(mail.outbox) == 1


def test_an_unknown_outcome_is_shown_with_the_choice_to_send_again(
    client: Client, sender: User
) -> None:
    put_sending(sender, "r")
    set_stored(sender, timeZone="Asia/Tokyo")

    response = client.get(INVOICE)

    text = " ".join(Page(response).text.split())
    assert f"{BOB}: it is not known whether it was sent · Send again…" in text
    assert "March 15, 2026, 7:30 a.m." in text
    assert response.content.decode().count(f'href="{SEND}"') == 2


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("mail_recipient", "This address has received too many"),
        ("mail_client", "You have sent too"),
    ],
)
def test_a_page_over_a_limit_is_the_same_form_as_a_429(
    client: Client, sender: User, settings: Any, limit: str, said: str
) -> None:
    settings.ACCOUNTS_LIMITS = settings.ACCOUNTS_LIMITS | {limit: (1, 86400)}
    client.post(SEND, form_values(client, SEND))

    response = client.post(SEND, form_values(client, SEND, message="Hello"))

    assert (response.status_code, len(mail.outbox), len(outcomes(sender))) == (429, 1, 1)
    assert int(response["Retry-After"]) > 86000
    page = Page(response)
    assert page.value("message") == "Hello"
    for text in (said, "You can try again in 1\xa0day."):
        assert text in page.text


def test_the_page_says_that_an_address_must_be_confirmed_or_that_the_invoice_is_void(
    client: Client, sender: User
) -> None:
    values = form_values(client, SEND, message="Hello")
    set_stored(sender, emailConfirmedAt=None)
    page = Page(client.get(SEND))
    assert "Confirm your email address before you send an invoice." in page.text
    assert "Send the mail" not in page.text
    refused = Page(client.post(SEND, values))
    assert "Confirm your email address first." in refused.text
    assert refused.value("message") == "Hello"

    void(sender.pk, FIRST, "Wrong customer")

    assert client.get(SEND)["Location"] == INVOICE
    assert f'href="{SEND}"' not in client.get(INVOICE).content.decode()
    assert "already voided: Wrong customer" in Page(client.post(SEND, values)).text
    assert (mail.outbox, outcomes(sender)) == ([], [])


# The command --------------------------------------------------------------------------------------


def test_the_command_sends_once_and_prints_the_outcome(
    sender: User, requests_sent: Requests
) -> None:
    options = ["--message=Hello", "--request-id=r", "--json"]
    requests_sent.clear()

    first, again = (json.loads(run(*COMMAND, *options)[0]) for _ in range(2))

    assert (first["outcome"], again) == ("waiting", first | {"outcome": "sent"})
    assert first.pop("at") in str(find_record(sender.pk, FIRST).state.sendings.as_dict())
    assert first == {"requestId": "r", "to": BOB, "outcome": "waiting"}
    assert the_mail().body.count("Hello") == 1
    assert set(rights_for(requests_sent)) <= set(rights("operator"))
    out, _err, code = run(*COMMAND, "--to=carl@example.org")
    assert (code, out.split()[2:]) == (0, ["carl@example.org", "waiting"])


def test_each_refusal_of_the_command_is_one_line(sender: User, settings: Any) -> None:
    def refused(*options: str) -> str:
        _out, err, code = run(*COMMAND, *options)
        assert (err.count("\n"), code) == (1, 1)
        return err

    for option, said in {
        "--to=bob@example.org,eve@example.org": "To: Enter a valid email address.",
        "--request-id=a b": "Request id: Use up to 100 letters",
        "--message=\x00": "Message: Use printable characters only.",
        "--user=nobody": "nobody",
    }.items():
        assert said in refused(option)
    put_sending(sender, "r")
    assert "It is not known whether" in refused("--request-id=r")
    assert "Use a new request id" in refused("--request-id=r", "--to=carl@example.org")
    settings.ACCOUNTS_LIMITS = settings.ACCOUNTS_LIMITS | {"mail_account": (1, 3600)}
    run(*COMMAND)
    assert "Too many attempts" in refused()
    assert len(mail.outbox) == 1
