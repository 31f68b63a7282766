"""Random faults have the rates of their table, and depend on their seed."""

import pytest

from tests.faults.kinds import CloseBefore, Torn
from tests.faults.random_faults import DYNAMODB, Kind, RandomFaults

ADDING = {"UpdateExpression": "ADD n :one"}


def test_a_seed_gives_the_same_faults_again() -> None:
    assert RandomFaults(7).rates(3) == RandomFaults(7).rates(3)
    assert RandomFaults(7).rates(3) != RandomFaults(7).rates(4)
    assert RandomFaults(7).rates(3) != RandomFaults(8).rates(3)


def test_a_request_that_counts_is_not_duplicated() -> None:
    [twice] = [kind for kind in DYNAMODB if kind.name == "request twice"]

    assert twice.fits("PutItem", {})
    assert not twice.fits("UpdateItem", ADDING)


def test_no_request_passes_during_a_cut() -> None:
    faults = RandomFaults(7, ())
    faults.cut(60)
    assert isinstance(faults.draw("GetItem", {}), CloseBefore)

    faults.clear()
    assert faults.draw("GetItem", {}) is None


@pytest.mark.parametrize("kind", DYNAMODB, ids=lambda kind: kind.name)
def test_each_fault_is_made_for_the_requests_that_it_fits(kind: Kind) -> None:
    faults = RandomFaults(7, (kind,), strength=1000)
    asked = {
        "TransactWriteItems": {"TransactItems": [{}, {}], "ClientRequestToken": "t"},
        "UpdateItem": {"UpdateExpression": "SET #0 = :0"},
        "Query": {},
    }

    made = [faults.draw(operation, body) for operation, body in asked.items()]

    assert any(fault is not None for fault in made) or faults.rates(0)[kind.name] == 0
    assert all(isinstance(fault, Torn) == (kind.name == "torn read") for fault in made if fault)
