"""How long hypothesis drives a model of the rules."""

from __future__ import annotations

from hypothesis import HealthCheck, settings


def stateful_settings(examples: int) -> settings:
    """So many runs of thirty operations each."""
    return settings(
        max_examples=examples,
        stateful_step_count=30,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
