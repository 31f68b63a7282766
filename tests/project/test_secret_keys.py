"""Secrets in SSM parameters: the secret keys, and the password of the mail server."""

import math
import subprocess
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core import signing
from django.core.cache import cache
from django.core.mail import send_mail
from django.test import Client

from accounts.emails import links, mails
from accounts.exceptions import BadLink
from accounts.models import User
from dynamo.forms import RequestIdForm
from dynamo.runtime.deadline import at_most
from project import parameters
from project.parameters import CONNECT_SECONDS, FRESH_SECONDS, READ_SECONDS, ParameterUnavailable
from tests.factories import make_user
from tests.faults.kinds import Answer, CloseBefore, Fault, Hold, Reply
from tests.fork_server import fork_server
from tests.mailbox import MailServer
from tests.parameters import READ, Parameter
from tests.production import PRODUCTION, checkout_in

OLD = ("the old key of these tests " * 3).strip()
NEW = ("the new key of these tests " * 3).strip()


@pytest.fixture
def keys(parameter: Parameter, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Parameter:
    """A parameter with one key, which this process has read."""
    settings.SECRET_KEY_PARAMETER = parameter.name
    # Undone after the test, together with what `parameters` assigns.
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "", []
    monkeypatch.setenv("AWS_ENDPOINT_URL_SSM", parameter.proxy.url)
    parameter.put(OLD)
    parameters.load_keys()
    return parameter


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Move the wall clock."""

    def move(seconds: float) -> None:
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() + seconds)

    return move


def rotate(keys: Parameter, *values: str) -> None:
    keys.put(*values)
    parameters._read_at = -math.inf
    parameters.refresh_keys()


# What a key signs ------------------------------------------------------------------------------


def _cached(user: User) -> str:
    key = str(uuid.uuid4())
    cache.set(key, (user.pk,))  # a text would be stored as it is
    return key


class IdForm(RequestIdForm):
    request_id_salt = "tests"


def _link_holds(token: str) -> bool:
    try:
        links.read("tests", token, 1)
    except BadLink:
        return False
    return True


#: How something is signed for an account, and whether it holds.
SIGNED: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], bool]]] = {
    "cached value": (_cached, lambda user, key: bool(cache.get(key) == (user.pk,))),
    "mailed link": (lambda user: links.make("tests", user.pk), lambda _user, it: _link_holds(it)),
    "request id": (
        lambda _user: IdForm.new_request_id(),
        lambda _user, made: IdForm({"request_id": made}).is_valid(),
    ),
    "session": (
        User.get_session_auth_hash,
        lambda user, it: (
            it in {user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()}
        ),
    ),
}


@pytest.mark.parametrize("what", SIGNED)
def test_a_signature_holds_until_its_key_leaves_the_parameter(
    keys: Parameter, engine: str, what: str
) -> None:
    make, holds = SIGNED[what]
    user = make_user(username="ann")
    by_old = make(user)

    rotate(keys, OLD, NEW)
    assert holds(user, by_old)
    rotate(keys, NEW, OLD)
    assert holds(user, by_old)
    by_new = make(user)
    rotate(keys, NEW)

    assert (holds(user, by_old), holds(user, by_new)) == (False, True)


# When the keys are read ------------------------------------------------------------------------


@pytest.mark.parametrize("after", [FRESH_SECONDS, -2 * FRESH_SECONDS], ids=["later", "set back"])
def test_a_page_reads_the_keys_again_five_minutes_later_or_when_the_clock_was_set_back(
    keys: Parameter, engine: str, settings: Any, later: Callable[[float], None], after: float
) -> None:
    client = Client()
    keys.put(NEW, OLD)

    client.get("/")
    assert (settings.SECRET_KEY, keys.times_read) == (OLD, 1)

    later(after)
    client.get("/livez")
    assert keys.times_read == 1
    client.get("/")
    client.get("/")
    assert (settings.SECRET_KEY, keys.times_read) == (NEW, 2)


def test_one_of_many_threads_reads_the_keys_and_the_others_do_not_wait(
    keys: Parameter, at_once: Callable[..., list[Any]], later: Callable[[float], None]
) -> None:
    later(FRESH_SECONDS)

    at_once(lambda _number: parameters.refresh_keys())

    assert keys.times_read == 2


@pytest.mark.parametrize(
    "fault",
    [
        Answer(400, "AccessDeniedException"),
        CloseBefore(),
        Reply(lambda _request: {"Parameter": {"Type": "SecureString", "Value": " \n "}}),
        Reply(lambda _request: {"Parameter": {"Type": "String", "Value": NEW}}),
        Reply(lambda _request: {"Parameter": NEW}),
    ],
    ids=["refused", "cut off", "empty", "not encrypted", "another answer"],
)
def test_the_old_keys_stay_if_they_cannot_be_read_again(
    keys: Parameter,
    settings: Any,
    fault: Fault,
    later: Callable[[float], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    keys.proxy.plan(READ, fault)
    later(FRESH_SECONDS)

    parameters.refresh_keys()

    assert (settings.SECRET_KEY, keys.times_read) == (OLD, 2)
    [line] = [record.getMessage() for record in caplog.records]
    assert keys.name in line
    assert NEW not in line


def test_a_page_does_not_wait_long_for_keys(
    keys: Parameter, settings: Any, later: Callable[[float], None]
) -> None:
    keys.proxy.plan(READ, Hold(60))
    later(FRESH_SECONDS)

    began = time.monotonic()
    parameters.refresh_keys()

    assert READ_SECONDS <= time.monotonic() - began < CONNECT_SECONDS + READ_SECONDS + 5
    assert settings.SECRET_KEY == OLD


# The start -------------------------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return checkout_in(tmp_path)


def start(
    checkout: Path, parameter: Parameter, program: str = "manage.py check", **changes: str
) -> subprocess.CompletedProcess[str]:
    environment = PRODUCTION | parameter.environment | changes
    del environment["DJANGO_SECRET_KEY"]
    return fork_server.run(*program.split(" ", 1), env=environment, folder=checkout)


#: It notes what is loaded of botocore's descriptions of services.
SIGN = """-c import django
from botocore.loaders import Loader
loaded = []
Loader.load_data_with_path = lambda self, name: loaded.append(name)
django.setup()
from django.core import signing
print(signing.dumps(1), loaded)"""


def test_a_site_starts_with_the_keys_of_the_parameter_and_without_a_description_of_ssm(
    checkout: Path, parameter: Parameter, settings: Any
) -> None:
    parameter.put(NEW, "", f"  {OLD} ", NEW)

    ended = start(checkout, parameter, SIGN, DJANGO_SETTINGS_MODULE="project.settings")

    assert ended.stderr == ""
    signed, loaded = ended.stdout.split()
    settings.SECRET_KEY = NEW
    assert (signing.loads(signed), loaded) == (1, "[]")
    assert parameter.times_read == 1


def test_the_start_repeats_what_fails_temporarily(keys: Parameter) -> None:
    keys.proxy.plan(READ, Answer(400, "ThrottlingException"))
    keys.proxy.plan(READ, CloseBefore())

    parameters.load_keys()

    assert keys.times_read == 4


def test_the_start_does_not_repeat_forever(
    keys: Parameter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parameters, "START_SECONDS", 1.0)
    keys.proxy.plan(READ, Answer(500, "InternalServerError"), times=100)

    with pytest.raises(SystemExit, match="InternalServerError"):
        parameters.load_keys()

    assert keys.times_read > 2


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("StringList", NEW, "it is a StringList: make it a SecureString"),
        ("SecureString", " ", "it contains no key"),
    ],
)
def test_the_start_does_not_repeat_what_is_refused(
    keys: Parameter, kind: str, value: str, said: str
) -> None:
    keys.put(value, kind=kind)

    with pytest.raises(SystemExit, match=said) as ended:
        parameters.load_keys()

    assert NEW not in str(ended.value)
    assert keys.times_read == 2


def test_the_site_does_not_start_without_keys_and_prints_one_line(
    checkout: Path, parameter: Parameter
) -> None:
    ended = start(checkout, parameter)

    assert (ended.returncode, ended.stdout) == (1, "")
    [line] = ended.stderr.splitlines()
    cannot = f"DJANGO_SECRET_KEY_PARAMETER cannot be used: {parameter.name}: ParameterNotFound"
    assert line.startswith(f"The site cannot start: {cannot}")
    assert parameter.times_read == 1


# The password of the mail server ------------------------------------------------------------------


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
        with pytest.raises(ParameterUnavailable):
            mails.deliver("reset_unknown", "ann@example.org", "en")

    assert server.taken == []
    # In a new process botocore says where its credentials are from.
    lines = [record.getMessage() for record in caplog.records if record.levelname != "INFO"]
    [first, second] = lines
    assert (password.name in first, said in first, second) == (True, True, first)
    assert "of-this-test-only" not in caplog.text


def test_a_parameter_store_that_hangs_does_not_use_up_a_page_s_time(
    password: Parameter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parameters, "READ_SECONDS", 0.2)
    password.put("secret")
    password.proxy.plan(READ, Hold(60))

    with at_most(5.0), pytest.raises(ParameterUnavailable):
        send()

    assert password.times_read == 1
