"""The tables of all models, and checks of what they hold.

`definitions` makes and describes tables, `checks` are Django's system checks, `guards` checks and
repairs guard items, `damage` finds items that no model can read, `findings` is what all checks
share.
"""
