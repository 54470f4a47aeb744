"""What the gateway counts, and the page that shows the counts of all processes."""

import os
import time
from collections.abc import Iterator

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from bucketwire.config import CONSUMER
from bucketwire.metabase.base import Metabase

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_PARKED = {
    "messages": "Messages that wait for another attempt.",
    "bytes": "Bytes of the messages that wait.",
    "oldest_seconds": "For how long the oldest message has waited.",
    "failures": "Failed attempts of the topic in a row.",
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
    """What waits in the queue, read from the metabase when it is asked for."""

    def __init__(self, metabase: Metabase) -> None:
        self._metabase = metabase

    def collect(self) -> Iterator[Metric]:
        """One line a topic that has parked messages, and the totals."""
        now_ns = time.time_ns()
        gauges = {
            name: GaugeMetricFamily(f"bucketwire_parked_{name}", text, labels=["topic"])
            for name, text in _PARKED.items()
        }
        for line in self._metabase.queue.stats():
            gauges["messages"].add_metric([line.topic_arn], line.entries)
            gauges["bytes"].add_metric([line.topic_arn], line.size_bytes)
            gauges["oldest_seconds"].add_metric([line.topic_arn], (now_ns - line.oldest_at_ns) / 1e9)
            gauges["failures"].add_metric([line.topic_arn], line.failures)
        yield from gauges.values()
        dead_letters = self._metabase.queue.dead_letters()
        yield GaugeMetricFamily("bucketwire_dead_letters", "Messages that are not tried again.", dead_letters)
        alive_at_ns = self._metabase.cursors.alive_at_ns(CONSUMER) or 0
        yield GaugeMetricFamily(
            "bucketwire_pipeline_silent_seconds",
            "Since the pipeline last reported.",
            (now_ns - alive_at_ns) / 1e9,
        )
