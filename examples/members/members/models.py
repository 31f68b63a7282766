from pynamodb.attributes import UnicodeAttribute

from dynamo.attributes import IntegerAttribute
from dynamo.items import PlainModel
from dynamo.unique.attributes import UniqueAttributes
from dynamo.versions import new_version


class Member(PlainModel):
    class Meta:
        table_name = "members"

    pk = UnicodeAttribute(hash_key=True)
    email = UnicodeAttribute()
    card = UnicodeAttribute()
    name = UnicodeAttribute()
    version = IntegerAttribute(default_for_new=new_version)

    unique = UniqueAttributes(email=str.casefold, card=str.upper)
