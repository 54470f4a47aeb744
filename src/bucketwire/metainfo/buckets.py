"""Buckets: what one may be called, and where it is."""

import re

from bucketwire.errors import InvalidRequest

_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", re.ASCII)
_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+", re.ASCII)
_REGION = re.compile(r"[A-Za-z0-9:_-]{1,64}", re.ASCII)
_NO_LABELS = ("..", ".-", "-.")
"""What cannot stand in the name of a host."""
_RESERVED_PREFIXES = ("xn--", "sthree-", "amzn-s3-demo-")
_RESERVED_SUFFIXES = ("-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3")


def check_bucket_name(name: str) -> None:
    """Raises `InvalidRequest` with InvalidBucketName unless S3 would allow the name."""
    if (
        _NAME.fullmatch(name) is None
        or any(text in name for text in _NO_LABELS)
        or _ADDRESS.fullmatch(name)
        or name.startswith(_RESERVED_PREFIXES)
        or name.endswith(_RESERVED_SUFFIXES)
    ):
        raise InvalidRequest(
            "The specified bucket is not valid.", code="InvalidBucketName", fields={"BucketName": name}
        )


def bucket_region(constraint: str | None, default: str) -> str:
    """The region of a new bucket."""
    if not constraint:
        return default
    if _REGION.fullmatch(constraint) is None:
        raise InvalidRequest(
            "The specified location-constraint is not valid", code="InvalidLocationConstraint"
        )
    return constraint
