"""A function whose secret keys are in an SSM parameter: warm, restored, and without it."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core import signing

from tests.faults.kinds import Answer
from tests.parameters import READ, Parameter
from tests.serverless.runtime import SNAP_START, Function, FunctionError
from tests.serverless.test_freezing import HANDLER

OLD = "the old key of these functions " * 2
NEW = "the new key of these functions " * 2


def test_a_function_is_restored_with_the_keys_of_now_and_not_without_any(
    new_function: Callable[..., Function], parameter: Parameter, settings: Any
) -> None:
    reading = SNAP_START | parameter.environment | {"DJANGO_SECRET_KEY": None}
    parameter.put(OLD)
    with new_function(HANDLER, **reading) as restored:
        restored.wait_for_snapshot()
        assert parameter.times_read == 1
        parameter.put(NEW)
        restored.restore()
        settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW.strip(), []

        assert signing.loads(restored.invoke({"do": "sign"}))
        assert restored.request("GET", "/").status == 200
    assert parameter.times_read == 2

    with new_function(HANDLER, log="without", **reading) as function:
        function.wait_for_snapshot()
        parameter.proxy.plan(READ, Answer(400, "ParameterNotFound"))
        function.restore()
        with pytest.raises(FunctionError):
            function.request("GET", "/")
        assert "ParameterNotFound" in function.log
