"""Reading and changing the seller of an account's invoices."""

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from accounts.models import AbstractAccount
from dynamo import Transaction
from dynamo.client.writes import Write
from dynamo.wire.types import Item, Request
from invoices.document.fields import check_printable, fields_of
from invoices.document.invoice import Seller
from invoices.models import SellerProfile


def profile_of(account: str) -> SellerProfile:
    """The stored profile of the account's seller, or an empty one.

    Costs 1 request and 1 read unit.
    """
    return SellerProfile.get_or_none(account) or SellerProfile(account)


def open_profile(user: AbstractAccount, profile: SellerProfile) -> SellerProfile:
    """The stored `profile` of the seller `user`, for a change. If there is none, it is created.

    Costs nothing if it is stored; else 1 request and 4 write units, because it requires that the
    account still exists.

    Raises:
        StaleUser: the account was deleted since `user` was read.
    """
    if profile.stored:
        return profile
    try:
        with Transaction() as write:
            user.require(write=write)
            return profile.insert(write=write)
    except SellerProfile.AlreadyExists:
        return SellerProfile.get(user.pk)


def delete_seller(account: str, *, write: Transaction) -> None:
    """Delete the profile of the account's seller with `write`, even if it changed since.

    Costs 2 write units.
    """
    profile = SellerProfile(account)
    key: Item = {"account": {"S": account}}
    request: Request = {"TableName": profile.table(), "Key": key}
    write.add(Write(profile, "Delete", request, otherwise=None))


def seller_of(user: AbstractAccount, profile: SellerProfile) -> Seller:
    """The seller of an invoice that `user` issues now."""
    values = {item.name: getattr(profile, item.name, None) or "" for item in fields_of(Seller)}
    name = profile.name or user.full_name
    values["name"] = name or user.get_username()
    return Seller(**values, is_named=bool(name))


def check_seller(seller: Seller) -> None:
    """Raises ValidationError if the seller cannot be printed. The profile does not check it."""
    try:
        for item in fields_of(Seller):
            check_printable(getattr(seller, item.name))
    except ValidationError as error:
        raise ValidationError(
            _("Change your profile first. %(problem)s"),
            "seller",
            {"problem": " ".join(error.messages)},
        ) from error
