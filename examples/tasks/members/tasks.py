from django.core.mail import send_mail

from members.models import Member
from outbox import task


@task
def send_welcome(member_pk: str) -> None:
    member = Member.get(member_pk)
    send_mail("Welcome", f"{member.name}, you are a member now.", None, [member.email])
