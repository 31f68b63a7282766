"""The mails that the site sends, and an SMTP server that accepts or refuses them."""

import base64
import re
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage as ReceivedMail
from typing import Any, Self, cast
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.core import mail
from django.core.mail import EmailMessage

_LINK = re.compile(r"https?://\S+")
_TOKEN = re.compile(r"[\w:-]{40,}")


def the_mail() -> EmailMessage:
    """The only mail that was sent."""
    [message] = mail.outbox
    return message


def whole_link(message: EmailMessage | None = None) -> str:
    """The only link in `message`, by default in the only mail that was sent."""
    [link] = _LINK.findall((message or the_mail()).body)
    return str(link)


def link(message: EmailMessage | None = None) -> str:
    """The path of that link, for a test client."""
    return urlsplit(whole_link(message)).path


def told_by(message: EmailMessage) -> str:
    """A mail as it is sent, without the token of its link, which can contain any short word."""
    return _TOKEN.sub("", message.message().as_string())


@contextmanager
def later(**units: float) -> Iterator[None]:
    """Let the clock be ahead, for links and for the cache."""
    ahead = timedelta(**units)
    now, now_ns, reset_now = time.time, time.time_ns, PasswordResetTokenGenerator._now
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: now() + ahead.total_seconds())
        patch.setattr(time, "time_ns", lambda: now_ns() + int(ahead.total_seconds() * 10**9))
        patch.setattr(
            PasswordResetTokenGenerator,
            "_now",
            lambda self: cast(datetime, reset_now(self)) + ahead,
        )
        yield


@dataclass
class MailServer:
    """An SMTP server on a free port. It answers each recipient with `answer`.

    It answers each mail with `verdict` while `may_answer` is set; if that is empty, never. While
    `may_greet` is not set, it accepts connections and says nothing.
    """

    answer: str = "250 OK"
    #: How many recipients are told first that it is too busy.
    busy: int = 0
    verdict: str = "250 OK"
    #: Recipient and bytes of each mail that it accepted.
    taken: list[tuple[str, bytes]] = field(default_factory=list)
    #: User and password of each client that signed in.
    signed_in: list[list[str]] = field(default_factory=list)
    may_answer: threading.Event = field(default_factory=threading.Event)
    may_greet: threading.Event = field(default_factory=threading.Event)
    #: The address of each client that connected.
    connections: list[object] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.may_answer.set()
        self.may_greet.set()
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Conversation)
        self._server.daemon_threads = True
        self._server.mail_server = self  # type: ignore[attr-defined]  # its handler's
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return int(self._server.server_address[1])

    def received(self) -> ReceivedMail:
        """The only mail that it accepted, as a mail program reads it."""
        [(_recipient, message)] = self.taken
        return cast(ReceivedMail, message_from_bytes(message, policy=policy.default))


class _Conversation(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        server: MailServer = self.server.mail_server  # type: ignore[attr-defined]  # as above
        recipient = ""
        server.connections.append(self.client_address)
        server.may_greet.wait()
        self._say("220 ready")
        for line in self.rfile:
            match line[:4].upper():
                case b"EHLO":
                    self._say("250-here\r\n250 AUTH PLAIN")
                case b"AUTH":
                    said = base64.b64decode(line.split()[-1]).decode()
                    server.signed_in.append(said.split("\0")[1:])
                    self._say("235 OK")
                case b"RCPT":
                    recipient = line.decode().strip()[len("rcpt to:") :]
                    server.busy -= 1
                    self._say("421 too busy" if server.busy >= 0 else server.answer)
                case b"DATA":
                    self._say("354 go on")
                    server.taken.append((recipient, self._text()))
                    if not server.verdict:
                        self.rfile.read()  # until the client closes the connection
                        return
                    server.may_answer.wait()
                    self._say(server.verdict)
                case b"QUIT":
                    self._say("221 bye")
                    return
                case _:
                    self._say("250 OK")

    def _text(self) -> bytes:
        lines = iter(self.rfile.readline, b".\r\n")
        return b"".join(line.removeprefix(b".") for line in lines)

    def _say(self, answer: str) -> None:
        self.wfile.write(f"{answer}\r\n".encode())


SMTP = "django.core.mail.backends.smtp.EmailBackend"


def sent_by(settings: Any, port: int = 25, backend: str = SMTP, **options: object) -> None:
    """Let the site send its mails to an SMTP server on `port`, as after its restart."""
    options |= {"host": "127.0.0.1", "port": port, "use_tls": False, "use_ssl": False}
    if hasattr(mail, "mailers"):  # since Django 6.1
        mailer = {"BACKEND": backend} | ({"OPTIONS": options} if backend == SMTP else {})
        settings.MAILERS = {"default": mailer}
        return
    settings.EMAIL_BACKEND = backend
    for name, value in options.items():
        setattr(settings, f"EMAIL_{name.upper()}", value)
