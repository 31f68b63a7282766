from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from accounts.conf import set_defaults

# Models and settings of other apps may read these settings, and this module is loaded before them.
set_defaults()


class AccountsConfig(AppConfig):
    name = "accounts"
    verbose_name = _("Accounts")

    def ready(self) -> None:
        from accounts import checks  # noqa: F401 - registers its checks
        from accounts.sessions import visitor  # noqa: F401 - connects its receivers
