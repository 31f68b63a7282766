"""Users, groups and permissions on DynamoDB, for all of django.contrib.auth.

from dynamo.auth import AbstractUser

As an app (`dynamo.auth` before `django.contrib.auth`) it brings `createsuperuser` and
`changepassword`. The authentication backend is `dynamo.auth.backends.UserBackend`.
"""

from dynamo._internal.lazy import lazily

__all__, __getattr__ = lazily(__name__, __file__)
