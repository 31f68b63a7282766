"""Lists to choose from that have hundreds of options, or are on pages that must be light."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from django import forms
from django.forms.utils import flatatt
from django.utils.choices import CallableChoiceIterator
from django.utils.html import escape
from django.utils.safestring import SafeString

Options = tuple[tuple[str, str], ...]


class LongSelect(forms.Select):
    """A select without groups. Django renders each option by two templates, which takes 30 µs.

    `option_language` marks the texts as being in another language than the page: `en`, or `{}`,
    which stands for the value of each.
    """

    option_language = ""

    def render(
        self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: Any = None
    ) -> SafeString:
        [chosen] = self.format_value(value) or [""]
        mark = f'value="{escape(chosen)}"'
        options = _html(self._options(), self.option_language)
        own = self.build_attrs(self.attrs, {"name": name, **(attrs or {})})
        marked = options.replace(mark, f"{mark} selected", 1)
        return SafeString(f"<select{flatatt(own)}>{marked}</select>")

    def use_required_attribute(self, initial: Any) -> bool:
        """As Django's: only if the first option is empty."""
        options = self._options()
        is_first_empty = bool(options) and not options[0][0]
        return is_first_empty and forms.Widget.use_required_attribute(self, initial)

    def _options(self) -> Options:
        """The choices. Django would normalize those of a function, which takes 1 ms for 600."""
        choices = self.choices
        given = choices.func() if isinstance(choices, CallableChoiceIterator) else choices
        return tuple((str(value), str(text)) for value, text in given)


class LanguageSelect(LongSelect):
    """Languages, each named in itself."""

    option_language = "{}"


@lru_cache(maxsize=32)
def _html(options: Options, language: str) -> str:
    named = f' lang="{language}"' if language else ""

    def option(value: str, text: str) -> str:
        lang = named.format(value) if value else ""
        return f'<option value="{escape(value)}"{lang}>{escape(text)}</option>'

    return "".join(option(*each) for each in options)
