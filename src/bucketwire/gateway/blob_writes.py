"""Bytes that become a blob, and the commit in the metabase that gives them a meaning.

    body -> writer -> blob, on the disk -> commit of the row that names it

A write that is refused leaves no bytes behind. Only where the commit itself ended in doubt do they stay: a
row may name them, and if none does, the sweep finds them.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from bucketwire.blobs import Blobs, BlobWriter
from bucketwire.errors import CallError, Unavailable
from bucketwire.gateway.body import ObjectBody, Verified
from bucketwire.gateway.services import Services

T = TypeVar("T")


async def write_blob(services: Services, body: ObjectBody, commit: Callable[[Verified, BlobWriter], T]) -> T:
    """Write the bytes as they come, and commit them in a thread once all have."""
    writer = await services.run(services.blobs.writer)
    try:
        async for piece in body.pieces():
            await services.run(_write, body, writer, piece)
        return await services.run(commit, body.verified(), writer)
    except BaseException:
        await asyncio.shield(services.run(writer.abort))
        raise


@contextmanager
def removed_if_refused(blobs: Blobs, *names: str) -> Iterator[None]:
    """Goes around the commit of the row that names the blobs, and around nothing else that may fail."""
    try:
        yield
    except Unavailable:
        raise  # whether the metabase has it is not certain, so the bytes stay
    except CallError:
        for name in names:
            blobs.remove(name)
        raise


def _write(body: ObjectBody, writer: BlobWriter, piece: bytes) -> None:
    body.digest(piece)
    writer.write(piece)
