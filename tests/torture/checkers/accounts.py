"""Checks calls on accounts, and the accounts that are stored in the end.

There are two rules, each about one object:

uniqueness  a value has at most one owner. A registration, or a change to the value, needs a value
            without an owner; a change from it and a deletion free it. A call that finds the value
            taken needs another owner, a search without a result needs no owner, and the account
            that a search finds is the owner.
account     an account exists from its registration to its deletion, with the values that were
            written last. Its version starts at random: no earlier account with the same key had it.
            Each change increments the version that its caller had read, of this account and not of
            an earlier one with the same key. What a successful call returned was stored after it
            had written and before it returned: if its reply was lost, the attempt that was
            answered may have found later changes of others.

What is stored in the end counts as one more search after all calls. So a success is still true
then, unless another call has changed the account.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from tests.torture.findings import Finding, of_object, operation
from tests.torture.history import Call
from tests.torture.linear import Operation, Step

WRITES = {"register", "change", "edit", "other", "delete"}
ATTRIBUTES = ("username", "email")


#: More changes than an account sees in a run, and far fewer than lie between two random versions.
MOST_CHANGES = 2**20


class Account(NamedTuple):
    """An account, and when the call began that registered it.

    `version` is None until an answer has told it.
    """

    username: str
    email: str
    version: int | None
    full_name: str
    since: float = 0.0

    @property
    def shown(self) -> dict[str, Any]:
        """The attributes that a search shows."""
        return {name: getattr(self, name) for name in SHOWN}


SHOWN = ("username", "email", "version", "full_name")

Seen = Mapping[int, float]
"""The versions of one key, and when each was first known to a client."""


def check(
    calls: Sequence[Call], stored: Mapping[str, Account], *, engine_kills: Sequence[float] = ()
) -> list[Finding]:
    """Find broken rules. `stored` are the accounts in the end, by their keys."""
    calls = [call for call in calls if call.do in WRITES | {"find"}]
    over = max((call.latest for call in calls), default=0.0) + 1
    calls += _last_searches(calls, stored, over)
    seen = _versions_seen(calls)
    objects: dict[tuple[str, str], list[Operation]] = defaultdict(list)
    for call in calls:
        for item in _with_ghost(call, engine_kills):
            for (attribute, value), step in _steps_of_values(item):
                objects["uniqueness", f"{attribute} {value}"].append(operation(item, step))
            pk = _key_of(item)
            if (step := _step_of_account(item, seen[pk])) is not None:
                objects["account", pk].append(operation(item, step))
                if item.do != "find" and "version" in item.answer:
                    shows = operation(item, partial(_shows, item, seen[pk]))
                    objects["account", pk].append(replace(shows, is_second=True))
    return [
        finding
        for (rule, about), operations in objects.items()
        for finding in of_object(rule, about, operations)
    ]


def _with_ghost(call: Call, engine_kills: Sequence[float]) -> Iterator[Call]:
    """The call, and a second effect that it may have had.

    A local engine that is killed forgets the tokens of transactions, which AWS does not. So a
    repeated request may be carried out again if another call has undone the first one. And a change
    that is told that the account is gone may have been made before, if its reply was lost.
    """
    yield call
    was_forgotten = any(call.began <= at <= call.latest for at in engine_kills)
    if call.do in WRITES and (was_forgotten or call.answer.get("gone")):
        yield replace(call, outcome="unknown", answer={}, lingers=0.0)


def _last_searches(
    calls: Iterable[Call], stored: Mapping[str, Account], over: float
) -> Iterator[Call]:
    """Searches after all calls, for each account and each value that a call has named."""
    last = Call("find", "in the end", over, over + 1, "refused")
    for pk in ({_key_of(call) for call in calls} | stored.keys()) - {""}:
        found = replace(last, asked={"who": pk})
        if pk in stored:
            found = replace(found, outcome="ok", answer={"pk": pk, **stored[pk].shown})
        yield found
    owned = {item.casefold() for account in stored.values() for item in account[:2]}
    named = {value for call in calls for (_name, value), _step in _steps_of_values(call)}
    for value in named - owned:
        yield replace(last, asked={"who": value})


def _versions_seen(calls: Iterable[Call]) -> dict[str, dict[int, float]]:
    """For each key its versions, and when each was first known to a client."""
    seen: dict[str, dict[int, float]] = defaultdict(dict)
    for call in calls:
        of_key = seen[_key_of(call)]
        for version, at in (
            (call.asked.get("version"), call.began),
            (call.answer.get("version"), call.ended),
        ):
            if version is not None:
                of_key[version] = min(at, of_key.get(version, math.inf))
    return seen


def _key_of(call: Call) -> str:
    key: str = call.asked.get("pk") or call.answer.get("pk") or ""
    if not key and call.do == "find" and _is_key(call.asked["who"]):
        key = call.asked["who"]
    return key


def _is_key(who: str) -> bool:
    return len(who) == 36 and who.count("-") == 4


# The state of a value: the key of its owner, or None.


def _steps_of_values(call: Call) -> Iterator[tuple[tuple[str, str], Step]]:
    """The effect of the call on each value that it names."""
    asked = call.asked
    pk = _key_of(call)
    taken = call.answer.get("taken", ())
    is_refused = call.outcome == "refused"

    def of_each(
        values: Mapping[str, str], step: Callable[[str, str | None], Iterator[str | None]]
    ) -> Iterator[tuple[tuple[str, str], Step]]:
        for attribute in ATTRIBUTES:
            if attribute in values:
                yield (attribute, values[attribute].casefold()), partial(step, pk)

    if call.do == "register" and taken:
        yield from of_each({name: asked[name] for name in taken}, _is_anothers)
        others = {name: asked[name] for name in ATTRIBUTES if name not in taken}
        yield from of_each(others, _is_nobodys)
    elif call.do == "register" and not is_refused:
        yield from of_each(asked, _claim)
    elif call.do == "change" and not is_refused:
        if asked["old"].casefold() != asked["new"].casefold():
            yield from of_each({asked["attribute"]: asked["old"]}, _free)
            yield from of_each({asked["attribute"]: asked["new"]}, _claim)
    elif call.do == "change" and taken:
        yield from of_each({asked["attribute"]: asked["new"]}, _is_anothers)
    elif call.do == "delete" and not is_refused:
        yield from of_each(asked, _free)
    elif call.do == "find" and call.outcome == "ok":
        yield from of_each(call.answer, _is_owned_by)
    elif call.do == "find" and is_refused and not _is_key(asked["who"]):
        attribute = "email" if "@" in asked["who"] else "username"
        yield from of_each({attribute: asked["who"]}, _is_nobodys)


def _claim(pk: str, owner: str | None) -> Iterator[str | None]:
    if owner in {None, pk}:
        yield pk


def _free(pk: str, owner: str | None) -> Iterator[str | None]:
    # Another call may have freed it before: that is a success too.
    yield None if owner == pk else owner


def _is_anothers(pk: str, owner: str | None) -> Iterator[str | None]:
    if owner not in {None, pk}:
        yield owner


def _is_nobodys(_pk: str, owner: str | None) -> Iterator[str | None]:
    if owner is None:
        yield owner


def _is_owned_by(pk: str, owner: str | None) -> Iterator[str | None]:
    if owner == pk:
        yield owner


# The state of an account: an Account, or None if it does not exist.


def _step_of_account(call: Call, seen: Seen) -> Step | None:
    if not _key_of(call) or (call.do == "find" and call.outcome == "unknown"):
        return None
    steps: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
        "register": (_register, _register_refused),
        "change": (_change, _change_refused),
        "edit": (_change, _change_refused),
        "other": (_other, _change_refused),
        "delete": (_delete, _delete_refused),
        "find": (_shows, _is_absent),
    }
    return partial(steps[call.do][call.outcome == "refused"], call, seen)


def _can_have(account: Account, version: int | None, seen: Seen) -> bool:
    """Whether this may be its `version` (any if None).

    A version that was known before this account was registered belongs to an earlier one.
    """
    if version is None or account.version is not None:
        return version in {None, account.version}
    return seen.get(version, math.inf) >= account.since


def _with(account: Account, version: int | None, seen: Seen) -> Account | None:
    """The account with this `version` (any if None), or None if it cannot have it."""
    told = account if version is None else account._replace(version=version)
    return told if _can_have(account, version, seen) else None


def _can_come_to(account: Account, version: int | None, seen: Seen) -> bool:
    """Whether the account can have had this `version`, or can get it by changes."""
    if version is None or account.version is None:
        return _can_have(account, version, seen)
    return abs(version - account.version) <= MOST_CHANGES


def _register(call: Call, _seen: Seen, account: Account | None) -> Iterator[Account | None]:
    asked = call.asked
    if account is None:
        full_name = asked.get("full_name", "")
        yield Account(asked["username"], asked["email"], None, full_name, call.began)
    elif _has_values(account, asked):
        yield account


def _has_values(account: Account, asked: Mapping[str, Any]) -> bool:
    return all(
        getattr(account, attribute).casefold() == asked[attribute].casefold()
        for attribute in ATTRIBUTES
    )


def _register_refused(call: Call, _seen: Seen, account: Account | None) -> Iterator[Account | None]:
    if call.answer["taken"]:
        possible = account is None
    else:
        possible = account is not None and not _has_values(account, call.asked)
    if possible:
        yield account


def _change(call: Call, seen: Seen, account: Account | None) -> Iterator[Account | None]:
    if account is None:
        return
    asked, read = call.asked, call.asked.get("version")
    attribute = asked.get("attribute", "full_name")
    new = asked.get("new", asked.get("full_name"))
    before = _with(account, read, seen)
    if before is not None:
        after = None if before.version is None else before.version + 1
        yield before._replace(**{attribute: new}, version=after)
    # Another call has made the change, to the account that was read.
    if getattr(account, attribute) == new and _can_come_to(account, read, seen):
        yield account


def _other(call: Call, seen: Seen, account: Account | None) -> Iterator[Account | None]:
    """Another operation changes no value that a search shows. If it told no version, it may have
    had nothing to do, and sent no request.
    """
    if account is not None:
        before = _with(account, call.asked["version"], seen)
        if before is not None and before.version is not None:
            yield before._replace(version=before.version + 1)
    is_told = "version" in call.answer
    was_done = account is not None and _can_come_to(account, call.asked["version"], seen)
    if was_done or not is_told:
        yield account


def _change_refused(call: Call, seen: Seen, account: Account | None) -> Iterator[Account | None]:
    read = call.asked.get("version")
    says_stale = "StaleUser" in call.answer["error"]
    if read is None:
        yield account
    elif says_stale:
        if account is None or account.version != read:
            yield account
    elif account is not None and (found := _with(account, read, seen)) is not None:
        yield found


def _delete(call: Call, seen: Seen, account: Account | None) -> Iterator[Account | None]:
    if account is None or _with(account, call.asked.get("version"), seen) is not None:
        yield None


def _delete_refused(call: Call, _seen: Seen, account: Account | None) -> Iterator[Account | None]:
    if call.answer.get("gone"):
        if account is None:
            yield None
    elif account is not None and call.asked.get("version") != account.version:
        yield account


def _is_absent(_call: Call, _seen: Seen, account: Account | None) -> Iterator[None]:
    if account is None:
        yield None


def _shows(call: Call, seen: Seen, account: Account | None) -> Iterator[Account]:
    """The account is stored as the call was answered."""
    found = None if account is None else _with(account, call.answer["version"], seen)
    told = {name: call.answer[name] for name in SHOWN if name in call.answer}
    if found is not None and found.shown.items() >= told.items():
        yield found
