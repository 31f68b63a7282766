from accounts.models import account_model
from dynamo.management.commands import checkunique


def _settled_by() -> str:
    """The commands and calls that change the unique values of an account."""
    uniques = account_model().uniques()
    commands = {("email",): "changeemail", ("username",): "changeusername"}
    named = " or ".join(command for names, command in commands.items() if names in uniques)
    others = [names for names in uniques if names not in commands]
    changes = (f", or account.change({'=…, '.join(names)}=…)" for names in others)
    return f"{named} with its key{''.join(changes)}"


class Command(checkunique.Command):
    help = (
        "Check that every account has a guard item for each unique value, and every guard item its "
        "account. "
        "missing: an account without its guard item; "
        "orphaned: a guard item of a value that no account has; "
        "foreign: the guard item of an account's value names another account as its owner; "
        "shared: that other account has the value too, so a person must decide. "
        "Reads the whole table: 1 read unit per 4 KB of all items in it."
    )
    model = account_model()
    items_name = "users"
    noun = "account"
    oldest_by = account_model().date_joined.attr_name
    settled_by = _settled_by()
