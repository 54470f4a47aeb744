"""Which full queues refuse writes."""

import pytest

from bucketwire.errors import Unavailable
from bucketwire.event.dialect import dialect_named
from bucketwire.gateway.backpressure import Backpressure
from bucketwire.metabase.base import Metabase
from bucketwire.metainfo.queue_limit import DEAD_LETTER, REJECT, QueueLimits
from factories import message, rule, topic

LIMIT_BYTES = 10
PUBSUB_ARN = "arn:gcp:pubsub::my-project:my-topic"


@pytest.fixture
def metabase(metabase: Metabase) -> Metabase:
    metabase.buckets.create("media", "owner-1", "us-east-1")
    return metabase


def fill(metabase: Metabase, arn: str) -> None:
    """A rule of the bucket names the topic, and its queue is full."""
    metabase.rules.edit("media", lambda _: [rule(topic_arn=arn)])
    waiting = message(topic_arn=arn, body=b"x" * LIMIT_BYTES)
    metabase.queue.park([waiting], due_at_ns=0, attempts=1, reason="down")


def write(metabase: Metabase, policy: str = REJECT) -> None:
    limits = QueueLimits(LIMIT_BYTES, policy)
    Backpressure(metabase, dialect_named("ceph"), limits).check("media", "a", "PutObject")


def test_a_topic_that_was_deleted_refuses_no_writes_though_its_queue_is_full(metabase: Metabase) -> None:
    metabase.topics.put(topic())
    fill(metabase, topic().arn)
    with pytest.raises(Unavailable, match="queue"):
        write(metabase)
    metabase.topics.delete(topic().arn)
    write(metabase)


def test_a_full_topic_that_only_its_arn_names_refuses_writes(metabase: Metabase) -> None:
    fill(metabase, PUBSUB_ARN)
    with pytest.raises(Unavailable, match="queue"):
        write(metabase)


def test_it_does_not_where_the_server_prefers_dead_letters(metabase: Metabase) -> None:
    fill(metabase, PUBSUB_ARN)
    write(metabase, DEAD_LETTER)
