"""The options that say how messages are delivered, which gateway, pipeline and `up` share.

A command with `@delivery_options` gets them as one value, `delivery`.
"""

import functools
import os
from dataclasses import dataclass
from typing import Any

import click

from bucketwire.cli.bundle import Command, bundle
from bucketwire.cli.options import option
from bucketwire.metainfo.queue_limit import DEAD_LETTER, DEFAULT_LIMIT_BYTES, REJECT
from bucketwire.metainfo.topic_attributes import MAX_RETRIES, MAX_SLEEP_SECONDS, MAX_TIME_TO_LIVE_SECONDS


@dataclass(frozen=True, slots=True)
class Delivery:
    """What was chosen."""

    time_to_live: int
    max_retries: int
    retry_sleep: float | None
    queue_limit_bytes: int
    queue_policy: str | None
    alert_url: str | None
    pubsub_service_account: str | None
    forbid_private_endpoints: bool


_OPTIONS = (
    option(
        "--time-to-live",
        "Seconds for which messages are retried, unless their topic says otherwise; 0 is for ever.",
        default=0,
        type=click.IntRange(min=0, max=MAX_TIME_TO_LIVE_SECONDS),
    ),
    option(
        "--max-retries",
        "How often messages are retried, unless their topic says otherwise; 0 is without end.",
        default=0,
        type=click.IntRange(min=0, max=MAX_RETRIES),
    ),
    option(
        "--retry-sleep",
        "Seconds between retries, unless their topic says otherwise.  [default: 1, 2, 4, then every 8]",
        default=None,
        type=click.FloatRange(min=0, max=MAX_SLEEP_SECONDS),
    ),
    option(
        "--queue-limit-bytes",
        "How much may wait for one topic, unless it says otherwise; 0 is no limit.",
        default=DEFAULT_LIMIT_BYTES,
        type=click.IntRange(min=0),
    ),
    option(
        "--queue-policy",
        "What happens when that much waits: writes are rejected, or messages become dead letters."
        "  [default: as the dialect does]",
        default=None,
        type=click.Choice([REJECT, DEAD_LETTER]),
    ),
    option(
        "--alert-url", "Where to post when a topic keeps failing.  [default: a log line alone]", default=None
    ),
    option(
        "--pubsub-service-account",
        "Service account to impersonate towards Google Pub/Sub.  [default: the one of the machine]",
        default=None,
    ),
    option(
        "--forbid-private-endpoints",
        "Refuse endpoints in private networks: of HTTP and AMQP, and the brokers of Kafka.",
        is_flag=True,
    ),
)


def delivery_options(command: Command) -> Command:
    """Add the options; the command gets `delivery`."""

    @functools.wraps(command)
    def with_google(*args: Any, delivery: Delivery, **given: Any) -> None:
        # Google's own settings are read from the environment, and this one beside them.
        if delivery.pubsub_service_account:
            os.environ["BUCKETWIRE_PUBSUB_SERVICE_ACCOUNT"] = delivery.pubsub_service_account
        command(*args, delivery=delivery, **given)

    return bundle(Delivery, "delivery", _OPTIONS)(with_google)
