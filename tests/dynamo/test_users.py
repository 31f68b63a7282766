"""Users of `dynamo.auth`: how they are made, changed and found, and what they may do."""

import asyncio
import copy
from collections.abc import Callable
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.contrib.auth import authenticate, get_user_model
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.base_user import BaseUserManager
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import (
    AbstractBaseUser,
    AbstractUser as DjangosAbstractUser,
    PermissionsMixin,
    User as DjangosUser,
    UserManager as DjangosManager,
)
from django.core import mail
from django.core.exceptions import ImproperlyConfigured, ValidationError

from dynamo import Refused, TextAttribute, Transaction, ensure
from dynamo.auth import (
    AbstractUser,
    UserManager,
    all_permissions,
    passwords,
    permission,
    permissions,
)
from dynamo.auth.apps import check_backends, check_other_users
from dynamo.auth.forms import SetPasswordForm, UserCreationForm
from dynamo.auth.permissions import GROUP_SECONDS
from tests.conftest import PATIENCE_SECONDS
from tests.dynamo.desk.models import Clerk, Team
from tests.faults.kinds import DropReply
from tests.faults.proxy import FaultProxy
from tests.items import scanned
from tests.passwords import password_history
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

PASSWORD = "correct horse battery"


class Outdated(PBKDF2PasswordHasher):
    iterations = 10


class Current(PBKDF2PasswordHasher):
    iterations = 20


@pytest.fixture(autouse=True)
def _backend(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.AUTHENTICATION_BACKENDS = ["dynamo.auth.backends.UserBackend"]
    settings.PASSWORD_HASHERS = [f"{__name__}.Outdated"]
    monkeypatch.setattr(passwords, "WAIT_SECONDS", PATIENCE_SECONDS)


def make(name: str = "ann", **values: Any) -> Clerk:
    made: Clerk = Clerk.objects.create_user(name, f"{name}@example.org", PASSWORD, **values)
    return made


def stored() -> list[str]:
    return sorted(item["pk"]["S"] for item in scanned(Clerk.table()))


def test_the_user_model_is_found_and_not_among_those_of_the_orm(settings: Any) -> None:
    model = get_user_model()
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS]  # each app's config is made again

    assert get_user_model() is model
    assert Clerk not in apps.get_models(include_swapped=True)
    assert model not in apps.get_models(include_swapped=True) or model is DjangosUser


# Made -----------------------------------------------------------------------------------------


@pytest.mark.fault_of("moto", "counts no units of a transaction")
def test_a_new_user_is_one_request_and_found_by_every_name(requests_sent: Requests) -> None:
    ann = make("Ann", pin="17")

    assert (requests_sent.operations, requests_sent.units) == (["TransactWriteItems"], 6.0)
    assert Clerk.named("ANN") == Clerk.named("ann@EXAMPLE.org") == Clerk.named(ann.pk) == ann
    assert ann.check_password(PASSWORD)
    assert PASSWORD not in repr(vars(ann))
    assert (ann.is_active, ann.is_staff, ann.is_superuser) == (True, False, False)
    assert ann.date_joined <= datetime.now(UTC)
    boss = Clerk.objects.create_superuser("boss", "boss@example.org", PASSWORD)
    assert (boss.is_staff, boss.is_superuser) == (True, True)
    assert asyncio.run(Clerk.objects.acreate_user("cid", "cid@example.org")).pk
    admin = asyncio.run(Clerk.objects.acreate_superuser("dan", "dan@example.org", PASSWORD))
    assert (admin.username, admin.is_superuser) == ("dan", True)


@pytest.mark.parametrize(
    ("typed", "at"),
    [
        ({"username": ""}, "username"),
        ({"username": "a b"}, "username"),
        ({"username": "аnn"}, "username"),  # a Cyrillic letter
        ({"username": "x" * 151}, "username"),
        ({"email": "nowhere"}, "email"),
        ({"email": '"ann"@example.org'}, "email"),
        ({"password": "x" * 1025}, None),
        ({"password": "\ud800"}, None),
    ],
)
def test_a_value_that_breaks_a_rule_is_refused_and_nothing_is_stored(
    typed: dict[str, str], at: str | None
) -> None:
    fine = {"username": "ann", "email": "ann@example.org", "password": PASSWORD}

    with pytest.raises(ValidationError) as refused:
        Clerk.objects.create_user(**(fine | typed))

    assert list(getattr(refused.value, "error_dict", {None: 0})) == [at]
    assert stored() == []


def test_taken_names_are_one_error_in_any_spelling() -> None:
    make("ann")

    with pytest.raises(Clerk.Taken) as refused:
        Clerk.objects.create_user("ＡＮＮ", "ANN@example.org")

    assert refused.value.values == {"username": "ＡＮＮ", "email": "ANN@example.org"}


def test_a_request_id_makes_one_user_and_needs_its_password() -> None:
    ann = make(request_id="form-1")

    assert make(request_id="form-1") == ann
    with Transaction() as write:
        assert make(request_id="form-1", write=write).pk == ann.pk
    for other in ({"password": "another"}, {"username": "anna"}):
        values = {"username": "ann", "email": "ann@example.org", "password": PASSWORD} | other
        with pytest.raises((Clerk.RequestIdReused, Refused)):
            Clerk.objects.create_user(**values, request_id="form-1")
    assert stored() == sorted([ann.pk, "email#ann@example.org", "userName#ann"])


def test_an_international_domain_without_idna_is_an_error_that_names_the_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "idna", None)

    with pytest.raises(ImproperlyConfigured, match=r"pip install 'django-on-dynamodb\[idna\]'"):
        Clerk.create(username="ann", email="ann@bücher.example", password="!")
    with pytest.raises(ValidationError) as refused:
        Clerk.objects.create_user("ann", "ann@bücher.example")
    assert refused.value.messages == ["This site only accepts domains in ASCII letters."]
    with pytest.raises(Clerk.DoesNotExist):
        Clerk.named("ann@bücher.example")
    assert stored() == []


class ClerkForm(UserCreationForm):
    class Meta(UserCreationForm.Meta):
        model = Clerk
        fields = ("username", "email", "pin")


def typed(**values: str) -> dict[str, str]:
    """A form as it was shown, with what was typed."""
    names = {"username": "Ann", "email": "ann@example.org", "pin": "17"}
    passwords = {"password1": PASSWORD, "password2": PASSWORD}
    return {**names, **passwords, "request_id": ClerkForm().initial["request_id"], **values}


def test_a_sign_up_form_that_is_sent_twice_makes_one_user() -> None:
    data = typed()

    made = [ClerkForm(data).try_save() for _time in range(2)]

    assert made[0] == made[1] == Clerk.named("ann")
    assert made[1].pin == "17"
    assert made[1].check_password(PASSWORD)
    other = ClerkForm(data | {"password1": "another one", "password2": "another one"})
    assert other.try_save() is None
    assert "17" not in str(other.errors)
    assert len(stored()) == 3


@pytest.mark.parametrize(
    ("values", "at"),
    [
        ({"username": "аnn"}, "username"),  # a Cyrillic letter
        ({"email": "ann@nowhere"}, "email"),
        ({"password2": "another"}, "password2"),
        ({"password1": "x" * 1025, "password2": "x" * 1025}, "password1"),
        ({"password1": "ann@example.org", "password2": "ann@example.org"}, "password1"),
    ],
)
def test_a_sign_up_form_shows_each_error_at_its_field(
    values: dict[str, str], at: str, settings: Any
) -> None:
    validator = "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"
    settings.AUTH_PASSWORD_VALIDATORS = [{"NAME": validator}]

    form = ClerkForm(typed(**values))

    assert list(form.errors) == [at]
    with pytest.raises(ValueError, match="could not be created"):
        form.save()
    assert stored() == []


# Django's names -------------------------------------------------------------------------------

#: What Django's users have and ours refuse, with the right call.
REFUSED = {
    "first_name": "first_name = TextAttribute(null=True)",
    "last_name": "last_name = TextAttribute(null=True)",
    "get_next_by_date_joined": "sort key date_joined",
    "get_previous_by_date_joined": "sort key date_joined",
    "user_permissions": "permissions",
    "username_validator": "validators=",
}


def public(*kinds: type) -> set[str]:
    return {name for kind in kinds for name in vars(kind) if not name.startswith("_")}


def test_each_name_of_djangos_users_and_managers_exists_or_the_error_names_the_right_call() -> None:
    ann = make()
    for name in public(AbstractBaseUser, PermissionsMixin, DjangosAbstractUser) - {"Meta"}:
        if name not in REFUSED:
            getattr(ann, name)
            continue
        with pytest.raises(AttributeError) as error:
            getattr(ann, name)
        assert REFUSED[name] in str(error.value)

    own = public(BaseUserManager, DjangosManager) - {"with_perm", "use_in_migrations"}
    assert own <= {*dir(UserManager)}
    for name in {item for item in dir(DjangosManager) if item[0] != "_"} - {*dir(UserManager)}:
        with pytest.raises(AttributeError, match=r"Use .*(Clerk|item)\."):
            getattr(Clerk.objects, name)
    with pytest.raises(TypeError, match=r"get\(…\)"):
        Clerk.objects.filter(email="ann@example.org")
    with pytest.raises(TypeError, match="one Unique"):
        Clerk.objects.get(email__iexact="ann@example.org")
    assert Clerk.objects.get(pk=UUID(ann.pk)) == Clerk.objects.get(email="ANN@example.org") == ann


class Named(AbstractUser):
    full_name = TextAttribute(null=True)


class Parted(AbstractUser):
    first_name = TextAttribute(null=True)
    last_name = TextAttribute(null=True)


# Django 6.1 asks the project for the setting MAILERS.
@pytest.mark.filterwarnings("ignore:Django 2028 will not have a default mailer")
def test_a_user_has_djangos_names_and_gets_mail() -> None:
    for user, names in (
        (Clerk(), ("", "")),
        (Named(full_name="Ann O."), ("Ann O.", "Ann O.")),
        (Parted(first_name="Ann", last_name="O."), ("Ann O.", "Ann")),
        (Parted(last_name="O."), ("O.", "O.")),
    ):
        assert (user.get_full_name(), user.get_short_name()) == names
    ann = Clerk(username="ＡＮＮ", email="Ann@EXAMPLE.org")
    ann.clean()
    assert (ann.username, ann.email, ann.natural_key()) == ("ANN", "Ann@example.org", ("ANN",))
    assert (ann.permissions, ann.groups, Team(name="x").permissions) == (set(), set(), set())

    ann.email_user("Hello", "Ann")

    assert mail.outbox[0].to == ["Ann@example.org"]
    with pytest.raises(ValueError, match="bob has no email address"):
        Clerk(username="bob").email_user("Hello", "Bob")


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ({"username": None}, r'USERNAME_FIELD = "email"'),
        ({"USERNAME_FIELD": "pin"}, r"Unique\('pin'\)"),
        ({"REQUIRED_FIELDS": ["emial"]}, "no attribute emial"),
    ],
)
def test_a_declaration_that_names_no_user_is_refused(declared: dict[str, Any], told: str) -> None:
    meta = type("Meta", (), {"table_name": "tests-refused"})

    with pytest.raises(TypeError, match=told):
        type("Refused", (AbstractUser,), {"Meta": meta, "__module__": __name__, **declared})


@pytest.mark.parametrize("right", ["is_staff", "is_superuser"])
def test_a_superuser_has_all_rights_or_is_refused(right: str) -> None:
    with pytest.raises(ValueError, match=right):
        Clerk.objects.create_superuser("boss", "boss@example.org", PASSWORD, **{right: False})
    assert stored() == []


def test_get_or_create_finds_a_user_in_any_spelling() -> None:
    """That calls at once make one item, and that lost replies change nothing: test_habits.py."""
    ann, is_new = Clerk.objects.get_or_create(
        {"email": "ann@example.org", "pin": "17"}, username="ann"
    )

    assert (is_new, ann.pin) == (True, "17")
    assert stored() == sorted([ann.pk, "email#ann@example.org", "userName#ann"])
    assert Clerk.objects.get_or_create({"pin": "18"}, username="ANN") == (ann, False)
    assert asyncio.run(Clerk.objects.aget_or_create(username="ann")) == (ann, False)
    with pytest.raises(Clerk.Taken):
        Clerk.objects.get_or_create({"email": "ann@example.org"}, username="bob")
    with pytest.raises(TypeError, match="one Unique"):
        Clerk.objects.get_or_create(pin="17")


# Changed --------------------------------------------------------------------------------------


@pytest.mark.parametrize("joins", [False, True], ids=["alone", "in a transaction"])
def test_a_sign_in_is_recorded_without_another_version(joins: bool) -> None:
    ann = make()
    ann.record_sign_in()
    other = Clerk.get(ann.pk)
    other.pin = "Ann"

    with Transaction() if joins else nullcontext() as write:
        other.record_sign_in(write=write)
        if joins:
            make("bob", write=write)

    read = Clerk.get(ann.pk)
    assert read.version == ann.version
    assert read.last_login == other.last_login > ann.last_login
    other.save()  # what was assigned before
    assert Clerk.get(ann.pk).pin == "Ann"
    other.delete()
    with pytest.raises(Clerk.Stale):
        ann.record_sign_in()
    assert ann.pk not in stored()


def test_a_refused_sign_in_takes_the_same_work_whether_or_not_the_user_exists(
    requests_sent: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynamo.auth.backends.get_user_model", lambda: Clerk)
    make()
    hashed: list[str] = []
    encode = Outdated.encode

    def counted(hasher: Outdated, password: str, *options: Any) -> Any:
        hashed.append(password)
        return encode(hasher, password, *options)

    monkeypatch.setattr(Outdated, "encode", counted)
    for who in ("ann", "nobody"):
        requests_sent.clear()

        assert authenticate(username=who, password="wrong") is None

        assert requests_sent.operations == ["GetItem", "GetItem"]
    assert hashed == ["wrong", "wrong"]


def test_an_outdated_hash_is_upgraded_once_for_sign_ins_at_once(
    settings: Any, at_once: Callable[..., list[Any]]
) -> None:
    ann = make()
    settings.PASSWORD_HASHERS = [f"{__name__}.Current"]
    copies = [Clerk.get(ann.pk) for _each in range(3)]

    assert all(at_once(lambda number: copies[number].check_password(PASSWORD), 3))

    read = Clerk.get(ann.pk)
    assert read.password.startswith("pbkdf2_sha256$20$")
    assert {copy_.get_session_auth_hash() for copy_ in copies} == {read.get_session_auth_hash()}
    assert read.version == ann.version


@pytest.mark.parametrize(
    "end",
    [
        Clerk.end_sessions,
        lambda user: user.change(is_active=False),
        lambda user: (user.change(is_active=False), user.change(is_active=True)),
        lambda user: (user.set_password("another"), user.save()),
    ],
)
def test_sessions_end_with_a_new_password_a_new_epoch_or_a_deactivation(
    end: Callable[[Clerk], object],
) -> None:
    ann = make()
    before = ann.get_session_auth_hash()

    end(ann)

    assert Clerk.get(ann.pk).get_session_auth_hash() == ann.get_session_auth_hash() != before


def test_a_deactivation_by_two_copies_is_ensured_by_both() -> None:
    ann = make()
    other = Clerk.get(ann.pk)

    ann.change(is_active=False)
    ensure(other, is_active=False)

    assert other.session_epoch == ann.session_epoch


@pytest.mark.parametrize(("other", "is_stored"), [("tulips 1634", True), ("a third one 99", False)])
def test_a_new_password_that_is_sent_twice_is_a_success_for_both(
    other: str, is_stored: bool
) -> None:
    ann = make()
    copy = Clerk.get(ann.pk)
    ann.set_password("tulips 1634")
    ann.save()

    form = SetPasswordForm(copy, {"new_password1": other, "new_password2": other})
    assert form.is_valid()
    with nullcontext() if is_stored else pytest.raises(Clerk.Stale):
        form.save()

    assert Clerk.get(ann.pk).password == ann.password
    assert (copy.get_session_auth_hash() == ann.get_session_auth_hash()) is is_stored


NEW = "quite another one"
TYPED_TWICE = {"new_password1": NEW, "new_password2": NEW}

#: How a password is stored: each is called with a user whose password is another one.
STORED_BY: dict[str, Callable[[Clerk], object]] = {
    "create_user": lambda _ann: Clerk.objects.create_user("bob", "bob@example.org", NEW),
    "create_superuser": lambda _ann: Clerk.objects.create_superuser("bob", "b@example.org", NEW),
    "acreate_user": lambda _ann: asyncio.run(
        Clerk.objects.acreate_user("bob", "bob@example.org", NEW, request_id="1")
    ),
    "a new object": lambda _ann: with_password(
        Clerk(username="bob", email="bob@example.org")
    ).save(),
    "save": lambda ann: with_password(ann).save(),
    "save of one attribute": lambda ann: with_password(ann).save(update_fields=["password"]),
    "save after another change": lambda ann: (with_password(ann).change(pin="1"), ann.save()),
    "asave": lambda ann: asyncio.run(with_password(ann).asave()),
    "change": lambda ann: with_password(ann).change(password=ann.password),
    "Django's form": lambda ann: valid(SetPasswordForm(ann, TYPED_TWICE)).save(),
    "Django's form of a change": lambda ann: valid(
        PasswordChangeForm(ann, {"old_password": PASSWORD, **TYPED_TWICE})
    ).save(),
    "the form of a sign-up, sent twice": lambda _ann: [
        ClerkForm(data).save()
        for data in [typed(username="bob", email="b@x.org", password1=NEW, password2=NEW)] * 2
    ],
}


def valid(form: Any) -> Any:
    assert form.is_valid(), form.errors
    return form


def with_password(user: Clerk) -> Clerk:
    user.set_password(NEW)
    return user


@pytest.mark.parametrize("store", STORED_BY.values(), ids=STORED_BY)
def test_validators_are_told_once_when_a_new_password_is_stored(
    store: Callable[[Clerk], object],
) -> None:
    ann = make()

    with password_history() as history:
        store(ann)
        ann.save()

        assert [password for _name, password in history] == [NEW]


def test_validators_are_told_of_a_password_after_the_commit_and_not_if_it_is_refused() -> None:
    ann = make()
    outdated = Clerk.named("ann")

    with password_history() as history:
        with Transaction() as write:
            with_password(ann).save(write=write)
            Clerk.objects.create_user("bob", "bob@example.org", NEW, write=write)
            assert history == []
        assert history == [("ann", NEW), ("bob", NEW)]

        history.clear()
        with_password(outdated).set_password("not stored")
        with pytest.raises(Clerk.Stale):
            outdated.save()
        with pytest.raises(Clerk.Taken):
            Clerk.objects.create_user("ANN", "another@example.org", "not stored")
        with suppress(ZeroDivisionError), Transaction() as write:
            ann.set_password("not stored")
            ann.save(write=write)
            raise ZeroDivisionError
        outdated.refresh()
        Clerk.objects.create_user("cid", "cid@example.org")
        ann.set_unusable_password()
        ann.save()
        assert history == []


def test_validators_are_told_once_of_a_password_whose_reply_is_lost(proxy: FaultProxy) -> None:
    ann = make()

    with password_history() as history:
        proxy.plan("UpdateItem", DropReply())
        with_password(ann).save()

        assert history == [("ann", NEW)]


# Permitted ------------------------------------------------------------------------------------


def test_permissions_follow_from_the_models() -> None:
    assert permission("change", Clerk).endswith(".change_clerk")
    found = all_permissions()
    assert found["dynamo.view_cacheitem"] == "Can view cacheitem"
    # Of installed apps only.
    assert permission("change", Clerk) not in found


def ways(user: Any, name: str) -> set[bool]:
    """The answer of each way to ask for a permission."""
    app = name.partition(".")[0]

    async def asked() -> set[bool]:
        return {await user.ahas_perm(name), await user.ahas_perms([name])}

    return {
        user.has_perm(name),
        user.has_perms([name]),
        name in user.get_all_permissions(),
        user.has_module_perms(app),
        *asyncio.run(asked()),
    }


def test_a_user_has_its_own_permissions_and_those_of_its_groups(requests_sent: Requests) -> None:
    Team.create(name="clerks", permissions={"library.read_book", "library.lend_book"})
    Team.create(name="empty")
    ann = make(permissions={"shop.view_shelf"})
    bob = make("bob", groups={"clerks", "empty", "deleted"})
    requests_sent.clear()

    assert ways(ann, "shop.view_shelf") == {True}
    assert ways(ann, "library.read_book") == {False}
    assert requests_sent.operations == []  # a user without groups costs none

    assert ways(bob, "library.read_book") == {True}
    assert ways(bob, "shop.view_shelf") == {False}
    assert requests_sent.operations == ["GetItem"] * 3
    assert bob.get_group_permissions() == {"library.read_book", "library.lend_book"}
    assert bob.get_user_permissions() == set()


def test_an_inactive_user_has_no_permission_and_a_superuser_has_all() -> None:
    Team.create(name="all", permissions={"library.read_book"})
    rights = {"permissions": {"library.read_book"}, "groups": {"all"}}
    for values in ({}, {"is_superuser": True}):
        name = f"ann{len(values)}"
        assert ways(make(name, is_active=False, **rights, **values), "library.read_book") == {False}

    boss = Clerk.objects.create_superuser("boss", "boss@example.org")
    assert boss.has_perm("library.read_book")
    assert boss.get_all_permissions() == set(all_permissions())


def test_a_change_of_a_group_counts_after_a_minute_and_that_of_a_user_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clerks = Team.create(name="clerks", permissions={"library.read_book"})
    ann = make(groups={"clerks"})
    seconds = 1000.0
    monkeypatch.setattr(permissions, "now", lambda: seconds)
    assert ann.has_perm("library.read_book")

    clerks.change(permissions={"library.lend_book"})

    seconds += GROUP_SECONDS - 1
    assert ann.has_perm("library.read_book")
    seconds += 1
    assert not ann.has_perm("library.read_book")
    assert ann.has_perm("library.lend_book")
    clerks.delete()
    ann.change(groups=None)
    assert not Clerk.get(ann.pk).has_perm("library.lend_book")


def test_a_check_names_the_backend_that_is_missing(settings: Any) -> None:
    has_users = issubclass(get_user_model(), AbstractUser)
    assert check_backends(None) == []

    ours, djangos = settings.AUTHENTICATION_BACKENDS[0], ModelBackend.__module__
    for kind in ("ModelBackend", "RemoteUserBackend"):
        for others in ([], [ours]):
            settings.AUTHENTICATION_BACKENDS = [*others, f"{djangos}.{kind}"]
            assert [backend.id for backend in check_backends(None)] == ["dynamo.E012"] * has_users
    settings.AUTHENTICATION_BACKENDS = ["dynamo.auth.backends.RemoteUserBackend"]
    assert check_backends(None) == []


def test_a_check_names_a_user_model_of_django_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_other_users(None) == []
    monkeypatch.setattr(apps, "get_models", lambda: [DjangosUser])

    found = [item.msg for item in check_other_users(None)]

    assert [text.partition(",")[0] for text in found] == [
        "auth.User is a user model of a relational database"
    ] * issubclass(get_user_model(), AbstractUser)


def test_groups_without_a_model_are_an_error_that_says_what_is_missing() -> None:
    ann = Named(username="ann")
    calls: list[Callable[[], object]] = [
        lambda: ann.groups.add("clerks"),
        lambda: setattr(ann, "groups", {"clerks"}),
    ]

    for call in calls:
        with pytest.raises(AttributeError, match="Declare the model of its groups"):
            call()
    with pytest.raises(TypeError, match="Named has no attribute groups"):
        Named(groups={"clerks"})
    assert ann.get_group_permissions() == set()


def test_what_django_calls_of_groups_works_or_is_refused_in_words() -> None:
    clerks = Team.create(name="clerks", permissions={"library.read_book"})
    ann = make(groups={"old"})

    assert [*ann.groups.all()] == ["old"]
    with pytest.raises(AttributeError, match="no 'filter'"):
        ann.groups.filter(name="clerks")
    with pytest.raises(TypeError, match="add a text, not <Team: clerks>"):
        ann.groups.add(clerks)
    with pytest.raises(TypeError, match="groups: Give a set or a list, not str"):
        ann.change(groups="clerks")
    ann.groups = {"old"}
    ann.groups.add(clerks.name, "more")
    ann.groups -= {"old", "more"}
    ann.save()

    stored = Clerk.get(ann.pk)
    assert stored.groups == copy.deepcopy(stored).groups == {"clerks"}
    assert stored.has_perm("library.read_book")
