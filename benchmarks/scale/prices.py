"""What AWS asks and allows: constants of one region on one day, with where they were read.

Prices: us-east-1, on demand, Standard table class, read on 2026-11-21. They change; AWS halved the
throughput's in November 2024. Change them here and run `python -m benchmarks.scale` again.
"""

from __future__ import annotations

REGION = "us-east-1"
READ_ON = "2026-11-21"

#: https://aws.amazon.com/dynamodb/pricing/on-demand/
WRITE_DOLLARS = 0.625e-6
READ_DOLLARS = 0.125e-6
#: A gigabyte for a month, beyond the first 25; continuous backups (point-in-time recovery) besides.
STORAGE_DOLLARS = 0.25
BACKUP_DOLLARS = 0.20

#: https://aws.amazon.com/s3/pricing/
PUT_DOLLARS = 5e-6

#: A partition, a second. "Best practices for designing and using partition keys",
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
PARTITION_WRITES = 1_000
PARTITION_READS = 3_000
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.Partitions.html
PARTITION_GB = 10

#: A new on-demand table, a second; see "warm throughput",
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput-scenarios.html
NEW_TABLE_WRITES = 4_000
NEW_TABLE_READS = 12_000
#: What an account may use of a table before it asks for more,
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
TABLE_QUOTA = 40_000

#: What storing an item takes besides its attributes,
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
ITEM_OVERHEAD_BYTES = 100


def dollars(writes: float, reads: float, puts: float = 0) -> float:
    """What so many units, and PUTs to S3, cost."""
    return writes * WRITE_DOLLARS + reads * READ_DOLLARS + puts * PUT_DOLLARS
