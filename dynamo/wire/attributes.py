"""Attributes with the options of Django's model fields, for models and their forms.

    email = TextAttribute(_("email address"), max_length=254)

label             what forms and messages call it; by default made from the attribute's name
null              it may be absent, and forms do not require it
blank             whether forms accept no value; by default if `null` or `default` say so. A text
                  with `blank=True` alone has the default ""
unique            short for `unique_<name> = Unique("<name>")`, which compares values as they are
default           a constant also stands for a stored item without the attribute, unless `null`;
                  a function is called for new items only. A constant is hashable: `list`, not `[]`
help_text, choices, max_length, validators, error_messages
                  as in Django; forms apply them
min_value, max_value, max_digits, decimal_places
                  of numbers, the last two of decimal ones, as in Django; forms apply them
auto_now, auto_now_add
                  of dates: the time of the last write that changed something, or of the creation,
                  unless the caller gives one. Forms leave it out
editable          False: forms leave it out
sensitive         True: the admin neither shows nor logs it
attr_name         the stored name, if it differs

PynamoDB's own attributes work as well. They have no options, so forms use defaults.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Context, Decimal, Inexact, InvalidOperation, Subnormal
from difflib import get_close_matches
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Never, TypeAlias, TypeVar

from django.core.serializers.json import DjangoJSONEncoder
from django.utils.functional import Promise
from pynamodb.attributes import Attribute
from pynamodb.constants import BOOLEAN, NUMBER, STRING

Value = TypeVar("Value")

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise

    StrOrPromise: TypeAlias = _StrOrPromise
else:
    StrOrPromise = str | Promise

#: DynamoDB's numbers: 38 digits, 1E-130 to 9.99E+125. A number that is too large is inexact.
_NUMBERS = Context(prec=38, Emin=-130, Emax=125, traps=[InvalidOperation, Inexact, Subnormal])

#: What to use instead of other options of Django's fields.
_INSTEAD = {
    "db_collation": "Unique(…, normalize=casefolded)",
    "db_column": "attr_name",
    "db_default": "default",
    "db_index": "a GlobalSecondaryIndex in the class",
    "db_table": "table_name in the class Meta",
    "on_delete": "a count on the other item: a deletion does not look for references",
    "primary_key": "hash_key=True",
    "related_name": "a GlobalSecondaryIndex in the class",
    "unique_for_date": "Unique of two attributes in the class",
    "unique_for_month": "Unique of two attributes in the class",
    "unique_for_year": "Unique of two attributes in the class",
    "verbose_name": "the label, which is the first argument",
}


#: The least similarity of a misspelled name, as `difflib` measures it: one wrong letter of four.
_NEAR = 0.75


def nearest(name: str, known: Iterable[str]) -> str:
    """The name among `known` that `name` probably means; empty if none is similar."""
    return next(iter(get_close_matches(name, known, 1, _NEAR)), "")


def nearest_or_all(name: str, known: Collection[str]) -> str:
    """What to use instead of the unknown `name`: the nearest of the `known` names, or all."""
    return nearest(name, known) or f"one of its options: {', '.join(known)}"


class FormAttribute(Attribute[Value]):
    """The base of attributes that have Django's options; see the module."""

    #: The types of a value. A value of another type is a TypeError before a request is sent.
    value_types: tuple[type, ...] = ()
    #: The options that only some attributes have.
    own_options: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        label: StrOrPromise | None = None,
        *,
        hash_key: bool = False,
        range_key: bool = False,
        null: bool = False,
        blank: bool | None = None,
        unique: bool = False,
        default: Any = None,
        default_for_new: Any = None,
        attr_name: str | None = None,
        help_text: StrOrPromise = "",
        max_length: int | None = None,
        choices: object = None,
        min_value: object = None,
        max_value: object = None,
        max_digits: int | None = None,
        decimal_places: int | None = None,
        auto_now: bool = False,
        auto_now_add: bool = False,
        validators: Sequence[Callable[[Any], object]] = (),
        error_messages: Mapping[str, object] | None = None,
        editable: bool = True,
        sensitive: bool = False,
        **unknown: Never,
    ) -> None:
        some = {
            "max_length": max_length,
            "min_value": min_value,
            "max_value": max_value,
            "max_digits": max_digits,
            "decimal_places": decimal_places,
            "auto_now": auto_now or None,
            "auto_now_add": auto_now_add or None,
        }
        for option, value in (some | unknown).items():
            if option in unknown or (value is not None and option not in self.own_options):
                raise TypeError(self._refusal(option))
        if not isinstance(label, (str, Promise, NoneType)):
            raise TypeError(f"The label is a text, not {label!r}. Name other options.")
        kinds = (str, list, tuple)
        if isinstance(choices, kinds) and any(isinstance(item, str) for item in choices):
            raise TypeError("choices has pairs of a value and its label: [('red', 'Red')].")
        if type(max_length) not in {int, NoneType}:
            raise TypeError(f"max_length is a number of characters, not {max_length!r}.")
        if callable(validators) or not all(map(callable, validators)):
            raise TypeError(f"validators is a list of functions, not {validators!r}.")
        if auto_now or auto_now_add:
            if hash_key or range_key or default is not None or default_for_new is not None:
                raise TypeError("auto_now and auto_now_add are not for keys, nor with a default.")
            default_for_new, editable = self.now, False
        if blank and not null and default is default_for_new is None and str in self.value_types:
            default = ""
        if default is not None and default_for_new is not None:
            raise ValueError("An attribute has one default: default or default_for_new.")
        if default is not None and (null or callable(default)):
            default, default_for_new = None, default
        for item in (default, default_for_new):
            # As in dataclasses, a default must be hashable, because it must not change.
            try:
                hash(item)
            except TypeError:
                raise ValueError(
                    f"The default {item!r} can change, and all items would share it. Give a "
                    f"function that makes one: default=lambda: {item!r}."
                ) from None
        super().__init__(hash_key=hash_key, range_key=range_key, null=null, attr_name=attr_name)
        # This is not passed to PynamoDB, which accepts only a few types of defaults.
        self.default, self.default_for_new = default, default_for_new
        self.label = label
        self.help_text = help_text
        self.max_length = max_length
        self.choices = getattr(choices, "choices", choices)
        self.blank = blank
        self.unique = unique
        self.min_value, self.max_value = min_value, max_value
        self.max_digits, self.decimal_places = max_digits, decimal_places
        self.auto_now = auto_now
        self.validators = list(validators)
        self.error_messages = dict(error_messages or {})
        self.editable = editable
        self.sensitive = sensitive

    @classmethod
    def _refusal(cls, option: str) -> str:
        kinds = FormAttribute.__subclasses__()
        if owners := [kind.__name__ for kind in kinds if option in kind.own_options]:
            return f"{option} is an option of {' and '.join(owners)}."
        of_some = {name for kind in kinds for name in kind.own_options}
        known = sorted({*(FormAttribute.__init__.__kwdefaults__ or ())} - of_some)
        instead = _INSTEAD.get(option) or nearest_or_all(option, [*known, *cls.own_options])
        return f"{cls.__name__} has no option {option}. Use {instead}."

    @staticmethod
    def now() -> object:
        """The value of `auto_now` and `auto_now_add`."""

    def serialize(self, value: Any) -> Any:
        is_bool = value is True or value is False
        if not isinstance(value, self.value_types) or (is_bool and bool not in self.value_types):
            expected = " or ".join(kind.__name__ for kind in self.value_types)
            text = f"A value of {self.attr_name} is {expected}, not {type(value).__name__}."
            if self.attr_type == NUMBER and hasattr(value, "resolve_expression"):
                text += f' To count up, call change(add={{"{self.attr_name}": 1}}).'
            raise TypeError(text)
        return self.stored(value)

    def stored(self, value: Any) -> Any:
        """The value as stored, for `serialize`."""
        return value


class TextAttribute(FormAttribute[str]):
    """A text, stored as S."""

    attr_type = STRING
    value_types = (str,)
    own_options = ("max_length",)

    def serialize(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.stored(value)
        # A lazy translation is stored as its text, as in Django.
        return super().serialize(str(value) if isinstance(value, Promise) else value)

    def stored(self, value: str) -> str:
        # The plain text. A member of an enumeration may have its name as `str`.
        return str.__str__(value)


class IntegerAttribute(FormAttribute[int]):
    """An integer, stored as N.

    It is exact, unlike PynamoDB's NumberAttribute, which uses floats.
    """

    attr_type = NUMBER
    value_types = (int,)
    own_options = ("min_value", "max_value")

    def stored(self, value: int) -> str:
        return number_text(value)

    def deserialize(self, value: str) -> int:
        exact = Decimal(value)
        # The integer 1e9999999 has ten million digits. Integers of DynamoDB have at most 126.
        if not exact.is_finite() or exact.adjusted() > 125:
            raise ValueError(f"{value} is not a number of DynamoDB.")
        number = int(exact)
        if number != exact:
            raise ValueError(f"{value} is not an integer.")
        return number


class DecimalAttribute(FormAttribute[Decimal]):
    """A decimal number, stored as N, exact to 38 digits.

    DynamoDB stores 1.50 as 1.5, which is read as `1.5`, and with `decimal_places=2` as `1.50`.
    """

    attr_type = NUMBER
    value_types = (Decimal, int)
    own_options = ("min_value", "max_value", "max_digits", "decimal_places")

    def stored(self, value: Decimal | int) -> str:
        return number_text(value)

    def deserialize(self, value: str) -> Decimal:
        number = Decimal(value)
        places = self.decimal_places
        if places is None or number.adjusted() + places >= _NUMBERS.prec:
            return number
        padded = Decimal(f"{number:.{places}f}")
        return padded if padded == number else number


def number_text(number: Decimal | float | str) -> str:
    """The text that DynamoDB returns for a number: `1.5` for 1.50, `100` for 1E+2, `0` for -0.

    Raises:
        ValueError: DynamoDB cannot store it exactly.
    """
    if type(number) is int and abs(number) < 10**_NUMBERS.prec:
        return str(number)
    try:
        # A float stands for the decimal number that Python prints.
        number = Decimal(float.__repr__(number) if isinstance(number, float) else number)
        exact = number.normalize(_NUMBERS)
        if not exact.is_finite():
            raise InvalidOperation
    except ArithmeticError:
        raise ValueError(
            f"DynamoDB cannot store {number}: a number has up to 38 digits, and its magnitude is 0 "
            "or 1E-130 to 9.99E+125."
        ) from None
    return f"{exact or Decimal():f}"


class BooleanAttribute(FormAttribute[bool]):
    """True or False, stored as BOOL."""

    attr_type = BOOLEAN
    value_types = (bool,)


class DateAttribute(FormAttribute[date]):
    """A date, stored as the text `2026-11-21`."""

    attr_type = STRING
    value_types = (date,)
    own_options = ("auto_now", "auto_now_add")
    now = staticmethod(date.today)

    def stored(self, value: date) -> str:
        if isinstance(value, datetime):
            raise TypeError(f"A value of {self.attr_name} is a date, not a date with a time.")
        return value.isoformat()

    def deserialize(self, value: str) -> date:
        return date.fromisoformat(value)


class DateTimeAttribute(FormAttribute[datetime]):
    """A point in time with a time zone, stored in UTC as PynamoDB's UTCDateTimeAttribute does.

    `2026-11-21T10:00:00.000000+0000`. The texts of two times sort as the times do.

    Times that other programs wrote are read as well, in ISO 8601 with a date, a time and `Z` or an
    offset: `2026-11-21T11:00:00+01:00`. DynamoDB compares texts, so keys, conditions and the order
    of an index are correct only for the form above.
    """

    attr_type = STRING
    value_types = (datetime,)
    own_options = ("auto_now", "auto_now_add")
    now = staticmethod(partial(datetime.now, UTC))

    def stored(self, value: datetime) -> str:
        if value.tzinfo is None:
            raise ValueError(f"The time {value} of {self.attr_name} needs a time zone.")
        # The %Y of strftime has no leading zeros.
        utc = value.astimezone(UTC).replace(tzinfo=None)
        return f"{utc.isoformat(timespec='microseconds')}+0000"

    def deserialize(self, value: str) -> datetime:
        time = datetime.fromisoformat(value)
        if time.tzinfo is None:
            raise ValueError(f"The time {value} has no time zone.")
        return time.astimezone(UTC)


class JSONAttribute(FormAttribute[Any]):
    """Any value that JSON has, stored as a JSON text like that of PynamoDB's JSONAttribute."""

    attr_type = STRING
    value_types = (object, bool)

    def stored(self, value: object) -> str:
        return json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False, allow_nan=False)

    def deserialize(self, value: str) -> Any:
        return json.loads(value)
