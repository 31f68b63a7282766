from typing import Any

from django.core import mail
from django.test import override_settings

from dynamo.test import TestCase


@override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"])
class Visitor(TestCase):
    def send(self, url: str, **typed: str) -> Any:
        """Open a page, send its form, and return the page that follows."""
        form = self.client.get(url, follow=True)
        hidden = {field.html_name: field.value() for field in form.context["form"].hidden_fields()}
        here = form.redirect_chain[-1][0] if form.redirect_chain else url
        return self.client.post(here, hidden | typed, follow=True)

    def test_from_sign_up_to_reset(self) -> None:
        first, second, third = "old and rusty", "new and shiny", "never seen before"
        names = {"username": "Ann", "email": "ann@example.org"}
        page = self.send("/signup/", **names, password1=first, password2=first)
        self.assertContains(page, "You are Ann")

        passwords = {"new_password1": second, "new_password2": second}
        self.send("/password_change/", old_password=first, **passwords)
        self.client.post("/logout/")
        page = self.send("/login/", username="ann@EXAMPLE.org", password=second)
        self.assertContains(page, "You are Ann")
        with self.max_requests(2):  # the session and the user
            self.client.get("/")

        self.client.post("/logout/")
        self.send("/password_reset/", email="ann@example.org")
        link = mail.outbox[0].body.strip().removeprefix("http://testserver")
        page = self.send(link, new_password1=third, new_password2=third)
        self.assertContains(page, "Password reset complete")
        page = self.send("/login/", username="ANN", password=third)
        self.assertContains(page, "You are Ann")

        page = self.send("/signup/", **names, password1=first, password2=first)
        self.assertContains(page, "Member with this Username already exists.")
