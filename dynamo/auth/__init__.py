"""Users, groups and permissions on DynamoDB, for all of django.contrib.auth.

from dynamo.auth import AbstractUser

As an app (`dynamo.auth` before `django.contrib.auth`) it brings `createsuperuser` and
`changepassword`. The authentication backend is `dynamo.auth.backends.UserBackend`.

`models` has the user with its names and flags, and finds users; `base_user` has passwords and
sessions; `managers` creates users; `permissions` has users' and groups' permissions. `usernames`,
`addresses` and `passwords` have the rules of these values. `backends`, `forms`, `views` and `urls`
adapt Django's to these users.
"""


def __getattr__(name: str) -> object:
    from dynamo.runtime.lazy import exported

    return exported(__name__, name)
