"""What a table should have besides its key, and what not every engine knows.

Deletion protection, point-in-time recovery and TTL are each asked for by one operation and turned
on by another. An engine that does not know the operation is passed over: there is nothing to turn
on, and nothing to warn about.

Source: API reference, https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dynamo.client import send
from dynamo.exceptions import Rejected, Unavailable

DELETION_PROTECTION = "deletion protection"
RECOVERY = "point-in-time recovery"
TTL = "time to live"

#: dynoxide, ministack, DynamoDB Local and AWS say so alike of an operation that they do not know.
UNKNOWN_OPERATION = "UnknownOperationException"

# The table was made, or is being changed, a moment ago.
_BUSY = {"ContinuousBackupsUnavailableException", "ResourceInUseException"}
_PAUSE_SECONDS = 1.0


@dataclass(frozen=True)
class Feature:
    """One feature of one table. `read` finds its state in the answer to `question`.

    The state is None where the engine does not know the feature.
    """

    name: str
    table: str
    question: str
    read: Callable[[dict[str, Any]], bool | None]
    operation: str
    change: dict[str, Any]

    def is_off(self) -> bool:
        """Whether the engine knows the feature and the table lacks it. Costs 1 request."""
        try:
            answer = send(self.question, {"TableName": self.table})
        except Rejected as error:
            if error.code != UNKNOWN_OPERATION:
                raise
            return False
        return self.read(answer) is False

    def turn_on(self, patience_seconds: float) -> bool:
        """Turn the feature on where it is off; whether this call did. Costs 1 or 2 requests.

        Raises:
            Unavailable: the table was busy for longer than `patience_seconds`.
            Rejected: DynamoDB refuses: rights, or TTL that was changed less than an hour ago.
        """
        ends_at = time.monotonic() + patience_seconds
        while self.is_off():
            try:
                send(self.operation, {"TableName": self.table, **self.change})
            except Rejected as error:
                if error.code == UNKNOWN_OPERATION:
                    return False
                if error.code in _BUSY:
                    if time.monotonic() > ends_at:
                        raise Unavailable(self.operation, error.code) from error
                    time.sleep(_PAUSE_SECONDS)
                elif self.is_off():  # else a rival turned it on between our question and change
                    raise
            else:
                return True
        return False


def features_of(table: str, ttl_attribute: str | None) -> list[Feature]:
    """The features that the table of this full name should have; TTL only with an attribute."""
    features = [
        Feature(
            DELETION_PROTECTION,
            table,
            "DescribeTable",
            lambda answer: answer["Table"].get("DeletionProtectionEnabled"),
            "UpdateTable",
            {"DeletionProtectionEnabled": True},
        ),
        Feature(
            RECOVERY,
            table,
            "DescribeContinuousBackups",
            _recovers,
            "UpdateContinuousBackups",
            {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}},
        ),
    ]
    if ttl_attribute is not None:
        features.append(
            Feature(
                TTL,
                table,
                "DescribeTimeToLive",
                lambda answer: _expires_by(answer, ttl_attribute),
                "UpdateTimeToLive",
                {"TimeToLiveSpecification": {"Enabled": True, "AttributeName": ttl_attribute}},
            )
        )
    return features


def _recovers(answer: dict[str, Any]) -> bool:
    backups = answer["ContinuousBackupsDescription"]
    recovery = backups.get("PointInTimeRecoveryDescription", {})
    return bool(recovery.get("PointInTimeRecoveryStatus") == "ENABLED")


def _expires_by(answer: dict[str, Any], attribute: str) -> bool:
    ttl = answer["TimeToLiveDescription"]
    # AWS takes up to an hour from ENABLING to ENABLED, and takes no other change meanwhile.
    on = ttl.get("TimeToLiveStatus") in {"ENABLING", "ENABLED"}
    return on and ttl.get("AttributeName") == attribute
