"""Operations on topics, in the words of SNS."""

import binascii
import time
from base64 import b64decode, urlsafe_b64encode

from bucketwire.errors import InvalidRequest
from bucketwire.event.topic import Topic
from bucketwire.gateway.services import Call, Operation, Reply, takes
from bucketwire.metainfo.topics import (
    check_owner,
    checked_arn,
    created_topic,
    existing_topic,
    shown_attributes,
    topic_arn,
)

_PAGE = 100


async def create_topic(call: Call) -> Reply:
    """Create the topic, or find that it is there already."""
    services, name = call.services, call.input["Name"]
    wanted = Topic(
        arn=topic_arn(name, services.settings.region, services.dialect),
        name=name,
        owner_id=call.user_id,
        attributes=call.input.get("Attributes", {}),
        created_at_ns=time.time_ns(),
    )

    def job() -> None:
        topic = created_topic(services.metabase.topics.get(wanted.arn), wanted, services.dialect)
        if topic is not None:
            services.metabase.topics.put(topic)

    await services.run(job)
    return {"TopicArn": wanted.arn}


async def get_topic_attributes(call: Call) -> Reply:
    """What the topic is set to; no secrets."""
    arn = checked_arn(call.input["TopicArn"], call.services.dialect)
    topic = await call.services.run(call.services.metabase.topics.get, arn)
    return {"Attributes": shown_attributes(existing_topic(topic, call.user_id))}


async def list_topics(call: Call) -> Reply:
    """A page of the caller's topics, by ARN."""
    topics = call.services.metabase.topics
    after = _arn_from_token(call.input.get("NextToken", ""))
    found = await call.services.run(topics.owned_by, call.user_id, after=after, limit=_PAGE + 1)
    page = found[:_PAGE]
    return {
        "Topics": [{"TopicArn": topic.arn} for topic in page],
        "NextToken": _token_from_arn(page[-1].arn) if len(found) > _PAGE else None,
    }


async def delete_topic(call: Call) -> Reply:
    """Delete the topic. One that does not exist is no error."""
    topics = call.services.metabase.topics
    arn = checked_arn(call.input["TopicArn"], call.services.dialect)

    def job() -> None:
        topic = topics.get(arn)
        if topic is not None:
            check_owner(topic, call.user_id)
            topics.delete(arn)

    await call.services.run(job)
    return {}


def _token_from_arn(arn: str) -> str:
    return urlsafe_b64encode(arn.encode()).decode()


def _arn_from_token(token: str) -> str:
    try:
        return b64decode(token, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as problem:
        raise InvalidRequest("Invalid parameter: NextToken", code="InvalidParameter") from problem


OPERATIONS = {
    "CreateTopic": Operation(create_topic, takes("Name", "Attributes")),
    "GetTopicAttributes": Operation(get_topic_attributes, takes("TopicArn")),
    "ListTopics": Operation(list_topics, takes("NextToken")),
    "DeleteTopic": Operation(delete_topic, takes("TopicArn")),
}
