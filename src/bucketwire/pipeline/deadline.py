"""How long a drain waits for an answer: not long at first, longer where that was not enough.

    at first                       `retry_deadline_seconds`: what a short hang has swallowed comes back soon
    three failures in a row, and   twice as long as the last time, each time, up to
    no answer at the last time     `longest_deadline_seconds`
    known to answer very slowly    `longest_deadline_seconds`, as long as it is slow

All of that is in the health of the topic, for all workers. A failure that comes at once, such as a refused
connection, says nothing of how long an answer takes. Pure.
"""

from bucketwire.config import PipelineSettings
from bucketwire.metabase.values import TopicHealth
from bucketwire.pipeline.pace import is_very_slow
from bucketwire.publish.base import no_answer_seconds

SHORT_CALLS = 3
"""In a row, failed, before a call may take longer."""


def deadline_of(health: TopicHealth, settings: PipelineSettings) -> float:
    """The seconds of the next call of a topic of which this is known."""
    short, longest = settings.retry_deadline_seconds, settings.longest_deadline_seconds
    if is_very_slow(health):
        return max(short, longest)
    if health.failures < SHORT_CALLS:
        return short
    waited = no_answer_seconds(health.reason) or 0.0
    return max(short, min(2 * waited, longest))
