"""Permissions by backends of a project."""

from collections.abc import Iterable
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied

from accounts.models import User
from tests.factories import make_user, set_stored, stored_items
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

OURS = "accounts.backends.AccountBackend"


class Clerks:
    """A backend of a project: clerks may read books, and nobody may burn them."""

    def has_perm(self, user: Any, permission: str, obj: object = None) -> bool:
        if permission == "library.burn_book":
            raise PermissionDenied
        return permission in self.get_all_permissions(user)

    def has_module_perms(self, user: Any, app_label: str) -> bool:
        return app_label == "library" and bool(self.get_all_permissions(user))

    def get_all_permissions(self, user: Any, obj: object = None) -> Iterable[str]:
        return {"library.read_book"} if user.get_username().startswith("clerk") else set()


class Allowing:
    """A later backend, which would allow everything."""

    def has_perm(self, user: Any, permission: str, obj: object = None) -> bool:
        return True


def test_users_ask_the_backends_of_a_project_until_one_denies_without_a_request(
    settings: Any, requests_sent: Requests
) -> None:
    settings.AUTHENTICATION_BACKENDS = [OURS, f"{__name__}.Clerks"]
    reader, clerk = make_user(is_staff=True), make_user(username="clerk")
    assert make_user(is_superuser=True).has_perm("library.see_shelf")
    requests_sent.clear()

    for user, found in ((reader, set()), (clerk, {"library.read_book"})):
        assert user.get_all_permissions() == found
        assert user.has_perm("library.read_book") is user.has_module_perms("library") is bool(found)
        assert not user.has_perm("library.see_shelf")
    settings.AUTHENTICATION_BACKENDS = [f"{__name__}.Clerks", f"{__name__}.Allowing", OURS]
    assert clerk.has_perm("library.see_shelf")
    assert not clerk.has_perm("library.burn_book")
    assert requests_sent.operations == []


def test_an_account_older_than_superusers_is_not_one_and_is_stored_unchanged() -> None:
    user = make_user()
    set_stored(user, isSuperuser=None)

    read = User.get(user.pk)
    read.save()

    assert read.is_superuser is False
    assert "isSuperuser" not in stored_items()[user.pk]
