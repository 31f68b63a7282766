from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, Tags, register


class AuthConfig(AppConfig):
    """Replaces the commands of contrib.auth. Its label leaves "auth" to that app."""

    name = "dynamo.auth"
    label = "dynamo_auth"

    def ready(self) -> None:
        """Tests that override INSTALLED_APPS install apps whose models were imported before."""
        from dynamo.auth.models import AbstractUser

        for model in AbstractUser.__subclasses__():
            model.install()
        register(check_backends, Tags.security)


def check_backends(app_configs: object, **kwargs: object) -> list[CheckMessage]:
    """dynamo.E012: Django's own backends look for permissions in a relational database."""
    from django.contrib.auth import get_backends, get_user_model
    from django.contrib.auth.backends import ModelBackend

    from dynamo.auth.backends import UserBackend
    from dynamo.auth.models import AbstractUser

    if not issubclass(get_user_model(), AbstractUser):
        return []
    kinds = (UserBackend, ModelBackend)
    are_ours = [
        isinstance(backend, UserBackend) for backend in get_backends() if isinstance(backend, kinds)
    ]
    if are_ours and all(are_ours):
        return []
    return [
        Error(
            "AUTHENTICATION_BACKENDS must find the permissions of AUTH_USER_MODEL in DynamoDB.",
            hint="Name UserBackend or RemoteUserBackend of dynamo.auth.backends, or a subclass, "
            "instead of Django's backend.",
            id="dynamo.E012",
        )
    ]
