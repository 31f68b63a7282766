"""From the sign-up to the deletion, as browsers see it."""

import re
from typing import Any

from django.core import mail
from django.test import Client, override_settings

from dynamo.test import TestCase

PASSWORD = "correct horse battery"


@override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"])
class Story(TestCase):
    def send(self, page: str, client: Client | None = None, **typed: str) -> Any:
        """Open a page, send its form, and return the page that follows."""
        client = client or self.client
        url = f"/accounts/{page}/"
        form = client.get(url).context["form"]
        hidden = {field.html_name: field.value() or "" for field in form.hidden_fields()}
        return client.post(url, hidden | typed, follow=True)

    def sign_up(self, client: Client, **typed: str) -> Any:
        return self.send("signup", client, **typed, password1=PASSWORD, password2=PASSWORD)

    def follow_link(self) -> Any:
        [link] = re.findall(r"http://[^/]+(/\S+)", str(mail.outbox[-1].body))
        return self.client.post(link, follow=True)

    def test_the_whole_story(self) -> None:
        ann = {"username": "ann", "email": "ann@example.org"}
        self.assertContains(self.sign_up(self.client, **ann), "Your account is ready")
        self.assertContains(self.follow_link(), "Confirmed")

        form = self.sign_up(Client(), username="ANN", email="Ann@Example.org").context["form"]
        self.assertEqual([*form.errors], ["username", "email"])

        self.send("email", email="new@example.org", password=PASSWORD)
        self.assertEqual(mail.outbox[-1].to, ["new@example.org"])
        self.assertContains(self.follow_link(), "new@example.org")
        exported = self.client.get("/accounts/export/").json()
        self.assertEqual(exported["account"]["email"], "new@example.org")

        self.send("username", username="anna", password=PASSWORD)
        self.client.post("/accounts/logout/")
        page = self.send("login", username="anna", password=PASSWORD)
        self.assertContains(page, "new@example.org")
        with self.max_requests(1):  # the session and the account, together
            japanese = self.client.get("/accounts/profile/", headers={"accept-language": "ja"})
        self.assertContains(japanese, "プロフィール")

        self.send("delete", password=PASSWORD)
        self.assertContains(self.sign_up(Client(), **ann), "Your account is ready")

    def test_a_password_is_not_guessed(self) -> None:
        wrong = {"username": "ann", "password": "wrong"}
        for _attempt in range(11):
            last = self.client.post("/accounts/login/", wrong)
        self.assertEqual(last.status_code, 429)
        self.assertGreater(int(last["Retry-After"]), 0)
