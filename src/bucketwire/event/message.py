"""A message: the bytes for one topic, and what a publisher may need beside them."""

import msgspec


class Message(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """`event_id` is the same each time the same change is composed for the same rule."""

    topic_arn: str
    event_id: str
    key: str
    """The raw object key: it travels beside the body, and orders messages where the topic asks for that."""
    body: bytes
    content_type: str = "application/json"
    committed_at_ns: int = 0
    partition_key: bytes | None = None
    """What a broker with partitions places the message by; None leaves that to it."""
    cloudevent: dict[str, str] = {}
    """CloudEvents attributes that travel beside the body, by their bare names: binary mode."""
