"""How a topic is shown: in the words of SNS, and in those of Ceph. No secret is in either. Pure."""

from typing import Any
from urllib.parse import urlsplit

import msgspec

from bucketwire.event.dialect import Dialect
from bucketwire.event.topic import ENDPOINT, Topic
from bucketwire.metainfo.topic_attributes import ATTRIBUTES, HIDDEN, TOKEN_ENDPOINT, secrets_among

_API_VERSION = "2010-03-31"
_CEPH_NAMES = {
    "TimeToLive": "time_to_live",
    "MaxRetries": "max_retries",
    "RetrySleepDuration": "retry_sleep_duration",
}
_ALWAYS_IN_SNS = {
    "DisplayName": "",
    "SignatureVersion": "1",
    "TracingConfig": "PassThrough",
    "SubscriptionsConfirmed": "0",
    "SubscriptionsPending": "0",
    "SubscriptionsDeleted": "0",
}
"""What clients of SNS look for, though there is nothing to tell."""
_DEFAULT_ACTIONS = (
    *("GetTopicAttributes", "SetTopicAttributes", "AddPermission", "RemovePermission", "DeleteTopic"),
    *("Subscribe", "ListSubscriptionsByTopic", "Publish"),
)


def shown_attributes(topic: Topic) -> dict[str, str]:
    """What a caller may see of a topic."""
    return {"TopicArn": topic.arn, "Owner": topic.owner_id, "Name": topic.name, **_without_secrets(topic)}


def sns_attributes(topic: Topic) -> dict[str, str]:
    """The answer to GetTopicAttributes, as clients of SNS expect it."""
    return {**_ALWAYS_IN_SNS, "Policy": default_policy(topic), **shown_attributes(topic)}


def default_policy(topic: Topic) -> str:
    """What SNS shows as the Policy of a topic that has none: it opens the topic to its owner.

    Clients read it as JSON, and set it again to take a Policy away.
    """
    statement = {
        "Sid": "__default_statement_ID",
        "Effect": "Allow",
        "Principal": {"AWS": "*"},
        "Action": [f"SNS:{action}" for action in _DEFAULT_ACTIONS],
        "Resource": topic.arn,
        "Condition": {"StringEquals": {"AWS:SourceOwner": topic.owner_id}},
    }
    policy = {"Version": "2008-10-17", "Id": "__default_policy_ID", "Statement": [statement]}
    return msgspec.json.encode(policy).decode()


def ceph_attributes(topic: Topic, dialect: Dialect) -> dict[str, str]:
    """The answer to GetTopicAttributes, as Ceph's clients expect it: the endpoint is JSON."""
    shown = ceph_topic(topic, dialect)
    endpoint = {
        name: text.lower() if name in {"HasStoredSecret", "Persistent"} else text
        for name, text in shown["EndPoint"].items()
    }
    return {**shown, "EndPoint": msgspec.json.encode(endpoint).decode()}


def ceph_topic(topic: Topic, dialect: Dialect) -> dict[str, Any]:
    """A topic in the answers to GetTopic and ListTopics, as Ceph's clients expect it."""
    shown = _without_secrets(topic)
    arguments = {"Version": _API_VERSION, **shown}
    arguments.pop("Policy", None)
    persistent = topic.is_set("persistent", default=dialect.persistent_by_default)
    endpoint = {
        "EndpointAddress": shown.get(ENDPOINT, ""),
        "EndpointArgs": "&".join(f"{name}={arguments[name]}" for name in sorted(arguments)),
        "EndpointTopic": topic.name,
        "HasStoredSecret": str(bool(secrets_among(topic.attributes))),
        "Persistent": str(persistent),
        **{name: shown.get(attribute, "None") for name, attribute in _CEPH_NAMES.items()},
    }
    policy = {"Policy": shown["Policy"]} if "Policy" in shown else {}
    return {
        "User": topic.owner_id,
        "Name": topic.name,
        "EndPoint": endpoint,
        "TopicArn": topic.arn,
        "OpaqueData": shown.get("OpaqueData", ""),
        **policy,
    }


def without_password(endpoint: str) -> str:
    """The URL with its password hidden."""
    parts = urlsplit(endpoint)
    if parts.password is None:
        return endpoint
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{parts.username}:{HIDDEN}@{host}").geturl()


def _without_secrets(topic: Topic) -> dict[str, str]:
    return {name: _shown(name, text) for name, text in topic.attributes.items()}


def _shown(name: str, text: str) -> str:
    if name in {ENDPOINT, TOKEN_ENDPOINT}:
        return without_password(text)
    known = ATTRIBUTES.get(name)
    return text if known is not None and not known.secret else HIDDEN
