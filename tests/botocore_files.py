"""Keeps the files that botocore reads for each client: the suite makes a thousand, a site one."""

import functools
from collections.abc import Callable
from typing import Any

from botocore.loaders import JSONFileLoader, Loader


def keep(replace: Callable[[Any, str, Any], None]) -> None:
    """Replace the methods that read, by `setattr` or a `MonkeyPatch`'s."""
    for owner, name in ((JSONFileLoader, "load_file"), (Loader, "list_available_services")):
        replace(owner, name, _kept(getattr(owner, name)))


def _kept(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a loader, with its answers cached for all loaders."""
    answers: dict[tuple[Any, ...], Any] = {}

    @functools.wraps(method)
    def kept(loader: Any, *arguments: Any, **named: Any) -> Any:
        where = tuple(getattr(loader, "search_paths", ()))
        question = (where, arguments, tuple(named.items()))
        if question not in answers:
            answers[question] = method(loader, *arguments, **named)
        return answers[question]

    return kept
