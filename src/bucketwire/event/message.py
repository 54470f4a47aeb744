"""A message: the bytes for one topic, and what a publisher may need beside them."""

import msgspec


class Message(msgspec.Struct, frozen=True, gc=False):
    """`event_id` is the same each time the same change is composed for the same rule."""

    topic_arn: str
    event_id: str
    key: str
    """The raw object key, for brokers that partition or order by it."""
    body: bytes
    content_type: str = "application/json"
    committed_at_ns: int = 0
