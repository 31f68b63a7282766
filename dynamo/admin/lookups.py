"""The input of a `Reference`, with links to its item and to the list to choose from."""

from types import SimpleNamespace
from typing import Any

from django.contrib.admin.widgets import ForeignKeyRawIdWidget
from django.utils.text import Truncator

from dynamo.admin.shown import name_of
from dynamo.exceptions import DamagedItem

#: As many words of a name as contrib.admin shows next to a key.
_NAME_WORDS = 14


class ReferenceWidget(ForeignKeyRawIdWidget):
    """That of contrib's `raw_id_fields`. Costs 1 request, which reads the item that is named.

    `model_admin` has the pages of the model that the reference is to.
    """

    def __init__(self, model_admin: Any) -> None:
        self.model_admin = model_admin
        model = model_admin.model
        rel: Any = SimpleNamespace(model=model, get_related_field=lambda: model._meta.pk)
        super().__init__(rel, model_admin.admin_site)

    def url_parameters(self) -> dict[str, str]:
        return {}

    def label_and_url_for_value(self, value: object) -> tuple[str, str]:
        model = self.model_admin.model
        try:
            item = model.get(str(value))
        except model.DoesNotExist:
            return "", ""
        except DamagedItem as error:
            return str(error), ""
        return Truncator(name_of(item)).words(_NAME_WORDS), self.model_admin.url("change", item)
