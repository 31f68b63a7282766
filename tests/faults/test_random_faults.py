"""Random faults are made for the requests that they fit."""

import pytest

from tests.faults.kinds import Torn
from tests.faults.random_faults import DYNAMODB, Kind, RandomFaults


@pytest.mark.parametrize("kind", DYNAMODB, ids=lambda kind: kind.name)
def test_each_fault_is_made_for_the_requests_that_it_fits(kind: Kind) -> None:
    faults = RandomFaults(7, (kind,), strength=1000)
    asked = {
        "TransactWriteItems": {"TransactItems": [{}, {}], "ClientRequestToken": "t"},
        "UpdateItem": {"UpdateExpression": "SET #0 = :0"},
        "Query": {},
    }

    made = [faults.draw(operation, body) for operation, body in asked.items()]

    assert any(made)
    assert all(isinstance(fault, Torn) == (kind.name == "torn read") for fault in made if fault)
