"""A bucket whose every new object goes to the usual topic, and the changes of some."""

from collections.abc import Iterable

from bucketwire.event.name import Operation
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import Slice
from factories import new_object, origin, rule, topic


def written_changes(metabase: Metabase, keys: Iterable[str]) -> list[bytes]:
    """Put objects with these keys in an empty metabase; what the stream tells of them."""
    metabase.buckets.create("media", "owner-1", "us-east-1")
    metabase.topics.put(topic())
    metabase.rules.edit("media", lambda _: [rule()])
    start = metabase.changes.start()
    for key in keys:
        metabase.objects.put("media", new_object(key), Operation.PUT, origin())
    return list(metabase.changes.read(Slice(start, metabase.changes.head(start, 1_000))))
