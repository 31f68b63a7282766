"""Adding a `Unique` to a model with stored items, in three steps, while others write."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
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


def test_a_unique_attribute_is_added_while_the_site_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(ITEMS):
        Book.create(title=f"Book {number}", isbn=f"isbn-{number}")
    added = UniqueKey.of(Unique("isbn", normalize=casefolded), Book.get_attributes())
    monkeypatch.setattr(Book, "_unique_keys", [*Book._unique_keys, added])
    stop = threading.Event()

    def write(number: int) -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            book = Book.create(title=f"New {number} {turn}", isbn=f"new-{number}-{turn}")
            with suppress(Taken):
                book.change(isbn=f"ISBN-{(number + turn) % ITEMS}")
            with suppress(Stale, Taken):
                old = Book.find(title=f"book {turn % ITEMS}")
                old.change(isbn=f"moved-{number}-{turn}")

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, number) for number in range(4)]
        try:
            with suppress(CommandError):  # values that two books share, until a person decides
                check("--repair")
        finally:
            stop.set()
        for writer in writers:
            writer.result()

    # Books that share a value get other ones, as a person gives them.
    seen: set[str] = set()
    for book in list(Book.scan()):
        if casefolded(book.isbn) in seen:
            book.change(isbn=f"settled-{book.pk}")
        seen.add(casefolded(book.isbn))
    check("--repair")
    assert "0 missing, 0 orphaned, 0 foreign" in check()
    items = stored_items("tests-books")
    books = {pk: item for pk, item in items.items() if "#" not in pk}
    isbns = [casefolded(item["isbn"]["S"]) for item in books.values()]
    assert len(set(isbns)) == len(isbns)
    for pk, item in books.items():
        assert items[f"isbn#{casefolded(item['isbn']['S'])}"]["owner"]["S"] == pk
