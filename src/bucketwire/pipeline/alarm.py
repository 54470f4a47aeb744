"""The alarm for a topic that has failed to the end of the ladder: a metric, a log line, a call to someone.

The retries go on all the same.
"""

import time

import msgspec

from bucketwire.errors import ConfigError
from bucketwire.event.message import Message
from bucketwire.event.topic import ENDPOINT, Topic
from bucketwire.log import get_logger
from bucketwire.metabase.values import TopicHealth
from bucketwire.metrics import count_critical
from bucketwire.publish import open_publisher
from bucketwire.publish.base import Delivered
from bucketwire.publish.connections import Connections

EVENT = "bucket_eventing_publish_critical"
_CALL_SECONDS = 5.0

log = get_logger("pipeline")


def raise_alarm(health: TopicHealth, alert_url: str) -> None:
    """Raise it; a call that does not reach the operator is logged, no more."""
    count_critical(health.topic_arn)
    log.critical(EVENT, topic=health.topic_arn, failures=health.failures, reason=health.reason)
    if alert_url:
        _call(health, alert_url)


def _call(health: TopicHealth, url: str) -> None:
    body = msgspec.json.encode(
        {"event": EVENT, "topic": health.topic_arn, "failures": health.failures, "reason": health.reason}
    )
    now_ns = time.time_ns()
    message = Message(health.topic_arn, f"alert-{now_ns:x}", "", body, committed_at_ns=now_ns)
    connections = Connections()
    try:
        publisher = open_publisher(Topic("", "alert", "", {ENDPOINT: url}), connections)
        (outcome,) = publisher.publish([message], _CALL_SECONDS)
        publisher.close()
    except ConfigError as error:
        log.error("alert_not_sent", reason=str(error))  # noqa: TRY400 - the reason is all there is to know
        return
    finally:
        connections.close()
    if not isinstance(outcome, Delivered):
        log.error("alert_not_sent", reason=outcome.reason)
