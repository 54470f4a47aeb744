"""What the gateway counts, and the page that shows the counts of all processes."""

import os
import time
from collections.abc import Iterator

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from bucketwire.config import CONSUMER
from bucketwire.gateway.retention import pipeline_lag
from bucketwire.metabase.base import Metabase, Queue
from bucketwire.metabase.queued import breaker
from bucketwire.metabase.values import QueueStats
from bucketwire.metric_files import reserve_metric_files

reserve_metric_files()

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_TOPIC_GAUGES = {
    "bucketwire_parked_messages": "Messages that wait for another attempt.",
    "bucketwire_parked_bytes": "Bytes of the messages that wait.",
    "bucketwire_parked_oldest_seconds": "For how long the oldest message has waited.",
    "bucketwire_parked_attempts": "The most attempts that one of the messages that wait has seen.",
    "bucketwire_parked_failures": "Failed attempts of the topic in a row.",
    "bucketwire_topic_failing": "1 while the topic's breaker is not closed.",
}
_PIPELINE_GAUGES = {
    "bucketwire_changes_waiting": "About how many changes the pipeline has still to read.",
    "bucketwire_changes_oldest_seconds": "For how long the oldest of them has waited.",
    "bucketwire_changes_lost": "1 when changes were trimmed before they were read.",
    "bucketwire_pipeline_silent_seconds": "Since the pipeline last reported.",
}
_REQUESTS = Counter("bucketwire_requests", "Requests by operation and status.", ["operation", "status"])
_SECONDS = Histogram(
    "bucketwire_request_seconds",
    "From the head of a request to the end of its answer.",
    ["operation"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0),
)


def observe_request(operation: str, status: int, seconds: float) -> None:
    """Count a request. The operation's name comes from a model, so that there are only so many."""
    _REQUESTS.labels(operation, status).inc()
    _SECONDS.labels(operation).observe(seconds)


def metrics_page(metabase: Metabase) -> bytes:
    """The counts of all processes and the state of the queue, as Prometheus text."""
    gauges = CollectorRegistry()
    gauges.register(_QueueCollector(metabase))
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest(REGISTRY) + generate_latest(gauges)
    counts = CollectorRegistry()
    MultiProcessCollector(counts)  # type: ignore[no-untyped-call]
    return generate_latest(counts) + generate_latest(gauges)


class _QueueCollector(Collector):
    """What waits, read from the metabase when it is asked for."""

    def __init__(self, metabase: Metabase) -> None:
        self._metabase = metabase

    def collect(self) -> Iterator[Metric]:
        """The queue by topic, the dead letters, the change stream."""
        now_ns = time.time_ns()
        yield from _parked(self._metabase.queue, now_ns)
        yield from _letters(self._metabase.queue)
        yield from _changes(self._metabase, now_ns)


def _parked(queue: Queue, now_ns: int) -> Iterator[Metric]:
    """One line a topic that has parked messages or failures."""
    gauges = {name: GaugeMetricFamily(name, text, labels=["topic"]) for name, text in _TOPIC_GAUGES.items()}
    for line in queue.stats():
        for gauge, value in zip(gauges.values(), _values(line, now_ns), strict=True):
            gauge.add_metric([line.topic_arn], value)
    yield from gauges.values()


def _values(line: QueueStats, now_ns: int) -> tuple[float, ...]:
    """In the order of `_TOPIC_GAUGES`."""
    oldest_seconds = max(0.0, (now_ns - line.oldest_at_ns) / 1e9) if line.entries else 0.0
    counted = (line.entries, line.size_bytes, oldest_seconds, line.attempts)
    return (*counted, line.failures, int(breaker(line, now_ns) != "closed"))


def _letters(queue: Queue) -> Iterator[Metric]:
    dead_letters = queue.dead_letters()
    yield GaugeMetricFamily("bucketwire_dead_letters", "Messages that are not tried again.", dead_letters)
    letters = CounterMetricFamily(
        "bucketwire_letters",
        "Dead letters that were ever buried, redriven or purged.",
        labels=["what", "topic"],
    )
    for (what, arn), count in sorted(queue.counts().items()):
        letters.add_metric([what, arn], count)
    yield letters


def _changes(metabase: Metabase, now_ns: int) -> Iterator[Metric]:
    lag, alive_at_ns = pipeline_lag(metabase), metabase.cursors.alive_at_ns(CONSUMER) or 0
    values = (lag.changes, lag.seconds(now_ns), int(lag.lost), (now_ns - alive_at_ns) / 1e9)
    for (name, text), value in zip(_PIPELINE_GAUGES.items(), values, strict=True):
        yield GaugeMetricFamily(name, text, value)
