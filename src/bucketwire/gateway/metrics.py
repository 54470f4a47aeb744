"""What the gateway counts, and the page that shows the counts of all processes."""

import os

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

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


def metrics_page() -> bytes:
    """All counts as Prometheus text."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest(REGISTRY)
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)
