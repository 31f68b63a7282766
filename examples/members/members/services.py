import uuid

from dynamo.transactions import Transaction
from dynamo.versions import next_version
from members.models import Member


class MemberError(Exception):
    pass


class Taken(MemberError):
    def __init__(self, attribute: str, value: str) -> None:
        super().__init__(f"Another member has the {attribute} {value}.")


class Stale(MemberError):
    def __init__(self) -> None:
        super().__init__("The member changed, or left, meanwhile.")


class Unknown(MemberError):
    def __init__(self, email: str) -> None:
        super().__init__(f"No member has the address {email}.")


def find(email: str) -> Member:
    try:
        return Member.unique.get("email", email)
    except Member.DoesNotExist:
        raise Unknown(email) from None


def join(email: str, card: str, name: str) -> Member:
    member = Member(str(uuid.uuid4()), email=email, card=card, name=name)
    with Transaction() as write:
        write.put(member, Member.pk.does_not_exist(), otherwise=Stale())
        Member.unique.claim(write, member, Taken)
    return member


def change(member: Member, **values: str) -> None:
    written = {**values, "version": next_version(member.version)}
    actions = Member.set_or_remove(written)
    with Transaction() as write:
        write.update(member, actions, Member.version == member.version, otherwise=Stale())
        Member.unique.move(write, member, values, Taken)
    for name, value in written.items():
        setattr(member, name, value)


def leave(member: Member) -> None:
    with Transaction() as write:
        write.delete(member, Member.version == member.version, otherwise=Stale())
        Member.unique.free(write, member)
