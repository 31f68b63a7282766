"""The password of the mail server in an SSM parameter."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.mail import send_mail

from accounts.emails import mails
from dynamo.extending import at_most
from project.parameters import ParameterUnavailable
from tests.faults.kinds import Answer, Hold
from tests.mailbox import MailServer
from tests.parameters import READ, Parameter


@pytest.fixture
def password(parameter: Parameter, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Parameter:
    """The parameter that the site reads the password from."""
    settings.EMAIL_BACKEND = "project.mail.EmailBackend"
    settings.EMAIL_HOST_USER = "site"
    settings.EMAIL_PASSWORD_PARAMETER = parameter.name
    monkeypatch.setenv("AWS_ENDPOINT_URL_SSM", parameter.proxy.url)
    return parameter


def send() -> int:
    return send_mail("Hello", "Text", None, ["ann@example.org"])


def test_each_mail_is_sent_with_the_password_as_it_is_now(
    password: Parameter, settings: Any
) -> None:
    with MailServer() as server:
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        password.put("old secret")
        assert send() == 1
        password.put("new secret")
        assert send() == 1

    assert server.signed_in == [["site", "old secret"], ["site", "new secret"]]
    assert len(server.taken) == 2


@pytest.mark.parametrize(
    ("stored", "said"), [(None, "ParameterNotFound"), ("String", "make it a SecureString")]
)
def test_without_the_password_no_mail_is_sent_and_the_log_says_why(
    password: Parameter,
    settings: Any,
    stored: str | None,
    said: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if stored:
        password.put("of-this-test-only", kind=stored)
    with MailServer() as server:
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        with pytest.raises(ParameterUnavailable):
            send()
        assert not mails.send("reset_unknown", "ann@example.org")

    assert server.taken == []
    [first, second, third] = [record.getMessage() for record in caplog.records]
    assert (password.name in first, said in first, second) == (True, True, first)
    assert third.endswith("ParameterUnavailable.")
    assert "of-this-test-only" not in caplog.text


def test_a_parameter_store_that_hangs_does_not_use_up_a_page_s_time(
    password: Parameter, settings: Any
) -> None:
    password.put("secret")
    password.proxy.plan(READ, Hold(60))

    with at_most(5.0), pytest.raises(ParameterUnavailable):
        send()

    assert password.times_read == 1


def test_a_refused_read_is_not_repeated(password: Parameter) -> None:
    password.proxy.plan(READ, Answer(400, "AccessDeniedException"))

    with pytest.raises(ParameterUnavailable, match="AccessDeniedException"):
        send()

    assert password.times_read == 1
