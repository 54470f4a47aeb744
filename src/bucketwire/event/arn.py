"""ARNs of topics. `arn:aws:sns:<region>:<tenant>:<name>`."""

import re

import msgspec

from bucketwire.errors import InvalidRequest

_TOPIC_NAME = re.compile(r"[A-Za-z0-9_-]{1,256}")
_TOPIC_ARN = re.compile(
    r"arn:(?P<partition>[a-z-]+):sns:(?P<region>[a-z0-9-]*):(?P<tenant>[^:]*):(?P<name>[^:]+)"
)


class TopicArn(msgspec.Struct, frozen=True):
    """The parts of a topic's ARN."""

    region: str
    tenant: str
    name: str

    def __str__(self) -> str:
        return f"arn:aws:sns:{self.region}:{self.tenant}:{self.name}"


def valid_topic_name(name: str) -> bool:
    """Letters, digits, hyphen and underscore, 256 at most."""
    return _TOPIC_NAME.fullmatch(name) is not None


def parse_topic_arn(text: str) -> TopicArn:
    """The parts of the ARN; raises `InvalidRequest` with S3's words when there are none."""
    found = _TOPIC_ARN.fullmatch(text)
    if found is None or not valid_topic_name(found["name"]):
        raise InvalidRequest(
            "The ARN could not be parsed",
            code="InvalidArgument",
            fields={"ArgumentName": "Topic", "ArgumentValue": text},
        )
    return TopicArn(found["region"], found["tenant"], found["name"])
