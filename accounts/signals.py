"""The signal of accounts, for metrics. Errors of receivers are only logged."""

from django.dispatch import Signal

#: A registration or a change was refused because another account has the value. Argument:
#: attribute (str): the stored name of the unique attribute, such as "userName".
value_taken = Signal()
