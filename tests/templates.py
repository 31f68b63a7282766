"""What a template does to an object."""

from contextlib import suppress
from functools import cached_property
from typing import Any

from django.template import Context, Engine
from django.utils.functional import cached_property as djangos_cached_property

from tests.requests import Requests, told

_READS = {"GetItem", "BatchGetItem", "TransactGetItems", "Query", "Scan", "DescribeTable"}


def public_names(thing: object) -> list[str]:
    """The attributes that a template can name."""
    return [name for name in dir(thing) if not name.startswith("_")]


def assert_templates_change_nothing(thing: Any) -> None:
    """Render every attribute of `thing`, as a template does: methods are called."""
    render = Engine().from_string
    before = _state(thing)
    for name in public_names(thing):
        requests = Requests()
        with told(requests.note), suppress(Exception):
            render(f"{{{{ thing.{name} }}}}").render(Context({"thing": thing}))
        assert _READS.issuperset(requests.operations), name
        assert _state(thing) == before, name


def _state(thing: object) -> dict[str, str]:
    """Its attributes, without values that are only cached."""
    return {
        name: repr(value)
        for name, value in vars(thing).items()
        if not isinstance(
            getattr(type(thing), name, None), (cached_property, djangos_cached_property)
        )
    }
