"""The sign-up page: one form makes one account, whatever is typed and however often it is sent."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.core import signing
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from accounts.models import User
from accounts.services import change_username, deactivate, delete
from dynamo import tables
from tests import engines
from tests.factories import (
    PASSWORD,
    assert_guards_match_users,
    guard_owner,
    make_user,
    stored_items,
)
from tests.faults.proxy import through
from tests.pages import (
    Page,
    form_values,
    meanwhile,
    request_id_drawn,
    shown_user,
    sign_in,
    signed_in_as,
    stored_sessions,
)
from tests.requests import Requests

URL = "/accounts/signup/"
ANN = {
    "username": "Ann",
    "email": "ann@example.org",
    "full_name": "Ann Example",
    "phone_number": "+1 202-555-0124",
    "password1": PASSWORD,
    "password2": PASSWORD,
}


@pytest.fixture
def typed(engine: str, client: Client) -> dict[str, Any]:
    """The form as Ann sends it."""
    return form_values(client, URL, **ANN)


def the_account() -> User:
    """The only account that there is."""
    (user,) = [User.from_raw_data(item) for pk, item in stored_items().items() if "#" not in pk]
    return user


def test_the_form_makes_an_account_and_signs_in(client: Client, typed: dict[str, Any]) -> None:
    response = client.post(URL, typed)

    assert (response.status_code, response["Location"]) == (302, "/accounts/profile/")
    user = the_account()
    assert (user.username, user.email, user.full_name) == ("Ann", "ann@example.org", "Ann Example")
    assert user.phone_number == "+12025550124"
    assert user.check_password(PASSWORD)
    assert user.last_login is not None
    assert_guards_match_users()
    page = Page(client.get(response["Location"]))
    assert page.messages == ["Welcome! Your account is ready."]
    assert signed_in_as(client) == "Ann"


def test_signing_up_costs_the_registration_the_sign_in_and_one_session(
    client: Client, typed: dict[str, Any], requests_sent: Requests
) -> None:
    client.post(URL, typed)

    operations, of_limits = requests_sent.apart()
    assert operations == ["TransactWriteItems", "UpdateItem", "PutItem"]
    assert of_limits == ["PutItem", "PutItem"]


def test_both_fields_say_that_they_are_taken_after_one_request(
    client: Client, typed: dict[str, Any], requests_sent: Requests
) -> None:
    make_user(username="ann")
    make_user(email="ANN@example.org")
    before = stored_items()
    requests_sent.clear()

    response = client.post(URL, typed)

    assert requests_sent.apart() == (["TransactWriteItems"], ["PutItem", "PutItem", "UpdateItem"])
    assert response.status_code == 200
    assert Page(response).errors == {
        "username": ["This username is taken."],
        "email": ["This email address belongs to another account."],
    }
    assert stored_items() == before
    assert signed_in_as(client) is None


def test_a_refused_form_keeps_all_that_was_typed_but_the_passwords(
    client: Client, typed: dict[str, Any]
) -> None:
    make_user(username="ann")

    response = client.post(URL, typed)

    page = Page(response)
    kept = ["username", "email", "full_name", "phone_number", "request_id"]
    assert {name: page.value(name) for name in kept} == {name: typed[name] for name in kept}
    assert PASSWORD not in response.content.decode()
    assert page.autofocused() == ["username"]


def test_a_refused_form_that_is_corrected_makes_the_account(
    client: Client, typed: dict[str, Any]
) -> None:
    make_user(username="ann")
    refused = Page(client.post(URL, typed))

    again = typed | {"username": "ann2", "request_id": refused.value("request_id")}
    response = client.post(URL, again)

    assert response.status_code == 302
    assert guard_owner("userName#ann2") is not None


# Sent twice -------------------------------------------------------------------------------------


def assert_answered_as_at_first(client: Client, typed: dict[str, Any], before: Any) -> None:
    response = client.post(URL, typed)

    assert (response.status_code, response["Location"]) == (302, "/accounts/profile/")
    assert signed_in_as(client) == "Ann"
    assert stored_items().keys() == before.keys()
    assert_guards_match_users()


def test_the_same_form_sent_twice_by_one_browser_makes_one_account(
    client: Client, typed: dict[str, Any]
) -> None:
    client.post(URL, typed)

    assert_answered_as_at_first(client, typed, stored_items())


def test_the_same_form_sent_again_by_a_fresh_browser_makes_one_account(
    client: Client, typed: dict[str, Any]
) -> None:
    client.post(URL, typed)

    assert_answered_as_at_first(Client(), typed, stored_items())


def test_the_same_form_sent_again_in_other_spelling_makes_one_account(
    client: Client, typed: dict[str, Any]
) -> None:
    client.post(URL, typed)

    other = typed | {"username": "ａｎｎ", "email": "ANN@Example.ORG"}
    response = Client().post(URL, other)

    assert response.status_code == 302
    assert the_account().username == "Ann"


@pytest.mark.parametrize("ago", [timedelta(hours=1), timedelta(hours=23, minutes=59)])
def test_the_same_form_sent_again_much_later_makes_one_account(
    client: Client, typed: dict[str, Any], ago: timedelta
) -> None:
    typed |= {"request_id": request_id_drawn(ago)}
    client.post(URL, typed)

    assert_answered_as_at_first(Client(), typed, stored_items())


@pytest.fixture
def restarting(tmp_path: Path) -> Iterator[Any]:
    """An engine of the test's own that keeps its file; called, it is killed and started again."""
    if not engines.dynoxide().exists():
        pytest.skip("dynoxide is not installed")
    port = engines.free_port()
    running = [engines.start("dynoxide", port, tmp_path)]

    def restart() -> None:
        running[-1].kill()
        running[-1].wait()
        running.append(engines.start("dynoxide", port, tmp_path))

    with through(f"http://127.0.0.1:{port}"):
        for table in tables.all_tables():
            tables.create(table)
        yield restart
    running[-1].kill()
    running[-1].wait()


def test_the_same_form_sent_again_after_the_engine_restarted_makes_one_account(
    restarting: Any, client: Client
) -> None:
    typed = form_values(client, URL, **ANN)
    client.post(URL, typed)
    before = stored_items()

    restarting()

    assert_answered_as_at_first(Client(), typed, before)


@pytest.mark.parametrize(
    "other",
    [
        {"password1": "another good password", "password2": "another good password"},
        {"username": "Bob"},
        {"email": "bob@example.org"},
    ],
)
def test_the_same_form_with_other_contents_does_not_sign_in_and_says_what_to_do(
    client: Client, typed: dict[str, Any], other: dict[str, str]
) -> None:
    client.post(URL, typed)
    before = stored_items()
    stranger = Client()

    response = stranger.post(URL, typed | other)

    assert response.status_code == 200
    page = Page(response)
    (advice,) = page.errors[""]
    assert "If that account is yours, sign in." in advice
    assert "send this form again" in advice
    assert page.value("request_id") not in {"", typed["request_id"]}
    kept = ["username", "email", "full_name", "phone_number"]
    assert {name: page.value(name) for name in kept} == {
        name: (typed | other)[name] for name in kept
    }
    assert stored_items() == before
    assert signed_in_as(stranger) is None


def test_the_form_shown_after_that_makes_another_account(
    client: Client, typed: dict[str, Any]
) -> None:
    client.post(URL, typed)
    other = typed | {"username": "bob", "email": "bob@example.org"}
    shown = Page(Client().post(URL, other))

    response = Client().post(URL, other | {"request_id": shown.value("request_id")})

    assert response.status_code == 302
    assert guard_owner("userName#bob") not in {None, guard_owner("userName#ann")}
    assert_guards_match_users()


def test_the_same_form_does_not_sign_in_to_an_account_that_was_deactivated(
    client: Client, typed: dict[str, Any]
) -> None:
    client.post(URL, typed)
    deactivate(the_account())
    before = stored_items()
    stranger = Client()

    response = stranger.post(URL, typed)

    assert response.status_code == 200
    assert Page(response).errors[""]
    assert signed_in_as(stranger) is None
    assert stored_items() == before


def test_the_same_form_after_the_user_name_changed_does_not_sign_in(
    client: Client, typed: dict[str, Any]
) -> None:
    client.post(URL, typed)
    change_username(the_account(), "anna")
    stranger = Client()

    response = stranger.post(URL, typed)

    assert response.status_code == 200
    assert signed_in_as(stranger) is None
    assert_guards_match_users()


def test_an_account_deleted_before_its_first_sign_in_leaves_no_ghost_and_no_session(
    engine: str, client: Client, typed: dict[str, Any]
) -> None:
    with meanwhile(engine, "UpdateItem", lambda: delete(User.find("Ann"))):
        response = client.post(URL, typed)

    assert response.status_code == 200
    assert Page(response).errors == {"": ["This account was deleted meanwhile."]}
    assert shown_user(response) is None
    assert stored_items() == {}
    assert stored_sessions() == []


# The request id ---------------------------------------------------------------------------------


def foreign_signature() -> str:
    return signing.TimestampSigner(salt="another.form").sign("8ec436a8-97e6-4e72-aec2-b47668e96a94")


@pytest.mark.parametrize(
    "draw",
    [
        pytest.param(lambda _good: request_id_drawn(timedelta(hours=24, minutes=1)), id="old"),
        pytest.param(lambda good: good.partition(":")[0], id="unsigned"),
        pytest.param(lambda good: "0" + good[1:] if good[0] != "0" else "1" + good[1:], id="other"),
        pytest.param(lambda good: good[:-1], id="cut"),
        pytest.param(lambda _good: foreign_signature(), id="another form's"),
        pytest.param(lambda _good: "", id="empty"),
        pytest.param(lambda _good: None, id="missing"),
        pytest.param(lambda good: good + "\0", id="nul"),
        pytest.param(lambda _good: "é:ü:ß", id="not ascii"),
        pytest.param(lambda _good: "a" * 100_000, id="long"),
    ],
)
def test_a_request_id_that_is_not_good_is_replaced_and_nothing_typed_is_lost(
    client: Client, typed: dict[str, Any], draw: Any
) -> None:
    bad = typed | {"request_id": draw(typed["request_id"])}
    if bad["request_id"] is None:
        del bad["request_id"]

    response = client.post(URL, bad)

    assert response.status_code == 200
    page = Page(response)
    assert page.errors.keys() == {"request_id"}
    assert stored_items() == {}
    assert signed_in_as(client) is None
    kept = ["username", "email", "full_name", "phone_number"]
    assert {name: page.value(name) for name in kept} == {name: typed[name] for name in kept}
    assert client.post(URL, typed | {"request_id": page.value("request_id")}).status_code == 302
    assert the_account().username == "Ann"


# Passwords --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("passwords", "field"),
    [
        (("ab1!xyz", "ab1!xyz"), "password2"),
        (("password1", "password1"), "password2"),
        (("8274619305", "8274619305"), "password2"),
        (("ann@example.org", "ann@example.org"), "password2"),
        (("Ann Example", "Ann Example"), "password2"),
        ((PASSWORD, PASSWORD + "!"), "password2"),
        ((PASSWORD, ""), "password2"),
        (("", PASSWORD), "password1"),
        ((f"{PASSWORD}\0", f"{PASSWORD}\0"), "password1"),
    ],
)
def test_a_weak_or_mistyped_password_is_refused_at_its_field(
    client: Client, typed: dict[str, Any], passwords: tuple[str, str], field: str
) -> None:
    response = client.post(URL, typed | {"password1": passwords[0], "password2": passwords[1]})

    assert response.status_code == 200
    assert Page(response).errors[field]
    assert stored_items() == {}


def test_blanks_around_a_password_are_part_of_it(client: Client, typed: dict[str, Any]) -> None:
    spaced = f"  {PASSWORD} "

    client.post(URL, typed | {"password1": spaced, "password2": spaced})

    assert the_account().check_password(spaced)


# Strange values ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("username", "a#b"),
        ("username", "userName#ann"),
        ("username", "a@b"),
        ("username", "a b"),
        ("username", "a\tb"),
        ("username", "a\x1bb"),
        ("username", "🦆"),
        ("username", "a\u200fb"),
        ("username", "\u202eann"),
        ("username", "x" * 151),
        ("username", "𠮷" * 151),
        ("username", "ﷺ" * 9),
        ("username", "ﬃ" * 51),
        ("username", "8ec436a8-97e6-4e72-aec2-b47668e96a94"),
        ("username", "   "),
        ("email", "ann"),
        ("email", "ann@"),
        ("email", "@example.org"),
        ("email", "ann@exa mple.org"),
        ("email", "ann@example.org\r\nBcc: b@example.org"),
        ("email", "a\u202enn@example.org"),
        ("email", "a" * 64 + "@" + ".".join(["b" * 60] * 3) + ".example"),
        ("email", "ann@" + "b" * 64 + ".example"),
        ("full_name", "Ann\x07"),
        ("full_name", "Ann\u202e"),
        ("full_name", "A" * 151),
        ("phone_number", "12345"),
        ("phone_number", "+1"),
        ("phone_number", "+1" * 1000),
        ("phone_number", "+١٢"),
        *((name, "a\0b") for name in ANN),
    ],
)
def test_a_value_that_cannot_be_is_refused_at_its_field(
    client: Client, typed: dict[str, Any], field: str, value: str
) -> None:
    response = client.post(URL, typed | {field: value})

    assert response.status_code == 200
    assert Page(response).errors[field]
    assert stored_items() == {}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("username", "𠮷" * 150),
        ("username", "ΐ" * 150),
        ("username", "ﬃ" * 50),
        ("username", "أحمد"),
        ("email", "a" * 64 + "@" + ".".join(["b" * 59] * 3) + ".example"),
        ("email", "ann#1@example.org"),
        ("email", "ann@bücher.example"),
        ("full_name", "Ünal 🦆 \u200fعلي"),
        ("full_name", "𠮷" * 150),
        ("full_name", "<script>alert(1)</script>"),
    ],
)
def test_a_strange_value_that_may_be_is_kept_and_shown_as_typed(
    client: Client, typed: dict[str, Any], field: str, value: str
) -> None:
    response = client.post(URL, typed | {field: value})

    assert response.status_code == 302
    assert getattr(the_account(), field) == value
    profile = Page(client.get("/accounts/profile/"))
    assert value in profile.text or profile.value(field) == value
    assert_guards_match_users()


# What no browser sends --------------------------------------------------------------------------


def post_raw(
    client: Client, body: str | bytes, kind: str = "application/x-www-form-urlencoded"
) -> Any:
    # `client.post` would encode the body as its type says.
    return client.generic("POST", URL, body, kind)


@pytest.mark.parametrize("field", ["username", "email", "full_name", "phone_number", "request_id"])
@pytest.mark.parametrize("broken", ["%ED%A0%80", "%FF%FE", "%C0%80", "%F8%88%80%80%80"])
def test_bytes_that_are_no_text_are_refused_at_their_field(
    client: Client, typed: dict[str, Any], field: str, broken: str
) -> None:
    body = urlencode(typed | {field: "BROKEN"}).replace("BROKEN", f"a{broken}b")

    response = post_raw(client, body)

    assert response.status_code == 200
    assert Page(response).errors[field]
    assert stored_items() == {}


@pytest.mark.parametrize("encoding", ["utf-7", "utf-16", "latin-1", "idna", "base64", "no-such"])
@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "multipart/form-data"])
@pytest.mark.parametrize("debug", [False, True])
def test_another_encoding_than_the_pages_is_refused(
    client: Client, typed: dict[str, Any], settings: Any, kind: str, encoding: str, debug: bool
) -> None:
    settings.DEBUG = debug
    typed |= {"username": "+2AA-", "password1": "+2AA-", "password2": "+2AA-"}
    if kind == "multipart/form-data":
        parts = "".join(
            f'--X\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in typed.items()
        )
        response = post_raw(client, parts + "--X--\r\n", f"{kind}; boundary=X; charset={encoding}")
    else:
        response = post_raw(client, urlencode(typed), f"{kind}; charset={encoding}")

    assert response.status_code in {200, 400}
    assert stored_items() == {}


def test_a_body_of_ten_megabytes_is_refused(client: Client, typed: dict[str, Any]) -> None:
    large = "x" * 10_000_000

    assert post_raw(client, urlencode(typed | {"full_name": large})).status_code == 400
    assert client.post(URL, typed | {"full_name": large}).status_code == 400
    assert post_raw(client, large, "application/json").status_code in {200, 400}
    assert stored_items() == {}


def test_a_file_is_refused_as_no_form_here_takes_one(client: Client, typed: dict[str, Any]) -> None:
    for size in (1, 10_000_000):
        file = SimpleUploadedFile("name.txt", b"x" * size)

        assert client.post(URL, typed | {"username": file}).status_code == 400

    assert stored_items() == {}


def test_thousands_of_fields_are_refused(client: Client, typed: dict[str, Any]) -> None:
    many = typed | {f"field{n}": "x" for n in range(5000)}

    assert post_raw(client, urlencode(many)).status_code == 400
    assert client.post(URL, many).status_code == 400
    assert stored_items() == {}


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", b"--X\r\n\r\nx\r\n--X--\r\n"),
        ("multipart/form-data; boundary=X", b"--X\r\nContent-Dis"),
        ("multipart/form-data; boundary=" + "X" * 300, b"x"),
        ("application/json", b'{"username": "ann"}'),
        ("text/plain", b"username=ann"),
        ("", b"username=ann"),
        ("application/x-www-form-urlencoded", b"\xff\x00&&&===%%%"),
    ],
)
def test_a_body_that_is_no_form_makes_nothing(
    engine: str, client: Client, kind: str, body: bytes
) -> None:
    assert post_raw(client, body, kind).status_code in {200, 400}
    assert stored_items() == {}


@pytest.mark.parametrize("method", ["put", "patch", "delete", "options", "trace", "head", "brew"])
def test_no_other_method_makes_anything(client: Client, typed: dict[str, Any], method: str) -> None:
    response = client.generic(method.upper(), URL, urlencode(typed))

    assert response.status_code in {200, 405}
    assert stored_items() == {}


def test_a_form_without_its_token_is_refused_with_advice(typed: dict[str, Any]) -> None:
    response = Client(enforce_csrf_checks=True).post(URL, typed)

    assert response.status_code == 403
    assert "Reload the page and fill in the form again" in Page(response).text
    assert stored_items() == {}


def test_a_form_with_its_token_is_accepted(typed: dict[str, Any]) -> None:
    client = Client(enforce_csrf_checks=True)
    page = Page(client.get(URL))

    response = client.post(URL, typed | {"csrfmiddlewaretoken": page.value("csrfmiddlewaretoken")})

    assert response.status_code == 302


def test_the_form_sent_again_with_the_token_of_before_signing_in_goes_to_the_profile(
    typed: dict[str, Any],
) -> None:
    client = Client(enforce_csrf_checks=True)
    page = Page(client.get(URL))
    typed |= {"csrfmiddlewaretoken": page.value("csrfmiddlewaretoken")}
    client.post(URL, typed)
    before = stored_items()

    response = client.post(URL, typed)

    assert (response.status_code, response["Location"]) == (302, "/accounts/profile/")
    assert stored_items() == before


@pytest.mark.parametrize(
    "other",
    [
        {"username": "Other"},
        {"email": "other@example.org"},
        {"username": ""},
        {"email": "other@xn--"},
    ],
)
def test_another_account_that_is_asked_for_with_the_token_of_before_is_refused_with_advice(
    typed: dict[str, Any], other: dict[str, str]
) -> None:
    client = Client(enforce_csrf_checks=True)
    page = Page(client.get(URL))
    typed |= {"csrfmiddlewaretoken": page.value("csrfmiddlewaretoken")}
    client.post(URL, typed)
    before = stored_items()

    response = client.post(URL, typed | other)

    assert response.status_code == 403
    assert "Nothing that you sent was stored." in Page(response).text
    assert signed_in_as(client) == "Ann"
    assert stored_items() == before


# Who is signed in already -----------------------------------------------------------------------


def test_who_is_signed_in_is_sent_to_the_profile(engine: str, client: Client) -> None:
    sign_in(client, make_user())

    response = client.get(URL)

    assert (response.status_code, response["Location"]) == (302, "/accounts/profile/")


def test_who_signs_up_while_signed_in_elsewhere_has_the_new_account_and_a_new_session(
    client: Client, typed: dict[str, Any]
) -> None:
    other = make_user(username="other")
    sign_in(client, other)
    old_key = client.cookies["sessionid"].value

    client.post(URL, typed)

    assert signed_in_as(client) == "Ann"
    assert client.cookies["sessionid"].value != old_key
    client.cookies["sessionid"] = old_key
    assert signed_in_as(client) is None
