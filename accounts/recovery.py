"""Ways back to an account: whose a typed address is, and what may be mailed there.

Whoever asks gets one answer for every address, and each address gets one mail; only its owner
learns from it whether there is an account.
"""

from __future__ import annotations

from accounts.finding import find_evenly
from accounts.models import User
from accounts.values import comparable_username, is_deliverable


def whom_to_mail(address: str) -> User | None:
    """The account that has the address; None where there is none, or nobody can sign in to it.

    Nor where no mail can go to the address as it was typed, or as it is stored (the sign for kelvin
    is another spelling of a k): that it fails for one of them alone would tell that there is one.
    Costs 2 requests and 2 read units.
    """
    user = find_evenly(address)
    if user is None or not (user.is_active and user.has_usable_password()):
        return None
    return user if is_deliverable(address) and is_deliverable(user.email) else None


def name_to_mail(user: User) -> str:
    """The user name as it may stand in a mail to the account's address; empty where it must not.

    Mail programs make a link of `win.prize.example`. Whoever signs up with a stranger's address
    must not have it sent there.
    """
    is_harmless = user.is_confirmed or "." not in comparable_username(user.username)
    return user.username if is_harmless else ""
