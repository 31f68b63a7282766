from dynamo import Model, TextAttribute, Unique, casefolded


class Member(Model):
    class Meta:
        table_name = "members"

    email = TextAttribute("email address", max_length=254)
    card = TextAttribute()
    name = TextAttribute()

    unique_email = Unique("email", normalize=casefolded)
    unique_card = Unique("card", normalize=casefolded)
