"""`showitems`, and the models that `shell` imports."""

import json

import pytest

from dynamo import IntegerAttribute, Model, TextAttribute, Unique
from tests.commands import run
from tests.fork_server import fork_server
from tests.items import put_item


class Parcel(Model):
    class Meta:
        table_name = "tests-shown-parcels"

    town = TextAttribute(hash_key=True)
    number = IntegerAttribute(range_key=True)
    sender = TextAttribute(null=True)
    door_code = TextAttribute(null=True, sensitive=True)
    api_token = TextAttribute(null=True)

    unique_sender = Unique("sender")


class Crate(Model):
    class Meta:
        table_name = "tests-shown-crates"

    number = IntegerAttribute(hash_key=True)


LABEL = Parcel._meta.label


@pytest.fixture(autouse=True)
def _parcels(engine: str) -> None:
    for number in (1, 2, 10):
        Parcel.create(town="Bonn", number=number, sender=f"Ann\x1b{number}", api_token="t")
    Parcel.create(town="Köln", number=3, sender="y" * 99, door_code="1234")


def test_a_page_is_a_table_or_json_without_secrets() -> None:
    out, err, code = run("showitems", LABEL, "--partition", "Bonn", "--limit", "2")

    assert (code, err) == (0, "There are more: give another --limit.\n")
    assert [line.split() for line in out.splitlines()] == [
        ["town", "number", "sender", "door_code", "api_token"],
        ["Bonn", "1", "Ann\\x1b1", "***"],
        ["Bonn", "2", "Ann\\x1b2", "***"],
    ]
    whole = [json.loads(line) for line in run("showitems", LABEL, "--json")[0].splitlines()]
    assert {(item["town"], item["number"]) for item in whole} == {
        *(("Bonn", number) for number in (1, 2, 10)),
        ("Köln", 3),
    }
    assert {item["door_code"] for item in whole} == {None, "***"}


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (["--partition", "one"], "'one' cannot be the number of an item.", 1),
        (["--limit", "0"], "is not an integer of at least 1", 2),
    ],
)
def test_wrong_usage_is_refused(arguments: list[str], said: str, code: int) -> None:
    out, err, ended = run("showitems", Crate._meta.label, *arguments)

    assert (out, said in err, ended) == ("", True, code)


def test_a_damaged_item_is_named_and_the_others_are_shown() -> None:
    key = {"town": {"S": "Bonn"}, "number": {"N": "4"}}
    put_item(Parcel.table(), **key, sender={"N": "5"})

    out, err, code = run("showitems", LABEL, "--json")

    assert (len(out.splitlines()), "is damaged: sender" in err, code) == (4, True, 0)


def test_the_shell_imports_the_models() -> None:
    code = "print(Counter.__module__, LockItem.__module__)"
    ended = fork_server.run("manage.py", "shell", "-v", "0", "-c", code)

    assert (ended.stdout, ended.returncode) == ("sequences.models locks.models\n", 0)
