"""Checks calls on invoices, and the invoices that are stored in the end.

numbers   a series has the numbers 1..n, each on one invoice. A request has one number, however
          often it is repeated: a higher one than each request that was answered before it began.
invoices  each is issued once with the contents of its request. It is voided at most once, for one
          reason, and stays voided.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from tests.torture.findings import Finding, of_calls, of_object, operation
from tests.torture.history import Call
from tests.torture.linear import Operation, Step


class Stored(NamedTuple):
    """A stored invoice; `void_reason` is "" if it is not voided."""

    request: str
    customer: str
    void_reason: str


Series = Mapping[int, Stored]


def check(calls: Sequence[Call], stored: Mapping[str, Series]) -> list[Finding]:
    """Find broken rules; `stored` are the invoices of each account in the end, by number."""
    accounts = {name: _Account(name, series) for name, series in stored.items()}
    for call in calls:
        if call.do in {"issue", "void", "read"}:
            name = call.asked["account"]
            account = accounts.setdefault(name, _Account(name, {}))
            account.calls.append(call)
            if call.do == "issue":
                account.issues.setdefault(call.asked["request"], _Issue()).calls.append(call)
    return [finding for account in accounts.values() for finding in account.check()]


@dataclass(frozen=True)
class _Issue:
    """One request, from the start of its first call to its first answer, or to its `latest`."""

    calls: list[Call] = field(default_factory=list)

    @property
    def began(self) -> float:
        return min(call.began for call in self.calls)

    @property
    def ended(self) -> float:
        answered = [call.ended for call in self.calls if call.outcome == "ok"]
        return min(answered) if answered else max(call.latest for call in self.calls)

    @property
    def numbers(self) -> set[int]:
        return {call.answer["number"] for call in self.calls if call.outcome == "ok"}


@dataclass(frozen=True)
class _Account:
    """The invoices of an account in the end, all calls on them, and its requests."""

    name: str
    stored: Series
    calls: list[Call] = field(default_factory=list)
    issues: dict[str, _Issue] = field(default_factory=dict)

    def check(self) -> Iterator[Finding]:
        yield from self._numbers()
        yield from self._order()
        yield from self._invoices()

    def _finding(self, rule: str, about: str, calls: Sequence[Call] = ()) -> Finding:
        return of_calls(rule, f"{self.name}: {about}", calls)

    def _numbers(self) -> Iterator[Finding]:
        if missing := set(range(1, max(self.stored, default=0) + 1)) - self.stored.keys():
            yield self._finding("numbers", f"lacks {missing}")
        of_request: dict[str, set[int]] = defaultdict(set)
        for number, value in self.stored.items():
            of_request[value.request].add(number)
        for request in of_request.keys() | self.issues.keys():
            numbers = of_request[request]
            issue = self.issues.get(request)
            if issue is None:
                yield self._finding("numbers", f"{request} ({numbers}) was not requested")
                continue
            if len(numbers | issue.numbers) > 1 or not issue.numbers <= numbers:
                about = f"{request} was told {issue.numbers}, and has {numbers}"
                yield self._finding("numbers", about, issue.calls)
            asked = {call.asked["customer"] for call in issue.calls if call.outcome != "refused"}
            for number in numbers:
                if self.stored[number].customer not in asked:
                    yield self._finding("invoices", f"{number} has other contents", issue.calls)

    def _issued(self) -> dict[int, _Issue]:
        """The requests that are stored, in the order of their numbers."""
        return {
            number: self.issues[item.request]
            for number, item in sorted(self.stored.items())
            if item.request in self.issues
        }

    def _order(self) -> Iterator[Finding]:
        latest: _Issue | None = None
        for number, issue in self._issued().items():
            if latest is not None and latest.began > issue.ended:
                about = f"{number} was answered before a lower number was asked for"
                yield self._finding("numbers", about, [*latest.calls, *issue.calls])
            if latest is None or issue.began > latest.began:
                latest = issue

    def _invoices(self) -> Iterator[Finding]:
        """The state of an invoice: None before it is issued, then "", then why it was voided."""
        operations: dict[int, list[Operation]] = defaultdict(list)
        for number, issue in self._issued().items():
            for call in issue.calls:
                if call.outcome != "refused":
                    operations[number].append(operation(call, _issue))
        for call in self.calls:
            if (step := _step_of(call)) is not None:
                operations[call.asked["number"]].append(operation(call, step))
        over = max((call.latest for call in self.calls), default=0.0) + 1
        for number, value in self.stored.items():
            last = Call("read", "in the end", over, over + 1, "ok", {"number": number})
            operations[number].append(operation(last, partial(_is, value.void_reason)))
        for number, of_one in operations.items():
            yield from of_object("invoices", f"{self.name}: {number}", of_one)


def _step_of(call: Call) -> Step | None:
    """What voiding or reading an invoice does to it, or shows."""
    if call.do == "void" and call.outcome != "refused":
        return partial(_void, call.asked["reason"])
    if call.do not in {"void", "read"} or call.outcome == "unknown":
        return None
    is_unknown = call.answer.get("error") == "UnknownInvoice"
    return partial(_is, None if is_unknown else call.answer["reason"])


def _issue(state: str | None) -> Iterator[str]:
    yield state or ""


def _void(reason: str, state: str | None) -> Iterator[str]:
    if state == "":
        yield reason


def _is(wanted: str | None, state: str | None) -> Iterator[str | None]:
    if state == wanted:
        yield state
