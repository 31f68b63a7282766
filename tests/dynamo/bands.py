"""Two models with unique attributes, whose guards are in their own table or in a second one."""

from typing import Any

from pynamodb.attributes import UnicodeAttribute

from dynamo import Model, Unique
from tests.items import remove_item


class Artist(Model):
    name = UnicodeAttribute()
    site = UnicodeAttribute()
    label = UnicodeAttribute(null=True)

    unique_name = Unique("name", normalize=str.casefold)
    unique_site = Unique("site", normalize=str.casefold)
    unique_label = Unique("label", normalize=lambda text: text.strip().upper())


class Band(Artist):
    """Its guards are in its own table."""

    class Meta:
        table_name = "tests-bands"

    pk = UnicodeAttribute(hash_key=True)


class Singer(Artist):
    """Its guards are in a second table, whose key has another name."""

    class Meta:
        table_name = "tests-singers"
        guard_table = "tests-singer-guards"

    number = UnicodeAttribute(hash_key=True, attr_name="singerNumber")


def delete_guard(model: Any, key: str) -> None:
    table = model._guard_table().name
    remove_item(table, pk=key)
