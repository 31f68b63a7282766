"""Users, groups and permissions on DynamoDB, for all of django.contrib.auth.

from dynamo.auth import AbstractUser

As an app (`dynamo.auth` before `django.contrib.auth`) it brings `createsuperuser` and
`changepassword`. The authentication backend is `dynamo.auth.backends.UserBackend`.

`models` is the user: names, flags, and how it is found; `base_user` has passwords and sessions,
`managers` creates users; `permissions` says what a user or a group may do. `usernames`,
`addresses` and `passwords` are the rules of these values. `backends`, `forms`, `views` and `urls`
are Django's, for these users.
"""


def __getattr__(name: str) -> object:
    from dynamo.runtime.lazy import exported

    return exported(__name__, name)
