"""The signal of uploads."""

from django.dispatch import Signal

#: A file of a run was uploaded, skipped, or not uploaded. Arguments: outcome (str): `uploaded`,
#: `skipped`, `conflict` or `failed`; size (int): its bytes. An error of a receiver ends the run.
file_done = Signal()
