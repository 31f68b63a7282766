"""The signals of accounts. Errors of receivers are only logged."""

from django.dispatch import Signal

#: A registration or a change was refused because another account has the value. Argument:
#: attribute (str): the stored name of the unique attribute, such as "userName".
value_taken = Signal()

#: An account was deleted, by its page or by `deleteuser`. Argument: account (str): its primary key.
account_deleted = Signal()
