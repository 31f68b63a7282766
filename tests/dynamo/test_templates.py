"""Templates write nothing: methods that write, or change their object, have Django's mark."""

import gc
import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from django.contrib.sessions.backends.base import SessionBase
from django.core.cache import caches
from pynamodb.attributes import Attribute

import dynamo
import dynamo.auth
import locks
import sequences
from dynamo import GlobalSecondaryIndex, Model, Page, Transaction, Unique
from dynamo.auth import AbstractGroup, AbstractUser, UserManager
from dynamo.cache import DynamoCache
from dynamo.client.plain import all_models
from dynamo.forms import ModelForm, modelform_factory
from dynamo.sessions import SessionStore
from tests.dynamo.desk.models import Clerk, Customer, Team
from tests.numbered import ticket
from tests.operations import Member, ann
from tests.templates import assert_templates_change_nothing, public_names

pytestmark = [
    pytest.mark.usefixtures("engine"),
    # A template does not await what an asynchronous read returns.
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
]


def transaction() -> Transaction:
    write = Transaction()
    ann().change(name="Bea", write=write)
    return write


def filled_cache() -> DynamoCache:
    cache: Any = caches["default"]
    cache.set("theme", "dark")
    return cache  # type: ignore[no-any-return]


def session() -> SessionStore:
    made = SessionStore()
    made["theme"] = "dark"
    made.save()
    return made


def form() -> ModelForm[Member]:
    kind: Any = modelform_factory(Member, fields=["email"])
    blank = kind(initial={"email": "ann@example.org"})
    filled: ModelForm[Member] = kind({name: blank[name].value() for name in blank.fields})
    assert filled.is_valid(), filled.errors
    return filled


#: An object of each public class.
MADE: dict[type, Callable[[ExitStack], Any]] = {
    Model: lambda _stack: ann(),
    Page: lambda _stack: Page([ann()], None),
    GlobalSecondaryIndex: lambda _stack: Customer.by_club,
    Transaction: lambda _stack: transaction(),
    dynamo.Tally: lambda stack: stack.enter_context(dynamo.collect()),
    Unique: lambda _stack: Unique("email"),
    AbstractUser: lambda _stack: Clerk.objects.create_user("ann", "ann@example.org"),
    AbstractGroup: lambda _stack: Team.create(name="editors"),
    UserManager: lambda _stack: Clerk.objects,
    sequences.NumberedItem: lambda _stack: ticket("2026"),
    sequences.Sequence: lambda _stack: sequences.Sequence("orders"),
    locks.Lock: lambda _stack: locks.Lock("report"),
    locks.Lease: lambda stack: stack.enter_context(locks.Lock("report")),
    DynamoCache: lambda _stack: filled_cache(),
    SessionStore: lambda _stack: session(),
    ModelForm: lambda _stack: form(),
}


def test_an_object_of_every_public_class_is_rendered() -> None:
    exported = {
        getattr(package, name)
        for package in (dynamo, dynamo.auth, sequences, locks)
        for name in package.__all__
    }
    classes = {item for item in exported if isinstance(item, type)}
    assert MADE.keys() >= {
        class_ for class_ in classes if not issubclass(class_, (BaseException, Attribute))
    }


@pytest.mark.parametrize("kind", MADE, ids=lambda kind: kind.__name__)
def test_a_template_writes_nothing_and_changes_no_object(kind: type) -> None:
    with ExitStack() as stack:
        thing = MADE[kind](stack)
        assert isinstance(thing, kind)
        assert_templates_change_nothing(thing)


def test_a_method_that_takes_a_transaction_is_marked() -> None:
    # Jinja's sandbox, which knows the mark as well, calls methods with arguments.
    for kind in (*all_models(), Transaction, locks.Lease, ModelForm):
        for name in public_names(kind):
            method = getattr(kind, name, None)
            if inspect.isfunction(method) or inspect.ismethod(method):
                takes_write = "write" in inspect.signature(method).parameters
                assert not takes_write or method.alters_data, f"{kind.__name__}.{name}"


def test_a_method_that_writes_without_the_mark_is_found() -> None:
    class Rogue(Member):
        def publish(self) -> None:
            self.change(name="published")

    with pytest.raises(AssertionError, match="publish"):
        assert_templates_change_nothing(Rogue.create(email="ann@example.org"))


@pytest.fixture
def _no_class_is_left_behind(cheap_collections: None) -> Iterator[None]:
    """Checks in other tests would warn of a model that overrides `save`."""
    yield
    gc.collect()


@pytest.mark.usefixtures("_no_class_is_left_behind")
def test_an_override_keeps_the_mark_also_in_a_mixin_or_as_a_class_method() -> None:
    class Named:
        def change(self, **values: Any) -> None:
            super().change(**{"name": "Ann", **values})  # type: ignore[misc]

    class Shouting(Named, Member):
        @classmethod
        def create(cls, **values: Any) -> Any:
            return super().create(**{"email": "a@example.org", **values})

        def save(self, **options: Any) -> None:
            super().save(**options)

        def delete(self, **options: Any) -> None:
            super().delete(**options)

    shout = Shouting.create()
    shout.name = "Bea"

    assert_templates_change_nothing(shout)
    shout.save()
    assert Member.get(shout.pk).name == "Bea"


def test_djangos_own_classes_are_not_changed() -> None:
    assert not hasattr(SessionBase.flush, "alters_data")
