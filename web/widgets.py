"""Selects that are quick to render, however many options they have."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from django import forms
from django.forms.utils import flatatt
from django.utils.choices import CallableChoiceIterator
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

Options = tuple[tuple[str, str], ...]


class Select(forms.Select):
    """A select without groups of options.

    Django renders a template for each option: a page with all time zones took 80 ms.
    """

    def render(
        self,
        name: str,
        value: Any,
        attrs: Mapping[str, Any] | None = None,
        renderer: Any = None,
    ) -> SafeString:
        attributes = flatatt(self.build_attrs(self.attrs, {"name": name, **(attrs or {})}))
        [chosen] = self.format_value(value) or [""]
        mark = f'value="{escape(chosen)}"'
        options = _html(tuple((str(each), str(label)) for each, label in self._options()))
        # Escaped by `_html`.
        marked = mark_safe(options.replace(mark, f"{mark} selected", 1))  # noqa: S308
        return format_html("<select{}>\n{}</select>", attributes, marked)

    def use_required_attribute(self, initial: Any) -> bool:
        """No: the first option is chosen already, or is the empty one of an optional field."""
        return False

    def _options(self) -> Any:
        """The choices. Django would normalize each of a function's, which takes longer than all."""
        choices = self.choices
        return choices.func() if isinstance(choices, CallableChoiceIterator) else choices


@lru_cache(maxsize=32)
def _html(options: Options) -> str:
    return "".join(
        f'<option value="{escape(value)}">{escape(label)}</option>\n' for value, label in options
    )
