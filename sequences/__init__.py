"""Counters, and series of items that are numbered 1, 2, 3 … without a gap."""

from dynamo._internal.lazy import lazily

__all__, __getattr__ = lazily(__name__, __file__)
