"""`Reference`: an attribute with the key of another item, which must exist at the write.

    class Appointment(Model):
        patient = Reference(Patient)

    Appointment.create(patient=ann)        # or patient=ann.pk; Patient.DoesNotExist

The transaction of the item checks that its target exists: one ConditionCheck of 2 write units for
each target whose key is set or changed, even if several references name it. A target can be deleted
later.
"""

from copy import copy
from typing import Any, Self

from pynamodb.expressions.operand import Path

from dynamo.client.plain import PlainModel, all_models
from dynamo.client.writes import Write
from dynamo.wire.attributes import TextAttribute
from dynamo.wire.updates import conditional


class Reference(TextAttribute):
    """The key of an item of the model `to`, a class or a label as in Django.

    A label is `"clinic.Patient"`, `"Patient"` for a model of the same app, or `"self"`. The key is
    a single text. The options are those of `TextAttribute`. The value may be set to an object of
    the model, and is its key when it is read.
    """

    #: The model that has this attribute; None in a base without a table.
    model: Any = None

    def __init__(self, to: type[PlainModel] | str, label: Any = None, **options: Any) -> None:
        if not isinstance(to, str) and PlainModel not in getattr(to, "__mro__", ()):
            raise TypeError("Reference takes a model of the library, or its label: 'app.Model'.")
        if callable(label):
            # The second argument of a ForeignKey is `on_delete`.
            options["on_delete"], label = label, None
        if options.get("blank") and not options.get("null"):
            raise TypeError("Reference: blank=True needs null=True, because no key is empty.")
        super().__init__(label, **options)
        self.to = to

    def of(self, model: type[PlainModel]) -> Self:
        """A copy for `model`. Its label is relative to the model's app.

        Raises:
            TypeError: see `target`. A model that is named by a label may be declared later.
        """
        own = copy(self)
        own.model = model
        if not isinstance(own.to, str):
            _ = own.target
        return own

    @property
    def target(self) -> Any:
        """The model that it refers to.

        Raises:
            TypeError: no such model, or its key is not a single text.
        """
        if isinstance(self.to, str):
            self.to = self._labelled(self.to)
        model: Any = self.to
        if [item.attr_type for *_names, item in model._key_attributes()] != ["S"]:
            name = model.__name__
            raise TypeError(f"Reference {self.attr_name}: the key of {name} is not a single text.")
        return model

    def _labelled(self, label: str) -> Any:
        if label == "self":
            return self.model
        if "." not in label:
            label = f"{self.model._meta.app_label}.{label}"
        found = [item for item in all_models() if item._meta.label_lower == label.lower()]
        if not found:
            raise TypeError(
                f"Reference {self.attr_name}: no model has the label {label}. Write app.Model, of "
                "a module that is imported."
            )
        return found[-1]

    def __set__(self, instance: object, value: object) -> None:
        super().__set__(instance, self.key_of(value))

    def serialize(self, value: object) -> str | None:
        return super().serialize(self.key_of(value))

    def key_of(self, value: object) -> Any:
        """The key if `value` is an object of the model; else the value.

        Raises:
            TypeError: it is an object of another model.
        """
        if not isinstance(value, PlainModel):
            return value
        if not isinstance(value, self.target):
            kind = type(value).__name__
            raise TypeError(f"{self.attr_name} refers to {self.target.__name__}, not {kind}.")
        return value.pk

    def check(self, name: str, key: str, part_of: object) -> Write:
        """The check that the item `key` exists, for the attribute `name` of `part_of`.

        Raises:
            DoesNotExist: no item can have the key, for example because it is that of a guard item.
        """
        target = self.target(key, _user_instantiated=False)
        exists = Path(target.key_attribute_names()).exists()
        model = type(target)
        kind = model.get_attributes().get(model._discriminator)
        if kind is not None and kind.get_discriminator(model) is not None:
            # An item with this key may belong to another class of the same table.
            exists &= kind.is_in(*kind.get_registered_subclasses(model))
        error = target.DoesNotExist(f"{name}: there is no {target._noun()} {key}.", name)
        if not target._is_key(key):
            raise error
        request = conditional(target._address(), exists)
        return Write(target, "ConditionCheck", request, error, part_of=part_of, condition=exists)
