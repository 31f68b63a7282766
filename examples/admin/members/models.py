from dynamo import GlobalSecondaryIndex, Model, TextAttribute, Unique, casefolded
from dynamo.auth import AbstractUser


class Editor(AbstractUser):
    class Meta:
        table_name = "editors"


class Member(Model):
    class Meta:
        table_name = "members"

    class ByClub(GlobalSecondaryIndex["Member"]):
        club = TextAttribute(hash_key=True)
        name = TextAttribute(range_key=True)

    email = TextAttribute("email address", max_length=254)
    name = TextAttribute(max_length=100)
    club = TextAttribute(choices=[("chess", "Chess"), ("go", "Go")])
    notes = TextAttribute(null=True)

    by_club = ByClub()
    unique_email = Unique("email", normalize=casefolded, searchable=True)
