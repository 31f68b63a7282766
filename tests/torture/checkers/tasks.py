"""Checks the tasks that were stored with orders.

lost      an order that was stored is charged in the end, and so is one whose call had no answer,
          if it is stored.
twice     no order is charged twice.
orphan    no task ran without its order.
"""

from collections.abc import Collection, Mapping, Sequence

from tests.torture.findings import Finding, of_calls
from tests.torture.history import Call


def check(
    calls: Sequence[Call], charged: Mapping[str, int], orphans: Collection[str]
) -> list[Finding]:
    """Find broken rules; `charged` is how often each stored order was charged."""
    findings = [Finding("orphan", f"the task {item} had no order") for item in orphans]
    for call in calls:
        if call.do != "order":
            continue
        times = charged.get(call.asked["order"])
        if times is None and call.outcome != "ok":
            continue
        if not times:
            findings.append(of_calls("lost", "an order was not charged", [call]))
        elif times > 1:
            findings.append(of_calls("twice", f"an order was charged {times} times", [call]))
    return findings
