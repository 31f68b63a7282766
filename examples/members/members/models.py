from pynamodb.attributes import UnicodeAttribute

from dynamo.models import IntegerAttribute, Model, new_version
from dynamo.unique.attributes import UniqueAttributes


class Member(Model):
    class Meta:
        table_name = "members"

    pk = UnicodeAttribute(hash_key=True)
    email = UnicodeAttribute()
    card = UnicodeAttribute()
    name = UnicodeAttribute()
    version = IntegerAttribute(default_for_new=new_version)

    unique = UniqueAttributes(email=str.casefold, card=str.upper)
