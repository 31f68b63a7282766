"""The outbox app."""

import threading

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from dynamo.signals import serving


class OutboxConfig(AppConfig):
    """Registers the system check, and lets `runserver` run tasks."""

    name = "outbox"
    verbose_name = _("Background tasks")
    #: Setting this event ends the thread of `runserver`.
    stop = threading.Event()

    def ready(self) -> None:
        """Connect the system check and `runserver`, without importing models."""
        from outbox import backend  # noqa: F401 - registers it

        serving.connect(self._run_tasks)

    def _run_tasks(self, **_signal: object) -> None:
        from outbox.backend import own_backends
        from outbox.worker import Worker

        if own_backends():
            run = Worker(stop=self.stop).run
            threading.Thread(target=run, name="outbox", daemon=True).start()
