"""Credential providers that fail, hang or print garbage: no request waits beyond its deadline."""

import json
import logging
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import CredentialRetrievalError
from botocore.httpsession import URLLib3Session
from botocore.signers import RequestSigner
from botocore.utils import ContainerMetadataFetcher
from urllib3 import HTTPConnectionPool

from accounts.models import User
from dynamo import Rejected, Unavailable
from dynamo.client import credentials, sending
from dynamo.client.sending import send
from dynamo.runtime import deadline
from dynamo.runtime.deadline import within
from tests.clocks import Stopwatch
from tests.dynamo.providers import HOST, Provider, ask, keys, prints
from tests.forked import in_a_child
from tests.requests import Requests
from tests.waiting import wait_until
from uploads import s3
from uploads.s3 import StorageFailed

pytestmark = pytest.mark.usefixtures("cheap_collections", "away")

KEY = {"pk": {"S": "thing"}}

#: Much longer than any deadline here, and much shorter than a provider hangs.
SOON_SECONDS = 20.0


def get() -> dict[str, Any]:
    return send("GetItem", {"TableName": User.table(), "Key": KEY})


def token() -> str:
    return credentials.of_process().token


def wait_for_failure() -> None:
    """Wait until the provider has failed, as it does for a request at its deadline."""
    loading = credentials.of_process()._loading
    loading.start()
    wait_until(lambda: loading.error)


def loading_threads() -> list[str]:
    return [item.name for item in threading.enumerate() if item.name == "AWS credentials"]


@pytest.fixture
def away(engine: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give the engine a foreign host name, so that AWS's credential chain is used."""
    lookup = socket.getaddrinfo

    def found(host: Any, *others: Any, **named: Any) -> Any:
        return lookup("127.0.0.1" if host == HOST else host, *others, **named)

    monkeypatch.setattr(socket, "getaddrinfo", found)
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", engine.replace("127.0.0.1", HOST))
    sending.reset()
    yield
    sending.reset()


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as made:
        yield made


@pytest.fixture
def container(provider: Provider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Provider:
    """A provider that botocore asks as it asks that of a container."""
    ask("container", provider, monkeypatch, tmp_path)
    return provider


# Failing providers --------------------------------------------------------------------------------


@pytest.mark.usefixtures("path")
def test_a_request_waits_for_a_provider_that_recovers(
    container: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "OPERATION_SECONDS", SOON_SECONDS)
    container.failure = 500, b""
    waiting = threading.Thread(target=get)

    waiting.start()
    wait_until(lambda: container.calls)
    container.failure = None
    waiting.join(SOON_SECONDS)

    assert token().startswith("token")


def _printed(**values: Any) -> str:
    return json.dumps({"Version": 1, **values})


#: The provider that botocore asks, and its answer: a printed text, or a status and a body.
BROKEN: dict[str, tuple[str, str | tuple[int, bytes]]] = {
    "no JSON": ("process", "not-JSON the-secret"),
    "a list": ("process", "[]"),
    "nothing": ("process", ""),
    "too little": ("process", _printed()),
    "no text": ("process", _printed(AccessKeyId=1, SecretAccessKey=2)),
    "an unreadable expiry": (
        "process",
        _printed(AccessKeyId="a", SecretAccessKey="b", Expiration="soon"),
    ),
    "expired credentials": ("process", _printed(**keys(1, -10, "SessionToken"))),
    "a missing program": ("missing", ""),
    **{
        f"{what} of {kind}": (kind, failure)
        for kind in ("imds", "container")
        for what, failure in {
            "an error": (500, b""),
            "no JSON": (200, b"<html>"),
            "a list": (200, b"[]"),
        }.items()
    },
}


@pytest.mark.parametrize(("kind", "answer"), BROKEN.values(), ids=BROKEN)
def test_a_broken_provider_is_unavailable(
    kind: str,
    answer: str | tuple[int, bytes],
    provider: Provider,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ask(kind, provider, monkeypatch, tmp_path)
    if isinstance(answer, str):
        prints(tmp_path, answer)
    else:
        provider.failure = answer
    monkeypatch.setattr(ContainerMetadataFetcher, "SLEEP_TIME", 0)
    wait_for_failure()

    with within(0), pytest.raises(Unavailable) as failed:
        get()

    assert not failed.value.maybe_written
    assert "the-secret" not in caplog.text + str(failed.value)


def test_missing_credentials_are_reported_without_a_retry(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, requests_sent: Requests
) -> None:
    ask("nobody", provider, monkeypatch, tmp_path)

    with pytest.raises(Rejected, match="Unable to locate credentials"):
        get()

    assert requests_sent.operations == ["GetItem"]


def _are_there_credentials() -> bool:
    try:
        credentials.of_process().wait(0)
    except CredentialRetrievalError:
        return False
    return True


# Hanging providers --------------------------------------------------------------------------------


@pytest.fixture(params=["imds", "container", "process"])
def hanging(
    request: pytest.FixtureRequest,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Iterator[None]:
    provider.answers.clear()
    ask(request.param, provider, monkeypatch, tmp_path)
    # botocore's default is a second.
    monkeypatch.setenv("AWS_METADATA_SERVICE_TIMEOUT", "60")
    yield
    prints(tmp_path, "{}")


@pytest.mark.usefixtures("hanging")
def test_a_request_does_not_wait_for_a_hanging_provider_beyond_its_deadline() -> None:
    with Stopwatch() as watch, within(0.5), pytest.raises(Unavailable, match="no answer in time"):
        get()

    assert watch.seconds < SOON_SECONDS
    assert len(loading_threads()) >= 1


def test_old_credentials_are_used_until_they_expire_while_a_refresh_hangs(
    container: Provider,
) -> None:
    container.lives = 6
    get()
    first, calls = token(), container.calls
    container.answers.clear()
    # New ones are requested after half of their life.
    wait_until(lambda: token() and container.calls > calls)
    with Stopwatch() as watch:
        get()
        used = token()

    assert used == first
    assert watch.seconds < 2

    wait_until(lambda: not _are_there_credentials())
    container.answers.set()
    get()
    assert token() != first


# Loading and refreshing ---------------------------------------------------------------------------


def test_a_provider_without_valid_credentials_is_asked_rarely_and_logged_once(
    container: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    container.failure = 200, json.dumps(keys(1, lives=-10)).encode()

    with within(2), pytest.raises(Unavailable):
        get()

    # Without a pause it would be asked hundreds of times in these two seconds.
    assert 2 <= container.calls <= 20
    assert caplog.text.count("cannot be loaded") == 1


def test_many_threads_share_the_credentials_that_one_loads(
    container: Provider, at_once: Callable[..., list[Any]]
) -> None:
    at_once(lambda _number: get())

    assert container.calls == 1
    wait_until(lambda: not loading_threads())


@pytest.mark.parametrize("source", ["environment", "credentials", "config"])
def test_fixed_credentials_need_no_thread(
    source: str, provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_until(lambda: not loading_threads())
    # No provider is asked for them.
    monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
    if source != "environment":
        ask("nobody", provider, monkeypatch, tmp_path)
        header, variable = {
            "credentials": ("[site]", "AWS_SHARED_CREDENTIALS_FILE"),
            "config": ("[profile site]", "AWS_CONFIG_FILE"),
        }[source]
        keys_of_site = "aws_access_key_id = tests\naws_secret_access_key = secret\n"
        (tmp_path / source).write_text(f"{header}\n{keys_of_site}")
        monkeypatch.setenv(variable, str(tmp_path / source))
        monkeypatch.setenv("AWS_PROFILE", "site")

    get()

    assert credentials.of_process().access_key == "tests"
    assert loading_threads() == []


@pytest.mark.parametrize("setting", ["role_arn", "sso_session", "login_session"])
def test_a_profile_whose_keys_come_from_a_provider_is_loaded_by_the_thread(
    setting: str, provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask("nobody", provider, monkeypatch, tmp_path)
    (tmp_path / "config").write_text(
        f"[default]\n{setting} = any\naws_access_key_id = a\naws_secret_access_key = b\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))

    assert credentials._fixed() is None


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.usefixtures("container")
def test_a_forked_child_loads_credentials_of_its_own() -> None:
    get()
    first = token()

    def child() -> None:
        get()
        assert token() != first

    assert in_a_child(child) == 0


def test_a_file_is_not_uploaded_while_a_provider_hangs(
    container: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    container.answers.clear()
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    monkeypatch.setattr(deadline, "OPERATION_SECONDS", 0.5)
    s3.client.reset()
    credentials.of_process.reset()
    try:
        with (
            Stopwatch() as watch,
            pytest.raises(StorageFailed, match=r"retrieving credentials.*no answer in time"),
        ):
            s3.head("bucket", "key")
    finally:
        s3.client.reset()
        credentials.of_process.reset()

    assert watch.seconds < SOON_SECONDS


# Private names of botocore and urllib3 ------------------------------------------------------------

PRIVATE = {
    "_ruleset_resolver": BaseClient,
    "_request_signer": BaseClient,
    "_endpoint": BaseClient,
    "region_name": RequestSigner,
    "_pool_classes_by_scheme": URLLib3Session,
    "_get_connection_manager": URLLib3Session,
    "_setup_ssl_cert": URLLib3Session,
    "_verify": URLLib3Session,
    "_get_conn": HTTPConnectionPool,
    "_put_conn": HTTPConnectionPool,
}


@pytest.mark.parametrize(("name", "owner"), PRIVATE.items())
def test_botocore_sends_everything_if_a_private_name_is_missing(
    name: str, owner: type, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    look_up = owner.__getattribute__

    def looked_up(self: Any, asked: str) -> Any:
        # botocore itself has the name.
        asking = str(sys._getframe(1).f_globals.get("__name__"))
        if asked == name and asking.startswith("dynamo."):
            raise AttributeError(f"{owner.__name__} has no {name}")
        return look_up(self, asked)

    monkeypatch.setattr(owner, "__getattribute__", looked_up, raising=False)
    with caplog.at_level(logging.WARNING, "dynamo"):
        for _request in range(3):
            get()

    assert sending._shared().lean is None
    assert [record.name for record in caplog.records].count("dynamo.client.sending") == 1
