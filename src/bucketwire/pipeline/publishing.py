"""How the pipeline calls a publisher: whatever goes wrong there is an outcome of the topic's messages.

A publisher is made from what a tenant wrote into a topic, and promises to raise nothing when it publishes.
Should it raise all the same, the messages of that topic are tried again later, and no other topic notices.
"""

from collections.abc import Callable, Sequence

from bucketwire.errors import ConfigError
from bucketwire.event.message import Message
from bucketwire.event.topic import Topic
from bucketwire.log import unforeseen
from bucketwire.pipeline.outcomes import log
from bucketwire.publish.base import Outcome, Retry
from bucketwire.publish.publishers import Publishers

Publish = Callable[[Sequence[Message], float], list[Outcome]]
"""As `Publisher.publish`, but it never raises."""


def publishing(publishers: Publishers, topic: Topic) -> Publish:
    """How to publish to the topic. What it needs is opened here, so that no deadline counts it."""
    try:
        publisher = publishers.get(topic)
    except ConfigError as error:  # the owner or the operator can mend it
        return always(Retry(str(error)))
    except Exception as error:  # noqa: BLE001 - logged, without its text
        return always(_unexpected(topic, error))

    def publish(messages: Sequence[Message], deadline_seconds: float) -> list[Outcome]:
        try:
            return publisher.publish(messages, deadline_seconds)
        except Exception as error:  # noqa: BLE001 - logged, without its text
            return [_unexpected(topic, error)] * len(messages)

    return publish


def always(outcome: Outcome) -> Publish:
    """Publishes nothing, and says this of each message."""
    return lambda messages, _: [outcome] * len(messages)


def _unexpected(topic: Topic, error: Exception) -> Retry:
    told = unforeseen(error)
    log.error("publisher_raised", topic=topic.arn, **told)
    return Retry(told["reason"])
