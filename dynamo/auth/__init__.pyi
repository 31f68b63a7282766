from dynamo.auth.managers import UserManager as UserManager
from dynamo.auth.models import AbstractUser as AbstractUser
from dynamo.auth.passwords import check_password as check_password, make_password as make_password
from dynamo.auth.permissions import (
    AbstractGroup as AbstractGroup,
    all_permissions as all_permissions,
    permission as permission,
)
