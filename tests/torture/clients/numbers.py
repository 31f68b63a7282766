"""Clients that want the same few unique numbers, each in several spellings."""

from decimal import Decimal

from dynamo import DecimalAttribute, DoesNotExist, Model, Stale, Taken, Unique
from tests.torture.clients.client import Client

SPELLINGS = [
    ["0", "-0", "0E+10", "-0.00"],
    ["1E+38", f"1{'0' * 38}", f"10{'0' * 37}.0", "0.1E+39"],
    ["-1E-130", f"-0.{'0' * 129}10"],
    ["1.5", "1.50", "15E-1"],
]


class Plate(Model):
    class Meta:
        table_name = "tests-torture-plates"

    number = DecimalAttribute()

    unique_number = Unique("number")


class NumberClient(Client):
    def step(self) -> None:
        """Make a plate, or change or delete the one that has a number."""
        number, plate = self._drawn(), None
        if self.chance.random() < 0.4:
            with self.journal.call("make", refusals=(Taken,), number=str(number)) as call:
                Plate.create(number=number, request_id=self.new_id())
                call.ok()
            return
        with self.journal.call("look up", refusals=(DoesNotExist,), number=str(number)) as call:
            plate = Plate.find(number=number)
            call.ok(number=str(plate.number))
        if plate is None:
            return
        new = self._drawn() if self.chance.random() < 0.7 else None
        refusals = (Stale, Taken)
        with self.journal.call("renumber", refusals=refusals, pk=plate.pk, new=str(new)) as call:
            if new is None:
                plate.delete()
            else:
                plate.change(number=new)
            call.ok()

    def _drawn(self) -> Decimal:
        return Decimal(self.chance.choice(self.chance.choice(SPELLINGS)))
