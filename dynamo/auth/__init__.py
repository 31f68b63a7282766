"""Users, groups and permissions on DynamoDB, for all of django.contrib.auth.

from dynamo.auth import AbstractUser

As an app (`dynamo.auth` before `django.contrib.auth`) it brings `createsuperuser` and
`changepassword`. The authentication backend is `dynamo.auth.backends.UserBackend`.
"""


def __getattr__(name: str) -> object:
    from dynamo.runtime.lazy import exported

    return exported(__name__, name)
