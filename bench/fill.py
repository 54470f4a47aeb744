"""Commits objects as the gateway does, without HTTP before it."""

from concurrent.futures import ThreadPoolExecutor

from bucketwire.event.change import Origin
from bucketwire.event.name import Operation
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import NewObject


def fill(metabase: Metabase, bucket: str, count: int) -> None:
    """Commit that many objects in the bucket."""
    origin = Origin("bench", "127.0.0.1", "0" * 16, "host")

    def put(number: int) -> None:
        new = NewObject(f"fill/{number}", 1024, "0" * 32, "bench", inline=b"x" * 1024)
        metabase.objects.put(bucket, new, Operation.PUT, origin)

    with ThreadPoolExecutor(32) as pool:
        list(pool.map(put, range(count)))
