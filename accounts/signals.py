"""The signals of accounts. Errors of receivers are only logged."""

from django.dispatch import Signal

#: A registration or a change was refused because another account has the value. Argument:
#: attribute (str): the stored name of the unique attribute, such as "userName".
value_taken = Signal()

#: An account was deleted, by this process or before the same deletion was repeated. Argument:
#: pk (str). Sent after the commit, so a receiver is not called if the process is killed between.
account_deleted = Signal()
