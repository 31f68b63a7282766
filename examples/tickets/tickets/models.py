from pynamodb.attributes import UnicodeAttribute

from sequences.series import NumberedItem


class Ticket(NumberedItem):
    class Meta:
        table_name = "tickets"

    subject = UnicodeAttribute()
