from dynamo.auth import AbstractUser


class Member(AbstractUser):
    class Meta:
        table_name = "members"
