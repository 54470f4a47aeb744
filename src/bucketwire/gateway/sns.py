"""Operations on topics, in the words of SNS."""

import binascii
import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping

from bucketwire.access.policy import DELETE, GET, LIST_TAGS, Who
from bucketwire.errors import InvalidRequest
from bucketwire.event.topic import Topic
from bucketwire.gateway.services import Call, Operation, Reply, takes
from bucketwire.gateway.transport import came_over_tls
from bucketwire.metainfo.topic_attributes import bad_attribute, secrets_among
from bucketwire.metainfo.topic_view import ceph_attributes, ceph_topic, sns_attributes
from bucketwire.metainfo.topics import (
    checked_arn,
    checked_tags,
    created_topic,
    existing_topic,
    set_attribute,
    tagged,
    topic_arn,
    untagged,
)

_PAGE = 100


async def create_topic(call: Call) -> Reply:
    """Create the topic, or find that it is there already."""
    services, name = call.services, call.input["Name"]
    wanted = Topic(
        arn=topic_arn(name, services.settings.region, call.tenant, services.dialect),
        name=name,
        owner_id=call.user_id,
        attributes=call.input.get("Attributes", {}),
        created_at_ns=time.time_ns(),
        tags=checked_tags(call.input.get("Tags", []), services.dialect),
    )
    change = created_topic(wanted, _who(call), services.dialect)
    _check_transport(call, wanted.attributes)
    await _edit(call, wanted.arn, change)
    return {"TopicArn": wanted.arn}


async def set_topic_attributes(call: Call) -> Reply:
    """Set one attribute; where messages go, from the next one on."""
    name, value = call.input["AttributeName"], call.input.get("AttributeValue", "")
    arn = checked_arn(call.input["TopicArn"], call.services.dialect)
    change = set_attribute(name, value, _who(call), call.services.dialect)
    _check_transport(call, {name: value})
    await _edit(call, arn, change)
    return {}


async def get_topic_attributes(call: Call) -> Reply:
    """What the topic is set to; no secrets."""
    topic, dialect = await _found(call, "TopicArn", GET), call.services.dialect
    shown = ceph_attributes(topic, dialect) if dialect.topics_as_in_ceph else sns_attributes(topic)
    return {"Attributes": shown}


async def get_topic(call: Call) -> Reply:
    """The same in the form that Ceph had first."""
    return {"Topic": ceph_topic(await _found(call, "TopicArn", GET), call.services.dialect)}


async def list_topics(call: Call) -> Reply:
    """A page of the caller's topics, by ARN."""
    topics, dialect = call.services.metabase.topics, call.services.dialect
    after = _arn_from_token(call.input.get("NextToken", ""), call)
    found = await call.services.run(topics.owned_by, call.user_id, after=after, limit=_PAGE + 1)
    page = found[:_PAGE]
    return {
        "Topics": [
            ceph_topic(topic, dialect) if dialect.topics_as_in_ceph else {"TopicArn": topic.arn}
            for topic in page
        ],
        "NextToken": _token_from_arn(page[-1].arn) if len(found) > _PAGE else None,
    }


async def delete_topic(call: Call) -> Reply:
    """Delete the topic. One that does not exist is no error."""
    topics, dialect = call.services.metabase.topics, call.services.dialect
    arn, who = checked_arn(call.input["TopicArn"], dialect), _who(call)

    def job() -> None:
        topic = topics.get(arn)
        if topic is not None and topic.deleted_at_ns is None:
            existing_topic(topic, who, DELETE, dialect)
            topics.delete(arn)

    await call.services.run(job)
    call.services.synchronous.look_again()
    return {}


async def tag_resource(call: Call) -> Reply:
    """Set tags of the topic, and keep its others."""
    dialect = call.services.dialect
    arn = checked_arn(call.input["ResourceArn"], dialect)
    tags = checked_tags(call.input["Tags"], dialect)
    await _edit(call, arn, tagged(tags, _who(call), dialect))
    return {}


async def untag_resource(call: Call) -> Reply:
    """Remove tags of the topic; one that it does not have is no error."""
    dialect = call.services.dialect
    arn = checked_arn(call.input["ResourceArn"], dialect)
    await _edit(call, arn, untagged(call.input["TagKeys"], _who(call), dialect))
    return {}


async def list_tags_for_resource(call: Call) -> Reply:
    """The tags of the topic."""
    topic = await _found(call, "ResourceArn", LIST_TAGS)
    return {"Tags": [{"Key": name, "Value": text} for name, text in topic.tags.items()]}


async def _edit(call: Call, arn: str, change: Callable[[Topic | None], Topic | None]) -> None:
    await call.services.run(call.services.metabase.topics.edit, arn, change)
    call.services.synchronous.look_again()


def _who(call: Call) -> Who:
    credentials = call.caller.credentials
    return Who(call.tenant, credentials.display_name if credentials else "", call.user_id)


async def _found(call: Call, member: str, action: str) -> Topic:
    """The topic that a member names, if the caller may do this with it."""
    dialect = call.services.dialect
    topic = await call.services.run(
        call.services.metabase.topics.get, checked_arn(call.input[member], dialect)
    )
    return existing_topic(topic, _who(call), action, dialect)


def _check_transport(call: Call, attributes: Mapping[str, str]) -> None:
    """Raises when a secret came in clear text, unless the operator has allowed that."""
    settings = call.services.settings
    secrets = secrets_among(attributes)
    if not secrets or settings.secrets_in_cleartext or came_over_tls(call.request, settings.trusted_proxies):
        return
    reason = "a secret is taken over HTTPS only, unless the server runs with --allow-secrets-in-cleartext"
    raise bad_attribute(", ".join(secrets), reason, call.services.dialect)


def _token_from_arn(arn: str) -> str:
    return urlsafe_b64encode(arn.encode()).decode()


def _arn_from_token(token: str, call: Call) -> str:
    try:
        arn = b64decode(token, altchars=b"-_", validate=True).decode()
        return checked_arn(arn, call.services.dialect) if arn else ""
    except (binascii.Error, ValueError, InvalidRequest) as problem:
        raise InvalidRequest("Invalid parameter: NextToken", code="InvalidParameter") from problem


OPERATIONS = {
    "CreateTopic": Operation(create_topic, takes("Name", "Attributes", "Tags")),
    "SetTopicAttributes": Operation(
        set_topic_attributes, takes("TopicArn", "AttributeName", "AttributeValue")
    ),
    "GetTopicAttributes": Operation(get_topic_attributes, takes("TopicArn")),
    "GetTopic": Operation(get_topic, takes("TopicArn")),
    "ListTopics": Operation(list_topics, takes("NextToken")),
    "DeleteTopic": Operation(delete_topic, takes("TopicArn")),
    "TagResource": Operation(tag_resource, takes("ResourceArn", "Tags")),
    "UntagResource": Operation(untag_resource, takes("ResourceArn", "TagKeys")),
    "ListTagsForResource": Operation(list_tags_for_resource, takes("ResourceArn")),
}
