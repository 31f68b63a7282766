"""The checker of tasks reports a history that breaks a rule, and no other."""

import pytest

from tests.torture.checkers.tasks import check
from tests.torture.histories import call
from tests.torture.history import Outcome

#: The outcome of a call, how often its order was charged (None: it is not stored), and the rules.
HISTORIES: list[tuple[Outcome, int | None, list[str]]] = [
    ("ok", 1, []),
    ("ok", 0, ["lost"]),
    ("ok", None, ["lost"]),
    ("ok", 2, ["twice"]),
    ("unknown", None, []),
    ("unknown", 1, []),
    ("unknown", 0, ["lost"]),
    ("unknown", 2, ["twice"]),
]


@pytest.mark.parametrize(("outcome", "charged", "rules"), HISTORIES)
def test_an_order_is_charged_once_if_it_is_stored(
    outcome: Outcome, charged: int | None, rules: list[str]
) -> None:
    stored = {} if charged is None else {"o": charged}

    findings = check([call("order", outcome, order="o")], stored, [])

    assert [finding.rule for finding in findings] == rules


def test_a_task_without_its_order_is_a_finding() -> None:
    assert [finding.rule for finding in check([], {}, ["t"])] == ["orphan"]
