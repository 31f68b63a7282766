"""Errors of staff's actions and reports. If one is raised, nothing was written.

StaffError
├── NotStaff          the actor is no longer staff, active and signed in
├── OwnAccount        staff may act on other accounts only
├── NotSuperuser      only a superuser may act on another staff account
└── NewerReport       the stored report is newer
"""

from __future__ import annotations


class StaffError(Exception):
    """`subject` is the account or the report that the error is about."""

    message = "{}"

    def __init__(self, subject: str) -> None:
        super().__init__(subject)
        self.subject = subject

    def __str__(self) -> str:
        return self.message.format(self.subject)


class NotStaff(StaffError):
    message = "The account {} is no longer staff, active and signed in."


class OwnAccount(StaffError):
    message = "The account {} is the actor's own."


class NotSuperuser(StaffError):
    message = "The account {} is staff: only a superuser may act on it."


class NewerReport(StaffError):
    message = "{}: a newer report is already stored, so this one was not stored."
