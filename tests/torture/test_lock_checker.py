"""The lock checker reports a history that breaks a rule, and no other."""

from typing import Any

import pytest

from tests.torture.checkers.locks import Served, check
from tests.torture.histories import call
from tests.torture.history import Call


def held(fence: int, *looks: float, wrote: int = 0, lock: str = "l") -> Call:
    """A call that got `fence`, and still held the lock at each of `looks`."""
    notes: list[tuple[float, dict[str, Any]]] = [(looks[0], {"fence": fence})]
    notes += [(at, {"looked": True}) for at in looks]
    if wrote:
        notes.append((looks[-1], {"wrote": [fence, wrote]}))
    return call("hold", at=(looks[0] - 1, looks[-1] + 1), lock=lock, notes=notes)


ONE = held(10, 1, 2)
TWO = held(11, 3, 4)
FROZEN = call("hold", "refused", at=(0, 9), lock="l", notes=[(8, {"fence": 10})])
KILLED = call("hold", "unknown", at=(0, 5), lock="l", notes=[(1, {"fence": 10})])
IN_TURN = [held(10, 1, 3, wrote=1), held(11, 4, 5, wrote=2), held(15, 7, wrote=3)]

#: Calls, the writes that the resource accepted, and the rules that are broken.
HISTORIES: dict[str, tuple[list[Call], list[Served], list[str]]] = {
    "holders one after the other": (IN_TURN, [Served(10, 1), Served(11, 2), Served(15, 3)], []),
    "two holders at one time": ([held(10, 1, 5), held(11, 3, 7)], [], ["holders"]),
    "one holder within the time of another": ([held(10, 1, 9), TWO], [], ["holders"]),
    "a third holder within the time of the first": (
        [held(10, 1, 9), held(11, 0.2, 0.5), held(12, 5, 6)],
        [],
        ["fences", "holders"],
    ),
    "holders of two locks": ([held(10, 1, 5), held(11, 3, 7, lock="m")], [], []),
    "a lower fence later": ([held(11, 1, 2), held(10, 3, 4)], [], ["fences"]),
    "one fence for two holders": ([ONE, held(10, 3, 4)], [], ["fences", "fences"]),
    "a holder that was frozen from its answer on": ([FROZEN, held(11, 4, 9)], [], []),
    "a killed holder that wrote": ([KILLED], [Served(10, 1)], []),
    "a lower fence that was served": ([ONE, TWO], [Served(11, 1), Served(10, 2)], ["resource"]),
    "a number written over another": ([ONE, TWO], [Served(10, 1), Served(11, 1)], ["resource"]),
    "a written number that is missing": ([held(10, 1, 2, wrote=1)], [], ["resource"]),
    "a served fence without a holder": ([], [Served(10, 1)], ["resource"]),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_of_locks_has_the_findings_of_the_rules_that_it_breaks(name: str) -> None:
    calls, served, rules = HISTORIES[name]

    assert [finding.rule for finding in check(calls, {"l": served})] == rules
