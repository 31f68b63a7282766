"""The series that an account has: one for each year that it issued invoices in."""

from __future__ import annotations

from dynamo.models import Item
from dynamo.transactions import READ_TOGETHER, read_together
from invoices.documents import series_of
from invoices.models import InvoiceItem

#: The years that an invoice may be of; where all of an account's series are wanted, it is asked
#: for each of these.
YEARS = range(1970, 2100)


def years_of(account: str) -> list[int]:
    """The years that the account issued invoices in, the latest first.

    Costs 6 requests, and 2 read units for each of `YEARS`, whether it has a series or not.
    """
    return [year for year, counter in counters_of(account).items() if counter][::-1]


def counters_of(account: str) -> dict[int, Item | None]:
    """The counter of the account's series of each of `YEARS`, None where it has none."""
    keys = [InvoiceItem.counter_of(series_of(account, year)) for year in YEARS]
    counters: list[Item | None] = []
    for start in range(0, len(keys), READ_TOGETHER):
        counters += read_together([*keys[start : start + READ_TOGETHER]])
    return dict(zip(YEARS, counters, strict=True))
