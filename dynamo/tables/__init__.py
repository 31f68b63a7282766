"""The tables of all models, and checks of their contents.

`definitions`: which tables do the models declare, and how are they created? `checks`: which of
Django's system checks are there? `guards`: does each item have its guard items, and how is that
repaired? `findings` is what all checks share.
"""
