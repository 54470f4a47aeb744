"""The gauges and counters that are read from the metabase."""

import time

from prometheus_client.parser import text_string_to_metric_families

from bucketwire.config import CONSUMER
from bucketwire.event.name import Operation
from bucketwire.gateway.metrics import metrics_page
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import Letters, TopicHealth
from factories import TOPIC_ARN, message, new_object, origin, rule

OTHER_ARN = TOPIC_ARN + "-other"
HOUR_NS = 3_600_000_000_000


def value(metabase: Metabase, name: str, **labels: str) -> float | None:
    """Of the one sample of that name and labels, if there is one."""
    families = text_string_to_metric_families(metrics_page(metabase).decode())
    samples = [each for family in families for each in family.samples]
    found = [each.value for each in samples if (each.name, each.labels) == (name, labels)]
    assert len(found) < 2
    return found[0] if found else None


def test_a_topic_that_fails_shows_what_waits_and_that_it_fails(metabase: Metabase) -> None:
    metabase.queue.park([message("a"), message("b")], due_at_ns=0, attempts=3, reason="HTTP 503")
    metabase.queue.report(TopicHealth(TOPIC_ARN, 7, time.time_ns(), "HTTP 503"))
    shown = {
        name: value(metabase, f"bucketwire_{name}", topic=TOPIC_ARN)
        for name in ("parked_messages", "parked_bytes", "parked_attempts", "parked_failures", "topic_failing")
    }
    assert shown == {
        "parked_messages": 2,
        "parked_bytes": 4,
        "parked_attempts": 3,
        "parked_failures": 7,
        "topic_failing": 1,
    }
    assert 0 <= (value(metabase, "bucketwire_parked_oldest_seconds", topic=TOPIC_ARN) or 0) < 600


def test_a_topic_that_fails_with_nothing_waiting_has_no_age(metabase: Metabase) -> None:
    metabase.queue.report(TopicHealth(TOPIC_ARN, 1, time.time_ns() + HOUR_NS, "HTTP 503"))
    assert value(metabase, "bucketwire_parked_oldest_seconds", topic=TOPIC_ARN) == 0
    assert value(metabase, "bucketwire_topic_failing", topic=TOPIC_ARN) == 1


def test_a_topic_whose_messages_have_all_expired_does_not_fail_for_ever(metabase: Metabase) -> None:
    metabase.queue.report(TopicHealth(TOPIC_ARN, 5, 0, "HTTP 503"))
    assert value(metabase, "bucketwire_topic_failing", topic=TOPIC_ARN) == 0
    assert value(metabase, "bucketwire_parked_failures", topic=TOPIC_ARN) == 5


def test_a_topic_that_works_with_messages_waiting_does_not_fail(metabase: Metabase) -> None:
    metabase.queue.park([message("a")], due_at_ns=0, attempts=1, reason="HTTP 503")
    assert value(metabase, "bucketwire_topic_failing", topic=TOPIC_ARN) == 0


def test_every_letter_that_comes_or_goes_is_counted_by_topic(metabase: Metabase) -> None:
    metabase.queue.bury([message("a"), message("b"), message("c"), message("d", OTHER_ARN)], "gone")
    first, second, *_ = metabase.queue.letters(Letters(), 10)
    metabase.queue.redrive([first.id])
    metabase.queue.purge([second.id])
    counted = {
        (what, arn): value(metabase, "bucketwire_letters_total", what=what, topic=arn)
        for what in ("buried", "redriven", "purged")
        for arn in (TOPIC_ARN, OTHER_ARN)
    }
    assert counted == {
        ("buried", TOPIC_ARN): 3,
        ("buried", OTHER_ARN): 1,
        ("redriven", TOPIC_ARN): 1,
        ("redriven", OTHER_ARN): None,
        ("purged", TOPIC_ARN): 1,
        ("purged", OTHER_ARN): None,
    }
    assert value(metabase, "bucketwire_dead_letters") == 2


def test_the_lag_of_the_pipeline_is_what_it_has_not_read(metabase: Metabase) -> None:
    assert value(metabase, "bucketwire_changes_waiting") == 0
    assert value(metabase, "bucketwire_changes_oldest_seconds") == 0
    metabase.buckets.create("media", "owner-1", "us-east-1")
    metabase.rules.edit("media", lambda _: [rule()])
    for key in "abc":
        metabase.objects.put("media", new_object(key), Operation.PUT, origin())
    assert value(metabase, "bucketwire_changes_waiting") == 3
    assert (value(metabase, "bucketwire_changes_oldest_seconds") or 0) > 0
    metabase.cursors.save(CONSUMER, metabase.changes.head(metabase.changes.start(), 2), time.time_ns())
    assert value(metabase, "bucketwire_changes_waiting") == 1
    assert (value(metabase, "bucketwire_pipeline_silent_seconds") or 0) < 600
