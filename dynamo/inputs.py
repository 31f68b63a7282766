"""Attributes whose values people type: label, limits, cleaning, form field and stored form in one.

    business_name = SingleLine(_("Business name"), max_length=150, null=True)

They are attributes of the library with two more methods: `clean` returns the value to store for a
typed text, and `form_field` the field of a form. The account's model and the documents of
`invoices` declare their values with them. Pages, commands and imports use them to clean values. A
clean value does not change if it is cleaned again.

`LongSelect` renders lists of choices, because they have hundreds of options, or are on pages that
must be fast.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import lru_cache
from typing import Any, Self, TypeVar

from django import forms
from django.core.exceptions import ValidationError
from django.forms.utils import flatatt
from django.utils.choices import CallableChoiceIterator
from django.utils.html import escape
from django.utils.safestring import SafeString

# Under another name, `make messages` leaves out the texts of Django's own catalogues.
from django.utils.translation import gettext_lazy as _, gettext_lazy as djangos_lazy

from dynamo.wire.attributes import FormAttribute, StrOrPromise, TextAttribute

UNPRINTABLE = _("Use printable characters only.")
_UNKNOWN = _("Select one of the choices.")

_DIRECTION_OVERRIDES = re.compile("[\u202a-\u202e\u2066-\u2069]")
# Control characters, lone surrogates, line and paragraph separators.
_UNPRINTABLE_CATEGORIES = {"Cc", "Cs", "Zl", "Zp"}
# Printable characters that show nothing. U+FFFC represents an object.
_INVISIBLE = dict.fromkeys(map(ord, "\u034f\u200c\u200d\u200e\u200f\u2060\u2800\ufffc"))

Value = TypeVar("Value")

Choices = tuple[tuple[str, str], ...]

#: The input element of a form field; None for that of its attribute.
Widget = forms.Widget | type[forms.Widget] | None


def in_camel_case(name: str) -> str:
    """The stored name of a Python name: `fullName`."""
    first, *others = name.split("_")
    return "".join([first, *map(str.capitalize, others)])


class InputAttribute(FormAttribute[Value]):
    """The base of attributes that people type. Without a label, only programs set the value.

    `attrs` are attributes of the input element, `initial` is the value in a new form. Other options
    are the library's. By default, the stored name is the name in camel case.
    """

    name = ""

    def __init__(
        self,
        label: StrOrPromise | None = None,
        *,
        attrs: Mapping[str, object] | None = None,
        initial: str = "",
        **options: Any,
    ) -> None:
        super().__init__(label, **options)
        self.attrs = attrs or {}
        self.initial = initial

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.attr_name = self.attr_name or in_camel_case(name)

    @property
    def is_required(self) -> bool:
        """Whether a blank text is refused.

        Otherwise `default`, which may be None, is stored for it.
        """
        return not self.null and self.default is None

    @property
    def is_typed(self) -> bool:
        # This compares, because a lazy text cannot be evaluated while modules are imported.
        return self.label is not None

    def variant(self, **changes: object) -> Self:
        """The same attribute, with other options."""
        changed = copy(self)
        vars(changed).update(changes)
        return changed

    def clean(self, typed: object, *, in_form: bool = False) -> Any:
        """The value to store for a text from a form, or for a value from a program.

        Raises:
            ValidationError
        """
        text = "" if typed is None else str(typed)
        if text.translate(_INVISIBLE).strip():
            return self.parse_in_form(text) if in_form else self.parse(text)
        if self.is_required:
            raise ValidationError(djangos_lazy("This field is required."), code="required")
        return self.default

    def parse(self, text: str) -> object:
        """The value of a text that is not blank. Raises ValidationError."""
        return self.deserialize(text)

    def parse_in_form(self, text: str) -> object:
        """Like `parse`, for a text that a person typed."""
        return self.parse(text)

    def to_text(self, value: object) -> str:
        """The value as stored, which `parse` takes; empty for None."""
        return "" if value is None else str(self.stored(value))

    def to_typed(self, value: object) -> str:
        """The value as a person would type it into a form; empty for None."""
        return self.to_text(value)

    def widget(self) -> forms.Widget:
        """The input element."""
        return forms.TextInput()

    def form_field(self, *, widget: Widget = None, **changes: object) -> forms.Field:
        """A form field for the attribute, or for its `variant`. By default its `widget` is used."""
        return _FormField(self.variant(**changes), widget)


class _FormField(forms.CharField):
    """A form field whose value is the stored value."""

    def __init__(self, attribute: InputAttribute, widget: Widget) -> None:
        # Without `autocomplete="off"`, browsers restore what was typed after going back.
        if widget is None:
            widget = attribute.widget()
            widget.attrs |= attribute.attrs
        super().__init__(
            widget=widget,
            label=attribute.label,
            help_text=attribute.help_text,
            initial=attribute.initial,
            required=attribute.is_required,
        )
        # The attribute refuses null characters with its own message.
        self.validators.clear()
        self._attribute = attribute

    def clean(self, value: object) -> object:
        return self._attribute.clean(super().clean(value), in_form=True)


class SingleLine(InputAttribute[str], TextAttribute):
    """One line of text. It may have a `rule`, which returns the value to store.

    The message `unprintable` refuses characters that cannot be shown.
    """

    max_length: int

    def __init__(
        self,
        label: StrOrPromise | None = None,
        *,
        max_length: int,
        rule: Callable[[str], str] = str,
        unprintable: StrOrPromise = UNPRINTABLE,
        input: type[forms.Widget] = forms.TextInput,
        **options: Any,
    ) -> None:
        super().__init__(label, max_length=max_length, **options)
        self.rule, self.unprintable, self.input = rule, unprintable, input

    def parse(self, text: str) -> str:
        text = text.strip()
        check_text(text, self.max_length, self.unprintable)
        return self.rule(text)

    def widget(self) -> forms.Widget:
        return self.input({"maxlength": self.max_length})


class MultiLine(SingleLine):
    """Text of any number of lines, in an input of `rows`."""

    def __init__(self, label: StrOrPromise | None = None, *, rows: int = 2, **options: Any) -> None:
        super().__init__(label, **options)
        self.rows = rows

    def parse(self, text: str) -> str:
        text = "\n".join(line.rstrip() for line in text.strip().splitlines())
        check_text(text, self.max_length, has_lines=True)
        return self.rule(text)

    def widget(self) -> forms.Widget:
        return forms.Textarea({"rows": self.rows, "maxlength": self.max_length})


class Choice(InputAttribute[str], TextAttribute):
    """One of several texts. Django calls `offered` for each page, in the language of the page.

    If the texts are in another language than the page, `language` names it, such as `en`. `{}`
    means that the value of each choice is the language of its text.
    """

    def __init__(
        self,
        label: StrOrPromise | None = None,
        *,
        is_known: Callable[[str], bool],
        offered: Callable[[], Iterable[tuple[object, object]]],
        message: StrOrPromise = _UNKNOWN,
        language: str = "",
        **options: Any,
    ) -> None:
        super().__init__(label, **options)
        self.is_known, self.offered, self.message = is_known, offered, message
        self.language = language

    def parse(self, text: str) -> str:
        text = text.strip()
        if not self.is_known(text):
            raise ValidationError(self.message, code="choice")
        return text

    def widget(self) -> forms.Widget:
        select = LongSelect(choices=CallableChoiceIterator(self.offered))
        select.option_language = self.language
        return select


class Code(Choice):
    """A code in capital letters. Lower-case letters are accepted."""

    def parse(self, text: str) -> str:
        return super().parse(text.upper())


class LongSelect(forms.Select):
    """A select without groups. Django renders each option with two templates, which takes 30 µs.

    `option_language` marks the texts as being in another language than the page: see `Choice`.
    """

    option_language = ""

    def render(
        self,
        name: str,
        value: object,
        attrs: dict[str, object] | None = None,
        renderer: object = None,
    ) -> SafeString:
        [chosen] = self.format_value(value) or [""]
        mark = f'value="{escape(chosen)}"'
        options = _html(self._options(), self.option_language)
        own = self.build_attrs(self.attrs, {"name": name, **(attrs or {})})
        marked = options.replace(mark, f"{mark} selected", 1)
        return SafeString(f"<select{flatatt(own)}>{marked}</select>")

    def use_required_attribute(self, initial: object) -> bool:
        """True only if the first option is empty, as in Django."""
        options = self._options()
        is_first_empty = bool(options) and not options[0][0]
        return is_first_empty and forms.Widget.use_required_attribute(self, initial)

    def _options(self) -> Choices:
        """The choices. Django would normalize them, which takes 1 ms for 600 choices."""
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


def check_text(
    text: str, max_length: int, unprintable: StrOrPromise = UNPRINTABLE, *, has_lines: bool = False
) -> None:
    """Refuse a text that is too long, or has characters that cannot be shown."""
    if len(text) > max_length:
        raise ValidationError(
            _("Use at most %(limit)s characters."), "max_length", {"limit": max_length}
        )
    line = text.replace("\n", "") if has_lines else text
    # Python's `isprintable` rejects spaces of other scripts, so the categories decide.
    is_unprintable = not line.isprintable() and any(
        unicodedata.category(char) in _UNPRINTABLE_CATEGORIES for char in line
    )
    # Django puts U+FFFD in place of bytes that are not UTF-8.
    if is_unprintable or _DIRECTION_OVERRIDES.search(text) or "\N{REPLACEMENT CHARACTER}" in text:
        raise ValidationError(unprintable, code="unprintable")
