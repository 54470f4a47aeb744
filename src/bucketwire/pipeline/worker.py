"""What a Python worker process of Spark keeps between its tasks: connections, caches, threads.

Everything is opened in the process that uses it, at its first task: what travels to it is `PipelineSettings`.
A worker runs one task at a time.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import Event, Thread
from typing import Any

from bucketwire.config import PipelineSettings
from bucketwire.event.dialect import dialect_named
from bucketwire.event.installation import Installation
from bucketwire.log import configure_logging
from bucketwire.metabase import open_metabase
from bucketwire.metabase.base import Metabase
from bucketwire.metainfo.queue_limit import DEAD_LETTER, FullTopics, QueueLimits
from bucketwire.metainfo.routing import Router
from bucketwire.pipeline.claims import Claims
from bucketwire.pipeline.flow import Flow
from bucketwire.pipeline.receipts import Receipts
from bucketwire.publish import open_publisher
from bucketwire.publish.backoff import RetryPolicy
from bucketwire.publish.connections import Connections
from bucketwire.publish.publishers import Publishers

THREADS = 64
"""Topics that are published to at once."""
ATTEMPT_THREADS = 256
"""Calls of publishers at once; most of them wait for a destination that hangs."""
MOST_LATE = ATTEMPT_THREADS - 2 * THREADS
"""With so many calls late, others are given up at the deadline: there is a thread for each topic in turn."""
DRAIN_THREADS = 256
"""Topics whose parked messages are tried at once; most of them wait for a destination that hangs."""
LONG_DRAINS = DRAIN_THREADS // 4
"""Of these, topics whose calls may take longer than a first retry: other threads are free again soon."""


@dataclass(frozen=True, slots=True)
class Worker:
    """One process's share of the pipeline."""

    settings: PipelineSettings
    metabase: Metabase
    router: Router
    publishers: Publishers
    threads: ThreadPoolExecutor
    attempts: ThreadPoolExecutor
    """Calls of publishers, which may outlive the task that began them."""
    drain_publishers: Publishers
    """Apart from the others: a drain may outlive the task that began it."""
    drain_threads: ThreadPoolExecutor
    claims: Claims
    full: FullTopics
    receipts: Receipts
    late: set[Future[Any]] = field(default_factory=set)
    """Calls that no batch waits for any more: their publishers must stay open."""
    slow_calls: dict[str, int] = field(default_factory=dict)
    """How many calls in a row were slow, of topics whose last one was."""
    flows: dict[str, Flow] = field(default_factory=dict)
    """Of topics that answer, and have more to come or are slow."""
    drains: dict[Future[Any], str] = field(default_factory=dict)
    """Those under way with their topics, also of earlier tasks: their publishers must stay open."""
    waiting_long: set[str] = field(default_factory=set)
    """Topics among these whose calls may take longer than a first retry."""

    def drained(self, drain: Future[Any]) -> None:
        """A drain has ended. Its topic is out of hand last: from then on another drain may begin."""
        self.waiting_long.discard(self.drains.get(drain, ""))
        self.drains.pop(drain, None)

    @property
    def retry_policy(self) -> RetryPolicy:
        """For topics that have none of their own."""
        settings = self.settings
        return RetryPolicy(settings.time_to_live_seconds, settings.max_retries, settings.retry_sleep_seconds)

    def overflowing(self) -> frozenset[str]:
        """Topics whose queue is full and whose further messages become dead letters."""
        limits, dialect = queue_limits(self.settings), dialect_named(self.settings.dialect)
        topics = [topic for arn in self.full.arns() if (topic := self.router.topic(arn))]
        return frozenset(each.arn for each in topics if limits.policy_of(each, dialect) == DEAD_LETTER)


@lru_cache(maxsize=1)
def open_worker(settings: PipelineSettings, *, json_logs: bool) -> Worker:
    """The worker of this process; made once."""
    configure_logging(json=json_logs)
    worker = make_worker(settings, open_metabase(settings.metabase))
    Thread(target=worker.claims.keep_until, args=[Event()], name="claims", daemon=True).start()
    return worker


def queue_limits(settings: PipelineSettings) -> QueueLimits:
    """The server's limits."""
    return QueueLimits(settings.queue_limit_bytes, settings.queue_policy)


def make_worker(settings: PipelineSettings, metabase: Metabase) -> Worker:
    """A worker on an open metabase."""
    connections = Connections(private_allowed=not settings.forbid_private_endpoints)
    return Worker(
        settings=settings,
        metabase=metabase,
        router=Router(metabase, _installation(settings, metabase)),
        publishers=Publishers(open_publisher, connections),
        threads=ThreadPoolExecutor(THREADS, thread_name_prefix="topic"),
        attempts=ThreadPoolExecutor(ATTEMPT_THREADS, thread_name_prefix="attempt"),
        drain_publishers=Publishers(open_publisher, connections),
        drain_threads=ThreadPoolExecutor(DRAIN_THREADS, thread_name_prefix="drain"),
        claims=Claims(
            metabase.queue, max(settings.retry_deadline_seconds, settings.longest_deadline_seconds)
        ),
        full=FullTopics(metabase.queue, metabase.topics, queue_limits(settings)),
        receipts=Receipts(Path(settings.receipts or settings.scratch / "receipts")),
    )


def _installation(settings: PipelineSettings, metabase: Metabase) -> Installation:
    return Installation(
        dialect_named(settings.dialect), settings.system_uuid or metabase.identity(), settings.system_name
    )
