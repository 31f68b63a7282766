"""A function whose secret keys are in an SSM parameter: warm, restored, and without it."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core import signing

from tests.faults.kinds import Answer
from tests.parameters import READ, Parameter
from tests.serverless.runtime import SNAP_START, Function, FunctionError
from tests.serverless.test_freezing import HANDLER

OLD, NEW = "the old key of these functions " * 2, "the new key of these functions " * 2


@pytest.fixture
def environment(environment: dict[str, str], parameter: Parameter) -> dict[str, str]:
    """The environment of a function that reads the parameter."""
    del environment["DJANGO_SECRET_KEY"]
    return environment | parameter.environment


def signed_by(key: str, function: Function, settings: Any) -> bool:
    """Whether `function` signs with `key`."""
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = key.strip(), []
    try:
        signing.loads(function.invoke({"do": "sign"}))
    except signing.BadSignature:
        return False
    return True


def test_a_restored_function_reads_the_keys_again(
    new_function: Callable[..., Function], parameter: Parameter, settings: Any
) -> None:
    parameter.put(OLD)
    with new_function(HANDLER, **SNAP_START) as restored:
        restored.wait_for_snapshot()
        assert parameter.times_read == 1
        parameter.put(NEW)
        restored.restore()

        assert signed_by(NEW, restored, settings)
        assert restored.request("GET", "/").status == 200

    assert parameter.times_read == 2


def test_a_function_is_not_restored_without_the_parameter(
    new_function: Callable[..., Function], parameter: Parameter
) -> None:
    parameter.put(OLD)
    with new_function(HANDLER, **SNAP_START) as function:
        function.wait_for_snapshot()
        parameter.proxy.plan(READ, Answer(400, "ParameterNotFound"))
        function.restore()
        with pytest.raises(FunctionError):
            function.request("GET", "/")

        assert "ParameterNotFound" in function.log
