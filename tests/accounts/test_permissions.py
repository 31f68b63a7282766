"""Django's permissions, asynchronous password checks, and sign-ins without a session."""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth import user_logged_in, user_logged_out
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from accounts.exceptions import StaleUser
from accounts.models import User
from accounts.services import delete
from tests.factories import make_user, set_stored, stored_items, stored_user
from tests.pages import let_in
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

OURS = "accounts.backends.AccountBackend"


class Clerks:
    """A backend of a project: clerks may read books, and nobody may burn them."""

    def has_perm(self, user: Any, permission: str, obj: object = None) -> bool:
        if permission == "library.burn_book":
            raise PermissionDenied
        return permission == "library.read_book" and user.get_username().startswith("clerk")

    async def ahas_perm(self, user: Any, permission: str, obj: object = None) -> bool:
        return self.has_perm(user, permission, obj)

    def has_module_perms(self, user: Any, app_label: str) -> bool:
        return app_label == "library" and user.get_username().startswith("clerk")

    async def ahas_module_perms(self, user: Any, app_label: str) -> bool:
        return self.has_module_perms(user, app_label)

    def get_all_permissions(self, user: Any, obj: object = None) -> Iterable[str]:
        return {"library.read_book"} if user.get_username().startswith("clerk") else set()

    async def aget_all_permissions(self, user: Any, obj: object = None) -> Iterable[str]:
        return self.get_all_permissions(user, obj)


class Allowing:
    """A later backend, which would allow everything."""

    def has_perm(self, user: Any, permission: str, obj: object = None) -> bool:
        return True


@pytest.fixture
def _clerks(settings: Any) -> None:
    settings.AUTHENTICATION_BACKENDS = [OURS, f"{__name__}.Clerks"]


@pytest.mark.usefixtures("_clerks")
def test_users_ask_the_backends_of_a_project_without_a_request(requests_sent: Requests) -> None:
    nobody, clerk = make_user(is_staff=True), make_user(username="clerk")
    assert make_user(is_superuser=True).has_perm("library.see_shelf")
    requests_sent.clear()

    for user, found in ((nobody, set()), (clerk, {"library.read_book"})):
        for asked in ("library.read_book", "library.see_shelf"):
            assert user.has_perm(asked) is asyncio.run(user.ahas_perm(asked)) is (asked in found)
        assert user.has_module_perms("library") is bool(found)
        assert asyncio.run(user.ahas_module_perms("library")) is bool(found)
        assert user.get_all_permissions() == asyncio.run(user.aget_all_permissions()) == found
        assert asyncio.run(user.aget_user_permissions()) == set()
        assert asyncio.run(user.aget_group_permissions()) == set()
    with pytest.raises(ValueError, match="iterable"):
        clerk.has_perms("library.read_book")
    assert requests_sent.operations == []


def test_a_backend_that_denies_ends_the_search(settings: Any) -> None:
    settings.AUTHENTICATION_BACKENDS = [f"{__name__}.Clerks", f"{__name__}.Allowing", OURS]
    clerk = make_user(username="clerk")

    assert not clerk.has_perm("library.burn_book")
    assert clerk.has_perm("library.buy_book")


def test_an_account_older_than_superusers_is_not_one_and_is_stored_unchanged() -> None:
    user = make_user()
    set_stored(user, isSuperuser=None)

    read = User.get(user.pk)
    read.save()

    assert read.is_superuser is False
    assert "isSuperuser" not in stored_items()[user.pk]


def test_the_password_can_be_checked_asynchronously() -> None:
    user = make_user(password="a good password")

    assert asyncio.run(user.acheck_password("a good password"))
    assert not asyncio.run(user.acheck_password("another"))


# Sign-ins without a session -----------------------------------------------------------------------


@pytest.mark.parametrize("has_request", [False, True])
def test_a_sign_in_without_a_session_records_only_its_time(has_request: bool) -> None:
    user = make_user()
    before = datetime.now(UTC)

    user_logged_in.send(sender=User, request=HttpRequest() if has_request else None, user=user)

    stored = User.get(user.pk)
    assert stored.last_login is not None
    assert stored.last_login >= before
    assert stored.last_login == user.last_login
    assert stored.sessions is None
    assert stored.version == user.version


def test_an_earlier_sign_in_does_not_replace_a_later_time() -> None:
    user = make_user()
    stale = User.get(user.pk)
    user_logged_in.send(sender=User, request=None, user=user)
    later = datetime(2099, 1, 2, tzinfo=UTC)
    set_stored(user, lastLoginAt=User.last_login.serialize(later))

    user_logged_in.send(sender=User, request=None, user=stale)

    assert User.get(user.pk).last_login == stale.last_login == later


def test_a_sign_in_to_a_deleted_account_is_refused() -> None:
    user = make_user()
    delete(User.get(user.pk))

    with pytest.raises(StaleUser):
        user_logged_in.send(sender=User, request=None, user=user)

    assert stored_items() == {}


def test_a_sign_out_without_a_request_ends_no_session() -> None:
    user = make_user()
    let_in(user)
    before = stored_user(user.pk)

    user_logged_out.send(sender=User, request=None, user=user)

    assert stored_user(user.pk) == before
