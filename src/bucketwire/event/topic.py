"""A topic: a named destination, its owner and its attributes as they were set."""

import msgspec

from bucketwire.event.arn import PubsubArn, parse_destination_arn

ENDPOINT = "push-endpoint"


class Topic(msgspec.Struct, frozen=True):
    """Attributes keep the names and values that the customer sent."""

    arn: str
    name: str
    owner_id: str
    attributes: dict[str, str] = {}
    created_at_ns: int = 0
    deleted_at_ns: int | None = None
    """A deleted topic is remembered, so that what was committed before still finds its way."""
    changed_at_ns: int = 0
    """When it was last set, on the clock of the changes."""
    tags: dict[str, str] = {}

    @property
    def endpoint(self) -> str:
        """Where messages go, as a URL; empty when the topic has none."""
        return self.attributes.get(ENDPOINT, "")

    @property
    def scheme(self) -> str:
        """What the endpoint begins with, in lower case; empty when the topic has none."""
        return self.endpoint.partition("://")[0].lower()

    @property
    def format(self) -> str:
        """`s3`, `cos` or `cloudevents`."""
        return self.attributes.get("format", "s3")

    @property
    def ordered(self) -> bool:
        """Whether messages about one key must stay in order on the way."""
        return self.attributes.get("ordering") == "key"

    def is_set(self, attribute: str, *, default: bool = False) -> bool:
        """The value of an attribute that is `true` or `false`."""
        text = self.attributes.get(attribute)
        return default if text is None else text.lower() == "true"


def topic_named_by(arn: str) -> Topic | None:
    """The topic that an ARN names by itself, with nothing stored: one of Google Pub/Sub."""
    if not arn.startswith("arn:gcp:"):
        return None
    destination = parse_destination_arn(arn)
    if not isinstance(destination, PubsubArn):
        return None
    return Topic(arn, destination.topic, "", {ENDPOINT: destination.endpoint})
