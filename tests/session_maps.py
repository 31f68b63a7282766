"""Reads the sessions of a stored account, and lets time pass for them."""

import time
from typing import Any

from django.test import Client

from accounts.models import User
from accounts.sessions import services as sessions
from dynamo.client.sending import send
from tests.factories import stored_user


def stored_ids(user: User) -> set[str]:
    """The ids of the stored sessions, expired ones included."""
    item = stored_user(user.pk)
    return set(item.get("sessions", {"M": {}})["M"]) if item else set()


def begun(user: User, **more: str) -> str:
    """Begin a session of the account as it is stored; returns its id."""
    return sessions.begin(User.get(user.pk), **more)


def read_for(user: User, session_id: str) -> User:
    """The account as a page of that session reads it."""
    read = User.get(user.pk)
    read.session_id = session_id
    return read


def only(user: User) -> sessions.Session:
    """The only session that has not ended."""
    [session] = sessions.active_sessions(User.get(user.pk))
    return session


def let_pass(user: User, session_id: str, name: str, seconds: float) -> None:
    """Move `name` (seenAt or expiresAt) of a session into the past by `seconds`."""
    send(
        "UpdateItem",
        {
            "TableName": User.table(),
            "Key": {"pk": {"S": user.pk}},
            "UpdateExpression": "SET sessions.#id.#name = sessions.#id.#name - :passed",
            "ConditionExpression": "attribute_exists(sessions.#id)",
            "ExpressionAttributeNames": {"#id": session_id, "#name": name},
            "ExpressionAttributeValues": {":passed": {"N": str(int(seconds))}},
        },
    )


def forget_password_check(client: Client, seconds: float = 5 * 60) -> None:
    """Let the last password check of the client be `seconds` ago."""
    session: Any = client.session
    session["accounts.checked_at"] = int(time.time() - seconds)
    session.save()
