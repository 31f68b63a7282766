"""Mails by SMTP with a password that is a SecureString parameter of AWS Systems Manager (SSM)."""

import logging

from django.conf import settings
from django.core.mail.backends import smtp

from dynamo.runtime.deadline import uncounted_seconds, within
from project import parameters

log = logging.getLogger(__name__)


class EmailBackend(smtp.EmailBackend):
    def open(self) -> bool | None:
        """Connect with the current password. Costs 1 request to SSM.

        Raises:
            ParameterUnavailable: the password cannot be read. The log says why.
        """
        if self.connection is None:
            try:
                with within(parameters.CONNECT_SECONDS):
                    self.password = parameters.read(settings.EMAIL_PASSWORD_PARAMETER).strip()
            except parameters.ParameterUnavailable as error:
                log.error("The password of the mail server cannot be read: %s", error)
                raise
            # Reading the password took some of the page's time.
            self.timeout = uncounted_seconds(settings.EMAIL_TIMEOUT)  # type: ignore[assignment]  # the stubs allow only whole seconds
        return super().open()
