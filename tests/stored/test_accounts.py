"""Every operation works on accounts of released versions, and leaves correct guards."""

from collections.abc import Callable

import pytest
from django.test import Client

from accounts.emails import links, pending
from accounts.emails.links import cancel_change, change_token, confirm_change
from accounts.exceptions import AccountError, AccountRequestReused, BadLink, EmailTaken, StaleUser
from accounts.models import User
from accounts.services import change_username, delete, edit_profile, find_user, register
from accounts.sessions import services as sessions
from dynamo.admin import LogEntry, journal_of, list_entries, month_of
from staff.reports import KINDS, last_reports
from tests.account_operations import ACCOUNTS, ann, deactivated_ann, staff_ann
from tests.commands import run
from tests.emailchanges import assert_guards_are_correct
from tests.factories import assert_guards_match_users, stored_items
from tests.pages import signed_in_as
from tests.staff.scenes import acting, do, let_in, logged_actions, stored_report
from tests.stored.releases import Stored, each_release

pytestmark = each_release

#: Who can sign in. Eve is deactivated, and gus has no password.
SIGNING_IN = ["Ann.Müller", "Bobby.Tables", "cid", "dee", "fay", "hal"]


def begin_and_end(user: User) -> None:
    ended = sessions.begin(user)
    sessions.end(user, ended)
    sessions.begin(user)
    sessions.end_others(user)


OPERATIONS: dict[str, Callable[[User], object]] = {
    **{
        account.name: account.act
        for account in ACCOUNTS
        # Checking a password with Argon2 takes long, and the sign-ins below do it.
        if account.given in {ann, deactivated_ann, staff_ann}
        and "check_password" not in account.name
    },
    "cancel_change": cancel_change,
    "begin and end sessions": begin_and_end,
    "sessions.end_all": sessions.end_all,
    "save": lambda user: (user.set_password("yet another password"), user.save()),
}


@pytest.mark.parametrize("changed", [False, True], ids=["as read", "changed by the same copy"])
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_every_operation_succeeds_on_every_account(
    stored: Stored, operation: Callable[[User], object], changed: bool
) -> None:
    for pk in stored.about["accounts"].values():
        user = User.get(pk)
        if changed:
            edit_profile(user, phone_number="+12025550124")
        operation(user)
        if left := User.get_or_none(pk):
            assert_guards_match_users()
            delete(left)

    assert_guards_are_correct()


def test_a_copy_read_before_another_change_is_stale(stored: Stored) -> None:
    for pk in stored.about["accounts"].values():
        stale = User.get(pk)
        edit_profile(User.get(pk), phone_number="+12025550124")

        with pytest.raises(StaleUser):
            change_username(stale, f"{stale.username}.new")
        with pytest.raises(StaleUser):
            delete(stale)

    assert_guards_are_correct()


def test_users_sign_in_and_out_with_their_passwords(stored: Stored, client: Client) -> None:
    for number, (username, pk) in enumerate(stored.about["accounts"].items()):
        user = User.get(pk)
        who = (user.username, user.email)[number % 2]
        password = stored.about["password"]
        answer = client.post("/accounts/login/", {"username": who, "password": password})

        assert answer.status_code == (302 if username in SIGNING_IN else 200)
        assert signed_in_as(client) == (username if username in SIGNING_IN else None)
        client.post("/accounts/logout/")
        assert signed_in_as(client) is None

    assert_guards_are_correct()


def test_a_stored_session_is_signed_in(stored: Stored, client: Client) -> None:
    user = User.get(stored.pk("Ann.Müller"))
    assert len(sessions.active_sessions(user)) == 2
    client.cookies["sessionid"] = stored.about["sessionKey"]

    assert signed_in_as(client) == "Ann.Müller"


def test_a_waiting_change_is_made_by_its_link_unless_a_new_password_ended_it(
    stored: Stored,
) -> None:
    user = User.get(stored.pk("cid"))

    confirm_change(change_token(user))
    dropped = links.make(links.CHANGE, stored.pk("dee"), stored.about["droppedChange"])
    with pytest.raises(BadLink):
        confirm_change(dropped)

    assert find_user("cid@example.net") == user
    assert find_user("dee@example.org").pk == stored.pk("dee")
    assert_guards_are_correct()


def test_a_pending_sign_up_creates_its_account(stored: Stored) -> None:
    made, _page = pending.complete_sign_up(links.make(links.SIGN_UP, stored.about["heldSignUp"]))

    assert made.check_password(stored.about["password"])
    assert find_user("ivy@example.org") == made
    assert_guards_are_correct()


def test_a_repeated_registration_finds_its_account_and_all_stored_values_are_taken(
    stored: Stored,
) -> None:
    asked = {"username": "bobby.tables", "email": "BOBBY@example.org", "request_id": "form of bob"}
    before = stored_items()

    again = register(**asked, password=stored.about["password"])

    assert again.pk == stored.pk("Bobby.Tables")
    assert stored_items().keys() == before.keys()
    with pytest.raises(AccountRequestReused):
        register(**asked, password="another password")
    for username, pk in stored.about["accounts"].items():
        for values in ({"username": username}, {"email": User.get(pk).email}):
            with pytest.raises(AccountError):
                register(**({"username": "new", "email": "new@example.org"} | values))
    delete(User.get(again.pk))
    assert register(**asked, password="another password").pk == again.pk
    assert_guards_are_correct()


def test_an_address_that_waits_for_its_link_is_free(stored: Stored) -> None:
    cid = User.get(stored.pk("cid"))

    new = register(username="new", email="cid@example.net")

    assert find_user("cid@example.net") == new
    with pytest.raises(EmailTaken):
        confirm_change(change_token(cid))
    cancel_change(cid)
    delete(cid)
    assert_guards_are_correct()


def test_the_commands_read_what_is_stored(stored: Stored) -> None:
    for username, pk in stored.about["accounts"].items():
        for who in (username, pk):
            assert f'"pk": "{pk}"' in run("showuser", who, "--json")[0]
    out, err, code = run("listusers", "--json")
    assert (out.count("\n"), err, code) == (len(stored.about["accounts"]), "", 0)
    assert run("checkguards", "--json")[2] == 0


def test_staff_see_the_audit_log_and_can_act_on_stored_accounts(stored: Stored) -> None:
    stored_actions = map(LogEntry.from_raw_data, stored.items("auditlog"))
    months = {month_of(action.at) for action in stored_actions}
    listed = [action for month in months for action in list_entries(month).items]
    assert sorted(action.action for action in listed) == ["breakLock", "deactivate", "endSessions"]
    [deactivation] = list_entries(journal_of(User(stored.pk("eve")))).items
    assert (deactivation.by, deactivation.reason) == (stored.pk("fay"), "Spam")

    fay = acting(User.get(stored.pk("fay")))
    assert do(fay, "activate", User.get(stored.pk("eve")))
    assert "activate" in logged_actions()


def test_a_stored_report_is_shown_and_replaced_by_the_next(stored: Stored) -> None:
    [before] = last_reports(KINDS["guards"])
    assert (before.stored_by, before.is_wrong) == ("fay", False)
    assert before.result is not None
    assert before.result["users"] == 8
    page = let_in(User.get(stored.pk("fay"))).get("/admin/runs/guards/").content.decode()
    assert "<bdi>fay</bdi>" in page

    after = stored_report("guards")
    assert after.stored_by != "fay"
    assert after.result == before.result
