"""A card number is unique within its club."""

from typing import Any

from django.core.management import call_command
from django.test import Client, override_settings

from dynamo.test import TestCase
from members.models import Member

PASSWORD = "correct horse battery"


@override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"])
class MemberTests(TestCase):
    def sign_up(self, client: Client, name: str, address: str, club: str, number: str) -> Any:
        form = client.get("/accounts/signup/").context["form"]
        typed = {
            "username": name,
            "email": f"{address}@example.org",
            "club": club,
            "membership_number": number,
            "password1": PASSWORD,
            "password2": PASSWORD,
            "request_id": form["request_id"].value(),
        }
        return client.post("/accounts/signup/", typed)

    def test_a_number_is_taken_in_its_club_alone(self) -> None:
        bob = Client()
        self.assertEqual(self.sign_up(self.client, "ann", "ann", "chess", "1").status_code, 302)
        form = self.sign_up(bob, "bob", "bob", "chess", "1").context["form"]
        self.assertEqual([*form.errors], ["club", "membership_number"])
        form = self.sign_up(bob, "ann", "bob", "chess", "1").context["form"]
        self.assertEqual([*form.errors], ["username", "club", "membership_number"])
        form = self.sign_up(bob, "bob", "bob", "chess" * 500, "1").context["form"]
        self.assertEqual([*form.errors], ["club"])
        self.assertEqual(self.sign_up(bob, "bob", "bob", "go", "1").status_code, 302)

        profile = bob.post("/accounts/profile/", {"club": "chess"}).context["form"]
        self.assertEqual([*profile.errors], ["club"])
        self.assertEqual(bob.post("/accounts/profile/", {"club": "bridge"}).status_code, 302)
        self.assertEqual(Member.find(club="bridge", membership_number="1").username, "bob")

    def test_a_command_makes_members_too(self) -> None:
        eve = {
            "username": "eve",
            "email": "eve@example.org",
            "club": "go",
            "membership_number": "9",
        }
        call_command("createuser", **eve, unusable_password=True)
        self.assertEqual(Member.find(club="go", membership_number="9").username, "eve")
