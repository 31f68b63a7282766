"""The page of a rate limit, and how to let windows pass."""

from typing import Any

from dynamo._internal.client.sending import send
from dynamo.cache import CacheItem
from tests.pages import Page, stored_counts


def let_pass(seconds: int) -> None:
    """Let every window begin so much earlier."""
    for item in stored_counts():
        item["expiresAt"]["N"] = str(int(item["expiresAt"]["N"]) - seconds * 1000)
        send("PutItem", {"TableName": CacheItem.table(), "Item": item})


def assert_too_many(response: Any) -> Page:
    assert response.status_code == 429
    assert int(response["Retry-After"]) > 0
    assert response["Cache-Control"] == "private, no-store"
    page = Page(response)
    assert "Too many attempts" in page.text
    assert "sessionid" not in response.cookies
    return page
