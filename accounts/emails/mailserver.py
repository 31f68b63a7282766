"""How mails leave a process: a few at once, and none for a while after a time-out.

A page sends its own mails. Otherwise a mail server that hangs would hold the pages that send mails,
and these the turns of all others.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.core.mail import get_connection
from django.core.mail.backends.base import BaseEmailBackend

from dynamo.runtime.deadline import uncounted, uncounted_seconds
from dynamo.runtime.gates import Gate, GateFull, turn_passed_on
from dynamo.runtime.processes import PerProcess

#: Mails that a process sends at once.
AT_ONCE = 4

#: How long a mail waits while so many are being sent, and how many wait: as many as pages do.
WAIT_SECONDS, WAITING = 3.0, 96

#: Django's default has no end, and a page would wait for a mail server that hangs.
TIMEOUT_SECONDS = 10.0

#: How long no mail is sent after a time-out.
FAILING_FAST_SECONDS = 30.0


class TooManyMails(OSError):
    """So many mails are being sent that this one was not."""


class MailServerHangs(OSError):
    """A mail timed out a moment ago, and this one was not sent."""


class _Mails:
    """What a process knows of its mails."""

    def __init__(self) -> None:
        self.gate = Gate("a mail", AT_ONCE, WAITING, per=0)
        self._hangs_until = 0.0

    def check(self) -> None:
        if time.monotonic() < self._hangs_until:
            raise MailServerHangs

    def note(self, error: OSError) -> None:
        # smtplib raises an error of its own while it handles the time-out.
        if isinstance(error, TimeoutError) or isinstance(error.__context__, TimeoutError):
            self._hangs_until = time.monotonic() + FAILING_FAST_SECONDS


_of_process = PerProcess(_Mails)


@contextmanager
def mail_connection() -> Iterator[BaseEmailBackend]:
    """A connection to the mail server, not open yet, on which the body sends a mail.

    Each step of the body waits for `EMAIL_TIMEOUT` at most, or for `TIMEOUT_SECONDS`. Meanwhile
    another page has this one's turn; after that the page goes on, because the mail cannot be
    undone. The time does not count for the page's deadline. The body must let errors of the mail
    server pass.

    Raises:
        MailServerHangs: a mail of this process timed out within `FAILING_FAST_SECONDS`.
        TooManyMails: `AT_ONCE` others were being sent for `WAIT_SECONDS`, or `WAITING` wait.
    """
    mails = _of_process()
    mails.check()
    seconds = settings.EMAIL_TIMEOUT or TIMEOUT_SECONDS
    try:
        with (
            turn_passed_on(waits_after=False),
            uncounted(),
            mails.gate.inside(object(), WAIT_SECONDS),
        ):
            mails.check()
            yield get_connection(timeout=uncounted_seconds(seconds))
    except GateFull as error:
        raise TooManyMails from error
    except OSError as error:
        mails.note(error)
        raise
