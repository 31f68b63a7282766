from dynamo import TextAttribute
from sequences import NumberedItem


class Ticket(NumberedItem):
    class Meta:
        table_name = "tickets"

    subject = TextAttribute()
