"""The signals of accounts. Unless stated otherwise, errors of receivers are only logged."""

from django.dispatch import Signal

#: A registration or a change was refused because another account has the value. Argument:
#: attribute (str): the stored name of the unique attribute, such as "userName".
value_taken = Signal()

#: An account is being deleted. Receivers add what else must be deleted in the same transaction, or
#: a task that deletes it later (`outbox`). An error prevents the deletion. Arguments: account
#: (str): its primary key; write (Transaction).
account_deleting = Signal()

#: The owner of an account downloads the data that is stored about it. Receivers return a dictionary
#: of the data that they store, by name, with values for JSON. Argument: user (AbstractAccount).
account_exporting = Signal()
