"""The page that sends an invoice, what the invoice's page says about it, and `sendinvoice`."""

import json
from typing import Any

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone

from accounts.models import User
from invoices.output.sending import sendings_of
from invoices.store.records import find_record
from invoices.store.settlement import void
from tests.commands import run
from tests.engines import free_port
from tests.factories import set_stored
from tests.invoice_factories import DAY, put_sendings
from tests.mailbox import MailServer, sent_by, the_mail
from tests.pages import Page, form_values
from tests.policies import rights, rights_for
from tests.requests import OF_EVERY_PAGE, Requests

FIRST = f"{DAY.year}-000001"
INVOICE = f"/invoices/{FIRST}/"
SEND = f"{INVOICE}send/"
BOB = "bob@example.org"
COMMAND = ["sendinvoice", "--user=ann", FIRST]


def outcomes(user: User) -> list[tuple[str, str]]:
    record = find_record(user.pk, FIRST)
    return [(each.to, each.outcome) for each in sendings_of(record.state)]


def put_sending(user: User, request_id: str, at: str = "2026-03-14T22:30:00+00:00") -> None:
    """Store the claim of a process that has not stored its outcome."""
    put_sendings(user.pk, FIRST, {request_id: {"to": BOB, "at": at, "outcome": "unknown"}})


# The page -----------------------------------------------------------------------------------------


def test_the_form_has_the_customers_address_and_leads_back_to_the_invoice(
    client: Client, sender: User, requests_sent: Requests
) -> None:
    assert f'href="{SEND}"' in client.get(INVOICE).content.decode()
    assert "Replies go to ann@example.org." in Page(client.get(SEND)).text
    form = form_values(client, SEND, message="Thanks")
    assert form["to"] == BOB
    requests_sent.clear()

    response = client.post(SEND, form)

    others, of_limits = requests_sent.apart()
    assert others == [*OF_EVERY_PAGE, "TransactGetItems", "TransactWriteItems", "UpdateItem"]
    assert len(of_limits) == 5
    assert set(rights_for(requests_sent)) <= set(rights("site"))
    assert response["Location"] == INVOICE
    assert (the_mail().to, "Thanks" in the_mail().body) == ([BOB], True)
    shown = Page(client.get(INVOICE))
    assert shown.messages == [f"{FIRST} was sent to {BOB}."]
    assert f"{BOB}: sent" in " ".join(shown.text.split())


def test_the_second_of_two_clicks_leads_to_the_invoice_while_the_first_one_sends(
    client: Client, sender: User
) -> None:
    values = form_values(client, SEND)
    request_id = values["request_id"].partition(":")[0]
    put_sending(sender, request_id, at=timezone.now().isoformat())

    assert client.post(SEND, values)["Location"] == INVOICE

    said = "The mail is still being sent. Load this page again to see the outcome."
    assert Page(client.get(INVOICE)).messages == [said]
    assert (mail.outbox, outcomes(sender)) == ([], [(BOB, "unknown")])


def test_a_form_that_was_sent_and_then_changed_sends_to_the_other_address_when_sent_again(
    client: Client, sender: User
) -> None:
    values = form_values(client, SEND)
    client.post(SEND, values)
    other = {"to": "carl@example.org", "message": "Hi"}

    page = Page(client.post(SEND, values | other))

    assert f"already sent the invoice to {BOB}" in page.text
    assert {name: page.value(name) for name in other} == other
    assert len(mail.outbox) == 1
    client.post(SEND, values | other | {"request_id": page.value("request_id")})
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


@pytest.mark.parametrize(
    ("answers", "said", "outcome"),
    [
        ({"answer": "550 no"}, f"The mail server refused the mail to {BOB}.", "refused"),
        ({"verdict": "554 spam"}, f"The mail server refused the mail to {BOB}.", "refused"),
        ({"verdict": ""}, f"It is not known whether the mail to {BOB} was sent", "unknown"),
        (None, "The mail server cannot be reached, so nothing was sent.", "failed"),
    ],
)
def test_a_mail_that_was_not_sent_keeps_what_was_typed_and_can_be_sent_again(
    client: Client,
    sender: User,
    settings: Any,
    answers: dict[str, str] | None,
    said: str,
    outcome: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings.EMAIL_TIMEOUT = 0.2
    working = settings.EMAIL_BACKEND
    with MailServer(**answers or {}) as server:
        sent_by(settings, server.port if answers else free_port())
        response = client.post(SEND, form_values(client, SEND, message="Hello"))

    page = Page(response)
    typed = {name: page.value(name) for name in ("to", "message", "request_id")}
    assert (response.status_code, said in page.text) == (200, True)
    assert (typed["to"], typed["message"]) == (BOB, "Hello")
    assert outcomes(sender) == [(BOB, outcome)]
    assert f"An invoice was not sent: {outcome}." in caplog.text
    assert BOB not in caplog.text
    sent_by(settings, backend=working)
    client.post(SEND, typed)
    assert outcomes(sender) == [(BOB, "sent"), (BOB, outcome)]


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
    assert Page(response).value("message") == "Hello"
    assert said in Page(response).text
    assert "You can try again in 24 hours." in Page(response).text


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

    first, again = (run(*COMMAND, *options) for _ in range(2))

    assert first == again
    said = json.loads(first[0])
    assert said.pop("at") in str(find_record(sender.pk, FIRST).state.sendings.as_dict())
    assert said == {"requestId": "r", "to": BOB, "outcome": "sent"}
    assert the_mail().body.count("Hello") == 1
    assert set(rights_for(requests_sent)) <= set(rights("operator"))
    out, _err, code = run(*COMMAND, "--to=carl@example.org")
    assert (code, out.split()[2:]) == (0, ["carl@example.org", "sent"])


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
    working = settings.EMAIL_BACKEND
    sent_by(settings, free_port())
    assert "so nothing was sent. Try again later. (Conn" in refused("--request-id=r")
    settings.EMAIL_BACKEND = working
    assert "cannot be reached" in refused("--request-id=r")
    assert "Use a new request id" in refused("--request-id=r", "--to=carl@example.org")
    settings.ACCOUNTS_LIMITS = settings.ACCOUNTS_LIMITS | {"mail_account": (0, 3600)}
    assert "Too many attempts" in refused()
    assert mail.outbox == []
