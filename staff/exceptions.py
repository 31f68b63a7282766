"""Errors of staff's actions and reports. If one is raised, nothing was done.

StaffError
├── NotStaff          the actor is no longer staff, active and signed in
├── OwnAccount        staff may act on other accounts only
├── NotSuperuser      only a superuser may act on another staff account
├── MailNotSent       no mail server took the mail; the audit log has the attempt
└── NewerReport       the stored report is newer
"""

from __future__ import annotations

from dynamo.extending import ErrorWithValues


class StaffError(ErrorWithValues):
    """`subject` is the account or the report that the error is about."""

    subject: str


class NotStaff(StaffError):
    text = "The account {subject} is no longer staff, active and signed in."


class OwnAccount(StaffError):
    text = "The account {subject} is the actor's own."


class NotSuperuser(StaffError):
    text = "The account {subject} is staff: only a superuser may act on it."


class MailNotSent(StaffError):
    text = "The mail to the account {subject} was not sent."


class NewerReport(StaffError):
    text = "{subject}: a newer report is already stored, so this one was not stored."
