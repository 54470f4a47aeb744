"""ARNs of destinations: `arn:aws:sns:<region>:<tenant>:<name>` and `arn:gcp:pubsub::<project>:<topic>`."""

import re

import msgspec

from bucketwire.errors import InvalidRequest

_TOPIC_NAME = re.compile(r"[A-Za-z0-9_-]{1,256}")
_TOPIC_ARN = re.compile(
    r"arn:(?P<partition>[a-z-]+):sns:(?P<region>[a-z0-9-]*):(?P<tenant>[^:]*):(?P<name>[^:]+)"
)
_PUBSUB_ARN = re.compile(r"arn:gcp:pubsub::(?P<project>[^:]+(?::[^:]+)?):(?P<topic>[^:]+)")
# Google's own rules: six to thirty characters, perhaps behind a domain; a letter first, not "goog".
_PROJECT = re.compile(r"(?:[a-z0-9.-]{1,63}:)?[a-z][a-z0-9-]{4,28}[a-z0-9]")
_PUBSUB_TOPIC = re.compile(r"(?!goog)[A-Za-z][A-Za-z0-9._~+%-]{2,254}")


class TopicArn(msgspec.Struct, frozen=True):
    """The parts of a topic's ARN."""

    region: str
    tenant: str
    name: str

    def __str__(self) -> str:
        return f"arn:aws:sns:{self.region}:{self.tenant}:{self.name}"


class PubsubArn(msgspec.Struct, frozen=True):
    """A topic of Google Pub/Sub, named directly."""

    project: str
    topic: str

    def __str__(self) -> str:
        return f"arn:gcp:pubsub::{self.project}:{self.topic}"

    @property
    def endpoint(self) -> str:
        """As a topic's push-endpoint would have it."""
        return f"pubsub://{self.project}/{self.topic}"


def valid_topic_name(name: str) -> bool:
    """Letters, digits, hyphen and underscore, 256 at most."""
    return _TOPIC_NAME.fullmatch(name) is not None


def valid_pubsub_names(project: str, topic: str) -> bool:
    """Whether Google would allow a project and a topic of these names."""
    return _PROJECT.fullmatch(project) is not None and _PUBSUB_TOPIC.fullmatch(topic) is not None


def parse_topic_arn(text: str) -> TopicArn:
    """The parts of the ARN; raises `InvalidRequest` with S3's words when there are none."""
    found = _TOPIC_ARN.fullmatch(text)
    if found is None or not valid_topic_name(found["name"]):
        raise _unparsable(text)
    return TopicArn(found["region"], found["tenant"], found["name"])


def parse_destination_arn(text: str) -> TopicArn | PubsubArn:
    """The parts of what a rule may name: a topic's ARN, or one of Pub/Sub."""
    if not text.startswith("arn:gcp:"):
        return parse_topic_arn(text)
    found = _PUBSUB_ARN.fullmatch(text)
    if found is None or not valid_pubsub_names(found["project"], found["topic"]):
        raise _unparsable(text)
    return PubsubArn(found["project"], found["topic"])


def _unparsable(text: str) -> InvalidRequest:
    return InvalidRequest(
        "The ARN could not be parsed",
        code="InvalidArgument",
        fields={"ArgumentName": "Topic", "ArgumentValue": text},
    )
