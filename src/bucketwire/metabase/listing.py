"""Pages of a listing, with common prefixes folded, once for all backends.

A backend gives the rows behind a place, in order; a prefix that is folded is jumped over, so that a folder
of a million keys costs one look.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

Item = TypeVar("Item")
Rank = TypeVar("Rank")

LAST = chr(0x10FFFF)
"""Sorts behind every character a key can have."""
_READ_ROWS = 1_000

Fetch = Callable[[str, Rank, int], list[tuple[str, Rank, Item]]]
"""(key, rank, limit) -> the next rows behind that place: key, rank among those of the key, item."""


class Folded(msgspec.Struct, Generic[Rank, Item], frozen=True):
    """What a page shows; `end` is the place to go on from, None on the last page."""

    items: list[Item]
    common_prefixes: list[str]
    end: tuple[str, Rank] | None


def fold(
    fetch: Fetch[Rank, Item],
    *,
    prefix: str,
    delimiter: str,
    after: tuple[str, Rank],
    beyond: Rank,
    limit: int,
) -> Folded[Rank, Item]:
    """Up to `limit` items and common prefixes behind `after`; `beyond` is a rank behind all of a key."""
    items: list[Item] = []
    folded: list[str] = []
    key, rank = after
    ended = key[: -len(LAST)] if key.endswith(LAST) else None
    while True:
        count = min(_READ_ROWS, limit + 1 - len(items) - len(folded))
        rows = fetch(key, rank, count)
        for row_key, row_rank, item in rows:
            if not row_key.startswith(prefix):
                return Folded(items, folded, None)
            common = _common_prefix(row_key, prefix, delimiter)
            if common is not None and common == ended:
                key, rank = row_key, row_rank
                continue
            if len(items) + len(folded) == limit:
                return Folded(items, folded, (key, rank))
            if common is not None:
                folded.append(common)
                ended, key, rank = common, common + LAST, beyond
                break  # go on behind the prefix
            items.append(item)
            key, rank = row_key, row_rank
        else:
            if len(rows) < count:
                return Folded(items, folded, None)


def _common_prefix(key: str, prefix: str, delimiter: str) -> str | None:
    if not delimiter:
        return None
    at = key.find(delimiter, len(prefix))
    return key[: at + len(delimiter)] if at >= 0 else None
