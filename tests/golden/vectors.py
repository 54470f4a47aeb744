"""Events as other systems have sent them: <system>-vectors, one file an event."""

from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent
AWS_VECTORS = _FOLDER / "aws-vectors"
"""Captured from Amazon S3, as Storj has published them; the bucket, the account and the address are called
otherwise here."""
CEPH_VECTORS = _FOLDER / "ceph-vectors"
"""Recorded from radosgw 16.2.15."""


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """Every leaf by its path, in order."""
    if not isinstance(value, dict):
        return {path: value}
    found = {}
    for name, below in value.items():
        found.update(flat(below, f"{path}.{name}" if path else name))
    return found
