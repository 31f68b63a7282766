"""Forms of models, with the options of Django's `ModelForm`.

    class MemberForm(ModelForm[Member]):
        class Meta:
            model = Member
            fields = ["email", "club", "card"]

    form = MemberForm(request.POST or None, instance=member)  # without `instance`: a new member
    if form.is_valid() and form.try_save():
        return redirect(…)

A hidden field extends the guarantees of the model from one page to the next:

- The form of a new item has a signed request id, so a form that is sent twice creates once.
- The form of a stored item has the signed version that it was shown with. If the item changed
  since, the form is refused, even if the view has read the new values. It keeps what was typed,
  shows what is stored now, and can be sent again. If the typed values are stored already, the form
  succeeds, and further writes of the view are refused.

A template must therefore show the hidden fields, as `{{ form }}` does. Taken values are errors at
their fields. `null=True` and `default=""` mean that a field is not required. Unlike in Django,
`save(commit=False)` is refused: set further values on `form.instance`.
"""

import re
import uuid
from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

from django import forms
from django.core import signing
from django.core.exceptions import NON_FIELD_ERRORS, FieldError, ValidationError as Invalid
from django.forms import models as djangos
from django.http import QueryDict
from django.utils.choices import flatten_choices

# Under other names, `make messages` leaves out the texts of Django's own catalogues.
from django.utils.translation import (
    gettext as djangos_text,
    gettext_lazy as _,
    gettext_lazy as djangos_lazy,
)

from dynamo import exceptions
from dynamo.exceptions import ErrorWithValues
from dynamo.model.base import Model, accept_stored
from dynamo.model.objects import VERSION
from dynamo.runtime.altering import AltersData
from dynamo.transactions import Transaction
from dynamo.wire.attributes import StrOrPromise
from dynamo.wire.fields import AttributeField
from dynamo.wire.types import Item
from dynamo.wire.values import ITEM_MAX_BYTES, item_bytes, typed_value

__all__ = ["REQUEST_ID_SECONDS", "ModelForm", "RequestIdForm", "modelform_factory"]

REQUEST_ID = "request_id"

CHANGED = _(
    "The %(noun)s was changed after this page was opened, so nothing was done. Check what is "
    "stored now, then send the form again."
)
DELETED = _("The %(noun)s was deleted after this page was opened, so nothing was done.")
INVALID = djangos_lazy("Enter a valid value.")
INCOMPLETE = _(
    "The hidden field %(name)s is missing or was changed, so nothing was done. Send the form again."
)
USED = _("This form was sent before, with other values. Send it again to create another %(noun)s.")
DONE = _("Part of this was done before, so nothing was done now.")
STORED = _("Stored now: %(value)s")
TOO_LARGE = _("This is too large to be stored.")

if TYPE_CHECKING:
    # Type variables have defaults since Python 3.13. With them, apps can leave the model out, as in
    # `class Members(ListView)`.
    from typing_extensions import TypeVar as WithDefault

    M = WithDefault("M", bound=Model, default=Any)
else:
    M = TypeVar("M")


def _as_returned(field: forms.Field, value: object) -> object:
    """The form of a value in which it is compared.

    Browsers drop microseconds and send other line breaks.
    """
    if isinstance(value, datetime) and not field.widget.supports_microseconds:
        return value.replace(microsecond=0)
    if isinstance(value, (set, frozenset)):
        # An empty collection is not stored.
        return value or None
    if isinstance(value, Model):
        return value.pk
    if isinstance(value, str):
        text = "\n".join(re.split("\r\n?|\n", value))
        return text.strip() if getattr(field, "strip", False) else text
    return value


def refused_values(item: Model, names: Collection[str]) -> Iterator[tuple[str | None, Invalid]]:
    """The errors of a write of `item`: keys and unique values that are too long, a too large item.

    Yields each error with the attribute of `names` that it concerns, or None.
    """
    stored = item.serialize(null_check=False)
    checks: list[tuple[str, Callable[[Item], object]]] = []
    key_name = item._key_names()[0]
    if key_name in names and not item.stored and item._identity() is not None:
        checks.append((key_name, item._check_key))
    for unique in item._unique_keys:
        if own := [name for name in unique.names if name in names]:
            # The longest value is probably the one that is too long to be compared.
            longest = max(own, key=lambda name: len(str(getattr(item, name))))
            checks.append((longest, unique.key))
    for name, check in checks:
        try:
            check(stored)
        except ValueError:
            yield name, Invalid(INVALID, "invalid")
    if item_bytes(stored) > ITEM_MAX_BYTES:
        yield None, Invalid(TOO_LARGE, code="too_large")


class HiddenField(forms.CharField):
    """The request id or the version. It is not typed, and a blank form of a formset has it too."""

    def has_changed(self, initial: object, data: object) -> bool:
        return False


class ModelFormMetaclass(djangos.ModelFormMetaclass):
    """Django's metaclass, which keeps the fields that are attributes of the model."""

    def __new__(
        mcs, name: str, bases: tuple[type, ...], attrs: dict[str, object], **options: object
    ) -> "ModelFormMetaclass":
        form: Any = super().__new__(mcs, name, bases, attrs, **options)
        opts, form.model_fields = form._meta, {}
        if opts.model is None:
            return form
        known = opts.model._meta.by_name
        left_out = set(opts.exclude or ())
        form.model_fields = {
            name: known[name]
            for name in (known if opts.fields is None else opts.fields)
            if name in known.keys() & form.base_fields.keys() - left_out and known[name].editable
        }
        for field in set(opts.fields or ()) - form.base_fields.keys() - left_out:
            if not opts.formfield_callback:
                kind = type(known[field].attribute).__name__
                raise FieldError(
                    f"{name} cannot have a field for '{field}', a {kind}: declare one in the form, "
                    "or name its class in Meta.field_classes."
                )
        return form


class ModelForm(AltersData, djangos.BaseModelForm, Generic[M], metaclass=ModelFormMetaclass):
    """A form that creates an item of `Meta.model`, or changes `instance`; see the module.

    `instance` may be a new object with values that the form does not show. Until the form is saved,
    such values can also be set on `form.instance`.
    """

    _alters_data = "save try_save"

    base_fields: ClassVar[dict[str, forms.Field]]
    declared_fields: ClassVar[dict[str, forms.Field]]
    #: The fields that are attributes of the model.
    model_fields: dict[str, AttributeField]

    #: Whether the version may be missing, as on pages that delete, which show no values.
    version_optional = False

    instance: M

    if TYPE_CHECKING:
        # A method of Django that its stubs lack.
        def _update_errors(self, errors: Invalid) -> None: ...

    def __init__(self, *args: Any, **options: Any) -> None:
        model: Any = self._meta.model
        given = options.get("instance")
        if model is not None and not isinstance(given, (model, NoneType)):
            raise TypeError(
                f"The instance of a {type(self).__name__} is a {model.__name__}, not {given!r}."
            )
        super().__init__(*args, **options)
        # If the item of a form was deleted, `instance` has only its key.
        has_key = options.get("instance") is not None and self.instance._identity() is not None
        was_edit = has_key and self.add_prefix(VERSION) in self.data
        self._is_edit = bool(self.instance.stored) or was_edit
        for name, value in self.model_fields.items():
            if self._is_edit and (value.attribute.is_hash_key or value.attribute.is_range_key):
                self.fields[name].disabled = True
        self._hidden = VERSION if self._is_edit else REQUEST_ID
        if not self._is_edit:
            model.check_request_ids()
            # The values that neither the form nor the caller has set.
            self._defaults = self.instance.serialize(null_check=False)
        # Without this, Firefox keeps the old value when the page is loaded again.
        widget = forms.HiddenInput(attrs={"autocomplete": "off"})
        self.fields[self._hidden] = HiddenField(widget=widget, required=False, label="")
        self.initial[self._hidden] = self._signed()

    # The hidden field -----------------------------------------------------------------------------

    def _signer(self, name: str = "") -> signing.Signer:
        of = self.instance._owner() if self._is_edit else ""
        name = name or self._hidden
        return signing.Signer(salt=f"dynamo.forms.{name}.{self.instance.table()}.{of}")

    def _version(self) -> str:
        # Items that were stored without a version have none.
        return str(self.instance.stored.get(VERSION, {}).get("N", ""))

    def _signed(self) -> str:
        return self._signer().sign(self._version() if self._is_edit else str(uuid.uuid4()))

    def hidden_value(self) -> str | None:
        """The request id or the version that the form was shown with; None if it is not genuine."""
        try:
            return self._signer().unsign(self.data.get(self.add_prefix(self._hidden)) or "")
        except signing.BadSignature:
            return None

    # Checking -------------------------------------------------------------------------------------

    def _post_clean(self) -> None:
        # The constructor of a subclass may have removed some fields.
        own = self.model_fields.items()
        self.model_fields = {name: field for name, field in own if name in self.fields}
        if self._is_edit:
            for name in self.model_fields.keys() & self.cleaned_data.keys():
                stored = getattr(self.instance, name)
                field = self.fields[name]
                if _as_returned(field, stored) == _as_returned(field, self.cleaned_data[name]):
                    self.cleaned_data[name] = stored
        for name in self.model_fields:
            if name in self.cleaned_data and not self.fields[name].disabled:
                self._take_value(name, self.cleaned_data[name])
        others = self.instance._meta.by_name.keys() - self.model_fields.keys()
        try:
            # Unique values are checked by the write.
            self.instance.full_clean(others | self.errors.keys(), False, False)
        except Invalid as error:
            self._update_errors(error)
        self._check_hidden()
        self._check_item()

    def _check_hidden(self) -> None:
        shown = self.hidden_value()
        is_overtaken = self._is_edit and shown not in (None, self._version())
        may_lack = self.version_optional and self.add_prefix(VERSION) not in self.data
        if shown is None and not may_lack:
            self._refuse(INCOMPLETE, "hidden")
        elif self._is_edit and not self.instance.stored:
            self._refuse(DELETED, "deleted")
        elif is_overtaken and (self._different() or not self.model_fields):
            self._refuse(CHANGED, "stale")
        elif is_overtaken:
            # The form was sent twice, so there is nothing to write. Further writes of the view are
            # refused, because they are based on the item that the page showed.
            try:
                self.instance.expect_version(int(shown) if shown else None)
            except self.instance.Stale:
                self._add_stale()

    def _take_value(self, name: str, value: object) -> None:
        """Set a value that was typed on the item, or add the error why it cannot be stored."""
        field = self.fields[name]
        model_field = self.model_fields[name]
        is_omitted = field.widget.value_omitted_from_data(
            self.data, self.files, self.add_prefix(name)
        )
        if is_omitted and model_field.has_default() and value in field.empty_values:
            return
        attribute = model_field.attribute
        try:
            typed = typed_value(attribute, value)
            self.instance._check_index_keys({str(attribute.attr_name): typed})
        except (ArithmeticError, TypeError, ValueError):
            self._add_djangos(name, Invalid(INVALID, "invalid"))
        else:
            if value is None and not attribute.null:
                required = forms.Field.default_error_messages["required"]
                self._add_djangos(name, Invalid(required, code="required"))
            setattr(self.instance, name, value)

    def _check_item(self) -> None:
        """Add the errors of a write before it is sent."""
        usable = [name for name in self.model_fields if name not in self.errors]
        for name, error in refused_values(self.instance, usable):
            self._add_djangos(name or NON_FIELD_ERRORS, error)

    # Errors ---------------------------------------------------------------------------------------

    def _different(self) -> dict[str, object]:
        """The stored values of the fields in which another value was typed."""
        now = self.instance.__class__.from_raw_data(self.instance.stored)
        stored = {name: getattr(now, name) for name in self.model_fields}
        typed = self.cleaned_data
        return {n: value for n, value in stored.items() if n not in typed or typed[n] != value}

    def _refuse(self, message: StrOrPromise, code: str) -> None:
        """Show why nothing was written, and what is stored now. The form can be sent again."""
        different = self._different() if self.instance.stored else {}
        params = {"noun": self.instance._noun(), "name": self._hidden}
        self.add_error(None, Invalid(message, code=code, params=params))
        for name, value in different.items():
            params = {"value": self._shown(self.fields[name], value)}
            self.add_error(name, Invalid(STORED, code=code, params=params))
        data = cast(QueryDict, self.data).copy()
        data[self.add_prefix(self._hidden)] = self._signed()
        self.data = data

    @staticmethod
    def _shown(field: forms.Field, value: object) -> str:
        if getattr(field.widget, "input_type", "") == "password":
            return "********"
        if isinstance(value, bool):
            return djangos_text("Yes") if value else djangos_text("No")
        pairs: Any = flatten_choices(getattr(field.widget, "choices", ()))
        labels = {str(choice): str(label) for choice, label in pairs}
        shown = None if value is None else field.widget.format_value(field.prepare_value(value))
        return labels.get(str(value)) or ("–" if shown is None else str(shown))

    def _add_djangos(self, name: str, error: Invalid) -> None:
        """Add an error of Django.

        `error_messages` of the field or the form can replace its text.
        """
        self._update_errors(Invalid({name if name in self.fields else NON_FIELD_ERRORS: error}))

    def add_refusal(self, error: Exception) -> None:
        """Show why a write of this form's item was refused, each reason at its field.

        Raises `error` if it concerns something else. If the item changed in the meantime, it is
        read: 1 request and 1 read unit per 4 KB.
        """
        model: Any = self._meta.model
        errors = error.exceptions if isinstance(error, exceptions.Refused) else [error]
        own_errors = (model.Taken, model.Stale, model.AlreadyExists, model.RequestIdReused)
        for item in errors:
            of_field = getattr(item, "reference", "") in self.fields
            if not (of_field or isinstance(item, (*own_errors, exceptions.AlreadyDone))):
                raise error
        for item in errors:
            if at_fields := [*self.instance._errors_at_fields(item)]:
                for place, invalid in at_fields:
                    self._add_djangos(place, invalid)
            elif isinstance(item, model.RequestIdReused):
                self._refuse(USED, "request_id")
            elif isinstance(item, exceptions.AlreadyDone):
                self._refuse(DONE, "done")
            else:
                self._add_stale()

    def _add_stale(self) -> None:
        try:
            self.instance.refresh()
        except self.instance.DoesNotExist:
            self.instance.stored = {}
        self._refuse(*((CHANGED, "stale") if self.instance.stored else (DELETED, "deleted")))

    # Saving ---------------------------------------------------------------------------------------

    def save(self, commit: bool = True, *, write: Transaction | None = None) -> M:
        """Store the item of a valid form; return it.

        With `write`, the form joins the caller's transaction. It has the costs and errors of the
        model's `create` and `change`; `add_refusal` shows the errors in the form.

        Raises:
            Taken, AlreadyExists, RequestIdReused, Stale: the write was refused.
            ValueError: the form is not valid.
        """
        if not commit:
            raise TypeError(
                "save(commit=False): set further values on form.instance, then call form.save(). "
                "It writes under the version or the request id that the form was shown with."
            )
        if not self.is_bound or self.errors:
            verb = "changed" if self._is_edit else "created"
            raise ValueError(
                f"The {self.instance.__class__.__name__} could not be {verb} because the data "
                "didn't validate."
            )
        # A new item is stored already if this form was saved before, for example in `form_valid`.
        if self._is_edit or self.instance.stored:
            typed = self.instance._assigned(self.instance.stored)
            try:
                self.instance.save(write=write)
            except self.instance.Stale:
                # The form may have been sent twice.
                if write is not None or not accept_stored(self.instance, typed):
                    raise
            return self.instance
        given = {name: getattr(self.instance, name) for name in self.instance._given}
        chosen = given | self.instance._assigned(self._defaults)
        return self.instance.insert_for(str(self.hidden_value()), chosen, write)

    def try_save(self) -> M | None:
        """Like `save`, but if the write is refused, show why in the form and return None."""
        try:
            return self.save()
        except ErrorWithValues as error:
            self.add_refusal(error)
            return None


#: A form can be sent for this long after it was shown.
REQUEST_ID_SECONDS = 24 * 60 * 60


class RequestIdForm(forms.Form):
    """A form with a hidden request id.

    A new form draws one. `request_id_salt` names the kind of form, so an id of another kind is
    rejected. `request_id_refused` is the error shown for an id that is invalid or too old.
    """

    request_id = forms.CharField(widget=forms.HiddenInput, required=False)

    request_id_salt: ClassVar[str]
    request_id_refused: ClassVar[StrOrPromise] = _(
        "This form was open for more than a day, or it is not from this site. Nothing was done. "
        "Send it again."
    )

    @classmethod
    def new_request_id(cls) -> str:
        """A signed request id for one form of this kind."""
        return signing.TimestampSigner(salt=cls.request_id_salt).sign(str(uuid.uuid4()))

    def get_initial_for_field(self, field: forms.Field, field_name: str) -> Any:
        if field_name == "request_id" and field_name not in self.initial:
            return self.new_request_id()
        return super().get_initial_for_field(field, field_name)

    def clean_request_id(self) -> str:
        """The request id without its signature."""
        signer = signing.TimestampSigner(salt=self.request_id_salt)
        try:
            return signer.unsign(self.cleaned_data["request_id"], max_age=REQUEST_ID_SECONDS)
        except signing.BadSignature as error:
            raise Invalid(self.request_id_refused, code="request_id") from error

    def add_error(self, field: str | None, error: Any) -> None:
        """Like Django's method. Renews a request id that was refused."""
        super().add_error(field, error)
        if field == "request_id":
            self.renew_request_id()

    def renew_request_id(self) -> None:
        """Give the bound form a new request id before it is shown again."""
        data = cast(QueryDict, self.data).copy()
        data[self.add_prefix("request_id")] = self.new_request_id()
        self.data = data


def modelform_factory(
    model: type[M], form: type[ModelForm[M]] = ModelForm, **options: object
) -> type[ModelForm[M]]:
    """A form class for `model`, with the options of `Meta` as arguments; see Django's."""
    make: Any = djangos.modelform_factory
    return make(model, form, **options)
