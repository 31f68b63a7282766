"""Lists to choose from that have hundreds of options."""

from __future__ import annotations

from typing import Any

from django import forms
from django.forms.utils import flatatt
from django.utils.html import escape
from django.utils.safestring import SafeString


class LongSelect(forms.Select):
    """A select without groups. Django renders each option by two templates, which takes 30 µs.

    `option_language` marks the texts as being in another language than the page.
    """

    option_language = ""

    def render(
        self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: Any = None
    ) -> SafeString:
        chosen = set(self.format_value(value))
        language = f' lang="{self.option_language}"' if self.option_language else ""
        options = "".join(
            f'<option value="{escape(code)}"{" selected" * (str(code) in chosen)}{language}>'
            f"{escape(text)}</option>"
            for code, text in self.choices
        )
        own = self.build_attrs(self.attrs, {"name": name, **(attrs or {})})
        return SafeString(f"<select{flatatt(own)}>{options}</select>")
