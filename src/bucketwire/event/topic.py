"""A topic: a named destination, its owner and its attributes as they were set."""

import msgspec


class Topic(msgspec.Struct, frozen=True):
    """Attributes keep the names and values that the customer sent."""

    arn: str
    name: str
    owner_id: str
    attributes: dict[str, str] = {}
    created_at_ns: int = 0
    deleted_at_ns: int | None = None
    """A deleted topic is remembered, so that what was committed before still finds its way."""

    @property
    def endpoint(self) -> str:
        """Where messages go, as a URL; empty when the topic has none."""
        return self.attributes.get("push-endpoint", "")
