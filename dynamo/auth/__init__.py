"""Users, groups and permissions on DynamoDB, for all of django.contrib.auth.

from dynamo.auth import AbstractUser

As an app (`dynamo.auth` before `django.contrib.auth`) it brings `createsuperuser` and
`changepassword`. The authentication backend is `dynamo.auth.backends.UserBackend`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo._internal.lazy import lazily

if TYPE_CHECKING:
    from dynamo.auth.models import (
        AbstractGroup as AbstractGroup,
        AbstractUser as AbstractUser,
        UserManager as UserManager,
    )
    from dynamo.auth.passwords import (
        check_password as check_password,
        make_password as make_password,
    )
    from dynamo.auth.permissions import (
        all_permissions as all_permissions,
        permission as permission,
    )

__all__, __getattr__ = lazily(
    __name__,
    {
        "dynamo.auth.models": "AbstractGroup AbstractUser UserManager",
        "dynamo.auth.passwords": "check_password make_password",
        "dynamo.auth.permissions": "all_permissions permission",
    },
)
