"""A password validator that remembers, as those that refuse old passwords do."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from django.test import override_settings


class History:
    """Remembers the passwords that were stored."""

    changes: ClassVar[list[tuple[str, str]]] = []

    def validate(self, password: str, user: Any = None) -> None:
        pass

    def get_help_text(self) -> str:
        return ""

    def password_changed(self, password: str, user: Any) -> None:
        assert type(user).get(user.pk).check_password(password)
        self.changes.append((str(user), password))


@contextmanager
def password_history() -> Iterator[list[tuple[str, str]]]:
    """Each password that is stored in the block, with the name of its user."""
    History.changes.clear()
    with override_settings(AUTH_PASSWORD_VALIDATORS=[{"NAME": f"{__name__}.History"}]):
        yield History.changes
