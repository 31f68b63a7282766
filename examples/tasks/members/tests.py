from django.core import mail
from django.core.management import CommandError, call_command

from dynamo.test import TestCase
from outbox.test import run_tasks


class Joining(TestCase):
    def test_a_member_gets_one_mail_after_the_commit(self) -> None:
        call_command("join", "ann@example.org", "a-17", "Ann")
        with self.assertRaises(CommandError):
            call_command("join", "ann@example.org", "b-18", "Another")
        self.assertEqual(mail.outbox, [])

        run_tasks()

        self.assertEqual([message.to for message in mail.outbox], [["ann@example.org"]])
