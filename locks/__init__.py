"""Locks: leases with heartbeats and fencing tokens."""

from dynamo._internal.lazy import lazily

__all__, __getattr__ = lazily(__name__, __file__)
