"""The checker of copies reports a history that breaks a rule, and no other."""

import pytest

from tests.torture.checkers.copies import check
from tests.torture.histories import call
from tests.torture.history import Call, Outcome


def sale(outcome: Outcome, sold: int = 1) -> Call:
    return call("sell", outcome, seats="s", sold=sold)


#: Calls, how many seats are sold in the end (None: they are gone), and the rules that are broken.
HISTORIES: dict[str, tuple[list[Call], int | None, list[str]]] = {
    "all sales": ([sale("ok"), sale("ok", 2), sale("refused")], 3, []),
    "a lost sale": ([sale("ok"), sale("ok")], 1, ["seats"]),
    "a refused sale that was done": ([sale("ok"), sale("refused")], 2, ["seats"]),
    "a sale without an answer": ([sale("ok"), sale("unknown")], 2, []),
    "seats that are gone": ([sale("refused")], None, ["gone"]),
    "one claim": ([call("claim", job="j"), call("claim", "refused", job="j")], 0, []),
    "two claims": ([call("claim", job="j"), call("claim", job="j")], 0, ["jobs"]),
    "two takers": ([call("take", job="j"), call("take", job="j")], 0, ["jobs"]),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_of_copies_has_the_findings_of_the_rules_that_it_breaks(name: str) -> None:
    calls, sold, rules = HISTORIES[name]
    stored = {} if sold is None else {"s": sold}

    assert [finding.rule for finding in check(calls, stored)] == rules
