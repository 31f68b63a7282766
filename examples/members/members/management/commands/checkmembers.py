from dynamo.management.checkguards import GuardsCommand
from members.models import Member


class Command(GuardsCommand):
    help = "Check that every member has its guards, and every guard its member."
    unique = Member.unique
    noun = "member"
