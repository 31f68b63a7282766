"""Every registered operation twice at once, in every order of requests: it is done once."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from functools import partial
from typing import Any

import pytest

from dynamo.models import Model
from invoices.document.invoice import Invoice
from tests.interleavings.conftest import Explore
from tests.interleavings.processes import apart
from tests.operations import DELETE, LIBRARY, Operation, plain, undisturbed
from tests.site_operations import ACCOUNTS, INVOICES

pytestmark = pytest.mark.fault_of("moto", "does not isolate transactions")


@pytest.fixture(autouse=True)
def _processes() -> Iterator[None]:
    with apart():
        yield


class Twice:
    """An operation on two copies of what was read before."""

    late: set[int]

    def __init__(self, operation: Operation, losses: int = 0, **_faults: Any) -> None:
        self._operation = operation
        # A caller whose deletion was lost cannot tell whether it or the other one deleted the item.
        self._may_both_delete = losses > 0 and operation.api == DELETE
        self._wanted, _result = undisturbed(operation)
        operation.empty()
        given = operation.given()
        self._before = operation.stored()
        copies = [deepcopy(given) if isinstance(given, Model) else given for _ in range(2)]
        self.operations = [partial(operation.act, each) for each in copies]

    def always(self, wrote: bool) -> None:
        if wrote:
            self._operation.assert_sound()

    def afterwards(self, outcomes: list[Any]) -> None:
        """It is done, once; the later call finds that, or is refused."""
        again = self._operation.again
        errors = [each for each in outcomes if isinstance(each, Exception)]
        for error in errors:
            if not (isinstance(again, type) and isinstance(error, again)):
                raise error
        assert len(errors) == (again != "same") or (self._may_both_delete and not errors)
        if not errors and isinstance(outcomes[0], Invoice):
            assert outcomes[0] == outcomes[1]
        assert plain(self._operation.stored(), self._before) == self._wanted


#: Those that `make test` runs with lost requests; the others take longer.
QUICK = {"register", "issue_invoice"}
LOSSES = [{"losses": 1}, {"losses": 1, "forgetful": True}]


def runs() -> Iterator[Any]:
    """Each operation with its faults. Two threads that share a lease wait for each other."""
    for each in [*LIBRARY, *ACCOUNTS, *INVOICES]:
        if each.again != "another" and not each.name.startswith("Lease."):
            is_quick = each.name in QUICK
            for faults in LOSSES if is_quick else [{}]:
                yield pytest.param(each, faults, id=f"{each.name}-{faults}")
            for faults in LOSSES:
                more = {"losses": 2} if each.name == "register" else {}
                marks = pytest.mark.slow
                yield pytest.param(
                    each, faults | more, id=f"{each.name}-{faults}-slow", marks=marks
                )


@pytest.mark.parametrize(("operation", "faults"), [*runs()])
def test_an_operation_that_is_called_twice_at_once_is_done_once(
    explore: Explore, operation: Operation, faults: dict[str, Any]
) -> None:
    assert explore(lambda: Twice(operation, **faults), **faults) > 1
