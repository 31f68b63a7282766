"""The mails: their recipients, headers and texts, which nobody outside can influence."""

import logging
from itertools import product
from typing import Any

import pytest
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.test import Client, override_settings

from accounts.emails import mails
from accounts.emails.links import mark_confirmed
from accounts.models import User
from dynamo.runtime import deadline
from dynamo.runtime.deadline import page_is_over
from tests.clocks import LeapingClock, use_clock
from tests.commands import ROOT
from tests.factories import PASSWORD, make_user, set_stored
from tests.mailbox import MailServer, sent_by, the_mail, whole_link
from tests.pages import REMINDER, RESET, arrive, sign_in, sign_up, signed_in_as
from tests.registration import RunTasks

SEND = "/accounts/confirm/send/"
ASKED = {"email": "ann@example.org"}
SUBJECT = "_subject.txt"
MAILS = ROOT / "accounts" / "templates" / "accounts" / "mail"
KINDS = sorted(path.name.removesuffix(SUBJECT) for path in MAILS.glob(f"*{SUBJECT}"))
CONTEXT = (
    {"when": "today", "browser": "curl", "address": "192.0.2.1", "reset": "http://r"}
    | {"link": "http://testserver/l/", "days": 3, "username": "Ann"}
    | dict.fromkeys(("sign_in", "sign_up"), "http://testserver/s/")
)


@pytest.fixture
def server(settings: Any) -> Any:
    """A mail server that accepts every mail."""
    with MailServer() as server:
        sent_by(settings, server.port)
        yield server


@pytest.mark.parametrize("kind", KINDS)
def test_each_mail_is_plain_text_with_one_subject(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    mails.deliver(kind, "ann@example.org", "en", **CONTEXT)

    message = the_mail()
    assert message.subject == message.subject.strip()
    assert "Dynamo Ledger" in message.subject
    assert message.body.startswith("Hello,\n\n")
    assert message.body.endswith("\n\nDynamo Ledger, testserver\n")
    assert "\n" not in message.subject
    assert "\n\n\n" not in message.body
    for leftover in ("{{", "{%", "&#", "&amp;", "None"):
        assert leftover not in message.body
    assert message.message()["Auto-Submitted"] == "auto-generated"
    assert message.from_email == "webmaster@localhost"
    assert caplog.text == ""


@override_settings(ALLOWED_HOSTS=["*"], ACCOUNTS_SITE_ORIGIN="https://www.example.org:8443")
@pytest.mark.parametrize("url", [RESET, REMINDER])
def test_links_begin_with_the_configured_origin_not_with_the_host_header(
    engine: str, url: str
) -> None:
    make_user(email="ann@example.org")
    hosts = ("evil.example", "www.example.org:81", "testserver")

    for email, host in product(("ann@example.org", "nobody@example.org"), hosts):
        mail.outbox.clear()
        Client().post(url, {"email": email}, headers={"host": host, "x-forwarded-host": host})

        assert whole_link().startswith("https://www.example.org:8443/accounts/")
        assert the_mail().body.endswith("Dynamo Ledger, www.example.org:8443\n")
        assert host not in the_mail().message().as_string().replace("www.example.org:8443", "")


@override_settings(ACCOUNTS_SITE_ORIGIN="")
def test_without_a_configured_origin_no_mail_is_sent_and_the_task_says_why(
    client: Client, worker: RunTasks
) -> None:
    client.post(RESET, ASKED)

    [ran, *_more] = worker()
    assert "Set ACCOUNTS_SITE_ORIGIN" in ran.shown_error
    assert mail.outbox == []


# Hostile texts ------------------------------------------------------------------------------------

HOSTILE = [
    "Ann\r\nBcc: x@evil.example",
    "Ann\nSubject: won",
    "Ann\x00\x0bX",
    '"Ann" <x@evil.example>, ',
    "=?utf-8?q?Ann=0aBcc:_x@evil.example?=",
    "http://evil.example/{{ link }}{% now %}",
    "\u202eevil\u2028Bcc: x@evil.example",
]


HEADERS = {"content-type", "mime-version", "content-transfer-encoding", "auto-submitted"}
HEADERS |= {"subject", "from", "to", "date", "message-id"}


def test_a_hostile_stored_name_adds_nothing_to_a_header(
    ann: User, server: MailServer, limits: Any
) -> None:
    mark_confirmed(ann)
    for name in HOSTILE:
        # No form stores it, but another program might.
        set_stored(ann, fullName=name, userName=name)
        server.taken.clear()
        assert Client().post(REMINDER, ASKED).status_code == 302
        assert [to for to, _message in server.taken] == ["<ann@example.org>"]
        received = server.received()
        assert {header.lower() for header in received} == HEADERS
        assert "evil" not in "".join(str(value) for value in received.values())
        assert received.get_content_type() == "text/plain"


@override_settings(ACCOUNTS_SITE_ORIGIN="http://here\r\nBcc: x@evil.example")
def test_a_subject_is_always_one_line(server: MailServer) -> None:
    typed = dict.fromkeys(("subject", "link", "username", "site"), "a\r\nBcc: b@evil.example")

    mails.deliver("confirm", "ann@example.org", "en", **typed)

    received = server.received()
    assert (received["Bcc"], received["To"]) == (None, "ann@example.org")


# Addresses ----------------------------------------------------------------------------------------

LONGEST = f"{'x' * 64}@{'y' * 63}.{'y' * 63}.{'y' * 57}.com"


@pytest.mark.parametrize(
    ("typed", "sent_to"),
    [
        (LONGEST, LONGEST),
        ("o'hara+tag@example.org", "o'hara+tag@example.org"),
        ("ann@Bücher.Example", "ann@xn--bcher-kva.example"),
        # By the IDNA of 2003 this would be strasse.example, another domain.
        ("ann@straße.example", "ann@xn--strae-oqa.example"),
        ("ann@[127.0.0.1]", "ann@[127.0.0.1]"),
    ],
)
def test_a_mail_is_sent_to_the_address_as_typed(
    engine: str, client: Client, server: MailServer, typed: str, sent_to: str
) -> None:
    sign_up(client, email=typed)

    assert [recipient for recipient, _message in server.taken] == [f"<{sent_to}>"]
    [address] = server.received()["To"].addresses
    assert f"{address.username}@{address.domain}".replace('"', "") == sent_to.replace('"', "")


@pytest.mark.parametrize("stored", ['"a@b"@example.org', '"a,b<c>;"@example.org'])
def test_an_account_gets_mails_to_its_quoted_address(
    client: Client, ann: User, server: MailServer, stored: str
) -> None:
    ann.change(email=stored)
    arrive(client, ann)

    client.post(SEND)
    Client().post(RESET, {"email": stored})

    assert [recipient for recipient, _message in server.taken] == [f"<{stored}>"] * 2


@pytest.mark.parametrize(
    "address",
    [
        "\u212aate@example.org",  # the sign for kelvin, which Django accepts as a letter
        '"=?utf-8?q?x=40evil=2eexample?="@example.org',
        "=?utf-8?q?x=40evil=2eexample=3e?=@example.org",
        "ann\r\nBcc: x@evil.example",
    ],
)
def test_an_ambiguous_or_damaged_address_gets_no_mail_and_breaks_no_page(
    client: Client, ann: User, server: MailServer, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    arrive(client, ann)
    set_stored(ann, email=address)

    assert client.post(SEND).status_code == 302

    assert "A mail (confirm) was not sent: its address takes no mails." in caplog.text
    if "\n" not in address:
        assert Client().post(RESET, {"email": address}).status_code == 302
    assert server.taken == []


# Mail servers that do not work --------------------------------------------------------------------


def test_no_page_waits_for_a_mail_server_or_depends_on_it_and_no_mail_is_lost(
    ann: User, client: Client, settings: Any, worker: RunTasks
) -> None:
    mark_confirmed(ann)
    change = {"email": "new@example.org", "password": PASSWORD}
    deleted = {"password": PASSWORD}
    with MailServer(busy=4) as server:
        sent_by(settings, server.port)
        assert sign_up(client, username="bob", email="bob@example.org").status_code == 302
        assert signed_in_as(client) == "bob"
        client.post(SEND)
        client.post("/accounts/email/", change)
        for url, email in product((RESET, REMINDER), ("ann@example.org", "nobody@example.org")):
            assert Client().post(url, {"email": email}).status_code == 302
        settings.ACCOUNTS_PREVENT_ENUMERATION = True
        for email in ("ann@example.org", "nobody@example.org"):
            assert sign_up(Client(), username="cy", email=email).status_code == 302
        other = Client(REMOTE_ADDR="198.51.100.9")
        sign_in(other, ann)
        assert other.post("/accounts/delete/", deleted).status_code == 302
        assert server.signed_in == server.taken == []
        outcomes = [ran.outcome for ran in worker()]
        assert (outcomes.count("repeated"), outcomes.count("failed")) == (4, 0)

    # Two that confirm bob's address and one his new one, two of each other page, and a notice.
    assert len(server.taken) == 10


@pytest.mark.parametrize(("language", "greeting"), [("en", "Hello,"), ("ja", "こんにちは。")])
def test_a_console_shows_the_mail_as_a_person_reads_it(
    language: str, greeting: str, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    sent_by(settings, backend="django.core.mail.backends.console.EmailBackend")
    link = f"http://testserver/accounts/confirm/{'x' * 150}/"

    mails.deliver("confirm", "ann@example.org", language, link=link, days=3)

    shown = capsys.readouterr().out.splitlines()
    assert {greeting, link} <= {*shown}


@pytest.mark.parametrize(("timeout", "waits"), [(None, mails.TIMEOUT_SECONDS), (3, 3)])
def test_a_mail_server_is_never_waited_for_without_a_bound(
    settings: Any, timeout: int | None, waits: int
) -> None:
    sent_by(settings, timeout=timeout)

    assert mails.mail_connection().timeout == waits  # type: ignore[attr-defined]  # of this one


class SlowBackend(EmailBackend):
    """Accepts a mail only after the deadline of the page."""

    def send_messages(self, messages: Any) -> int:
        deadline.time.leap(100)  # type: ignore[attr-defined]  # set by the test
        assert page_is_over()
        return int(super().send_messages(messages))


def test_a_slow_mail_server_does_not_use_up_the_deadline_of_a_page_without_a_worker(
    settings: Any, engine: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent_by(settings, backend=f"{__name__}.SlowBackend")
    use_clock(LeapingClock(), monkeypatch)

    response = sign_up(client)

    assert response.status_code == 302
    assert signed_in_as(client) == "Ann"
