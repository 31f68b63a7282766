"""What can go wrong where staff acts.

StaffError
├── NotStaff          who acts is no longer staff, active and signed in
├── OwnAccount        staff acts on others' accounts only
└── NotSuperuser      only a superuser acts on another staff account
"""

from __future__ import annotations


class StaffError(Exception):
    """Base of every error of staff's actions."""


class NotStaff(StaffError):
    """The account `pk` may not act any more; nothing was written."""

    def __init__(self, pk: str) -> None:
        super().__init__(pk)
        self.pk = pk

    def __str__(self) -> str:
        return f"The account {self.pk} is no longer staff, active and signed in."


class OwnAccount(StaffError):
    """Nobody acts as staff on the own account, here `pk`."""

    def __init__(self, pk: str) -> None:
        super().__init__(pk)
        self.pk = pk

    def __str__(self) -> str:
        return f"The account {self.pk} is one's own."


class NotSuperuser(StaffError):
    """Only a superuser acts on the account `pk`, which is staff; nothing was written."""

    def __init__(self, pk: str) -> None:
        super().__init__(pk)
        self.pk = pk

    def __str__(self) -> str:
        return f"The account {self.pk} is staff: only a superuser may act on it."
