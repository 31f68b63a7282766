"""Methods that write, or that change their object. Templates do not call them."""

import inspect
from functools import wraps
from typing import ClassVar

from django.db.models.utils import AltersData as DjangosAltersData


class AltersData(DjangosAltersData):
    """Marks the methods that `_alters_data` names, and their asynchronous variants, as Django does.

    `{{ member.delete }}` in a template then shows nothing and deletes nothing. Unlike Django's
    class, it also marks an override that is a class method or that comes from a mixin.
    """

    #: Names of methods, with a space between each two.
    _alters_data: ClassVar[str] = ""

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        for name in cls._alters_data.split():
            for variant in (name, f"a{name}"):
                if hasattr(cls, variant):
                    _mark(cls, variant)


def _mark(cls: type, name: str) -> None:
    method = inspect.getattr_static(cls, name)
    function = djangos = getattr(method, "__func__", method)
    if djangos.__module__.startswith("django."):
        # The function of Django belongs to other classes as well.
        @wraps(djangos)
        def function(*args: object, **options: object) -> object:
            return djangos(*args, **options)

        setattr(cls, name, type(method)(function) if hasattr(method, "__func__") else function)
    function.alters_data = True
