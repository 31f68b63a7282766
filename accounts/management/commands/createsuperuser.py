from __future__ import annotations

from typing import Any

from django.contrib.auth.management.commands import createsuperuser
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError

from accounts.management.base import check_typed_password, explained_errors
from accounts.models import User
from accounts.services import cleaned, register
from dynamo.management.base import DynamoCommand


class _Users:
    """The user class as Django's command uses it. Its manager creates accounts by `register`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(User, name)

    def __call__(self, **values: Any) -> User:
        return User(**values)

    @property
    def _default_manager(self) -> _Users:
        return self

    def db_manager(self, alias: str) -> _Users:
        return self

    def get_by_natural_key(self, username: str) -> User:
        return User.named(username)

    def create_superuser(self, username: str, email: str, password: str | None = None) -> None:
        check_typed_password(password or "")
        register(
            username=username, email=email, password=password, is_staff=True, is_superuser=True
        )


class Command(DynamoCommand, createsuperuser.Command):
    """Asks on a terminal, or takes options and the variables DJANGO_SUPERUSER_…."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.UserModel: Any = _Users()

    def handle(self, *args: Any, **options: Any) -> Any:
        with explained_errors():
            try:
                return super().handle(*args, **options)
            except UnicodeEncodeError as error:
                raise CommandError(
                    "The username, email address or password is not valid text."
                ) from error

    def get_input_data(self, field: Any, message: str, default: Any = None) -> Any:
        """Ask for a value. None if it breaks a rule: then Django's command asks again."""
        value = super().get_input_data(field, message, default)
        if value is not None:
            try:
                cleaned(**{field.name: value})
            except ValidationError as error:
                self.stderr.write(f"Error: {' '.join(error.messages)}")
                return None
        return value
