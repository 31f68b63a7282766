from dynamo.test import TestCase
from members.models import Editor, Member


class Pages(TestCase):
    def test_a_member_is_added_listed_and_changed(self) -> None:
        self.client.force_login(Editor.objects.create_superuser("boss", "boss@example.org"))
        page = self.client.get("/admin/members/member/add/")
        self.assertContains(page, "admin/css/base.css")
        hidden = {"request_id": page.context["adminform"].form.initial["request_id"]}
        typed = {"email": "ann@example.org", "name": "Ann", "club": "chess"}
        self.client.post("/admin/members/member/add/", hidden | typed)
        with self.max_requests(3):
            self.assertContains(self.client.get("/admin/members/member/?club=chess"), "Ann")
        ann = Member.find(email="ann@example.org")
        address = f"/admin/members/member/{ann.pk}/change/"
        page = self.client.get(address)
        hidden = {"version": page.context["adminform"].form.initial["version"]}
        self.client.post(address, hidden | typed | {"club": "go", "_reason": "She asked."})
        history = self.client.get(f"/admin/members/member/{ann.pk}/history/")
        self.assertContains(history, "She asked.")
