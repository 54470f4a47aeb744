"""A message as JSON for operators: what it is, and its body as it can be read."""

from base64 import b64encode
from typing import Any

import msgspec

from bucketwire.event.message import Message


def described(message: Message) -> dict[str, Any]:
    """The message's fields; a body that is not JSON is in base64, and `body_encoding` says so."""
    fields: dict[str, Any] = {
        "topic": message.topic_arn,
        "event_id": message.event_id,
        "key": message.key,
        "content_type": message.content_type,
    }
    if message.partition_key is not None:
        fields["partition_key_base64"] = b64encode(message.partition_key).decode()
    if message.cloudevent:
        fields["cloudevent"] = message.cloudevent
    return {**fields, **_body(message.body)}


def _body(body: bytes) -> dict[str, Any]:
    try:
        return {"body": msgspec.json.decode(body)}
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {"body": b64encode(body).decode(), "body_encoding": "base64"}
