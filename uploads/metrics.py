"""What is measured of uploads, for Prometheus. See `docs/operators.md`."""

from __future__ import annotations

from prometheus_client import Counter

FILES = Counter("uploads_files", "Files by what became of them.", ["outcome"])
BYTES = Counter("uploads_bytes", "Bytes of the files that were uploaded.")
