"""What commits say of their writes is so, whichever replies are lost and whatever others write."""

import random
from collections.abc import Callable

import pytest

from dynamo import IntegerAttribute, Model, Refused, Stale, TextAttribute, Transaction, Unavailable
from tests.faults.kinds import CloseBefore, DropReply, Fault, Meanwhile
from tests.faults.proxy import FaultProxy

pytestmark = pytest.mark.usefixtures("engine")


class Hen(Model):
    class Meta:
        table_name = "tests-hens"

    name = TextAttribute(default="Ida")
    eggs = IntegerAttribute(default=0)
    weight = IntegerAttribute(default=0)


#: The first one counts in the item whose number tells whether a transaction was done.
PARTS: dict[str, Callable[[Hen, Transaction], None]] = {
    "count": lambda hen, write: hen.change(add={"eggs": 1}, write=write),
    "change and count": lambda hen, write: hen.change(name="Eve", add={"eggs": 1}, write=write),
}
OTHER_PARTS: dict[str, Callable[[Hen, Transaction], None]] = PARTS | {
    "nothing": lambda hen, write: None,
    "change": lambda hen, write: hen.change(name="Eve", write=write),
    "require": lambda hen, write: hen.require(write=write),
    "delete": lambda hen, write: hen.delete(write=write),
}


def weigh(hens: list[Hen], times: int) -> None:
    for _time in range(times):
        for hen in Hen.batch_get([item.pk for item in hens]):
            hen.change(weight=hen.weight + 1)


def is_unknown(error: Exception) -> bool:
    errors = error.exceptions if isinstance(error, Refused) else [error]
    return any(isinstance(item, Unavailable) and item.maybe_written for item in errors)


@pytest.mark.fault_of("moto", "ignores request tokens")
@pytest.mark.parametrize("seed", range(50))
def test_a_commit_is_done_once_or_not_done_or_unknown(
    seed: int, proxy: FaultProxy, impatient: float
) -> None:
    chance = random.Random(seed)
    hen, other = Hen.create(), Hen.create()
    write = Transaction()
    PARTS[chance.choice([*PARTS])](hen, write)
    OTHER_PARTS[chance.choice([*OTHER_PARTS])](other, write)
    is_known = False

    for _commit in range(3):
        overwrite = Meanwhile(lambda: weigh([hen, other], chance.choice([1, 2])))
        faults: list[Fault] = chance.choice(
            [[], [DropReply()], [DropReply(), overwrite], [CloseBefore(), overwrite]]
            + [[DropReply()] * 50, [CloseBefore()] * 50] * 2
        )
        for fault in faults:
            for operation in ("UpdateItem", "TransactWriteItems"):
                proxy.plan(operation, fault)
        if len(faults) > 2:
            proxy.plan("GetItem", DropReply(), times=50)
        try:
            write.commit()
        except (Refused, Stale, Unavailable) as error:
            most, least = int(is_unknown(error)), 0
        else:
            most = least = 1
            is_known = True
        proxy.forget()
        assert least <= Hen.get(hen.pk).eggs <= most
        if is_known:
            break
        if chance.random() < 0.7:
            weigh([hen, other], 1)
