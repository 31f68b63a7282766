"""The API knows who signed in on the pages, for as long as the session lasts."""

from typing import Any

from django.conf import settings
from django.test import Client, override_settings

from dynamo.test import TestCase

PASSWORD = "correct horse battery"
ME = "/api/me/"
NO_USER = {"UNAUTHENTICATED_USER": None}


@override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"])
class ApiTests(TestCase):
    def setUp(self) -> None:
        form = self.client.get("/accounts/signup/").context["form"]
        values = {"username": "ann", "email": "ann@example.org", "full_name": "Ann"}
        passwords = dict.fromkeys(("password1", "password2"), PASSWORD)
        values |= passwords | {"request_id": form["request_id"].value()}
        self.client.post("/accounts/signup/", values)

    def signed_in(self) -> tuple[Client, dict[str, str]]:
        """A browser, and the header with which its scripts send forms."""
        browser = Client(enforce_csrf_checks=True)
        typed = {"username": "ann", "password": PASSWORD}
        browser.get("/accounts/login/")
        typed["csrfmiddlewaretoken"] = browser.cookies["csrftoken"].value
        browser.post("/accounts/login/", typed)
        return browser, {"X-CSRFToken": browser.cookies["csrftoken"].value}

    def put(self, browser: Client, headers: dict[str, str], name: str) -> Any:
        typed = {"full_name": name}
        return browser.put(ME, typed, content_type="application/json", headers=headers)

    def test_a_session_of_the_pages_is_one_of_the_api(self) -> None:
        self.assertEqual(Client().get(ME).status_code, 403)
        with override_settings(REST_FRAMEWORK=settings.REST_FRAMEWORK | NO_USER):
            self.assertEqual(Client().get(ME).status_code, 403)
        browser, headers = self.signed_in()
        with self.max_requests(1):  # the session and the account, together
            shown = browser.get(ME).json()
        self.assertEqual(shown["username"], "ann")

        self.assertEqual(self.put(browser, {}, "Ann Example").status_code, 403)
        changed = self.put(browser, headers, "Ann Example").json()
        self.assertEqual(changed, shown | {"full_name": "Ann Example"})
        self.assertContains(browser.get("/accounts/profile/"), "Ann Example")
        self.assertEqual([*self.put(browser, headers, "").json()], ["full_name"])

    def test_a_session_that_another_browser_ends_is_over(self) -> None:
        browser, _headers = self.signed_in()
        self.assertEqual(browser.get(ME).status_code, 200)
        self.client.post("/accounts/sessions/end_others/")
        self.assertEqual(browser.get(ME).status_code, 403)
