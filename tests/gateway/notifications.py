"""Notification configurations as documents, and topics for them: requests that no client library sends."""

from xml.sax.saxutils import escape

from bucketwire.event.topic import Topic
from gateway.in_process import InProcess
from gateway.running import ROOT


def topic_named(
    gateway: InProcess,
    name: str = "t",
    endpoint: str = "http://127.0.0.1:1/",
    owner_id: str = ROOT.user_id,
    **more: str,
) -> str:
    """A persistent topic, of ROOT's unless told otherwise; its ARN."""
    arn = f"arn:aws:sns:us-east-1::{name}"
    attributes = {"push-endpoint": endpoint, "persistent": "true", **more}
    gateway.metabase.topics.put(Topic(arn, name, owner_id, attributes))
    return arn


def rule_element(
    arn: str, rule_id: str | None = None, events: tuple[str, ...] = ("s3:ObjectCreated:*",), inner: str = ""
) -> str:
    """A TopicConfiguration; `inner` stands behind what is given."""
    told = f"<Id>{escape(rule_id)}</Id>" if rule_id is not None else ""
    listed = "".join(f"<Event>{event}</Event>" for event in events)
    return f"<TopicConfiguration>{told}<Topic>{escape(arn)}</Topic>{listed}{inner}</TopicConfiguration>"


def prefix_filter(prefix: str) -> str:
    """A Filter element."""
    condition = f"<FilterRule><Name>prefix</Name><Value>{escape(prefix)}</Value></FilterRule>"
    return f"<Filter><S3Key>{condition}</S3Key></Filter>"


def document(*elements: str) -> bytes:
    """A NotificationConfiguration."""
    return f"<NotificationConfiguration>{''.join(elements)}</NotificationConfiguration>".encode()
