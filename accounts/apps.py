from __future__ import annotations

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"

    def ready(self) -> None:
        from accounts import checks  # noqa: F401 - registers its checks
        from accounts.sessions import visitor  # noqa: F401 - connects its receivers
