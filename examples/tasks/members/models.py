from dynamo import Model, TextAttribute


class Member(Model):
    class Meta:
        table_name = "members"

    email = TextAttribute(max_length=254, unique=True)
    name = TextAttribute()
