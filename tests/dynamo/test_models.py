"""Puts are built as PynamoDB builds them, in fewer steps."""

from typing import Any

import pytest
from pynamodb.attributes import (
    BinaryAttribute,
    BooleanAttribute,
    JSONAttribute,
    ListAttribute,
    MapAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UnicodeSetAttribute,
)

from dynamo._internal.items import PlainModel
from dynamo.transactions import Write


class Kinds(PlainModel):
    """An item with each kind of attribute."""

    class Meta:
        table_name = "tests-kinds"

    pk = UnicodeAttribute(hash_key=True)
    sk = NumberAttribute(range_key=True)
    text = UnicodeAttribute(attr_name="storedText")
    flag = BooleanAttribute(null=True)
    data = BinaryAttribute(legacy_encoding=False, null=True)
    names = UnicodeSetAttribute(null=True)
    document = JSONAttribute(null=True)
    parts: Any = MapAttribute(null=True)  # type: ignore[no-untyped-call]  # PynamoDB's
    rows: Any = ListAttribute(null=True)


ABSENT: Any = Kinds.pk.does_not_exist()


@pytest.mark.parametrize(
    "values",
    [
        {"text": ""},
        {"flag": False, "data": b"\x00", "names": {"a", "b"}, "document": {"x": [1, None]}},
        {"names": set()},
        {"parts": {"x": "1"}, "rows": ["a", 2]},
        {"parts": {}, "rows": [], "names": set()},
    ],
)
@pytest.mark.parametrize(
    "condition",
    [ABSENT, ABSENT | (Kinds.text == "x") & (Kinds.flag == True)],  # noqa: E712
    ids=["names", "values"],
)
def test_a_put_is_what_pynamodb_would_send(values: dict[str, Any], condition: Any) -> None:
    item = Kinds("key", 1.5, **{"text": "a", **values})

    put = Write.put(item, condition, otherwise=ValueError())

    assert put.request == item.get_save_kwargs_from_instance(condition, "ALL_OLD")
    assert item.serialize() == item._container_serialize()
