"""Adding a `Unique` to a model with stored items, in three steps, while others write."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from dynamo import Model, Stale, Taken, TextAttribute, Unique, casefolded
from dynamo.unique import UniqueKey
from tests.items import stored_items

pytestmark = pytest.mark.usefixtures("engine")

ITEMS = 60


class Book(Model):
    class Meta:
        table_name = "tests-books"

    title = TextAttribute()
    isbn = TextAttribute()

    unique_title = Unique("title", normalize=casefolded)


def check(*options: str) -> str:
    out = StringIO()
    call_command("checkunique", "tests.dynamo.test_adding_unique.Book", *options, stdout=out)
    return out.getvalue()


@pytest.fixture
def without_isbn(engine: str, monkeypatch: pytest.MonkeyPatch) -> UniqueKey:
    """The declaration that is added; the books were stored without it."""
    for number in range(ITEMS):
        Book.create(title=f"Book {number}", isbn=f"isbn-{number}")
    added = UniqueKey.of(Unique("isbn", normalize=casefolded), Book.get_attributes())
    monkeypatch.setattr(Book, "_unique_keys", [*Book._unique_keys, added])
    return added


@pytest.mark.usefixtures("without_isbn")
def test_a_unique_attribute_is_added_while_the_site_writes() -> None:
    stop = threading.Event()

    def write(number: int) -> int:
        taken = turn = 0
        while not stop.is_set():
            turn += 1
            book = Book.create(title=f"New {number} {turn}", isbn=f"new-{number}-{turn}")
            try:
                book.change(isbn=f"ISBN-{(number + turn) % ITEMS}")
            except Taken:
                taken += 1
            try:
                old = Book.find(title=f"book {turn % ITEMS}")
                old.change(isbn=f"moved-{number}-{turn}")
            except (Stale, Taken):
                taken += 1
        return taken

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, number) for number in range(4)]
        try:
            check("--repair")
        except CommandError:
            pass  # values that two books share, until a person decides
        finally:
            stop.set()
        for writer in writers:
            writer.result()

    settle()
    assert "0 missing, 0 orphaned, 0 foreign" in check()
    items = stored_items("tests-books")
    books = {pk: item for pk, item in items.items() if "#" not in pk}
    isbns = [casefolded(item["isbn"]["S"]) for item in books.values()]
    assert len(set(isbns)) == len(isbns)
    for pk, item in books.items():
        assert items[f"isbn#{casefolded(item['isbn']['S'])}"]["owner"]["S"] == pk


def settle() -> None:
    """Give books that share a value other ones, as a person does, and repair what is left."""
    seen: set[str] = set()
    for book in list(Book.scan()):
        if casefolded(book.isbn) in seen:
            book.change(isbn=f"settled-{book.pk}")
        seen.add(casefolded(book.isbn))
    check("--repair")


@pytest.mark.usefixtures("without_isbn")
def test_an_item_of_before_is_found_by_the_added_value_once_it_is_backfilled() -> None:
    with pytest.raises(Book.DoesNotExist):
        Book.find(isbn="ISBN-1")

    check("--repair")

    assert Book.find(isbn="ISBN-1").title == "Book 1"
    with pytest.raises(Taken):
        Book.create(title="Another", isbn="Isbn-1")
