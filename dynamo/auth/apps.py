"""The app `dynamo.auth`, and the check of its backends."""

from django.apps import AppConfig, apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register


class AuthConfig(AppConfig):
    """Replaces the commands of contrib.auth. Its label leaves "auth" to that app."""

    name = "dynamo.auth"
    label = "dynamo_auth"

    def ready(self) -> None:
        """Install user models that were imported earlier.

        Tests that override INSTALLED_APPS need this.
        """
        from dynamo.auth.models import AbstractUser

        for model in AbstractUser.__subclasses__():
            model.install()
        register(check_backends, Tags.security)
        register(check_other_users, Tags.models)


def check_other_users(app_configs: object, **kwargs: object) -> list[CheckMessage]:
    """dynamo.W010: a user model of Django is still there, but AUTH_USER_MODEL names another."""
    from django.contrib.auth import get_user_model
    from django.contrib.auth.base_user import AbstractBaseUser

    from dynamo.auth.models import AbstractUser

    return [
        Warning(
            f"{model._meta.label} is a user model of a relational database, but AUTH_USER_MODEL is "
            f"{settings.AUTH_USER_MODEL}: its users cannot sign in.",
            hint="Delete the model after its users are moved.",
            id="dynamo.W010",
        )
        for model in apps.get_models()
        if issubclass(model, AbstractBaseUser) and issubclass(get_user_model(), AbstractUser)
    ]


def check_backends(app_configs: object, **kwargs: object) -> list[CheckMessage]:
    """dynamo.E012: Django's own backends look for permissions in a relational database."""
    from django.contrib.auth import get_backends, get_user_model
    from django.contrib.auth.backends import ModelBackend

    from dynamo.auth.backends import UserBackend
    from dynamo.auth.models import AbstractUser

    if not issubclass(get_user_model(), AbstractUser):
        return []
    backends = [item for item in get_backends() if isinstance(item, (UserBackend, ModelBackend))]
    if backends and all(isinstance(backend, UserBackend) for backend in backends):
        return []
    return [
        Error(
            "AUTHENTICATION_BACKENDS must find the permissions of AUTH_USER_MODEL in DynamoDB.",
            hint="Name UserBackend or RemoteUserBackend of dynamo.auth.backends, or a subclass, "
            "instead of Django's backend.",
            id="dynamo.E012",
        )
    ]
