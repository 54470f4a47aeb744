"""Bucketwire: S3-compatible bucket event notifications, delivered at least once."""

__version__ = "0.1.0"
