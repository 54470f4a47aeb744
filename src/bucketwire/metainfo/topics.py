"""Topics: what may be one, whose it is, what creating and setting it means. Pure.

What a topic may be set to stands in `topic_attributes`, how it is shown in `topic_view`. A topic belongs to
the user who made it; its Policy may open it to others. Whatever changes one is a function from the topic as
it is to the topic as it shall be, so that `Topics.edit` can apply it with nothing between.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from bucketwire.access.policy import (
    CREATE,
    NO_ACCOUNT,
    PUBLISH,
    S3_SERVICE,
    SET,
    SOURCE_ACCOUNT,
    SOURCE_ARN,
    TAG,
    UNTAG,
    Decision,
    Policy,
    Who,
    decide,
    parse_policy,
)
from bucketwire.errors import Denied, InvalidRequest, NotFound
from bucketwire.event.arn import TopicArn, parse_topic_arn, valid_topic_name
from bucketwire.event.dialect import Dialect
from bucketwire.event.topic import Topic
from bucketwire.metainfo.topic_attributes import (
    check_order,
    check_policy,
    check_together,
    checked_attributes,
    is_legible,
)
from bucketwire.metainfo.topic_view import shown_attributes, without_password

__all__ = [
    "checked_arn",
    "checked_tags",
    "created_topic",
    "existing_topic",
    "may",
    "may_publish",
    "set_attribute",
    "shown_attributes",
    "tagged",
    "topic_arn",
    "untagged",
    "without_password",
]

_MAX_ARN_CHARACTERS = 512
_MAX_TAGS = 50
_MAX_TAG_KEY = 128
_MAX_TAG_VALUE = 256

Change = Callable[[Topic | None], Topic | None]
"""What `Topics.edit` takes."""


def topic_arn(name: str, region: str, tenant: str, dialect: Dialect) -> str:
    """The ARN of a topic of that name; `InvalidRequest` when no topic can have it."""
    if not valid_topic_name(name):
        raise InvalidRequest("Invalid parameter: Topic Name", code=dialect.bad_topic_code)
    return str(TopicArn(region, tenant or dialect.topic_tenant, name))


def checked_arn(text: str, dialect: Dialect) -> str:
    """The ARN, if it is a topic's."""
    try:
        parse_topic_arn(text)
    except InvalidRequest as problem:
        raise _bad_arn(dialect) from problem
    if len(text) > _MAX_ARN_CHARACTERS or not text.isprintable():
        raise _bad_arn(dialect)
    return text


def may(topic: Topic, who: Who, action: str, context: Mapping[str, str] | None = None) -> bool:
    """Whether the owner wants to do this, or someone to whom the Policy opens it."""
    if topic.owner_id == who.user_id:
        return True
    policy = _policy(topic.attributes.get("Policy", ""))
    return decide(policy, who, action, topic.arn, context or {}) is Decision.ALLOWED


def may_publish(topic: Topic, user_id: str, tenant: str, user_name: str, bucket: str) -> bool:
    """Whether this user may have the changes of its bucket sent to the topic.

    A Policy may open the topic to the user, or to S3 acting for the bucket.
    """
    context = {SOURCE_ARN: f"arn:aws:s3:::{bucket}", SOURCE_ACCOUNT: tenant or NO_ACCOUNT}
    return may(topic, Who(tenant, user_name, user_id, service=S3_SERVICE), PUBLISH, context)


def created_topic(wanted: Topic, who: Who, dialect: Dialect) -> Change:
    """Makes the topic, or finds that it is there; raises when it cannot be had."""
    checked = msgspec.structs.replace(wanted, attributes=checked_attributes(wanted.attributes, dialect))
    check_policy(checked.attributes, wanted.arn, dialect)

    def change(existing: Topic | None) -> Topic | None:
        if existing is None or existing.deleted_at_ns is not None:
            _check_free(existing, who)
            check_together(checked.attributes, dialect)
            check_order(checked.attributes, {}, dialect)
            return checked
        _check_may(existing, who, CREATE)
        if not dialect.recreated_topic_updates:
            _check_same(existing, checked, dialect)
            return None
        check_together(checked.attributes, dialect)
        check_order(checked.attributes, existing.attributes, dialect)
        return msgspec.structs.replace(
            existing, attributes=checked.attributes, tags=checked.tags or existing.tags
        )

    return change


def set_attribute(name: str, value: str, who: Who, dialect: Dialect) -> Change:
    """Sets one attribute and keeps the others; an empty value unsets it."""
    checked = checked_attributes({name: value}, dialect)

    def change(existing: Topic | None) -> Topic:
        topic = existing_topic(existing, who, SET, dialect)
        check_policy(checked, topic.arn, dialect)
        others = {each: text for each, text in topic.attributes.items() if each != name}
        attributes = {**others, **checked}
        check_together(attributes, dialect)
        check_order(attributes, topic.attributes, dialect)
        return msgspec.structs.replace(topic, attributes=attributes)

    return change


def tagged(tags: Mapping[str, str], who: Who, dialect: Dialect) -> Change:
    """Sets tags and keeps the others."""

    def change(existing: Topic | None) -> Topic:
        topic = existing_topic(existing, who, TAG, dialect)
        together = {**topic.tags, **tags}
        _check_tags(together, dialect)
        return msgspec.structs.replace(topic, tags=together)

    return change


def untagged(keys: Iterable[str], who: Who, dialect: Dialect) -> Change:
    """Removes tags; one that is not there is no error."""
    gone = set(keys)

    def change(existing: Topic | None) -> Topic:
        topic = existing_topic(existing, who, UNTAG, dialect)
        left = {name: text for name, text in topic.tags.items() if name not in gone}
        return msgspec.structs.replace(topic, tags=left)

    return change


def existing_topic(topic: Topic | None, who: Who, action: str, dialect: Dialect) -> Topic:
    """The topic, if there is one and this may be done with it."""
    if topic is None or topic.deleted_at_ns is not None:
        raise NotFound("Topic does not exist", code=dialect.unknown_topic_code)
    _check_may(topic, who, action)
    return topic


def checked_tags(sent: Iterable[Any], dialect: Dialect) -> dict[str, str]:
    """The tags of a request: each with a key and a value, no key twice."""
    tags: dict[str, str] = {}
    for each in sent:
        if not isinstance(each, dict) or each.keys() != {"Key", "Value"} or each["Key"] in tags:
            raise _bad_tags("each has a Key and a Value, and no Key comes twice", dialect)
        tags[each["Key"]] = each["Value"]
    _check_tags(tags, dialect)
    return tags


def _check_tags(tags: Mapping[str, str], dialect: Dialect) -> None:
    if len(tags) > _MAX_TAGS:
        raise _bad_tags(f"there are more than {_MAX_TAGS}", dialect)
    for name, text in tags.items():
        if not 0 < len(name) <= _MAX_TAG_KEY or len(text) > _MAX_TAG_VALUE:
            limits = f"a Key has 1 to {_MAX_TAG_KEY} characters, a Value up to {_MAX_TAG_VALUE}"
            raise _bad_tags(limits, dialect)
        if not is_legible(name + text):
            raise _bad_tags("they have characters that XML does not know", dialect)


def _check_free(deleted: Topic | None, who: Who) -> None:
    """The name of a deleted topic stays its owner's: messages for it may still be on their way."""
    if deleted is not None and deleted.owner_id != who.user_id:
        raise _not_yours()


def _check_may(topic: Topic, who: Who, action: str) -> None:
    if not may(topic, who, action):
        raise _not_yours()


def _check_same(existing: Topic, wanted: Topic, dialect: Dialect) -> None:
    """Creating a topic again is no change: what is asked for must be there."""
    for what, found, asked in (
        ("Attributes", existing.attributes, wanted.attributes),
        ("Tags", existing.tags, wanted.tags),
    ):
        if not asked.items() <= found.items():
            raise InvalidRequest(
                f"Invalid parameter: {what} Reason: Topic already exists with different {what.lower()}",
                code=dialect.bad_topic_code,
            )


@lru_cache(maxsize=256)
def _policy(text: str) -> Policy:
    """The policy that is stored; one that would be refused today opens nothing."""
    try:
        return parse_policy(text) if text else ()
    except InvalidRequest:
        return ()


def _not_yours() -> Denied:
    return Denied("The topic belongs to another user", code="AuthorizationError")


def _bad_arn(dialect: Dialect) -> InvalidRequest:
    return InvalidRequest("Invalid parameter: TopicArn", code=dialect.bad_topic_code)


def _bad_tags(reason: str, dialect: Dialect) -> InvalidRequest:
    return InvalidRequest(f"Invalid parameter: Tags Reason: {reason}", code=dialect.bad_topic_code)
