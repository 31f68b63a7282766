"""Kinds of values that people type: how they are typed, checked and stored.

A field is declared once, with its kind; its form field and its checks follow from that. Lists to
choose from have hundreds of options, or are on pages that must be light, so `LongSelect` renders
them.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.forms.utils import flatatt
from django.utils.choices import CallableChoiceIterator
from django.utils.html import escape
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from web.choices import Choices, country_choices, currency_choices, is_country, is_currency

UNPRINTABLE = _("Use printable characters only.")
_UNKNOWN = _("Select one of the choices.")

_DIRECTION_OVERRIDES = re.compile("[\u202a-\u202e\u2066-\u2069]")
# Control characters, lone surrogates, line and paragraph separators.
_UNPRINTABLE_CATEGORIES = {"Cc", "Cs", "Zl", "Zp"}
# Accents of Latin, Greek and Cyrillic. The marks of other scripts make other letters.
_ACCENTS = re.compile("[\u0300-\u036f]")


class Kind:
    """A kind of value. Its methods raise ValidationError for a value that is not allowed."""

    #: Its type in DynamoDB.
    wire_type: ClassVar[str] = "S"

    def clean(self, typed: str) -> Any:
        """The value to store for what a person typed, which is not blank."""
        return self.from_text(typed)

    def read(self, typed: str) -> Any:
        """As `clean`, for a form, which a person filled in."""
        return self.clean(typed)

    def to_typed(self, value: Any) -> str:
        """The text from which `read` makes `value`."""
        return self.to_text(value)

    def to_text(self, value: Any) -> str:
        """The stored text. Equal values have equal texts."""
        return str(value)

    def from_text(self, text: str) -> Any:
        """The value of a stored text. Raises ValueError."""
        return text

    def widget(self) -> forms.Widget:
        """The input element."""
        return forms.TextInput()


@dataclass(frozen=True)
class SingleLine(Kind):
    """One line of text. It may have a `rule`, which returns what is stored.

    The message `unprintable` refuses characters that cannot be shown.
    """

    max_length: int
    rule: Callable[[str], Any] = str
    unprintable: Any = UNPRINTABLE
    input: type[forms.Widget] = forms.TextInput

    def clean(self, typed: str) -> Any:
        text = typed.strip()
        check_text(text, self.max_length, self.unprintable)
        return self.rule(text)

    def widget(self) -> forms.Widget:
        return self.input({"maxlength": self.max_length})


@dataclass(frozen=True)
class MultiLine(Kind):
    """Text of any number of lines. It may have a `rule`, as `SingleLine`."""

    max_length: int
    rows: int = 2
    rule: Callable[[str], Any] = str

    def clean(self, typed: str) -> Any:
        text = "\n".join(line.rstrip() for line in typed.strip().splitlines())
        check_text(text, self.max_length, has_lines=True)
        return self.rule(text)

    def widget(self) -> forms.Widget:
        return forms.Textarea({"rows": self.rows, "maxlength": self.max_length})


class LongSelect(forms.Select):
    """A select without groups. Django renders each option by two templates, which takes 30 µs.

    `option_language` marks the texts as being in another language than the page: see `Choice`.
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

    def _options(self) -> Choices:
        """The choices. Django would normalize those of a function, which takes 1 ms for 600."""
        choices = self.choices
        given = choices.func() if isinstance(choices, CallableChoiceIterator) else choices
        return tuple((str(value), str(text)) for value, text in given)


@lru_cache(maxsize=32)
def _html(options: Choices, language: str) -> str:
    named = f' lang="{language}"' if language else ""

    def option(value: str, text: str) -> str:
        lang = named.format(value) if value else ""
        return f'<option value="{escape(value)}"{lang}>{escape(text)}</option>'

    return "".join(option(*item) for item in options)


@dataclass(frozen=True)
class Choice(Kind):
    """One of several texts. Django calls `choices` for each page, in the language of the page.

    If the texts are in another language than the page, `language` names it, such as `en`. `{}`
    means that the value of each choice is the language of its text.
    """

    is_known: Callable[[str], bool]
    choices: Callable[[], Any]
    message: Any = _UNKNOWN
    language: str = ""

    def clean(self, typed: str) -> str:
        text = typed.strip()
        if not self.is_known(text):
            raise ValidationError(self.message, code="choice")
        return text

    def widget(self) -> forms.Widget:
        select = LongSelect(choices=self.choices)  # type: ignore[arg-type]  # a function
        select.option_language = self.language
        return select


class Code(Choice):
    """A code in capital letters. People may type small ones."""

    def clean(self, typed: str) -> str:
        return super().clean(typed.upper())


#: The ISO 3166 code of a country.
COUNTRY = Code(is_country, country_choices, _("Enter a country code such as DE."))
#: The ISO 4217 code of a currency in use today.
CURRENCY = Code(is_currency, currency_choices, _("Enter a currency code such as EUR."))


class FormField(forms.CharField):
    """A form field of a kind, whose value is what `read` returns."""

    def __init__(
        self,
        kind: Kind,
        read: Callable[[str], Any],
        attrs: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        # Not `autocomplete="off"`: then browsers do not restore what was typed after going back.
        widget = kind.widget()
        widget.attrs |= attrs or {}
        super().__init__(widget=widget, **options)
        # The kind refuses null characters in its own words.
        self.validators.clear()
        self._read = read

    def clean(self, value: Any) -> Any:
        return self._read(super().clean(value))


def check_text(
    text: str, max_length: int, unprintable: Any = UNPRINTABLE, *, has_lines: bool = False
) -> None:
    """Refuse a text that is too long, or has characters that cannot be shown."""
    if len(text) > max_length:
        raise ValidationError(
            _("Use at most %(limit)s characters."), "max_length", {"limit": max_length}
        )
    line = text.replace("\n", "") if has_lines else text
    # Python does not call spaces of other scripts printable, so the categories decide.
    is_unprintable = not line.isprintable() and any(
        unicodedata.category(char) in _UNPRINTABLE_CATEGORIES for char in line
    )
    # Django puts U+FFFD in place of bytes that are not UTF-8.
    if is_unprintable or _DIRECTION_OVERRIDES.search(text) or "\N{REPLACEMENT CHARACTER}" in text:
        raise ValidationError(unprintable, code="unprintable")


def folded(text: str) -> str:
    """Equal for texts that people search alike: `Café` and `CAFE`, `ｶﾞ` and `ガ`."""
    apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    return unicodedata.normalize("NFKC", _ACCENTS.sub("", apart))
