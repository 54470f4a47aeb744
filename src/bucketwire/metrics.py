"""What the pipeline counts. Several processes count together: the supervisor sets
PROMETHEUS_MULTIPROC_DIR before anything here is imported."""

from bisect import bisect_left
from collections import Counter as Counts
from collections.abc import Iterable
from threading import Lock

from prometheus_client import Counter, Histogram

from bucketwire.metric_files import reserve_metric_files

reserve_metric_files()

MESSAGES = Counter(
    "bucketwire_messages", "Messages by what became of an attempt to deliver them.", ["outcome"]
)
PUBLISH_CRITICAL = Counter(
    "bucket_eventing_publish_critical",
    "How often a topic has failed to the end of the ladder of retries.",
    ["topic"],
)
MOST_TOPICS = 1_000
"""Topics with a label of their own, in one process; the rest share one."""
OTHER_TOPICS = "others"
DELIVERY = Histogram(
    "bucketwire_delivery_seconds",
    "From the commit of a change to the acknowledgement of its message.",
    buckets=(0.02, 0.04, 0.06, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 15.0, 60.0, 600.0),
)

_lock = Lock()
_critical: set[str] = set()


def count_messages(outcome: str, messages: int) -> None:
    """Count that many messages: `delivered`, `parked` or `buried`."""
    if messages:
        MESSAGES.labels(outcome).inc(messages)


def count_critical(topic_arn: str) -> None:
    """Count that a topic has failed to the end of the ladder."""
    with _lock:
        if len(_critical) < MOST_TOPICS:
            _critical.add(topic_arn)
        known = topic_arn in _critical
    PUBLISH_CRITICAL.labels(topic_arn if known else OTHER_TOPICS).inc()


def observe_deliveries(committed_at_ns: Iterable[int], now_ns: int) -> None:
    """Observe messages that were acknowledged now.

    The client library observes one value at a time, which costs as much as publishing does. Here a bucket of
    the histogram grows once a call.
    """
    seconds = [max(0.0, (now_ns - committed) / 1e9) for committed in committed_at_ns]
    if not seconds:
        return
    bounds = DELIVERY._upper_bounds  # noqa: SLF001
    for place, count in Counts(bisect_left(bounds, each) for each in seconds).items():
        DELIVERY._buckets[place].inc(count)  # noqa: SLF001
    DELIVERY._sum.inc(sum(seconds))  # noqa: SLF001
