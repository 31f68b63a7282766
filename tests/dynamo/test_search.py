"""`Model.search`: items by the first letters of a unique value, from an index of guard items."""

import uuid
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from dynamo import BadCursor, IntegerAttribute, Model, Page, TextAttribute, Unique, casefolded
from dynamo.client.bulk import write_batches
from tests.dynamo.test_pages import walked
from tests.items import put_item, stored_items
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


class Fan(Model):
    """Its guard items stand beside the items."""

    class Meta:
        table_name = "tests-fans"

    nick = TextAttribute(attr_name="nickName")
    card = TextAttribute(null=True)
    age = IntegerAttribute(default=0)

    unique_nick = Unique("nick", normalize=casefolded, searchable=True)
    unique_card = Unique("card")


class Stand(Model):
    """Its guard items are in a second table, and name their owner as JSON."""

    class Meta:
        table_name = "tests-stands"

    hall = TextAttribute(hash_key=True)
    row = IntegerAttribute(range_key=True)
    nick = TextAttribute()

    unique_nick = Unique("nick", normalize=casefolded, searchable=True)


def fan(nick: str, **values: Any) -> Fan:
    return Fan.create(nick=nick, **values)


def stand(nick: str, **values: Any) -> Stand:
    return Stand.create(nick=nick, hall="red", row=uuid.uuid4().int >> 90, **values)


def guard(owner: Any, nick: str, *, index: bool = True) -> dict[str, Any]:
    """A guard item that nobody claimed, as an index has for a moment after a change."""
    typed = {"S": owner} if isinstance(owner, str) else owner
    searched = {"searchPrefix": {"S": f"nickName#{nick[:2]}"}, "searchValue": {"S": nick}}
    return {"pk": {"S": f"nickName#{nick}"}, "owner": typed, **(searched if index else {})}


def put_guard(*args: Any, **options: Any) -> None:
    put_item(Fan.table(), **guard(*args, **options))


def nicks(letters: str, **options: Any) -> list[str]:
    return [item.nick for item in Fan.search("nick", letters, **options)]


@pytest.mark.parametrize("make", [fan, stand])
def test_a_search_finds_items_by_their_first_letters_in_order(
    make: Callable[..., Fan | Stand], requests_sent: Requests
) -> None:
    names = ["anton", "Ann", "Bob", "an", "ANNA-2", "Änne", "annabel", "SS-1"]
    [model] = {type(make(name)) for name in names}
    requests_sent.clear()

    def found(letters: str) -> list[str]:
        return [item.nick for item in model.search("nick", letters)]

    assert found("ann") == ["Ann", "ANNA-2", "annabel"]
    assert requests_sent.operations == ["Query", "BatchGetItem"]
    assert found("AN") == ["an", "Ann", "ANNA-2", "annabel", "anton"]
    assert found("a\u0308n") == found("Än") == ["Änne"]
    # One letter, which is two when it is normalized.
    assert found("ß") == ["SS-1"]
    assert found("annx") == found("zz") == []


def test_pages_of_a_search_lead_through_all_items() -> None:
    made = [fan(f"anna{number}") for number in range(5)]
    fan("anton")

    found = walked(lambda after: Fan.search("nick", "Anna", after=after, limit=2))

    assert found == [made[:2], made[2:4], made[4:]]
    assert Fan.search("nick", "anna", limit=5) == Page(made, None)


@pytest.mark.fault_of("ministack", "counts no units of an index")
@pytest.mark.fault_of("moto", "counts no units of a transaction")
def test_a_searchable_value_costs_one_unit_more_per_guard_item(requests_sent: Requests) -> None:
    ann = fan("ann", card="A-1")
    assert requests_sent.units == 6 + 1

    for write, units in [
        (lambda: ann.change(nick="anna"), 6 + 2),
        (lambda: ann.change(card="A-2"), 6),
        (ann.delete, 6 + 1),
    ]:
        requests_sent.clear()
        write()
        assert (len(requests_sent.operations), requests_sent.units) == (1, units)


@pytest.mark.fault_of("ministack", "tells no capacity of a batch of reads")
@pytest.mark.fault_of("moto", "counts a whole unit for a read of an index")
def test_a_page_costs_the_same_however_many_there_are(requests_sent: Requests) -> None:
    for number in range(11):
        fan(f"user{number:05}")
    more = [guard("nobody", f"user{number:05}") for number in range(100, 300)]
    write_batches(Fan.table(), [{"PutRequest": {"Item": item}} for item in more])

    after = None
    for _page in range(2):
        requests_sent.clear()
        page = Fan.search("nick", "user", limit=5, after=after)
        assert len(page.items) == 5
        assert requests_sent.operations == ["Query", "BatchGetItem"]
        assert requests_sent.units == 0.5 + 5
        after = page.next


# What a search leaves out -------------------------------------------------------------------------


def test_an_item_without_the_value_is_not_found() -> None:
    ann = fan("ann")
    bob = fan("bob")
    put_guard(ann.pk, "anna")
    put_guard(bob.pk, "anne")
    put_guard("deleted", "anni")
    put_guard("nickName#ann", "anno")
    put_guard({"N": "7"}, "annu")

    assert nicks("ann") == ["ann"]
    assert nicks("ann", limit=1) == ["ann"]


def test_a_value_longer_than_a_sort_key_is_found() -> None:
    # 1,024 bytes end in the middle of a letter.
    long = "a" + "é" * 600
    longer = "a" + "é" * 601
    fan(long)
    fan(longer)

    assert nicks("aé") == [long, longer]
    assert nicks(longer) == [longer]
    assert nicks("é" * 1_000_000) == []


# What is refused ----------------------------------------------------------------------------------

#: Each begins at the cursor of a search for "ann".
OTHER_SEARCHES: dict[str, Callable[[str], Any]] = {
    "changed": lambda cursor: Fan.search("nick", "ann", after=cursor + "x"),
    "other letters": lambda cursor: Fan.search("nick", "anna", after=cursor),
    "another user": lambda cursor: Fan.search("nick", "ann", after=cursor, scope="bob"),
    "another model": lambda cursor: Stand.search("nick", "ann", after=cursor),
    "a page": lambda cursor: Fan.page("ann", after=cursor),
}


@pytest.mark.parametrize("other", OTHER_SEARCHES.values(), ids=OTHER_SEARCHES)
def test_a_cursor_of_another_search_is_refused(
    other: Callable[[str], Any], requests_sent: Requests
) -> None:
    for number in range(3):
        fan(f"anna{number}")
    cursor = Fan.search("nick", "ann", limit=1).next
    assert cursor is not None
    requests_sent.clear()

    with pytest.raises(BadCursor):
        other(cursor)

    assert requests_sent.operations == []
    assert len(Fan.search("nick", "ANN", after=cursor).items) == 2


@pytest.mark.parametrize(
    ("search", "error", "message"),
    [
        (lambda: Fan.search("nick", "a"), ValueError, "2 letters"),
        (lambda: Fan.search("nick", ""), ValueError, "2 letters"),
        # Two code points, which are one letter when they are normalized.
        (lambda: Fan.search("nick", "E\u0301"), ValueError, "2 letters"),
        (lambda: Fan.search("nick", "ann", limit=0), ValueError, "at least 1"),
        (lambda: Fan.search("card", "A-"), TypeError, "searchable=True"),
        (lambda: Fan.search("age", "12"), TypeError, "Fan.search takes"),
    ],
)
def test_a_search_that_cannot_be_right_is_refused(
    search: Callable[[], Any], error: type[Exception], message: str, requests_sent: Requests
) -> None:
    with pytest.raises(error, match=message):
        search()
    assert requests_sent.operations == []


# Stored before ------------------------------------------------------------------------------------


def checked(*options: str) -> list[str]:
    out = StringIO()
    call_command("checkunique", f"{__name__}.Fan", *options, stdout=out)
    return out.getvalue().splitlines()


def test_a_repair_makes_stored_guard_items_searchable() -> None:
    ann = fan("ann")
    fan("anna")
    put_guard(ann.pk, "ann", index=False)
    assert nicks("ann") == ["anna"]
    sound = "2 fans, 2 guards: 0 missing, 0 orphaned, 0 foreign; 0 repaired."

    advice = "Not found by searches: 1 guard (run again with --repair)."
    assert checked() == [sound, advice]
    assert '"repaired": 0, "unsearchable": 1}' in checked("--json")[0]
    assert checked("--repair") == [sound, "1 guard made searchable."]

    assert nicks("ann") == ["ann", "anna"]
    assert checked() == [sound]
    assert stored_items(Fan.table())["nickName#ann"] == {
        "pk": {"S": "nickName#ann"},
        "owner": {"S": ann.pk},
        "searchPrefix": {"S": "nickName#an"},
        "searchValue": {"S": "ann"},
    }
