"""`Reference`: an attribute with the key of another item, which must exist when that is written.

    class Appointment(Model):
        patient = Reference(Patient)

    Appointment.create(patient=ann)        # or patient=ann.pk; Patient.DoesNotExist

The transaction of the item checks that its target exists: one ConditionCheck of 2 write units for
each target whose key is set or changed, however many references name it. A target can be deleted
later: nothing refuses that.
"""

from typing import Any

from pynamodb.expressions.operand import Path

from dynamo.client.plain import PlainModel, all_models
from dynamo.client.writes import Write
from dynamo.wire.attributes import TextAttribute
from dynamo.wire.updates import conditional


class Reference(TextAttribute):
    """The key of an item of the model `to`, a class or its label: `"clinic.Patient"`.

    The key is a single text. The options are those of `TextAttribute`. A value may be given as an
    object of the model; what is read is its key.
    """

    def __init__(self, to: type[Any] | str, label: object = None, **options: Any) -> None:
        if not isinstance(to, str) and PlainModel not in getattr(to, "__mro__", ()):
            raise TypeError("Reference takes a model of the library, or its label: 'app.Model'.")
        if options.get("blank") and not options.get("null"):
            raise TypeError("Reference: blank=True needs null=True, because no key is empty.")
        super().__init__(label, **options)
        self.to = to

    @property
    def target(self) -> Any:
        """The model that it refers to.

        Raises:
            TypeError: no such model, or its key is not a single text.
        """
        if isinstance(self.to, str):
            found = [item for item in all_models() if item._meta.label_lower == self.to.lower()]
            if not found:
                raise TypeError(f"Reference: no model has the label {self.to}. Write app.Model.")
            self.to = found[-1]
        if [item.attr_type for *_names, item in self.to._key_attributes()] != ["S"]:
            raise TypeError(f"Reference: the key of {self.to.__name__} is not a single text.")
        return self.to

    def serialize(self, value: Any) -> Any:
        if isinstance(value, PlainModel):
            if not isinstance(value, self.target):
                kind = type(value).__name__
                raise TypeError(f"{self.attr_name} refers to {self.target.__name__}, not {kind}.")
            value = value.pk
        return super().serialize(value)

    def check(self, name: str, key: str, part_of: object) -> Write:
        """The requirement that the item `key` exists, for the attribute `name` of `part_of`.

        Raises:
            DoesNotExist: no item can have the key, for example because it is that of a guard item.
        """
        target = self.target(key, _user_instantiated=False)
        exists = Path(target.key_attribute_names()).exists()
        error = target.DoesNotExist(f"There is no {target._noun()} {key}, the {name}.", name)
        if not target._is_key(key):
            raise error
        action = {"ConditionCheck": conditional(target._address(), exists)}
        return Write(target, action, error, part_of=part_of, condition=exists)
