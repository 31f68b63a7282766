"""A finding: which rule is broken, of which object, and the few calls that show it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.torture.history import Call
from tests.torture.linear import Operation, Step, Undecided, first_break


@dataclass(frozen=True)
class Finding:
    """A broken rule."""

    rule: str
    about: str
    lines: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join([f"{self.rule}: {self.about}", *(f"    {line}" for line in self.lines)])


def of_calls(rule: str, about: str, calls: Iterable[Call]) -> Finding:
    """A finding with the calls that show it."""
    shown = sorted(calls, key=lambda call: call.began)
    zero = shown[0].began if shown else 0.0
    return Finding(rule, about, [call.line(zero) for call in shown])


def operation(call: Call, step: Step) -> Operation:
    """What the call did to an object; certain if it had an answer."""
    return Operation(call.began, call.latest, step, call.outcome != "unknown", call)


def of_object(rule: str, about: str, operations: Sequence[Operation]) -> list[Finding]:
    """A finding if the history of an object, whose first state is None, is not linearizable."""
    try:
        broken = first_break(operations, None)
    except Undecided:
        return [Finding("undecided", f"{rule}: {about} has too many operations at the same time")]
    if broken is None:
        return []
    zero = min([item.began for item in broken.before] + [broken.culprit.began])
    lines = [item.about.line(zero) for item in broken.before if isinstance(item.about, Call)]
    lines.append(f"possible then: {', '.join(map(str, broken.states))}")
    if isinstance(broken.culprit.about, Call):
        lines.append(f"which does not allow: {broken.culprit.about.line(zero)}")
    return [Finding(rule, about, lines)]
