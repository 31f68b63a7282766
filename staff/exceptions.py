"""Errors of staff's reports. If one is raised, nothing was done.

StaffError
└── NewerReport       the stored report is newer
"""

from __future__ import annotations

from dynamo.extending import ErrorWithValues


class StaffError(ErrorWithValues):
    """`subject` is the report that the error is about."""

    subject: str


class NewerReport(StaffError):
    text = "{subject}: a newer report is already stored, so this one was not stored."
