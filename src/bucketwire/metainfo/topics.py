"""Topics: what may be one, what creating it again means, and how it is shown. Pure."""

import re
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

from bucketwire.errors import Denied, InvalidRequest, NotFound
from bucketwire.event.arn import TopicArn, parse_topic_arn, valid_topic_name
from bucketwire.event.dialect import Dialect
from bucketwire.event.topic import Topic
from bucketwire.publish import SCHEMES

ENDPOINT = "push-endpoint"
_FLAGS = ("persistent", "verify-ssl")
_ATTRIBUTES = (ENDPOINT, "OpaqueData", *_FLAGS)
_MAX_ENDPOINT_CHARACTERS = 2048
_HIDDEN = "****"
_ILLEGIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def topic_arn(name: str, region: str, dialect: Dialect) -> str:
    """The ARN of a topic of that name; `InvalidRequest` when no topic can have it."""
    if not valid_topic_name(name):
        raise InvalidRequest("Invalid parameter: Topic Name", code=dialect.bad_topic_code)
    return str(TopicArn(region, dialect.topic_tenant, name))


def checked_arn(text: str, dialect: Dialect) -> str:
    """The ARN, if it is a topic's."""
    try:
        parse_topic_arn(text)
    except InvalidRequest as problem:
        raise InvalidRequest("Invalid parameter: TopicArn", code=dialect.bad_topic_code) from problem
    return text


def created_topic(existing: Topic | None, wanted: Topic, dialect: Dialect) -> Topic | None:
    """The topic to put, or None when the existing one is what is wanted; raises when it cannot be had."""
    if existing is None or existing.deleted_at_ns is not None:
        _check_attributes(wanted.attributes, dialect)
        return wanted
    check_owner(existing, wanted.owner_id)
    if dialect.recreated_topic_updates:
        _check_attributes(wanted.attributes, dialect)
        return wanted
    if not wanted.attributes.items() <= existing.attributes.items():
        raise InvalidRequest(
            "Invalid parameter: Attributes Reason: Topic already exists with different attributes",
            code=dialect.bad_topic_code,
        )
    return None


def existing_topic(topic: Topic | None, caller_id: str) -> Topic:
    """The topic, if there is one and it is the caller's."""
    if topic is None or topic.deleted_at_ns is not None:
        raise NotFound("Topic does not exist", code="NotFound")
    check_owner(topic, caller_id)
    return topic


def check_owner(topic: Topic, caller_id: str) -> None:
    """Raises when the topic is someone else's."""
    if topic.owner_id != caller_id:
        raise Denied("The topic belongs to another user", code="AuthorizationError")


def shown_attributes(topic: Topic) -> dict[str, str]:
    """What a caller may see of a topic: no password that stands in its endpoint."""
    attributes = {"TopicArn": topic.arn, "Owner": topic.owner_id, "Name": topic.name, **topic.attributes}
    if ENDPOINT in attributes:
        attributes[ENDPOINT] = without_password(attributes[ENDPOINT])
    return attributes


def without_password(endpoint: str) -> str:
    """The URL with its password hidden."""
    parts = urlsplit(endpoint)
    if parts.password is None:
        return endpoint
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{parts.username}:{_HIDDEN}@{host}").geturl()


def _check_attributes(attributes: Mapping[str, str], dialect: Dialect) -> None:
    unknown = sorted(attributes.keys() - set(_ATTRIBUTES))
    if unknown:
        raise _bad_attribute(", ".join(unknown), f"supported are {', '.join(_ATTRIBUTES)}", dialect)
    if any(_ILLEGIBLE.search(text) for text in attributes.values()):
        raise _bad_attribute("the value", "it has characters that XML does not know", dialect)
    for name in _FLAGS:
        if attributes.get(name, "true") not in {"true", "false"}:
            raise _bad_attribute(name, "it is true or false", dialect)
    if not _valid_endpoint(attributes.get(ENDPOINT, "")):
        raise _bad_attribute(ENDPOINT, f"it is a URL that starts with {_schemes()}", dialect)


def _valid_endpoint(endpoint: str) -> bool:
    if len(endpoint) > _MAX_ENDPOINT_CHARACTERS or not endpoint.isascii() or not endpoint.isprintable():
        return False
    parts = _split(endpoint)
    return parts is not None and parts.scheme in SCHEMES and bool(parts.hostname) and " " not in endpoint


def _split(endpoint: str) -> SplitResult | None:
    """The parts of the URL; None when it is none, or its port is no number."""
    try:
        parts = urlsplit(endpoint)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _schemes() -> str:
    return " or ".join(f"{scheme}://" for scheme in SCHEMES)


def _bad_attribute(name: str, reason: str, dialect: Dialect) -> InvalidRequest:
    return InvalidRequest(
        f"Invalid parameter: Attributes Reason: {name}: {reason}", code=dialect.bad_topic_code
    )
