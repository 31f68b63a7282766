"""AWS's prices and limits: constants of one region on one day, with their sources.

Prices: us-east-1, on demand, Standard table class, read on 2026-11-21. They change; AWS halved the
throughput's in November 2024. Change them here and run `python -m benchmarks.scale` again.
"""

from __future__ import annotations

REGION = "us-east-1"
READ_ON = "2026-11-21"

#: https://aws.amazon.com/dynamodb/pricing/on-demand/
WRITE_DOLLARS = 0.625e-6
READ_DOLLARS = 0.125e-6
#: A gigabyte for a month, beyond the first 25; and of continuous backups (point-in-time recovery).
STORAGE_DOLLARS = 0.25
BACKUP_DOLLARS = 0.20

#: https://aws.amazon.com/s3/pricing/
PUT_DOLLARS = 5e-6

#: Per partition and second. "Best practices for designing and using partition keys",
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
PARTITION_WRITES = 1_000
PARTITION_READS = 3_000

#: Per new on-demand table and second; see "warm throughput",
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput-scenarios.html
NEW_TABLE_WRITES = 4_000
NEW_TABLE_READS = 12_000
#: The units per second of a table until AWS raises the quota,
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
TABLE_QUOTA = 40_000

#: The bytes that storing an item takes in addition to its attributes,
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
ITEM_OVERHEAD_BYTES = 100


def dollars(writes: float, reads: float, puts: float = 0) -> float:
    """The dollars of units and of PUTs to S3."""
    return writes * WRITE_DOLLARS + reads * READ_DOLLARS + puts * PUT_DOLLARS
