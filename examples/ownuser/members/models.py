from accounts.models import AbstractAccount
from dynamo import TextAttribute, Unique


class Member(AbstractAccount):
    class Meta:
        table_name = "members"

    membership_number = TextAttribute("Membership number", max_length=20, null=True)
    club = TextAttribute("Club", null=True)

    unique_number = Unique("club", "membership_number")

    sign_up_fields = (*AbstractAccount.sign_up_fields, "club", "membership_number")
    profile_fields = (*AbstractAccount.profile_fields, "club")
