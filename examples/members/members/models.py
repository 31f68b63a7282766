from pynamodb.attributes import UnicodeAttribute

from dynamo.attributes import IntegerAttribute
from dynamo.models import Model
from dynamo.unique import UniqueAttributes


class Member(Model):
    class Meta:
        table_name = "members"

    pk = UnicodeAttribute(hash_key=True)
    email = UnicodeAttribute()
    card = UnicodeAttribute()
    name = UnicodeAttribute()
    version = IntegerAttribute(default=1)

    unique = UniqueAttributes(email=str.casefold, card=str.upper)
